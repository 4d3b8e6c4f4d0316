"""Whether a merge did what it said (B20-B22): looked at afterwards, with nothing taken on trust.

nodes      what was created is there, what was to be merged was updated
links      every link of either side leads to the page it led to, or to what that page became
edges      each parent leads to the child's result by an edge of the right type
content    every heading of the new page is in the result, and nearly all of its sentences; the old page has lost
           none of its own; what was created is what was submitted

A sub-graph is executed as a whole. Where its audit finds something missing, the pages in question are made once more
and what the merge had lost of either side is put behind the rest; at most three times, then it is left out (B23).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum

from recollect.pages.rules.decisions import (
    MAX_RETRIES,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.execution import UNTOUCHED, Destinations, LinkChanges, arriving, execute
from recollect.pages.rules.links import Directory, relinked
from recollect.pages.rules.merging import BETWEEN_NOTES
from recollect.pages.rules.page import Section, WikiPage, changed, links_in, normal_name
from recollect.pages.rules.text import blocks, said, said_in, spoken_in

TRACEABLE = 0.9
MOST_PARTS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditFailure:
    """What an audit found wrong, and with which page."""

    page_id: str
    message: str

    def __str__(self) -> str:
        return f"{self.page_id}: {self.message}"


def audit(
    subgraph: SubgraphPlan,
    before: Mapping[str, WikiPage],
    after: Mapping[str, WikiPage],
    where: Destinations,
    now: Directory | None = None,
) -> list[AuditFailure]:
    """Everything that is wrong with a sub-graph as it was carried out. `now` finds the pages as they are after it."""
    now = now or Directory(after.values())
    failures: list[AuditFailure] = []
    for id, node in subgraph.nodes.items():
        if id in where.results:
            problems = (
                *_nodes(node, before, after, where),
                *_edges(node, after, where.results),
                *_links(node, before, after, where, now),
            )
            failures += (AuditFailure(page_id=id, message=message) for message in problems)
    return failures


def _nodes(
    node: NodePlan, before: Mapping[str, WikiPage], after: Mapping[str, WikiPage], where: Destinations
) -> Iterator[str]:
    id = where.results[node.page_id]
    result = after.get(id)
    if result is None:
        yield f"{id} does not exist"
    elif node.page is not None:
        is_merged = node.decision is Verdict.MERGE
        arrived = arriving(node.page, where.arriving.get(node.page_id, UNTOUCHED))
        yield from lost(arrived, result, traceable=TRACEABLE if is_merged else 1.0)
        if is_merged and id in before:
            old = relinked(before[id], where.there.get(id, UNTOUCHED).anew)
            yield from lost(old, result, traceable=1.0)


def _edges(node: NodePlan, after: Mapping[str, WikiPage], results: Mapping[str, str]) -> Iterator[str]:
    for edge in node.deferred_edges:
        parent = after.get(results.get(edge.parent_id, ""))
        if parent is None:
            continue
        links = {link.relation for link in parent.links if link.target == results[node.page_id]}
        if edge.edge_type not in links:
            yield f"{parent.id} has no {edge.edge_type} edge to {results[node.page_id]}"


# -- links


def _links(
    node: NodePlan,
    before: Mapping[str, WikiPage],
    after: Mapping[str, WikiPage],
    where: Destinations,
    now: Directory,
) -> Iterator[str]:
    """Links of a page that was written which lead elsewhere than they led (B31)."""
    id = where.results[node.page_id]
    page = after.get(id)
    if page is None or page is before.get(id):
        return
    sides = [where.arriving.get(node.page_id, UNTOUCHED)]
    sides += [where.there.get(id, UNTOUCHED)] if id in before else []
    yield from led_astray(page, sides, now, after)


def led_astray(
    page: WikiPage, sides: Sequence[LinkChanges], now: Directory, after: Mapping[str, WikiPage]
) -> Iterator[str]:
    """Where the links of a page do not lead to what the links of its sides led to; what led nowhere may find a page.

    Typed links that a merge adds (back-links, contradictions) are looked at as edges.
    """
    expected = frozenset[tuple[str, str]]().union(*(side.leads for side in sides))
    free = frozenset[str]().union(*(side.nowhere for side in sides))
    leads = {(link.relation, now.find(page, link)): link for link in page.links}
    for relation, target in sorted(expected - leads.keys()):
        if target in after:
            yield f"no {relation} link of {page.id} leads to {target} any more"
    for (relation, led_to), link in leads.items():
        if led_to not in (None, link.target) and (relation, led_to) not in expected and link.written not in free:
            yield f"{link.written} on {page.id} leads to {led_to} now"


# -- content


def lost(page: WikiPage, result: WikiPage, *, traceable: float = TRACEABLE) -> Iterator[str]:
    """What a page says that the result does not."""
    if missing := missing_headings(page, result):
        yield f"headings are missing in {result.id}: {', '.join(missing)}"
    gone = missing_sentences(page, result)
    sentences = says(page.texts) if gone else ()
    if len(sentences) - len(gone) < traceable * len(sentences):
        yield f"{len(gone)} of {len(sentences)} sentences are missing in {result.id}, such as “{min(gone)[:80]}”"


def missing_headings(page: WikiPage, result: WikiPage) -> list[str]:
    there = {normal_name(section.heading) for section in result.sections}
    return [section.heading for section in page.sections if normal_name(section.heading) not in there]


def missing_sentences(page: WikiPage, result: WikiPage) -> set[str]:
    """The sentences of a page that the result has not; a text that it has word for word needs no comparing.

    A line that is a link is one with the other links to that page: of such a line, what it says of the link counts.
    """
    there = set(result.texts)
    others = [text for text in page.texts if text not in there]
    if not others:
        return set()
    return says(others) - _noted(result)


def says(texts: Sequence[str]) -> set[str]:
    """What some texts say: their sentences, and of the lines that are links what they say of them."""
    lines = (block.text for text in texts for block in blocks(text) if block.kind == "link")
    notes = {said(link.note) for line in lines for link in links_in([line])}
    return (spoken_in(texts) | notes) - {""}


def _noted(page: WikiPage) -> set[str]:
    """All that a page says; what is said of links as a whole, and by the parts it was put together of."""
    notes = [link.note for link in page.links if link.note]
    return {said(part) for note in notes for part in (note, *_parts(note))} | said_in(page.texts)


def _parts(note: str) -> Iterator[str]:
    """The parts of a note, and those that follow each other: what was joined may have been joined before."""
    parts = note.split(BETWEEN_NOTES, MOST_PARTS)
    ends = range(1, len(parts) + 1)
    return (BETWEEN_NOTES.join(parts[start:end]) for end in ends for start in range(end))


# -- carried out and audited; what the audit objects to is made again with more care (B23)


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
    tries = [_Attempted(plan=replace(subgraph, retry_count=attempt - 1)) for subgraph in merge.subgraphs]
    waiting = [tried for tried in tries if tried.plan.status is not SubgraphStatus.COMPLETED]
    skipped = frozenset(tried.plan.subgraph_id for tried in tries) - {tried.plan.subgraph_id for tried in waiting}
    while waiting:
        for tried in waiting:
            _execute(tried, before, where, careful, updated)
        after = _together({**before, **links}, tries)
        now = Directory(after.values())
        for tried in waiting:
            failures = audit(tried.plan, before, after, where, now)
            tried.plan = after_audit(tried.plan, failures)
            careful |= {failure.page_id for failure in failures}
        waiting = [tried for tried in waiting if tried.plan.status is SubgraphStatus.RETRY]
    passed = [tried for tried in tries if tried.plan.status is not SubgraphStatus.FAILED]
    return CarriedOut(
        subgraphs=tuple(tried.plan for tried in tries),
        before=before,
        after=_together({**before, **links}, passed),
        skipped=skipped,
        notes=tuple(note for tried in passed for note in tried.notes),
    )


def _execute(
    attempted: _Attempted,
    before: Mapping[str, WikiPage],
    where: Destinations,
    careful: AbstractSet[str],
    updated: str | None,
) -> None:
    ids = where.results
    again = {ids[id] for id, node in attempted.plan.nodes.items() if node.status is NodeStatus.FAILED and id in ids}
    unchanged = {id: page for id, page in attempted.written.items() if id not in again}
    executed = execute(attempted.plan, {**before, **unchanged}, where, updated=updated)
    written = dict(executed.written)
    for id in careful & attempted.plan.nodes.keys():
        _keep_whole(attempted.plan.nodes[id], written, before, where)
    attempted.plan, attempted.written = executed.subgraph, {**unchanged, **written}
    attempted.notes |= {str(finding): None for finding in executed.findings}


def _together(before: Mapping[str, WikiPage], tries: Iterable[_Attempted]) -> dict[str, WikiPage]:
    after = dict(before)
    for attempt in tries:
        after |= attempt.written
    return after


def _keep_whole(
    node: NodePlan,
    written: dict[str, WikiPage],
    before: Mapping[str, WikiPage],
    where: Destinations,
) -> None:
    """The audit's findings at work: what a merge had lost of either side is put behind the rest as it was."""
    result = where.results.get(node.page_id, "")
    if node.page is None or result not in written:
        return
    written[result] = with_all_of(written[result], arriving(node.page, where.arriving.get(node.page_id, UNTOUCHED)))
    if result in before:
        old = relinked(before[result], where.there.get(result, UNTOUCHED).anew)
        written[result] = with_all_of(written[result], old)


