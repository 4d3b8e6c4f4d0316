"""A picture of a part of the graph, and of a plan before and after: as SVG, and as a page that needs no network.

    Picture of dots and lines  ->  layout (where)  ->  svg, side_by_side  ->  page

Labels are data that nobody has checked: they are tidied, shortened and escaped. Strength is a colour and a width, a
kind is a colour and a shape, a mark is a line style and a sign: nothing is said by colour alone. Details stand in a
title element, which every browser shows on hover; the script of a page only makes that nicer.
"""

import base64
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.curves import Curve, bow, clear_bow, fan, loop, sampled
from recollect.graph.rules.free_space import Box, Room
from recollect.graph.rules.labels import shortened, width, wrapped
from recollect.graph.rules.layout import arranged
from recollect.graph.rules.picture_style import KINDS, SCRIPT, STRENGTHS, page_style, picture_style
from recollect.graph.rules.xml import attribute, content

Mark = Literal["", "added", "removed", "changed", "focus"]
Places = Mapping[str, tuple[float, float]]
Floats = NDArray[np.float64]

MOST_DOTS = 300
MOST_LINE_LABELS = 36
MOST_BOWED_AROUND = 90  # among more dots than these, straight lines are easier to follow
LONGEST_DETAIL = 600
STRONG, WEAK = 0.7, 0.3
NAME_SIZE, NAME_HEIGHT = 12.0, 14.0
RELATION_SIZE, RELATION_HEIGHT = 10.5, 13.0
RELATION_COLUMNS = 24
MARGIN = 18.0
HEADING = 30.0
NOTE = 22.0
WHOLE_ASPECT, HALF_ASPECT = 1.25, 0.72  # width / height
LEAST_WIDTH = 260.0
LARGEST_SCALE = 1.4  # a picture of few dots does not fill a page with them
RING, BADGE = 5.0, 6.5
SIGNS = {"added": "+", "removed": "−", "changed": "~", "focus": "", "": ""}
ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # where on its line a label may stand


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """How large things are drawn: the more dots, the smaller, and the shorter their labels."""

    radius: float
    columns: int
    name_lines: int
    names_have_room: bool
    head: float = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A dot in its place, with the lines of its label and where they stand."""

    dot: Dot
    number: int
    centre: Floats
    radius: float
    rim: float
    covered: list[Box]
    name: tuple[str, ...]
    side: int
    is_named: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Stroke:
    """A line on its curve, with its label if there was room for one."""

    line: PictureLine
    number: int
    curve: Curve
    label: str
    label_at: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """A drawing without its frame: its elements, the box they fill, and a sentence about what is missing."""

    title: str
    body: str
    box: Box
    count: str
    note: str


# What others call.


def layout(picture: Picture) -> dict[str, tuple[float, float]]:
    """A place for every dot that is drawn, the same for the same dots and lines in whatever order they come."""
    return _layout(picture, WHOLE_ASPECT)


def svg(picture: Picture, places: Places | None = None) -> str:
    """The picture as the text of an SVG file. Dots without a place are left out, and counted."""
    given = layout(picture) if places is None else places
    places = {dot.id: given[dot.id] for dot in _most_connected(picture) if dot.id in given}
    sheet = _sheet(picture, places, _sides(picture, places))
    return _framed([sheet], sheet.box, picture.title)


def side_by_side(before: Picture, after: Picture) -> str:
    """Two pictures in one SVG, what is in both at the same place; differences are marked where no mark is given."""
    before, after = _marked(before, after, "removed"), _marked(after, before, "added")
    both = _union(before, after)
    places = _layout(both, HALF_ASPECT)
    sides = _sides(both, places)
    named = [replace(before, title=before.title or "Before"), replace(after, title=after.title or "After")]
    sheets = [_sheet(one, places, sides) for one in named]
    drawn = [sheet.box for sheet, one in zip(sheets, named, strict=True) if one.dots]
    return _framed(sheets, _around(drawn), " / ".join(one.title for one in named))


def page(title: str, pictures: Sequence[tuple[str, str]], intro: str = "") -> str:
    """One HTML file, complete in itself, with a legend and these pictures, each a title and what `svg` has written."""
    figures = "".join(
        f"<figure><figcaption><h2>{content(name)}</h2></figcaption>{drawn}</figure>\n" for name, drawn in pictures
    )
    told = f"<p>{content(intro)}</p>\n" if intro else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_allowed_to_run()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{content(title)}</title>
<style>{picture_style()}{page_style()}</style>
</head>
<body>
<h1>{content(title)}</h1>
{told}{_legend()}
<p class="hint" hidden>Point at a node or an edge to read about it. Drag to move, Ctrl + wheel or double click to \
enlarge.</p>
{figures}<div id="told" role="status" hidden></div>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _allowed_to_run() -> str:
    """Only our own script runs, and nothing is fetched: a label could not do harm even if it were not escaped."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


