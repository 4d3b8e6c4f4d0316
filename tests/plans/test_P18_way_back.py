"""P18 to P20: undo names what stands in the way, knows the whole way back, keeps use, and speaks plainly."""

from datetime import timedelta
from math import exp
from uuid import UUID, uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict
from recollect.model import Status
from recollect.plan import Change, Draft, PlanStatus
from recollect.plans.sql import plans as kept
from recollect.plans.sql.blockers import Place
from recollect.plans.sql.undo import UndoneBefore, _in_a_round_of_its_own
from tests.plan_support import LONG_AGO, NOW, TWINS, at, edge_rows, link, some_concepts, some_nodes, unlink, world

pytestmark = pytest.mark.anyio

SAID_BY_A_DATABASE = ("duplicate key", "constraint", "violates", "foreign key", "_pkey", 'relation "')


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    at(memory, NOW)
    return memory


async def plan_of(memory: Engine, row: UUID) -> UUID:
    """The last plan that touched a row."""
    plan = (await memory.history(row))[-1].plan_id
    assert plan is not None
    return plan


async def test_P18_undo_names_the_plan_that_wrote_the_column_not_the_last_that_touched_the_row(graph: Engine) -> None:
    (node,) = await some_nodes(graph, 1)
    await graph.edit(node, importance=0.2)
    first = await plan_of(graph, node)
    await graph.edit(node, importance=0.4)
    second = await plan_of(graph, node)
    at(graph, NOW + timedelta(minutes=1))
    await graph.exclude(node)
    third = await plan_of(graph, node)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(first)
    assert str(second) in refused.value.message
    assert str(third) not in refused.value.message


async def test_P07_P18_what_was_brought_back_and_archived_once_more_stays_archived(graph: Engine) -> None:
    """It looks as the first plan left it, but that is the doing of the last: the first has nothing to take back."""
    (node,) = await some_nodes(graph, 1)
    plans = []
    for minute, change in enumerate((graph.forget, graph.restore, graph.forget)):
        at(graph, NOW + timedelta(minutes=minute))
        await change(node)
        plans.append(await plan_of(graph, node))
    with pytest.raises(Conflict, match="changed back") as refused:
        await graph.plans.undo(plans[0])
    assert str(plans[2]) in refused.value.message
    assert (await graph.get(node)).status is Status.ARCHIVED
    way_back = await graph.plans.undo(plans[0], with_later=True)
    assert [step.id for step in way_back.chain] == plans[::-1]
    assert (await graph.get(node)).status is Status.ACTIVE


async def test_P18_following_the_advice_ends(graph: Engine) -> None:
    """An undo and its redo cancel: what is named is the plan that stands again, and undoing that leads on."""
    (node,) = await some_nodes(graph, 1)
    await graph.edit(node, importance=0.2)
    first = await plan_of(graph, node)
    at(graph, NOW + timedelta(minutes=1))
    await graph.edit(node, importance=0.4)
    second = await plan_of(graph, node)
    for minute in (2, 3):  # taken back, and that taken back
        at(graph, NOW + timedelta(minutes=minute))
        await graph.plans.undo(await plan_of(graph, node))
    assert (await graph.get(node)).importance == 0.4
    at(graph, NOW + timedelta(minutes=4))
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(first)
    assert str(second) in refused.value.message
    await graph.plans.undo(second)
    await graph.plans.undo(first)
    assert (await graph.get(node)).importance is None


async def test_P18_with_later_takes_the_whole_chain_back_as_one_plan_and_redo_brings_it_all_again(
    graph: Engine,
) -> None:
    (node,) = await some_nodes(graph, 1)
    start = await world(graph)
    made = []
    for place, importance in enumerate((0.2, 0.4, 0.6)):
        at(graph, NOW + timedelta(minutes=place))
        await graph.edit(node, importance=importance)
        made.append(await plan_of(graph, node))
    await graph.exclude(node)  # another column: it stays
    end = await world(graph)
    at(graph, NOW + timedelta(minutes=5))
    foreseen = await graph.plans.undo_chain(made[0])
    assert [one.id for one in foreseen] == made[::-1]
    assert await world(graph) == end
    outcome = await graph.plans.undo(made[0], with_later=True)
    assert [one.id for one in outcome.chain] == made[::-1]
    assert (await graph.get(node)).importance is None
    assert (await graph.get(node)).exclude
    undo = await graph.plans.get(outcome.plan_id)
    assert len(undo.decisions) == 3
    assert [(await graph.plans.get(one)).status for one in made] == [PlanStatus.UNDONE] * 3
    await graph.plans.undo(outcome.plan_id)
    assert await world(graph) == end
    assert [(await graph.plans.get(one)).status for one in made] == [PlanStatus.APPLIED] * 3
    again = await graph.plans.undo(made[0], with_later=True)
    assert again.applied == 3
    await graph.plans.undo(await excluding(graph, node))
    assert await world(graph) == start


