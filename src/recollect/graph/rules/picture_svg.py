"""A picture as the text of an SVG file, two side by side, and pictures on a page that needs no network.

Labels are data that nobody has checked: they are tidied, shortened and escaped. Details stand in a title element,
which every browser shows on hover; the script of a page only makes that nicer.
"""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.graph.rules.curves import bow
from recollect.graph.rules.free_space import Box
from recollect.graph.rules.labels import shortened, width
from recollect.graph.rules.picture import (
    SIGNS,
    STRONG,
    WEAK,
    Dot,
    Mark,
    Picture,
    PictureLine,
    degrees_of,
    marked,
    most_connected,
    union,
)
from recollect.graph.rules.picture_places import (
    BADGE,
    HALF_ASPECT,
    LEAST_WIDTH,
    NAME_HEIGHT,
    Floats,
    Places,
    Spot,
    Stroke,
    badge_centre,
    box_around,
    curves_of,
    labelled,
    layout,
    measured,
    name_places,
    name_sides,
    relation_box,
    spot_box,
    spots_of,
    strength_number,
    stroke_box,
)
from recollect.graph.rules.picture_style import KINDS, SCRIPT, STRENGTHS, page_style, picture_style
from recollect.graph.rules.xml import attribute, content
from recollect.wording import counted

LONGEST_DETAIL = 600
MARGIN = 18.0
HEADING = 30.0
NOTE = 22.0
LARGEST_SCALE = 1.4  # a picture of few dots does not fill a page with them


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """A drawing without its frame: its elements, the box they fill, and a sentence about what is missing."""

    title: str
    body: str
    box: Box
    count: str
    note: str


def svg(picture: Picture, places: Places | None = None) -> str:
    """The picture as the text of an SVG file. Dots without a place are left out, and counted."""
    given = layout(picture) if places is None else places
    places = {dot.id: given[dot.id] for dot in most_connected(picture) if dot.id in given}
    sheet = _sheet(picture, places, name_sides(picture, places))
    return _framed([sheet], sheet.box, picture.title)


def side_by_side(before: Picture, after: Picture) -> str:
    """Two pictures in one SVG, what is in both at the same place; differences are marked where no mark is given."""
    before, after = marked(before, after, "removed"), marked(after, before, "added")
    both = union(before, after)
    places = layout(both, HALF_ASPECT)
    sides = name_sides(both, places)
    named = [replace(before, title=before.title or "Before"), replace(after, title=after.title or "After")]
    sheets = [_sheet(picture, places, sides) for picture in named]
    drawn = [sheet.box for sheet, picture in zip(sheets, named, strict=True) if picture.dots]
    return _framed(sheets, box_around(drawn), " / ".join(picture.title for picture in named))


def page(title: str, pictures: Sequence[tuple[str, str]], intro: str = "") -> str:
    """One HTML file, complete in itself, with a legend and these pictures, each a title and what `svg` has written."""
    figures = "".join(
        f"<figure><figcaption><h2>{content(name)}</h2></figcaption>{drawn}</figure>\n" for name, drawn in pictures
    )
    paragraph = f"<p>{content(intro)}</p>\n" if intro else ""
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
{paragraph}{_legend()}
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


# Sheets in their frame.


def _sheet(picture: Picture, places: Places, sides: Mapping[str, int | None]) -> Sheet:
    measure = measured(len(places))
    spots = spots_of(picture, places, measure, sides)
    strokes = labelled(curves_of(picture, places, measure), spots.values())
    degrees = degrees_of(picture.lines)
    lines = "".join(_stroke(stroke, spots) for stroke in strokes)
    relations = "".join(_relation(stroke, spots) for stroke in strokes)
    dots = "".join(_spot(spot, degrees[id_]) for id_, spot in spots.items())
    class_ = "lines" if measure.names_have_room else "lines fine"
    return Sheet(
        title=picture.title,
        body=f'<g class="{class_}">\n{lines}{relations}</g>\n<g class="dots">\n{dots}</g>\n',
        box=box_around([*map(spot_box, spots.values()), *map(stroke_box, strokes)]),
        count=f"{counted(len(spots), 'node')}, {counted(len(strokes), 'link')}",
        note=_left_out(picture, len(spots), len(strokes)),
    )


def _left_out(picture: Picture, dots: int, lines: int) -> str:
    less_dots = len({dot.id for dot in picture.dots}) - dots
    less_lines = len(picture.lines) - lines
    if not less_dots and not less_lines:
        return ""
    missing = " and ".join(
        counted(number, noun) for number, noun in ((less_dots, "node"), (less_lines, "link")) if number
    )
    why = "the most connected are shown" if less_dots else "one of its ends is not in the picture"
    return f"Left out: {missing} ({why})."


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
        _panel(sheet, step * number, (MARGIN + spare - left, HEADING + MARGIN - top), height, across)
        for number, sheet in enumerate(sheets)
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


# Lines and dots.


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
    left, top, right, bottom = relation_box(stroke.label, np.array(stroke.label_at))
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
    x, y = badge_centre(centre, radius)
    return (
        f'<circle class="plate" cx="{x:.1f}" cy="{y:.1f}" r="{BADGE}"/>'
        f'<text class="badge" x="{x:.1f}" y="{y + 4.2:.1f}" text-anchor="middle">{sign}</text>'
    )


def _name_text(spot: Spot) -> str:
    anchor, (x, top), _ = name_places(spot.centre, spot.rim, spot.name)[spot.side]
    lines = "".join(
        f'<tspan x="{x:.1f}" y="{top + NAME_HEIGHT * number + 10.8:.1f}">{content(line)}</tspan>'
        for number, line in enumerate(spot.name)
    )
    return f'<text class="name{"" if spot.is_named else " spare"}" text-anchor="{anchor}">{lines}</text>'


def _about_dot(dot: Dot, degree: int) -> str:
    facts = ", ".join(filter(None, (shortened(dot.kind, 40), dot.mark, counted(degree, "link"))))
    return _told(shortened(dot.label, LONGEST_DETAIL) or shortened(dot.id, 80), facts, dot.detail)


def _about_line(line: PictureLine, source: Spot, target: Spot) -> str:
    facts = f"{shortened(line.relation, 80)}, strength {strength_number(line)} ({_strength(line)})"
    marked = f"{facts}, {line.mark}" if line.mark else facts
    return _told(f"{' '.join(source.name)} → {' '.join(target.name)}", marked, line.detail)


def _told(*parts: str) -> str:
    """What is read on hover, a few lines; the detail keeps its own line ends."""
    heads, detail = parts[:-1], parts[-1][: 4 * LONGEST_DETAIL]
    lines = [shortened(line, LONGEST_DETAIL) for line in detail.splitlines()[:12]]
    return content("\n".join(filter(None, (*heads, *lines))))


def _strength(line: PictureLine) -> str:
    if line.strength > STRONG:
        return STRENGTHS[0]
    return STRENGTHS[1] if line.strength >= WEAK else STRENGTHS[2]


def _kind(dot: Dot) -> str:
    return dot.kind if dot.kind in KINDS else "other"


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
