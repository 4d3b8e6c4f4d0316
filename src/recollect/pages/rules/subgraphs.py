"""The sub-graphs of a batch of new pages (B09): from each root, everything that its forward edges lead to.

    root              a page that no other new page leads to; each root of a component is planned by itself
    shared child      belongs to the first sub-graph that reaches it, and is referenced by the others: decided once
    cycle             cut at an edge that points up the type order, else at the page nearest to a root, else at the
                      smallest id; each cut is said
    isolated page     a sub-graph of one

Only links of the hierarchy's table count. Back-links say what a parent says already, and are never read as edges.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from recollect.pages.rules.hierarchy import WIKI, Hierarchy, PageEdge, execution_order, forward_edges
from recollect.pages.rules.page import PageFinding, WikiPage


@dataclass(frozen=True, kw_only=True, slots=True)
class SubGraph:
    """What is planned and applied together. `nodes` are its own, top-down; `shared` belong to an earlier sub-graph."""

    id: str
    root: str
    nodes: tuple[str, ...]
    shared: tuple[str, ...] = ()
    edges: tuple[PageEdge, ...] = ()
    execution_order: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Detected:
    subgraphs: tuple[SubGraph, ...]
    edges: tuple[PageEdge, ...]
    findings: tuple[PageFinding, ...] = ()

    def parents(self) -> dict[str, list[PageEdge]]:
        """The edges that lead to each page, inside the batch."""
        found: dict[str, list[PageEdge]] = {}
        for edge in self.edges:
            found.setdefault(edge.target, []).append(edge)
        return found


def detect_subgraphs(pages: Sequence[WikiPage], hierarchy: Hierarchy = WIKI) -> Detected:
    """All sub-graphs of the new pages; roots of high types first, then by id, whatever order the pages came in."""
    types = {page.id: page.type for page in pages}
    edges, cuts = without_cycles(_edges(pages, types, hierarchy), types, hierarchy)
    roots = _sorted(types.keys() - {edge.target for edge in edges}, types, hierarchy)
    return Detected(
        subgraphs=tuple(_collected(roots, edges, types, hierarchy)),
        edges=tuple(edges),
        findings=tuple(cuts),
    )


def _edges(pages: Iterable[WikiPage], known: Mapping[str, str], hierarchy: Hierarchy) -> list[PageEdge]:
    """The edges among the new pages. Others lead to pages that are there already, or nowhere: page_links says which."""
    edges = (edge for page in pages for edge in forward_edges(page, hierarchy))
    return sorted({edge for edge in edges if edge.target in known})


def _sorted(ids: Iterable[str], types: Mapping[str, str], hierarchy: Hierarchy) -> list[str]:
    return sorted(ids, key=lambda id: (-hierarchy.rank(types[id]), id))


def _collected(
    roots: Sequence[str], edges: Sequence[PageEdge], types: Mapping[str, str], hierarchy: Hierarchy
) -> Iterable[SubGraph]:
    below: dict[str, list[PageEdge]] = {}
    for edge in edges:
        below.setdefault(edge.source, []).append(edge)
    owned: set[str] = set()
    for number, root in enumerate(roots, start=1):
        reached = _breadth_first(root, below)
        own = [id for id in reached if id not in owned]
        shared = tuple(id for id in reached if id in owned)
        owned.update(own)
        yield SubGraph(
            id=f"subgraph_{number}",
            root=root,
            nodes=tuple(own),
            shared=shared,
            edges=tuple(edge for id in own for edge in below.get(id, ())),
            execution_order=tuple(execution_order({id: types[id] for id in own}, hierarchy)),
        )


def _breadth_first(root: str, below: Mapping[str, Sequence[PageEdge]]) -> list[str]:
    reached = {root: None}
    waiting = deque([root])
    while waiting:
        for edge in below.get(waiting.popleft(), ()):
            if edge.target not in reached:
                reached[edge.target] = None
                waiting.append(edge.target)
    return list(reached)


# -- cycles


def without_cycles(
    edges: Sequence[PageEdge], types: Mapping[str, str], hierarchy: Hierarchy
) -> tuple[list[PageEdge], list[PageFinding]]:
    """The edges without those that close a cycle, and what was cut."""
    kept = [edge for edge in edges if edge.source != edge.target]
    said = [_cut(edge, "it leads to itself") for edge in edges if edge.source == edge.target]
    while cycle := _a_cycle(kept):
        edge, why = _weakest(cycle, kept, types, hierarchy)
        kept = [one for one in kept if (one.source, one.target) != (edge.source, edge.target)]
        said.append(_cut(edge, why))
    return kept, said


def _a_cycle(edges: Sequence[PageEdge]) -> list[tuple[str, str]]:
    """The steps of one cycle, parent to child; empty where there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for edge in edges:
        sorter.add(edge.target, edge.source)
    try:
        sorter.prepare()
    except CycleError as error:
        # Each node of the path is an immediate predecessor of the next: a parent of it.
        path: list[str] = error.args[1]
        return list(pairwise(path))
    return []


def _weakest(
    cycle: Sequence[tuple[str, str]], edges: Sequence[PageEdge], types: Mapping[str, str], hierarchy: Hierarchy
) -> tuple[PageEdge, str]:
    """The edge to cut a cycle at, and why that one."""
    steps = [edge for edge in edges if (edge.source, edge.target) in set(cycle)]
    up = [edge for edge in steps if hierarchy.rank(types[edge.target]) > hierarchy.rank(types[edge.source])]
    if up:
        return min(up), "it points up the order of types"
    depth = _depths(edges)
    far = len(types) + 1
    return min(steps, key=lambda edge: (depth.get(edge.target, far), edge.target, edge)), "it closes a cycle"


def _depths(edges: Sequence[PageEdge]) -> dict[str, int]:
    """How far below a root each page is; pages that no root reaches are missing."""
    below: dict[str, list[str]] = {}
    for edge in edges:
        below.setdefault(edge.source, []).append(edge.target)
    depth = dict.fromkeys(below.keys() - {edge.target for edge in edges}, 0)
    waiting = deque(sorted(depth))
    while waiting:
        here = waiting.popleft()
        for child in below.get(here, ()):
            if child not in depth:
                depth[child] = depth[here] + 1
                waiting.append(child)
    return depth


def _cut(edge: PageEdge, why: str) -> PageFinding:
    message = f"[[{edge.relation}::{edge.target}]] was not followed, because {why}."
    return PageFinding(page=edge.source, message=message)
