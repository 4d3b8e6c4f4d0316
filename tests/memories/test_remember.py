"""Remembering: what is stored, what is refused, and that nothing is half-done."""

import asyncio
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.engine.sql import spaces as store
from recollect.errors import DuplicateText, ForgottenText, InvalidInput, NotFound
from recollect.memories.rules.tags import LONGEST_TAG, REGISTERED_TAGS, TAGS
from recollect.memories.rules.text import checksum, normalise
from recollect.model import ContentType, NewMemory, NodeFilter, Status
from tests.recall.test_words import messages

pytestmark = pytest.mark.anyio

messages = messages


async def owner_of(memory: Engine) -> asyncpg.Connection:
    return await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})


async def test_D03_several_are_handed_in_as_texts_as_their_fields_or_as_they_are(memory: Engine) -> None:
    handed_in: list[Any] = [
        "Rain all day.",
        {"text": "Sun at last.", "thread": "diary"},
        NewMemory(text="Tea."),
        {"txt": "?"},
        7,
    ]
    added = await memory.add_many(handed_in, wait=False)
    nodes = [await memory.get(id_) for id_ in added.ids]
    assert [(node.text, node.thread) for node in nodes] == [
        ("Rain all day.", None),
        ("Sun at last.", "diary"),
        ("Tea.", None),
    ]
    assert [refused.position for refused in added.refused] == [3, 4]
    assert "'txt' is not a field of a memory" in added.refused[0].message
    for alone in ("One text.", {"text": "One text."}):
        with pytest.raises(InvalidInput, match="a list of them"):
            await memory.add_many(alone)  # not letter by letter
    assert len((await memory.list()).items) == 3


async def test_X04_what_is_added_is_handed_out_as_it_is_kept(memory: Engine) -> None:
    """One alone is not read again: the statement that stores it says what it stored."""
    given: dict[str, Any] = {"metadata": {"tags": ["life"], "extra": {"half": 0.5, "none": None, "é": [1, 2]}}}
    plain = await memory.add("  Linh prefers te\u0301  ", wait=False)
    rich = await memory.add(
        "And Bao?", thread="chat", source="mail", source_id="7", importance=0.1, **given, wait=False
    )
    assert [await memory.get(plain.id), await memory.get(rich.id)] == [plain, rich]
    assert plain.text == "Linh prefers té"


async def test_X04_one_memory_takes_at_most_9_messages(memory: Engine, messages: list[int]) -> None:
    """On a cluster each of them is a journey to a worker besides."""
    for number in range(3):  # statements are prepared once, and no word is new
        messages.clear()
        await memory.add(f"the harbour at noon {number}", wait=False)
    assert 0 < len(messages) <= 9


async def test_D03_a_memory_has_its_fields(memory: Engine) -> None:
    before = datetime.now(UTC)
    node = await memory.add(
        "Linh prefers tea", subtype="reflection", importance=0.7, metadata={"tags": ["life"]}, thread="chat", wait=False
    )
    assert isinstance(node.id, UUID)
    assert (node.text, node.subtype, node.importance, node.version) == ("Linh prefers tea", "reflection", 0.7, 1)
    assert node.checksum == checksum("Linh prefers tea")
    assert (node.status, node.exclude, node.is_summary) == (Status.ACTIVE, False, False)
    assert (node.thread, node.position) == ("chat", 0)
    assert node.metadata == {"tags": ["life"]}
    assert node.created_at == node.updated_at
    assert before <= node.created_at <= datetime.now(UTC)


async def test_D01_the_text_cannot_be_changed_or_deleted_in_the_database(memory: Engine) -> None:
    node = await memory.add("written in stone", wait=False)
    connection = await owner_of(memory)
    try:
        for statement in (
            "UPDATE nodes SET text = 'other' WHERE id = $1",
            "UPDATE nodes SET checksum = 'x' WHERE id = $1",
            "UPDATE nodes SET kind = 'concept' WHERE id = $1",
            "DELETE FROM nodes WHERE id = $1",
        ):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"permanent|never deleted"):
                await connection.execute(statement, node.id)
        with pytest.raises(asyncpg.PostgresError, match="never deleted"):
            await connection.execute("TRUNCATE nodes CASCADE")
    finally:
        await connection.close()
    assert (await memory.get(node.id)).text == "written in stone"


