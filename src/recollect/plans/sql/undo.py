"""Undo: a plan is turned round, what came last first, and the plan that takes it back is carried out like any other."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from recollect.errors import Conflict, InvalidInput
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus, falling_with, levels, overall, turned_round
from recollect.plans.sql import changes
from recollect.plans.sql import plans as kept
from recollect.plans.sql.work import Work
from recollect.store.database import Transaction, driver

# What came last goes first, all of it in one group.
TURNED_DECISIONS = """
INSERT INTO decisions (space_id, plan_id, number, group_number, verb, subject, reason, score, factors, status,
                       applied_at, undoes)
SELECT space_id, $3, $5 - number, 0, 'undo', subject, 'takes back: ' || reason, score, factors, 'applied', $6, number
  FROM decisions WHERE space_id = $1 AND plan_id = $2 AND number = ANY($4::text::int[])
"""
# What was merged comes out of its keeper only while that is no part of anything else itself: the later merge must be
# undone first. (Each is looked up by its key; a join would be planned as if a plan had a handful of decisions.)
MERGES = "space_id = $1 AND plan_id = $2 AND table_name = 'nodes' AND after->>'merged_into' IS NOT NULL"
TURNED_MERGES = f"""
UPDATE decisions d SET premises = (
    SELECT jsonb_agg(jsonb_build_object('table', 'nodes', 'id', after->>'merged_into',
                                        'must', jsonb_build_object('merged_into', NULL)))
      FROM changes WHERE {MERGES} AND decision = $4 - d.number)
 WHERE d.space_id = $1 AND d.plan_id = $3 AND d.number = ANY(ARRAY(SELECT $4 - decision FROM changes WHERE {MERGES}))
"""
TURNED_NEEDS = """
UPDATE decisions d SET stage = t.stage, needs = string_to_array(t.needs, ',')::int[]
  FROM unnest($3::int[], $4::int[], $5::text[]) AS t(number, stage, needs)
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.number = t.number
"""
TURNED_CHANGES = """
INSERT INTO changes (space_id, plan_id, decision, number, table_name, row_id, before, after)
SELECT space_id, $3, $5 - decision, -number, table_name, row_id,
       CASE WHEN table_name = 'nodes' AND before IS NULL THEN jsonb_build_object('status', after->'status')
            ELSE after END,
       CASE WHEN table_name = 'nodes' AND before IS NULL THEN jsonb_build_object('status', 'archived')
            ELSE before END
  FROM changes WHERE space_id = $1 AND plan_id = $2 AND decision = ANY($4::text::int[])
 ORDER BY decision DESC, number DESC
