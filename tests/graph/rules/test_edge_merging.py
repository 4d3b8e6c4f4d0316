"""Parallel edges as one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.graph.rules.merging import edges_in, lent_strength, merged_edges, needs_review
from tests.graphs import NOW, edge, edge_id, with_columns


@pytest.mark.parametrize(
    ("strengths", "merged"),
    [((0.5, 0.3), 0.65), ((0.9, 0.8), 1.0), ((0.4, 0.2, 0.1), 0.55), ((0.1, 0.05), 0.13), ((0.0, 0.0), 0.0)],
)
def test_A15_the_strongest_and_half_of_the_others_to_two_decimals(strengths: tuple[float, ...], merged: float) -> None:
    assert lent_strength(strengths) == merged


def test_A15_what_counts_is_the_strength_of_the_moment_and_it_is_stored_with_its_time() -> None:
    faded = edge(1, 1, 2, 0.9, decay_rate=0.05, last_reinforced_at=NOW - timedelta(days=60))
    merge = merged_edges([faded, edge(2, 1, 2, 0.5)], NOW)
    assert merge.winner.id == edge_id(2)
    assert merge.after["strength"] == 0.52
    assert merge.after["last_reinforced_at"] == NOW.isoformat()


def test_A14_the_winner_keeps_its_id_relation_and_direction() -> None:
    merge = merged_edges([edge(1, 1, 2, 0.3), edge(2, 2, 1, 0.5, relation="extends")], NOW)
    assert merge.winner.id == edge_id(2)
    assert not {"id", "relation", "source", "target"} & merge.after.keys()


def test_A14_of_equals_the_user_made_wins_then_the_older_then_the_lower_id() -> None:
    machine = edge(1, 1, 2, 0.5, created_at=NOW - timedelta(days=9))
    person = edge(3, 1, 2, 0.5, created_by="user", created_at=NOW - timedelta(days=5))
    older = replace(person, id=edge_id(4), created_at=NOW - timedelta(days=7))
    twin = replace(older, id=edge_id(2))
    assert merged_edges([machine, person], NOW).winner == person
    assert merged_edges([machine, person, older], NOW).winner == older
    assert merged_edges([machine, older, person, twin], NOW).winner == twin


def test_A05_a_strength_never_said_wins_over_all_that_is_under_one() -> None:
    merge = merged_edges([edge(1, 1, 2, 0.99), edge(2, 1, 2, None)], NOW)
    assert (merge.winner.id, merge.after["strength"]) == (edge_id(2), 1.0)


def test_A16_counts_are_summed_times_and_confidence_are_the_most() -> None:
    used = edge(
        1, 1, 2, 0.3, activation_count=4, reinforce_count=1, confidence=0.9, last_activated_at=NOW - timedelta(days=1)
    )
    winner = edge(2, 1, 2, 0.5, activation_count=3, last_activated_at=NOW - timedelta(days=2))
    after = merged_edges([used, winner], NOW).after
    assert (after["activation_count"], after["reinforce_count"], after["confidence"]) == (7, 1, 0.9)
    assert after["last_activated_at"] == (NOW - timedelta(days=1)).isoformat()


def test_A16_what_nobody_knows_stays_unknown() -> None:
    after = merged_edges([edge(1, 1, 2), edge(2, 1, 2)], NOW).after
    assert (after["confidence"], after["last_activated_at"]) == (None, None)


@pytest.mark.parametrize(
    ("more", "protected"), [({"protected": True}, True), ({"created_by": "user"}, True), ({}, False)]
)
def test_A16_protected_if_any_was_protected_or_made_by_a_person(more: dict[str, object], protected: bool) -> None:
    assert merged_edges([edge(1, 1, 2, 0.9), edge(2, 1, 2, 0.1, **more)], NOW).after["protected"] is protected


def test_A16_absorbed_relations_are_remembered() -> None:
    absorbed = edge(1, 1, 2, 0.3, explanation="alike")
    merge = merged_edges([absorbed, edge(2, 1, 2, 0.5, relation="extends")], NOW)
    assert merge.after["merged_from"] == [
        {
            "id": str(edge_id(1)),
            "relation": "similar",
            "strength": 0.3,
            "explanation": "alike",
            "created_by": "auto",
            "merged_from": [],
        }
    ]


def test_A17_one_prefix_with_all_that_ever_went_in_and_every_original_kept() -> None:
    first = merged_edges([edge(1, 1, 2, 0.3, explanation="alike"), edge(2, 1, 2, 0.5, explanation="builds on")], NOW)
    once = with_columns(first.winner, first.after)
    assert once.explanation == "[Merged 2 edges] builds on"
    second = merged_edges([once, edge(3, 1, 2, 0.2, explanation="seen together")], NOW)
    assert second.after["explanation"] == "[Merged 3 edges] builds on"
    assert [one["explanation"] for one in second.after["merged_from"]] == ["alike", "seen together"]


def test_A17_what_an_absorbed_edge_had_taken_in_counts_too() -> None:
    first = merged_edges([edge(1, 1, 2, 0.3), edge(2, 1, 2, 0.3)], NOW)
    once = with_columns(first.winner, first.after)
    second = merged_edges([once, edge(3, 1, 2, 0.9, explanation="stronger")], NOW)
    assert second.after["explanation"] == "[Merged 3 edges] stronger"
    assert second.after["merged_from"][0]["merged_from"] == once.merged_from


def test_A17_an_imported_edge_is_believed_about_itself() -> None:
    assert edges_in(edge(1, 1, 2, explanation="[Merged 4 edges] from elsewhere")) == 4
    assert merged_edges([edge(1, 1, 2), edge(2, 1, 2)], NOW).after["explanation"] == "[Merged 2 edges]"


def test_before_is_the_winner_as_it_was_in_json() -> None:
    winner = edge(1, 1, 2, 0.9, last_activated_at=NOW)
    before = merged_edges([winner, edge(2, 1, 2)], NOW).before
    assert (before["strength"], before["last_activated_at"], before["merged_from"]) == (0.9, NOW.isoformat(), None)


def test_A13_a_contradiction_beside_another_relation_is_for_a_person() -> None:
    assert needs_review(["contradicts", "similar"])
    assert not needs_review(["contradicts", "contradicts"])
    assert not needs_review(["extends", "similar"])
