"""P17: no removal leaves a node alone or splits what hung together, whoever takes out what at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest

from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.errors import Conflict
from recollect.model import NewMemory
from recollect.plans.sql import locks
from recollect.store.database import Transaction
from tests.plan_support import NOW, TWINS, at, edge_rows, link, some_concepts, some_nodes, unlink, without_edges
from tests.plans.test_P15_kinds_meet import HANGING
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio

Meanwhile = Callable[[Engine, list[UUID], list[UUID]], Awaitable[object]]


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    at(memory, NOW)
    return memory


async def two_squares(graph: Engine) -> tuple[list[UUID], list[UUID]]:
    """Two squares of weak edges: of each, one edge may go. The first edge of the plan goes first."""
    nodes = await some_nodes(graph, 8)
    edges: list[UUID] = []
    for place in (0, 4):
        a, b, c, d = nodes[place : place + 4]
        for number, pair in enumerate(((a, b), (b, c), (c, d), (d, a))):
            edges += await link(graph, pair, strength=0.001 * (place + number + 1))
    return nodes, edges


async def unlinked(graph: Engine, _nodes: list[UUID], edges: list[UUID]) -> None:
    await unlink(graph, edges[5])  # beside the edge that is about to go


async def forgotten(graph: Engine, nodes: list[UUID], _edges: list[UUID]) -> None:
    await graph.forget(nodes[6])


@pytest.mark.parametrize("meanwhile", [unlinked, forgotten])
async def test_P17_what_is_taken_out_between_two_groups_is_seen_by_the_next(
    graph: Engine, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, edges = await two_squares(graph)
    plan = await graph.plans.propose("prune", {"batch": 1})
    assert [one.subject for one in plan.decisions] == [edges[0], edges[4]]

    async def before_the_second_group(times: int) -> None:
        if times == 2:
            await meanwhile(graph, nodes, edges)

    before_the_graph_is_held(monkeypatch, before_the_second_group)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.applied == 1
    assert len(outcome.stale) == 1
    living = [node for node in nodes if (await graph.get(node)).status == "active"]
    assert await without_edges(graph, living) == []


async def two_twins(graph: Engine) -> tuple[list[UUID], list[UUID]]:
    """Two pairs of concepts that are the same, and one that each of them is linked with; the links of the pairs."""
    twins = []
    for place, name in enumerate(("substrate", "carrier", "infusion", "brew")):
        at(graph, NOW - timedelta(hours=4 - place))  # the older of two stays
        text = "what carries it" if place < 2 else "hot leaves"
        twins.append((await graph.concepts.add(name, text=text)).concept.id)
    at(graph, NOW)
    (hub,) = await some_concepts(graph, "Cossacks")
    return [*twins, hub], await link(graph, *((one, hub) for one in twins))


async def link_gone(graph: Engine, _nodes: list[UUID], edges: list[UUID]) -> None:
    await unlink(graph, edges[3])


async def link_come(graph: Engine, nodes: list[UUID], _edges: list[UUID]) -> None:
    await link(graph, (nodes[3], nodes[0]), relation="extends")


@pytest.mark.parametrize("meanwhile", [link_gone, link_come])
async def test_P17_a_node_merge_sees_what_was_linked_and_unlinked_between_two_groups(
    graph: Engine, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, edges = await two_twins(graph)
    plan = await graph.plans.propose("duplicates", TWINS)
    assert {one.subject for one in plan.decisions} == {nodes[1], nodes[3]}
    assert [one.group for one in plan.decisions] == [0, 1]
    last = [one.subject for one in plan.decisions].index(nodes[3])
    monkeypatch.setattr("recollect.plans.apply.MOST_TOGETHER", 1)

    async def before_its_group(times: int) -> None:
        if times == last + 1:
            await meanwhile(graph, nodes, edges)

    before_the_graph_is_held(monkeypatch, before_its_group)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.applied, len(outcome.stale)) == (1, 1)
    assert (await graph.get(nodes[3])).id == nodes[3]
    assert (await graph.get(nodes[1])).id == nodes[0]
    assert HANGING not in (await graph.verify()).faults  # of all spaces, and other tests leave some behind


def before_the_graph_is_held(monkeypatch: pytest.MonkeyPatch, do: Callable[[int], Awaitable[None]]) -> None:
    """Whoever is about to hold the graph alone comes second; `do` is told which time it is, and does not count."""
    hold, times, is_doing = locks.hold_graph_alone, 0, False

    async def after_somebody_else(db: Transaction) -> int:
        nonlocal times, is_doing
        if not is_doing:
            times, is_doing = times + 1, True
            await do(times)
            is_doing = False
        return await hold(db)

    monkeypatch.setattr(locks, "hold_graph_alone", after_somebody_else)


async def test_P17_an_undo_leaves_alone_what_was_unlinked_right_before_it(
    graph: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parallel edges became one; as that is taken back, somebody unlinks the one: only the other comes back."""
    a, b = await some_nodes(graph, 2)
    kept, absorbed = *await link(graph, (a, b), strength=0.9), *await link(graph, (a, b), relation="extends")
    plan = await graph.plans.propose("merge-edges")
    await graph.plans.apply(plan.id)

    async def somebody_unlinks(times: int) -> None:
        if times == 1:
            await unlink(graph, kept)

    before_the_graph_is_held(monkeypatch, somebody_unlinks)
    await graph.plans.undo(plan.id)
    found = await edge_rows(graph)
    assert (found[kept]["status"], found[absorbed]["status"]) == ("pruned", "active")


