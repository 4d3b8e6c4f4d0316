"""Editing: every change has a history and a way back."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import Status
from recollect.plan import PlanStatus

pytestmark = pytest.mark.anyio


async def test_D04_version_moves_with_metadata_only(memory: Engine) -> None:
    node = await memory.add("text", wait=False)
    archived = await memory.forget(node.id)
    restored = await memory.restore(node.id)
    excluded = await memory.exclude(node.id)
    weighed = await memory.edit(node.id, importance=0.9)
    for after in (archived, restored, excluded, weighed):
        assert (after.version, after.updated_at) == (1, node.updated_at)
    tagged = await memory.edit(node.id, metadata={"tags": ["ai"]})
    assert tagged.version == 2
    assert tagged.updated_at > node.updated_at


async def test_D04_updated_at_moves_with_a_second_embedding_but_not_with_the_first(memory: Engine) -> None:
    node = await memory.add("embedded")
    assert (await memory.get(node.id)).updated_at == node.created_at
    changed = memory.settings.model_copy(update={"embedder": "hashing:32", "space": memory.space.slug})
    async with Engine(changed) as renewed:
        await renewed.work()
        await renewed.work()
        after = await renewed.get(node.id)
    assert after.updated_at > node.updated_at
    assert after.version == 1


async def test_D37_archive_and_exclude_are_reversible_and_leave_recall(memory: Engine) -> None:
    node = await memory.add("the green kettle is broken")

    async def found() -> bool:
        return node.id in {hit.node.id for hit in await memory.recall("green kettle")}

    assert await found()
    assert (await memory.forget(node.id)).status is Status.ARCHIVED
    assert not await found()
    assert (await memory.restore(node.id)).status is Status.ACTIVE
    assert await found()
    assert (await memory.exclude(node.id)).exclude
    assert not await found()
    await memory.include(node.id)
    assert await found()


async def test_P09_the_journal_tells_what_happened_when_and_why(memory: Engine) -> None:
    node = await memory.add("a life", wait=False)
    await memory.edit(node.id, metadata={"tags": ["life"]})
    await memory.forget(node.id, reason="no longer true")
    entries = await memory.history(node.id)
    assert [entry.verb for entry in entries] == ["add", "edit", "archive"]
    assert entries[2].reason == "no longer true"
    assert (entries[2].before, entries[2].after) == ({"status": "active"}, {"status": "archived"})
    before, after = entries[1].before or {}, entries[1].after or {}
    assert (before["metadata"], after["metadata"]) == ({}, {"tags": ["life"]})
    assert all(entry.plan_id and entry.policy == "hand" for entry in entries[1:])
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)


async def test_G06_a_plan_made_by_hand_says_what_was_done_to_what(memory: Engine) -> None:
    one = await memory.add("Linh prefers tea", wait=False)
    other = await memory.add("The kettle is new", wait=False)
    await memory.edit(one.id, metadata={"tags": ["life"]}, importance=0.9)
    await memory.forget(one.id, reason="no longer true")
    await memory.change_many([one.id, other.id], protect=True)
    await memory.change_many([other.id], add_tags=["office"])
    new = await memory.correct(other.id, "The kettle is old")
    plans, _ = await memory.plans.list()
    assert [plan.title for plan in plans] == [
        "Correct “The kettle is new”",
        "Add the tag office to “The kettle is new”",
        "Protect 2 memories",
        "Archive “Linh prefers tea”: no longer true",
        "Edit the tags and importance of “Linh prefers tea”",
    ]
    assert (await memory.history(new.id))[-1].reason == "corrected by hand"


async def test_G06_a_plan_of_one_link_names_what_it_joins(memory: Engine) -> None:
    one, other = [await memory.add(text, wait=False) for text in ("Linh prefers tea", "The kettle is new")]
    edge = await memory.graph.link(one.id, other.id)
    await memory.graph.link(one.id, other.id, explanation="said in the same week")
    await memory.graph.protect(edge.id)
    await memory.graph.protect(edge.id, protected=False, reason="it may fade")
    await memory.graph.unlink(edge.id)
    plans, _ = await memory.plans.list()
    assert [plan.title for plan in plans] == [
        "Unlink “Linh prefers tea” and “The kettle is new”",
        "Unprotect the link between “Linh prefers tea” and “The kettle is new”: it may fade",
        "Protect the link between “Linh prefers tea” and “The kettle is new”",
        "Link “Linh prefers tea” and “The kettle is new” again",
    ]


async def test_P07_undo_restores_the_row_exactly(memory: Engine) -> None:
    node = await memory.add("as it was", metadata={"tags": ["ai"]}, importance=0.3, wait=False)
    await memory.edit(node.id, metadata={"tags": ["code"]}, importance=0.8)
    plan = (await memory.history(node.id))[-1].plan_id
    assert plan
    outcome = await memory.undo(plan)
    assert (outcome.status, outcome.applied) == (PlanStatus.APPLIED, 1)
    assert await memory.get(node.id) == node
    assert (await memory.plan(plan)).status is PlanStatus.UNDONE


async def test_P07_repeating_an_undo_is_success_and_an_undo_can_be_undone(memory: Engine) -> None:
    node = await memory.add("to and fro", wait=False)
    await memory.forget(node.id)
    plan = (await memory.history(node.id))[-1].plan_id
    assert plan
    first = await memory.undo(plan)
    again = await memory.undo(plan)
    assert again.repeated
    assert (await memory.get(node.id)).status is Status.ACTIVE
    await memory.undo(first.plan_id)
    assert (await memory.get(node.id)).status is Status.ARCHIVED
    assert (await memory.plan(plan)).status is PlanStatus.APPLIED
    await memory.undo(plan)
    assert (await memory.get(node.id)).status is Status.ACTIVE


async def test_P07_undo_names_the_later_change_that_must_go_first(memory: Engine) -> None:
    node = await memory.add("twice changed", wait=False)
    await memory.edit(node.id, metadata={"tags": ["ai"]})
    await memory.edit(node.id, metadata={"tags": ["code"]})
    _, first, second = await memory.history(node.id)
    with pytest.raises(Conflict, match=f"changed since by the plan {second.plan_id}.*[Uu]ndo that one first"):
        await memory.undo(str(first.plan_id))
    assert (await memory.get(node.id)).metadata == {"tags": ["code"]}
    await memory.undo(str(second.plan_id))
    await memory.undo(str(first.plan_id))
    assert await memory.get(node.id) == node


async def test_P07_undo_keeps_changes_of_other_columns_since(memory: Engine) -> None:
    node = await memory.add("patches", wait=False)
    await memory.forget(node.id)
    plan = (await memory.history(node.id))[-1].plan_id
    assert plan
    await memory.edit(node.id, metadata={"tags": ["ai"]})
    await memory.undo(plan)
    after = await memory.get(node.id)
    assert (after.status, after.metadata) == (Status.ACTIVE, {"tags": ["ai"]})


async def test_asking_for_what_is_so_already_makes_no_plan(memory: Engine) -> None:
    node = await memory.add("idle", metadata={"tags": ["ai"]}, wait=False)
    await memory.restore(node.id)
    await memory.edit(node.id, metadata={"tags": ["ai"]})
    assert len(await memory.history(node.id)) == 1


async def test_merging_metadata_changes_field_by_field(memory: Engine) -> None:
    node = await memory.add("m", metadata={"tags": ["ai"], "extra": {"a": 1, "b": 2}}, wait=False)
    after = await memory.edit(node.id, metadata={"type": "todo", "extra": {"b": None, "c": 3}}, merge=True)
    assert after.metadata == {"tags": ["ai"], "type": "todo", "extra": {"a": 1, "c": 3}}


async def test_an_edit_of_an_older_version_is_refused(memory: Engine) -> None:
    node = await memory.add("v", wait=False)
    await memory.edit(node.id, metadata={"tags": ["ai"]}, if_version=1)
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        await memory.edit(node.id, metadata={"tags": ["code"]}, if_version=1)


async def test_P04_two_edits_at_once_never_lose_one(memory: Engine) -> None:
    node = await memory.add("race", wait=False)
    results = await asyncio.gather(
        *(memory.edit(node.id, metadata={"extra": {str(n): n}}, merge=True) for n in range(8)), return_exceptions=True
    )
    done = [one for one in results if not isinstance(one, BaseException)]
    assert all(isinstance(one, Conflict) for one in results if isinstance(one, BaseException))
    after = await memory.get(node.id)
    assert len(after.metadata["extra"]) == len(done) == after.version - 1


async def test_editing_what_is_not_there(memory: Engine) -> None:
    with pytest.raises(NotFound, match="Nothing is remembered under"):
        await memory.forget(uuid4())
    with pytest.raises(NotFound, match="There is no plan"):
        await memory.undo(uuid4())
    node = await memory.add("there", wait=False)
    with pytest.raises(InvalidInput, match="longer than 1,000 characters"):
        await memory.forget(node.id, reason="x" * 1001)


@pytest.mark.parametrize("nothing", [None, 7, [], b"ab12"])
async def test_what_is_no_id_is_said_to_be_none(memory: Engine, nothing: Any) -> None:
    """A program whose lookup found nothing hands on None."""
    for verb in (memory.forget, memory.restore, memory.exclude, memory.history):
        with pytest.raises(InvalidInput, match=r"is not an id|too short"):
            await verb(nothing)
