"""Names lead to nodes, whatever their type; and from a node to all its names."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("aliases_alias", "aliases", ["space_id", "kind", "alias"])
    op.create_index("aliases_node", "aliases", ["space_id", "node_id"])


def downgrade() -> None:
    op.drop_index("aliases_node", table_name="aliases")
    op.drop_index("aliases_alias", table_name="aliases")
