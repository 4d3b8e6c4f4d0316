"""Cluster and decide: which duplicates become one by themselves, and which are a question for a person.

Errors of merging come from closure, not from pairs: A is like B, B is like C, and A and C end up as one. So rows merge
only where every pair of them is alike (complete link); a chain is a question (C29). What holds together in a chain
without its weak links merges, and the question is about the rest. A pair with a doubt is a question however high it
scores, and so is a pair between the review mark and the threshold, if nothing else comes as near. Never-merge pairs,
protected rows and names that differ only in digits are neither merged nor asked about.

No row is in two merges or in two questions; the keeper of a merge may be in a question. Nothing depends on the order
of the rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

import numpy as np

from recollect.concepts.rules.certainty import certainties
from recollect.concepts.rules.detection.columns import ConceptColumns, Floats, Mask
from recollect.concepts.rules.detection.detect import THRESHOLD, FoundPairs
from recollect.concepts.rules.detection.keeper import Keep, keeper_rank
from recollect.concepts.rules.detection.pairs import Pairs
from recollect.concepts.rules.evidence import NEARLY_EQUAL, Evidence, PairEvidence
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.similarity import CONFLICT, DIGITS, DOUBTS, NAMESAKES, NUMBERS, Factors, compare, doubts

REVIEW = 0.85
# What the estimate must reach for a merge without asking, and for a question (C38).
PRECISION = 0.995
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """The surest first; `postponed` merges are for the next run."""

    merges: tuple[ConceptGroup, ...]
    questions: tuple[ConceptGroup, ...]
    postponed: tuple[ConceptGroup, ...] = ()

    @property
    def groups(self) -> tuple[ConceptGroup, ...]:
        return self.merges + self.questions


def decide(
    concepts: ConceptColumns,
    found: FoundPairs,
    options: ClusterOptions | None = None,
    apart: Apart | None = None,
    evidence: Evidence | None = None,
) -> Decided:
    """Groups from pairs. `found` should reach down to `options.review`, or nothing in between is asked about.

    With `evidence` it is the estimate that decides, over all pairs that it knows; without, the score of C03 alone.
    """
    known = KnownPairs(concepts, found, options or ClusterOptions(), apart or Apart(), evidence)
    sure = [*merge_groups(known)]
    sure += copies_of_others(known, sure)
    weighed = [asked_if_weighty(known, group) for group in sure if len(group.rows) > 1]
    merges = [group for group in weighed if group.verdict is GroupVerdict.MERGE]
    asked = [group for group in weighed if group.verdict is GroupVerdict.REVIEW]
    return in_order(known, merges, [*asked, *questions(known, merges, asked)])


# -- what is known of the pairs


class KnownPairs:
    """The pairs worth a thought, as links between rows; and the copies that a row stands for."""

    def __init__(
        self,
        concepts: ConceptColumns,
        found: FoundPairs,
        options: ClusterOptions,
        apart: Apart,
        evidence: Evidence | None = None,
    ) -> None:
        self.concepts, self.found, self.options, self.apart = concepts, found, options, apart
        self.evidence = None if evidence is None else evidence.above(options.ask_from, options.review)
        self.pairs = pairs = found.pairs if self.evidence is None else self.evidence.pairs
        self.copies = {int(rows[0]): unprotected(concepts, rows.tolist()) for rows in found.copies}
        self.crowded = frozenset(found.crowded.tolist())
        said = [doubts(concepts.traits(one), concepts.traits(other)) for one, other, _ in pairs]
        self.doubts = with_namesakes(pairs, said if self.evidence is None else reconciled(said, self.evidence.agrees))
        self.certainty = self._certainty()
        # What decides: the estimate where the space was asked, else the score.
        by_score = self.evidence is None or options.precision == 0
        self.strength, self.least = (
            (pairs.score, options.threshold) if by_score else (self.certainty, options.precision)
        )
        self.place = {(one, other): place for place, (one, other, _) in enumerate(pairs) if self._may_meet(place)}
        self.first_of = {copy: first for first, rows in self.copies.items() for copy in rows}
        self.near = neighbours(ends for ends, place in self.place.items() if self._is_clean(place))

    def _certainty(self) -> Floats:
        if self.evidence is None:
            other_numbers = np.array([not {DIGITS, NUMBERS}.isdisjoint(said) for said in self.doubts], np.bool_)
            return certainties(self.pairs, self.concepts.names, other_numbers, self.found.threshold)
        clean = np.array([self.options.ask.isdisjoint(said) for said in self.doubts], np.bool_)
        return self.evidence.estimates(clean, self.options.threshold)

    def _may_meet(self, place: int) -> bool:
        ends = int(self.pairs.left[place]), int(self.pairs.right[place])
        return (
            (self.evidence is not None or self.pairs.score[place] >= self.options.review)
            and DIGITS not in self.doubts[place]
            and not self.concepts.protected[list(ends)].any()
            and not self.apart.forbids(self.concepts, ends)
        )

    def _is_clean(self, place: int) -> bool:
        sure = self.strength[place] >= self.least
        return bool(sure) and self.options.ask.isdisjoint(self.doubts[place])

    def may_be_asked(self, place: int) -> bool:
        """Likely enough; and one name for two things is always worth a question (C33)."""
        if self.evidence is None:
            return bool(self.certainty[place] >= self.options.review)
        return bool(self.certainty[place] >= self.options.ask_from or self.evidence.is_named_alike[place])

    def link(self, one: Row, other: Row) -> PairLink:
        """The link of a known pair, or of two copies."""
        left, right = min(one, other), max(one, other)
        place = self.place.get((left, right))
        if place is None:
            factors = compare(self.concepts.traits(left), self.concepts.traits(right), self.found.weights)
            return PairLink(left=left, right=right, factors=factors, certainty=factors.score)
        factors = replace(self.pairs.factors(self.concepts, place), doubts=self.doubts[place])
        told = None if self.evidence is None else self.evidence.told(place)
        return PairLink(left=left, right=right, factors=factors, certainty=float(self.certainty[place]), evidence=told)

    def links(self, rows: Sequence[Row]) -> list[PairLink]:
        return [self.link(*ends) for ends in combinations(sorted(rows), 2) if ends in self.place]

    def merge(self, rows: Sequence[Row], reason: str) -> ConceptGroup:
        """These rows and their copies become one."""
        copied = [(row, copy) for row in rows for copy in self.copies.get(row, ()) if copy != row]
        kept = self.together([copy for row in rows for copy in self.copies.get(row, (row,))])
        links = [*self.links(rows), *(self.link(*ends) for ends in copied)]
        inside = [link for link in links if link.left in kept and link.right in kept]
        return ConceptGroup(rows=self.ranked(kept), verdict=GroupVerdict.MERGE, reason=reason, links=tuple(inside))

    def together(self, rows: Collection[Row]) -> set[Row]:
        """The rows, less those copies that bear an absorbed name which is kept apart from another's (C21)."""
        if not self.apart.forbids(self.concepts, list(rows)):
            return set(rows)
        kept: list[Row] = []
        for row in self.ranked(rows):
            if not self.apart.forbids(self.concepts, [*kept, row]):
                kept.append(row)
        return set(kept)

    def question(self, rows: Sequence[Row], reason: str) -> ConceptGroup:
        return ConceptGroup(
            rows=self.ranked(rows), verdict=GroupVerdict.REVIEW, reason=reason, links=tuple(self.links(rows))
        )

    def ranked(self, rows: Iterable[Row]) -> tuple[Row, ...]:
        """The keeper first."""
        return tuple(sorted(rows, key=lambda row: keeper_rank(self.concepts, row, self.options.keep)))


