"""The uses of a recall are counted where its entry is (X04).

They were counted from what the function was given. Citus carried that out at the coordinator, handed what it found to
every worker, and the commit took two phases. Read from the entry itself, it is one statement for the worker that has
the space; on one server it costs the same.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# Counting goes in the order of the ids: two recalls of the same memories then wait for each other and cannot deadlock.
NOTE_RECALL = """
    CREATE OR REPLACE FUNCTION note_recall(
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
            {uses} ORDER BY used.id
            ON CONFLICT ON CONSTRAINT activity_pkey DO UPDATE
               SET uses = a.uses + 1, recalled = a.recalled + 1,
                   last_used_at = greatest(a.last_used_at, excluded.last_used_at), decay_score = 1.0;
        END IF;
    END $$
"""
READ = """SELECT r.space_id, used.id, 1, 1, r.created_at
              FROM recollect.recalls r, LATERAL (SELECT DISTINCT unnest(r.memory_ids) AS id) AS used
             WHERE r.space_id = space AND r.id = entry"""
GIVEN = "SELECT space, used.id, 1, 1, at FROM (SELECT DISTINCT unnest(memory_ids) AS id) AS used"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(NOTE_RECALL.format(uses=READ))


def downgrade() -> None:
    op.get_bind().exec_driver_sql(NOTE_RECALL.format(uses=GIVEN))
