"""Who stands in the way of an undo: the plan that wrote the column in question last, and whose writing still stands.

The journal is read as a list of writes of one column of one row, in the order of the database's clock. An undo and the
undo of it cancel each other, so they are left out; what was taken back and brought again stands as the plan that first
wrote it, and not as the undo of its undo. So whoever follows the advice comes to an end (P18).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from uuid import UUID

from recollect.plans.sql.usage import USAGE
from recollect.plans.sql.work import Obstacle
from recollect.store.database import Transaction

# A decision of a plan.
Place = tuple[UUID, int]

# Decisions from before this was noted have the time of their application.
WRITTEN = "coalesce(d.written, (1e6 * date_part('epoch', d.applied_at))::bigint)"
WRITES = f"""
SELECT DISTINCT ON (c.row_id, {WRITTEN}, p.created_at, c.plan_id, c.decision)
       c.row_id, c.plan_id, c.decision, d.undoes, coalesce(d.undoes_plan, p.undoes) AS undoes_plan
  FROM changes c
  JOIN decisions d ON d.space_id = $1 AND d.plan_id = c.plan_id AND d.number = c.decision
  JOIN plans p ON p.space_id = $1 AND p.id = c.plan_id
 WHERE c.space_id = $1 AND c.row_id = ANY($2) AND c.table_name = $3 AND d.applied_at IS NOT NULL AND c.plan_id <> $5
   AND (c.before IS NULL OR c.after IS NULL OR c.after ?| $4::text[])
 ORDER BY c.row_id, {WRITTEN}, p.created_at, c.plan_id, c.decision
"""

# What an undo (the plan $2, of the plans $4) is about to take back, and others made something else of since: as likely
# as not it looks again as it was left. Most others wrote all they wrote before: they are left out as a whole.
# Each is looked up by its key (OFFSET 0): the planner, which takes a plan just written for a row or two, would else go
# through all of it for every decision.
MADE_ELSE = f"""
WITH others AS MATERIALIZED (
    SELECT i.decision, i.table_name, i.row_id, c.plan_id, c.decision AS theirs
      FROM (SELECT decision, table_name, row_id FROM changes
             WHERE space_id = $1 AND plan_id = $2 AND before IS NOT NULL OFFSET 0) i
     CROSS JOIN LATERAL (
        SELECT plan_id, decision FROM changes
         WHERE space_id = $1 AND row_id = i.row_id AND table_name = i.table_name
           AND plan_id <> $2 AND (plan_id <> ALL($4) OR cardinality($4) > 1) OFFSET 0) c),
later AS MATERIALIZED (
    SELECT o.plan_id FROM (SELECT DISTINCT plan_id FROM others) o
     CROSS JOIN LATERAL (
        SELECT max({WRITTEN}) AS last FROM decisions d
         WHERE space_id = $1 AND plan_id = o.plan_id AND applied_at IS NOT NULL) theirs
     WHERE theirs.last > (SELECT min({WRITTEN}) FROM decisions d
                           WHERE space_id = $1 AND plan_id = ANY($4) AND applied_at IS NOT NULL))
SELECT DISTINCT ON (i.decision) i.decision, i.table_name, i.row_id, seen.what
  FROM others i JOIN later ON later.plan_id = i.plan_id
 CROSS JOIN LATERAL (
    SELECT undoes_plan, undoes FROM decisions
     WHERE space_id = $1 AND plan_id = $2 AND number = i.decision AND undoes_plan <> i.plan_id OFFSET 0) u
 CROSS JOIN LATERAL (
    SELECT {WRITTEN} AS written FROM decisions d
     WHERE space_id = $1 AND plan_id = u.undoes_plan AND number = u.undoes OFFSET 0) o
 CROSS JOIN LATERAL (
    SELECT {WRITTEN} AS written FROM decisions d
     WHERE space_id = $1 AND plan_id = i.plan_id AND number = i.theirs AND applied_at IS NOT NULL OFFSET 0) since
 CROSS JOIN LATERAL (
    SELECT before FROM changes
     WHERE space_id = $1 AND plan_id = $2 AND decision = i.decision AND row_id = i.row_id
       AND table_name = i.table_name OFFSET 0) mine
 CROSS JOIN LATERAL (
    SELECT after FROM changes
     WHERE space_id = $1 AND plan_id = i.plan_id AND decision = i.theirs AND row_id = i.row_id
       AND table_name = i.table_name OFFSET 0) c
 CROSS JOIN LATERAL jsonb_each(mine.before) AS seen(what, value)
 WHERE since.written > o.written AND seen.what <> ALL($3) AND c.after ? seen.what
   AND c.after->seen.what IS DISTINCT FROM seen.value
 ORDER BY i.decision
