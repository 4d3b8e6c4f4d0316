"""P15: no living edge ends at a node that was merged away, whichever kinds of plan follow each other."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict
from recollect.plan import Change, Draft
from recollect.plans.sql import plans as kept
from recollect.store.database import driver
from tests.plan_support import LONG_AGO, NOW, at, edge_rows, link, some_concepts, unlink, world

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


async def saved(graph: Engine, draft: Draft) -> UUID:
    plan = draft.plan(policy="hand", title="by hand", now=NOW)
    async with graph.core.transaction(graph.space.id) as db:
        await kept.save(db, plan)
    return plan.id


async def merged_into(graph: Engine, keeper: UUID, *others: UUID) -> UUID:
    """One plan, a decision for each of the others, which needs none of the rest: the edges that begin there move."""
    draft, rows = Draft(), await edge_rows(graph)
    for other in others:
        node = Change(
            table="nodes",
            id=other,
            before={"status": "active", "merged_into": None},
            after={"status": "merged", "merged_into": str(keeper)},
        )
        moves = [
            Change(table="edges", id=edge, before={"source": str(other)}, after={"source": str(keeper)})
            for edge, row in rows.items()
            if row["source"] == str(other)
        ]
        draft.decide("merge", other, "the same", [node, *moves])
    plan = await saved(graph, draft)
    assert (await graph.plans.apply(plan)).applied == len(others)
    return plan


async def test_P15_a_merge_brought_again_does_not_count_on_one_beside_it_that_cannot_be(graph: Engine) -> None:
    """The edge that came to the second concept would leave it with the first, which was merged elsewhere since: the
    conflict names that merge, and is not the database's."""
    a, b, c, d = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks", "Dolokhov")
    await link(graph, (b, d))
    merges = await merged_into(graph, a, b, c)
    end = await world(graph)
    undo = (await graph.plans.undo(merges)).plan_id
    later = (await graph.concepts.merge(c, b)).plan_id
    before = await world(graph)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo)
    assert str(later) in refused.value.message
    assert "refused" not in refused.value.message
    assert await world(graph) == before
    outcome = await graph.plans.undo(undo, with_later=True)
    assert [one.id for one in outcome.chain] == [later, undo]
    assert await world(graph) == end


async def test_P16_a_decision_does_not_count_on_the_place_that_a_stale_one_would_have_made(graph: Engine) -> None:
    """Both are stale, and say why; neither has failed."""
    a, b = await some_concepts(graph, "Anna Karenina", "Bezukhov")
    (edge,) = await link(graph, (a, b), relation="similar")
    draft, new = Draft(), UUID(int=17)
    seen = {"status": "active", "protected": False}
    draft.decide("unlink", edge, "old", [Change(table="edges", id=edge, before=seen, after={"status": "pruned"})])
    row = {"id": str(new), "source": str(a), "target": str(b), "relation": "similar", "strength": 0.5}
    row |= {"created_by": "auto", "created_at": LONG_AGO.isoformat()}
    draft.decide("link", new, "new", [Change(table="edges", id=new, before=None, after=row)])
    plan = await saved(graph, draft)
    await graph.graph.protect(edge)
    outcome = await graph.plans.apply(plan)
    assert outcome.failed == ()
    assert len(outcome.stale) == 2
    assert str(edge) in outcome.stale[1]


async def execute(graph: Engine, statement: str, *values: object) -> None:
    """Straight to the tables, in the role that the engine works in."""
    async with graph.core.transaction(graph.space.id) as db:
        await (await driver(db)).execute(statement, *values)


@pytest.mark.usefixtures("one_server")
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


@pytest.mark.usefixtures("one_server")
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
