"""The text of a page line by line: what is code, what is a heading, what is a sentence.

Code is opaque: a `# comment` in it is no heading and `[[x]]` in it is no link. The fences of both formats count in
both, because real pages mix them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_FENCE = re.compile(r"[ \t>*-]*(`{3,}|~{3,})([^`\n]*)$")
_TAG = re.compile(r"[ \t]*<(syntaxhighlight|source|pre|math|nowiki|mermaid)\b[^>\n]*(?<!/)>", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*<!--")
_TEMPLATE = re.compile(r"[ \t]*\{\{")
_CLOSING = re.compile(r"</(?:syntaxhighlight|source|pre|math|nowiki|mermaid)>|-->|\}\}")
# None of these looks beyond the next opening of its kind: else a line of openings alone would be read again and again.
_INLINE_CODE = re.compile(
    r"(`+)(?!`)(?:.*?[^`])??\1(?!`)"
    r"|<code>(?:(?!<code>).)*?</code>"
    r"|<nowiki>(?:(?!<nowiki>).)*?</nowiki>"
    r"|<!--(?:(?!<!--).)*?-->"
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+(?=[^\s])")
_LIST_MARK = re.compile(r"[ \t]*(?!\*\*[^\s*][^*\n]*\*\*)(?:[*#:;>+-]+[ \t]|[*#:;]+(?=\S)|\d+[.)][ \t])[ \t]*")
_LINK_LINE = re.compile(r"[ \t]*(?:[*-][ \t]*)?!?\[\[[^\[\]\n]+\]\][^\[\]\n]*")
_WORD = re.compile(r"\w+")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs)\.|\b[A-Z]\.)$", re.IGNORECASE)

LONGEST_ABBREVIATION = 8
"""With the sign before it: `approx.` is an abbreviation, the end of a longer word is none."""
REMEMBERED = 20_000
MOST_REMEMBERED = 4_096
"""Merging and its audit read the same sections again and again: so many, no longer than this, are taken apart once."""


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code (its fences included)."""
    return ((line, number > 0) for line, number, _ in _scan(text))


def is_open(text: str) -> str | None:
    """The fence that is still open at the end of a text, as it must be closed; None where there is none."""
    end: str | None = None
    for _, _, end in _scan(text):  # noqa: B007 - the last one is wanted
        pass
    return end


def _scan(text: str) -> Iterator[tuple[str, int, str | None]]:
    """Each line, the number of the block of code it belongs to (0: none), and what would end the block after it."""
    lines = text.split("\n")
    last_end = _last_ends(lines)
    ends: str | None = None
    number = 0
    for index, line in enumerate(lines):
        if ends is None:
            ends = _opened(line, index, last_end)
            number += ends is not None
            yield line, number if ends else 0, ends
        else:
            ends = None if _closes(line, ends) else ends
            yield line, number, ends


def closed(text: str) -> str:
    """A text after which another may follow: an open fence is closed."""
    fence = is_open(text)
    return text if fence is None else f"{text}\n{fence}"


def outside_code(text: str) -> Iterator[str]:
    return (line for line, is_code in lines_with_code(text) if not is_code)


def without_code(line: str) -> str:
    """The line with its inline code blanked, so that places stay where they are."""
    return _INLINE_CODE.sub(lambda code: " " * len(code[0]), line) if "`" in line or "<" in line else line


def _opened(line: str, number: int, last_end: dict[str, int]) -> str | None:
    """What will end the block that this line opens; None where it opens none, or one that is never closed."""
    if fence := _FENCE.match(line):
        return fence[1]
    for end, opening in (("-->", _COMMENT), ("}}", _TEMPLATE), (None, _TAG)):
        if match := opening.match(line):
            closing = end or f"</{match[1].lower()}>"
            is_done = closing in line[match.end() :].lower()
            return closing if not is_done and last_end.get(closing, -1) > number else None
    return None


def _closes(line: str, ends: str) -> bool:
    if ends[0] in "`~":
        mark = line.strip().lstrip(">").strip()
        return len(mark) >= len(ends) and not mark.strip(ends[0])
    return ends in line.lower()


def _last_ends(lines: list[str]) -> dict[str, int]:
    """Where each closing tag occurs last: a tag that nothing closes opens no block."""
    last_line: dict[str, int] = {}
    for number, line in enumerate(lines):
        if "</" in line or "-->" in line or "}}" in line:
            for end in _CLOSING.findall(line.lower()):
                last_line[end] = number
    return last_line


