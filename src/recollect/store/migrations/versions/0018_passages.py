"""A long memory has a vector for each of its windows beside the one for all of it (D47)."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

# What may be longer than one window is embedded once more, by the worker, while search goes on with what there is: by
# the model that search uses, and by one that is being brought in. Tokens are counted so that they are never too few.
QUEUE = r"""
    INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
    SELECT n.space_id, n.id, e.model, now(), now() FROM nodes n
      JOIN embeddings e ON e.space_id = n.space_id AND e.node_id = n.id JOIN spaces s ON s.id = n.space_id
     WHERE n.kind = 'memory' AND n.status <> 'merged' AND length(n.text) > 250
       AND regexp_count(n.text, '[A-Za-z0-9]{1,6}|\S') > 250 AND (
           e.model = s.embedding_model OR EXISTS (
               SELECT FROM embedding_jobs j WHERE j.space_id = n.space_id AND j.model = e.model
                  AND j.status IN ('pending', 'processing')))
    ON CONFLICT (space_id, node_id, model)
    DO UPDATE SET id = gen_random_uuid(), status = 'pending', attempts = 0, error_message = NULL,
                  due_at = excluded.due_at, claimed_at = NULL, completed_at = NULL
"""


def upgrade() -> None:
    op.add_column("embeddings", sa.Column("passage", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("embeddings", sa.Column("starts", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("embeddings", sa.Column("ends", sa.Integer(), nullable=True))
    op.drop_constraint("embeddings_pkey", "embeddings")
    op.create_primary_key("embeddings_pkey", "embeddings", ["space_id", "node_id", "model", "passage"])
    op.execute(QUEUE)


def downgrade() -> None:
    op.execute("DELETE FROM embeddings WHERE passage > 0")
    op.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else what waits for the end stands in the way of what is dropped
    op.execute("SET CONSTRAINTS ALL DEFERRED")
    op.drop_constraint("embeddings_pkey", "embeddings")
    op.create_primary_key("embeddings_pkey", "embeddings", ["space_id", "node_id", "model"])
    for column in ("ends", "starts", "passage"):
        op.drop_column("embeddings", column)
