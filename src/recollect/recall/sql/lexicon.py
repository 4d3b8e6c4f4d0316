"""The index of words in the database: exact BM25 as an inner product of stored sparse vectors (recall/rules/lexical).

A text is indexed in the transaction that stores it, so that its words find it from then on. Document frequencies and
lengths are kept by space; the stored weights are made with the mean length of that time. When that has drifted, or
texts are tokenised otherwise than before, every entry is made anew, a few at a time, while search goes on.

Whoever changes the counts of a space takes its turn (an advisory lock), so that no two wait for each other in a circle.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from itertools import chain, compress
from struct import pack
from typing import Any
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector

from recollect.recall.rules import lexical, spelling
from recollect.recall.rules.languages import DEFAULT
from recollect.recall.rules.titles import titles
from recollect.store.database import Transaction

DRIFT = 0.2
# As many different words as a sparse vector of pgvector can hold; of a longer text those that it uses most.
MOST_TERMS = 16_000
RENEWED_AT_ONCE = 300
CHARACTERS_AT_ONCE = 20_000  # about ten milliseconds
LONGEST_SPELLING = 40
TURN = """
SELECT (SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 11)) IS NULL),
       (SELECT weighted_mean FROM lexicon_totals WHERE space_id = $1) AS mean
"""
# One statement a table, each of which takes the space from a row that it reads, or names it outright: so Citus knows
# that one server has it all. A statement that wrote three tables would be taken apart, and handed to all servers.
# The terms of all texts come in one array, of which each text has a stretch.
INDEX = """
INSERT INTO lexicon (space_id, node_id, terms, bm25, length, kind, recallable)
SELECT n.space_id, n.id, ($3::int4[])[g.first:g.last], g.bm25, g.length, n.kind, n.recallable
  FROM unnest($2::uuid[], $4::int4[], $5::int4[], $6::sparsevec[], $7::int4[]) AS g(node_id, first, last, bm25, length)
  JOIN nodes n ON n.id = g.node_id
 WHERE n.space_id = $1
ON CONFLICT DO NOTHING RETURNING node_id
"""
COUNT = """
INSERT INTO lexicon_totals AS t (space_id, documents, total_length, weighted_mean, edition, languages)
VALUES ($1, $2, $3, $4, $5, $6::jsonb)
ON CONFLICT (space_id) DO UPDATE SET documents = t.documents + excluded.documents,
    total_length = t.total_length + excluded.total_length,
    languages = added_up(t.languages, excluded.languages)
"""
COUNT_TERMS = """
INSERT INTO term_stats AS t (space_id, term, documents)
SELECT l.space_id, g.term, g.more FROM lexicon_totals l CROSS JOIN unnest($2::int4[], $3::int8[]) AS g(term, more)
 WHERE l.space_id = $1 ORDER BY g.term
ON CONFLICT (space_id, term) DO UPDATE SET documents = t.documents + excluded.documents
RETURNING term, xmax = 0 AS is_new
"""
SPELL = """
INSERT INTO spellings (space_id, term, word, keys)
SELECT l.space_id, g.term, g.word, string_to_array(g.keys, ' ')::int4[]
  FROM lexicon_totals l CROSS JOIN unnest($2::int4[], $3::text[], $4::text[]) AS g(term, word, keys)
 WHERE l.space_id = $1 ORDER BY g.term
ON CONFLICT DO NOTHING
"""
UNINDEXED = """
SELECT n.id, n.name, n.text, n.created_at, n.thread, n.metadata FROM nodes n
 WHERE n.space_id = $1 AND n.id = ANY($2) AND NOT EXISTS (
       SELECT FROM lexicon l WHERE l.space_id = $1 AND l.node_id = n.id)
 ORDER BY n.id FOR SHARE
"""
STATE = "SELECT documents, total_length, weighted_mean, edition, renewed FROM lexicon_totals WHERE space_id = $1"
BEGIN_RENEWAL = """
UPDATE lexicon_totals SET renewed = '00000000-0000-0000-0000-000000000000',
       weighted_mean = CASE WHEN documents > 0 THEN greatest(total_length::float8 / documents, 1) ELSE weighted_mean END
 WHERE space_id = $1
"""
OLD = """
SELECT l.node_id AS id, n.name, n.text, n.created_at, n.thread, n.metadata, l.terms, l.length
  FROM lexicon l JOIN nodes n ON n.space_id = $1 AND n.id = l.node_id
 WHERE l.space_id = $1 AND l.node_id > $2 ORDER BY l.node_id LIMIT $3
