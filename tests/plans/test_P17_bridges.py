"""P17: no removal leaves a node alone or splits what hung together, whoever takes out what at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.model import NewMemory
from recollect.plans.sql import locks
from recollect.store.database import Transaction
from tests.plan_support import NOW, at, link, some_concepts, some_nodes, unlink, without_edges
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
    hold, times = locks.hold_graph_alone, 0

    async def after_somebody_else(db: Transaction) -> int:
        nonlocal times
        times += 1
        if times == 2:  # the second group is about to be written
            await meanwhile(graph, nodes, edges)
        return await hold(db)

    monkeypatch.setattr(locks, "hold_graph_alone", after_somebody_else)
    outcome = await graph.plans.apply(plan.id)
    assert outcome.applied == 1
    assert len(outcome.stale) == 1
    living = [node for node in nodes if (await graph.get(node)).status == "active"]
    assert await without_edges(graph, living) == []


async def test_P17_a_group_waits_for_who_takes_something_out_and_looks_again(graph: Engine) -> None:
    nodes, edges = await two_squares(graph)
    plan = await graph.plans.propose("prune", {"batch": 1})
    async with graph.core.transaction(graph.space.id) as db:
        await locks.hold_graph(db)  # nobody takes anything out for now
        removing = asyncio.create_task(graph.graph.unlink(edges[1]))
        await waiting_for_the_graph(graph, 1)
        applying = asyncio.create_task(graph.plans.apply(plan.id))
        await waiting_for_the_graph(graph, 2)
    await removing
    outcome = await applying
    assert [one.split(":")[0] for one in outcome.stale] == ["1"]
    assert await without_edges(graph, nodes) == []


async def waiting_for_the_graph(graph: Engine, number: int) -> None:
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
        found = await graph.recall("what does Linh drink?")
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
        for _ in range(3):
            await asyncio.sleep(0)
        assert not linking.done()
        assert not removing.done()
    await asyncio.gather(linking, removing)