# What is drawn, where, and how large.


def _layout(picture: Picture, aspect: float) -> dict[str, tuple[float, float]]:
    dots = sorted(_most_connected(picture), key=lambda dot: dot.id)
    number = {dot.id: place for place, dot in enumerate(dots)}
    lines = [line for line in picture.lines if line.source in number and line.target in number]
    pairs = sorted({(number[line.source], number[line.target]) for line in lines})
    measure = _measure(len(dots))
    sizes = np.array([_room_of(dot, measure) for dot in dots]).reshape(-1, 2)
    return {dot.id: (float(x), float(y)) for dot, (x, y) in zip(dots, arranged(pairs, sizes, aspect), strict=True)}


def _most_connected(picture: Picture) -> list[Dot]:
    """At most 300 dots: those with a mark, then those with the most lines."""
    degrees = _degrees(picture.lines)
    dots = {dot.id: dot for dot in reversed(picture.dots)}.values()  # of two with one id, the first
    return sorted(dots, key=lambda dot: (not dot.mark, -degrees[dot.id], dot.id))[:MOST_DOTS]


def _degrees(lines: Iterable[PictureLine]) -> Counter[str]:
    return Counter(end for line in lines for end in {line.source, line.target})


def _measure(count: int) -> Measure:
    if count <= 14:
        return Measure(radius=10, columns=20, name_lines=2, names_have_room=True)
    if count <= 45:
        return Measure(radius=8.5, columns=16, name_lines=2, names_have_room=True)
    if count <= 90:
        return Measure(radius=7.5, columns=15, name_lines=1, names_have_room=True)
    return Measure(radius=6, columns=14, name_lines=1, names_have_room=False, head=5.5)


def _room_of(dot: Dot, measure: Measure) -> tuple[float, float]:
    """Width and height that a dot wants for itself, with its name beneath it where names have room."""
    across = 2 * measure.radius
    if not measure.names_have_room:
        return across + 16, across + 16
    name = _name(dot, measure)
    return max(across, _widest(name)) + 16, across + NAME_HEIGHT * len(name) + 18


def _name(dot: Dot, measure: Measure) -> tuple[str, ...]:
    lines = wrapped(dot.label, measure.columns, measure.name_lines)
    return lines or wrapped(dot.id, measure.columns, 1) or ("?",)


def _widest(name: Sequence[str]) -> float:
    return max((width(line, NAME_SIZE) for line in name), default=0.0)


# Before and after.


def _marked(picture: Picture, other: Picture, mark: Mark) -> Picture:
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


def _union(before: Picture, after: Picture) -> Picture:
    """All that is in either: a line that has been moved to other ends is in it twice."""
    dots: dict[str, Dot] = {}
    for dot in (*before.dots, *after.dots):
        known = dots.get(dot.id)
        longer = known.label if known and len(known.label) >= len(dot.label) else dot.label
        dots[dot.id] = replace(dot, label=longer, mark=(known.mark if known else "") or dot.mark)
    lines = {(line.id, line.source, line.target): line for line in (*before.lines, *after.lines)}
    return Picture(title="", dots=tuple(dots.values()), lines=tuple(lines.values()))


