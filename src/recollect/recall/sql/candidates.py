"""Candidates for a recall: the vector leg, the lexical leg, their neighbours in the thread, and what ranking needs.

Few rows are answered exactly, many through HNSW; the choice is made from counts, and told. Rows come
back as plain values: ranking works on arrays.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy import select

from recollect.errors import NotFound
from recollect.memories.rules.windows import Window
from recollect.memories.sql.nodes import conditions, holding, plain_conditions
from recollect.model import NodeFilter, Space
from recollect.recall.rules import lexical
from recollect.recall.sql import lexicon
from recollect.store import rows
from recollect.store.database import Transaction, driver
from recollect.store.tables import nodes

POOL = 200
# Where the windows of a few long texts fill the pool, more of them are looked at, until so many texts are found (D47).
ENOUGH = 20
EXACT_BELOW = 10_000
# Up to so many vectors it is measured whether looking at all of them or the index is faster: trying costs little.
MEASURED_UP_TO = 50_000
EVERY = 2**31 - 1
MOST_LOOKED_AT = 16_000
# Neighbours are looked up for the best so many: flow comes from what is found, not from the long tail.
FLOW_FROM = 60

FIRST_LOOK = """
SELECT s.id, s.slug, s.settings, s.embedding_model, s.created_at, coalesce(v.version, 0) AS version,
       EXISTS (SELECT FROM embedding_jobs WHERE space_id = $1 AND status IN ('pending', 'processing')) AS waiting,
       t.documents, t.edition, t.languages, t.weighted_mean,
       (SELECT reltuples FROM pg_class WHERE oid = 'embeddings'::regclass) AS vectors,
       ARRAY(SELECT term FROM term_stats WHERE space_id = $1 AND term = ANY($2) ORDER BY term) AS terms,
       ARRAY(SELECT documents FROM term_stats WHERE space_id = $1 AND term = ANY($2) ORDER BY term) AS containing
  FROM spaces s LEFT JOIN space_versions v ON v.space_id = s.id LEFT JOIN lexicon_totals t ON t.space_id = s.id
 WHERE s.id = $1
"""

COUNT = """
SELECT count(*) FROM (
    SELECT FROM embeddings WHERE space_id = $1 AND model = $2 AND kind = ANY($3) AND recallable LIMIT $4) AS few
"""

WINDOWS_OF = """
SELECT g.id, e.passage, e.starts, e.ends FROM unnest($4::uuid[]) AS g(id), LATERAL (
    SELECT passage, starts, ends, vector FROM embeddings
     WHERE space_id = $1 AND node_id = g.id AND model = $2 AND dim = {dim} OFFSET 0) e
 ORDER BY e.vector::halfvec({dim}) <=> $3
