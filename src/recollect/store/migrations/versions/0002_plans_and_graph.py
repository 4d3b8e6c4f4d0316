"""Plans that wait, are declined in part and undone in part; edges that say when they changed; topics in one row each."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Which transaction last wrote an edge: a reader that keeps the graph in memory asks for what changed since its snapshot.
EDGES_CHANGE = (
    """
    CREATE FUNCTION note_edge_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.changed_in := pg_current_xact_id()::text::bigint;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER edges_note_their_change BEFORE INSERT OR UPDATE ON edges FOR EACH ROW EXECUTE FUNCTION note_edge_change()",
)

# A27: the age of a graph is that of the first edge ever added, also after that one was pruned.
FIRST_EDGE = (
    """
    CREATE FUNCTION note_first_edge() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    BEGIN
        UPDATE spaces s SET first_edge_at = added.first
          FROM (SELECT space_id, min(created_at) AS first FROM new_edges GROUP BY space_id) added
         WHERE s.id = added.space_id AND (s.first_edge_at IS NULL OR s.first_edge_at > added.first);
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER edges_note_the_first AFTER INSERT ON edges REFERENCING NEW TABLE AS new_edges
        FOR EACH STATEMENT EXECUTE FUNCTION note_first_edge()
    """,
)

# As in 0001, but a transaction that only counts (walked edges, say) leaves what a recall finds as it was.
NOTE_CHANGE = """
    CREATE OR REPLACE FUNCTION note_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    DECLARE changed uuid := nullif(current_setting('recollect.space', true), '')::uuid;
    BEGIN
        %s
        IF changed IS NULL THEN  -- the owner, outside any space: whichever it was
            INSERT INTO space_changes (space_id) SELECT id FROM spaces ON CONFLICT DO NOTHING;
        ELSIF current_setting('recollect.changed', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
            PERFORM set_config('recollect.changed', pg_current_xact_id()::text, true);
            INSERT INTO space_changes (space_id) VALUES (changed) ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$
    """
UNLESS_COUNTING = "IF current_setting('recollect.counting', true) = 'on' THEN RETURN NULL; END IF;"