# A sheet: dots, lines and labels in their places.


def _sides(picture: Picture, places: Places) -> dict[str, int | None]:
    """On which side of its dot each name stands: where it covers nothing, and few lines; None if there is no room."""
    measure = _measure(len(places))
    dots = [dot for dot in _most_connected(picture) if dot.id in places]
    room = Room(lines=sampled([curve for _, curve in _curves(picture, places, measure)]))
    for dot in dots:
        room.take(_covered(dot, np.array(places[dot.id]), measure))
    sides: dict[str, int | None] = {}
    for dot in dots:
        boxes = [box for _, _, box in _beside(np.array(places[dot.id]), _rim(dot, measure), _name(dot, measure))]
        side = room.best(boxes)
        if side is None and dot.mark:
            side = room.least_bad(boxes)  # what a picture is about is never without its name
        if side is not None:
            room.take([boxes[side]])
        sides[dot.id] = side
    return sides


def _sheet(picture: Picture, places: Places, sides: Mapping[str, int | None]) -> Sheet:
    measure = _measure(len(places))
    spots = _spots(picture, places, measure, sides)
    strokes = _labelled(_curves(picture, places, measure), spots.values())
    degrees = _degrees(picture.lines)
    lines = "".join(_stroke(stroke, spots) for stroke in strokes)
    relations = "".join(_relation(stroke, spots) for stroke in strokes)
    dots = "".join(_spot(spot, degrees[id_]) for id_, spot in spots.items())
    class_ = "lines" if measure.names_have_room else "lines fine"
    return Sheet(
        title=picture.title,
        body=f'<g class="{class_}">\n{lines}{relations}</g>\n<g class="dots">\n{dots}</g>\n',
        box=_around([*map(_spot_box, spots.values()), *map(_stroke_box, strokes)]),
        count=f"{_counted(len(spots), 'node')}, {_counted(len(strokes), 'edge')}",
        note=_left_out(picture, len(spots), len(strokes)),
    )


def _spots(picture: Picture, places: Places, measure: Measure, sides: Mapping[str, int | None]) -> dict[str, Spot]:
    dots = [dot for dot in {dot.id: dot for dot in reversed(picture.dots)}.values() if dot.id in places]
    return {
        dot.id: Spot(
            dot=dot,
            number=number,
            centre=np.array(places[dot.id]),
            radius=_radius(dot, measure),
            rim=_rim(dot, measure),
            covered=_covered(dot, np.array(places[dot.id]), measure),
            name=_name(dot, measure),
            side=sides.get(dot.id) or 0,
            is_named=sides.get(dot.id) is not None,
        )
        for number, dot in enumerate(sorted(dots, key=lambda dot: dot.id))
    }


def _radius(dot: Dot, measure: Measure) -> float:
    return measure.radius * (1.25 if dot.mark == "focus" else 1.0)


def _rim(dot: Dot, measure: Measure) -> float:
    """How far a dot reaches, its ring included: there lines end and names begin."""
    return _radius(dot, measure) + (RING if dot.mark == "focus" else 0.0)


def _covered(dot: Dot, centre: Floats, measure: Measure) -> list[Box]:
    """What a dot covers: itself, and its badge if it has one."""
    own = _square(centre, _rim(dot, measure) + 2)
    return [own, _square(_badge_centre(centre, _radius(dot, measure)), BADGE)] if SIGNS[dot.mark] else [own]