"""

# The windows of some texts that are nearest to the question, each as it is indexed: with what its text is called.
NEAREST_WINDOWS = """
SELECT n.id, n.name, substr(n.text, e.starts + 1, e.ends - e.starts) AS text, n.created_at, n.thread, n.metadata
  FROM unnest($4::uuid[]) AS g(id),
       LATERAL (SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n,
       LATERAL (SELECT starts, ends FROM (
                    SELECT starts, ends, vector::halfvec({dim}) <=> $3 AS distance FROM embeddings
                     WHERE space_id = $1 AND node_id = g.id AND model = $2 AND dim = {dim} AND passage > 0
                    OFFSET 0) AS windows
                 ORDER BY distance LIMIT {most}) e
"""

# LATERAL with OFFSET 0: each id is looked up by its key, however small the planner believes the space to be.
VECTOR_OF = """LATERAL (
    SELECT node_id, vector, dim FROM embeddings
     WHERE space_id = $1 AND node_id = g.id AND model = $2 AND passage = 0 OFFSET 0) e"""

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

# Both legs, the most promising of what they find, and what ranking needs to know of those: one message to the server.
# What one leg did not return is at most as good there as its last; where it returned all it has, as good as nothing.
GATHERED = """
WITH near AS MATERIALIZED ({near}),
     matched AS MATERIALIZED (SELECT node_id AS id, score FROM lexical_candidates($1, $5, $4, $6, {pool})),
     ends AS MATERIALIZED (
         SELECT (SELECT count(*) FROM near) AS windows,
                coalesce((SELECT min(cosine) FROM near HAVING count(*) >= {most}), 0) AS farthest,
                (SELECT count(*) FROM matched) AS matched,
                coalesce((SELECT min(score) FROM matched HAVING count(*) >= {pool}), 0) AS poorest,
                greatest((SELECT max(score) FROM matched), $7, 1e-9) AS full_match),
     either AS (
         SELECT id, max(cosine) AS cosine, max(score) AS words FROM (
             SELECT id, cosine, NULL::float8 AS score FROM near UNION ALL SELECT id, NULL, score FROM matched) AS legs
          GROUP BY id),
     g AS MATERIALIZED (
         SELECT either.*, count(cosine) OVER () AS near, ends.windows, ends.matched FROM either, ends
          ORDER BY $8 * coalesce(words, poorest) / full_match
                   + (1 - $8) * greatest(coalesce(cosine, farthest) - $9, 0) / ($10 - $9) DESC, id
          LIMIT $11)
"""
OF_GATHERED = "g, LATERAL (SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n"

# Whom ranking asks about. $1 is the space, $2 the model, $3 the question's vector, $4 its words, $5 each word alone.
GIVEN = """unnest($6::uuid[], $7::float8[], $8::float8[]) AS g(id, cosine, words), LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n"""
BESIDE = """(SELECT thread, position, NULL::float8 AS cosine, NULL::float8 AS words
               FROM unnest($6::text[], $7::int8[]) AS place(thread, position)) AS g, LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND thread = g.thread AND position = g.position OFFSET 0) n"""

# What a leg finds, and how good it is there.
Found = dict[UUID, float]


class Few(NamedTuple):
    """Some nodes, as the statement that finds them and its values."""

    statement: str
    values: tuple[Any, ...]
    most: int  # of more than so many, none is looked at


class Candidate(NamedTuple):
    """A node as ranking sees it: its moment in seconds; 0 where it has no vector of the model, or no word in common.

    `length` is its number of words, `held` the weight that each word of the question has in it (D49).
    """

    id: UUID
    thread: str | None
    position: int | None
    moment: float
    importance: float | None
    cosine: float
    words: float
    length: float = 0.0
    held: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstLook:
    """What a recall asks before anything else: the space as it is, and what the question's words are worth there."""

    space: Space
    version: int
    waiting: bool
    # How many texts the space holds, of any kind, and how many words they have in the mean.
    documents: int
    mean_length: float
    # About how many vectors the index holds that all spaces share; None where nobody has counted them yet.
    vectors: int | None
    # Those that it holds beside English.
    languages: frozenset[str]
    words: lexicon.LexicalQuestion | None
    # Words that no text holds, and those that were looked for in their stead.
    meant: Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class CandidateQuery:
    """A question as the legs ask it: where, by which model's vector (None where it cannot read it), by which words."""

    space_id: UUID
    model: str
    dim: int
    vector: NDArray[np.float32] | None
    words: lexicon.LexicalQuestion | None = None
    mean_length: float = 1.0
    with_summaries: bool = False

    @property
    def most_possible(self) -> float:
        """The BM25 score of a text that holds all of the words."""
        return self.words.most_possible if self.words else 0.0

    @cached_property
    def half(self) -> HalfVector | None:
        return None if self.vector is None else HalfVector(self.vector)


async def first_look(db: Transaction, text: str, *, languages: Collection[str] = ()) -> FirstLook:
    """A space, its version, whether some of its texts still wait to be embedded, and the words of a question.

    `languages` are those that the space was last seen to hold beside English. Should it hold others, it is asked again.
    """
    raw = await driver(db)
    terms = lexicon.terms_of(db.space_id, lexical.asked(text, edition=0, languages=languages))
    found = await raw.fetchrow(FIRST_LOOK, db.space_id, terms)
    if found is None:
        raise NotFound("This space is gone: `recollect spaces` lists those that are there.")
    spoken = lexicon.spoken(found["languages"] or {}, found["documents"] or 0)
    if not spoken <= {*languages}:
        return await first_look(db, text, languages=spoken | {*languages})
    known = lexicon.KnownWords(
        space_id=db.space_id,
        words=lexical.asked(text, edition=found["edition"] or lexical.EDITION, languages=spoken),
        documents=found["documents"] or 0,
        containing=dict(zip(found["terms"], found["containing"], strict=True)),
        languages=found["languages"] or {},
    )
    meant = await lexicon.meant(db, known.unknown()) if known.documents else {}
    return FirstLook(
        space=rows.space_of(found),
        version=found["version"],
        waiting=found["waiting"],
        documents=known.documents,
        mean_length=found["weighted_mean"] or 1.0,
        vectors=max(int(found["vectors"]), known.documents) if found["vectors"] > 0 else None,
        languages=spoken,
        words=known.weighed(meant),
        meant={word: [one.word for one in ones] for word, ones in meant.items()},
    )


