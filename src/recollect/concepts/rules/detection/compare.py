"""Compare: the pairs that the bounds cannot rule out, each once.

A pair reaches the threshold only if cosine, name and metadata *together* can. The cosine's bound comes from a product
of short vectors, the name's from the lengths and letters, the metadata's from one bit a value; each bound is never
below the truth, so what is left out cannot reach the threshold. Only names of like length are multiplied at all: once
in the order of the names as written, and once more, for names that hold small words, in the order of their sorted form.
Of very many, only those are multiplied besides that lie in cells within reach of each other (cells).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recollect.concepts.rules.detection.blocks import Blocks
from recollect.concepts.rules.detection.cells import Cells
from recollect.concepts.rules.detection.columns import Bits, Floats, Ints, Mask, Matrix
from recollect.concepts.rules.detection.products import (
    MARGIN,
    Bounded,
    Span,
    Table,
    gathered,
    joined,
    multiply,
    padded,
    rows_that_fit,
    spans_of,
)
from recollect.concepts.rules.similarity import FactorWeights
from recollect.ports import Executor

SLICE = 400_000

Candidates = tuple[Ints, Ints]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The least that each factor must reach, the others being perfect."""

    threshold: float
    weights: FactorWeights

    @property
    def cosine(self) -> float:
        return (self.threshold - self.weights.name - self.weights.metadata) / self.weights.cosine

    @property
    def product(self) -> float:
        """What the product of two vectors must reach. A cosine below 0 counts as 0, so where 0 is enough, any is."""
        return self.cosine - MARGIN if self.cosine > MARGIN else -np.inf

    @property
    def name(self) -> float:
        return (self.threshold - self.weights.cosine - self.weights.metadata) / self.weights.name

    @property
    def metadata_without_cosine(self) -> float:
        """With an equal name and no embedding."""
        return (self.threshold * self.weights.without_cosine - self.weights.name) / self.weights.metadata

    def in_reach(self, cosine: Floats | Matrix, name: Floats, metadata: Floats) -> Mask:
        most = self.weights.cosine * np.clip(cosine.astype(np.float64), 0.0, 1.0) + self.weights.name * name
        reached: Mask = most + self.weights.metadata * metadata >= self.threshold - MARGIN
        return reached


def candidates(
    blocks: Blocks,
    bounds: Bounds,
    asked: Mask,
    is_free: Callable[[Ints, Ints], Mask],
    executor: Executor,
    cells: Cells | None = None,
) -> Iterator[Candidates]:
    """Pairs of places, at least one of which is asked for, in slices of bounded size. Cells are for when all are.

    `is_free` is asked before each slice: what has become crowded meanwhile need not be looked at.
    """
    near = within_cells(blocks, bounds, cells, executor) if cells else alike_in_length(blocks, bounds, asked, executor)
    for left, right, cosine in near:
        for start in range(0, len(left), SLICE):
            part = np.arange(start, min(start + SLICE, len(left)))
            part = part[is_free(left[part], right[part])]
            yield within_reach(blocks, bounds, left[part], right[part], cosine[part])
    for left, right in without_vectors(blocks, bounds, asked):
        free = is_free(left, right)
        yield left[free], right[free]


# -- with vectors


def alike_in_length(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Bounded]:
    yield from as_written(blocks, bounds, asked, executor)
    if bounds.name > 0:
        yield from as_sorted(blocks, bounds, asked, executor)


def as_written(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Bounded]:
    """Pairs whose names, as written, are of like length."""
    everyone = np.flatnonzero(blocks.has_vector)
    queries = everyone if asked.all() else everyone[asked[everyone]]
    for left, right, cosine in sweep(blocks, bounds, queries, everyone, blocks.plain_lengths, executor):
        once = (left < right) | ((left != right) & ~asked[right])
        fits = once & are_near(blocks.plain_lengths, left, right, bounds.name)
        yield left[fits], right[fits], cosine[fits]


def as_sorted(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Bounded]:
    """Pairs that only come near each other once the small words of one of them are left out."""
    lengths = blocks.ordered_lengths
    everyone = by_sorted_name(blocks)
    shrinks = lengths != blocks.plain_lengths
    first, then = shrinks & asked, asked & ~shrinks
    for queried, sought in ((first, np.ones_like(shrinks)), (then, shrinks & ~asked)):
        queries, targets = everyone[queried[everyone]], everyone[sought[everyone]]
        for left, right, cosine in sweep(blocks, bounds, queries, targets, lengths, executor):
            once = (left < right) | ((left != right) & ~queried[right])
            fits = once & ~are_near(blocks.plain_lengths, left, right, bounds.name)
            yield left[fits], right[fits], cosine[fits]


