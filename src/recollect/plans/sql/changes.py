"""The only writer of what exists already: carries out the decisions of saved plans, those of an undo (undo.py) too.

A group of decisions is one transaction: the rows are locked and compared with what the plan saw (`before`, premises),
then written (`after`). A decision whose world has moved drops out as stale, with all that needs it; the others of its
group stand or fall together (work.py).
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.errors import Busy, Conflict
from recollect.logs import Logger
from recollect.plan import Change, DecisionStatus, Outcome, Plan, PlanStatus, overall
from recollect.plans.rules.needs import levels
from recollect.plans.sql import locks
from recollect.plans.sql import plans as kept
from recollect.plans.sql.work import AppliedGroups, Work
from recollect.store.connections import CROSSED
from recollect.store.database import Transaction, driver

log = Logger("recollect.plans")

# The columns that say where in the graph a row is.
PLACES = frozenset({"status", "merged_into", "source", "target"})
ROWS = {"edges": "an edge", "nodes": "a node", "topics": "a topic", "aliases": "an alias", "cases": "a case"}
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
REFUSALS: dict[type[Exception], str] = {
    asyncpg.UniqueViolationError: "is there already, as another",
    asyncpg.ForeignKeyViolationError: "belongs to something that is not there",
}
OURS = {"edges_end_at_living_nodes", "merged_nodes_have_no_edges"}
# What they say. A server that asks another hands on no more than that.
MERGED_AWAY = ", which was merged away"


async def apply(db: Transaction, plan: Plan, now: datetime) -> Outcome:
    """Save a plan and carry it out, all in this transaction; Conflict (and nothing changed) if the world moved."""
    await _hold_what_it_needs(db, plan)
    await kept.save(db, plan, status=PlanStatus.APPROVED)
    for group in await kept.groups_to_do(db, plan.id):
        done = await apply_groups(db, plan.id, [group], now)
        for number, reason in done.stale.items():
            raise Conflict(
                f"{plan.decisions[number - 1].subject} has changed in the meantime: {reason}. Nothing changed."
            )
    await finish(db, plan.id, now)
    return Outcome(plan_id=plan.id, status=PlanStatus.APPLIED, applied=len(plan.decisions))


async def _hold_what_it_needs(db: Transaction, plan: Plan) -> None:
    """Alone, the graph that a plan takes something out of; with others, one that it only adds to (P17)."""
    if any(is_loss(change) for change in plan.changes):
        await locks.hold_graph_alone(db)
    elif any(change.table == "edges" for change in plan.changes):
        await locks.hold_graph(db)


def is_loss(change: Change) -> bool:
    """Whether a change may take something out of the graph: an edge, one of its ends, or a node."""
    if change.table not in ("edges", "nodes") or change.before is None:
        return False
    return change.after is None or not PLACES.isdisjoint(change.after)


async def apply_groups(
    db: Transaction, plan_id: UUID, groups: Sequence[kept.PlanGroup], now: datetime
) -> AppliedGroups:
    """Carry out the waiting decisions of groups that follow each other, in this transaction: all of it, or none."""
    work = Work(await driver(db), db.space_id, plan_id, now)
    waiting = await work.waiting(groups)
    needs = {row["number"]: row["needs"] for row in waiting}
    stages = levels(needs) if len(groups) > 1 else {row["number"]: row["stage"] for row in waiting}
    with said_in_words(plan_id):
        done = await work.carry_out(needs, stages, await work.missing(needs))
    await kept.mark(db, plan_id, dict.fromkeys(done.applied), DecisionStatus.APPLIED, applied_at=now)
    await kept.mark(db, plan_id, done.stale, DecisionStatus.STALE)
    return done


@contextmanager
def said_in_words(plan_id: UUID) -> Iterator[None]:
    """P20: what a database says of a refusal is for a log; a person is told which row and which plan it is about."""
    try:
        yield
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError) as error:
        raise Busy(CROSSED) from error
    except asyncpg.IntegrityConstraintViolationError as error:
        log.warning("the database refused a change", plan=str(plan_id), why=error.message, detail=error.detail)
        raise Conflict(_refused(plan_id, error)) from error


def _refused(plan_id: UUID, error: asyncpg.IntegrityConstraintViolationError) -> str:
    """Which row a refusal is about is said by its key; of ours, by what they say themselves."""
    if error.constraint_name in OURS or error.message.endswith(MERGED_AWAY):
        return f"The plan {plan_id} was refused: {error.message}. Nothing of its group changed."
    row = ROWS.get(error.table_name or "", "a row")
    ids = ", ".join(dict.fromkeys(UUIDS.findall(error.detail or "")[-2:]))
    because = next((said for kind, said in REFUSALS.items() if isinstance(error, kind)), "says what it cannot say")
    return (
        f"The plan {plan_id} was refused: {row} that it writes{f' ({ids})' if ids else ''} {because}. "
        "Nothing of its group changed."
    )


async def finish(db: Transaction, plan_id: UUID, now: datetime) -> dict[str, int]:
    """Note what became of a plan as a whole; returns how many of its decisions are in which state."""
    counted = await kept.recount(db, plan_id)
    applied_at = {"applied_at": now} if counted.get("applied") else {}
    await kept.set_status(db, plan_id, overall(counted), **applied_at)
    return counted
