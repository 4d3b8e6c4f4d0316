"""The decisions of one plan on their way into the tables: compared with the world, then written, a kind at a time.

Rows go from the saved plan into the tables inside the database: nothing is sent twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import asyncpg

from recollect.plans.rules.needs import falling_with
from recollect.plans.sql import plans as kept
from recollect.plans.sql import usage
from recollect.plans.sql.premises import KEYS, said, test, why
from recollect.store.tables import metadata

# What is true of an edge that a plan made unless it said otherwise: an undo takes it away only while that holds.
UNTOUCHED = {
    "status": "'active'",
    "protected": "false",
    "confidence": "NULL",
    "explanation": "NULL",
    "merged_from": "NULL",
}
# What a change does to its row, in the order of writing: what retires makes room for what comes back or is made.
TURNS = {
    "removed": "c.after IS NULL",
    "retired": "c.before IS NOT NULL AND c.after->>'status' <> 'active'",
    "altered": "c.before IS NOT NULL AND NOT c.after ? 'status'",
    "revived": "c.before IS NOT NULL AND c.after->>'status' = 'active'",
    "made": "c.before IS NULL",
}
UPDATES = ("retired", "altered", "revived")
# The decisions that a statement is about.
AMONG = kept.AMONG.format("$3")
# What must hold of the graph at the end of a transaction is looked at now, while whose fault it is can be told.
LOOK_NOW = "SELECT look_now() FROM plans WHERE space_id = $1 AND id = $2"
# Edges as they will be, against the nodes and the other edges as they will be.
WITHOUT_A_PLACE = f"""
WITH mine AS MATERIALIZED (
    SELECT decision, table_name, row_id, before, after FROM changes
     WHERE space_id = $1 AND plan_id = $2 AND decision = {AMONG} AND table_name IN ('edges', 'nodes')),
 coming AS MATERIALIZED (
    SELECT c.decision, c.row_id AS edge, coalesce((c.after->>'source')::uuid, t.source) AS source,
           coalesce((c.after->>'target')::uuid, t.target) AS target,
           coalesce(c.after->>'relation', t.relation) AS relation
      FROM mine c LEFT JOIN edges t ON t.space_id = $1 AND t.id = c.row_id
     WHERE c.table_name = 'edges' AND (c.before IS NULL OR c.after ?| ARRAY['status', 'source', 'target', 'relation'])
       AND coalesce(c.after->>'status', t.status, 'active') = 'active' AND c.after IS NOT NULL)
SELECT DISTINCT ON (c.decision) c.decision, c.edge, taken.id AS taken_by, ends.id AS "end", n.merged_into AS "into"
  FROM coming c CROSS JOIN LATERAL (VALUES (c.source), (c.target)) AS ends(id)
  LEFT JOIN nodes n ON n.space_id = $1 AND n.id = ends.id
  LEFT JOIN edges taken ON taken.space_id = $1 AND taken.status = 'active' AND taken.id <> c.edge
        AND (taken.source, taken.target, taken.relation) = (c.source, c.target, c.relation)
        AND taken.id NOT IN (SELECT row_id FROM mine WHERE table_name = 'edges' AND before IS NOT NULL
                                AND (after IS NULL OR after ?| ARRAY['status', 'source', 'target', 'relation']))
 WHERE taken.id IS NOT NULL
    OR (n.id IS NULL AND ends.id NOT IN (SELECT row_id FROM mine WHERE table_name = 'nodes' AND before IS NULL))
    OR (n.status = 'merged' AND ends.id NOT IN (SELECT row_id FROM mine WHERE table_name = 'nodes'
                                                   AND after->>'status' <> 'merged'))
 ORDER BY c.decision, taken.id NULLS LAST
"""
# Edges that would still hang on nodes which are merged away, with what the same decisions do to edges done.
LEFT_BEHIND = f"""
WITH mine AS MATERIALIZED (
    SELECT decision, table_name, row_id, before, after FROM changes
     WHERE space_id = $1 AND plan_id = $2 AND decision = {AMONG} AND table_name IN ('edges', 'nodes'))
