"""The only writer of what exists already: carries out the decisions of saved plans, those of an undo (undo.py) too.

A group of decisions is one transaction: the rows are locked and compared with what the plan saw (`before`, premises),
then written (`after`). A decision whose world has moved drops out as stale, with all that needs it; the others of its
group stand or fall together (work.py).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.errors import Busy, Conflict
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus, levels, overall
from recollect.plans.sql import plans as kept
from recollect.plans.sql.work import AppliedGroups, Work
from recollect.store.database import Transaction, driver


async def apply(db: Transaction, plan: Plan, now: datetime) -> Outcome:
    """Save a plan and carry it out, all in this transaction; Conflict (and nothing changed) if the world moved."""
    await kept.save(db, plan, status=PlanStatus.APPROVED)
    for group in await kept.groups_to_do(db, plan.id):
        done = await apply_groups(db, plan.id, [group], now)
        for number, reason in done.stale.items():
            raise Conflict(
                f"{plan.decisions[number - 1].subject} has changed in the meantime: {reason}. Nothing changed."
            )
    await finish(db, plan.id, now)
    return Outcome(plan_id=plan.id, status=PlanStatus.APPLIED, applied=len(plan.decisions))


async def apply_groups(
    db: Transaction, plan_id: UUID, groups: Sequence[kept.PlanGroup], now: datetime
) -> AppliedGroups:
    """Carry out the waiting decisions of groups that follow each other, in this transaction: all of it, or none."""
    work = Work(await driver(db), db.space_id, plan_id, now)
    waiting = await work.waiting(groups)
    needs = {row["number"]: row["needs"] for row in waiting}
    stages = levels(needs) if len(groups) > 1 else {row["number"]: row["stage"] for row in waiting}
    with said_in_words():
        done = await work.carry_out(needs, stages, await work.missing(needs))
    await kept.mark(db, plan_id, dict.fromkeys(done.applied), DecisionStatus.APPLIED, applied_at=now)
    await kept.mark(db, plan_id, done.stale, DecisionStatus.STALE)
    return done


@contextmanager
def said_in_words() -> Iterator[None]:
    try:
        yield
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        raise Busy("Somebody else is changing the same rows: try again.") from error
    except asyncpg.IntegrityConstraintViolationError as error:
        raise Conflict(
            f"The database refused a change: {error.message or error}. Nothing of its group changed."
        ) from error


async def dangling(db: Transaction, plan_id: UUID, numbers: Sequence[int]) -> list[str]:
    """The audit of every group: no living edge may hang on a node that was merged away."""
    raw = await driver(db)
    rows = await raw.fetch(
        """SELECT e.id FROM changes c JOIN nodes n ON n.space_id = $1 AND n.id = c.row_id AND n.status = 'merged'
             JOIN edges e ON e.space_id = $1 AND e.status = 'active' AND (e.source = n.id OR e.target = n.id)
            WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = ANY($3) AND c.table_name = 'nodes' LIMIT 3""",
        db.space_id,
        plan_id,
        list(numbers),
    )
    return [f"the edge {row['id']} would hang on a node that was merged away" for row in rows]


async def finish(db: Transaction, plan_id: UUID, now: datetime) -> dict[str, int]:
    """Note what became of a plan as a whole; returns how many of its decisions are in which state."""
    counted = await kept.recount(db, plan_id)
    applied_at = {"applied_at": now} if counted.get("applied") else {}
    await kept.set_status(db, plan_id, overall(counted), **applied_at)
    return counted
