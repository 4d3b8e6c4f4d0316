"""What becomes of each new page: decided from the top down, each page in the scope that its parents leave it.

    a root                            is compared with every page of its type                            B10
    a child of a parent that merged   only with the children, of its type, of the parent's target        B03, B04
    a child of parents all new        with none: it is new itself, and so is all below it                B05
    a child of several parents        in the scope of the lowest merged one first, then the next higher  B13

In its scope a page merges with its best match if that match has no better new page (mutual best), no veto stands
against it, and the score is high enough; in between, a judge decides (B29). No two new pages ever end in one page.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Any, Literal

from recollect.pages.rules.hierarchy import (
    WIKI,
    Detected,
    Hierarchy,
    PageEdge,
    children_by_parent,
    detect_subgraphs,
    findings,
)
from recollect.pages.rules.page import PageFinding, WikiPage, type_and_name
from recollect.pages.rules.similarity import Scores
from recollect.pages.rules.vetoes import CONTRADICTION, veto
from recollect.wording import counted

# -- the plan of a merge as the document lays it out: nodes, sub-graphs, the whole (B06-B08)
#
# These are views for people, for plan.md and for resuming; what is applied is the one Plan of the engine.

MAX_RETRIES = 3


class Verdict(StrEnum):
    """What becomes of a new page. REVIEW waits for a person; a declined page is left out of the merge."""

    MERGE = "MERGE"
    CREATE_NEW = "CREATE_NEW"
    REVIEW = "REVIEW"
    DECLINE = "DECLINE"


class NodeStatus(StrEnum):
    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class SubgraphStatus(StrEnum):
    PLANNED = "PLANNED"
    EXECUTING = "EXECUTING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    RETRY = "RETRY"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeferredEdge:
    """An edge from a parent, made when the parent is written (B15)."""

    parent_id: str
    edge_type: str
    edge_metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePlan:
    """What becomes of one new page (B06), with the reason (B12). A plan read back from its file has no `page`."""

    page_id: str
    page_type: str
    decision: Verdict
    page: WikiPage | None = None
    merge_target_id: str | None = None
    best_match_score: float | None = None
    reason: str = ""
    parent_id: str | None = None
    deferred_edges: tuple[DeferredEdge, ...] = ()
    contradicts: tuple[str, ...] = ()
    status: NodeStatus = NodeStatus.PENDING
    result_page_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubgraphPlan:
    """What becomes of a root and all below it (B07)."""

    subgraph_id: str
    root_id: str
    nodes: Mapping[str, NodePlan]
    execution_order: tuple[str, ...]
    status: SubgraphStatus = SubgraphStatus.PLANNED
    audit_result: str | None = None
    retry_count: int = 0

    @property
    def next_node(self) -> str | None:
        """Where a run goes on: the first node that is not done (B24)."""
        return next((id for id in self.execution_order if self.nodes[id].status is not NodeStatus.COMPLETED), None)

    def with_nodes(self, nodes: Mapping[str, NodePlan]) -> "SubgraphPlan":
        return replace(self, nodes={id: nodes.get(id, node) for id, node in self.nodes.items()})

    def ancestors(self, id: str) -> list[str]:
        """The pages of this sub-graph above one of them, itself first."""
        above = {id: None}
        waiting = [id]
        while waiting:
            for edge in self.nodes[waiting.pop()].deferred_edges:
                if edge.parent_id in self.nodes and edge.parent_id not in above:
                    above[edge.parent_id] = None
                    waiting.append(edge.parent_id)
        return list(above)


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePlan:
    """The whole merge (B08)."""

    subgraphs: tuple[SubgraphPlan, ...]
    created_pages: tuple[str, ...] = ()
    edited_pages: tuple[str, ...] = ()
    findings: tuple[PageFinding, ...] = ()
    generated: datetime | None = None

    def with_nodes(self, nodes: Mapping[str, NodePlan]) -> "MergePlan":
        """The plan with some of its nodes replaced."""
        return replace(self, subgraphs=tuple(subgraph.with_nodes(nodes) for subgraph in self.subgraphs))

    @property
    def nodes(self) -> dict[str, NodePlan]:
        """Every node by its id: each page is planned once."""
        return {id: node for subgraph in self.subgraphs for id, node in subgraph.nodes.items()}


# -- deciding

Judge = Callable[[WikiPage, WikiPage, float], Verdict | None]
"""Asked about a pair in between: new page, old page, score. None: it cannot say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionOptions:
    """When to merge. `scope="type"` drops the scoping: every page is compared with all of its type."""

    merge_from: float = 0.85
    judge_from: float = 0.60
    scope: Literal["parents", "type"] = "parents"
    veto: Callable[[WikiPage, WikiPage], str | None] = veto