async def count(db: Transaction, *, model: str, kinds: Sequence[str]) -> int:
    """How many vectors a search would look at, counted no further than needed for the choice."""
    raw = await driver(db)
    return int(await raw.fetchval(COUNT, db.space_id, model, list(kinds), MEASURED_UP_TO + 1))


def filtered(db: Transaction, wanted: NodeFilter) -> Few:
    """The nodes that a filter leaves, counted no further than needed for the choice."""
    if wanted.metadata:
        where = holding(db.space_id, wanted.metadata).c
        statement = select(where.id).where(*plain_conditions(db.space_id, wanted, where))
    else:
        statement = select(nodes.c.id).where(*conditions(db.space_id, wanted))
    compiled = statement.limit(EXACT_BELOW + 1).compile(
        dialect=db.connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    values = (compiled.params[name] for name in getattr(compiled, "positiontup", ()))
    given = tuple(json.dumps(one) if isinstance(one, dict) else one for one in values)
    return Few(str(compiled), given, most=EXACT_BELOW)


def these(ids: Sequence[UUID]) -> Few:
    return Few("SELECT unnest($1::uuid[])", (ids,), most=EVERY)


async def summaries(db: Transaction) -> list[UUID]:
    """The approved summaries, which are not among the recallable."""
    wanted = (nodes.c.is_summary, nodes.c.status == "active", ~nodes.c.exclude)
    statement = select(nodes.c.id).where(nodes.c.space_id == db.space_id, *wanted).limit(EXACT_BELOW)
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
    most = breadth * POOL if within is None else 5 * POOL
    while True:
        rows_ = await _nearest(db, asked, kinds=kinds, exactly=exactly, most=most)
        found = dict(reversed(rows_))  # of several windows of a text the best counts
        permitted = {*found} if within is None else await allowed(db, list(found), within)
        passed = {id_: cosine for id_, cosine in reversed(found.items()) if id_ in permitted}
        enough = ENOUGH if within is None else POOL
        if len(passed) >= enough or len(rows_) < most or most >= MOST_LOOKED_AT:
            return dict(list(passed.items())[:POOL])
        most *= 4


async def _nearest(
    db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str], exactly: bool, most: int
) -> list[tuple[UUID, float]]:
    statement = _near(asked.dim, kinds="$4", exactly=exactly, most=most)
    found = await (await driver(db)).fetch(statement, asked.space_id, asked.model, asked.half, list(kinds))
    return [*map(tuple, found)]


def _near(dim: int, *, kinds: str, exactly: bool, most: int) -> str:
    """The vector leg, best first; a long text may be there several times, by several of its windows (D47).

    $1 is the space, $2 the model, $3 the question's vector.
    """
    those = f"FROM embeddings WHERE space_id = $1 AND model = $2 AND dim = {dim} AND kind = ANY({kinds}) AND recallable"
    distance = f"vector::halfvec({dim}) <=> $3"
    if exactly:  # OFFSET 0 keeps the planner from walking HNSW where a plain pass answers better
        few = f"(SELECT node_id, {distance} AS d {those} OFFSET 0) AS few"
        return f"SELECT node_id AS id, 1 - d AS cosine FROM {few} ORDER BY d LIMIT {most}"
    # Search sessions do not sort if they can help it, so HNSW is walked, whatever the number of rows is believed to be.
    return f"SELECT node_id AS id, 1 - ({distance}) AS cosine {those} ORDER BY {distance} LIMIT {most}"


