"""Cursors: where a listing, newest or oldest first, goes on."""

import base64
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, and_, literal, or_

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import as_utc
from recollect.store.database import Transaction


async def stretch(
    db: Transaction, table: Table, statement: Select[Any], *, limit: int, cursor: str | None, oldest_first: bool = False
) -> tuple[list[Any], str | None]:
    """So many rows of a statement that reads `created_at` and `id` of a table, newest (or oldest) first; and the cursor
    to go on with."""
    if cursor is not None:
        statement = statement.where(_after(table, cursor, oldest_first=oldest_first))
    created_at = table.c.created_at if oldest_first else table.c.created_at.desc()
    rows = list(await db.execute(statement.order_by(created_at, table.c.id).limit(limit + 1)))
    return rows[:limit], _cursor_of(rows[limit - 1]) if len(rows) > limit else None


def _cursor_of(row: Any) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()}|{row.id}".encode()).decode()


def _after(table: Table, cursor: str, *, oldest_first: bool) -> ColumnElement[bool]:
    """The rows of a table behind a cursor."""
    try:
        moment, id_ = base64.urlsafe_b64decode(cursor.encode()).decode().split("|")
        at, last = as_utc(datetime.fromisoformat(moment)), UUID(id_)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            "This cursor is not one that a listing gave: start again without it.", field="cursor"
        ) from error
    created_at = table.c.created_at
    if oldest_first:
        return and_(created_at >= literal(at), or_(created_at > literal(at), table.c.id > last))
    return and_(created_at <= literal(at), or_(created_at < literal(at), table.c.id > last))
