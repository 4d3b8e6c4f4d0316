"""The graph as arrays, against the slow and obvious way."""

from collections import Counter

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.graph.rules.arrays import Pruning, components, parallel_edges, prunable, spanning_forest
from tests.graphs import columns, edge

Ends = list[tuple[int, int]]


def hang_together(size: int, ends: Ends) -> list[int]:
    """The smallest node of each node's component, by walking."""
    label = list(range(size))
    for _ in range(size):
        for a, b in ends:
            label[a] = label[b] = min(label[a], label[b])
    return label


# Edges among few nodes, so that parallels, circles and loose parts are common.
PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] != ends[1])
MULTIGRAPHS = st.lists(PAIRS, max_size=16)


@given(MULTIGRAPHS)
def test_components_are_what_walking_finds(ends: Ends) -> None:
    a, b = _arrays(ends)
    assert components(7, a, b).tolist() == hang_together(7, ends)


def test_components_of_a_long_path_in_any_order() -> None:
    order = np.random.default_rng(1).permutation(5_000)
    assert set(components(5_000, order[:-1], order[1:]).tolist()) == {0}


@given(MULTIGRAPHS)
def test_a_spanning_forest_joins_the_same_with_no_edge_too_many_and_the_last_ones_preferred(ends: Ends) -> None:
    kept = spanning_forest(7, *_arrays(ends))
    expected: Ends = []
    for number, (a, b) in reversed(list(enumerate(ends))):
        apart = hang_together(7, expected)[a] != hang_together(7, expected)[b]
        assert kept[number] == apart
        expected += [(a, b)] if apart else []


@st.composite
def prunings(draw: st.DrawFn) -> tuple[Ends, list[int]]:
    """A multigraph, and some of its edges in the order in which they may go."""
    ends = draw(MULTIGRAPHS)
    order = draw(st.permutations(range(len(ends))))
    return ends, order[: draw(st.integers(0, len(ends)))]


TWO_TRIANGLES = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4)]


@settings(max_examples=500)
@given(prunings())
@example((TWO_TRIANGLES, [6, 7]))
@example((TWO_TRIANGLES, [7, 6, 0, 3]))
@example(([(0, 1), (1, 0)], [0, 1]))
@example(([(0, 1), (1, 2)], [0, 1]))
def test_A08_pruning_equals_looking_again_after_every_removal(case: tuple[Ends, list[int]]) -> None:
    ends, weakest_first = case
    assert _as_lists(_prunable(ends, weakest_first, "component")) == _by_brute_force(ends, weakest_first)


@settings(max_examples=200)
@given(prunings())
def test_A06_the_literal_rule_looks_at_degrees_alone(case: tuple[Ends, list[int]]) -> None:
    ends, weakest_first = case
    left = dict(enumerate(ends))
    removed = []
    for number in weakest_first:
        degree = Counter(end for pair in left.values() for end in pair)
        if min(degree[end] for end in left[number]) > 1:
            del left[number]
            removed.append(number)
    found = _prunable(ends, weakest_first, "leaf")
    assert (found.removed.tolist(), len(found.kept["splits"])) == (removed, 0)
    assert sorted(found.kept["leaf"].tolist()) == sorted(set(weakest_first) - set(removed))


def test_A06_an_edge_with_a_living_twin_is_no_bridge_but_the_twin_then_is() -> None:
    found = _prunable([(0, 1), (1, 0)], [0, 1], "component")
    assert (found.removed.tolist(), found.kept["leaf"].tolist()) == ([0], [1])


def test_A06_the_rule_that_kept_an_edge_is_told() -> None:
    pendant = 8
    found = _prunable([*TWO_TRIANGLES, (5, 6)], [6, 7, pendant], "component")
    assert found.removed.tolist() == [6]
    assert (found.kept["splits"].tolist(), found.kept["leaf"].tolist()) == ([7], [pendant])


@given(MULTIGRAPHS)
def test_A13_parallel_edges_are_grouped_by_their_ends_whichever_way_they_point(ends: Ends) -> None:
    groups = parallel_edges(_graph(ends))
    found = {tuple(sorted(groups[row].tolist())) for row in range(len(groups))}
    by_pair: dict[tuple[int, ...], list[int]] = {}
    for number, pair in enumerate(ends):
        by_pair.setdefault(tuple(sorted(pair)), []).append(number)
    assert found == {tuple(group) for group in by_pair.values() if len(group) > 1}


def _arrays(ends: Ends) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _graph(ends: Ends):  # type: ignore[no-untyped-def]
    return columns([edge(number, *pair) for number, pair in enumerate(ends)])


def _prunable(ends: Ends, weakest_first: list[int], rule: str) -> Pruning:
    return prunable(_graph(ends), np.array(weakest_first, dtype=np.int64), bridge_rule=rule)


def _as_lists(found: Pruning) -> tuple[list[int], set[int], set[int]]:
    return found.removed.tolist(), set(found.kept["leaf"].tolist()), set(found.kept["splits"].tolist())


def _by_brute_force(ends: Ends, weakest_first: list[int]) -> tuple[list[int], set[int], set[int]]:
    left, removed, leaf, splits = dict(enumerate(ends)), [], set(), set()
    for number in weakest_first:
        others = [pair for other, pair in left.items() if other != number]
        ends_left = {end for pair in others for end in pair}
        label = hang_together(7, others)
        if not ends_left.issuperset(left[number]):
            leaf.add(number)
        elif label[left[number][0]] != label[left[number][1]]:
            splits.add(number)
        else:
            removed.append(number)
            del left[number]
    return removed, leaf, splits
