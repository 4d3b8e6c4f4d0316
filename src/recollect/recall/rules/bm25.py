"""BM25 as an inner product of two sparse vectors.

A text's side is computed once and stored; the question's side is the rarity (IDF) of its words. So exact BM25 is what
the database computes when it multiplies the two (DESIGN 7).
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

K1 = 1.2
B = 0.75


def document_weights(counts: Mapping[int, int], *, length: int, mean_length: float) -> dict[int, float]:
    """A text's side of BM25: how much each of its words says about it, given its length."""
    damping = K1 * (1 - B + B * length / max(mean_length, 1.0))
    return {number: count * (K1 + 1) / (count + damping) for number, count in counts.items()}


def weights(counts: Numbers, lengths: Numbers, mean_length: float) -> Numbers:
    """The same of the words of many texts at once, one after the other: how often each occurs in a text so long."""
    return counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / max(mean_length, 1.0)))


def occurrences(weights: Numbers, lengths: Numbers, mean_length: float) -> Numbers:
    """How often each text (a row) holds each word (a column), found again from the weights that are stored."""
    damping = K1 * (1 - B + B * lengths / max(mean_length, 1.0))
    return weights * damping[:, np.newaxis] / np.maximum(K1 + 1 - weights, 1e-6)


def saturated(counts: Numbers, lengths: Numbers, means: Numbers) -> Numbers:
    """The weights of words that occur so often in texts so long, where texts are so long in the mean."""
    damping = K1 * (1 - B + B * lengths / np.maximum(means, 1.0))
    return counts * (K1 + 1) / (counts + damping[:, np.newaxis])


def rarity(documents: int, containing: int) -> float:
    """IDF: how much a word tells, from the number of texts and of those that hold it."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def most_possible(rarities: Iterable[float]) -> float:
    """The score of a text that is all about these words: what a BM25 score is measured against."""
    return (K1 + 1) * sum(rarities)


def rarities_in(most_possible: float) -> float:
    """The rarities of a question's words together, which that score is made of."""
    return most_possible / (K1 + 1)
