"""Many short lists in two arrays, and sets of whole numbers: what the graph rules are built of.

Lists of neighbours, of members, of topic keys: a list a row, all values behind each other, and where each row begins.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# Up to so many different values, a table of flags is quicker than sorting.
TABLE = 1 << 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Lists:
    """Row r holds values[starts[r] : starts[r + 1]]."""

    starts: Ints
    values: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """The values of some rows behind each other, and for each value which of the asked rows it belongs to."""
        places, owner = places_of(self.starts, rows)
        return self.values[places], owner


def listed(rows: Ints, values: Ints, count: int) -> Lists:
    """Lists from (row, value) pairs that are ordered by row already."""
    return Lists(starts=starts_of(rows, count), values=values)


def starts_of(rows: Ints, count: int) -> Ints:
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


def places_of(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Where the values of some rows are, and for each of them which of the asked rows it belongs to."""
    first = starts[rows]
    lengths = starts[rows + 1] - first
    owner = np.repeat(np.arange(len(rows)), lengths)
    ahead = np.cumsum(lengths) - lengths
    return np.arange(len(owner)) + np.repeat(first - ahead, lengths), owner


def distinct(values: Ints, *, below: int) -> Ints:
    """Each value once, ascending. All are at least 0 and under `below`."""
    if below <= TABLE:
        seen = np.zeros(below, dtype=np.bool_)
        seen[values] = True
        return np.flatnonzero(seen)
    ordered = np.sort(values)
    return ordered[begins(ordered)]


def counted(values: Ints, *, below: int) -> tuple[Ints, Ints]:
    """Each value once, ascending, and how often it is there."""
    if below <= TABLE:
        counts = np.bincount(values, minlength=1)
        there = np.flatnonzero(counts)
        return there, counts[there]
    ordered = np.sort(values)
    first = np.flatnonzero(begins(ordered))
    return ordered[first], np.diff(np.append(first, len(ordered)))


def begins(ordered: Ints) -> NDArray[np.bool_]:
    """Where a new value begins in an ordered array."""
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def stretches(costs: Ints, budget: int) -> Iterator[Ints]:
    """0, 1, 2, ... in stretches whose costs stay within a budget; what costs more by itself stands alone."""
    begin = 0
    total = np.cumsum(costs)
    while begin < len(costs):
        spent = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, spent + budget, side="right")))
        yield np.arange(begin, end)
        begin = end
