"""Detect: the stages in a row, over everything or over what changed.

What comes out is bounded, whatever goes in. Identical rows come out as copies of one; a long numbered series is named,
not paired; and a row with more than MOST_PARTNERS partners is *crowded*: it is said to be so, compared no further, and
within a crowd of its own name not paired. How many pairs were left out is counted (C37). Everything else is exact: the
pairs found are those that brute force finds.
"""

from dataclasses import dataclass, replace

import numpy as np

from recollect.concepts.rules.detection.blocks import Blocks, block, project, telling_directions
from recollect.concepts.rules.detection.cells import useful_cells
from recollect.concepts.rules.detection.columns import ConceptColumns, Ints, Mask, Matrix
from recollect.concepts.rules.detection.compare import Bounds, candidates
from recollect.concepts.rules.detection.pairs import Pairs, scored
from recollect.concepts.rules.similarity import WEIGHTS, FactorWeights
from recollect.ports import Executor

THRESHOLD = 0.95
MOST_PARTNERS = 200
CHOICES = (31, 63, 127)
# With fewer rows than this, all is done before a cluster has received them.
WORTH_A_JOURNEY = 50_000
# Nanoseconds: multiplying two numbers of a pair, and looking more closely at a pair that was not ruled out.
COST_OF_A_DIMENSION = 0.03
COST_OF_A_CANDIDATE = 300.0
_SAMPLE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPairs:
    """Rows that score at least the threshold with each other.

    `pairs` best first, between rows that differ; `copies` are sets of identical rows, of which only the first stands in
    `pairs`; `crowded` rows have more partners than are listed; `series` are long numbered series, whose members differ
    only in digits and are not paired; `crowds` are very many of one name, of which only the first of copies is listed.
    `left_out` counts the pairs that might have reached the threshold and were not compared: crowds and crowded rows.
    """

    pairs: Pairs
    copies: tuple[Ints, ...]
    crowded: Ints
    series: tuple[Ints, ...]
    crowds: tuple[Ints, ...]
    left_out: int
    threshold: float
    weights: FactorWeights

    def above(self, threshold: float) -> "FoundPairs":
        """The same, looked at from a higher threshold."""
        return replace(self, pairs=self.pairs.only(self.pairs.score >= threshold), threshold=threshold)


def detect(
    concepts: ConceptColumns,
    threshold: float = THRESHOLD,
    *,
    here: Executor,
    changed: Mask | None = None,
    weights: FactorWeights = WEIGHTS,
    blocks: Blocks | None = None,
    most_partners: int = MOST_PARTNERS,
    executor: Executor | None = None,
    cells: int | None = None,
) -> FoundPairs:
    """All pairs at or above the threshold, within a type; with `changed`, those that have a changed row.

    It is worked out `here`; with an `executor`, very many vectors are multiplied there (X01), and the pairs are the
    same. `cells` says into how many cells the space is cut; else it is as many as pay, and none for a small set.
    """
    bounds = Bounds(threshold=threshold, weights=weights)
    blocks = blocks or block(concepts, dimensions=useful_dimensions(concepts, bounds))
    asked = asked_places(blocks, changed)
    crowd = Crowd(len(blocks), most_partners)
    places = np.empty(len(concepts), np.int64)
    places[blocks.rows] = np.arange(len(blocks))
    parts = []
    multiplying = executor if executor and len(blocks) >= WORTH_A_JOURNEY else here
    cut = useful_cells(blocks, bounds.product, cells, here) if asked.all() else None
    for left, right in candidates(blocks, bounds, asked, crowd.is_free, multiplying, cut):
        if not len(left):
            continue
        part = scored(blocks, bounds, left, right, here.width)
        crowd.count(places[part.left], places[part.right])
        parts.append(part)
    pairs = Pairs.joined(parts)
    outside = ~crowd.holds(blocks.crowd, places[pairs.left], places[pairs.right])
    return FoundPairs(
        pairs=lower_left(pairs.only(outside)).best_first(),
        copies=tuple(copy for copy in blocks.copies if changed is None or changed[copy].any()),
        crowded=np.sort(blocks.rows[crowd.is_full()]),
        series=tuple(blocks.long_series()),
        crowds=tuple(rows for rows in blocks.crowds if changed is None or changed[rows].any()),
        left_out=crowd.left_out + int(len(pairs) - np.count_nonzero(outside)),
        threshold=threshold,
        weights=weights,
    )


class Crowd:
    """How many partners each place has found."""

    def __init__(self, places: int, most: int) -> None:
        self._partners = np.zeros(places, np.int64)
        self._most = most
        self.left_out = 0

    def is_full(self) -> Mask:
        return self._partners > self._most

    def is_free(self, left: Ints, right: Ints) -> Mask:
        free: Mask = np.maximum(self._partners[left], self._partners[right]) <= self._most
        self.left_out += int(len(free) - np.count_nonzero(free))
        return free

    def holds(self, numbers: Ints, left: Ints, right: Ints) -> Mask:
        """Whether both are of one crowd by their names, and one of them has more partners than are listed."""
        full = self.is_full()
        inside: Mask = (numbers[left] >= 0) & (numbers[left] == numbers[right]) & (full[left] | full[right])
        return inside

    def count(self, left: Ints, right: Ints) -> None:
        np.add.at(self._partners, left, 1)
        np.add.at(self._partners, right, 1)


def asked_places(blocks: Blocks, changed: Mask | None) -> Mask:
    """Where something changed: the row itself, or one of its copies."""
    if changed is None:
        return np.ones(len(blocks), np.bool_)
    touched = changed.copy()
    for group in blocks.copies:
        touched[group[0]] = changed[group].any()
    asked: Mask = touched[blocks.rows]
    return asked


def lower_left(pairs: Pairs) -> Pairs:
    """The lower row number left, so that a pair reads the same however it was found."""
    left, right = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    return replace(pairs, left=left, right=right)


# -- which method


def useful_dimensions(concepts: ConceptColumns, bounds: Bounds) -> int | None:
    """How short the vectors may be: longer ones cost more to multiply, shorter ones let more pairs through.

    None for whole vectors: a low threshold rules out so little that nothing shorter pays.
    """
    rows = np.flatnonzero(concepts.has_vector)
    width = concepts.vectors.shape[1]
    choices = [dimensions for dimensions in CHOICES if 2 * dimensions < width]
    if not choices or not len(rows):
        return None
    drawn = concepts.vectors[rows[:: max(1, len(rows) // (2 * _SAMPLE))]]
    # Directions fit those they were drawn from better than they fit the rest: half draws them, half judges them.
    basis, sample = telling_directions(drawn[::2], np.arange(len(drawn[::2])), choices[-1]), drawn[1::2]
    costs = {
        dimensions: dimensions * COST_OF_A_DIMENSION
        + COST_OF_A_CANDIDATE * passing_share(project(sample, basis[:, -dimensions:]), bounds)
        for dimensions in choices
    }
    whole = width * COST_OF_A_DIMENSION + COST_OF_A_CANDIDATE * passing_share(sample, bounds)
    best = min(costs, key=costs.__getitem__)
    return best if costs[best] <= whole else None


def passing_share(rows: Matrix, bounds: Bounds) -> float:
    """What share of the pairs the products cannot rule out."""
    passing = int(np.count_nonzero(rows @ rows.T >= bounds.product)) - len(rows)
    return max(0, passing) / max(1, len(rows) * (len(rows) - 1))
