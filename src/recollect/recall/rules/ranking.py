"""How hits are ranked: relevance from what words and meaning say, then the mode's weights. Values in, values out.

    match      =  says * (0.45 lexical + 0.55 similarity) + 0.2 of the better neighbour in the thread  (D16a, D49)
    evidence   =  6.1 (match + 0.6 coverage + 4 standing out squared - 0.84)
    relevance  =  how sure the one with most evidence is, and each other by how much less it has       (D45)
    score      =  w1 relevance + w2 recency + w3 importance + bonus                                    (D16, D17, D19)

Relevance is calibrated: 0.65 means as much for a note as for a turn of a chat, for a match by words alone as for one by
meaning, so a floor means the same for every question. docs/adr/0006 and 0020 tell what was tried.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInput
from recollect.model import Mode, Query
from recollect.recall.rules import lexical

Numbers = NDArray[np.float64]

LEXICAL_SHARE = 0.45
FLOW_SHARE = 0.2
# Of the words' part, this share goes by the words of a turn together with those of the turns beside it (D49).
TOGETHER_SHARE = 0.5
# A turn of fewer words says less of itself, and is mostly about the turns beside it ("Hey! How are you?"). One of more
# words, and of more than half as many as texts here have in the mean, says it of many things: what is asked for is a
# small part of it, and much of what it holds it holds by chance. However long it is, it says something.
FULL_TURN = 20
LONG_TURN = 60
SHORT_POWER, LONG_POWER = 0.2, 0.3
LEAST_SAID = 0.6
# A text that holds the better part of what was asked is a full match; measured against the best of the question's
# candidates, unless even that one holds less than this share of what could be held.
FULL_MATCH = 0.3
# What orders the candidates of a question: the match, how much of the question's words a text covers, and how far its
# meaning stands out from that of the question's twentieth candidate (docs/adr/0020).
COVERAGE_WEIGHT = 0.6
STANDING_WEIGHT = 4.0
STEEPNESS = 6.1
MIDDLE = 0.84
# How sure the best of them is (docs/adr/0020): fitted on questions that have an answer and questions that have none, of
# chats and of notes. A text that shares words with the question is near it for that alone, so it must cover much, or be
# near indeed; one that shares none must stand out. From this coverage on, words have been shared.
SHARED_FROM = 0.15
SHARING = -11.6
SHARING_SIMILARITY, SHARING_COVERAGE, SHARING_NEARLY_ALL = 13.0, 6.0, 9.0
NO_WORD = -4.1
NO_WORD_SIMILARITY, NO_WORD_STANDING = 5.0, 13.0
# Where no vector speaks, or one of a language that the model has only pieces of, words decide alone.
BY_WORDS = -3.9
BY_WORDS_COVERAGE = 10.0
# The share of a question's words that the model knows: from the one on its vector says something, from the other on all
# that it can say.
READ_FROM, READ_WELL = 0.6, 0.75
LEAST_ODDS = -500.0
BACKGROUND_AT = 20
# Where there are fewer candidates, the background is what most texts have that are not related to each other.
UNRELATED = 0.25
# What is shown of a plain recall unless weaker matches are asked for (D46).
RELATED = 0.25
RECENCY_DAYS = 30.0
MISSING_IMPORTANCE = 0.5
BONUS = 0.02
BONUS_FROM = 0.70
ENGAGEMENT_FULL = 50
GRAPH_SHARE = 0.4
GRAPH_MINIMUM = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """What relevance, recency and importance count for in a score."""

    relevance: float
    recency: float
    importance: float
    engagement: float = 0.0
    decay: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A mode as numbers: weights (D17), floor (D20), cap (D23), and whether repeated answers cool down (D24)."""

    weights: Weights
    floor: float | None = None
    cap: int | None = None
    cools_down: bool = False


