"""A question and what it finds: what its words are worth, both legs, their neighbours in the thread, and what ranking
needs to know of them.

Few rows are answered exactly, many through HNSW; the choice is made from counts, and told. Rows come
back as plain values: ranking works on arrays. What keeps to a filter is in recall/sql/filtered, what is kept in memory
in recall/sql/in_memory, long texts are read by windows in recall/sql/windows, and texts are indexed by their words in
recall/sql/lexicon.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from recollect.errors import NotFound
from recollect.recall.rules import lexical, spelling
from recollect.store.database import SERVER, Transaction

POOL = 200
# Where the windows of a few long texts fill the pool, more of them are looked at, until so many texts are found (D47).
ENOUGH = 20
# Up to so many vectors it is tried out whether all of them or the index is faster; and of more nobody counts the rest.
MEASURED_UP_TO, COUNTED_UP_TO = 50_000, 150_000
MOST_LOOKED_AT = 16_000
# Neighbours are looked up for the best so many: flow comes from what is found, not from the long tail.
FLOW_FROM = 60
# The tables in which a version counts: those of a restored backup are others, and so are those of another server.
TABLES = f"'embeddings'::regclass::int8 # {SERVER}"
# How many vectors there are is asked of a function: Citus cannot plan a look into the catalog beside its own tables.
FIRST_LOOK = f"""
SELECT s.settings, s.embedding_model, coalesce(v.version, 0) AS version,
       EXISTS (SELECT FROM embedding_jobs WHERE space_id = $1 AND status IN ('pending', 'processing')) AS waiting,
       t.documents, t.edition, t.languages, t.weighted_mean,
       {TABLES} AS tables, pg_stat_get_live_tuples('embeddings'::regclass) AS vectors,
       ARRAY(SELECT term FROM term_stats WHERE space_id = $1 AND term = ANY($2) ORDER BY term) AS terms,
       ARRAY(SELECT documents FROM term_stats WHERE space_id = $1 AND term = ANY($2) ORDER BY term) AS containing
  FROM spaces s LEFT JOIN space_versions v ON v.space_id = s.id LEFT JOIN lexicon_totals t ON t.space_id = s.id
 WHERE s.id = $1
"""
COUNT = """
SELECT count(*) FROM (
    SELECT FROM embeddings WHERE space_id = $1 AND model = $2 AND kind = ANY($3) AND recallable LIMIT $4) AS few
"""
# LATERAL with OFFSET 0: each id is looked up by its key, however small the planner believes the space to be.
VECTOR_OF = """LATERAL (
    SELECT node_id, vector, dim FROM embeddings
     WHERE space_id = $1 AND node_id = g.id AND model = $2 AND passage = 0 OFFSET 0) e"""
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
BESIDE = """(SELECT thread, position, NULL::float8 AS cosine, NULL::float8 AS words
               FROM unnest($6::text[], $7::int8[]) AS place(thread, position)) AS g, LATERAL (
    SELECT * FROM nodes WHERE space_id = $1 AND thread = g.thread AND position = g.position OFFSET 0) n"""
# Words that many texts share find little and cost a row each: match by the rarer ones, score with all.
MATCH_AT_MOST = 3000
# How rare a word is, fewer texts than this cannot tell: in a space of one text every word that is there is common.
FEW = 20
# A language is asked for where so many of a space's texts are in it.
LANGUAGE_SHARE = 0.02
SPELLED_LIKE = "SELECT term, word, documents FROM spelled_like($1, $2, $3, $4, $5, $6, $7)"


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


def sparse(weights: Mapping[int, float]) -> SparseVector:
    # Terms count from 1, as PostgreSQL does; the Python side of pgvector counts from 0.
    return SparseVector({term - 1: weight for term, weight in weights.items()}, lexical.DIMENSIONS)


NO_WORDS = sparse({})


@dataclass(frozen=True, kw_only=True, slots=True)
class MeantWord:
    """A word that is there, and that somebody may have meant; how many texts hold it, and what it counts for."""

    term: int
    word: str
    documents: int
    worth: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalQuestion:
    """A question's side of BM25: which words find candidates, and what each is worth."""

    match: list[int]
    weights: SparseVector
    most_possible: float
    rarities: Mapping[int, float] = field(default_factory=dict)  # of the words that some text holds
    asking: frozenset[int] = frozenset()  # those of them that are words of asking
    asked_about: float = 0.0  # the score of a text that holds all the others

    @property
    def each(self) -> list[SparseVector]:
        """Each of those words alone: what a text's weights are multiplied with to ask which of them it holds."""
        return [sparse({term: 1.0}) for term in self.rarities]


