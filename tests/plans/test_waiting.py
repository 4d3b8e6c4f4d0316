"""Plans that wait: what is shown of them is true (P22), a no can be taken back (P23), there is one at a time (P24)."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.plan import DecisionStatus, Draft, Plan, PlanStatus
from recollect.schedules import run as scheduled
from recollect.schedules.sql import schedules
from tests.plan_support import TWINS
from tests.plans.test_plans import NOW, graph, importance, link, save, some_nodes, statuses, weak_triangles, world

pytestmark = pytest.mark.anyio
__all__ = ["graph"]


class Killed(Exception):
    """Nothing more is done, as after kill -9: whatever was committed stays."""


async def broken_off(memory: Engine, plan: UUID, after: int) -> None:
    """Apply a plan, and be killed when so many of its decisions are through."""

    def die(done: int, _total: int) -> None:
        if done >= after:
            raise Killed

    with pytest.raises(Killed):
        await memory.plans.apply(plan, progress=die)


async def in_six_groups(memory: Engine) -> Plan:
    await weak_triangles(memory, 6)
    return await memory.plans.propose("prune", {"batch": 1})


# -- P22


@pytest.fixture
def groups_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group in a transaction of its own, so that there is something to break off between."""
    monkeypatch.setattr("recollect.plans.apply.MOST_TOGETHER", 1)


@pytest.mark.usefixtures("groups_alone")
async def test_P22_what_is_shown_of_a_plan_that_was_broken_off_is_counted_from_its_decisions(graph: Engine) -> None:
    plan = await in_six_groups(graph)
    await broken_off(graph, plan.id, after=4)
    applied = (await statuses(graph, plan.id)).count(DecisionStatus.APPLIED)
    assert 0 < applied < 6
    shown = await graph.plans.show(plan.id)
    listed, _ = await graph.plans.list(status="partly_applied")
    for seen in (shown, *listed, await graph.plans.get(plan.id, decisions=False)):
        assert seen.id == plan.id
        assert (seen.status, seen.counts) == (PlanStatus.PARTLY_APPLIED, {"applied": applied, "proposed": 6 - applied})
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.status, outcome.applied) == (PlanStatus.APPLIED, 6 - applied)


@pytest.mark.usefixtures("groups_alone")
async def test_P22_a_plan_that_was_broken_off_at_its_very_end_is_applied(graph: Engine) -> None:
    plan = await in_six_groups(graph)
    await broken_off(graph, plan.id, after=6)
    assert (await graph.plans.get(plan.id)).status is PlanStatus.APPLIED
    assert (await graph.plans.apply(plan.id)).repeated
    listed, _ = await graph.plans.list(status="applied")
    assert [one.id for one in listed] == [plan.id]


@pytest.mark.usefixtures("groups_alone")
async def test_P22_a_scheduled_run_that_finished_an_older_plan_reports_that(graph: Engine) -> None:
    graph.core.settings = graph.core.settings.model_copy(update={"gate_min_edges": 0, "gate_min_days": 0})
    await weak_triangles(graph, 6)
    options = {"batch": 1}
    plan = await graph.plans.propose("prune", options, created_by="schedule")
    await broken_off(graph, plan.id, after=4)
    done = (await statuses(graph, plan.id)).count(DecisionStatus.APPLIED)
    await scheduled.register(graph.core)
    async with graph.core.database.owner() as connection:
        due = await schedules.get(connection, graph.space.id, plan.policy)
    graph.core.now = lambda: NOW + timedelta(days=30)
    ran = await scheduled.run(graph.core, due)
    assert ran is not None
    assert f"finished the plan {str(plan.id)[:8]}" in ran.outcome
    assert f"{6 - done} decision" in ran.outcome
    assert (ran.report["applied"], ran.report["finished"]) == (6 - done, [str(plan.id)])


# -- P23


async def test_P23_a_declined_decision_is_accepted_again_while_the_plan_waits(graph: Engine) -> None:
    await weak_triangles(graph, 3)
    before, plan = await world(graph), await graph.plans.propose("prune")
    declined = await graph.plans.decline(plan.id, [2])
    assert declined.counts == {"declined": 1, "proposed": 2}
    accepted = await graph.plans.accept(plan.id, [2])
    assert accepted.counts == {"proposed": 3}
    assert (await graph.plans.apply(plan.id)).applied == 3
    with pytest.raises(Conflict, match="applied"):
        await graph.plans.accept(plan.id)
    await graph.undo(plan.id)
    assert await world(graph) == before


