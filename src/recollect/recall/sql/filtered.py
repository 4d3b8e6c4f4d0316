"""The legs of a search that keeps to some nodes: those that a filter leaves, those that were named, the summaries."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select

from recollect.memories.sql.nodes import conditions, holding, plain_conditions
from recollect.model import NodeFilter
from recollect.recall.sql import candidates
from recollect.recall.sql.candidates import Candidate, CandidateQuery, looked_up, vector_leg
from recollect.store.database import Transaction, driver
from recollect.store.tables import nodes

# What a leg finds, and how good it is there.
Found = dict[UUID, float]
EXACT_BELOW = 10_000
EVERY = 2**31 - 1
MATCHING = "SELECT node_id, score FROM lexical_candidates($1, $2, $3, $4, $5)"
# Some nodes, how many they are, and the best of them; of too many none is looked at.
BEST_OF = """
WITH few(id) AS MATERIALIZED ({few}), size AS MATERIALIZED (SELECT count(*) AS total FROM few),
     scored AS MATERIALIZED (
         SELECT few.id, one.score FROM few, LATERAL ({score} OFFSET 0) AS one
          WHERE (SELECT total FROM size) <= {most} AND one.score IS NOT NULL)
SELECT size.total, best.id, best.score
  FROM size LEFT JOIN (SELECT id, score FROM scored ORDER BY score DESC LIMIT {pool}) AS best ON true
"""
NEARNESS = """SELECT 1 - min(vector::halfvec({dim}) <=> ${2}) AS score FROM embeddings
               WHERE space_id = ${0} AND node_id = few.id AND model = ${1} AND dim = {dim}"""
MATCH = "SELECT nullif(-(bm25 <#> ${1}), 0) AS score FROM lexicon WHERE space_id = ${0} AND node_id = few.id"
# Whom ranking asks about. $1 is the space, $2 the model, $3 the question's vector, $4 its words, $5 each word alone.
GIVEN = """unnest($6::uuid[], $7::float8[], $8::float8[]) AS g(id, cosine, words), LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n"""


class Few(NamedTuple):
    """Some nodes, as the statement that finds them and its values."""

    statement: str
    values: tuple[Any, ...]
    most: int  # of more than so many, none is looked at


def filtered(db: Transaction, node_filter: NodeFilter) -> Few:
    """The nodes that a filter leaves, counted no further than needed for the choice."""
    if node_filter.metadata:
        where = holding(db.space_id, node_filter.metadata).c
        statement = select(where.id).where(*plain_conditions(db.space_id, node_filter, where))
    else:
        statement = select(nodes.c.id).where(*conditions(db.space_id, node_filter))
    compiled = statement.limit(EXACT_BELOW + 1).compile(
        dialect=db.connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    values = (compiled.params[name] for name in getattr(compiled, "positiontup", ()))
    given = tuple(json.dumps(value) if isinstance(value, dict) else value for value in values)
    return Few(str(compiled), given, most=EXACT_BELOW)


def these(ids: Sequence[UUID]) -> Few:
    return Few("SELECT unnest($1::uuid[])", (ids,), most=EVERY)


async def summaries(db: Transaction) -> list[UUID]:
    """The approved summaries, which are not among the recallable."""
    clauses = (nodes.c.is_summary, nodes.c.status == "active", ~nodes.c.exclude)
    statement = select(nodes.c.id).where(nodes.c.space_id == db.space_id, *clauses).limit(EXACT_BELOW)
    return list((await db.execute(statement)).scalars())


async def nearest(
    db: Transaction,
    asked: CandidateQuery,
    *,
    kinds: Sequence[str],
    exactly: bool,
    breadth: int = 1,
    within: NodeFilter | None = None,
) -> Found:
    """The nearest nodes of these kinds and their cosines: exactly, or through the HNSW index of the model.

    A filter that leaves many is applied to ever longer lists, until enough of them pass.
    """
    if asked.vector is None:
        return {}
    most = breadth * candidates.POOL if within is None else 5 * candidates.POOL
    while True:
        rows_ = await _nearest(db, asked, kinds=kinds, exactly=exactly, most=most)
        cosines = dict(reversed(rows_))  # of several windows of a text the best counts
        permitted = {*cosines} if within is None else await allowed(db, list(cosines), within)
        passed = {id_: cosine for id_, cosine in reversed(cosines.items()) if id_ in permitted}
        enough = candidates.ENOUGH if within is None else candidates.POOL
        if len(passed) >= enough or len(rows_) < most or most >= candidates.MOST_LOOKED_AT:
            return dict(list(passed.items())[: candidates.POOL])
        most *= 4


async def _nearest(
    db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str], exactly: bool, most: int
) -> list[tuple[UUID, float]]:
    statement = vector_leg(asked, kinds="$4", exactly=exactly, most=most)
    records = await db.fetch(statement, asked.model, asked.half, list(kinds))
    return [*map(tuple, records)]


async def nearest_of(db: Transaction, asked: CandidateQuery, few: Few) -> tuple[int, Found]:
    """How many some nodes are; if not too many to look at, the nearest of them and their cosines, exactly."""
    return await _best_of(db, few, NEARNESS, db.space_id, asked.model, asked.half, dim=asked.dim)


async def matching(db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str]) -> Found:
    """The nodes of these kinds that match best, and their BM25 scores."""
    if asked.words is None:
        return {}
    return dict(await db.fetch(MATCHING, asked.words.match, asked.words.weights, list(kinds), candidates.POOL))


async def matching_of(db: Transaction, asked: CandidateQuery, few: Few) -> tuple[int, Found]:
    """The same by words: those of some nodes that match best, and their BM25 scores."""
    if asked.words is None:
        return 0, {}
    return await _best_of(db, few, MATCH, db.space_id, asked.words.weights)


async def _best_of(db: Transaction, few: Few, score: str, *given: Any, **named: int) -> tuple[int, Found]:
    numbers = range(len(few.values) + 1, len(few.values) + len(given) + 1)
    statement = BEST_OF.format(
        few=few.statement, score=score.format(*numbers, **named), most=few.most, pool=candidates.POOL
    )
    records = await (await driver(db)).fetch(statement, *few.values, *given)
    return records[0]["total"], {record["id"]: record["score"] for record in records if record["id"] is not None}


async def allowed(db: Transaction, ids: Sequence[UUID], node_filter: NodeFilter) -> set[UUID]:
    """Those of some nodes that a filter lets through."""
    statement = select(nodes.c.id).where(nodes.c.id.in_(ids), *conditions(db.space_id, node_filter))
    return set((await db.execute(statement)).scalars())


async def details(
    db: Transaction, asked: CandidateQuery, ids: Sequence[UUID], *, cosines: Found, words: Found
) -> list[Candidate]:
    """What ranking needs to know of some nodes: both legs' scores for each of them, whichever leg found it."""
    given = (ids, [*map(cosines.get, ids)], [*map(words.get, ids)])
    return await looked_up(db, asked, GIVEN, *given)
