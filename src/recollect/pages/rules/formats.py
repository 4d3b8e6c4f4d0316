"""A file becomes a page, a page becomes a file, whichever format either is in.

Which page a file is follows from its path and title: `implementations/Loader.md` or `# Implementation: Loader` is
`Implementation:Loader`. Anything else is a Note, named by its path, as a vault of Markdown has them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from recollect.pages.rules import markdown, wiki
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.markdown import EMPTY_FRONT_MATTER, parse_markdown, render_markdown
from recollect.pages.rules.page import NOTE, TYPED_TITLE, Format, PageFinding, WikiPage, normal_name, page_id
from recollect.pages.rules.text import outside_code
from recollect.pages.rules.wiki import Parsed, parse_wiki, render_wiki

_FRONT_MATTER_OPENS = re.compile(r"---[ \t]*\n")
_READ: dict[Format, Callable[[str], Parsed]] = {"wiki": parse_wiki, "markdown": parse_markdown}
_WRITE: dict[Format, Callable[[WikiPage], str]] = {"wiki": render_wiki, "markdown": render_markdown}


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
    said = [*about.problems, *notes, *doubts]
    if not (page.title or page.lead or page.sections):
        said.append("It is empty.")
    return Read(page=page, findings=tuple(PageFinding(page=page.id, message=message) for message in said))


def export_page(page: WikiPage, format: Format | None = None) -> str:
    """The page as a file: as it was where nobody touched it, written anew where it changed or changes its format."""
    wanted = format or page.format
    if page.raw is not None and wanted == page.format:
        return page.raw
    text = _WRITE[wanted](page)
    # A wiki page always has its infobox. Markdown that would be taken for a wiki page says that it is none.
    return text if detect(text)[0] == wanted else f"{EMPTY_FRONT_MATTER}\n\n{text}"


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
    by_folder = next((found for part in path.parts[-2::-1] if (found := hierarchy.type_of_folder(part))), None)
    votes = [one.name for one in (by_folder, by_field, by_title) if one]
    if not votes:
        return NOTE, str(path.with_suffix("")) if path.suffix.lower() in (".md", ".markdown") else str(path), []
    doubts = []
    if len(set(votes)) > 1:
        doubts.append(f"It is a {votes[0]} by its place and a {votes[-1]} by its own words: it is taken as {votes[0]}.")
    return votes[0], path.stem, doubts


def distinct(pages: Iterable[WikiPage]) -> tuple[list[WikiPage], list[PageFinding]]:
    """The pages with an id each of its own; a second one of a name gets a suffix, and both are named (B16)."""
    kept: dict[str, WikiPage] = {}
    seen: dict[str, str] = {}
    said: list[PageFinding] = []
    for page in pages:
        id = free_id(page.id, kept)
        if id != page.id:
            message = f"{page.path} has the same name as {kept[page.id].path}: it becomes {id}."
            said.append(PageFinding(page=page.id, message=message))
            page = replace(page, id=id, name=page.name + id.removeprefix(page.id))
        elif (twin := seen.get(normal_name(page.id))) is not None:
            said.append(PageFinding(page=page.id, message=f"Its name differs from {twin} only in case, `_` or spaces."))
        kept[page.id] = page
        seen.setdefault(normal_name(page.id), page.id)
    return list(kept.values()), said


def free_id(id: str, taken: Iterable[str]) -> str:
    """The id, or the first of id_2, id_3 ... that is not taken."""
    names = taken if isinstance(taken, dict | set | frozenset) else set(taken)
    number, free = 1, id
    while free in names:
        number += 1
        free = f"{id}_{number}"
    return free
