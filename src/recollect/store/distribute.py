"""Spaces over many servers, with Citus (X04): every table with a space becomes one table a group of spaces, a shard,
and all shards of a space lie on one server. No transaction needs two spaces, so none needs two servers.

It is one transaction: whoever is killed half-way leaves the database as it was, and does it again. Only an empty
database is distributed; a filled one is backed up, and restored into one that is (restoring distributes between the
tables and their rows). Keys, sessions and schedules are read before a space is chosen: they stay where everybody
connects. `spaces` is copied to every server, for all keys point there.
"""

from dataclasses import dataclass

import asyncpg

from recollect.errors import Conflict, UnsuitableServer
from recollect.store.connections import said_plainly
from recollect.store.database import ROLE, SCHEMA, Database
from recollect.store.prepare import CAREFULLY, PREPARE_LOCK, is_distributed
from recollect.store.tables import metadata

EVERYWHERE = "spaces"
# Read before a space is chosen.
HERE_ALONE = {"api_keys", "sessions", "schedules"}
FIRST = "nodes"
SPREAD = (FIRST, *(t.name for t in metadata.sorted_tables if t.name not in {FIRST, EVERYWHERE, *HERE_ALONE}))
# Called by itself, it runs at the server that has the space; the others are parts of statements, which do so anyway.
HANDED_ON = "note_recall"
# What somebody has said or done: none of it may be there yet.
FILLED = ("nodes", "plans", "recalls", "page_batches", "topics")

WORKERS = "SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards AND isactive"
LISTED = ", ".join(f"'{table}'" for table in SPREAD)
# Makes the tables that are there, and not distributed yet, distributed ones; the first of them before the others.
SPREAD_TABLES = f"""
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT c.oid::regclass AS name, c.relname FROM pg_class c
                WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r' AND c.oid NOT IN (
                      SELECT logicalrelid::oid FROM pg_dist_partition)
                  AND c.relname IN ('{EVERYWHERE}', {LISTED})
                ORDER BY c.relname <> '{EVERYWHERE}', c.relname <> '{FIRST}', c.relname LOOP
        IF one.relname = '{EVERYWHERE}' THEN
            PERFORM create_reference_table(one.name);
        ELSE
            PERFORM create_distributed_table(one.name, 'space_id', colocate_with => CASE one.relname
                WHEN '{FIRST}' THEN 'none' ELSE '{SCHEMA}.{FIRST}' END);
        END IF;
    END LOOP;
    FOR one IN SELECT p.oid::regprocedure AS name, p.proname FROM pg_proc p
                WHERE p.pronamespace = '{SCHEMA}'::regnamespace LOOP
        IF one.proname = '{HANDED_ON}' THEN
            PERFORM create_distributed_function(one.name, 'space', colocate_with => '{SCHEMA}.{FIRST}');
        ELSE
            PERFORM create_distributed_function(one.name);
        END IF;
    END LOOP;
END $$
"""
REFERENCES = """
SELECT c.conname AS name, c.conrelid::regclass::text AS of, pg_get_constraintdef(c.oid) AS says
  FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class o ON o.oid = c.confrelid
 WHERE c.contype = 'f' AND c.connamespace = $1::regnamespace AND (t.relname = ANY($2) OR o.relname = ANY($2))
 ORDER BY 2, 1
"""
LOCAL = f"""
SELECT c.relname FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
   AND c.relname IN ('{EVERYWHERE}', {LISTED}) AND c.oid NOT IN (SELECT logicalrelid::oid FROM pg_dist_partition)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """Over how many servers and shards the spaces are spread, and whether that was so before."""

    servers: int
    shards: int
    repeated: bool = False


async def distribute(database: Database, *, shards: int) -> Distribution:
    """Spread the spaces of an empty database over its servers, all or nothing; once that is done, nothing is done."""
    async with database.alone() as connection, said_plainly(), connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", PREPARE_LOCK)
        servers = await _servers(connection)
        if await is_distributed(connection):
            return Distribution(servers=servers, shards=await shards_of(connection), repeated=True)
        await _refuse_filled(connection)
        await spread(connection, shards)
    database.distributed = True
    await database.leave_connections()  # whoever connects anew sees the tables as they are now
    return Distribution(servers=servers, shards=shards)


async def _servers(connection: asyncpg.Connection) -> int:
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        raise UnsuitableServer(
            "This PostgreSQL has no Citus, which spreads spaces over servers: install it on all of them, run "
            "CREATE EXTENSION citus in this database, and add the others with citus_add_node."
        )
    servers = int(await connection.fetchval(WORKERS))
    if not servers:
        raise UnsuitableServer(
            "Citus knows no server that may hold data: add some with SELECT citus_add_node('host', 5432), then repeat."
        )
    return servers


async def count_shards(database: Database) -> int | None:
    """Over how many shards the spaces are spread; None where they are not."""
    if not database.distributed:
        return None
    async with database.alone() as connection:
        return await shards_of(connection)


async def shards_of(connection: asyncpg.Connection) -> int:
    counted = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = to_regclass($1)"
    return int(await connection.fetchval(counted, f"{SCHEMA}.{FIRST}"))


async def _refuse_filled(connection: asyncpg.Connection) -> None:
    for table in FILLED:
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})"):
            raise Conflict(
                "This database holds something already, and only an empty one can be distributed: "
                "`recollect backup FILE`, distribute a new database, then `recollect restore FILE` there."
            )


async def spread(connection: asyncpg.Connection, shards: int) -> None:
    """Make the tables of the schema distributed ones, those that are not; in the transaction of the caller."""
    local = [row["relname"] for row in await connection.fetch(LOCAL, SCHEMA)]
    if not local:
        return
    references = await connection.fetch(REFERENCES, SCHEMA, local)
    for reference in references:
        await connection.execute(f'ALTER TABLE {reference["of"]} DROP CONSTRAINT "{reference["name"]}"')
    for statement in statements(shards):
        await connection.execute(statement)
    for reference in references:
        await connection.execute(
            f'ALTER TABLE {reference["of"]} ADD CONSTRAINT "{reference["name"]}" {reference["says"]}'
        )


def statements(shards: int) -> tuple[str, ...]:
    """What distributes tables that no foreign key joins yet."""
    login = f"ALTER ROLE {ROLE} LOGIN"  # servers let each other in by the role that asks
    return (*CAREFULLY, f"SET LOCAL citus.shard_count = {shards:d}", login, SPREAD_TABLES)
