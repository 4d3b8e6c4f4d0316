"""Long memories are read in windows of half the length (D47): they are embedded once more, while search goes on.

In two statements, since Citus updates nothing on conflict by functions that are not immutable.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

OF_LONG_TEXTS = """
    FROM embeddings e JOIN spaces s ON s.id = e.space_id
   WHERE e.passage = 1 AND e.model = s.embedding_model
"""
DONE = f"""
    DELETE FROM embedding_jobs j
     WHERE j.status = 'completed' AND EXISTS (SELECT {OF_LONG_TEXTS}
       AND e.space_id = j.space_id AND e.node_id = j.node_id AND e.model = j.model)
"""
QUEUE = f"""
    INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
    SELECT e.space_id, e.node_id, e.model, now(), now() {OF_LONG_TEXTS}
    ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.execute(DONE)
    op.execute(QUEUE)


def downgrade() -> None:
    """Windows of either length are searched by either version."""