@dataclass(frozen=True, kw_only=True)
class KnownWords:
    """What a space knows of a question's words: how many texts hold each, and which languages it holds."""

    space_id: UUID
    words: Sequence[lexical.AskedWord]
    documents: int
    containing: Mapping[int, int]
    languages: Mapping[str, int]

    @property
    def spoken(self) -> frozenset[str]:
        return spoken(self.languages, self.documents)

    @cached_property
    def terms(self) -> Mapping[str, Sequence[int]]:
        """The numbers under which each word is there."""
        spoken, salt = self.spoken, lexical.salt_of(self.space_id)
        numbers = {word.spelled: {lexical.term(form, salt) for form in word.stems(spoken)} for word in self.words}
        return {word: sorted(n for n in those if self.containing.get(n, 0) > 0) for word, those in numbers.items()}

    def unknown(self) -> list[lexical.AskedWord]:
        """Those that occur nowhere and may be misspelled, or not yet typed to their end."""
        words = (word for word in self.words if word.can_be_unfinished and not word.is_bonus)
        return [word for word in words if not self.terms[word.spelled]]

    def weighed(self, meant: Mapping[str, Sequence[MeantWord]] | None = None) -> LexicalQuestion | None:
        """A question's words weighed by their rarity; None when no word of it could find anything.

        The forms of a word are one word: they are as rare as all of them together. One that occurs nowhere stands for
        those that are meant by it.
        """
        weights: dict[int, float] = {}
        possible: list[tuple[float, bool]] = []
        asking: set[int] = set()
        in_one = [word.spelled for word in self.words if word.is_bonus and self.terms[word.spelled]]
        matched: dict[int, int] = {}
        for word in self.words:
            terms = dict.fromkeys(self.terms[word.spelled], 1.0)
            containing = sum(self.containing[term] for term in terms)
            for meant_word in (meant or {}).get(word.spelled, ()):
                terms[meant_word.term], containing = meant_word.worth, containing + meant_word.documents
                matched[meant_word.term] = meant_word.documents
            rarity = lexical.rarity(max(self.documents, FEW), min(containing, self.documents))
            # Who is there in one word is not missed in its parts: LH 1078, an IBAN with its spaces.
            if (
                (word.spelled in in_one)
                if word.is_bonus
                else (terms or not any(word.spelled in spelled for spelled in in_one))
            ):
                possible.append((rarity, word.is_asking))
            for term, worth in terms.items():
                matched.setdefault(term, self.containing.get(term, 0))
                weights[term] = max(weights.get(term, 0.0), worth * rarity)
            asking |= {*terms} if word.is_asking else set()
        if not weights:
            return None
        return LexicalQuestion(
            match=_rarer(matched),
            weights=sparse(weights),
            most_possible=lexical.most_possible(rarity for rarity, _ in possible),
            rarities=weights,
            asking=frozenset(asking),
            asked_about=lexical.most_possible(rarity for rarity, is_asking in possible if not is_asking),
        )


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


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstLook:
    """What a recall asks before anything else: the space as it is, and what the question's words are worth there."""

    # The model whose vectors search uses there, and the settings of the space.
    model: str | None
    settings: Mapping[str, Any]
    # Of the space, and the table it is counted for: who restores a backup may count anew, in other tables.
    version: tuple[int, int]
    waiting: bool
    # How many texts the space holds, of any kind, and how many words they have in the mean.
    documents: int
    mean_length: float
    # About how many vectors the index holds that all spaces share; None where nobody has counted them yet.
    vectors: int | None
    # Those that it holds beside English.
    languages: frozenset[str]
    words: LexicalQuestion | None
    # Words that no text holds, and those that were looked for in their stead.
    meant: Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class CandidateQuery:
    """A question as the legs ask it: by which model's vector (None where it cannot read it), by which words.

    `share_known` is the share of its words that the model knows.
    """

    model: str
    dim: int
    vector: NDArray[np.float32] | None
    share_known: float = 1.0
    words: LexicalQuestion | None = None
    mean_length: float = 1.0
    with_summaries: bool = False

    @property
    def most_possible(self) -> float:
        """The BM25 score of a text that holds all of the words."""
        return self.words.most_possible if self.words else 0.0

    @property
    def quoted_model(self) -> str:
        return "'{}'".format(self.model.replace("'", "''"))

    @cached_property
    def half(self) -> HalfVector | None:
        return None if self.vector is None else HalfVector(self.vector)


