"""Cases that say the same: which go into which.

In the order of preference each case looks at those after it that may go. The first takes in whatever is more similar to
it than the threshold and, besides, to everything it has taken in already (complete link): a chain in which the ends
differ is never joined. What was taken in looks for nothing itself, so each case goes at most once. What is near and
says something else is not taken in but asked about, each case once, with the first that it is near to.

Exact: a block of at most 100 rows against all others as one float32 product, whatever comes near the threshold computed
again from the stored numbers in float64. Only the half of the products behind the diagonal is computed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

ROWS = 100
# What float32 may be off by at most; whatever is nearer to the threshold is computed again.
MARGIN = 1e-4


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseGroup:
    """A case that stays, those that go into it, and how similar each is to it; places in the order of preference."""

    keeper: int
    members: tuple[int, ...]
    similarities: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """The groups, and pairs (keeper, case) that are similar but stay apart because a third does not fit.

    `doubtful` are pairs, with their similarity, that are similar and do not agree.
    """

    groups: Sequence[CaseGroup]
    chains: Sequence[tuple[int, int]]
    doubtful: Sequence[tuple[int, int, float]] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """Which rows may be joined: those of the same code, and of them those that do not `differ`."""

    codes: Ints
    differ: Callable[[int, int], bool]

    def with_row(self, row: int, others: Ints) -> Flags:
        agree: Flags = self.codes[others] == self.codes[row]
        for index in np.flatnonzero(agree):
            agree[index] = not self.differ(row, int(others[index]))
        return agree


def duplicates(
    vectors: NDArray[np.floating],
    may_go: Flags,
    *,
    above: float,
    apart: Collection[tuple[int, int]] = (),
    agreement: Agreement | None = None,
    rows: int = ROWS,
) -> Grouping:
    """Group rows that are in the order of preference; `may_go` says which can be taken in.

    `apart` are pairs (the lower place first) that are not joined, however similar; `agreement` tells which others are
    not joined but asked about. Zero vectors are like nothing.
    """
    return _TwinSearch(vectors, may_go, above, frozenset(apart), agreement, rows).run()


def fitting(
    grouping: Grouping, vectors: NDArray[np.floating], before: Mapping[int, NDArray[np.floating]], *, above: float
) -> Grouping:
    """The groups without what does not fit all that its keeper, or it itself, took in before (the rows of `before`):
    else the ends of a chain, kept apart by one run, would be joined by the next."""
    groups, chains = [], list(grouping.chains)
    for group in grouping.groups:
        whole, members = _Whole(vectors[group.keeper], before.get(group.keeper)), dict[int, float]()
        for member, similarity in zip(group.members, group.similarities, strict=True):
            if whole.takes_in(_Whole(vectors[member], before.get(member)), above):
                members[member] = similarity
            else:
                chains.append((group.keeper, member))
        if members:
            groups.append(CaseGroup(keeper=group.keeper, members=tuple(members), similarities=tuple(members.values())))
    return Grouping(groups=groups, chains=chains, doubtful=grouping.doubtful)


class _Whole:
    """A case with all it has taken in: what it is now, and what came to it before."""

    def __init__(self, now: NDArray[np.floating], before: NDArray[np.floating] | None) -> None:
        self.now = now[None].astype(np.float64)
        self.before = self.now[:0] if before is None else before.astype(np.float64)

    def takes_in(self, other: "_Whole", above: float) -> bool:
        """Those that are here now were compared already."""
        all_of_other = np.vstack((other.now, other.before))
        if not (_all_above(self.before, all_of_other, above) and _all_above(self.now, other.before, above)):
            return False
        self.now, self.before = np.vstack((self.now, other.now)), np.vstack((self.before, other.before))
        return True


def _all_above(vectors: Numbers, others: Numbers, above: float) -> bool:
    lengths = np.sqrt(np.outer(np.einsum("ij,ij->i", vectors, vectors), np.einsum("ij,ij->i", others, others)))
    cosines = np.divide(vectors @ others.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return bool((cosines > above).all())


class _TwinSearch:
    def __init__(
        self,
        vectors: NDArray[np.floating],
        may_go: Flags,
        above: float,
        apart: frozenset[tuple[int, int]],
        agreement: Agreement | None,
        rows: int,
    ) -> None:
        self.stored, self.above, self.apart, self.rows = vectors, above, apart, rows
        self.agreement, self.asked = agreement, np.zeros(len(vectors), dtype=np.bool_)
        self.doubtful: list[tuple[int, int, float]] = []
        self.unit = unit_rows(vectors)
        # Only these can be found; where that is all of them, nothing is copied.
        self.columns = np.flatnonzero(may_go)
        self.across = self.unit if len(self.columns) == len(self.unit) else self.unit[self.columns]
        self.free = may_go.copy()
        self.gone = np.zeros(len(vectors), dtype=np.bool_)
        self.groups: list[CaseGroup] = []
        self.chains: list[tuple[int, int]] = []

    def run(self) -> Grouping:
        for block in self._blocks():
            # The block's own rows come first among the columns: what the first of them takes in, the others see.
            first = int(np.searchsorted(self.columns, block[0] + 1))
            near = self.unit[block] @ self.across[first:].T > self.above - MARGIN
            self._forget_itself(near, block, first)
            for index in np.flatnonzero(near.any(axis=1)):
                self._look(int(block[index]), self.columns[first:][near[index]])
        left = [pair for pair in self.doubtful if not self.gone[pair[1]]]
        return Grouping(groups=self.groups, chains=self.chains, doubtful=left)

    def _forget_itself(self, near: Flags, block: Ints, first: int) -> None:
        """Every row is like itself: that is not worth a look."""
        own = np.searchsorted(self.columns, block)
        there = np.flatnonzero((own >= first) & (self.columns[np.minimum(own, len(self.columns) - 1)] == block))
        near[there, own[there] - first] = False

    def _blocks(self) -> Iterator[Ints]:
        """The next rows that were not taken in, at most so many, as long as there is something behind them."""
        begin, last = 0, int(self.columns[-1]) if len(self.columns) else 0
        while begin < last:
            stretch = np.arange(begin, min(begin + 4 * self.rows, last))
            block = stretch[~self.gone[stretch]][: self.rows]
            begin = int(block[-1] if len(block) else stretch[-1]) + 1
            if len(block):
                yield block

    def _look(self, keeper: int, near: Ints) -> None:
        if self.gone[keeper]:
            return
        near = self._agreeing(keeper, near[(near > keeper) & self.free[near]])
        exact = similarities(self.stored, keeper, near)
        duplicate = (exact > self.above) & self._may_meet(keeper, near)
        members, exact = self._complete(keeper, near[duplicate], exact[duplicate])
        if len(members):
            self.gone[members], self.free[members] = True, False
            self.groups.append(
                CaseGroup(keeper=keeper, members=tuple(members.tolist()), similarities=tuple(exact.tolist()))
            )

    def _agreeing(self, keeper: int, near: Ints) -> Ints:
        """Those that say the same; the others are asked about, unless they were before."""
        if self.agreement is None:
            return near
        agree = self.agreement.with_row(keeper, near)
        doubtful = near[~agree & ~self.asked[near]]
        exact = similarities(self.stored, keeper, doubtful)
        for index in np.flatnonzero((exact > self.above) & self._may_meet(keeper, doubtful)):
            self.asked[doubtful[index]] = True
            self.doubtful.append((keeper, int(doubtful[index]), float(exact[index])))
        return near[agree]

    def _complete(self, keeper: int, near: Ints, exact: Numbers) -> tuple[Ints, Numbers]:
        """Of those near a keeper, in their order, the ones that are near each other too."""
        taken: list[int] = []
        for begin in range(0, len(near), self.rows):
            rows = near[begin : begin + self.rows]
            with_taken = self._all_near(rows, np.array(taken, dtype=np.int64))
            among = self._near(rows, rows)
            fresh: list[int] = []
            for index in np.flatnonzero(with_taken):
                if among[index, fresh].all():
                    fresh.append(int(index))
            taken += rows[fresh].tolist()
        self.chains += [(keeper, row) for row in np.setdiff1d(near, taken).tolist()]
        is_taken = np.isin(near, taken)
        return near[is_taken], exact[is_taken]

    def _all_near(self, rows: Ints, others: Ints) -> Flags:
        if not len(others):
            return np.ones(len(rows), dtype=np.bool_)
        return np.asarray(self._near(rows, others).all(axis=1), dtype=np.bool_)

    def _near(self, rows: Ints, others: Ints) -> Flags:
        """Which of some are duplicates of which others."""
        product = self.unit[rows] @ self.unit[others].T
        near: Flags = product > self.above + MARGIN
        for row, column in zip(*np.nonzero(np.abs(product - self.above) <= MARGIN), strict=True):
            near[row, column] = similarities(self.stored, int(rows[row]), others[column : column + 1])[0] > self.above
        for row, number in enumerate(rows.tolist()) if self.apart else ():
            near[row] &= self._may_meet(number, others)
        return near

    def _may_meet(self, row: int, others: Ints) -> Flags:
        if not self.apart:
            return np.ones(len(others), dtype=np.bool_)
        return np.array([(min(row, other), max(row, other)) not in self.apart for other in others.tolist()], dtype=bool)


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Each row with length 1, as float32; a zero row, or one that is no number, stays zero and is like nothing."""
    rows = vectors.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    usable = np.isfinite(lengths) & (lengths > 0)
    rows[~usable] = 0
    rows /= np.where(usable, lengths, 1)[:, None].astype(np.float32)
    return rows


def similarities(vectors: NDArray[np.floating], row: int, others: Ints) -> Numbers:
    """The cosines of a row with others, from the stored numbers in float64; 0 with a zero vector."""
    a, b = vectors[row].astype(np.float64), vectors[others].astype(np.float64)
    lengths = np.sqrt((a @ a) * np.einsum("ij,ij->i", b, b))
    cosine: Numbers = np.divide(b @ a, lengths, out=np.zeros(len(b)), where=lengths > 0)
    return cosine
