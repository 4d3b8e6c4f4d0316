"""Words: stemmed by their language, found when misspelled, indexed with the text (D44, D50).

Every entry of the lexicon is made anew by the worker, a few at a time, while search goes on: until that is done a
question is asked in the forms of both tokenisers, so that nothing is lost on the way. The words of a space are kept as
they are spelled, under keys that a misspelled one shares.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ADDED_UP = """
    CREATE FUNCTION added_up(one jsonb, other jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE WHEN other = '{}' THEN one ELSE (
            SELECT jsonb_object_agg(key, total) FROM (
                SELECT key, sum(value::int8) AS total
                  FROM (SELECT * FROM jsonb_each_text(one) UNION ALL SELECT * FROM jsonb_each_text(other)) AS each
                 GROUP BY key) AS sums) END $$
"""

# As lexical_candidates: the owner asks, in one space, since overlap is not leakproof. The keys are numbered by space.
SPELLED_LIKE = """
    CREATE FUNCTION spelled_like(wanted int4[], shortest int4, longest int4, firsts text[])
        RETURNS TABLE (term int4, word text, documents int8)
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp SET enable_seqscan = off
        AS $$ SELECT s.term, s.word, t.documents FROM spellings s, LATERAL (
                  SELECT documents FROM term_stats
                   WHERE space_id = s.space_id AND term = s.term AND documents > 0 OFFSET 0) t
               WHERE s.keys && wanted AND (s.space_id = (SELECT current_setting('recollect.space')::uuid)) IS TRUE
                 AND length(s.word) BETWEEN shortest AND longest AND left(s.word, 1) = ANY(firsts) $$
"""

# Whoever changes the counts of a space takes its turn, from now on also who changes a text: {turn}.
TURN = "PERFORM pg_advisory_xact_lock(hashtextextended(NEW.space_id::text, 11));"
FORGET = """
    CREATE OR REPLACE FUNCTION embed_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE forgotten record;
    BEGIN
        INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
        SELECT NEW.space_id, NEW.id, known.model, NEW.updated_at, NEW.updated_at FROM (
            SELECT model FROM embeddings WHERE space_id = NEW.space_id AND node_id = NEW.id
             UNION SELECT model FROM embedding_jobs WHERE space_id = NEW.space_id AND node_id = NEW.id) known
        ON CONFLICT (space_id, node_id, model) DO UPDATE
           SET id = gen_random_uuid(), status = 'pending', attempts = 0, error_message = NULL,
               due_at = excluded.due_at, claimed_at = NULL, completed_at = NULL;
        {turn}
        DELETE FROM lexicon WHERE space_id = NEW.space_id AND node_id = NEW.id RETURNING terms, length INTO forgotten;
        IF FOUND THEN
            PERFORM FROM term_stats WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms)
              ORDER BY term FOR UPDATE;
            UPDATE term_stats SET documents = documents - 1
             WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms);
            UPDATE lexicon_totals SET documents = documents - 1, total_length = total_length - forgotten.length
             WHERE space_id = NEW.space_id;
        END IF;
        RETURN NULL;
    END $$
"""


def upgrade() -> None:
    op.create_table(
        "spellings",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="spellings_space_id_fkey"), nullable=False),
        sa.Column("term", sa.Integer, nullable=False),
        sa.Column("word", sa.Text, nullable=False),
        sa.Column("keys", sa.ARRAY(sa.Integer), nullable=False),
        sa.PrimaryKeyConstraint("space_id", "term", name="spellings_pkey"),
    )
    op.create_index("spellings_keys", "spellings", ["keys"], postgresql_using="gin")
    op.execute("ALTER TABLE spellings ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
    op.execute("ALTER TABLE spellings ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON spellings "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )
    op.add_column("lexicon_totals", sa.Column("edition", sa.Integer, nullable=False, server_default=sa.text("1")))
    op.add_column("lexicon_totals", sa.Column("renewed", sa.Uuid))
    op.add_column(
        "lexicon_totals", sa.Column("languages", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb"))
    )
    for statement in (ADDED_UP, SPELLED_LIKE, FORGET.replace("{turn}", TURN)):
        op.get_bind().exec_driver_sql(statement)
    op.execute("REVOKE EXECUTE ON FUNCTION spelled_like(int4[], int4, int4, text[]) FROM PUBLIC")


def downgrade() -> None:
    """The entries stay as they were made last; they are made anew with the next upgrade."""
    op.get_bind().exec_driver_sql(FORGET.replace("{turn}", ""))
    op.execute("DROP FUNCTION spelled_like(int4[], int4, int4, text[])")
    op.execute("DROP FUNCTION added_up(jsonb, jsonb)")
    for column in ("languages", "renewed", "edition"):
        op.drop_column("lexicon_totals", column)
    op.drop_table("spellings")
