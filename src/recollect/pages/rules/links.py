"""Where links lead: each to a page, or nowhere, and then a finding says so.

[[edge::Type:Name]]   the page of that id; else the one whose name differs only in case, `_` and spaces
[[Name]]              as Obsidian finds it: the path, a file of that name (nearest first), an alias
[text](path.md)       the file at that path, seen from the page's folder, else from the top; exactly as written
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.page import (
    Format,
    PageFinding,
    Section,
    WikiLink,
    WikiPage,
    changed,
    links_and_places,
    links_in,
    normal_name,
)
from recollect.pages.rules.stored import read_page
from recollect.pages.rules.text import blocks, lines_with_code

EdgeKey = tuple[str, str, str]
"""Source page, relation, target page."""
MOST_SIGNS = 8
"""So many # of a link may belong to the name of its page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """A link of a page, and the page it leads to; None where it leads nowhere."""

    source: str
    link: WikiLink
    target: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    links: tuple[Resolved, ...]
    findings: tuple[PageFinding, ...] = ()


class Directory:
    """How pages can be found: by id, by path, by name, by alias."""

    def __init__(self, pages: Iterable[WikiPage]) -> None:
        self._ids: dict[str, str] = {}
        self._normal_ids: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._normal_paths: dict[str, str] = {}
        self._endings: dict[str, list[WikiPage]] = {}
        self._names: dict[str, list[WikiPage]] = {}
        self._aliases: dict[str, list[WikiPage]] = {}
        in_order = sorted(pages, key=lambda page: page.path)  # what is found never hangs on the order they come in
        for page in in_order:
            self._add(page)
        for page in in_order:  # when each has what is written just so
            for spelling in (page.path, without_suffix(page.path)):
                self._normal_paths.setdefault(spelling.casefold(), page.id)

    def _add(self, page: WikiPage) -> None:
        path, file = without_suffix(page.path), PurePosixPath(page.path)
        self._ids[page.id] = page.id
        self._normal_ids.setdefault(normal_name(page.id), page.id)
        self._paths.setdefault(page.path, page.id)
        for spelling in (page.path, path):
            self._normal_paths.setdefault(spelling, page.id)
        self._endings.setdefault(PurePosixPath(path).name.casefold(), []).append(page)
        for name in dict.fromkeys(map(normal_name, (file.stem, page.name))):
            self._names.setdefault(name, []).append(page)
        for name in dict.fromkeys(map(normal_name, page.aliases)):
            self._aliases.setdefault(name, []).append(page)

    def find(self, page: WikiPage, link: WikiLink) -> str | None:
        """The page that a link on a page leads to."""
        return self.read(page, link)[1]

    def read(self, page: WikiPage, link: WikiLink) -> tuple[WikiLink, str | None]:
        """A link, its name and the place on the page told apart as they are meant, and the page that it leads to."""
        if link.style == "path":
            return link, self._at_path(page, link.target)
        for reading in _readings(link):
            if id_ := self._by_id(reading.target) if link.style == "typed" else self._by_wikilink(page, reading.target):
                return reading, id_
        return link, None

    def _by_id(self, target: str) -> str | None:
        return self._ids.get(target) or self._normal_ids.get(normal_name(target))

    def nearly(self, page: WikiPage, link: WikiLink) -> str | None:
        """What a link to nowhere may have meant: the file at its path but for case."""
        if link.style != "path":
            return None
        tries = (self._normal_paths.get(without_suffix(path).casefold()) for path in _paths(page, link.target))
        return next(filter(None, tries), None)

    def _at_path(self, page: WikiPage, target: str) -> str | None:
        return next(filter(None, (self._paths.get(path) for path in _paths(page, target))), None)

    def _by_wikilink(self, page: WikiPage, target: str) -> str | None:
        if not target:  # [[#heading]] is a place on the page itself
            return page.id
        whole = target.removeprefix("/")
        if id_ := self._normal_paths.get(whole) or self._normal_paths.get(without_suffix(whole).casefold()):
            return id_
        if "/" in target:
            return self._by_end_of_path(page, target)
        name = normal_name(without_suffix(target))
        named = self._names.get(name) or self._aliases.get(name, [])
        return min(named, key=lambda candidate: _distance(page, candidate)).id if named else None

    def _by_end_of_path(self, page: WikiPage, target: str) -> str | None:
        """The page at that path from this one's folder; else one whose path ends so, the nearest to the top first."""
        if at := self._normal_paths.get(without_suffix(_from(page, target)).casefold()):
            return at
        end = "/" + without_suffix(target).casefold().lstrip("/")
        same = self._endings.get(PurePosixPath(end).name, [])
        ends = [candidate for candidate in same if without_suffix(candidate.path).casefold().endswith(end)]
        return min(ends, key=lambda candidate: (candidate.path.count("/"), candidate.path)).id if ends else None


def resolve(pages: Sequence[WikiPage], others: Iterable[WikiPage] = ()) -> Resolution:
    """Where every link of these pages leads, among them and some others."""
    directory = Directory([*pages, *others])
    links: list[Resolved] = []
    findings: list[PageFinding] = []
    for page in pages:
        for link in page.links:
            read, target = directory.read(page, link)
            links.append(Resolved(source=page.id, link=link, target=target))
            if target is None:
                findings.append(PageFinding(page=page.id, message=_nowhere(link, directory.nearly(page, link))))
            elif link.style == "typed" and target != read.target:
                message = f"[[{read.target}]] is taken as {target}: the name differs in case, `_` or spaces."
                findings.append(PageFinding(page=page.id, message=message))
    return Resolution(links=tuple(links), findings=tuple(findings))


