"""Long texts by their windows (D47): which are nearest to a question, and what those hold of its words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import anyio.to_thread

from recollect.memories.rules.windows import Window
from recollect.recall.rules import lexical
from recollect.recall.rules.passages import by_words
from recollect.recall.sql.candidates import Candidate, CandidateQuery, LexicalQuestion
from recollect.recall.sql.lexicon import Entry
from recollect.store.database import Transaction

# As lists, since rows by the thousand take longer to read than to find.
WINDOWS_OF = """
SELECT g.id, e.starts, e.ends FROM unnest($4::uuid[]) AS g(id), LATERAL (
    SELECT count(*) AS vectors, array_agg(starts ORDER BY distance) FILTER (WHERE passage > 0) AS starts,
           array_agg(ends ORDER BY distance) FILTER (WHERE passage > 0) AS ends FROM (
        SELECT passage, starts, ends, vector::halfvec({dim}) <=> $3 AS distance FROM embeddings
         WHERE space_id = $1 AND node_id = g.id AND model = $2 AND dim = {dim} OFFSET 0) AS each) AS e
 WHERE e.vectors > 0
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
WHOLE_TEXTS = """
SELECT n.id, n.name, n.text, n.created_at, n.thread, n.metadata, e.starts, e.ends
  FROM unnest($3::uuid[]) AS g(id),
       LATERAL (SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n,
       LATERAL (SELECT array_agg(starts ORDER BY passage) AS starts, array_agg(ends ORDER BY passage) AS ends
                  FROM embeddings
                 WHERE space_id = $1 AND node_id = g.id AND model = $2 AND passage > 0) e
 WHERE e.starts IS NOT NULL
"""
# Where a text is read closely: for so many words of the question, and so many of its windows word by word.
LOOKED_FOR = 16
PROMISING = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldWords:
    """What a text holds of a question's words: its BM25 score, the weight of each, and how many words it has."""

    score: float
    weights: list[float]
    length: int


async def windows_of(db: Transaction, asked: CandidateQuery, ids: Sequence[UUID]) -> dict[UUID, list[Window]]:
    """The windows of some texts, the nearest to the question first; none of a text that is short, or has no vector."""
    if asked.half is None:
        return {}
    records = await db.fetch(WINDOWS_OF.format(dim=asked.dim), asked.model, asked.half, ids)
    return {id_: _windows(starts, ends) for id_, starts, ends in records}


async def by_their_windows(
    db: Transaction,
    asked: CandidateQuery,
    long: Sequence[Candidate],
    *,
    most: int,
    question: str,
    closely: Sequence[UUID],
) -> dict[UUID, Candidate]:
    """Long texts by the words of one of their windows, as if it were all of the text: of the few that are nearest to
    the question, and of those of the texts to be read `closely`, the one that holds most.

    A text to be read closely in which the words cannot be pointed at (they are misspelled, say) is left out.
    """
    if asked.half is None or asked.words is None or not long:
        return {}
    candidates = {held.id: held for held in long}
    statement = NEAREST_WINDOWS.format(dim=asked.dim, most=most)
    records: list[Mapping[str, Any]] = [*await db.fetch(statement, asked.model, asked.half, list(candidates))]
    if closely:
        whole = await db.fetch(WHOLE_TEXTS, asked.model, list(closely))
        words = _rarest(question, asked.words, db.space_id)
        records += await anyio.to_thread.run_sync(lambda: [one for text in whole for one in _promising(text, words)])
    best: dict[UUID, Candidate] = {}
    for record in records:
        held = _held_by(asked.words, Entry.of(record), space_id=db.space_id, mean_length=asked.mean_length)
        so_far = best.get(record["id"])
        if so_far is None or held.score > so_far.words:
            best[record["id"]] = candidates[record["id"]]._replace(
                words=held.score, held=held.weights, length=held.length
            )
    return {id_: one for id_, one in best.items() if one.words or id_ not in closely}


def _rarest(question: str, words: LexicalQuestion, space_id: UUID) -> list[str]:
    """Those words of a question that say most, of all that some text holds."""
    salt = lexical.salt_of(space_id)
    rarity = {word: words.rarities.get(lexical.term(word, salt), 0.0) for word in lexical.words(question)}
    return sorted(filter(rarity.get, rarity), key=lambda word: -rarity[word])[:LOOKED_FOR]


def _promising(record: Mapping[str, Any], words: Sequence[str]) -> list[dict[str, Any]]:
    """The windows of a text that seem to hold most of some words."""
    texts = [window.of(record["text"]) for window in _windows(record["starts"], record["ends"])]
    return [{**record, "text": texts[index]} for index in by_words(texts, words)[:PROMISING]]


def _windows(starts: Sequence[int] | None, ends: Sequence[int] | None) -> list[Window]:
    return [*map(Window, starts or (), ends or ())]


def _held_by(words: LexicalQuestion, entry: Entry, *, space_id: UUID, mean_length: float) -> HeldWords:
    """What an entry holds of a question's words, weighed as it would be stored."""
    indexed, salt = entry.indexed(), lexical.salt_of(space_id)
    numbered = ((lexical.term(word, salt), count) for word, count in Counter(indexed.words).items())
    counts = {term: count for term, count in numbered if term in words.rarities}
    weights = lexical.document_weights(counts, length=indexed.length, mean_length=mean_length)
    return HeldWords(
        score=sum(words.rarities[term] * weight for term, weight in weights.items()),
        weights=[weights.get(term, 0.0) for term in words.rarities],
        length=indexed.length,
    )
