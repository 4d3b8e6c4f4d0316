"""Compare: the pairs that the bounds cannot rule out, each once.

A pair reaches the threshold only if cosine, name and metadata *together* can. The cosine's bound comes from a product
of short vectors, the name's from the lengths and letters, the metadata's from one bit a value; each bound is never
below the truth, so what is left out cannot reach the threshold. Only names of like length are multiplied at all: once
in the order of the names as written, and once more, for names that hold small words, in the order of their sorted form.
Of very many, only those are multiplied besides that lie in cells within reach of each other (cells).

All of that goes in blocks through an executor. A block is numbers that say what to look at in a *field*, which all
blocks share, and what comes back are the pairs that are left: so little travels, however much is multiplied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from recollect.concepts.rules.detection.blocks import Blocks, Outlines
from recollect.concepts.rules.detection.cells import Cells
from recollect.concepts.rules.detection.columns import Bits, Floats, Ints, Mask, Matrix
from recollect.concepts.rules.detection.products import (
    MARGIN,
    PRODUCTS_AT_A_TIME,
    Bounded,
    Piece,
    Span,
    Table,
    gathered,
    multiply,
    padded,
    rows_that_fit,
    spans_of,
)
from recollect.concepts.rules.similarity import FactorWeights
from recollect.ports import Executor

SLICE = 400_000
# Some tenths of a second of work: handing a block to a cluster takes a hundredth, of the processors of all involved.
PRODUCTS_A_BLOCK = 200_000_000
PRODUCTS_A_MEETING = 50_000_000
# In a crowd everything is near everything: a block that has found so many hands them in, and the rest of it is done
# where they are taken.
MOST_AT_ONCE = 2_000_000

Candidates = tuple[Ints, Ints]
_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64))


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

    `is_free` is asked before each slice: what has become crowded meanwhile need not be scored.
    """
    near = within_cells(blocks, bounds, cells, executor) if cells else alike_in_length(blocks, bounds, asked, executor)
    for left, right in near:
        for start in range(0, len(left), SLICE):
            part = slice(start, start + SLICE)
            free = is_free(left[part], right[part])
            yield left[part][free], right[part][free]
    for left, right in without_vectors(blocks, bounds, asked):
        free = is_free(left, right)
        yield left[free], right[free]


# -- in blocks


class Field(Protocol):
    """What all blocks of a search share."""

    def pairs(self, piece: Any) -> Candidates:
        """The pairs of a piece that the bounds cannot rule out."""
        ...


def search(field: Field, pieces: Sequence[Piece]) -> tuple[list[Candidates], Sequence[Piece]]:
    """What each piece of a block finds, and the pieces that are left because the others found very many."""
    parts: list[Candidates] = []
    found = 0
    while len(parts) < len(pieces) and found < MOST_AT_ONCE:
        parts.append(field.pairs(pieces[len(parts)]))
        found += len(parts[-1][0])
    return parts, pieces[len(parts) :]


def searched(field: Field, blocks: Iterable[Sequence[Piece]], executor: Executor) -> Iterator[Candidates]:
    for parts, left_over in executor.map(search, field, blocks):
        yield from parts
        while left_over:
            parts, left_over = search(field, left_over)
            yield from parts


def together(parts: Iterable[Candidates]) -> Candidates:
    left, right = (np.concatenate(side) for side in zip(_NOTHING, *parts, strict=True))
    return left, right


# -- with vectors


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepField:
    """Queries and targets, both sorted by type and length, and their vectors; a piece of it is a span.

    `near` says whether pairs are wanted whose names, as written, are near in length, or those whose names are not.
    """

    table: Table
    outlines: Outlines
    bounds: Bounds
    queries: Ints
    targets: Ints
    is_query: Mask
    near: bool

    def pairs(self, span: Span) -> Candidates:
        return together(self._possible(part) for part in in_slices(multiply(self.table, [span])))

    def _possible(self, bounded: Bounded) -> Candidates:
        query, target, cosine = bounded
        left, right = self.queries[query], self.targets[target]
        once = (left < right) | ((left != right) & ~self.is_query[right])
        return not_ruled_out(self.outlines, self.bounds, (left, right, cosine), once=once, near=self.near)


def alike_in_length(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Candidates]:
    yield from as_written(blocks, bounds, asked, executor)
    if bounds.name > 0:
        yield from as_sorted(blocks, bounds, asked, executor)


def as_written(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Candidates]:
    """Pairs whose names, as written, are of like length."""
    everyone = np.flatnonzero(blocks.has_vector)
    queries = everyone if asked.all() else everyone[asked[everyone]]
    yield from sweep(blocks, bounds, queries, everyone, asked, executor, near=True)


