"""Connections to PostgreSQL: a pool of them, how a transaction on one is begun and ends, and what is said of one that
breaks: it went away, is full, took too long, or was never there (S05).

Whoever uses a connection may be cancelled at any await. What puts the connection in order again (rolls back, closes) is
shielded from that: anyio repeats its cancelling at every await, and would cut the driver's own closing short.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import cache
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import anyio
import asyncpg
from pgvector.asyncpg import register_vector
from sqlalchemy import AsyncAdaptedQueuePool, CursorResult, Dialect, Engine, Executable, create_engine, make_url
from sqlalchemy import Connection as SyncConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.util import LRUCache, greenlet_spawn

from recollect.errors import Busy, DatabaseProblem
from recollect.store.embedded.sockets import is_inside

# A server that says nothing for so long is not waited for when we leave.
CLOSE_SECONDS = 10.0
CONNECT_SECONDS = 30.0

LOST = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # cut off in the midst of a message
)
WRONG_NAME = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
DAMAGED = (asyncpg.PostgresSystemError, asyncpg.DataCorruptedError)
# Another process brought back a backup or upgraded the tables meanwhile: what the driver knows of them holds no more.
REPLACED = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InvalidCachedStatementError)

CROSSED = "Somebody else is changing the same rows: try again."
# The oldest PostgreSQL that is served.
MIN_SERVER = 16
POSTGRESQL = make_url("postgresql+asyncpg://")
COMPILED: LRUCache[Any, Any] = LRUCache(1000)  # statements

Begin = Callable[[asyncpg.Connection], Awaitable[object]]
T = TypeVar("T")


class Connection:
    """A connection of the pool. SQLAlchemy's own asynchronous one brings its ORM along, which nobody here uses and
    which takes a tenth of a start to load."""

    def __init__(self, sync: SyncConnection) -> None:
        self._sync = sync

    @property
    def dialect(self) -> Dialect:
        return self._sync.dialect

    @property
    def raw(self) -> asyncpg.Connection:
        """The driver's connection below."""
        return self._sync.connection.driver_connection

    async def execute(self, statement: Executable, given: Any = None) -> CursorResult[*tuple[Any, ...]]:
        return await greenlet_spawn(self._sync.execute, statement, given)

    async def stream(self, statement: Executable, given: Any = None, *, batch: int) -> "Batches":
        """The rows batch by batch, so that they are never all in memory."""
        streaming = {"stream_results": True}
        return Batches(await greenlet_spawn(self._sync.execute, statement, given, execution_options=streaming), batch)

    async def run_sync(self, work: Callable[..., T], *given: Any) -> T:
        """What needs SQLAlchemy's synchronous connection, like migrations."""
        return await greenlet_spawn(work, self._sync, *given)

    async def invalidate(self) -> None:
        """Do not use it again."""
        await greenlet_spawn(self._sync.invalidate)

    async def aclose(self) -> None:
        """Give it back to the pool."""
        await greenlet_spawn(self._sync.close)


class Batches:
    """No generator: one that is left half-way would be closed by nobody, or too late."""

    def __init__(self, result: CursorResult[*tuple[Any, ...]], size: int) -> None:
        self._result, self._size = result, size

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[Any]:
        if rows := await greenlet_spawn(self._result.fetchmany, self._size):
            return rows
        raise StopAsyncIteration


