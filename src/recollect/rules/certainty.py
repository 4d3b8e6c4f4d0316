"""How sure a pair is: its score, less what makes it doubtful. It orders questions; it never merges anything.

Two things lower it. Other numbers in the names make another thing more often than not. And rivals: a name that is as
near to five others as to this one belongs to a family, not to a twin.
"""

import numpy as np

from recollect.rules.duplicates.columns import Floats, Ints, Mask
from recollect.rules.duplicates.pairs import Pairs

# Chosen by hand among ten ways of counting rivals, on the same names with known truth on which recall at precision 0.9
# then rose from 0.33 (the bare score) to 0.53; most of the ten came out near that. Other data may give less.
OTHER_NUMBERS_COST = 0.15
RIVALS_COST = 0.5


def certainties(pairs: Pairs, other_numbers: Mask, floor: float) -> Floats:
    """0 to 1 for each pair; `floor` is the score down to which pairs are listed, so that no rival counts as that."""
    lowered = pairs.score - OTHER_NUMBERS_COST * other_numbers
    left, right = rivals(pairs.left, pairs.right, lowered, floor)
    return np.clip(lowered - RIVALS_COST * ((left + right) / 2 - floor), 0.0, 1.0)


def rivals(left: Ints, right: Ints, score: Floats, floor: float) -> tuple[Floats, Floats]:
    """For each pair the best other pair of its left row, and that of its right row."""
    count = len(left)
    if not count:
        return np.zeros(0), np.zeros(0)
    rows, pair = np.concatenate([left, right]), np.tile(np.arange(count), 2)
    order = np.lexsort((pair, -score[pair], rows))
    rows, pair = rows[order], pair[order]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    second = np.minimum(starts + 1, len(rows) - 1)
    has_second = rows[second] == rows[starts]
    has_second &= second > starts
    best_pair, best = np.full(rows.max() + 1, -1), np.full(rows.max() + 1, floor)
    next_best = best.copy()
    best_pair[rows[starts]], best[rows[starts]] = pair[starts], score[pair[starts]]
    next_best[rows[starts[has_second]]] = score[pair[second[has_second]]]

    def rival(end: Ints) -> Floats:
        found = np.where(best_pair[end] == np.arange(count), next_best[end], best[end])
        return np.maximum(found, floor)

    return rival(left), rival(right)
