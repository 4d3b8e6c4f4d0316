"""Cases: their answers, how they stand, and the archive that copies them; texts that change are embedded anew."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# The one place that says how a case stands: what it was used for, and how well that went, over all that was merged into
# it. Derived and not copied, so that taking a merge back gives every case its own counts again. A case's own rate is
# that of its last 100 outcomes once there are 10 of them, else what was given with it (E31).
STANDINGS = """
    CREATE FUNCTION case_standings(space uuid, wanted uuid[])
        RETURNS TABLE (case_id uuid, uses int8, success_rate float8, judged int8, last_used_at timestamptz)
        LANGUAGE sql STABLE ROWS 10 AS $$
    WITH RECURSIVE family AS (
        SELECT w.id AS keeper, w.id AS member FROM unnest(wanted) AS w(id)
         UNION ALL
        SELECT f.keeper, n.id FROM family f, LATERAL (
            SELECT id FROM nodes WHERE space_id = space AND merged_into = f.member OFFSET 0) n
    ), own AS (
        SELECT f.keeper, coalesce(a.uses, 0) AS uses, a.last_used_at, o.judged,
               coalesce(o.rate, c.given_success_rate) AS rate,
               f.keeper = f.member AND c.success_rates = 'plain' AS plain
          FROM family f
          LEFT JOIN LATERAL (SELECT a.uses, a.last_used_at FROM activity a
                              WHERE a.space_id = space AND a.node_id = f.member OFFSET 0) a ON true
          LEFT JOIN LATERAL (SELECT c.given_success_rate, c.success_rates FROM cases c
                              WHERE c.space_id = space AND c.node_id = f.member OFFSET 0) c ON true
         CROSS JOIN LATERAL (
            SELECT count(*) AS judged,
                   CASE WHEN count(*) >= 10 THEN 100.0 * count(*) FILTER (WHERE l.success) / count(*) END AS rate
              FROM (SELECT o.success FROM outcomes o WHERE o.space_id = space AND o.node_id = f.member
                     ORDER BY o.created_at DESC LIMIT 100) l) o
    )
    SELECT own.keeper, sum(own.uses)::int8,
           -- One rate alone is that rate: weighing it could move it across a threshold by a last digit.
           (CASE WHEN min(own.rate) = max(own.rate) THEN min(own.rate)
                 WHEN bool_or(own.plain) THEN avg(own.rate)
                 ELSE coalesce(sum(own.rate * own.uses) / nullif(sum(own.uses) FILTER (WHERE own.rate IS NOT NULL), 0),
                               avg(own.rate)) END)::float8,
           sum(own.judged)::int8, max(own.last_used_at)
      FROM own GROUP BY own.keeper
    $$
    """

# E24, E25: the archive holds the case as it was at that moment, whoever archives it and however long the plan waited.
ARCHIVE = (
    """
    CREATE FUNCTION copy_case() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.query IS NULL THEN
            SELECT n.text, c.response_text, c.category_path, s.uses, s.success_rate
              INTO NEW.query, NEW.response_text, NEW.category_path, NEW.usage_count, NEW.success_rate
              FROM nodes n JOIN cases c ON c.space_id = n.space_id AND c.node_id = n.id
             CROSS JOIN LATERAL case_standings(n.space_id, ARRAY[n.id]) s
             WHERE n.space_id = NEW.space_id AND n.id = NEW.case_id;
            SELECT e.vector INTO NEW.query_vector FROM embeddings e
             WHERE e.space_id = NEW.space_id AND e.node_id = NEW.case_id
               AND e.model = (SELECT embedding_model FROM spaces WHERE id = NEW.space_id);
        END IF;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER case_archive_copies BEFORE INSERT ON case_archive FOR EACH ROW EXECUTE FUNCTION copy_case()",
)

# A memory's text is permanent; that of a case, a concept or a page may change, by a plan or by its undo. Then its words
# are forgotten and its vectors made anew. The job gets a new id: a worker that holds the old text saves nothing.
EMBED_ANEW = (
    """
    CREATE FUNCTION embed_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE forgotten record;
    BEGIN
        INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
        SELECT NEW.space_id, NEW.id, known.model, NEW.updated_at, NEW.updated_at FROM (
            SELECT model FROM embeddings WHERE space_id = NEW.space_id AND node_id = NEW.id
             UNION SELECT model FROM embedding_jobs WHERE space_id = NEW.space_id AND node_id = NEW.id) known
        ON CONFLICT (space_id, node_id, model) DO UPDATE
           SET id = gen_random_uuid(), status = 'pending', attempts = 0, error_message = NULL,
               due_at = excluded.due_at, claimed_at = NULL, completed_at = NULL;
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
    """,
    """
    CREATE TRIGGER nodes_are_embedded_anew AFTER UPDATE ON nodes FOR EACH ROW
        WHEN (NEW.kind <> 'memory' AND (OLD.text, OLD.name) IS DISTINCT FROM (NEW.text, NEW.name))
        EXECUTE FUNCTION embed_anew()
    """,
)

REASONS = "archived_reason IN ('low_performance', 'duplicate', 'inactive'%s)"


def upgrade() -> None:
    op.create_table(
        "cases",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="cases_space_id_fkey"), nullable=False),
        sa.Column("node_id", sa.Uuid, nullable=False),
        sa.Column("response_text", sa.Text, nullable=False),
        sa.Column("category_path", sa.Text),
        sa.Column("given_success_rate", sa.Double),
        sa.Column("success_rates", sa.Text, nullable=False, server_default=sa.text("'weighted'")),
        sa.Column("updated_by", sa.Text),
        sa.PrimaryKeyConstraint("space_id", "node_id", name="cases_pkey"),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name="cases_space_id_node_id_fkey"
        ),
        sa.CheckConstraint("given_success_rate BETWEEN 0 AND 100", name=op.f("cases_given_success_rate")),
        sa.CheckConstraint("success_rates IN ('weighted', 'plain')", name=op.f("cases_success_rates")),
    )
    op.create_index("cases_category", "cases", ["space_id", "category_path"])
    op.create_index("nodes_case_query", "nodes", ["space_id", "checksum"], postgresql_where=sa.text("kind = 'case'"))
    op.execute("ALTER TABLE cases ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
    op.execute("ALTER TABLE cases ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON cases "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )
    allow_reasons(", 'by_hand'")
    for statement in (STANDINGS, *ARCHIVE, *EMBED_ANEW):
        op.get_bind().exec_driver_sql(statement)


def allow_reasons(more: str) -> None:
    op.drop_constraint("case_archive_archived_reason", "case_archive")
    op.create_check_constraint(op.f("case_archive_archived_reason"), "case_archive", REASONS % more)


def downgrade() -> None:
    op.execute("DROP TRIGGER nodes_are_embedded_anew ON nodes")
    op.execute("DROP TRIGGER case_archive_copies ON case_archive")
    for function in ("embed_anew()", "copy_case()", "case_standings(uuid, uuid[])"):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DELETE FROM case_archive WHERE archived_reason = 'by_hand'")
    allow_reasons("")
    op.drop_index("nodes_case_query", table_name="nodes")
    op.drop_table("cases")
