"""A merge carried out in memory: leaves first, every link to what its page became (B14, B16, B17).

Which id each new page ends with is settled before the first is written, so that links in every direction, back-links
and references too, can be rewritten at once. What is written here is what the store saves; the audit looks at it first.
"""

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from recollect.pages.rules.formats import free_id
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.merge_plan import (
    DeferredEdge,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.merging import merge_pages, with_links, with_rewritten_links, without_links_to
from recollect.pages.rules.page import PageFinding, WikiPage, changed, type_and_name


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    """A sub-graph carried out: the pages that were written, by id, the plan as it stands, and what was noted."""

    subgraph: SubgraphPlan
    written: Mapping[str, WikiPage]
    findings: tuple[PageFinding, ...] = ()


def result_ids(plan: MergePlan, existing: Iterable[str]) -> dict[str, str]:
    """The id that each new page ends with: its target's, else its own, with a suffix where that is taken (B16)."""
    taken = set(existing)
    results: dict[str, str] = {}
    for id, node in plan.nodes.items():
        if node.result_page_id is not None:
            results[id] = node.result_page_id
        elif node.decision is Verdict.MERGE and node.merge_target_id:
            results[id] = node.merge_target_id
    for id, node in plan.nodes.items():
        if id not in results and node.decision is Verdict.CREATE_NEW:
            results[id] = free_id(id, taken)
            taken.add(results[id])
    return results


def left_out(plan: MergePlan, results: Mapping[str, str]) -> set[str]:
    """The new pages that do not arrive."""
    return plan.nodes.keys() - results.keys()


def execute(
    subgraph: SubgraphPlan,
    pages: Mapping[str, WikiPage],
    results: Mapping[str, str],
    *,
    left_out: Collection[str] = (),
    updated: str | None = None,
    hierarchy: Hierarchy = WIKI,
) -> Executed:
    """Every node of a sub-graph that is not done yet, bottom-up. `pages` are those of the wiki as it stands.

    `left_out` are new pages that do not arrive (declined, or waiting for a person): nothing will link to them.
    """
    written: dict[str, WikiPage] = {}
    findings: list[PageFinding] = []
    nodes = dict(subgraph.nodes)
    there = ChainMap(written, dict(pages))
    for id in subgraph.execution_order:
        node = nodes[id]
        if node.status is NodeStatus.COMPLETED or node.page is None or id not in results:
            continue
        new = arriving(node.page, results, left_out)
        page, notes = _written(node, new, there, results, updated, hierarchy)
        if page != pages.get(page.id):
            written[page.id] = page
        findings += (PageFinding(page=page.id, message=note) for note in notes)
        nodes[id] = replace(node, status=NodeStatus.COMPLETED, result_page_id=page.id)
    done = replace(subgraph, nodes=nodes, status=SubgraphStatus.EXECUTING)
    return Executed(subgraph=done, written=written, findings=tuple(findings))


def arriving(page: WikiPage, results: Mapping[str, str], left_out: Collection[str] = ()) -> WikiPage:
    """A new page as it comes in: its links lead to what the pages became."""
    return with_rewritten_links(without_links_to(page, left_out), results)


def _written(
    node: NodePlan,
    new: WikiPage,
    pages: Mapping[str, WikiPage],
    results: Mapping[str, str],
    updated: str | None,
    hierarchy: Hierarchy,
) -> tuple[WikiPage, tuple[str, ...]]:
    """The page that a node ends in: made or merged, its back-links complete."""
    conflicts: tuple[str, ...] = ()
    if node.decision is Verdict.MERGE:
        merged = merge_pages(pages[results[node.page_id]], new, updated=updated)
        page, conflicts = merged.page, merged.conflicts
    else:
        page = _named(new, results[node.page_id])
    page = with_links(page, _back_links(page, node.deferred_edges, results, hierarchy))
    notes = [("contradicts", target, "the advice differs") for target in node.contradicts]
    return with_links(page, notes), conflicts


def _named(page: WikiPage, id: str) -> WikiPage:
    """The page under its id; where another had the name, its own name stays as an alias."""
    if id == page.id:
        return page
    name = type_and_name(id)[1]
    fields = {**page.fields, "aliases": [*page.aliases, page.name]}
    return changed(page, id=id, name=name, path=_renamed(page.path, name), fields=fields)


def _renamed(path: str, name: str) -> str:
    folder, slash, file = path.rpartition("/")
    dot = file.rpartition(".")
    return f"{folder}{slash}{name.rpartition('/')[2]}{dot[1]}{dot[2]}"


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