async def excluding(memory: Engine, node: UUID) -> UUID:
    (plan,) = {one.plan_id for one in await memory.history(node) if one.verb == "exclude"}
    assert plan is not None
    return plan


async def test_P18_with_later_where_nothing_is_in_the_way_is_an_undo(graph: Engine) -> None:
    (node,) = await some_nodes(graph, 1)
    await graph.edit(node, importance=0.2)
    plan = await plan_of(graph, node)
    assert [one.id for one in await graph.plans.undo_chain(plan)] == [plan]
    outcome = await graph.plans.undo(plan, with_later=True)
    assert outcome.applied == 1
    assert (await graph.plans.undo(plan, with_later=True)).repeated


async def test_P19_undo_of_a_link_plan_keeps_its_use_for_the_redo(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    draft, edge = Draft(), UUID(int=7)
    row = {"id": str(edge), "source": str(a), "target": str(b), "relation": "similar", "strength": 0.5}
    row |= {"decay_rate": 0.0, "created_by": "auto", "created_at": LONG_AGO.isoformat()}
    draft.decide("link", edge, "linked", [Change(table="edges", id=edge, before=None, after=row)])
    plan = draft.plan(policy="hand", title="link", now=NOW)
    async with graph.core.transaction(graph.space.id) as db:
        await kept.save(db, plan)
    await graph.plans.apply(plan.id)
    for _ in range(3):
        await graph.graph.reinforce(edge, "traversal")
    used = await edge_rows(graph)
    assert used[edge]["activation_count"] == 3
    undo = (await graph.plans.undo(plan.id)).plan_id
    assert await edge_rows(graph) == {}
    redo = (await graph.plans.undo(undo)).plan_id
    assert await edge_rows(graph) == used
    await graph.graph.reinforce(edge, "traversal")
    await graph.plans.undo(redo)
    assert await edge_rows(graph) == {}


async def test_P19_strength_is_taken_back_decayed_to_the_moment(graph: Engine) -> None:
    """As if the merge had never been: what the edge had, faded, and what its use since has added."""
    a, b = await some_nodes(graph, 2)
    (edge,) = await link(graph, (a, b), strength=0.9, created_at=NOW)
    await link(graph, (a, b), relation="extends", strength=0.8, created_at=NOW)
    merge = await graph.plans.propose("merge-edges")
    await graph.plans.apply(merge.id)
    assert (await graph.graph.edge(edge)).strength == 1.0
    later = NOW + timedelta(days=60)
    at(graph, later)
    await graph.graph.reinforce(edge, "traversal")
    await graph.plans.undo(merge.id)
    there = await graph.graph.edge(edge)
    assert there.strength == pytest.approx(0.9 * exp(-0.05 * 60) + 0.05)
    assert there.last_reinforced_at == later


async def test_P19_a_use_in_the_very_moment_of_a_merge_is_kept_with_its_time(graph: Engine) -> None:
    """The strength was right, but as of forty days before: it had faded to nothing at once."""
    a, b = await some_nodes(graph, 2)
    long_ago = NOW - timedelta(days=40)
    one, other = await link(graph, (a, b), strength=0.04, created_at=long_ago) + await link(
        graph, (a, b), relation="extends", strength=0.04, created_at=long_ago
    )
    merge = await graph.plans.propose("merge-edges")
    await graph.plans.apply(merge.id)
    kept = merge.decisions[0].subject
    assert kept in (one, other)
    await graph.graph.reinforce(kept, "traversal")
    await graph.plans.undo(merge.id)
    there = await graph.graph.edge(kept)
    assert there.strength == pytest.approx(0.04 * exp(-0.05 * 40) + 0.05)
    assert there.last_reinforced_at == NOW


async def test_P19_a_merge_in_the_very_moment_of_a_use_knows_as_of_when_the_strength_was(graph: Engine) -> None:
    """The moment did not change with the merge, and was not in the journal: the difference was taken for faded."""
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    one, _ = await link(graph, (a, c), (b, c), strength=0.5, created_at=NOW - timedelta(days=40))
    await graph.graph.reinforce(one, "traversal")
    before = (await graph.graph.edge(one)).strength
    merge = await graph.concepts.merge(a, b)
    at(graph, NOW + timedelta(hours=1))
    await graph.graph.reinforce(one, "revisit")
    await graph.plans.undo(merge.plan_id)
    assert before is not None
    assert (await graph.graph.edge(one)).strength == pytest.approx(before * exp(-0.05 / 24) + 0.2)


async def test_P19_a_plan_that_was_brought_again_is_taken_back_to_what_it_found_then(graph: Engine) -> None:
    """Marked as important, taken back, used, brought again: its own undo knows of the use, whatever is named."""
    a, b = await some_nodes(graph, 2)
    (edge,) = await link(graph, (a, b), strength=0.3, created_at=NOW)
    await graph.graph.reinforce(edge, "important")
    plan = await plan_of(graph, edge)
    undo = await graph.plans.undo(plan)
    await graph.graph.reinforce(edge, "revisit")
    await graph.plans.undo(undo.plan_id)
    assert (await graph.graph.edge(edge)).strength == 1.0
    await graph.plans.undo(plan)
    assert (await graph.graph.edge(edge)).strength == pytest.approx(0.5)


@pytest.mark.parametrize("important_first", [True, False])
async def test_P19_two_plans_that_set_a_strength_are_taken_back_in_any_order(
    graph: Engine, important_first: bool
) -> None:
    """Nothing is stronger than 1: when the merge went first, what the important one had found was half of what was
    there without either (0.1514, not 0.3)."""
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    (kept,) = await link(graph, (c, a), strength=0.3, created_at=NOW)
    await link(graph, (c, b), strength=0.02, created_at=NOW - timedelta(days=40))
    before = (await edge_rows(graph))[kept]
    merge = await graph.concepts.merge(a, b)
    assert ((await graph.graph.edge(kept)).strength or 0) < 0.2
    await graph.graph.reinforce(kept, "important")
    important = await plan_of(graph, kept)
    order = [important, merge.plan_id] if important_first else [merge.plan_id, important]
    undone = [(await graph.plans.undo(one)).plan_id for one in order]
    assert (await edge_rows(graph))[kept] == before
    for undo in reversed(undone):  # and brought again, and taken back the other way round
        await graph.plans.undo(undo)
    assert (await graph.graph.edge(kept)).strength == 1.0
    for one in reversed(order):
        await graph.plans.undo(one)
    assert (await edge_rows(graph))[kept] == before


async def test_P19_a_plan_that_set_many_strengths_is_taken_back_under_later_ones_each_of_which_finds_its_own(
    graph: Engine,
) -> None:
    """The merge moves three links at once, each of another strength; each is marked as important afterwards."""
    a, b, *others = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks", "Dolokhov", "Epaulettes")
    for number, other in enumerate(others):
        await link(graph, (other, a), strength=0.3 + 0.1 * number, created_at=NOW)
        await link(graph, (other, b), strength=0.02, created_at=NOW - timedelta(days=40))
    before = await edge_rows(graph)
    merge = await graph.concepts.merge(a, b)
    moved = [edge for edge, row in (await edge_rows(graph)).items() if row["strength"] != before[edge]["strength"]]
    assert len(moved) == len(others)
    for edge in moved:
        await graph.graph.reinforce(edge, "important")
    importance = [await plan_of(graph, edge) for edge in moved]
    for plan in [merge.plan_id, *importance]:
        await graph.plans.undo(plan)
    assert await edge_rows(graph) == before


def test_P19_who_is_told_of_two_decisions_is_told_of_them_one_after_the_other() -> None:
    edge, other, first, second, later = (uuid4() for _ in range(5))
    rounds: list[dict[tuple[UUID, Place], UndoneBefore]] = []
    for row, plan in ((edge, first), (edge, second), (other, first)):
        _in_a_round_of_its_own(rounds, (row, (later, 1)), (row, plan, 1, later, 1))
    assert [[told[:2] for told in together.values()] for together in rounds] == [
        [(edge, first), (other, first)],
        [(edge, second)],
    ]


async def test_P19_use_between_an_undo_and_its_redo_is_there_after_the_next_undo_though_nothing_is_stronger_than_1(
    graph: Engine,
) -> None:
    """The redo makes it 1.0 with or without the use: what it had found must be in the journal."""
    a, b = await some_nodes(graph, 2)
    (edge,) = await link(graph, (a, b), strength=0.9, created_at=NOW)
    await link(graph, (a, b), relation="extends", strength=0.8, created_at=NOW)
    merge = await graph.plans.propose("merge-edges")
    await graph.plans.apply(merge.id)
    undo = await graph.plans.undo(merge.id)
    await graph.graph.reinforce(edge, "traversal")
    redo = await graph.plans.undo(undo.plan_id)
    assert (await graph.graph.edge(edge)).strength == 1.0
    await graph.plans.undo(redo.plan_id)
    there = await graph.graph.edge(edge)
    assert there.strength == pytest.approx(0.95)
    assert (there.activation_count, there.last_reinforced_at) == (1, NOW)


async def test_P19_use_of_a_link_between_the_undo_of_its_merge_and_the_redo_is_counted(graph: Engine) -> None:
    """It came out of another, was used, and goes in again: the keeper counts its use."""
    a, b = await some_nodes(graph, 2)
    edges = [
        *await link(graph, (a, b), strength=0.5, created_at=NOW),
        *await link(graph, (a, b), relation="extends", strength=0.3, created_at=NOW),
    ]
    merge = await graph.plans.propose("merge-edges")
    await graph.plans.apply(merge.id)
    keeper = merge.decisions[0].subject
    (other,) = set(edges) - {keeper}
    undo = await graph.plans.undo(merge.id)
    await graph.graph.reinforce(other, "traversal")
    for _ in range(2):
        redo = await graph.plans.undo(undo.plan_id)
        rows = await edge_rows(graph)
        assert (rows[keeper]["activation_count"], rows[other]["activation_count"]) == (1, 1)
        undo = await graph.plans.undo(redo.plan_id)
        rows = await edge_rows(graph)
        assert (rows[keeper]["activation_count"], rows[other]["activation_count"]) == (0, 1)


async def test_P19_a_link_that_gave_back_what_it_had_taken_in_brings_less_with_it_when_it_goes_in_again(
    graph: Engine,
) -> None:
    """The third went into the second, the second into the first; both taken back, the second brought again alone."""
    a, b = await some_nodes(graph, 2)
    (second,) = await link(graph, (a, b), strength=0.5)
    (third,) = await link(graph, (a, b), relation="extends", strength=0.1)
    await graph.graph.reinforce(third, "traversal")
    await graph.graph.reinforce(second, "traversal")
    inner = await graph.plans.propose("merge-edges")
    await graph.plans.apply(inner.id)
    (first,) = await link(graph, (b, a), strength=1.0, created_at=NOW)
    outer = await graph.plans.propose("merge-edges")
    await graph.plans.apply(outer.id)
    assert await walked(graph, first) == 2
    undo = await graph.plans.undo(outer.id)
    await graph.plans.undo(inner.id)
    redo = await graph.plans.undo(undo.plan_id)
    assert [await walked(graph, edge) for edge in (first, second, third)] == [1, 1, 1]
    await graph.plans.undo(redo.plan_id)
    assert [await walked(graph, edge) for edge in (first, second, third)] == [0, 1, 1]


async def test_P19_a_link_that_takes_in_two_once_more_knows_which_of_them_was_used_since(graph: Engine) -> None:
    """One plan, two merges into the same: each takes back what it brought, and what was used later stays."""
    nodes = [(await graph.concepts.add(name, text="what carries it")).concept.id for name in ("one", "two", "three")]
    (hub,) = await some_concepts(graph, "Cossacks")
    edges = await link(graph, *((node, hub) for node in nodes))
    merge = await graph.plans.propose("duplicates", TWINS)
    assert (await graph.plans.apply(merge.id)).applied == 2
    (keeper,) = [edge for edge, row in (await edge_rows(graph)).items() if row["status"] == "active"]
    undo = await graph.plans.undo(merge.id)
    others = [edge for edge in edges if edge != keeper]
    for other in others:
        await graph.graph.reinforce(other, "traversal")
    redo = await graph.plans.undo(undo.plan_id)
    assert await walked(graph, keeper) == 2
    await graph.graph.reinforce(keeper, "traversal")
    await graph.plans.undo(redo.plan_id)
    assert [await walked(graph, edge) for edge in (keeper, *others)] == [1, 1, 1]


async def walked(memory: Engine, edge: UUID) -> int:
    count: int = (await edge_rows(memory))[edge]["activation_count"]
    return count


async def test_P18_a_node_merge_cannot_be_brought_again_over_edges_that_came_since_and_says_by_which_plan(
    graph: Engine,
) -> None:
    a, b, c, d = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks", "Dolokhov")
    (edge,) = await link(graph, (c, d))
    merge = await graph.concepts.merge(a, b)
    undo = await graph.plans.undo(merge.plan_id)
    later = await graph.concepts.merge(b, c)  # the edge of c now begins at b
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo.plan_id)
    assert str(later.plan_id) in refused.value.message
    assert f"the edge {edge} would hang on {b}" in refused.value.message
    outcome = await graph.plans.undo(undo.plan_id, with_later=True)
    assert [one.id for one in outcome.chain] == [later.plan_id, undo.plan_id]
    assert (await graph.get(b)).id == a