@dataclass(frozen=True, kw_only=True, slots=True)
class PageDecision:
    """What becomes of a page, and why."""

    verdict: Verdict
    target: str | None = None
    score: float | None = None
    reason: str = ""
    parent: str | None = None
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchScope:
    """Where a page may find its match: the old pages in question, and the parent that leads there."""

    candidates: tuple[str, ...]
    parent: str | None = None
    is_global: bool = False

    def __str__(self) -> str:
        names = [type_and_name(id)[1] for id in self.candidates]
        return "[" + ", ".join(names[:5] + (["..."] if len(names) > 5 else [])) + "]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wiki:
    """The pages that are there already, and their forward edges."""

    pages: Mapping[str, WikiPage]
    children: Mapping[str, Sequence[PageEdge]]
    by_type: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def children_of(self, id: str, type: str) -> tuple[str, ...]:
        targets = (edge.target for edge in self.children.get(id, ()))
        return tuple(dict.fromkeys(target for target in targets if self.pages[target].type == type))


def wiki_of(pages: Iterable[WikiPage], hierarchy: Hierarchy = WIKI) -> Wiki:
    by_id = {page.id: page for page in pages}
    by_type: dict[str, list[str]] = {}
    for page in sorted(by_id.values(), key=lambda page: page.id):
        by_type.setdefault(page.type, []).append(page.id)
    return Wiki(
        pages=by_id,
        children=children_by_parent(by_id.values(), hierarchy),
        by_type={type: tuple(ids) for type, ids in by_type.items()},
    )


def plan_merge(
    new: Sequence[WikiPage],
    wiki: Wiki,
    scores: Scores,
    *,
    judge: Judge | None = None,
    options: DecisionOptions | None = None,
    hierarchy: Hierarchy = WIKI,
) -> MergePlan:
    """Detect the sub-graphs, decide every page, and lay the plan out."""
    detected = detect_subgraphs(new, hierarchy)
    decisions = decide(
        new, detected, wiki, scores, judge=judge, options=options or DecisionOptions(), hierarchy=hierarchy
    )
    return laid_out(new, detected, decisions, findings_of=findings(new, hierarchy))


# -- deciding


def decide(
    new: Sequence[WikiPage],
    detected: Detected,
    wiki: Wiki,
    scores: Scores,
    *,
    judge: Judge | None,
    options: DecisionOptions,
    hierarchy: Hierarchy = WIKI,
) -> dict[str, PageDecision]:
    """A decision for every new page. All pages of one level are decided together, so that order does not matter."""
    pages = {page.id: page for page in new}
    parents = detected.parents()
    decisions: dict[str, PageDecision] = {}
    taken: set[str] = set()
    for level in levels(pages, detected, hierarchy):
        searches: dict[str, list[SearchScope]] = {}
        for id in level:
            scopes = _scopes(pages[id], parents.get(id, ()), decisions, wiki, options, hierarchy)
            if scopes:
                searches[id] = scopes
            else:
                decisions[id] = _inherited(parents[id], decisions, hierarchy)
        search = _PageSearch(pages=pages, wiki=wiki, scores=scores, judge=judge, options=options, taken=taken)
        decisions |= search.through(searches)
    return decisions


def levels(pages: Mapping[str, WikiPage], detected: Detected, hierarchy: Hierarchy = WIKI) -> list[list[str]]:
    """The pages from the top down: parents before children, and pages of one type together where that is possible."""
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(sorted(pages), ()))
    parents = detected.parents()
    for id, edges in parents.items():
        order.add(id, *(edge.source for edge in edges))
    level: dict[str, int] = {}
    for id in order.static_order():
        above = (level[edge.source] + 1 for edge in parents.get(id, ()))
        level[id] = max(len(hierarchy.types) - hierarchy.rank(pages[id].type), *above, 0)
    return [sorted(id for id in pages if level[id] == number) for number in sorted(set(level.values()))]


