"""A recall is noted by the server that has its space, in one message (X04).

On Citus the function ran where everybody connects, in a transaction that took messages of its own, and each of its
statements went to the worker by itself. Called outside a transaction, it is now handed to that worker whole. So it says
there what a transaction is told elsewhere: what it does may ask Citus in turn. On one server nobody reads that.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
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
                set_config('synchronous_commit', 'off', true){nested}, set_config('role', as_role, true);
        INSERT INTO recollect.recalls VALUES (space, entry, user_query, mode, memory_ids, hits, prompt_hash, debug_prompt,
                external_knowledge_used, confidence_score, response, token_usage, latency_ms, at)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            INSERT INTO recollect.activity AS a (space_id, node_id, uses, recalled, last_used_at)
            SELECT r.space_id, used.id, 1, 1, r.created_at
              FROM recollect.recalls r, LATERAL (SELECT DISTINCT unnest(r.memory_ids) AS id) AS used
             WHERE r.space_id = space AND r.id = entry ORDER BY used.id
            ON CONFLICT ON CONSTRAINT activity_pkey DO UPDATE
               SET uses = a.uses + 1, recalled = a.recalled + 1,
                   last_used_at = greatest(a.last_used_at, excluded.last_used_at), decay_score = 1.0;
        END IF;
    END $$
"""
NESTED = ", set_config('citus.allow_nested_distributed_execution', 'on', true)"
# Only where spaces are spread over servers; store/distribute.py says the same where that is done later.
HAND_ON = """
    DO $$ BEGIN
        IF to_regclass('pg_dist_partition') IS NOT NULL THEN
            IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'recollect.nodes'::regclass) THEN
                PERFORM create_distributed_function(
                    'recollect.note_recall'::regproc::regprocedure, {space}, colocate_with => {nodes});
            END IF;
        END IF;
    END $$
"""


def upgrade() -> None:
    bind = op.get_bind()
    bind.exec_driver_sql(NOTE_RECALL.format(nested=NESTED))
    bind.exec_driver_sql(HAND_ON.format(space="'space'", nodes="'recollect.nodes'"))


def downgrade() -> None:
    bind = op.get_bind()
    bind.exec_driver_sql(NOTE_RECALL.format(nested=""))
    bind.exec_driver_sql(HAND_ON.format(space="NULL", nodes="'default'"))