async def test_P18_a_node_merge_is_not_brought_again_over_an_edge_that_an_earlier_step_of_the_same_undo_brings_back(
    graph: Engine,
) -> None:
    """The edge is nobody's but a person's: there is no way back, and that is said, with the edge."""
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    await link(graph, (a, c))
    undo = await graph.plans.undo((await graph.concepts.merge(a, b)).plan_id)
    (edge,) = await link(graph, (b, c))
    await graph.concepts.merge(a, b)
    before = await world(graph)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo.plan_id, with_later=True)
    assert f"the edge {edge} would hang on {b}" in refused.value.message
    assert "refused" not in refused.value.message
    assert await world(graph) == before


async def test_P18_two_concepts_never_lead_to_each_other(graph: Engine) -> None:
    """B into A, taken back, A into B; the first brought again would leave neither of them."""
    a, b = await some_concepts(graph, "Anna Karenina", "Bezukhov")
    undo = await graph.plans.undo((await graph.concepts.merge(a, b)).plan_id)
    other = await graph.concepts.merge(b, a)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo.plan_id)
    assert str(other.plan_id) in refused.value.message
    assert (await graph.get(a)).id == b
    outcome = await graph.plans.undo(undo.plan_id, with_later=True)
    assert [one.id for one in outcome.chain] == [other.plan_id, undo.plan_id]
    assert (await graph.get(b)).id == a


