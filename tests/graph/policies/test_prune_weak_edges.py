"""Pruning as a policy: what it proposes, what it leaves alone and why, and what it looks at again."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.graph.policies.prune_weak_edges import POLICY, Options, propose, recheck
from recollect.model import Edge
from recollect.plan import Plan, Waiting
from tests.graphs import LONG_AGO, NOW, WEAK, Known, edge, edge_id, node

pytestmark = pytest.mark.anyio

CIRCLE = [edge(number, number, number % 4 + 1, 0.9) for number in range(1, 5)]


async def plan_for(*edges: Edge, **options: object) -> Plan:
    return await propose(Known(edges), Options(**options), NOW)  # type: ignore[arg-type]


def chord(strength: float | None = WEAK, **more: object) -> Edge:
    """An edge that holds nothing together: its ends are on a circle."""
    return edge(9, 1, 3, strength, **more)


def gone(plan: Plan) -> list[int]:
    return [decision.subject.int >> 64 for decision in plan.decisions]


async def test_A02_a_weak_idle_edge_that_holds_nothing_together_goes() -> None:
    plan = await plan_for(*CIRCLE, chord())
    assert gone(plan) == [9]
    (decision,) = plan.decisions
    assert decision.reason == "strength 0.01 < 0.05, idle 400 days, its ends stay connected"
    assert (decision.verb, decision.score) == ("prune", WEAK)
    assert decision.factors == {
        "strength": WEAK,
        "idle_days": 400.0,
        "relation": "similar",
        "source": str(node(1)),
        "target": str(node(3)),
    }
    (change,) = decision.changes
    assert (change.table, change.id, change.before, change.after) == (
        "edges",
        edge_id(9),
        {"status": "active"},
        {"status": "pruned"},
    )
    assert decision.premises[0].must == {
        "ends": "active",
        "protected": False,
        "created_by_not": "user",
        "strength_below": 0.05,
        "idle_days": 7.0,
    }


@pytest.mark.parametrize(
    ("strength", "goes"), [(0.05, False), (0.0499, True), (0.0, True), (None, False), (0.04999999999, True)]
)
async def test_A03_A05_exactly_the_threshold_is_kept_and_never_said_is_strong(
    strength: float | None, goes: bool
) -> None:
    plan = await plan_for(*CIRCLE, chord(strength))
    assert gone(plan) == ([9] if goes else [])


@pytest.mark.parametrize(("days", "goes"), [(7.0, True), (6.99, False), (7.01, True)])
async def test_A03_exactly_seven_days_idle_is_eligible(days: float, goes: bool) -> None:
    plan = await plan_for(*CIRCLE, chord(last_activated_at=NOW - timedelta(days=days)))
    assert gone(plan) == ([9] if goes else [])


async def test_A04_the_most_recent_sign_of_life_counts() -> None:
    alive = chord(last_activated_at=LONG_AGO, last_reinforced_at=NOW - timedelta(days=1))
    assert gone(await plan_for(*CIRCLE, alive)) == []


async def test_A00a_the_strength_of_the_moment_counts() -> None:
    assert gone(await plan_for(*CIRCLE, chord(0.9, decay_rate=0.05))) == [9]
    assert gone(await plan_for(*CIRCLE, chord(0.9, decay_rate=0.005))) == []


async def test_A07_what_a_person_made_or_protected_stays_and_the_rule_is_told() -> None:
    plan = await plan_for(
        *CIRCLE,
        chord(protected=True),
        edge(10, 2, 4, created_by="user"),
        edge(11, 1, 3, created_by="user", protected=True),
    )
    assert gone(plan) == []
    assert sorted((finding.rule, finding.subject) for finding in plan.findings) == [
        ("protected", edge_id(9)),
        ("protected", edge_id(11)),
        ("user-made", edge_id(10)),
    ]


async def test_A06_leaves_and_bridges_stay_and_the_rule_is_told() -> None:
    other_circle = [edge(20 + n, 10 + n, n % 3 + 11, 0.9) for n in range(1, 4)]
    plan = await plan_for(*CIRCLE, *other_circle, edge(30, 1, 11), edge(31, 2, 99))
    assert gone(plan) == []
    assert {(finding.rule, finding.subject) for finding in plan.findings} == {
        ("splits", edge_id(30)),
        ("leaf", edge_id(31)),
    }
    assert plan.summary["kept_by"] == {"protected": 0, "user-made": 0, "leaf": 1, "splits": 1}


async def test_A06_the_literal_rule_lets_bridges_go_that_isolate_nobody() -> None:
    other_circle = [edge(20 + n, 10 + n, n % 3 + 11, 0.9) for n in range(1, 4)]
    plan = await plan_for(*CIRCLE, *other_circle, edge(30, 1, 11), bridge_rule="leaf")
    assert gone(plan) == [30]
    assert "its ends have other edges" in plan.decisions[0].reason


async def test_A08_weakest_first_and_ties_by_id() -> None:
    plan = await plan_for(*CIRCLE, edge(11, 1, 3, 0.02), edge(10, 2, 4, 0.02), chord(0.03), edge(8, 3, 1, 0.001))
    assert gone(plan) == [8, 10, 11, 9]


async def test_A10_threshold_and_days_are_parameters() -> None:
    edges = (*CIRCLE, chord(0.2, created_at=NOW - timedelta(days=3)))
    assert gone(await plan_for(*edges, threshold=0.3, min_inactive_days=2.0)) == [9]
    assert gone(await plan_for(*edges, threshold=0.3)) == []


async def test_A11_nothing_to_prune_is_a_plan_without_decisions() -> None:
    plan = await plan_for(*CIRCLE)
    assert (plan.decisions, plan.findings) == ([], [])
    assert (await plan_for()).summary["total"] == 0


async def test_A12_total_is_pruned_and_kept() -> None:
    plan = await plan_for(*CIRCLE, chord(), edge(31, 2, 99))
    assert plan.summary == {
        "total": 6,
        "pruned": 1,
        "kept": 5,
        "kept_by": {"protected": 0, "user-made": 0, "leaf": 1, "splits": 0},
        "scope": {"edges": 6},
        "touched": {"edges": 1},
    }


async def test_only_the_weakest_findings_are_listed_and_all_are_counted() -> None:
    plan = await plan_for(*(edge(number, 0, number, number / 1e5) for number in range(1, 1_500)))
    assert len(plan.findings) == 1_000
    assert plan.findings[0].subject == edge_id(1)
    assert plan.summary["kept_by"]["leaf"] == 1_499


async def test_decisions_are_grouped_in_batches() -> None:
    plan = await plan_for(*CIRCLE, *(edge(20 + n, 1, 3) for n in range(5)), batch=2)
    assert [decision.group for decision in plan.decisions] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 1.5}, {"threshold": float("nan")}, {"min_inactive_days": -1}, {"bridge_rule": "none"}, {"batch": 0}],
)
async def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Options(**wrong)  # type: ignore[arg-type]


def waiting(plan: Plan) -> list[Waiting]:
    return [Waiting(number=one.number, subject=one.subject, written="{}") for one in plan.decisions]


async def test_P04_an_edge_that_has_become_a_bridge_since_is_stale() -> None:
    plan = await plan_for(*CIRCLE, chord())
    without_its_ways_round = [CIRCLE[0], CIRCLE[2]]
    moved = await recheck(Known([*without_its_ways_round, chord()]), waiting(plan), Options(), NOW)
    assert moved == {1: "other edges went since: its ends would no longer hang together"}
    alone = await recheck(Known([chord()]), waiting(plan), Options(), NOW)
    assert alone == {1: "other edges went since: one of its ends would be left without any edge"}


async def test_P04_what_still_holds_or_is_gone_or_has_recovered_is_not_named() -> None:
    plan = await plan_for(*CIRCLE, chord(), edge(10, 2, 4))
    assert await recheck(Known([*CIRCLE, chord(), edge(10, 2, 4)]), waiting(plan), Options(), NOW) == {}
    # The recovered edge stays, so the other may still go; the missing one is for its premise to find.
    assert await recheck(Known([chord(0.9), edge(8, 1, 3)]), waiting(plan), Options(), NOW) == {}


def test_A29_targets_are_marked() -> None:
    assert POLICY.metrics is not None
    figures = POLICY.metrics({"pruned": 10, "total": 100}, {"seconds": 0.3, "freed_bytes": 12_000})
    assert {name: figure["in_target"] for name, figure in figures.items()} == {
        "pruned_share": True,
        "freed_bytes": True,
        "seconds": False,
    }
    assert POLICY.metrics({"pruned": 0, "total": 0}, {"seconds": 0.1, "freed_bytes": 0})["pruned_share"]["value"] == 0


some_edges = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] != ends[1]),
        st.sampled_from([None, 0.0, 0.01, 0.01, 0.04, 0.05, 0.9]),
        st.sampled_from(["auto", "auto", "auto", "user"]),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=14,
)


@settings(max_examples=100, deadline=None)
@given(some_edges)
async def test_A08_A12_the_plan_is_what_brute_force_decides(
    drawn: list[tuple[tuple[int, int], float | None, str, bool]],
) -> None:
    edges = [
        edge(number, *ends, strength, created_by=maker, protected=protected)
        for number, (ends, strength, maker, protected) in enumerate(drawn)
    ]
    left = {one.id: one for one in edges}
    expected = []
    for one in sorted(edges, key=lambda one: (1.0 if one.strength is None else one.strength, one.id)):
        weak = one.strength is not None and one.strength < 0.05
        if weak and not one.protected and one.created_by != "user" and _joined_without(left, one):
            del left[one.id]
            expected.append(one.id)
    plan = await plan_for(*edges)
    assert [decision.subject for decision in plan.decisions] == expected
    assert plan.summary["total"] == plan.summary["pruned"] + plan.summary["kept"] == len(edges)


def _joined_without(left: dict, one: Edge) -> bool:  # type: ignore[type-arg]
    reached, growing = {one.source}, True
    while growing:
        more = {
            end
            for other in left.values()
            if other.id != one.id and {other.source, other.target} & reached
            for end in (other.source, other.target)
        }
        growing = not more <= reached
        reached |= more
    return one.target in reached
