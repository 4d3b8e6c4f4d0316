"""Candidates for a recall: the vector leg, the lexical leg, their neighbours in the thread, and what ranking needs.

Few rows are answered exactly, many through HNSW; the choice is made from counts, and told. Rows come
back as plain values: ranking works on arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.model import NodeFilter
from recollect.store import lexicon
from recollect.store.database import driver
from recollect.store.nodes import conditions, holding
from recollect.store.tables import nodes

POOL = 200
EXACT_BELOW = 10_000
MOST_LOOKED_AT = 16_000
# Neighbours are looked up for the best so many: flow comes from what is found, not from the long tail.
FLOW_FROM = 60
NOTHING_KNOWN: Mapping[UUID, float] = MappingProxyType({})

# LATERAL with OFFSET 0: each id is looked up by its key, however small the planner believes the space to be.
VECTOR_OF = """LATERAL (
    SELECT node_id, vector, dim FROM embeddings WHERE space_id = $1 AND node_id = g.id AND model = $2 OFFSET 0) e"""

COUNT = """
SELECT count(*) FROM (
    SELECT FROM embeddings WHERE space_id = $1 AND model = $2 AND kind = ANY($3) AND recallable LIMIT $4) AS few
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A node as ranking sees it; the cosine is None while it has no vector of the model."""

    id: UUID
    thread: str | None
    position: int | None
    created_at: datetime
    importance: float | None
    cosine: float | None
    words: float


async def count(connection: AsyncConnection, space_id: UUID, *, model: str, kinds: Sequence[str]) -> int:
    """How many vectors a search would look at, counted no further than needed for the choice."""
    raw = await driver(connection)
    return int(await raw.fetchval(COUNT, space_id, model, list(kinds), EXACT_BELOW + 1))


async def filtered(connection: AsyncConnection, space_id: UUID, wanted: NodeFilter) -> list[UUID] | None:
    """The nodes that a filter leaves, if they are few enough to look at each; else None."""
    if wanted.metadata:
        where = holding(wanted.metadata).c
        statement = select(where.id).where(*conditions(replace(wanted, metadata={}), where))
    else:
        statement = select(nodes.c.id).where(nodes.c.space_id == space_id, *conditions(wanted))
    found = list((await connection.execute(statement.limit(EXACT_BELOW + 1))).scalars())
    return found if len(found) <= EXACT_BELOW else None


async def summaries(connection: AsyncConnection, space_id: UUID) -> list[UUID]:
    """The approved summaries, which are not among the recallable."""
    wanted = (nodes.c.is_summary, nodes.c.status == "active", ~nodes.c.exclude)
    statement = select(nodes.c.id).where(nodes.c.space_id == space_id, *wanted).limit(EXACT_BELOW)
    return list((await connection.execute(statement)).scalars())


async def nearest_of(
    connection: AsyncConnection, space_id: UUID, query: NDArray[np.float32], ids: Sequence[UUID], *, model: str
) -> dict[UUID, float]:
    """The nearest of some nodes and their cosines, exactly."""
    raw = await driver(connection)
    dim = len(query)
    found = await raw.fetch(
        f"""WITH few AS MATERIALIZED (
                SELECT e.node_id, e.vector::halfvec({dim}) <=> $5 AS d
                  FROM unnest($4::uuid[]) AS g(id), {VECTOR_OF} WHERE e.dim = $3)
            SELECT node_id, d FROM few ORDER BY d LIMIT $6""",
        *(space_id, model, dim, list(ids), HalfVector(query), POOL),
    )
    return {record["node_id"]: 1.0 - record["d"] for record in found}


async def nearest(
    connection: AsyncConnection,
    space_id: UUID,
    query: NDArray[np.float32],
    *,
    model: str,
    kinds: Sequence[str],
    exactly: bool,
    within: NodeFilter | None = None,
) -> dict[UUID, float]:
    """The nearest nodes of these kinds and their cosines: exactly, or through the HNSW index of the model.

    A filter that leaves many is applied to ever longer lists, until enough of them pass.
    """
    most = POOL if within is None else 5 * POOL
    while True:
        found = await _nearest(connection, space_id, query, model=model, kinds=kinds, exactly=exactly, most=most)
        if within is None:
            return found
        permitted = await allowed(connection, space_id, list(found), within)
        passed = {id_: cosine for id_, cosine in found.items() if id_ in permitted}
        if len(passed) >= POOL or len(found) < most or most >= MOST_LOOKED_AT:
            return dict(list(passed.items())[:POOL])
        most *= 4


async def _nearest(
    connection: AsyncConnection,
    space_id: UUID,
    query: NDArray[np.float32],
    *,
    model: str,
    kinds: Sequence[str],
    exactly: bool,
    most: int,
) -> dict[UUID, float]:
    raw = await driver(connection)
    dim = len(query)
    rows = """FROM embeddings WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4) AND recallable"""
    distance = f"vector::halfvec({dim}) <=> $5"
    given = (space_id, model, dim, list(kinds), HalfVector(query), most)
    if exactly:  # MATERIALIZED keeps the planner from walking HNSW where a plain pass answers better
        few = f"WITH few AS MATERIALIZED (SELECT node_id, vector {rows})"
        found = await raw.fetch(f"{few} SELECT node_id, {distance} AS d FROM few ORDER BY d LIMIT $6", *given)
    else:  # search sessions do not sort if they can help it, so HNSW is walked, whatever the number of rows is believed
        found = await raw.fetch(f"SELECT node_id, {distance} AS d {rows} ORDER BY {distance} LIMIT $6", *given)
    return {record["node_id"]: 1.0 - record["d"] for record in found}


async def allowed(connection: AsyncConnection, space_id: UUID, ids: Sequence[UUID], wanted: NodeFilter) -> set[UUID]:
    """Those of some nodes that a filter lets through."""
    statement = select(nodes.c.id).where(nodes.c.space_id == space_id, nodes.c.id.in_(ids), *conditions(wanted))
    return set((await connection.execute(statement)).scalars())


def _details(dim: int, source: str) -> str:
    """Both legs' scores, each looked up only where it is not known yet: `coalesce` asks no further than it must."""
    return f"""
        SELECT n.id, n.thread, n.position, n.created_at, n.importance,
               coalesce(g.cosine, (SELECT 1 - (e.vector::halfvec({dim}) <=> $3) FROM embeddings e
                                    WHERE e.space_id = $1 AND e.node_id = n.id AND e.model = $2)) AS cosine,
               coalesce(g.words, (SELECT -(l.bm25 <#> $4) FROM lexicon l
                                   WHERE l.space_id = $1 AND l.node_id = n.id)) AS words
          FROM {source}
         WHERE n.space_id = $1 AND n.recallable"""


