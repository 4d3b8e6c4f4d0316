"""Candidates: pairs of rows that share one of their rarest words, or one of the rarest 3-grams of their names.

What many bear leads to no pairs, so the work grows with the rows and not with their square. That is bounded, not exact:
`skipped` counts the rows that have nothing rare enough to be found by. (What the score of C03 finds is exact besides:
rules/detection.)
"""

from dataclasses import dataclass

import numpy as np

from recollect.concepts.rules.detection.columns import Floats, Ints, Mask
from recollect.concepts.rules.evidence.bags import Bag

# A row is looked up by so many of its rarest tokens, of which each is borne by at most so many rows.
RAREST = 12
MOST_BEARERS = 100
# With more pairs than this for each row, on average, only the rarer tokens lead to pairs.
MOST_A_ROW = 300
# Below both of these a pair is not worth a thought.
LEAST_WORDS, LEAST_GRAMS = 0.25, 0.40


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocked:
    """Pairs of rows, the lower row left; how alike their words are, and the 3-grams of their names; and how many rows
    nothing leads to."""

    left: Ints
    right: Ints
    words: Floats
    grams: Floats
    skipped: int


def block(words: Bag, grams: Bag, more: tuple[Ints, Ints]) -> Blocked:
    """The pairs worth a thought, and `more` that are to be looked at in any case."""
    count = len(words.starts) - 1
    shared, reached = [], np.zeros(count, np.bool_)
    for bag in (words, grams):
        codes, looked_up = _sharing(bag, count)
        shared.append(codes)
        reached |= looked_up
    certain = np.unique(more[0] * count + more[1])
    codes = np.unique(np.concatenate([*shared, certain]))
    left, right = np.divmod(codes, max(1, count))
    by_words, by_grams = words.cosines(left, right), grams.cosines(left, right)
    worth_it = (by_words >= LEAST_WORDS) | (by_grams >= LEAST_GRAMS) | np.isin(codes, certain)
    return Blocked(
        left=left[worth_it],
        right=right[worth_it],
        words=by_words[worth_it],
        grams=by_grams[worth_it],
        skipped=int(count - reached.sum()),
    )


def _sharing(bag: Bag, count: int) -> tuple[Ints, Mask]:
    """Pairs that share a rare token, each as one number; and the rows that have one, shared or not."""
    rows, bearers = bag.rows, bag.bearers[bag.tokens]
    order = np.lexsort((bearers, rows))
    rank = np.arange(len(order)) - bag.starts[rows[order]]
    rare = order[(rank < RAREST) & (bearers[order] <= MOST_BEARERS)]
    reached = np.zeros(count, np.bool_)
    reached[rows[rare]] = True
    tokens, rows = bag.tokens[rare], rows[rare]
    affordable = _affordable(tokens, count)
    order = np.lexsort((rows[affordable], tokens[affordable]))
    tokens, rows = tokens[affordable][order], rows[affordable][order]
    ends = np.searchsorted(tokens, tokens, "right")
    others = ends - np.arange(len(tokens)) - 1
    left = np.repeat(rows, others)
    within = np.arange(len(left)) - np.repeat(np.cumsum(others) - others, others)
    right = rows[np.repeat(np.arange(len(tokens)) + 1, others) + within]
    return np.unique(left * count + right), reached


def _affordable(tokens: Ints, count: int) -> Ints:
    """Where the tokens stand that lead to pairs, rarest first, as long as there are not too many pairs."""
    sizes = np.bincount(tokens, minlength=1)
    pairs = np.bincount(sizes, sizes * (sizes - 1) / 2, minlength=MOST_BEARERS + 1).cumsum()
    most = int(np.searchsorted(pairs, max(1, MOST_A_ROW * count), "right")) - 1
    return np.flatnonzero((sizes[tokens] > 1) & (sizes[tokens] <= max(2, most)))
