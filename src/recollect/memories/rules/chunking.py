"""Cutting a long document into chunks that are memories of their own (D08).

A document is read once, as small pieces: headings, paragraphs, list items, sentences, and where a sentence is too long,
stretches of words. Pieces are gathered until the next would not fit; then the chunk ends at the best place in its
second half: before a heading, else a paragraph, else a sentence, else between words, and only then inside one.
Cutting from the front keeps the first chunks of a document the same when something is added at its end.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from recollect.memories.rules.text import count_tokens

# White space is no token, but a memory has a limit in bytes: 250,000 characters never exceed 1,000,000 of them.
MOST_CHARACTERS = 250_000
# A token is at most six letters long (see count_tokens).
LETTERS_PER_TOKEN = 6
MOST_LEVELS = 6


class Cut(IntEnum):
    """What begins at a place where one may cut; the smaller, the better to cut there."""

    HEADING = 0
    PARAGRAPH = 1
    SENTENCE = 2
    WORD = 3
    INSIDE_WORD = 4


class TextPiece(NamedTuple):
    """A stretch of the document that stays whole, and what kind of place it begins at."""

    start: int
    end: int
    tokens: int
    cut: Cut


_LINE = re.compile(r"[^\n]+")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*(?:\n|\Z)")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# The look-behinds keep the search linear on a line of nothing but dots.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])(?![。！？”’」』）])")
_LAST_SPACE = re.compile(r"\s\S*\Z")
_ZERO_WIDTH_JOINER = "\u200d"


def chunks(text: str, most_tokens: int) -> list[str]:
    """The text as chunks of at most `most_tokens`; all of it in order, without the white space at the cuts.

    A text that is short enough stays whole.
    """
    if len(text) <= MOST_CHARACTERS and count_tokens(text) <= most_tokens:
        return [text.strip()] if text.strip() else []
    return list(_packed(text, most_tokens))


def headings_above(text: str, parts: Sequence[str]) -> list[str]:
    """For each chunk of a text the headings that it stands below and does not hold itself, the outermost first."""
    paths: list[str] = []
    above: list[tuple[int, str]] = []
    headings = list(_headings(text))
    start = 0
    for part in parts:
        start = text.index(part, start)
        while headings and headings[0][0] < start:
            _, level, title = headings.pop(0)
            above = [*((other, name) for other, name in above if other < level), (level, title)]
        own = headings[0][1] if headings and headings[0][0] == start else MOST_LEVELS + 1
        paths.append(" / ".join(title for level, title in above if level < own))
        start += len(part)
    return paths


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each heading stands, its level, and what it says."""
    for start, end, cut in _lines(text):
        line = text[start:end]
        if cut is Cut.HEADING or (_HEADING.match(line) and cut is Cut.WORD):
            marks = _HEADING.match(line)
            level = marks[0].count("#") if marks else 1 if text[end + 1 :].lstrip(" ").startswith("=") else 2
            yield start, level, line.strip().strip("#").strip()


