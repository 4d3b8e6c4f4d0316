"""Pages as a wiki writes them: MediaWiki-style text with an infobox and typed links.

    # Principle: Model_Loading

    {| class="wikitable" ...
    ! Knowledge Sources
    | * [[source::Paper|QLoRA|https://...]]          (likewise Domains and Last Updated)
    |}

    == Overview ==
    ...
    * [[implemented_by::Implementation:Loader]]

Written again, a page reads back as the very same page. Where a text would be mistaken for markup, `<nowiki/>` stands
before it, and what no wiki markup can hold is written as JSON.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recollect.pages.rules.page import Section, Source, WikiPage
from recollect.pages.rules.text import lines_with_code

OPENING = '{| class="wikitable infobox" style="float:right; margin-left:1em; width:300px;"'
SOURCES, DOMAINS, LAST_UPDATED = "Knowledge Sources", "Domains", "Last Updated"

HEADING = re.compile(r"(={1,6})[ \t]*([^=\s](?:.*[^=\s])?)[ \t]*\1[ \t]*")
TITLE = re.compile(r"#[ \t]+(\S.*?)[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
_ESCAPED = re.compile(r"<nowiki/>(?=(?:<nowiki/>)*=)")
_TO_ESCAPE = re.compile(r"(?:<nowiki/>)*=")
_ROW_KEY = re.compile(r"![ \t]*([^|!\n]+?)[ \t]*(?:\|\|?(.*))?")
_SOURCE = re.compile(r"\[\[source::([^\[\]|\n]*)\|([^\[\]\n]*)\|([^\[\]|\n]*)\]\]")
_DOMAIN = re.compile(r"\[\[domain::([^\[\]|\n]+)\]\]")
_LAST_UPDATED = re.compile(r"\[\[last_updated::([^\[\]|\n]+)\]\]")
_MORE_FIELDS = "<nowiki/>"
"""The row for fields whose names no row can have: one JSON object."""
_JSON = re.compile(r'<syntaxhighlight lang="json" inline>(.*)</syntaxhighlight>')
_PLAIN_VALUE = re.compile(r"[^\s|!{*<][^\n]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What an infobox, a front matter or a line of properties says about its page."""

    sources: tuple[Source, ...] = ()
    domains: tuple[str, ...] = ()
    last_updated: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """What a text says, before it is known which page it is."""

    title: str | None = None
    about: About = About()
    lead: str = ""
    sections: tuple[Section, ...] = ()


# -- reading


def parse_wiki(text: str) -> Parsed:
    title, rest = cut_title(text.split("\n"))
    about, rest = _cut_infobox(rest)
    lead, sections = sections_of("\n".join(rest), HEADING, _unescaped)
    return settled(Parsed(title=title, about=about, lead=lead, sections=sections))


def settled(parsed: Parsed) -> Parsed:
    """Properties out of the lead; and a heading of the first level that nothing stands before is the title."""
    lead, properties = cut_properties(parsed.lead)
    about = both(parsed.about, properties)
    first = parsed.sections[0] if parsed.sections else None
    if parsed.title is None and not lead and first and first.level == 1:
        return settled(Parsed(title=first.heading, about=about, lead=first.body, sections=parsed.sections[1:]))
    return replace(parsed, about=about, lead=lead)


def cut_title(lines: list[str]) -> tuple[str | None, list[str]]:
    """The `# Title` that a page begins with, and the lines after it."""
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    match = TITLE.fullmatch(lines[first]) if first < len(lines) else None
    return (match[1], lines[first + 1 :]) if match else (None, lines)


def sections_of(text: str, heading: re.Pattern[str], unescape: Any) -> tuple[str, tuple[Section, ...]]:
    """The lead of a text and its sections; a heading that code holds is none."""
    heads: list[tuple[int, str]] = []
    bodies: list[list[str]] = [[]]
    for line, is_code in lines_with_code(text):
        match = None if is_code else heading.fullmatch(line)
        if match:
            heads.append((len(match[1]), match[2]))
            bodies.append([])
        else:
            bodies[-1].append(line if is_code else unescape(line))
    lead, *rest = ("\n".join(body).strip("\n") for body in bodies)
    together = zip(heads, rest, strict=True)
    return trimmed(lead), tuple(Section(level=n, heading=text, body=trimmed(body)) for (n, text), body in together)