"""
RENEW = """
UPDATE lexicon l SET terms = g.terms, bm25 = g.bm25, length = g.length
  FROM (SELECT node_id, ($3::int4[])[first:last] AS terms, bm25, length
          FROM unnest($2::uuid[], $4::int4[], $5::int4[], $6::sparsevec[], $7::int4[])
               AS one(node_id, first, last, bm25, length)) AS g
 WHERE l.space_id = $1 AND l.node_id = g.node_id
"""
COUNT_RENEWED = """
UPDATE lexicon_totals SET total_length = total_length + $2, renewed = $3, languages = added_up(languages, $4::jsonb)
 WHERE space_id = $1
"""
END_RENEWAL = "UPDATE lexicon_totals SET renewed = NULL, edition = $2 WHERE space_id = $1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A node as its words are indexed."""

    node_id: UUID
    name: str | None
    text: str | None
    created_at: datetime
    thread: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Entry":
        columns = {name: record[name] for name in ("name", "text", "created_at", "thread")}
        return cls(node_id=record["id"], metadata=record["metadata"], **columns)

    def indexed(self) -> lexical.IndexedText:
        """Its words, what it is called, and the words of its date: people ask what happened in May."""
        called = f"{self.name or ''}\n{titles(self.thread, self.metadata)}"
        return lexical.indexed(self.text or "", heading=f"{_day(self.created_at.date())}\n{called}")


@lru_cache(maxsize=1000)
def _day(day: date) -> str:
    return f"{day:%-d %B %Y}"


class _Numbers(dict[str, int]):
    """The terms of a space's words, each computed once."""

    def __init__(self, salt: int) -> None:
        self._salt = salt

    def __missing__(self, word: str) -> int:
        number = self[word] = lexical.term(word, self._salt)
        return number


