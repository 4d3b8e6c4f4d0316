"""A page: what a wiki file says, taken apart without losing anything.

A page has a title, what its infobox or front matter holds (sources, domains, last update, other fields), a lead, and
sections in their order. Its links are read from that text and never kept apart from it, so that text and graph cannot
disagree. As long as nobody has touched the page, `raw` is the file as it was, and that is what an export writes.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recollect.memories.rules.text import is_storable
from recollect.pages.rules.text import outside_code, without_code

Format = Literal["wiki", "markdown"]
LinkStyle = Literal["typed", "wikilink", "path"]

NOTE = "Note"
PLAIN = "links_to"
PROPERTIES = frozenset({"source", "domain", "last_updated", "github_url"})
"""Relations that say something about the page itself: they name no other page."""

TYPED_TITLE = re.compile(r"([A-Za-z]\w*)\s*:\s*(\S.*)")
"""`Principle: Loading`."""

_BRACKETS = re.compile(r"(?P<embed>!?)\[\[(?P<inner>[^\[\]\n]+)\]\]")
_IN_BRACKETS = r"(?:[^\[\]\n]|\[[^\[\]\n]*\](?:\([^()\n]*\))?)*"  # a label may hold an image
_PATH = r"<[^<>\n]+>|(?:[^\s()<>]|\([^\s()]*\))+"
_TITLE = r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*"
_PATH_LINK = re.compile(
    rf"(?<!!)\[(?P<label>{_IN_BRACKETS})\]\([ \t]*(?P<inline>{_PATH}){_TITLE}\)"
    rf"|^[ ]{{0,3}}\[(?P<name>[^\[\]\n^]+)\]:[ \t]*(?P<defined>{_PATH}){_TITLE}$"
    r"|<a\s[^<>\n]*?href=(?P<quote>[\"'])(?P<href>[^\"'<>\n]+)(?P=quote)"
)
"""To a file: `[label](path)`, the definition of a reference, `<a href="path">`."""
LONGEST_PART = 255
LONGEST_PATH = 1024
"""Bytes, as the file systems of today have it."""
PAGE_SUFFIXES = (".md", ".markdown", ".wiki", ".mediawiki")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_RELATION = re.compile(r"([\w-]+)::(.*)", re.DOTALL)
_PAGE_ID = re.compile(r"([A-Z]\w*):(\S.*)")
_TAG = re.compile(r"(?<![\w/#&])#([A-Za-z_][\w/-]*)")
_GITHUB_URL = re.compile(r"\[\[github_url::([^\[\]\n]+)\]\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFinding:
    """Something worth saying about a page: what was not understood, or does not fit."""

    page: str
    message: str

    def __str__(self) -> str:
        return f"{self.page}: {self.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the knowledge of a page comes from."""

    kind: str = ""
    title: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """What makes two sources one: the address, else the title."""
        return self.url.strip().rstrip("/").casefold() or self.title.strip().casefold()


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A heading and the text below it, up to the next heading of any level."""

    level: int
    heading: str
    body: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WikiLink:
    """A link as the page writes it: typed (`[[edge::Type:Name]]`), a wikilink, or a path to another file."""

    relation: str
    target: str
    style: LinkStyle
    label: str = ""
    anchor: str = ""
    note: str = ""
    embed: bool = False
    written: str = field(default="", compare=False)
    """The link with all its signs, as it stands in the text."""

    @property
    def richness(self) -> int:
        """How much the link says beyond its target: of two to one target, the richer is kept."""
        return len(self.label) + len(self.note)


@dataclass(frozen=True, kw_only=True, slots=True)
class WikiPage:
    id: str
    type: str
    name: str
    path: str
    format: Format
    title: str | None = None
    sources: tuple[Source, ...] = ()
    domains: tuple[str, ...] = ()
    last_updated: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    lead: str = ""
    sections: tuple[Section, ...] = ()
    raw: str | None = None
    links: tuple[WikiLink, ...] = field(init=False)

    def __post_init__(self) -> None:
        # Derived from the text at every construction, so that no page can hold links its text does not.
        object.__setattr__(self, "links", tuple(links_in(self._lines_of_text())))

    @property
    def texts(self) -> tuple[str, ...]:
        """The running text: lead and sections."""
        return (self.lead, *(section.body for section in self.sections))

    def _lines_of_text(self) -> list[str]:
        """Title, headings and running text: a heading may hold a link too."""
        parts = [self.title or "", self.lead]
        return [*parts, *(part for section in self.sections for part in (section.heading, section.body))]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the page, from the front matter."""
        return tuple(dict.fromkeys(alias for key in ("aliases", "alias") for alias in strings(self.fields.get(key))))

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the front matter and of the text, each once."""
        given = [tag.lstrip("#") for tag in strings(self.fields.get("tags", self.fields.get("tag")))]
        inline = [tag for text in self.texts for line in outside_code(text) for tag in _TAG.findall(without_code(line))]
        return tuple(dict.fromkeys([*given, *inline]))

    @property
    def github_url(self) -> str | None:
        """The repository of a Workflow."""
        for text in self.texts:
            if match := _GITHUB_URL.search(text):
                return match[1].strip()
        given = self.fields.get("github_url")
        return given if isinstance(given, str) else None

    @property
    def overview(self) -> str:
        """What the page says first about its subject: the section that says so, else the lead, else the first text."""
        for section in self.sections:
            if section.heading.strip().casefold() in ("overview", "summary") and section.body:
                return section.body
        return next((text for text in self.texts if text), "")

    @property
    def content(self) -> str:
        """Everything a reader reads below the title, with its headings."""
        parts = [self.lead, *(part for section in self.sections for part in (section.heading, section.body))]
        return "\n".join(part for part in parts if part)


def changed(page: WikiPage, **changes: Any) -> WikiPage:
    """The page with some of it replaced; from now on it is written anew, not as it once was."""
    return replace(page, raw=None, **changes)


def page_path(given: str) -> str:
    """The path of a page inside its folder, as it is kept: without `.` and doubled slashes; ValueError says why not."""
    if not is_storable(given):
        raise ValueError("Its path holds a NUL byte or a lone surrogate.")
    if given.startswith("/") or "\\" in given or ".." in given.split("/"):
        raise ValueError("Its path leads outside the folder, or is none.")
    parts = [part for part in given.split("/") if part not in ("", ".")]
    if not parts or not parts[-1].strip():
        raise ValueError("Its path leads outside the folder, or is none.")
    path = "/".join(parts)
    if any(len(part.encode()) > LONGEST_PART for part in parts) or len(path.encode()) > LONGEST_PATH:
        raise ValueError(
            f"Its path is too long: a name has at most {LONGEST_PART} bytes, a path {LONGEST_PATH:,}. Shorten it."
        )
    return path


def page_id(type: str, name: str) -> str:
    return f"{type}:{name}"


def type_and_name(id: str) -> tuple[str, str]:
    """The two halves of an id; a note has a name alone."""
    match = _PAGE_ID.fullmatch(id)
    return (match[1], match[2]) if match else (NOTE, id)


def normal_name(name: str) -> str:
    """A name as it is compared: case, `_` and blank space do not count."""
    return " ".join(unicodedata.normalize("NFC", name).replace("_", " ").casefold().split())


# -- links


def links_in(texts: Iterable[str]) -> list[WikiLink]:
    """All links of some texts, in order; code holds none."""
    links: list[WikiLink] = []
    for text in texts:
        if "[" not in text and "<" not in text:
            continue
        for line in outside_code(text):
            links += (link for _, link in links_and_places(line))
    return links


def links_and_places(line: str) -> list[tuple[tuple[int, int], WikiLink]]:
    """The links of a line that is no code, each with where it begins and ends."""
    if "[[" not in line and ".m" not in line and ".wiki" not in line:
        return []
    plain = without_code(line)
    brackets = list(_BRACKETS.finditer(plain))
    placed = [(bracket.span(), _bracket_link(bracket, plain, bracket is brackets[-1])) for bracket in brackets]
    if ".m" in plain or ".M" in plain or ".wiki" in plain:
        placed += [(match.span(), _path_link(match, line)) for match in _PATH_LINK.finditer(plain)]
    return [(span, link) for span, link in sorted(placed, key=lambda entry: entry[0]) if link]


def _bracket_link(match: re.Match[str], line: str, is_last: bool) -> WikiLink | None:
    inner, _, label = match["inner"].partition("|")
    inner = inner.removesuffix("\\").strip()  # in a table of Markdown the bar is written \\|
    note = line[match.end() :].strip(" \t-–—:·") if is_last else ""
    if typed := _RELATION.fullmatch(inner):
        if typed[1] in PROPERTIES or not typed[2].strip():
            return None
        relation, target, anchor = typed[1], typed[2].strip(), ""
        style: LinkStyle = "typed"
    else:
        relation, (target, _, anchor) = PLAIN, inner.partition("#")
        style = "typed" if _PAGE_ID.fullmatch(target) else "wikilink"
        if style == "wikilink" and "^" in target:
            target, _, anchor = target.partition("^")
    if not target.strip() and not anchor.strip():
        return None
    return WikiLink(
        relation=relation,
        target=target.strip(),
        style=style,
        label=label.strip(),
        anchor=anchor.strip(),
        note=note,
        embed=bool(match["embed"]),
        written=match[0],
    )


def _path_link(match: re.Match[str], line: str) -> WikiLink | None:
    path = match["inline"] or match["defined"] or match["href"]
    target, _, anchor = path.strip("<>").partition("#")
    if _SCHEME.match(target) or not target.lower().endswith(PAGE_SUFFIXES):
        return None
    label = line[match.start("label") : match.end("label")] if match["label"] else match["name"] or ""
    written = line[match.start() : match.end()]
    return WikiLink(relation=PLAIN, target=target, style="path", label=label.strip(), anchor=anchor, written=written)


def strings(value: object) -> list[str]:
    """A field that may be a list or words with commas, as texts."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Sequence):
        return [str(part).strip() for part in value if part is not None and str(part).strip()]
    return []