async def test_P23_what_it_needs_and_what_fell_with_it_comes_back_too(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    draft = Draft()
    draft.decide("edit", a, "first", [importance(a, None, 0.1)])
    draft.decide("edit", a, "second, which needs the first", [importance(a, 0.1, 0.2)])
    draft.decide("edit", a, "third, which needs the second", [importance(a, 0.2, 0.3)])
    draft.decide("edit", b, "another", [importance(b, None, 0.4)])
    plan = await save(graph, draft)
    waits, declined = DecisionStatus.PROPOSED, DecisionStatus.DECLINED
    await graph.plans.decline(plan.id, [1, 4])
    assert await statuses(graph, plan.id) == [declined] * 4
    await graph.plans.accept(plan.id, [1])
    assert await statuses(graph, plan.id) == [waits, waits, waits, declined]
    await graph.plans.decline(plan.id, [1])
    await graph.plans.accept(plan.id, [2])
    assert await statuses(graph, plan.id) == [waits, waits, waits, declined]
    assert (await graph.plans.apply(plan.id)).applied == 3


async def test_P23_a_plan_declined_as_a_whole_waits_again(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    plan = await graph.plans.propose("prune")
    assert (await graph.plans.decline(plan.id)).status is PlanStatus.DECLINED
    assert (await graph.plans.accept(plan.id)).status is PlanStatus.PROPOSED
    await graph.plans.decline(plan.id)
    newer = await graph.plans.propose("prune")
    with pytest.raises(Conflict, match=str(newer.id)):
        await graph.plans.accept(plan.id)
    with pytest.raises(InvalidInput, match="no decision 99"):
        await graph.plans.accept(newer.id, [99])


async def test_P23_a_pair_that_was_to_stay_two_may_be_offered_again(graph: Engine) -> None:
    text = "what carries consciousness, whatever it is made of"
    one = await graph.concepts.add("substrate", text=text)
    other = await graph.concepts.add("carrier", text=text)
    plan = await graph.plans.propose("duplicates", TWINS)
    await graph.plans.decline(plan.id, [1], never=True)
    assert len(await graph.concepts.kept_apart()) == 1
    await graph.plans.accept(plan.id)
    assert await graph.concepts.kept_apart() == []
    assert (await graph.plans.apply(plan.id)).applied == 1
    assert (await graph.concepts.get(other.concept.id)).id == (await graph.concepts.get(one.concept.id)).id


# -- P24


async def test_P24_a_run_that_found_nothing_leaves_a_run_and_no_plan(graph: Engine) -> None:
    nodes = await some_nodes(graph, 3)
    await link(graph, (nodes[0], nodes[1]))  # a bridge: it is seen, and left alone
    plan = await graph.plans.propose("prune")
    assert (await graph.plans.list())[0] == []
    (look,) = await graph.plans.runs()
    assert (look.action, look.status, look.id) == ("look", "done", plan.id)
    shown = await graph.plans.show(str(plan.id)[:8])
    assert (shown.policy, shown.title, list(shown.findings)) == (plan.policy, plan.title, list(plan.findings))
    assert shown.findings
    assert (await graph.plans.apply(plan.id)).applied == 0
    tidied = await graph.plans.run("prune")
    assert tidied.notes == ("There is nothing to do.",)
    assert len(await graph.plans.runs()) == 2


async def test_P24_a_new_proposal_takes_the_place_of_the_one_that_waits(graph: Engine) -> None:
    await weak_triangles(graph, 3)
    first = await graph.plans.propose("prune")
    await graph.plans.decline(first.id, [2])
    (no,) = [one.subject for one in first.decisions if one.number == 2]
    await weak_triangles(graph, 1)
    second = await graph.plans.propose("prune")
    assert {one.subject for one in second.decisions if one.status is DecisionStatus.DECLINED} == {no}
    assert second.counts == {"proposed": len(second.decisions) - 1, "declined": 1}
    waiting, _ = await graph.plans.list(status="proposed")
    assert [one.id for one in waiting] == [second.id]
    with pytest.raises(Conflict, match=str(second.id)):
        await graph.plans.apply(first.id)
    with pytest.raises(Conflict, match=str(second.id)):
        await graph.plans.accept(first.id)
    third = await graph.plans.propose("prune")
    assert {one.subject for one in third.decisions if one.status is DecisionStatus.DECLINED} == {no}
    outcome = await graph.plans.apply(third.id)
    assert (outcome.applied, outcome.declined) == (len(second.decisions) - 1, 1)


async def test_P24_other_options_and_other_policies_wait_beside_it_and_an_approved_plan_stays(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    plain = await graph.plans.propose("prune")
    other = await graph.plans.propose("prune", {"threshold": 0.04})
    assert await _waiting(graph) == {plain.id, other.id}
    await graph.plans.approve(plain.id)
    again = await graph.plans.propose("prune")
    assert await _waiting(graph) == {other.id, again.id}
    assert (await graph.plans.apply(plain.id)).applied == len(plain.decisions)


async def test_P24_what_was_declined_is_not_applied_by_the_next_run(graph: Engine) -> None:
    edges = await weak_triangles(graph, 2)
    first = await graph.plans.propose("prune")
    no = first.decisions[1].subject
    await graph.plans.decline(first.id, [2])
    for edge in edges:  # so that nothing else may go
        if edge != no:
            await graph.graph.protect(edge)
    tidied = await graph.plans.run("prune")
    assert tidied.outcome is None
    assert "declined before" in tidied.notes[0]
    assert (await graph.graph.edge(no)).status == "active"
    assert await _waiting(graph) == set()
    await graph.plans.accept(tidied.plan.id)
    assert (await graph.plans.apply(tidied.plan.id)).applied == 1


async def test_P24_two_that_propose_at_once_leave_one_waiting(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    made = await asyncio.gather(*(graph.plans.propose("prune") for _ in range(4)))
    assert len(await _waiting(graph)) == 1
    assert await _waiting(graph) <= {plan.id for plan in made}


async def test_P24_concepts_that_wait_to_be_merged_are_found_by_every_proposal(graph: Engine) -> None:
    """The pass that a replaced plan made is no pass: what it found and nobody decided must be found again."""
    text = "what carries consciousness, whatever it is made of"
    for name in ("substrate", "carrier"):
        await graph.concepts.add(name, text=text)
    for days in range(4):
        graph.core.now = lambda days=days: NOW + timedelta(days=10 * days)  # type: ignore[misc]
        plan = await graph.plans.propose("duplicates", TWINS)
        assert len(plan.decisions) == 1
    await graph.plans.apply(plan.id)
    graph.core.now = lambda: NOW + timedelta(days=50)
    for _ in range(2):
        assert not (await graph.plans.propose("duplicates", TWINS)).decisions
    shown = await graph.plans.show((await graph.plans.propose("duplicates", TWINS)).id)
    assert shown.summary["compared"] == 0


async def _waiting(memory: Engine) -> set[UUID]:
    return {plan.id for plan in (await memory.plans.list(status="proposed"))[0]}
