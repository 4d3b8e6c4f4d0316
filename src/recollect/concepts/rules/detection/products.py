"""Products: short vectors multiplied with those whose names are of like length, wherever the bound is reached.

A *span* is some queries and the stretch of the targets they are multiplied with. Queries and targets are sorted by type
and length, so that the names that are near enough in length lie side by side, and a span is four numbers: the vectors
themselves lie in a table that all spans share.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from recollect.concepts.rules.detection.columns import Ints, Matrix

# Short vectors are multiplied in single precision: what rounding may hide is let through and scored exactly.
MARGIN = 2e-4
# Many small products rather than a large one: the library of linear algebra does small ones on the calling thread, and
# its own threads wait for each other, which costs more than it gains wherever the processor has other work.
SMALL_PRODUCT = 400_000
# Tall and narrow tiles waste least on stretches that are short; where rows are few, they would be mostly empty.
TALL_TILE, LOW_TILE, MOST_TILE_COLUMNS = 256, 64, 128
# A table of so many products stays near the processor.
ROWS, COLUMNS = 256, 2048
# So many products at a time, for what they find may be as many, where everything is near everything.
PRODUCTS_AT_A_TIME = 25_000_000

Bounded = tuple[Ints, Ints, Matrix]  # left, right, and what the cosine may be at most
_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


class Sized(Protocol):
    @property
    def products(self) -> int: ...


Piece = TypeVar("Piece", bound=Sized)


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """From where to where among the queries, and the stretch of the targets to multiply them with."""

    first: int
    last: int
    begin: int
    end: int

    @property
    def products(self) -> int:
        return (self.last - self.first) * (self.end - self.begin)


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """What every span needs: the short vectors of the queries, those of the targets, padded, and the least that a
    product must reach. Where both are the same rows, it is one array: it lies in memory, and travels, once."""

    ours: Matrix
    theirs: Matrix
    least: float


def multiply(table: Table, spans: Sequence[Span]) -> Bounded:
    """Pairs of a query and a target, by their numbers, of some spans."""
    room = np.empty(table_size(spans), np.float32)
    parts = []
    for span in spans:
        rows = table.ours[span.first : span.last]
        left, right, most = products(rows, table.theirs, span.begin, span.end, table.least, room)
        parts.append((span.first + left, right, most))
    return joined(parts)


def joined(parts: Sequence[Bounded]) -> Bounded:
    left, right, most = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else _NOTHING
    return left, right, most


def products(ours: Matrix, theirs: Matrix, begin: int, end: int, least: float, room: Matrix) -> Bounded:
    """(row of ours, row of theirs, bound of the cosine) wherever the bound reaches what is needed."""
    tiles = tiled(ours)
    starts = range(begin, end, COLUMNS)
    parts = [_in_columns(tiles, theirs, start, min(start + COLUMNS, end), least, room) for start in starts]
    left, right, most = joined([part for part in parts if len(part[0])])
    real = (left < len(ours)) & (right < end)
    return left[real], right[real], most[real]


def _in_columns(tiles: Matrix, short: Matrix, start: int, stop: int, least: float, room: Matrix) -> Bounded:
    down, _, tall, width = tiles.shape
    wide = tile_breadth(width, tall)
    across = -(-(stop - start) // wide)
    theirs = short[start : start + across * wide].reshape(1, across, wide, -1).swapaxes(2, 3)
    table = room[: down * across * tall * wide]
    np.matmul(tiles, theirs, out=table.reshape(down, across, tall, wide))
    reaching = np.flatnonzero(table >= least)
    tile, inside = np.divmod(reaching, tall * wide)
    row, column = np.divmod(inside, wide)
    return tile // across * tall + row, start + tile % across * wide + column, table[reaching]


# -- tiles


def table_size(spans: Sequence[Span]) -> int:
    """The largest table that one of the spans takes, whatever the shape of its tiles."""
    rows = max((span.last - span.first for span in spans), default=0)
    columns = min(COLUMNS, max((span.end - span.begin for span in spans), default=0))
    return (rows + TALL_TILE) * (columns + MOST_TILE_COLUMNS)


def tile_height(width: int, rows: int) -> int:
    """Rows of a tile, a power of two: so many that a small product has at least 16 columns."""
    return _power_of_two(SMALL_PRODUCT // (16 * width), TALL_TILE if rows >= TALL_TILE else LOW_TILE)


def tile_breadth(width: int, height: int) -> int:
    """Columns of a tile, a power of two: as many as a small product may have, and no fewer than 16."""
    return max(16, _power_of_two(SMALL_PRODUCT // (height * width), MOST_TILE_COLUMNS))


def _power_of_two(at_most: int, limit: int) -> int:
    return min(limit, 1 << max(0, at_most.bit_length() - 1))


def tiled(rows: Matrix) -> Matrix:
    """Rows in tiles, zeros after the last."""
    width = rows.shape[1]
    size = tile_height(width, len(rows))
    down = -(-len(rows) // size)
    if len(rows) == down * size:
        return rows.reshape(down, 1, size, width)
    tiles = np.zeros((down, 1, size, width), np.float32)
    tiles.reshape(-1, width)[: len(rows)] = rows
    return tiles


def padded(rows: Matrix) -> Matrix:
    """With so many rows of zeros after the last that every stretch can be cut into whole tiles."""
    return np.concatenate([rows, np.zeros((MOST_TILE_COLUMNS, rows.shape[1]), np.float32)])


# -- spans


def gathered(pieces: Iterable[Piece], products: int) -> Iterator[tuple[Piece, ...]]:
    """Pieces, so many together that they come to about as many products."""
    together: list[Piece] = []
    size = 0
    for piece in pieces:
        together.append(piece)
        size += piece.products
        if size >= products:
            yield tuple(together)
            together, size = [], 0
    if together:
        yield tuple(together)


def spans_of(
    types: Ints, lengths: Ints, queries: Ints, targets: Ints, least_name: float, rows: int = ROWS
) -> Iterator[Span]:
    """The queries of a type, some at a time. Where all are queries, each meets only those after it."""
    target_types, target_lengths = types[targets], lengths[targets]
    for first, last in stretches(types[queries]):
        kind = types[queries[first]]
        base, beyond = (int(edge) for edge in np.searchsorted(target_types, [kind, kind + 1]))
        for start in range(first, last, rows):
            mine = queries[start : min(start + rows, last)]
            begin, end = band(target_lengths[base:beyond], lengths[mine], least_name)
            begin = max(base + begin, start) if targets is queries else base + begin
            if begin < base + end:
                yield Span(first=start, last=start + len(mine), begin=begin, end=base + end)


def rows_that_fit(columns: int) -> int:
    """How many rows at a time fill the table where the columns are few."""
    return max(ROWS, ROWS * COLUMNS // max(columns, MOST_TILE_COLUMNS) // TALL_TILE * TALL_TILE)


def stretches(types: Ints) -> Iterator[tuple[int, int]]:
    """Where each type begins and ends."""
    edges = (np.flatnonzero(np.diff(types)) + 1).tolist()
    if len(types):
        yield from zip([0, *edges], [*edges, len(types)], strict=True)


def band(lengths: Ints, mine: Ints, least_name: float) -> tuple[int, int]:
    """The stretch of lengths, sorted, that come near enough to mine."""
    if least_name <= 0:
        return 0, len(lengths)
    # Both are sorted: the shortest of mine is the first.
    shortest = math.ceil(int(mine[0]) * least_name - MARGIN)
    longest = math.floor(int(mine[-1]) / least_name + MARGIN)
    # Whole numbers, or the whole column would be turned into fractions for the search.
    return int(np.searchsorted(lengths, shortest)), int(np.searchsorted(lengths, longest, "right"))
