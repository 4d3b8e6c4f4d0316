"""Use in an undo: what use has moved since a plan is kept, and only the difference that the plan made is taken back
(P07, P19). In SQL, of a row `t` and a change `c` of the undo, whose `before` is what the plan had made of it."""

from collections.abc import Callable, Sequence

from recollect.graph.rules.strength import faded_in_sql
from recollect.plans.sql.premises import said
from recollect.store.tables import metadata

# What use moves by itself. It never stands in the way of an undo, which takes back the difference it made (P07).
COUNTS = {"activation_count", "reinforce_count", "uses", "recalled", "successes", "judged"}
STRENGTHS = {"strength"}
MOMENTS = {"last_activated_at", "last_reinforced_at", "last_used_at"}
USAGE = COUNTS | STRENGTHS | MOMENTS

# Of a document, what use moves.
OF_USE = f"""(SELECT coalesce(jsonb_object_agg(key, value), '{{{{}}}}') FROM jsonb_each({{}})
               WHERE key IN ({", ".join(f"'{column}'" for column in sorted(USAGE))}))"""
# A plan that was taken back and brought again stands as it was written then: what its bringing again (the plan $2) has
# found of use, and made of it, is what its own undo has to take back. All else in the two is the same.
FOUND_AGAIN = f"""
WITH found AS MATERIALIZED (
    SELECT c.plan_id, c.decision, c.number, c.before || {OF_USE.format("r.before")} AS before,
           c.after || {OF_USE.format("r.after")} AS after
      FROM decisions x JOIN decisions u ON u.space_id = $1 AND u.plan_id = x.undoes_plan AND u.number = x.undoes
      JOIN changes r ON r.space_id = $1 AND r.plan_id = $2 AND r.decision = x.number
      JOIN changes c ON c.space_id = $1 AND c.plan_id = u.undoes_plan AND c.decision = u.undoes
       AND (c.table_name, c.row_id) = (r.table_name, r.row_id)
     WHERE x.space_id = $1 AND x.plan_id = $2 AND u.undoes_plan IS NOT NULL AND c.table_name IN ('edges', 'activity')
       AND c.before IS NOT NULL AND c.after IS NOT NULL AND (c.before, c.after) IS DISTINCT FROM (r.before, r.after))
UPDATE changes c SET before = f.before, after = f.after FROM found f
 WHERE c.space_id = $1 AND c.plan_id = f.plan_id AND c.decision = f.decision AND c.number = f.number
"""

# (Documents are put together before they are written, here and below: Citus cannot do both at once.)
# An edge that comes out of its keeper may be used before it goes in once more: how often it had been used by then is
# kept with the decision that takes it out, and goes on to the one that takes that back.
USE_THEN = """
WITH out AS MATERIALIZED (
    SELECT c.decision, jsonb_build_object('use_then', jsonb_object_agg(
               c.row_id, jsonb_build_array(e.activation_count, e.reinforce_count))) AS use
      FROM changes c JOIN edges e ON e.space_id = $1 AND e.id = c.row_id
     WHERE c.space_id = $1 AND c.plan_id = $2 AND c.table_name = 'edges' AND c.before->>'merged_into' IS NOT NULL
     GROUP BY c.decision)
UPDATE decisions d SET factors = d.factors || o.use FROM out o
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = o.decision
"""
# More, or less where it has given back what it had taken in itself; by decision, each of which takes back its own.
USED_SINCE = """
SELECT decision, keeper, walked, reinforced FROM (
    SELECT c.decision, (c.after->>'merged_into')::uuid AS keeper,
           sum(e.activation_count - (d.factors->'use_then'->c.row_id::text->>0)::int8)::int8 AS walked,
           sum(e.reinforce_count - (d.factors->'use_then'->c.row_id::text->>1)::int8)::int8 AS reinforced
      FROM changes c JOIN decisions d ON d.space_id = $1 AND d.plan_id = $2 AND d.number = c.decision
      JOIN edges e ON e.space_id = $1 AND e.id = c.row_id
     WHERE c.space_id = $1 AND c.plan_id = $2 AND c.table_name = 'edges' AND c.after->>'merged_into' IS NOT NULL
       AND d.factors->'use_then' ? c.row_id::text
     GROUP BY 1, 2) since
 WHERE walked <> 0 OR reinforced <> 0
"""
# The keeper counts it, and its journal says so: $3 is the decision, $4 the keeper.
JOURNAL_USED_SINCE = """
WITH counted AS MATERIALIZED (
    SELECT c.number,
           jsonb_build_object('activation_count', e.activation_count, 'reinforce_count', e.reinforce_count)
           || c.before AS before,
           c.after || jsonb_build_object(
               'activation_count', coalesce((c.after->>'activation_count')::int8, e.activation_count) + $5::int8,
               'reinforce_count', coalesce((c.after->>'reinforce_count')::int8, e.reinforce_count) + $6::int8) AS after
      FROM changes c JOIN edges e ON e.space_id = $1 AND e.id = c.row_id
     WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = $3 AND c.table_name = 'edges' AND c.row_id = $4
       AND c.before IS NOT NULL AND c.after IS NOT NULL)
UPDATE changes c SET before = n.before, after = n.after FROM counted n
 WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = $3 AND c.number = n.number
"""
COUNT_USED_SINCE = """
UPDATE edges SET activation_count = activation_count + $3, reinforce_count = reinforce_count + $4
 WHERE space_id = $1 AND id = $2
"""

