"""Pictures: every dot and line is there, in the same place every time, legible, and safe whatever the labels hold."""

import base64
import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.graph.rules.labels import width
from recollect.graph.rules.picture import MOST_DOTS, Dot, Mark, Picture, PictureLine
from recollect.graph.rules.picture_places import layout
from recollect.graph.rules.picture_svg import page, side_by_side, svg
from tests.effort import costs_at_most

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "style", "rect", "g", "title", "path", "circle", "text", "tspan"}
NASTY = [
    "<script>alert(1)</script>",
    "\" onload='alert(1)' x=\"",
    "]]></svg></title><img src=x onerror=alert(1)>",
    "nul \0 and bell \a and half \ud800",
    "שלום עולם",
    "\u202eright to left override",
    "👩‍👩‍👧 🇻🇳 👍🏽",
    "x" * 10_000,
    "Z" + "\u0301" * 1_000,
    "",
]
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=20))
Element = ElementTree.Element
Box = tuple[float, float, float, float]


def dot(number: int, label: str = "", kind: str = "memory", mark: Mark = "") -> Dot:
    return Dot(id=f"n{number:04}", label=label or f"Memory number {number} about tea", kind=kind, mark=mark)


def line(number: int, source: int, target: int, strength: float = 0.5, mark: Mark = "") -> PictureLine:
    ends = {"source": f"n{source:04}", "target": f"n{target:04}"}
    return PictureLine(id=f"e{number:04}", relation="supports", strength=strength, mark=mark, **ends)


def graph(count: int, pairs: list[tuple[int, int]], title: str = "A graph") -> Picture:
    lines = tuple(line(number, *pair, strength=number % 11 / 10) for number, pair in enumerate(pairs))
    return Picture(title=title, dots=tuple(map(dot, range(count))), lines=lines)


def tree(count: int, more: int = 0) -> Picture:
    chance = random.Random(count)
    pairs = [(chance.randrange(max(0, number - 9), number), number) for number in range(1, count)]
    return graph(count, pairs + [(chance.randrange(count), chance.randrange(count)) for _ in range(more)])


SHAPES = {
    "forty": tree(40, 12),
    "star": graph(61, [(0, leaf) for leaf in range(1, 61)]),
    "chain": graph(30, [(number, number + 1) for number in range(29)]),
    "two components": graph(20, [(a, a + 1) for a in range(9)] + [(10, b) for b in range(11, 17)]),
    "two hundred": tree(200, 201),
    "nobody linked": graph(12, []),
}


def parsed(text: str) -> Element:
    return ElementTree.fromstring(text.encode())


def with_class(root: Element, name: str) -> list[Element]:
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def told(element: Element) -> str:
    return element.findtext(SVG + "title") or ""


def strokes(root: Element) -> list[tuple[Element, str]]:
    found = ((group, with_class(group, "stroke")) for group in with_class(root, "line"))
    return [(group, str(paths[0].get("d"))) for group, paths in found if paths]


def centre(group: Element) -> tuple[float, float]:
    shape = with_class(group, "shape")[0]
    if shape.get("cx"):
        return float(shape.get("cx") or 0), float(shape.get("cy") or 0)
    points = [tuple(map(float, point.split())) for point in re.split("[MLZ]", shape.get("d") or "") if point]
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def name_boxes(root: Element) -> Iterator[Box]:
    for text in with_class(root, "name"):
        if "spare" in (text.get("class") or ""):
            continue
        lines = list(text.iter(SVG + "tspan"))
        across = max(width(span.text or "", 12) for span in lines)
        left = (
            float(lines[0].get("x") or 0)
            - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor") or ""] * across
        )
        top = float(lines[0].get("y") or 0) - 10.8
        yield left, top, left + across, top + 14 * len(lines)


def overlap(one: Box, other: Box) -> bool:
    slack = 0.5  # what rounding to a tenth may add
    return (
        one[0] + slack < other[2]
        and other[0] + slack < one[2]
        and one[1] + slack < other[3]
        and other[1] + slack < one[3]
    )


# Layout.


