"""Undo: a plan is turned round, what came last first, and the plan that takes it back is carried out like any other.

Where a later plan stands in the way, it is named; or, when asked for, taken back first, by the same one plan: then that
plan takes back the decisions of several, each before what it stood in the way of (P18).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from uuid import UUID, uuid4

from recollect.errors import Conflict, InvalidInput
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus, TakenBack, overall
from recollect.plans.rules.needs import falling_with, levels, turned_round
from recollect.plans.sql import changes, locks, usage
from recollect.plans.sql import plans as kept
from recollect.plans.sql.blockers import Place, blocking, made_else, standing_since, writes_of
from recollect.plans.sql.work import Obstacle, Work
from recollect.store.database import Transaction, driver
from recollect.wording import counted

UNDO, REDO = "Undo: ", "Redo: "
# Few need any other.
STATES = "SELECT number, status, nullif(needs, '{}') FROM decisions WHERE space_id = $1 AND plan_id = $2"
# What came last goes first, all of it in one group.
TURNED_DECISIONS = f"""
WITH turned AS (
INSERT INTO decisions (space_id, plan_id, number, group_number, verb, subject, reason, score, factors, status,
                       applied_at, written, undoes, undoes_plan)
SELECT space_id, $3, $5 - number, 0, 'undo', subject, 'takes back: ' || reason, score, factors, 'applied', $6,
       (SELECT {kept.WRITTEN}), number, $2
  FROM decisions WHERE space_id = $1 AND plan_id = $2 AND number = {kept.AMONG.format("$4")} RETURNING 1)
SELECT count(*) FROM turned
"""
# What was merged comes out of its keeper, or goes into it once more, only while that is no part of anything else: the
# later merge must be undone first, or two would lead to each other.
KEEPER = "coalesce(after->>'merged_into', before->>'merged_into')"
MERGES = f"""
SELECT decision, jsonb_agg(jsonb_build_object('table', table_name, 'id', {KEEPER},
                                              'must', jsonb_build_object('merged_into', NULL)))::text
  FROM changes WHERE space_id = $1 AND plan_id = $2 AND table_name IN ('nodes', 'edges') AND {KEEPER} IS NOT NULL
 GROUP BY decision
"""
TURNED_MERGES = """
UPDATE decisions d SET premises = t.premises::jsonb FROM unnest($3::int[], $4::text[]) AS t(number, premises)
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = t.number
"""
TURNED_NEEDS = """
UPDATE decisions d SET stage = t.stage, needs = string_to_array(t.needs, ',')::int[]
  FROM unnest($3::int[], $4::int[], $5::text[]) AS t(number, stage, needs)
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = t.number
"""
TURNED_CHANGES = f"""
WITH turned AS (
INSERT INTO changes (space_id, plan_id, decision, number, table_name, row_id, before, after)
SELECT space_id, $3, $5 - decision, -number, table_name, row_id,
       CASE WHEN table_name = 'nodes' AND before IS NULL THEN jsonb_build_object('status', after->'status')
            ELSE after END,
       CASE WHEN table_name = 'nodes' AND before IS NULL THEN jsonb_build_object('status', 'archived')
            ELSE before END
  FROM changes WHERE space_id = $1 AND plan_id = $2 AND decision = {kept.AMONG.format("$4")}
 ORDER BY decision DESC, number DESC RETURNING 1)
