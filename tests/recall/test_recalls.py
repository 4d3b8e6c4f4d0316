"""The query log: what was asked, found and handed out; what ranking learns from it; and asking again."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import anyio
import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotFound
from recollect.memories.sql import activity
from recollect.model import Kind, Mode, Move, NodeFilter, Query, Status
from recollect.recall.queries import moves
from recollect.recall.recall import as_key, find, note
from recollect.recall.sql import logs
from recollect.recall.sql.logs import as_document, from_document

pytestmark = pytest.mark.anyio

TEA, CAKE = "Linh prefers green tea at home", "Linh bakes a carrot cake on Sundays"


async def noted(memory: Engine, text: str, *, mode: Mode = Mode.NEUTRAL, limit: int | None = None) -> UUID:
    query = Query(text=text, mode=mode, limit=limit, weak=True)
    found = await find(memory.core, memory.space.id, query)
    return await note(memory.core, memory.space.id, found, query=query)


async def last_ids(memory: Engine, text: str, mode: Mode) -> frozenset[UUID]:
    async with memory.core.search(memory.space.id) as db:
        return await logs.last_ids(db, text, mode)


async def times(memory: Engine, *ids: UUID) -> dict[UUID, int]:
    async with memory.core.search(memory.space.id) as db:
        return await logs.times_recalled(db, ids)


# --- what is kept


async def test_D11_D12_a_recall_is_logged_as_it_was(memory: Engine) -> None:
    tea = await memory.add(TEA)
    log = await memory.recall_log(await noted(memory, "green tea at home", limit=1))
    assert (log.user_query, log.mode, log.memory_ids) == ("green tea at home", Mode.NEUTRAL, (tea.id,))
    assert (log.embedding_model, log.response, log.confidence_score) == ("hashing:64", None, 0.5)
    (hit,) = log.hits
    assert hit.id == tea.id
    assert {"relevance", "similarity", "lexical", "recency", "importance"} <= set(hit.parts)
    assert log.asked["limit"] == 1
    assert log.latency_ms is not None


async def test_D11_entries_are_listed_newest_first_by_mode_and_page_by_page(memory: Engine) -> None:
    await memory.add(TEA)
    made = [await noted(memory, f"tea {number}", mode=(Mode.NEUTRAL, Mode.RECALL)[number % 2]) for number in range(5)]
    first = await memory.recalls(limit=2)
    second = await memory.recalls(limit=2, cursor=first.next_cursor)
    third = await memory.recalls(limit=2, cursor=second.next_cursor)
    assert [log.id for page in (first, second, third) for log in page.items] == made[::-1]
    assert third.next_cursor is None
    assert [log.id for log in (await memory.recalls(mode="recall")).items] == [made[3], made[1]]


async def test_an_entry_is_found_by_the_beginning_of_its_id(memory: Engine) -> None:
    id_ = await noted(memory, "anything")
    assert (await memory.recall_log(str(id_)[:8])).id == id_
    with pytest.raises(NotFound, match="No recall is logged under"):
        await memory.recall_log(uuid4())
    with pytest.raises(InvalidInput, match="is not an id"):
        await memory.recall_log("tea")


async def test_bad_pages_are_refused(memory: Engine) -> None:
    for limit in (0, -1, 1001):
        with pytest.raises(InvalidInput, match="The limit is from 1 to 1,000"):
            await memory.recalls(limit=limit)
    with pytest.raises(InvalidInput, match="cursor is not one"):
        await memory.recalls(cursor="nonsense")
    with pytest.raises(InvalidInput, match="There is no mode"):
        await memory.recalls(mode="nonsense")


async def test_nothing_of_the_log_crosses_a_space(memory: Engine) -> None:
    tea = await memory.add(TEA)
    id_ = await noted(memory, TEA, mode=Mode.RECALL)
    await memory.add_space(slug := f"t-{uuid4().hex[:12]}")
    other = await memory.in_space(slug)
    assert (await other.recalls()).items == ()
    with pytest.raises(NotFound):
        await other.recall_log(id_)
    assert await times(other, tea.id) == {}
    assert await last_ids(other, TEA, Mode.RECALL) == frozenset()


# --- what ranking asks of it


async def test_D24_the_last_two_answers_to_the_same_question_in_the_same_mode(memory: Engine) -> None:
    tea = await memory.add(TEA)
    await noted(memory, TEA, mode=Mode.RECALL)
    assert await last_ids(memory, TEA, Mode.RECALL) == {tea.id}
    assert await last_ids(memory, TEA, Mode.CHALLENGE) == frozenset()
    assert await last_ids(memory, TEA + "?", Mode.RECALL) == frozenset()
    await memory.forget(tea.id)
    await noted(memory, TEA, mode=Mode.RECALL)
    assert await last_ids(memory, TEA, Mode.RECALL) == {tea.id}
    await noted(memory, TEA, mode=Mode.RECALL)
    assert await last_ids(memory, TEA, Mode.RECALL) == frozenset()


async def test_D19_how_many_entries_hold_a_memory(memory: Engine) -> None:
    tea, cake = await memory.add(TEA), await memory.add(CAKE)
    await noted(memory, TEA, limit=1)
    await noted(memory, TEA, limit=1)
    await noted(memory, CAKE, limit=1)
    assert await times(memory, tea.id, cake.id, uuid4()) == {tea.id: 2, cake.id: 1}
    assert await times(memory, cake.id) == {cake.id: 1}
    assert await times(memory) == {}


async def test_D40_uses_are_counted_once_a_recall_also_when_many_recall_at_once(memory: Engine) -> None:
    nodes = [await memory.add(f"{TEA}, cup {number}") for number in range(4)]
    before = memory.core.now()
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(noted, memory, f"{TEA} {number}")
    async with memory.core.transaction(memory.space.id) as db:
        found = await activity.get_many(db, [node.id for node in nodes])
    assert {found[node.id].uses for node in nodes} == {10}
    last = found[nodes[0].id].last_used_at
    assert last
    assert last > before


# --- asking again


async def test_D11_a_replay_of_an_unchanged_memory_is_the_same(memory: Engine) -> None:
    await memory.add(TEA)
    await memory.add(CAKE)
    replay = await memory.replay(await noted(memory, "Linh at home"))
    assert replay.is_same
    assert len(replay.recall) == len(replay.log.hits) == 2
    assert len((await memory.recalls()).items) == 1


async def test_D11_a_replay_tells_what_came_and_what_went(memory: Engine) -> None:
    tea, cake = await memory.add(TEA), await memory.add(CAKE)
    id_ = await noted(memory, "Linh green tea at home")
    await memory.forget(tea.id)
    new = await memory.add("Linh has green tea at home and abroad")
    replay = await memory.replay(str(id_)[:8])
    assert (replay.added, replay.removed, replay.moved) == ((new.id,), (tea.id,), ())
    assert cake.id in {hit.node.id for hit in replay.recall}
    assert not replay.is_same


async def test_D11_a_replay_asks_what_was_asked_then(memory: Engine) -> None:
    await memory.add(TEA)
    await memory.add(CAKE, subtype="idea")
    wanted = NodeFilter(subtypes=("idea",), excluded=False)
    query = Query(text="Linh", wanted=wanted, limit=3)
    found = await find(memory.core, memory.space.id, query)
    id_ = await note(memory.core, memory.space.id, found, query=query)
    replay = await memory.replay(id_)
    assert [hit.node.subtype for hit in replay.recall] == ["idea"]


def test_only_what_changed_places_has_moved() -> None:
    a, b, c, d = (uuid4() for _ in range(4))
    assert moves([a, b, c], [d, a, b, c]) == ()
    assert moves([a, b, c], [b, a, c]) == (Move(id=b, before=2, after=1), Move(id=a, before=1, after=2))
    assert moves([a, b], []) == ()


def test_a_query_comes_back_from_its_document() -> None:
    query = Query(
        text="what?",
        mode=Mode.REFLECT,
        limit=3,
        threshold=0.4,
        wanted=NodeFilter(
            kinds=(Kind.MEMORY, Kind.PAGE),
            subtypes=("idea",),
            statuses=(Status.ACTIVE,),
            excluded=False,
            created_from=datetime(2026, 1, 2, tzinfo=UTC),
            metadata={"tags": ["ai"], "extra": {"n": 1}},
        ),
        budget_tokens=100,
    )
    assert from_document(as_document(query)) == query
    assert as_key(query) == as_key(from_document(as_document(query)))
    assert as_key(query) != as_key(Query(text="what?"))
    assert from_document({"text": "from an older log"}) == Query(text="from an older log")
