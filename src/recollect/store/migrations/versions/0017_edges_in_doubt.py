"""That no living edge ends at a merged node is looked at by the statement, and not edge by edge (P15).

A statement that writes edges asks once which of them end at a merged node; there are none, but for moments within a
transaction. Only those in doubt are looked at again at its end. Bringing back 10,000 edges costs a fifth less.

And the order in which decisions were written is a number: a moment in a table is of the clock that the caller gave.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# By key, edge by edge: a statement may write one edge of a space with a million merged nodes.
DOUBT = """
    CREATE FUNCTION doubt_edges() RETURNS trigger LANGUAGE plpgsql
        SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
    BEGIN
        INSERT INTO recollect.edges_in_doubt (space_id, edge_id)
        SELECT e.space_id, e.id FROM written e
         WHERE e.status = 'active'
           AND (EXISTS (SELECT FROM recollect.nodes n
                         WHERE n.space_id = e.space_id AND n.id = e.source AND n.status = 'merged')
             OR EXISTS (SELECT FROM recollect.nodes n
                         WHERE n.space_id = e.space_id AND n.id = e.target AND n.status = 'merged'))
            ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
"""
SETTLE = """
    CREATE FUNCTION settle_edge_in_doubt() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE gone uuid;
    BEGIN
        DELETE FROM recollect.edges_in_doubt
         WHERE space_id = NEW.space_id AND edge_id = NEW.edge_id AND transaction = NEW.transaction;
        SELECT n.id INTO gone FROM recollect.edges e
          JOIN recollect.nodes n ON n.space_id = e.space_id AND n.id IN (e.source, e.target)
         WHERE e.space_id = NEW.space_id AND e.id = NEW.edge_id AND e.status = 'active' AND n.status = 'merged' LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'the edge % would hang on %, which was merged away', NEW.edge_id, gone
                USING ERRCODE = 'check_violation', CONSTRAINT = 'edges_end_at_living_nodes', TABLE = 'edges';
        END IF;
        RETURN NULL;
    END $$
"""
TRIGGERS = (
    *(
        f"""CREATE TRIGGER {done}_edges_are_doubted AFTER {event} ON edges REFERENCING NEW TABLE AS written
            FOR EACH STATEMENT EXECUTE FUNCTION doubt_edges()"""
        for event, done in (("INSERT", "inserted"), ("UPDATE", "updated"))
    ),
    """CREATE CONSTRAINT TRIGGER edges_end_at_living_nodes AFTER INSERT ON edges_in_doubt
           DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION settle_edge_in_doubt()""",
)
ROW_BY_ROW = (
    """CREATE CONSTRAINT TRIGGER edges_end_at_living_nodes AFTER INSERT ON edges
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'active') EXECUTE FUNCTION refuse_merged_ends()""",
    """CREATE CONSTRAINT TRIGGER moved_edges_end_at_living_nodes AFTER UPDATE ON edges
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (NEW.status = 'active' AND (OLD.status, OLD.source, OLD.target) IS DISTINCT FROM
              (NEW.status, NEW.source, NEW.target)) EXECUTE FUNCTION refuse_merged_ends()""",
)


def upgrade() -> None:
    op.execute("DROP TRIGGER edges_end_at_living_nodes ON edges")
    op.execute("DROP TRIGGER moved_edges_end_at_living_nodes ON edges")
    op.create_table(
        "edges_in_doubt",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="edges_in_doubt_space_id_fkey"), nullable=False),
        sa.Column("edge_id", sa.Uuid, nullable=False),
        sa.Column(
            "transaction",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text("(((pg_current_xact_id())::text)::bigint)"),
        ),
        sa.PrimaryKeyConstraint("space_id", "edge_id", "transaction", name="edges_in_doubt_pkey"),
    )
    op.execute("ALTER TABLE edges_in_doubt ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
    op.execute("ALTER TABLE edges_in_doubt ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON edges_in_doubt "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )
    op.alter_column("decisions", "written_at", new_column_name="written")
    op.execute(
        "ALTER TABLE decisions ALTER COLUMN written TYPE bigint USING (1e6 * date_part('epoch', written))::bigint"
    )
    for statement in (DOUBT, SETTLE, *TRIGGERS):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    for trigger in ("inserted_edges_are_doubted", "updated_edges_are_doubted"):
        op.execute(f"DROP TRIGGER {trigger} ON edges")
    op.drop_table("edges_in_doubt")
    op.execute("ALTER TABLE decisions ALTER COLUMN written TYPE timestamptz USING to_timestamp(written / 1e6)")
    op.alter_column("decisions", "written", new_column_name="written_at")
    op.execute("DROP FUNCTION doubt_edges()")
    op.execute("DROP FUNCTION settle_edge_in_doubt()")
    for statement in ROW_BY_ROW:
        op.get_bind().exec_driver_sql(statement)