SELECT count(*) FROM turned
"""


TAKEN_BACK_BY = """
SELECT coalesce(d.undoes_plan, p.undoes), d.undoes FROM decisions d
  JOIN plans p ON p.space_id = d.space_id AND p.id = d.plan_id
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = ANY($3) AND d.undoes IS NOT NULL
"""

# An edge, the decision about it that is taken back, and a later one that had found it done.
UndoneBefore = tuple[UUID, UUID, int, UUID, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoStep:
    """The decisions of one plan that are taken back; that of number `n` by the decision `beyond - n` of the undo."""

    plan: Plan
    numbers: Sequence[int]
    beyond: int = 0

    @property
    def told(self) -> TakenBack:
        return TakenBack(id=self.plan.id, title=self.plan.title, decisions=len(self.numbers))


@dataclass(kw_only=True, slots=True)
class WayBack:
    """What is to be taken back, by plan; which decisions of a plan need which, and which waits for one of another."""

    numbers: dict[UUID, set[int]] = field(default_factory=lambda: defaultdict(set))
    needs: dict[UUID, Mapping[int, Sequence[int]]] = field(default_factory=dict)
    after: dict[Place, set[Place]] = field(default_factory=lambda: defaultdict(set))

    @property
    def places(self) -> set[Place]:
        return {(plan, number) for plan, numbers in self.numbers.items() for number in numbers}

    def order(self) -> list[UUID]:
        """The plans, each after those that stood in its way."""
        plans: dict[UUID, set[UUID]] = {plan: set() for plan in self.numbers}
        for (plan_id, _), blockers in self.after.items():
            plans[plan_id] |= {plan for plan, _ in blockers} - {plan_id}
        return list(TopologicalSorter(plans).static_order())


async def undo(
    db: Transaction,
    plan_id: UUID,
    now: datetime,
    *,
    numbers: Sequence[int] | None = None,
    created_by: str = "user",
    with_later: bool = False,
) -> Outcome:
    """Take back a plan, or some of its decisions and what needs them, in this transaction. Repeating it is success.

    `with_later` takes back first what stands in the way, however many plans that are.
    """
    await locks.hold_graph_alone(db)
    plan = await kept.head(db, plan_id, lock=True)
    way = WayBack()
    await _take_in(db, way, plan, numbers)
    if not way.numbers[plan.id]:
        return Outcome(plan_id=plan.id, status=plan.status, applied=0, repeated=True)
    steps, work = await _taken_back(db, plan, way, now, created_by, with_later=with_later)
    inverse = work.plan_id
    await _tell_later_ones(db, inverse)
    if any(step.plan.undoes is not None for step in steps):
        await _count_use_since(db, inverse)
        await _note_what_was_found(db, inverse)
    if work.frees_edges:
        await db.run(usage.USE_THEN, inverse)
    if numbers is None and plan.counts.get("proposed"):
        await kept.leave_the_rest(db, plan_id)
    for step in steps:
        await _settle(db, step, now)
    done = sum(len(step.numbers) for step in steps)
    chain = tuple(step.told for step in steps)
    return Outcome(plan_id=inverse, status=PlanStatus.APPLIED, applied=done, chain=chain)


async def _taken_back(
    db: Transaction, plan: Plan, way: WayBack, now: datetime, created_by: str, *, with_later: bool
) -> tuple[list[UndoStep], Work]:
    """Write what takes a way back, looking for more of it as long as something stands in it; or say what does."""
    raw = await driver(db)
    while True:
        await raw.execute("SAVEPOINT way")
        steps = await _steps(db, way)
        inverse, needs, stages = await _turned_round(db, plan, steps, way, now, created_by)
        obstacles = {
            _meant(number, steps): what for number, what in (await made_else(db, inverse, way.numbers)).items()
        }
        blockers = await blocking(db, obstacles, inverse, _before(way))
        if not blockers:
            work = Work(raw, db.space_id, inverse, now, undoing=True)
            with changes.said_in_words(plan.id):
                done = await work.carry_out(needs, stages, {})
            if not done.stale:
                await raw.execute("RELEASE way")
                return steps, work
            obstacles = {_meant(number, steps): obstacle for number, obstacle in work.obstacles.items()}
            blockers = await blocking(db, obstacles, inverse, _before(way))
        await raw.execute("ROLLBACK TO way")
        if not with_later or not await _longer(db, way, blockers):
            raise Conflict(await _explain(db, obstacles, blockers))


def _before(way: WayBack) -> dict[Place, set[Place]]:
    """By decision, all that is taken back before it, however indirectly."""
    before_each: dict[Place, set[Place]] = {}

    def before(decision: Place) -> set[Place]:
        if decision not in before_each:
            before_each[decision] = set()
            waits_for = way.after.get(decision, ())
            before_each[decision] = {earlier for other in waits_for for earlier in (other, *before(other))}
        return before_each[decision]

    return {decision: before(decision) for decision in way.after}


async def _longer(db: Transaction, way: WayBack, blockers: Mapping[Place, Place]) -> bool:
    """Take what stands in the way into it, with all that needs it; False where that leads nowhere."""
    fresh = False
    for decision, blocker in blockers.items():
        if blocker in way.after[decision] or blocker[0] == decision[0]:
            continue
        way.after[decision].add(blocker)
        fresh = True
        if blocker[1] not in way.numbers[blocker[0]]:
            await _take_in(db, way, await kept.head(db, blocker[0], lock=True), [blocker[1]])
    return fresh


async def _steps(db: Transaction, way: WayBack) -> list[UndoStep]:
    """The plans in the order of taking back, each with its place among the decisions of the undo."""
    try:
        order = way.order()
    except CycleError as error:
        plans = ", ".join(dict.fromkeys(str(plan) for plan in error.args[1]))
        raise Conflict(
            f"The plans {plans} have changed the same rows by turns: undo single decisions of them, the last first. "
            "Nothing changed."
        ) from error
    steps: list[UndoStep] = []
    last = 0
    for plan_id in order:
        numbers = sorted(way.numbers[plan_id])
        beyond = last + numbers[-1] + 1
        steps.append(UndoStep(plan=await kept.head(db, plan_id), numbers=numbers, beyond=beyond))
        last = beyond - numbers[0]
    return steps


def _meant(number: int, steps: Sequence[UndoStep]) -> Place:
    """The decision that a decision of the undo takes back."""
    step = next(step for step in steps if step.beyond - step.numbers[-1] <= number <= step.beyond - step.numbers[0])
    return step.plan.id, step.beyond - number


async def _settle(db: Transaction, step: UndoStep, now: datetime) -> None:
    plan = step.plan
    await kept.mark(db, plan.id, dict.fromkeys(step.numbers), DecisionStatus.UNDONE)
    status = overall(await kept.recount(db, plan.id))
    await kept.set_status(db, plan.id, status, undone_at=now)
    if plan.undoes is not None:
        await _pass_on(db, plan.id, step.numbers, DecisionStatus.APPLIED, now)


async def _take_in(db: Transaction, way: WayBack, plan: Plan, numbers: Sequence[int] | None) -> None:
    """Take into a way back the applied decisions that are meant, with those that need them."""
    rows = await db.fetch(STATES, plan.id)
    states = {number: status for number, status, _ in rows}
    meant = set(states) if numbers is None else set(numbers)
    if unknown := sorted(meant - states.keys()):
        raise InvalidInput(
            f"The plan {plan.id} has no decision {unknown[0]}: `recollect plan show` numbers them.", field="decisions"
        )
    if not any(states[number] in ("applied", "undone") for number in meant) and (states or numbers):
        what = f"The plan {plan.id} is {plan.status}"
        if numbers is not None:
            what = f"Decision {min(meant)} is {states[min(meant)]}"
        raise Conflict(f"{what}: only what was applied can be undone.")
    way.needs[plan.id] = {number: needed for number, _, needed in rows if needed}
    meant = falling_with(meant, way.needs[plan.id])
    way.numbers[plan.id] |= {number for number in meant if states[number] == "applied"}


async def _turned_round(
    db: Transaction, plan: Plan, steps: Sequence[UndoStep], way: WayBack, now: datetime, created_by: str
) -> tuple[UUID, dict[int, list[int]], dict[int, int]]:
    """Save the plan that takes the steps back, the last first, each row as it was; which decision needs which, and at
    which stage each is.

    All of it is carried out in this transaction or none of it: it is saved as applied.

    A node that a plan made is archived by its undo, for what was written is never deleted (P08).
    """
    inverse = Plan(
        id=uuid4(),
        policy="undo",
        title=_title(plan, steps),
        created_at=now,
        created_by=created_by,
        undoes=plan.id,
        decisions=(),
    )
    done = sum(len(step.numbers) for step in steps)
    await kept.save(db, inverse, status=PlanStatus.APPLIED, counts={"applied": done}, applied_at=now)
    needs: dict[int, list[int]] = {}
    for step in steps:
        given = (step.plan.id, inverse.id, kept.listed(step.numbers), step.beyond)
        await db.run(TURNED_DECISIONS, *given, now)
        if merges := await db.fetch(MERGES, step.plan.id):
            turned = [(step.beyond - decision, premises) for decision, premises in merges]
            await db.run(TURNED_MERGES, inverse.id, *map(list, zip(*turned, strict=True)))
        await db.run(TURNED_CHANGES, *given)
        needs |= turned_round(step.numbers, way.needs[step.plan.id], step.beyond)
    beyond = {step.plan.id: step.beyond for step in steps}
    for (plan_id, number), blockers in way.after.items():
        needs[beyond[plan_id] - number] += [beyond[of] - one for of, one in blockers]
    stages, waiting = levels(needs), [number for number, needed in needs.items() if needed]
    if waiting:
        told = [stages[number] for number in waiting], [",".join(map(str, needs[number])) for number in waiting]
        await db.run(TURNED_NEEDS, inverse.id, waiting, *told)
    return inverse.id, needs, stages


def _title(plan: Plan, steps: Sequence[UndoStep]) -> str:
    title = _turned_title(plan)
    return title if len(steps) == 1 else f"{title}, with {counted(len(steps) - 1, 'later plan')}"


def _turned_title(plan: Plan) -> str:
    """An undo that is undone is done again: `Undo: ...`, `Redo: ...`, and by turns."""
    if plan.undoes is not None and plan.title.startswith(UNDO):
        return REDO + plan.title.removeprefix(UNDO)
    return UNDO + (plan.title.removeprefix(REDO) if plan.undoes is not None else plan.title)


async def _pass_on(db: Transaction, undoing: UUID, numbers: Sequence[int], fate: DecisionStatus, now: datetime) -> None:
    """Taking back an undo makes the decisions it had taken back stand again; if they were an undo themselves, those
    that they had taken back fall once more, and so on to the plans at the beginning."""
    stands = fate is DecisionStatus.APPLIED
    for plan_id, taken_back in (await _taken_back_by(db, undoing, numbers)).items():
        await kept.mark(db, plan_id, dict.fromkeys(taken_back), fate)
        status = overall(await kept.recount(db, plan_id))
        await kept.set_status(db, plan_id, status, undone_at=None if stands else now)
        if stands:
            await _note_what_was_found(db, plan_id)
        opposite = DecisionStatus.UNDONE if stands else DecisionStatus.APPLIED
        await _pass_on(db, plan_id, taken_back, opposite, now)


async def _count_use_since(db: Transaction, plan_id: UUID) -> None:
    """Where edges go into their keeper once more, it counts what they were used since they came out of it (P19)."""
    for decision, keeper, *since in await db.fetch(usage.USED_SINCE, plan_id):
        await db.run(usage.JOURNAL_USED_SINCE, plan_id, decision, keeper, *since)
        await db.run(usage.COUNT_USED_SINCE, keeper, *since)


async def _tell_later_ones(db: Transaction, inverse: UUID) -> None:
    """Plans that stand, and had found the strength of an edge as this one leaves it no more, are told what they would
    have found: else they would bring back, by their own undo, what was taken back here (P19)."""
    if not (taken_back := await db.fetch(usage.ALSO_SET_BY_OTHERS, inverse)):
        return
    writes = await writes_of(db, "edges", [edge for _, _, edge in taken_back], ["strength"], inverse)
    rounds: list[dict[tuple[UUID, Place], UndoneBefore]] = []
    for plan_id, number, edge in taken_back:
        undoings = {write.place for write in writes[edge] if write.undoes is not None}
        for later in standing_since(writes[edge], (plan_id, number)):
            if later not in undoings:
                _in_a_round_of_its_own(rounds, (edge, later), (edge, plan_id, number, *later))
    for together in rounds:
        await db.run(usage.FOUND_WITHOUT, *map(list, zip(*together.values(), strict=True)))


def _in_a_round_of_its_own(
    rounds: list[dict[tuple[UUID, Place], UndoneBefore]], change: tuple[UUID, Place], told: UndoneBefore
) -> None:
    """One statement writes a change once: who is told of several decisions is told of them one after the other."""
    free = next((together for together in rounds if change not in together), None)
    if free is None:
        rounds.append(free := {})
    free[change] = told


async def _note_what_was_found(db: Transaction, plan_id: UUID) -> None:
    """Where a plan takes back an undo, what that brings again has found the use of this time (P19)."""
    await db.run(usage.FOUND_AGAIN, plan_id)


async def _taken_back_by(db: Transaction, undoing: UUID, numbers: Iterable[int]) -> dict[UUID, list[int]]:
    """The decisions that some decisions of an undo are about, by plan; none where it is no undo."""
    taken_back: dict[UUID, list[int]] = defaultdict(list)
    for plan, number in await db.fetch(TAKEN_BACK_BY, undoing, list(numbers)):
        taken_back[plan].append(number)
    return taken_back


async def _explain(db: Transaction, obstacles: Mapping[Place, Obstacle], blockers: Mapping[Place, Place]) -> str:
    """Why an undo does not fit any more: the later plan that must be undone first, or what else has moved."""
    for decision, (plan_id, _) in blockers.items():
        plan, obstacle = await kept.head(db, plan_id), obstacles[decision]
        return (
            f"{obstacle.id} was changed since by the plan {plan.id} ({plan.title}): {obstacle.reason}. Undo that one "
            "first, or this one with all that came later. Nothing changed."
        )
    obstacle = next(iter(obstacles.values()))
    return f"{obstacle.id} has changed in the meantime: {obstacle.reason}. Nothing changed."
