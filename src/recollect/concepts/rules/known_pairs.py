"""What is known of the pairs before they are grouped (rules/clusters): how likely each is one, what speaks against it,
and which may not meet at all. Where the space was asked (rules/evidence) the estimate decides, else the score of C03.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

import numpy as np

from recollect.concepts.rules.certainty import certainties
from recollect.concepts.rules.detection.columns import ConceptColumns, Floats, Mask
from recollect.concepts.rules.detection.detect import THRESHOLD, FoundPairs
from recollect.concepts.rules.detection.keeper import Keep, keeper_rank
from recollect.concepts.rules.detection.pairs import Pairs
from recollect.concepts.rules.evidence import Evidence, PairEvidence
from recollect.concepts.rules.names import plain
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.similarity import (
    BARE,
    CONFLICT,
    DIGITS,
    DOUBTS,
    NAMESAKES,
    NUMBERS,
    SIGNS,
    Factors,
    compare,
    doubts,
)

REVIEW = 0.85
# What the estimate must reach for a merge without asking, and for a question (C38).
PRECISION = 0.995
# A bare name beside the one concept described under it.
MEANT = 0.997
ASK_FROM = 0.2
MOST_MERGES = 1000
# A person is asked before something this well connected, or this active, becomes part of something else.
ASK_FROM_DEGREE = 50
ASK_FROM_ENERGY = 4.0
# A chain of more rows than this is asked about piece by piece.
LONGEST_CHAIN = 20
# Where a chain is looked at again without its weak links: so far from the threshold to 1.
CLEARER = (0.4, 0.8)

Row = int


class GroupVerdict(StrEnum):
    MERGE = "merge"
    REVIEW = "review"


class Linkage(StrEnum):
    COMPLETE = "complete"
    KEEPER = "keeper"  # the literal reading: to be like the one that is kept is enough


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOptions:
    """How duplicates are decided upon. `ask` names the doubts that make a question of a pair."""

    threshold: float = THRESHOLD
    review: float = REVIEW
    precision: float = PRECISION
    ask_from: float = ASK_FROM
    linkage: Linkage = Linkage.COMPLETE
    keep: Keep = Keep.OLDER
    ask: frozenset[str] = frozenset(DOUBTS)
    most_merges: int = MOST_MERGES
    ask_from_degree: int = ASK_FROM_DEGREE
    ask_from_energy: float = ASK_FROM_ENERGY


@dataclass(frozen=True, kw_only=True, slots=True)
class PairLink:
    """Two rows and what they have in common. `evidence`: what the space teaches of them, where it was asked."""

    left: Row
    right: Row
    factors: Factors
    certainty: float
    evidence: PairEvidence | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptGroup:
    """Rows that are, or may be, one thing; the keeper first."""

    rows: tuple[Row, ...]
    verdict: GroupVerdict
    reason: str
    links: tuple[PairLink, ...]

    @property
    def keeper(self) -> Row:
        return self.rows[0]

    @property
    def absorbed(self) -> tuple[Row, ...]:
        return self.rows[1:]

    @property
    def score(self) -> float:
        """That of the weakest link."""
        return min(link.factors.score for link in self.links)

    @property
    def certainty(self) -> float:
        return min(link.certainty for link in self.links)


class KnownPairs:
    """The pairs worth a thought, as links between rows; and the copies that a row stands for."""

    def __init__(
        self,
        concepts: ConceptColumns,
        detected: FoundPairs,
        options: ClusterOptions,
        apart: Apart,
        evidence: Evidence | None = None,
    ) -> None:
        self.concepts, self.detected, self.options, self.apart = concepts, detected, options, apart
        self.evidence = None if evidence is None else evidence.above(options.ask_from, options.review)
        self.pairs = pairs = detected.pairs if self.evidence is None else self.evidence.pairs
        self.copies = {int(rows[0]): unprotected(concepts, rows.tolist()) for rows in detected.copies}
        self.crowded = frozenset(detected.crowded.tolist())
        all_doubts = [doubts(concepts.traits(row), concepts.traits(other)) for row, other, _ in pairs]
        self.doubts = with_namesakes(
            pairs, all_doubts if self.evidence is None else reconciled(all_doubts, self.evidence.agrees)
        )
        self.meant = self._meant_by_name()
        self.certainty = self._certainty()
        # What decides: the estimate where the space was asked, else the score.
        by_score = self.evidence is None or options.precision == 0
        self.strength, self.least = (
            (pairs.score, options.threshold) if by_score else (self.certainty, options.precision)
        )
        self.index_of = {(row, other): index for index, (row, other, _) in enumerate(pairs) if self._may_meet(index)}
        self.first_of = {copy: first for first, rows in self.copies.items() for copy in rows}
        self.near = neighbours(ends for ends, index in self.index_of.items() if self._is_clean(index))

    def _certainty(self) -> Floats:
        if self.evidence is None:
            other_numbers = np.array([not {DIGITS, NUMBERS}.isdisjoint(doubts) for doubts in self.doubts], np.bool_)
            return certainties(self.pairs, self.concepts.names, other_numbers, self.detected.threshold)
        clean = np.array([self.options.ask.isdisjoint(doubts) for doubts in self.doubts], np.bool_)
        estimates = self.evidence.estimates(clean, self.options.threshold)
        return np.where(self.meant, np.maximum(estimates, MEANT), estimates)

    def _meant_by_name(self) -> Mask:
        """Pairs of a bare name and the only one of its type that is described under it: it is that one (C33)."""
        if self.evidence is None:
            return np.zeros(len(self.pairs), np.bool_)
        types, names, alike_in_name = self.concepts.types, self.concepts.names, self.evidence.is_named_alike
        bare = np.array([self.concepts.is_bare(row) for row in range(len(self.concepts))], np.bool_)
        described = Counter((types[row], plain(names[row])) for row in np.flatnonzero(~bare).tolist())
        return np.array(
            [
                alike
                and doubts == (BARE,)
                and bare[row] != bare[other]
                and described[types[row], plain(names[row])] == 1
                for (row, other, _), doubts, alike in zip(self.pairs, self.doubts, alike_in_name, strict=True)
            ],
            np.bool_,
        )

    def _may_meet(self, index: int) -> bool:
        ends = int(self.pairs.left[index]), int(self.pairs.right[index])
        return (
            (self.evidence is not None or self.pairs.score[index] >= self.options.review)
            and {DIGITS, SIGNS}.isdisjoint(self.doubts[index])  # one of a series, or A and A-: others (C34)
            and not self.concepts.protected[list(ends)].any()
            and not self.apart.forbids(self.concepts, ends)
        )

    def _is_clean(self, index: int) -> bool:
        sure = self.strength[index] >= self.least
        return bool(sure) and (self.options.ask.isdisjoint(self.doubts[index]) or bool(self.meant[index]))

    def may_be_asked(self, index: int) -> bool:
        """Likely enough; and one name for two things is always worth a question (C33)."""
        if self.evidence is None:
            return bool(self.certainty[index] >= self.options.review)
        return bool(self.certainty[index] >= self.options.ask_from or self.evidence.is_named_alike[index])

    def link(self, row: Row, other: Row) -> PairLink:
        """The link of a known pair, or of two copies."""
        left, right = min(row, other), max(row, other)
        index = self.index_of.get((left, right))
        if index is None:
            factors = compare(self.concepts.traits(left), self.concepts.traits(right), self.detected.weights)
            return PairLink(left=left, right=right, factors=factors, certainty=factors.score)
        factors = replace(self.pairs.factors(self.concepts, index), doubts=self.doubts[index])
        evidence = None if self.evidence is None else self.evidence.told(index)
        return PairLink(
            left=left, right=right, factors=factors, certainty=float(self.certainty[index]), evidence=evidence
        )

    def links(self, rows: Sequence[Row]) -> list[PairLink]:
        return [self.link(*ends) for ends in combinations(sorted(rows), 2) if ends in self.index_of]

    def merge(self, rows: Sequence[Row], reason: str) -> ConceptGroup:
        """These rows and their copies become one."""
        copied = [(row, copy) for row in rows for copy in self.copies.get(row, ()) if copy != row]
        group = self.together([copy for row in rows for copy in self.copies.get(row, (row,))])
        links = [*self.links(rows), *(self.link(*ends) for ends in copied)]
        inside = [link for link in links if link.left in group and link.right in group]
        return ConceptGroup(rows=self.ranked(group), verdict=GroupVerdict.MERGE, reason=reason, links=tuple(inside))

    def together(self, rows: Collection[Row]) -> set[Row]:
        """The rows, less those copies that bear an absorbed name which is kept apart from another's (C21)."""
        if not self.apart.forbids(self.concepts, list(rows)):
            return set(rows)
        allowed: list[Row] = []
        for row in self.ranked(rows):
            if not self.apart.forbids(self.concepts, [*allowed, row]):
                allowed.append(row)
        return set(allowed)

    def question(self, rows: Sequence[Row], reason: str) -> ConceptGroup:
        return ConceptGroup(
            rows=self.ranked(rows), verdict=GroupVerdict.REVIEW, reason=reason, links=tuple(self.links(rows))
        )

    def crowd_question(self, rows: Sequence[Row], reason: str) -> ConceptGroup:
        """Very many of one name, each beside the one that would stay; less those that are kept apart from it."""
        keeper, *others = self.ranked(rows)
        free = [row for row in others if not self.apart.forbids(self.concepts, [keeper, row])]
        links = tuple(self.link(keeper, row) for row in free)
        return ConceptGroup(rows=(keeper, *free), verdict=GroupVerdict.REVIEW, reason=reason, links=links)

    def ranked(self, rows: Iterable[Row]) -> tuple[Row, ...]:
        """The keeper first; what is described stays rather than a bare name."""

        def rank(row: Row) -> tuple[object, ...]:
            return self.concepts.is_bare(row), *keeper_rank(self.concepts, row, self.options.keep)

        return tuple(sorted(rows, key=rank))