async def test_P17_an_undo_sees_that_the_same_was_unlinked_right_before_it(
    graph: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unlinking that was taken back is brought again, as somebody else unlinks: that one is named."""
    a, b = await some_nodes(graph, 2)
    (edge,) = await link(graph, (a, b))
    undo = (await graph.plans.undo(await unlink(graph, edge))).plan_id
    other: list[UUID] = []

    async def somebody_unlinks(times: int) -> None:
        if times == 1:
            other.append(await unlink(graph, edge))

    before_the_graph_is_held(monkeypatch, somebody_unlinks)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo)
    assert str(other[0]) in refused.value.message
    assert (await graph.graph.edge(edge)).status == "pruned"


async def merging(graph: Engine, nodes: list[UUID]) -> object:
    return await graph.concepts.merge(nodes[8], nodes[9])


async def taking_back(graph: Engine, _nodes: list[UUID]) -> object:
    return await graph.plans.undo((await graph.plans.list(status="applied"))[0][0].id)


@pytest.mark.parametrize("meanwhile", [merging, taking_back])
async def test_P17_a_node_merge_and_an_undo_wait_for_the_last_group_of_a_pruning(
    graph: Engine, meanwhile: Callable[[Engine, list[UUID]], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take their turn, whoever they are: so they cannot come between two groups, and all of it is done."""
    nodes, edges = await two_squares(graph)
    nodes += await some_concepts(graph, "Anna Karenina", "Bezukhov")
    await link(graph, (nodes[9], nodes[0]), strength=1.0)
    (spare,) = await link(graph, (nodes[8], nodes[4]), relation="extends", strength=1.0)
    await unlink(graph, spare)
    plan = await graph.plans.propose("prune", {"batch": 1})
    assert [one.subject for one in plan.decisions] == [edges[0], edges[4]]
    monkeypatch.setattr("recollect.plans.apply.MOST_TOGETHER", 1)
    others: list[asyncio.Task[object]] = []

    async def somebody_elsewhere(times: int) -> None:
        if times == 2:
            others.append(asyncio.create_task(elsewhere(graph, lambda there: meanwhile(there, nodes))))
            await waiting_for_a_lock(graph, 1)

    before_the_graph_is_held(monkeypatch, somebody_elsewhere)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.applied, outcome.stale) == (2, ())
    await others[0]
    assert await without_edges(graph, nodes[:8]) == []
    assert HANGING not in (await graph.verify()).faults  # of all spaces, and other tests leave some behind


async def elsewhere(graph: Engine, do: Callable[[Engine], Awaitable[object]]) -> object:
    """As another process would, which knows nothing of what is done here."""
    there = Engine(graph.settings)
    there._core = Core(settings=graph.core.settings, database=graph.core.database)
    there._core.now = graph.core.now
    try:
        return await do(await there.in_space(graph.space.slug))
    finally:
        await there.core.close()


async def test_P17_a_group_waits_for_who_takes_something_out_and_looks_again(graph: Engine) -> None:
    nodes, edges = await two_squares(graph)
    plan = await graph.plans.propose("prune", {"batch": 1})
    async with graph.core.transaction(graph.space.id) as db:
        await locks.hold_graph(db)  # nobody takes anything out for now
        removing = asyncio.create_task(graph.graph.unlink(edges[1]))
        await waiting_for_a_lock(graph, 1)
        applying = asyncio.create_task(graph.plans.apply(plan.id))
        await waiting_for_a_lock(graph, 2)
    await removing
    outcome = await applying
    assert [one.split(":")[0] for one in outcome.stale] == ["1"]
    assert await without_edges(graph, nodes) == []


async def waiting_for_a_lock(graph: Engine, number: int) -> None:
    """Until so many wait for a lock of this kind."""

    async def are_waiting() -> bool:
        async with graph.core.database.alone() as raw:
            found = await raw.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(found) >= number

    await until_it_holds(are_waiting)


async def test_P17_an_edge_with_an_archived_end_is_stale_and_stays(graph: Engine) -> None:
    """Both ends would be left without an edge once the archived one comes back."""
    nodes, edges = await two_squares(graph)
    plan = await graph.plans.propose("prune")
    await graph.forget(nodes[0])
    outcome = await graph.plans.apply(plan.id)
    assert "1: one of its ends is no longer active" in outcome.stale
    assert (await graph.graph.edge(edges[0])).status == "active"


async def test_P17_nobody_who_asks_waits_for_the_graph(graph: Engine) -> None:
    await graph.add_many([NewMemory(text="Linh prefers tea"), NewMemory(text="Linh lives in Huế")])
    async with graph.core.transaction(graph.space.id) as db:
        await locks.hold_graph_alone(db)
        found = await graph.recall("what does Linh prefer?")
        await graph.add("Linh has a cat", wait=False)
    assert len(found) > 0


async def test_P17_who_adds_waits_for_who_takes_out_and_not_for_others_who_add(graph: Engine) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    async with graph.core.transaction(graph.space.id) as db:
        await locks.hold_graph(db)
        await link(graph, (a, b))  # at once
    async with graph.core.transaction(graph.space.id) as db:
        await locks.hold_graph_alone(db)
        linking = asyncio.create_task(link(graph, (b, c)))
        removing = asyncio.create_task(graph.forget(a))
        await waiting_for_a_lock(graph, 2)
        assert not linking.done()
        assert not removing.done()
    await asyncio.gather(linking, removing)