async def test_P18_two_edges_never_lead_to_each_other(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    one, other = *await link(graph, (a, b), strength=0.5), *await link(graph, (a, b), relation="extends", strength=0.2)
    first = await graph.plans.propose("merge-edges")
    assert first.decisions[0].subject == one
    await graph.plans.apply(first.id)
    undo = await graph.plans.undo(first.id)
    await graph.graph.reinforce(other, "revisit")
    await graph.graph.reinforce(other, "revisit")
    second = await graph.plans.propose("merge-edges")
    assert second.decisions[0].subject == other
    await graph.plans.apply(second.id)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(undo.plan_id)
    assert str(second.id) in refused.value.message
    assert (await graph.graph.edge(other)).status == "active"


async def test_P18_an_edge_comes_out_of_another_only_before_that_is_part_of_a_third(graph: Engine) -> None:
    """Else its use would be counted twice: in itself, and in the third."""
    a, b = await some_nodes(graph, 2)
    await link(graph, (a, b), strength=0.4)
    (used,) = await link(graph, (a, b), relation="extends", strength=0.1)
    await graph.graph.reinforce(used, "traversal")
    first = await graph.plans.propose("merge-edges")
    await graph.plans.apply(first.id)
    (third,) = await link(graph, (b, a), strength=1.0, created_at=NOW)
    second = await graph.plans.propose("merge-edges")
    await graph.plans.apply(second.id)
    assert (await graph.graph.edge(third)).activation_count == 1
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(first.id)
    assert str(second.id) in refused.value.message
    await graph.plans.undo(first.id, with_later=True)
    found = await edge_rows(graph)
    assert (found[third]["activation_count"], found[used]["activation_count"]) == (0, 1)


async def test_P20_undo_of_an_unlink_whose_place_is_taken_says_by_which_edge(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    (edge,) = await link(graph, (a, b))
    plan = await unlink(graph, edge)
    (other,) = await link(graph, (a, b))
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(plan)
    said = refused.value.message
    assert str(edge) in said
    assert str(other) in said
    assert not any(word in said for word in SAID_BY_A_DATABASE)
    await graph.graph.unlink(other)
    await graph.plans.undo(plan)
    assert (await graph.graph.edge(edge)).status == "active"


async def test_P20_a_link_taken_away_under_something_else_is_said_in_words(graph: Engine) -> None:
    """A plan made an edge, another edge was merged into it: undoing the first finds that, and says by which plan."""
    a, b = await some_nodes(graph, 2)
    draft, edge = Draft(), UUID(int=9)
    row = {"id": str(edge), "source": str(a), "target": str(b), "relation": "similar", "strength": 0.9}
    row |= {"decay_rate": 0.0, "created_by": "auto", "created_at": LONG_AGO.isoformat()}
    draft.decide("link", edge, "linked", [Change(table="edges", id=edge, before=None, after=row)])
    plan = draft.plan(policy="hand", title="link", now=NOW)
    async with graph.core.transaction(graph.space.id) as db:
        await kept.save(db, plan)
    await graph.plans.apply(plan.id)
    await link(graph, (a, b), relation="extends", strength=0.1)
    merge = await graph.plans.propose("merge-edges")
    assert (await graph.plans.apply(merge.id)).applied == 1
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(plan.id)
    assert str(merge.id) in refused.value.message
    assert not any(word in refused.value.message for word in SAID_BY_A_DATABASE)
    outcome = await graph.plans.undo(plan.id, with_later=True)
    assert [one.id for one in outcome.chain] == [merge.id, plan.id]


async def test_P20_a_link_that_took_in_another_with_its_node_is_not_taken_away_under_it(graph: Engine) -> None:
    """A plan made an edge; two concepts became one, and so did their edges: that one is named, not a key."""
    a, b, c = await some_concepts(graph, "Anna Karenina", "Bezukhov", "Cossacks")
    await link(graph, (b, c))
    draft, edge = Draft(), UUID(int=13)
    row = {"id": str(edge), "source": str(a), "target": str(c), "relation": "similar", "strength": 0.5}
    row |= {"created_by": "auto", "created_at": LONG_AGO.isoformat()}
    draft.decide("link", edge, "linked", [Change(table="edges", id=edge, before=None, after=row)])
    plan = draft.plan(policy="hand", title="link", now=NOW)
    async with graph.core.transaction(graph.space.id) as db:
        await kept.save(db, plan)
    await graph.plans.apply(plan.id)
    merge = await graph.concepts.merge(a, b)
    with pytest.raises(Conflict) as refused:
        await graph.plans.undo(plan.id)
    assert str(merge.plan_id) in refused.value.message
    assert "refused" not in refused.value.message
    outcome = await graph.plans.undo(plan.id, with_later=True)
    assert [one.id for one in outcome.chain] == [merge.plan_id, plan.id]


async def test_P20_an_apply_that_the_database_refuses_names_the_row_and_the_plan(graph: Engine) -> None:
    a, b = await some_nodes(graph, 2)
    draft, edge, gone = Draft(), UUID(int=11), UUID(int=12)
    row = {"id": str(edge), "source": str(a), "target": str(gone), "relation": "similar", "created_by": "auto"}
    draft.decide("link", edge, "linked", [Change(table="edges", id=edge, before=None, after=row)])
    plan = draft.plan(policy="hand", title="link to nothing", now=NOW)
    async with graph.core.transaction(graph.space.id) as db:
        await kept.save(db, plan)
    outcome = await graph.plans.apply(plan.id)
    (said,) = outcome.failed or outcome.stale
    assert not any(word in said for word in SAID_BY_A_DATABASE)
    assert str(edge) in said
    assert b
