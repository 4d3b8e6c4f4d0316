"""Looking at pages: one with its links, back-links, history and versions; what changed between two; all, as files."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.errors import InvalidInput, NotFound
from recollect.graph.sql import edges
from recollect.memories.sql import nodes
from recollect.model import Edge, Kind, Node, NodeFilter
from recollect.model import Page as Stretch
from recollect.pages import sql as kept
from recollect.pages.files import PagesWritten, write_folder
from recollect.pages.rules.links import resolve
from recollect.pages.rules.page import Format, WikiPage
from recollect.pages.rules.stored import StoredPage, export_page, free_id
from recollect.plan import HistoryEntry
from recollect.plans.sql import journal
from recollect.store.database import Transaction

MOST_EDGES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class PageLink:
    """A link to or from another page."""

    relation: str
    page_id: str
    node_id: UUID
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """The text of a page from some moment on, and the plan that made it so."""

    number: int
    at: datetime
    reason: str
    plan_id: UUID | None
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PageView:
    """A page with all that is known of it. `nowhere` are links that lead to no page."""

    node: Node
    page_id: str
    title: str | None
    path: str
    format: Format
    domains: tuple[str, ...]
    links: tuple[PageLink, ...]
    back_links: tuple[PageLink, ...]
    nowhere: tuple[str, ...]
    versions: int
    history: tuple[HistoryEntry, ...]


async def resolved(core: Core, space_id: UUID, reference: UUID | str) -> UUID:
    """The page that is meant: by its id (`Principle:Loading`), name, path or alias, or by the UUID of its node."""
    async with core.transaction(space_id) as db:
        page_id = None if isinstance(reference, UUID) else await kept.meant(db, reference)
        if page_id is not None:
            return page_id
        try:
            return await nodes.resolve(db, str(reference))
        except (InvalidInput, NotFound) as problem:
            raise NotFound(kept.NO_PAGE.format(reference)) from problem


async def _stored(db: Transaction, id_: UUID) -> StoredPage:
    stored_pages = await kept.all_pages(db, [id_])
    if not stored_pages:
        raise NotFound(kept.NO_PAGE.format(id_))
    return stored_pages[0]


async def get(core: Core, space_id: UUID, reference: UUID | str) -> PageView:
    id_ = await resolved(core, space_id, reference)
    async with core.transaction(space_id) as db:
        stored = await _stored(db, id_)
        node = await nodes.get(db, id_)
        touching = await edges.of_node(db, id_, limit=MOST_EDGES)
        ends = {end for edge in touching for end in (edge.source, edge.target)}
        others = await nodes.get_many(db, [*ends])
        history = await journal.history(db, id_)
    page = stored.page
    linked = [_named(others[end]) for end in ends if others[end].source_id]
    nowhere = [resolved.link.target for resolved in resolve([page], linked).links if resolved.target is None]
    return PageView(
        node=node,
        page_id=page.id,
        title=page.title,
        path=page.path,
        format=page.format,
        domains=page.domains,
        links=_links(touching, others, "target", id_),
        back_links=_links(touching, others, "source", id_),
        nowhere=tuple(dict.fromkeys(nowhere)),
        versions=len(_versions(history)),
        history=tuple(history),
    )


def _named(node: Node) -> WikiPage:
    """As much of a page as is needed to find it by a link."""
    path = str(node.metadata.get("path") or f"{node.name}.md")
    fields = {"aliases": node.metadata.get("aliases", [])}
    name = node.name or ""
    return WikiPage(
        id=node.source_id or name, type=node.subtype, name=name, path=path, format="markdown", fields=fields
    )


def _links(touching: Sequence[Edge], others: Mapping[UUID, Node], end: str, own: UUID) -> tuple[PageLink, ...]:
    """The edges that lead to (`target`) or come from (`source`) other nodes."""
    links = [
        PageLink(
            relation=edge.relation,
            page_id=others[other].source_id or others[other].name or str(other),
            node_id=other,
            note=edge.explanation,
        )
        for edge in touching
        for other in [getattr(edge, end)]
        if other != own and others[other].status == "active"
    ]
    return tuple(sorted(links, key=lambda link: (link.relation, link.page_id)))


# -- versions


async def versions(core: Core, space_id: UUID, reference: UUID | str) -> list[Version]:
    """Every text that the page has had, oldest first."""
    id_ = await resolved(core, space_id, reference)
    async with core.transaction(space_id) as db:
        await _stored(db, id_)
        return _versions(await journal.history(db, id_))


def _versions(history: Sequence[HistoryEntry]) -> list[Version]:
    texts = [entry for entry in history if entry.after is not None and entry.after.get("text") is not None]
    return [
        Version(
            number=number, at=entry.at, reason=entry.reason, plan_id=entry.plan_id, text=(entry.after or {})["text"]
        )
        for number, entry in enumerate(texts, start=1)
    ]


async def diff(
    core: Core, space_id: UUID, reference: UUID | str, first: int | None = None, second: int | None = None
) -> str:
    """What changed between two versions, line by line; between the last two where none are named."""
    all_versions = await versions(core, space_id, reference)
    latest = len(all_versions)
    b = latest if second is None else second
    a = max(1, b - 1) if first is None else first
    for number in (a, b):
        if not 1 <= number <= latest:
            raise InvalidInput(f"There is no version {number}: the page has {latest}.", field="version")
    old, new = all_versions[a - 1].text, all_versions[b - 1].text
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"version {a}", f"version {b}", lineterm="")
    return "\n".join(lines)


# -- all of them


async def list_pages(
    core: Core, space_id: UUID, *, type: str | None = None, limit: int = 50, cursor: str | None = None
) -> Stretch:
    node_filter = NodeFilter(kinds=(Kind.PAGE,), subtypes=(type,) if type else ())
    async with core.transaction(space_id) as db:
        return await nodes.list_page(db, node_filter, limit=limit, cursor=cursor)


async def export(core: Core, space_id: UUID, folder: Path, *, format: Format | None = None) -> PagesWritten:
    """Write every page to its path; as it came where it was not touched, and else, or on demand, in a format."""
    async with core.database.snapshot(space_id) as db:
        stored = [page for page in await kept.all_pages(db) if page.is_living]
    return await anyio.to_thread.run_sync(_write, folder, [page.page for page in stored], format)


def _write(folder: Path, pages: Sequence[WikiPage], format: Format | None) -> PagesWritten:
    taken: set[str] = set()
    files = []
    for page in pages:
        path = _free(page.path, taken)
        taken.add(path)
        files.append((path, export_page(page, format)))
    return write_folder(folder, files)


def _free(path: str, taken: set[str]) -> str:
    """The path; where another page has it already, one beside it."""
    if path not in taken:
        return path
    stem, dot, suffix = path.rpartition(".")
    return free_id(stem, {name.rpartition(".")[0] for name in taken}) + dot + suffix
