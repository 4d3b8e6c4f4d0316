"""Gathering topics as a policy: each gathering replaces the last as a whole."""

from datetime import timedelta
from uuid import UUID

import pytest

from recollect.errors import InvalidInput
from recollect.graph.policies.gather_topics import POLICY, Options, propose
from recollect.model import Edge, Topic
from recollect.plan import Plan
from tests.graphs import NOW, Known, edge, node

pytestmark = pytest.mark.anyio

BEFORE = NOW - timedelta(days=14)


def about(key: str, *ends: tuple[int, int], first: int = 1) -> list[Edge]:
    return [edge(n, *pair, source_topic=key, target_topic=key) for n, pair in enumerate(ends, start=first)]


def known(key: str, *members: int) -> Topic:
    return Topic(
        id=UUID(int=7),
        key=key,
        member_ids=tuple(map(node, members)),
        internal_edges=2,
        connectivity=2 / 3,
        gathered_at=BEFORE,
    )


async def plan_for(edges: list[Edge], *topics: Topic, **options: object) -> Plan:
    return await propose(Known(edges, topics=topics), Options(**options), NOW)  # type: ignore[arg-type]


async def test_A22_a_new_topic_is_a_row_with_its_figures() -> None:
    (decision,) = (await plan_for(about("tag:tea", (1, 2), (2, 3)))).decisions
    (change,) = decision.changes
    assert (change.table, change.before) == ("topics", None)
    assert change.after == {
        "id": str(change.id),
        "key": "tag:tea",
        "member_ids": [str(node(number)) for number in (1, 2, 3)],
        "internal_edges": 2,
        "connectivity": pytest.approx(2 / 3),
        "gathered_at": NOW.isoformat(),
    }
    assert decision.reason == "tag:tea has 3 members"


async def test_A23_found_again_beside_a_new_one_it_keeps_its_id_and_takes_the_new_time() -> None:
    edges = about("tag:tea", (1, 2), (2, 3)) + about("tag:garden", (5, 6), (6, 7), first=5)
    decision = (await plan_for(edges, known("tag:tea", 1, 2, 3))).decisions[-1]
    (change,) = decision.changes
    assert change.id == UUID(int=7)
    assert change.before == {"gathered_at": BEFORE.isoformat()}
    assert change.after == {"gathered_at": NOW.isoformat()}


async def test_P24_the_same_topics_again_are_no_plan() -> None:
    plan = await plan_for(about("tag:tea", (1, 2), (2, 3)), known("tag:tea", 1, 2, 3))
    assert (plan.decisions, plan.summary["topics"]) == ([], 1)


async def test_A23_what_is_no_longer_a_topic_goes_and_members_follow() -> None:
    edges = about("tag:tea", (1, 2), (2, 3), (3, 4))
    plan = await plan_for(edges, known("tag:tea", 1, 2, 9), known("tag:gone", 1, 2, 3))
    dropped, gathered = plan.decisions
    assert (dropped.verb, dropped.changes[0].after) == ("drop", None)
    assert dropped.changes[0].before is not None
    assert dropped.changes[0].before["key"] == "tag:gone"
    assert gathered.reason == "tag:tea has 4 members: 2 came, 1 went"
    assert {decision.group for decision in plan.decisions} == {0}


async def test_A23_no_edge_and_no_node_is_touched() -> None:
    plan = await plan_for(about("tag:tea", (1, 2), (2, 3)))
    assert {change.table for change in plan.changes} == {"topics"}
    assert (plan.summary["touched"], plan.summary["scope"]) == ({}, {})
    assert (plan.summary["topics"], plan.summary["members"], plan.summary["dropped"]) == (1, 3, 0)


async def test_A21_the_options_reach_the_rule() -> None:
    edges = about("tag:tea-green", (1, 2)) + about("tag:tea-black", (3, 4), first=5)
    assert (await plan_for(edges)).decisions == []
    assert (await plan_for(edges, key="prefix")).summary["members"] == 4
    assert (await plan_for(edges, min_cluster_size=2)).summary["topics"] == 2


@pytest.mark.parametrize("wrong", [{"min_cluster_size": 0}, {"topic_overlap_threshold": 0.0}, {"key": "half"}])
async def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Options(**wrong)  # type: ignore[arg-type]


def test_A29_three_to_ten_topics_are_on_target() -> None:
    assert POLICY.metrics is not None
    marks = {n: POLICY.metrics({"topics": n}, {"seconds": 0.1})["topics"]["in_target"] for n in (2, 3, 10, 11)}
    assert marks == {2: False, 3: True, 10: True, 11: False}
