"""The registry of policies."""

from dataclasses import asdict
from json import dumps

import pytest

from recollect.errors import InvalidInput
from recollect.plan import Risk
from recollect.plans.registry import POLICIES, policy_named


def test_a_policy_is_found_by_its_name_and_by_its_short_name() -> None:
    for name, policy in POLICIES.items():
        assert policy_named(name) is policy_named(policy.short) is policy
    assert len({policy.short for policy in POLICIES.values()}) == len(POLICIES)


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'tidy'.*prune, merge-edges"):
        policy_named("tidy")


def test_A25_prune_merge_and_topics_have_their_intervals_and_ask_the_gate() -> None:
    every = {
        name: POLICIES[name].every_minutes for name in ("prune_weak_edges", "merge_parallel_edges", "gather_topics")
    }
    assert every == {"prune_weak_edges": 1440, "merge_parallel_edges": 10080, "gather_topics": 20160}
    assert all(POLICIES[name].gated for name in every)


def test_P03_the_graph_policies_apply_by_themselves() -> None:
    graph = ("prune_weak_edges", "merge_parallel_edges", "gather_topics", "link_similar")
    assert {POLICIES[name].risk for name in graph} == {Risk.LOW}


def test_A26_each_run_says_what_it_did() -> None:
    assert POLICIES["prune_weak_edges"].says.format(pruned=3) == "Pruned 3 edges"
    assert POLICIES["merge_parallel_edges"].says.format(edges_merged=3) == "Merged 3 edges"
    assert POLICIES["gather_topics"].says.format(topics=3) == "Found 3 topics"


def test_the_default_options_of_every_policy_can_be_kept_as_json() -> None:
    for policy in POLICIES.values():
        dumps(asdict(policy.options()))
