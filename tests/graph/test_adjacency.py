"""The graph kept in memory is the graph in the database, whoever writes to it, and however their transactions cross."""

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.graph import adjacency as module
from recollect.graph.adjacency import Adjacencies, walk
from recollect.graph.rules.adjacency import Adjacency
from recollect.graph.rules.spread import Reached, spread_over
from recollect.model import NewEdge

pytestmark = pytest.mark.anyio

ADD = """INSERT INTO edges (space_id, id, source, target, relation, strength)
         VALUES ($1, gen_random_uuid(), $2, $3, $4, $5) RETURNING id"""


@pytest.fixture
async def ids(memory: Engine) -> list[UUID]:
    """Six memories in a row, each linked with the next."""
    made = [(await memory.add(f"stone number {n}", wait=False)).id for n in range(6)]
    await memory.graph.link_many([NewEdge(source=a, target=b) for a, b in itertools.pairwise(made)])
    return made


@asynccontextmanager
async def somebody_else(memory: Engine) -> AsyncIterator[asyncpg.Connection]:
    """Another connection to the same database, the owner's own."""
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    try:
        yield connection
    finally:
        await connection.close()


async def kept(memory: Engine) -> Adjacency:
    async with memory.core.database.snapshot(memory.space.id) as db:
        return await memory.core.adjacencies.loaded(db)


async def current(memory: Engine) -> Adjacency | None:
    async with memory.core.search(memory.space.id) as db:
        return await memory.core.adjacencies.current(db)


async def pairs(memory: Engine, ids: Sequence[UUID]) -> set[tuple[int, int]]:
    """The edges that the kept graph has, by the places of their ends."""
    found = await current(memory)
    assert found is not None
    numbers = {id_: place for place, id_ in enumerate(ids)}
    walked = await _spread(memory, ids)
    assert walked.how.startswith("in memory")
    known = set()
    for id_ in ids:
        for one in spread_over(found, {id_: 1.0}, memory.core.now(), hops=1, least=0.0).reached().values():
            if one.hops:
                a, b = numbers[one.path[0]], numbers[one.path[1]]
                known.add((min(a, b), max(a, b)))
    return known


async def _spread(memory: Engine, ids: Sequence[UUID]) -> module.Walk:
    async with memory.core.search(memory.space.id) as db:
        return await walk(memory.core, db, {ids[0]: 1.0})


ROW = {(n, n + 1) for n in range(5)}


async def test_what_another_connection_adds_prunes_and_reinforces_is_seen_at_once(
    memory: Engine, ids: list[UUID]
) -> None:
    await kept(memory)
    assert await pairs(memory, ids) == ROW
    async with somebody_else(memory) as other:
        added = await other.fetchval(ADD, memory.space.id, ids[0], ids[5], "extends", 0.5)
        assert await pairs(memory, ids) == ROW | {(0, 5)}
        await other.execute("UPDATE edges SET strength = 0.9 WHERE id = $1", added)
        found = await _spread(memory, ids)
        assert found.reached[ids[5]].activation == pytest.approx(0.9 * 0.6, rel=1e-4)
        await other.execute("UPDATE edges SET status = 'pruned' WHERE id = $1", added)
        assert await pairs(memory, ids) == ROW


async def test_a_transaction_that_began_before_the_load_and_commits_after_it_is_not_missed(
    memory: Engine, ids: list[UUID]
) -> None:
    async with somebody_else(memory) as other, somebody_else(memory) as third:
        early = other.transaction()
        await early.start()
        await other.execute(ADD, memory.space.id, ids[0], ids[5], "similar", 0.5)
        await kept(memory)
        assert await pairs(memory, ids) == ROW
        # A later transaction commits first, and the graph is brought up to it; the early one is still not seen.
        await third.execute(ADD, memory.space.id, ids[1], ids[4], "similar", 0.5)
        assert await pairs(memory, ids) == ROW | {(1, 4)}
        await early.commit()
        assert await pairs(memory, ids) == ROW | {(1, 4), (0, 5)}


async def test_what_is_rolled_back_never_was(memory: Engine, ids: list[UUID]) -> None:
    await kept(memory)
    async with somebody_else(memory) as other:
        turn = other.transaction()
        await turn.start()
        await other.execute(ADD, memory.space.id, ids[0], ids[5], "similar", 0.5)
        await other.execute("UPDATE edges SET status = 'pruned' WHERE source = $1", ids[1])
        assert await pairs(memory, ids) == ROW
        await turn.rollback()
        assert await pairs(memory, ids) == ROW


