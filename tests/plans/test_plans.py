"""The life of a plan: proposed, shown, declined in part, applied, stale, failed, undone, and what is left of it."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import NewEdge, NewMemory
from recollect.plan import Change, DecisionStatus, Draft, Plan, PlanStatus, Risk
from recollect.plans import run
from recollect.plans.sql import plans as kept
from recollect.store.database import Transaction, driver

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=100)


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    """A memory whose clock stands still."""
    memory.core.now = lambda: NOW
    return memory


async def some_nodes(memory: Engine, number: int) -> list[UUID]:
    added = await memory.add_many([NewMemory(text=f"node {place}") for place in range(number)], wait=False)
    return list(added.ids)


async def some_nodes_named(memory: Engine, *names: str) -> list[UUID]:
    return list((await memory.add_many([NewMemory(text=name) for name in names], wait=False)).ids)


async def link(memory: Engine, *pairs: tuple[UUID, UUID], **more: Any) -> list[UUID]:
    """Weak edges, made long ago by the machine."""
    told = {"strength": 0.5, "created_by": "auto", "created_at": LONG_AGO, **more}
    return list(await memory.graph.link_many([NewEdge(source=a, target=b, **told) for a, b in pairs]))


async def weak_triangles(memory: Engine, number: int) -> list[UUID]:
    """Triangles of weak edges: one edge of each may go."""
    made: list[UUID] = []
    nodes = await some_nodes(memory, 3 * number)
    for place in range(0, len(nodes), 3):
        a, b, c = nodes[place : place + 3]
        made += await link(memory, (a, b), (b, c), (c, a))
    return made


async def rows(memory: Engine, table: str) -> list[dict[str, Any]]:
    """Every row of a table in this space: what an exact restoring is compared by."""
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        found = await raw.fetch(f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {table} t ORDER BY 1")
    return [row["row"] for row in found]


async def world(memory: Engine) -> list[list[dict[str, Any]]]:
    return [await rows(memory, table) for table in ("nodes", "edges", "activity", "topics")]


async def save(memory: Engine, draft: Draft, policy: str = "hand") -> Plan:
    plan = draft.plan(policy=policy, title="a plan by hand", now=NOW)
    async with memory.core.transaction(memory.space.id) as db:
        await kept.save(db, plan)
    return plan


def importance(node: UUID, before: float | None, after: float) -> Change:
    return Change(table="nodes", id=node, before={"importance": before}, after={"importance": after})


async def statuses(memory: Engine, plan: UUID) -> list[DecisionStatus]:
    return [one.status for one in (await memory.plans.get(plan)).decisions]


async def test_P01_a_plan_lays_open_what_it_would_change_and_why(graph: Engine) -> None:
    edges = await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    (decision,) = plan.decisions
    assert decision.verb == "prune"
    assert decision.subject in edges
    assert "0.05" in decision.reason
    assert decision.score is not None
    assert decision.score < 0.05
    assert decision.premises
    assert decision.changes[0].before == {"status": "active"}
    assert decision.changes[0].after == {"status": "pruned"}


async def test_P02_showing_writes_nothing_but_the_plan_and_says_what_the_run_does(graph: Engine) -> None:
    await weak_triangles(graph, 5)
    before = await world(graph)
    shown = await graph.plans.propose("prune")
    assert await world(graph) == before
    again = await graph.plans.get(shown.id)
    assert list(again.decisions) == list(shown.decisions)
    outcome = await graph.plans.apply(shown.id)
    gone = {UUID(row["id"]) for row in await rows(graph, "edges") if row["status"] == "pruned"}
    assert gone == {one.subject for one in shown.decisions}
    assert outcome.applied == len(shown.decisions) == 5


async def test_P02_a_plan_that_says_more_than_one_document_holds_is_kept_whole(
    graph: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "LONGEST", 30_000)
    (node,) = await some_nodes(graph, 1)
    draft, long = Draft(), "x" * 9_000
    for number in range(31):
        page = Change(table="nodes", id=uuid4(), before=None, after={"text": f"{number} {long}"})
        draft.decide("import", node, f"page {number}", [page])
    plan = await save(graph, draft)
    async with graph.core.transaction(graph.space.id) as db:
        raw = await driver(db)
        found = await raw.fetch(
            """SELECT decision, number, split_part(after->>'text', ' ', 1)::int AS page FROM changes
                WHERE plan_id = $1 ORDER BY decision""",
            plan.id,
        )
    assert [tuple(row) for row in found] == [(number + 1, 1, number) for number in range(31)]
    assert (await graph.plans.get(plan.id)).counts == {"proposed": 31}


async def test_P02_a_later_decision_sees_an_earlier_one(graph: Engine) -> None:
    (node,) = await some_nodes(graph, 1)
    draft = Draft()
    draft.decide("raise", node, "first", [importance(node, None, 0.4)])
    stored = {"importance": None}
    second = draft.patch("nodes", node, stored, {"importance": 0.6})
    assert second is not None
    assert second.before == {"importance": 0.4}
    assert draft.decide("raise", node, "second", [second]).needs == (1,)


async def test_P03_what_depended_on_a_declined_decision_falls_away(graph: Engine) -> None:
    one, two = await some_nodes(graph, 2)
    draft = Draft()
    draft.decide("raise", one, "first", [importance(one, None, 0.4)])
    draft.decide("raise", one, "needs the first", [importance(one, 0.4, 0.6)])
    draft.decide("raise", two, "alone", [importance(two, None, 0.9)])
    plan = await save(graph, draft)
    outcome = await graph.plans.apply(plan.id, decline=[1])
    assert (outcome.status, outcome.applied, outcome.declined) == (PlanStatus.APPLIED, 1, 2)
    assert (await graph.get(one)).importance is None
    assert (await graph.get(two)).importance == 0.9


async def test_P03_low_risk_applies_by_itself_and_high_risk_waits_in_production(graph: Engine) -> None:
    await weak_triangles(graph, 1)
    tidied = await graph.plans.run("prune")
    assert tidied.outcome is not None
    assert tidied.outcome.applied == 1
    high = replace(tidied.plan, risk=Risk.HIGH)
    assert run.applies_by_itself(graph.core, high)
    graph.core.settings = graph.core.settings.model_copy(update={"production": True})
    assert not run.applies_by_itself(graph.core, high)
    assert run.applies_by_itself(graph.core, tidied.plan)


async def test_P04_a_protection_between_showing_and_applying_makes_the_decision_stale(graph: Engine) -> None:
    await weak_triangles(graph, 3)
    plan = await graph.plans.propose("prune")
    spared = plan.decisions[1].subject
    await graph.graph.protect(spared)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.status is PlanStatus.PARTLY_APPLIED
    assert outcome.applied == 2
    assert outcome.stale == ("2: it is protected now",)
    assert (await graph.graph.edge(spared)).status == "active"
    assert await statuses(graph, plan.id) == [DecisionStatus.APPLIED, DecisionStatus.STALE, DecisionStatus.APPLIED]


async def test_P04_an_edge_used_since_is_no_longer_pruned(graph: Engine) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    await graph.graph.reinforce(plan.decisions[0].subject, "traversal")
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.status, outcome.applied) == (PlanStatus.STALE, 0)
    assert (await graph.graph.edge(plan.decisions[0].subject)).status == "active"


async def test_P04_an_edge_that_became_a_bridge_since_is_kept(graph: Engine) -> None:
    edges = await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    other = next(edge for edge in edges if edge != plan.decisions[0].subject)
    await graph.graph.unlink(other)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.status, outcome.applied) == (PlanStatus.STALE, 0)


@pytest.mark.parametrize("touched", [False, True])
async def test_P04_the_graph_is_looked_at_again_only_when_it_is_not_as_the_plan_saw_it(
    graph: Engine, monkeypatch: pytest.MonkeyPatch, touched: bool
) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    one, other = await some_nodes_named(graph, "x", "y")
    await link(graph, (one, other))
    plan = plan if touched else await graph.plans.propose("prune")
    looked: list[UUID] = []
    waiting = kept.waiting

    async def noted(db: Transaction, plan_id: UUID) -> Any:
        looked.append(plan_id)
        return await waiting(db, plan_id)

    monkeypatch.setattr(kept, "waiting", noted)
    assert (await graph.plans.apply(plan.id)).applied == 1
    assert looked == [plan.id] * touched


async def test_P04_a_journal_is_never_deleted(graph: Engine) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    for table, key in (("plans", "id"), ("decisions", "plan_id"), ("changes", "plan_id")):
        async with graph.core.database.owner() as connection:
            raw = await driver(connection)
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="the journal is never deleted"):
                await raw.execute(f"DELETE FROM {table} WHERE {key} = $1", plan.id)


async def test_P04_stale_drops_out_with_what_needs_it_and_the_rest_of_the_group_stands(graph: Engine) -> None:
    one, two = await some_nodes(graph, 2)
    draft = Draft()
    draft.decide("raise", one, "first", [importance(one, None, 0.4)])
    draft.decide("raise", one, "second", [importance(one, 0.4, 0.6)])
    draft.decide("raise", two, "alone", [importance(two, None, 0.9)])
    plan = await save(graph, draft)
    await graph.edit(one, importance=0.1)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.applied == 1
    assert outcome.stale == ("1: its importance is not what it was", "2: what it needed did not come about")
    assert (await graph.get(one)).importance == 0.1
    assert (await graph.get(two)).importance == 0.9


async def test_P04_a_stale_decision_whose_place_is_taken_too_leaves_the_rest_of_the_group_standing(
    graph: Engine,
) -> None:
    a, b, c = await some_nodes(graph, 3)
    (edge,) = await link(graph, (b, c))
    moves = Change(table="edges", id=edge, before={"source": str(b)}, after={"source": str(a)})
    draft = Draft()
    draft.decide("relink", edge, "its end is another", [moves, importance(c, None, 0.4)])
    draft.decide("raise", b, "alone", [importance(b, None, 0.9)])
    plan = await save(graph, draft)
    await link(graph, (a, c))
    await graph.edit(c, importance=0.1)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.applied, outcome.failed) == (1, ())
    assert outcome.stale == ("1: its importance is not what it was",)
    assert (await graph.get(b)).importance == 0.9


async def test_P04_a_decision_that_needs_a_stale_one_of_another_group_is_stale(graph: Engine) -> None:
    (one,) = await some_nodes(graph, 1)
    draft = Draft()
    draft.decide("raise", one, "first", [importance(one, None, 0.4)], group=0)
    draft.decide("raise", one, "second", [importance(one, 0.4, 0.6)], group=1)
    plan = await save(graph, draft)
    await graph.edit(one, importance=0.1)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.status is PlanStatus.STALE
    assert outcome.stale[1] == "2: it needs decision 1, which is stale"


async def test_P05_P15_a_group_that_is_refused_leaves_no_trace_but_its_record(graph: Engine) -> None:
    a, b, c = await some_nodes(graph, 3)
    await link(graph, (a, b))
    draft = Draft()
    merged = Change(
        table="nodes",
        id=a,
        before={"status": "active", "merged_into": None},
        after={"status": "merged", "merged_into": str(c)},
    )
    draft.decide("merge", a, "leaves its edge behind", [merged], group=0)
    draft.decide("raise", b, "another group", [importance(b, None, 0.9)], group=1)
    plan = await save(graph, draft)
    before = await rows(graph, "edges")
    outcome = await graph.plans.apply(plan.id)
    assert outcome.status is PlanStatus.PARTLY_APPLIED
    assert "which was merged away" in outcome.failed[0]
    assert (await graph.get(a)).status == "active"
    assert (await graph.get(b)).importance == 0.9
    assert await rows(graph, "edges") == before
    (run,) = await graph.plans.runs(plan.id)
    assert (run.status, run.report["failed"]) == ("done", 1)


async def test_P05_a_change_that_the_database_refuses_fails_its_group_alone(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    draft = Draft()
    draft.decide("raise", a, "too much", [importance(a, None, 7.0)], group=0)
    draft.decide("raise", b, "fits", [importance(b, None, 0.7)], group=1)
    plan = await save(graph, draft)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.applied == 1
    assert "refused" in outcome.failed[0]


async def test_P06_an_interrupted_plan_goes_on_where_it_stopped(graph: Engine) -> None:
    await weak_triangles(graph, 6)
    plan = await graph.plans.propose("prune", {"batch": 2})

    class Stopped(Exception):
        pass

    def stop_after_two_groups(done: int, _total: int) -> None:
        if done >= 4:
            raise Stopped

    with pytest.raises(Stopped):
        await graph.plans.apply(plan.id, progress=stop_after_two_groups)
    half = await graph.plans.get(plan.id)
    assert half.status is PlanStatus.PARTLY_APPLIED
    assert [one.status for one in half.decisions].count(DecisionStatus.APPLIED) == 4
    graph.core.now = lambda: NOW + timedelta(minutes=1)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.status, outcome.applied) == (PlanStatus.APPLIED, 2)
    assert [run.status for run in await graph.plans.runs(plan.id)] == ["done", "interrupted"]


async def test_P07_an_interrupted_plan_that_is_undone_is_over(graph: Engine) -> None:
    await weak_triangles(graph, 4)
    before = await world(graph)
    plan = await graph.plans.propose("prune", {"batch": 2})

    def stop(done: int, _total: int) -> None:
        if done == 2:
            raise KeyError("stopped")

    with pytest.raises(KeyError):
        await graph.plans.apply(plan.id, progress=stop)
    await graph.plans.undo(plan.id)
    assert await world(graph) == before
    assert (await graph.plans.get(plan.id)).status is PlanStatus.UNDONE
    with pytest.raises(Conflict):
        await graph.plans.apply(plan.id)


async def test_A23_topics_are_gathered_replaced_and_undone_as_a_plan(graph: Engine) -> None:
    nodes = await some_nodes(graph, 4)
    pairs = list(itertools.pairwise(nodes))
    await link(graph, *pairs, created_at=NOW, source_topic="tag:tea", target_topic="tag:tea")
    edges_before = await rows(graph, "edges")
    await graph.plans.run("topics")
    (topic,) = await rows(graph, "topics")
    assert (topic["key"], len(topic["member_ids"]), topic["internal_edges"]) == ("tag:tea", 4, 3)
    (more,) = await some_nodes_named(graph, "one more")
    await link(graph, (nodes[0], more), created_at=NOW, source_topic="tag:tea", target_topic="tag:tea")
    graph.core.now = lambda: NOW + timedelta(days=14)
    again = await graph.plans.run("topics")
    (later,) = await rows(graph, "topics")
    assert (later["id"], len(later["member_ids"])) == (topic["id"], 5)
    assert later["gathered_at"] != topic["gathered_at"]
    await graph.plans.undo(again.plan.id)
    assert await rows(graph, "topics") == [topic]
    assert [row for row in await rows(graph, "edges") if row in edges_before] == edges_before


async def test_P07_undo_restores_every_row_exactly_and_repeating_it_is_success(graph: Engine) -> None:
    await weak_triangles(graph, 4)
    before = await world(graph)
    plan = await graph.plans.propose("prune")
    await graph.plans.apply(plan.id)
    after = await world(graph)
    undone = await graph.plans.undo(plan.id)
    assert await world(graph) == before
    assert (await graph.plans.get(plan.id)).status is PlanStatus.UNDONE
    assert (await graph.plans.undo(plan.id)).repeated
    await graph.plans.undo(undone.plan_id)
    assert await world(graph) == after
    assert (await graph.plans.get(plan.id)).status is PlanStatus.APPLIED


async def test_P07_a_single_decision_is_undone_with_what_needs_it(graph: Engine) -> None:
    one, two = await some_nodes(graph, 2)
    draft = Draft()
    draft.decide("raise", one, "first", [importance(one, None, 0.4)])
    draft.decide("raise", one, "second", [importance(one, 0.4, 0.6)])
    draft.decide("raise", two, "alone", [importance(two, None, 0.9)])
    plan = await save(graph, draft)
    await graph.plans.apply(plan.id)
    undone = await graph.plans.undo(plan.id, decisions=[1])
    assert undone.applied == 2
    assert (await graph.get(one)).importance is None
    assert (await graph.get(two)).importance == 0.9
    assert (await graph.plans.get(plan.id)).status is PlanStatus.PARTLY_APPLIED
    await graph.plans.undo(plan.id)
    assert (await graph.get(two)).importance is None
    assert (await graph.plans.get(plan.id)).status is PlanStatus.UNDONE


async def test_P07_use_since_never_stands_in_the_way_and_is_kept(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    (strong,) = await link(graph, (a, b), strength=0.5, created_at=NOW)
    (weak,) = await link(graph, (a, b), strength=0.3, relation="extends", created_at=NOW)
    plan = await graph.plans.propose("merge_parallel_edges")
    await graph.plans.apply(plan.id)
    assert (await graph.graph.edge(strong)).strength == 0.65
    await graph.graph.reinforce(strong, "traversal")
    await graph.graph.reinforce(strong, "traversal")
    await graph.plans.undo(plan.id)
    first, second = await graph.graph.edge(strong), await graph.graph.edge(weak)
    assert first.strength == pytest.approx(0.6)
    assert (first.activation_count, first.reinforce_count) == (2, 2)
    assert first.last_activated_at == NOW
    assert (second.status, second.strength, second.activation_count) == ("active", 0.3, 0)


async def test_P07_an_undo_names_the_later_plan_in_its_way_and_changes_nothing(graph: Engine) -> None:
    (node,) = await some_nodes(graph, 1)
    plans: list[UUID] = []
    for before, after in ((None, 0.4), (0.4, 0.6)):
        draft = Draft()
        draft.decide("raise", node, f"to {after}", [importance(node, before, after)])
        plans.append((await save(graph, draft)).id)
        await graph.plans.apply(plans[-1])
    before_undo = await world(graph)
    with pytest.raises(Conflict, match=str(plans[1])):
        await graph.plans.undo(plans[0])
    assert await world(graph) == before_undo
    assert [plan.policy for plan in (await graph.plans.list())[0]] == ["hand", "hand"]
    await graph.plans.undo(plans[1])
    await graph.plans.undo(plans[0])
    assert (await graph.get(node)).importance is None


async def test_P07_an_undo_of_an_undo_of_an_undo_is_an_undo(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    before = await world(graph)
    plan = (await graph.plans.propose("prune")).id
    await graph.plans.apply(plan)
    applied, at, states = await world(graph), plan, []
    for turn in range(4):
        at = (await graph.plans.undo(at)).plan_id
        states.append((await graph.plans.get(plan)).status)
        assert await world(graph) == (applied if turn % 2 else before)
    assert states == ["undone", "applied", "undone", "applied"]
    await graph.plans.undo(at)
    assert set(await statuses(graph, plan)) == {DecisionStatus.UNDONE}
    assert (await graph.plans.undo(plan)).repeated
    assert await world(graph) == before


async def test_P07_what_was_declined_cannot_be_undone_and_is_named(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    plan = await graph.plans.propose("prune")
    await graph.plans.apply(plan.id, decline=[2])
    with pytest.raises(Conflict, match="Decision 2 is declined"):
        await graph.plans.undo(plan.id, decisions=[2])


async def test_P08_a_node_that_a_plan_made_is_archived_by_its_undo(graph: Engine) -> None:
    made = uuid4()
    draft = Draft()
    row = {"kind": "concept", "subtype": "idea", "name": "tea", "metadata": {}, "created_at": NOW.isoformat()}
    draft.decide(
        "create", made, "new", [Change(table="nodes", id=made, before=None, after={**row, "status": "active"})]
    )
    plan = await save(graph, draft)
    await graph.plans.apply(plan.id)
    assert (await graph.get(made)).name == "tea"
    undone = await graph.plans.undo(plan.id)
    assert (await graph.get(made)).status == "archived"
    await graph.plans.undo(undone.plan_id)
    assert (await graph.get(made)).status == "active"


async def test_P08_an_edge_that_a_plan_made_is_gone_after_its_undo(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    made = uuid4()
    draft = Draft()
    row = {"source": str(a), "target": str(b), "relation": "similar", "created_by": "auto"}
    more = {"decay_rate": 0.05, "status": "active", "protected": False, "activation_count": 0, "reinforce_count": 0}
    whole = {**row, **more, "metadata": {}, "created_at": NOW.isoformat(), "strength": 0.8}
    draft.decide("link", made, "near", [Change(table="edges", id=made, before=None, after=whole)])
    before = await world(graph)
    plan = await save(graph, draft)
    await graph.plans.apply(plan.id)
    await graph.graph.reinforce(made)
    await graph.plans.undo(plan.id)
    assert await world(graph) == before


@pytest.mark.parametrize("touch", ["protect", "unlink", "important", "explain"])
async def test_P07_an_edge_that_a_person_touched_since_is_not_taken_away(graph: Engine, touch: str) -> None:
    a, b = await some_nodes_named(graph, "green tea at seven", "green tea at seven o'clock")
    made = uuid4()
    row = {"id": made, "source": a, "target": b, "relation": "similar", "strength": 0.9, "created_by": "auto"}
    whole = {**{name: str(value) for name, value in row.items()}, "strength": 0.9, "created_at": NOW.isoformat()}
    draft = Draft()
    draft.decide("link", made, "near", [Change(table="edges", id=made, before=None, after=whole)])
    plan = await save(graph, draft)
    await graph.plans.apply(plan.id)
    await graph.graph.reinforce(made)  # use never stands in the way
    if touch == "explain":
        await link(graph, (a, b), strength=None, explanation="the same cup")
    elif touch == "important":
        await graph.graph.reinforce(made, "important")
    else:
        await getattr(graph.graph, touch)(made)
    before = await rows(graph, "edges")
    with pytest.raises(Conflict, match="was changed since by the plan") as refused:
        await graph.plans.undo(plan.id)
    assert await rows(graph, "edges") == before
    later = str(refused.value).partition("by the plan ")[2][:36]
    await graph.plans.undo(UUID(later))
    assert (await graph.plans.undo(plan.id)).applied == 1
    assert not await rows(graph, "edges")


async def test_P09_the_journal_tells_what_happened_to_an_edge(graph: Engine) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    subject = plan.decisions[0].subject
    await graph.plans.apply(plan.id)
    graph.core.now = lambda: NOW + timedelta(hours=1)
    await graph.plans.undo(plan.id)
    entries = await graph.history(subject)
    assert [(one.verb, one.policy) for one in entries] == [("add", ""), ("prune", "prune_weak_edges"), ("undo", "undo")]
    assert entries[1].plan_id == plan.id
    assert entries[1].before == {"status": "active"}
    assert entries[2].after == {"status": "active"}


async def test_P10_a_plan_that_touches_too_much_waits_whatever_its_risk(graph: Engine) -> None:
    await weak_triangles(graph, 17)
    tidied = await graph.plans.run("prune")
    assert tidied.outcome is None
    assert tidied.plan.risk is Risk.HIGH
    assert "17 of 51 links" in tidied.notes[0]
    assert (await graph.plans.get(tidied.plan.id)).status is PlanStatus.PROPOSED
    assert (await graph.plans.apply(tidied.plan.id)).applied == 17


async def test_P10_small_graphs_have_no_brake(graph: Engine) -> None:
    await weak_triangles(graph, 16)
    assert (await graph.plans.run("prune")).outcome is not None


async def parallel(graph: Engine) -> tuple[UUID, UUID]:
    a, b = await some_nodes(graph, 2)
    (first,) = await link(graph, (a, b), strength=0.5, created_at=NOW)
    (second,) = await link(graph, (a, b), strength=0.3, relation="extends", created_at=NOW)
    return first, second


@pytest.mark.parametrize("absorbed_is", ["walked", "linked by hand", "surer"])
async def test_P04_A16_what_an_absorbed_edge_gained_since_is_not_lost(graph: Engine, absorbed_is: str) -> None:
    _, second = await parallel(graph)
    plan = await graph.plans.propose("merge-edges")
    edge = await graph.graph.edge(second)
    if absorbed_is == "walked":
        await graph.graph.reinforce(second, "traversal")
    elif absorbed_is == "linked by hand":
        await graph.graph.link(edge.source, edge.target, "extends")
    else:
        await link(graph, (edge.source, edge.target), relation="extends", confidence=0.9, strength=None)
    before = await rows(graph, "edges")
    assert len((await graph.plans.apply(plan.id)).stale) == 1
    assert await rows(graph, "edges") == before
    again = await graph.plans.propose("merge-edges")
    assert (await graph.plans.apply(again.id)).applied == 1


async def test_P11_a_declined_merge_is_not_offered_again_until_its_time_or_a_change(graph: Engine) -> None:
    await parallel(graph)
    plan = await graph.plans.propose("merge_parallel_edges")
    await graph.plans.decline(plan.id, [1])
    assert (await graph.plans.get(plan.id)).status is PlanStatus.DECLINED
    assert not (await graph.plans.propose("merge_parallel_edges")).decisions
    graph.core.now = lambda: NOW + timedelta(days=31)
    assert (await graph.plans.propose("merge_parallel_edges")).decisions


async def test_P11_a_change_of_either_side_offers_a_declined_merge_again(graph: Engine) -> None:
    first, _ = await parallel(graph)
    plan = await graph.plans.propose("merge_parallel_edges")
    await graph.plans.decline(plan.id, [1])
    ends = await graph.graph.edge(first)
    await link(graph, (ends.source, ends.target), relation="supports", created_at=NOW)
    assert (await graph.plans.propose("merge_parallel_edges")).decisions


async def test_P11_never_is_for_good(graph: Engine) -> None:
    first, _ = await parallel(graph)
    plan = await graph.plans.propose("merge_parallel_edges")
    await graph.plans.decline(plan.id, [1], never=True)
    ends = await graph.graph.edge(first)
    await link(graph, (ends.source, ends.target), relation="supports", created_at=NOW)
    graph.core.now = lambda: NOW + timedelta(days=400)
    assert not (await graph.plans.propose("merge_parallel_edges")).decisions


async def test_P11_a_no_said_while_applying_can_become_a_never(graph: Engine) -> None:
    nodes = await some_nodes(graph, 4)
    for a, b in itertools.pairwise(nodes):
        await link(graph, (a, b))
        await link(graph, (a, b), relation="extends")
    plan = await graph.plans.propose("merge-edges")
    await graph.plans.apply(plan.id, decline=[2])
    await graph.plans.decline(plan.id, [2], never=True)
    assert (await graph.plans.get(plan.id)).status is PlanStatus.APPLIED
    graph.core.now = lambda: NOW + timedelta(days=400)
    assert not (await graph.plans.propose("merge-edges")).decisions
    with pytest.raises(Conflict, match="Decision 1 is applied"):
        await graph.plans.decline(plan.id, [1])
    with pytest.raises(Conflict, match="cannot be declined"):
        await graph.plans.decline(plan.id)


async def test_A07_what_a_person_links_again_is_user_made_and_never_pruned(graph: Engine) -> None:
    edges = await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    (doomed,) = [one.subject for one in plan.decisions]
    edge = await graph.graph.edge(doomed)
    assert await graph.graph.link_many([NewEdge(source=edge.source, target=edge.target, relation=edge.relation)])
    assert (await graph.graph.edge(doomed)).created_by == "user"
    assert (await graph.plans.apply(plan.id)).stale == ("1: it was made by a person",)
    assert doomed not in {one.subject for one in (await graph.plans.propose("prune")).decisions}
    assert doomed in edges


async def test_P13_progress_is_told_group_by_group(graph: Engine) -> None:
    await weak_triangles(graph, 5)
    plan = await graph.plans.propose("prune", {"batch": 2})
    seen: list[tuple[int, int]] = []
    outcome = await graph.plans.apply(plan.id, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert outcome.run_id is not None
    assert (await graph.plans.get_run(outcome.run_id)).report["done"] == 5


async def test_P14_every_run_leaves_a_report(graph: Engine) -> None:
    await weak_triangles(graph, 3)
    plan = await graph.plans.propose("prune")
    await graph.graph.protect(plan.decisions[0].subject)
    outcome = await graph.plans.apply(plan.id, decline=[2])
    assert outcome.run_id is not None
    report = (await graph.plans.get_run(outcome.run_id)).report
    told = {name: report[name] for name in ("planned", "applied", "stale", "declined", "failed")}
    assert told == {"planned": 3, "applied": 1, "stale": 1, "declined": 1, "failed": 0}
    assert report["seconds"] > 0
    assert all({"value", "target", "in_target"} <= set(one) for one in report["metrics"].values())


async def test_applying_twice_is_applying_once(graph: Engine) -> None:
    await weak_triangles(graph, 2)
    plan = await graph.plans.propose("prune")
    await graph.plans.apply(plan.id)
    after = await world(graph)
    again = await graph.plans.apply(plan.id)
    assert again.repeated
    assert await world(graph) == after


async def test_a_premise_on_a_row_that_is_not_there_is_stale(graph: Engine) -> None:
    (node,) = await some_nodes(graph, 1)
    draft = Draft()
    look = draft.look()
    look.finds("nodes", uuid4(), status="active")
    draft.decide("raise", node, "needs another", [importance(node, None, 0.4)], look=look)
    plan = await save(graph, draft)
    assert (await graph.plans.apply(plan.id)).stale == ("1: it is no longer there",)


async def bad_calls(graph: Engine, plan: UUID) -> Sequence[tuple[Any, type[Exception]]]:
    return [
        (graph.plans.apply(uuid4()), NotFound),
        (graph.plans.get("abcd1234"), NotFound),
        (graph.plans.undo(plan), Conflict),
        (graph.plans.decline(plan, [99]), InvalidInput),
        (graph.plans.apply(plan, decline=[99]), InvalidInput),
        (graph.plans.propose("tidy_everything"), InvalidInput),
        (graph.plans.propose("prune", {"threshhold": 0.1}), InvalidInput),
        (graph.plans.propose("prune", {"threshold": 7}), InvalidInput),
        (graph.plans.propose("prune", {"threshold": "much"}), InvalidInput),
        (graph.plans.list(limit=0), InvalidInput),
        (graph.plans.list(status="finished"), InvalidInput),
        (graph.plans.list(policy="nosuch"), InvalidInput),
    ]


async def test_bad_input_is_one_clear_error_and_changes_nothing(graph: Engine) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    before = await world(graph)
    for call, kind in await bad_calls(graph, plan.id):
        with pytest.raises(kind):
            await call
    assert await world(graph) == before
    assert (await graph.plans.get(plan.id)).status is PlanStatus.PROPOSED


async def test_a_plan_of_another_space_is_not_there(graph: Engine, settings: Any) -> None:
    await weak_triangles(graph, 1)
    plan = await graph.plans.propose("prune")
    other = await graph.in_space("default")
    for call in (other.plans.get(plan.id), other.plans.apply(plan.id), other.plans.undo(plan.id)):
        with pytest.raises(NotFound):
            await call
