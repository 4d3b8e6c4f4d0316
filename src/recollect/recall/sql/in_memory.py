"""What recall looks at of a space that is asked again and again, kept in memory: both legs in a few milliseconds.

It is that of one version of a space. The first look of every recall reads the version as it is (the database raises it
in the transaction that changes the space), and what is kept of another one is not used: whoever writes, the answer is
that of the database. To read it costs what ten or twenty questions gain: so after each change the database is asked
some times first, and then it is read in the background. Who writes between few questions has nothing read; nor has who
would have to push out what others asked for meanwhile, or nobody would ever find theirs.

What is found is what `candidates.gathered` finds, by the same rules. What a filter leaves, the windows of long texts
and the texts themselves are asked of the database.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import anyio
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.engine.core import Cache
from recollect.engine.keeping import IDLE_SECONDS, Keeping
from recollect.ports import Vectors
from recollect.recall.sql import candidates
from recollect.recall.sql.candidates import POOL, TABLES, Candidate, CandidateQuery, Gathered, Promise
from recollect.store.copying import SparseRows, copied, copied_sparse, row_of, row_with_vector
from recollect.store.database import Transaction

if TYPE_CHECKING:
    from recollect.engine.core import Core

# Fewer are looked at in the database as fast, and of more nobody counts how many they are.
LEAST, MOST = 1_000, candidates.COUNTED_UP_TO
BYTES_A_NUMBER, BYTES_A_WORD, BYTES_A_TEXT = 4, 8, 220
ASKED_BEFORE = 8
MOST_COUNTED = 1_000
# More are compared beside the event loop, in so many threads: others are answered meanwhile, and other cores help.
IN_PASSING, SIDE_BY_SIDE = 10_000, 2
READ_AT_ONCE = 4_096
NEARLY_NOTHING = 1e-12
VERSION = f"SELECT {TABLES}, coalesce(max(version), 0) FROM space_versions WHERE space_id = $1"
THREADS = """
SELECT DISTINCT thread FROM nodes
 WHERE space_id = $1 AND kind = ANY($2) AND recallable AND thread IS NOT NULL ORDER BY thread
"""
# In binary no NULL is sent.
NOWHERE = -(2**63)
# Threads by their number in that order, in which NULLs come last.
TEXTS = f"""
SELECT n.id, CASE WHEN n.thread IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY n.thread) - 1 END,
       coalesce(n.position, {NOWHERE}), date_part('epoch', n.created_at), coalesce(n.importance, 'NaN'),
       coalesce(l.length, 0)::float8
  FROM nodes n LEFT JOIN lexicon l ON l.space_id = $1 AND l.node_id = n.id
 WHERE n.space_id = $1 AND n.kind = ANY($2::text[]) AND n.recallable
"""
TEXT = row_of(
    [("id", "V16"), ("thread", ">i8"), ("position", ">i8")]
    + [(name, ">f8") for name in ("moment", "importance", "length")]
)
VECTORS = """
SELECT node_id, vector FROM embeddings
 WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4::text[]) AND recallable
