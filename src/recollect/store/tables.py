"""The tables, as SQLAlchemy Core. DESIGN: one spine (`nodes`); what is hot or heavy lives beside it.

`space_id` leads every key, so that a space can be moved to a server of its own one day. Vectors never share a row with
what changes: updating a row that an HNSW index mentions costs ~3 ms, the same update in a narrow table 0.005 ms.
"""

from typing import Any

from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)

SPARSE_DIMENSIONS = 1_000_000_000


def moment(name: str, *, nullable: bool = True, default_now: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=func.now() if default_now else None)


def flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def document(name: str) -> Column[Any]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def array(name: str) -> Column[Any]:
    return Column(name, JSONB, nullable=False, server_default=text("'[]'::jsonb"))


def space() -> Column[Any]:
    return Column("space_id", Uuid, ForeignKey("spaces.id"), nullable=False)


def space_of_another_row() -> Column[Any]:
    """Of what is written with every text: its node has the key to the space, or the row of the space that counts."""
    return Column("space_id", Uuid, nullable=False)


def node_reference(column: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["space_id", column], ["nodes.space_id", "nodes.id"])


spaces = Table(
    "spaces",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("slug", Text, nullable=False, unique=True),
    document("settings"),
    # The model that search uses; a new one takes over when its vectors are complete (D35).
    Column("embedding_model", Text),
    moment("created_at", nullable=False, default_now=True),
    CheckConstraint("slug ~ '^[a-z0-9][a-z0-9_-]{0,62}$'", name="slug"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("hash", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("space_id", Uuid, ForeignKey("spaces.id")),
    moment("created_at", nullable=False, default_now=True),
    moment("expires_at"),
    moment("revoked_at"),
    moment("last_used_at"),
)

# A browser that signed in with a key. It ends with its time, with the key, or when somebody logs out.
sessions = Table(
    "sessions",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("key_id", Uuid, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    moment("created_at", nullable=False),
    moment("expires_at", nullable=False),
    Index("sessions_expires_at", "expires_at"),
)

nodes = Table(
    "nodes",
    metadata,
    space(),
    Column("id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subtype", Text, nullable=False),
    Column("name", Text),
    Column("text", Text),
    Column("checksum", Text),
    document("metadata"),
    Column("importance", Double),
    Column("status", Text, nullable=False, server_default=text("'active'")),
    Column("merged_into", Uuid),
    flag("protected"),
    flag("exclude"),
    flag("is_summary"),
    # The one place that says what may be recalled; copied to embeddings and lexicon by a trigger.
    Column("recallable", Boolean, Computed("status = 'active' AND NOT exclude AND NOT is_summary", persisted=True)),
    Column("source", Text),
    Column("source_id", Text),
    Column("thread", Text),
    Column("position", BigInteger),
    Column("version", Integer, nullable=False, server_default=text("1")),
    moment("created_at", nullable=False, default_now=True),
    moment("updated_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
    node_reference("merged_into"),
    CheckConstraint("kind IN ('memory', 'case', 'concept', 'page')", name="kind"),
    CheckConstraint("status IN ('active', 'archived', 'merged')", name="status"),
    CheckConstraint("(status = 'merged') = (merged_into IS NOT NULL)", name="merged_into"),
    CheckConstraint("merged_into <> id", name="not_into_itself"),
    CheckConstraint("importance BETWEEN 0 AND 1", name="importance"),
    CheckConstraint("kind <> 'memory' OR (text IS NOT NULL AND checksum IS NOT NULL)", name="memory_text"),
    CheckConstraint(
        "kind <> 'memory' OR subtype IN ('note', 'conversation', 'reflection', 'idea', 'article', 'log')",
        name="content_type",
    ),
    CheckConstraint("jsonb_typeof(metadata) = 'object'", name="metadata"),
    # D05: the same text is remembered once in a space.
    Index("nodes_checksum", "space_id", "checksum", unique=True, postgresql_where=text("kind = 'memory'")),
    Index(
        "nodes_source_id",
        "space_id",
        "kind",
        "source",
        "source_id",
        unique=True,
        postgresql_where=text("source_id IS NOT NULL"),
    ),
    # Cases may repeat a query; an import that is repeated looks here for what it brought before.
    Index("nodes_case_query", "space_id", "checksum", postgresql_where=text("kind = 'case'")),
    Index("nodes_created_at", "space_id", text("created_at DESC"), "id"),
    Index("nodes_content_type", "space_id", "kind", "subtype"),
    Index("nodes_thread", "space_id", "thread", "position", postgresql_where=text("thread IS NOT NULL")),
    Index("nodes_merged_into", "space_id", "merged_into", postgresql_where=text("merged_into IS NOT NULL")),
    # Few rows: what the graph must leave out.
    Index("nodes_inactive", "space_id", "id", postgresql_where=text("status <> 'active'")),
    Index("nodes_metadata", "metadata", postgresql_using="gin", postgresql_ops={"metadata": "jsonb_path_ops"}),
    # Room on the page for metadata and status changes, so that they stay HOT.
    postgresql_with={"fillfactor": "90"},
)

embeddings = Table(
    "embeddings",
    metadata,
    space_of_another_row(),
    Column("node_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    # 0 is the text as a whole; a long memory has a row for each of its windows besides (D47), from 1, which says where
    # in the text it starts and ends.
    Column("passage", SmallInteger, nullable=False, server_default=text("0")),
    Column("starts", Integer, nullable=False, server_default=text("0")),
    Column("ends", Integer),
    Column("dim", Integer, nullable=False),
    # No dimension here: one table holds every model; HNSW indexes are partial and cast (vectors.py).
    Column("vector", HALFVEC, nullable=False),
    Column("kind", Text, nullable=False),
    # Kept by a trigger on nodes. In no index and no index predicate: its updates stay HOT.
    Column("recallable", Boolean, nullable=False),
    moment("created_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "node_id", "model", "passage"),
    node_reference("node_id"),
    Index("embeddings_model", "space_id", "model"),
    postgresql_with={"fillfactor": "70"},
)

activity = Table(
    "activity",
    metadata,
    space_of_another_row(),
    Column("node_id", Uuid, nullable=False),
    count("uses"),
    # How many entries of the query log hold the node (D19); counted in the transaction that writes the entry.
    count("recalled"),
    count("successes"),
    count("judged"),
    moment("last_used_at"),
    document("energy"),
    Column("base_weight", Double),
    Column("decay_score", Double, nullable=False, server_default=text("1.0")),
    PrimaryKeyConstraint("space_id", "node_id"),
    node_reference("node_id"),
    postgresql_with={"fillfactor": "60"},
)

lexicon = Table(
    "lexicon",
    metadata,
    space_of_another_row(),
    Column("node_id", Uuid, nullable=False),
    Column("terms", ARRAY(Integer), nullable=False),
    Column("bm25", SPARSEVEC(SPARSE_DIMENSIONS), nullable=False),
    Column("length", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("recallable", Boolean, nullable=False),
    PrimaryKeyConstraint("space_id", "node_id"),
    node_reference("node_id"),
    # Little waits to be sorted in: every search reads through that.
    Index("lexicon_terms", "terms", postgresql_using="gin", postgresql_with={"gin_pending_list_limit": 256}),
    postgresql_with={"fillfactor": "80"},
)

term_stats = Table(
    "term_stats",
    metadata,
    space_of_another_row(),
    Column("term", Integer, nullable=False),
    count("documents"),
    PrimaryKeyConstraint("space_id", "term"),
    postgresql_with={"fillfactor": "70"},
)

# The words of a space as they are spelled, each under the keys by which a misspelled one finds it; by their first
# letters they are found for who has not typed one to its end.
spellings = Table(
    "spellings",
    metadata,
    space_of_another_row(),
    Column("term", Integer, nullable=False),
    Column("word", Text, nullable=False),
    Column("keys", ARRAY(Integer), nullable=False),
    PrimaryKeyConstraint("space_id", "term"),
    Index("spellings_keys", "keys", postgresql_using="gin", postgresql_with={"gin_pending_list_limit": 256}),
    Index("spellings_word", "space_id", "word", postgresql_ops={"word": "text_pattern_ops"}),
)

lexicon_totals = Table(
    "lexicon_totals",
    metadata,
    Column("space_id", Uuid, ForeignKey("spaces.id"), primary_key=True),
    count("documents"),
    count("total_length"),
    # The mean length with which the stored bm25 vectors were weighted; they are re-weighted when it drifts.
    Column("weighted_mean", Double),
    # How the texts were tokenised, and how far the entries are made anew meanwhile (NULL: nothing is under way).
    Column("edition", Integer, nullable=False, server_default=text("1")),
    Column("renewed", Uuid),
    # How many texts are in which language, other than English.
    document("languages"),
    postgresql_with={"fillfactor": "50"},
)

edges = Table(
    "edges",
    metadata,
    space(),
    Column("id", Uuid, nullable=False),
    Column("source", Uuid, nullable=False),
    Column("target", Uuid, nullable=False),
    Column("relation", Text, nullable=False),
    # NULL means "never said": 1.0 and not decayed (A05). An explicit 0 is 0.
    Column("strength", Double),
    Column("confidence", Double),
    Column("explanation", Text),
    count("activation_count"),
    count("reinforce_count"),
    Column("decay_rate", Double, nullable=False, server_default=text("0.05")),
    Column("similarity", Double),
    Column("source_topic", Text),
    Column("target_topic", Text),
    Column("created_by", Text, nullable=False, server_default=text("'user'")),
    flag("protected"),
    Column("status", Text, nullable=False, server_default=text("'active'")),
    Column("merged_into", Uuid),
    Column("merged_from", JSONB),
    document("metadata"),
    moment("created_at", nullable=False, default_now=True),
    moment("last_activated_at"),
    moment("last_reinforced_at"),
    # The transaction that last wrote the row, kept by a trigger: what changed since a snapshot can be asked for.
    count("changed_in"),
    PrimaryKeyConstraint("space_id", "id"),
    node_reference("source"),
    node_reference("target"),
    ForeignKeyConstraint(["space_id", "merged_into"], ["edges.space_id", "edges.id"]),
    CheckConstraint("source <> target", name="no_self_loop"),
    CheckConstraint("strength BETWEEN 0 AND 1", name="strength"),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
    CheckConstraint("status IN ('active', 'pruned', 'merged')", name="status"),
    CheckConstraint("created_by IN ('user', 'auto', 'import', 'system')", name="created_by"),
    Index(
        "edges_ends",
        "space_id",
        "source",
        "target",
        "relation",
        unique=True,
        postgresql_where=text("status = 'active'"),
    ),
    Index("edges_target", "space_id", "target", postgresql_where=text("status = 'active'")),
    Index("edges_changed_in", "space_id", "changed_in"),
    postgresql_with={"fillfactor": "80"},
)

embedding_jobs = Table(
    "embedding_jobs",
    metadata,
    space_of_another_row(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("node_id", Uuid, nullable=False),
    Column("model", Text, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer, nullable=False, server_default=text("3")),
    Column("error_message", Text),
    moment("created_at", nullable=False, default_now=True),
    # Not before this moment: how a provider's "try again later" is honoured.
    moment("due_at", nullable=False, default_now=True),
    moment("claimed_at"),
    # The lease of whoever works on it (store/locks.py): when that one is gone, its jobs are free at once (S04).
    Column("claimed_by", Uuid),
    moment("completed_at"),
    PrimaryKeyConstraint("space_id", "id"),
    node_reference("node_id"),
    # Unreadable: the model knows too little of the text to make a vector of it (D43). It stays as the reason for that.
    CheckConstraint("status IN ('pending', 'processing', 'completed', 'failed', 'unreadable')", name="status"),
    Index("embedding_jobs_status", "space_id", "status", "created_at"),
    # One job a node and model, however often it is asked for.
    Index("embedding_jobs_node", "space_id", "node_id", "model", unique=True),
    postgresql_with={"fillfactor": "70"},
)

recalls = Table(
    "recalls",
    metadata,
    space(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("user_query", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("memory_ids", ARRAY(Uuid), nullable=False),
    Column("hits", JSONB),
    Column("prompt_hash", Text),
    Column("debug_prompt", Text),
    flag("external_knowledge_used"),
    Column("confidence_score", Double, nullable=False, server_default=text("0.5")),
    Column("response", Text),
    document("token_usage"),
    Column("latency_ms", Double),
    moment("created_at", nullable=False, default_now=True),
    Column("query_hash", Text, Computed("md5(user_query)", persisted=True)),
    PrimaryKeyConstraint("space_id", "id"),
    # The last answers to the same question (D24).
    Index("recalls_query", "space_id", "query_hash", "mode", text("created_at DESC")),
    Index("recalls_created_at", "space_id", text("created_at DESC")),
)

# What a case has besides its node, whose text is the query. How often it was used and how well it did is not here: that
# is derived from `activity` and `outcomes`, over all that was merged into it (the function case_standings).
cases = Table(
    "cases",
    metadata,
    space(),
    Column("node_id", Uuid, nullable=False),
    Column("response_text", Text, nullable=False),
    Column("category_path", Text),
    # Percent, as an import brought it; what is recorded here counts instead once there is enough of it (E31).
    Column("given_success_rate", Double),
    # How its rate is combined with those of the cases merged into it: weighted by their uses, or each alike.
    Column("success_rates", Text, nullable=False, server_default=text("'weighted'")),
    Column("updated_by", Text),
    PrimaryKeyConstraint("space_id", "node_id"),
    node_reference("node_id"),
    CheckConstraint("given_success_rate BETWEEN 0 AND 100", name="given_success_rate"),
    CheckConstraint("success_rates IN ('weighted', 'plain')", name="success_rates"),
    Index("cases_category", "space_id", "category_path"),
)

outcomes = Table(
    "outcomes",
    metadata,
    space(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("node_id", Uuid, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("error_type", Text),
    Column("milliseconds", Double),
    moment("created_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
    node_reference("node_id"),
    Index("outcomes_node", "space_id", "node_id", text("created_at DESC")),
)

case_archive = Table(
    "case_archive",
    metadata,
    space(),
    Column("archive_id", Uuid, nullable=False),
    Column("case_id", Uuid, nullable=False),
    Column("query", Text, nullable=False),
    Column("response_text", Text),
    Column("category_path", Text),
    Column("query_vector", HALFVEC),
    count("usage_count"),
    Column("success_rate", Double),
    moment("archived_at", nullable=False, default_now=True),
    Column("archived_reason", Text, nullable=False),
    PrimaryKeyConstraint("space_id", "archive_id"),
    node_reference("case_id"),
    CheckConstraint(
        "archived_reason IN ('low_performance', 'duplicate', 'inactive', 'by_hand')", name="archived_reason"
    ),
    Index("case_archive_case", "space_id", "case_id"),
    Index("case_archive_time", "space_id", "archived_at"),
)

topics = Table(
    "topics",
    metadata,
    space(),
    Column("id", Uuid, nullable=False),
    Column("key", Text, nullable=False),
    Column("member_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'")),
    Column("internal_edges", Integer, nullable=False),
    Column("connectivity", Double, nullable=False),
    moment("gathered_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
    UniqueConstraint("space_id", "key"),
)

aliases = Table(
    "aliases",
    metadata,
    space(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("kind", Text, nullable=False),
    Column("subtype", Text, nullable=False),
    Column("alias", Text, nullable=False),
    Column("node_id", Uuid, nullable=False),
    moment("created_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
    node_reference("node_id"),
    # Every name a node is known by, its own among them, in the form in which names are compared (rules/similarity).
    UniqueConstraint("space_id", "kind", "subtype", "alias", "node_id"),
    Index("aliases_alias", "space_id", "kind", "alias"),
    Index("aliases_node", "space_id", "node_id"),
)

never_merge = Table(
    "never_merge",
    metadata,
    space(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("a", Text, nullable=False),
    Column("b", Text, nullable=False),
    Column("reason", Text),
    # NULL = for good; else a declined pair rests until then (P11).
    moment("until"),
    # What the two were like when the pair was declined: once either changes, the pair may be offered again.
    Column("state", Text),
    moment("created_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
    UniqueConstraint("space_id", "a", "b"),
    CheckConstraint("a < b", name="ordered"),
)

schedules = Table(
    "schedules",
    metadata,
    space(),
    Column("name", Text, nullable=False),
    Column("every_minutes", Integer),
    Column("cron", Text),
    document("options"),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    moment("last_run_at"),
    moment("next_run_at"),
    Column("time_zone", Text, nullable=False, server_default=text("'UTC'")),
    Column("jitter_seconds", Integer, nullable=False, server_default=text("0")),
    Column("last_outcome", Text),
    PrimaryKeyConstraint("space_id", "name"),
    CheckConstraint("(every_minutes IS NULL) <> (cron IS NULL)", name="when"),
)

plans = Table(
    "plans",
    metadata,
    space(),
    Column("id", Uuid, nullable=False),
    Column("policy", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("risk", Text, nullable=False, server_default=text("'low'")),
    document("options"),
    document("summary"),
    Column("created_by", Text, nullable=False),
    Column("undoes", Uuid),
    moment("created_at", nullable=False, default_now=True),
    moment("approved_at"),
    Column("approved_by", Text),
    moment("applied_at"),
    moment("undone_at"),
    array("findings"),
    # The version of the space that the policy looked at.
    Column("seen", BigInteger),
    # How many decisions are in which state; kept when they change, so that lists need not count.
    document("counts"),
    PrimaryKeyConstraint("space_id", "id"),
    ForeignKeyConstraint(["space_id", "undoes"], ["plans.space_id", "plans.id"]),
    CheckConstraint(
        "status IN ('proposed', 'approved', 'applied', 'partly_applied', 'stale', 'failed', 'undone', 'declined')",
        name="status",
    ),
    CheckConstraint("risk IN ('low', 'high')", name="risk"),
    Index("plans_created_at", "space_id", text("created_at DESC")),
    Index("plans_undoes", "space_id", "undoes", postgresql_where=text("undoes IS NOT NULL")),
)

decisions = Table(
    "decisions",
    metadata,
    Column("space_id", Uuid, nullable=False),
    Column("plan_id", Uuid, nullable=False),
    Column("number", Integer, nullable=False),
    Column("group_number", Integer, nullable=False),
    Column("verb", Text, nullable=False),
    Column("subject", Uuid, nullable=False),
    Column("reason", Text, nullable=False),
    Column("score", Double),
    document("factors"),
    array("premises"),
    Column("status", Text, nullable=False),
    Column("stage", Integer, nullable=False, server_default=text("0")),
    Column("needs", ARRAY(Integer), nullable=False, server_default=text("'{}'")),
    moment("applied_at"),
    # Orders the writers of a row: microseconds by the clock of the database, which is one for all who write.
    Column("written", BigInteger),
    # In a plan that undoes another: the number of the decision it takes back.
    Column("undoes", Integer),
    # The plan of that decision: an undo may take back decisions of several plans.
    Column("undoes_plan", Uuid),
    # Why it went stale or failed, or with which other decision it fell away.
    Column("note", Text),
    PrimaryKeyConstraint("space_id", "plan_id", "number"),
    CheckConstraint("status IN ('proposed', 'declined', 'applied', 'stale', 'failed', 'undone')", name="status"),
    Index("decisions_subject", "space_id", "subject", postgresql_where=text("verb = 'merge'")),
    # Every decision is updated once when its fate is known. The new row is a little longer than the old: a page that is
    # left more than half empty has room for all of them, so that no index is touched (HOT).
    postgresql_with={"fillfactor": "45"},
)

changes = Table(
    "changes",
    metadata,
    Column("space_id", Uuid, nullable=False),
    Column("plan_id", Uuid, nullable=False),
    Column("decision", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("row_id", Uuid, nullable=False),
    # NULL: there is no row (it is made, or taken away).
    Column("before", JSONB),
    Column("after", JSONB),
    # Bound to its decision by how it is written, and to its space by row-level security; nothing of it can be deleted.
    PrimaryKeyConstraint("space_id", "plan_id", "decision", "number"),
    Index("changes_row", "space_id", "row_id"),
)

runs = Table(
    "runs",
    metadata,
    space(),
    Column("id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("plan_id", Uuid),
    Column("action", Text, nullable=False),
    Column("status", Text, nullable=False),
    document("report"),
    moment("started_at", nullable=False, default_now=True),
    moment("finished_at"),
    PrimaryKeyConstraint("space_id", "id"),
    ForeignKeyConstraint(["space_id", "plan_id"], ["plans.space_id", "plans.id"]),
    Index("runs_started_at", "space_id", text("started_at DESC")),
    Index("runs_plan", "space_id", "plan_id"),
)

# Pages that came in together, each as its file was and with what is planned for it, until a plan takes them. They stay:
# a plan that is edited, or carried out a second time, is made from them anew.
page_batches = Table(
    "page_batches",
    metadata,
    space(),
    Column("id", Uuid, nullable=False),
    document("about"),
    moment("created_at", nullable=False, default_now=True),
    PrimaryKeyConstraint("space_id", "id"),
)

incoming_pages = Table(
    "incoming_pages",
    metadata,
    space(),
    Column("batch", Uuid, nullable=False),
    Column("page_id", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("text", Text, nullable=False),
    document("planned"),
    PrimaryKeyConstraint("space_id", "batch", "page_id"),
    ForeignKeyConstraint(["space_id", "batch"], ["page_batches.space_id", "page_batches.id"]),
)

# Whether two are one, as long as nobody has said so (C36). Who goes by other versions than those compared has changed
# since; what was merged since is followed to its keeper.
questions = Table(
    "questions",
    metadata,
    space(),
    Column("number", BigInteger, nullable=False),
    Column("policy", Text, nullable=False),
    Column("keep", Uuid, nullable=False),
    Column("other", Uuid, nullable=False),
    Column("keep_version", Integer, nullable=False),
    Column("other_version", Integer, nullable=False),
    Column("probability", Double, nullable=False),
    Column("reason", Text, nullable=False),
    document("factors"),
    moment("asked_at", nullable=False),
    moment("postponed_at"),
    Column("answer", Text),
    moment("answered_at"),
    Column("answered_by", Text),
    # What taking the answer back needs: the plan and the decision of a merge, or the pair that was kept apart.
    document("outcome"),
    PrimaryKeyConstraint("space_id", "number"),
    node_reference("keep"),
    node_reference("other"),
    CheckConstraint("keep <> other", name="two"),
    CheckConstraint("answer IN ('merge', 'separate', 'never')", name="answer"),
    CheckConstraint("(answer IS NULL) = (answered_at IS NULL)", name="answered"),
    Index("questions_pair", "space_id", text("least(keep, other)"), text("greatest(keep, other)"), unique=True),
    Index("questions_open", "space_id", postgresql_where=text("answer IS NULL")),
)

# What a cached answer is checked against (D36): a number a space, raised once by every transaction that changes it. The
# second table holds, until its commit, that a transaction has changed a space; a deferred trigger then counts it, so
# the one hot row is the last lock that a transaction takes.
space_versions = Table(
    "space_versions",
    metadata,
    Column("space_id", Uuid, ForeignKey("spaces.id"), primary_key=True),
    count("version"),
    postgresql_with={"fillfactor": "50"},
)

space_changes = Table(
    "space_changes",
    metadata,
    space(),
    Column("transaction", BigInteger, nullable=False, server_default=text("(((pg_current_xact_id())::text)::bigint)")),
    PrimaryKeyConstraint("space_id", "transaction"),
)

# Edges that a transaction has written and that ended at a merged node right then: at its end, none of them may (P15).
# Then the rows are gone.
edges_in_doubt = Table(
    "edges_in_doubt",
    metadata,
    space(),
    Column("edge_id", Uuid, nullable=False),
    Column("transaction", BigInteger, nullable=False, server_default=text("(((pg_current_xact_id())::text)::bigint)")),
    PrimaryKeyConstraint("space_id", "edge_id", "transaction"),
)

# How often something was taken out of the graph of a space, counted by those who do and hold the graph alone meanwhile:
# who decided that an edge holds nothing together knows from it whether to look again (P17).
graph_losses = Table(
    "graph_losses",
    metadata,
    Column("space_id", Uuid, ForeignKey("spaces.id"), primary_key=True),
    count("losses"),
    # When the first edge ever was added: the age of the graph (A27), kept by a trigger.
    moment("first_edge_at"),
    postgresql_with={"fillfactor": "50"},
)

# These are read before a space is chosen; every other table shows only the rows of its space.
UNGUARDED = {"spaces", "api_keys", "sessions", "schedules"}
GUARDED = tuple(sorted(table.name for table in metadata.sorted_tables if table.name not in UNGUARDED))
