"""Nearest neighbours, exactly: every vector with every other, a block of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]

# So many similarities are held at once (16 MB).
BLOCK = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class NearPairs:
    """Rows that are near each other, each pair once (the lower row first), and how near."""

    low: Ints
    high: Ints
    similarity: Vectors


def near_pairs(vectors: Vectors, rows: Ints, *, at_least: float, at_most: int) -> NearPairs:
    """Each of some rows with its nearest others: those at least so similar, and at most so many of them."""
    low, high, similarity = [], [], []
    for block in _blocks(rows, len(vectors)):
        a, b, near = _nearest(vectors, block, at_least, at_most)
        low.append(np.minimum(a, b))
        high.append(np.maximum(a, b))
        similarity.append(near)
    if not low:
        return NearPairs(low=rows[:0], high=rows[:0], similarity=np.zeros(0, np.float32))
    return _once(np.concatenate(low), np.concatenate(high), np.concatenate(similarity), len(vectors))


def _blocks(rows: Ints, width: int) -> Iterator[Ints]:
    height = max(1, BLOCK // max(1, width))
    return (rows[begin : begin + height] for begin in range(0, len(rows), height))


def _nearest(vectors: Vectors, block: Ints, at_least: float, at_most: int) -> tuple[Ints, Ints, Vectors]:
    similarity = vectors[block] @ vectors.T
    similarity[np.arange(len(block)), block] = -np.inf
    row, other = np.nonzero(similarity >= at_least)
    near = similarity[row, other]
    order = np.lexsort((other, -near, row))
    row, other, near = row[order], other[order], near[order]
    # How many better ones of the same row stand before it.
    ahead = np.arange(len(row)) - np.searchsorted(row, row)
    first = ahead < at_most
    return block[row[first]], other[first], near[first]


def _once(low: Ints, high: Ints, similarity: Vectors, count: int) -> NearPairs:
    _, first = np.unique(low * count + high, return_index=True)
    return NearPairs(low=low[first], high=high[first], similarity=similarity[first])
