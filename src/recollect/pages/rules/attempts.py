"""A merge carried out in memory and audited; what the audit objects to is made again with more care (B23).

A sub-graph is executed as a whole. Where its audit finds something missing, the pages in question are made once more
and what the merge had lost of either side is put behind the rest; at most three times, then it is left out.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from recollect.pages.rules.audit import audit, missing_headings, missing_sentences, says
from recollect.pages.rules.destinations import UNTOUCHED, Destinations
from recollect.pages.rules.execution import arriving, execute
from recollect.pages.rules.links import Directory
from recollect.pages.rules.merge_plan import MergePlan, NodePlan, NodeStatus, SubgraphPlan, SubgraphStatus, after_audit
from recollect.pages.rules.page import Section, WikiPage, changed
from recollect.pages.rules.relinking import relinked


@dataclass(frozen=True, kw_only=True, slots=True)
class CarriedOut:
    """A merge carried out: the sub-graphs as they stand, what was written, and what was noted."""

    subgraphs: tuple[SubgraphPlan, ...]
    before: Mapping[str, WikiPage]
    after: Mapping[str, WikiPage]
    skipped: AbstractSet[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def written(self) -> set[str]:
        return {id for id, page in self.after.items() if page is not self.before.get(id)}


@dataclass(kw_only=True, slots=True)
class _Attempted:
    """One sub-graph on its way."""

    plan: SubgraphPlan
    written: dict[str, WikiPage] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


def carried_out(
    merge: MergePlan,
    before: Mapping[str, WikiPage],
    where: Destinations,
    *,
    careful: AbstractSet[str] = frozenset(),
    attempt: int = 1,
    updated: str | None = None,
) -> CarriedOut:
    """Every sub-graph executed and audited; again where the audit objects, with care, and at most three times (B23)."""
    links = {id: relinked(before[id], links.anew) for id, links in where.there.items() if links.anew}
    careful = set(careful)
    tries = [_Attempted(plan=replace(one, retry_count=attempt - 1)) for one in merge.subgraphs]
    waiting = [one for one in tries if one.plan.status is not SubgraphStatus.COMPLETED]
    skipped = frozenset(one.plan.subgraph_id for one in tries) - {one.plan.subgraph_id for one in waiting}
    while waiting:
        for one in waiting:
            _execute(one, before, where, careful, updated)
        after = _together({**before, **links}, tries)
        now = Directory(after.values())
        for one in waiting:
            failures = audit(one.plan, before, after, where, now)
            one.plan = after_audit(one.plan, failures)
            careful |= {failure.page_id for failure in failures}
        waiting = [one for one in waiting if one.plan.status is SubgraphStatus.RETRY]
    passed = [one for one in tries if one.plan.status is not SubgraphStatus.FAILED]
    return CarriedOut(
        subgraphs=tuple(one.plan for one in tries),
        before=before,
        after=_together({**before, **links}, passed),
        skipped=skipped,
        notes=tuple(note for one in passed for note in one.notes),
    )


def _execute(
    one: _Attempted,
    before: Mapping[str, WikiPage],
    where: Destinations,
    careful: AbstractSet[str],
    updated: str | None,
) -> None:
    ids = where.results
    again = {ids[id] for id, node in one.plan.nodes.items() if node.status is NodeStatus.FAILED and id in ids}
    kept = {id: page for id, page in one.written.items() if id not in again}
    executed = execute(one.plan, {**before, **kept}, where, updated=updated)
    made = dict(executed.written)
    for id in careful & one.plan.nodes.keys():
        _keep_whole(one.plan.nodes[id], made, before, where)
    one.plan, one.written = executed.subgraph, {**kept, **made}
    one.notes |= {str(finding): None for finding in executed.findings}


def _together(before: Mapping[str, WikiPage], tries: Iterable[_Attempted]) -> dict[str, WikiPage]:
    after = dict(before)
    for one in tries:
        after |= one.written
    return after


def _keep_whole(
    node: NodePlan,
    made: dict[str, WikiPage],
    before: Mapping[str, WikiPage],
    where: Destinations,
) -> None:
    """The audit's findings at work: what a merge had lost of either side is put behind the rest as it was."""
    result = where.results.get(node.page_id, "")
    if node.page is None or result not in made:
        return
    made[result] = with_all_of(made[result], arriving(node.page, where.arriving.get(node.page_id, UNTOUCHED)))
    if result in before:
        old = relinked(before[result], where.there.get(result, UNTOUCHED).anew)
        made[result] = with_all_of(made[result], old)


def with_all_of(page: WikiPage, side: WikiPage) -> WikiPage:
    """A page with everything of another that it lacks: whole sections, and whole texts where a sentence is missing."""
    headings, sentences = set(missing_headings(side, page)), missing_sentences(side, page)
    lacking = [one for one in side.sections if one.heading in headings]
    kept = {one.heading for one in lacking}
    texts = [("", side.lead), *((one.heading, one.body) for one in side.sections)]
    rest = [text for heading, text in texts if heading not in kept and says([text]) & sentences]
    if not lacking and not rest:
        return page
    also = [Section(level=2, heading=f"Also in {side.name}", body="\n\n".join(rest))] if rest else []
    return changed(page, sections=(*page.sections, *also, *lacking))