class Pool:
    """Connections that are kept, at most so many."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def size(self) -> int:
        return self._queue.size()

    @property
    def in_use(self) -> int:
        return self._queue.checkedout()

    async def connect(self) -> Connection:
        return Connection(await greenlet_spawn(self._engine.connect))

    async def dispose(self) -> None:
        """Close those that nobody has; whoever comes next gets new ones."""
        await greenlet_spawn(self._engine.dispose)

    @property
    def _queue(self) -> AsyncAdaptedQueuePool:
        pool = self._engine.pool
        assert isinstance(pool, AsyncAdaptedQueuePool)
        return pool


async def connect(dsn: str, *, seconds: float = CONNECT_SECONDS, **options: Any) -> asyncpg.Connection:
    try:
        return await asyncpg.connect(dsn, timeout=seconds, **options)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise unreachable(dsn, error) from error


async def close(connection: asyncpg.Connection) -> None:
    with anyio.CancelScope(shield=True), suppress(TimeoutError):  # then the driver has cut it off by itself
        await connection.close(timeout=CLOSE_SECONDS)


def make_pool(
    dsn: str,
    *,
    size: int,
    schema: str,
    vector_schema: str,
    seconds: float = CONNECT_SECONDS,
    settings: Mapping[str, str] | None = None,
) -> Pool:
    """A pool of connections that know vectors, each with some settings for as long as it lasts."""
    at_all_times = {"search_path": f"{schema},{vector_schema}", **(settings or {})}

    async def connect_for_use() -> asyncpg.Connection:
        with ExitStack() as unless_it_is_ready:
            connection = await connect(dsn, seconds=seconds, server_settings=at_all_times)
            unless_it_is_ready.callback(connection.terminate)
            await register_vector(connection, schema=vector_schema)
            unless_it_is_ready.pop_all()
        return connection

    dialect = _dialect()
    driver: Any = dialect.dbapi  # as SQLAlchemy's synchronous side sees it
    teach_json: Any = dialect.on_connect()

    def connected() -> Any:
        with ExitStack() as unless_it_is_ready:
            connection = driver.connect(async_creator_fn=connect_for_use)
            unless_it_is_ready.callback(_cut_off, connection)
            teach_json(connection)
            # Transactions are begun by `begun` and ended by `ended`.
            dialect.set_isolation_level(connection, "AUTOCOMMIT")
            unless_it_is_ready.pop_all()
        return connection

    queue = AsyncAdaptedQueuePool(connected, pool_size=size, max_overflow=0, dialect=dialect)
    engine = Engine(queue, dialect, POSTGRESQL, execution_options={"compiled_cache": COMPILED})
    return Pool(engine)


@cache
def _dialect() -> Dialect:
    """What SQLAlchemy knows of PostgreSQL. One for all pools of a process: what one has compiled, the others need not;
    and no pool asks its server again what is so in every version that is served."""
    dialect: Dialect = create_engine(POSTGRESQL).dialect
    dialect.server_version_info = (MIN_SERVER,)
    # A connection whose user was cancelled is cut off at once: saying goodbye would be one more await to be cancelled.
    dialect.do_terminate = _cut_off  # type: ignore[method-assign]
    dialect.do_close = _leave  # type: ignore[method-assign]
    return dialect


async def begun(pool: Pool, begin: Begin) -> Connection:
    """A connection that has answered. One that died while it lay in the pool is thrown away, and the next is asked:
    what a ping before every use would find out, without the ping."""
    chances = pool.size + 1
    while True:
        chances -= 1
        connection = await pool.connect()
        try:
            async with AsyncExitStack() as unless_it_answers:
                unless_it_answers.push_async_callback(throw_away, connection)
                await begin(connection.raw)
                unless_it_answers.pop_all()
        except LOST:
            if not chances:
                raise
        else:
            return connection


async def heard_of(raw: asyncpg.Connection) -> None:
    """Hear, without asking, whether the server has hung up: the loop gets round to what has arrived meanwhile."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if raw.is_closed():
        raise ConnectionError("the server hung up")


@asynccontextmanager
async def ended(connection: Connection) -> AsyncIterator[None]:
    """Committed at the end of the block, or rolled back where that fails."""
    raw = connection.raw
    async with fit_for_others(connection):
        yield
    await raw.execute("COMMIT")


@asynccontextmanager
async def fit_for_others(connection: Connection) -> AsyncIterator[None]:
    """Whatever happens in the block: the next one finds no transaction under way, and nothing that holds no more."""
    raw = connection.raw
    try:
        yield
    except BaseException as error:  # whatever it is, a cancelling too: nothing of the block is to stay
        await _take_back(connection, raw)
        if is_replaced(error):
            await connection.invalidate()
        raise


async def throw_away(connection: Connection) -> None:
    with anyio.CancelScope(shield=True):
        await connection.invalidate()
        await connection.aclose()


async def _take_back(connection: Connection, raw: asyncpg.Connection) -> None:
    """Roll back; a connection that cannot even do that is not used again."""
    with anyio.CancelScope(shield=True), suppress(*LOST, TimeoutError):
        async with AsyncExitStack() as unless_it_can:
            unless_it_can.push_async_callback(connection.invalidate)
            await raw.execute("ROLLBACK", timeout=CLOSE_SECONDS)
            unless_it_can.pop_all()


