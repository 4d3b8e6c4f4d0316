"""Metadata key by key: what agreement and disagreement mean is learnt from the pairs of this very space.

Each key of a pair is at a level: other values, partly the same words, one says more than the other, the same. How often
each level occurs among pairs that are surely one, and among the rest, gives what it weighs (Fellegi and Sunter): a year
that differs speaks against a pair, a venue that is written in two ways does not. The sure ones come from what is alike
in words and names, and the weights then say again who is sure: a few rounds of expectation and maximisation.

Values that stand opposite each other again and again among sure pairs mean the same here: "VLDB" is "Very Large Data
Bases". They no longer contradict each other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.concepts.rules.detection.columns import Floats, Ints, Mask
from recollect.concepts.rules.similarity import NOT_COMPARED, covers, folded

Levels = NDArray[np.int8]

MISSING, OTHER, PARTLY, MORE, SAME = range(5)
ROUNDS = 5
# What is counted is never taken for all there is: half a pair is added to each level.
PRIOR = 0.5
MOST_A_KEY, MOST = 4.0, 6.0
# Two values mean the same if they met so often among sure pairs, and in at least this share of what either met.
MEETINGS, SHARE = 5, 0.5
MOST_KEYS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """For each pair what its metadata weigh, and whether some contradict each other; each key's part of the weight."""

    keys: tuple[str, ...]
    levels: Levels
    parts: Floats
    weight: Floats
    conflict: Mask
    says_nothing: Mask

    def only(self, rows: Mask) -> "Fields":
        columns = ("levels", "parts", "weight", "conflict", "says_nothing")
        return Fields(keys=self.keys, **{name: getattr(self, name)[rows] for name in columns})


def compare_fields(
    metadata: Sequence[Mapping[str, Any]] | None, left: Ints, right: Ints, surely: Mask, likely: Floats
) -> Fields:
    """`surely` marks pairs to learn from first; `likely` is how probable each pair is without its metadata."""
    keys = _keys(metadata)
    values = [[folded_value(row.get(key)) for key in keys] for row in metadata or ()]
    levels = np.zeros((len(left), len(keys)), np.int8)
    for index, (row, other) in enumerate(zip(left.tolist(), right.tolist(), strict=True) if keys else ()):
        levels[index] = [level(a, b) for a, b in zip(values[row], values[other], strict=True)]
    for column in range(len(keys)):
        _reconcile(levels[:, column], [row[column] for row in values], left, right, surely)
    parts = _learnt(levels, surely, likely)
    return Fields(
        keys=keys,
        levels=levels,
        parts=parts,
        weight=parts.sum(1).clip(-MOST, MOST),
        conflict=(levels == OTHER).any(1),
        says_nothing=(levels == MISSING).all(1),
    )


def _keys(metadata: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    """The keys that at least two bear, the most common first."""
    bearers = Counter(key for row in metadata or () for key in row if key not in NOT_COMPARED)
    shared = sorted((-count, key) for key, count in bearers.items() if count > 1)
    return tuple(key for _, key in shared[:MOST_KEYS])


def folded_value(value: Any) -> str:
    """A value as one text; a list is what its elements say."""
    if isinstance(value, list | tuple):
        return " ".join(sorted(folded(element) for element in value))
    return folded(value)


@lru_cache(maxsize=262_144)
def level(value: str, other: str) -> int:
    if not value or not other:
        return MISSING
    if value == other:
        return SAME
    ours, theirs = value.split(), other.split()
    if covers(ours, theirs) or covers(theirs, ours):
        return MORE
    shared = len({*ours} & {*theirs})
    return PARTLY if shared * 2 >= min(len({*ours}), len({*theirs})) else OTHER


def _reconcile(levels: Levels, values: Sequence[str], left: Ints, right: Ints, surely: Mask) -> None:
    """Values that sure pairs bear again and again on either side say the same, however they are written."""
    met, seen = Counter[tuple[str, ...]](), Counter[str]()
    for row, other in zip(left[surely].tolist(), right[surely].tolist(), strict=True):
        if values[row] and values[other]:
            met[_both(values[row], values[other])] += 1
            seen.update({values[row], values[other]})
    same = {
        pair
        for pair, times in met.items()
        if len(pair) == 2 and times >= MEETINGS and times >= SHARE * min(seen[value] for value in pair)
    }
    if not same:
        return
    for index in np.flatnonzero((levels == OTHER) | (levels == PARTLY)).tolist():
        if _both(values[left[index]], values[right[index]]) in same:
            levels[index] = MORE


def _both(value: str, other: str) -> tuple[str, ...]:
    return tuple(sorted({value, other}))


def _learnt(levels: Levels, surely: Mask, likely: Floats) -> Floats:
    """What each key adds for each pair: the logarithm of how much more often its level is among those that are one."""
    parts = np.zeros(levels.shape)
    if not levels.shape[1] or not surely.any() or surely.all():
        return parts
    probable = np.where(surely, np.maximum(likely, 0.9), np.minimum(likely, 0.5))
    before = np.log(probable / (1.0 - probable).clip(1e-9))
    for _ in range(ROUNDS):
        for column in range(levels.shape[1]):
            parts[:, column] = _weights(levels[:, column], probable)[levels[:, column]]
        probable = 1.0 / (1.0 + np.exp(-np.clip(before + parts.sum(1).clip(-MOST, MOST), -20.0, 20.0)))
    return parts


def _weights(levels: Levels, probable: Floats) -> Floats:
    """By level; what is missing weighs nothing."""
    among_same = np.bincount(levels, probable, SAME + 1)[OTHER:] + PRIOR
    among_others = np.bincount(levels, 1.0 - probable, SAME + 1)[OTHER:] + PRIOR
    weights = np.log((among_same / among_same.sum()) / (among_others / among_others.sum()))
    return np.append(0.0, weights.clip(-MOST_A_KEY, MOST_A_KEY))