"""


async def undo(
    db: Transaction,
    plan_id: UUID,
    now: datetime,
    *,
    numbers: Sequence[int] | None = None,
    created_by: str = "user",
) -> Outcome:
    """Take back a plan, or some of its decisions and what needs them, in this transaction. Repeating it is success."""
    plan = await kept.head(db, plan_id, lock=True)
    wanted = await _to_undo(db, plan, numbers)
    if not wanted:
        return Outcome(plan_id=plan.id, status=plan.status, applied=0, repeated=True)
    inverse, needs = await _turned_round(db, plan, wanted, now, created_by)
    with changes.said_in_words():
        work = Work(await driver(db), db.space_id, inverse, now, undoing=True)
        done = await work.carry_out(needs, levels(needs), {})
    if done.stale:
        raise Conflict(await _explain(db, plan, inverse, done.stale))
    wrong = await changes.dangling(db, inverse, done.applied) if "nodes" in done.tables else []
    if wrong:
        raise Conflict(f"{wrong[0][0].upper()}{wrong[0][1:]}. Nothing changed.")
    await changes.finish(db, inverse, now)
    await kept.mark(db, plan_id, dict.fromkeys(wanted), DecisionStatus.UNDONE)
    if numbers is None:
        await kept.leave_the_rest(db, plan_id)
    status = overall(await kept.recount(db, plan_id))
    await kept.set_status(db, plan_id, status, undone_at=now)
    if plan.undoes is not None:
        await _pass_on(db, plan, wanted, now)
    return Outcome(plan_id=inverse, status=PlanStatus.APPLIED, applied=len(wanted))


async def _to_undo(db: Transaction, plan: Plan, numbers: Sequence[int] | None) -> list[int]:
    """The applied decisions that are meant, with those that need them."""
    raw = await driver(db)
    rows = await raw.fetch(
        "SELECT number, status FROM decisions WHERE space_id = $1 AND plan_id = $2", db.space_id, plan.id
    )
    states = {row["number"]: row["status"] for row in rows}
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
    meant = falling_with(meant, await kept.needs_of(db, plan.id))
    return sorted(number for number in meant if states[number] == "applied")


async def _turned_round(
    db: Transaction, plan: Plan, wanted: Sequence[int], now: datetime, created_by: str
) -> tuple[UUID, dict[int, list[int]]]:
    """Save the plan that takes the wanted decisions back, the last first, each row as it was; and which needs which.

    All of it is carried out in this transaction or none of it: its decisions are saved as applied.

    A node that a plan made is archived by its undo, for what was written is never deleted (P08).
    """
    raw = await driver(db)
    title = f"Undo of {plan.title}" if plan.undoes is None else f"{plan.title}, taken back"
    inverse = Plan(
        id=uuid4(),
        policy="undo",
        title=title,
        created_at=now,
        created_by=created_by,
        undoes=plan.id,
        decisions=(),
    )
    await kept.save(db, inverse, status=PlanStatus.APPROVED)
    beyond = max(wanted) + 1
    numbers = (db.space_id, plan.id, inverse.id, kept.listed(wanted), beyond)
    needs = turned_round(wanted, await kept.needs_of(db, plan.id), beyond)
    await raw.execute(TURNED_DECISIONS, *numbers, now)
    await raw.execute(TURNED_MERGES, db.space_id, plan.id, inverse.id, beyond)
    await raw.execute(TURNED_CHANGES, *numbers)
    stages, waiting = levels(needs), [number for number, needed in needs.items() if needed]
    if waiting:
        told = [stages[number] for number in waiting], [",".join(map(str, needs[number])) for number in waiting]
        await raw.execute(TURNED_NEEDS, db.space_id, inverse.id, waiting, *told)
    return inverse.id, needs


async def _pass_on(db: Transaction, undoing: Plan, wanted: Sequence[int], now: datetime) -> None:
    """Taking back an undo makes the decisions it had taken back stand again; if they were an undo themselves, those
    that they had taken back fall once more, and so on to the plan at the beginning."""
    plan, numbers, fate = undoing, list(wanted), DecisionStatus.APPLIED
    while plan.undoes is not None:
        numbers = await _taken_back_by(db, plan, numbers)
        await kept.mark(db, plan.undoes, dict.fromkeys(numbers), fate)
        stands = fate is DecisionStatus.APPLIED
        await kept.set_status(
            db, plan.undoes, overall(await kept.recount(db, plan.undoes)), undone_at=None if stands else now
        )
        plan, fate = await kept.head(db, plan.undoes), DecisionStatus.UNDONE if stands else DecisionStatus.APPLIED


async def _taken_back_by(db: Transaction, undoing: Plan, numbers: Sequence[int]) -> list[int]:
    """The decisions that some decisions of an undo are about, by their numbers in the plan that it undoes."""
    raw = await driver(db)
    rows = await raw.fetch(
        "SELECT undoes FROM decisions WHERE space_id = $1 AND plan_id = $2 AND number = ANY($3)",
        db.space_id,
        undoing.id,
        list(numbers),
    )
    return [row["undoes"] for row in rows]


async def _explain(db: Transaction, plan: Plan, inverse: UUID, stale: Mapping[int, str]) -> str:
    """Why an undo does not fit any more: the later plan that must be undone first, or what else has moved."""
    raw = await driver(db)
    row = await raw.fetchrow(
        """WITH mine AS MATERIALIZED (
               SELECT row_id FROM changes WHERE space_id = $1 AND plan_id = $2 AND decision = ANY($3)
                UNION SELECT (p->>'id')::uuid FROM decisions, jsonb_array_elements(premises) p
                       WHERE space_id = $1 AND plan_id = $2 AND number = ANY($3))
           SELECT mine.row_id, p.id, p.title FROM mine
             JOIN changes later ON later.space_id = $1 AND later.row_id = mine.row_id
             JOIN decisions d ON d.space_id = $1 AND d.plan_id = later.plan_id AND d.number = later.decision
             JOIN plans p ON p.space_id = $1 AND p.id = later.plan_id
            WHERE d.status = 'applied'
              AND p.id <> $4 AND p.id <> $2 AND d.applied_at >= (SELECT coalesce(applied_at, created_at) FROM plans
                                                    WHERE space_id = $1 AND id = $4)
            ORDER BY d.applied_at DESC LIMIT 1""",
        db.space_id,
        inverse,
        list(stale),
        plan.id,
    )
    if row is not None:
        return (
            f"{row['row_id']} was changed since by the plan {row['id']} ({row['title']}): undo that one first. "
            "Nothing changed."
        )
    number, reason = next(iter(stale.items()))
    subject = await raw.fetchval(
        "SELECT subject FROM decisions WHERE space_id = $1 AND plan_id = $2 AND number = $3",
        db.space_id,
        inverse,
        number,
    )
    return f"{subject} has changed in the meantime: {reason}. Nothing changed."
