"""A decision costs less: room on its page for its fate, and an index by subject for merges alone, which is asked."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE decisions SET (fillfactor = 45)")
    op.drop_index("decisions_subject", table_name="decisions")
    merges = sa.text("verb = 'merge'")
    op.create_index("decisions_subject", "decisions", ["space_id", "subject"], postgresql_where=merges)


def downgrade() -> None:
    op.drop_index("decisions_subject", table_name="decisions")
    op.create_index("decisions_subject", "decisions", ["space_id", "subject"])
    op.execute("ALTER TABLE decisions SET (fillfactor = 60)")