async def first_look(db: Transaction, text: str, *, languages: Collection[str] = ()) -> FirstLook:
    """A space, its version, whether some of its texts still wait to be embedded, and the words of a question.

    `languages` are those that the space was last seen to hold beside English. Should it hold others, it is asked again.
    """
    words, before = lexical.asked(text, languages=languages), lexical.asked_before(text)
    row = await db.fetchrow(FIRST_LOOK, terms_of(db.space_id, [*words, *before]))
    if row is None:
        raise NotFound("This space is gone: `recollect spaces` lists those that are there.")
    beside_english = spoken(row["languages"] or {}, row["documents"] or 0)
    if not beside_english <= {*languages}:
        return await first_look(db, text, languages=beside_english | {*languages})
    if beside_english < {*languages}:
        words = lexical.asked(text, languages=beside_english)
    if (row["edition"] or lexical.EDITION) < lexical.EDITION:  # some texts are still indexed as they were before
        words += [word for word in before if word.spelled not in {one.spelled for one in words}]
    asked_words = KnownWords(
        space_id=db.space_id,
        words=words,
        documents=row["documents"] or 0,
        containing=dict(zip(row["terms"], row["containing"], strict=True)),
        languages=row["languages"] or {},
    )
    words_meant = await meant(db, asked_words.unknown()) if asked_words.documents else {}
    return FirstLook(
        model=row["embedding_model"],
        settings=row["settings"],
        version=(row["tables"], row["version"]),
        waiting=row["waiting"],
        documents=asked_words.documents,
        mean_length=row["weighted_mean"] or 1.0,
        vectors=max(row["vectors"], asked_words.documents) if row["vectors"] > 0 else None,
        languages=beside_english,
        words=asked_words.weighed(words_meant),
        meant={word: [meant_word.word for meant_word in meant_words] for word, meant_words in words_meant.items()},
    )


def terms_of(space_id: UUID, words: Sequence[lexical.AskedWord]) -> list[int]:
    """All forms of a question's words, as they are numbered in a space."""
    return sorted({lexical.term(form, lexical.salt_of(space_id)) for word in words for form in word.forms})


def spoken(languages: Mapping[str, int], documents: int) -> frozenset[str]:
    """The languages of which a space holds more than a few texts, English aside."""
    return frozenset(language for language, count in languages.items() if count >= LANGUAGE_SHARE * documents)


async def meant(db: Transaction, unknown: Sequence[lexical.AskedWord]) -> dict[str, list[MeantWord]]:
    """For words that occur nowhere, those that are there and spelled nearly like them, or that they are the beginning
    of."""
    if not unknown:
        return {}
    misspelled = {word.spelled: word.stems(()) for word in unknown if spelling.can_be_misspelled(word.spelled)}
    finished = {word.spelled: stems_when_finished(word.spelled) for word in unknown if word.is_last}
    begun = [word.spelled for word in unknown if word.is_last or not word.is_asking]
    every = [form for forms in (*misspelled.values(), *finished.values()) for form in forms]
    keys = sorted({key for form in every for key in spelling.keys_asked(form, lexical.salt_of(db.space_id))})
    lengths = [len(form) for form in every]
    firsts = sorted({letter for form in every for letter in form[:2]})
    given = (keys, min(lengths, default=0) - 2, max(lengths, default=0) + 2, firsts, begun, spelling.MOST_MEANT)
    known = {row["word"]: row for row in await db.fetch(SPELLED_LIKE, *given)}
    documents = {word: row["documents"] for word, row in known.items()}
    worth = {word: spelling.begun(word, documents) for word in begun}
    for word, forms in finished.items():
        worth[word] |= {form: spelling.WORTH_BEGUN for form in forms if form in known}
    for word, forms in misspelled.items():
        if word not in finished or not worth[word]:  # the beginning of a word that is there is no slip
            worth[word] = worth.get(word, {}) | _nearest_spelling(forms, known)
    return {
        word: [MeantWord(worth=counts, **known[other]) for other, counts in sorted(others.items())]
        for word, others in worth.items()
        if others
    }


def stems_when_finished(word: str) -> frozenset[str]:
    """The stems that a word still being typed is past already; those that are longer than it begin with it."""
    return frozenset(form for form in map(lexical.stem, spelling.finished(word)) if len(form) < len(word))


def _nearest_spelling(forms: Iterable[str], words: Collection[str]) -> dict[str, float]:
    """What is nearest to any form of a word, and what it counts for."""
    nearest = min((spelling.nearly_spelled(form, words) for form in sorted(forms)), key=_slips)
    return {word: spelling.WORTH[slips] for word, slips in nearest.items()}


def _slips(meant: Mapping[str, int]) -> int:
    return min(meant.values(), default=spelling.MOST_SLIPS + 1)