def as_sorted(blocks: Blocks, bounds: Bounds, asked: Mask, executor: Executor) -> Iterator[Candidates]:
    """Pairs that only come near each other once the small words of one of them are left out."""
    everyone = by_sorted_name(blocks)
    shrinks = is_shrinking(blocks)
    first, then = shrinks & asked, asked & ~shrinks
    for queried, sought in ((first, np.ones_like(shrinks)), (then, shrinks & ~asked)):
        queries, targets = everyone[queried[everyone]], everyone[sought[everyone]]
        yield from sweep(blocks, bounds, queries, targets, queried, executor, near=False)


def is_shrinking(blocks: Blocks) -> Mask:
    """Whether a name holds small words, so that its sorted form is shorter."""
    shrinks: Mask = blocks.ordered_lengths != blocks.plain_lengths
    return shrinks


def by_sorted_name(blocks: Blocks) -> Ints:
    """The places with a vector, by type and the length of the sorted name."""
    everyone = np.flatnonzero(blocks.has_vector)
    return everyone[np.lexsort((blocks.ordered_lengths[everyone], blocks.types[everyone]))]


def sweep(
    blocks: Blocks, bounds: Bounds, queries: Ints, targets: Ints, is_query: Mask, executor: Executor, *, near: bool
) -> Iterator[Candidates]:
    """Multiply queries with the targets within their band of lengths. Both are sorted by type and length."""
    if not len(queries) or not len(targets):
        return
    theirs = padded(blocks.short[targets])
    ours = theirs if queries is targets else blocks.short[queries]
    field = SweepField(
        table=Table(ours=ours, theirs=theirs, least=bounds.product),
        outlines=blocks.outlines(),
        bounds=bounds,
        queries=queries,
        targets=targets,
        is_query=is_query,
        near=near,
    )
    lengths = blocks.plain_lengths if near else blocks.ordered_lengths
    spans = spans_of(blocks.types, lengths, queries, targets, bounds.name)
    yield from searched(field, gathered(spans, PRODUCTS_A_BLOCK), executor)


