"""The lexical leg in the database: exact BM25 as an inner product of stored sparse vectors (recall/rules/lexical).

A text is indexed once, in the transaction that saves its first vector. Document frequencies and lengths are kept by
space; the stored weights are made with the mean length of that time and made anew when it has drifted.
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import SparseVector
from sqlalchemy import text

from recollect.recall.rules import lexical
from recollect.store.database import Transaction, driver

# Words that many texts share find little and cost a row each: match by the rarer ones, score with all.
MATCH_AT_MOST = 3000
DRIFT = 0.2
# As many different words as a sparse vector of pgvector can hold; of a longer text those that it uses most.
MOST_TERMS = 16_000

INDEX = """
INSERT INTO lexicon (space_id, node_id, terms, bm25, length, kind, recallable)
SELECT $1, g.node_id, string_to_array(g.terms, ' ')::int4[], g.bm25, g.length, n.kind, n.recallable
  FROM unnest($2::uuid[], $3::text[], $4::sparsevec[], $5::int4[]) AS g(node_id, terms, bm25, length)
  JOIN nodes n ON n.space_id = $1 AND n.id = g.node_id
ON CONFLICT DO NOTHING RETURNING node_id
"""

# In the order of the terms, so that two workers wait for each other and cannot deadlock.
COUNT_TERMS = """
INSERT INTO term_stats (space_id, term, documents)
SELECT $1, g.term, g.documents FROM unnest($2::int4[], $3::int8[]) AS g(term, documents) ORDER BY g.term
ON CONFLICT (space_id, term) DO UPDATE SET documents = term_stats.documents + excluded.documents
"""

COUNT_TEXTS = """
INSERT INTO lexicon_totals (space_id, documents, total_length, weighted_mean) VALUES ($1, $2, $3, $4)
ON CONFLICT (space_id) DO UPDATE SET documents = lexicon_totals.documents + excluded.documents,
    total_length = lexicon_totals.total_length + excluded.total_length
"""

REWEIGH_SOME = """
SELECT n.id, n.name, n.text, n.created_at FROM lexicon l JOIN nodes n ON n.space_id = $1 AND n.id = l.node_id
 WHERE l.space_id = $1 AND l.node_id > $2 ORDER BY l.node_id LIMIT $3
"""

REWEIGH = """
UPDATE lexicon l SET bm25 = g.bm25 FROM unnest($2::uuid[], $3::sparsevec[]) AS g(node_id, bm25)
 WHERE l.space_id = $1 AND l.node_id = g.node_id
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A node as its words are indexed."""

    node_id: UUID
    name: str | None
    text: str | None
    created_at: datetime

    def counts(self, space_id: UUID) -> Counter[int]:
        """Its words, and those of its date: people ask what happened in May."""
        counts = lexical.terms(f"{self.created_at:%-d %B %Y} {self.name or ''} {self.text or ''}", _salt(space_id))
        return counts if len(counts) <= MOST_TERMS else Counter(dict(counts.most_common(MOST_TERMS)))


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalQuestion:
    """A question's side of BM25: which words find candidates, and what each is worth."""

    match: list[int]
    weights: SparseVector
    most_possible: float


async def index(db: Transaction, entries: Sequence[Entry]) -> None:
    """Index what is not indexed yet, and keep the counts."""
    if not entries:
        return
    raw = await driver(db)
    counts = {entry.node_id: entry.counts(db.space_id) for entry in entries}
    mean = await raw.fetchval("SELECT weighted_mean FROM lexicon_totals WHERE space_id = $1", db.space_id)
    mean = mean or max(float(np.mean([one.total() for one in counts.values()])), 1.0)
    added = await raw.fetch(
        INDEX,
        db.space_id,
        list(counts),
        [" ".join(map(str, sorted(one))) for one in counts.values()],
        [_sparse(lexical.document_weights(one, mean)) for one in counts.values()],
        [one.total() for one in counts.values()],
    )
    await _count(raw, db.space_id, [counts[record["node_id"]] for record in added], mean)


async def _count(raw: Any, space_id: UUID, added: Sequence[Counter[int]], mean: float) -> None:
    if not added:
        return
    documents = Counter(term for one in added for term in one)
    terms = sorted(documents)
    await raw.execute(COUNT_TERMS, space_id, terms, [documents[term] for term in terms])
    length = sum(one.total() for one in added)
    await raw.execute(COUNT_TEXTS, space_id, len(added), length, mean)


def terms_of(space_id: UUID, asked: str) -> list[int]:
    """The words of a question, as they are numbered in a space."""
    return sorted(lexical.terms(asked, _salt(space_id)))


def weighed(terms: Sequence[int], containing: Mapping[int, int], *, documents: int) -> LexicalQuestion | None:
    """A question's words weighed by their rarity among so many texts; None when no word of it could find anything."""
    if not containing:
        return None
    rarity = {term: lexical.rarity(documents, containing.get(term, 0)) for term in terms}
    known = {term: rarity[term] for term in containing}
    return LexicalQuestion(
        match=_rarer(containing), weights=_sparse(known), most_possible=lexical.most_possible(rarity.values())
    )


async def drifted(db: Transaction) -> bool:
    """Whether the mean length has moved so far that the stored weights should be made anew."""
    raw = await driver(db)
    row = await raw.fetchrow("SELECT * FROM lexicon_totals WHERE space_id = $1", db.space_id)
    if row is None or not row["documents"]:
        return False
    return bool(abs(row["total_length"] / row["documents"] / row["weighted_mean"] - 1) > DRIFT)


async def reweigh(db: Transaction, *, batch: int = 2000) -> int:
    """Make every stored weight anew with the mean length of today; returns how many."""
    raw = await driver(db)
    row = await raw.fetchrow("SELECT * FROM lexicon_totals WHERE space_id = $1 FOR UPDATE", db.space_id)
    mean = row["total_length"] / row["documents"]
    last, done = UUID(int=0), 0
    while found := await raw.fetch(REWEIGH_SOME, db.space_id, last, batch):
        entries = [Entry(node_id=r["id"], name=r["name"], text=r["text"], created_at=r["created_at"]) for r in found]
        weights = [_sparse(lexical.document_weights(entry.counts(db.space_id), mean)) for entry in entries]
        await raw.execute(REWEIGH, db.space_id, [entry.node_id for entry in entries], weights)
        last, done = entries[-1].node_id, done + len(entries)
    await db.execute(
        text("UPDATE lexicon_totals SET weighted_mean = :mean WHERE space_id = :space"),
        {"mean": mean, "space": db.space_id},
    )
    return done


def _rarer(containing: Mapping[int, int]) -> list[int]:
    """The rarer of the words, as many as find a bounded number of rows; at least the rarest."""
    by_rarity = sorted(containing, key=lambda term: (containing[term], term))
    chosen, rows = by_rarity[:1], containing[by_rarity[0]]
    for term in by_rarity[1:]:
        rows += containing[term]
        if rows > MATCH_AT_MOST:
            break
        chosen.append(term)
    return sorted(chosen)


def _salt(space_id: UUID) -> int:
    """Words are numbered by space, so that the index over all spaces finds those of one without reading the others."""
    return zlib.crc32(space_id.bytes)


def _sparse(weights: Mapping[int, float]) -> SparseVector:
    # Terms count from 1, as PostgreSQL does; the Python side of pgvector counts from 0.
    return SparseVector({term - 1: weight for term, weight in weights.items()}, lexical.DIMENSIONS)


NO_WORDS = _sparse({})
