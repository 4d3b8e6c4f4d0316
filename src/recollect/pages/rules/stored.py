"""Pages between their files and the store: a page is its text and its path, and everything else is read from those.

Which page a file is follows from its path and title: `implementations/Loader.md` or `# Implementation: Loader` is
`Implementation:Loader`. Anything else is a Note, named by its path, as a vault of Markdown has them.

The node of a page holds the file as it is (`text`), so that an untouched page is exported byte by byte; its type
(`subtype`), its name, its id (`source_id`), and in the metadata what lists and filters ask for. `came_from` there says
which files came to this page, by checksum and id: a file that came before and has not changed is known again, whatever
it became. So is the file that a page is exported as.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from recollect.memories.rules.text import checksum
from recollect.pages.rules import markdown, wiki
from recollect.pages.rules.decisions import DeferredEdge, MergePlan, NodePlan, SubgraphPlan, Verdict
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.markdown import EMPTY_FRONT_MATTER, parse_markdown, render_markdown
from recollect.pages.rules.page import NOTE, TYPED_TITLE, Format, PageFinding, WikiPage, normal_name, page_id
from recollect.pages.rules.similarity import text_for_vector
from recollect.pages.rules.text import outside_code
from recollect.pages.rules.wiki import Parsed, parse_wiki, render_wiki
from recollect.plan import Row

SOURCE = "pages"
CAME_FROM = "came_from"
CameFrom = Mapping[str, str | list[str]]
_FRONT_MATTER_OPENS = re.compile(r"---[ \t]*\n")
_READ: dict[Format, Callable[[str], Parsed]] = {"wiki": parse_wiki, "markdown": parse_markdown}
_WRITE: dict[Format, Callable[[WikiPage], str]] = {"wiki": render_wiki, "markdown": render_markdown}


# -- a file becomes a page, a page becomes a file, whichever format either is in


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A page as it was read, and what is to be said about it."""

    page: WikiPage
    findings: tuple[PageFinding, ...] = ()