@pytest.mark.parametrize("name", SHAPES)
def test_places_do_not_depend_on_the_order_of_what_is_given(name: str) -> None:
    picture = SHAPES[name]
    turned = replace(picture, dots=picture.dots[::-1], lines=picture.lines[::-1])
    assert layout(picture) == layout(turned) == layout(picture)


@pytest.mark.parametrize("name", SHAPES)
def test_dots_stand_apart(name: str) -> None:
    places = layout(SHAPES[name])
    assert set(places) == {dot.id for dot in SHAPES[name].dots}
    for (ax, ay), (bx, by) in combinations(places.values(), 2):
        assert max(abs(ax - bx), abs(ay - by)) > 13


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 25), pairs=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=40))
def test_every_graph_has_a_layout_in_which_no_two_dots_coincide(count: int, pairs: list[tuple[int, int]]) -> None:
    places = layout(graph(count, [(a % count, b % count) for a, b in pairs]))
    assert len(places) == count
    assert all(0 <= x <= 1500 and 0 <= y <= 1500 for x, y in places.values())
    assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) > 8 for a, b in combinations(places.values(), 2))


def test_linked_dots_are_nearer_than_others() -> None:
    picture = SHAPES["forty"]
    places = layout(picture)

    def apart(pairs: list[tuple[str, str]]) -> float:
        distances = [abs(complex(*places[a]) - complex(*places[b])) for a, b in pairs]
        return sum(distances) / len(distances)

    linked = [(line.source, line.target) for line in picture.lines if line.source != line.target]
    assert apart(linked) < 0.6 * apart(list(combinations(places, 2)))


def test_components_do_not_mix() -> None:
    places = layout(SHAPES["two components"])
    first = [places[f"n{number:04}"] for number in range(10)]
    second = [places[f"n{number:04}"] for number in range(10, 17)]
    across = max(x for x, _ in first) < min(x for x, _ in second) or max(x for x, _ in second) < min(
        x for x, _ in first
    )
    down = max(y for _, y in first) < min(y for _, y in second) or max(y for _, y in second) < min(y for _, y in first)
    assert across or down


def test_five_times_the_dots_are_drawn_in_no_more_than_the_square_of_it() -> None:
    few, many = SHAPES["forty"], SHAPES["two hundred"]
    assert costs_at_most(25, lambda: layout(many), lambda: layout(few))
    of_few, of_many = layout(few), layout(many)
    assert costs_at_most(25, lambda: svg(many, of_many), lambda: svg(few, of_few))


# What is drawn.


def test_every_dot_and_line_is_drawn_with_what_is_known_of_it() -> None:
    known = Picture(
        title="Tea",
        dots=(replace(dot(1, "Linh", kind="concept"), detail="added in March\nused twice"), dot(2, "tea", kind="page")),
        lines=(replace(line(1, 1, 2, strength=0.82, mark="added"), detail="she said so"),),
    )
    root = parsed(svg(known))
    assert [told(group) for group in with_class(root, "dot")] == [
        "Linh\nconcept, 1 link\nadded in March\nused twice",
        "tea\npage, 1 link",
    ]
    assert {told(group) for group in with_class(root, "line")} == {
        "Linh → tea\nsupports, strength 0.82 (strong), added\nshe said so"
    }
    assert [text.text for text in with_class(root, "relation")] == ["+ supports 0.82"]
    assert "2 nodes, 1 link" in (root.get("aria-label") or "")


@pytest.mark.parametrize(
    ("strength", "name"),
    [(1.0, "strong"), (0.71, "strong"), (0.7, "middle"), (0.3, "middle"), (0.29, "weak"), (0.0, "weak")],
)
def test_strength_is_shown_in_three_steps(strength: float, name: str) -> None:
    two = Picture(title="", dots=(dot(1), dot(2)), lines=(line(1, 1, 2, strength=strength),))
    assert len(with_class(parsed(svg(two)), name)) == 2  # the line, and its label


