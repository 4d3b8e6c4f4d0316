"""The vector indexes, made at run time, one a model: their state, building, rebuilding."""

import hashlib
from dataclasses import dataclass

import asyncpg

from recollect.store.database import Database, driver

NEVER_COUNTED = "SELECT reltuples < 0 FROM pg_class WHERE oid = 'nodes'::regclass"


def index_name(model: str, dim: int) -> str:
    return f"embeddings_hnsw_{hashlib.sha256(model.encode()).hexdigest()[:8]}_{dim}"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexState:
    """The HNSW index of a model: ready, missing, or left invalid by an interrupted build."""

    name: str
    state: str
    rows: int


async def index_state(database: Database, model: str, dim: int) -> IndexState:
    name = index_name(model, dim)
    async with database.owner() as connection:
        raw = await driver(connection)
        valid = await raw.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", name)
        rows = await raw.fetchval("SELECT count(*) FROM embeddings WHERE model = $1 AND dim = $2", model, dim)
    state = "missing" if valid is None else "ready" if valid else "invalid"
    return IndexState(name=name, state=state, rows=rows)


async def is_indexed(database: Database, model: str, dim: int) -> bool:
    """The same in short: whether it is ready, without counting what it holds."""
    async with database.owner() as connection:
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"
        return bool(await (await driver(connection)).fetchval(valid, index_name(model, dim)))


async def build_index(database: Database, model: str, dim: int, *, m: int, ef_construction: int) -> None:
    """Build the HNSW index of a model beside running work; one process at a time, an interrupted build begins anew."""
    name = index_name(model, dim)
    quoted = model.replace("'", "''")
    async with database.alone() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 7))", name):
            return
        valid = await connection.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", name)
        if valid:
            return
        await connection.execute(f"DROP INDEX IF EXISTS {name}")
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON embeddings USING hnsw ((vector::halfvec({dim})) halfvec_cosine_ops) "
            f"WITH (m = {m}, ef_construction = {ef_construction}) WHERE model = '{quoted}' AND dim = {dim}"
        )


async def lacks_statistics(database: Database) -> bool:
    """Whether nobody has ever counted what there is."""
    async with database.owner() as connection:
        return bool(await (await driver(connection)).fetchval(NEVER_COUNTED))


async def settle(database: Database) -> None:
    """After a load: statistics of what search reads, and what its indexes have not sorted in yet.

    Whoever builds an index holds the table and waits for everybody who looks at it: who waits for the table in turn
    would never get it (a deadlock), so what is held is left for the next time.
    """
    async with database.alone() as connection:
        await connection.execute("ANALYZE (SKIP_LOCKED) nodes, embeddings, lexicon, term_stats, spellings, activity")
        for index in ("lexicon_terms", "spellings_keys", "nodes_metadata"):
            await connection.execute(f"SELECT gin_clean_pending_list('{index}')")


async def rebuild_index(database: Database, model: str, dim: int) -> bool:
    """REINDEX beside running work (D34); False where there is no index yet."""
    async with database.alone() as connection:
        try:
            await connection.execute(f"REINDEX INDEX CONCURRENTLY {index_name(model, dim)}")
        except asyncpg.UndefinedTableError:
            return False
    return True
