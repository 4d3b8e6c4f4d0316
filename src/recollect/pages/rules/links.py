"""Where links lead: each to a page, or nowhere, and then a finding says so.

[[edge::Type:Name]]   the page of that id; else the one whose name differs only in case, `_` and spaces
[[Name]]              as Obsidian finds it: the path, a file of that name (nearest first), an alias
[text](path.md)       the file at that path, seen from the page's folder, else from the top; exactly as written
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from recollect.pages.rules.page import PageFinding, WikiLink, WikiPage, normal_name


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
        self._names: dict[str, list[WikiPage]] = {}
        for page in pages:
            self._ids[page.id] = page.id
            self._normal_ids.setdefault(normal_name(page.id), page.id)
            self._paths.setdefault(page.path, page.id)
            self._normal_paths.setdefault(_without_suffix(page.path).casefold(), page.id)
            names = (PurePosixPath(page.path).stem, page.name, *page.aliases)
            for name in dict.fromkeys(map(normal_name, names)):
                self._names.setdefault(name, []).append(page)

    def find(self, page: WikiPage, link: WikiLink) -> str | None:
        if link.style == "path":
            return self._at_path(page, link.target)
        if link.style == "typed":
            return self._ids.get(link.target) or self._normal_ids.get(normal_name(link.target))
        return self._by_wikilink(page, link.target)

    def nearly(self, page: WikiPage, link: WikiLink) -> str | None:
        """What a link to nowhere may have meant: the file at its path but for case."""
        if link.style != "path":
            return None
        tries = (self._normal_paths.get(_without_suffix(path).casefold()) for path in _paths(page, link.target))
        return next(filter(None, tries), None)

    def _at_path(self, page: WikiPage, target: str) -> str | None:
        return next(filter(None, (self._paths.get(path) for path in _paths(page, target))), None)

    def _by_wikilink(self, page: WikiPage, target: str) -> str | None:
        if not target:  # [[#heading]] is a place on the page itself
            return page.id
        if found := self._normal_paths.get(_without_suffix(target.removeprefix("/")).casefold()):
            return found
        if "/" in target:
            at = self._normal_paths.get(_without_suffix(_from(page, target)).casefold())
            ends = (path for path in self._normal_paths if path.endswith("/" + _without_suffix(target).casefold()))
            return at or self._normal_paths.get(min(ends, key=lambda path: (path.count("/"), path), default=""))
        named = self._names.get(normal_name(_without_suffix(target)), [])
        return min(named, key=lambda one: _distance(page, one)).id if named else None


def resolve(pages: Sequence[WikiPage], others: Iterable[WikiPage] = ()) -> Resolution:
    """Where every link of these pages leads, among them and some others."""
    directory = Directory([*pages, *others])
    links: list[Resolved] = []
    said: list[PageFinding] = []
    for page in pages:
        for link in page.links:
            target = directory.find(page, link)
            links.append(Resolved(source=page.id, link=link, target=target))
            if target is None:
                said.append(PageFinding(page=page.id, message=_nowhere(link, directory.nearly(page, link))))
            elif link.style == "typed" and target != link.target:
                message = f"[[{link.target}]] is taken as {target}: the name differs in case, `_` or spaces."
                said.append(PageFinding(page=page.id, message=message))
    return Resolution(links=tuple(links), findings=tuple(said))


def _nowhere(link: WikiLink, nearly: str | None) -> str:
    written = f"({link.target})" if link.style == "path" else f"[[{link.target}]]"
    hint = f" {nearly} differs from it only in case." if nearly else ""
    return f"The link {written} leads nowhere: it was kept as text.{hint}"


def _paths(page: WikiPage, target: str) -> list[str]:
    """The paths that a link may mean: as written or decoded, from the page's folder or from the top."""
    spellings = dict.fromkeys((target, unquote(target)))
    return [path for one in spellings for path in (_from(page, one), normpath(one.lstrip("/")))]


def _from(page: WikiPage, target: str) -> str:
    folder = PurePosixPath(page.path).parent
    return normpath(target.lstrip("/") if target.startswith("/") else str(folder / target))


def _without_suffix(path: str) -> str:
    for suffix in (".md", ".markdown"):
        if path.lower().endswith(suffix):
            return path[: -len(suffix)]
    return path


def _distance(page: WikiPage, other: WikiPage) -> tuple[bool, int, str]:
    """Pages of the same folder first, then those nearest to the top."""
    here, there = PurePosixPath(page.path).parent, PurePosixPath(other.path)
    return (there.parent != here, len(there.parts), other.path)