def _leave(dbapi_connection: Any) -> None:
    """In good order; from a server that is gone, without: the pool would log how that went."""
    try:
        dbapi_connection.close()
    except (*LOST, asyncpg.PostgresError, OSError, SQLAlchemyError, RuntimeError):  # the loop may be closed, too
        _cut_off(dbapi_connection)


def _cut_off(dbapi_connection: Any) -> None:
    dbapi_connection.driver_connection.terminate()


# -- what is said of one that breaks


def is_replaced(error: BaseException) -> bool:
    """Whether the tables are no longer those that a connection knows."""
    if isinstance(error, DBAPIError):
        error = (error.orig and error.orig.__cause__) or error
    return isinstance(error, REPLACED)


@asynccontextmanager
async def said_plainly() -> AsyncIterator[None]:
    """A database that went away, is full or took too long is one sentence for the user; other errors are our faults."""
    try:
        yield
    except asyncpg.DataError:  # a kind of InterfaceError, but a fault of ours
        raise
    except (*LOST, PoolTimeout) as error:
        raise lost(error) from error
    except DAMAGED as error:
        raise _damaged(error) from error
    except REPLACED as error:
        raise _replaced(error) from error
    except asyncpg.DeadlockDetectedError as error:
        raise Busy(CROSSED) from error
    except DBAPIError as error:
        cause = error.orig.__cause__ if error.orig else None
        if isinstance(cause, asyncpg.DeadlockDetectedError):
            raise Busy(CROSSED) from error
        if isinstance(cause, DAMAGED):
            raise _damaged(cause) from error
        if isinstance(cause, REPLACED):
            raise _replaced(cause) from error
        if error.connection_invalidated or isinstance(cause, LOST):
            raise lost(cause or error) from error
        raise


def lost(error: BaseException) -> DatabaseProblem:
    if isinstance(error, asyncpg.DiskFullError):
        return DatabaseProblem("The disk of the database is full, so nothing was stored: make room, and try again.")
    return DatabaseProblem(f"The database did not answer ({reason(error)}): try again.")


def _replaced(error: BaseException) -> DatabaseProblem:
    return DatabaseProblem(
        f"The tables of the database were replaced meanwhile ({reason(error)}), as by a restore: try again."
    )


def _damaged(error: BaseException) -> DatabaseProblem:
    return DatabaseProblem(
        f"The database cannot use its own files ({reason(error)}): see whether its disk and its directory are whole."
    )


def unreachable(dsn: str, error: Exception) -> DatabaseProblem:
    """Of the database inside nobody gave an address, unless it was one with a wrong name in it."""
    if is_inside(dsn) and not isinstance(error, WRONG_NAME):
        return DatabaseProblem(
            f"The database inside does not answer ({reason(error)}): try again; `recollect doctor` tells how it is."
        )
    if isinstance(error, OSError):
        return DatabaseProblem(
            f"No PostgreSQL answers at the given address, {_place(dsn)} ({reason(error)}): "
            "check DATABASE_URL and that it runs."
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return DatabaseProblem(f"PostgreSQL refused the user of DATABASE_URL: {reason(error)}.")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return DatabaseProblem(f"{reason(error).capitalize()}: create it with `createdb`, or correct DATABASE_URL.")
    if isinstance(error, asyncpg.PostgresError):
        return DatabaseProblem(f"The database of DATABASE_URL cannot be used: {reason(error)}.")
    return DatabaseProblem("DATABASE_URL cannot be used: write it like postgresql://user:password@host:5432/name.")


def _place(dsn: str) -> str:
    """Where a server is looked for, without who looks and by which password."""
    parts = urlsplit(dsn)
    return f"{parts.hostname or 'a socket of this machine'}" + (f":{parts.port}" if parts.port else "")


def reason(error: BaseException) -> str:
    """In a few words: the server's own, or what an error of the network or of the driver comes down to."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return "it took too long"
    if isinstance(error, OSError):
        number = error.errno or next(map(int, re.findall(r"\[Errno (\d+)\]", str(error))), None)
        return os.strerror(number).lower() if number and number > 0 else "its host is not known"
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | asyncpg.ConnectionDoesNotExistError):
        return "the connection broke off"
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
