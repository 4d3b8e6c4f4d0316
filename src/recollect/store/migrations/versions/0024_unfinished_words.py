"""A word that nobody has typed to its end finds those that begin with it (D44).

Those are read from an index by their first letters, in the same look into a space as those that are spelled nearly like
it: of the hundred shortest the most common few, so that three letters cost no more than a hundred words.
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

HEAD = """
        RETURNS TABLE (term int4, word text, documents int8)
        LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp SET enable_seqscan = off AS $$
    BEGIN
        RETURN QUERY EXECUTE 'SELECT s.term, s.word, t.documents FROM spellings s, LATERAL (
                SELECT documents FROM term_stats
                 WHERE space_id = $1 AND term = s.term AND documents > 0 OFFSET 0) t
             WHERE s.keys && $2 AND length(s.word) BETWEEN $3 AND $4 AND left(s.word, 1) = ANY($5) AND '
            || only_in(space)"""
# The last of all letters ends what begins alike.
SPELLED_LIKE = f"""
    CREATE FUNCTION spelled_like(
        space uuid, wanted int4[], shortest int4, longest int4, firsts text[], begun text[], most int4){HEAD} ||
            ' UNION SELECT f.* FROM unnest($6) AS b(letters), LATERAL (
                SELECT s.term, s.word, t.documents FROM (
                    SELECT term, word FROM spellings
                     WHERE space_id = $1 AND word ~>=~ b.letters AND word ~<~ (b.letters || chr(1114111))
                     ORDER BY length(word), word LIMIT 100) s, LATERAL (
                    SELECT documents FROM term_stats
                     WHERE space_id = $1 AND term = s.term AND documents > 0 OFFSET 0) t
                 ORDER BY t.documents DESC, s.word LIMIT $7) AS f'
            USING space, wanted, shortest, longest, firsts, begun, most;
    END $$
"""
SPELLED_LIKE_BEFORE = f"""
    CREATE FUNCTION spelled_like(space uuid, wanted int4[], shortest int4, longest int4, firsts text[]){HEAD}
            USING space, wanted, shortest, longest, firsts;
    END $$
"""
AFTER, BEFORE = "uuid, int4[], int4, int4, text[], text[], int4", "uuid, int4[], int4, int4, text[]"


def upgrade() -> None:
    op.create_index("spellings_word", "spellings", ["space_id", "word"], postgresql_ops={"word": "text_pattern_ops"})
    op.execute(f"DROP FUNCTION spelled_like({BEFORE})")
    op.get_bind().exec_driver_sql(SPELLED_LIKE)
    op.execute(f"REVOKE EXECUTE ON FUNCTION spelled_like({AFTER}) FROM PUBLIC")


def downgrade() -> None:
    op.execute(f"DROP FUNCTION spelled_like({AFTER})")
    op.get_bind().exec_driver_sql(SPELLED_LIKE_BEFORE)
    op.execute(f"REVOKE EXECUTE ON FUNCTION spelled_like({BEFORE}) FROM PUBLIC")
    op.drop_index("spellings_word", "spellings")
