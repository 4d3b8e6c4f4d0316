"""Ticks: how often a space has changed (each transaction that changes it counts once), and what was done at which tick.

The version of a space counts them already; what was done stands among the runs, with the tick at which it began.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from recollect.plans.sql import plans
from recollect.store.connections import Connection
from recollect.store.database import Transaction

DETECTION, MERGING = "detection", "merging"
LOOK = text("""
SELECT v.space_id, s.slug, v.version AS now, coalesce(d.tick, 0) AS detected, coalesce(m.tick, 0) AS merged
  FROM space_versions v JOIN spaces s ON s.id = v.space_id
  LEFT JOIN LATERAL (SELECT max((report->>'tick')::int8) AS tick FROM runs
                      WHERE space_id = v.space_id AND action IN ('detection', 'merging') AND report ? 'tick') d ON true
  LEFT JOIN LATERAL (SELECT max((report->>'tick')::int8) AS tick FROM runs
                      WHERE space_id = v.space_id AND action = 'merging' AND report ? 'tick') m ON true
 WHERE EXISTS (SELECT FROM nodes n WHERE n.space_id = v.space_id AND n.kind = 'concept')
   AND (CAST(:only AS uuid) IS NULL OR v.space_id = :only)
""")
BRING_FORWARD = text("""
UPDATE schedules SET next_run_at = :now
 WHERE space_id = :space AND name = :name AND enabled AND next_run_at > :now
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticks:
    """How far a space is, and at which tick its concepts were last looked through, and last merged."""

    space_id: UUID
    slug: str
    now: int
    detected: int
    merged: int

    def is_due(self, *, since: int, every: int) -> bool:
        """Whether so many ticks have passed; 0 means never. A counter that began anew counts from there."""
        return every > 0 and self.now - (since if since <= self.now else 0) >= every


async def look(connection: Connection, only: UUID | None = None) -> list[Ticks]:
    """The spaces that hold concepts."""
    return [Ticks(**row._mapping) for row in await connection.execute(LOOK, {"only": only})]


async def bring_forward(connection: Connection, space_id: UUID, name: str, now: datetime) -> None:
    """What is scheduled for later is due now."""
    await connection.execute(BRING_FORWARD, {"space": space_id, "name": name, "now": now})


async def note(db: Transaction, action: str, report: dict[str, Any], now: datetime) -> UUID:
    """Write down what was done at a tick."""
    run_id = await plans.start_run(db, None, action, report, now)
    await plans.note_run(db, run_id, {}, status="done", finished_at=now)
    return run_id