def with_all_of(page: WikiPage, side: WikiPage) -> WikiPage:
    """A page with everything of another that it lacks: whole sections, and whole texts where a sentence is missing."""
    headings, sentences = set(missing_headings(side, page)), missing_sentences(side, page)
    lacking = [section for section in side.sections if section.heading in headings]
    whole = {section.heading for section in lacking}
    texts = [("", side.lead), *((section.heading, section.body) for section in side.sections)]
    rest = [text for heading, text in texts if heading not in whole and says([text]) & sentences]
    if not lacking and not rest:
        return page
    also = [Section(level=2, heading=f"Also in {side.name}", body="\n\n".join(rest))] if rest else []
    return changed(page, sections=(*page.sections, *also, *lacking))


# -- what an audit makes of a plan, and what came of it


def after_audit(subgraph: SubgraphPlan, failures: Sequence[AuditFailure]) -> SubgraphPlan:
    """Done where nothing failed; else the offending pages and all above them are to be made again (B23).

    After the third execution that fails there is no fourth.
    """
    if not failures:
        return replace(subgraph, status=SubgraphStatus.COMPLETED)
    offending = {
        id for failure in failures if failure.page_id in subgraph.nodes for id in subgraph.ancestors(failure.page_id)
    }
    failed = {id: replace(subgraph.nodes[id], status=NodeStatus.FAILED) for id in offending}
    tries = subgraph.retry_count + 1
    return replace(
        subgraph.with_nodes(failed),
        status=SubgraphStatus.RETRY if tries < MAX_RETRIES else SubgraphStatus.FAILED,
        retry_count=tries,
        audit_result="; ".join(map(str, failures)),
    )


