"""Spaces may live on many servers (X04): each policy, trigger and function touches only rows of its own space.

On Citus a trigger runs where the rows of its space are, and sees a table by its full name only; what it looks for must
be said as values, for rows of a statement (transition tables) cannot be joined to a distributed table. Functions are
told their space, and check it against the setting. Nothing hangs on `spaces`, which every server has a copy of: when
the first edge was made is kept beside the losses of the graph, and who changes a space says so in the same transaction.
On one server all of this is the same, and as fast.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

SETTING = "nullif(current_setting('recollect.space', true), '')::uuid"
WATCHED = ("nodes", "embeddings", "lexicon", "edges")

# The condition by which a search keeps to its space. On one server it must not lead the planner to walk a key over the
# whole space instead of the GIN index, so it is no condition for an index; on Citus it says where the space is.
ONLY_IN = f"""
    CREATE FUNCTION only_in(space uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
    BEGIN
        IF space IS DISTINCT FROM {SETTING} THEN
            RAISE EXCEPTION 'this is no search in the space that was entered' USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN CASE WHEN current_setting('citus.shard_count', true) IS NULL THEN '(space_id = $1) IS TRUE'
                    ELSE 'space_id = $1' END;
    END $$
"""
# {vectors} is the schema of pgvector.
SEARCHES = {
    "lexical_candidates": (
        "uuid, int4[], {vectors}.sparsevec, text[], int4",
        """
    CREATE FUNCTION lexical_candidates(space uuid, wanted int4[], question {vectors}.sparsevec, kinds text[], most int4)
        RETURNS TABLE (node_id uuid, score float8)
        LANGUAGE plpgsql STABLE SECURITY DEFINER
        SET search_path = recollect, {vectors}, pg_temp SET enable_seqscan = off AS $$
    BEGIN
        RETURN QUERY EXECUTE 'SELECT node_id, -(bm25 <#> $3) FROM lexicon
            WHERE terms && $2 AND recallable AND kind = ANY($4) AND ' || only_in(space) ||
            ' ORDER BY bm25 <#> $3 LIMIT $5' USING space, wanted, question, kinds, most;
    END $$
    """,
    ),
    "nodes_holding": (
        "uuid, jsonb",
        """
    CREATE FUNCTION nodes_holding(space uuid, wanted jsonb) RETURNS TABLE (
            id uuid, kind text, subtype text, status text, exclude boolean, thread text, created_at timestamptz)
        LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    BEGIN
        RETURN QUERY EXECUTE 'SELECT id, kind, subtype, status, exclude, thread, created_at FROM nodes
            WHERE metadata @> $2 AND ' || only_in(space) USING space, wanted;
    END $$
    """,
    ),
    "spelled_like": (
        "uuid, int4[], int4, int4, text[]",
        """
    CREATE FUNCTION spelled_like(space uuid, wanted int4[], shortest int4, longest int4, firsts text[])
        RETURNS TABLE (term int4, word text, documents int8)
        LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp SET enable_seqscan = off AS $$
    BEGIN
        RETURN QUERY EXECUTE 'SELECT s.term, s.word, t.documents FROM spellings s, LATERAL (
                SELECT documents FROM term_stats
                 WHERE space_id = $1 AND term = s.term AND documents > 0 OFFSET 0) t
             WHERE s.keys && $2 AND length(s.word) BETWEEN $3 AND $4 AND left(s.word, 1) = ANY($5) AND '
            || only_in(space) USING space, wanted, shortest, longest, firsts;
    END $$
    """,
    ),
}
GONE = (
    "lexical_candidates(int4[], {vectors}.sparsevec, text[], int4)",
    "nodes_with_metadata(jsonb)",
    "nodes_holding(jsonb)",
    "spelled_like(int4[], int4, int4, text[])",
)

KEEP_RECALLABLE = """
    CREATE OR REPLACE FUNCTION keep_recallable() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE turned record;
    BEGIN
        FOR turned IN SELECT n.space_id, n.recallable, array_agg(n.id) AS ids
                        FROM new_nodes n JOIN old_nodes o ON o.space_id = n.space_id AND o.id = n.id
                       WHERE n.recallable <> o.recallable GROUP BY 1, 2 LOOP
            UPDATE recollect.embeddings SET recallable = turned.recallable
             WHERE space_id = turned.space_id AND node_id = ANY(turned.ids);
            UPDATE recollect.lexicon SET recallable = turned.recallable
             WHERE space_id = turned.space_id AND node_id = ANY(turned.ids);
        END LOOP;
        RETURN NULL;
    END $$
