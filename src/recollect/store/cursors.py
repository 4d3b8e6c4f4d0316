"""Cursors: where a listing, newest or oldest first, goes on."""

import base64
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Table, and_, literal, or_

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import as_utc


def cursor_of(item: Any) -> str:
    """The cursor behind an item that has `created_at` and `id`."""
    return base64.urlsafe_b64encode(f"{item.created_at.isoformat()}|{item.id}".encode()).decode()


def after(table: Table, cursor: str, *, oldest_first: bool = False) -> ColumnElement[bool]:
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