def with_namesakes(pairs: Pairs, said: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """A name that several things bear ("Book review", every year) tells nothing: unless all else is equal too, ask."""
    in_conflict = np.array([CONFLICT in doubts for doubts in said], np.bool_)
    namesakes = in_conflict & (pairs.name_plain == 1.0)
    torn = np.union1d(pairs.left[namesakes], pairs.right[namesakes])
    touched = (np.isin(pairs.left, torn) | np.isin(pairs.right, torn)) & (pairs.metadata < 1.0) & ~in_conflict
    return [(*doubts, NAMESAKES) if adds else doubts for doubts, adds in zip(said, touched.tolist(), strict=True)]


def reconciled(said: Sequence[tuple[str, ...]], agrees: Mask) -> list[tuple[str, ...]]:
    """Values that mean the same in this space do not contradict each other, however they are written."""
    return [
        tuple(doubt for doubt in doubts if doubt != CONFLICT) if agree else doubts
        for doubts, agree in zip(said, agrees.tolist(), strict=True)
    ]


def unprotected(concepts: ConceptColumns, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not concepts.protected[row]]


def neighbours(pairs: Iterable[tuple[Row, Row]]) -> dict[Row, set[Row]]:
    near: defaultdict[Row, set[Row]] = defaultdict(set)
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    return dict(near)


# -- merges


def merge_groups(known: KnownPairs) -> Iterator[ConceptGroup]:
    for rows in components(known.near):
        if known.options.linkage is Linkage.KEEPER:
            yield from around_keepers(known, rows)
        else:
            yield from holding_together(known, rows)


def holding_together(known: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """The cliques among rows that hang together: all of them, or those that remain without the weaker links."""
    levels = [known.least + share * (1 - known.least) for share in (0.0, *CLEARER)]
    parts = [list(rows)]
    for level in levels:
        chains = []
        for near in (strong_links(known, part, level) for part in parts):
            for part in components(near):
                if is_clique(near, part) and known.crowded.isdisjoint(part) and may_be_so_many(known, part):
                    yield known.merge(part, told_alike(known, part))
                else:
                    chains.append(part)
        parts = chains


def strong_links(known: KnownPairs, rows: Sequence[Row], level: float) -> dict[Row, set[Row]]:
    inside = set(rows)
    scores = known.strength
    return neighbours(
        (row, other)
        for row in rows
        for other in known.near[row]
        if row < other and other in inside and scores[known.place[row, other]] >= level
    )


def may_be_so_many(known: KnownPairs, rows: Sequence[Row]) -> bool:
    """Errors grow with the group: where an estimate decides, three or more must be nearly equal in every factor."""
    if known.evidence is None or len(rows) == 2:
        return True
    return all(known.pairs.score[known.place[ends]] >= NEARLY_EQUAL for ends in combinations(sorted(rows), 2))


def told_alike(known: KnownPairs, rows: Sequence[Row]) -> str:
    links = known.links(rows)
    lowest = min(link.factors.score for link in links)
    words = f"they score {lowest:.3f}" if len(rows) == 2 else f"each scores at least {lowest:.3f} with every other"
    if known.evidence is not None:
        words += f", {100 * min(link.certainty for link in links):.1f} % sure"
    return f"{words}, and nothing speaks against it"


def components(near: dict[Row, set[Row]]) -> Iterator[list[Row]]:
    """Rows that hang together, whatever is between them."""
    seen: set[Row] = set()
    for start in sorted(near):
        if start in seen:
            continue
        part, waiting = {start}, [start]
        while waiting:
            fresh = near[waiting.pop()] - part
            part |= fresh
            waiting += fresh
        seen |= part
        yield sorted(part)


def is_clique(near: dict[Row, set[Row]], rows: Sequence[Row]) -> bool:
    return all(len(near[row]) == len(rows) - 1 for row in rows)


def around_keepers(known: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """The literal reading: the keeper takes whatever is like it, then the next keeper of those that are left."""
    left = sorted(rows, key=lambda row: keeper_rank(known.concepts, row, known.options.keep))
    while left:
        keeper, *others = left
        taken = [keeper]
        for row in others:
            if row in known.near[keeper] and not known.apart.forbids(known.concepts, [*taken, row]):
                taken.append(row)
        if len(taken) > 1:
            yield known.merge(taken, f"they are like {known.concepts.names[keeper]!r}, which is kept")
        left = [row for row in left if row not in taken]


def copies_of_others(known: KnownPairs, merges: Sequence[ConceptGroup]) -> Iterator[ConceptGroup]:
    """Identical rows that are in no merge yet: one is enough, unless there is a doubt about what they are."""
    taken = {row for group in merges for row in group.rows}
    for first, rows in sorted(known.copies.items()):
        if len(rows) < 2 or not taken.isdisjoint(rows):
            continue
        group = known.merge([first], "they are identical in all that is compared")
        if not group.links:
            continue
        against = [doubt for doubt in group.links[0].factors.doubts if doubt in known.options.ask]
        reason = f"they are identical, but {DOUBTS[against[0]]}" if against else group.reason
        yield replace(group, reason=reason, verdict=GroupVerdict.REVIEW if against else GroupVerdict.MERGE)


def asked_if_weighty(known: KnownPairs, group: ConceptGroup) -> ConceptGroup:
    """A merge that would move much is a question, however sure."""
    rows = list(group.rows)
    links, energy = int(known.concepts.degree[rows].max()), float(known.concepts.energy[rows].max())
    if links >= known.options.ask_from_degree:
        return replace(group, verdict=GroupVerdict.REVIEW, reason=f"{group.reason}; but one of them has {links} links")
    if energy >= known.options.ask_from_energy:
        return replace(
            group, verdict=GroupVerdict.REVIEW, reason=f"{group.reason}; but one has an energy of {energy:.3g}"
        )
    return group


# -- questions


def questions(
    known: KnownPairs, merges: Sequence[ConceptGroup], asked: Sequence[ConceptGroup]
) -> Iterator[ConceptGroup]:
    """Chains first, then the pairs that are likely enough. Of what merges, one row speaks for the keeper."""
    keeper_of = {known.first_of.get(group.keeper, group.keeper): group.keeper for group in merges}
    silent = {row for group in merges for row in group.rows} - keeper_of.keys()
    silent |= {row for group in asked for row in group.rows}
    for rows in components(known.near):
        for question in chain_questions(known, [row for row in rows if row not in silent]):
            silent.update(question.rows)
            yield about_keepers(known, question, keeper_of)
    worth = [ends for ends, place in known.place.items() if known.may_be_asked(place) and silent.isdisjoint(ends)]
    for rows in cliques(known, worth):
        yield about_keepers(known, known.question(rows, why_asked(known, rows)), keeper_of)


def about_keepers(known: KnownPairs, question: ConceptGroup, keeper_of: Mapping[Row, Row]) -> ConceptGroup:
    """The question, asked about what will be kept: of copies, the one that was compared need not be the keeper."""
    links = [
        replace(link, left=keeper_of.get(link.left, link.left), right=keeper_of.get(link.right, link.right))
        for link in question.links
    ]
    rows = known.ranked(keeper_of.get(row, row) for row in question.rows)
    return replace(question, rows=rows, links=tuple(links))


def chain_questions(known: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """A question about a whole chain; piece by piece where it is long or holds what must stay apart."""
    inside = strong_links(known, rows, known.least)
    for part in components(inside):
        crowd = "" if known.crowded.isdisjoint(part) else "one of them is near to very many others, and "
        if len(part) <= LONGEST_CHAIN and not known.apart.forbids(known.concepts, part):
            yield known.question(part, crowd + told_as_chain(known, part))
        else:
            pairs = [(row, other) for row in part for other in inside[row] if row < other]
            for piece in cliques(known, pairs):
                yield known.question(piece, f"{crowd}they are part of a chain of {len(part)}")


def told_as_chain(known: KnownPairs, rows: Sequence[Row]) -> str:
    by_id = sorted(rows, key=lambda row: str(known.concepts.ids[row]))
    gap = next(((a, b) for a, b in combinations(by_id, 2) if b not in known.near[a]), None)
    if gap is None:
        return "they are what is left of a chain"
    one, other = (known.concepts.names[row] for row in gap)
    return f"a chain: {one!r} and {other!r} hang together only through others"


def cliques(known: KnownPairs, pairs: Iterable[tuple[Row, Row]]) -> Iterator[list[Row]]:
    """Disjoint sets of rows all of whose pairs are known, grown from the surest pair on."""
    home: dict[Row, set[Row]] = {}
    for one, other in sorted(pairs, key=lambda ends: sureness(known, ends)):
        ours, theirs = home.get(one, {one}), home.get(other, {other})
        if ours is theirs or not all_pairs_known(known, ours, theirs):
            continue
        joined = ours | theirs
        home.update(dict.fromkeys(joined, joined))
    yield from sorted({id(rows): sorted(rows) for rows in home.values()}.values())


def sureness(known: KnownPairs, ends: tuple[Row, Row]) -> tuple[object, ...]:
    return (-known.certainty[known.place[ends]], *sorted(str(known.concepts.ids[row]) for row in ends))


def all_pairs_known(known: KnownPairs, ours: Collection[Row], theirs: Collection[Row]) -> bool:
    return all((min(a, b), max(a, b)) in known.place for a in ours for b in theirs)


def why_asked(known: KnownPairs, rows: Sequence[Row]) -> str:
    """The first thing that stands between these rows and a merge."""
    weakest = min(known.links(rows), key=lambda link: link.factors.score)
    score, options = weakest.factors.score, known.options
    if known.evidence is not None:
        return why_asked_by_estimate(known, rows)
    if score < options.threshold:
        return f"the score {score:.3f} lies between {options.review:g} and {options.threshold:g}"
    against = [doubt for link in known.links(rows) for doubt in link.factors.doubts if doubt in options.ask]
    said = dict.fromkeys(DOUBTS[doubt] for doubt in against)
    return f"the score is {score:.3f}, but {' and '.join(said) or 'a person decides'}"


def why_asked_by_estimate(known: KnownPairs, rows: Sequence[Row]) -> str:
    """How likely the least likely pair is, and what speaks against it."""
    links = known.links(rows)
    weakest = min(links, key=lambda link: link.certainty)
    against = dict.fromkeys(
        DOUBTS[doubt] for link in links for doubt in link.factors.doubts if doubt in known.options.ask
    )
    said = f"; {' and '.join(against)}" if against else ""
    return f"about {100 * weakest.certainty:.0f} % likely, with a score of {weakest.factors.score:.3f}{said}"


# -- limits


def in_order(known: KnownPairs, merges: Sequence[ConceptGroup], asked: Sequence[ConceptGroup]) -> Decided:
    """The surest first, and no more merges than a run may make."""

    def order(group: ConceptGroup) -> tuple[object, ...]:
        first = (-group.score, -group.certainty) if known.evidence is None else (-group.certainty, -group.score)
        return *first, known.concepts.ids[group.keeper]

    most, ordered = known.options.most_merges, sorted(merges, key=order)
    return Decided(
        merges=tuple(ordered[:most]), postponed=tuple(ordered[most:]), questions=tuple(sorted(asked, key=order))
    )
