"""Spaces: the tenants. Read before a space is chosen, so by the owner."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import Space
from recollect.store.connections import Connection
from recollect.store.database import Transaction
from recollect.store.tables import space_changes, spaces

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


async def get(connection: Connection, slug: str) -> Space:
    statement = select(spaces).where(spaces.c.slug == slug)
    row = (await connection.execute(statement)).one_or_none() if SLUG.fullmatch(slug) else None
    if row is None:
        raise NotFound(f"There is no space {slug!r}: `recollect spaces` lists them, `recollect spaces add` makes one.")
    return _space(row)


async def by_id(db: Transaction) -> Space:
    return _space((await db.execute(select(spaces).where(spaces.c.id == db.space_id))).one())


async def list_all(connection: Connection) -> list[Space]:
    return [_space(row) for row in await connection.execute(select(spaces).order_by(spaces.c.slug))]


async def add(connection: Connection, slug: str, settings: Mapping[str, Any]) -> Space:
    if not SLUG.fullmatch(slug):
        raise InvalidInput(
            f"{slug!r} cannot name a space: use 1 to 63 small letters, digits, - and _, the first a letter or digit.",
            field="space",
        )
    statement = upsert(spaces).values(slug=slug, settings=dict(settings)).on_conflict_do_nothing().returning(spaces)
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise Conflict(f"The space {slug!r} exists already: choose another name.")
    return _space(row)


async def change_settings(connection: Connection, space_id: UUID, settings: Mapping[str, Any]) -> Space:
    statement = update(spaces).where(spaces.c.id == space_id).values(settings=dict(settings)).returning(spaces)
    changed = _space((await connection.execute(statement)).one())
    await connection.execute(_changed(space_id))
    return changed


async def use_model(db: Transaction, model: str) -> None:
    """From now on, search in this space compares the vectors of this model."""
    await db.execute(update(spaces).where(spaces.c.id == db.space_id).values(embedding_model=model))
    await db.execute(_changed(db.space_id))


def _changed(space_id: UUID) -> Insert:
    """Counts as a change of what a recall could find, at the end of the transaction."""
    return upsert(space_changes).values(space_id=space_id).on_conflict_do_nothing()


def _space(row: Any) -> Space:
    columns = row._mapping
    values = {field.name: columns[field.name] for field in fields(Space)}
    return Space(**values | {"settings": _current_settings(values["settings"])})


def _current_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they were stored, in today's words: spaces once had `open_tags`, and were strict without it.

    Only a space that was closed by hand stays strict.
    """
    settings = {name: value for name, value in stored.items() if name != "open_tags"}
    if stored.get("open_tags") is False:
        settings.setdefault("strict_tags", True)
    return settings
