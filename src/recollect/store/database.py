"""The way to PostgreSQL: one pool, one kind of transaction, and the checks that a server is fit for use.

Every transaction of the engine works as the role `recollect_app` with its space set, so that row-level security stands
behind every WHERE: a query that forgets its space sees nothing (DESIGN 5a). The owner's role is used for three things
only: migrations, indexes, and the tables that are read before a space is chosen.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from operator import methodcaller
from typing import Any
from uuid import UUID

import anyio
import asyncpg
from sqlalchemy import CursorResult, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from recollect.errors import UnsuitableServer
from recollect.store.connections import CLOSE_SECONDS, begun, close, connect, ended, make_engine, pool_of, raw_of
from recollect.store.migrations import HEAD, run_migrations
from recollect.store.standby import (
    ANSWER_SECONDS,
    POSITION,
    WROTE,
    ReadAt,
    Standby,
    StandbyLost,
    StandbyReport,
    Whereabouts,
    Writes,
    current_verb,
    where_primary_is,
)
from recollect.store.trouble import said_plainly


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

GRANTS = (
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {ROLE}",
)

# What a search sets for itself. A cached generic plan would pick the wrong index when the filter changes. And nothing
# in a search reads a whole space: it walks HNSW and looks rows up by key. The planner, which cannot know how large a
# space is, would at times rather sort or hash all of it.
SEARCHING = {
    "hnsw.iterative_scan": "relaxed_order",
    "plan_cache_mode": "force_custom_plan",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # Who looks at every vector of a space reads its pages one after the other, not in the order of their keys: that of
    # row-level security makes the planner expect a few rows only.
    "random_page_cost": "4",
}

# Where spaces are spread over servers, settings go to the one that has the space; and what runs there may ask the other
# tables of the space, which are on the same server.
# Where its tables are made or changed, each statement sees what the one before did, on every server.
CAREFULLY = (
    "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
    "SET LOCAL citus.enable_unsafe_triggers = on",  # ours touch rows of their own space only: migration 0020
    "SET LOCAL client_min_messages = warning",
)
CITUS = {"citus.propagate_set_commands": "local", "citus.allow_nested_distributed_execution": "on"}

# For what need not wait for the disk, nor for a standby.
AT_LEISURE = {"synchronous_commit": "off"}

BeforeUpgrade = Callable[[str], Awaitable[None]]


class Database:
    """A prepared PostgreSQL. Make one with `open_database`."""

    def __init__(
        self, *, engine: AsyncEngine, dsn: str, role: str | None, notes: tuple[str, ...], distributed: bool = False
    ) -> None:
        self.engine = engine
        self.dsn = dsn
        self.role = role
        self.notes = notes
        self.distributed = distributed
        self.standby: Standby | None = None
        self._writes = Writes()
        self._watch: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def transaction(self, space_id: UUID, *, in_passing: bool = False) -> AsyncIterator[Transaction]:
        """Reads and writes in one space, all or nothing.

        In passing: one of many steps. Its commit does not wait for the disk; the last step's does, and what reached
        the disk with it is all that came before, for the log is written in order.
        """
        if current_verb() is not None:
            look = self._looking("BEGIN READ ONLY", self._entered(space_id), space_id)
        elif in_passing:
            look = self._begun("BEGIN", self._entered(space_id) | AT_LEISURE)
        else:
            look = self._writing(self._entered(space_id), space_id)
        async with look as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def noting(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """For logs and counts: all or nothing too, but the caller does not wait for the disk.

        A crash of the database may lose the last half second of them, never anything that was remembered or changed.
        """
        counting = {**AT_LEISURE, "recollect.counting": "'on'"}
        async with self._begun("BEGIN", self._entered(space_id) | counting) as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def snapshot(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """A read-only look into one space that stays the same however long it takes: what a policy reads."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._looking(begin, self._entered(space_id), space_id) as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def search(self, space_id: UUID, *, ef_search: int, timeout_seconds: float) -> AsyncIterator[Transaction]:
        """A read-only look into one space, tuned for nearest-neighbour search and bounded in time."""
        bounds = {"statement_timeout": f"{timeout_seconds * 1000:.0f}", "hnsw.ef_search": f"{ef_search:d}"}
        settings = self._entered(space_id) | bounds | SEARCHING
        async with self._looking("BEGIN READ ONLY", settings, space_id) as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def owner(self, *, in_passing: bool = False) -> AsyncIterator[AsyncConnection]:
        """As the owner: migrations, indexes, and the tables without a space."""
        async with self._begun("BEGIN", AT_LEISURE) if in_passing else self._writing({}, None) as connection:
            yield connection

    @property
    def is_at_leisure(self) -> bool:
        """Whether less than half of the connections are in use, so that one task may take a second one.

        Never ask for a second one otherwise: those who hold one and wait for another would wait for each other.
        """
        verb = current_verb()
        pool = pool_of(self.standby.engine if self.standby and verb and verb.at_standby else self.engine)
        return 2 * pool.checkedout() < pool.size()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection outside any transaction, for VACUUM, REINDEX and CREATE INDEX CONCURRENTLY."""
        async with said_plainly():
            connection = await connect(self.dsn, server_settings={"search_path": f"{SCHEMA},public,extensions"})
            try:
                yield connection
            finally:
                await close(connection)

    async def follow(self, standby: Standby) -> None:
        """From now on, verbs that only read do so at a standby, where it is of use (store/standby.py)."""
        self._writes = Writes((await self._where_it_is()).position)  # what was there before is there for this process
        self.standby = standby
        self._watch = asyncio.create_task(standby.watch(self._where_it_is))

    async def how_the_standby_is(self) -> StandbyReport | None:
        """As of now; None where there is none."""
        return await self.standby.look(self._where_it_is) if self.standby else None

    async def close(self) -> None:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._watch is not None:
                self._watch.cancel()
                await asyncio.wait([self._watch])
            if self.standby is not None:
                await self.standby.engine.dispose()
            await self.engine.dispose()

    async def _where_it_is(self) -> Whereabouts:
        async with self._begun("BEGIN READ ONLY", {}) as connection:
            return await where_primary_is(raw_of(connection))

    def _entered(self, space_id: UUID) -> dict[str, str]:
        return {"role": self.role or "none", "recollect.space": f"'{space_id}'"}

    def _opening(self, begin: str, settings: Mapping[str, str]) -> str:
        """The beginning of a transaction and its settings in one message.

        Citus hands settings on to the servers that a transaction comes to, each with the message it came in: in a block
        each is a message of its own.
        """
        if not self.distributed or not settings:
            return "; ".join([begin, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())])
        handed_on = {**CITUS, **settings}
        each = "; ".join(f"SET LOCAL {name} = {value}" for name, value in handed_on.items())
        return f"{begin}; DO $$ BEGIN {each}; END $$"

    @asynccontextmanager
    async def _begun(self, begin: str, settings: Mapping[str, str]) -> AsyncIterator[AsyncConnection]:
        """A transaction at the primary whose beginning and settings are one message."""
        start = methodcaller("execute", self._opening(begin, settings))
        async with said_plainly(), aclosing(await begun(self.engine, start)) as connection, ended(connection):
            yield connection

    @asynccontextmanager
    async def _writing(self, settings: Mapping[str, str], space_id: UUID | None) -> AsyncIterator[AsyncConnection]:
        """The same for what may write: where there is a standby, how far that must come to show it is noted."""
        start = methodcaller("execute", self._opening("BEGIN", settings))
        async with said_plainly(), aclosing(await begun(self.engine, start)) as connection:
            raw, did_write = raw_of(connection), False
            async with ended(connection):
                yield connection
                did_write = self.standby is not None and bool(await raw.fetchval(WROTE))
            if did_write:
                self._writes.note(space_id, int(await raw.fetchval(POSITION)))

    @asynccontextmanager
    async def _looking(self, begin: str, settings: Mapping[str, str], space_id: UUID) -> AsyncIterator[AsyncConnection]:
        """A look into a space: here it is decided where."""
        there = await self._begun_at_standby(self._opening(begin, settings), space_id)
        if self.standby is None or there is None:
            async with self._begun(begin, settings) as connection:
                yield connection
        else:
            async with aclosing(there), self.standby.heard(there), ended(there):
                yield there

    async def _begun_at_standby(self, opening: str, space_id: UUID) -> AsyncConnection | None:
        """None for whoever must ask the primary. All looks of a verb are at the same place."""
        verb, standby = current_verb(), self.standby
        if verb is None or standby is None or verb.at_standby is False:
            return None
        verb.after = max(verb.after, self._writes.after(space_id))
        found = await standby.begun(opening, verb)
        if found is None and verb.at_standby:
            raise StandbyLost("The standby went away in the midst of it: ask again.")
        verb.at_standby = found is not None
        return found


async def driver(of: Connection | Transaction) -> asyncpg.Connection:
    """The asyncpg connection below, in the same transaction: for vectors in binary, for COPY, and for haste."""
    connection = of.connection if isinstance(of, Transaction) else of
    return raw_of(connection)


async def open_database(
    dsn: str, *, pool_size: int, before_upgrade: BeforeUpgrade | None = None, read_at: ReadAt | None = None
) -> Database:
    """Check the server, prepare what is missing (extension, schema, role, migrations), and open the pool.

    Before a database that holds something is upgraded, `before_upgrade` is called with the migration it stands at.
    `read_at` names a standby for what only reads. (Where spaces are spread over servers, each would need its own.)
    """
    connection = await connect(dsn)
    try:
        async with said_plainly():
            await _check_version(connection)
            revision = await _current_revision(connection)
        if before_upgrade is not None and revision not in (None, HEAD):
            await before_upgrade(revision)
        async with said_plainly():
            vector_schema, role, notes = await _prepare(connection)
            distributed = await is_distributed(connection)
    finally:
        await close(connection)
    engine = make_engine(dsn, size=pool_size, schema=SCHEMA, vector_schema=vector_schema)
    database = Database(engine=engine, dsn=dsn, role=role, notes=notes, distributed=distributed)
    if revision != HEAD:
        await upgrade(database)
    if read_at is not None and not distributed:
        there = make_engine(
            read_at.dsn, size=pool_size, schema=SCHEMA, vector_schema=vector_schema, seconds=ANSWER_SECONDS
        )
        await database.follow(Standby(read_at, there))
    return database


async def is_distributed(connection: asyncpg.Connection) -> bool:
    """Whether the spaces are spread over several servers (store/distribute.py)."""
    if await connection.fetchval("SELECT to_regclass('pg_dist_partition')") is None:
        return False
    spread = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1))"
    return bool(await connection.fetchval(spread, f"{SCHEMA}.nodes"))


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
        if database.distributed:
            from recollect.store.distribute import shards_of, spread

            raw = await driver(connection)
            await spread(raw, await shards_of(raw))
        for grant in GRANTS if database.role else ():
            await connection.execute(text(grant))


async def downgrade(database: Database, revision: str) -> None:
    async with _preparing(database) as connection:
        await connection.run_sync(run_migrations, "downgrade", revision)


@asynccontextmanager
async def _preparing(database: Database) -> AsyncIterator[AsyncConnection]:
    async with database.owner() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PREPARE_LOCK})
        for statement in CAREFULLY if database.distributed else ():
            await connection.execute(text(statement))
        yield connection


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