def _curves(picture: Picture, places: Places, measure: Measure) -> list[tuple[PictureLine, Curve]]:
    """Each line on its curve; those between the same two dots, whichever way they point, side by side."""
    radii = {dot.id: _rim(dot, measure) for dot in picture.dots if dot.id in places}
    groups: dict[tuple[str, str], list[PictureLine]] = defaultdict(list)
    for line in sorted(picture.lines, key=lambda line: (line.id, line.source, line.target)):
        if line.source in radii and line.target in radii:
            groups[min(line.source, line.target), max(line.source, line.target)].append(line)
    centres = {id_: np.array(places[id_]) for id_ in radii}
    return [drawn for pair, lines in groups.items() for drawn in _between(pair, lines, centres, radii, measure.head)]


def _between(
    pair: tuple[str, str],
    lines: list[PictureLine],
    centres: Mapping[str, Floats],
    radii: Mapping[str, float],
    head: float,
) -> list[tuple[PictureLine, Curve]]:
    if pair[0] == pair[1]:
        sizes = (22.0 + 12 * place for place in range(len(lines)))
        return [(line, loop(centres[pair[0]], radii[pair[0]], size)) for line, size in zip(lines, sizes, strict=True)]
    if len(lines) == 1 and len(centres) <= MOST_BOWED_AROUND:
        return [(lines[0], _around_others(lines[0], centres, radii))]
    return [
        (line, _bowed(line, centres, radii, height if line.source == pair[0] else -height, head))
        for line, height in zip(lines, fan(len(lines)), strict=True)
    ]


def _bowed(
    line: PictureLine, centres: Mapping[str, Floats], radii: Mapping[str, float], height: float, head: float
) -> Curve:
    rims = (radii[line.source], radii[line.target])
    return bow(centres[line.source], centres[line.target], rims, height, head)


def _around_others(line: PictureLine, centres: Mapping[str, Floats], radii: Mapping[str, float]) -> Curve:
    others = [id_ for id_ in centres if id_ not in (line.source, line.target)]
    return clear_bow(
        centres[line.source],
        centres[line.target],
        (radii[line.source], radii[line.target]),
        np.array([centres[id_] for id_ in others]).reshape(-1, 2),
        np.array([radii[id_] for id_ in others]),
    )


def _labelled(curves: list[tuple[PictureLine, Curve]], spots: Iterable[Spot]) -> list[Stroke]:
    """The lines with their relations where there is room: all if they are few, else those with a mark."""
    are_few = len(curves) <= MOST_LINE_LABELS
    marks_are_few = sum(bool(line.mark) for line, _ in curves) <= MOST_LINE_LABELS
    room = Room(lines=np.zeros((0, 2)))
    for spot in spots:
        room.take([*spot.covered, *([_name_box(spot)] if spot.is_named else [])])
    return [
        _with_label(number, line, curve, room, is_told=are_few or (marks_are_few and bool(line.mark)))
        for number, (line, curve) in enumerate(curves)
    ]


def _with_label(number: int, line: PictureLine, curve: Curve, room: Room, *, is_told: bool) -> Stroke:
    if not is_told:
        return Stroke(line=line, number=number, curve=curve, label="", label_at=None)
    label = " ".join(filter(None, (SIGNS[line.mark], shortened(line.relation, RELATION_COLUMNS), _number(line))))
    spots = [_relation_box(label, curve.at(part)) for part in ALONG]
    best = room.best(spots)
    if best is None:
        return Stroke(line=line, number=number, curve=curve, label=label, label_at=None)
    room.take([spots[best]])
    x, y = curve.at(ALONG[best])
    return Stroke(line=line, number=number, curve=curve, label=label, label_at=(float(x), float(y)))


def _left_out(picture: Picture, dots: int, lines: int) -> str:
    less_dots = len({dot.id for dot in picture.dots}) - dots
    less_lines = len(picture.lines) - lines
    if not less_dots and not less_lines:
        return ""
    missing = " and ".join(
        _counted(number, noun) for number, noun in ((less_dots, "node"), (less_lines, "edge")) if number
    )
    why = "the most connected are shown" if less_dots else "one of its ends is not in the picture"
    return f"Left out: {missing} ({why})."


# Boxes.


