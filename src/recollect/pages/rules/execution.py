"""A merge carried out in memory: leaves first, every link to what its page became (B14, B16, B17).

Which id each new page ends with is settled before the first is written, so that links in every direction, back-links
and references too, can be rewritten at once. What is written here is what the store saves; the audit looks at it first.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from recollect.pages.rules.destinations import UNTOUCHED, Destinations, LinkChanges, named
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.merge_plan import (
    DeferredEdge,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.merging import merge_pages, with_links
from recollect.pages.rules.page import PageFinding, WikiPage, type_and_name
from recollect.pages.rules.relinking import relinked, without_links


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    """A sub-graph carried out: the pages that were written, by id, the plan as it stands, and what was noted."""

    subgraph: SubgraphPlan
    written: Mapping[str, WikiPage]
    findings: tuple[PageFinding, ...] = ()


def execute(
    subgraph: SubgraphPlan,
    pages: Mapping[str, WikiPage],
    where: Destinations,
    *,
    updated: str | None = None,
    hierarchy: Hierarchy = WIKI,
) -> Executed:
    """Every node of a sub-graph that is not done yet, bottom-up. `pages` are those of the wiki as it stands.

    To new pages that do not arrive (declined, or waiting for a person) nothing will link.
    """
    written: dict[str, WikiPage] = {}
    findings: list[PageFinding] = []
    nodes = dict(subgraph.nodes)
    there = ChainMap(written, dict(pages))
    for id in subgraph.execution_order:
        node = nodes[id]
        if node.status is NodeStatus.COMPLETED or node.page is None or id not in where.results:
            continue
        page, notes = _written(node, node.page, there, where, updated, hierarchy)
        if page != pages.get(page.id):
            written[page.id] = page
        findings += (PageFinding(page=page.id, message=note) for note in notes)
        nodes[id] = replace(node, status=NodeStatus.COMPLETED, result_page_id=page.id)
    done = replace(subgraph, nodes=nodes, status=SubgraphStatus.EXECUTING)
    return Executed(subgraph=done, written=written, findings=tuple(findings))


def arriving(page: WikiPage, links: LinkChanges) -> WikiPage:
    """A new page as it comes in: its links lead to what the pages became."""
    return relinked(without_links(page, links.gone), links.anew)


def _written(
    node: NodePlan,
    given: WikiPage,
    pages: Mapping[str, WikiPage],
    where: Destinations,
    updated: str | None,
    hierarchy: Hierarchy,
) -> tuple[WikiPage, tuple[str, ...]]:
    """The page that a node ends in: made or merged, its back-links complete."""
    conflicts: tuple[str, ...] = ()
    new = arriving(given, where.arriving.get(node.page_id, UNTOUCHED))
    result = where.results[node.page_id]
    if node.decision is Verdict.MERGE:
        old = relinked(pages[result], where.there.get(result, UNTOUCHED).anew)
        merged = merge_pages(old, new, updated=updated, leads=where.leads(result))
        page, conflicts = merged.page, merged.conflicts
    else:
        page = named(new, result)
    page = with_links(page, _back_links(page, node.deferred_edges, where.results, hierarchy))
    notes = [("contradicts", target, "the advice differs") for target in node.contradicts]
    return with_links(page, notes), conflicts


def _back_links(
    page: WikiPage, edges: Iterable[DeferredEdge], results: Mapping[str, str], hierarchy: Hierarchy
) -> list[tuple[str, str, str]]:
    """The back-links that the page lacks, if it keeps back-links of that kind at all."""
    kept = {link.relation for link in page.links}
    found: list[tuple[str, str, str]] = []
    for edge in edges:
        kind = hierarchy.edge_kind(edge.edge_type, type_and_name(edge.parent_id)[0], page.type)
        name = next((one for one in kind.back_links if one in kept), None) if kind else None
        if name and edge.parent_id in results:
            found.append((name, results[edge.parent_id], ""))
    return found
