"""Where everything in a picture goes: dots, the curves between them, and their labels where there is room for them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.curves import Curve, bow, clear_bow, fan, loop, sampled
from recollect.graph.rules.free_space import Box, Room
from recollect.graph.rules.labels import shortened, width, wrapped
from recollect.graph.rules.layout import arranged
from recollect.graph.rules.picture import SIGNS, Dot, Picture, PictureLine, most_connected

Places = Mapping[str, tuple[float, float]]
Floats = NDArray[np.float64]
MOST_LINE_LABELS = 36
MOST_BOWED_AROUND = 90  # among more dots than these, straight lines are easier to follow
NAME_SIZE, NAME_HEIGHT = 12.0, 14.0
RELATION_SIZE, RELATION_HEIGHT = 10.5, 13.0
RELATION_COLUMNS = 24
WHOLE_ASPECT, HALF_ASPECT = 1.25, 0.72  # width / height
LEAST_WIDTH = 260.0
RING, BADGE = 5.0, 6.5
ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)  # where on its line a label may stand


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


def layout(picture: Picture, aspect: float = WHOLE_ASPECT) -> dict[str, tuple[float, float]]:
    """A place for every dot that is drawn, the same for the same dots and lines in whatever order they come."""
    dots = sorted(most_connected(picture), key=lambda dot: dot.id)
    number = {dot.id: index for index, dot in enumerate(dots)}
    lines = [line for line in picture.lines if line.source in number and line.target in number]
    pairs = sorted({(number[line.source], number[line.target]) for line in lines})
    measure = measured(len(dots))
    sizes = np.array([_room_of(dot, measure) for dot in dots]).reshape(-1, 2)
    return {dot.id: (float(x), float(y)) for dot, (x, y) in zip(dots, arranged(pairs, sizes, aspect), strict=True)}


def measured(count: int) -> Measure:
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


# Dots and their names.


def name_sides(picture: Picture, places: Places) -> dict[str, int | None]:
    """On which side of its dot each name stands: where it covers nothing, and few lines; None if there is no room."""
    measure = measured(len(places))
    dots = [dot for dot in most_connected(picture) if dot.id in places]
    room = Room(lines=sampled([curve for _, curve in curves_of(picture, places, measure)]))
    for dot in dots:
        room.take(_covered(dot, np.array(places[dot.id]), measure))
    sides: dict[str, int | None] = {}
    for dot in dots:
        boxes = [box for _, _, box in name_places(np.array(places[dot.id]), _rim(dot, measure), _name(dot, measure))]
        side = room.best(boxes)
        if side is None and dot.mark:
            side = room.least_bad(boxes)  # what a picture is about is never without its name
        if side is not None:
            room.take([boxes[side]])
        sides[dot.id] = side
    return sides


def spots_of(picture: Picture, places: Places, measure: Measure, sides: Mapping[str, int | None]) -> dict[str, Spot]:
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
    return [own, _square(badge_centre(centre, _radius(dot, measure)), BADGE)] if SIGNS[dot.mark] else [own]


# Lines and their relations.


def curves_of(picture: Picture, places: Places, measure: Measure) -> list[tuple[PictureLine, Curve]]:
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
        sizes = (22.0 + 12 * number for number in range(len(lines)))
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


def labelled(curves: list[tuple[PictureLine, Curve]], spots: Iterable[Spot]) -> list[Stroke]:
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
    label = " ".join(
        filter(None, (SIGNS[line.mark], shortened(line.relation, RELATION_COLUMNS), strength_number(line)))
    )
    spots = [relation_box(label, curve.at(part)) for part in ALONG]
    best = room.best(spots)
    if best is None:
        return Stroke(line=line, number=number, curve=curve, label=label, label_at=None)
    room.take([spots[best]])
    x, y = curve.at(ALONG[best])
    return Stroke(line=line, number=number, curve=curve, label=label, label_at=(float(x), float(y)))


def strength_number(line: PictureLine) -> str:
    return f"{line.strength:.2f}" if math.isfinite(line.strength) else "?"


# Boxes.


def _square(centre: Floats, half: float) -> Box:
    x, y = map(float, centre)
    return x - half, y - half, x + half, y + half


def relation_box(label: str, at: Floats) -> Box:
    x, y = map(float, at)
    across = width(label, RELATION_SIZE)
    return x - across / 2, y - RELATION_HEIGHT / 2, x + across / 2, y + RELATION_HEIGHT / 2


def name_places(centre: Floats, radius: float, name: Sequence[str]) -> list[tuple[str, tuple[float, float], Box]]:
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
    return name_places(spot.centre, spot.rim, spot.name)[spot.side][2]


def spot_box(spot: Spot) -> Box:
    return box_around([*spot.covered, *([_name_box(spot)] if spot.is_named else [])])


def stroke_box(stroke: Stroke) -> Box:
    along = sampled([stroke.curve])
    (left, top), (right, bottom) = along.min(axis=0), along.max(axis=0)
    own = (float(left), float(top), float(right), float(bottom))
    if stroke.label_at is None:
        return own
    return box_around([own, relation_box(stroke.label, np.array(stroke.label_at))])


def box_around(boxes: Sequence[Box]) -> Box:
    if not boxes:
        return 0.0, 0.0, LEAST_WIDTH, 60.0
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def badge_centre(centre: Floats, radius: float) -> Floats:
    at: Floats = centre + radius * np.array([0.85, -0.85])
    return at
