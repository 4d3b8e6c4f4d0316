"""Pages between their files and the store: a page is its text and its path, and everything else is read from those.

The node of a page holds the file as it is (`text`), so that an untouched page is exported byte by byte; its type
(`subtype`), its name, its id (`source_id`), and in the metadata what lists and filters ask for. `came_from` there says
which files came to this page, by checksum and id: a file that came before and has not changed is known again, whatever
it became. So is the file that a page is exported as.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.memories.rules.text import checksum
from recollect.pages.rules.formats import export_page, read_page
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.links import resolve
from recollect.pages.rules.merge_plan import DeferredEdge, MergePlan, NodePlan, SubgraphPlan, Verdict
from recollect.pages.rules.page import PageFinding, WikiLink, WikiPage
from recollect.pages.rules.similarity import text_for_vector
from recollect.plan import Row

SOURCE = "pages"
CAME_FROM = "came_from"
CameFrom = Mapping[str, str | list[str]]
EdgeKey = tuple[str, str, str]
"""Source page, relation, target page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPage:
    """A page as it is kept: its node, and the columns that a plan may change."""

    node_id: UUID
    page: WikiPage
    row: Row

    @property
    def is_living(self) -> bool:
        return bool(self.row["status"] == "active")

    @property
    def came_from(self) -> CameFrom:
        """The ids under which files came to this page, by their checksums: one, or several."""
        found: CameFrom = self.row["metadata"].get(CAME_FROM, {})
        return found

    @property
    def known_as(self) -> Iterator[tuple[str, str]]:
        """Every file (id, checksum) that adds nothing to this page: those that came to it, and its own export."""
        yield self.page.id, self.row["checksum"]
        for sum, ids in self.came_from.items():
            yield from ((id, sum) for id in ([ids] if isinstance(ids, str) else ids))

    def knows(self, sum: str, id: str) -> bool:
        return (id, sum) in self.known_as


@dataclass(frozen=True, kw_only=True, slots=True)
class PageBatch:
    """Pages that came in together: what is planned for them, and what was noticed when they were read."""

    id: UUID
    label: str
    plan: MergePlan
    findings: tuple[PageFinding, ...] = ()


# -- from rows, to rows


def page_from(*, id: str, type: str, name: str, path: str, text: str) -> WikiPage:
    """The page that a stored text is; which page it is was settled when it came in."""
    page = read_page(path, text).page
    return page if (page.id, page.type, page.name) == (id, type, name) else replace(page, id=id, type=type, name=name)


def row_of(page: WikiPage, came_from: CameFrom) -> dict[str, Any]:
    """The columns of a page's node that follow from the page."""
    text = export_page(page)
    about = {
        "path": page.path,
        "format": page.format,
        "title": page.title,
        "domains": list(page.domains),
        "sources": [{"kind": one.kind, "title": one.title, "url": one.url} for one in page.sources],
        "aliases": list(page.aliases),
        "last_updated": page.last_updated,
    }
    return {
        "subtype": page.type,
        "name": page.name,
        "text": text,
        "checksum": checksum(text),
        "metadata": {**{name: value for name, value in about.items() if value}, CAME_FROM: dict(came_from)},
    }


def new_row(page: WikiPage, came_from: CameFrom, now: datetime) -> dict[str, Any]:
    """The whole row of a page that is made."""
    moments = {"created_at": now.isoformat(), "updated_at": now.isoformat()}
    known = {"kind": "page", "status": "active", "source": SOURCE, "source_id": page.id}
    return {**known, **row_of(page, came_from), **moments}


def embedded_by(name: str | None, text: str) -> str:
    """What a page is embedded by, wherever that is done: its name and the beginning of its overview."""
    return text_for_vector(replace(read_page("page.md", text).page, name=name or ""))


# -- links as edges


def edges_between(pages: Sequence[WikiPage], hierarchy: Hierarchy = WIKI) -> dict[EdgeKey, WikiLink]:
    """The edges that the links of some pages are, each once, with the link that says most.

    A back-link says again what its parent says, and a link to a place on the page itself leads to no other: neither is
    an edge.
    """
    types = {page.id: page.type for page in pages}
    found: dict[EdgeKey, WikiLink] = {}
    for one in resolve(pages).links:
        if one.target is None or one.target == one.source:
            continue
        if hierarchy.is_back_link(one.link.relation, types[one.source], types[one.target]):
            continue
        key = (one.source, one.link.relation, one.target)
        if key not in found or found[key].richness < one.link.richness:
            found[key] = one.link
    return found


