"""API keys, stored as a hash and found by their prefix; and the browsers that signed in with one."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Select, delete, func, insert, or_, select, update

from recollect.errors import NotFound
from recollect.model import ApiKey, Scope
from recollect.store.connections import Connection
from recollect.store.tables import api_keys, sessions, spaces


def _select() -> Select[tuple[object, ...]]:
    joined = api_keys.outerjoin(spaces, spaces.c.id == api_keys.c.space_id)
    return select(api_keys, spaces.c.slug.label("space")).select_from(joined)


async def add(
    connection: Connection,
    *,
    name: str,
    prefix: str,
    hash_: str,
    scopes: Sequence[Scope],
    space_id: UUID | None,
    now: datetime,
    expires_at: datetime | None,
) -> ApiKey:
    await connection.execute(
        insert(api_keys).values(
            id=uuid4(),
            name=name,
            prefix=prefix,
            hash=hash_,
            scopes=list(scopes),
            space_id=space_id,
            created_at=now,
            expires_at=expires_at,
        )
    )
    return _key((await connection.execute(_select().where(api_keys.c.prefix == prefix))).one())


async def find(connection: Connection, prefix: str) -> tuple[ApiKey, str] | None:
    """The key with this prefix and its hash."""
    row = (await connection.execute(_select().where(api_keys.c.prefix == prefix))).one_or_none()
    return None if row is None else (_key(row), row._mapping["hash"])


async def list_all(connection: Connection) -> list[ApiKey]:
    return [_key(row) for row in await connection.execute(_select().order_by(api_keys.c.created_at))]


async def revoke(connection: Connection, prefix: str, now: datetime) -> ApiKey:
    statement = update(api_keys).where(api_keys.c.prefix == prefix)
    changed = await connection.execute(statement.values(revoked_at=func.coalesce(api_keys.c.revoked_at, now)))
    if changed.rowcount == 0:
        raise NotFound(f"There is no key {prefix!r}: `recollect keys` lists them.")
    return _key((await connection.execute(_select().where(api_keys.c.prefix == prefix))).one())


async def any_made(connection: Connection) -> bool:
    """Whether a key was ever made: from then on, every request needs one."""
    return bool((await connection.execute(select(select(api_keys.c.id).exists()))).scalar_one())


async def touch(connection: Connection, id_: UUID, now: datetime) -> None:
    """Note that a key was used, to the minute: not a write for every request."""
    stale = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < now - timedelta(minutes=1))
    await connection.execute(update(api_keys).where(api_keys.c.id == id_, stale).values(last_used_at=now))


# -- sessions


async def add_session(connection: Connection, *, hash_: str, key_id: UUID, now: datetime, expires_at: datetime) -> None:
    """Note that a browser signed in; sessions that have ended are cleared away on the occasion."""
    await connection.execute(delete(sessions).where(sessions.c.expires_at <= now))
    await connection.execute(insert(sessions).values(hash=hash_, key_id=key_id, created_at=now, expires_at=expires_at))


async def of_session(connection: Connection, hash_: str, now: datetime) -> ApiKey | None:
    """The key that a session was begun with, while it lasts."""
    lasting = select(sessions.c.key_id).where(sessions.c.hash == hash_, sessions.c.expires_at > now)
    row = (await connection.execute(_select().where(api_keys.c.id.in_(lasting)))).one_or_none()
    return None if row is None else _key(row)


async def end_session(connection: Connection, hash_: str) -> None:
    await connection.execute(delete(sessions).where(sessions.c.hash == hash_))


def _key(row: Any) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        space=row.space,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
