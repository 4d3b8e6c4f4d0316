"""Schedules: what is done by itself, how often, when next, and what came of it last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, case, select, text, update
from sqlalchemy.dialects.postgresql import insert

from recollect.errors import NotFound
from recollect.schedules.rules.timing import Timing
from recollect.store.connections import Connection
from recollect.store.tables import schedules, spaces

MISSING = text("""
SELECT spaces.id, spaces.slug, wanted.name FROM spaces CROSS JOIN unnest(CAST(:names AS text[])) AS wanted(name)
 WHERE NOT EXISTS (SELECT FROM schedules WHERE schedules.space_id = spaces.id AND schedules.name = wanted.name)
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """What is done by itself in one space. Either `every_minutes` or `cron` says how often."""

    space_id: UUID
    space: str
    name: str
    every_minutes: int | None
    cron: str | None
    time_zone: str
    jitter_seconds: int
    next_run_at: datetime
    enabled: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    last_run_at: datetime | None = None
    last_outcome: str | None = None

    @property
    def timing(self) -> Timing:
        return Timing(
            every_minutes=self.every_minutes,
            cron=self.cron,
            time_zone=self.time_zone,
            jitter_seconds=self.jitter_seconds,
        )

    def is_due(self, now: datetime) -> bool:
        return self.enabled and self.next_run_at <= now


async def missing(connection: Connection, names: Sequence[str]) -> list[tuple[UUID, str, str]]:
    """Spaces that lack one of these schedules: id, slug and name of the schedule."""
    rows = await connection.execute(MISSING, {"names": list(names)})
    return [(row.id, row.slug, row.name) for row in rows]


async def add(connection: Connection, new_schedules: Sequence[Schedule]) -> None:
    """Add schedules; one that is there already, perhaps changed by a person, stays as it is."""
    if new_schedules:
        await connection.execute(
            insert(schedules).on_conflict_do_nothing(), [_row(schedule) for schedule in new_schedules]
        )


async def save(connection: Connection, schedule: Schedule) -> None:
    """Write a schedule as it is now; what came of it last stays."""
    row = _row(schedule)
    statement = insert(schedules).values(row)
    await connection.execute(statement.on_conflict_do_update(index_elements=["space_id", "name"], set_=row))


async def of_space(connection: Connection, space_id: UUID) -> list[Schedule]:
    statement = _all().where(schedules.c.space_id == space_id).order_by(schedules.c.next_run_at, schedules.c.name)
    return [Schedule(**row._mapping) for row in await connection.execute(statement)]


async def get(connection: Connection, space_id: UUID, name: str) -> Schedule:
    row = (await connection.execute(_all().where(_is(space_id, name)))).one_or_none()
    if row is None:
        raise NotFound(f"Nothing called {name!r} is scheduled in this space: `recollect schedules` lists what is.")
    return Schedule(**row._mapping)


async def due(connection: Connection, names: Sequence[str], now: datetime) -> list[Schedule]:
    """What is due in all spaces, longest first."""
    is_due = schedules.c.enabled & (schedules.c.next_run_at <= now) & schedules.c.name.in_(names)
    statement = _all().where(is_due).order_by(schedules.c.next_run_at, schedules.c.name, schedules.c.space_id)
    return [Schedule(**row._mapping) for row in await connection.execute(statement)]


async def note(
    connection: Connection, schedule: Schedule, *, ran_at: datetime, outcome: str, next_at: datetime
) -> None:
    """Write what came of a run, and when the next one is; unless a person set another time meanwhile."""
    is_unmoved = schedules.c.next_run_at == schedule.next_run_at
    await connection.execute(
        update(schedules)
        .where(_is(schedule.space_id, schedule.name))
        .values(
            last_run_at=ran_at,
            last_outcome=outcome,
            next_run_at=case((is_unmoved, next_at), else_=schedules.c.next_run_at),
        )
    )


def _is(space_id: UUID, name: str) -> ColumnElement[bool]:
    return (schedules.c.space_id == space_id) & (schedules.c.name == name)


def _all() -> Select[Any]:
    return select(schedules, spaces.c.slug.label("space")).join(spaces, spaces.c.id == schedules.c.space_id)


def _row(schedule: Schedule) -> dict[str, Any]:
    return {
        "space_id": schedule.space_id,
        "name": schedule.name,
        "every_minutes": schedule.every_minutes,
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "jitter_seconds": schedule.jitter_seconds,
        "enabled": schedule.enabled,
        "options": dict(schedule.options),
        "next_run_at": schedule.next_run_at,
    }
