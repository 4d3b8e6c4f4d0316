"""Plans: how existing knowledge changes. Proposed, shown as they will be applied, approved, applied, taken back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Query, Request, Response
from pydantic import Field

from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating, Reading
from recollect.doors.api.memories import Cursor, Limit, Word
from recollect.doors.api.schemas import ID, WITH_BODY, RequestBody, examples, problems
from recollect.doors.running import Running
from recollect.model import Scope
from recollect.plan import DecisionStatus, HistoryEntry, Outcome, Plan, PlanStatus, Run, TakenBack
from recollect.plans.show import PolicyInfo, ShownPlan

router = access.router("plans", problems(409))

LAST_NUMBER = 2**31 - 1
# Who may take back what: a change by hand whoever may make one, everything else whoever may tidy.
SCOPES: Mapping[str, Scope] = {"hand": Scope.WRITE}
Id = Annotated[
    str,
    Path(pattern=ID, description="The UUID of a plan (a memory's history names them), or a unique beginning of it."),
]
NodeId = Annotated[str, Path(pattern=ID, description="The UUID of a node, or a unique beginning of it.")]
Number = Annotated[int, Field(ge=1, le=LAST_NUMBER)]


class ProposalIn(RequestBody):
    """Which policy is to propose, and how."""

    model_config = examples({"policy": "prune", "options": {"threshold": 0.1}})

    policy: Annotated[str, Field(min_length=1, max_length=100, description="A name of GET /policies, or its short.")]
    options: dict[str, Any] = Field(default={}, description="Options of the policy; those not given have defaults.")


class DeclineIn(RequestBody):
    """What to say no to: the whole plan, if no decisions are named."""

    model_config = examples({"decisions": [3, 8], "never": True})

    decisions: Annotated[list[Number] | None, Field(min_length=1, description="Their numbers.")] = None
    never: Annotated[bool, Field(description="Never propose to join these pairs again; else not for a while.")] = False


class AcceptIn(RequestBody):
    """What to accept again: all that was declined, if no decisions are named."""

    model_config = examples({"decisions": [3]})

    decisions: Annotated[list[Number] | None, Field(min_length=1, description="Their numbers.")] = None


class ApplyIn(RequestBody):
    """What not to apply."""

    model_config = examples({"decline": [3, 8]})

    decline: list[Number] = Field(default=[], description="Numbers of decisions to decline first.")


class UndoIn(RequestBody):
    """What to take back: the whole plan, if no decisions are named."""

    model_config = examples({"decisions": [3]})

    decisions: Annotated[list[Number] | None, Field(min_length=1, description="Their numbers.")] = None
    with_later: Annotated[
        bool, Field(description="Take back first what later plans changed on top of it, all as one plan.")
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanList:
    """A stretch of the plans, newest first, without their decisions; `next_cursor` leads on."""

    items: Sequence[Plan]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """A plan that is being applied. `url` tells how far it is."""

    plan_id: UUID
    run_id: UUID
    url: str


# -- looking


@router.get("/policies", summary="The ways of tidying there are")
async def list_policies(engine: Reading) -> Sequence[PolicyInfo]:
    """Each with its options and their defaults, its risk, and when it runs by itself."""
    return await engine.plans.policies()


@router.get("/plans", summary="List plans, newest first")
async def list_plans(
    engine: Reading,
    status: Annotated[PlanStatus | None, Query(description="Only those that came to this.")] = None,
    policy: Annotated[Word | None, Query(description="Only of this policy.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> PlanList:
    items, more = await engine.plans.list(status=status, policy=policy, limit=limit, cursor=cursor)
    return PlanList(items=items, next_cursor=more)


@router.get("/plans/{id}", summary="A plan: its decisions, why, and every row before and after")
async def get_plan(
    id: Id,
    engine: Reading,
    after: Annotated[int, Query(ge=0, le=LAST_NUMBER, description="`next_after` of the stretch before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many decisions.")] = 100,
    status: Annotated[DecisionStatus | None, Query(description="Only decisions that came to this.")] = None,
) -> ShownPlan:
    """The decisions come in stretches; `labels` says what the ids in them stand for. Tally, findings and warnings come
    with the first stretch."""
    return await engine.plans.show(id, after=after, limit=limit, status=status)


@router.get("/runs", summary="What was applied and undone, newest first")
async def list_runs(
    engine: Reading,
    plan: Annotated[str | None, Query(pattern=ID, description="Only of this plan.")] = None,
    limit: Limit = 20,
) -> Sequence[Run]:
    return await engine.plans.runs(plan, limit=limit)


@router.get("/runs/{id}", summary="One run: how far it is, or its report")
async def get_run(id: Annotated[UUID, Path(description="The id of a run.")], engine: Reading) -> Run:
    """While it is running, `report` holds `done` of `total` decisions."""
    return await engine.plans.get_run(id)


@router.get("/nodes/{id}/history", summary="What happened to a node, when, why, and by which plan")
async def node_history(id: NodeId, engine: Reading) -> Sequence[HistoryEntry]:
    return await engine.history(await engine.node_id(id))


# -- deciding


@router.post("/plans", status_code=201, summary="Let a policy propose a plan", responses=WITH_BODY)
async def propose_plan(asked: ProposalIn, engine: Consolidating, caller: Asking, response: Response) -> ShownPlan:
    """Nothing is changed; the plan is saved, and can be shown, approved, declined and applied. `warnings` tells what
    to look at first: whether the brake is on, and why the schedule would not run it yet."""
    plan = await engine.plans.propose(asked.policy, asked.options, created_by=caller.name)
    response.headers["Location"] = f"/api/v1/plans/{plan.id}"
    return await engine.plans.show(plan.id)


@router.post("/plans/{id}/approve", summary="Say yes to a plan")
async def approve_plan(id: Id, engine: Consolidating, caller: Asking) -> Plan:
    """It is carried out by /apply."""
    return await engine.plans.approve(id, by=caller.name)


@router.post("/plans/{id}/decline", summary="Say no to a plan, or to some of its decisions", responses=WITH_BODY)
async def decline_plan(id: Id, engine: Consolidating, said: DeclineIn | None = None) -> Plan:
    """What needs a declined decision falls away with it. A declined merge is not proposed again for a while."""
    refusal = said or DeclineIn()
    return await engine.plans.decline(id, refusal.decisions, never=refusal.never)


@router.post(
    "/plans/{id}/accept", summary="Take back a no: declined decisions of a plan wait again", responses=WITH_BODY
)
async def accept_plan(id: Id, engine: Consolidating, said: AcceptIn | None = None) -> Plan:
    """While the plan waits. What a decision needs, and what had fallen away with it, comes back with it; a pair that
    was kept apart because of it may be proposed again."""
    return await engine.plans.accept(id, (said or AcceptIn()).decisions)


def running_of(request: Request) -> Running:
    running: Running = request.app.state.running
    return running


@router.post(
    "/plans/{id}/apply",
    summary="Carry a plan out",
    responses={**WITH_BODY, 202: {"model": Begun, "description": "It is being applied; `url` tells how far it is."}},
)
async def apply_plan(
    id: Id,
    engine: Consolidating,
    caller: Asking,
    response: Response,
    running: Annotated[Running, Depends(running_of)],
    what: ApplyIn | None = None,
    wait: Annotated[bool, Query(description="Answer when it is done, not already when it has begun.")] = True,
) -> Outcome | Begun:
    """Group by group, each as a whole or not at all; what has changed since it was proposed is reported as stale. An
    interrupted plan goes on, and applying twice is success. GET /runs shows how far it is meanwhile."""
    apply = partial(engine.plans.apply, id, decline=(what or ApplyIn()).decline, by=caller.name)
    if wait:
        return await apply()
    begun = await running.begin(apply)
    if isinstance(begun, Outcome):
        return begun
    url = f"/api/v1/runs/{begun}"
    response.status_code, response.headers["Location"] = 202, url
    run = await engine.plans.get_run(begun)
    assert run.plan_id is not None, "applying is of a plan"
    return Begun(plan_id=run.plan_id, run_id=begun, url=url)


@router.post("/plans/{id}/undo", summary="Take a plan back, or some of its decisions", responses=WITH_BODY)
async def undo_plan(id: Id, engine: access.Changing, caller: Asking, what: UndoIn | None = None) -> Outcome:
    """Every row is as it was; what happened since (counts, other changes) stays. Undoing twice is success. Where a
    later change stands in the way, 409 names it and nothing is changed. An undo is a plan itself: it can be undone.

    A change made by hand is taken back with the scope write, as it was made; everything else needs consolidate, and so
    does `with_later`, whatever kinds of plan it meets."""
    plan = await engine.plans.get(id, decisions=False)
    asked = what or UndoIn()
    scope = Scope.CONSOLIDATE if asked.with_later else SCOPES.get(plan.policy, Scope.CONSOLIDATE)
    caller.need(scope, engine.space.slug)
    return await engine.plans.undo(plan.id, decisions=asked.decisions, by=caller.name, with_later=asked.with_later)


@router.get("/plans/{id}/undo", summary="What taking a plan back would take along")
async def undo_chain(
    id: Id,
    engine: access.Changing,
    decisions: Annotated[list[Number] | None, Query(description="Only these of its decisions.")] = None,
) -> Sequence[TakenBack]:
    """The plans that changed the same on top of it, in the order in which an undo `with_later` takes them back, and the
    plan itself at the end. Nothing is changed."""
    return await engine.plans.undo_chain(id, decisions=decisions)
