"""What a decision rests on, as SQL asks it: a column that has a value, or a test with a name; and what it says in
words when it fails."""

from sqlalchemy import ARRAY, BigInteger, Boolean, DateTime, Double, Integer, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from recollect.graph.rules.strength import current_in_sql
from recollect.store.tables import metadata

# The tables a plan may change, and the column that names a row.
KEYS = {
    "nodes": "id",
    "edges": "id",
    "activity": "node_id",
    "topics": "id",
    "aliases": "id",
    "cases": "node_id",
    "case_archive": "archive_id",
}
# Types whose values are written in JSON as the database writes them anyway.
SCALARS = {
    Text: "text",
    Uuid: "uuid",
    Boolean: "boolean",
    Integer: "int4",
    BigInteger: "int8",
    Double: "float8",
}
# How a case `t` of the table `nodes` stands at this moment, with all that was merged into it.
CASE = "(SELECT {} FROM case_standings(t.space_id, ARRAY[t.id]) s)"
CASE_IDLE = f"$4::timestamptz - coalesce({CASE.format('s.last_used_at')}, t.created_at)"
# Premises that are more than "this column has this value": how each is tested, and what it says when it fails.
TESTS = {
    "strength_below": (f"{current_in_sql('t', '$4')} < (p.must->>'strength_below')::float8", "it is no longer weak"),
    "idle_days": (
        "$4::timestamptz - greatest(t.last_activated_at, t.last_reinforced_at, t.created_at)"
        " >= make_interval(secs => 86400 * (p.must->>'idle_days')::float8)",
        "it was used since",
    ),
    # Sets of living edges, in short (plan.checksum_of). Each look goes into one index: as one condition with OR it is
    # read from the whole table.
    "edges": (
        "p.must->>'edges' = (SELECT md5(coalesce(string_agg(e.id::text, ' ' ORDER BY e.id), '')) FROM ("
        "SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND source = t.id UNION ALL"
        " SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND target = t.id) e)",
        "its links have changed since",
    ),
    "edges_with": (
        "p.must->'edges_with'->>'are' = (SELECT md5(coalesce(string_agg(e.id::text, ' ' ORDER BY e.id), '')) FROM ("
        "SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND source = t.id"
        " AND target = (p.must->'edges_with'->>'node')::uuid UNION ALL"
        " SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND source = "
        "(p.must->'edges_with'->>'node')::uuid AND target = t.id) e)",
        "other edges join the two now",
    ),
    "unlinked_with": (
        "NOT EXISTS (SELECT FROM edges e WHERE e.space_id = $1 AND e.status = 'active' AND e.source = t.id"
        " AND e.target = (p.must->'unlinked_with'->>'node')::uuid"
        " AND e.relation = p.must->'unlinked_with'->>'relation')",
        "the two are linked now",
    ),
    # Archived and merged nodes are few, and have an index. Nobody changes them while the graph is held.
    "ends": (
        "NOT EXISTS (SELECT FROM nodes n WHERE n.space_id = $1 AND n.id = t.source AND n.status <> 'active')"
        " AND NOT EXISTS (SELECT FROM nodes n WHERE n.space_id = $1 AND n.id = t.target AND n.status <> 'active')",
        "one of its ends is no longer active",
    ),
    "not_apart": (
        "NOT EXISTS (SELECT FROM never_merge v WHERE v.space_id = $1 AND v.a = p.must->'not_apart'->>0"
        " AND v.b = p.must->'not_apart'->>1 AND (v.until IS NULL OR v.until > $4::timestamptz)"
        " AND (v.state IS NULL OR v.state = p.must->'not_apart'->>2))",
        "somebody keeps the two apart now",
    ),
    "first_tag": ("t.metadata->'tags'->>0 IS NOT DISTINCT FROM p.must->>'first_tag'", "its tags have changed since"),
    # Of plans that were made when links were only counted.
    "living_edges": (
        "(SELECT count(*) FROM edges e WHERE e.space_id = $1 AND e.status = 'active' AND e.source = t.id)"
        " + (SELECT count(*) FROM edges e WHERE e.space_id = $1 AND e.status = 'active' AND e.target = t.id)"
        " = (p.must->>'living_edges')::int8",
        "its links have changed since",
    ),
    "created_by_not": ("t.created_by <> p.must->>'created_by_not'", "it was made by a person"),
    "case_uses_at_most": (
        f"{CASE.format('s.uses')} <= (p.must->>'case_uses_at_most')::int8",
        "it was used too often since",
    ),
    "case_uses_over": (f"{CASE.format('s.uses')} > (p.must->>'case_uses_over')::int8", "it was not used often enough"),
    "case_success_below": (
        f"{CASE.format('s.success_rate')} < (p.must->>'case_success_below')::float8",
        "it does better now",
    ),
    "case_idle_days_over": (
        f"{CASE_IDLE} > make_interval(secs => 86400 * (p.must->>'case_idle_days_over')::float8)",
        "it was used since",
    ),
}
FAILS = {
    "protected": "it is protected now",
    "status": "it is no longer active",
    "merged_into": "it was merged into another since",
    "version": "it was changed since",
    "activation_count": "it was used since",
    "reinforce_count": "it was used since",
    "last_reinforced_at": "it was used since",
    "last_activated_at": "it was used since",
    "source": "it joins other nodes now",
    "target": "it joins other nodes now",
    "recallable": "it is no longer recalled",
}


def test(table: str, name: str) -> str:
    return TESTS[name][0] if name in TESTS else f't."{name}" IS NOT DISTINCT FROM {said(table, name, "p.must")}'


def said(table: str, column: str, document: str) -> str:
    """What a document of JSON says of a column, in the type of the column."""
    kind = type(metadata.tables[table].c[column].type)
    if kind is DateTime:
        return f"moment_of({document}->>'{column}')"
    if kind is JSONB:
        return f"nullif({document}->'{column}', 'null')"
    if kind is ARRAY:
        return f"ids_of({document}->'{column}')"
    if kind not in SCALARS:
        return f'(jsonb_populate_record(NULL::{table}, {document}))."{column}"'
    return f"({document}->>'{column}')::{SCALARS[kind]}"  # the same, at a tenth of the price


def why(table: str, what: str) -> str:
    if what == "gone":
        return "it is no longer there"
    return TESTS[what][1] if what in TESTS else FAILS.get(what, f"its {what} is not what it was")