def test_nothing_is_said_by_colour_alone() -> None:
    style = parsed(svg(graph(0, []))).findtext(SVG + "style") or ""
    patterns = {
        name: re.findall(rf"\.picture \.{name} \.stroke {{([^}}]*)}}", style.replace("recollect-", ""))
        for name in ("strong", "middle", "weak", "added", "removed")
    }
    assert len({found[0] for found in patterns.values()}) == 5
    assert all("stroke-width" in found[0] for found in patterns.values())
    kinds = ("memory", "concept", "case", "page", "something else")
    places = {"n0001": (0.0, 0.0)}
    shapes = [
        ElementTree.tostring(
            with_class(parsed(svg(Picture(title="", dots=(dot(1, kind=kind),), lines=()), places)), "shape")[0]
        )
        for kind in kinds
    ]
    assert len(set(shapes)) == len(kinds)
    marks: tuple[Mark, ...] = ("added", "removed", "changed")
    signs = [
        with_class(parsed(svg(Picture(title="", dots=(dot(1, mark=mark),), lines=()), places)), "badge")[0].text
        for mark in marks
    ]
    assert signs == ["+", "−", "~"]


def test_parallel_lines_are_separate_curves_whichever_way_they_point() -> None:
    pairs = [(1, 0), (0, 1), (0, 1), (1, 0)]
    paths = [path for _, path in strokes(parsed(svg(graph(2, pairs))))]
    assert len(set(paths)) == 4
    middles = []
    for path in paths:
        ax, ay, bx, by, cx, cy, dx, dy = map(float, re.findall(r"-?[\d.]+", path))
        middles.append(complex((ax + 3 * bx + 3 * cx + dx) / 8, (ay + 3 * by + 3 * cy + dy) / 8))
    assert all(abs(one - other) > 15 for one, other in combinations(middles, 2))


def test_arrows_point_at_the_target() -> None:
    places = {"n0000": (0.0, 0.0), "n0001": (200.0, 0.0)}
    head = with_class(parsed(svg(graph(2, [(0, 1)]), places)), "head")[0].get("d") or ""
    tip, *ends = [float(point.split()[0]) for point in re.split("[MLZ]", head) if point]
    assert 180 < tip < 200
    assert all(end < tip for end in ends)


def test_a_line_bows_around_a_dot_in_its_way() -> None:
    places = {"n0000": (0.0, 0.0), "n0001": (100.0, 0.0), "n0002": (200.0, 0.0)}
    around = strokes(parsed(svg(graph(3, [(0, 2)]), places)))[0][1]
    straight = strokes(parsed(svg(graph(3, [(0, 1)]), places)))[0][1]
    heights = [max(abs(float(y)) for y in re.findall(r"-?[\d.]+", path)[1::2]) for path in (around, straight)]
    assert heights[0] > 10
    assert heights[1] == 0


def test_loops_unknown_numbers_and_twin_dots_can_be_drawn() -> None:
    odd = Picture(
        title="",
        dots=(dot(1, "first"), dot(1, "second"), dot(2)),
        lines=(line(1, 1, 1), line(2, 1, 1), line(3, 1, 2, strength=float("nan")), line(4, 2, 1, strength=7.0)),
    )
    root = parsed(svg(odd))
    assert len({path for _, path in strokes(root)}) == 4
    assert told(with_class(root, "dot")[0]).splitlines()[0] == "first"
    assert "nan" not in svg(odd, {"n0001": (5.0, 5.0), "n0002": (5.0, 5.0)})


@pytest.mark.parametrize("name", ["forty", "star", "chain", "two components", "nobody linked", "two hundred"])
def test_names_do_not_cover_each_other_nor_the_dots(name: str) -> None:
    root = parsed(svg(SHAPES[name]))
    names = list(name_boxes(root))
    dots = [(x - 5, y - 5, x + 5, y + 5) for x, y in map(centre, with_class(root, "dot"))]
    assert not any(overlap(one, other) for one, other in combinations(names, 2))
    assert not any(overlap(one, other) for one in names for other in dots)


@pytest.mark.parametrize(("name", "least"), [("forty", 38), ("star", 55), ("chain", 30), ("nobody linked", 12)])
def test_nearly_all_names_are_shown_where_dots_are_few(name: str, least: int) -> None:
    assert len(list(name_boxes(parsed(svg(SHAPES[name]))))) >= least


def test_a_marked_dot_always_has_its_name() -> None:
    crowded = replace(
        SHAPES["two hundred"],
        dots=tuple(
            replace(dot, mark="changed") if place % 10 == 0 else dot
            for place, dot in enumerate(SHAPES["two hundred"].dots)
        ),
    )
    marked = [group for group in with_class(parsed(svg(crowded)), "dot") if "changed" in (group.get("class") or "")]
    assert len(marked) == 20
    assert not any(with_class(group, "spare") for group in marked)


def test_relations_are_named_while_they_are_few() -> None:
    assert len(with_class(parsed(svg(SHAPES["chain"])), "relation")) >= 27
    assert not with_class(parsed(svg(SHAPES["forty"])), "relation")


def test_of_too_many_dots_the_most_connected_are_drawn_and_the_rest_counted() -> None:
    count = MOST_DOTS + 50
    pairs = [(number, number + 1) for number in range(MOST_DOTS - 2)]
    crowd = graph(count, pairs)
    crowd = replace(crowd, dots=(*crowd.dots[:-1], replace(crowd.dots[-1], mark="focus")))
    root = parsed(svg(crowd))
    drawn = {told(group).splitlines()[0] for group in with_class(root, "dot")}
    assert len(drawn) == MOST_DOTS
    assert f"Memory number {count - 1} about tea" in drawn  # marked, so it is drawn although nothing leads to it
    assert all(f"Memory number {number} about tea" in drawn for number in range(MOST_DOTS - 1))
    assert [text.text for text in with_class(root, "note")] == ["Left out: 50 nodes (the most connected are shown)."]


def test_given_places_are_used_and_bound_the_picture_too() -> None:
    crowd = graph(MOST_DOTS + 5, [])
    everywhere = {dot.id: (20.0 * place, 7.0) for place, dot in enumerate(crowd.dots)}
    drawn = with_class(parsed(svg(crowd, everywhere)), "dot")
    assert [centre(group) for group in drawn] == list(everywhere.values())[:MOST_DOTS]
    assert len(with_class(parsed(svg(crowd, {"n0003": (1.0, 2.0), "unknown": (0.0, 0.0)})), "dot")) == 1


def test_a_line_into_nowhere_is_counted() -> None:
    root = parsed(svg(Picture(title="", dots=(dot(1),), lines=(line(1, 1, 2),))))
    assert [text.text for text in with_class(root, "note")] == [
        "Left out: 1 link (one of its ends is not in the picture)."
    ]
    assert not with_class(root, "line")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_smallest_pictures(count: int) -> None:
    assert len(with_class(parsed(svg(graph(count, []))), "dot")) == count


# Labels are data.


def assert_harmless(root: Element) -> None:
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= DRAWN
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)


@settings(max_examples=80, deadline=None)
@given(texts=st.lists(TEXTS, min_size=3, max_size=3), kind=TEXTS, title=TEXTS)
def test_any_text_is_safe(texts: list[str], kind: str, title: str) -> None:
    first = replace(dot(1, kind=kind), label=texts[0], detail=texts[1])
    second = replace(dot(2), id=texts[2], label=texts[0])
    edge = PictureLine(id=texts[1], source=first.id, target=second.id, relation=texts[1], strength=0.5, detail=texts[2])
    picture = Picture(title=title, dots=(first, second), lines=(edge,))
    drawn = svg(picture)
    assert_harmless(parsed(drawn))
    assert_harmless(parsed(side_by_side(picture, replace(picture, lines=()))))
    assert len(drawn) < 40_000


def test_labels_come_out_as_they_are_meant() -> None:
    root = parsed(svg(Picture(title="", dots=tuple(dot(place, text) for place, text in enumerate(NASTY)), lines=())))
    shown = ["".join(text.itertext()) for text in with_class(root, "name")]
    assert shown[0].replace(" ", "") == "<script>alert(1)</script>"
    assert shown[4] == "שלום עולם"
    assert shown[5] == "right to leftoverride"
    assert shown[7].endswith("…")
    assert len(shown[7]) <= 40


# Before and after.


def merge() -> tuple[Picture, Picture]:
    """`b` goes into `a`: its line to `c` is one with that of `a`, its line to `d` moves."""
    dots = [
        Dot(id=id_, label=label, kind="concept")
        for id_, label in zip("abcd", ("tea", "Tea", "leaf", "cup"), strict=True)
    ]

    def edge(id_: str, source: str, target: str, strength: float) -> PictureLine:
        return PictureLine(id=id_, source=source, target=target, relation="supports", strength=strength)

    before = Picture(
        title="", dots=tuple(dots), lines=(edge("1", "a", "c", 0.8), edge("2", "b", "c", 0.4), edge("3", "b", "d", 0.5))
    )
    after = Picture(
        title="",
        dots=(replace(dots[0], mark="changed"), *dots[2:]),
        lines=(edge("1", "a", "c", 0.6), edge("3", "a", "d", 0.5)),
    )
    return before, after


def sheets(drawn: str) -> list[Element]:
    return with_class(parsed(drawn), "sheet")


def marks(sheet: Element, what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for group in with_class(sheet, what):
        words = set((group.get("class") or "").split()) & {"added", "removed", "changed"}
        found[told(group).splitlines()[0]] = "".join(words)
    return found


def test_C26_before_and_after_of_a_merge_say_what_changes() -> None:
    before, after = sheets(side_by_side(*merge()))
    assert marks(before, "dot") == {"tea": "", "Tea": "removed", "leaf": "", "cup": ""}
    assert marks(after, "dot") == {"tea": "changed", "leaf": "", "cup": ""}
    assert marks(before, "line") == {"tea → leaf": "changed", "Tea → leaf": "removed", "Tea → cup": "changed"}
    assert marks(after, "line") == {"tea → leaf": "changed", "tea → cup": "changed"}


def test_C26_what_stays_keeps_its_place() -> None:
    before, after = sheets(side_by_side(*merge()))
    then = {told(group).splitlines()[0]: centre(group) for group in with_class(before, "dot")}
    now = {told(group).splitlines()[0]: centre(group) for group in with_class(after, "dot")}
    assert all(then[name] == now[name] for name in ("tea", "leaf", "cup"))


def test_C26_both_sides_are_named_and_counted() -> None:
    root = parsed(side_by_side(*merge()))
    assert [text.text for text in with_class(root, "heading")] == ["Before", "After"]
    assert [text.text for text in with_class(root, "count")] == ["4 nodes, 3 links", "3 nodes, 2 links"]


def test_C26_what_is_new_is_marked_as_added() -> None:
    before, after = merge()
    back = sheets(side_by_side(replace(after, dots=(replace(after.dots[0], mark=""), *after.dots[1:])), before))
    assert marks(back[1], "dot")["Tea"] == "added"
    assert marks(back[1], "line")["Tea → leaf"] == "added"


# The page.


def test_a_page_needs_nothing_from_outside() -> None:
    made = page(
        "Plan 7", [("Merge", side_by_side(*merge())), ("Graph", svg(SHAPES["forty"]))], "Two nodes would be one."
    )
    without_names = made.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//\w|@import|url\(|\bsrc=|<link|<iframe", without_names)
    assert made.count("<figure>") == 2
    assert "Two nodes would be one." in made
    assert "prefers-color-scheme: dark" in made
    for word in (
        "strength above 0.7",
        "0.3 to 0.7",
        "below 0.3",
        "removed edge",
        "memory",
        "concept",
        "changed",
        "focus",
    ):
        assert word in made


def test_a_page_runs_its_own_script_and_no_other() -> None:
    made = page("x", [])
    scripts = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == 1
    assert f"script-src 'sha256-{digest}'" in made
    assert "default-src 'none'" in made


@pytest.mark.parametrize("text", NASTY)
def test_titles_and_intro_of_a_page_are_escaped(text: str) -> None:
    made = page(text, [(text, svg(graph(1, [])))], text)
    made.encode()
    assert made.count("<script>") == 1
    assert "<img" not in made
    assert "\0" not in made