def _scopes(
    page: WikiPage,
    edges: Sequence[PageEdge],
    decisions: Mapping[str, PageDecision],
    wiki: Wiki,
    options: DecisionOptions,
    hierarchy: Hierarchy,
) -> list[SearchScope]:
    """Where to look, in this order; nowhere for a page whose parents are all new."""
    if options.scope == "type" or not edges:
        return [SearchScope(candidates=wiki.by_type.get(page.type, ()), is_global=True)]
    merged = {edge.source for edge in edges if decisions[edge.source].verdict is Verdict.MERGE}
    lowest_first = sorted(merged, key=lambda id: (hierarchy.rank(type_and_name(id)[0]), id))
    return [
        SearchScope(candidates=wiki.children_of(decisions[parent].target or "", page.type), parent=parent)
        for parent in lowest_first
    ]


def _inherited(edges: Sequence[PageEdge], decisions: Mapping[str, PageDecision], hierarchy: Hierarchy) -> PageDecision:
    """New because the parents are (B05): no search is made, and so there is no score."""
    parents = {edge.source for edge in edges}
    lowest = min(parents, key=lambda id: (hierarchy.rank(type_and_name(id)[0]), id))
    reason = f"Inherited from parent ({lowest} is {decisions[lowest].verdict})"
    return PageDecision(verdict=Verdict.CREATE_NEW, reason=reason, parent=lowest)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    """What the search in one scope came to: the best match there, if any, and what stood against it."""

    scope: SearchScope
    target: str | None = None
    score: float | None = None
    against: str | None = None
    contradicts: tuple[str, ...] = ()


class _PageSearch:
    """The search of one level: every page in its first scope, those without a match in their next one, and so on."""

    def __init__(
        self,
        *,
        pages: Mapping[str, WikiPage],
        wiki: Wiki,
        scores: Scores,
        judge: Judge | None,
        options: DecisionOptions,
        taken: set[str],
    ) -> None:
        self._pages, self._wiki, self._scores = pages, wiki, scores
        self._judge, self._options, self._taken = judge, options, taken
        self._vetoes: dict[tuple[str, str], str | None] = {}

    def through(self, searches: Mapping[str, Sequence[SearchScope]]) -> dict[str, PageDecision]:
        decisions: dict[str, PageDecision] = {}
        attempts: dict[str, list[_Attempt]] = {id: [] for id in searches}
        for tier in range(max((len(scopes) for scopes in searches.values()), default=0)):
            waiting = {
                id: scopes[tier] for id, scopes in searches.items() if id not in decisions and tier < len(scopes)
            }
            for id, attempt in self._attempts(waiting).items():
                attempts[id].append(attempt)
                decision = self._decided(id, attempt)
                if decision.verdict is not Verdict.CREATE_NEW:
                    decisions[id] = decision
                    self._taken.add(decision.target or "")
        left = searches.keys() - decisions.keys()
        return decisions | {id: _no_match(attempts[id]) for id in left}

    def _attempts(self, waiting: Mapping[str, SearchScope]) -> dict[str, _Attempt]:
        """The best match of every page in its scope, and whether that match has a better page."""
        rows = {id: self._row(id, scope) for id, scope in waiting.items()}
        attempts = {id: self._best(id, scope, rows[id]) for id, scope in waiting.items()}
        rivals = _rivals(rows, {attempt.target for attempt in attempts.values() if attempt.target})
        return {id: self._against_rivals(id, attempt, rivals) for id, attempt in attempts.items()}

    def _row(self, id: str, scope: SearchScope) -> dict[str, float]:
        """The scores of a page in its scope; what another new page has taken is not in it any more."""
        free = [candidate for candidate in scope.candidates if candidate not in self._taken]
        return dict(zip(free, self._scores.of(id, free), strict=True)) if free else {}

    def _best(self, id: str, scope: SearchScope, row: Mapping[str, float]) -> _Attempt:
        """The best match that no veto stands against; where all that is good enough is vetoed, the veto."""
        vetoed: _Attempt | None = None
        for target in sorted(row, key=lambda candidate: (-row[candidate], candidate != id, candidate)):
            attempt = _Attempt(scope=scope, target=target, score=row[target])
            if row[target] < self._options.judge_from:
                return vetoed or attempt
            against = self._veto(id, target)
            if against is None:
                return attempt
            vetoed = vetoed or replace(attempt, against=f"Vetoed: {against}")
            if against.startswith(CONTRADICTION):
                vetoed = replace(vetoed, contradicts=(*vetoed.contradicts, target))
        return vetoed or _Attempt(scope=scope)

    def _against_rivals(
        self, id: str, attempt: _Attempt, rivals: Mapping[str, Sequence[tuple[float, str]]]
    ) -> _Attempt:
        if attempt.target is None or attempt.score is None or attempt.against:
            return attempt
        if attempt.score < self._options.judge_from:
            return attempt
        for score, rival in rivals[attempt.target]:
            if rival == id or score < attempt.score:
                return attempt
            if self._veto(rival, attempt.target) is None:
                closer = f"{type_and_name(attempt.target)[1]} is closer to {rival}"
                return replace(attempt, against=closer)
        return attempt

    def _veto(self, id: str, target: str) -> str | None:
        if (id, target) not in self._vetoes:
            self._vetoes[id, target] = self._options.veto(self._pages[id], self._wiki.pages[target])
        return self._vetoes[id, target]

    def _decided(self, id: str, attempt: _Attempt) -> PageDecision:
        """What the thresholds, and between them the judge, make of a match."""
        where = "High similarity" if attempt.scope.is_global else f"Scoped search in {attempt.scope}"
        score, target = attempt.score, attempt.target
        new = PageDecision(
            verdict=Verdict.CREATE_NEW, score=score, reason=attempt.against or "", parent=attempt.scope.parent
        )
        if target is None or score is None or attempt.against or score < self._options.judge_from:
            return new
        if score >= self._options.merge_from:
            return replace(new, verdict=Verdict.MERGE, target=target, reason=where)
        verdict = self._judge(self._pages[id], self._wiki.pages[target], score) if self._judge else None
        if verdict is Verdict.MERGE:
            return replace(new, verdict=verdict, target=target, reason=f"{where}, judged to be one")
        if verdict is Verdict.REVIEW:
            return replace(new, verdict=verdict, target=target, reason=f"{where}, in doubt: a person decides")
        return new