def by_sorted_name(blocks: Blocks) -> Ints:
    """The places with a vector, by type and the length of the sorted name."""
    everyone = np.flatnonzero(blocks.has_vector)
    return everyone[np.lexsort((blocks.ordered_lengths[everyone], blocks.types[everyone]))]


def sweep(
    blocks: Blocks, bounds: Bounds, queries: Ints, targets: Ints, lengths: Ints, executor: Executor
) -> Iterator[Bounded]:
    """Multiply queries with the targets within their band of lengths. Both are sorted by type and length."""
    rows = of_places(blocks.short, targets)
    table = Table(ours=None if rows is blocks.short else blocks.short, theirs=padded(rows), least=bounds.product)
    spans = spans_of(blocks.types, lengths, queries, targets, bounds.name)
    for bounded in executor.map(multiply, table, gathered(spans)):
        for left, right, most in bounded:
            yield left, targets[right], most


def of_places(short: Matrix, places: Ints) -> Matrix:
    """The rows of these places; not copied where they are all rows in their order."""
    is_everything = len(places) == len(short) and bool((places[:-1] < places[1:]).all())
    return short if is_everything else short[places]


# -- with vectors, within cells


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """Those in a cell, and spans of those that reach it."""

    targets: Ints
    spans: tuple[Span, ...]


def meet(table: Table, meeting: Meeting) -> Bounded:
    """The pairs of a meeting as places. The table holds the vectors of all: those of the cell are taken from it."""
    inside = Table(ours=table.theirs, theirs=padded(table.theirs[meeting.targets]), least=table.least)
    left, right, most = joined(multiply(inside, meeting.spans))
    return left, meeting.targets[right], most


def within_cells(blocks: Blocks, bounds: Bounds, cells: Cells, executor: Executor) -> Iterator[Bounded]:
    """The same pairs: each row with those in the cells that it reaches."""
    everything = Table(ours=None, theirs=blocks.short, least=bounds.product)
    for left, right, cosine in executor.map(meet, everything, written_in_cells(blocks, bounds, cells)):
        fits = once_in_cells(cells, left, right) & are_near(blocks.plain_lengths, left, right, bounds.name)
        yield left[fits], right[fits], cosine[fits]
    if bounds.name > 0:
        for left, right, cosine in executor.map(meet, everything, sorted_in_cells(blocks, bounds, cells)):
            fits = once_in_cells(cells, left, right) & ~are_near(blocks.plain_lengths, left, right, bounds.name)
            yield left[fits], right[fits], cosine[fits]


def once_in_cells(cells: Cells, left: Ints, right: Ints) -> Mask:
    """Where each of two reaches the other's cell, the pair is met twice."""
    once: Mask = (left < right) | ((left != right) & ~cells.are_reached(right, cells.own[left]))
    return once


def written_in_cells(blocks: Blocks, bounds: Bounds, cells: Cells) -> Iterator[Meeting]:
    for cell, members in enumerate(cells.members()):
        yield from meetings_of(blocks, bounds, cells.reaching(cell), members, blocks.plain_lengths)


def sorted_in_cells(blocks: Blocks, bounds: Bounds, cells: Cells) -> Iterator[Meeting]:
    """Those that shrink with all others, and all others with those that shrink."""
    everyone, lengths = by_sorted_name(blocks), blocks.ordered_lengths
    rank = np.empty(len(blocks), np.int64)
    rank[everyone] = np.arange(len(everyone))
    shrinks = lengths != blocks.plain_lengths
    for cell, members in enumerate(cells.members()):
        reaching = everyone[np.sort(rank[cells.reaching(cell)])]
        inside = everyone[np.sort(rank[members])]
        shrinking = shrinks[reaching]
        yield from meetings_of(blocks, bounds, reaching[shrinking], inside, lengths)
        yield from meetings_of(blocks, bounds, reaching[~shrinking], inside[shrinks[inside]], lengths)


