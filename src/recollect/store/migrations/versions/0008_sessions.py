"""Browsers that signed in with a key."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("key_id", sa.Uuid, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="sessions_pkey"),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="sessions_key_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("sessions_expires_at", "sessions", ["expires_at"])


def downgrade() -> None:
    op.drop_table("sessions")