"""
# The first statement of a transaction notes the space it entered; what the owner writes outside any, row by row.
NOTE_CHANGE = (
    """
    CREATE OR REPLACE FUNCTION note_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    DECLARE changed uuid := nullif(current_setting('recollect.space', true), '')::uuid;
    BEGIN
        IF changed IS NULL OR current_setting('recollect.counting', true) = 'on' THEN RETURN NULL; END IF;
        IF current_setting('recollect.changed', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
            PERFORM set_config('recollect.changed', pg_current_xact_id()::text, true);
            INSERT INTO space_changes (space_id) VALUES (changed) ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION note_change_of_row() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    BEGIN
        INSERT INTO space_changes (space_id) VALUES (coalesce(NEW.space_id, OLD.space_id)) ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
    """,
    *(
        f"""CREATE TRIGGER {table}_change_their_space AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW
            WHEN ({SETTING} IS NULL) EXECUTE FUNCTION note_change_of_row()"""
        for table in WATCHED
    ),
)
# Looked at before it is written: who finds the first edge known locks nothing.
NOTE_FIRST_EDGE = """
    CREATE OR REPLACE FUNCTION note_first_edge() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    DECLARE added record;
    BEGIN
        FOR added IN SELECT space_id, min(created_at) AS first FROM new_edges GROUP BY space_id LOOP
            PERFORM FROM graph_losses g WHERE g.space_id = added.space_id AND g.first_edge_at <= added.first;
            IF NOT FOUND THEN
                INSERT INTO graph_losses AS g (space_id, first_edge_at) VALUES (added.space_id, added.first)
                    ON CONFLICT (space_id) DO UPDATE SET first_edge_at = least(g.first_edge_at, excluded.first_edge_at);
            END IF;
        END LOOP;
        RETURN NULL;
    END $$
"""
DOUBT = """
    CREATE OR REPLACE FUNCTION doubt_edges() RETURNS trigger LANGUAGE plpgsql
        SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
    DECLARE
        linked record;
        gone uuid[];
        hanging uuid;
    BEGIN
        FOR linked IN SELECT space_id, array_agg(source) || array_agg(target) AS ends FROM written
                     WHERE status = 'active' GROUP BY space_id LOOP
            SELECT array_agg(n.id) INTO gone FROM recollect.nodes n
             WHERE n.space_id = linked.space_id AND n.id = ANY(linked.ends) AND n.status = 'merged';
            CONTINUE WHEN gone IS NULL;
            FOR hanging IN SELECT id FROM written WHERE space_id = linked.space_id AND status = 'active'
                              AND (source = ANY(gone) OR target = ANY(gone)) LOOP
                INSERT INTO recollect.edges_in_doubt (space_id, edge_id) VALUES (linked.space_id, hanging)
                    ON CONFLICT DO NOTHING;
            END LOOP;
        END LOOP;
        RETURN NULL;
    END $$
"""
EMBED_ANEW = """
    CREATE OR REPLACE FUNCTION embed_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE forgotten record;
    BEGIN
        INSERT INTO recollect.embedding_jobs (space_id, node_id, model, created_at, due_at)
        SELECT NEW.space_id, NEW.id, known.model, NEW.updated_at, NEW.updated_at FROM (
            SELECT model FROM recollect.embeddings WHERE space_id = NEW.space_id AND node_id = NEW.id
             UNION SELECT model FROM recollect.embedding_jobs WHERE space_id = NEW.space_id AND node_id = NEW.id) known
        ON CONFLICT (space_id, node_id, model) DO UPDATE
           SET id = excluded.id, status = 'pending', attempts = 0, error_message = NULL,
               due_at = excluded.due_at, claimed_at = NULL, completed_at = NULL;
        PERFORM pg_advisory_xact_lock(hashtextextended(NEW.space_id::text, 11));
        DELETE FROM recollect.lexicon WHERE space_id = NEW.space_id AND node_id = NEW.id
            RETURNING terms, length INTO forgotten;
        IF FOUND THEN
            PERFORM FROM recollect.term_stats WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms)
              ORDER BY term FOR UPDATE;
            UPDATE recollect.term_stats SET documents = documents - 1
             WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms);
            UPDATE recollect.lexicon_totals
               SET documents = documents - 1, total_length = total_length - forgotten.length
             WHERE space_id = NEW.space_id;
        END IF;
        RETURN NULL;
    END $$