# Decisions that the plan $2 takes back, no undo themselves, and edges whose strength they had set, where another that
# stands has set it too.
ALSO_SET_BY_OTHERS = """
SELECT x.undoes_plan, x.undoes, c.row_id FROM changes c
  JOIN decisions x ON x.space_id = $1 AND x.plan_id = $2 AND x.number = c.decision
  JOIN decisions m ON m.space_id = $1 AND m.plan_id = x.undoes_plan AND m.number = x.undoes AND m.undoes IS NULL
 WHERE c.space_id = $1 AND c.plan_id = $2 AND c.table_name = 'edges' AND c.before ? 'strength' AND c.after ? 'strength'
   AND EXISTS (SELECT FROM changes o JOIN decisions d ON d.space_id = $1 AND d.plan_id = o.plan_id
                                                      AND d.number = o.decision
                WHERE o.space_id = $1 AND o.row_id = c.row_id AND o.table_name = 'edges'
                  AND o.before ? 'strength' AND o.after ? 'strength' AND d.status = 'applied' AND d.undoes IS NULL
                  AND o.plan_id <> $2 AND (o.plan_id, o.decision) <> (x.undoes_plan, x.undoes))
"""


def taken_back(table: str, column: str) -> str:
    """What a column that use moves becomes: as it was before the plan, with what use has added since."""
    now, old, new = f't."{column}"', said(table, column, "c.before"), said(table, column, "c.after")
    untouched = f"{now} IS NOT DISTINCT FROM {old}"
    if column in MOMENTS:
        since = f"greatest({now}, {new})"
        if column == "last_reinforced_at":
            untouched = f"({untouched} AND {AS_STRONG_AS_THEN})"
    elif column in STRENGTHS:
        since, untouched = strength_taken_back(), f"({untouched} AND {SET_AS_THEN})"
    else:
        since = f"greatest(0, {now} + {new} - {old})"
    return f"CASE WHEN NOT c.after ? '{column}' THEN {now} WHEN {untouched} THEN {new} ELSE {since} END"


def is_used(table: str, column: str) -> str:
    made = said(table, column, "c.before")
    return f't."{column}" IS DISTINCT FROM {f"coalesce({made}, 0)" if column in COUNTS else made}'


def document(table: str, columns: Sequence[str], value: Callable[[str, str], str]) -> str:
    """A document of those columns that a change names."""
    parts = (
        f"CASE WHEN c.after ? '{one}' THEN jsonb_build_object('{one}', {value(table, one)}) ELSE '{{}}' END"
        for one in columns
    )
    return f"({' || '.join(parts)})"


# When the strength of an edge `t` was set: now, as a change says that it was, and that the two are the same.
SET_AT = "coalesce(t.last_reinforced_at, t.created_at)"
SAID_SET_AT = "coalesce(moment_of(c.{side}->>'last_reinforced_at'), t.created_at)"
SET_AS_THEN = (
    "(NOT c.before ? 'last_reinforced_at'"
    " OR t.last_reinforced_at IS NOT DISTINCT FROM moment_of(c.before->>'last_reinforced_at'))"
)
# The other way round: a use in the very moment in which the plan set the strength shows in the strength alone.
AS_STRONG_AS_THEN = "(NOT c.before ? 'strength' OR t.strength IS NOT DISTINCT FROM (c.before->>'strength')::float8)"


def strength_taken_back() -> str:
    """P19: what a plan made of a strength, and what it was before, each faded to the moment at which use last set it:
    the difference is taken back, but never below what the edge would have had without the plan and without that use."""
    was, made = _faded_to_last_use("after"), _faded_to_last_use("before")
    return f"least(1, greatest({was}, coalesce(t.strength, 1) + {was} - {made}))"


def _faded_to_last_use(side: str) -> str:
    return faded_in_sql(f"(c.{side}->>'strength')::float8", "t.decay_rate", SAID_SET_AT.format(side=side), SET_AT)


def _as_without(side: str) -> str:
    """The use of an edge that a later change `l` has found, or made, as it is without the earlier one `c`."""
    columns = [one.name for one in metadata.tables["edges"].c if one.name in USAGE]
    then = ", ".join(
        f'CASE WHEN l.{side} ? \'{one}\' THEN {said("edges", one, f"l.{side}")} ELSE e."{one}" END AS "{one}"'
        for one in columns
    )
    return f"""LATERAL (SELECT {document("edges", columns, taken_back)} AS use
                         FROM (SELECT e.created_at, e.decay_rate, {then}) t) as_{side}"""


def _named_in(side: str) -> str:
    """Only what the change itself speaks of."""
    return f"""l.{side} || (SELECT coalesce(jsonb_object_agg(key, value), '{{}}') FROM jsonb_each(as_{side}.use)
                             WHERE l.{side} ? key)"""


# What the decisions $4 of the plans $3 did to the edges $2 is taken back: each later decision, $6 of the plan $5, which
# found it done, has found and made what there would have been without.
FOUND_WITHOUT = f"""
WITH found AS MATERIALIZED (
    SELECT l.plan_id, l.decision, l.number, {_named_in("before")} AS before, {_named_in("after")} AS after
      FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::uuid[], $6::int[])
        AS told(edge, plan_id, decision, later_plan, later)
      JOIN changes l ON l.space_id = $1 AND l.plan_id = told.later_plan AND l.decision = told.later
       AND l.row_id = told.edge AND l.table_name = 'edges'
      JOIN (SELECT space_id, plan_id, decision, row_id, after AS before, before AS after FROM changes
             WHERE space_id = $1 AND table_name = 'edges') c
        ON c.plan_id = told.plan_id AND c.decision = told.decision AND c.row_id = told.edge
      JOIN edges e ON e.space_id = $1 AND e.id = told.edge
      CROSS JOIN {_as_without("before")} CROSS JOIN {_as_without("after")})
UPDATE changes l SET before = f.before, after = f.after FROM found f
 WHERE l.space_id = $1 AND l.plan_id = f.plan_id AND l.decision = f.decision AND l.number = f.number
"""