PROFILES = {
    Mode.NEUTRAL: Profile(weights=Weights(relevance=0.60, recency=0.15, importance=0.25)),
    Mode.RECALL: Profile(
        weights=Weights(relevance=0.70, recency=0.10, importance=0.20), floor=0.65, cap=5, cools_down=True
    ),
    Mode.RECALL_LLM_RERANK: Profile(weights=Weights(relevance=0.70, recency=0.10, importance=0.20), floor=0.60, cap=12),
    Mode.SYNTHESIZE: Profile(weights=Weights(relevance=0.60, recency=0.05, importance=0.35), floor=0.60, cap=8),
    Mode.REFLECT: Profile(weights=Weights(relevance=0.40, recency=0.30, importance=0.30), floor=0.55, cap=8),
    Mode.CHALLENGE: Profile(
        weights=Weights(relevance=0.50, recency=0.10, importance=0.40), floor=0.60, cap=4, cools_down=True
    ),
    Mode.EXPAND: Profile(weights=Weights(relevance=0.70, recency=0.05, importance=0.25), floor=0.52, cap=10),
}
# D40, off by default.
ENGAGED = Weights(relevance=0.50, recency=0.10, importance=0.20, engagement=0.10, decay=0.10)
# Similarity and activation alone, for the profile `graph` (A32).
BY_GRAPH = {"similarity": 1 - GRAPH_SHARE, "activation": GRAPH_SHARE}


def weights_of(query: Query) -> Weights:
    return ENGAGED if query.engagement else PROFILES[query.mode].weights


def laid_open(weights: Weights) -> dict[str, float]:
    """What each part of a score counts for, without those that count for nothing."""
    return {**{name: value for name, value in asdict(weights).items() if value}, "bonus": 1.0}


def lexical_match(scores: Numbers, most_possible: float) -> Numbers:
    """BM25 scores as a share of a full match, 0 to 1."""
    best = float(scores.max(initial=0.0))
    share: Numbers = scores / max(best, FULL_MATCH * most_possible, 1e-9)
    return share


