"""A row that belongs to a node belongs to the node's space: one key says both, and the second is not looked up again.

Looking up keys was two fifths of what the database did to store a batch of short texts. The counts of words and their
spellings have no node; they are made from the row of their space in `lexicon_totals`, whose key stays.
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TABLES = ("lexicon", "embedding_jobs", "embeddings", "activity", "term_stats", "spellings")


def upgrade() -> None:
    for table in TABLES:
        op.drop_constraint(f"{table}_space_id_fkey", table, type_="foreignkey")


def downgrade() -> None:
    for table in TABLES:
        op.create_foreign_key(f"{table}_space_id_fkey", table, "spaces", ["space_id"], ["id"])
