"""Showing: plans and edges with the short names of what they are about, so that a person can judge them.

A plan is shown in stretches, since it may have hundreds of thousands of decisions. What concerns all of it (tally,
findings, warnings) comes with the first stretch.
"""

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any
from uuid import UUID

from recollect.engine.core import Core
from recollect.graph.rules import strength
from recollect.graph.rules.labels import shortened
from recollect.model import Edge
from recollect.plan import Change, Decision, DecisionStatus, Finding, Plan, PlanStatus, Risk, Run
from recollect.plans.registry import POLICIES
from recollect.plans.rules.plan_text import Tally, edge_label, name_in, short_name
from recollect.plans.run import gate
from recollect.plans.sql import labels, plans
from recollect.plans.sql.labels import Ends
from recollect.store.database import Transaction

STRETCH = 1000
# A page has more room for a name than a terminal, and cuts it to what there is.
NAME_COLUMNS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownPlan(Plan):
    """A plan with a stretch of its decisions. `labels` name what the ids in it stand for; `next_after` leads on."""

    labels: Mapping[UUID, str] = field(default_factory=dict)
    tally: Tally | None = None
    warnings: tuple[str, ...] = ()
    next_after: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownEdge(Edge):
    """An edge with its name in words, and its strength of this moment (`strength` is as it was set)."""

    label: str
    strength_now: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyInfo:
    """What there is to know of a policy before it is asked: what it does, its options, and when it runs by itself."""

    name: str
    short: str
    about: str
    risk: Risk
    options: Mapping[str, Any]
    every_minutes: int | None
    cron: str | None
    gated: bool


def policies() -> list[PolicyInfo]:
    return [
        PolicyInfo(
            name=policy.name,
            short=policy.short,
            about=policy.about,
            risk=policy.risk,
            options={option.name: _default(option) for option in fields(policy.options)},
            every_minutes=policy.every_minutes,
            cron=policy.cron,
            gated=policy.gated,
        )
        for policy in POLICIES.values()
    ]


def _default(option: Any) -> Any:
    return option.default if option.default is not MISSING else option.default_factory()


# -- plans


async def plan(
    core: Core,
    space_id: UUID,
    plan_id: UUID,
    *,
    after: int = 0,
    limit: int = STRETCH,
    status: DecisionStatus | None = None,
) -> ShownPlan:
    """A plan with the decisions that follow number `after`."""
    is_first = after == 0
    async with core.transaction(space_id) as db:
        head = await plans.head(db, plan_id)
        decisions = await plans.decisions_of(db, plan_id, after=after, limit=limit + 1, status=status)
        stretch, findings = decisions[:limit], head.findings if is_first else ()
        named = await _labels(db, stretch, findings)
        tally = await labels.tally(db, plan_id) if is_first else None
    values = {attribute.name: getattr(head, attribute.name) for attribute in fields(head)}
    return ShownPlan(
        **{**values, "decisions": stretch, "findings": findings},
        labels=named,
        tally=tally,
        warnings=await warnings(core, space_id, head) if is_first else (),
        next_after=stretch[-1].number if len(decisions) > limit else None,
    )


async def stretches(
    core: Core, space_id: UUID, plan_id: UUID, *, status: DecisionStatus | None = None
) -> AsyncGenerator[ShownPlan]:
    """All of a plan, a stretch at a time."""
    after: int | None = 0
    while after is not None:
        shown = await plan(core, space_id, plan_id, after=after, status=status)
        yield shown
        after = shown.next_after


async def warnings(core: Core, space_id: UUID, plan: Plan) -> tuple[str, ...]:
    """What to know before a waiting plan is applied by hand: the brake, the risk, and the gate (P10, A27)."""
    if plan.status not in (PlanStatus.PROPOSED, PlanStatus.APPROVED) or not sum(plan.counts.values()):
        return ()
    lines = []
    if "waits" in plan.summary:
        lines.append(f"This plan waits for your approval: {plan.summary['waits']}. Look closely before you apply it.")
    policy = POLICIES.get(plan.policy)
    closed = await gate(core, space_id) if policy and policy.gated else None
    if closed:
        lines.append(f"The schedule would not run this yet: {closed}. You can still apply it.")
    return tuple(lines)


# -- edges


async def edges(core: Core, space_id: UUID, found_edges: Sequence[Edge]) -> list[ShownEdge]:
    now = core.now()
    async with core.transaction(space_id) as db:
        ends = {end for edge in found_edges for end in (edge.source, edge.target)}
        names = {id_: short_name(name) for id_, name in (await labels.nodes(db, ends)).items()}
    return [
        ShownEdge(
            **{attribute.name: getattr(edge, attribute.name) for attribute in fields(edge)},
            label=_edge(Ends(source=edge.source, relation=edge.relation, target=edge.target), names),
            strength_now=strength.current(
                edge.strength, edge.decay_rate, edge.last_reinforced_at or edge.created_at, now
            ),
        )
        for edge in found_edges
    ]


# -- labels


async def node_labels(core: Core, space_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    async with core.transaction(space_id) as db:
        return {id_: shortened(name, NAME_COLUMNS) for id_, name in (await labels.nodes(db, ids)).items()}


async def _labels(db: Transaction, decisions: Iterable[Decision], findings: Iterable[Finding]) -> dict[UUID, str]:
    """What the subjects and rows of some decisions and findings are called."""
    changed = [change for decision in decisions for change in decision.changes]
    ids = {change.id for change in changed} | {decision.subject for decision in decisions}
    ids |= {finding.subject for finding in findings if finding.subject is not None}
    ends = _ends_in(changed) | await labels.edges(db, ids)
    met = {end for edge in ends.values() for end in (edge.source, edge.target)}
    names = {change.id: short_name(name_in(change.after or change.before or {})) for change in changed}
    for look in (labels.nodes, labels.topics):
        found_names = await look(db, ids | met)
        names |= {id_: short_name(name) for id_, name in found_names.items()}
    named = {id_: names[id_] for id_ in ids if names.get(id_)}
    return named | {id_: _edge(edge, names) for id_, edge in ends.items()}


def _ends_in(changed: Iterable[Change]) -> dict[UUID, Ends]:
    """The edges that a plan makes or takes away: these need not be stored."""
    rows = {change.id: change.after or change.before or {} for change in changed if change.table == "edges"}
    return {
        id_: Ends(source=UUID(row["source"]), relation=row["relation"], target=UUID(row["target"]))
        for id_, row in rows.items()
        if {"source", "relation", "target"} <= row.keys()
    }


def _edge(ends: Ends, names: Mapping[UUID, str]) -> str:
    source, target = (names.get(end) or str(end) for end in (ends.source, ends.target))
    return edge_label(source, ends.relation, target)


async def runs(core: Core, space_id: UUID, *, plan_id: UUID | None = None, limit: int = 20) -> list[Run]:
    async with core.transaction(space_id) as db:
        return await plans.list_runs(db, plan_id=plan_id, limit=limit)


async def get_run(core: Core, space_id: UUID, run_id: UUID) -> Run:
    async with core.transaction(space_id) as db:
        return await plans.get_run(db, run_id)