def _square(centre: Floats, half: float) -> Box:
    x, y = map(float, centre)
    return x - half, y - half, x + half, y + half


def _relation_box(label: str, at: Floats) -> Box:
    x, y = map(float, at)
    across = width(label, RELATION_SIZE)
    return x - across / 2, y - RELATION_HEIGHT / 2, x + across / 2, y + RELATION_HEIGHT / 2


def _beside(centre: Floats, radius: float, name: Sequence[str]) -> list[tuple[str, tuple[float, float], Box]]:
    """Where a name may stand, best first: how it is anchored, where its block begins, and the box it fills."""
    x, y = map(float, centre)
    across, down, gap, near = _widest(name), NAME_HEIGHT * len(name), radius + 4, radius * 0.6 + 4
    tops = {"below": y + gap - 1, "above": y - gap - down + 1, "level": y - down / 2}
    low, high = y + near, y - near - down
    spots = [("middle", x, tops["below"]), ("start", x + gap, tops["level"]), ("end", x - gap, tops["level"])]
    spots += [("middle", x, tops["above"]), ("start", x + near, low), ("end", x - near, low)]
    spots += [("start", x + near, high), ("end", x - near, high)]
    lefts = {"start": 0.0, "middle": across / 2, "end": across}
    return [
        (anchor, (at, top), (at - lefts[anchor], top, at - lefts[anchor] + across, top + down))
        for anchor, at, top in spots
    ]


def _name_box(spot: Spot) -> Box:
    return _beside(spot.centre, spot.rim, spot.name)[spot.side][2]


def _spot_box(spot: Spot) -> Box:
    return _around([*spot.covered, *([_name_box(spot)] if spot.is_named else [])])


def _stroke_box(stroke: Stroke) -> Box:
    along = sampled([stroke.curve])
    (left, top), (right, bottom) = along.min(axis=0), along.max(axis=0)
    own = (float(left), float(top), float(right), float(bottom))
    if stroke.label_at is None:
        return own
    return _around([own, _relation_box(stroke.label, np.array(stroke.label_at))])


def _around(boxes: Sequence[Box]) -> Box:
    if not boxes:
        return 0.0, 0.0, LEAST_WIDTH, 60.0
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


# The words of SVG.


def _framed(sheets: Sequence[Sheet], box: Box, title: str) -> str:
    """The sheets side by side, each with its heading above and its note below, on one ground."""
    left, top, right, bottom = box
    across = max(right - left, LEAST_WIDTH)
    spare = (across - (right - left)) / 2
    has_note = any(sheet.note for sheet in sheets)
    step = across + 2 * MARGIN
    whole = step * len(sheets)
    height = HEADING + bottom - top + 2 * MARGIN + (NOTE if has_note else 0.0)
    drawn = "".join(
        _panel(sheet, step * place, (MARGIN + spare - left, HEADING + MARGIN - top), height, across)
        for place, sheet in enumerate(sheets)
    )
    spoken = attribute(f"{shortened(title, 120)}: " + "; ".join(sheet.count for sheet in sheets))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="recollect-picture" viewBox="0 0 {whole:.0f} {height:.0f}" '
        f'width="{whole:.0f}" height="{height:.0f}" style="max-width: {LARGEST_SCALE * whole:.0f}px" role="img" '
        f'aria-label="{spoken}">\n'
        f"<style>{picture_style()}</style>\n"
        f'<rect class="ground" width="100%" height="100%"/>\n{drawn}</svg>\n'
    )