def together(
    held: Numbers,
    lengths: Numbers,
    rarities: Numbers,
    mean_length: float,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> Numbers:
    """BM25 over each text together with those before and after it in its thread; -1 means none is known (D49).

    `held` is the stored weight of each word (a column) in each text (a row): what is found there, how often, is found
    again from it, so that no text need be read.
    """
    counts = np.vstack([lexical.occurrences(held, lengths, mean_length), np.zeros((1, held.shape[1]))])
    length = np.append(lengths, 0.0)
    turns: Numbers = np.asarray(1.0 + (before >= 0) + (after >= 0), dtype=np.float64)
    window, words = counts[:-1] + counts[before] + counts[after], length[:-1] + length[before] + length[after]
    scores: Numbers = lexical.saturated(window, words, turns * mean_length) @ rarities
    return scores


def with_neighbours(own: Numbers, window: Numbers) -> Numbers:
    """The words' part: those of a text itself, and those of it together with its neighbours."""
    joined: Numbers = (1 - TOGETHER_SHARE) * own + TOGETHER_SHARE * window
    return joined


def coverage(held: Numbers, rarities: Numbers, most_possible: float) -> Numbers:
    """How much of what was asked a text mentions at all, 0 to 1: its words weighed by their rarity (D45)."""
    share: Numbers = np.minimum((held > 0) @ rarities / max(lexical.rarities_in(most_possible), 1e-9), 1.0)
    return share


def covered(
    held: Numbers, rarities: Numbers, most_possible: float, before: NDArray[np.int64], after: NDArray[np.int64]
) -> Numbers:
    """How much of what was asked each covers: of a turn half alone, half together with its neighbours."""
    padded = np.vstack([held, np.zeros((1, held.shape[1]))])
    window = held + padded[before] + padded[after]
    alone, joined = (coverage(weights, rarities, most_possible) for weights in (held, window))
    return with_neighbours(alone, joined)


def standing_out(similarity: Numbers) -> Numbers:
    """How far each candidate's meaning stands out from the background: in a chat about one thing everything is alike,
    and being alike says little."""
    few = len(similarity) < BACKGROUND_AT
    background = UNRELATED if few else float(np.sort(similarity)[-BACKGROUND_AT])
    return np.maximum(similarity - background, 0.0)


def evidence(match: Numbers, coverage: Numbers, standing: Numbers) -> Numbers:
    """How much speaks for each candidate, beside the others of its question: log-odds, before any of them is judged."""
    much: Numbers = match + COVERAGE_WEIGHT * coverage + STANDING_WEIGHT * standing**2
    return STEEPNESS * (much - MIDDLE)


def logistic(odds: Numbers) -> Numbers:
    share: Numbers = 1 / (1 + np.exp(-np.maximum(odds, LEAST_ODDS)))
    return share


def how_well_read(share_known: float) -> float:
    """How much the vector of a question says, 0 to 1, whose model knows this share of its words."""
    return float(np.clip((share_known - READ_FROM) / (READ_WELL - READ_FROM), 0.0, 1.0))


def relevance(
    evidence: Numbers, similarity: Numbers, coverage: Numbers, standing: Numbers, *, read: Numbers
) -> Numbers:
    """How surely each candidate is about what was asked, 0 to 1: the best by what is known of it, the others by how
    much less evidence they have. `read` says how well the meaning of each is known; for the rest words alone speak."""
    if not len(evidence):
        return evidence
    best = int(np.argmax(evidence))
    covered, share = float(coverage[best]), float(read[best])
    by_words = BY_WORDS + BY_WORDS_COVERAGE * covered
    sure = share * _sureness(float(similarity[best]), covered, float(standing[best])) + (1 - share) * by_words
    return logistic(_following(evidence, float(evidence[best]), sure))


def _following(evidence: Numbers, best: float, sure: float) -> Numbers:
    """The log-odds of all where the best one's are `sure`: what was related stays so, as long as the best one is."""
    related = math.log(RELATED / (1 - RELATED))
    stretch = (sure - related) / (best - related) if min(sure, best) > related else 1.0
    follow: Numbers = sure + stretch * (evidence - best)
    return follow


def _sureness(similarity: float, coverage: float, standing: float) -> float:
    """The log-odds that a text is about what was asked; between sharing no word and sharing some it passes over."""
    shared = min(coverage / SHARED_FROM, 1.0)
    sharing = SHARING + SHARING_SIMILARITY * similarity + SHARING_COVERAGE * coverage + SHARING_NEARLY_ALL * coverage**3
    no_word = NO_WORD + NO_WORD_SIMILARITY * similarity + NO_WORD_STANDING * standing**2
    return shared * sharing + (1 - shared) * no_word


def says(lengths: Numbers, is_turn: NDArray[np.bool_], mean_length: float) -> Numbers:
    """How much a turn of a thread says of any one thing, 0 to 1: short ones say less, and so do long ones.

    What stands alone is taken as it is.
    """
    words = np.maximum(lengths, 1.0)
    short = np.minimum(1.0, words / FULL_TURN) ** SHORT_POWER
    long = np.minimum(1.0, max(LONG_TURN, mean_length / 2) / words) ** LONG_POWER
    return np.where(is_turn, short * np.maximum(long, LEAST_SAID), 1.0)


def own_relevance(lexical: Numbers, similarity: Numbers, *, by_words_alone: bool = False) -> Numbers:
    """The two ways of finding something, joined; what flows in from neighbours comes on top.

    A question that the embedder cannot read has only words, which then count in full (D43).
    """
    if by_words_alone:
        return lexical
    return LEXICAL_SHARE * lexical + (1 - LEXICAL_SHARE) * similarity


def flow(own: Numbers, before: NDArray[np.int64], after: NDArray[np.int64]) -> Numbers:
    """What each candidate gains from the better of its neighbours in the thread; -1 means none is known."""
    padded = np.append(own, 0.0)
    gained: Numbers = FLOW_SHARE * np.maximum(padded[before], padded[after])
    return gained


def share_left(rate_a_day: Numbers | float, days: Numbers | float) -> Numbers:
    """The one law by which anything fades here, a memory or an edge: exp(-rate * days), and never more than 1."""
    left: Numbers = np.exp(-rate_a_day * np.maximum(days, 0.0))
    return left


def share_left_in_sql(rate_a_day: str, since: str, now: str) -> str:
    """The same as an expression of SQL, from one moment to another."""
    days = f"greatest(0, extract(epoch FROM {now} - {since})::float8 / 86400)"
    return f"exp(-{rate_a_day} * {days})"


def recency(age_days: Numbers) -> Numbers:
    """1 for today, 0.37 after 30 days: a time constant (D18)."""
    return share_left(1 / RECENCY_DAYS, age_days)


def importance(given: Sequence[float | None]) -> Numbers:
    return np.array([MISSING_IMPORTANCE if value is None else value for value in given], dtype=np.float64)


def bonus(similarity: Numbers, times_recalled: Numbers) -> Numbers:
    """A little for what was seldom recalled, where it is near enough (D19)."""
    return np.where(similarity >= BONUS_FROM, np.minimum(BONUS, BONUS / (1 + times_recalled)), 0.0)


def engagement(uses: Numbers) -> Numbers:
    """How much a memory is used: 0 for never, 1 from 50 uses on (D40)."""
    return np.minimum(1.0, np.log1p(uses) / math.log1p(ENGAGEMENT_FULL))


def decay(days_since_use: Numbers) -> Numbers:
    """1 for just used (or never yet), falling as recency does (D40)."""
    return recency(days_since_use)


def score(
    weights: Weights,
    *,
    relevance: Numbers,
    recency: Numbers,
    importance: Numbers,
    engagement: Numbers | float = 0.0,
    decay: Numbers | float = 0.0,
) -> Numbers:
    """D16, and D40 where its weights are used."""
    total: Numbers = (
        weights.relevance * relevance
        + weights.recency * recency
        + weights.importance * importance
        + weights.engagement * engagement
        + weights.decay * decay
    )
    return total


def hybrid(similarity: float, activation: float) -> float:
    """Similarity and spreading activation together (A32)."""
    return (1 - GRAPH_SHARE) * similarity + GRAPH_SHARE * activation


# -- what a cosine of a certain model means, on one scale for all models (D28a)
#
# A model's cosines of unrelated and of closely related texts lie where its training put them. A calibration names the
# two ends: `low` is what unrelated texts have, `high` what texts about the same thing have. Between them the scale is a
# straight line; above, it bends and never quite reaches 1, so the order is kept.

BEND = 0.8
SOFTNESS = 0.3
LEAST_PAIRS = 30
# Texts of one person are seldom quite unrelated to each other, so the lowest of random pairs tell what unrelated means.
UNRELATED_SHARE = 0.05
RELATED_SHARE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The two ends of a model's scale."""

    low: float
    high: float

    def similarity(self, cosine: Numbers) -> Numbers:
        """Raw cosines on the common scale, 0 to 1, in the same order."""
        return soft(np.maximum((cosine - self.low) / (self.high - self.low), 0.0))


# Measured on the development data; see docs/adr/0006.
SHIPPED = {
    "minilm": Calibration(low=0.0, high=0.6),
    "static": Calibration(low=0.05, high=0.65),
    "hashing": Calibration(low=0.0, high=0.7),
    "openai": Calibration(low=0.1, high=0.6),
    "ollama": Calibration(low=0.4, high=0.8),
}


def shipped(model: str) -> Calibration:
    """The calibration that comes with an embedder, by its provider; a model of one's own is best measured."""
    return SHIPPED.get(model.split(":")[0], SHIPPED["minilm"])


def calibration_of(settings: Mapping[str, Any], model: str) -> Calibration:
    """The one measured for this space, else the one that comes with the embedder (D28a)."""
    measured = settings.get("calibrations", {}).get(model)
    return Calibration(low=measured["low"], high=measured["high"]) if measured else shipped(model)


def soft(values: Numbers) -> Numbers:
    """0 to 1 as it is up to 0.8, then ever flatter towards 1: nothing is cut off, so no order is lost."""
    above = np.maximum(values - BEND, 0.0)
    bent: Numbers = np.minimum(values, BEND) + (1 - BEND) * (1 - np.exp(-above / SOFTNESS))
    return bent


def measured_calibration(unrelated: Sequence[float], related: Sequence[float]) -> Calibration:
    """A calibration from the cosines of random pairs and of pairs known to belong together."""
    if len(unrelated) < LEAST_PAIRS or len(related) < LEAST_PAIRS:
        raise InvalidInput(
            f"There are too few memories to measure a calibration ({len(unrelated)} random and {len(related)} related "
            f"pairs; {LEAST_PAIRS} of each are needed): the one that comes with the embedder stays in use."
        )
    low = float(np.quantile(unrelated, UNRELATED_SHARE))
    high = float(np.quantile(related, RELATED_SHARE))
    return Calibration(low=round(low, 3), high=round(max(high, low + 0.05), 3))


def histogram(values: Sequence[float], *, bins: int = 20) -> list[int]:
    """How many values lie in each of `bins` equal parts of 0 to 1 (what is below 0 counts as 0)."""
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return [int(count) for count in counts]


# -- a fact that was updated

_ASKS_FOR_A_VALUE = re.compile(
    r"^\s*(how (many|much|long|often|old|far|big|large)|when|what (is|are)|what's|which|where|who)\b", re.IGNORECASE
)
_ABOUT_NOW = re.compile(r"\b(is|are|am|do|does|have|has|currently?|now|latest|today)\b|'(s|m|ve)\b", re.IGNORECASE)
_ABOUT_THE_PAST = re.compile(
    r"\b(did|was|were|had|used to|before|ago|order|sequence|history|previous(ly)?)\b", re.IGNORECASE
)
_VALUES = re.compile(
    r"\d[\d.,:]*|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|"
    r"(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december)\b",
    re.IGNORECASE,
)
UPDATE_WINDOW = 8
UPDATE_SIMILARITY = 0.4
UPDATE_SHARE = 0.8


def asks_for_the_present(question: str) -> bool:
    """Whether a question asks for a value as it is now, so that the newest statement of it is the answer."""
    return bool(
        _ASKS_FOR_A_VALUE.search(question) and _ABOUT_NOW.search(question) and not _ABOUT_THE_PAST.search(question)
    )


def values_in(text: str) -> frozenset[str]:
    """The numbers, weekdays and months that a text states."""
    return frozenset(match.group().lower().rstrip(".,:") for match in _VALUES.finditer(text))


def newest_first(
    order: Sequence[int],
    *,
    question: str,
    relevance: Numbers,
    moments: Sequence[object],
    texts: Mapping[int, str],
    cosines: NDArray[np.floating],
) -> list[int]:
    """Put the newer of two statements of the same thing first, when the question asks how it is now.

    Two candidates speak of the same thing when they are alike, nearly as relevant, and state different values. Only the
    first few are looked at: further down, order matters little and likeness misleads. `order` indexes the other values;
    `texts` has those of the first UPDATE_WINDOW of `order`, and `cosines` is their matrix among each other.
    """
    if not asks_for_the_present(question):
        return list(order)
    asked = values_in(question)
    window = list(range(min(UPDATE_WINDOW, len(order))))
    stated = [values_in(texts[order[index]]) - asked for index in window]

    def replaces(newer: int, older: int) -> bool:
        return (
            moments[order[newer]] > moments[order[older]]  # type: ignore[operator]
            and relevance[order[newer]] >= UPDATE_SHARE * relevance[order[older]]
            and cosines[newer, older] >= UPDATE_SIMILARITY
            and bool(stated[newer] and stated[older])
            and stated[newer] != stated[older]
        )

    arranged: list[int] = []
    while window:
        first = window[0]
        first = next((other for other in window[1:] if replaces(other, first)), first)
        window.remove(first)
        arranged.append(order[first])
    return arranged + list(order[UPDATE_WINDOW:])