NONE_IS_NEAR = "SELECT NULL::uuid AS id, NULL::float8 AS cosine WHERE $3::halfvec IS NOT NULL"


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """By what the most promising are chosen, how much a match by words counts there, and how many they are."""

    lexical_share: float
    full_match: float
    low: float
    high: float
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """What both legs found, and how many each; `windows` are the vectors among which those texts are."""

    candidates: list[Candidate]
    by_vector: int
    by_words: int
    windows: int


async def gathered(
    db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str], exactly: bool, promise: Promise, breadth: int = 1
) -> Gathered:
    """The most promising of a whole space, with what ranking needs to know of them.

    `breadth` is how many vectors a text has about.
    """
    most = breadth * POOL
    while True:
        found = await _gathered(db, asked, kinds=kinds, exactly=exactly, promise=promise, most=most)
        if found.by_vector >= ENOUGH or found.windows < most or most >= MOST_LOOKED_AT:
            return found
        most *= 4


async def _gathered(
    db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str], exactly: bool, promise: Promise, most: int
) -> Gathered:
    near = NONE_IS_NEAR if asked.vector is None else _near(asked.dim, kinds="$6", exactly=exactly, most=most)
    legs = GATHERED.format(near=near, pool=POOL, most=most)
    words = asked.words or lexicon.LexicalQuestion(match=[], weights=lexicon.NO_WORDS, most_possible=0.0)
    found = await (await driver(db)).fetch(
        f"{legs} {_details(asked, OF_GATHERED, each='$12', more=', g.near, g.matched, g.windows')}",
        *(asked.space_id, asked.model, asked.half, words.weights, words.match, list(kinds), promise.full_match),
        *(promise.lexical_share, promise.low, promise.high, promise.most, words.each),
    )
    by_vector, by_words, windows = found[0][-3:] if found else (0, 0, 0)
    rows_ = [Candidate._make(tuple(row)[:-3]) for row in found]
    return Gathered(candidates=rows_, by_vector=by_vector, by_words=by_words, windows=windows)


async def nearest_of(db: Transaction, asked: CandidateQuery, few: Few) -> tuple[int, Found]:
    """How many some nodes are; if not too many to look at, the nearest of them and their cosines, exactly."""
    return await _best_of(db, few, NEARNESS, asked.space_id, asked.model, asked.half, dim=asked.dim)


async def matching(db: Transaction, asked: CandidateQuery, *, kinds: Sequence[str]) -> Found:
    """The nodes of these kinds that match best, and their BM25 scores."""
    if asked.words is None:
        return {}
    raw = await driver(db)
    return dict(await raw.fetch(MATCHING, db.space_id, asked.words.match, asked.words.weights, list(kinds), POOL))


async def matching_of(db: Transaction, asked: CandidateQuery, few: Few) -> tuple[int, Found]:
    """The same by words: those of some nodes that match best, and their BM25 scores."""
    if asked.words is None:
        return 0, {}
    return await _best_of(db, few, MATCH, asked.space_id, asked.words.weights)


async def _best_of(db: Transaction, few: Few, score: str, *given: Any, **named: int) -> tuple[int, Found]:
    numbers = range(len(few.values) + 1, len(few.values) + len(given) + 1)
    statement = BEST_OF.format(few=few.statement, score=score.format(*numbers, **named), most=few.most, pool=POOL)
    found = await (await driver(db)).fetch(statement, *few.values, *given)
    return found[0]["total"], {one["id"]: one["score"] for one in found if one["id"] is not None}


async def allowed(db: Transaction, ids: Sequence[UUID], wanted: NodeFilter) -> set[UUID]:
    """Those of some nodes that a filter lets through."""
    statement = select(nodes.c.id).where(nodes.c.id.in_(ids), *conditions(db.space_id, wanted))
    return set((await db.execute(statement)).scalars())


