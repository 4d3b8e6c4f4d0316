"""The first schema: every table, the guards of permanent text, and row-level security."""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UNGUARDED = {"spaces", "api_keys", "schedules"}
TABLES = (
    "spaces",
    "api_keys",
    "lexicon_totals",
    "never_merge",
    "nodes",
    "plans",
    "recalls",
    "schedules",
    "term_stats",
    "topics",
    "activity",
    "aliases",
    "case_archive",
    "decisions",
    "edges",
    "embedding_jobs",
    "embeddings",
    "lexicon",
    "outcomes",
    "runs",
    "topic_members",
    "changes",
    "space_versions",
    "space_changes",
)

PERMANENT = (
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER nodes_text_is_permanent BEFORE UPDATE ON nodes FOR EACH ROW
        WHEN (OLD.kind = 'memory' AND (OLD.space_id, OLD.id, OLD.kind, OLD.text, OLD.checksum)
              IS DISTINCT FROM (NEW.space_id, NEW.id, NEW.kind, NEW.text, NEW.checksum))
        EXECUTE FUNCTION refuse_change('the text of a memory is permanent: archive it and add another')
    """,
    """
    CREATE TRIGGER nodes_are_kept BEFORE DELETE ON nodes FOR EACH ROW
        EXECUTE FUNCTION refuse_change('what is remembered is never deleted: archive it')
    """,
    """
    CREATE TRIGGER nodes_are_not_truncated BEFORE TRUNCATE ON nodes FOR EACH STATEMENT
        EXECUTE FUNCTION refuse_change('what is remembered is never deleted: archive it')
    """,
    """
    CREATE TRIGGER changes_are_kept BEFORE DELETE ON changes FOR EACH ROW
        EXECUTE FUNCTION refuse_change('the journal is never deleted')
    """,
    """
    CREATE TRIGGER changes_are_not_truncated BEFORE TRUNCATE ON changes FOR EACH STATEMENT
        EXECUTE FUNCTION refuse_change('the journal is never deleted')
    """,
)

# What is archived, merged or excluded leaves recall in the same transaction, whoever changes the node.
RECALLABLE = (
    """
    CREATE FUNCTION keep_recallable() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE embeddings e SET recallable = n.recallable
          FROM new_nodes n JOIN old_nodes o ON o.space_id = n.space_id AND o.id = n.id
         WHERE e.space_id = n.space_id AND e.node_id = n.id AND n.recallable <> o.recallable;
        UPDATE lexicon l SET recallable = n.recallable
          FROM new_nodes n JOIN old_nodes o ON o.space_id = n.space_id AND o.id = n.id
         WHERE l.space_id = n.space_id AND l.node_id = n.id AND n.recallable <> o.recallable;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER nodes_keep_recallable AFTER UPDATE ON nodes
        REFERENCING OLD TABLE AS old_nodes NEW TABLE AS new_nodes
        FOR EACH STATEMENT EXECUTE FUNCTION keep_recallable()
    """,
)

# Containment is not leakproof, so under row-level security it cannot use the GIN index; the owner asks, in one space.
METADATA_SEARCH = (
    """
    CREATE FUNCTION nodes_with_metadata(wanted jsonb) RETURNS SETOF uuid
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, pg_temp
        AS $$ SELECT id FROM nodes
               WHERE space_id = current_setting('recollect.space')::uuid AND metadata @> wanted $$
    """,
    "REVOKE EXECUTE ON FUNCTION nodes_with_metadata(jsonb) FROM PUBLIC",
)

# The same for the words of a question. The comparison as text keeps the planner from walking a key over the whole space:
# the words are numbered by space, so their index finds only rows of it. %s is the schema of pgvector.
LEXICAL_SEARCH = (
    """
    CREATE FUNCTION lexical_candidates(wanted int4[], question sparsevec, kinds text[], most int4)
        RETURNS TABLE (node_id uuid, score float8)
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = recollect, %s, pg_temp SET enable_seqscan = off
        AS $$ SELECT l.node_id, -(l.bm25 <#> question) FROM lexicon l
               WHERE l.terms && wanted AND l.space_id::text = current_setting('recollect.space') AND l.recallable AND l.kind = ANY(kinds)
               ORDER BY l.bm25 <#> question LIMIT most $$
    """,
    "REVOKE EXECUTE ON FUNCTION lexical_candidates(int4[], sparsevec, text[], int4) FROM PUBLIC",
)
# A space's version counts the transactions that changed what a recall could find. The first statement of a transaction
# notes the space; the deferred trigger counts it at commit, so the one hot row is the last lock that is taken.
VERSIONS = (
    """
    CREATE FUNCTION note_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    DECLARE changed uuid := nullif(current_setting('recollect.space', true), '')::uuid;
    BEGIN
        IF changed IS NULL THEN  -- the owner, outside any space: whichever it was
            INSERT INTO space_changes (space_id) SELECT id FROM spaces ON CONFLICT DO NOTHING;
        ELSIF current_setting('recollect.changed', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
            PERFORM set_config('recollect.changed', pg_current_xact_id()::text, true);
            INSERT INTO space_changes (space_id) VALUES (changed) ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION count_change() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = recollect, pg_temp AS $$
    BEGIN
        INSERT INTO space_versions AS v (space_id, version) VALUES (NEW.space_id, 1)
            ON CONFLICT (space_id) DO UPDATE SET version = v.version + 1;
        DELETE FROM space_changes WHERE space_id = NEW.space_id AND transaction = NEW.transaction;
        RETURN NULL;
    END $$
    """,
    """
    CREATE CONSTRAINT TRIGGER space_changes_are_counted AFTER INSERT ON space_changes
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_change()
    """,
    *(
        f"CREATE TRIGGER {table}_change_the_space AFTER INSERT OR UPDATE OR DELETE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION note_change()"
        for table in ("nodes", "embeddings", "lexicon", "edges")
    ),
    "CREATE TRIGGER spaces_change AFTER UPDATE ON spaces FOR EACH STATEMENT EXECUTE FUNCTION note_change()",
)

VECTOR_SCHEMA = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)


def upgrade() -> None:
    create_tables()
    vector_schema = op.get_bind().exec_driver_sql(VECTOR_SCHEMA).scalar_one()
    create_search, close_search = LEXICAL_SEARCH
    searching = (*METADATA_SEARCH, create_search % vector_schema, close_search)
    for statement in (*PERMANENT, *RECALLABLE, *searching, *VERSIONS):
        op.get_bind().exec_driver_sql(statement)
    for table in TABLES:
        # A space that came after the last ANALYZE is in no histogram: the planner would expect one row of it, scan the
        # whole space and call it cheap. Without statistics every space is "some of the table", and keys win.
        if table not in ("spaces", "api_keys"):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN space_id SET STATISTICS 0")
        if table not in UNGUARDED:
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(
                f"CREATE POLICY space ON {table} "
                "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
            )
    op.execute("INSERT INTO spaces (slug) VALUES ('default')")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    lexical = "lexical_candidates(int4[], sparsevec, text[], int4)"
    counting = ("note_change()", "count_change()")
    for function in (lexical, "nodes_with_metadata(jsonb)", "keep_recallable()", "refuse_change()", *counting):
        op.execute(f"DROP FUNCTION {function}")


def create_tables() -> None:
    """As autogenerated, in the order of their references."""
    op.create_table(
        "spaces",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("settings", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("embedding_model", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("slug ~ '^[a-z0-9][a-z0-9_-]{0,62}$'", name=op.f("spaces_slug")),
        sa.PrimaryKeyConstraint("id", name=op.f("spaces_pkey")),
        sa.UniqueConstraint("slug", name=op.f("spaces_slug_key")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("space_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("api_keys_space_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("api_keys_pkey")),
        sa.UniqueConstraint("prefix", name=op.f("api_keys_prefix_key")),
    )
    op.create_table(
        "lexicon_totals",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("documents", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_length", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("weighted_mean", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("lexicon_totals_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", name=op.f("lexicon_totals_pkey")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_table(
        "never_merge",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("a", sa.Text(), nullable=False),
        sa.Column("b", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("a < b", name=op.f("never_merge_ordered")),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("never_merge_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("never_merge_pkey")),
        sa.UniqueConstraint("space_id", "a", "b", name=op.f("never_merge_space_id_a_b_key")),
    )
    op.create_table(
        "nodes",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subtype", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("checksum", sa.Text(), nullable=True),
        sa.Column("metadata", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("importance", sa.Double(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("merged_into", sa.Uuid(), nullable=True),
        sa.Column("protected", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("exclude", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("is_summary", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "recallable",
            sa.Boolean(),
            sa.Computed("status = 'active' AND NOT exclude AND NOT is_summary", persisted=True),
            nullable=True,
        ),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("thread", sa.Text(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("(status = 'merged') = (merged_into IS NOT NULL)", name=op.f("nodes_merged_into")),
        sa.CheckConstraint("jsonb_typeof(metadata) = 'object'", name=op.f("nodes_metadata")),
        sa.CheckConstraint(
            "kind <> 'memory' OR (text IS NOT NULL AND checksum IS NOT NULL)", name=op.f("nodes_memory_text")
        ),
        sa.CheckConstraint(
            "kind <> 'memory' OR subtype IN ('note', 'conversation', 'reflection', 'idea', 'article', 'log')",
            name=op.f("nodes_content_type"),
        ),
        sa.CheckConstraint("kind IN ('memory', 'case', 'concept', 'page')", name=op.f("nodes_kind")),
        sa.CheckConstraint("status IN ('active', 'archived', 'merged')", name=op.f("nodes_status")),
        sa.CheckConstraint("importance BETWEEN 0 AND 1", name=op.f("nodes_importance")),
        sa.CheckConstraint("merged_into <> id", name=op.f("nodes_not_into_itself")),
        sa.ForeignKeyConstraint(
            ["space_id", "merged_into"], ["nodes.space_id", "nodes.id"], name=op.f("nodes_space_id_merged_into_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("nodes_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("nodes_pkey")),
        postgresql_with={"fillfactor": "90"},
    )
    op.create_index(
        "nodes_checksum", "nodes", ["space_id", "checksum"], unique=True, postgresql_where=sa.text("kind = 'memory'")
    )
    op.create_index("nodes_content_type", "nodes", ["space_id", "kind", "subtype"], unique=False)
    op.create_index("nodes_created_at", "nodes", ["space_id", sa.literal_column("created_at DESC"), "id"], unique=False)
    op.create_index(
        "nodes_merged_into",
        "nodes",
        ["space_id", "merged_into"],
        unique=False,
        postgresql_where=sa.text("merged_into IS NOT NULL"),
    )
    op.create_index(
        "nodes_metadata",
        "nodes",
        ["metadata"],
        unique=False,
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    )
    op.create_index(
        "nodes_source_id",
        "nodes",
        ["space_id", "kind", "source", "source_id"],
        unique=True,
        postgresql_where=sa.text("source_id IS NOT NULL"),
    )
    op.create_index(
        "nodes_thread",
        "nodes",
        ["space_id", "thread", "position"],
        unique=False,
        postgresql_where=sa.text("thread IS NOT NULL"),
    )
    op.create_table(
        "plans",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("risk", sa.Text(), server_default=sa.text("'low'"), nullable=False),
        sa.Column("options", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("summary", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("undoes", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("approved_by", sa.Text(), nullable=True),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("risk IN ('low', 'high')", name=op.f("plans_risk")),
        sa.CheckConstraint(
            "status IN ('proposed', 'approved', 'applied', 'partly_applied', 'stale', 'failed', 'undone', 'declined')",
            name=op.f("plans_status"),
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "undoes"], ["plans.space_id", "plans.id"], name=op.f("plans_space_id_undoes_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("plans_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("plans_pkey")),
    )
    op.create_index("plans_created_at", "plans", ["space_id", sa.literal_column("created_at DESC")], unique=False)
    op.create_index(
        "plans_undoes", "plans", ["space_id", "undoes"], unique=False, postgresql_where=sa.text("undoes IS NOT NULL")
    )
    op.create_table(
        "recalls",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_query", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("memory_ids", sa.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("hits", JSONB(), nullable=True),
        sa.Column("prompt_hash", sa.Text(), nullable=True),
        sa.Column("debug_prompt", sa.Text(), nullable=True),
        sa.Column("external_knowledge_used", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("confidence_score", sa.Double(), server_default=sa.text("0.5"), nullable=False),
        sa.Column("response", sa.Text(), nullable=True),
        sa.Column("token_usage", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("latency_ms", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("query_hash", sa.Text(), sa.Computed("md5(user_query)", persisted=True), nullable=True),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("recalls_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("recalls_pkey")),
    )
    op.create_index(
        "recalls_query",
        "recalls",
        ["space_id", "query_hash", "mode", sa.literal_column("created_at DESC")],
        unique=False,
    )
    op.create_index("recalls_created_at", "recalls", ["space_id", sa.literal_column("created_at DESC")], unique=False)
    op.create_table(
        "schedules",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("every_minutes", sa.Integer(), nullable=True),
        sa.Column("cron", sa.Text(), nullable=True),
        sa.Column("options", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("last_run_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("next_run_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(every_minutes IS NULL) <> (cron IS NULL)", name=op.f("schedules_when")),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("schedules_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "name", name=op.f("schedules_pkey")),
    )
    op.create_table(
        "term_stats",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("term", sa.Integer(), nullable=False),
        sa.Column("documents", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("term_stats_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "term", name=op.f("term_stats_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_table(
        "topics",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("members", sa.Integer(), nullable=False),
        sa.Column("internal_edges", sa.Integer(), nullable=False),
        sa.Column("connectivity", sa.Double(), nullable=False),
        sa.Column("gathered_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("topics_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("topics_pkey")),
        sa.UniqueConstraint("space_id", "key", name=op.f("topics_space_id_key_key")),
    )
    op.create_table(
        "activity",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("uses", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("recalled", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("successes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("judged", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("energy", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("base_weight", sa.Double(), nullable=True),
        sa.Column("decay_score", sa.Double(), server_default=sa.text("1.0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("activity_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("activity_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "node_id", name=op.f("activity_pkey")),
        postgresql_with={"fillfactor": "60"},
    )
    op.create_table(
        "aliases",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subtype", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("aliases_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("aliases_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("aliases_pkey")),
        sa.UniqueConstraint(
            "space_id",
            "kind",
            "subtype",
            "alias",
            "node_id",
            name=op.f("aliases_space_id_kind_subtype_alias_node_id_key"),
        ),
    )
    op.create_table(
        "case_archive",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("archive_id", sa.Uuid(), nullable=False),
        sa.Column("case_id", sa.Uuid(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("response_text", sa.Text(), nullable=True),
        sa.Column("category_path", sa.Text(), nullable=True),
        sa.Column("query_vector", HALFVEC(), nullable=True),
        sa.Column("usage_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("success_rate", sa.Double(), nullable=True),
        sa.Column("archived_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("archived_reason", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "archived_reason IN ('low_performance', 'duplicate', 'inactive')", name=op.f("case_archive_archived_reason")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "case_id"], ["nodes.space_id", "nodes.id"], name=op.f("case_archive_space_id_case_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("case_archive_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "archive_id", name=op.f("case_archive_pkey")),
    )
    op.create_index("case_archive_case", "case_archive", ["space_id", "case_id"], unique=False)
    op.create_index("case_archive_time", "case_archive", ["space_id", "archived_at"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("plan_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("group_number", sa.Integer(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("subject", sa.Uuid(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("factors", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("premises", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "status IN ('proposed', 'declined', 'applied', 'stale', 'failed', 'undone')", name=op.f("decisions_status")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "plan_id"], ["plans.space_id", "plans.id"], name=op.f("decisions_space_id_plan_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("decisions_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "plan_id", "number", name=op.f("decisions_pkey")),
    )
    op.create_index("decisions_subject", "decisions", ["space_id", "subject"], unique=False)
    op.create_table(
        "edges",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("source", sa.Uuid(), nullable=False),
        sa.Column("target", sa.Uuid(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("strength", sa.Double(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("explanation", sa.Text(), nullable=True),
        sa.Column("activation_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reinforce_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("decay_rate", sa.Double(), server_default=sa.text("0.05"), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=True),
        sa.Column("source_topic", sa.Text(), nullable=True),
        sa.Column("target_topic", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), server_default=sa.text("'user'"), nullable=False),
        sa.Column("protected", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'active'"), nullable=False),
        sa.Column("merged_into", sa.Uuid(), nullable=True),
        sa.Column("merged_from", JSONB(), nullable=True),
        sa.Column("metadata", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_activated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_reinforced_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("created_by IN ('user', 'auto', 'import', 'system')", name=op.f("edges_created_by")),
        sa.CheckConstraint("status IN ('active', 'pruned', 'merged')", name=op.f("edges_status")),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name=op.f("edges_confidence")),
        sa.CheckConstraint("source <> target", name=op.f("edges_no_self_loop")),
        sa.CheckConstraint("strength BETWEEN 0 AND 1", name=op.f("edges_strength")),
        sa.ForeignKeyConstraint(
            ["space_id", "merged_into"], ["edges.space_id", "edges.id"], name=op.f("edges_space_id_merged_into_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "source"], ["nodes.space_id", "nodes.id"], name=op.f("edges_space_id_source_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "target"], ["nodes.space_id", "nodes.id"], name=op.f("edges_space_id_target_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("edges_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("edges_pkey")),
        postgresql_with={"fillfactor": "80"},
    )
    op.create_index(
        "edges_ends",
        "edges",
        ["space_id", "source", "target", "relation"],
        unique=True,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "edges_target", "edges", ["space_id", "target"], unique=False, postgresql_where=sa.text("status = 'active'")
    )
    op.create_table(
        "embedding_jobs",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.Integer(), server_default=sa.text("3"), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'processing', 'completed', 'failed')", name=op.f("embedding_jobs_status")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("embedding_jobs_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("embedding_jobs_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("embedding_jobs_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index("embedding_jobs_node", "embedding_jobs", ["space_id", "node_id", "model"], unique=True)
    op.create_index("embedding_jobs_status", "embedding_jobs", ["space_id", "status", "created_at"], unique=False)
    op.create_table(
        "embeddings",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("vector", HALFVEC(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("recallable", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("embeddings_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("embeddings_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "node_id", "model", name=op.f("embeddings_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index("embeddings_model", "embeddings", ["space_id", "model"], unique=False)
    op.create_table(
        "lexicon",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("terms", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("bm25", SPARSEVEC(dim=1000000000), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("recallable", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("lexicon_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("lexicon_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "node_id", name=op.f("lexicon_pkey")),
        postgresql_with={"fillfactor": "80"},
    )
    op.create_index("lexicon_terms", "lexicon", ["terms"], unique=False, postgresql_using="gin")
    op.create_table(
        "outcomes",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("milliseconds", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("outcomes_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("outcomes_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("outcomes_pkey")),
    )
    op.create_index(
        "outcomes_node", "outcomes", ["space_id", "node_id", sa.literal_column("created_at DESC")], unique=False
    )
    op.create_table(
        "runs",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("plan_id", sa.Uuid(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("report", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["space_id", "plan_id"], ["plans.space_id", "plans.id"], name=op.f("runs_space_id_plan_id_fkey")
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("runs_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "id", name=op.f("runs_pkey")),
    )
    op.create_index("runs_started_at", "runs", ["space_id", sa.literal_column("started_at DESC")], unique=False)
    op.create_table(
        "topic_members",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("topic_id", sa.Uuid(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["space_id", "node_id"], ["nodes.space_id", "nodes.id"], name=op.f("topic_members_space_id_node_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "topic_id"],
            ["topics.space_id", "topics.id"],
            name=op.f("topic_members_space_id_topic_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("topic_members_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "topic_id", "node_id", name=op.f("topic_members_pkey")),
    )
    op.create_index("topic_members_node", "topic_members", ["space_id", "node_id"], unique=False)
    op.create_table(
        "changes",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("plan_id", sa.Uuid(), nullable=False),
        sa.Column("decision", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("row_id", sa.Uuid(), nullable=False),
        sa.Column("before", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("after", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["space_id", "plan_id", "decision"],
            ["decisions.space_id", "decisions.plan_id", "decisions.number"],
            name=op.f("changes_space_id_plan_id_decision_fkey"),
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("changes_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "plan_id", "decision", "number", name=op.f("changes_pkey")),
    )
    op.create_index("changes_row", "changes", ["space_id", "row_id", "applied_at"], unique=False)
    op.create_table(
        "space_versions",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("space_versions_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", name=op.f("space_versions_pkey")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_table(
        "space_changes",
        sa.Column("space_id", sa.Uuid(), nullable=False),
        sa.Column(
            "transaction",
            sa.BigInteger(),
            server_default=sa.text("(((pg_current_xact_id())::text)::bigint)"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name=op.f("space_changes_space_id_fkey")),
        sa.PrimaryKeyConstraint("space_id", "transaction", name=op.f("space_changes_pkey")),
    )
