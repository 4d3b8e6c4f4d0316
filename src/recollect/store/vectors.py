"""Vectors: nearest neighbours, exact or through HNSW, and the indexes that are made at run time, one a model.

A search that leaves few rows is answered exactly (recall 1.0, and faster than walking HNSW past what the filter
rejects); the choice is made here, from counts.
"""

import hashlib
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.store.database import Database, driver

EXACT_BELOW = 10_000

COUNT = """
SELECT count(*) FROM (
    SELECT FROM embeddings WHERE space_id = $1 AND model = $2 AND kind = ANY($3) AND recallable LIMIT $4) AS few
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """A node and its cosine to the query."""

    node_id: UUID
    similarity: float


async def nearest(
    connection: AsyncConnection,
    space_id: UUID,
    query: NDArray[np.float32],
    *,
    model: str,
    kinds: tuple[str, ...],
    limit: int,
) -> list[Neighbour]:
    """The nodes nearest to a query by cosine, best first. Vectors of other models are never compared (D15)."""
    raw = await driver(connection)
    dim = len(query)
    few = await raw.fetchval(COUNT, space_id, model, list(kinds), EXACT_BELOW + 1) <= EXACT_BELOW
    found = await raw.fetch(
        _exact(dim) if few else _approximate(dim), space_id, model, dim, list(kinds), HalfVector(query), limit
    )
    return [Neighbour(node_id=record["node_id"], similarity=1.0 - record["distance"]) for record in found]


def _approximate(dim: int) -> str:
    return f"""
        SELECT node_id, vector::halfvec({dim}) <=> $5 AS distance FROM embeddings
         WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4) AND recallable
         ORDER BY vector::halfvec({dim}) <=> $5 LIMIT $6"""


def _exact(dim: int) -> str:
    # MATERIALIZED keeps the planner from using HNSW for what a plain pass answers better.
    return f"""
        WITH few AS MATERIALIZED (
            SELECT node_id, vector FROM embeddings
             WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4) AND recallable)
        SELECT node_id, vector::halfvec({dim}) <=> $5 AS distance FROM few ORDER BY distance LIMIT $6"""


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


async def rebuild_index(database: Database, model: str, dim: int) -> bool:
    """REINDEX beside running work (D34); False where there is no index yet."""
    async with database.alone() as connection:
        try:
            await connection.execute(f"REINDEX INDEX CONCURRENTLY {index_name(model, dim)}")
        except asyncpg.UndefinedTableError:
            return False
    return True


async def drop_index(database: Database, model: str, dim: int) -> None:
    async with database.alone() as connection:
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model, dim)}")