def with_namesakes(pairs: Pairs, all_doubts: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """A name that several things bear ("Book review", every year) tells nothing: unless all else is equal too, ask."""
    in_conflict = np.array([CONFLICT in doubts for doubts in all_doubts], np.bool_)
    namesakes = in_conflict & (pairs.name_plain == 1.0)
    torn = np.union1d(pairs.left[namesakes], pairs.right[namesakes])
    touched = (np.isin(pairs.left, torn) | np.isin(pairs.right, torn)) & (pairs.metadata < 1.0) & ~in_conflict
    return [(*doubts, NAMESAKES) if adds else doubts for doubts, adds in zip(all_doubts, touched.tolist(), strict=True)]


def reconciled(all_doubts: Sequence[tuple[str, ...]], agrees: Mask) -> list[tuple[str, ...]]:
    """Values that mean the same in this space do not contradict each other, however they are written."""
    return [
        tuple(doubt for doubt in doubts if doubt != CONFLICT) if agree else doubts
        for doubts, agree in zip(all_doubts, agrees.tolist(), strict=True)
    ]


def unprotected(concepts: ConceptColumns, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not concepts.protected[row]]


def neighbours(pairs: Iterable[tuple[Row, Row]]) -> dict[Row, set[Row]]:
    near: defaultdict[Row, set[Row]] = defaultdict(set)
    for row, other in pairs:
        near[row].add(other)
        near[other].add(row)
    return dict(near)
