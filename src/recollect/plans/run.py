"""Running a policy: propose, and apply at once what may be applied without asking; the rest waits for a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.graph.sql import edges
from recollect.plan import Outcome, Plan, PlanStatus, Risk
from recollect.plans import notices
from recollect.plans.apply import Progress, apply
from recollect.plans.propose import is_announced, propose
from recollect.plans.registry import policy_named
from recollect.plans.sql import plans
from recollect.ports import Notice
from recollect.wording import counted

NOTHING_TO_DO = "There is nothing to do."
DECLINED_BEFORE = "Everything in it was declined before: `recollect plan accept` takes that back."
NOBODY_HEARD = "somebody is to hear of it first, and nobody could be reached"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tidied:
    """What a run of a policy came to: the plan, and what became of it; no outcome means that it waits."""

    plan: Plan
    outcome: Outcome | None
    notes: tuple[str, ...] = ()


async def run(
    core: Core,
    space_id: UUID,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    created_by: str = "user",
    progress: Progress | None = None,
) -> Tidied:
    """Propose, and apply at once where the risk allows it (P03); else the plan waits."""
    plan = await propose(core, space_id, name, options, created_by=created_by)
    if not plan.counts.get("proposed") or not applies_by_itself(core, plan):
        return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    return await carry_out(core, space_id, plan, by=created_by, progress=progress)


async def carry_out(
    core: Core,
    space_id: UUID,
    plan: Plan,
    *,
    decline: Sequence[int] = (),
    by: str = "user",
    progress: Progress | None = None,
) -> Tidied:
    """Apply a plan that may be applied without asking; who must hear of it beforehand is told first, else it waits."""
    if plan.status is PlanStatus.PROPOSED and is_announced(policy_named(plan.policy), plan):
        notified = await notices.tell(core, await _announcement(core, space_id, plan))
        if not notices.reached_anybody(notified):
            async with core.transaction(space_id) as db:
                await plans.note(db, plan.id, "waits", NOBODY_HEARD)
            plan = replace(plan, summary={**plan.summary, "waits": NOBODY_HEARD})
            return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    outcome = await apply(core, space_id, plan.id, decline=decline, by=by, progress=progress)
    return Tidied(plan=plan, outcome=outcome)


async def apply_within(
    core: Core, space_id: UUID, plan_id: UUID, most: Risk, *, decline: Sequence[int] = (), by: str = "user"
) -> Tidied:
    """Apply a plan that is not too risky to be applied with no person asked, or that a person approved; else it waits.

    `most` is the risk that whoever asks is trusted with; the settings of the house and the brake bind them besides.
    """
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id)
    is_safe = plan.risk is Risk.LOW or most is Risk.HIGH
    if plan.status is PlanStatus.PROPOSED and not (is_safe and applies_by_itself(core, plan)):
        return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    return await carry_out(core, space_id, plan, decline=decline, by=by)


async def _announcement(core: Core, space_id: UUID, plan: Plan) -> Notice:
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
    short = str(plan.id)[:8]
    return Notice(
        kind="before",
        title="About to be applied",
        text=f"{plan.title}. `recollect plan show {short}` shows it, `recollect undo {short}` takes it back.",
        space=space.slug,
        at=core.now(),
        facts={"plan_id": str(plan.id), "policy": plan.policy, "summary": dict(plan.summary)},
    )


def applies_by_itself(core: Core, plan: Plan) -> bool:
    """Low risk does; high risk only outside production, and never when the brake is on."""
    return plan.risk is Risk.LOW or (not core.settings.production and "waits" not in plan.summary)


def _why_it_waits(plan: Plan) -> tuple[str, ...]:
    if not plan.decisions and not plan.counts:
        return (NOTHING_TO_DO,)
    if plan.status is PlanStatus.DECLINED:
        return (DECLINED_BEFORE,)
    return (f"The plan waits for approval: {plan.summary.get('waits', 'its risk is high')}.",)


async def gate(core: Core, space_id: UUID) -> str | None:
    """Why scheduled tidying of the graph would not run yet (A27); None when it may."""
    settings = core.settings
    if not settings.graph_enabled:
        return "the graph is switched off (RECOLLECT_GRAPH_ENABLED)"
    async with core.transaction(space_id) as db:
        number, first = await edges.graph_age(db)
    if number < settings.gate_min_edges:
        return f"the graph has {counted(number, 'edge')}, fewer than {settings.gate_min_edges}"
    days = (core.now() - first).total_seconds() / 86_400 if first else 0.0
    if days < settings.gate_min_days:
        age = counted(int(days), "day") if days >= 1 else "less than a day"
        return f"the graph is {age} old, and schedules wait for {settings.gate_min_days:g} days"
    return None
