"""Links in a text written anew, everything else sign by sign as it was."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from recollect.pages.rules.formats import read_page
from recollect.pages.rules.page import Format, Section, WikiPage, changed, links_and_places, links_in
from recollect.pages.rules.text import blocks, lines_with_code

_BREAK = re.compile(r"\r\n|\r|\n")
_BARE_BAR = re.compile(r"(?<!\\)\|")


def rewrite_links(text: str, anew: Mapping[str, str], format: Format = "wiki") -> str:
    """A text with its links written anew, by how they were written; code stays as it is, and so does every line end."""
    if not anew or not any(written in text for written in anew):
        return text
    lines = lines_with_code(_BREAK.sub("\n", text))
    written = [line if is_code else _rewritten(line, anew, format) for line, is_code in lines]
    return "".join(part for both in zip(written, [*_BREAK.findall(text), ""], strict=True) for part in both)


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
            level=one.level,
            heading=rewrite_links(one.heading, anew, page.format),
            body=rewrite_links(one.body, anew, page.format),
        )
        for one in page.sections
    )
    return changed(page, title=title, lead=rewrite_links(page.lead, anew, page.format), sections=sections)


def without_links(page: WikiPage, gone: Collection[str]) -> WikiPage:
    """The page without the lines that do nothing but link to pages that will not be there."""
    if not any(link.written in gone for link in page.links):
        return page
    sections = tuple(replace(one, body=_without_lines(one.body, gone)) for one in page.sections)
    lead = _without_lines(page.lead, gone)
    if lead == page.lead and sections == page.sections:
        return page
    return changed(page, lead=lead, sections=sections)


def _without_lines(body: str, gone: Collection[str]) -> str:
    kept = (line for line, is_code in lines_with_code(body) if is_code or not _only_links_to(line, gone))
    return "\n".join(kept).strip("\n")


def _only_links_to(line: str, gone: Collection[str]) -> bool:
    links = links_in([line])
    return bool(links) and all(link.written in gone for link in links) and blocks(line)[0].kind == "link"