@pytest.mark.parametrize("subtype", list(ContentType))
async def test_D02_each_of_the_six_content_types(memory: Engine, subtype: str) -> None:
    assert (await memory.add(f"a {subtype}", subtype=subtype, wait=False)).subtype == subtype


async def test_D02_the_default_is_note_and_a_seventh_is_refused(memory: Engine) -> None:
    assert (await memory.add("plain", wait=False)).subtype == "note"
    with pytest.raises(InvalidInput, match=r"'quote' is not a content type; one of note, conversation"):
        await memory.add("quoted", subtype="quote", wait=False)


async def test_D05_the_same_text_twice_names_the_existing_id(memory: Engine) -> None:
    first = await memory.add("Only once", wait=False)
    for twin in ("Only once", "  Only once\r\n", "Only once\n"):
        with pytest.raises(DuplicateText, match=str(first.id)) as refusal:
            await memory.add(twin, wait=False)
        assert refusal.value.existing_id == first.id
    assert await memory.count() == 1


async def test_D05_a_text_that_is_out_of_recall_is_not_called_remembered(memory: Engine) -> None:
    """Who moved to Paris and back lives in Berlin again: nobody is told that this is known while recall says Paris."""
    berlin = await memory.add("Linh lives in Berlin", wait=False)
    paris = await memory.correct(berlin.id, "Linh lives in Paris")
    hidden = await memory.add("Linh has a cat", wait=False)
    await memory.exclude(hidden.id)
    with pytest.raises(ForgottenText, match=r"was forgotten.*`recollect restore` brings it back") as refusal:
        await memory.add("Linh lives in Berlin", wait=False)
    assert (refusal.value.existing_id, refusal.value.code) == (berlin.id, "forgotten")
    with pytest.raises(ForgottenText, match="kept out of recall: `recollect include`"):
        await memory.add("Linh has a cat", wait=False)
    added = await memory.add_many(["Linh lives in Berlin", "Linh lives in Paris"])
    assert [(one.code, one.existing_id) for one in added.refused] == [("forgotten", berlin.id), ("duplicate", paris.id)]


async def test_D05_the_same_text_may_stand_in_another_space(memory: Engine) -> None:
    await memory.add("shared words", wait=False)
    await memory.add_space(other := f"other-{uuid4().hex[:8]}")
    elsewhere = await memory.in_space(other)
    assert (await elsewhere.add("shared words", wait=False)).text == "shared words"


async def test_D05_two_writers_of_the_same_texts_store_each_once(memory: Engine) -> None:
    texts = [f"said at once {n}" for n in range(200)]
    orders = (texts, texts[::-1], texts[100:] + texts[:100])
    added = await asyncio.gather(
        *(memory.add_many([NewMemory(text=text) for text in order], wait=False) for order in orders)
    )
    assert sum(len(part.ids) for part in added) == 200
    assert all(one.code == "duplicate" and one.existing_id for part in added for one in part.refused)
    assert await memory.count() == 200


