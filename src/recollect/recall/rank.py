"""The numbers of each candidate, place by place, and what they add up to: recall/rules/ranking over whole columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from recollect.model import Query
from recollect.recall.rules import ranking
from recollect.recall.rules.calibration import Calibration
from recollect.recall.rules.ranking import Numbers
from recollect.recall.sql.candidates import Candidate, CandidateQuery
from recollect.recall.sql.lexicon import LexicalQuestion

SECONDS_A_DAY = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Uses:
    """How often each candidate was recalled (D19), and how it is used (D40), place by place."""

    recalled: Numbers
    engagement: Numbers
    decay: Numbers

    @classmethod
    def none(cls, count: int) -> "Uses":
        return cls(recalled=np.full(count, np.inf), engagement=np.zeros(count), decay=np.ones(count))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """Candidates and their numbers, place by place."""

    candidates: Sequence[Candidate]
    cosine: Numbers
    similarity: Numbers
    lexical: Numbers
    coverage: Numbers
    says: Numbers
    flow: Numbers
    standing: Numbers
    relevance: Numbers
    recency: Numbers
    importance: Numbers
    engagement: Numbers
    decay: Numbers
    bonus: Numbers
    score: Numbers


def rank(
    found: Sequence[Candidate],
    query: Query,
    *,
    asked: CandidateQuery,
    calibration: Calibration,
    now: datetime,
    uses: Uses | None = None,
) -> Ranked:
    """Lay open what each candidate has, and add it up."""
    cosine, words, moment, length = _columns(found, "cosine", "words", "moment", "length")
    before, after = _neighbours(found)
    is_turn = (before >= 0) | (after >= 0)
    similarity = calibration.similarity(cosine)
    says = ranking.says(length, is_turn)
    lexical = ranking.lexical_match(words, asked.most_possible)
    coverage = np.zeros(len(found))
    if asked.words is not None:
        held, rarities = _held(found, asked.words), np.array([*asked.words.rarities.values()])
        window = ranking.together(held, length, rarities, asked.words.mean_length, before, after)
        beside = ranking.lexical_match(np.where(is_turn, window, words), asked.most_possible)
        lexical = ranking.with_neighbours(lexical, beside)
        coverage = ranking.coverage(held, rarities, asked.most_possible)
        coverage = ranking.with_neighbours(coverage, _covered_together(held, rarities, asked, before, after))
    own = says * ranking.own_relevance(lexical, similarity, by_words_alone=asked.vector is None)
    flow = ranking.flow(own, before, after)
    standing = ranking.standing_out(says * similarity)
    relevance = ranking.relevance(own + flow, coverage, standing)
    recency = ranking.recency((now.timestamp() - moment) / SECONDS_A_DAY)
    importance = ranking.importance([one.importance for one in found])
    used = uses or Uses.none(len(found))
    bonus = ranking.bonus(similarity, used.recalled)
    score = ranking.score(
        ranking.weights_of(query),
        relevance=relevance,
        recency=recency,
        importance=importance,
        engagement=used.engagement,
        decay=used.decay,
    )
    return Ranked(
        candidates=found,
        cosine=cosine,
        similarity=similarity,
        lexical=lexical,
        coverage=coverage,
        says=says,
        flow=flow,
        standing=standing,
        relevance=relevance,
        recency=recency,
        importance=importance,
        engagement=used.engagement,
        decay=used.decay,
        bonus=bonus,
        score=score + bonus,
    )


def _held(found: Sequence[Candidate], words: LexicalQuestion) -> Numbers:
    """The weight of each word of the question (a column) in each candidate (a row)."""
    held = np.array([one.held for one in found], dtype=np.float64)
    return held.reshape(len(found), len(words.rarities))


def _covered_together(
    held: Numbers, rarities: Numbers, asked: CandidateQuery, before: NDArray[np.int64], after: NDArray[np.int64]
) -> Numbers:
    padded = np.vstack([held, np.zeros((1, held.shape[1]))])
    return ranking.coverage(held + padded[before] + padded[after], rarities, asked.most_possible)


def _columns(found: Sequence[Candidate], *names: str) -> list[Numbers]:
    return [np.fromiter(map(attrgetter(name), found), dtype=np.float64, count=len(found)) for name in names]


def _neighbours(found: Sequence[Candidate]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each candidate the places of the one before and the one after it in its thread; -1 for none."""
    places = {(one.thread, one.position): place for place, one in enumerate(found) if one.position is not None}

    def beside(step: int) -> NDArray[np.int64]:
        return np.array(
            [-1 if one.position is None else places.get((one.thread, one.position + step), -1) for one in found],
            dtype=np.int64,
        )

    return beside(-1), beside(1)