def _rivals(rows: Mapping[str, Mapping[str, float]], targets: set[str]) -> dict[str, list[tuple[float, str]]]:
    """For each of these old pages, the new pages that have it in their scope, the closest first."""
    rivals: dict[str, list[tuple[float, str]]] = {target: [] for target in targets}
    for id, row in rows.items():
        for target in targets & row.keys():
            rivals[target].append((row[target], id))
    return {target: sorted(ids, key=lambda rival: (-rival[0], rival[1])) for target, ids in rivals.items()}


def _no_match(attempts: Sequence[_Attempt]) -> PageDecision:
    """New, because no scope held a match: the best score that was seen, and what stood against it."""
    best = max(attempts, key=lambda attempt: -1.0 if attempt.score is None else attempt.score)
    scopes = ", then in ".join(str(attempt.scope) for attempt in attempts)
    many = sum(len(attempt.scope.candidates) for attempt in attempts) > 1
    if best.target is None:
        reason = "Nothing of its type to compare with" + ("" if best.scope.is_global else f" under {best.scope.parent}")
    elif best.scope.is_global:
        reason = f"No good match among {counted(len(best.scope.candidates), 'page')} of its type"
    else:
        reason = f"No {'good ' if many else ''}match in {scopes}"
    if best.against:
        reason = f"{reason} ({best.against})"
    return PageDecision(
        verdict=Verdict.CREATE_NEW,
        score=best.score,
        reason=reason,
        parent=best.scope.parent,
        contradicts=tuple(dict.fromkeys(id for attempt in attempts for id in attempt.contradicts)),
    )


# -- laying out


def laid_out(
    new: Sequence[WikiPage],
    detected: Detected,
    decisions: Mapping[str, PageDecision],
    *,
    findings_of: Sequence[PageFinding] = (),
) -> MergePlan:
    """The decisions as the document's plan (B06-B08, B15)."""
    pages = {page.id: page for page in new}
    parents = detected.parents()
    return MergePlan(
        subgraphs=tuple(
            SubgraphPlan(
                subgraph_id=subgraph.id,
                root_id=subgraph.root,
                nodes={id: _node(pages[id], parents.get(id, ()), decisions[id]) for id in subgraph.nodes},
                execution_order=subgraph.execution_order,
            )
            for subgraph in detected.subgraphs
        ),
        findings=(*findings_of, *detected.findings),
    )


def _node(page: WikiPage, edges: Sequence[PageEdge], decision: PageDecision) -> NodePlan:
    parent = decision.parent or next((edge.source for edge in edges), None)
    first = sorted(edges, key=lambda edge: (edge.source != parent, edge))
    return NodePlan(
        page_id=page.id,
        page_type=page.type,
        page=page,
        decision=decision.verdict,
        merge_target_id=decision.target,
        best_match_score=decision.score,
        reason=decision.reason,
        parent_id=parent,
        deferred_edges=tuple(DeferredEdge(parent_id=edge.source, edge_type=edge.relation) for edge in first),
        contradicts=decision.contradicts,
    )
