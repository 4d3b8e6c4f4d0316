"""Concepts: formed once, found under every name they ever had, merged by plans, and two again when those are undone."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import Concept, Status
from recollect.plan import DecisionStatus, Plan, PlanStatus
from recollect.store.database import driver
from recollect.rules.similarity import BARE, DOUBTS, WORDS

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
TEXT = "what consciousness is made of, whatever carries it"
# As the document has it: names alone are enough, and so are the same words in another order.
TRUSTING = {"ask_about": sorted(set(DOUBTS) - {BARE, WORDS}), "threshold": 0.9}


@pytest.fixture
async def there(memory: Engine) -> Engine:
    memory.core.now = lambda: NOW
    return memory


async def rows(memory: Engine, table: str) -> list[dict[str, Any]]:
    async with memory.core.transaction(memory.space.id) as connection:
        raw = await driver(connection)
        found = await raw.fetch(f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {table} t ORDER BY 1")
    return [row["row"] for row in found]


async def world(memory: Engine) -> list[list[dict[str, Any]]]:
    return [await rows(memory, table) for table in ("nodes", "edges", "activity", "aliases")]


async def make(memory: Engine, name: str, **more: Any) -> UUID:
    """A concept for itself, whatever is there: as if its twin had come by another way."""
    formed = await memory.concepts.add(name, **{"threshold": 1.0, "text": TEXT, **more})
    return formed.concept.id


async def twins(memory: Engine, **more: Any) -> tuple[UUID, UUID]:
    """Two concepts that the policy merges by itself."""
    one = await make(memory, "consciousness_substrate", created_at=NOW - timedelta(days=2), **more)
    other = await make(memory, "Consciousness Substrate", metadata={"by": "Luca"})
    assert one != other
    return one, other


async def test_C19_a_twin_is_returned_instead_of_a_second(there: Engine) -> None:
    first = await there.concepts.add("consciousness_substrate", energy={"translator": 0.6}, metadata={"area": "mind"})
    again = await there.concepts.add(
        "Consciousness  substrate", energy={"translator": 0.3, "architect": 0.4}, metadata={"area": "mind"}
    )
    assert first.is_new
    assert not again.is_new
    assert again.concept.id == first.concept.id
    assert again.score == 1.0
    assert "consciousness_substrate" in again.reason
    assert again.concept.raw_energy == pytest.approx({"translator": 0.9, "architect": 0.4})
