"""`Recollect(clock=...)`: the time is what the caller says, for every verb and in every row."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import DateTime, select

from recollect import AsyncRecollect, Recollect
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.store import tables
from tests.conftest import fresh_space

THEN = datetime(2031, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def own_space(settings: Settings) -> Settings:
    return asyncio.run(fresh_space(settings))


def test_E36_the_time_is_what_the_caller_says(own_space: Settings) -> None:
    now = THEN
    with Recollect(settings=own_space, clock=lambda: now, worker=False) as memory:
        first = memory.add("Linh prefers tea, never coffee")
        assert first.created_at == THEN
        now += timedelta(days=30)
        (hit,) = memory.recall("what does Linh prefer?")
        assert hit.parts.recency == pytest.approx(0.3679, abs=1e-4)
        assert memory.in_space(own_space.space).add("later").created_at == now


@pytest.mark.parametrize(
    "given", [THEN.replace(tzinfo=None), THEN.astimezone(timezone(timedelta(hours=7)))], ids=["no zone", "Hanoi"]
)
def test_E36_a_clock_is_read_like_any_time(own_space: Settings, given: datetime) -> None:
    with Recollect(settings=own_space, clock=lambda: given, worker=False) as memory:
        assert memory.add("a note").created_at == THEN


def test_E36_what_is_no_clock_is_said(own_space: Settings) -> None:
    wrong: Any = lambda: "noon"  # noqa: E731
    with (
        Recollect(settings=own_space, clock=wrong, worker=False) as memory,
        pytest.raises(InvalidInput, match="The clock must return a datetime, not 'noon'"),
    ):
        memory.add("a note")


@pytest.mark.anyio
async def test_E36_no_row_bears_another_time(settings: Settings) -> None:
    """Whatever is done, every moment in every table of the space is of the clock's year."""
    async with AsyncRecollect(settings=await fresh_space(settings), clock=lambda: THEN, worker=False) as memory:
        await everything(memory)
        found = await moments(memory)
    assert {name for name, _ in found} >= {"nodes", "edges", "plans", "runs", "outcomes", "aliases", "recalls"}
    assert {(name, moment.year) for name, moment in found} == {(name, THEN.year) for name, _ in found}


async def everything(memory: Engine) -> None:
    """A little of each subject."""
    notes = [await memory.add(f"note {number} about tea") for number in range(3)]
    await memory.graph.link(notes[0].id, notes[1].id, "supports")
    await memory.recall("tea")
    await memory.forget(notes[2].id)
    await memory.restore(notes[2].id)
    substrate = await memory.concepts.add("consciousness_substrate", text="what it is made of", metadata={"a": 1})
    await memory.concepts.add("consciousness substrate", text="what it is made of", metadata={"b": 2})
    other = await memory.concepts.add("engine", text="another thing altogether")
    await memory.plans.undo((await memory.concepts.merge(substrate.concept.id, other.concept.id)).plan_id)
    await memory.concepts.keep_apart("consciousness", "consciousness_engine")
    case = await memory.cases.add("How do I reset it?", "Press the button")
    await memory.cases.record_outcome(case.case_id, True)
    await memory.cases.consolidate()
    for policy in ("prune", "topics", "link", "duplicates"):
        await memory.plans.propose(policy)


async def moments(memory: Engine) -> list[tuple[str, datetime]]:
    """Every moment that a row of the space holds, by the name of its table."""
    found = []
    async with memory.core.transaction(memory.space.id) as db:
        for table in tables.metadata.sorted_tables:
            columns = [column for column in table.c if isinstance(column.type, DateTime)]
            if "space_id" in table.c and columns:
                rows = await db.execute(select(*columns).where(table.c.space_id == memory.space.id))
                found += [(table.name, moment) for row in rows for moment in row if moment is not None]
    return found