SELECT c.decision, c.row_id AS node, e.id AS edge, e.what FROM mine c CROSS JOIN LATERAL (
       SELECT id, 'source' AS what FROM edges WHERE space_id = $1 AND status = 'active' AND source = c.row_id UNION ALL
       SELECT id, 'target' AS what FROM edges WHERE space_id = $1 AND status = 'active' AND target = c.row_id) e
 WHERE c.table_name = 'nodes' AND c.after->>'status' = 'merged'
   AND e.id NOT IN (SELECT row_id FROM mine WHERE table_name = 'edges'
                       AND (after IS NULL OR after ?| ARRAY['status', 'source', 'target']))
 ORDER BY c.decision, e.id
"""
SIZE_OF_EDGES = """(SELECT coalesce(sum(pg_column_size(t.*)), 0)
                     FROM mine c JOIN edges t ON t.space_id = $1 AND t.id = c.row_id)"""
# What use has moved, into the journal.
NOTED = """UPDATE changes c SET {} FROM used u
            WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = u.decision AND c.number = u.number"""
# The columns that a change names, always in the same order.
KEYS_OF = "ARRAY(SELECT jsonb_object_keys(c.{}))"
TURN = " ".join(f"WHEN {test} THEN '{name}'" for name, test in TURNS.items())


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedGroups:
    """What became of the decisions of one group, and how large the edges are that left the living graph (A29)."""

    applied: Sequence[int]
    stale: Mapping[int, str]
    freed_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """What stands in the way of a decision: a row, what of it (a column, a test, or that it is `gone`), and the
    sentence that says so."""

    table: str
    id: UUID
    what: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Changes that are alike: what they do (see TURNS), to which columns of which table, and how many there are; or
    premises that are."""

    table: str
    turn: str
    before: Sequence[str]
    after: Sequence[str]
    size: int


def _with_fallen(stale: Mapping[int, str], needs: Mapping[int, Sequence[int]]) -> dict[int, str]:
    fallen = falling_with(stale, needs) if stale else set()
    return {**dict.fromkeys(fallen, "what it needed did not come about"), **stale}


def _obstacle(table: str, id: UUID, what: str) -> Obstacle:
    return Obstacle(table=table, id=id, what=what, reason=why(table, what))


def _no_place(*, decision: int, edge: UUID, taken_by: UUID | None, end: UUID, into: UUID | None) -> Obstacle:
    if taken_by is not None:
        reason = f"the edge {taken_by} has taken the place of {edge}"
        return Obstacle(table="edges", id=taken_by, what="place", reason=reason)
    if into is not None:
        reason = f"{end}, where the edge {edge} ends, was merged into {into}"
        return Obstacle(table="nodes", id=end, what="merged_into", reason=reason)
    return Obstacle(table="nodes", id=end, what="gone", reason=f"{end}, where the edge {edge} ends, is not there")


