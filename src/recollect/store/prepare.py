"""Making a server fit for use: its version, pgvector, our schema and role, the migrations; then the pool is opened."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import text

from recollect.errors import UnsuitableServer
from recollect.store.connections import MIN_SERVER, Connection, close, connect, make_pool, said_plainly
from recollect.store.database import ROLE, SCHEMA, SEARCHING, Database, driver
from recollect.store.migrations import HEAD, run_migrations
from recollect.store.standby import ANSWER_SECONDS, ReadAt, Standby

MIN_PGVECTOR = (0, 8)
# Any number, the same for every Recollect: whoever prepares a database holds this lock.
PREPARE_LOCK = 7_265_636_011

GRANTS = (
    f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}",
    f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO {ROLE}",
)

# Where tables that are spread over servers are made or changed: each statement sees what the one before did, on every
# server.
CAREFULLY = (
    "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
    "SET LOCAL citus.enable_unsafe_triggers = on",  # ours touch rows of their own space only: migration 0020
    "SET LOCAL client_min_messages = warning",
)

BeforeUpgrade = Callable[[str], Awaitable[None]]


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
    pool = make_pool(dsn, size=pool_size, schema=SCHEMA, vector_schema=vector_schema)
    searchers = None
    if not distributed and read_at is None:
        always = {"role": role or "none", "default_transaction_read_only": "on", **SEARCHING}
        size = max(2, pool_size // 2)
        searchers = make_pool(dsn, size=size, schema=SCHEMA, vector_schema=vector_schema, settings=always)
    database = Database(pool=pool, dsn=dsn, role=role, notes=notes, searchers=searchers, distributed=distributed)
    if revision != HEAD:
        await upgrade(database)
    if read_at is not None and not distributed:
        there = make_pool(
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
async def _preparing(database: Database) -> AsyncIterator[Connection]:
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
    extension = await connection.fetchrow(find)
    if extension is None:
        await _create_pgvector(connection)
        extension = await connection.fetchrow(find)
    version = tuple(int(part) for part in extension["extversion"].split(".")[:2])
    if version < MIN_PGVECTOR:
        raise UnsuitableServer(
            f"pgvector {extension['extversion']} is too old, 0.8 is needed: install it, then run "
            f"ALTER EXTENSION vector UPDATE in this database."
        )
    return str(extension["nspname"])


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
