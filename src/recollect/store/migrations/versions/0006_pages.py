"""Pages that come in wait in tables of their own until a plan takes them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "page_batches",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="page_batches_space_id_fkey"), nullable=False),
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("about", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("space_id", "id", name="page_batches_pkey"),
    )
    op.create_table(
        "incoming_pages",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="incoming_pages_space_id_fkey"), nullable=False),
        sa.Column("batch", sa.Uuid, nullable=False),
        sa.Column("page_id", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("planned", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.PrimaryKeyConstraint("space_id", "batch", "page_id", name="incoming_pages_pkey"),
        sa.ForeignKeyConstraint(
            ["space_id", "batch"],
            ["page_batches.space_id", "page_batches.id"],
            name="incoming_pages_space_id_batch_fkey",
        ),
    )
    for table in ("page_batches", "incoming_pages"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY space ON {table} "
            "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
        )


def downgrade() -> None:
    op.drop_table("incoming_pages")
    op.drop_table("page_batches")
