"""What was just loaded is found as fast as what lies there: a GIN index keeps little that is not sorted in (D53).

Every search reads through what an index of words has not sorted in yet. Of the usual 4 MB that took longer than the
search itself, for as long as nobody cleaned up; of 256 kB nobody notices.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

INDEXES = ("lexicon_terms", "spellings_keys")


def upgrade() -> None:
    for index in INDEXES:
        op.execute(f"ALTER INDEX {index} SET (gin_pending_list_limit = 256)")


def downgrade() -> None:
    for index in INDEXES:
        op.execute(f"ALTER INDEX {index} RESET (gin_pending_list_limit)")
