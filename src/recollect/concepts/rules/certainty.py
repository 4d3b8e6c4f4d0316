"""How sure a pair is: its score, less what makes it doubtful. It orders questions; it never merges anything.

Three things move it. Other numbers in the names make another thing more often than not. Codes (PS-LX350H) say which
thing it is: one that both names bear, and hardly any other does, speaks for the pair, and each its own against it. And
rivals: a name that is as near to five others as to this one belongs to a family, not to a twin.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from recollect.concepts.rules.detection.columns import Floats, Ints, Mask
from recollect.concepts.rules.detection.pairs import Pairs

# Chosen by hand among ten ways of counting rivals, on the same names with known truth on which recall at precision 0.9
# then rose from 0.33 (the bare score) to 0.53; most of the ten came out near that. Other data may give less.
OTHER_NUMBERS_COST = 0.15
RIVALS_COST = 0.5
# Nine pairs of these were tried on products with known truth: the best F1 of the order was 0.20 without, 0.31 to 0.50
# with them, and near 0.49 with all but the smallest.
SAME_CODE = 0.2
OTHER_CODES_COST = 0.1
# A code that more names bear than this is the name of a family.
FAMILY = 4

_WORD = re.compile(r"[^\s/,;()]+")
_SIGN = re.compile(r"[\W_]")
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d]).{4,}|\d{5,}", re.DOTALL)


def certainties(pairs: Pairs, names: Sequence[str], other_numbers: Mask, floor: float) -> Floats:
    """0 to 1 for each pair of rows with these names; `floor` is the score down to which pairs are listed, so that no
    rival counts as that."""
    same, other = codes_compared(pairs, names)
    moved: Floats = pairs.score + SAME_CODE * same - OTHER_CODES_COST * other
    moved = moved - OTHER_NUMBERS_COST * (other_numbers & ~same)
    left, right = rivals(pairs.left, pairs.right, moved, floor)
    return np.clip(moved - RIVALS_COST * ((left + right) / 2 - floor), 0.0, 1.0)


def codes_compared(pairs: Pairs, names: Sequence[str]) -> tuple[Mask, Mask]:
    """For each pair whether the names share a code that is theirs alone; and whether both bear some but no such."""
    codes = {row: codes_of(names[row]) for row in np.union1d(pairs.left, pairs.right).tolist()}
    bearers = Counter(code for own in codes.values() for code in own)
    ends = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    same = np.array([_share_their_own(codes, bearers, *both) for both in ends], np.bool_)
    bear = np.array([bool(codes[left] and codes[right]) for left, right in ends], np.bool_)
    return same, bear & ~same


def codes_of(name: str) -> frozenset[str]:
    """The words of a name that are letters and digits together, or a long number; signs within do not count."""
    words = (_SIGN.sub("", word) for word in _WORD.findall(name.lower()))
    return frozenset(word for word in words if _CODE.fullmatch(word))


def _share_their_own(codes: Mapping[int, frozenset[str]], bearers: Mapping[str, int], left: int, right: int) -> bool:
    return any(bearers[code] <= FAMILY for code in codes[left] & codes[right])


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
        nearest = np.where(best_pair[end] == np.arange(count), next_best[end], best[end])
        return np.maximum(nearest, floor)

    return rival(left), rival(right)