def edge_row(id: UUID, source: UUID, relation: str, target: UUID, link: WikiLink, now: datetime) -> dict[str, Any]:
    """A link as an edge. It has no strength of its own, so it does not fade: it stands as long as the text says so."""
    details = {"label": link.label, "anchor": link.anchor, "embed": link.embed}
    return {
        "id": str(id),
        "source": str(source),
        "target": str(target),
        "relation": relation,
        "explanation": link.note or None,
        "created_by": "import",
        "metadata": {name: value for name, value in details.items() if value},
        "created_at": now.isoformat(),
    }


# -- what came before


def came_also(before: CameFrom, sum: str, id: str) -> CameFrom:
    """What came to a page, and one file more; the same text may have come under several ids."""
    ids = before.get(sum, [])
    known = [ids] if isinstance(ids, str) else list(ids)
    if id in known:
        return before
    return {**before, sum: [*known, id] if known else id}


def known_results(new: Iterable[WikiPage], stored: Iterable[StoredPage]) -> dict[str, str]:
    """For each new page that came before, word for word, the page it became."""
    became = {key: one.page.id for one in stored if one.is_living for key in one.known_as}
    known = {page.id: became.get((page.id, checksum(page.raw or ""))) for page in new}
    return {id: result for id, result in known.items() if result is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFirst:
    """Scores in which a page that came before meets what it became, and nothing else."""

    scores: Any
    known: Mapping[str, str]
    taken: Collection[str] = field(default_factory=frozenset)

    def of(self, new_id: str, old_ids: Sequence[str]) -> list[float]:
        if new_id in self.known:
            return [float(id == self.known[new_id]) for id in old_ids]
        found = self.scores.of(new_id, old_ids)
        return [0.0 if id in self.taken else score for id, score in zip(old_ids, found, strict=True)]


# -- plans of a batch, as they are kept


def planned_row(node: NodePlan, subgraph: SubgraphPlan) -> dict[str, Any]:
    """What is planned for one page, in JSON's own terms."""
    return {
        "subgraph": subgraph.subgraph_id,
        "root": subgraph.root_id,
        "step": subgraph.execution_order.index(node.page_id),
        "type": node.page_type,
        "name": node.page.name if node.page else node.page_id,
        "decision": node.decision.value,
        "target": node.merge_target_id,
        "score": node.best_match_score,
        "reason": node.reason,
        "parent": node.parent_id,
        "edges": [[edge.parent_id, edge.edge_type, dict(edge.edge_metadata)] for edge in node.deferred_edges],
        "contradicts": list(node.contradicts),
    }


def node_from(page: WikiPage, planned: Mapping[str, Any]) -> NodePlan:
    return NodePlan(
        page_id=page.id,
        page_type=page.type,
        decision=Verdict(planned["decision"]),
        page=page,
        merge_target_id=planned["target"],
        best_match_score=planned["score"],
        reason=planned["reason"],
        parent_id=planned["parent"],
        deferred_edges=tuple(
            DeferredEdge(parent_id=parent, edge_type=relation, edge_metadata=more)
            for parent, relation, more in planned["edges"]
        ),
        contradicts=tuple(planned["contradicts"]),
    )


def plan_from(nodes: Sequence[tuple[NodePlan, Mapping[str, Any]]]) -> MergePlan:
    """The plan of a batch, from its pages in the order in which they were planned."""
    together: dict[str, list[tuple[NodePlan, Mapping[str, Any]]]] = {}
    for node, planned in nodes:
        together.setdefault(planned["subgraph"], []).append((node, planned))
    return MergePlan(
        subgraphs=tuple(
            SubgraphPlan(
                subgraph_id=id,
                root_id=members[0][1]["root"],
                nodes={node.page_id: node for node, _ in members},
                execution_order=tuple(
                    node.page_id for node, _ in sorted(members, key=lambda member: member[1]["step"])
                ),
            )
            for id, members in together.items()
        )
    )
