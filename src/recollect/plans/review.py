"""Saying yes or no: single decisions fall away, with what needs them; a declined pair is remembered (P11)."""

from collections.abc import Sequence
from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import Conflict
from recollect.plan import Decision, DecisionStatus, Plan, PlanStatus, overall
from recollect.plans.propose import policy_of
from recollect.plans.sql import declined, plans
from recollect.store.database import Transaction

DECLINED_IN = "declined in plan {}"


async def approve(core: Core, space_id: UUID, plan_id: UUID, *, by: str = "user") -> Plan:
    """Say yes to a plan; `apply` carries it out."""
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id, lock=True)
        _refuse_unless(plan, PlanStatus.PROPOSED, PlanStatus.APPROVED, what="approved")
        moments = {"approved_at": core.now(), "approved_by": by}
        await plans.set_status(db, plan_id, PlanStatus.APPROVED, **moments)
        return await plans.head(db, plan_id)


async def decline(
    core: Core, space_id: UUID, plan_id: UUID, numbers: Sequence[int] | None = None, *, never: bool = False
) -> Plan:
    """Decline a plan, or some of its decisions and what needs them; declined pairs are not offered again for a while.

    `never` makes the pairs of the named decisions distinct for good.
    """
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id, lock=True)
        if numbers is None:  # named decisions are looked at one by one: a no said before can still become a never
            _refuse_unless(plan, PlanStatus.PROPOSED, PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED, what="declined")
        await decline_in(core, db, plan, numbers, never=never)
        counted = await plans.recount(db, plan_id)
        if not counted.get("proposed"):
            await plans.set_status(db, plan_id, overall(counted))
        return await plans.head(db, plan_id)


async def accept(core: Core, space_id: UUID, plan_id: UUID, numbers: Sequence[int] | None = None) -> Plan:
    """Take back a no while the plan waits: all that was declined in it, or some decisions with what they need (P23).

    Their pairs may be offered again, also such as were to be kept apart for good.
    """
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id, lock=True)
        await _refuse_unless_open(db, plan)
        back = await declined.accept(db, plan_id, numbers)
        meant = await plans.decisions_of(db, plan_id, numbers=sorted(back), with_changes=False)
        pairs = [_pair(decision)[:2] for decision in meant if "pair" in decision.factors]
        await declined.let_again(db, pairs, reason=DECLINED_IN.format(plan_id))
        await plans.recount(db, plan_id)
        if back and plan.status is PlanStatus.DECLINED:
            await plans.set_status(db, plan_id, PlanStatus.PROPOSED)
        return await plans.head(db, plan_id)


async def _refuse_unless_open(db: Transaction, plan: Plan) -> None:
    """Open is what waits, as a whole or in part, and what was declined as a whole while nothing has replaced it."""
    if later := plan.summary.get("replaced_by") or plan.summary.get("superseded_by"):
        raise Conflict(f"The plan {plan.id} was replaced by {later}: look at that one.")
    if plan.status is not PlanStatus.DECLINED and not plan.counts.get("proposed"):
        raise Conflict(f"The plan {plan.id} is {plan.status}: nothing in it can be accepted again. Propose a new one.")
    if plan.status is PlanStatus.DECLINED:
        others = await declined.waiting_like(db, plan.id, plan.policy, plan.options)
        if others:
            raise Conflict(f"The plan {others[0]} of the same policy waits meanwhile: look at that one.")


async def decline_in(core: Core, db: Transaction, plan: Plan, numbers: Sequence[int] | None, *, never: bool) -> None:
    """What a declined decision takes with it is its policy's to say: it plans anew, or whatever needs it falls away."""
    waiting = DecisionStatus.PROPOSED if numbers is None else None
    meant = await plans.decisions_of(db, plan.id, numbers=numbers, status=waiting, with_changes=False)
    policy = policy_of(plan)
    alone = policy is not None and policy.without is not None
    await declined.decline(
        db, plan.id, [decision.number for decision in meant] if numbers is None else numbers, alone=alone
    )
    await _keep_apart(core, db, meant, DECLINED_IN.format(plan.id), never=never)


async def remember_declined(core: Core, space_id: UUID, plan_id: UUID, number: int) -> None:
    """P11 for a decision that was taken back on its own: whoever did so does not want it offered again at once."""
    async with core.transaction(space_id) as db:
        meant = await plans.decisions_of(db, plan_id, numbers=[number], with_changes=False)
        await _keep_apart(core, db, meant, f"taken back from plan {plan_id}", never=False)


async def _keep_apart(core: Core, db: Transaction, meant: Sequence[Decision], reason: str, *, never: bool) -> None:
    await declined.keep_apart(
        db,
        [_pair(decision) for decision in meant if "pair" in decision.factors],
        now=core.now(),
        days=None if never else core.settings.declined_days,
        reason=reason,
    )


def _pair(decision: Decision) -> tuple[str, str, str | None]:
    a, b = decision.factors["pair"]
    return str(a), str(b), decision.factors.get("state")


def _refuse_unless(plan: Plan, *statuses: PlanStatus, what: str) -> None:
    if plan.status not in statuses:
        raise Conflict(f"The plan {plan.id} is {plan.status}: it cannot be {what} any more.")