def upgrade() -> None:
    _decisions_know_their_fate()
    _topics_hold_their_members()
    op.add_column("plans", sa.Column("findings", JSONB, nullable=False, server_default=sa.text("'[]'::jsonb")))
    op.add_column("plans", sa.Column("counts", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")))
    op.add_column("never_merge", sa.Column("state", sa.Text))
    op.add_column("spaces", sa.Column("first_edge_at", sa.DateTime(timezone=True)))
    op.add_column("schedules", sa.Column("time_zone", sa.Text, nullable=False, server_default=sa.text("'UTC'")))
    op.add_column("schedules", sa.Column("jitter_seconds", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("schedules", sa.Column("last_outcome", sa.Text))
    op.add_column("edges", sa.Column("changed_in", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_index("edges_changed_in", "edges", ["space_id", "changed_in"])
    op.create_index("runs_plan", "runs", ["space_id", "plan_id"])
    op.create_index("nodes_inactive", "nodes", ["space_id", "id"], postgresql_where=sa.text("status <> 'active'"))
    for statement in (*EDGES_CHANGE, *FIRST_EDGE, NOTE_CHANGE % UNLESS_COUNTING):
        op.get_bind().exec_driver_sql(statement)
    op.execute("UPDATE spaces s SET first_edge_at = (SELECT min(created_at) FROM edges e WHERE e.space_id = s.id)")


def _decisions_know_their_fate() -> None:
    """When a decision was applied belongs to the decision; its changes are written once and never touched again."""
    op.add_column("decisions", sa.Column("stage", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("decisions", sa.Column("needs", sa.ARRAY(sa.Integer), nullable=False, server_default=sa.text("'{}'")))
    op.add_column("decisions", sa.Column("applied_at", sa.DateTime(timezone=True)))
    op.add_column("decisions", sa.Column("undoes", sa.Integer))
    op.add_column("decisions", sa.Column("note", sa.Text))
    op.execute(
        "UPDATE decisions d SET applied_at = c.applied_at FROM changes c WHERE c.space_id = d.space_id"
        " AND c.plan_id = d.plan_id AND c.decision = d.number"
    )
    op.execute("UPDATE decisions SET premises = '[]'")
    op.execute("ALTER TABLE decisions SET (fillfactor = 60)")
    op.alter_column("decisions", "premises", server_default=sa.text("'[]'::jsonb"))
    op.drop_index("changes_row", table_name="changes")
    op.drop_column("changes", "applied_at")
    op.create_index("changes_row", "changes", ["space_id", "row_id"])
    for column in ("before", "after"):
        op.alter_column("changes", column, nullable=True, server_default=None)


def _topics_hold_their_members() -> None:
    op.add_column("topics", sa.Column("member_ids", sa.ARRAY(sa.Uuid), nullable=False, server_default=sa.text("'{}'")))
    op.drop_column("topics", "members")
    op.drop_table("topic_members")


def downgrade() -> None:
    _topics_in_two_tables()
    _changes_know_their_time()
    for trigger in ("edges_note_their_change", "edges_note_the_first"):
        op.execute(f"DROP TRIGGER {trigger} ON edges")
    for function in ("note_edge_change()", "note_first_edge()"):
        op.execute(f"DROP FUNCTION {function}")
    op.get_bind().exec_driver_sql(NOTE_CHANGE % "")
    op.drop_index("edges_changed_in", table_name="edges")
    op.drop_index("runs_plan", table_name="runs")
    op.drop_index("nodes_inactive", table_name="nodes")
    gone = {
        "edges": ("changed_in",),
        "schedules": ("last_outcome", "jitter_seconds", "time_zone"),
        "spaces": ("first_edge_at",),
        "never_merge": ("state",),
        "plans": ("counts", "findings"),
    }
    for table, columns in gone.items():
        for column in columns:
            op.drop_column(table, column)


def _topics_in_two_tables() -> None:
    op.create_table(
        "topic_members",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="topic_members_space_id_fkey"), nullable=False),
        sa.Column("topic_id", sa.Uuid, nullable=False),
        sa.Column("node_id", sa.Uuid, nullable=False),
        sa.PrimaryKeyConstraint("space_id", "topic_id", "node_id", name="topic_members_pkey"),
        sa.ForeignKeyConstraint(
            ["space_id", "topic_id"],
            ["topics.space_id", "topics.id"],
            ondelete="CASCADE",
            name="topic_members_space_id_topic_id_fkey",
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name="topic_members_space_id_node_id_fkey"
        ),
    )
    op.create_index("topic_members_node", "topic_members", ["space_id", "node_id"])
    op.execute("INSERT INTO topic_members SELECT space_id, id, unnest(member_ids) FROM topics")
    op.execute("ALTER TABLE topic_members ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON topic_members "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )
    op.add_column("topics", sa.Column("members", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.execute("UPDATE topics SET members = cardinality(member_ids)")
    op.alter_column("topics", "members", server_default=None)
    op.drop_column("topics", "member_ids")


def _changes_know_their_time() -> None:
    op.drop_index("changes_row", table_name="changes")
    op.add_column("changes", sa.Column("applied_at", sa.DateTime(timezone=True)))
    op.execute(
        "UPDATE changes c SET applied_at = d.applied_at, before = coalesce(before, '{}'), after = coalesce(after, '{}')"
        " FROM decisions d WHERE c.space_id = d.space_id AND c.plan_id = d.plan_id AND c.decision = d.number"
    )
    for column in ("before", "after"):
        op.alter_column("changes", column, nullable=False, server_default=sa.text("'{}'::jsonb"))
    op.create_index("changes_row", "changes", ["space_id", "row_id", "applied_at"])
    op.execute("UPDATE decisions SET premises = '{}'")
    op.execute("ALTER TABLE decisions RESET (fillfactor)")
    op.alter_column("decisions", "premises", server_default=sa.text("'{}'::jsonb"))
    for column in ("note", "undoes", "applied_at", "needs", "stage"):
        op.drop_column("decisions", column)
