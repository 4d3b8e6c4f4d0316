"""Merging nodes as a rule: links go to the keeper, equal ones become one, loops go; and what a concept may hold."""

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from recollect.concepts.rules.concepts import checked, ids_of, pair_of, state_of, words_of
from recollect.errors import InvalidInput
from recollect.graph.rules.merging import MergedLinks, averaged, united
from recollect.model import Edge, NewConcept
from recollect.plans.rules.needs import levels, turned_round
from tests.graphs import NOW, edge, node

A, B, K, X = (node(number) for number in range(4))


def link(number: int, source: UUID, target: UUID, **more: Any) -> Edge:
    told = {"strength": 0.5, "created_at": NOW, "last_reinforced_at": None, "decay_rate": 0.0, **more}
    return replace(edge(number, 0, 1, **told), source=source, target=target)


def moved(links: MergedLinks, *absorbed: UUID) -> dict[UUID, dict[str, Any]]:
    """What every edge ends up with."""
    found: dict[UUID, dict[str, Any]] = {}
    for one in absorbed:
        for change in links.move(one, K, NOW):
            found[change.id] = {**found.get(change.id, {}), **change.after}
    return found


def test_C11_links_are_redirected_with_their_direction() -> None:
    out, into = link(1, A, X), link(2, X, A)
    links = MergedLinks([out, into])
    assert moved(links, A) == {out.id: {"source": str(K)}, into.id: {"target": str(K)}}
    assert {(one.source, one.target) for one in links.of(K)} == {(K, X), (X, K)}
    assert links.of(A) == []


def test_C12_a_link_between_the_two_goes_in_either_direction() -> None:
    one, other = link(1, A, K), link(2, K, A, relation="extends")
    links = MergedLinks([one, other])
    assert moved(links, A) == {one.id: {"status": "pruned"}, other.id: {"status": "pruned"}}
    assert links.of(K) == []


def test_C11_only_the_same_ends_direction_and_relation_are_the_same_link() -> None:
    kept = link(1, K, X, relation="extends")
    links = MergedLinks([kept, link(2, A, X, relation="similar"), link(3, X, A, relation="extends")])
    assert not any("merged_into" in change for change in moved(links, A).values())
    assert len(links.of(K)) == 3


def test_C11_the_mean_does_not_depend_on_the_order_of_merges() -> None:
    strengths = {A: 0.2, B: 0.9, K: 0.4}
    found = set()
    for order in permutations([A, B]):
        links = MergedLinks(
            [link(n, end, X, strength=strengths[end], activation_count=n) for n, end in enumerate(strengths)]
        )
        moved(links, *order)
        (one,) = links.of(K)
        found.add((round(one.strength or 0.0, 12), one.activation_count))
    assert found == {(0.5, 3)}


def test_C11_what_a_user_made_or_protected_stays_so() -> None:
    auto = link(1, K, X, created_by="auto", protected=False)
    assert averaged(auto, link(2, A, X, created_by="user", protected=False), NOW)["protected"]
    assert averaged(auto, link(2, A, X, created_by="auto", protected=True), NOW)["protected"]
    assert not averaged(auto, link(2, A, X, created_by="auto", protected=False), NOW)["protected"]


def test_C11_a_strength_that_was_never_said_stays_unsaid_and_counts_as_1_beside_another() -> None:
    unsaid = link(1, K, X, strength=None)
    assert averaged(unsaid, link(2, A, X, strength=None), NOW)["strength"] is None
    assert averaged(unsaid, link(2, A, X, strength=0.5), NOW)["strength"] == 0.75


def test_C11_strengths_are_those_of_the_moment() -> None:
    old = link(2, A, X, strength=1.0, decay_rate=0.05, created_at=NOW - timedelta(days=20))
    one = averaged(link(1, K, X, strength=0.5), old, NOW)
    assert one["strength"] == pytest.approx((0.5 + 0.36788) / 2, abs=1e-4)
    assert one["last_reinforced_at"] == NOW


def test_C13_the_keeper_wins_where_both_speak() -> None:
    assert united({"a": 1}, {"a": 2, "b": 3}) == {"a": 1, "b": 3}


def test_a_concept_is_embedded_by_its_text_else_by_its_name_in_plain_words() -> None:
    assert words_of("Consciousness_Substrate", None) == "consciousness substrate"
    assert words_of("Consciousness_Substrate", " ") == "consciousness substrate"
    assert words_of("name", "What it is") == "What it is"


def test_what_a_concept_may_hold() -> None:
    limits = {"max_text_bytes": 100, "max_metadata_bytes": 50}
    fine = checked(NewConcept(name=" tea\r\n", node_type=" drink ", text="  "), NOW, **limits)
    assert (fine.name, fine.node_type, fine.text) == ("tea", "drink", None)
    for given in ({"text": "x" * 101}, {"metadata": {"a": "x" * 50}}, {"energy": {"": 1}}, {"base_weight": -1.0}):
        with pytest.raises(InvalidInput):
            checked(NewConcept(name="tea", **given), NOW, **limits)


def test_P11_pairs_of_nodes_and_their_state_do_not_depend_on_order() -> None:
    assert pair_of(A, B) == pair_of(B, A)
    assert ids_of(pair_of(A, B)) in ((A, B), (B, A))
    assert ids_of(("tea", "coffee")) is None
    assert state_of(["a", "b"], [1, 2]) == state_of(["b", "a"], [2, 1]) != state_of(["a", "b"], [2, 1])


def test_P07_what_was_needed_is_taken_back_after_what_needed_it() -> None:
    needs = {2: [1], 4: [2, 3]}
    assert levels({1: [], 2: [1], 3: [], 4: [2, 3]}) == {1: 0, 2: 1, 3: 0, 4: 2}
    turned = turned_round([1, 2, 3, 4], needs, 5)
    assert turned == {4: [3], 3: [1], 2: [1], 1: []}
    assert levels(turned) == {1: 0, 2: 1, 3: 1, 4: 2}
    assert turned_round([1, 3], needs, 4) == {3: [], 1: []}
