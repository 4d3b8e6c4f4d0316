"""The way to PostgreSQL: one pool, one kind of transaction, and the checks that a server is fit for use.

Every transaction of the engine works as the role `recollect_app` with its space set, so that row-level security stands
behind every WHERE: a query that forgets its space sees nothing (DESIGN 5a). The owner's role is used for three things
only: migrations, indexes, and the tables that are read before a space is chosen.

Whoever uses a connection may be cancelled at any await. What puts the connection in order again (rolls back, closes) is
shielded from that: anyio repeats its cancelling at every await, and would cut the driver's own closing short.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import anyio
import asyncpg
from pgvector.asyncpg import register_vector
from sqlalchemy import CursorResult, QueuePool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from recollect.errors import DatabaseProblem, UnsuitableServer
from recollect.store.migrations import HEAD, run_migrations


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction in one space. It knows which, so that nobody has to hand the space on beside it."""

    connection: AsyncConnection
    space_id: UUID

    @property
    def execute(self) -> Callable[..., Awaitable[CursorResult[*tuple[Any, ...]]]]:
        return self.connection.execute

    @property
    def stream(self) -> Callable[..., Any]:
        return self.connection.stream


# The owner's transaction, which is in no space.
Connection = AsyncConnection

SCHEMA = "recollect"
ROLE = "recollect_app"
MIN_SERVER = 16
MIN_PGVECTOR = (0, 8)
# Any number, the same for every Recollect: whoever prepares a database holds this lock.
PREPARE_LOCK = 7_265_636_011
# A server that says nothing for so long is not waited for when we leave.
CLOSE_SECONDS = 10.0

GRANTS = (
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {ROLE}",
)

# What a search sets for itself. A cached generic plan would pick the wrong index when the filter changes. And nothing
# in a search reads a whole space: it walks HNSW and looks rows up by key. The planner, which cannot know how large a
# space is, would at times rather sort or hash all of it.
SEARCHING = """
    SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL plan_cache_mode = force_custom_plan;
    SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"""


BeforeUpgrade = Callable[[str], Awaitable[None]]


