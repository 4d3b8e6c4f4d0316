"""Proposing: a policy reads one snapshot and returns a plan, which is saved; nothing else is written (P02)."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from recollect.engine.core import Core
from recollect.errors import InvalidInput
from recollect.plan import DecisionStatus, Plan, PlanStatus, Risk
from recollect.plans import notices, process
from recollect.plans.policy import Policy
from recollect.plans.registry import policy_named
from recollect.plans.sql import declined, looks, plans, questions
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction
from recollect.wording import cannot_be

# A space of more nodes than this takes long enough to look through for others to notice.
LARGE = 2_000
HAND, UNDO = "hand", "undo"
NOBODY_IS_TOLD = "somebody is to hear of it first, and nobody is told (RECOLLECT_NOTIFY)"


async def propose(
    core: Core,
    space_id: UUID,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    created_by: str = "user",
) -> Plan:
    """Let a policy propose a plan, and keep it. The plan returned is the very one that can be shown and applied."""
    policy = policy_named(name)
    chosen = options_of(policy, options or {})
    proposed = await _proposed(core, space_id, policy, chosen)
    # A plan without decisions has nothing to wait for.
    status = PlanStatus.PROPOSED if proposed.decisions else PlanStatus.APPLIED
    plan = _braked(core, replace(proposed, created_by=created_by, status=status))
    plan = _needs_telling(core, policy, plan)
    async with core.transaction(space_id) as db:
        if plan.questions:
            await questions.keep(db, plan.questions, core.now())
        return await _kept(db, plan)


async def _kept(db: Transaction, plan: Plan) -> Plan:
    """Saved in the place of those that wait, if it says anything; a run that found nothing is no plan (P24)."""
    if not plan.decisions:
        await looks.note(db, plan)
        return plan
    olds = await declined.waiting_like(db, plan.id, plan.policy, plan.options)
    await plans.save(db, plan, status=plan.status)
    said_no = await declined.carry_over(db, olds, plan.id)
    return await _less(db, plan, said_no) if said_no else replace(plan, counts={"proposed": len(plan.decisions)})


async def _less(db: Transaction, plan: Plan, said_no: Collection[int]) -> Plan:
    """The plan with what was declined in the one before it."""
    counts = await plans.recount(db, plan.id)
    if not counts.get("proposed"):
        await plans.set_status(db, plan.id, PlanStatus.DECLINED)
    decisions = await plans.decisions_of(db, plan.id, numbers=sorted(said_no), with_changes=False)
    notes = {decision.number: decision.note for decision in decisions}
    return replace(
        plan,
        counts=counts,
        status=plan.status if counts.get("proposed") else PlanStatus.DECLINED,
        decisions=[
            replace(decision, status=DecisionStatus.DECLINED, note=notes[decision.number])
            if decision.number in notes
            else decision
            for decision in plan.decisions
        ],
    )


async def looked_through(core: Core, space_id: UUID, name: str) -> Plan:
    """What a policy would propose now, with its usual options; nothing is kept of it but its questions."""
    policy = policy_named(name)
    plan = await _proposed(core, space_id, policy, policy.options())
    async with core.transaction(space_id) as db:
        await questions.keep(db, plan.questions, core.now())
    return plan


async def _proposed(core: Core, space_id: UUID, policy: Policy, chosen: Any) -> Plan:
    """What a policy says, with its name, its risk and its options on it."""
    plan = await _said(core, space_id, policy, chosen)
    return replace(plan, policy=policy.name, risk=policy.risk, options=asdict(chosen))


async def _said(core: Core, space_id: UUID, policy: Policy, chosen: Any) -> Plan:
    """A server has a large space looked through by a process of its own."""
    async with core.database.snapshot(space_id) as db:
        reader = StoreReader(db, core.executor)
        if not (core.serves and await reader.count_nodes() > LARGE):
            plan = await policy.propose(reader, chosen, core.now())
            return replace(plan, seen=await reader.version())
    async with core.beside:
        asked = process.ProposalRequest(
            dsn=core.database.dsn,
            space_id=space_id,
            policy=policy.name,
            options=chosen,
            now=core.now(),
            ray=core.settings.ray,
        )
        return await process.proposed(asked)


def options_of(policy: Policy, given: Mapping[str, Any]) -> Any:
    """A policy's options, checked: unknown names and values that do not fit are said plainly."""
    names = {field.name: field for field in fields(policy.options)}
    if unknown := sorted(set(given) - set(names)):
        raise InvalidInput(
            f"{policy.short} has no option {unknown[0]!r}: it has {', '.join(sorted(names))}.", field=unknown[0]
        )
    try:
        return _reader_of(policy).validate_python(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InvalidInput(f"{cannot_be(f'The option {name}', first)}.", field=name) from error


@cache
def _reader_of(policy: Policy) -> TypeAdapter[Any]:
    """Made once: making one takes longer than a small plan."""
    return TypeAdapter(policy.options)


def _braked(core: Core, plan: Plan) -> Plan:
    """P10: a plan that touches a large share of the graph waits for a person, whatever its policy's risk."""
    scope, touched = plan.summary.get("scope", {}), plan.summary.get("touched", {})
    share, least = core.settings.brake_share, core.settings.brake_at_least
    for kind, total in scope.items():
        part = touched.get(kind, 0)
        if total >= least and part > share * total:
            named = "links" if kind == "edges" else kind
            reason = f"it touches {part:,} of {total:,} {named} ({part / total:.0%}; the limit is {share:.0%})"
            return replace(plan, risk=Risk.HIGH, summary={**plan.summary, "waits": reason})
    return plan


def is_announced(policy: Policy, plan: Plan) -> bool:
    return policy.announces is not None and plan.summary.get(policy.announces, 0) > 0


def _needs_telling(core: Core, policy: Policy, plan: Plan) -> Plan:
    """E02: what somebody must hear of beforehand waits for a person where nobody can be told."""
    if "waits" in plan.summary or not is_announced(policy, plan) or notices.is_anybody_told(core):
        return plan
    return replace(plan, summary={**plan.summary, "waits": NOBODY_IS_TOLD})


async def anew(core: Core, space_id: UUID, plan: Plan, options: Mapping[str, Any], by: str) -> Plan:
    """A plan made again with other options; it takes the place of the first."""
    new_plan = await propose(core, space_id, plan.policy, options, created_by=by)
    async with core.transaction(space_id) as db:
        await declined.leave_to(db, plan.id, new_plan.id)
        await plans.note(db, plan.id, "replaced_by", str(new_plan.id))
    return new_plan


def policy_of(plan: Plan) -> Policy | None:
    """The policy that proposed a plan; a change by hand has none, nor has an undo."""
    return None if plan.policy in (HAND, UNDO) else policy_named(plan.policy)
