"""Which part of a graph is looked at, against the slow and obvious way."""

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.graph.rules.view import around, bridges, edges_among, overview
from tests.graphs import NOW, columns, edge, node

Ends = list[tuple[int, int]]
PAIRS = st.tuples(st.integers(1, 7), st.integers(1, 7)).filter(lambda ends: ends[0] != ends[1])
NOBODY = np.zeros(0, dtype=np.int64)


def parts(ends: Ends, nodes: set[int]) -> int:
    """How many components there are, by walking; a node without any edge is one."""
    label = {one: one for one in nodes}
    for _ in nodes:
        for a, b in ends:
            label[a] = label[b] = min(label[a], label[b])
    return len(set(label.values()))


@given(st.lists(PAIRS, max_size=14))
@example([])
@example([(1, 2), (2, 1)])
@example([(1, 2), (2, 3), (3, 1), (3, 4)])
def test_A06_a_bridge_is_what_splits_something_when_it_goes(ends: Ends) -> None:
    found = bridges(columns(edge(place, a, b) for place, (a, b) in enumerate(ends)))
    nodes = {one for pair in ends for one in pair}
    for place in range(len(ends)):
        rest = ends[:place] + ends[place + 1 :]
        assert bool(found[place]) == (parts(rest, nodes) > parts(ends, nodes))


def test_around_comes_nearest_first_and_of_those_as_near_the_strongest() -> None:
    graph = columns([edge(1, 1, 2, 0.5), edge(2, 3, 1, 0.9), edge(3, 2, 4, 1.0), edge(4, 5, 6, 1.0)])
    strength = graph.strength_at(NOW)

    def shown(hops: int, limit: int) -> list[int]:
        found = around(graph, strength, np.array([0]), hops=hops, limit=limit)
        return [graph.node_of(number).int >> 64 for number in found.tolist()]

    assert shown(1, 9) == [1, 3, 2]
    assert shown(2, 9) == [1, 3, 2, 4]
    assert shown(2, 2) == [1, 3]
    assert around(graph, strength, NOBODY, hops=2, limit=9).tolist() == []


def test_an_overview_gives_every_group_its_share_then_the_best_connected() -> None:
    star = [edge(place, 1, place, 0.5) for place in range(2, 8)]
    graph = columns([*star, edge(20, 8, 9), edge(21, 9, 10)])
    group = np.array([7, 8, 9])  # the nodes 8, 9 and 10
    assert overview(graph, [group], limit=3).tolist() == [8, 7, 9]
    assert overview(graph, [group], limit=4).tolist() == [8, 7, 9, 0]
    assert overview(graph, [], limit=1).tolist() == [0]
    assert Counter(overview(graph, [group], limit=99).tolist()) == Counter(range(10))


def test_edges_among_nodes_begin_and_end_there() -> None:
    graph = columns([edge(1, 1, 2), edge(2, 2, 3), edge(3, 3, 1)])
    assert edges_among(graph, np.array([0, 1])).tolist() == [0]
    assert edges_among(graph, NOBODY).tolist() == []
    assert graph.node_of(0) == node(1)
