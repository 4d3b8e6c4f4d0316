"""Spreading activation, on graphs small enough to follow by hand."""

from collections.abc import Collection, Iterable
from uuid import UUID

import pytest

from recollect.graph.rules.spread import Reached, SpreadLink, spread


def node(number: int) -> UUID:
    return UUID(int=number)


def link(source: int, target: int, strength: float, relation: str = "supports") -> SpreadLink:
    return SpreadLink(source=node(source), target=node(target), relation=relation, strength=strength)


def run(links: list[SpreadLink], seeds: dict[int, float], **options: object) -> dict[int, Reached]:
    def touching(nodes: Collection[UUID]) -> Iterable[SpreadLink]:
        return [one for one in links if one.source in nodes or one.target in nodes]

    found = spread({node(number): start for number, start in seeds.items()}, touching, **options)  # type: ignore[arg-type]
    return {reached.int: value for reached, value in found.items()}


def test_A31_each_hop_fades_by_strength_and_six_tenths() -> None:
    found = run([link(1, 2, 0.9), link(2, 3, 0.8)], {1: 1.0})
    assert found[2].activation == pytest.approx(0.54)
    assert found[3].activation == pytest.approx(0.54 * 0.8 * 0.6)
    assert (found[3].path, found[3].hops) == ((node(1), node(2), node(3)), 2)


def test_A31_three_hops_and_no_further() -> None:
    chain = [link(n, n + 1, 1.0) for n in range(1, 6)]
    assert set(run(chain, {1: 1.0})) == {1, 2, 3, 4}


def test_A31_nothing_below_a_tenth() -> None:
    found = run([link(1, 2, 0.3), link(2, 3, 0.5)], {1: 1.0})
    assert found[2].activation == pytest.approx(0.18)
    assert 3 not in found


def test_A31_the_best_path_is_kept() -> None:
    found = run([link(1, 2, 0.4), link(1, 3, 1.0), link(3, 2, 1.0)], {1: 1.0})
    assert found[2].path == (node(1), node(3), node(2))
    assert found[2].activation == pytest.approx(0.36)


def test_A31_preferred_relations_carry_more_but_never_over_one() -> None:
    found = run([link(1, 2, 0.5, "extends")], {1: 1.0}, preferred={"extends"})
    assert found[2].activation == pytest.approx(0.5 * 0.6 * 1.3)
    assert run([link(1, 2, 1.0, "x")], {1: 1.0}, preferred={"x"}, fade=1.0)[2].activation == 1.0


def test_A31_activation_flows_against_the_direction_of_an_edge_too_and_not_in_circles() -> None:
    found = run([link(2, 1, 1.0), link(2, 3, 1.0), link(3, 1, 1.0)], {1: 1.0})
    assert found[1].activation == 1.0
    assert found[2].hops == found[3].hops == 1


def test_A31_an_empty_graph_leaves_the_seeds() -> None:
    assert set(run([], {1: 1.0, 2: 0.5})) == {1, 2}
