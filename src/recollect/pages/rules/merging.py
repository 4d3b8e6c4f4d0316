"""Two pages become one (B17): the old page, with all that the new one adds, and nothing twice.

Sections are merged by their headings, in place; a section that the old page does not have is put where the new page
has it. Within a section, blocks that say something new follow what is there already: a sentence that the old page says
is not said again, code and tables are kept whole. A link to a page that is linked already, in the same relation, stays
one link, with what both say about it. What contradicts (a field with two values) is kept from both and named.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.pages.rules.page import (
    NOTE,
    Section,
    Source,
    WikiLink,
    WikiPage,
    changed,
    links_in,
    normal_name,
    strings,
)
from recollect.pages.rules.text import Block, blocks, closed, outside_code, said, said_in, sentences_of

FEWEST_WORDS = 4
"""A sentence shorter than this ("Linux only") may well be said in two sections, and means something else in each."""
RELATED = "Related Pages"
BETWEEN_NOTES = "; "
_IN_LISTS = ("item", "link")


Leads = Callable[[WikiLink], str]


def by_its_words(link: WikiLink) -> str:
    return link.target


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedPage:
    """The page that two became, and what could not be settled."""

    page: WikiPage
    conflicts: tuple[str, ...] = ()


def merge_pages(old: WikiPage, new: WikiPage, *, updated: str | None = None, leads: Leads = by_its_words) -> MergedPage:
    """The old page with what the new one adds; the very same old page where it adds nothing.

    `leads` says to which page a link leads: two that lead to one page are one, however they are written.
    """
    fields, conflicts = merged_fields(old, new)
    body = _Body(old, leads)
    if not _is_all_said(old, new, leads):
        body.add(new)
    merged = changed(
        old,
        sources=_sources(old.sources, new.sources),
        domains=_domains(old.domains, new.domains),
        fields=fields,
        lead=body.lead,
        sections=body.sections(),
    )
    if merged == changed(old):
        return MergedPage(page=old)
    latest = updated or max(filter(None, (old.last_updated, new.last_updated)), default=None)
    return MergedPage(page=changed(merged, last_updated=latest), conflicts=tuple(conflicts))


def _sources(old: Sequence[Source], new: Sequence[Source]) -> tuple[Source, ...]:
    """The old ones, and the new ones with another address."""
    keys = {source.key for source in old}
    fresh = {source.key: source for source in reversed(new) if source.key not in keys}
    return (*old, *(source for source in new if fresh.get(source.key) is source))


def _domains(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    domains: dict[str, str] = {}
    for domain in (*old, *new):
        domains.setdefault(normal_name(domain), domain)
    return tuple(domains.values())


def merged_fields(old: WikiPage, new: WikiPage) -> tuple[dict[str, Any], list[str]]:
    """United: lists grow, the old value of a single one stays, and the other is kept beside it.

    The old page keeps its title; one that the new page had of its own stays as another name.
    """
    merged, conflicts = dict(old.fields), list[str]()
    for key, value in _with_title(old, new).items():
        if key not in merged:
            merged[key] = value
        elif merged[key] == value:
            continue
        elif (lists := _as_lists(key, merged[key], value)) is not None:
            mine, theirs = lists
            merged[key] = [*mine, *(value for value in theirs if value not in mine)]
        elif value not in (others := merged.get(f"{key} (other)", [])):
            merged[f"{key} (other)"] = [*others, value]
            conflicts.append(f"{key} is {merged[key]!r} in the one page and {value!r} in the other: both were kept.")
    return merged, conflicts


def _as_lists(key: str, old: Any, new: Any) -> tuple[list[Any], list[Any]] | None:
    """Two values as lists, where they are such; names and tags may be written as words with commas too."""
    if isinstance(old, list) and isinstance(new, list):
        return old, new
    return (strings(old), strings(new)) if key in ("aliases", "alias", "tags", "tag") else None


def _with_title(old: WikiPage, new: WikiPage) -> Mapping[str, Any]:
    names = map(normal_name, (old.title or "", old.name, *old.aliases, *new.aliases))
    if not new.title or new.type != NOTE or normal_name(new.title) in names:
        return new.fields  # the title of a typed page says its type and its name
    return {**new.fields, "aliases": [*strings(new.fields.get("aliases")), new.title]}


def _is_all_said(old: WikiPage, new: WikiPage, leads: Leads) -> bool:
    """Whether the old page has every heading, sentence, block and link of the new one, wherever that may be."""
    links = _by_target(old.links, leads)
    blocks_there = {_whole(block) for text in old.texts for block in blocks(text)}
    return (
        _headings(new) <= _headings(old)
        and all(_is_covered(link, links, leads) for link in new.links)
        and _prose(new) <= said_in(old.texts)
        and all(_whole(block) in blocks_there for text in new.texts for block in blocks(text) if _is_whole(block))
    )


def _headings(page: WikiPage) -> Counter[str]:
    return Counter(normal_name(section.heading) for section in page.sections)


def _prose(page: WikiPage) -> set[str]:
    prose = (block for text in page.texts for block in blocks(text) if not _is_whole(block) and block.kind != "link")
    return {said(sentence) for block in prose for sentence in sentences_of(block)}


# -- sections


@dataclass(kw_only=True, slots=True, eq=False)
class _PagePart:
    """A section while pages are being merged: it may grow, and it knows what is below it."""

    heading: str
    level: int
    body: str
    richer: dict[str, str] = field(default_factory=dict)
    added: list[Block] = field(default_factory=list)
    below: list["_PagePart"] = field(default_factory=list)

    @property
    def key(self) -> str:
        return normal_name(self.heading)

    def all(self) -> Iterator["_PagePart"]:
        yield self
        for part in self.below:
            yield from part.all()

    def text(self) -> str:
        """What was there, its links with what else is said of them, and behind it what was added: list items and links
        follow each other directly, before everything else there is a blank line."""
        body = self.body
        if self.richer:
            body = "\n".join(self.richer.get(line, line) for line in body.split("\n"))
        if not self.added:
            return body
        parts = [closed(body)] if body else []
        last = blocks(body)[-1:]
        for block in self.added:
            follows = block.kind in _IN_LISTS and bool(last) and last[0].kind in (*_IN_LISTS, "label")
            parts += ("\n" if follows else "\n\n" if parts else "", closed(block.text))
            last = (block,)
        return "".join(parts)


def _tree(page: WikiPage) -> _PagePart:
    """The sections below each other, under a root that stands for the page and its lead."""
    root = _PagePart(heading="", level=0, body=page.lead)
    path = [root]
    for section in page.sections:
        part = _PagePart(heading=section.heading, level=section.level, body=section.body)
        while path[-1].level >= part.level and len(path) > 1:
            path.pop()
        path[-1].below.append(part)
        path.append(part)
    return root


class _Body:
    """The text of the old page, growing by what a new page adds to it."""

    def __init__(self, page: WikiPage, leads: Leads) -> None:
        self._root = _tree(page)
        self._leads = leads
        bodies = [part.body for part in self._root.all()]
        self._said = {sentence for sentence in said_in(bodies) if _is_long(sentence)}
        self._whole = {_whole(block) for body in bodies for block in blocks(body)}
        self._links = _by_target(links_in(bodies), leads)
        self._alone = self._lines_of_links()

    @property
    def lead(self) -> str:
        return self._root.text()

    def sections(self) -> tuple[Section, ...]:
        parts = (part for part in self._root.all() if part is not self._root)
        return tuple(Section(level=part.level, heading=part.heading, body=part.text()) for part in parts)

    def add(self, page: WikiPage) -> None:
        new = _tree(page)
        self._grow(self._root, new.body)
        self._add_below(self._root, new, _claims(self._root, new))
        for part in [*self._root.all()][:-1]:
            if not part.added:
                part.body = closed(part.body)  # else its code would go on into the section that now follows

    def _add_below(self, here: _PagePart, new: _PagePart, claims: Mapping[int, _PagePart]) -> None:
        """Add the sections below one of the new page: to those they match, else at their place here."""
        places = {id(part): number for number, part in enumerate(here.below)}
        between: dict[int, list[_PagePart]] = {}
        at, end = 0, _end(here)
        for part in new.below:
            match = claims.get(id(part))
            if match is None:
                at = min(at, end)
                match = _PagePart(heading=part.heading, level=_level_at(here, at, part), body="")
                between.setdefault(at, []).append(match)
            elif id(match) in places:
                at = places[id(match)] + 1
            self._grow(match, part.body)
            self._add_below(match, part, claims)
        if between:
            slots = range(len(here.below) + 1)
            here.below = [below for slot in slots for below in (*between.get(slot, ()), *here.below[slot : slot + 1])]

    def _grow(self, part: _PagePart, body: str) -> None:
        """Append what the new body says and the page does not."""
        here = said_in([part.body, *(block.text for block in part.added)])
        part.added += _with_their_labels(list(self._fresh(blocks(body), here)))

    def _fresh(self, given: Sequence[Block], here: set[str]) -> Iterator[Block]:
        for block in given:
            if block.kind == "label" and self._is_known(block, here):
                yield block
            elif block.kind == "link":
                yield from self._fresh_link(block)
            elif _is_whole(block):
                if _whole(block) not in self._whole:
                    self._whole.add(_whole(block))
                    yield block
            else:
                yield from self._fresh_prose(block, here)

    def _is_known(self, block: Block, here: set[str]) -> bool:
        spoken = map(said, sentences_of(block))
        return all(sentence in self._said or sentence in self._whole or sentence in here for sentence in spoken)

    def _fresh_link(self, block: Block) -> Iterator[Block]:
        """A link line is new if its target is; what it says beyond a link that is there already joins that one."""
        links = links_in([block.text])
        fresh = not links and _whole(block) not in self._whole
        for link in links:
            if not _is_covered(link, self._links, self._leads) and not self._enrich(link):
                self._links.setdefault((link.relation, self._leads(link)), []).append(link)
                fresh = True
        if fresh:
            self._whole.add(_whole(block))
            yield block

    def _lines_of_links(self) -> dict[tuple[str, str], tuple[_PagePart, str]]:
        """The lines of the old page that are one link each, by that link. (What follows a sentence is no note.)"""
        lines: dict[tuple[str, str], tuple[_PagePart, str]] = {}
        for part in self._root.all():
            for line in outside_code(part.body):
                if len(held := links_in([line])) == 1 and blocks(line)[0].kind == "link":
                    lines.setdefault((held[0].relation, self._leads(held[0])), (part, line))
        return lines

    def _enrich(self, link: WikiLink) -> bool:
        """Add label and note of a link to the line that holds it already; False where no line holds it alone."""
        key = (link.relation, self._leads(link))
        if key not in self._alone:
            return False
        part, line = self._alone[key]
        so_far = part.richer.get(line, line)
        held = links_in([so_far])[0]
        part.richer[line] = richer = _enriched(so_far, held, link)
        self._links[key] = [*links_in([richer]), *(other for other in self._links.get(key, []) if other != held)]
        return True

    def _fresh_prose(self, block: Block, here: set[str]) -> Iterator[Block]:
        spoken = sentences_of(block)
        fresh = [
            sentence
            for sentence in spoken
            if (said(sentence) not in self._said and said(sentence) not in here) or self._links_anew(sentence)
        ]
        for link in links_in(fresh):
            self._links.setdefault((link.relation, self._leads(link)), []).append(link)
        self._said |= {said(sentence) for sentence in fresh if _is_long(said(sentence))}
        here |= {said(sentence) for sentence in fresh}
        if len(fresh) == len(spoken) and spoken:
            yield replace(block, kind="paragraph") if block.kind == "label" else block
        elif fresh:
            mark = re.match(r"[ \t]*(?:[*#:;>+-]+|\d+[.)])[ \t]*", block.text) if block.kind == "item" else None
            yield Block(kind=block.kind, text=(mark[0] if mark else "") + " ".join(fresh))

    def _links_anew(self, sentence: str) -> bool:
        """Whether it holds a link to a page that this one does not link to: the same words may stand in code here."""
        return any((link.relation, self._leads(link)) not in self._links for link in links_in([sentence]))


def _claims(old: _PagePart, new: _PagePart) -> dict[int, _PagePart]:
    """Which section of the old page each one of the new page belongs to: by its place first, then by its heading."""
    claims: dict[int, _PagePart] = {}
    taken: set[int] = set()
    _claim_by_place(old, new, claims, taken)
    anywhere = _by_heading(part for part in old.all() if part is not old)
    for part in new.all():
        if id(part) in claims or part is new:
            continue
        waiting = anywhere.get(part.key)
        while waiting and id(waiting[0]) in taken:
            waiting.popleft()
        if waiting:
            claims[id(part)] = waiting[0]
            taken.add(id(waiting[0]))
            _claim_by_place(waiting[0], part, claims, taken)
    return claims


def _claim_by_place(old: _PagePart, new: _PagePart, claims: dict[int, _PagePart], taken: set[int]) -> None:
    by_heading = _by_heading(part for part in old.below if id(part) not in taken)
    for part in new.below:
        same = by_heading.get(part.key)
        if same and id(part) not in claims:
            match = same.popleft()
            claims[id(part)] = match
            taken.add(id(match))
            _claim_by_place(match, part, claims, taken)


def _by_heading(parts: Iterable[_PagePart]) -> dict[str, deque[_PagePart]]:
    by_heading: dict[str, deque[_PagePart]] = {}
    for part in parts:
        by_heading.setdefault(part.key, deque()).append(part)
    return by_heading


def _level_at(here: _PagePart, slot: int, part: _PagePart) -> int:
    """The level of a section put in among others: that of the next or the last one, so that none slips below it."""
    beside = here.below[slot : slot + 1] or here.below[-1:]
    return beside[0].level if beside else min(max(part.level, here.level + 1), 6)


def _end(here: _PagePart) -> int:
    """Where sections may be added at the latest: the related pages stay last."""
    last = here.below[-1].key if here.below else ""
    return len(here.below) - 1 if last == normal_name(RELATED) else len(here.below)


def _with_their_labels(given: Sequence[Block]) -> Iterator[Block]:
    """The blocks; a label that is there already only where something of what it introduces is left."""
    for number, block in enumerate(given):
        follows = given[number + 1].kind if number + 1 < len(given) else "label"
        if block.kind != "label" or follows not in ("label", "paragraph"):
            yield block


def _whole(block: Block) -> str:
    """A block as it is compared: code and tables sign by sign, save for blank space; prose by its words.

    Code that nothing closes is closed when something follows it: so it is compared as closed.
    """
    if block.kind == "code":
        return " ".join(closed(block.text).split())
    return " ".join(block.text.split()) if _is_whole(block) else said(block.text)


def _is_whole(block: Block) -> bool:
    """Code and tables are kept or left out as they are."""
    return block.kind in ("code", "table")


def _is_long(sentence: str) -> bool:
    return len(sentence.split()) >= FEWEST_WORDS


# -- links


def _by_target(links: Iterable[WikiLink], leads: Leads) -> dict[tuple[str, str], list[WikiLink]]:
    """The links by relation and target, those that say most first."""
    by_target: dict[tuple[str, str], list[WikiLink]] = {}
    for link in sorted(links, key=lambda link: -link.richness):
        by_target.setdefault((link.relation, leads(link)), []).append(link)
    return by_target


def _is_covered(link: WikiLink, links: Mapping[tuple[str, str], Sequence[WikiLink]], leads: Leads) -> bool:
    return any(_covers(other, link) for other in links.get((link.relation, leads(link)), ()))


def _covers(earlier: WikiLink, link: WikiLink) -> bool:
    """Whether a link says all that another one to the same target says."""
    return said(link.note) in said(earlier.note) and bool(earlier.label or not link.label)


def _enriched(line: str, earlier: WikiLink, link: WikiLink) -> str:
    if link.label and not earlier.label:
        line = line.replace("]]", f"|{link.label}]]", 1)
    if said(link.note) not in said(earlier.note):
        line = f"{line.rstrip()}{BETWEEN_NOTES if earlier.note else ' - '}{link.note}"
    return line


def with_line(page: WikiPage, relation: str, line: str) -> WikiPage:
    """After the last link of the same relation, else at the end of the related pages, which are made where missing."""
    sections = list(page.sections)
    own = [
        n for n, section in enumerate(sections) if any(link.relation == relation for link in links_in([section.body]))
    ]
    related = [n for n, section in enumerate(sections) if normal_name(section.heading) == normal_name(RELATED)]
    number = next(reversed(own or related), None)
    if number is None:
        return changed(page, sections=(*sections, Section(level=2, heading=RELATED, body=line)))
    section = sections[number]
    body = _PagePart(heading="", level=0, body=section.body, added=[Block(kind="link", text=line)]).text()
    sections[number] = Section(level=section.level, heading=section.heading, body=body)
    return changed(page, sections=tuple(sections))