class _Encoded(SparseVector):
    """A sparse vector as it is sent."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    def to_binary(self) -> bytes:
        return self._encoded


class IndexedBatch:
    """Some entries as columns of the statements above."""

    def __init__(self, space_id: UUID, entries: Sequence[Entry]) -> None:
        self.salt = lexical.salt_of(space_id)
        self.ids = [entry.node_id for entry in entries]
        indexed = [entry.indexed() for entry in entries]
        self.lengths = [text.length for text in indexed]
        self.languages = [text.language for text in indexed]
        numbers = _Numbers(self.salt)
        terms = [[*map(numbers.__getitem__, _most_used(text.words))] for text in indexed]
        self.words = {number: word for word, number in numbers.items()}
        self._count([len(text_terms) for text_terms in terms], np.fromiter(chain.from_iterable(terms), np.int64))

    def _count(self, lengths: Sequence[int], terms: NDArray[np.int64]) -> None:
        """Text by text, and in each the terms in order, as both arrays and sparse vectors are kept."""
        texts = np.repeat(np.arange(len(lengths)), lengths)
        different, occurrences = np.unique(texts << 32 | terms, return_counts=True)
        self.sizes = np.bincount(different >> 32, minlength=len(lengths))
        self.terms = (different & 0xFFFFFFFF).astype(np.int32)
        self.occurrences = occurrences.astype(np.float64)

    def only(self, ids: Collection[UUID]) -> "IndexedBatch":
        """Those of some nodes alone."""
        wanted = np.array([id_ in ids for id_ in self.ids], bool)
        part, of_wanted = copy(self), np.repeat(wanted, self.sizes)
        part.ids = list(compress(self.ids, wanted))
        part.lengths, part.languages = list(compress(self.lengths, wanted)), list(compress(self.languages, wanted))
        part.sizes, part.terms = self.sizes[wanted], self.terms[of_wanted]
        part.occurrences = self.occurrences[of_wanted]
        return part

    @property
    def mean(self) -> float:
        return max(float(np.mean(self.lengths)), 1.0)

    def columns(self, mean: float) -> tuple[list[UUID], list[int], list[int], list[int], list[SparseVector], list[int]]:
        """The nodes; the terms of all, where those of each begin and end among them, and what they weigh; lengths."""
        lasts = np.cumsum(self.sizes)
        firsts = lasts - self.sizes
        weights = lexical.weights(self.occurrences, np.repeat(self.lengths, self.sizes), mean)
        # As pgvector writes them, but for all texts at once; it counts from 0, and terms from 1.
        terms, values = (self.terms - 1).astype(">i4").tobytes(), weights.astype(">f4").tobytes()
        vectors: list[SparseVector] = [
            _Encoded(
                pack(">iii", lexical.DIMENSIONS, last - first, 0)
                + terms[4 * first : 4 * last]
                + values[4 * first : 4 * last]
            )
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]
        return self.ids, self.terms.tolist(), (firsts + 1).tolist(), lasts.tolist(), vectors, self.lengths

    @property
    def other_languages(self) -> str:
        """How many texts are in which language, other than English."""
        return json.dumps(Counter(language for language in self.languages if language != DEFAULT))

    async def count_terms(self, db: Transaction, more: Mapping[int, int]) -> None:
        """Count in how many texts more each word is; those never seen before are filed, for who misspells them."""
        terms = sorted(term for term, count in more.items() if count)
        counted = await db.fetch(COUNT_TERMS, terms, [more[term] for term in terms])
        new = sorted(row["term"] for row in counted if row["is_new"] and _is_filed(self.words.get(row["term"], "")))
        if new:
            keys = [" ".join(map(str, spelling.keys(self.words[term], self.salt))) for term in new]
            await db.run(SPELL, new, [self.words[term] for term in new], keys)


def _most_used(words: Sequence[str]) -> Sequence[str]:
    if len(words) <= MOST_TERMS:
        return words
    return [*Counter(dict(Counter(words).most_common(MOST_TERMS))).elements()]


async def read(space_id: UUID, entries: Sequence[Entry]) -> IndexedBatch:
    """The words of some entries. Many are looked at beside the event loop, so that others are answered meanwhile."""
    if sum(len(entry.text or "") for entry in entries) < CHARACTERS_AT_ONCE:
        return IndexedBatch(space_id, entries)
    return await anyio.to_thread.run_sync(IndexedBatch, space_id, entries)


async def index(db: Transaction, batch: IndexedBatch) -> None:
    """Index what is not indexed yet, and keep the counts."""
    if not batch.ids:
        return
    mean = (await db.fetchrow(TURN))["mean"] or batch.mean
    added = await db.fetch(INDEX, *batch.columns(mean))
    if not added:
        return
    new = batch if len(added) == len(batch.ids) else batch.only({row["node_id"] for row in added})
    await db.run(COUNT, len(new.ids), sum(new.lengths), mean, lexical.EDITION, new.other_languages)
    await new.count_terms(db, Counter(new.terms.tolist()))


async def index_missing(db: Transaction, ids: Sequence[UUID]) -> None:
    """Index those of some nodes that are not indexed yet, by what they say now: nobody changes them meanwhile."""
    records = await db.fetch(UNINDEXED, list(ids))
    await index(db, await read(db.space_id, [Entry.of(record) for record in records]))


# -- made anew


async def is_due(db: Transaction) -> bool:
    """Whether the entries of a space are to be made anew, or are half-way through it."""
    return _is_due(await db.fetchrow(STATE))


def _is_due(state: Mapping[str, Any] | None) -> bool:
    if state is None or not state["documents"]:
        return False
    drift = abs(state["total_length"] / state["documents"] / state["weighted_mean"] - 1)
    return bool(state["renewed"] is not None or state["edition"] < lexical.EDITION or drift > DRIFT)


async def renew_some(db: Transaction, *, most: int = RENEWED_AT_ONCE) -> int:
    """Make the next few entries anew, as their texts are tokenised and weighed today; 0 when all are."""
    await db.fetchrow(TURN)
    state = await db.fetchrow(STATE)
    if not _is_due(state):
        return 0
    if state["renewed"] is None:
        await db.run(BEGIN_RENEWAL)
        state = await db.fetchrow(STATE)
    records = await db.fetch(OLD, state["renewed"], most)
    if not records:
        await db.run(END_RENEWAL, lexical.EDITION)
        return 0
    batch = await read(db.space_id, [Entry.of(record) for record in records])
    more = Counter(batch.terms.tolist())
    more.subtract(term for record in records for term in record["terms"])
    longer = sum(batch.lengths) - sum(record["length"] for record in records)
    # Who only weighs anew has counted the languages before.
    languages = batch.other_languages if state["edition"] < lexical.EDITION else "{}"
    await db.run(RENEW, *batch.columns(state["weighted_mean"]))
    await db.run(COUNT_RENEWED, longer, batch.ids[-1], languages)
    await batch.count_terms(db, more)
    return len(records)


def _is_filed(word: str) -> bool:
    return len(word) <= LONGEST_SPELLING and spelling.can_be_misspelled(word)
