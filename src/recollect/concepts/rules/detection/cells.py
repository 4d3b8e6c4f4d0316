"""Cells: the space of the vectors cut up around centres, so that most pairs need not even be multiplied.

A row is in the cell of the centre nearest to it. Where two rows lie in different cells the plane half-way between the
centres lies between the rows, and their distances to that plane add up to no more than the distance of the rows. So of
two rows near enough to each other one at least has no more than *half* of that distance to the plane: it is said to
*reach* the other's cell. Each row is compared with those in the cells that it reaches, and no pair is missed.

The distances are taken between vectors shortened as in blocks, which brings rows nearer to each other, never further
apart. How many centres there are, and where, changes what is multiplied; it never changes what is found.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.concepts.rules.detection.blocks import Blocks, project, telling_directions
from recollect.concepts.rules.detection.columns import Floats, Ints, Mask, Matrix
from recollect.ports import Executor

# Longer than the vectors that are multiplied pair by pair: a row meets each centre only once.
DIMENSIONS = 127
ROWS = 1024
ROUNDS = 3
A_CELL_LEARNS_FROM = 20
# Pairs within the types, from which the cells are worth their making (300,000 of one type); and the share of the cells
# that a row may reach.
PAIRS_WORTH_CELLS = 45_000_000_000
SHARE_WORTH_CELLS = 0.2
SAMPLE = 2_000
# What single precision may get wrong in a difference of two products.
ROUNDING = 1e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class Centres:
    """The middle of each cell, and how far from the plane between two cells a row may be that reaches across."""

    middles: Matrix
    reach: Matrix

    def __len__(self) -> int:
        return len(self.middles)

    @classmethod
    def of(cls, middles: Matrix, furthest: float) -> "Centres":
        exact = middles.astype(np.float64)
        squares = np.einsum("ij,ij->i", exact, exact)
        apart = np.sqrt(np.maximum(0.0, squares[:, np.newaxis] + squares - 2.0 * exact @ exact.T))
        return cls(middles=middles, reach=(furthest / 2.0 * apart + ROUNDING).astype(np.float32))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cells:
    """The cell of each place (-1 without a vector), and which places reach a cell: a bit each, eight places a byte.

    `by_cell` are the places in the order of their cells, and `edges` where each cell begins in it.
    """

    own: NDArray[np.int32]
    reached: NDArray[np.uint8]
    by_cell: Ints
    edges: Ints

    def __len__(self) -> int:
        return len(self.reached)

    @classmethod
    def of(cls, own: NDArray[np.int32], reached: NDArray[np.uint8]) -> "Cells":
        order = np.argsort(own, kind="stable")
        edges = np.searchsorted(own[order], np.arange(len(reached) + 1))
        return cls(own=own, reached=reached, by_cell=order, edges=edges)

    def members(self, cell: int) -> Ints:
        """The places in a cell, in their order."""
        return self.by_cell[self.edges[cell] : self.edges[cell + 1]]

    def reaching(self, cell: int) -> Ints:
        """The places that reach a cell, those in it among them."""
        return np.flatnonzero(np.unpackbits(self.reached[cell], count=len(self.own)).view(np.bool_))

    def are_reached(self, places: Ints, cells: NDArray[np.int32]) -> Mask:
        bits = self.reached[cells, places >> 3] >> (7 - (places & 7)).astype(np.uint8)
        reached: Mask = (bits & 1).astype(np.bool_)
        return reached

    def sizes(self, places: Mask) -> Ints:
        """How many of these places are in each cell."""
        return np.bincount(self.own[places & (self.own >= 0)], minlength=len(self))

    def sizes_reaching(self, places: Mask) -> Ints:
        """How many of these places reach each cell."""
        bits = np.packbits(places)
        return np.array([int(np.bitwise_count(row & bits).sum()) for row in self.reached], np.int64)


def useful_cells(blocks: Blocks, least: float, count: int | None, executor: Executor) -> Cells | None:
    """The cells, `count` of them or as many as the rows want; None where they would not pay.

    `least` is what the product of two vectors must reach.
    """
    places = np.flatnonzero(blocks.has_vector)
    number = count or number_worth_making(blocks.types[places])
    if not number or not len(places) or not np.isfinite(least):
        return None
    basis = basis_of(blocks, places)
    step = max(1, len(places) // (number * A_CELL_LEARNS_FROM))
    sample = shortened(blocks, places[::step], basis)
    centres = Centres.of(middles_of(sample, number), furthest_apart(least))
    if not count and share_reached(sample, centres) > SHARE_WORTH_CELLS:
        return None
    return cells_around(centres, blocks, basis, executor)


def number_worth_making(types: Ints) -> int:
    """More cells leave fewer pairs; but small ones take longer to go through than to multiply."""
    sizes = np.bincount(types).astype(np.float64)
    return 2 * math.isqrt(int(sizes.max())) if np.sum(sizes * sizes) / 2 >= PAIRS_WORTH_CELLS else 0


def furthest_apart(least: float) -> float:
    """How far two unit vectors can be apart whose product is this at least."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * least))


