"""Text that the embedder cannot read has no vector (D43); and an outcome recorded for a case was a use of it (E35).

What minilm cannot spell got one vector for all: unrelated texts looked the same, and were proposed to be merged. Which
they are only its tokeniser can tell, so every text with letters beyond those it knows (or a word beyond 100 letters)
loses its vector and is embedded anew; the worker gives one to those that can be read. Vectors are derived: nothing is
lost, and until then such a text is found by its words.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATES = "'pending', 'processing', 'completed', 'failed'"
# Latin, Greek, Cyrillic, Hebrew, Arabic, punctuation and currencies are in its vocabulary, letter by letter.
BEYOND = r"[^\u0001-\u052F\u0590-\u06FF\u1E00-\u206F\u20A0-\u20CF]|[[:alnum:]]{101}"

EMBED_ANEW = f"""
WITH dropped AS (
    DELETE FROM embeddings e USING nodes n
     WHERE n.space_id = e.space_id AND n.id = e.node_id AND e.model = 'minilm'
       AND concat_ws(' ', n.name, n.text) ~ '{BEYOND}'
    RETURNING e.space_id, e.node_id, e.model
)
INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
SELECT space_id, node_id, model, now(), now() FROM dropped
ON CONFLICT (space_id, node_id, model) DO UPDATE
   SET id = gen_random_uuid(), status = 'pending', attempts = 0, error_message = NULL, due_at = excluded.due_at,
       claimed_at = NULL, completed_at = NULL
"""

# Thai, Lao, Burmese and Khmer were one word a line, so that no word in them was found. They are indexed by pairs of
# characters now: what waits to be embedded leaves the index, and the worker puts it in again.
SPACELESS = r"[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF]"
INDEX_ANEW = f"""
WITH gone AS (
    DELETE FROM lexicon l USING embedding_jobs j, nodes n
     WHERE j.space_id = l.space_id AND j.node_id = l.node_id AND j.status = 'pending'
       AND n.space_id = l.space_id AND n.id = l.node_id AND concat_ws(' ', n.name, n.text) ~ '{SPACELESS}'
    RETURNING l.space_id, l.terms, l.length
), fewer AS (
    UPDATE term_stats t SET documents = t.documents - c.number
      FROM (SELECT space_id, term, count(*) AS number FROM gone, unnest(terms) AS term GROUP BY space_id, term) c
     WHERE t.space_id = c.space_id AND t.term = c.term
)
UPDATE lexicon_totals t SET documents = t.documents - c.number, total_length = t.total_length - c.length
  FROM (SELECT space_id, count(*) AS number, sum(length) AS length FROM gone GROUP BY space_id) c
 WHERE t.space_id = c.space_id
"""

# How many of the outcomes were counted as search hits before cannot be known: at least one use for each there was.
USES_OF_OUTCOMES = """
INSERT INTO activity (space_id, node_id, uses, last_used_at)
SELECT space_id, node_id, count(*), max(created_at) FROM outcomes GROUP BY space_id, node_id
ON CONFLICT (space_id, node_id) DO UPDATE
   SET uses = greatest(activity.uses, excluded.uses),
       last_used_at = greatest(activity.last_used_at, excluded.last_used_at)
"""


def upgrade() -> None:
    _allow(f"{STATES}, 'unreadable'")
    op.execute(EMBED_ANEW)
    op.execute(INDEX_ANEW)
    op.execute(USES_OF_OUTCOMES)


def downgrade() -> None:
    op.execute("UPDATE embedding_jobs SET status = 'pending', attempts = 0 WHERE status = 'unreadable'")
    _allow(STATES)


def _allow(states: str) -> None:
    op.drop_constraint(op.f("embedding_jobs_status"), "embedding_jobs", type_="check")
    op.create_check_constraint(op.f("embedding_jobs_status"), "embedding_jobs", f"status IN ({states})")