class Overall(StrEnum):
    SUCCESS = "SUCCESS"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeResult:
    """What came of a merge (B25)."""

    created_pages: tuple[str, ...]
    edited_pages: tuple[str, ...]
    failed: Mapping[str, str]
    overall: Overall


def result_of(plan: MergePlan, touched: Collection[str] | None = None) -> MergeResult:
    """What a merge came to. `touched` names the pages that had something to do; none given means all."""
    done = [subgraph for subgraph in plan.subgraphs if subgraph.status is SubgraphStatus.COMPLETED]
    failed = {
        subgraph.subgraph_id: subgraph.audit_result or ""
        for subgraph in plan.subgraphs
        if subgraph.status is SubgraphStatus.FAILED
    }
    return MergeResult(
        created_pages=_results(done, Verdict.CREATE_NEW, touched),
        edited_pages=_results(done, Verdict.MERGE, touched),
        failed=failed,
        overall=Overall.SUCCESS if not failed else Overall.PARTIAL if done else Overall.FAILED,
    )


def _results(subgraphs: Iterable[SubgraphPlan], verdict: Verdict, touched: Collection[str] | None) -> tuple[str, ...]:
    nodes = (
        subgraph.nodes[id]
        for subgraph in subgraphs
        for id in subgraph.execution_order
        if touched is None or id in touched
    )
    return tuple(node.result_page_id for node in nodes if node.decision is verdict and node.result_page_id)
