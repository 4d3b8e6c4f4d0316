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

from recollect.pages.rules.page import LinkStyle, PageFinding, WikiLink, WikiPage, normal_name


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
        for page in pages:
            self._add(page)

    def _add(self, page: WikiPage) -> None:
        path, file = without_suffix(page.path), PurePosixPath(page.path)
        self._ids[page.id] = page.id
        self._normal_ids.setdefault(normal_name(page.id), page.id)
        self._paths.setdefault(page.path, page.id)
        for spelling in (page.path, path):
            self._normal_paths.setdefault(spelling, page.id)
        for spelling in (page.path, path):
            self._normal_paths.setdefault(spelling.casefold(), page.id)
        self._endings.setdefault(PurePosixPath(path).name.casefold(), []).append(page)
        for name in dict.fromkeys(map(normal_name, (file.stem, page.name))):
            self._names.setdefault(name, []).append(page)
        for name in dict.fromkeys(map(normal_name, page.aliases)):
            self._aliases.setdefault(name, []).append(page)

    def find(self, page: WikiPage, link: WikiLink) -> str | None:
        """The page that a link on a page leads to. A name may hold a #; else what follows it is a place on the page."""
        if link.style == "path":
            return self._at_path(page, link.target)
        if link.anchor and (whole := self._found(page, f"{link.target}#{link.anchor}", link.style)):
            return whole
        return self._found(page, link.target, link.style)

    def _found(self, page: WikiPage, target: str, style: LinkStyle) -> str | None:
        return self._by_id(target) if style == "typed" else self._by_wikilink(page, target)

    def _by_id(self, target: str) -> str | None:
        if found := self._ids.get(target) or self._normal_ids.get(normal_name(target)):
            return found
        name, mark, _ = target.partition("#")
        return self._by_id(name.strip()) if mark else None

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
        if found := self._normal_paths.get(whole) or self._normal_paths.get(without_suffix(whole).casefold()):
            return found
        if "/" in target:
            return self._by_end_of_path(page, target)
        name = normal_name(without_suffix(target))
        named = self._names.get(name) or self._aliases.get(name, [])
        return min(named, key=lambda one: _distance(page, one)).id if named else None

    def _by_end_of_path(self, page: WikiPage, target: str) -> str | None:
        """The page at that path from this one's folder; else one whose path ends so, the nearest to the top first."""
        if at := self._normal_paths.get(without_suffix(_from(page, target)).casefold()):
            return at
        end = "/" + without_suffix(target).casefold().lstrip("/")
        same = self._endings.get(PurePosixPath(end).name, [])
        ends = [one for one in same if without_suffix(one.path).casefold().endswith(end)]
        return min(ends, key=lambda one: (one.path.count("/"), one.path)).id if ends else None


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