"""
COPY_CASE = """
    CREATE OR REPLACE FUNCTION copy_case() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE used text;
    BEGIN
        IF NEW.query IS NULL THEN
            SELECT n.text, c.response_text, c.category_path INTO NEW.query, NEW.response_text, NEW.category_path
              FROM recollect.nodes n JOIN recollect.cases c ON c.space_id = n.space_id AND c.node_id = n.id
             WHERE n.space_id = NEW.space_id AND n.id = NEW.case_id;
            SELECT s.uses, s.success_rate INTO NEW.usage_count, NEW.success_rate
              FROM recollect.case_standings(NEW.space_id, ARRAY[NEW.case_id]) s;
            SELECT s.embedding_model INTO used FROM recollect.spaces s WHERE s.id = NEW.space_id;
            SELECT e.vector INTO NEW.query_vector FROM recollect.embeddings e
             WHERE e.space_id = NEW.space_id AND e.node_id = NEW.case_id AND e.model = used AND e.passage = 0;
        END IF;
        RETURN NEW;
    END $$
"""
# What must hold of the graph at the end of a transaction, looked at now, where the rows are. There constraints have names
# of their own, so it is all of them.
LOOK_NOW = """
    CREATE FUNCTION look_now() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('citus.shard_count', true) IS NULL THEN
            SET CONSTRAINTS recollect.edges_end_at_living_nodes, recollect.merged_nodes_have_no_edges IMMEDIATE;
            SET CONSTRAINTS recollect.edges_end_at_living_nodes, recollect.merged_nodes_have_no_edges DEFERRED;
        ELSE
            SET CONSTRAINTS ALL IMMEDIATE;
            SET CONSTRAINTS ALL DEFERRED;
        END IF;
    END $$
