"""Pages as Markdown: front matter, `#` headings, and links of every kind (Obsidian's and the wiki's typed ones).

Sources, domains and the last update have their place in the front matter; every other field of it is kept as it is. A
text that would be mistaken for a heading is written with a backslash before it, which is Markdown's own way.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from recollect.errors import InvalidInput
from recollect.memories.rules.documents import FRONT_MATTER, LOOKS_LIKE_FRONT_MATTER, front_matter
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.text import lines_with_code
from recollect.pages.rules.wiki import About, Parsed, cut_title, sections_of, settled, sources_from

HEADING = re.compile(r"(#{1,6})[ \t]+(\S(?:.*\S)?)[ \t]*")
EMPTY_FRONT_MATTER = "---\n---"
_MISTAKEN_AT_THE_START = ("---", "\ufeff")  # for a front matter, and for the mark of an encoding
_RARE_BREAK = re.compile("[\x85\u2028\u2029]")
_LOOKS_LIKE_HEADING = re.compile(r"\\*#{1,6}[ \t]+\S.*")
_ESCAPED_KEY = re.compile(r"\\+(?:sources|domains|last_updated)")
_ESCAPED = re.compile(r"\\+#{1,6}[ \t]+\S.*")


# -- reading


def parse_markdown(text: str) -> Parsed:
    about, rest = _cut_front_matter(text)
    title, lines = cut_title(rest.split("\n"))
    lead, sections = sections_of("\n".join(lines), HEADING, _unescaped)
    return settled(Parsed(title=title, about=about, lead=lead, sections=sections))


def _cut_front_matter(text: str) -> tuple[About, str]:
    """The front matter and the text after it; what is broken stays text and is named."""
    match = FRONT_MATTER.match(text)
    if match is None:
        unclosed = LOOKS_LIKE_FRONT_MATTER.match(text) is not None
        return About(problems=_kept_as_text("it is never closed") if unclosed else ()), text
    try:
        return _about(front_matter(match[1] or "")), text[match.end() :]
    except InvalidInput as problem:
        return About(problems=_kept_as_text(problem.message)), text


def _kept_as_text(why: str) -> tuple[str, ...]:
    return (f"Its front matter was kept as text, because {why}.",)


def _about(fields: Mapping[str, Any]) -> About:
    """The fields in their places; a known one of another shape than ours is kept like any other."""
    rest = dict(fields)
    about: dict[str, Any] = {}
    for name, read in (("sources", sources_from), ("domains", _texts), ("last_updated", _text)):
        if name in rest:
            try:
                about[name] = read(rest[name])
                del rest[name]
            except ValueError:
                continue
    return About(fields={_unescaped_key(key): value for key, value in rest.items()}, **about)


def _unescaped_key(key: str) -> str:
    return key[1:] if _ESCAPED_KEY.fullmatch(key) else key


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("domains are a list of texts")
    return tuple(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("the last update is a text")
    return value


def _unescaped(line: str) -> str:
    return line[1:] if _ESCAPED.fullmatch(line) else line


# -- writing


class _Fields(yaml.SafeDumper):
    """YAML, with the line breaks that only Unicode knows escaped: bare ones are folded with what follows them."""


def _scalar(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _RARE_BREAK.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Fields.add_representer(str, _scalar)


def render_markdown(page: WikiPage) -> str:
    parts = [*_front_matter_of(page)]
    parts += [f"# {page.title}"] if page.title else []
    parts += [_escaped(page.lead)] if page.lead else []
    for section in page.sections:
        body = f"\n{_escaped(section.body)}" if section.body else ""
        parts.append(f"{'#' * min(max(section.level, 1), 6)} {section.heading}{body}")
    return "\n\n".join(parts) + "\n"


def _front_matter_of(page: WikiPage) -> Iterator[str]:
    fields: dict[str, Any] = {}
    if page.sources:
        fields["sources"] = [{"kind": source.kind, "title": source.title, "url": source.url} for source in page.sources]
    if page.domains:
        fields["domains"] = list(page.domains)
    if page.last_updated:
        fields["last_updated"] = page.last_updated
    fields |= {_escaped_key(key, value, fields): value for key, value in page.fields.items()}
    if fields:
        block = yaml.dump(fields, Dumper=_Fields, allow_unicode=True, sort_keys=False, width=1_000_000)
        yield f"---\n{block}---"
    elif page.title is None and page.lead.startswith(_MISTAKEN_AT_THE_START):
        yield EMPTY_FRONT_MATTER


def _escaped_key(key: str, value: Any, taken: Mapping[str, Any]) -> str:
    """The name of a field, with a backslash before it where it would be mistaken for one of ours."""
    return key if key not in taken and key in _about({key: value}).fields else f"\\{key}"


def _escaped(body: str) -> str:
    return "\n".join(
        line if is_code or not _LOOKS_LIKE_HEADING.fullmatch(line) else f"\\{line}"
        for line, is_code in lines_with_code(body)
    )
