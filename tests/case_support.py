"""Cases for tests: a clock that stands still, cases as old and as used as a test wants, and every row of the bank."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from recollect.engine.engine import Engine
from recollect.model import Case
from recollect.store.database import driver

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
TABLES = ("nodes", "cases", "case_archive", "activity", "edges", "outcomes")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def stopped(memory: Engine, now: datetime = NOW) -> Engine:
    memory.core.now = lambda: now
    return memory


async def a_case(
    memory: Engine,
    query: str,
    *,
    uses: int = 0,
    rate: float | None = None,
    idle: float | None = 30.0,
    age: float = 400.0,
    wait: bool = False,
    **more: Any,
) -> UUID:
    """A case made long ago, last used `idle` days ago (None: never)."""
    case = await memory.cases.add(
        query,
        more.pop("response_text", "the answer"),
        usage_count=uses,
        success_rate=rate,
        last_accessed_at=None if idle is None else ago(idle),
        created_at=ago(age),
        wait=wait,
        **more,
    )
    return case.case_id


async def with_vector(memory: Engine, case: UUID, vector: Sequence[float]) -> None:
    """Give a case a vector of the test's own, as if it had been embedded so."""
    numbers = np.asarray(vector, dtype=np.float32)
    model = memory.core.embedder().model
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        await raw.execute("DELETE FROM embedding_jobs WHERE space_id = $1 AND node_id = $2", memory.space.id, case)
        await raw.execute(
            """INSERT INTO embeddings (space_id, node_id, model, dim, vector, kind, recallable)
               VALUES ($1, $2, $3, $4, $5, 'case', true)
               ON CONFLICT (space_id, node_id, model, passage)
                   DO UPDATE SET vector = excluded.vector, dim = excluded.dim""",
            *(memory.space.id, case, model, len(numbers), HalfVector(numbers)),
        )
    async with memory.core.database.owner() as connection:
        raw = await driver(connection)
        await raw.execute("UPDATE spaces SET embedding_model = $1 WHERE id = $2", model, memory.space.id)


def direction(*numbers: float, dim: int = 64) -> list[float]:
    """A vector that begins like this, the rest zero."""
    return [*numbers, *([0.0] * (dim - len(numbers)))]


async def judged(
    memory: Engine,
    case: UUID,
    successes: int,
    failures: int,
    error: str | None = "timeout",
    at: datetime | None = None,
) -> Case:
    for _ in range(failures):
        await memory.cases.record_outcome(case, False, error_type=error, at=at)
    for _ in range(successes):
        await memory.cases.record_outcome(case, True, at=at)
    return await memory.cases.get(case)


async def rows(memory: Engine, table: str) -> list[dict[str, Any]]:
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        found = await raw.fetch(f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {table} t ORDER BY 1")
    return [row["row"] for row in found]


async def bank(memory: Engine) -> dict[str, list[dict[str, Any]]]:
    """Every row of the bank, as an exact restoring is compared."""
    return {table: await rows(memory, table) for table in TABLES}


async def statuses(memory: Engine, *cases: UUID) -> list[str]:
    return [str((await memory.cases.get(case)).status) for case in cases]
