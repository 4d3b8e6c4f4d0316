"""Undoing: the plan turned round, applied by the same code, all or nothing (P07); and all that came later (P18)."""

import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.engine.core import Core
from recollect.plan import Outcome, TakenBack
from recollect.plans.sql import locks, plans
from recollect.plans.sql import undo as undoing
from recollect.store.database import Transaction


class _Foreseen(Exception):
    """What an undo would take back is known: it is not done."""


async def undo(
    core: Core,
    space_id: UUID,
    plan_id: UUID,
    *,
    decisions: Sequence[int] | None = None,
    by: str = "user",
    with_later: bool = False,
) -> Outcome:
    """Take back a plan, or some of its decisions: every row as it was, later use kept; or a named conflict.

    A merge of pages that took several tries is several plans: they are taken back together, the last first.
    """
    async with core.applying, core.transaction(space_id) as db:
        return await _undo_all(core, db, plan_id, decisions, by, with_later=with_later)


async def chain(
    core: Core, space_id: UUID, plan_id: UUID, *, decisions: Sequence[int] | None = None
) -> tuple[TakenBack, ...]:
    """What an undo with all that came later would take back, in order: it is done, looked at, and rolled back."""
    foreseen: tuple[TakenBack, ...] = ()
    try:
        async with core.applying, core.transaction(space_id) as db:
            foreseen = (await _undo_all(core, db, plan_id, decisions, "", with_later=True)).chain
            raise _Foreseen
    except _Foreseen:
        return foreseen


async def _undo_all(
    core: Core, db: Transaction, plan_id: UUID, decisions: Sequence[int] | None, by: str, *, with_later: bool
) -> Outcome:
    await locks.take_turn(db)
    tries = await plans.tries_of(db, plan_id) if decisions is None else []
    done = [await _undo(core, db, try_id, decisions, by, with_later=with_later) for try_id in tries or [plan_id]]
    taken_back = tuple(step for outcome in done for step in outcome.chain)
    return replace(done[-1], applied=sum(outcome.applied for outcome in done), chain=taken_back)


async def _undo(
    core: Core, db: Transaction, plan_id: UUID, decisions: Sequence[int] | None, by: str, *, with_later: bool
) -> Outcome:
    now = core.now()
    started = time.perf_counter()
    outcome = await undoing.undo(db, plan_id, now, numbers=decisions, created_by=by, with_later=with_later)
    if outcome.repeated:
        return outcome
    run_id = await plans.start_run(db, plan_id, "undo", {}, now)
    report = {
        "undone": outcome.applied,
        "by_plan": str(outcome.plan_id),
        "seconds": round(time.perf_counter() - started, 4),
    }
    await plans.note_run(db, run_id, report, status="done", finished_at=core.now())
    return replace(outcome, run_id=run_id)