GIVEN = """unnest($5::uuid[], $6::float8[], $7::float8[]) AS g(id, cosine, words), LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n"""
BESIDE = """(SELECT thread, position, NULL::float8 AS cosine, NULL::float8 AS words
               FROM unnest($5::text[], $6::int8[]) AS place(thread, position)) AS g, LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND thread = g.thread AND position = g.position OFFSET 0) n"""


async def details(
    connection: AsyncConnection,
    space_id: UUID,
    ids: Sequence[UUID],
    query: NDArray[np.float32],
    asked: lexicon.Question | None,
    *,
    model: str,
    cosines: Mapping[UUID, float] = NOTHING_KNOWN,
    words: Mapping[UUID, float] = NOTHING_KNOWN,
    with_summaries: bool = False,
) -> list[Candidate]:
    """What ranking needs to know of some nodes: both legs' scores for each of them, whichever leg found it."""
    raw = await driver(connection)
    statement = _details(len(query), GIVEN)
    if with_summaries:
        statement = statement.replace("n.recallable", "n.status = 'active' AND NOT n.exclude")
    found = await raw.fetch(
        statement,
        *(space_id, model, HalfVector(query), _weights(asked)),
        *(list(ids), [cosines.get(id_) for id_ in ids], [words.get(id_) for id_ in ids]),
    )
    return [_candidate(record) for record in found]


async def neighbours(
    connection: AsyncConnection,
    space_id: UUID,
    near: Sequence[Candidate],
    query: NDArray[np.float32],
    asked: lexicon.Question | None,
    *,
    model: str,
    known: set[UUID],
) -> list[Candidate]:
    """The nodes before and after some candidates in their threads, those that are not candidates yet."""
    places = [(one.thread, one.position + step) for one in near if one.position is not None for step in (-1, 1)]
    if not places:
        return []
    raw = await driver(connection)
    found = await raw.fetch(
        _details(len(query), BESIDE),
        *(space_id, model, HalfVector(query), _weights(asked)),
        [thread for thread, _ in places],
        [position for _, position in places],
    )
    return list({record["id"]: _candidate(record) for record in found if record["id"] not in known}.values())


async def vectors_of(
    connection: AsyncConnection, space_id: UUID, ids: Sequence[UUID], *, model: str
) -> dict[UUID, NDArray[np.float32]]:
    if not ids:
        return {}
    raw = await driver(connection)
    found = await raw.fetch(
        f"SELECT e.node_id, e.vector FROM unnest($3::uuid[]) AS g(id), {VECTOR_OF}",
        *(space_id, model, list(ids)),
    )
    return {record["node_id"]: record["vector"].to_numpy().astype(np.float32) for record in found}


def _weights(asked: lexicon.Question | None) -> Any:
    return asked.weights if asked else lexicon.NO_WORDS


def _candidate(record: Any) -> Candidate:
    return Candidate(
        id=record["id"],
        thread=record["thread"],
        position=record["position"],
        created_at=record["created_at"],
        importance=record["importance"],
        cosine=record["cosine"],
        words=record["words"] or 0.0,
    )