"""
WORDS = "SELECT node_id, bm25 FROM lexicon WHERE space_id = $1 AND kind = ANY($2::text[]) AND recallable"


class Among(NamedTuple):
    """What is searched: in which tables, which space, by the vectors of which model, some kinds of nodes."""

    tables: int
    space_id: UUID
    model: str
    dim: int
    kinds: tuple[str, ...]

    def weight(self, vectors: int, texts: int, words: float) -> float:
        """About the bytes that so many take."""
        return vectors * BYTES_A_NUMBER * self.dim + texts * BYTES_A_TEXT + words * BYTES_A_WORD


class AskedVersion(NamedTuple):
    """How often a version was asked for, and since when."""

    version: tuple[int, int]
    times: int
    since: float


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTexts:
    """What ranking needs to know of each text, in the order of their ids."""

    ids: NDArray[np.bytes_]
    uuids: Sequence[UUID]
    thread: NDArray[np.int64]  # which of the threads; -1 for none
    position: NDArray[np.int64]  # NOWHERE for none
    moment: NDArray[np.float64]
    importance: NDArray[np.float64]  # NaN for none
    length: NDArray[np.float64]
    threads: Sequence[str]
    turns: "KeptTurns"

    @classmethod
    def of(cls, rows: NDArray[np.void], threads: Sequence[str]) -> "KeptTexts":
        rows = rows[np.argsort(_comparable(rows["id"]), kind="stable")]
        thread, position = rows["thread"].astype(np.int64), rows["position"].astype(np.int64)
        return cls(
            ids=_comparable(rows["id"]),
            uuids=[UUID(bytes=id_.tobytes()) for id_ in rows["id"]],
            thread=thread,
            position=position,
            moment=rows["moment"].astype(np.float64),
            importance=rows["importance"].astype(np.float64),
            length=rows["length"].astype(np.float64),
            threads=threads,
            turns=KeptTurns.of(thread, position),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def rows_of(self, ids: NDArray[np.void]) -> NDArray[np.int64]:
        """Where some of them are; -1 for what is none of them."""
        if not len(self):
            return np.full(len(ids), -1)
        wanted = _comparable(ids)
        rows = np.minimum(np.searchsorted(self.ids, wanted), len(self) - 1)
        return np.where(self.ids[rows] == wanted, rows, -1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTurns:
    """Which texts stand where in the threads: those that are in one, in the order of their places."""

    positions: NDArray[np.int64]  # all that there are
    places: NDArray[np.int64]  # of each text its thread and its position, as one number
    texts: NDArray[np.int64]

    @classmethod
    def of(cls, thread: NDArray[np.int64], position: NDArray[np.int64]) -> "KeptTurns":
        texts = np.flatnonzero((thread >= 0) & (position != NOWHERE))
        positions, numbers = np.unique(position[texts], return_inverse=True)
        places = thread[texts] * len(positions) + numbers
        order = np.argsort(places, kind="stable")
        return cls(positions=positions, places=places[order], texts=texts[order])

    def at(self, thread: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """The texts at some places, each once and in their order."""
        numbers = np.searchsorted(self.positions, position)
        is_there = (thread >= 0) & np.isin(position, self.positions[numbers[numbers < len(self.positions)]])
        places = thread[is_there] * len(self.positions) + numbers[is_there]
        firsts, ends = (np.searchsorted(self.places, places, side=side) for side in ("left", "right"))
        found = [self.texts[first:end] for first, end in zip(firsts, ends, strict=True)]
        return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptVectors:
    """Vectors, each of length one, in the order of the texts that they are of; and where those of each text begin."""

    texts: NDArray[np.int64]
    firsts: NDArray[np.int64]
    rows: NDArray[np.float32]

    @classmethod
    def of(cls, found: NDArray[np.void], texts: KeptTexts) -> "KeptVectors":
        of = texts.rows_of(found["id"])
        order = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]
        firsts = np.flatnonzero(np.diff(of[order], prepend=-1))
        rows = np.empty((len(order), found["vector"].shape[1]), dtype=np.float32)
        for start in range(0, len(order), READ_AT_ONCE):  # not all of them once more in memory on their way
            rows[start : start + READ_AT_ONCE] = _of_length_one(found["vector"][order[start : start + READ_AT_ONCE]])
        return cls(texts=of[order], firsts=firsts, rows=rows)

    def best(self, cosines: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """The best of each text; 0 for one that has none."""
        if len(cosines) == len(self.firsts) == count:  # as it is where no text is long
            return cosines
        best = np.zeros(count, dtype=np.float32)
        if len(cosines):
            best[self.texts[self.firsts]] = np.maximum.reduceat(cosines, self.firsts)
        return best


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptWords:
    """Which texts hold each word, and how much it says about them: word by word, and for each text by text."""

    terms: NDArray[np.int64]
    firsts: NDArray[np.int64]  # where the texts of each begin, and where the last end
    texts: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, found: SparseRows, texts: KeptTexts) -> "KeptWords":
        holders = np.repeat(texts.rows_of(found.ids), found.sizes).astype(np.int32)
        order = np.lexsort((holders, found.places))
        order = order[holders[order] >= 0]
        terms, firsts = np.unique(found.places[order], return_index=True)
        return cls(
            terms=terms.astype(np.int64) + 1,  # sparse vectors are sent counted from 0, and terms count from 1
            firsts=np.append(firsts, len(order)),
            texts=holders[order],
            weights=found.numbers[order],
        )

    def holding(self, terms: Sequence[int], count: int) -> NDArray[np.int64]:
        """The texts that hold any of some words, in their order."""
        holds = np.zeros(count, dtype=np.bool_)
        for term in terms:
            holds[self.texts[self._of(term)]] = True
        return np.flatnonzero(holds)

    def scores(self, worth: Mapping[int, float], count: int) -> NDArray[np.float64]:
        """What each text holds of some words, by what these are worth. A question may have thousands of them."""
        scores = np.zeros(count)
        for term, weight in worth.items():
            of = self._of(term)
            scores[self.texts[of]] += weight * self.weights[of]
        return scores

    def held(self, terms: Collection[int], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The weight of each of some words (a column) in some texts (a row)."""
        held = np.zeros((len(rows), len(terms)), dtype=np.float32)
        for column, term in enumerate(terms):
            if len(texts := self.texts[of := self._of(term)]):
                at = np.minimum(np.searchsorted(texts, rows), len(texts) - 1)
                held[:, column] = np.where(texts[at] == rows, self.weights[of][at], 0.0)
        return held

    def _of(self, term: int) -> slice:
        at = int(np.searchsorted(self.terms, term))
        is_there = at < len(self.terms) and self.terms[at] == term
        return slice(self.firsts[at], self.firsts[at + 1]) if is_there else slice(0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptSpace:
    """One version of a space, as far as recall looks at all of it."""

    version: tuple[int, int]
    texts: KeptTexts
    vectors: KeptVectors
    words: KeptWords

    @classmethod
    def of(
        cls,
        version: tuple[int, int],
        texts: NDArray[np.void],
        threads: Sequence[str],
        vectors: NDArray[np.void],
        words: SparseRows,
    ) -> "KeptSpace":
        known = KeptTexts.of(texts, threads)
        return cls(
            version=version,
            texts=known,
            vectors=KeptVectors.of(vectors, known),
            words=KeptWords.of(words, known),
        )

    async def look(self, asked: CandidateQuery, vector: Vectors) -> "LookInMemory":
        look, count = LookInMemory(self, asked, vector), len(self.vectors.rows)
        if count <= IN_PASSING:
            look.weigh_words()
            look.compare(slice(None))
            return look
        size = -(-count // SIDE_BY_SIDE)
        async with anyio.create_task_group() as side_by_side:
            side_by_side.start_soon(anyio.to_thread.run_sync, look.weigh_words)
            for first in range(0, count, size):
                side_by_side.start_soon(anyio.to_thread.run_sync, look.compare, slice(first, first + size))
        return look

    @property
    def weight(self) -> int:
        """The bytes it takes."""
        words = self.words.terms.nbytes + self.words.texts.nbytes + self.words.weights.nbytes
        return self.vectors.rows.nbytes + words + len(self.texts) * BYTES_A_TEXT


class LookInMemory:
    """One question, how near it is to each text of a space, and what they hold of its words."""

    def __init__(self, kept: KeptSpace, asked: CandidateQuery, vector: Vectors) -> None:
        self._kept, self._asked = kept, asked
        self._vector = _of_length_one(vector.astype(np.float16))
        self._cosines = np.empty(len(kept.vectors.rows), dtype=np.float32)
        self._worth = asked.words.rarities if asked.words else {}
        self._words = np.empty(0)
        self._rows: dict[UUID, int] = {}  # of those that were handed out

    def weigh_words(self) -> None:
        """What each text holds of the words of the question."""
        self._words = self._kept.words.scores(self._worth, len(self._kept.texts))

    def compare(self, some: slice) -> None:
        """How near some of the vectors are."""
        # Row by row: the threads of a matrix product would wait for each other busily, and so do the others.
        np.vecdot(self._kept.vectors.rows[some], self._vector, out=self._cosines[some])

    @cached_property
    def _cosine(self) -> NDArray[np.float32]:
        return self._kept.vectors.best(self._cosines, len(self._kept.texts))

    def gathered(self, promise: Promise, *, breadth: int) -> Gathered:
        """What the statement `candidates.GATHERED` gathers."""
        most = breadth * POOL
        while not candidates.is_enough(found := self._gathered(promise, most), most):
            most *= 4
        return found

    def neighbours(self, near: Sequence[Candidate], *, pool_ids: Collection[UUID]) -> list[Candidate]:
        """What `candidates.neighbours` finds."""
        texts = self._kept.texts
        rows = np.array([self._rows[one.id] for one in near if one.position is not None], dtype=np.int64)
        threads, positions = np.tile(texts.thread[rows], 2), texts.position[rows]
        rows = texts.turns.at(threads, np.concatenate([positions - 1, positions + 1]))
        return [one for one in self._candidates(rows) if one.id not in pool_ids]

    def _gathered(self, promise: Promise, most: int) -> Gathered:
        is_near, windows, farthest = self._near(most)
        is_matched, poorest = self._matched()
        either = np.flatnonzero(is_near | is_matched)
        cosine = np.where(is_near[either], self._cosine[either], farthest)
        words = np.where(is_matched[either], self._words[either], poorest)
        full_match = max(float(self._words[is_matched].max(initial=0.0)), promise.full_match, 1e-9)
        by_meaning = np.maximum(cosine - promise.low, 0.0) / (promise.high - promise.low)
        promises = promise.lexical_share * words / full_match + (1 - promise.lexical_share) * by_meaning
        best = either[np.argsort(-promises, kind="stable")[: promise.most]]
        return Gathered(
            candidates=self._candidates(best),
            by_vector=int(np.count_nonzero(is_near)),
            by_words=int(np.count_nonzero(is_matched)),
            windows=windows,
        )

    def _near(self, most: int) -> tuple[NDArray[np.bool_], int, float]:
        """The texts of the nearest so many vectors, how many these are, and how near any other may be."""
        nearest = _greatest(self._cosines, most)
        farthest = float(self._cosines[nearest].min()) if len(nearest) == most else 0.0
        return self._these(self._kept.vectors.texts[nearest]), len(nearest), farthest

    def _matched(self) -> tuple[NDArray[np.bool_], float]:
        """The texts that hold most of the words, of those that hold one of the rarer; and what others hold at most."""
        match = self._asked.words.match if self._asked.words else ()
        holding = self._kept.words.holding(match, len(self._kept.texts))
        matched = holding[_greatest(self._words[holding], POOL)]
        return self._these(matched), float(self._words[matched].min()) if len(matched) == POOL else 0.0

    def _these(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        these = np.zeros(len(self._kept.texts), dtype=np.bool_)
        these[rows] = True
        return these

    def _candidates(self, rows: NDArray[np.int64]) -> list[Candidate]:
        texts = self._kept.texts
        held = self._kept.words.held(self._worth, rows)
        at = rows.tolist()
        ids = [texts.uuids[row] for row in at]
        self._rows |= zip(ids, at, strict=True)
        told = (texts.thread, texts.position, texts.moment, texts.importance)
        asked = (self._cosine, self._words, texts.length)
        columns = [column[rows].tolist() for column in (*told, *asked)]
        numbers = zip(*columns, held.tolist(), strict=True)
        return [
            Candidate(
                id_,
                texts.threads[thread] if thread >= 0 else None,
                None if position == NOWHERE else position,
                moment,
                None if importance != importance else importance,
                *rest,
            )
            for id_, (thread, position, moment, importance, *rest) in zip(ids, numbers, strict=True)
        ]


class SpacesInMemory(Keeping[Among, KeptSpace]):
    """One version of each space, as many as fit."""

    def __init__(self, *, most_mb: int) -> None:
        super().__init__(most=most_mb * 2**20)
        # Those that are not kept.
        self._asked: Cache[AskedVersion] = Cache(most=MOST_COUNTED, seconds=IDLE_SECONDS)

    def of(
        self, core: "Core", among: Among, *, version: tuple[int, int], vectors: int, texts: int, words: float
    ) -> KeptSpace | None:
        """That version; None where the database is to look itself. Who asks often has it read.

        It has about so many vectors, texts, and words in all of them.
        """
        weight = among.weight(vectors, texts, words)
        if vectors < LEAST or max(vectors, texts) > MOST or weight > self._most:
            self._drop(among)
            return None
        kept = self._kept.get(among)
        if kept is not None and kept.version >= version:
            self._used_at[among] = self._clock()
            # One that is newer is for those who looked after the change; and of none at all there is no nearest.
            return kept if kept.version == version and len(kept.vectors.rows) else None
        self._drop(among)
        since = self._asked_often(among, version)
        if since is not None and self._has_room(weight, since=since):
            self.load_soon(core, among.space_id, among)
        return None

    def _asked_often(self, among: Among, version: tuple[int, int]) -> float | None:
        """Since when, if so. Then it is counted anew: what cannot be read is not tried at every question."""
        before = self._asked.get(among)
        last = before if before and before.version == version else AskedVersion(version, 0, self._clock())
        if last.times + 1 < ASKED_BEFORE:
            self._asked.put(among, last._replace(times=last.times + 1))
            return None
        self._asked.put(among, AskedVersion(version, 0, self._clock()))
        return last.since

    def _has_room(self, weight: float, *, since: float) -> bool:
        """Beside all that somebody asked for since then: what is wanted more often is not pushed out."""
        wanted = (self._weight(kept) for key, kept in self._kept.items() if self._used_at[key] >= since)
        return weight + sum(wanted) <= self._most

    def forget(self) -> None:
        super().forget()
        self._asked.clear()

    def _weight(self, kept: KeptSpace) -> float:
        return kept.weight

    async def _read(self, db: Transaction, key: Among) -> KeptSpace:
        table, version = await db.fetchrow(VERSION)
        kinds = list(key.kinds)
        threads = [row["thread"] for row in await db.fetch(THREADS, kinds)]
        texts = await copied(db, TEXT, TEXTS, kinds)
        vectors = await copied(db, row_with_vector(key.dim), VECTORS, key.model, key.dim, kinds)
        words = await copied_sparse(db, WORDS, kinds)
        return await anyio.to_thread.run_sync(KeptSpace.of, (table, version), texts, threads, vectors, words)


def _greatest(numbers: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Where the greatest few are."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    return np.argpartition(-numbers, most)[:most]


def _comparable(ids: NDArray[np.void]) -> NDArray[np.bytes_]:
    """Ids in the order in which the database has them."""
    return np.ascontiguousarray(ids).view("S16")


def _of_length_one(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """What says nothing, and is nowhere, stays there."""
    rows = vectors.astype(np.float32)
    lengths = np.sqrt(np.vecdot(rows, rows))  # without all the squares in memory at once
    rows /= np.maximum(lengths, NEARLY_NOTHING)[..., np.newaxis]
    return rows
