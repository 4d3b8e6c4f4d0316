"""Many at once: while one batch is stored the next is prepared, and what is promised of one batch holds of all."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.engine.engine import Engine
from recollect.memories import remember
from recollect.model import NewMemory, NodeFilter

pytestmark = pytest.mark.anyio

BATCH = 20


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("FIRST", "BATCH"):
        monkeypatch.setattr(remember, size, BATCH)


def notes(count: int) -> list[str]:
    return [f"note {number} of the load" for number in range(count)]


async def texts_in_order(memory: Engine) -> list[str | None]:
    return [node.text for node in (await memory.list(NodeFilter(), limit=1000, order="oldest")).items]


async def test_a_load_is_listed_in_its_order_however_late_the_clock_ticks(memory: Engine) -> None:
    memory.core.now = lambda: datetime(2026, 5, 1, tzinfo=UTC)
    added = await memory.add_many(notes(5 * BATCH + 7), wait=False)
    assert await texts_in_order(memory) == notes(5 * BATCH + 7)
    assert [(await memory.get(id_)).text for id_ in added.ids[::BATCH]] == notes(5 * BATCH + 7)[::BATCH]


async def test_turns_of_a_thread_keep_their_places_over_batches(memory: Engine) -> None:
    turns = [NewMemory(text=text, thread="chat") for text in notes(3 * BATCH)]
    added = await memory.add_many(turns, wait=False)
    assert [(await memory.get(id_)).position for id_ in added.ids] == [*range(3 * BATCH)]


async def test_of_long_texts_a_batch_has_fewer(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remember, "MOST_CHARACTERS", 1000)
    long = [NewMemory(text=f"{number} {'x' * 400}") for number in range(4)]
    given: list[Any] = [*long, {"text": "y" * 1000}, {"text": None}, None, 7, *notes(3)]
    stored: list[int] = []
    added = await memory.add_many(given, wait=False, progress=stored.append)
    assert stored == [3, 5, len(given)]
    assert [one.position for one in added.refused] == [5, 6, 7]


async def test_a_list_ends_with_no_small_batch(memory: Engine) -> None:
    """Of what comes one by one nobody knows where it ends."""
    listed: list[int] = []
    await memory.add_many(notes(3 * BATCH + 5), wait=False, progress=listed.append)
    one_by_one: list[int] = []
    await memory.add_many(iter(notes(3 * BATCH + 5)), wait=False, progress=one_by_one.append)
    assert listed == [BATCH, 2 * BATCH, 3 * BATCH + 5]
    assert one_by_one == [BATCH, 2 * BATCH, 3 * BATCH, 3 * BATCH + 5]


async def test_what_came_before_a_source_that_breaks_off_is_stored(memory: Engine) -> None:
    def source() -> Iterator[str]:
        yield from notes(2 * BATCH + 5)
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        await memory.add_many(source(), wait=False)
    assert await texts_in_order(memory) == notes(2 * BATCH)


async def test_a_load_that_is_cancelled_leaves_whole_batches_and_its_connections(memory: Engine) -> None:
    begun = asyncio.Event()
    load = asyncio.create_task(memory.add_many(notes(50 * BATCH), wait=False, progress=lambda _: begun.set()))
    await begun.wait()
    load.cancel()
    with pytest.raises(asyncio.CancelledError):
        await load
    stored = await texts_in_order(memory)
    assert stored == notes(len(stored))
    assert len(stored) % BATCH == 0
    assert memory.core.database.pool.in_use == 0
    await memory.add("and goes on", wait=False)


async def test_an_error_on_the_way_is_heard_and_whole_batches_stay(memory: Engine) -> None:
    def refuse_after_two(done: int) -> None:
        if done == 2 * BATCH:
            raise OSError("the screen is gone")

    with pytest.raises(OSError, match="screen"):
        await memory.add_many(notes(10 * BATCH), wait=False, progress=refuse_after_two)
    assert await texts_in_order(memory) == notes(2 * BATCH)


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """The tests themselves have frozen what they begin with (conftest)."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
async def test_what_a_load_spares_the_search_for_garbage_is_searched_again_after_it(memory: Engine) -> None:
    frozen = []
    await memory.add_many(notes(3 * BATCH), wait=False, progress=lambda _: frozen.append(gc.get_freeze_count() > 0))
    assert any(frozen)
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
async def test_what_somebody_else_has_frozen_stays_frozen(memory: Engine) -> None:
    gc.freeze()
    await memory.add_many(notes(3 * BATCH), wait=False)
    assert gc.get_freeze_count() > 0


async def test_while_a_load_prepares_beside_storing_threads_take_shorter_turns(memory: Engine) -> None:
    before, turns = sys.getswitchinterval(), []
    both = [
        memory.add_many(texts, wait=False, progress=lambda _: turns.append(sys.getswitchinterval()))
        for texts in (notes(3 * BATCH), [f"of another load: {text}" for text in notes(4 * BATCH)])
    ]
    await asyncio.gather(*both)
    assert min(turns) < before
    assert sys.getswitchinterval() == before


async def test_D05_twins_in_any_batch_are_refused_by_their_place_and_not_counted(memory: Engine) -> None:
    """Words are looked at before it is known who was there already."""
    first = await memory.add("note 3 of the load", wait=False)
    given = [*notes(2 * BATCH), "note 5 of the load", "", *notes(2 * BATCH + 3)[-3:]]
    added = await memory.add_many(given, wait=False)
    refused = {one.position: one.existing_id for one in added.refused}
    assert refused.keys() == {3, 2 * BATCH, 2 * BATCH + 1}
    assert (refused[3], refused[2 * BATCH]) == (first.id, added.ids[4])
    async with memory.core.transaction(memory.space.id) as db:
        rows = await db.fetch("SELECT terms, length FROM lexicon WHERE space_id = $1")
        counted = dict(await db.fetch("SELECT term, documents FROM term_stats WHERE space_id = $1"))
        totals = await db.fetchrow("SELECT documents, total_length FROM lexicon_totals WHERE space_id = $1")
    assert counted == Counter(term for row in rows for term in row["terms"])
    assert tuple(totals) == (len(rows), sum(row["length"] for row in rows)) == (2 * BATCH + 3, totals["total_length"])


async def test_D06_what_was_prepared_by_a_contract_of_before_is_checked_by_that_of_now(memory: Engine) -> None:
    tagged = NewMemory(text="tagged at will", metadata={"tags": ["at-will"]})
    batch = remember._Batch(given=[tagged, "plain"], first=0, atomic=False, now=memory.core.now())
    prepared = await remember._prepare(memory.space.id, batch, memory.core.contract(memory.space))
    assert len(prepared.arrivals.memories) == 2
    await memory.set_space(memory.space.slug, {"strict_tags": True})
    added, _ = await remember._store(memory.core, memory.space.id, batch, prepared)
    assert [one.position for one in added.refused] == [0]
    assert await texts_in_order(memory) == ["plain"]