def _panel(sheet: Sheet, left: float, origin: tuple[float, float], height: float, across: float) -> str:
    rule = f'<path class="rule" d="M0 12V{height - 12:.0f}"/>\n' if left else ""
    count = width(sheet.count, 11.5)
    heading = shortened(sheet.title, max(8, int((across - count) / 9)))
    note = f'<text class="note" x="{MARGIN}" y="{height - 10:.1f}">{content(sheet.note)}</text>\n' if sheet.note else ""
    return (
        f'<g transform="translate({left:.1f} 0)">\n{rule}'
        f'<text class="heading" x="{MARGIN}" y="26">{content(heading)}</text>\n'
        f'<text class="count" x="{MARGIN + across:.1f}" y="26" text-anchor="end">{sheet.count}</text>\n{note}'
        f'<g class="sheet" transform="translate({origin[0]:.1f} {origin[1]:.1f})">\n{sheet.body}</g>\n</g>\n'
    )


def _stroke(stroke: Stroke, spots: Mapping[str, Spot]) -> str:
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = stroke.curve.points
    path = f"M{ax:.1f} {ay:.1f}C{bx:.1f} {by:.1f} {cx:.1f} {cy:.1f} {dx:.1f} {dy:.1f}"
    return _of_line(
        stroke,
        spots,
        f'<path class="hit" d="{path}"/><path class="stroke" d="{path}"/>'
        f'<path class="head" d="{_outline(stroke.curve.head())}"/>',
    )


def _relation(stroke: Stroke, spots: Mapping[str, Spot]) -> str:
    """The label of a line, drawn after all lines so that none runs across it."""
    if stroke.label_at is None:
        return ""
    x, y = stroke.label_at
    left, top, right, bottom = _relation_box(stroke.label, np.array(stroke.label_at))
    return _of_line(
        stroke,
        spots,
        f'<rect class="cover" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
        f'<text class="relation" x="{x:.1f}" y="{y + 3.6:.1f}" text-anchor="middle">{content(stroke.label)}</text>',
    )


def _of_line(stroke: Stroke, spots: Mapping[str, Spot], drawn: str) -> str:
    line, source, target = stroke.line, spots[stroke.line.source], spots[stroke.line.target]
    return (
        f'<g class="line {_strength(line)} {line.mark}" data-l="{stroke.number}" data-s="{source.number}" '
        f'data-t="{target.number}"><title>{_about_line(line, source, target)}</title>{drawn}</g>\n'
    )


def _spot(spot: Spot, degree: int) -> str:
    x, y = map(float, spot.centre)
    dot = spot.dot
    ring = f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{spot.rim - 1:.1f}"/>' if dot.mark == "focus" else ""
    return (
        f'<g class="dot {_kind(dot)} {dot.mark}" data-n="{spot.number}"><title>{_about_dot(dot, degree)}</title>'
        f"{ring}{_shape(_kind(dot), x, y, spot.radius)}{_badge(dot, spot.centre, spot.radius)}{_name_text(spot)}</g>\n"
    )


def _shape(kind: str, x: float, y: float, radius: float) -> str:
    """Each kind has a shape of its own, all of about the same weight."""
    if kind == "memory":
        return f'<circle class="shape" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    corners = {
        "concept": [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
        "case": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "page": [(-0.8, -1.1), (0.3, -1.1), (0.8, -0.6), (0.8, 1.1), (-0.8, 1.1)],
        "other": [(math.sin(turn) * 1.05, math.cos(turn) * 1.05) for turn in np.arange(6) * math.pi / 3],
    }[kind]
    outline = _outline(np.array([x, y]) + radius * np.array(corners))
    return f'<path class="shape" stroke-linejoin="round" d="{outline}"/>'


def _outline(corners: Floats) -> str:
    return f"M{'L'.join(f'{x:.1f} {y:.1f}' for x, y in corners)}Z"


def _badge(dot: Dot, centre: Floats, radius: float) -> str:
    sign = SIGNS[dot.mark]
    if not sign:
        return ""
    x, y = _badge_centre(centre, radius)
    return (
        f'<circle class="plate" cx="{x:.1f}" cy="{y:.1f}" r="{BADGE}"/>'
        f'<text class="badge" x="{x:.1f}" y="{y + 4.2:.1f}" text-anchor="middle">{sign}</text>'
    )