def _details(asked: CandidateQuery, source: str, *, each: str = "$5", more: str = "") -> str:
    """Both legs' scores, each computed only where it is not known yet: `coalesce` asks no further than it must.

    The weights are cast to what they are already: that unpacks those of a long text once, not once a word.
    """
    may_be_told = "n.status = 'active' AND NOT n.exclude" if asked.with_summaries else "n.recallable"
    return f"""
        SELECT n.id, n.thread, n.position, date_part('epoch', n.created_at), n.importance,
               coalesce(g.cosine, (SELECT 1 - min(e.vector::halfvec({asked.dim}) <=> $3) FROM embeddings e
                                    WHERE e.space_id = $1 AND e.node_id = n.id AND e.model = $2), 0),
               coalesce(g.words, -(l.bm25 <#> $4), 0), coalesce(l.length, 0),
               ARRAY(SELECT coalesce(-(l.bm25 <#> word), 0)
                       FROM unnest({each}::sparsevec[]) WITH ORDINALITY AS each(word, place) ORDER BY place){more}
          FROM {source}
          LEFT JOIN LATERAL (SELECT length, bm25::sparsevec::sparsevec({lexical.DIMENSIONS}) AS bm25 FROM lexicon
                              WHERE space_id = $1 AND node_id = n.id OFFSET 0) l ON true
         WHERE n.space_id = $1 AND {may_be_told}"""


async def details(
    db: Transaction, asked: CandidateQuery, ids: Sequence[UUID], *, cosines: Found, words: Found
) -> list[Candidate]:
    """What ranking needs to know of some nodes: both legs' scores for each of them, whichever leg found it."""
    given = (ids, [*map(cosines.get, ids)], [*map(words.get, ids)])
    return await _looked_up(db, asked, GIVEN, *given)


async def neighbours(
    db: Transaction, asked: CandidateQuery, near: Sequence[Candidate], *, known: Collection[UUID]
) -> list[Candidate]:
    """The nodes before and after some candidates in their threads, those that are not candidates yet."""
    places = [(one.thread, one.position + step) for one in near if one.position is not None for step in (-1, 1)]
    if not places:
        return []
    found = await _looked_up(db, asked, BESIDE, *zip(*places, strict=True))
    return list({one.id: one for one in found if one.id not in known}.values())


async def _looked_up(db: Transaction, asked: CandidateQuery, source: str, *given: Sequence[Any]) -> list[Candidate]:
    raw = await driver(db)
    weights, each = (asked.words.weights, asked.words.each) if asked.words else (lexicon.NO_WORDS, [])
    found = await raw.fetch(_details(asked, source), asked.space_id, asked.model, asked.half, weights, each, *given)
    return [*map(Candidate._make, found)]


async def windows_of(db: Transaction, asked: CandidateQuery, ids: Sequence[UUID]) -> dict[UUID, list[Window]]:
    """The windows of some texts, the nearest to the question first; none of a text that is short, or has no vector."""
    if asked.half is None:
        return {}
    found = await (await driver(db)).fetch(WINDOWS_OF.format(dim=asked.dim), db.space_id, asked.model, asked.half, ids)
    windows: dict[UUID, list[Window]] = {}
    for id_, passage, start, end in found:
        windows.setdefault(id_, []).extend([Window(start, end)] if passage else [])
    return windows


async def by_nearest_windows(
    db: Transaction, asked: CandidateQuery, those: Sequence[Candidate], *, most: int
) -> dict[UUID, Candidate]:
    """Long texts by the words of one of their windows, as if it were all of the text: of the few that are nearest to
    the question the one that holds most."""
    if asked.half is None or asked.words is None or not those:
        return {}
    candidates = {one.id: one for one in those}
    statement = NEAREST_WINDOWS.format(dim=asked.dim, most=most)
    found: dict[UUID, Candidate] = {}
    for record in await (await driver(db)).fetch(statement, db.space_id, asked.model, asked.half, list(candidates)):
        one = asked.words.held_by(lexicon.Entry.of(record), space_id=db.space_id, mean_length=asked.mean_length)
        known = found.get(record["id"])
        if known is None or one.score > known.words:
            found[record["id"]] = candidates[record["id"]]._replace(
                words=one.score, held=one.weights, length=one.length
            )
    return found


async def vectors_of(db: Transaction, ids: Sequence[UUID], *, model: str) -> dict[UUID, NDArray[np.float32]]:
    if not ids:
        return {}
    raw = await driver(db)
    found = await raw.fetch(
        f"SELECT e.node_id, e.vector FROM unnest($3::uuid[]) AS g(id), {VECTOR_OF}",
        *(db.space_id, model, list(ids)),
    )
    return {record["node_id"]: record["vector"].to_numpy().astype(np.float32) for record in found}