async def count(db: Transaction, *, model: str, kinds: Sequence[str]) -> int:
    """How many vectors a search would look at, counted no further than needed for the choice."""
    return int(await db.fetchval(COUNT, model, list(kinds), COUNTED_UP_TO + 1))


def vector_leg(asked: CandidateQuery, *, kinds: str, exactly: bool, most: int) -> str:
    """The vector leg, best first; a long text may be there several times, by several of its windows (D47).

    $1 is the space, $2 the model, $3 the question's vector.
    """
    dim = asked.dim
    rows = f"FROM embeddings WHERE space_id = $1 AND model = $2 AND dim = {dim} AND kind = ANY({kinds}) AND recallable"
    distance = f"vector::halfvec({dim}) <=> $3"
    if exactly:  # OFFSET 0 keeps the planner from walking HNSW where a plain pass answers better
        few = f"(SELECT node_id, {distance} AS d {rows} OFFSET 0) AS few"
        return f"SELECT node_id AS id, 1 - d AS cosine FROM {few} ORDER BY d LIMIT {most}"
    # Search sessions do not sort if they can help it, so HNSW is walked, whatever the number of rows is believed to be.
    # Its index is that of one model, by name: a plan that is kept does not know which one $2 will be.
    rows += f" AND model = {asked.quoted_model}"
    return f"SELECT node_id AS id, 1 - ({distance}) AS cosine {rows} ORDER BY {distance} LIMIT {most}"


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
    db: Transaction,
    asked: CandidateQuery,
    *,
    kinds: Sequence[str],
    exactly: bool,
    promise: Promise,
    breadth: int = 1,
) -> Gathered:
    """The most promising of a whole space, with what ranking needs to know of them.

    `breadth` is how many vectors a text has about.
    """
    most = breadth * POOL
    while True:
        both_legs = await _gathered(db, asked, kinds=kinds, exactly=exactly, promise=promise, most=most)
        if is_enough(both_legs, most):
            return both_legs
        most *= 4


def is_enough(found: Gathered, most: int) -> bool:
    """Whether the nearest `most` vectors are of enough texts, or no more are to be had."""
    return found.by_vector >= ENOUGH or found.windows < most or most >= MOST_LOOKED_AT


async def _gathered(
    db: Transaction,
    asked: CandidateQuery,
    *,
    kinds: Sequence[str],
    exactly: bool,
    promise: Promise,
    most: int,
) -> Gathered:
    near = NONE_IS_NEAR if asked.vector is None else vector_leg(asked, kinds="$6", exactly=exactly, most=most)
    legs = GATHERED.format(near=near, pool=POOL, most=most)
    words = asked.words or LexicalQuestion(match=[], weights=NO_WORDS, most_possible=0.0)
    records = await db.fetch(
        f"{legs} {_details(asked, OF_GATHERED, each='$12', more=', g.near, g.matched, g.windows')}",
        *(asked.model, asked.half, words.weights, words.match, list(kinds), promise.full_match),
        *(promise.lexical_share, promise.low, promise.high, promise.most, words.each),
    )
    by_vector, by_words, windows = records[0][-3:] if records else (0, 0, 0)
    rows_ = [Candidate._make(tuple(row)[:-3]) for row in records]
    return Gathered(candidates=rows_, by_vector=by_vector, by_words=by_words, windows=windows)


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


async def neighbours(
    db: Transaction, asked: CandidateQuery, near: Sequence[Candidate], *, pool_ids: Collection[UUID]
) -> list[Candidate]:
    """The nodes before and after some candidates in their threads, those that are not candidates yet, by their ids."""
    places = [
        (candidate.thread, candidate.position + step)
        for candidate in near
        if candidate.position is not None
        for step in (-1, 1)
    ]
    if not places:
        return []
    beside = await looked_up(db, asked, BESIDE, *zip(*places, strict=True))
    return sorted({candidate.id: candidate for candidate in beside if candidate.id not in pool_ids}.values())


async def looked_up(db: Transaction, asked: CandidateQuery, source: str, *given: Sequence[Any]) -> list[Candidate]:
    weights, each = (asked.words.weights, asked.words.each) if asked.words else (NO_WORDS, [])
    records = await db.fetch(_details(asked, source), asked.model, asked.half, weights, each, *given)
    return [*map(Candidate._make, records)]


async def vectors_of(db: Transaction, ids: Sequence[UUID], *, model: str) -> dict[UUID, NDArray[np.float32]]:
    if not ids:
        return {}
    statement = f"SELECT e.node_id, e.vector FROM unnest($3::uuid[]) AS g(id), {VECTOR_OF}"
    records = await db.fetch(statement, model, list(ids))
    return {record["node_id"]: record["vector"].to_numpy().astype(np.float32) for record in records}