"""

# An edge takes a place by coming back, or by being moved there.
COLUMNS = {"place": ["status", "source", "target"]}


@dataclass(frozen=True, slots=True)
class Write:
    """A decision that wrote a column; and the decision that it took back, if it is of an undo."""

    place: Place
    undoes: Place | None


async def made_else(db: Transaction, inverse: UUID, of: Collection[UUID]) -> dict[int, Obstacle]:
    """Decisions of an undo, `of` some plans, about what was changed since, be it as it was again by now: who archives,
    brings back and archives once more means the last of it (P07)."""
    rows = await db.fetch(MADE_ELSE, inverse, sorted(USAGE), list(of))
    return {
        number: Obstacle(table=table, id=row, what=what, reason=f"its {what} was changed, and changed back")
        for number, table, row, what in rows
    }


async def blocking(
    db: Transaction, obstacles: Mapping[Place, Obstacle], inverse: UUID, before: Mapping[Place, AbstractSet[Place]]
) -> dict[Place, Place]:
    """By decision that cannot be taken back, the one that must be taken back before it, where there is one. What is
    taken back `before` it anyway does not count."""
    asked: dict[tuple[str, str], dict[UUID, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for decision, obstacle in obstacles.items():
        asked[obstacle.table, obstacle.what][obstacle.id].append(decision)
    blockers: dict[Place, Place] = {}
    for (table, what), decisions in asked.items():
        writes = await writes_of(db, table, list(decisions), COLUMNS.get(what, [what]), inverse)
        for row, decision in ((row, decision) for row, waiting in decisions.items() for decision in waiting):
            last = last_standing(writes[row], decision, before.get(decision, frozenset()))
            if last is not None:
                blockers[decision] = last
    return blockers


async def writes_of(
    db: Transaction, table: str, rows: Sequence[UUID], columns: Sequence[str], inverse: UUID
) -> Mapping[UUID, list[Write]]:
    """By row, who wrote some columns of it, the first first, but for the plan that is taking something back now."""
    writes: dict[UUID, list[Write]] = defaultdict(list)
    for row, plan, number, undoes, undoes_plan in await db.fetch(WRITES, rows, table, columns, inverse):
        writes[row].append(Write((plan, number), _undone_by(undoes_plan, undoes)))
    return writes


def _undone_by(plan: UUID | None, number: int | None) -> Place | None:
    return None if plan is None or number is None else (plan, number)


def last_standing(writes: Sequence[Write], target: Place, taken_back: AbstractSet[Place] = frozenset()) -> Place | None:
    """The last write since `target` was written that nothing has taken back; None where there is none."""
    left = [
        decision for decision in standing_since(writes, target) if decision not in taken_back and decision != target
    ]
    return left[-1] if left else None


def standing_since(writes: Sequence[Write], target: Place) -> list[Place]:
    """The writes since `target` was written that nothing has taken back, the first first."""
    undone_by = {write.place: write.undoes for write in writes}
    first = originals(target, undone_by)
    since = [index for index, write in enumerate(writes) if originals(write.place, undone_by) == first]
    later = writes[since[-1] + 1 :] if since else writes
    standing: list[Place] = []
    for write in later:
        meant = originals(write.place, undone_by)
        opposite = write.undoes if write.undoes is None else originals(write.undoes, undone_by)
        if opposite is not None and opposite in standing:
            standing.remove(opposite)
        else:
            standing.append(meant)
    return standing


def originals(decision: Place, undone_by: Mapping[Place, Place | None]) -> Place:
    """A decision, or the one that it brought again: the undo of an undo is what the first of the two took back."""
    undone = undone_by.get(decision)
    first = undone_by.get(undone) if undone is not None else None
    return decision if first is None else originals(first, undone_by)