class Work:
    """The decisions of one plan on their way into the tables."""

    def __init__(
        self, raw: asyncpg.Connection, space_id: UUID, plan_id: UUID, now: datetime, *, undoing: bool = False
    ) -> None:
        self.raw, self.plan_id, self.mine = raw, plan_id, (space_id, plan_id)
        self.now, self.undoing = now, undoing
        self.freed_bytes = 0
        # Whether it touches where edges were merged into: some may come out.
        self.frees_edges = False
        # What stood in the way of the decisions that are stale.
        self.obstacles: dict[int, Obstacle] = {}

    async def carry_out(
        self, needs: Mapping[int, Sequence[int]], stages: Mapping[int, int], stale: Mapping[int, str]
    ) -> AppliedGroups:
        """Stage by stage: what no longer fits the world is stale, with all that needs it; the rest is written."""
        for stage in sorted(set(stages.values())):
            stale = _with_fallen(stale, needs)
            standing = [number for number in needs if stages[number] == stage and number not in stale]
            shapes = await self.shapes(standing)
            if not await self.write_as_seen(standing, shapes):
                moved = await self.moved(standing, shapes)
                self.obstacles |= moved
                moved |= await self._left_without(moved, standing, shapes)
                stale = _with_fallen({**stale, **{number: one.reason for number, one in moved.items()}}, needs)
                await self.write([number for number in standing if number not in stale], shapes)
                await self.raw.execute(LOOK_NOW, *self.mine)
            self.frees_edges |= any(shape.table == "edges" and "merged_into" in shape.before for shape in shapes)
        applied = [number for number in needs if number not in stale]
        return AppliedGroups(applied=applied, stale=stale, freed_bytes=self.freed_bytes)

    async def waiting(self, groups: Sequence[kept.PlanGroup]) -> list[asyncpg.Record]:
        found: list[asyncpg.Record] = await self.raw.fetch(
            """SELECT number, stage, needs FROM decisions WHERE space_id = $1 AND plan_id = $2
                  AND number BETWEEN $4 AND $5 AND group_number = ANY($3) AND status = 'proposed'
                ORDER BY stage, number FOR UPDATE""",
            *self.mine,
            [group.number for group in groups],
            min(group.first for group in groups),
            max(group.last for group in groups),
        )
        return found

    async def missing(self, needs: Mapping[int, Sequence[int]]) -> dict[int, str]:
        """Decisions that need one of another group which was not applied."""
        outside = {needed for some in needs.values() for needed in some} - needs.keys()
        if not outside:
            return {}
        rows = await self.raw.fetch(
            """SELECT number, status FROM decisions WHERE space_id = $1 AND plan_id = $2 AND number = ANY($3)
                  AND status <> 'applied'""",
            *self.mine,
            sorted(outside),
        )
        absent = {row["number"]: row["status"] for row in rows}
        return {
            number: f"it needs decision {needed}, which is {absent[needed]}"
            for number, some in needs.items()
            for needed in some
            if needed in absent
        }

    async def shapes(self, numbers: Sequence[int]) -> list[Shape]:
        """What some decisions change and rest on: so that each kind of it is one statement, however many there are."""
        if not numbers:
            return []
        # Most say the very same as others do: their columns are looked at once.
        rows = await self.raw.fetch(
            f"""SELECT DISTINCT "table", 'asked' AS turn, ARRAY(SELECT jsonb_object_keys(must)) AS before,
                       '{{}}'::text[] AS after, 0 AS size
                  FROM (SELECT DISTINCT p->>'table' AS "table", p->'must' AS must
                          FROM decisions d, jsonb_array_elements(d.premises) p
                         WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = {AMONG} AND d.premises <> '[]') p
                 UNION ALL
                SELECT c.table_name, CASE {TURN} END, {KEYS_OF.format("before")}, {KEYS_OF.format("after")}, sum(size)
                  FROM (SELECT table_name, before, after, count(*) AS size FROM changes
                         WHERE space_id = $1 AND plan_id = $2 AND decision = {AMONG} GROUP BY 1, 2, 3) c
                 GROUP BY 1, 2, 3, 4""",
            *self.mine,
            kept.listed(numbers),
        )
        return [Shape(**row) for row in rows]

    async def write_as_seen(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> bool:
        """The quick way, for what only changes rows: each is compared as it is written. Has any of them moved, nothing
        is written, and each must be looked at."""
        if not numbers or any(shape.turn in ("removed", "made") for shape in shapes):
            return False
        await self.raw.execute("SAVEPOINT as_seen")
        try:
            await self._note_use(numbers, shapes)
            fits = not await self._premises(numbers, shapes) and await self._rows_as_seen(numbers, shapes)
            if fits:
                await self.raw.execute(LOOK_NOW, *self.mine)
                await self.raw.execute("RELEASE as_seen")
        except asyncpg.IntegrityConstraintViolationError:
            fits = False  # what is refused may belong to a decision that is stale
        if not fits:
            await self.raw.execute("ROLLBACK TO as_seen")
        return fits

    async def _rows_as_seen(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> bool:
        freed = 0
        for turn in UPDATES:
            for table, columns in _columns(shapes, "after", {turn}).items():
                seen = _columns(shapes, "before", {turn})[table]
                written, size = await self._update(table, columns, numbers, turn, seen)
                if written != sum(shape.size for shape in shapes if (shape.table, shape.turn) == (table, turn)):
                    return False
                freed += size
        self.freed_bytes += freed
        return True

    async def moved(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> dict[int, Obstacle]:
        """Which decisions no longer fit the world, and why; every row they rely on is locked from here on."""
        moved = await self._premises(numbers, shapes)
        for table, columns in _columns(shapes, "before", TURNS.keys() - {"made"}).items():
            moved |= await self._different(table, columns, numbers)
        for table in _columns(shapes, "after", {"made"}):
            moved |= await self._there_already(table, numbers)
        return {**await self._misplaced(numbers, shapes), **moved}

    async def _misplaced(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> dict[int, Obstacle]:
        """Decisions after which an edge would be where it cannot be."""
        found: dict[int, Obstacle] = {}
        if self.undoing and "nodes" in _columns(shapes, "after", {"retired"}):
            found |= await self._left_behind(numbers)
        if "edges" in _columns(shapes, "after", {"made", "revived", "altered"}):
            found |= await self._without_a_place(numbers)
        return found

    async def _left_without(
        self, moved: Mapping[int, Obstacle], numbers: Sequence[int], shapes: Sequence[Shape]
    ) -> dict[int, Obstacle]:
        """Decisions that counted on what those that moved would have done to the graph: once these fit, so do they."""
        found, more = dict[int, Obstacle](), moved
        while more:
            numbers = [number for number in numbers if number not in more]
            more = await self._misplaced(numbers, shapes)
            found |= more
        return found

    async def _premises(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> dict[int, Obstacle]:
        """Decisions with a premise that does not hold any more; the rows of all premises are locked from here on."""
        failing: dict[int, Obstacle] = {}
        for table, tests in _columns(shapes, "before", {"asked"}).items():
            failing |= await self._failing(table, tests, numbers)
        return failing

    async def _failing(self, table: str, tests: Sequence[str], numbers: Sequence[int]) -> dict[int, Obstacle]:
        """Those of them that are about one table."""
        key = KEYS[table]
        holds = [
            f"WHEN p.must ? '{name}' AND NOT coalesce({test(table, name)}, false) THEN '{name}'"
            for name in sorted(tests)
        ]
        rows = await self.raw.fetch(
            f"""WITH asked AS MATERIALIZED (
                    SELECT d.number, (p->>'id')::uuid AS id, p->'must' AS must FROM decisions d,
                           jsonb_array_elements(d.premises) p
                     WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = {AMONG} AND p->>'table' = '{table}'
                     ORDER BY id),
                 locked AS MATERIALIZED (
                    SELECT p.number, p.id, CASE {" ".join(holds)} END AS failed FROM asked p
                      JOIN {table} t ON t.space_id = $1 AND t.{key} = p.id
                     ORDER BY p.id FOR NO KEY UPDATE OF t)
                SELECT number, id, failed FROM locked WHERE failed IS NOT NULL AND $4::timestamptz IS NOT NULL
                 UNION ALL
                SELECT number, id, 'gone' FROM asked WHERE id NOT IN (SELECT id FROM locked)""",
            *self.mine,
            kept.listed(numbers),
            self.now,
        )
        return {row["number"]: _obstacle(table, row["id"], row["failed"]) for row in rows}

    async def _different(self, table: str, columns: Sequence[str], numbers: Sequence[int]) -> dict[int, Obstacle]:
        """Decisions that saw a row otherwise than it is, or that is not there."""
        key = KEYS[table]
        cases = [f"WHEN {differs} THEN '{column}'" for column, differs in self._differing(table, columns).items()]
        if self.undoing and table == "edges":
            cases += [
                f"WHEN c.removes AND NOT c.before ? '{column}' AND t.\"{column}\" IS DISTINCT FROM {made}"
                f" THEN '{column}'"
                for column, made in UNTOUCHED.items()
            ]
        seen = f"CASE {' '.join(cases)} END" if cases else "NULL"
        rows = await self.raw.fetch(
            f"""WITH mine AS MATERIALIZED (
                    SELECT decision, row_id, before, after IS NULL AS removes FROM changes
                     WHERE space_id = $1 AND plan_id = $2 AND decision = {AMONG} AND table_name = '{table}'
                       AND before IS NOT NULL ORDER BY row_id),
                 locked AS MATERIALIZED (
                    SELECT c.decision, c.row_id, {seen} AS differs FROM mine c
                      JOIN {table} t ON t.space_id = $1 AND t.{key} = c.row_id
                     ORDER BY c.row_id FOR NO KEY UPDATE OF t)
                SELECT decision, row_id, differs FROM locked WHERE differs IS NOT NULL
                 UNION ALL
                SELECT decision, row_id, 'gone' FROM mine WHERE row_id NOT IN (SELECT row_id FROM locked)""",
            *self.mine,
            kept.listed(numbers),
        )
        return {row["decision"]: _obstacle(table, row["row_id"], row["differs"]) for row in rows}

    def _differing(self, table: str, columns: Sequence[str]) -> dict[str, str]:
        """When a column of a row is not what a change saw; what use moves by itself does not hinder an undo."""
        return {
            column: f"c.before ? '{column}' AND t.\"{column}\" IS DISTINCT FROM {said(table, column, 'c.before')}"
            for column in columns
            if not (self.undoing and column in usage.USAGE)
        }

    async def _there_already(self, table: str, numbers: Sequence[int]) -> dict[int, Obstacle]:
        """Decisions that make a row which is there."""
        rows = await self.raw.fetch(
            f"""SELECT c.decision, c.row_id FROM changes c JOIN {table} t ON t.space_id = $1
                   AND t.{KEYS[table]} = c.row_id
                 WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = {AMONG} AND c.table_name = '{table}'
                   AND c.before IS NULL""",
            *self.mine,
            kept.listed(numbers),
        )
        reason = "what it makes is there already"
        return {row["decision"]: Obstacle(table=table, id=row["row_id"], what="made", reason=reason) for row in rows}

    async def _without_a_place(self, numbers: Sequence[int]) -> dict[int, Obstacle]:
        """Decisions that make or move an edge, or bring one back, to where it cannot be: between nodes one of which is
        gone or was merged away (P15), or where another edge is. What the same decisions bring back or take out counts
        as done."""
        rows = await self.raw.fetch(WITHOUT_A_PLACE, *self.mine, kept.listed(numbers))
        return {row["decision"]: _no_place(**row) for row in rows}

    async def _left_behind(self, numbers: Sequence[int]) -> dict[int, Obstacle]:
        """Decisions that merge a node once more which has got edges since: they would hang on it (P15)."""
        rows = await self.raw.fetch(LEFT_BEHIND, *self.mine, kept.listed(numbers))
        return {
            row["decision"]: Obstacle(
                table="edges",
                id=row["edge"],
                what=row["what"],
                reason=f"the edge {row['edge']} would hang on {row['node']}, which would be merged away",
            )
            for row in rows
        }

    async def _note_use(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> None:
        """What use has moved since goes into the journal of an undo, with what that makes of it: so the undo of the
        undo gives back just that, even where a strength is at its bound (P19)."""
        for table, columns in _columns(shapes, "after", set(UPDATES)).items() if self.undoing else ():
            if not (moving := [column for column in columns if column in usage.USAGE]):
                continue
            was, becomes = (
                usage.document(table, moving, value) for value in (lambda _, one: f't."{one}"', self._value)
            )
            used = " OR ".join(
                f"(c.after ? '{one}' AND t.\"{one}\" IS DISTINCT FROM {said(table, one, 'c.before')})" for one in moving
            )
            await self.raw.execute(
                f"""WITH used AS MATERIALIZED (
                        SELECT c.decision, c.number, c.before || {was} AS before, c.after || {becomes} AS after
                          FROM changes c JOIN {table} t ON t.space_id = $1 AND t.{KEYS[table]} = c.row_id
                         WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = {AMONG} AND c.table_name = '{table}'
                           AND c.before IS NOT NULL AND c.after IS NOT NULL AND ({used}))
                    {NOTED.format("before = u.before, after = u.after")}""",
                *self.mine,
                kept.listed(numbers),
            )

    async def write(self, numbers: Sequence[int], shapes: Sequence[Shape]) -> None:
        """Take away, then retire, alter, revive and make rows, in this order: no two living edges are the same."""
        if not numbers:
            return
        await self._note_use(numbers, shapes)
        for table in _columns(shapes, "before", {"removed"}):
            await self._remove(table, numbers)
        for turn in UPDATES:
            for table, columns in _columns(shapes, "after", {turn}).items():
                _, freed = await self._update(table, columns, numbers, turn)
                self.freed_bytes += freed
        made = [shape for shape in shapes if shape.turn == "made"]
        for shape in sorted(made, key=lambda shape: shape.table != "nodes"):  # what hangs on nodes needs them
            await self._insert(shape, numbers)

    async def _remove(self, table: str, numbers: Sequence[int]) -> None:
        """Take rows away that a plan made; what use has moved in them since goes into the journal, for a redo (P19)."""
        if moving := sorted(usage.USAGE & set(metadata.tables[table].columns.keys())):
            row = ", ".join(f"'{column}', t.\"{column}\"" for column in moving)
            used = " OR ".join(usage.is_used(table, column) for column in moving)
            await self.raw.execute(
                f"""WITH used AS MATERIALIZED (
                        SELECT c.decision, c.number, c.before || jsonb_build_object({row}) AS before
                          FROM changes c JOIN {table} t ON t.space_id = $1 AND t.{KEYS[table]} = c.row_id
                         WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = {AMONG} AND c.table_name = '{table}'
                           AND c.after IS NULL AND ({used}))
                    {NOTED.format("before = u.before")}""",
                *self.mine,
                kept.listed(numbers),
            )
        await self.raw.execute(
            f"""DELETE FROM {table} t USING changes c WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = {AMONG}
                   AND c.table_name = '{table}' AND c.after IS NULL
                   AND t.space_id = $1 AND t.{KEYS[table]} = c.row_id""",
            *self.mine,
            kept.listed(numbers),
        )

    async def _update(
        self, table: str, columns: Sequence[str], numbers: Sequence[int], turn: str, seen: Sequence[str] = ()
    ) -> tuple[int, int]:
        """Write what some changes say, of rows in which the columns `seen` are what they saw; returns how many rows
        that were, and how many bytes of edges leave the living graph."""
        assigned = ", ".join(f'"{column}" = {self._value(table, column)}' for column in columns)
        as_seen = "".join(f" AND NOT ({differs})" for differs in self._differing(table, seen).values())
        # MATERIALIZED: the planner, which cannot know how many changes a plan has, else joins them the slow way round.
        # In the order of the key: the pages of its index are looked at one after the other.
        mine = f"""WITH mine AS MATERIALIZED (
                    SELECT row_id, before, after FROM changes c WHERE space_id = $1 AND plan_id = $2
                       AND decision = {AMONG} AND table_name = '{table}' AND {TURNS[turn]} ORDER BY row_id)"""
        # What leaves the living graph is measured as it was before.
        freed = SIZE_OF_EDGES if (table, turn) == ("edges", "retired") else "0"
        statement = f"""{mine}, written AS (
                    UPDATE {table} t SET {assigned} FROM mine c
                     WHERE t.space_id = $1 AND t.{KEYS[table]} = c.row_id{as_seen} RETURNING 1)
                SELECT (SELECT count(*) FROM written) AS written, {freed} AS freed"""
        done = await self.raw.fetchrow(statement, *self.mine, kept.listed(numbers))
        return int(done["written"]), int(done["freed"])

    def _value(self, table: str, column: str) -> str:
        """What a column becomes: what the plan says; in an undo, what use added since is kept."""
        if self.undoing and column in usage.USAGE:
            return usage.taken_back(table, column)
        return f"CASE WHEN c.after ? '{column}' THEN {said(table, column, 'c.after')} ELSE t.\"{column}\" END"

    async def _insert(self, shape: Shape, numbers: Sequence[int]) -> None:
        table, key = shape.table, KEYS[shape.table]
        named = [column for column in shape.after if column != key]
        into = ", ".join(f'"{column}"' for column in named)
        values = ", ".join(said(table, column, "c.after") for column in named)
        await self.raw.execute(
            f"""INSERT INTO {table} (space_id, {key}, {into})
                SELECT $1, c.row_id, {values} FROM changes c
                 WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = {AMONG} AND c.table_name = '{table}'
                   AND c.before IS NULL AND {KEYS_OF.format("after")} = $4::text[] RETURNING 1""",
            *self.mine,
            kept.listed(numbers),
            shape.after,
        )


def _columns(
    shapes: Sequence[Shape], side: Literal["before", "after"], turns: AbstractSet[str]
) -> dict[str, list[str]]:
    """The tables that some kinds of change are about, in order, and the columns of each."""
    found: dict[str, set[str]] = defaultdict(set)
    for shape in shapes:
        if shape.turn in turns:
            found[shape.table].update(getattr(shape, side))
    return {table: sorted(found[table]) for table in sorted(found)}
