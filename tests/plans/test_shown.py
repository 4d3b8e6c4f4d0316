"""Showing plans and edges: names for everything, tallies that agree with the signs, stretches, and long lists."""

from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.model import NewEdge, NewMemory
from recollect.plan import DecisionStatus
from recollect.plans import show
from recollect.plans.rules.plan_text import sign_of

pytestmark = pytest.mark.anyio


async def four(memory: Engine) -> tuple[UUID, ...]:
    return (await memory.add_many([NewMemory(text=f"memory {n}") for n in range(4)], wait=False)).ids


async def doubled(memory: Engine) -> UUID:
    """Two links between the same two; returns the id of the plan that merges them."""
    a, b, *_ = await four(memory)
    await memory.graph.link(a, b, "similar", strength=0.3, source_topic="tag:x", target_topic="tag:x")
    await memory.graph.link(a, b, "extends", strength=0.5)
    return (await memory.plans.propose("merge-edges")).id


@pytest.mark.parametrize("policy", ["merge-edges", "topics"])
async def test_P02_the_tally_of_a_plan_and_of_its_undo_counts_the_signs(memory: Engine, policy: str) -> None:
    await doubled(memory)
    plan = await memory.plans.propose(policy, {"min_cluster_size": 2} if policy == "topics" else {})
    await memory.plans.apply(plan.id)
    inverse = (await memory.plans.undo(plan.id)).plan_id
    for id_ in (plan.id, inverse):
        stretch = await memory.plans.show(id_)
        signs = Counter(sign_of(change) for change in stretch.changes)
        assert stretch.tally is not None
        assert signs.total() > 0
        assert (stretch.tally.comes, stretch.tally.changes, stretch.tally.goes) == (signs["+"], signs["~"], signs["-"])
        assert stretch.tally.returns == (signs["+"] if id_ == inverse else 0), "what an undo brings was there before"


async def test_P02_what_is_declined_is_not_counted(memory: Engine) -> None:
    plan = await doubled(memory)
    await memory.plans.decline(plan, [1])
    tally = (await memory.plans.show(plan)).tally
    assert tally is not None
    assert (tally.comes, tally.changes, tally.goes) == (0, 0, 0)


async def test_P02_what_is_restored_comes_back_and_is_not_new(memory: Engine) -> None:
    one, *_ = await four(memory)
    await memory.forget(one)
    await memory.restore(one)
    restored = (await memory.history(one))[-1].plan_id
    assert restored is not None
    tally = (await memory.plans.show(restored)).tally
    assert tally is not None
    assert (tally.comes, tally.returns) == (1, 1)


async def test_P18_an_undo_that_is_undone_is_a_redo(memory: Engine) -> None:
    plan = await memory.plans.get(await doubled(memory))
    await memory.plans.apply(plan.id)
    last, titles = plan.id, []
    for _ in range(3):
        last = (await memory.plans.undo(last)).plan_id
        titles.append((await memory.plans.get(last)).title)
    assert titles == [f"Undo: {plan.title}", f"Redo: {plan.title}", f"Undo: {plan.title}"]


async def test_P02_everything_in_a_plan_has_a_name(memory: Engine) -> None:
    plan = await memory.plans.show(await doubled(memory))
    rows = {change.id for change in plan.changes}
    assert {plan.labels[row] for row in rows} == {
        "memory 0 —similar→ memory 1",
        "memory 0 —extends→ memory 1",
    }


