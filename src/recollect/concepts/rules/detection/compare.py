"""Compare: the pairs that the bounds cannot rule out, each once.

A pair reaches the threshold only if cosine, name and metadata *together* can. The cosine's bound comes from a product
of short vectors, the name's from the lengths and letters, the metadata's from one bit a value; each bound is never
below the truth, so what is left out cannot reach the threshold. Only names of like length are multiplied at all: once
in the order of the names as written, and once more, for names that hold small words, in the order of their sorted form.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from recollect.concepts.rules.detection.blocks import Blocks
from recollect.concepts.rules.detection.columns import Bits, Floats, Ints, Mask, Matrix
from recollect.concepts.rules.similarity import FactorWeights

# Short vectors are multiplied in single precision: what rounding may hide is let through and scored exactly.
MARGIN = 2e-4
# Many small products rather than a large one: the library of linear algebra does small ones on the calling thread, and
# its own threads wait for each other, which costs more than it gains wherever the processor has other work.
SMALL_PRODUCT = 400_000
MOST_TILE_ROWS, MOST_TILE_COLUMNS = 64, 128
ROWS, COLUMNS = 256, 2048
SLICE = 400_000

Candidates = tuple[Ints, Ints]
Bounded = tuple[Ints, Ints, Matrix]  # left, right, and what the cosine may be at most
Given = TypeVar("Given")
Made = TypeVar("Made")


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
    blocks: Blocks, bounds: Bounds, asked: Mask, is_free: Callable[[Ints, Ints], Mask], threads: int = 1
) -> Iterator[Candidates]:
    """Pairs of places, at least one of which is asked for, in slices of bounded size.

    `is_free` is asked before each slice: what has become crowded meanwhile need not be looked at.
    """
    for left, right, cosine in alike_in_length(blocks, bounds, asked, threads):
        for start in range(0, len(left), SLICE):
            part = np.arange(start, min(start + SLICE, len(left)))
            part = part[is_free(left[part], right[part])]
            yield within_reach(blocks, bounds, left[part], right[part], cosine[part])
    for left, right in without_vectors(blocks, bounds, asked):
        free = is_free(left, right)
        yield left[free], right[free]


def alike_in_length(blocks: Blocks, bounds: Bounds, asked: Mask, threads: int) -> Iterator[Bounded]:
    yield from as_written(blocks, bounds, asked, threads)
    if bounds.name > 0:
        yield from as_sorted(blocks, bounds, asked, threads)


# -- with vectors


def as_written(blocks: Blocks, bounds: Bounds, asked: Mask, threads: int) -> Iterator[Bounded]:
    """Pairs whose names, as written, are of like length."""
    everyone = np.flatnonzero(blocks.has_vector)
    queries = everyone if asked.all() else everyone[asked[everyone]]
    for left, right, cosine in sweep(blocks, bounds, queries, everyone, blocks.plain_lengths, threads):
        once = (left < right) | ((left != right) & ~asked[right])
        kept = once & are_near(blocks.plain_lengths, left, right, bounds.name)
        yield left[kept], right[kept], cosine[kept]


def as_sorted(blocks: Blocks, bounds: Bounds, asked: Mask, threads: int) -> Iterator[Bounded]:
    """Pairs that only come near each other once the small words of one of them are left out."""
    lengths = blocks.ordered_lengths
    everyone = np.flatnonzero(blocks.has_vector)
    everyone = everyone[np.lexsort((lengths[everyone], blocks.types[everyone]))]
    shrinks = lengths != blocks.plain_lengths
    first, then = shrinks & asked, asked & ~shrinks
    for queried, sought in ((first, np.ones_like(shrinks)), (then, shrinks & ~asked)):
        queries, targets = everyone[queried[everyone]], everyone[sought[everyone]]
        for left, right, cosine in sweep(blocks, bounds, queries, targets, lengths, threads):
            once = (left < right) | ((left != right) & ~queried[right])
            kept = once & ~are_near(blocks.plain_lengths, left, right, bounds.name)
            yield left[kept], right[kept], cosine[kept]


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Queries, as places, and the stretch of the targets to multiply them with."""

    queries: Ints
    begin: int
    end: int


def sweep(
    blocks: Blocks, bounds: Bounds, queries: Ints, targets: Ints, lengths: Ints, threads: int
) -> Iterator[Bounded]:
    """Multiply queries with the targets within their band of lengths. Both are sorted by type and length."""
    short = padded(of_places(blocks.short, targets))

    def multiply(span: Span) -> Bounded:
        left, right, most = products(blocks.short[span.queries], short, span.begin, span.end, bounds.product)
        return span.queries[left], targets[right], most

    spans = spans_of(blocks.types, lengths, queries, targets, bounds.name)
    yield from ahead(multiply, spans, threads)


