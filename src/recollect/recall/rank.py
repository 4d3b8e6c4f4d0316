"""The numbers of each candidate, place by place, and what they add up to: recall/rules/ranking over whole columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from recollect.model import Query
from recollect.recall.rules import ranking
from recollect.recall.rules.calibration import Calibration, soft
from recollect.recall.rules.ranking import Numbers
from recollect.recall.sql.candidates import Candidate

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
    flow: Numbers
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
    most_possible: float,
    calibration: Calibration,
    now: datetime,
    uses: Uses | None = None,
    by_words_alone: bool = False,
) -> Ranked:
    """Lay open what each candidate has, and add it up."""
    cosine, words, moment = _columns(found, "cosine", "words", "moment")
    similarity = calibration.similarity(cosine)
    lexical = ranking.lexical_match(words, most_possible)
    own = ranking.own_relevance(lexical, similarity, by_words_alone=by_words_alone)
    flow = ranking.flow(own, *_neighbours(found))
    relevance = soft(own + flow)
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
        flow=flow,
        relevance=relevance,
        recency=recency,
        importance=importance,
        engagement=used.engagement,
        decay=used.decay,
        bonus=bonus,
        score=score + bonus,
    )


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
