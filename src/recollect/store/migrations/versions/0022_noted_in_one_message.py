"""A recall is noted in one message: who notes it enters the space, writes and ends in one function (D53).

Beginning a transaction and ending it are messages of their own, and every recall waited for both. The function is told
the space and the role, and works as that role, so that row-level security stands behind it as behind all else. Noting
the same entry twice is noting it once: who does not hear that it was noted may say it again.
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

# Counting goes in the order of the ids: two recalls of the same memories then wait for each other and cannot deadlock.
NOTE_RECALL = """
    CREATE FUNCTION note_recall(
        space uuid, as_role text, entry uuid, user_query text, mode text, memory_ids uuid[], hits jsonb, prompt_hash text,
        debug_prompt text, external_knowledge_used boolean, confidence_score float8, response text, token_usage jsonb,
        latency_ms float8, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
    #variable_conflict use_variable
    BEGIN
        PERFORM set_config('recollect.space', space::text, true), set_config('recollect.counting', 'on', true),
                set_config('synchronous_commit', 'off', true), set_config('role', as_role, true);
        INSERT INTO recollect.recalls VALUES (space, entry, user_query, mode, memory_ids, hits, prompt_hash, debug_prompt,
                external_knowledge_used, confidence_score, response, token_usage, latency_ms, at)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            INSERT INTO recollect.activity AS a (space_id, node_id, uses, recalled, last_used_at)
            SELECT space, used.id, 1, 1, at FROM (SELECT DISTINCT unnest(memory_ids) AS id) AS used ORDER BY used.id
            ON CONFLICT ON CONSTRAINT activity_pkey DO UPDATE
               SET uses = a.uses + 1, recalled = a.recalled + 1,
                   last_used_at = greatest(a.last_used_at, excluded.last_used_at), decay_score = 1.0;
        END IF;
    END $$
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(NOTE_RECALL)


def downgrade() -> None:
    op.execute("DROP FUNCTION note_recall")