def basis_of(blocks: Blocks, places: Ints) -> Matrix | None:
    if blocks.concepts.vectors.shape[1] <= 2 * DIMENSIONS:
        return None
    return telling_directions(blocks.concepts.vectors, blocks.rows[places], DIMENSIONS)


def shortened(blocks: Blocks, places: Ints, basis: Matrix | None) -> Matrix:
    vectors = blocks.vectors(places)
    return vectors if basis is None else project(vectors, basis)


def middles_of(sample: Matrix, count: int) -> Matrix:
    """Spherical k-means, a few rounds: good middles make few rows reach across, none would lose a pair."""
    middles = sample[:: max(1, len(sample) // count)][:count].copy()
    for _ in range(ROUNDS):
        cells = np.concatenate([np.argmax(part @ middles.T, axis=1) for part in in_parts(sample)])
        order = np.argsort(cells, kind="stable")
        used, first = np.unique(cells[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        lengths: Floats = np.linalg.norm(sums, axis=1)
        middles[used[lengths > 0]] = (sums / np.maximum(lengths, ROUNDING)[:, np.newaxis])[lengths > 0]
    return middles


def in_parts(rows: Matrix) -> Iterator[Matrix]:
    return (rows[first : first + ROWS] for first in range(0, len(rows), ROWS))


def share_reached(sample: Matrix, centres: Centres) -> float:
    """What share of the cells a row reaches."""
    rows = sample[:: max(1, len(sample) // SAMPLE)]
    return float(np.mean([np.mean(cells_reached(part, centres)[1]) for part in in_parts(rows)]))


def cells_reached(rows: Matrix, centres: Centres) -> tuple[Ints, Mask]:
    """The cell of each row, and a table of which it reaches."""
    products = rows @ centres.middles.T
    own = np.argmax(products, axis=1)
    nearest = products[np.arange(len(rows)), own]
    return own, nearest[:, np.newaxis] - products <= centres.reach[own]


def cells_around(centres: Centres, blocks: Blocks, basis: Matrix | None, executor: Executor) -> Cells:
    count = len(blocks)
    own = np.full(count, -1, np.int32)
    reached = np.zeros((len(centres), -(-count // 8)), np.uint8)

    def in_a_part(_: None, first: int) -> None:
        places = np.arange(first, min(first + ROWS, count))
        cells, table = cells_reached(shortened(blocks, places, basis), centres)
        has_vector = blocks.has_vector[places]
        own[places[has_vector]] = cells[has_vector]
        bits = np.packbits(table & has_vector[:, np.newaxis], axis=0)
        reached[:, first // 8 : first // 8 + len(bits)] = bits.T

    for _ in executor.map(in_a_part, None, range(0, count, ROWS)):
        pass
    return Cells.of(own, reached)
