"""A space at a glance: how much of what, how it grew, and what a person is to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from recollect.model import Kind, Status
from recollect.store.database import Transaction

HELD = "SELECT kind, status, count(*) AS number FROM nodes WHERE space_id = $1 GROUP BY kind, status"
ADDED = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS number FROM nodes
 WHERE space_id = $1 AND created_at >= $2 GROUP BY day ORDER BY day
"""
SEARCHED = """
SELECT s.embedding_model, e.dim FROM spaces s
  LEFT JOIN embeddings e ON e.space_id = s.id AND e.model = s.embedding_model WHERE s.id = $1 LIMIT 1
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """How many nodes there are of a kind, in a status."""

    kind: Kind
    status: Status
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """How many nodes are of a day (UTC)."""

    day: date
    number: int


async def held(db: Transaction) -> Sequence[Held]:
    rows = await db.fetch(HELD)
    return [Held(kind=Kind(row["kind"]), status=Status(row["status"]), number=row["number"]) for row in rows]


async def added(db: Transaction, since: datetime) -> Sequence[Day]:
    return [Day(**row) for row in await db.fetch(ADDED, since)]


async def searched(db: Transaction) -> tuple[str | None, int | None]:
    """The model whose vectors search compares, and how long they are, once there are any."""
    row = await db.fetchrow(SEARCHED)
    return row["embedding_model"], row["dim"]
