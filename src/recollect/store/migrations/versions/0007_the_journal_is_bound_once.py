"""A decision is bound to its plan and a change to its decision, and with them to their space.

A second bond to the space itself was looked up for every row of every plan, and kept nothing more.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("decisions", "changes"):
        op.drop_constraint(f"{table}_space_id_fkey", table, type_="foreignkey")


def downgrade() -> None:
    for table in ("decisions", "changes"):
        op.create_foreign_key(f"{table}_space_id_fkey", table, "spaces", ["space_id"], ["id"])
