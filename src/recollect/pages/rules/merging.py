"""Two pages become one (B17): the old page, with all that the new one adds, and nothing twice.

Sections are merged by their headings, in place; a section that the old page does not have is put where the new page
has it. Within a section, blocks that say something new follow what is there already: a sentence that the old page says
is not said again, code and tables are kept whole. A link to a page that is linked already, in the same relation, stays
one link, with what both say about it. What contradicts (a field with two values) is kept from both and named.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.pages.rules.page import Section, Source, WikiLink, WikiPage, changed, links_in, normal_name
from recollect.pages.rules.text import Block, blocks, closed, lines_with_code, said, said_in, sentences_of

FEWEST_WORDS = 4
"""A sentence shorter than this ("Linux only") may well be said in two sections, and means something else in each."""
RELATED = "Related Pages"

_TARGET = re.compile(r"(\[\[(?:[\w-]+::)?)([^\[\]|#\n]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedPage:
    """The page that two became, and what could not be settled."""

    page: WikiPage
    conflicts: tuple[str, ...] = ()


def merge_pages(old: WikiPage, new: WikiPage, *, updated: str | None = None) -> MergedPage:
    """The old page with what the new one adds; the very same old page where it adds nothing."""
    fields, conflicts = _fields(old.fields, new.fields)
    body = _Body(old)
    if not _is_all_said(old, new):
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
    known = {source.key for source in old}
    fresh = {source.key: source for source in reversed(new) if source.key not in known}
    return (*old, *(source for source in new if fresh.get(source.key) is source))


def _domains(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for domain in (*old, *new):
        found.setdefault(normal_name(domain), domain)
    return tuple(found.values())


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """United: lists grow, the old value of a single one stays, and the other is kept beside it."""
    merged, conflicts = dict(old), list[str]()
    for key, value in new.items():
        if key not in merged:
            merged[key] = value
        elif isinstance(merged[key], list) and isinstance(value, list):
            merged[key] = [*merged[key], *(one for one in value if one not in merged[key])]
        elif merged[key] != value:
            others = merged.get(f"{key} (other)", [])
            if value not in others:
                merged[f"{key} (other)"] = [*others, value]
                conflicts.append(
                    f"{key} is {merged[key]!r} in the one page and {value!r} in the other: both were kept."
                )
    return merged, conflicts


def _is_all_said(old: WikiPage, new: WikiPage) -> bool:
    """Whether the old page has every heading, sentence, block and link of the new one, wherever that may be."""
    headings = {normal_name(one.heading) for one in old.sections}
    known = _by_target(old.links)
    blocks_there = {_whole(block) for text in old.texts for block in blocks(text)}
    return (
        all(normal_name(one.heading) in headings for one in new.sections)
        and all(_is_covered(link, known) for link in new.links)
        and _prose(new) <= said_in(old.texts)
        and all(_whole(block) in blocks_there for text in new.texts for block in blocks(text) if _is_whole(block))
    )


def _prose(page: WikiPage) -> set[str]:
    prose = (block for text in page.texts for block in blocks(text) if not _is_whole(block) and block.kind != "link")
    return {said(one) for block in prose for one in sentences_of(block)}


# -- sections


@dataclass(kw_only=True, slots=True)
class _PagePart:
    """A section while pages are being merged: it may grow, and it knows what is below it."""

    heading: str
    level: int
    body: str
    below: list["_PagePart"] = field(default_factory=list)

    @property
    def key(self) -> str:
        return normal_name(re.sub(r"[`*'_:.]+", " ", self.heading))

    def all(self) -> Iterator["_PagePart"]:
        yield self
        for part in self.below:
            yield from part.all()


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

    def __init__(self, page: WikiPage) -> None:
        self._root = _tree(page)
        bodies = [part.body for part in self._root.all()]
        self._said = {one for one in said_in(bodies) if _is_long(one)}
        self._whole = {_whole(block) for body in bodies for block in blocks(body)}
        self._links = _by_target(links_in(bodies))

    @property
    def lead(self) -> str:
        return self._root.body

    def sections(self) -> tuple[Section, ...]:
        parts = (part for part in self._root.all() if part is not self._root)
        return tuple(Section(level=part.level, heading=part.heading, body=part.body) for part in parts)

    def add(self, page: WikiPage) -> None:
        new = _tree(page)
        self._grow(self._root, new.body)
        self._add_below(self._root, new, _claims(self._root, new))
        for part in [*self._root.all()][:-1]:
            part.body = closed(part.body)  # else its code would go on into the section that now follows

    def _add_below(self, here: _PagePart, new: _PagePart, claims: Mapping[int, _PagePart]) -> None:
        """Add the sections below one of the new page: to those they match, else at their place here."""
        place = 0
        for part in new.below:
            match = claims.get(id(part))
            if match is None:
                place = min(place, _end(here))
                match = _PagePart(heading=part.heading, level=_level_at(here, place, part), body="")
                here.below.insert(place, match)
            if match in here.below:
                place = _index(here.below, match) + 1
            self._grow(match, part.body)
            self._add_below(match, part, claims)

    def _grow(self, part: _PagePart, body: str) -> None:
        """Append what the new body says and the page does not."""
        here = said_in([part.body])
        for block in _with_their_labels(list(self._fresh(blocks(body), here))):
            part.body = _appended(part.body, block)

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
        return all(one in self._said or one in self._whole or one in here for one in spoken)

    def _fresh_link(self, block: Block) -> Iterator[Block]:
        """A link line is new if its target is; what it says beyond a link that is there already joins that one."""
        links = links_in([block.text])
        fresh = not links and _whole(block) not in self._whole
        for link in links:
            if not _is_covered(link, self._links) and not self._enrich(link):
                self._links.setdefault((link.relation, link.target), []).append(link)
                fresh = True
        if fresh:
            self._whole.add(_whole(block))
            yield block

    def _enrich(self, link: WikiLink) -> bool:
        """Add label and note of a link to the line that holds it already; False where no line holds it alone."""
        known = self._links.get((link.relation, link.target), [])
        for part in self._root.all():
            lines = part.body.split("\n")
            for number, line in enumerate(lines):
                held = links_in([line])
                if len(held) == 1 and held[0] in known:
                    lines[number] = _enriched(line, held[0], link)
                    part.body = "\n".join(lines)
                    known[known.index(held[0])] = links_in([lines[number]])[0]
                    return True
        return False

    def _fresh_prose(self, block: Block, here: set[str]) -> Iterator[Block]:
        spoken = sentences_of(block)
        fresh = [one for one in spoken if said(one) not in self._said and said(one) not in here]
        self._said |= {said(one) for one in fresh if _is_long(said(one))}
        here |= {said(one) for one in fresh}
        if len(fresh) == len(spoken) and spoken:
            yield replace(block, kind="paragraph") if block.kind == "label" else block
        elif fresh:
            mark = re.match(r"[ \t]*(?:[*#:;>+-]+|\d+[.)])[ \t]*", block.text) if block.kind == "item" else None
            yield Block(kind=block.kind, text=(mark[0] if mark else "") + " ".join(fresh))


def _claims(old: _PagePart, new: _PagePart) -> dict[int, _PagePart]:
    """Which section of the old page each one of the new page belongs to: by its place first, then by its heading."""
    claims: dict[int, _PagePart] = {}
    _claim_by_place(old, new, claims)
    taken = {id(part) for part in claims.values()}
    for part in new.all():
        if id(part) in claims or part is new:
            continue
        free = next((one for one in old.all() if one.key == part.key and one is not old and id(one) not in taken), None)
        if free is not None:
            claims[id(part)] = free
            taken.add(id(free))
            _claim_by_place(free, part, claims)
            taken |= {id(one) for one in claims.values()}
    return claims


def _claim_by_place(old: _PagePart, new: _PagePart, claims: dict[int, _PagePart]) -> None:
    by_heading: dict[str, list[_PagePart]] = {}
    for part in old.below:
        by_heading.setdefault(part.key, []).append(part)
    taken = {id(part) for part in claims.values()}
    for part in new.below:
        same = [one for one in by_heading.get(part.key, []) if id(one) not in taken]
        if same and id(part) not in claims:
            claims[id(part)] = same[0]
            taken.add(id(same[0]))
            _claim_by_place(same[0], part, claims)


def _level_at(here: _PagePart, place: int, part: _PagePart) -> int:
    """The level of a section put in among others: that of the next or the last one, so that none slips below it."""
    beside = here.below[place : place + 1] or here.below[-1:]
    return beside[0].level if beside else min(max(part.level, here.level + 1), 6)


def _index(parts: Sequence[_PagePart], part: _PagePart) -> int:
    return next(number for number, one in enumerate(parts) if one is part)


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


def _appended(body: str, block: Block) -> str:
    """List items and links follow each other directly; everything else has a blank line before it."""
    if not body:
        return block.text
    last = blocks(body)[-1:] if block.kind in ("item", "link") else []
    is_list = bool(last) and last[0].kind in ("item", "link", "label")
    gap = "\n" if is_list else "\n\n"
    return f"{closed(body)}{gap}{block.text}"


def _whole(block: Block) -> str:
    """A block as it is compared: code and tables sign by sign, save for blank space; prose by its words."""
    return " ".join(block.text.split()) if _is_whole(block) else said(block.text)


def _is_whole(block: Block) -> bool:
    """Code and tables are kept or left out as they are."""
    return block.kind in ("code", "table")


def _is_long(sentence: str) -> bool:
    return len(sentence.split()) >= FEWEST_WORDS


# -- links


def _by_target(links: Iterable[WikiLink]) -> dict[tuple[str, str], list[WikiLink]]:
    """The links by relation and target, those that say most first."""
    found: dict[tuple[str, str], list[WikiLink]] = {}
    for link in sorted(links, key=lambda link: -link.richness):
        found.setdefault((link.relation, link.target), []).append(link)
    return found


def _is_covered(link: WikiLink, known: Mapping[tuple[str, str], Sequence[WikiLink]]) -> bool:
    return any(_covers(one, link) for one in known.get((link.relation, link.target), ()))


def _covers(known: WikiLink, link: WikiLink) -> bool:
    """Whether a link says all that another one to the same target says."""
    return said(link.note) in said(known.note) and bool(known.label or not link.label)


def _enriched(line: str, known: WikiLink, link: WikiLink) -> str:
    if link.label and not known.label:
        line = line.replace("]]", f"|{link.label}]]", 1)
    if said(link.note) not in said(known.note):
        line = f"{line.rstrip()}{'; ' if known.note else ' - '}{link.note}"
    return line


def rewrite_links(text: str, results: Mapping[str, str]) -> str:
    """A text whose links lead to what the pages became; code stays as it is."""
    if "[[" not in text or not results:
        return text
    return "\n".join(line if is_code else _rewritten(line, results) for line, is_code in lines_with_code(text))


def _rewritten(line: str, results: Mapping[str, str]) -> str:
    if "[[" not in line:
        return line
    return _TARGET.sub(lambda found: found[1] + results.get(found[2].strip(), found[2]), line)


def with_rewritten_links(page: WikiPage, results: Mapping[str, str]) -> WikiPage:
    """The page with its links rewritten, in what was read and in the file as it was."""
    sections = tuple(
        Section(level=one.level, heading=rewrite_links(one.heading, results), body=rewrite_links(one.body, results))
        for one in page.sections
    )
    rewritten = changed(page, lead=rewrite_links(page.lead, results), sections=sections)
    if rewritten == changed(page):
        return page
    return rewritten if page.raw is None else replace(rewritten, raw=rewrite_links(page.raw, results))


def without_links_to(page: WikiPage, gone: Collection[str]) -> WikiPage:
    """The page without the lines that do nothing but link to pages that will not be there."""
    if not any(link.target in gone for link in page.links):
        return page
    sections = tuple(replace(one, body=_without_lines(one.body, gone)) for one in page.sections)
    return changed(page, lead=_without_lines(page.lead, gone), sections=sections)


def _without_lines(body: str, gone: Collection[str]) -> str:
    kept = (line for line, is_code in lines_with_code(body) if is_code or not _only_links_to(line, gone))
    return "\n".join(kept).strip("\n")


def _only_links_to(line: str, gone: Collection[str]) -> bool:
    return any(block.kind == "link" for block in blocks(line)) and all(link.target in gone for link in links_in([line]))


def with_links(page: WikiPage, links: Iterable[tuple[str, str, str]]) -> WikiPage:
    """The page with some links (relation, target, note) that it does not have yet, each beside others of its kind."""
    for relation, target, note in links:
        if any(link.relation == relation and link.target == target for link in page.links):
            continue
        line = f"* [[{relation}::{target}]]" + (f" - {note}" if note else "")
        page = _with_line(page, relation, line)
    return page


def _with_line(page: WikiPage, relation: str, line: str) -> WikiPage:
    """After the last link of the same relation, else at the end of the related pages, which are made where missing."""
    sections = list(page.sections)
    own = [n for n, one in enumerate(sections) if any(link.relation == relation for link in links_in([one.body]))]
    related = [n for n, one in enumerate(sections) if normal_name(one.heading) == normal_name(RELATED)]
    place = next(reversed(own or related), None)
    if place is None:
        return changed(page, sections=(*sections, Section(level=2, heading=RELATED, body=line)))
    section = sections[place]
    body = _appended(section.body, Block(kind="link", text=line))
    sections[place] = Section(level=section.level, heading=section.heading, body=body)
    return changed(page, sections=tuple(sections))