def _badge_centre(centre: Floats, radius: float) -> Floats:
    at: Floats = centre + radius * np.array([0.85, -0.85])
    return at


def _name_text(spot: Spot) -> str:
    anchor, (x, top), _ = _beside(spot.centre, spot.rim, spot.name)[spot.side]
    lines = "".join(
        f'<tspan x="{x:.1f}" y="{top + NAME_HEIGHT * place + 10.8:.1f}">{content(line)}</tspan>'
        for place, line in enumerate(spot.name)
    )
    return f'<text class="name{"" if spot.is_named else " spare"}" text-anchor="{anchor}">{lines}</text>'


def _about_dot(dot: Dot, degree: int) -> str:
    facts = ", ".join(filter(None, (shortened(dot.kind, 40), dot.mark, _counted(degree, "edge"))))
    return _told(shortened(dot.label, LONGEST_DETAIL) or shortened(dot.id, 80), facts, dot.detail)


def _about_line(line: PictureLine, source: Spot, target: Spot) -> str:
    facts = f"{shortened(line.relation, 80)}, strength {_number(line)} ({_strength(line)})"
    marked = f"{facts}, {line.mark}" if line.mark else facts
    return _told(f"{' '.join(source.name)} → {' '.join(target.name)}", marked, line.detail)


def _told(*parts: str) -> str:
    """What is read on hover, a few lines; the detail keeps its own line ends."""
    heads, detail = parts[:-1], parts[-1][: 4 * LONGEST_DETAIL]
    kept = [shortened(line, LONGEST_DETAIL) for line in detail.splitlines()[:12]]
    return content("\n".join(filter(None, (*heads, *kept))))


def _strength(line: PictureLine) -> str:
    if line.strength > STRONG:
        return STRENGTHS[0]
    return STRENGTHS[1] if line.strength >= WEAK else STRENGTHS[2]


def _number(line: PictureLine) -> str:
    return f"{line.strength:.2f}" if math.isfinite(line.strength) else "?"


def _kind(dot: Dot) -> str:
    return dot.kind if dot.kind in KINDS else "other"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# The legend: the same shapes and strokes as in the pictures, each with its meaning in words.


def _legend() -> str:
    strengths = {"strong": "strength above 0.7", "middle": "0.3 to 0.7", "weak": "below 0.3"}
    lines = [_sample(_sample_line(name, ""), meaning, 40) for name, meaning in strengths.items()]
    marks = [_sample(_sample_line("strong", mark), f"{mark} edge", 40) for mark in ("added", "removed")]
    kinds = [_sample(_sample_dot(kind, ""), "topic, other" if kind == "other" else kind, 28) for kind in KINDS]
    dots = [_sample(_sample_dot("memory", mark), mark, 34) for mark in ("added", "removed", "changed", "focus")]
    return f'<ul class="legend">\n{"".join((*lines, *marks, *kinds, *dots))}</ul>'


def _sample(drawn: str, meaning: str, across: int) -> str:
    return (
        f'<li><svg class="recollect-picture" width="{across}" height="28" aria-hidden="true">{drawn}</svg>'
        f"{meaning}</li>\n"
    )


def _sample_line(strength: str, mark: str) -> str:
    curve = bow(np.array([0.0, 14.0]), np.array([40.0, 14.0]), (1.0, 1.0))
    return (
        f'<g class="line {strength} {mark}"><path class="stroke" d="M2 14H{curve.points[3][0]:.1f}"/>'
        f'<path class="head" d="{_outline(curve.head())}"/></g>'
    )


def _sample_dot(kind: str, mark: Mark) -> str:
    dot = Dot(id="", label="", kind=kind, mark=mark)
    ring = '<circle class="ring" cx="14" cy="15" r="12"/>' if mark == "focus" else ""
    return f'<g class="dot {kind} {mark}">{ring}{_shape(kind, 14, 15, 8)}{_badge(dot, np.array([14.0, 15.0]), 8)}</g>'
