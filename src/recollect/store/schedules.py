"""Schedules: what is done by itself, how often, and when next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.store.spaces import get as get_space
from recollect.store.tables import schedules


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """A schedule whose time has come."""

    space_id: UUID
    name: str
    options: Mapping[str, Any]


async def register(connection: AsyncConnection, every_minutes: Mapping[str, int], now: datetime) -> None:
    """Add schedules that are not there yet, the first run one period from now."""
    space = await get_space(connection, "default")
    for name, minutes in every_minutes.items():
        await connection.execute(
            insert(schedules)
            .values(space_id=space.id, name=name, every_minutes=minutes, next_run_at=now + timedelta(minutes=minutes))
            .on_conflict_do_nothing()
        )


async def claim_due(connection: AsyncConnection, names: tuple[str, ...], now: datetime) -> Due | None:
    """The schedule that has been due longest, its next run moved on; a missed run is caught up once, not many times."""
    statement = (
        select(schedules)
        .where(schedules.c.enabled, schedules.c.next_run_at <= now, schedules.c.name.in_(names))
        .where(schedules.c.every_minutes.is_not(None))
        .order_by(schedules.c.next_run_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return None
    mine = (schedules.c.space_id == row.space_id) & (schedules.c.name == row.name)
    following = now + timedelta(minutes=row.every_minutes)
    await connection.execute(update(schedules).where(mine).values(last_run_at=now, next_run_at=following))
    return Due(space_id=row.space_id, name=row.name, options=row.options)
