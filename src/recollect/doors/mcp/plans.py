"""Tidying: propose_consolidation, show_plan, apply_plan, undo_plan. A person has the last word on what is risky."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from recollect.doors.mcp import telling
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.telling import short
from recollect.doors.mcp.tools import ADDS, CHANGES_ONCE, READS, Budget, Packed, Told, tool
from recollect.doors.mcp.visits import Visit
from recollect.model import Scope
from recollect.plan import Outcome
from recollect.plans.rules.plan_text import lines_of, report_of, state_word, states_of
from recollect.plans.show import ShownPlan

# Who may take back what: a change by hand whoever may make one, everything else whoever may tidy.
BY_HAND = "hand"
STRETCH = 100
NOTHING_TO_DO = "nothing to do"
PLAN_TOKENS = 1500

Numbers = Annotated[list[int], Packed]


class ShownPlanText(BaseModel):
    id: str
    status: str
    risk: str
    decisions: list[str]
    warnings: list[str]
    next_after: int | None = None


class PlanDone(BaseModel):
    plan: str
    status: str
    applied: int
    problems: list[str]


@tool(Scope.CONSOLIDATE, hints=ADDS)
async def propose_consolidation(
    visit: Visit,
    *,
    policy: Annotated[str, Field(description="prune, merge-edges, topics, link, twins, duplicates, cases")],
    options: Annotated[dict[str, Any] | None, Packed] = None,
) -> Told[ShownPlanText]:
    """Ask a policy what it would tidy: a plan to read, nothing changes. Use it to clean up."""
    plan = await visit.memory.plans.propose(policy, options, created_by=visit.caller.name)
    return shown_plan(await visit.memory.plans.show(plan.id, limit=STRETCH), PLAN_TOKENS)


@tool(Scope.READ, hints=READS)
async def show_plan(
    visit: Visit,
    *,
    id: str,
    after: Annotated[int, Field(ge=0)] = 0,
    budget_tokens: Budget = PLAN_TOKENS,
) -> Told[ShownPlanText]:
    """Read a plan: decisions, reasons, outcome; + comes, ~ changes, - goes. Use it before apply_plan."""
    return shown_plan(await visit.memory.plans.show(id, after=after, limit=STRETCH), budget_tokens)


def shown_plan(plan: ShownPlan, budget: int) -> Told[ShownPlanText]:
    state = (
        f"{state_word(plan.status)}, {plan.risk} risk; {states_of(plan)}"
        if sum(plan.counts.values())
        else NOTHING_TO_DO
    )
    head = f"{plan.title}: plan {short(plan.id)}, {state}. {report_of(plan)}"
    warnings = [in_tools(warning) for warning in plan.warnings]
    lines = _fitting(plan, budget - telling.cost(" ".join([head, *warnings])))
    next_after = plan.decisions[len(lines) - 1].number if len(lines) < len(plan.decisions) else plan.next_after
    data = ShownPlanText(
        id=str(plan.id),
        status=plan.status,
        risk=plan.risk,
        decisions=lines,
        warnings=warnings,
        next_after=next_after,
    )
    more = [f"There is more: after={next_after}."] if next_after else []
    return Told(text="\n".join([head.strip(), *lines, *warnings, *more]), data=data)


def _fitting(plan: ShownPlan, room: int) -> list[str]:
    """The first decisions that fit, but at least one, so that it goes on."""
    most = max(telling.LEAST_TOKENS, room // telling.SHARES)
    texts = ["; ".join(_lines(plan, index)) for index in range(len(plan.decisions))]
    clipped = [telling.clipped(text, most) for text in texts]
    return telling.fitting_lines(clipped, room) or clipped[:1]


def _lines(plan: ShownPlan, index: int) -> list[str]:
    lines = lines_of(plan.decisions[index], plan.labels)
    first = lines[0]
    state = f" [{first.state}]" if first.state else ""
    return [
        f"{first.number} {first.sign} {first.what}: {first.why}{state}",
        *(f"{line.sign} {line.what} {line.why}".strip() for line in lines[1:]),
    ]


@tool(Scope.CONSOLIDATE, hints=CHANGES_ONCE)
async def apply_plan(
    visit: Visit,
    *,
    id: str,
    decline: Numbers | None = None,
    accept: Numbers | None = None,
) -> Told[PlanDone]:
    """Carry out a plan you have read, less those in decline; accept takes back a decline. Risky ones need a
    person."""
    if accept:
        await visit.memory.plans.accept(id, accept)
    tidied = await visit.memory.plans.apply_within(
        id, visit.caller.most_risk, decline=decline or (), by=visit.caller.name
    )
    if tidied.outcome is not None:
        return _done(tidied.outcome, f"undo_plan with id {short(tidied.plan.id)} takes it back.")
    plan = tidied.plan
    notes = in_tools(" ".join(tidied.notes))
    then = f"Tell them of plan {short(plan.id)}, then call apply_plan again."
    sentence = f"Not applied: a person must approve it. {notes} {then}"
    return Told(
        text=sentence,
        data=PlanDone(plan=str(plan.id), status=plan.status, applied=0, problems=["a person must approve it"]),
    )


@tool(Scope.CONSOLIDATE, Scope.WRITE, hints=CHANGES_ONCE)
async def undo_plan(
    visit: Visit,
    *,
    id: str,
    decisions: Numbers | None = None,
    with_later: bool = False,
) -> Told[PlanDone]:
    """Take back a plan or change; with_later: first what came on top."""
    plan = await visit.memory.plans.get(id, decisions=False)
    visit.need([Scope.WRITE if plan.policy == BY_HAND and not with_later else Scope.CONSOLIDATE])
    outcome = await visit.memory.plans.undo(plan.id, decisions=decisions, by=visit.caller.name, with_later=with_later)
    along = "".join(f" Before it: {short(step.id)} ({step.title})." for step in outcome.chain[:-1])
    return _done(outcome, f"It was plan {short(plan.id)}.{along}")


def _done(outcome: Outcome, hint: str) -> Told[PlanDone]:
    problems = [in_tools(problem) for problem in (*outcome.stale, *outcome.failed)]
    if not outcome.applied and not problems:
        data = PlanDone(plan=str(outcome.plan_id), status=NOTHING_TO_DO, applied=0, problems=[])
        return Told(text=f"There was {NOTHING_TO_DO}: everything is as it was.", data=data)
    data = PlanDone(
        plan=str(outcome.plan_id), status=outcome.status, applied=outcome.applied, problems=problems[:STRETCH]
    )
    counts = f"{outcome.applied:,} applied, {len(outcome.stale):,} stale, {len(outcome.failed):,} failed"
    return Told(text="\n".join([f"{outcome.status}: {counts}. {hint}", *problems[:10]]), data=data)


TOOLS = (propose_consolidation, show_plan, apply_plan, undo_plan)
