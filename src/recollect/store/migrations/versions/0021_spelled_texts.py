"""What minilm can only spell has no vector either (D43).

Of Russian, Greek, Arabic, Hebrew, Hindi, Japanese or Korean it knows the letters and no words, so unrelated texts of one
script looked alike, and questions about what is not there were answered. Which texts those are only its tokeniser can
tell: every text with such letters loses its vector and is embedded anew, as in 0011. Vectors are derived: nothing is
lost, and until then such a text is found by its words.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

# Letters beyond Latin ones, whatever the script; signs, arrows and the like are none.
BEYOND = r"[\u0370-\u1DFF\u1F00-\u1FFF\u2C00-\u2DFF\u3040-\u31FF\uA000-\uD7FF\uFB13-\uFDFF\uFE70-\uFEFF]"
AFFECTED = f"""n.space_id = e.space_id AND n.id = e.node_id AND e.model = 'minilm'
           AND concat_ws(' ', n.name, n.text) ~ '{BEYOND}'"""

# Two statements, so that each is done where a space is, also where spaces are spread over servers.
EMBED_ANEW = f"""
INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
SELECT DISTINCT e.space_id, e.node_id, e.model, now(), now() FROM embeddings e, nodes n WHERE {AFFECTED}
ON CONFLICT (space_id, node_id, model) DO UPDATE
   SET status = 'pending', attempts = 0, error_message = NULL, due_at = excluded.due_at,
       claimed_at = NULL, claimed_by = NULL, completed_at = NULL
"""
WITHOUT_VECTORS = f"DELETE FROM embeddings e USING nodes n WHERE {AFFECTED}"


def upgrade() -> None:
    op.execute(EMBED_ANEW)
    op.execute(WITHOUT_VECTORS)


def downgrade() -> None:
    """Nothing: what has no vector is found by its words."""