def _packed(text: str, most_tokens: int) -> Iterator[str]:
    held: list[TextPiece] = []
    tokens = 0
    for piece in _pieces(text, at_most=max(1, most_tokens // 4)):
        while held and (tokens + piece.tokens > most_tokens or piece.end - held[0].start > MOST_CHARACTERS):
            count = _how_many_to_take([*held, piece], at_least=most_tokens // 2)
            yield _between(text, held[0], held[count - 1])
            tokens -= sum(taken.tokens for taken in held[:count])
            del held[:count]
        held.append(piece)
        tokens += piece.tokens
    if held:
        yield _between(text, held[0], held[-1])


def _between(text: str, first: TextPiece, last: TextPiece) -> str:
    return text[first.start : last.end].strip()


def _how_many_to_take(held: list[TextPiece], *, at_least: int) -> int:
    """How many pieces make the next chunk: up to the best place to cut, the last of equals, once it is half full."""
    best, kind, tokens = len(held) - 1, None, 0
    for count, (piece, following) in enumerate(pairwise(held), start=1):
        tokens += piece.tokens
        if tokens >= at_least and (kind is None or following.cut <= kind):
            best, kind = count, following.cut
    return best


def _pieces(text: str, *, at_most: int) -> Iterator[TextPiece]:
    """Every piece of the text that is more than white space, none longer than `at_most` tokens."""
    for start, end, cut in _lines(text):
        if end - start <= at_most:  # no character is more than one token
            yield TextPiece(start, end, count_tokens(text[start:end]), cut)
        else:
            for first, last, kind in _sentences(text, start, end, cut):
                yield from _as_pieces(text, first, last, kind, at_most)


def _lines(text: str) -> Iterator[tuple[int, int, Cut]]:
    """The lines that hold anything, each with what begins there."""
    fence = ""
    after_gap, after_heading, after_end = True, False, False  # what came before: an empty line, a heading, a full stop
    for match in _LINE.finditer(text):
        start, end = match.span()
        line = match[0].rstrip()
        after_gap = after_gap or not line or text[start - 2 : start] == "\n\n"
        if not line:
            continue
        is_heading = not fence and bool(_HEADING.match(line) or (after_gap and _UNDERLINE.match(text, end + 1)))
        if after_heading:
            cut = Cut.WORD  # a heading stays with what it heads
        elif is_heading:
            cut = Cut.HEADING
        elif not fence and (after_gap or _LIST_ITEM.match(line)):
            cut = Cut.PARAGRAPH
        else:
            cut = Cut.SENTENCE if fence or after_end else Cut.WORD
        yield start, end, cut
        if marker := _FENCE.match(line):
            fence = _after_marker(fence, marker[1])
        after_gap, after_heading, after_end = False, is_heading, line[-1] in ".!?…:;。！？"


def _after_marker(fence: str, marker: str) -> str:
    """The code fence that is open after a line of backticks or tildes: this one, none, or still the one before."""
    if not fence:
        return marker
    return "" if marker[0] == fence[0] and len(marker) >= len(fence) else fence


def _sentences(text: str, start: int, end: int, cut: Cut) -> Iterator[tuple[int, int, Cut]]:
    for match in _SENTENCE_END.finditer(text, start, end):
        yield start, match.end(), cut
        start, cut = match.end(), Cut.SENTENCE
    yield start, end, cut


def _as_pieces(text: str, start: int, end: int, cut: Cut, at_most: int) -> Iterator[TextPiece]:
    """One piece where it is short enough; else stretches of `at_most` characters, hence no more tokens than that."""
    if end - start <= LETTERS_PER_TOKEN * at_most:
        tokens = count_tokens(text[start:end])
        if tokens <= at_most:
            if tokens:
                yield TextPiece(start, end, tokens, cut)
            return
    while start < end:
        stop = _stretch_end(text, start, min(start + at_most, end), end)
        if tokens := count_tokens(text[start:stop]):
            yield TextPiece(start, stop, tokens, cut)
        cut = Cut.WORD if text[stop - 1].isspace() or text[stop : stop + 1].isspace() else Cut.INSIDE_WORD
        start = stop


def _stretch_end(text: str, start: int, stop: int, end: int) -> int:
    """Where a stretch ends: at a space if it holds one, else where no accent or emoji is torn apart."""
    if stop == end or text[stop].isspace():
        return stop
    if space := _LAST_SPACE.search(text[start:stop]):
        return start + space.start() + 1
    for cut in range(stop, start, -1):
        if not _belongs_together(text[cut - 1], text[cut]):
            return cut
    return stop


def _belongs_together(left: str, right: str) -> bool:
    """Whether two characters are seen as one: a letter and its marks, the parts of an emoji."""
    return (
        unicodedata.category(right).startswith("M")
        or _ZERO_WIDTH_JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )
