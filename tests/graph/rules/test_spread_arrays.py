"""Spreading over a whole adjacency equals following links one by one, also after changes."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.graph.rules import adjacency as rules
from recollect.graph.rules.adjacency import Adjacency, adjacency_of, updated
from recollect.graph.rules.merging import strength_at
from recollect.graph.rules.spread import Reached, SpreadLink, spread, spread_over
from recollect.model import Edge
from tests.graphs import NOW, columns, edge, edge_id, node

RELATIONS = ("similar", "extends", "supports")


# Made once: Hypothesis looks through a strategy that it has not seen before, which takes longer than drawing from it.
ENDS = st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1])
LINKS = st.lists(
    st.tuples(
        ENDS,
        st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.5, 1.0])),
        st.sampled_from(RELATIONS),
        st.sampled_from([0.0, 0.05]),
        st.integers(0, 30),
    ),
    max_size=14,
)


@st.composite
def some_edges(draw: st.DrawFn, first: int = 0) -> list[Edge]:
    return [
        edge(
            number,
            *pair,
            strength,
            relation=relation,
            decay_rate=rate,
            last_reinforced_at=NOW - timedelta(days=days),
        )
        for number, (pair, strength, relation, rate, days) in enumerate(draw(LINKS), start=first)
    ]


seeds = st.dictionaries(st.integers(0, 10), st.floats(0.05, 1.0), max_size=4)
options = st.fixed_dictionaries(
    {
        "hops": st.integers(0, 4),
        # So that no hop makes activation stronger, preferred or not: else it hangs on which of two equally good paths
        # came first whether it flows back to where the other one began.
        "fade": st.sampled_from([0.6, 0.75]),
        "least": st.sampled_from([0.01, 0.1, 0.3]),
        "preferred": st.sampled_from([(), ("extends",), RELATIONS]),
    }
)


def one_by_one(edges: list[Edge], start: dict[int, float], **chosen: object) -> dict:  # type: ignore[type-arg]
    links = [
        SpreadLink(source=one.source, target=one.target, relation=one.relation, strength=strength_at(one, NOW))
        for one in edges
    ]

    def touching(nodes: Collection[object]) -> Iterable[SpreadLink]:
        return [one for one in links if one.source in nodes or one.target in nodes]

    return spread({node(number): value for number, value in start.items()}, touching, **chosen)  # type: ignore[arg-type]


def same(found: dict, expected: dict) -> None:  # type: ignore[type-arg]
    """The same nodes, as strongly activated; paths may differ only where several are equally good."""
    assert found.keys() == expected.keys()
    for one, other in zip((found[key] for key in expected), expected.values(), strict=True):
        assert one.activation == pytest.approx(other.activation, rel=1e-12)


def walks(reached: Reached, edges: list[Edge]) -> None:
    """The edges reported join the path reported."""
    by_id = {one.id: one for one in edges}
    assert len(reached.edges) == reached.hops
    for walked, ends in zip(reached.edges, zip(reached.path, reached.path[1:], strict=False), strict=True):
        assert {by_id[walked].source, by_id[walked].target} == set(ends)


@settings(max_examples=300)
@given(some_edges(), seeds, options)
def test_A31_a_whole_adjacency_gives_what_links_one_by_one_give(
    edges: list[Edge], start: dict[int, float], chosen: dict[str, object]
) -> None:
    begin = {node(number): value for number, value in start.items()}
    found = spread_over(adjacency_of(columns(edges)), begin, NOW, **chosen).reached()  # type: ignore[arg-type]
    same(found, one_by_one(edges, start, **chosen))
    for reached in found.values():
        walks(reached, edges)
        assert reached.path[0] in begin


@settings(max_examples=300)
@given(some_edges(), some_edges(first=10), st.lists(st.booleans(), min_size=30, max_size=30), st.booleans())
def test_A31_changed_edges_are_taken_in_without_starting_over(
    old: list[Edge], new: list[Edge], alive: list[bool], wire_anew: bool
) -> None:
    """Edges 10 to 13 may be in both: those are changed, others come, and the ones that are not alive go."""
    few = rules.FEW
    rules.FEW = 0 if wire_anew else few
    try:
        current = adjacency_of(columns(old))
        for some in (new[: len(new) // 2], new[len(new) // 2 :]):
            current = updated(current, columns(some), np.array([alive[_number(one)] for one in some], dtype=np.bool_))
    finally:
        rules.FEW = few
    known = {one.id: one for one in (*old, *new)}
    changed = {one.id for one in new}
    living = [one for one in known.values() if one.id not in changed or alive[_number(one)]]
    assert len(current) == len(living)
    _is_the_adjacency_of(current, living)


def _number(one: Edge) -> int:
    return (one.id.int >> 64) % 30


def _is_the_adjacency_of(current: Adjacency, living: list[Edge]) -> None:
    ends = {end for one in living for end in (one.source, one.target)}
    for number in range(10):
        assert (node(number) in current) == (node(number) in ends)
        found = spread_over(current, {node(number): 1.0}, NOW, least=0.01).reached()
        same(found, one_by_one(living, {number: 1.0}, least=0.01))
        for reached in found.values():
            walks(reached, living)


def test_A09_a_node_without_any_edge_leaves_the_adjacency() -> None:
    gone = edge(1, 1, 2, 0.9)
    current = adjacency_of(columns([gone, edge(2, 2, 3, 0.9)]))
    assert node(1) in current
    current = updated(current, columns([gone]), np.array([False]))
    assert node(1) not in current
    assert node(2) in current
    assert "not a node" not in current


def test_A00a_what_is_walked_is_the_strength_of_the_moment() -> None:
    fading = edge(1, 1, 2, 1.0, decay_rate=0.05, last_reinforced_at=NOW)
    current = adjacency_of(columns([fading]))
    today = spread_over(current, {node(1): 1.0}, NOW).reached()[node(2)]
    later = spread_over(current, {node(1): 1.0}, NOW + timedelta(days=10)).reached()[node(2)]
    assert today.activation == pytest.approx(0.6)
    assert later.activation == pytest.approx(0.6 * np.exp(-0.5))


def test_a_new_relation_and_a_new_node_come_with_a_change() -> None:
    current = adjacency_of(columns([edge(1, 1, 2, 1.0)]))
    new = edge(2, 2, 9, 1.0, relation="quotes")
    current = updated(current, columns([new]), np.array([True]))
    found = spread_over(current, {node(9): 1.0}, NOW, preferred=["quotes"]).reached()
    assert found[node(2)].activation == pytest.approx(0.78)
    assert found[node(1)].path == (node(9), node(2), node(1))
    assert found[node(1)].edges == (edge_id(2), edge_id(1))


def test_an_edge_may_change_again_and_go_and_come_back() -> None:
    current = adjacency_of(columns([edge(1, 1, 2, 0.2)]))
    for strength, alive in ((0.5, True), (0.9, True), (0.9, False), (1.0, True)):
        current = updated(current, columns([edge(1, 1, 2, strength)]), np.array([alive]))
        found = spread_over(current, {node(1): 1.0}, NOW).reached()
        assert found.get(node(2), replace(found[node(1)], activation=0.0)).activation == pytest.approx(
            strength * 0.6 if alive else 0.0
        )
    assert len(current) == 1


def test_the_most_activated_come_first_and_only_as_many_as_are_asked_for() -> None:
    edges = [edge(number, 0, number, number / 10) for number in range(1, 10)]
    spreading = spread_over(adjacency_of(columns(edges)), {node(0): 1.0, node(77): 0.5}, NOW)
    assert len(spreading) == 10
    assert list(spreading.reached(at_most=3)) == [node(0), node(9), node(77)]
    assert spreading.reached(at_most=0) == {}
    assert len(spreading.reached()) == 10


def test_A31_no_graph_and_no_seeds() -> None:
    nothing = adjacency_of(columns([]))
    assert spread_over(nothing, {}, NOW).reached() == {}
    assert set(spread_over(nothing, {node(1): 0.4}, NOW).reached()) == {node(1)}
    assert len(updated(nothing, columns([edge(1, 1, 2)]), np.array([True]))) == 1
