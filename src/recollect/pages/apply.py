"""A merge of pages from its plan to its end: plan.md, edits in it, execution, retries with the findings (B23-B27).

A plan that a person edits is made anew from the batch it was made of, and takes the place of the first. A sub-graph
that failed its audit left no trace; it is made anew from the same batch, with care for what was lost, at most three
times in all. What was applied stays applied: the next try knows those pages again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.errors import Conflict, InvalidInput, RecollectError
from recollect.pages import sql as kept
from recollect.pages.policies.merge_pages import POLICY, pair_of, state_of
from recollect.pages.rules.audit import MergeResult, result_of
from recollect.pages.rules.decisions import (
    MAX_RETRIES,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.hierarchy import children_by_parent
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.plan_md import Edit, edits_in, render_plan, with_edits
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus
from recollect.plans import apply as applying
from recollect.plans import propose
from recollect.plans.apply import Progress, Started
from recollect.plans.sql import plans
from recollect.plans.sql.declined import keep_apart
from recollect.store.database import Transaction

FOLLOW_SECONDS = 1.0
FOLLOW_SHARE = 0.1
"""How often plan.md is written during a merge, and how much of the time that may take."""
STATUSES = {
    DecisionStatus.APPLIED: NodeStatus.COMPLETED,
    DecisionStatus.FAILED: NodeStatus.FAILED,
    DecisionStatus.STALE: NodeStatus.FAILED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """What came of a merge: the outcome of its last plan, every plan that was applied, and the result (B25)."""

    outcome: Outcome
    plans: tuple[UUID, ...]
    result: MergeResult


# -- the plan as a person sees it


async def merge_plan(core: Core, space_id: UUID, plan_id: UUID, *, with_texts: bool = False) -> MergePlan:
    """The document's plan behind a plan: what was decided, and how far each page is.

    The pages of its nodes are whole only `with_texts`.
    """
    async with core.transaction(space_id) as db:
        head = _of_pages(await plans.head(db, plan_id))
        edits = _edits(head)
        needed = with_texts or bool(edits)
        batch = await kept.get_batch(db, UUID(head.options["batch"]), with_texts=needed)
        fates = await kept.fates(db, batch.id)
        stored = await kept.all_pages(db) if edits else []
    there = {stored_page.page.id: stored_page.page for stored_page in stored if stored_page.is_living}
    plan = await anyio.to_thread.run_sync(_edited, batch.plan, edits, there)
    return replace(_followed(plan, head, fates), generated=head.created_at)


def _of_pages(plan: Plan) -> Plan:
    if plan.policy != POLICY.name:
        raise InvalidInput(f"The plan {plan.id} is not about pages: it is one of {plan.policy}.", field="plan")
    return plan


def _edits(plan: Plan) -> list[Edit]:
    return [Edit(page_id=id, decision=Verdict(verdict), target=target) for id, verdict, target in plan.options["edits"]]


def _edited(plan: MergePlan, edits: Sequence[Edit], there: Mapping[str, WikiPage]) -> MergePlan:
    """The plan with what a person decided; a target that was merged or archived since is not asked for again."""
    pages = {**{edit.target: there.get(edit.target) or _some(plan, edit) for edit in edits if edit.target}, **there}
    return with_edits(plan, edits, pages, children_by_parent(there.values())) if edits else plan


def _some(plan: MergePlan, edit: Edit) -> WikiPage:
    page = plan.nodes[edit.page_id].page
    assert page is not None, "a batch keeps its pages"
    return page


def _followed(plan: MergePlan, head: Plan, fates: Iterable[Mapping[str, Any]]) -> MergePlan:
    """The plan with the fate of every page: the last that was said about it counts."""
    last = {fate["page_id"]: fate for fate in fates}
    nodes = {id: _with_fate(node, last.get(id), head) for id, node in plan.nodes.items()}
    return replace(
        plan, subgraphs=tuple(_status(subgraph.with_nodes(nodes), last, head) for subgraph in plan.subgraphs)
    )


def _with_fate(node: NodePlan, fate: Mapping[str, Any] | None, head: Plan) -> NodePlan:
    if node.decision is Verdict.DECLINE:
        return node
    if fate is None:  # nothing of it had to be changed
        is_over = head.status is not PlanStatus.PROPOSED
        return replace(
            node, status=NodeStatus.COMPLETED if is_over else node.status, result_page_id=node.merge_target_id
        )
    status = DecisionStatus(fate["status"])
    done = STATUSES.get(status, NodeStatus.PENDING)
    return replace(node, status=done, result_page_id=fate["result"] if done is NodeStatus.COMPLETED else None)


def _status(subgraph: SubgraphPlan, fates: Mapping[str, Mapping[str, Any]], head: Plan) -> SubgraphPlan:
    """How far a sub-graph is, from its pages; one that did not pass its audit says why."""
    attempt = int(head.options["attempt"])
    if (why := _left_out(subgraph, head)) is not None:
        nodes = {
            id: replace(node, status=NodeStatus.FAILED, result_page_id=None) for id, node in subgraph.nodes.items()
        }
        failed = subgraph.with_nodes(nodes)
        return replace(failed, status=SubgraphStatus.FAILED, audit_result=why, retry_count=MAX_RETRIES)
    going = [node for node in subgraph.nodes.values() if node.decision is not Verdict.DECLINE]
    notes = [fates[node.page_id]["note"] for node in going if node.status is NodeStatus.FAILED]
    if notes:
        status = SubgraphStatus.RETRY if attempt < MAX_RETRIES else SubgraphStatus.FAILED
        return replace(subgraph, status=status, audit_result=next(filter(None, notes), None), retry_count=attempt)
    done = [node for node in going if node.status is NodeStatus.COMPLETED]
    if len(done) == len(going):
        return replace(subgraph, status=SubgraphStatus.COMPLETED)
    return replace(subgraph, status=SubgraphStatus.EXECUTING if done else SubgraphStatus.PLANNED)


def _left_out(subgraph: SubgraphPlan, head: Plan) -> str | None:
    """Why a sub-graph did not even come into the plan: nothing that was tried passed the audit."""
    beginning = f"{subgraph.subgraph_id} ({subgraph.root_id}) was left out: "
    texts = (finding.text for finding in head.findings if finding.rule == "audit")
    return next((text.removeprefix(beginning) for text in texts if text.startswith(beginning)), None)


async def plan_md(core: Core, space_id: UUID, plan_id: UUID) -> str:
    """The plan as the file that people read and edit."""
    return render_plan(await merge_plan(core, space_id, plan_id))


# -- edits


async def revised(
    core: Core, space_id: UUID, plan_id: UUID, *, text: str | None = None, decline: Sequence[int] = (), by: str = "user"
) -> Plan:
    """The plan as its file says it, or without some decisions: the same where nothing was changed, else a new one that
    takes its place."""
    async with core.transaction(space_id) as db:
        head = _of_pages(await plans.head(db, plan_id))
        if text is None and not decline:
            return head
        declined = await plans.decisions_of(db, plan_id, numbers=decline) if decline else []
    if missing := sorted(set(decline) - {decision.number for decision in declined}):
        raise InvalidInput(
            f"The plan has no decision {missing[0]}: `recollect plan show` numbers them.", field="decline"
        )
    shown = await merge_plan(core, space_id, plan_id, with_texts=True)
    edits = {} if text is None else {edit.page_id: edit for edit in edits_in(text, shown)}
    pages = {str(decision.factors["page_id"]) for decision in declined}
    edits |= {id: Edit(page_id=id, decision=Verdict.DECLINE) for id in pages}
    return await _with_edits(core, space_id, head, shown, list(edits.values()), by) if edits else head


async def _with_edits(core: Core, space_id: UUID, head: Plan, shown: MergePlan, edits: Sequence[Edit], by: str) -> Plan:
    if head.status not in (PlanStatus.PROPOSED, PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED, PlanStatus.FAILED):
        raise Conflict(f"The plan {head.id} is {head.status}: import the folder again to decide otherwise.")
    async with core.transaction(space_id) as db:
        there = {
            stored_page.page.id: stored_page.page for stored_page in await kept.all_pages(db) if stored_page.is_living
        }
    with_edits(shown, edits, there, children_by_parent(there.values()))  # refuses what cannot be honoured
    earlier = {edit.page_id: edit for edit in _edits(head)}
    all_edits = [*{**earlier, **{edit.page_id: edit for edit in edits}}.values()]
    options = {**head.options, "edits": [(edit.page_id, edit.decision.value, edit.target) for edit in all_edits]}
    plan = await propose.anew(core, space_id, head, options, by)
    async with core.transaction(space_id) as db:
        await _kept_apart(core, db, shown, edits, there)
    return plan


async def _kept_apart(
    core: Core,
    db: Transaction,
    shown: MergePlan,
    edits: Sequence[Edit],
    there: Mapping[str, WikiPage],
) -> None:
    """P11: a merge that a person turned down is not offered again for a while."""
    nodes = shown.nodes
    refused = [
        (node.page, there[target])
        for edit in edits
        for node in [nodes[edit.page_id]]
        for target in [node.merge_target_id or ""]
        if node.page and target in there and edit.target != target
    ]
    await keep_apart(
        db,
        [(*pair_of(new.id, old.id), state_of(new, old)) for new, old in refused],
        now=core.now(),
        days=core.settings.declined_days,
        reason="decided otherwise in plan.md",
    )


# -- applying


async def apply(
    core: Core,
    space_id: UUID,
    plan_id: UUID,
    *,
    text: str | None = None,
    decline: Sequence[int] = (),
    file: Path | None = None,
    by: str = "user",
    progress: Progress | None = None,
    started: Started | None = None,
) -> Merged:
    """Carry a merge out, as its file says it; what fails its audit is tried again with the findings (B23).

    `file` is kept current: it says how far each page is, also when the run is broken off.
    """
    plan = await revised(core, space_id, plan_id, text=text, by=by)
    applied = [plan.id]

    def trying(id: UUID) -> None:
        applied.append(id)

    async with _kept_current(core, space_id, applied, file):
        outcome = await applying.apply(
            core, space_id, plan.id, decline=decline, by=by, progress=progress, started=started, trying=trying
        )
    return Merged(outcome=outcome, plans=tuple(applied[1:]), result=await _result(core, space_id, applied[-1]))


async def _result(core: Core, space_id: UUID, plan_id: UUID) -> MergeResult:
    """The result; a page that came before and says nothing new was not edited."""
    plan = await merge_plan(core, space_id, plan_id)
    async with core.transaction(space_id) as db:
        head = await plans.head(db, plan_id)
        fates = await kept.fates(db, UUID(head.options["batch"]))
    return result_of(plan, {fate["page_id"] for fate in fates})


@asynccontextmanager
async def _kept_current(core: Core, space_id: UUID, tries: Sequence[UUID], file: Path | None) -> AsyncIterator[None]:
    """Meanwhile the file follows the last plan tried: a run that is killed leaves it true to the second (B27)."""
    if file is None:
        yield
        return
    following = asyncio.create_task(_follow(core, space_id, tries, file))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait([following])
        await write_plan_md(core, space_id, tries[-1], file)


async def _follow(core: Core, space_id: UUID, tries: Sequence[UUID], file: Path) -> None:
    """Write the file again and again, without spending much of the time on it."""
    pause = FOLLOW_SECONDS
    with suppress(RecollectError):  # what stands in the way is said at the end, by the last writing
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            await write_plan_md(core, space_id, tries[-1], file)
            pause = max(FOLLOW_SECONDS, (time.monotonic() - started) / FOLLOW_SHARE)


# -- the file


async def write_plan_md(core: Core, space_id: UUID, plan_id: UUID, file: Path) -> None:
    text = await plan_md(core, space_id, plan_id)
    await anyio.to_thread.run_sync(_write, file, text)


def _write(file: Path, text: str) -> None:
    """Write a plan over an earlier plan, and over nothing else."""
    try:
        if file.exists() and not file.read_text(encoding="utf-8-sig", errors="replace").startswith("# Merge Plan"):
            raise InvalidInput(
                f"{file} is there and is no merge plan: name another file with --plan-md.", field="plan_md"
            )
        _replace(file.resolve(), text)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror or error}).", field="plan_md") from error


def _replace(file: Path, text: str) -> None:
    """All of it or nothing: whoever is stopped while writing leaves the file as it was."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    new.replace(file)
