"""What a person said no to, and the way back: decisions declined and accepted again (P23), pairs kept apart for a while
(P11), and what is carried over to the plan that takes the place of another (P24)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select, text

from recollect.errors import Conflict, InvalidInput
from recollect.plan import DecisionStatus, overall
from recollect.plans.rules.needs import falling_with
from recollect.plans.sql import plans, questions
from recollect.store.database import Transaction, driver
from recollect.store.tables import decisions

FELL = "fell away with a declined decision"
CARRIED = "declined before, in the plan that this one replaces"
NO_DECISION = "The plan has no decision {}: `recollect plan show` numbers them."
# Whoever proposes next waits until this transaction is over: two at once would leave two waiting plans.
HOLD = "SELECT pg_advisory_xact_lock(hashtextextended('recollect propose ' || $1::uuid || ' ' || $2, 0))"
WAITING = """
SELECT id FROM plans WHERE space_id = $1 AND policy = $2 AND options = $3::jsonb AND status = 'proposed' AND id <> $4
 ORDER BY created_at
"""
# What was declined there by a person (not what fell away, or was left behind), and is proposed here again.
SAID_NO = """
SELECT DISTINCT d.number FROM decisions d JOIN decisions o ON o.space_id = $1 AND o.plan_id = ANY($3)
       AND o.verb = d.verb AND o.subject = d.subject
 WHERE d.space_id = $1 AND d.plan_id = $2 AND o.status = 'declined' AND (o.note IS NULL OR o.note = $4)