# -- with vectors, within cells


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """Some of those that reach a cell, from the first to the last, with those in it."""

    kind: int
    cell: int
    first: int
    last: int
    products: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MeetingKind:
    """Which of those that reach a cell meet which of those in it, and by which lengths both are sorted.

    `rank` says where each place stands among all by type and length; None where that is the order of the places. `near`
    is as in SweepField.
    """

    lengths: Ints
    rank: Ints | None
    asking: Mask
    answering: Mask
    near: bool

    def ordered(self, places: Ints) -> Ints:
        return places if self.rank is None else places[np.argsort(self.rank[places])]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellField:
    """The vectors of all, their cells, and the kinds of meetings there are; a piece of it is a meeting."""

    short: Matrix
    outlines: Outlines
    bounds: Bounds
    cells: Cells
    kinds: tuple[MeetingKind, ...]

    def pairs(self, meeting: Meeting) -> Candidates:
        kind = self.kinds[meeting.kind]
        reaching, members = self.cells.reaching(meeting.cell), self.cells.members(meeting.cell)
        queries = kind.ordered(reaching[kind.asking[reaching]])[meeting.first : meeting.last]
        targets = kind.ordered(members[kind.answering[members]])
        table = Table(ours=self.short[queries], theirs=padded(self.short[targets]), least=self.bounds.product)
        rows = rows_that_fit(len(targets))
        spans = spans_of(self.outlines.types, kind.lengths, queries, targets, self.bounds.name, rows)
        return together(
            self._possible(kind, queries, targets, part)
            for stretch in gathered(spans, PRODUCTS_AT_A_TIME)
            for part in in_slices(multiply(table, stretch))
        )

    def _possible(self, kind: MeetingKind, queries: Ints, targets: Ints, bounded: Bounded) -> Candidates:
        query, target, cosine = bounded
        left, right = queries[query], targets[target]
        # Where each of two reaches the other's cell, the pair is met twice.
        once = (left < right) | ((left != right) & ~self.cells.are_reached(right, self.cells.own[left]))
        return not_ruled_out(self.outlines, self.bounds, (left, right, cosine), once=once, near=kind.near)

    def meetings(self) -> Iterator[Meeting]:
        """Of bounded size, as is what they find: a cell in a crowd is reached by very many."""
        for number, kind in enumerate(self.kinds):
            asking, answering = self.cells.sizes_reaching(kind.asking), self.cells.sizes(kind.answering)
            for cell in np.flatnonzero(asking * answering).tolist():
                many, members = int(asking[cell]), int(answering[cell])
                rows = max(1, PRODUCTS_A_MEETING // members)
                for first in range(0, many, rows):
                    last = min(first + rows, many)
                    products = (last - first) * members
                    yield Meeting(kind=number, cell=cell, first=first, last=last, products=products)


def within_cells(blocks: Blocks, bounds: Bounds, cells: Cells, executor: Executor) -> Iterator[Candidates]:
    """The same pairs: each row with those in the cells that it reaches."""
    field = CellField(
        short=blocks.short,
        outlines=blocks.outlines(),
        bounds=bounds,
        cells=cells,
        kinds=tuple(kinds_of(blocks, bounds)),
    )
    yield from searched(field, gathered(field.meetings(), PRODUCTS_A_BLOCK), executor)


def kinds_of(blocks: Blocks, bounds: Bounds) -> Iterator[MeetingKind]:
    """As written, all with all; sorted, those that shrink with all others, and all others with those that shrink."""
    everyone, shrinks = np.ones(len(blocks), np.bool_), is_shrinking(blocks)
    yield MeetingKind(lengths=blocks.plain_lengths, rank=None, asking=everyone, answering=everyone, near=True)
    if bounds.name > 0:
        order = by_sorted_name(blocks)
        rank = np.zeros(len(blocks), np.int64)
        rank[order] = np.arange(len(order))
        for asking, answering in ((shrinks, everyone), (~shrinks, shrinks)):
            yield MeetingKind(lengths=blocks.ordered_lengths, rank=rank, asking=asking, answering=answering, near=False)


# -- what remains


def in_slices(bounded: Bounded) -> Iterator[Bounded]:
    left, right, cosine = bounded
    for start in range(0, len(left), SLICE):
        part = slice(start, start + SLICE)
        yield left[part], right[part], cosine[part]


def not_ruled_out(outlines: Outlines, bounds: Bounds, bounded: Bounded, *, once: Mask, near: bool) -> Candidates:
    """Of the pairs that count here, and whose names as written are near in length (or are not), those in reach."""
    left, right, cosine = bounded
    fits = once & (are_near(outlines.plain_lengths, left, right, bounds.name) == near)
    return within_reach(outlines, bounds, left[fits], right[fits], cosine[fits])


def within_reach(outlines: Outlines, bounds: Bounds, left: Ints, right: Ints, cosine: Matrix) -> Candidates:
    """What remains when names and metadata are bounded too."""
    paired = ~in_long_series(outlines, left, right)
    ours, theirs = left[paired], right[paired]
    best = best_name(outlines, ours, theirs), best_metadata(outlines, ours, theirs)
    possible = bounds.in_reach(cosine[paired], *best)
    return ours[possible], theirs[possible]


def are_near(lengths: Ints, left: Ints, right: Ints, least_name: float) -> Mask:
    """Whether two names are of like enough length to reach what is needed of the name."""
    ours, theirs = lengths[left], lengths[right]
    return np.minimum(ours, theirs) >= least_name * np.maximum(ours, theirs) - MARGIN


def in_long_series(outlines: Outlines, left: Ints, right: Ints) -> Mask:
    """Both in one long series: they differ in digits only, and the series is named instead.

    Names of a series that are equal, digits and all, are still compared.
    """
    ours = outlines.series[left]
    told_apart: Mask = outlines.spelling[left] != outlines.spelling[right]
    together: Mask = (ours >= 0) & (ours == outlines.series[right])
    return together & told_apart


def best_name(outlines: Outlines, left: Ints, right: Ints) -> Floats:
    return np.maximum(
        most_alike(outlines.plain_lengths, outlines.plain_bits, left, right),
        most_alike(outlines.ordered_lengths, outlines.ordered_bits, left, right),
    )


def most_alike(lengths: Ints, bits: Bits, left: Ints, right: Ints) -> Floats:
    """What two names can score at most: each letter that only one of them holds costs an edit."""
    ours, theirs = bits[left], bits[right]
    missing = np.maximum(np.bitwise_count(ours & ~theirs), np.bitwise_count(theirs & ~ours)).astype(np.int64)
    longer = np.maximum(lengths[left], lengths[right])
    least = np.maximum(missing, np.abs(lengths[left] - lengths[right]))
    return np.where(longer == 0, 1.0, 1.0 - least / np.maximum(longer, 1))


def best_metadata(outlines: Outlines, left: Ints, right: Ints) -> Floats:
    """What two sets of values can have in common at most: each bit that only one holds is a value of its own."""
    ours, theirs = outlines.metadata_sizes[left], outlines.metadata_sizes[right]
    apart = np.bitwise_count(outlines.metadata_bits[left] ^ outlines.metadata_bits[right]).astype(np.int64)
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
