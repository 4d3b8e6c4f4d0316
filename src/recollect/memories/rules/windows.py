"""A long text is read in windows: one vector for all of it would be a blur in which a single fact is lost (D47).

Windows are of about 32 tokens, one or two sentences, and overlap, so that what stands at the end of one stands whole
in the next. They are spread evenly over the text and end, where they can, with a line or a sentence. A text of up to
2,200 tokens has only one: itself. Of a very long text the windows are longer instead of more.

A passage, which is what people are shown, is the window that was found and a few sentences before and after it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recollect.memories.rules.text import each_piece, pieces_of

TOKENS = 32
OVERLAP = 8
ONE_IS_ENOUGH = 2200
MOST = 400
# A window may end this much earlier, as a share of it, to end with a sentence.
LEEWAY = 0.35

_ENDS = re.compile(r"\n+|(?<=[.!?;:…])\s+|(?<=[。！？；។])")
_SPACE = re.compile(r"\s+")


class Window(NamedTuple):
    """A stretch of a text, as places of its characters; without an end, all of it."""

    start: int
    end: int | None

    def of(self, text: str) -> str:
        return text[self.start : self.end].strip()


WHOLE = Window(0, None)
# So many windows before and after the one that was found are shown with it.
BESIDE = 3
# A sentence that begins at most so many characters before a passage is shown with it.
NEAR = 160


def is_long(text: str) -> bool:
    """Whether a text has more than one window."""
    return len(text) > ONE_IS_ENOUGH and any(islice(each_piece(text), ONE_IS_ENOUGH, None))


def passage(text: str, window: Window, windows: Sequence[Window]) -> Window:
    """A window with those beside it, from the beginning of a sentence to the end of one, where these are near."""
    ordered = sorted(windows)
    at = ordered.index(window)
    first, last = ordered[max(at - BESIDE, 0)], ordered[min(at + BESIDE, len(ordered) - 1)]
    start = _rest_before(text, first.start, least=max(first.start - NEAR, 0))
    if last.end is None or window.end is None:
        return Window(start, None)
    return Window(start, _rest_before(text, last.end, least=max(last.end - NEAR, window.end)))


def windows(text: str) -> list[Window]:
    """The windows of a text, in order; a single one for a text that is not long."""
    pieces = pieces_of(text)
    count = len(pieces)
    if count <= ONE_IS_ENOUGH:
        return [WHOLE]
    number = min(MOST, -(-(count - OVERLAP) // (TOKENS - OVERLAP)))
    step = (count - OVERLAP) / number
    starts = [pieces[round(step * index)] for index in range(number)]
    ends = [*(pieces[min(round(step * (index + 1)) + OVERLAP, count - 1)] for index in range(number - 1)), len(text)]
    rests = [match.end() for match in _ENDS.finditer(text)]
    return list(_snapped(text, zip(starts, ends, strict=True), rests))


def _snapped(text: str, rough: Iterator[tuple[int, int]], rests: list[int]) -> Iterator[Window]:
    """Each window moved to where a sentence ends, or at least a word, where one does nearby; none begins behind the end
    of the one before."""
    reached = 0
    for start, end in rough:
        leeway = int(LEEWAY * (end - start))
        window = Window(
            min(_backwards(text, start, leeway, rests), reached), max(_backwards(text, end, leeway, rests), reached)
        )
        reached = window.end or reached
        if window.start < reached:
            yield window


def _rest_before(text: str, position: int, *, least: int) -> int:
    rests = [match.end() for match in _ENDS.finditer(text, least, position)]
    return _backwards(text, position, position - least, rests)


def _backwards(text: str, position: int, leeway: int, rests: list[int]) -> int:
    """The last end of a sentence up to a place, else the last end of a word, else the place itself."""
    if position in (0, len(text)):
        return position
    at = bisect_left(rests, position + 1) - 1
    if at >= 0 and rests[at] >= position - leeway:
        return rests[at]
    return max((match.end() for match in _SPACE.finditer(text, max(position - leeway, 0), position)), default=position)
