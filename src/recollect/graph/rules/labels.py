"""Labels short enough to draw, from any text at all.

A label is data that nobody has checked: it may be empty, ten thousand letters long, full of line ends, control
characters, marks piled on one letter, or letters that turn the writing direction of what follows. What comes out is one
line or a few, of a bounded width and height, cut between letters as a reader sees them and not inside an emoji.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, takewhile

from recollect.graph.rules.xml import allowed

ELLIPSIS = "…"
MOST_READ = 1_000  # of a longer text nothing further on could be seen anyway
FULL_ENOUGH = 0.6  # then a line ends with a whole word
MOST_MARKS = 3  # on one letter: Vietnamese needs two
MOST_JOINED = 12  # characters in one emoji: a family of four has seven
NARROW = frozenset("iIjlftr.,;:|!'`()[]{} ")
WIDE = frozenset("mwMW@%&")
HYPHENS = frozenset("-_/")
JOINER = "\u200d"
# Embeddings, overrides and isolates: they would turn round what stands after the label.
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\ufffd]+")
_MODIFIERS = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)


def tidy(text: str) -> str:
    """The text on one line, without what cannot be seen and could do harm."""
    plain = _INVISIBLE.sub(" ", allowed(_TURNS.sub("", text[:MOST_READ])))
    return " ".join("".join(letters(plain)).split()) if any(map(_is_visible, plain)) else ""


def letters(text: str) -> Iterator[str]:
    """The letters as a reader sees them: marks, joined emoji and flags stay together; piled marks are cut."""
    if text.isascii():
        yield from text
        return
    letter = ""
    for character in text:
        if letter and _belongs(character, letter):
            letter += character if _has_room(letter, character) else ""
        else:
            if letter:
                yield letter
            letter = character
    if letter:
        yield letter


def shortened(text: str, columns: int) -> str:
    """The text tidied, at most so many columns wide; an ellipsis says that something is missing."""
    return _cut(list(letters(tidy(text))), columns)


def wrapped(text: str, columns: int, most_lines: int) -> tuple[str, ...]:
    """The text in lines of at most so many columns, broken at spaces where it can be."""
    rest = list(letters(tidy(text)))
    lines: list[str] = []
    while len(lines) < most_lines - 1 and _fitting(rest, columns) < len(rest):
        end = _last_break(rest, columns)
        lines.append("".join(rest[:end]).strip())
        rest = list(letters("".join(rest[end:]).strip()))
    if rest:
        lines.append(_cut(rest, columns))
    return tuple(lines)


def width(text: str, size: float) -> float:
    """About how wide a text is drawn in a sans-serif font of this size; rather too wide than too narrow."""
    return size * sum(_em(letter[0]) for letter in letters(text))


def _cut(of: list[str], columns: int) -> str:
    fitting = _fitting(of, columns)
    if fitting == len(of):
        return "".join(of)
    beginning = of[: _fitting(of, columns - 1)]
    words = "".join(beginning[: _last_space(beginning)])
    return (words if len(words) >= len(beginning) * FULL_ENOUGH else "".join(beginning)).rstrip(" .,;:-") + ELLIPSIS


def _last_space(of: list[str]) -> int:
    return max((index for index, letter in enumerate(of) if letter == " "), default=0)


def _last_break(of: list[str], columns: int) -> int:
    """Where the first line ends: at its last space or hyphen if it is not nearly empty then, else where it is full."""
    full = max(1, _fitting(of, columns))
    breaks = (index for index in range(full, full // 4, -1) if of[index] == " " or of[index - 1] in HYPHENS)
    return next(breaks, full)


def _fitting(of: list[str], columns: int) -> int:
    """How many of these letters fit into so many columns."""
    ends = accumulate(map(_columns, of))
    return sum(1 for _ in takewhile(lambda end: end <= columns, ends))


def _columns(letter: str) -> int:
    return 2 if _is_broad(letter[0]) else 1


def _em(character: str) -> float:
    if _is_broad(character):
        return 1.15
    if character in NARROW:
        return 0.36
    return 0.9 if character in WIDE else 0.7 if character.isupper() else 0.58


def _is_broad(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF" or ord(character) in _FLAGS


def _belongs(character: str, letter: str) -> bool:
    if character == JOINER or letter[-1] == JOINER or _is_mark(character) or ord(character) in _MODIFIERS:
        return True
    return ord(character) in _FLAGS and len(letter) == 1 and ord(letter) in _FLAGS


def _has_room(letter: str, character: str) -> bool:
    marks = sum(map(_is_mark, letter)) if _is_mark(character) else 0
    return marks < MOST_MARKS and len(letter) < MOST_JOINED


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CZM"
