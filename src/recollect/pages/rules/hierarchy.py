"""Which types of pages there are and which edges lead from one to the next, as a table (B01).

    Workflow (carries a github_url)
    Principle       -> implemented_by -> Implementation   (at least one)
    Principle       -> uses_heuristic -> Heuristic
    Implementation  -> uses_heuristic -> Heuristic
    Implementation  -> requires_env   -> Environment
    Environment, Heuristic: leaves

Another hierarchy is another table; nothing below knows these names. Types are listed from the bottom up: that is the
order in which pages are written (B14), and decisions are made in the opposite one.

The sub-graphs of a batch of new pages (B09) are, from each root, everything that its forward edges lead to:

    root              a page that no other new page leads to; each root of a component is planned by itself
    shared child      belongs to the first sub-graph that reaches it, and is referenced by the others: decided once
    cycle             cut at an edge that points up the type order, else at the page nearest to a root, else at the
                      smallest id; each cut is said
    isolated page     a sub-graph of one

Only links of the hierarchy's table count. Back-links say what a parent says already, and are never read as edges.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from recollect.pages.rules.page import NOTE, PLAIN, TYPED_TITLE, PageFinding, WikiLink, WikiPage, type_and_name


@dataclass(frozen=True, kw_only=True, slots=True)
class PageType:
    name: str
    folder: str
    is_leaf: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeKind:
    """A forward edge: from pages of some types to pages of one; and what its back-links are called."""

    name: str
    sources: tuple[str, ...]
    target: str
    back_links: tuple[str, ...] = ()
    is_mandatory: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Hierarchy:
    types: tuple[PageType, ...]
    edges: tuple[EdgeKind, ...]
    references: tuple[str, ...] = ()
    """Relations that are known and lead to no child: a workflow's steps, pages worth reading, contradictions."""

    def rank(self, type: str) -> int:
        """How high a type stands; types that the table does not name stand above all."""
        return next((number for number, page_type in enumerate(self.types) if page_type.name == type), len(self.types))

    def type_named(self, name: str) -> PageType | None:
        return next((type_ for type_ in self.types if type_.name.casefold() == name.strip().casefold()), None)

    def type_of_folder(self, folder: str) -> PageType | None:
        return next((type_ for type_ in self.types if type_.folder == folder.casefold()), None)

    def edge_kind(self, relation: str, source: str, target: str) -> EdgeKind | None:
        """The forward edge that a relation between two types is; None where it is none."""
        for kind in self.edges:
            if kind.name == relation and source in kind.sources and kind.target == target:
                return kind
        return None

    def is_back_link(self, relation: str, source: str, target: str) -> bool:
        """Whether a relation points from a child up to its parent. Some pages use the forward name for that too."""
        return any(
            relation in (*kind.back_links, kind.name) and kind.target == source and target != source
            for kind in self.edges
        )

    def knows(self, relation: str) -> bool:
        """Whether the table names the relation at all."""
        named = {*self.references, PLAIN, *(name for kind in self.edges for name in (kind.name, *kind.back_links))}
        return relation in named


WIKI = Hierarchy(
    types=(
        PageType(name="Environment", folder="environments", is_leaf=True),
        PageType(name="Heuristic", folder="heuristics", is_leaf=True),
        PageType(name="Implementation", folder="implementations"),
        PageType(name="Principle", folder="principles"),
        PageType(name="Workflow", folder="workflows"),
    ),
    edges=(
        EdgeKind(
            name="implemented_by",
            sources=("Principle",),
            target="Implementation",
            back_links=("implements",),
            is_mandatory=True,
        ),
        EdgeKind(
            name="uses_heuristic",
            sources=("Principle", "Implementation"),
            target="Heuristic",
            back_links=("used_by",),
        ),
        EdgeKind(
            name="requires_env",
            sources=("Implementation",),
            target="Environment",
            back_links=("required_by",),
        ),
    ),
    references=("step", "related", "contradicts"),
)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class PageEdge:
    """A forward edge between two pages."""

    source: str
    relation: str
    target: str


def forward_links(page: WikiPage, hierarchy: Hierarchy = WIKI) -> Iterator[WikiLink]:
    """The links of a page that lead down the hierarchy."""
    for link in page.links:
        if link.style == "typed" and hierarchy.edge_kind(link.relation, page.type, type_and_name(link.target)[0]):
            yield link


def forward_edges(page: WikiPage, hierarchy: Hierarchy = WIKI) -> list[PageEdge]:
    """The forward edges of a page, each once, in the order of its text."""
    edges = (
        PageEdge(source=page.id, relation=link.relation, target=link.target) for link in forward_links(page, hierarchy)
    )
    return list(dict.fromkeys(edges))


