"""The best paths between two nodes are those that trying all of them would find."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.graph.rules.adjacency import adjacency_of
from recollect.graph.rules.merging import strength_at
from recollect.graph.rules.paths import By, best_paths
from recollect.model import Edge
from tests.graphs import NOW, columns, edge, edge_id, node

strengths = st.sampled_from([None, 0.0, 0.1, 0.25, 0.5, 0.8, 1.0])
pairs = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1])


def all_paths(edges: list[Edge], hops: int) -> Iterator[tuple[int, float, list[int]]]:
    """Every path from 0 to 1, one for each way through the nodes: by its strongest edges."""
    best: dict[frozenset[int], float] = {}
    for one in edges:
        ends = frozenset((one.source.int >> 64, one.target.int >> 64))
        best[ends] = max(best.get(ends, 0.0), strength_at(one, NOW))

    def follow(path: list[int], strength: float) -> Iterator[tuple[int, float, list[int]]]:
        if path[-1] == 1:
            yield len(path) - 1, strength, path
        elif len(path) <= hops:
            for other in range(7):
                step = best.get(frozenset((path[-1], other)), 0.0)
                if other not in path and step:
                    yield from follow([*path, other], strength * step)

    yield from follow([0], 1.0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(pairs, strengths), max_size=14), st.integers(1, 5), st.sampled_from(["shortest", "strongest"])
)
def test_the_best_paths_are_those_that_trying_all_finds(
    made: list[tuple[tuple[int, int], float | None]], hops: int, by: By
) -> None:
    edges = [edge(number, *ends, strength) for number, (ends, strength) in enumerate(made)]
    expected = list(all_paths(edges, hops))
    expected.sort(key=lambda one: (one[0], -one[1]) if by == "shortest" else (-one[1], one[0]))
    found = best_paths(adjacency_of(columns(edges)), node(0), node(1), NOW, at_most=4, hops=hops, by=by)
    assert [one.strength for one in found] == pytest.approx([strength for _, strength, _ in expected[:4]])
    assert sorted(one.hops for one in found) == sorted(hops for hops, _, _ in expected[:4]) or by == "strongest"
    by_id = {one.id: one for one in edges}
    for path in found:
        assert len(set(path.nodes)) == len(path.nodes) == path.hops + 1
        for walked, ends in zip(path.edges, pairwise(path.nodes), strict=True):
            assert {by_id[walked].source, by_id[walked].target} == set(ends)


def test_the_fewest_hops_first_or_the_strongest_first() -> None:
    edges = [edge(1, 0, 1, 0.1), edge(2, 0, 2, 0.9), edge(3, 2, 1, 0.9)]
    graph = adjacency_of(columns(edges))
    shortest = best_paths(graph, node(0), node(1), NOW)
    strongest = best_paths(graph, node(0), node(1), NOW, by="strongest")
    assert [path.edges for path in shortest] == [(edge_id(1),), (edge_id(2), edge_id(3))]
    assert strongest == shortest[::-1]
    assert strongest[0].strength == pytest.approx(0.81)


def test_no_path_is_none() -> None:
    graph = adjacency_of(columns([edge(1, 0, 2, 0.5), edge(2, 1, 3, 0.5)]))
    assert best_paths(graph, node(0), node(1), NOW) == []
    assert best_paths(graph, node(0), node(9), NOW) == []
    assert best_paths(graph, node(0), node(0), NOW) == []


def test_a_graph_where_all_are_linked_with_all_is_searched_in_bounded_time() -> None:
    edges = [edge(n * 60 + m, n, m, 1.0) for n in range(60) for m in range(n)]
    found = best_paths(adjacency_of(columns(edges)), node(0), node(1), NOW, at_most=10)
    assert [path.hops for path in found] == [1, *[2] * 9]
