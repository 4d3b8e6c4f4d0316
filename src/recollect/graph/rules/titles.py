"""What a text without a name is called: its first heading, else its first line that says something; a piece of a
longer note by the note too (`Books › Links`), since every other note has a heading like that.

Notes come with markup (Markdown, reStructuredText, the HTML that READMEs lay themselves out with). Nothing of it is in
a title: of a link its words, nothing of pictures and badges. The page does the same (web/src/lib/titles.ts).
"""

import re
from collections.abc import Mapping
from typing import Any

from recollect.model import Node

# Of a longer text nothing further on is looked at.
MOST_READ = 1_500
LONGEST = 200
MARKED = re.compile(r"[#*`<\[|~_]|==|--|\.\. |^\s*[->+]")
# The line drawn below is looked for first, else a long line would be gone through once for each letter in it.
HEADING = re.compile(
    r"^#{1,6}[ \t]+(.+?)[ \t]*#*$"
    r"|^(?![=\-~*|>]|\s*[-*+]\s)(?=.*\n[=~-]{3,}[ \t]*$)(.*[^\W\d_].*)\n[=~-]{3,}[ \t]*$",
    re.MULTILINE,
)
LAYOUT = re.compile(
    r"</?(?:p|div|span|a|img|picture|source|br|hr|center|h[1-6]|b|i|em|strong|sub|sup|kbd|details|summary|table|t[rdh]|"
    r"thead|tbody)\b[^>]*(?:>|$)|<!--.*?(?:-->|$)",
    re.IGNORECASE | re.DOTALL,
)
HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.IGNORECASE | re.DOTALL)
# Line by line, in this order: what goes, or what stays of it.
PLAINER = tuple(
    (re.compile(pattern), stays)
    for pattern, stays in (
        (r"^\s*(?:```|~~~).*$", ""),  # the fence of code
        (r"^\s*\.\. (?:\|[^|]*\|\s*)?(?:[\w-]+::|_).*$|^\s*:[\w-]+:(?:\s.*)?$", ""),  # a directive, or a field of it
        (r"\[?!\[[^\]]*\](?:\([^)]*(?:\)|$)|\[[^\]]*\])(?:\](?:\([^)]*(?:\)|$)|\[[^\]]*\]))?", " "),  # a picture
        (r"(?<!\S)\|\w(?:[\w .-]*\w)?\|_*(?!\S)", " "),  # a picture by name
        (r"(?<!\S)(?:#{1,6}|[=~-]{3,})(?=\s|$)", " "),
        (r"!?\[\[(?:[^\]|]*\|)?([^\]]+)\]\]", r"\1"),
        (r"!?\[([^\]]*)\]\([^)]*(?:\)|$)|\[([^\]]+)\]\[[^\]]*\]", r"\1\2"),
        (r"(?::[\w-]+:)?`([^`<]+?)\s*(?:<[^`>]*>)?`__?(?!\w)", r"\1"),
        (r"(\*\*|__|~~|``|`)(?=\S)(.+?)(?<=\S)\1", r"\2"),
        (r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"\1"),
        (r"^\s*(?:[-*+]|\d+[.)]|>)\s+", ""),
        (r"^\s*\|\s*(.*?)\s*\|\s*$", r"\1"),  # the row of a table
    )
)


def name_of(node: Node) -> str:
    """What a node is called: its name, or as its text is."""
    extra = node.metadata.get("extra")
    return node.name or title_of(node.text or "", extra.get("section") if isinstance(extra, Mapping) else None)


def title_of(text: str, section: Any = None) -> str:
    """What a text is called, in one line; `section` are the headings that a piece of a longer note stands below."""
    title = _title_of(text[:MOST_READ])
    note = unmarked(section.split(" / ")[0]) if isinstance(section, str) else ""
    return f"{note} › {title}"[:LONGEST] if says_something(note) and note != title else title


def _title_of(text: str) -> str:
    if not MARKED.search(text):
        return " ".join(text.strip().partition("\n")[0].split())[:LONGEST]
    shown = LAYOUT.sub(" ", HTML_HEADING.sub(r"\n# \2\n", text)) if "<" in text else text
    headings = (heading[1] or heading[2] for heading in HEADING.finditer(shown))
    lines = (unmarked(line) for line in (*headings, *shown.split("\n")))
    first = next((line for line in lines if says_something(line)), None)
    return (" ".join(text.split()) if first is None else first)[:LONGEST]


def unmarked(line: str) -> str:
    """A line as it is read aloud."""
    for pattern, stays in PLAINER:
        line = pattern.sub(stays, line)
    return " ".join(line.split())


def says_something(line: str) -> bool:
    """Not only signs: a letter, a digit or a picture."""
    return any(character.isalnum() or character > "\u2600" for character in line)
