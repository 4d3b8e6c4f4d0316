"""A job says who works on it, so that those of a killed worker are taken over at once (S04)."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("embedding_jobs", sa.Column("claimed_by", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.drop_column("embedding_jobs", "claimed_by")