def _nowhere(link: WikiLink, nearly: str | None) -> str:
    written = f"({link.target})" if link.style == "path" else f"[[{link.target}]]"
    hint = f" {nearly} differs from it only in case." if nearly else ""
    return f"The link {written} leads nowhere: it was kept as text.{hint}"


def _readings(link: WikiLink) -> Iterator[WikiLink]:
    """What a link may mean, the longest name first: a name may hold a #; else what follows is a place on the page."""
    inside = link.written.removeprefix("!")[2:-2].partition("|")[0].removesuffix("\\").strip()
    whole = inside.removeprefix(f"{link.relation}::").strip()
    signs = [index for index, sign in enumerate(whole) if sign == "#"][:MOST_SIGNS]
    yield replace(link, target=whole, anchor="") if signs else link
    for index in reversed(signs):
        yield replace(link, target=whole[:index].strip(), anchor=whole[index + 1 :].strip())


def _paths(page: WikiPage, target: str) -> list[str]:
    """The paths that a link may mean: as written or decoded, from the page's folder or from the top."""
    spellings = dict.fromkeys((target, unquote(target)))
    return [path for spelling in spellings for path in (_from(page, spelling), normpath(spelling.lstrip("/")))]


def _from(page: WikiPage, target: str) -> str:
    folder = PurePosixPath(page.path).parent
    return normpath(target.lstrip("/") if target.startswith("/") else str(folder / target))


def without_suffix(path: str) -> str:
    """A path as a wikilink names it."""
    for suffix in (".md", ".markdown"):
        if path.lower().endswith(suffix):
            return path[: -len(suffix)]
    return path


def _distance(page: WikiPage, other: WikiPage) -> tuple[bool, int, str]:
    """Pages of the same folder first, then those nearest to the top."""
    here, there = PurePosixPath(page.path).parent, PurePosixPath(other.path)
    return (there.parent != here, len(there.parts), other.path)


# -- links in a text written anew, everything else sign by sign as it was


BYTE_ORDER_MARK = "\ufeff"
_BREAK = re.compile(r"\r\n|\r|\n")
_BARE_BAR = re.compile(r"(?<!\\)\|")


def rewrite_links(text: str, anew: Mapping[str, str], format: Format = "wiki") -> str:
    """A text with its links written anew, by how they were written; code stays as it is, and so does every line end."""
    if not anew or not any(written in text for written in anew):
        return text
    start = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""  # reading takes it off too
    lines = lines_with_code(_BREAK.sub("\n", text.removeprefix(start)))
    written = [line if is_code else _rewritten(line, anew, format) for line, is_code in lines]
    return start + "".join(part for both in zip(written, [*_BREAK.findall(text), ""], strict=True) for part in both)


def _rewritten(line: str, anew: Mapping[str, str], format: Format) -> str:
    parts: list[str] = []
    end = 0
    for (start, stop), link in links_and_places(line):
        if start >= end and link.written in anew:
            text = anew[link.written]
            if format == "markdown" and line.lstrip().startswith("|"):
                text = _BARE_BAR.sub(r"\\|", text)  # else it would part two cells of a table
            parts += (line[end:start], text)
            end = stop
    return "".join([*parts, line[end:]])


def relinked(page: WikiPage, anew: Mapping[str, str]) -> WikiPage:
    """The page with its links written anew, in what was read and in the file as it was."""
    if not anew:
        return page
    if page.raw is not None:
        text = rewrite_links(page.raw, anew, page.format)
        return replace(read_page(page.path, text).page, id=page.id, type=page.type, name=page.name)
    title = None if page.title is None else rewrite_links(page.title, anew, page.format)
    sections = tuple(
        Section(
            level=section.level,
            heading=rewrite_links(section.heading, anew, page.format),
            body=rewrite_links(section.body, anew, page.format),
        )
        for section in page.sections
    )
    return changed(page, title=title, lead=rewrite_links(page.lead, anew, page.format), sections=sections)


def without_links(page: WikiPage, gone: Collection[str]) -> WikiPage:
    """The page without the lines that do nothing but link to pages that will not be there."""
    if not any(link.written in gone for link in page.links):
        return page
    sections = tuple(replace(section, body=_without_lines(section.body, gone)) for section in page.sections)
    lead = _without_lines(page.lead, gone)
    if lead == page.lead and sections == page.sections:
        return page
    return changed(page, lead=lead, sections=sections)


def _without_lines(body: str, gone: Collection[str]) -> str:
    lines = (line for line, is_code in lines_with_code(body) if is_code or not _only_links_to(line, gone))
    return "\n".join(lines).strip("\n")


def _only_links_to(line: str, gone: Collection[str]) -> bool:
    links = links_in([line])
    return bool(links) and all(link.written in gone for link in links) and blocks(line)[0].kind == "link"


# -- links as edges


def edges_between(pages: Sequence[WikiPage], hierarchy: Hierarchy = WIKI) -> dict[EdgeKey, WikiLink]:
    """The edges that the links of some pages are, each once, with the link that says most.

    A back-link says again what its parent says, and a link to a place on the page itself leads to no other: neither is
    an edge.
    """
    types = {page.id: page.type for page in pages}
    edges: dict[EdgeKey, WikiLink] = {}
    for resolved in resolve(pages).links:
        if resolved.target is None or resolved.target == resolved.source:
            continue
        if hierarchy.is_back_link(resolved.link.relation, types[resolved.source], types[resolved.target]):
            continue
        key = (resolved.source, resolved.link.relation, resolved.target)
        if key not in edges or edges[key].richness < resolved.link.richness:
            edges[key] = resolved.link
    return edges


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