def spans_of(types: Ints, lengths: Ints, queries: Ints, targets: Ints, least_name: float) -> Iterator[Span]:
    """The queries of a type, some at a time. Where all are queries, each meets only those after it."""
    target_types, target_lengths = types[targets], lengths[targets]
    for first, last in stretches(types[queries]):
        kind = types[queries[first]]
        base, beyond = (int(edge) for edge in np.searchsorted(target_types, [kind, kind + 1]))
        for start in range(first, last, ROWS):
            mine = queries[start : min(start + ROWS, last)]
            begin, end = band(target_lengths[base:beyond], lengths[mine], least_name)
            begin = max(base + begin, start) if targets is queries else base + begin
            yield Span(queries=mine, begin=begin, end=base + end)


def ahead(work: Callable[[Given], Made], things: Iterable[Given], threads: int) -> Iterator[Made]:
    """The results in order, a few worked out ahead by other threads."""
    if threads <= 1:
        yield from map(work, things)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Made]] = deque()
        for thing in things:
            waiting.append(pool.submit(work, thing))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def of_places(short: Matrix, places: Ints) -> Matrix:
    """The rows of these places; not copied where they are all rows in their order."""
    is_everything = len(places) == len(short) and bool((places[:-1] < places[1:]).all())
    return short if is_everything else short[places]


def stretches(types: Ints) -> Iterator[tuple[int, int]]:
    """Where each type begins and ends."""
    edges = (np.flatnonzero(np.diff(types)) + 1).tolist()
    if len(types):
        yield from zip([0, *edges], [*edges, len(types)], strict=True)


def band(lengths: Ints, mine: Ints, least_name: float) -> tuple[int, int]:
    """The stretch of lengths, sorted, that come near enough to mine."""
    if least_name <= 0:
        return 0, len(lengths)
    shortest = math.ceil(int(mine.min()) * least_name - MARGIN)
    longest = math.floor(int(mine.max()) / least_name + MARGIN)
    # Whole numbers, or the whole column would be turned into fractions for the search.
    return int(np.searchsorted(lengths, shortest)), int(np.searchsorted(lengths, longest, "right"))


def padded(rows: Matrix) -> Matrix:
    """With so many rows of zeros after the last that every stretch can be cut into whole tiles."""
    return np.concatenate([rows, np.zeros((COLUMNS, rows.shape[1]), np.float32)])


def products(ours: Matrix, short: Matrix, begin: int, end: int, least: float) -> Bounded:
    """(row of ours, row of short, bound of the cosine) wherever the bound reaches what is needed."""
    tiles = tiled(ours)
    room = np.empty(tiles.shape[0] * tiles.shape[2] * COLUMNS, np.float32)
    parts = [
        _in_columns(tiles, short, start, min(start + COLUMNS, end), least, room) for start in range(begin, end, COLUMNS)
    ]
    left, right, most = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else _NOTHING
    real = (left < len(ours)) & (right < end)
    return left[real], right[real], most[real]


def tile_shape(width: int) -> tuple[int, int]:
    """Rows and columns of a tile, powers of two: as large as a small product may be, and no narrower than 16."""
    rows = _power_of_two(SMALL_PRODUCT // (16 * width), MOST_TILE_ROWS)
    return rows, max(16, _power_of_two(SMALL_PRODUCT // (rows * width), MOST_TILE_COLUMNS))


def _power_of_two(at_most: int, limit: int) -> int:
    return min(limit, 1 << max(0, at_most.bit_length() - 1))


def tiled(rows: Matrix) -> Matrix:
    """Rows in tiles, zeros after the last."""
    size, width = tile_shape(rows.shape[1])[0], rows.shape[1]
    tiles = np.zeros((-(-len(rows) // size), 1, size, width), np.float32)
    tiles.reshape(-1, width)[: len(rows)] = rows
    return tiles


def _in_columns(tiles: Matrix, short: Matrix, start: int, stop: int, least: float, room: Matrix) -> Bounded:
    tall, wide = tile_shape(short.shape[1])
    down, across = tiles.shape[0], -(-(stop - start) // wide)
    theirs = short[start : start + across * wide].reshape(1, across, wide, -1).swapaxes(2, 3)
    table = room[: down * across * tall * wide]
    np.matmul(tiles, theirs, out=table.reshape(down, across, tall, wide))
    reaching = np.flatnonzero(table >= least)
    tile, inside = np.divmod(reaching, tall * wide)
    row, column = np.divmod(inside, wide)
    return tile // across * tall + row, start + tile % across * wide + column, table[reaching]


_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def within_reach(blocks: Blocks, bounds: Bounds, left: Ints, right: Ints, cosine: Matrix) -> Candidates:
    """What remains when names and metadata are bounded too."""
    paired = ~in_long_series(blocks, left, right)
    one, other = left[paired], right[paired]
    best = best_name(blocks, one, other), best_metadata(blocks, one, other)
    possible = bounds.in_reach(cosine[paired], *best)
    return one[possible], other[possible]


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
        for place in range(first, last - 1):
            others = np.arange(place + 1, last)
            others = others[asked[others] | asked[place]]
            others = others[~(blocks.has_vector[others] & blocks.has_vector[place])]
            ones = np.full(len(others), place)
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
