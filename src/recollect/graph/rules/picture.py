"""A picture of a part of the graph: dots and lines, which of them are drawn, and what differs between two pictures.

    Picture of dots and lines  ->  picture_places (where)  ->  picture_svg (as SVG, and as a page)

Strength is a colour and a width, a kind is a colour and a shape, a mark is a line style and a sign: nothing is said by
colour alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Mark = Literal["", "added", "removed", "changed", "focus"]
MOST_DOTS = 300
STRONG, WEAK = 0.7, 0.3
SIGNS = {"added": "+", "removed": "−", "changed": "~", "focus": "", "": ""}


@dataclass(frozen=True, kw_only=True, slots=True)
class Dot:
    """A node as it is drawn."""

    id: str
    label: str
    kind: str
    mark: Mark = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PictureLine:
    """An edge as it is drawn."""

    id: str
    source: str
    target: str
    relation: str
    strength: float
    mark: Mark = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """What is to be drawn. A line whose ends are not both among the dots is left out, and counted."""

    title: str
    dots: tuple[Dot, ...]
    lines: tuple[PictureLine, ...]


def most_connected(picture: Picture) -> list[Dot]:
    """At most 300 dots: those with a mark, then those with the most lines."""
    degrees = degrees_of(picture.lines)
    dots = {dot.id: dot for dot in reversed(picture.dots)}.values()  # of two with one id, the first
    return sorted(dots, key=lambda dot: (not dot.mark, -degrees[dot.id], dot.id))[:MOST_DOTS]


def degrees_of(lines: Iterable[PictureLine]) -> Counter[str]:
    return Counter(end for line in lines for end in {line.source, line.target})


def marked(picture: Picture, other: Picture, mark: Mark) -> Picture:
    """The picture with what the other lacks marked so, and what is otherwise there marked as changed."""
    dots = {dot.id: (dot.label, dot.kind) for dot in other.dots}
    lines = {line.id: (line.source, line.target, line.relation, line.strength) for line in other.lines}

    def of_dot(dot: Dot) -> Mark:
        return _difference(dots.get(dot.id), (dot.label, dot.kind), mark)

    def of_line(line: PictureLine) -> Mark:
        return _difference(lines.get(line.id), (line.source, line.target, line.relation, line.strength), mark)

    return replace(
        picture,
        dots=tuple(replace(dot, mark=dot.mark or of_dot(dot)) for dot in picture.dots),
        lines=tuple(replace(line, mark=line.mark or of_line(line)) for line in picture.lines),
    )


def _difference(other: object, own: object, mark: Mark) -> Mark:
    return mark if other is None else "changed" if other != own else ""


def union(before: Picture, after: Picture) -> Picture:
    """All that is in either: a line that has been moved to other ends is in it twice."""
    dots: dict[str, Dot] = {}
    for dot in (*before.dots, *after.dots):
        earlier = dots.get(dot.id)
        longer = earlier.label if earlier and len(earlier.label) >= len(dot.label) else dot.label
        dots[dot.id] = replace(dot, label=longer, mark=(earlier.mark if earlier else "") or dot.mark)
    lines = {(line.id, line.source, line.target): line for line in (*before.lines, *after.lines)}
    return Picture(title="", dots=tuple(dots.values()), lines=tuple(lines.values()))