async def test_P02_all_stretches_together_are_the_plan(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c, d = await four(memory)
    for other in (b, c, d):
        for relation in ("similar", "extends"):
            await memory.graph.link(a, other, relation, strength=0.5)
    plan = await memory.plans.propose("merge-edges")
    first = await memory.plans.show(plan.id, limit=2)
    rest = await memory.plans.show(plan.id, limit=2, after=first.next_after or 0)
    assert [*first.decisions, *rest.decisions] == (await memory.plans.get(plan.id)).decisions
    assert (first.next_after, rest.next_after) == (2, None)
    seen = [one.number async for stretch in memory.plans.stretches(plan.id) for one in stretch.decisions]
    assert seen == [1, 2, 3]
    none = await memory.plans.show(plan.id, status=DecisionStatus.STALE)
    assert (list(none.decisions), none.next_after) == ([], None)


async def test_P03_more_numbers_than_a_statement_has_parameters(memory: Engine) -> None:
    plan = await doubled(memory)
    assert len(await memory.plans.decisions(plan, numbers=range(1, 50_000))) == 1
    with pytest.raises(InvalidInput, match="no decision 2"):
        await memory.plans.decline(plan, range(1, 50_000))


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**63])
async def test_P03_a_number_that_no_decision_can_have(memory: Engine, number: int) -> None:
    plan = await doubled(memory)
    for verb in (memory.plans.decline(plan, [number]), memory.plans.apply(plan, decline=[number])):
        with pytest.raises(InvalidInput, match="numbered from 1"):
            await verb
    with pytest.raises(InvalidInput, match="numbered from 1"):
        await memory.plans.undo(plan, decisions=[number])
    assert (await memory.plans.get(plan)).counts == {"proposed": 1}


async def test_P09_what_a_plan_made_is_born_once(memory: Engine) -> None:
    a, b, *_ = await four(memory)
    by_hand = await memory.graph.link(a, b)
    assert [entry.verb for entry in await memory.history(by_hand.id)] == ["add"]
    await memory.add_many([NewMemory(text=f"green tea {n}") for n in range(2)])
    plan = await memory.plans.propose("link", {"min_similarity": 0.1})
    await memory.plans.apply(plan.id)
    assert [entry.verb for entry in await memory.history(plan.decisions[0].subject)] == ["link"]


async def test_A00a_an_edge_is_shown_with_its_strength_of_now(memory: Engine) -> None:
    a, b, *_ = await four(memory)
    week_ago = memory.core.now() - timedelta(days=7)
    (id_,) = await memory.graph.link_many([NewEdge(source=a, target=b, strength=0.8, created_at=week_ago)])
    (edge,) = await show.edges(memory.core, memory.space.id, [await memory.graph.edge(id_)])
    assert (edge.label, edge.strength) == ("memory 0 —similar→ memory 1", 0.8)
    assert edge.strength_now == pytest.approx(0.8 * 0.7047, abs=1e-3)


async def test_A01_options_come_as_their_types(memory: Engine) -> None:
    plan = await memory.plans.propose("link", {"kinds": ["memory", "concept"], "at_most": "3", "min_similarity": "0.9"})
    saved = (await memory.plans.get(plan.id)).options
    assert (saved["kinds"], saved["at_most"], saved["min_similarity"]) == (["memory", "concept"], 3, 0.9)


@pytest.mark.parametrize("options", [{}, {"at_most": 2**70}, {"batch": 2**70}, {"only_newer_than": "2020-01-01"}])
async def test_A01_linking_where_nothing_or_little_is_embedded(memory: Engine, options: dict[str, object]) -> None:
    assert (await memory.plans.propose("link", options)).decisions == []
    await memory.add_many([NewMemory(text=f"green tea {n}") for n in range(2)])
    (one,) = (await memory.plans.propose("link", {**options, "min_similarity": 0.1})).decisions
    assert one.verb == "link"


async def test_a_plan_with_other_options_does_not_hide_what_it_did_not_look_at(memory: Engine) -> None:
    texts = ("Linh drinks green tea at seven", "Linh drinks green tea at seven.", "Linh drinks black tea at noon")
    await memory.add_many([NewMemory(text=text) for text in texts])
    strict = await memory.plans.propose("link", {"min_similarity": 0.95})
    assert len(strict.decisions) == 1
    await memory.plans.apply(strict.id)
    wide = await memory.plans.propose("link", {"min_similarity": 0.1})
    assert len(wide.decisions) == 2
    await memory.plans.apply(wide.id)
    assert not (await memory.plans.propose("link", {"min_similarity": 0.1})).decisions