# -- blocks

BlockKind = Literal["paragraph", "label", "item", "link", "table", "code"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A piece of a text that is kept or left out as one. A label (`Prerequisites:`) belongs to what follows it."""

    kind: BlockKind
    text: str


def blocks(text: str) -> tuple[Block, ...]:
    """A text as its blocks, in order; blank lines only part them."""
    return _remembered_blocks(text) if len(text) <= REMEMBERED else _blocks(text)


def _blocks(text: str) -> tuple[Block, ...]:
    finished: list[Block] = []
    lines: list[str] = []
    kind: BlockKind | None = None
    code = 0

    def finish() -> None:
        nonlocal kind
        if lines and kind:
            finished.append(_block(kind, "\n".join(lines)))
        lines.clear()
        kind = None

    for line, number, _ in _scan(text):
        line_kind = _kind(line, number > 0, kind)
        if line_kind is None or number != code or not _continues(kind, line_kind, lines):
            finish()
        code = number
        if line_kind is not None:
            kind = kind or line_kind
            lines.append(line)
    finish()
    return tuple(finished)


def _kind(line: str, is_code: bool, before: BlockKind | None) -> BlockKind | None:
    """What a line is; None for a blank one."""
    stripped = line.strip()
    if is_code:
        return "code"
    if not stripped:
        return None
    if stripped.startswith(("{|", "|", "!")) and not stripped.startswith(("![", "!!")):
        return "table"
    if _LINK_LINE.fullmatch(line):
        return "link"
    if _LIST_MARK.match(line):
        return "table" if before == "table" and not stripped.startswith("#") else "item"
    return "table" if before == "table" else "paragraph"


def _continues(kind: BlockKind | None, line_kind: BlockKind, lines: list[str]) -> bool:
    """Whether a line belongs to the block before it."""
    if kind == "table":
        return line_kind == "table" and lines[-1].strip() != "|}"
    if kind == "code":
        return line_kind == "code"
    if kind in ("paragraph", "item"):
        return line_kind == "paragraph"
    return False


def _block(kind: BlockKind, text: str) -> Block:
    is_label = kind == "paragraph" and text.rstrip().strip("*'_").rstrip().endswith(":")
    return Block(kind="label" if is_label and "\n" not in text else kind, text=text)


# -- sentences


def sentences(text: str) -> list[str]:
    """The sentences of a text: prose cut at its full stops; every list item, table row and line of code by itself."""
    return [sentence for block in blocks(text) for sentence in sentences_of(block)]


def sentences_of(block: Block) -> list[str]:
    if block.kind in ("code", "table"):
        return [line.strip() for line in block.text.split("\n") if _says_something(line)]
    prose = " ".join(line.strip() for line in block.text.split("\n"))
    return _cut(_LIST_MARK.sub("", prose, count=1) if block.kind == "item" else prose)


def said(sentence: str) -> str:
    """A sentence as it is compared: words alone, without case, markup and punctuation."""
    return " ".join(_WORD.findall(sentence.casefold()))


def said_in(texts: Iterable[str]) -> set[str]:
    """Everything that some texts say."""
    return set().union(*(_remembered_said(text) if len(text) <= REMEMBERED else _said(text) for text in texts))


def spoken_in(texts: Iterable[str]) -> set[str]:
    """What some texts say beside the lines that are links."""
    prose = (block for text in texts for block in blocks(text) if block.kind != "link")
    return {said(sentence) for block in prose for sentence in sentences_of(block)} - {""}


def _said(text: str) -> frozenset[str]:
    return frozenset(map(said, sentences(text))) - {""}


_remembered_blocks = lru_cache(maxsize=MOST_REMEMBERED)(_blocks)
_remembered_said = lru_cache(maxsize=MOST_REMEMBERED)(_said)


def _cut(prose: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(prose):
        if not _ABBREVIATION.search(prose[max(start, end.start() - LONGEST_ABBREVIATION) : end.start()]):
            parts.append(prose[start : end.start()])
            start = end.end()
    parts.append(prose[start:])
    return [part.strip() for part in parts if _says_something(part)]


def _says_something(part: str) -> bool:
    return _WORD.search(part) is not None