def children_by_parent(pages: Iterable[WikiPage], hierarchy: Hierarchy = WIKI) -> dict[str, list[PageEdge]]:
    """The forward edges of each page that lead to another of these pages."""
    by_id = {page.id: page for page in pages}
    return {id: [edge for edge in forward_edges(page, hierarchy) if edge.target in by_id] for id, page in by_id.items()}


def execution_order(types_by_id: Mapping[str, str], hierarchy: Hierarchy = WIKI) -> list[str]:
    """Bottom-up: leaves first, ties by page id (B14)."""
    return sorted(types_by_id, key=lambda id: (hierarchy.rank(types_by_id[id]), id))


# -- findings


def findings(pages: Iterable[WikiPage], hierarchy: Hierarchy = WIKI) -> list[PageFinding]:
    """What does not fit the hierarchy (B01): reported, kept, and not followed."""
    return [PageFinding(page=page.id, message=message) for page in pages for message in _messages(page, hierarchy)]


def _messages(page: WikiPage, hierarchy: Hierarchy) -> Iterator[str]:
    if page.type == NOTE:
        yield from _of_note(page, hierarchy)
        return
    if hierarchy.type_named(page.type) is None:
        yield f"Its type {page.type} is not one of the hierarchy's: it is compared with pages of its own type only."
    for kind in hierarchy.edges:
        if kind.is_mandatory and page.type in kind.sources and not _has(page, kind, hierarchy):
            yield f"A {page.type} needs at least one {kind.target} ({kind.name})."
    for link in dict.fromkeys(link for link in page.links if link.style == "typed"):
        if problem := _problem_of(page, link, hierarchy):
            yield problem


def _of_note(page: WikiPage, hierarchy: Hierarchy) -> Iterator[str]:
    """A note is bound to nothing; but one that is written like a typed page may have meant to be one."""
    typed = [link for link in dict.fromkeys(page.links) if link.style == "typed" and link.relation != PLAIN]
    named = TYPED_TITLE.fullmatch(page.title or "")
    if named and (typed or page.format == "wiki"):
        yield f"Its title names the type {named[1]}, which is not known: it is taken as a note."
    for link in typed:
        if not hierarchy.knows(link.relation):
            yield _unknown(link)


def _unknown(link: WikiLink) -> str:
    return f"The relation of [[{link.relation}::{link.target}]] is not known: it is kept as a reference."


def _has(page: WikiPage, kind: EdgeKind, hierarchy: Hierarchy) -> bool:
    return any(link.relation == kind.name for link in forward_links(page, hierarchy))


def _problem_of(page: WikiPage, link: WikiLink, hierarchy: Hierarchy) -> str | None:
    target_type = type_and_name(link.target)[0]
    edge = f"[[{link.relation}::{link.target}]]"
    if not hierarchy.knows(link.relation):
        return _unknown(link)
    if link.relation in (*hierarchy.references, PLAIN):
        return None
    if hierarchy.edge_kind(link.relation, page.type, target_type):
        return None
    if hierarchy.is_back_link(link.relation, page.type, target_type):
        return None
    own = hierarchy.type_named(page.type)
    if own and own.is_leaf:
        return f"A {page.type} is a leaf and has no forward edges, but says {edge}: it is kept as a reference."
    return f"{edge} does not lead from a {page.type} to a {target_type}: it is kept as a reference."


# -- the sub-graphs of a batch


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
        by_target: dict[str, list[PageEdge]] = {}
        for edge in self.edges:
            by_target.setdefault(edge.target, []).append(edge)
        return by_target


def detect_subgraphs(pages: Sequence[WikiPage], hierarchy: Hierarchy = WIKI) -> Detected:
    """All sub-graphs of the new pages; roots of high types first, then by id, whatever order the pages came in."""
    types = {page.id: page.type for page in pages}
    edges, cuts = without_cycles(_edges(pages, types, hierarchy), types, hierarchy)
    roots = sorted(types.keys() - {edge.target for edge in edges}, key=lambda id: (-hierarchy.rank(types[id]), id))
    return Detected(
        subgraphs=tuple(_collected(roots, edges, types, hierarchy)),
        edges=tuple(edges),
        findings=tuple(cuts),
    )


def _edges(pages: Iterable[WikiPage], types: Mapping[str, str], hierarchy: Hierarchy) -> list[PageEdge]:
    """The edges among the new pages. Others lead to pages that are there already, or nowhere: page_links says which."""
    edges = (edge for page in pages for edge in forward_edges(page, hierarchy))
    return sorted({edge for edge in edges if edge.target in types})


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
    remaining = [edge for edge in edges if edge.source != edge.target]
    cuts = [_cut(edge, "it leads to itself") for edge in edges if edge.source == edge.target]
    while cycle := _a_cycle(remaining):
        edge, why = _weakest(cycle, remaining, types, hierarchy)
        remaining = [other for other in remaining if (other.source, other.target) != (edge.source, edge.target)]
        cuts.append(_cut(edge, why))
    return remaining, cuts


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