def test_D06_there_are_22_registered_tags() -> None:
    assert len(REGISTERED_TAGS) == 22 == sum(len(group) for group in TAGS.values())


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ({"tags": [" "]}, "' ' cannot be a tag: a tag has 1 to 100 characters on one line"),
        ({"tags": ["x" * (LONGEST_TAG + 1)]}, "cannot be a tag: a tag has 1 to 100 characters"),
        ({"tags": ["two\nlines"]}, "without control characters"),
        ({"tags": "ai"}, "tags is a list of texts"),
        ({"type": "invoice"}, "type 'invoice' is unknown; one of expense, todo, bookmark is"),
        ({"source": "fax"}, "source 'fax' is unknown; one of cli, telegram, import, api, mcp, web is"),
        ({"mood": "good"}, "'mood' is not a metadata field of contract V1"),
        ({"extra": []}, "extra is an object"),
        ({"source_urls": [1]}, "source_urls is a list of texts"),
        ({"chunk_index": 0}, "chunk_index is a whole number from 1"),
        ({"extra": {"x": math.nan}}, "metadata cannot be written as JSON"),
        ({"extra": {"x": "nul \0"}}, "NUL byte"),
        ([], "metadata is an object, not"),
    ],
)
async def test_D06_bad_metadata_is_named_and_nothing_stored(memory: Engine, metadata: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await memory.add("never stored", metadata=metadata, wait=False)
    assert sentence.lower() in refusal.value.message.lower()
    assert refusal.value.field
    assert refusal.value.field.startswith("metadata")
    assert await memory.count() == 0


async def test_D06_G08_a_strict_space_accepts_registered_tags_only(memory: Engine) -> None:
    await memory.set_space(memory.space.slug, {"strict_tags": True})
    with pytest.raises(InvalidInput, match="'gardening' is not registered; registered are ai, article, code"):
        await memory.add("roses", metadata={"tags": ["gardening"]}, wait=False)
    assert await memory.count() == 0
    await memory.set_space(memory.space.slug, {"tags": ["gardening"]})
    await memory.add("roses", metadata={"tags": ["gardening"]}, wait=False)
    with pytest.raises(InvalidInput, match="'opera' is not registered"):
        await memory.add("tosca", metadata={"tags": ["opera"]}, wait=False)
    await memory.set_space(memory.space.slug, {"strict_tags": False})
    await memory.add("tosca", metadata={"tags": ["opera"]}, wait=False)


@pytest.mark.parametrize("tag", ["gardening", "area/health", "2024", "Sức khoẻ", "x" * LONGEST_TAG, "🍵", "C++ & Rust"])
async def test_G08_any_word_is_a_tag(memory: Engine, tag: str) -> None:
    node = await memory.add("roses", metadata={"tags": [tag]}, wait=False)
    assert node.metadata["tags"] == [tag]
    assert (await memory.edit(node.id, metadata={"tags": [tag, "opera"]})).metadata["tags"] == [tag, "opera"]


async def test_G08_a_new_tag_that_looks_like_a_slip_is_pointed_out_once_and_kept(memory: Engine) -> None:
    def new(text: str, *tags: str) -> NewMemory:
        return NewMemory(text=text, metadata={"tags": list(tags)})

    first = await memory.add_many([new("a", "gardening"), new("b", "helth"), new("c", "helth")], wait=False)
    [note] = first.notes
    assert (note.position, len(first.ids)) == (1, 3)
    assert "'helth' is new here and was kept; if you meant 'health'" in note.message
    again = await memory.add_many([new("d", "helth"), new("e", "Gardenning")], wait=False)
    assert ["'gardening'" in one.message for one in again.notes] == [True]


@pytest.mark.parametrize("stored", [{"open_tags": True}, {"open_tags": False}, {"open_tags": False, "tags": ["opera"]}])
async def test_G08_a_space_that_was_opened_or_closed_before_stays_so(memory: Engine, stored: dict[str, Any]) -> None:
    async with memory.core.database.owner() as connection:
        await store.change_settings(connection, memory.space.id, stored)
    if stored["open_tags"]:
        await memory.add("roses", metadata={"tags": ["gardening"]}, wait=False)
    else:
        with pytest.raises(InvalidInput, match="'gardening' is not registered"):
            await memory.add("roses", metadata={"tags": ["gardening"]}, wait=False)
    [space] = [one for one in await memory.spaces() if one.id == memory.space.id]
    strict = {} if stored["open_tags"] else {"strict_tags": True}
    assert space.settings == {name: value for name, value in stored.items() if name == "tags"} | strict
    changed = await memory.set_space(memory.space.slug, {"strict_tags": False})
    assert changed.settings["strict_tags"] is False
    with pytest.raises(InvalidInput, match="set strict_tags in place of open_tags"):
        await memory.set_space(memory.space.slug, {"open_tags": True})


async def test_D07_metadata_over_4096_bytes_is_refused_on_insert_and_update(memory: Engine) -> None:
    room = 4096 - len('{"extra": {"x": ""}}')
    fits, over = {"extra": {"x": "a" * room}}, {"extra": {"x": "a" * (room + 1)}}
    node = await memory.add("fits", metadata=fits, wait=False)
    with pytest.raises(InvalidInput, match="Metadata has 4,097 bytes"):
        await memory.add("too much", metadata=over, wait=False)
    with pytest.raises(InvalidInput, match="the limit is 4,096"):
        await memory.edit(node.id, metadata=over)
    assert (await memory.get(node.id)).metadata == fits


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"text": ""}, "The text is empty: say what to remember."),
        ({"text": " \n\t "}, "The text is empty: say what to remember."),
        ({"text": "a\0b"}, "NUL byte"),
        ({"text": "\ud800"}, "lone surrogate"),
        ({"text": "é" * 500_001}, "the text has 1,000,002 bytes, the limit is 1,000,000"),
        ({"text": "x", "importance": 1.01}, "importance is a number from 0 to 1, not 1.01"),
        ({"text": "x", "importance": math.nan}, "importance is a number from 0 to 1, not nan"),
        ({"text": "x", "importance": True}, "importance is a number from 0 to 1, not True"),
        ({"text": "x", "created_at": datetime(2999, 1, 1, tzinfo=UTC)}, "lies in the future"),
        ({"text": "x", "created_at": datetime(1, 1, 1, tzinfo=UTC)}, "no time is known"),
        ({"text": "x", "created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}, "no time is known"),
        ({"text": "x", "position": 3}, "a position needs the thread"),
        ({"text": "x", "thread": "t", "position": -1}, "position is a whole number from 0"),
        ({"text": "x", "thread": " "}, "thread is a text of 1 to 500 characters"),
    ],
)
async def test_bad_input_is_one_sentence_and_changes_nothing(
    memory: Engine, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await memory.add(wait=False, **fields)
    assert sentence.lower() in refusal.value.message.lower()
    assert refusal.value.message.count("\n") == 0
    assert await memory.count() == 0


async def test_a_batch_keeps_the_good_and_reports_the_bad_by_position(memory: Engine) -> None:
    first = await memory.add("there before", wait=False)
    batch = ["good", "", "there before", "good", "also good"]
    added = await memory.add_many([NewMemory(text=text) for text in batch], wait=False)
    assert len(added.ids) == 2
    assert [(one.position, one.code) for one in added.refused] == [
        (1, "invalid_input"),
        (2, "duplicate"),
        (3, "duplicate"),
    ]
    assert added.refused[1].existing_id == first.id
    assert added.refused[2].existing_id == added.ids[0]
    assert await memory.count() == 3


async def test_an_atomic_batch_is_all_or_nothing(memory: Engine) -> None:
    for bad in ("", "one"):
        with pytest.raises(InvalidInput):
            await memory.add_many([NewMemory(text=text) for text in ("one", "two", bad)], wait=False, atomic=True)
        assert await memory.count() == 0
    assert (await memory.jobs()).pending == 0


async def test_a_stream_is_taken_in_batches(memory: Engine) -> None:
    seen: list[int] = []

    async def source() -> Any:
        for number in range(4500):
            yield NewMemory(text=f"line {number}")

    added = await memory.add_many(source(), wait=False, progress=seen.append)
    assert (len(added.ids), seen) == (4500, [500, 4500])


async def test_a_thread_counts_in_order_of_arrival(memory: Engine) -> None:
    await memory.add_many([NewMemory(text=f"turn {n}", thread="chat") for n in range(3)], wait=False)
    late = await memory.add("turn 3", thread="chat", wait=False)
    given = await memory.add("turn 9", thread="chat", position=9, wait=False)
    after = await memory.add("turn 10", thread="chat", wait=False)
    assert (late.position, given.position, after.position) == (3, 9, 10)
    listed = (await memory.list(NodeFilter(thread="chat"))).items
    assert sorted(node.position or 0 for node in listed) == [0, 1, 2, 3, 9, 10]


async def test_two_writers_of_one_thread_never_share_a_position(memory: Engine) -> None:
    await asyncio.gather(*(memory.add(f"turn {n}", thread="busy", wait=False) for n in range(20)))
    listed = (await memory.list(NodeFilter(thread="busy"))).items
    assert sorted(node.position or 0 for node in listed) == list(range(20))


async def test_a_foreign_id_is_unique_in_its_source(memory: Engine) -> None:
    first = await memory.add("from the old system", source="notion", source_id="42", wait=False)
    with pytest.raises(InvalidInput, match=f"'42' of the source 'notion' is remembered already, as {first.id}"):
        await memory.add("other words", source="notion", source_id="42", wait=False)
    await memory.add("other words", source="roam", source_id="42", wait=False)


async def test_an_id_given_twice_is_refused(memory: Engine) -> None:
    id_ = uuid4()
    await memory.add("first", id=id_, wait=False)
    with pytest.raises(InvalidInput, match=f"The id {id_} belongs to another memory already"):
        await memory.add("second", id=id_, wait=False)


async def test_listing_pages_through_everything_once(memory: Engine) -> None:
    await memory.add_many([NewMemory(text=f"note {n}") for n in range(25)], wait=False)
    seen: list[str] = []
    cursor = None
    while True:
        page = await memory.list(limit=10, cursor=cursor)
        seen += [node.text or "" for node in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"note {n}" for n in reversed(range(25))]


async def test_D25_D26_listing_filters(memory: Engine) -> None:
    await memory.add("tea", metadata={"tags": ["life"], "extra": {"person_name": "Linh"}}, wait=False)
    await memory.add("bill", subtype="log", metadata={"type": "expense", "source": "cli"}, wait=False)
    await memory.add("plan", subtype="idea", created_at=datetime(2020, 1, 1, tzinfo=UTC), wait=False)
    archived = await memory.add("old", wait=False)
    await memory.forget(archived.id)

    async def texts(**fields: Any) -> set[str | None]:
        return {node.text for node in (await memory.list(NodeFilter(**fields))).items}

    assert await texts(metadata={"tags": ["life"]}) == {"tea"}
    assert await texts(metadata={"extra": {"person_name": "Linh"}}) == {"tea"}
    assert await texts(metadata={"type": "expense"}) == await texts(metadata={"source": "cli"}) == {"bill"}
    assert await texts(subtypes=("log", "idea")) == {"bill", "plan"}
    assert await texts(created_to=datetime(2021, 1, 1, tzinfo=UTC)) == {"plan"}
    assert await texts(statuses=(Status.ARCHIVED,)) == {"old"}
    assert await texts() == {"tea", "bill", "plan"}


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_listing_limit_out_of_range_is_refused(memory: Engine, limit: int) -> None:
    with pytest.raises(InvalidInput, match=r"The limit is from 1 to 1,000"):
        await memory.list(limit=limit)


async def test_a_foreign_cursor_is_refused(memory: Engine) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await memory.list(cursor="bm9wZQ==")


async def test_an_id_may_be_shortened_while_it_is_unique(memory: Engine) -> None:
    node = await memory.add("findable", id=UUID("abcd1234-0000-4000-8000-000000000001"), wait=False)
    await memory.add("twin", id=UUID("abcd1299-0000-4000-8000-000000000001"), wait=False)
    assert (await memory.get("abcd1234")).id == node.id
    with pytest.raises(NotFound, match="Nothing is remembered under ffff"):
        await memory.get("ffff")
    with pytest.raises(InvalidInput, match="is too short"):
        await memory.get("abc")


def test_D03_normalising_is_idempotent_and_checksums_follow_it() -> None:
    assert normalise(" Cafe\u0301\r\nau lait ") == "Café\nau lait" == normalise(normalise(" Cafe\u0301\r\nau lait "))
    assert checksum("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
