"""The worked examples of the consolidation document: bridges, a merge, a topic, the three in one go."""

import sys
from types import FrameType
from typing import Any

import pytest

from recollect.plans.registry import POLICIES
from tests.graphs import NOW, Known, edge, edge_id, node

pytestmark = pytest.mark.anyio


async def proposed(name: str, known: Known):  # type: ignore[no-untyped-def]
    policy = POLICIES[name]
    return await policy.propose(known, policy.options(), NOW)


async def test_A06_the_only_edge_of_a_session_is_never_pruned() -> None:
    """Document 2.3: removing it would isolate the session."""
    plan = await proposed("prune_weak_edges", Known([edge(1, 1, 2)]))
    assert plan.decisions == []
    assert [finding.rule for finding in plan.findings] == ["leaf"]


async def test_A08_two_triangles_joined_by_two_weak_edges_lose_one_of_them() -> None:
    triangles = [(1, 2), (2, 3), (3, 1), (4, 5), (5, 6), (6, 4)]
    strong = [edge(number, *ends, 0.9) for number, ends in enumerate(triangles)]
    plan = await proposed("prune_weak_edges", Known([*strong, edge(20, 1, 4, 0.02), edge(21, 2, 5, 0.03)]))
    assert [decision.subject for decision in plan.decisions] == [edge_id(20)]
    assert [(finding.rule, finding.subject) for finding in plan.findings] == [("splits", edge_id(21))]


async def test_A15_extends_with_half_of_similar_is_sixty_five_hundredths() -> None:
    """Document 3.2: similar 0.3 and extends 0.5 become extends 0.65."""
    edges = [edge(1, 1, 2, 0.3), edge(2, 1, 2, 0.5, relation="extends")]
    (decision,) = (await proposed("merge_parallel_edges", Known(edges))).decisions
    assert decision.subject == edge_id(2)
    assert decision.changes[0].after["strength"] == 0.65


async def test_A22_four_sessions_about_react_are_one_topic() -> None:
    """Document 4.2: Hooks Guide extends State, Effects similar State, Performance extends Hooks Guide."""
    react: dict[str, Any] = {"source_topic": "tag:react", "target_topic": "tag:react"}
    hooks, state, effects, performance = 1, 2, 3, 4
    edges = [
        edge(1, hooks, state, relation="extends", **react),
        edge(2, effects, state, **react),
        edge(3, performance, hooks, relation="extends", **react),
    ]
    (decision,) = (await proposed("gather_topics", Known(edges))).decisions
    row = decision.changes[0].after
    assert (row["key"], row["internal_edges"], row["connectivity"]) == ("tag:react", 3, 0.5)
    assert row["member_ids"] == [str(node(number)) for number in (1, 2, 3, 4)]


async def test_A30_the_work_grows_with_the_edges_and_no_faster() -> None:
    """Counted in calls, not in seconds, which are the machine's; the milliseconds are measured by `bench graph`."""
    few, many = [await calls_to_tidy(edges) for edges in (500, 1_000)]
    assert many < 2.2 * few
    assert many < 20 * 1_000


async def calls_to_tidy(number: int) -> int:
    """How many functions of Recollect are called to propose for so many edges."""
    nodes = 3 * number // 10
    edges = [
        edge(n, n % nodes, (n * 7 + 1) % nodes + nodes, (n % 50) / 50, source_topic=f"tag:{n % 9}", target_topic=None)
        for n in range(number)
    ]
    known, calls = Known(edges), 0

    def count(frame: FrameType, event: str, _told: object) -> None:
        nonlocal calls
        calls += event == "call" and "/src/recollect/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        for name in ("prune_weak_edges", "merge_parallel_edges", "gather_topics"):
            await proposed(name, known)
    finally:
        sys.setprofile(None)
    return calls