async def test_a_row_rewritten_inside_a_savepoint_is_seen(memory: Engine, ids: list[UUID]) -> None:
    await kept(memory)
    async with somebody_else(memory) as other, other.transaction(), other.transaction():
        await other.execute("UPDATE edges SET status = 'pruned' WHERE source = $1", ids[1])
    assert await pairs(memory, ids) == ROW - {(1, 2)}


async def test_A09_an_archived_node_takes_its_edges_out_of_the_walk_and_brings_them_back(
    memory: Engine, ids: list[UUID]
) -> None:
    await kept(memory)
    await memory.forget(ids[2])
    assert await pairs(memory, ids) == {(0, 1), (3, 4), (4, 5)}
    await memory.restore(ids[2])
    assert await pairs(memory, ids) == ROW


async def test_A09_a_node_that_slept_when_the_graph_was_read_wakes_with_its_edges(
    memory: Engine, ids: list[UUID]
) -> None:
    await memory.forget(ids[2])
    await kept(memory)
    assert await pairs(memory, ids) == {(0, 1), (3, 4), (4, 5)}
    await memory.restore(ids[2])
    assert await pairs(memory, ids) == ROW


async def test_A31_memory_and_database_walk_the_same(memory: Engine, ids: list[UUID]) -> None:
    await memory.graph.link(ids[0], ids[3], "extends", strength=0.7)
    await memory.forget(ids[4])
    first = await _spread(memory, ids)
    assert first.how == "in the database"
    await kept(memory)
    second = await _spread(memory, ids)
    assert second.how == "in memory: 4 edges"
    assert second.reached.keys() == first.reached.keys() == {ids[0], ids[1], ids[2], ids[3]}
    for id_, one in first.reached.items():
        assert _rounded(one) == _rounded(second.reached[id_])


def _rounded(one: Reached) -> Reached:
    return replace(one, activation=round(one.activation, 6))


async def test_A31_the_second_walk_has_the_graph_read_in_the_background(memory: Engine, ids: list[UUID]) -> None:
    assert (await _spread(memory, ids)).how == "in the database"
    await memory.core.adjacencies.settled()
    assert len(memory.core.adjacencies) == 0
    assert (await _spread(memory, ids)).how == "in the database"
    await memory.core.adjacencies.settled()
    assert (await _spread(memory, ids)).how == "in memory: 5 edges"


async def test_A31_a_hub_too_large_for_the_database_has_the_graph_read_at_once(
    memory: Engine, ids: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_LINKS", 1)
    found = await _spread(memory, ids)
    assert (found.how, set(found.reached)) == ("in memory: 5 edges", set(ids[:4]))


async def test_more_changes_than_are_mended_one_by_one_are_read_anew(
    memory: Engine, ids: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept(memory)
    monkeypatch.setattr(module, "MOST_CHANGES", 1)
    async with somebody_else(memory) as other:
        await other.execute("UPDATE edges SET strength = 0.5 WHERE space_id = $1", memory.space.id)
    assert await current(memory) is None
    assert len(await kept(memory)) == 5


async def test_an_idle_graph_is_given_up(memory: Engine, ids: list[UUID]) -> None:
    clock = [0.0]
    kept_here = Adjacencies(idle_seconds=60, clock=lambda: clock[0])
    async with memory.core.database.snapshot(memory.space.id) as db:
        await kept_here.loaded(db)
        clock[0] = 59.0
        kept_here.drop_idle()
        assert len(kept_here) == 1
        await kept_here.current(db)
        clock[0] = 119.5
        kept_here.drop_idle()
        assert len(kept_here) == 0
    await kept_here.close()


async def test_strengths_fade_between_two_walks_although_no_row_changes(memory: Engine, ids: list[UUID]) -> None:
    await memory.graph.link(ids[0], ids[5], "extends", strength=0.8)
    await kept(memory)
    before = (await _spread(memory, ids)).reached[ids[5]].activation
    later = memory.core.now() + timedelta(days=10)
    memory.core.now = lambda: later
    assert (await _spread(memory, ids)).reached[ids[5]].activation == pytest.approx(before * 0.60653, rel=1e-3)


async def test_another_space_is_another_graph(memory: Engine, ids: list[UUID]) -> None:
    await memory.add_space(f"other-{memory.space.slug}")
    other = await memory.in_space(f"other-{memory.space.slug}")
    await kept(memory)
    assert len(await kept(other)) == 0
    assert len(await kept(memory)) == 5