"""


async def decline(
    db: Transaction, plan_id: UUID, numbers: Sequence[int], *, alone: bool = False, note: str | None = None
) -> set[int]:
    """Decline decisions that wait, and unless they go `alone` all that needs them; returns every number declined."""
    fallen = set(numbers) if alone else falling_with(numbers, await plans.needs_of(db, plan_id))
    states = await _states(db, plan_id, fallen)
    missing = sorted(set(numbers) - states.keys())
    if missing:
        raise InvalidInput(
            f"The plan has no decision {missing[0]}: `recollect plan show` numbers them.", field="decline"
        )
    done = sorted(n for n, state in states.items() if state not in ("proposed", "declined"))
    if done:
        raise Conflict(f"Decision {done[0]} is {states[done[0]]} already: only a waiting decision can be declined.")
    await plans.mark(db, plan_id, dict.fromkeys(numbers, note), DecisionStatus.DECLINED)
    along = dict.fromkeys(fallen - set(numbers), FELL)
    await plans.mark(db, plan_id, along, DecisionStatus.DECLINED)
    await plans.recount(db, plan_id)
    return fallen


async def _states(db: Transaction, plan_id: UUID, numbers: Iterable[int]) -> dict[int, str]:
    statement = (
        select(decisions.c.number, decisions.c.status)
        .where(decisions.c.space_id == db.space_id, decisions.c.plan_id == plan_id)
        .where(text("decisions.number = ANY(:numbers)").bindparams(numbers=list(numbers)))
    )
    return {row.number: row.status for row in await db.execute(statement)}


async def accept(db: Transaction, plan_id: UUID, numbers: Sequence[int] | None) -> set[int]:
    """Declined decisions wait again, with what they need and what had fallen away with them; returns their numbers."""
    declined = await _declined(db, plan_id)
    chosen = set(declined if numbers is None else numbers)
    states = await _states(db, plan_id, chosen)
    if missing := sorted(chosen - states.keys()):
        raise InvalidInput(NO_DECISION.format(missing[0]), field="decisions")
    if ended := sorted(number for number, state in states.items() if state not in ("proposed", "declined")):
        raise Conflict(f"Decision {ended[0]} is {states[ended[0]]} already: only a declined one can be accepted again.")
    needs = await plans.needs_of(db, plan_id)
    back = _with_needed(chosen & declined.keys(), needs, declined)
    back = _with_fallen(back, needs, declined)
    await plans.mark(db, plan_id, dict.fromkeys(back), DecisionStatus.PROPOSED)
    return back


def _with_needed(back: set[int], needs: Mapping[int, Sequence[int]], declined: Mapping[int, str | None]) -> set[int]:
    more = {needed for number in back for needed in needs.get(number, ()) if needed in declined} - back
    return _with_needed(back | more, needs, declined) if more else back


def _with_fallen(back: set[int], needs: Mapping[int, Sequence[int]], declined: Mapping[int, str | None]) -> set[int]:
    """What fell away comes back as soon as nothing that it needs is declined any more."""
    more = {
        number
        for number, note in declined.items()
        if note == FELL and number not in back and not (set(needs.get(number, ())) & (declined.keys() - back))
    }
    return _with_fallen(back | more, needs, declined) if more else back


async def _declined(db: Transaction, plan_id: UUID) -> dict[int, str | None]:
    mine = (decisions.c.space_id == db.space_id) & (decisions.c.plan_id == plan_id)
    statement = select(decisions.c.number, decisions.c.note).where(mine, decisions.c.status == DecisionStatus.DECLINED)
    return {row.number: row.note for row in await db.execute(statement)}


# -- one waiting plan a policy and options (P24)


async def waiting_like(db: Transaction, plan_id: UUID, policy: str, options: Mapping[str, Any]) -> list[UUID]:
    """The other plans of a policy, asked the same, that wait for a person; from here on nobody else saves one."""
    await db.run(HOLD, policy)
    rows = await db.fetch(WAITING, policy, json.dumps(dict(options)), plan_id)
    return [row["id"] for row in rows]


async def carry_over(db: Transaction, olds: Sequence[UUID], new: UUID) -> set[int]:
    """Take the place of older plans: what was declined there is declined here. Returns those numbers."""
    if not olds:
        return set()
    rows = await db.fetch(SAID_NO, new, list(olds), CARRIED)
    said_no = await decline(db, new, [row["number"] for row in rows], note=CARRIED) if rows else set()
    for old in olds:
        await leave_to(db, old, new)
        await plans.note(db, old, "superseded_by", str(new))
    return said_no


async def leave_to(db: Transaction, old: UUID, new: UUID) -> None:
    """What waits in a plan is left to the one that takes its place."""
    waiting = [
        decision.number
        for status in (DecisionStatus.PROPOSED, DecisionStatus.FAILED)
        for decision in await plans.decisions_of(db, old, status=status, with_changes=False)
    ]
    await plans.mark(db, old, dict.fromkeys(waiting, f"the plan {new} takes its place"), DecisionStatus.DECLINED)
    await plans.set_status(db, old, overall(await plans.recount(db, old)))


# -- pairs that a person keeps apart (P11)


async def keep_apart(
    db: Transaction,
    pairs: Iterable[tuple[str, str, str | None]],
    *,
    now: datetime,
    days: float | None,
    reason: str,
) -> None:
    """Remember pairs (a, b, state) as distinct: for some days and while both stay as they are, or for good (None)."""
    raw = await driver(db)
    rows = [(min(a, b), max(a, b), None if days is None else state) for a, b, state in pairs]
    until = None if days is None else now + timedelta(days=days)
    await raw.executemany(
        """INSERT INTO never_merge (space_id, a, b, state, until, reason, created_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)
           ON CONFLICT (space_id, a, b) DO UPDATE SET state = excluded.state, until = excluded.until,
               reason = excluded.reason WHERE never_merge.until IS NOT NULL""",
        [(db.space_id, a, b, state, until, reason, now) for a, b, state in rows],
    )
    await questions.close(db, [(a, b) for a, b, _ in rows], "never" if days is None else "separate", now)


async def let_again(db: Transaction, pairs: Iterable[tuple[str, str]], *, reason: str | None = None) -> None:
    """Pairs that were kept apart for this reason, or for any, may be offered again."""
    some = [tuple(sorted(pair)) for pair in pairs]
    await db.run(
        """DELETE FROM never_merge n USING unnest($2::text[], $3::text[]) AS p(a, b)
            WHERE n.space_id = $1 AND n.a = p.a AND n.b = p.b AND ($4::text IS NULL OR n.reason = $4)""",
        [a for a, _ in some],
        [b for _, b in some],
        reason,
    )
