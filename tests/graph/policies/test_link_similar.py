"""Linking what is alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.errors import InvalidInput
from recollect.graph.policies.link_similar import Options, propose
from recollect.graph.rules import neighbours
from recollect.graph.rules.arrays import as_ids
from recollect.graph.rules.neighbours import near_pairs
from recollect.model import Edge
from recollect.plan import Plan
from tests.graphs import NOW, Known, edge, node

pytestmark = pytest.mark.anyio


def at(*degrees: float) -> NDArray[np.float32]:
    """Vectors on the unit circle."""
    angles = np.radians(degrees)
    return np.stack((np.cos(angles), np.sin(angles)), axis=1).astype(np.float32)


async def plan_for(degrees: list[float], edges: list[Edge] | None = None, **options: object) -> Plan:
    """Node n, made at second n, points where the nth number says."""
    count = len(degrees)
    vectors = (as_ids([node(number) for number in range(count)]), at(*degrees), np.arange(count, dtype=np.float64))
    return await propose(Known(edges or [], vectors=vectors), Options(**options), NOW)  # type: ignore[arg-type]


def linked(plan: Plan) -> list[tuple[int, int]]:
    rows = [change.after or {} for change in plan.changes]
    ends = {str(node(number)): number for number in range(10)}
    return [(ends[row["source"]], ends[row["target"]]) for row in rows]


async def test_the_newer_points_to_the_older_with_the_cosine_as_strength() -> None:
    plan = await plan_for([0, 30, 90])
    assert linked(plan) == [(1, 0)]
    (decision,) = plan.decisions
    row = decision.changes[0].after
    assert row is not None
    cosine = pytest.approx(np.cos(np.radians(30)), abs=1e-6)
    assert [row["strength"], row["similarity"], decision.score] == [cosine] * 3
    assert (row["relation"], row["created_by"], row["created_at"]) == ("similar", "auto", NOW.isoformat())
    assert decision.changes[0].before is None
    assert {premise.id for premise in decision.premises} == {node(0), node(1)}
    assert decision.reason == "similarity 0.87 >= 0.8"


async def test_pairs_that_a_similar_edge_joins_already_are_left_alone_whichever_way_it_points() -> None:
    assert linked(await plan_for([0, 10], [edge(1, 0, 1)])) == []
    assert linked(await plan_for([0, 10], [edge(1, 1, 0)])) == []
    assert linked(await plan_for([0, 10], [edge(1, 1, 0, relation="extends")])) == [(1, 0)]
    assert linked(await plan_for([0, 10], [edge(1, 1, 77), edge(2, 78, 0)])) == [(1, 0)]


async def test_the_most_alike_come_first_and_each_has_at_most_so_many() -> None:
    assert linked(await plan_for([0, 1, 5, 20], at_most=1)) == [(1, 0), (2, 1), (3, 2)]


async def test_only_what_came_after_some_time_asks_for_neighbours() -> None:
    plan = await plan_for([0, 1, 90, 91], only_newer_than="1970-01-01T00:00:02.5")
    assert (linked(plan), plan.summary["nodes"]) == ([(3, 2)], 1)


async def test_what_was_seen_late_since_the_last_plan_asks_too() -> None:
    """A vector is written at its time and seen when its transaction ends: ten minutes are looked at twice."""
    ids, vectors = as_ids([node(0), node(1), node(2)]), at(0, 1, 2)
    last = NOW.timestamp()
    known = Known(vectors=(ids, vectors, np.array([last - 3600, last - 599, last + 1])), last_applied=NOW)
    assert (await propose(known, Options(), NOW)).summary["nodes"] == 2


async def test_nothing_known_is_nothing_linked() -> None:
    plan = await propose(Known(), Options(), NOW)
    assert (plan.decisions, plan.summary["touched"]) == ([], {})


@pytest.mark.parametrize(
    "wrong", [{"min_similarity": 0.0}, {"at_most": 0}, {"kinds": ()}, {"batch": 0}, {"only_newer_than": "soon"}]
)
async def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        Options(**wrong)  # type: ignore[arg-type]
    assert refused.value.field == next(iter(wrong))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 359), min_size=1, max_size=12), st.integers(1, 4), st.sampled_from([4, 40, 4_000_000]))
def test_near_pairs_are_what_comparing_all_finds(degrees: list[int], at_most: int, block: int) -> None:
    vectors = at(*degrees)
    neighbours.BLOCK, kept = block, neighbours.BLOCK
    try:
        found = near_pairs(vectors, np.arange(len(degrees)), at_least=0.8, at_most=at_most)
    finally:
        neighbours.BLOCK = kept
    cosine = vectors @ vectors.T
    expected = set()
    for row in range(len(degrees)):
        others = sorted((-float(cosine[row, other]), other) for other in range(len(degrees)) if other != row)
        near = [other for value, other in others[:at_most] if -value >= 0.8]
        expected |= {(min(row, other), max(row, other)) for other in near}
    pairs = list(zip(found.low.tolist(), found.high.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    if block == 4_000_000:  # products of other block sizes may round a tie the other way
        assert set(pairs) == expected
    assert {frozenset(pair) for pair in pairs if pair[0] == pair[1]} == set()
