"""Merging parallel edges as a policy."""

import pytest

from recollect.errors import InvalidInput
from recollect.graph.policies import merge_parallel_edges
from recollect.graph.policies.merge_parallel_edges import POLICY, Options, propose
from recollect.model import Edge
from recollect.plan import Plan
from tests.graphs import NOW, Known, edge, edge_id, node, with_columns

pytestmark = pytest.mark.anyio

PAIR = (edge(1, 1, 2, 0.3), edge(2, 2, 1, 0.5, relation="extends", explanation="builds on"))
ENDS = (f"edges of {node(1)}", f"edges of {node(2)}")
STATE = f"{edge_id(1)} {edge_id(2)}"


async def plan_for(*edges: Edge, apart: dict[tuple[str, str], str | None] | None = None, **options: object) -> Plan:
    return await propose(Known(edges, apart=apart), Options(**options), NOW)  # type: ignore[arg-type]


async def test_A13_A14_both_directions_are_one_pair_and_the_strongest_stays() -> None:
    plan = await plan_for(*PAIR, edge(3, 2, 3))
    (decision,) = plan.decisions
    assert (decision.verb, decision.subject, decision.score) == ("merge", edge_id(2), 0.65)
    assert decision.reason == ("2 edges between the same ends: extends 0.50 takes in similar 0.30, strength 0.65")
    winner, absorbed = decision.changes
    assert winner.after is not None
    assert winner.before is not None
    assert (winner.before["strength"], winner.after["strength"]) == (0.5, 0.65)
    assert winner.after["explanation"] == "[Merged 2 edges] builds on"
    assert "confidence" not in winner.after  # what does not change is not in the change
    assert (absorbed.id, absorbed.before, absorbed.after) == (
        edge_id(1),
        {"status": "active", "merged_into": None},
        {"status": "merged", "merged_into": str(edge_id(2))},
    )
    compared = {(one.table, one.id): dict(one.before or {}) for one in decision.changes}
    for premise in decision.premises:
        compared.setdefault((premise.table, premise.id), {}).update(premise.must)
    as_seen = {"protected": False, "activation_count": 0}
    assert all(as_seen.items() <= compared["edges", edge_id(number)].items() for number in (1, 2))
    assert compared["nodes", node(1)]["edges_with"]["node"] == str(node(2))


async def test_A13_a_contradiction_goes_to_review_unless_switched_off() -> None:
    edges = (*PAIR, edge(3, 1, 2, 0.1, relation="contradicts"))
    plan = await plan_for(*edges)
    assert plan.decisions == []
    (finding,) = plan.findings
    assert finding.rule == "review"
    assert "contradicts, extends, similar" in finding.text
    assert plan.summary["review"] == 1
    literal = await plan_for(*edges, review_contradictions=False)
    assert len(literal.decisions) == 1


async def test_A18_the_report_counts_edges_before_and_after() -> None:
    plan = await plan_for(*PAIR, edge(3, 1, 2, 0.1, relation="applies"), edge(4, 3, 4), edge(5, 4, 3), edge(6, 7, 8))
    assert plan.summary == {
        "total_before": 6,
        "total_after": 3,
        "edges_merged": 3,
        "review": 0,
        "scope": {"edges": 6},
        "touched": {"edges": 5},
    }


async def test_A19_single_edges_pass_through() -> None:
    plan = await plan_for(edge(1, 1, 2), edge(2, 2, 3))
    assert (plan.decisions, plan.summary["edges_merged"]) == ([], 0)


async def test_merging_what_was_merged_changes_nothing_more() -> None:
    plan = await plan_for(*PAIR)
    winner = plan.decisions[0].changes[0]
    assert winner.after is not None
    assert (await plan_for(with_columns(PAIR[1], winner.after))).decisions == []


@pytest.mark.parametrize(("state", "offered"), [(None, False), (STATE, False), ("in another state", True)])
async def test_P11_a_declined_pair_rests_until_its_edges_change(state: str | None, offered: bool) -> None:
    plan = await plan_for(*PAIR, apart={ENDS: state})
    assert bool(plan.decisions) is offered


async def test_P11_the_decision_tells_pair_and_state() -> None:
    (decision,) = (await plan_for(*PAIR)).decisions
    assert (decision.factors["pair"], decision.factors["state"]) == (list(ENDS), STATE)


async def test_pairs_are_grouped_in_batches_and_read_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_parallel_edges, "READ", 3)
    edges = [edge(10 * n + m, n, n + 50) for n in range(1, 8) for m in (1, 2)]
    plan = await plan_for(*edges, batch=3)
    assert [decision.group for decision in plan.decisions] == [0, 0, 0, 1, 1, 1, 2]
    assert {decision.subject for decision in plan.decisions} == {edge_id(10 * n + 1) for n in range(1, 8)}
    assert all(decision.needs == () for decision in plan.decisions)


async def test_P12_the_result_does_not_depend_on_the_order_of_what_is_read() -> None:
    forward, backward = await plan_for(*PAIR, edge(3, 1, 2)), await plan_for(edge(3, 1, 2), *reversed(PAIR))
    assert forward.decisions == backward.decisions


async def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="batch"):
        Options(batch=0)


def test_A29_targets_are_marked() -> None:
    assert POLICY.metrics is not None
    figures = POLICY.metrics({"edges_merged": 5, "total_before": 100}, {"seconds": 0.1})
    assert (figures["merged_share"]["in_target"], figures["seconds"]["in_target"]) == (False, True)