class Database:
    """A prepared PostgreSQL. Make one with `open_database`."""

    def __init__(self, *, engine: AsyncEngine, dsn: str, role: str | None, notes: tuple[str, ...]) -> None:
        self.engine = engine
        self.dsn = dsn
        self.role = role
        self.notes = notes

    @asynccontextmanager
    async def transaction(self, space_id: UUID, *, in_passing: bool = False) -> AsyncIterator[Transaction]:
        """Reads and writes in one space, all or nothing.

        In passing: one of many steps. Its commit does not wait for the disk; the last step's does, and what reached
        the disk with it is all that came before, for the log is written in order.
        """
        waits = "; SET LOCAL synchronous_commit = off" if in_passing else ""
        async with self._begun(f"BEGIN; {self._enter(space_id)}{waits}") as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def noting(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """For logs and counts: all or nothing too, but the caller does not wait for the disk.

        A crash of the database may lose the last half second of them, never anything that was remembered or changed.
        """
        counting = "SET LOCAL synchronous_commit = off; SET LOCAL recollect.counting = 'on'"
        async with self._begun(f"BEGIN; {self._enter(space_id)}; {counting}") as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def snapshot(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """A read-only look into one space that stays the same however long it takes: what a policy reads."""
        opening = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {self._enter(space_id)}"
        async with self._begun(opening) as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def search(self, space_id: UUID, *, ef_search: int, timeout_seconds: float) -> AsyncIterator[Transaction]:
        """A read-only look into one space, tuned for nearest-neighbour search and bounded in time."""
        bounds = f"SET LOCAL statement_timeout = {timeout_seconds * 1000:.0f}; SET LOCAL hnsw.ef_search = {ef_search:d}"
        async with self._begun(f"BEGIN READ ONLY; {self._enter(space_id)}; {bounds}; {SEARCHING}") as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[AsyncConnection]:
        """As the owner: migrations, indexes, and the tables without a space."""
        async with self._begun("BEGIN") as connection:
            yield connection

    @property
    def is_at_leisure(self) -> bool:
        """Whether less than half of the connections are in use, so that one task may take a second one.

        Never ask for a second one otherwise: those who hold one and wait for another would wait for each other.
        """
        return 2 * self._pool.checkedout() < self._pool.size()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection outside any transaction, for VACUUM, REINDEX and CREATE INDEX CONCURRENTLY."""
        async with said_plainly():
            connection = await _connect(self.dsn, server_settings={"search_path": f"{SCHEMA},public,extensions"})
            try:
                yield connection
            finally:
                await _close(connection)

    async def close(self) -> None:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self.engine.dispose()

    def _enter(self, space_id: UUID) -> str:
        return f"SET LOCAL ROLE {self.role or 'none'}; SET LOCAL recollect.space = '{space_id}'"

    @asynccontextmanager
    async def _begun(self, opening: str) -> AsyncIterator[AsyncConnection]:
        """A transaction whose beginning and settings are one message."""
        async with said_plainly(), aclosing(await self._answering(opening)) as connection:
            raw = await driver(connection)
            try:
                yield connection
            except BaseException:
                await _take_back(connection, raw)
                raise
            await raw.execute("COMMIT")

    async def _answering(self, opening: str) -> AsyncConnection:
        """A connection that has answered. One that died while it lay in the pool is thrown away, and the next is asked:
        what a ping before every use would find out, without the ping."""
        chances = self._pool.size() + 1
        while True:
            chances -= 1
            connection = await self.engine.connect()
            try:
                await (await driver(connection)).execute(opening)
            except BaseException as error:
                with anyio.CancelScope(shield=True):
                    await connection.invalidate()
                    await connection.aclose()
                if not (chances and isinstance(error, LOST)):
                    raise
            else:
                return connection

    @property
    def _pool(self) -> QueuePool:
        pool = self.engine.pool
        assert isinstance(pool, QueuePool)
        return pool


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


async def _close(connection: asyncpg.Connection) -> None:
    with anyio.CancelScope(shield=True), suppress(TimeoutError):  # then the driver has cut it off by itself
        await connection.close(timeout=CLOSE_SECONDS)


LOST = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # cut off in the midst of a message
)


DAMAGED = (asyncpg.PostgresSystemError, asyncpg.DataCorruptedError)


@asynccontextmanager
async def said_plainly() -> AsyncIterator[None]:
    """A database that went away, is full or took too long is one sentence for the user; other errors are our faults."""
    try:
        yield
    except asyncpg.DataError:  # a kind of InterfaceError, but a fault of ours
        raise
    except (*LOST, PoolTimeout) as error:
        raise DatabaseProblem(f"The database did not answer ({_reason(error)}): try again.") from error
    except DAMAGED as error:
        raise _damaged(error) from error
    except DBAPIError as error:
        cause = error.orig.__cause__ if error.orig else None
        if isinstance(cause, DAMAGED):
            raise _damaged(cause) from error
        if error.connection_invalidated or isinstance(cause, LOST):
            raise DatabaseProblem(f"The database did not answer ({_reason(cause or error)}): try again.") from error
        raise


def _damaged(error: BaseException) -> DatabaseProblem:
    return DatabaseProblem(
        f"The database cannot use its own files ({_reason(error)}): see whether its disk and its directory are whole."
    )


async def driver(of: Connection | Transaction) -> asyncpg.Connection:
    """The asyncpg connection below, in the same transaction: for vectors in binary, for COPY, and for haste."""
    connection = of.connection if isinstance(of, Transaction) else of
    sync = connection.sync_connection
    assert sync is not None
    return sync.connection.driver_connection


async def open_database(dsn: str, *, pool_size: int, before_upgrade: BeforeUpgrade | None = None) -> Database:
    """Check the server, prepare what is missing (extension, schema, role, migrations), and open the pool.

    Before a database that holds something is upgraded, `before_upgrade` is called with the migration it stands at.
    """
    connection = await _connect(dsn)
    try:
        await _check_version(connection)
        revision = await _current_revision(connection)
        if before_upgrade is not None and revision not in (None, HEAD):
            await before_upgrade(revision)
        vector_schema, role, notes = await _prepare(connection)
    finally:
        await _close(connection)
    engine = _make_engine(dsn, pool_size, vector_schema)
    database = Database(engine=engine, dsn=dsn, role=role, notes=notes)
    if revision != HEAD:
        await upgrade(database)
    return database


async def _current_revision(connection: asyncpg.Connection) -> str | None:
    """Which migration the database stands at; None for an empty one."""
    if await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.alembic_version") is None:
        return None
    revision: str | None = await connection.fetchval(f"SELECT version_num FROM {SCHEMA}.alembic_version")
    if revision is not None and revision > HEAD:
        raise UnsuitableServer(
            f"This database was made by a newer Recollect (revision {revision}; this one knows {HEAD}): "
            f"upgrade with `pip install -U recollect`."
        )
    return revision


async def upgrade(database: Database, revision: str = "head") -> None:
    """Run the migrations; when several processes start at once, one does it and the others wait."""
    async with _preparing(database) as connection:
        await connection.run_sync(run_migrations, "upgrade", revision)
        for grant in GRANTS if database.role else ():
            await connection.execute(text(grant))


async def downgrade(database: Database, revision: str) -> None:
    async with _preparing(database) as connection:
        await connection.run_sync(run_migrations, "downgrade", revision)


@asynccontextmanager
async def _preparing(database: Database) -> AsyncIterator[AsyncConnection]:
    async with database.owner() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PREPARE_LOCK})
        yield connection


def _make_engine(dsn: str, pool_size: int, vector_schema: str) -> AsyncEngine:
    async def connect() -> asyncpg.Connection:
        connection = await _connect(dsn, server_settings={"search_path": f"{SCHEMA},{vector_schema}"})
        try:
            await register_vector(connection, schema=vector_schema)
        except BaseException:
            connection.terminate()
            raise
        return connection

    # Transactions are begun and ended by `_begun`.
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=pool_size,
        max_overflow=0,
        isolation_level="AUTOCOMMIT",
    )
    # A connection whose user was cancelled is cut off at once: saying goodbye would be one more await to be cancelled.
    engine.dialect.do_terminate = _cut_off  # type: ignore[method-assign]
    return engine


def _cut_off(dbapi_connection: Any) -> None:
    dbapi_connection.driver_connection.terminate()


async def _connect(dsn: str, **options: Any) -> asyncpg.Connection:
    try:
        return await asyncpg.connect(dsn, timeout=30, **options)
    except (OSError, TimeoutError) as error:
        raise DatabaseProblem(
            f"No PostgreSQL answers at the given address ({_reason(error)}): check DATABASE_URL and that it runs."
        ) from error
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise DatabaseProblem(f"PostgreSQL refused the user of DATABASE_URL: {_reason(error)}.") from error
    except asyncpg.InvalidCatalogNameError as error:
        raise DatabaseProblem(
            f"{_reason(error).capitalize()}: create it with `createdb`, or correct DATABASE_URL."
        ) from error
    except asyncpg.PostgresError as error:
        raise DatabaseProblem(f"The database of DATABASE_URL cannot be used: {_reason(error)}.") from error
    except (asyncpg.InterfaceError, ValueError) as error:
        raise DatabaseProblem(
            "DATABASE_URL cannot be used: write it like postgresql://user:password@host:5432/name."
        ) from error


async def _check_version(connection: asyncpg.Connection) -> None:
    major = connection.get_server_version().major
    if major < MIN_SERVER:
        raise UnsuitableServer(
            f"This server is PostgreSQL {major}; Recollect needs {MIN_SERVER} or newer: "
            f"upgrade it, or leave DATABASE_URL empty to use the one inside."
        )


async def _prepare(connection: asyncpg.Connection) -> tuple[str, str | None, tuple[str, ...]]:
    """Extension, schema and role; returns the schema of pgvector, the role to work as, and what to tell the user."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", PREPARE_LOCK)
        vector_schema = await _ensure_pgvector(connection)
        await _ensure_schema(connection)
        role = await _ensure_role(connection)
    if role:
        return vector_schema, role, ()
    note = (
        f"The role {ROLE} could not be made by this database user, so spaces are kept apart by Recollect's own "
        f"conditions alone; let an administrator run: CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO CURRENT_USER."
    )
    return vector_schema, None, (note,)


async def _ensure_pgvector(connection: asyncpg.Connection) -> str:
    find = """SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
              WHERE e.extname = 'vector'"""
    found = await connection.fetchrow(find)
    if found is None:
        await _create_pgvector(connection)
        found = await connection.fetchrow(find)
    version = tuple(int(part) for part in found["extversion"].split(".")[:2])
    if version < MIN_PGVECTOR:
        raise UnsuitableServer(
            f"pgvector {found['extversion']} is too old, 0.8 is needed: install it, then run "
            f"ALTER EXTENSION vector UPDATE in this database."
        )
    return str(found["nspname"])


async def _create_pgvector(connection: asyncpg.Connection) -> None:
    try:
        await connection.execute("CREATE EXTENSION vector")
    except (asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFileError) as error:
        raise UnsuitableServer(
            "This PostgreSQL has no pgvector: install pgvector 0.8 or newer on the server, "
            "or leave DATABASE_URL empty to use the database inside."
        ) from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise UnsuitableServer(
            "The database user may not add pgvector: let an administrator run CREATE EXTENSION vector in this database."
        ) from error


async def _ensure_schema(connection: asyncpg.Connection) -> None:
    if await connection.fetchval("SELECT to_regnamespace($1)", SCHEMA) is not None:
        return
    try:
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    except asyncpg.InsufficientPrivilegeError as error:
        raise UnsuitableServer(
            f"The database user may not make the schema {SCHEMA}: let an administrator run "
            f"GRANT CREATE ON DATABASE ... TO this user."
        ) from error


async def _ensure_role(connection: asyncpg.Connection) -> str | None:
    """The role to work as, made and granted where that is possible."""
    try:
        async with connection.transaction():
            if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", ROLE):
                await connection.execute(f"CREATE ROLE {ROLE} NOLOGIN")
            if not await connection.fetchval("SELECT pg_has_role(current_user, $1, 'SET')", ROLE):
                await connection.execute(f"GRANT {ROLE} TO CURRENT_USER")
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidGrantOperationError):
        return None
    except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        return ROLE  # another database of this server made it at the same moment
    return ROLE


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
