"""Correcting a memory, changing many, importing what a browser sends: the verbs of a place to live with memories."""

from uuid import uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, DuplicateText, InvalidInput, NotFound
from recollect.memories.import_texts import checked_path
from recollect.model import NewMemory, NodeFilter, Status

pytestmark = pytest.mark.anyio


async def test_W02_a_corrected_text_supersedes_the_old_one_which_stays_in_history(memory: Engine) -> None:
    old = await memory.add("Linh drinks coffee", metadata={"tags": ["life"]}, importance=0.8, thread="office")
    new = await memory.correct(old.id, "Linh drinks tea, never coffee", reason="she told me")
    assert (new.status, new.importance, new.thread) == (Status.ACTIVE, 0.8, "office")
    assert new.metadata["tags"] == ["life"]
    assert new.metadata["extra"]["corrects"] == str(old.id)
    assert (await memory.get(old.id)).status is Status.ARCHIVED
    assert [hit.node.id for hit in await memory.recall("what does Linh drink?")] == [new.id]
    step = (await memory.history(old.id))[-1]
    assert (step.verb, step.reason) == ("correct", "she told me")

    assert step.plan_id is not None
    await memory.undo(step.plan_id)
    assert (await memory.get(old.id)).status is Status.ACTIVE
    assert (await memory.get(new.id)).status is Status.ARCHIVED
    assert [hit.node.id for hit in await memory.recall("what does Linh drink?")] == [old.id]


async def test_W02_a_correction_that_was_undone_can_be_made_again(memory: Engine) -> None:
    old = await memory.add("the key is in flat 3")
    new = await memory.correct(old.id, "the key is in flat 4")
    plan = (await memory.history(old.id))[-1].plan_id
    assert plan is not None
    await memory.undo(plan)
    again = await memory.correct(old.id, "the key is in flat 4")
    assert (again.id, again.status) == (new.id, Status.ACTIVE)


async def test_W02_what_cannot_be_corrected_is_said_and_changes_nothing(memory: Engine) -> None:
    old, other = await memory.add("one"), await memory.add("another")
    with pytest.raises(Conflict, match="nothing to correct"):
        await memory.correct(old.id, "one")
    with pytest.raises(DuplicateText):
        await memory.correct(old.id, "another")
    with pytest.raises(InvalidInput):
        await memory.correct(old.id, "  ")
    await memory.forget(old.id)
    with pytest.raises(Conflict, match="archived"):
        await memory.correct(old.id, "one more")
    assert await memory.count(NodeFilter(statuses=(Status.ACTIVE,))) == 1
    assert (await memory.get(other.id)).status is Status.ACTIVE


async def test_W01_many_are_changed_by_one_plan_that_can_be_undone(memory: Engine) -> None:
    ids = (await memory.add_many([NewMemory(text=f"note {number}") for number in range(5)], wait=False)).ids
    done = await memory.change_many(ids, archive=True, add_tags=["garden"])
    assert (done.changed, done.unchanged) == (5, 0)
    for id_ in ids:
        node = await memory.get(id_)
        assert (node.status, node.metadata["tags"]) == (Status.ARCHIVED, ["garden"])
    again = await memory.change_many(ids, archive=True)
    assert (again.plan_id, again.changed, again.unchanged) == (None, 0, 5)
    assert done.plan_id is not None
    await memory.undo(done.plan_id)
    assert [(await memory.get(id_)).status for id_ in ids] == [Status.ACTIVE] * 5
    assert (await memory.get(ids[0])).metadata == {}
    protected = await memory.change_many([*ids, ids[0]], protect=True, reason="mine")
    assert protected.changed == 5
    assert (await memory.history(ids[2]))[-1].reason == "mine"


async def test_W01_a_change_of_many_is_all_or_nothing(memory: Engine) -> None:
    node = await memory.add("here", wait=False)
    with pytest.raises(NotFound, match="Nothing changed"):
        await memory.change_many([node.id, uuid4()], archive=True)
    with pytest.raises(InvalidInput, match="nothing to change"):
        await memory.change_many([node.id])
    with pytest.raises(InvalidInput):
        await memory.change_many([], archive=True)
    with pytest.raises(InvalidInput):
        await memory.change_many([node.id], add_tags=["x" * 500])
    assert (await memory.get(node.id)).status is Status.ACTIVE


async def test_W01_a_listing_goes_in_either_order(memory: Engine) -> None:
    texts = [f"note {number}" for number in range(5)]
    for text in texts:
        await memory.add(text, wait=False)
    seen, cursor = list[str | None](), None
    while True:
        page = await memory.list(limit=2, cursor=cursor, order="oldest")
        seen += [node.text for node in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == texts
    assert [node.text for node in (await memory.list()).items] == texts[::-1]


async def test_W03_files_given_by_name_and_text_are_imported_as_a_folder_is(memory: Engine) -> None:
    files = {
        "notes/tea.md": "---\ntags: [life]\n---\n# Tea\n\nGreen, never black.",
        "log.txt": "it rained",
        "x.bin": "\0\1",
    }
    rehearsed = await memory.import_texts(files, dry_run=True)
    assert (rehearsed.dry_run, rehearsed.added) == (True, 2)
    assert await memory.count() == 0
    report = await memory.import_texts(files)
    assert (report.added, [line.file for line in report.skipped]) == (2, ["x.bin"])
    threads = {node.thread for node in (await memory.list()).items}
    assert threads == {"notes/tea.md", "log.txt"}
    assert (await memory.import_texts(files)).already_there == 2


@pytest.mark.parametrize("path", ["", "..", "../up.md", "a/../../b", "a\0b", "x" * 300, "\ud800.md", "/"])
def test_W03_a_name_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="is not a file name"):
        checked_path(path)


def test_W03_names_are_below_the_folder() -> None:
    assert str(checked_path("/etc/passwd")) == "etc/passwd"
    assert str(checked_path("C:\\notes\\./a.md")) == "C:/notes/a.md"
