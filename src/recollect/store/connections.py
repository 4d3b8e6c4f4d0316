"""Connections to PostgreSQL: a pool of them, how a transaction on one is begun, and how it ends.

Whoever uses a connection may be cancelled at any await. What puts the connection in order again (rolls back, closes) is
shielded from that: anyio repeats its cancelling at every await, and would cut the driver's own closing short.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import asyncpg
from pgvector.asyncpg import register_vector
from sqlalchemy import QueuePool
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from recollect.store.trouble import LOST, is_replaced, unreachable

# A server that says nothing for so long is not waited for when we leave.
CLOSE_SECONDS = 10.0
CONNECT_SECONDS = 30.0

Begin = Callable[[asyncpg.Connection], Awaitable[object]]


async def connect(dsn: str, *, seconds: float = CONNECT_SECONDS, **options: Any) -> asyncpg.Connection:
    try:
        return await asyncpg.connect(dsn, timeout=seconds, **options)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise unreachable(dsn, error) from error


async def close(connection: asyncpg.Connection) -> None:
    with anyio.CancelScope(shield=True), suppress(TimeoutError):  # then the driver has cut it off by itself
        await connection.close(timeout=CLOSE_SECONDS)


def make_engine(
    dsn: str, *, size: int, schema: str, vector_schema: str, seconds: float = CONNECT_SECONDS
) -> AsyncEngine:
    """A pool of connections that know vectors."""

    async def connect_for_use() -> asyncpg.Connection:
        settings = {"search_path": f"{schema},{vector_schema}"}
        connection = await connect(dsn, seconds=seconds, server_settings=settings)
        try:
            await register_vector(connection, schema=vector_schema)
        except BaseException:
            connection.terminate()
            raise
        return connection

    # Transactions are begun by `begun` and ended by `ended`.
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect_for_use,
        pool_size=size,
        max_overflow=0,
        isolation_level="AUTOCOMMIT",
    )
    # A connection whose user was cancelled is cut off at once: saying goodbye would be one more await to be cancelled.
    engine.dialect.do_terminate = _cut_off  # type: ignore[method-assign]
    engine.dialect.do_close = _leave  # type: ignore[method-assign]
    return engine


async def begun(engine: AsyncEngine, begin: Begin) -> AsyncConnection:
    """A connection that has answered. One that died while it lay in the pool is thrown away, and the next is asked:
    what a ping before every use would find out, without the ping."""
    chances = pool_of(engine).size() + 1
    while True:
        chances -= 1
        connection = await engine.connect()
        try:
            await begin(raw_of(connection))
        except BaseException as error:
            await throw_away(connection)
            if not (chances and isinstance(error, LOST)):
                raise
        else:
            return connection


@asynccontextmanager
async def ended(connection: AsyncConnection) -> AsyncIterator[None]:
    """Committed at the end of the block, or rolled back where that fails."""
    raw = raw_of(connection)
    try:
        yield
    except BaseException as error:
        await _take_back(connection, raw)
        if is_replaced(error):
            await connection.invalidate()
        raise
    await raw.execute("COMMIT")


async def throw_away(connection: AsyncConnection) -> None:
    with anyio.CancelScope(shield=True):
        await connection.invalidate()
        await connection.aclose()


def pool_of(engine: AsyncEngine) -> QueuePool:
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    return pool


def raw_of(connection: AsyncConnection) -> asyncpg.Connection:
    """The driver's connection below."""
    sync = connection.sync_connection
    assert sync is not None
    return sync.connection.driver_connection


async def _take_back(connection: AsyncConnection, raw: asyncpg.Connection) -> None:
    """Roll back; a connection that cannot even do that is not used again."""
    with anyio.CancelScope(shield=True):
        try:
            await raw.execute("ROLLBACK", timeout=CLOSE_SECONDS)
        except (*LOST, TimeoutError):
            await connection.invalidate()
        except BaseException:
            await connection.invalidate()
            raise


def _leave(dbapi_connection: Any) -> None:
    """In good order; from a server that is gone, without: the pool would log how that went."""
    try:
        dbapi_connection.close()
    except Exception:  # noqa: BLE001 - whatever went wrong, the connection is given up
        _cut_off(dbapi_connection)


def _cut_off(dbapi_connection: Any) -> None:
    dbapi_connection.driver_connection.terminate()
