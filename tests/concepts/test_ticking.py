"""Ticks: concepts are looked through every so many changes of the space, and merged every so many more (C18)."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from recollect.engine.engine import Engine
from recollect.schedules import run as scheduled
from recollect.schedules import scheduler
from recollect.schedules.sql import schedules
from tests.concepts.test_concepts import make

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
POLICY = "merge_duplicate_concepts"


@pytest.fixture
async def ticking(memory: Engine) -> Engine:
    """A memory that looks every 3 changes, and merges every 9."""
    memory.core.now = lambda: NOW
    update = {"duplicates_detect_every": 3, "duplicates_merge_every": 9}
    memory.core.settings = memory.core.settings.model_copy(update=update)
    return memory


async def grow(memory: Engine, number: int) -> None:
    for place in range(number):
        await make(memory, f"elephant {'abcdefghij'[place]}", text=f"number {place} of its kind, {place * 7}")


@pytest.mark.usefixtures("one_server")
async def test_C01_detection_comes_every_so_many_ticks_and_changes_nothing(ticking: Engine) -> None:
    await make(ticking, "tea house")
    await make(ticking, "Tea House")
    assert await ticking.concepts.tick() == []
    await make(ticking, "elephant", text="a large animal")
    (done,) = await ticking.concepts.tick()
    assert (done.did, done.pairs) == ("detection", 1)
    assert await ticking.concepts.tick() == []
    (run,) = await ticking.plans.runs()
    assert (run.action, run.status, run.report) == ("detection", "done", {"tick": done.tick, "pairs": 1})
    assert len((await ticking.concepts.list())[0]) == 3


async def test_C18_merging_comes_every_so_many_ticks_through_its_schedule(ticking: Engine) -> None:
    await scheduled.register(ticking.core)
    await make(ticking, "tea house")
    await make(ticking, "Tea House")
    await grow(ticking, 7)
    (done,) = await ticking.concepts.tick()
    assert done.did == "merging"
    async with ticking.core.database.owner() as connection:
        mine = await schedules.get(connection, ticking.space.id, POLICY)
    assert mine.is_due(NOW)
    with capture_logs() as logged:
        ran = await scheduled.run(ticking.core, mine)
    assert ran is not None
    assert ran.outcome == "Merged 1 duplicate pairs"
    assert "Merged 1 duplicate pairs" in [entry["event"] for entry in logged]
    assert (await ticking.concepts.get("tea house")).made_of == 2
    assert await ticking.concepts.tick() == []


async def test_C18_a_pass_that_merges_nothing_says_nothing(ticking: Engine) -> None:
    await scheduled.register(ticking.core)
    await make(ticking, "elephant")
    async with ticking.core.database.owner() as connection:
        mine = await schedules.get(connection, ticking.space.id, POLICY)
    ticking.core.now = lambda: NOW + timedelta(days=8)
    with capture_logs() as logged:
        assert await scheduled.run(ticking.core, mine) is not None
    assert not [entry for entry in logged if "Merged" in entry["event"]]


async def test_C28_frequencies_can_be_set_and_switched_off(ticking: Engine) -> None:
    update = {"duplicates_detect_every": 0, "duplicates_merge_every": 0}
    ticking.core.settings = ticking.core.settings.model_copy(update=update)
    await grow(ticking, 10)
    assert await ticking.concepts.tick() == []


async def test_C18_the_scheduler_counts_ticks_by_itself(ticking: Engine) -> None:
    await grow(ticking, 4)
    async with scheduler.leadership(ticking.core) as lead:
        assert await lead.take()
        await scheduler.one_round(ticking.core, lead)
    assert [run.action for run in await ticking.plans.runs()] == ["detection"]