def trimmed(body: str) -> str:
    """A body without the blank lines around it."""
    body = body.rstrip()
    match = _BLANK_LINES.match(body)
    return body[match.end() :] if match else body


def cut_properties(lead: str) -> tuple[str, About]:
    """Lines of the lead that hold nothing but properties of the page say what an infobox says."""
    lines: list[str] = []
    about = About()
    for line, is_code in lines_with_code(lead):
        properties = None if is_code else _properties_of(line)
        if properties is None:
            lines.append(line)
        else:
            about = both(about, properties)
    return trimmed("\n".join(lines)), about


def _properties_of(line: str) -> About | None:
    """What a line of properties says; None for a line that says anything else."""
    if "[[" not in line or _leftover(line, _SOURCE, _DOMAIN, _LAST_UPDATED):
        return None
    return About(
        sources=_sources_in(line),
        domains=tuple(domain.strip() for domain in _DOMAIN.findall(line)),
        last_updated=next((date.strip() for date in _LAST_UPDATED.findall(line)), None),
    )


def both(about: About, other: About) -> About:
    return About(
        sources=tuple(dict.fromkeys((*about.sources, *other.sources))),
        domains=tuple(dict.fromkeys((*about.domains, *other.domains))),
        last_updated=about.last_updated or other.last_updated,
        fields={**other.fields, **about.fields},
        problems=(*about.problems, *other.problems),
    )


def _cut_infobox(lines: list[str]) -> tuple[About, list[str]]:
    """The infobox that a page begins with, and the lines after it; a broken one stays text and is named."""
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or not lines[start].lstrip().startswith("{|"):
        return About(), lines
    end = next((number for number in range(start, len(lines)) if lines[number].strip() == "|}"), None)
    heading = next((number for number in range(start, len(lines)) if HEADING.fullmatch(lines[number])), len(lines))
    if end is None or end > heading:
        return About(problems=("Its infobox is never closed with |}: it was kept as text.",)), lines
    rows = _joined(_rows(lines[start + 1 : end]))
    if not _is_infobox(lines[start], rows):
        return About(), lines
    return _about(rows), lines[end + 1 :]


def _is_infobox(opening: str, rows: Mapping[str, str]) -> bool:
    """Any other table may stand first on a page."""
    return "infobox" in opening or bool({SOURCES, DOMAINS, LAST_UPDATED} & rows.keys())


