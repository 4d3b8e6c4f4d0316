"""P16: what a decision looked at must still be so when it is applied, whoever changed it in between.

The five faults that were seen, each on its own; the class of them is in test_P16_every_policy.py.
"""

import ast
from dataclasses import asdict
from pathlib import Path
from uuid import UUID

import pytest

import recollect
from recollect.concepts import compare
from recollect.engine.engine import Engine
from recollect.memories.sql import nodes
from recollect.plan import Draft, Plan
from recollect.plans.sql import plans
from tests.graphs import edge
from tests.plan_support import NOW, at, edge_rows, link, some_concepts, some_nodes, unlink

pytestmark = pytest.mark.anyio

HOUSE = Path(recollect.__file__).parent


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    at(memory, NOW)
    return memory


async def twins(graph: Engine) -> tuple[UUID, UUID, UUID, UUID, UUID]:
    """A and B, each linked with C in the same way, and those two edges."""
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    kept, absorbed = await link(graph, (a, c), (b, c))
    return a, b, c, kept, absorbed


async def merging(graph: Engine, keeper: UUID, other: UUID) -> Plan:
    """A plan that waits, of the kind that a policy makes: one concept goes into another."""
    async with graph.core.transaction(graph.space.id) as db:
        found = await nodes.get_many(db, [keeper, other])
        plan = await compare._by_hand(graph.core, db, found[keeper], [found[other]], "the same")
        await plans.save(db, plan)
    return plan


async def test_P16_whether_a_merge_is_stale_does_not_hang_on_the_order_of_ids(graph: Engine) -> None:
    """One of two was protected before it was shown, the other since: the look stopped at the first it came upon."""
    nodes = await some_nodes(graph, 16)
    pairs = list(zip(nodes[:8], nodes[8:], strict=True))
    ones, others = await link(graph, *pairs), await link(graph, *pairs, relation="extends")
    for edge_ in ones:
        await graph.graph.protect(edge_)
    plan = await graph.plans.propose("merge-edges")
    for edge_ in others:
        await graph.graph.protect(edge_)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.applied, len(outcome.stale)) == (0, 8)


async def test_P16_edges_that_are_no_longer_parallel_are_not_merged(graph: Engine) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    await link(graph, (a, c))
    await link(graph, (b, c), relation="extends")
    merge = (await graph.concepts.merge(a, b)).plan_id
    plan = await graph.plans.propose("merge-edges")
    assert len(plan.decisions) == 1
    await graph.plans.undo(merge)
    outcome = await graph.plans.apply(plan.id)
    assert (outcome.applied, len(outcome.stale)) == (0, 1)
    assert {row["status"] for row in (await edge_rows(graph)).values()} == {"active"}


@pytest.mark.parametrize("used", ["kept", "absorbed"])
async def test_P16_use_counted_on_an_edge_that_becomes_part_of_another_is_not_lost(graph: Engine, used: str) -> None:
    a, b, _, kept, absorbed = await twins(graph)
    plan = await merging(graph, a, b)
    await graph.graph.reinforce(kept if used == "kept" else absorbed, "traversal")
    outcome = await graph.plans.apply(plan.id)
    assert outcome.stale == ("1: it was used since",)
    assert {row["status"] for row in (await edge_rows(graph)).values()} == {"active"}


async def test_P16_use_of_an_edge_that_only_moves_along_is_no_hindrance(graph: Engine) -> None:
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    (moving,) = await link(graph, (b, c))
    plan = await merging(graph, a, b)
    await graph.graph.reinforce(moving, "traversal")
    assert (await graph.plans.apply(plan.id)).applied == 1
    there = await graph.graph.edge(moving)
    assert (there.source, there.activation_count) == (a, 1)


async def test_P16_a_contradiction_that_came_between_is_seen(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    await link(graph, (a, b))
    await link(graph, (b, a), relation="extends")
    plan = await graph.plans.propose("merge-edges")
    await link(graph, (a, b), relation="contradicts")
    outcome = await graph.plans.apply(plan.id)
    assert outcome.stale == ("1: other edges join the two now",)


async def test_P16_never_said_in_one_waiting_plan_binds_the_others(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    await link(graph, (a, b))
    await link(graph, (b, a), relation="extends")
    first = await graph.plans.propose("merge-edges")
    second = await graph.plans.propose("merge-edges", {"batch": 7})
    await graph.plans.decline(first.id, [1], never=True)
    outcome = await graph.plans.apply(second.id)
    assert outcome.stale == ("1: somebody keeps the two apart now",)


async def test_P16_as_many_other_links_are_not_the_same_links(graph: Engine) -> None:
    a, b, c, d = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks", "Dolokhov")
    (gone,) = await link(graph, (b, c))
    plan = await merging(graph, a, b)
    await unlink(graph, gone)
    await link(graph, (b, d))
    outcome = await graph.plans.apply(plan.id)
    assert outcome.applied == 0
    assert (await graph.get(b)).status == "active"


def test_P16_no_policy_lists_premises_by_hand() -> None:
    """They come from a `Look` alone: nothing but the noun and its store knows the class."""
    known = {"plan.py", "plans/sql/plans.py"}
    users = {
        str(file.relative_to(HOUSE))
        for file in HOUSE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Premise"
    }
    assert users <= known


def test_P16_what_is_read_through_a_look_is_a_premise_and_nothing_else_is() -> None:
    look = Draft().look()
    seen = look.at("edges", edge(1, 2, 3, 0.5))
    assert seen.strength == 0.5
    (premise,) = look.premises(())
    assert premise.must == {"strength": 0.5}
    with pytest.raises(TypeError):
        asdict(seen)
