"""P15: no living edge ends at a node that was merged away, whichever kinds of plan follow each other."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict
from recollect.store.database import driver
from tests.plan_support import NOW, at, edge_rows, link, some_concepts, unlink

pytestmark = pytest.mark.anyio

HANGING = "a living edge at a node that was merged away"
INSERT = "INSERT INTO edges (space_id, id, source, target, relation) VALUES ($1, $2, $3, $4, 'similar')"
Retire = Callable[[Engine, UUID, UUID], Awaitable[UUID]]


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    at(memory, NOW)
    return memory


async def unlinked(graph: Engine, b: UUID, c: UUID) -> UUID:
    (edge,) = await link(graph, (b, c))
    return await unlink(graph, edge)


async def pruned(graph: Engine, b: UUID, c: UUID) -> UUID:
    await link(graph, (b, c), strength=0.01)
    (d,) = await some_concepts(graph, "Way round")
    await link(graph, (b, d), (d, c), strength=1.0, created_by="user")
    plan = await graph.plans.propose("prune")
    assert (await graph.plans.apply(plan.id)).applied == 1
    return plan.id


async def merged(graph: Engine, b: UUID, c: UUID) -> UUID:
    await link(graph, (b, c))
    await link(graph, (b, c), relation="extends")
    plan = await graph.plans.propose("merge-edges")
    assert (await graph.plans.apply(plan.id)).applied == 1
    return plan.id


@pytest.mark.parametrize("retire", [unlinked, pruned, merged])
async def test_P15_undo_after_the_node_was_merged_is_a_conflict_that_names_the_merge(
    graph: Engine, retire: Retire
) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    retired = await retire(graph, b, c)
    merge = (await graph.concepts.merge(a, b)).plan_id
    before = await edge_rows(graph)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(retired)
    assert str(merge) in refused.value.message
    assert await edge_rows(graph) == before
    assert HANGING not in (await graph.verify()).faults
    await graph.plans.undo(merge)
    await graph.plans.undo(retired)
    assert all(row["status"] == "active" for row in (await edge_rows(graph)).values())


@pytest.mark.parametrize("retire", [unlinked, pruned, merged])
async def test_P15_with_later_the_merge_is_taken_back_first(graph: Engine, retire: Retire) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    retired = await retire(graph, b, c)
    await graph.concepts.merge(a, b)
    outcome = await graph.plans.undo(retired, with_later=True)
    assert len(outcome.chain) == 2
    assert (await graph.get(b)).status == "active"
    assert all(row["status"] == "active" for row in (await edge_rows(graph)).values())


async def execute(graph: Engine, statement: str, *values: object) -> None:
    """Straight to the tables, in the role that the engine works in."""
    async with graph.core.transaction(graph.space.id) as db:
        await (await driver(db)).execute(statement, *values)


async def test_P15_the_database_refuses_a_living_edge_at_a_merged_node(graph: Engine) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    await graph.concepts.merge(a, b)
    (edge,) = await link(graph, (a, c))
    for statement, *values in (
        (INSERT, graph.space.id, uuid4(), b, c),
        ("UPDATE edges SET source = $2 WHERE id = $1", edge, b),
        ("UPDATE nodes SET status = 'merged', merged_into = $2 WHERE id = $1", a, c),
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await execute(graph, statement, *values)
    assert HANGING not in (await graph.verify()).faults


async def test_P15_verify_names_living_edges_at_merged_nodes(graph: Engine) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    await graph.concepts.merge(a, b)
    edge = uuid4()
    async with graph.core.database.alone() as raw:
        try:  # as in a database from before the constraint
            await raw.execute("SET session_replication_role = replica")
            await raw.execute(INSERT, graph.space.id, edge, b, c)
            faults = (await graph.verify()).faults
            assert faults[HANGING] == [edge]
        finally:
            await raw.execute("DELETE FROM edges WHERE id = $1", edge)