def _rows(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The rows of an infobox: a key behind `!`, its value behind `|` and on the lines below."""
    key, value = "", list[str]()
    for line in [*lines, "|-"]:
        match = _ROW_KEY.fullmatch(line.strip())
        if line.strip().startswith("|-") or match:
            if key or any(part.strip() for part in value):
                yield key or "text", "\n".join(value).strip()
            key, value = (match[1], [match[2] or ""]) if match else ("", [])
        else:
            value.append(line.strip().removeprefix("|").strip() if line.lstrip().startswith("|") else line)


def _joined(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The rows by their keys; where a key stands twice, both values."""
    by_key: dict[str, str] = {}
    for key, value in rows:
        by_key[key] = f"{by_key[key]}\n{value}" if key in by_key else value
    return by_key


def _about(rows: Mapping[str, str]) -> About:
    """The rows in their places; what a known row holds beyond what it should is kept as a field of that name."""
    values = {key: _value(text) for key, text in rows.items()}
    more = values.pop(_MORE_FIELDS) if isinstance(values.get(_MORE_FIELDS), dict) else {}
    sources, domains = values.pop(SOURCES, ""), values.pop(DOMAINS, "")
    updated = values.pop(LAST_UPDATED, "")
    rest = {
        SOURCES: "" if not isinstance(sources, str) else _leftover(sources, _SOURCE),
        DOMAINS: "" if not isinstance(domains, str) else _leftover(domains, _DOMAIN),
        LAST_UPDATED: _leftover(str(updated), _LAST_UPDATED),
    }
    beyond = {key: text for key, text in rest.items() if text}
    return About(
        sources=_sources_in(sources) if isinstance(sources, str) else sources_from(sources),
        domains=tuple(map(str.strip, _DOMAIN.findall(domains))) if isinstance(domains, str) else tuple(domains),
        last_updated=next((date.strip() for date in _LAST_UPDATED.findall(str(updated))), None),
        fields={**values, **beyond, **more},
        problems=tuple(f"Its infobox says under {key} what is not understood: it was kept as it is." for key in beyond),
    )


def _sources_in(text: str) -> tuple[Source, ...]:
    return tuple(
        Source(kind=kind.strip(), title=title.strip(), url=url.strip()) for kind, title, url in _SOURCE.findall(text)
    )


def sources_from(values: Any) -> tuple[Source, ...]:
    """Sources from a list of mappings or of addresses; ValueError for any other shape."""
    if not isinstance(values, list):
        raise ValueError("sources are a list")
    return tuple(_source_from(value) for value in values)


def _source_from(value: Any) -> Source:
    if isinstance(value, str):
        return Source(url=value) if "://" in value else Source(title=value)
    if isinstance(value, Mapping) and value.keys() <= {"kind", "title", "url"}:
        return Source(**{key: str(part) for key, part in value.items()})
    raise ValueError("a source has a kind, a title and a url")


def _leftover(text: str, *understood: re.Pattern[str]) -> str:
    for pattern in understood:
        text = pattern.sub("", text)
    lines = (line.strip(" \t*,;·-") for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _value(text: str) -> Any:
    match = _JSON.fullmatch(text)
    if not match:
        return text
    try:
        return json.loads(match[1])
    except ValueError:
        return text


def _unescaped(line: str) -> str:
    return _ESCAPED.sub("", line, count=1) if line.startswith("<nowiki/>") else line


# -- writing


def render_wiki(page: WikiPage) -> str:
    """The page as wiki text. The infobox is always there: it is what tells this format from Markdown."""
    parts = [f"# {page.title}"] if page.title else []
    parts.append("\n".join([OPENING, *_infobox_rows(page), "|}"]))
    parts += [_escaped(page.lead)] if page.lead else []
    for section in page.sections:
        marks = "=" * min(max(section.level, 1), 6)
        body = f"\n{_escaped(section.body)}" if section.body else ""
        parts.append(f"{marks} {section.heading} {marks}{body}")
    return "\n\n".join(parts) + "\n"


def _infobox_rows(page: WikiPage) -> Iterator[str]:
    if page.sources:
        yield from ("|-", f"! {SOURCES}")
        yield from _source_lines(page.sources)
    if page.domains:
        yield from ("|-", f"! {DOMAINS}", f"| {_domain_line(page.domains)}")
    if page.last_updated:
        yield from ("|-", f"! {LAST_UPDATED}", f"| [[last_updated::{page.last_updated}]]")
    plain = {key: value for key, value in page.fields.items() if _is_row_key(key)}
    for key, value in plain.items():
        yield from ("|-", f"! {key}", f"| {value if _is_plain(value) else as_json(value)}")
    if more := {key: value for key, value in page.fields.items() if key not in plain}:
        yield from ("|-", f"! {_MORE_FIELDS}", f"| {as_json(more)}")


def _is_row_key(key: str) -> bool:
    """Whether a row of this name is read back as a field of this name."""
    match = _ROW_KEY.fullmatch(f"! {key}".strip())
    return match is not None and match[1] == key and key not in (SOURCES, DOMAINS, LAST_UPDATED, _MORE_FIELDS)


def _source_lines(sources: tuple[Source, ...]) -> list[str]:
    links = [f"[[source::{source.kind}|{source.title}|{source.url}]]" for source in sources]
    if all(_sources_in(link) == (source,) for link, source in zip(links, sources, strict=True)):
        return ["|", *(f"* {link}" for link in links)]
    return [f"| {as_json([{'kind': source.kind, 'title': source.title, 'url': source.url} for source in sources])}"]


def _domain_line(domains: tuple[str, ...]) -> str:
    line = ", ".join(f"[[domain::{domain}]]" for domain in domains)
    return line if tuple(map(str.strip, _DOMAIN.findall(line))) == domains else as_json(list(domains))


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and value == value.strip() and _PLAIN_VALUE.fullmatch(value) is not None


def as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return f'<syntaxhighlight lang="json" inline>{text}</syntaxhighlight>'


def _escaped(body: str) -> str:
    return "\n".join(
        line if is_code or not _would_be_heading(line) else f"<nowiki/>{line}"
        for line, is_code in lines_with_code(body)
    )


def _would_be_heading(line: str) -> bool:
    return bool(_TO_ESCAPE.match(line)) and HEADING.fullmatch(line.replace("<nowiki/>", "")) is not None