def read_page(path: str, text: str, hierarchy: Hierarchy = WIKI) -> Read:
    """The page that a file holds. Nothing is lost: what is not understood stays text, and is named."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    format, notes = detect(plain)
    parsed = _READ[format](plain)
    type, name, doubts = _identity(PurePosixPath(path), parsed, hierarchy)
    about = parsed.about
    page = WikiPage(
        id=name if type == NOTE else page_id(type, name),
        type=type,
        name=name,
        path=path,
        format=format,
        title=parsed.title,
        sources=about.sources,
        domains=about.domains,
        last_updated=about.last_updated,
        fields=about.fields,
        lead=parsed.lead,
        sections=parsed.sections,
        raw=text,
    )
    messages = [*about.problems, *notes, *doubts]
    if not (page.title or page.lead or page.sections):
        messages.append("It is empty.")
    return Read(page=page, findings=tuple(PageFinding(page=page.id, message=message) for message in messages))


def export_page(page: WikiPage, format: Format | None = None) -> str:
    """The page as a file: as it was where nobody touched it, written anew where it changed or changes its format."""
    target = format or page.format
    if page.raw is not None and target == page.format:
        return page.raw
    text = _WRITE[target](page)
    # A wiki page always has its infobox. Markdown that would be taken for a wiki page says that it is none.
    return text if detect(text)[0] == target else f"{EMPTY_FRONT_MATTER}\n\n{text}"


def detect(text: str) -> tuple[Format, list[str]]:
    """The format of a text, and a note where it is written in both."""
    if _FRONT_MATTER_OPENS.match(text):
        return "markdown", []
    _, rest = wiki.cut_title(list(outside_code(text)))
    as_wiki = sum(wiki.HEADING.fullmatch(line) is not None for line in rest)
    as_markdown = sum(markdown.HEADING.fullmatch(line) is not None for line in rest if line.startswith("##"))
    first = next((line.strip() for line in wiki.cut_title(text.split("\n"))[1] if line.strip()), "")
    if first.startswith("{|") or as_wiki > as_markdown:
        note = f"It has {as_markdown} Markdown headings in a wiki page: they were kept as text."
        return "wiki", [note] if as_markdown else []
    note = f"It has {as_wiki} wiki headings in a Markdown page: they were kept as text."
    return "markdown", [note] if as_wiki else []


def _identity(path: PurePosixPath, parsed: Parsed, hierarchy: Hierarchy) -> tuple[str, str, list[str]]:
    """Type and name of the page, and what speaks against them."""
    titled = TYPED_TITLE.fullmatch(parsed.title or "")
    by_title = hierarchy.type_named(titled[1]) if titled else None
    given = parsed.about.fields.get("type")
    by_field = hierarchy.type_named(given) if isinstance(given, str) else None
    by_folder = next((page_type for part in path.parts[-2::-1] if (page_type := hierarchy.type_of_folder(part))), None)
    votes = [vote.name for vote in (by_folder, by_field, by_title) if vote]
    if not votes:
        return NOTE, str(path.with_suffix("")) if path.suffix.lower() in (".md", ".markdown") else str(path), []
    doubts = []
    if len(set(votes)) > 1:
        doubts.append(f"It is a {votes[0]} by its place and a {votes[-1]} by its own words: it is taken as {votes[0]}.")
    return votes[0], path.stem, doubts


def distinct(pages: Iterable[WikiPage]) -> tuple[list[WikiPage], list[PageFinding]]:
    """The pages with an id each of its own; a second one of a name gets a suffix, and both are named (B16)."""
    by_id: dict[str, WikiPage] = {}
    seen: dict[str, str] = {}
    findings: list[PageFinding] = []
    for page in pages:
        id = free_id(page.id, by_id)
        if id != page.id:
            message = f"{page.path} has the same name as {by_id[page.id].path}: it becomes {id}."
            findings.append(PageFinding(page=page.id, message=message))
            page = replace(page, id=id, name=page.name + id.removeprefix(page.id))
        elif (twin := seen.get(normal_name(page.id))) is not None:
            findings.append(
                PageFinding(page=page.id, message=f"Its name differs from {twin} only in case, `_` or spaces.")
            )
        by_id[page.id] = page
        seen.setdefault(normal_name(page.id), page.id)
    return list(by_id.values()), findings


def free_id(id: str, taken: Iterable[str]) -> str:
    """The id, or the first of id_2, id_3 ... that is not taken."""
    names = taken if isinstance(taken, dict | set | frozenset) else set(taken)
    number, free = 1, id
    while free in names:
        number += 1
        free = f"{id}_{number}"
    return free


# -- as they are kept


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
        files: CameFrom = self.row["metadata"].get(CAME_FROM, {})
        return files

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
        "sources": [{"kind": source.kind, "title": source.title, "url": source.url} for source in page.sources],
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
    fixed = {"kind": "page", "status": "active", "source": SOURCE, "source_id": page.id}
    return {**fixed, **row_of(page, came_from), **moments}


def embedded_by(name: str | None, text: str) -> str:
    """What a page is embedded by, wherever that is done: its name and the beginning of its overview."""
    return text_for_vector(replace(read_page("page.md", text).page, name=name or ""))


# -- what came before


def came_also(before: CameFrom, sum: str, id: str) -> CameFrom:
    """What came to a page, and one file more; the same text may have come under several ids."""
    ids = before.get(sum, [])
    ids_before = [ids] if isinstance(ids, str) else list(ids)
    if id in ids_before:
        return before
    return {**before, sum: [*ids_before, id] if ids_before else id}


def known_results(new: Iterable[WikiPage], stored: Iterable[StoredPage]) -> dict[str, str]:
    """For each new page that came before, word for word, the page it became."""
    became = {key: page.page.id for page in stored if page.is_living for key in page.known_as}
    results = {page.id: became.get((page.id, checksum(page.raw or ""))) for page in new}
    return {id: result for id, result in results.items() if result is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFirst:
    """Scores in which a page that came before meets what it became, and nothing else."""

    scores: Any
    known: Mapping[str, str]
    taken: Collection[str] = field(default_factory=frozenset)

    def of(self, new_id: str, old_ids: Sequence[str]) -> list[float]:
        if new_id in self.known:
            return [float(id == self.known[new_id]) for id in old_ids]
        scores = self.scores.of(new_id, old_ids)
        return [0.0 if id in self.taken else score for id, score in zip(old_ids, scores, strict=True)]


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