def meetings_of(blocks: Blocks, bounds: Bounds, queries: Ints, targets: Ints, lengths: Ints) -> Iterator[Meeting]:
    """Of bounded size, as is what they find: a cell in a crowd is reached by very many."""
    spans = spans_of(blocks.types, lengths, queries, targets, bounds.name, rows_that_fit(len(targets)))
    return (Meeting(targets=targets, spans=stretch) for stretch in gathered(spans))


# -- what remains


def within_reach(blocks: Blocks, bounds: Bounds, left: Ints, right: Ints, cosine: Matrix) -> Candidates:
    """What remains when names and metadata are bounded too."""
    paired = ~in_long_series(blocks, left, right)
    ours, theirs = left[paired], right[paired]
    best = best_name(blocks, ours, theirs), best_metadata(blocks, ours, theirs)
    possible = bounds.in_reach(cosine[paired], *best)
    return ours[possible], theirs[possible]


def are_near(lengths: Ints, left: Ints, right: Ints, least_name: float) -> Mask:
    """Whether two names are of like enough length to reach what is needed of the name."""
    ours, theirs = lengths[left], lengths[right]
    return np.minimum(ours, theirs) >= least_name * np.maximum(ours, theirs) - MARGIN


def in_long_series(blocks: Blocks, left: Ints, right: Ints) -> Mask:
    """Both in one long series: they differ in digits only, and the series is named instead.

    Names of a series that are equal, digits and all, are still compared.
    """
    ours = blocks.series[left]
    told_apart: Mask = blocks.spelling[left] != blocks.spelling[right]
    together: Mask = (ours >= 0) & (ours == blocks.series[right])
    return together & told_apart


def best_name(blocks: Blocks, left: Ints, right: Ints) -> Floats:
    return np.maximum(
        most_alike(blocks.plain_lengths, blocks.plain_bits, left, right),
        most_alike(blocks.ordered_lengths, blocks.ordered_bits, left, right),
    )


def most_alike(lengths: Ints, bits: Bits, left: Ints, right: Ints) -> Floats:
    """What two names can score at most: each letter that only one of them holds costs an edit."""
    ours, theirs = bits[left], bits[right]
    missing = np.maximum(np.bitwise_count(ours & ~theirs), np.bitwise_count(theirs & ~ours)).astype(np.int64)
    longer = np.maximum(lengths[left], lengths[right])
    least = np.maximum(missing, np.abs(lengths[left] - lengths[right]))
    return np.where(longer == 0, 1.0, 1.0 - least / np.maximum(longer, 1))


def best_metadata(blocks: Blocks, left: Ints, right: Ints) -> Floats:
    """What two sets of values can have in common at most: each bit that only one holds is a value of its own."""
    ours, theirs = blocks.metadata_sizes[left], blocks.metadata_sizes[right]
    apart = np.bitwise_count(blocks.metadata_bits[left] ^ blocks.metadata_bits[right]).astype(np.int64)
    apart = np.maximum(apart, np.abs(ours - theirs))
    together = ours + theirs
    return np.where(together == 0, 1.0, (together - apart) / np.maximum(together + apart, 1))


# -- without vectors


def without_vectors(blocks: Blocks, bounds: Bounds, asked: Mask) -> Iterator[Candidates]:
    """Where an embedding is missing only an equal name counts (C04): the rows of one name, each with those after it."""
    for first, last in same_names(blocks):
        for index in range(first, last - 1):
            others = np.arange(index + 1, last)
            others = others[asked[others] | asked[index]]
            others = others[~(blocks.has_vector[others] & blocks.has_vector[index])]
            ones = np.full(len(others), index)
            possible = best_metadata(blocks, ones, others) >= bounds.metadata_without_cosine - MARGIN
            if possible.any():
                yield ones[possible], others[possible]


def same_names(blocks: Blocks) -> Iterator[tuple[int, int]]:
    """Stretches of equal type and name (not the empty one) in which some row has no vector."""
    if blocks.has_vector.all():
        return
    equal = (blocks.plain[1:] == blocks.plain[:-1]) & (blocks.types[1:] == blocks.types[:-1])
    edges = [0, *(np.flatnonzero(~equal.astype(bool)) + 1).tolist(), len(blocks)]
    for first, last in pairwise(edges):
        if last - first > 1 and blocks.plain[first] and not blocks.has_vector[first:last].all():
            yield first, last