"""
# Citus writes a row only by what is the same whenever it is asked. A moment with its zone is; PostgreSQL cannot know that
# there always is one. And what was counted in two documents, added up.
THE_SAME_ALWAYS = (
    """
    CREATE FUNCTION moment_of(said text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT AS $$
    BEGIN
        RETURN said;
    END $$
    """,
    """
    CREATE FUNCTION ids_of(said jsonb) RETURNS uuid[] LANGUAGE sql IMMUTABLE STRICT AS $$
        SELECT ARRAY(SELECT jsonb_array_elements_text(said)::uuid) $$
    """,
    """
    CREATE FUNCTION energy_added(one jsonb, other jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
        SELECT jsonb_object_agg(e.entity, coalesce((one->>e.entity)::float8, 0) + coalesce((other->>e.entity)::float8, 0))
          FROM (SELECT jsonb_object_keys(one || other) AS entity) e $$
    """,
)
FUNCTIONS = (*THE_SAME_ALWAYS, LOOK_NOW, KEEP_RECALLABLE, *NOTE_CHANGE, NOTE_FIRST_EDGE, DOUBT, EMBED_ANEW, COPY_CASE)
TABLES_OF_STANDINGS = ("nodes", "activity", "cases", "outcomes")
VECTORS = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)


def upgrade() -> None:
    vectors = op.get_bind().exec_driver_sql(VECTORS).scalar_one()
    replace_policies(f"space_id = {SETTING}")
    for function in GONE:
        run(f"DROP FUNCTION {function.format(vectors=vectors)}")
    run(ONLY_IN)
    for name, (arguments, search) in SEARCHES.items():
        run(search.format(vectors=vectors))
        run(f"REVOKE EXECUTE ON FUNCTION {name}({arguments.format(vectors=vectors)}) FROM PUBLIC")
    move_first_edge()
    for statement in (*FUNCTIONS, standings(by_full_name=True), "DROP TRIGGER spaces_change ON spaces"):
        run(statement)


def move_first_edge() -> None:
    op.add_column("graph_losses", sa.Column("first_edge_at", sa.DateTime(timezone=True)))
    op.execute(
        """INSERT INTO graph_losses AS g (space_id, first_edge_at)
           SELECT id, first_edge_at FROM spaces WHERE first_edge_at IS NOT NULL
           ON CONFLICT (space_id) DO UPDATE SET first_edge_at = excluded.first_edge_at"""
    )
    op.drop_column("spaces", "first_edge_at")


def downgrade() -> None:
    """What only says the same in other words stays."""
    vectors = op.get_bind().exec_driver_sql(VECTORS).scalar_one()
    for name, (arguments, _) in SEARCHES.items():
        run(f"DROP FUNCTION {name}({arguments.format(vectors=vectors)})")
    run("DROP FUNCTION only_in(uuid)")
    run("DROP FUNCTION look_now()")
    run("DROP FUNCTION moment_of(text)")
    run("DROP FUNCTION ids_of(jsonb)")
    run("DROP FUNCTION energy_added(jsonb, jsonb)")
    first, second, third = (before(revision) for revision in ("0001", "0002", "0003"))
    for statement in (*first.METADATA_SEARCH, third.METADATA_SEARCH, before("0012").SPELLED_LIKE):
        run(statement)
    run(third.LEXICAL_SEARCH.format(schema=vectors, space=third.SPACE))
    for function in (GONE[0], *GONE[2:]):
        run(f"REVOKE EXECUTE ON FUNCTION {function.format(vectors=vectors)} FROM PUBLIC")
    for table in WATCHED:
        run(f"DROP TRIGGER {table}_change_their_space ON {table}")
    run("DROP FUNCTION note_change_of_row()")
    op.add_column("spaces", sa.Column("first_edge_at", sa.DateTime(timezone=True)))
    op.execute("UPDATE spaces s SET first_edge_at = g.first_edge_at FROM graph_losses g WHERE g.space_id = s.id")
    op.drop_column("graph_losses", "first_edge_at")
    run(second.FIRST_EDGE[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    run(second.NOTE_CHANGE % second.UNLESS_COUNTING)
    run("CREATE TRIGGER spaces_change AFTER UPDATE ON spaces FOR EACH STATEMENT EXECUTE FUNCTION note_change()")
    run(standings(by_full_name=False))
    replace_policies(f"space_id = (SELECT {SETTING})")


def replace_policies(condition: str) -> None:
    guarded = op.get_bind().exec_driver_sql("SELECT tablename FROM pg_policies WHERE schemaname = current_schema()")
    for table in guarded.scalars().all():
        run(f"ALTER POLICY space ON {table} USING ({condition})")


def standings(*, by_full_name: bool) -> str:
    """How cases stand, word for word as before; with its tables by their full names, in a language that both know."""
    said: str = before("0004").STANDINGS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    if not by_full_name:
        return said
    for table in TABLES_OF_STANDINGS:
        said = said.replace(f"FROM {table} ", f"FROM recollect.{table} ")
    head, body, end = said.split("$$")
    begun = f"{head.replace('LANGUAGE sql', 'LANGUAGE plpgsql')}$$ #variable_conflict use_column\nBEGIN RETURN QUERY"
    return f"{begun} {body}; END $${end}"


def before(revision: str) -> Any:
    """An earlier migration, which says how things were."""
    return context.script.get_revision(revision).module


def run(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement)
