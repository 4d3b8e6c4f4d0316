"""What a plan promises of the graph holds at the moment of writing, and the journal knows in which order it was written.

No living edge ends at a node that was merged away (P15): deferred, for a merge moves the edges and retires the node in
whatever order; and only for rows that could break it, so that pruning and counting use cost nothing. Whoever takes
something out of a graph holds it alone and is counted (P17). A decision says when it was written by the clock of the
database, which orders the writers of a row whatever clocks they had, and which plan's decision it takes back: an undo
may take back several plans (P18).
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

ENDS_LIVE = (
    """
    CREATE FUNCTION refuse_merged_ends() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE gone uuid;
    BEGIN
        SELECT n.id INTO gone FROM recollect.nodes n
         WHERE n.space_id = NEW.space_id AND n.id IN (NEW.source, NEW.target) AND n.status = 'merged' LIMIT 1;
        IF gone IS NULL THEN RETURN NULL; END IF;
        -- It may have been retired or moved on later in the same transaction.
        PERFORM FROM recollect.edges e WHERE e.space_id = NEW.space_id AND e.id = NEW.id AND e.status = 'active'
            AND gone IN (e.source, e.target);
        IF FOUND THEN
            RAISE EXCEPTION 'the edge % would hang on %, which was merged away', NEW.id, gone
                USING ERRCODE = 'check_violation', CONSTRAINT = 'edges_end_at_living_nodes', TABLE = 'edges';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION refuse_edges_of_merged() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE hanging uuid;
    BEGIN
        SELECT id INTO hanging FROM (
            SELECT e.id FROM recollect.edges e
             WHERE e.space_id = NEW.space_id AND e.status = 'active' AND e.source = NEW.id
            UNION ALL
            SELECT e.id FROM recollect.edges e
             WHERE e.space_id = NEW.space_id AND e.status = 'active' AND e.target = NEW.id) e LIMIT 1;
        IF hanging IS NULL THEN RETURN NULL; END IF;
        PERFORM FROM recollect.nodes n WHERE n.space_id = NEW.space_id AND n.id = NEW.id AND n.status = 'merged';
        IF FOUND THEN
            RAISE EXCEPTION 'the edge % would hang on %, which was merged away', hanging, NEW.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'merged_nodes_have_no_edges', TABLE = 'nodes';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE CONSTRAINT TRIGGER edges_end_at_living_nodes AFTER INSERT ON edges
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'active') EXECUTE FUNCTION refuse_merged_ends()
    """,
    """
    CREATE CONSTRAINT TRIGGER moved_edges_end_at_living_nodes AFTER UPDATE ON edges
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (NEW.status = 'active' AND (OLD.status, OLD.source, OLD.target) IS DISTINCT FROM
              (NEW.status, NEW.source, NEW.target)) EXECUTE FUNCTION refuse_merged_ends()
    """,
    """
    CREATE CONSTRAINT TRIGGER merged_nodes_have_no_edges AFTER INSERT OR UPDATE ON nodes
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'merged') EXECUTE FUNCTION refuse_edges_of_merged()
    """,
)
# Shared by those who add to a graph; alone for one who takes something out, who is counted. Two statements, so that the
# count is read after the lock is held.
HOLD_GRAPH = """
    CREATE FUNCTION hold_graph(of_space uuid, removing boolean) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE held bigint;
    BEGIN
        IF NOT removing THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('recollect graph ' || of_space, 0));
            RETURN NULL;
        END IF;
        PERFORM pg_advisory_xact_lock(hashtextextended('recollect graph ' || of_space, 0));
        INSERT INTO recollect.graph_losses AS g (space_id, losses) VALUES (of_space, 1)
            ON CONFLICT (space_id) DO UPDATE SET losses = g.losses + 1 RETURNING g.losses - 1 INTO held;
        RETURN held;
    END $$
"""


def upgrade() -> None:
    op.create_table(
        "graph_losses",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="graph_losses_space_id_fkey"), nullable=False),
        sa.Column("losses", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("space_id", name="graph_losses_pkey"),
        postgresql_with={"fillfactor": "50"},
    )
    op.execute("ALTER TABLE graph_losses ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
    op.execute("ALTER TABLE graph_losses ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON graph_losses "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )
    op.add_column("decisions", sa.Column("written_at", sa.DateTime(timezone=True)))
    op.add_column("decisions", sa.Column("undoes_plan", sa.Uuid))
    for statement in (*ENDS_LIVE, HOLD_GRAPH):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.execute("DROP FUNCTION hold_graph(uuid, boolean)")
    for trigger, table in (
        ("edges_end_at_living_nodes", "edges"),
        ("moved_edges_end_at_living_nodes", "edges"),
        ("merged_nodes_have_no_edges", "nodes"),
    ):
        op.execute(f"DROP TRIGGER {trigger} ON {table}")
    op.execute("DROP FUNCTION refuse_merged_ends()")
    op.execute("DROP FUNCTION refuse_edges_of_merged()")
    op.drop_column("decisions", "undoes_plan")
    op.drop_column("decisions", "written_at")
    op.drop_table("graph_losses")
