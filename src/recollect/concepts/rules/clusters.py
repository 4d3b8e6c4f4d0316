"""Cluster and decide: which duplicates become one by themselves, and which are a question for a person.

Errors of merging come from closure, not from pairs: A is like B, B is like C, and A and C end up as one. So rows merge
only where every pair of them is alike (complete link); a chain is a question (C29). What holds together in a chain
without its weak links merges, and the question is about the rest. A pair with a doubt is a question however high it
scores, and so is a pair between the review mark and the threshold, if nothing else comes as near. Never-merge pairs,
protected rows and names that differ only in digits are neither merged nor asked about.

No row is in two merges or in two questions; the keeper of a merge may be in a question. Nothing depends on the order
of the rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from recollect.concepts.rules.detection.columns import ConceptColumns
from recollect.concepts.rules.detection.detect import FoundPairs
from recollect.concepts.rules.detection.keeper import keeper_rank
from recollect.concepts.rules.evidence import NEARLY_EQUAL, Evidence
from recollect.concepts.rules.known_pairs import (
    ASK_FROM,
    ASK_FROM_DEGREE,
    ASK_FROM_ENERGY,
    CLEARER,
    LONGEST_CHAIN,
    MOST_MERGES,
    PRECISION,
    REVIEW,
    ClusterOptions,
    ConceptGroup,
    GroupVerdict,
    KnownPairs,
    Linkage,
    PairLink,
    Row,
    neighbours,
    unprotected,
)
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.similarity import (
    DOUBTS,
)
from recollect.wording import chance, listed

__all__ = [
    "ASK_FROM",
    "ASK_FROM_DEGREE",
    "ASK_FROM_ENERGY",
    "MOST_MERGES",
    "PRECISION",
    "REVIEW",
    "ClusterOptions",
    "ConceptGroup",
    "Decided",
    "GroupVerdict",
    "KnownPairs",
    "Linkage",
    "PairLink",
    "decide",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """The surest first; `postponed` merges are for the next run. Where the work was bounded (C37): the pairs that were
    `left_out`, and the concepts that nothing rare leads to, `unreached` but by the score of C03."""

    merges: tuple[ConceptGroup, ...]
    questions: tuple[ConceptGroup, ...]
    postponed: tuple[ConceptGroup, ...] = ()
    left_out: int = 0
    unreached: int = 0

    @property
    def groups(self) -> tuple[ConceptGroup, ...]:
        return self.merges + self.questions


def decide(
    concepts: ConceptColumns,
    detected: FoundPairs,
    options: ClusterOptions | None = None,
    apart: Apart | None = None,
    evidence: Evidence | None = None,
) -> Decided:
    """Groups from pairs. `detected` should reach down to `options.review`, or nothing in between is asked about.

    With `evidence` it is the estimate that decides, over all pairs that it knows; without, the score of C03 alone.
    """
    known_pairs = KnownPairs(concepts, detected, options or ClusterOptions(), apart or Apart(), evidence)
    sure = [*merge_groups(known_pairs)]
    sure += copies_of_others(known_pairs, sure)
    weighed = [asked_if_weighty(known_pairs, group) for group in sure if len(group.rows) > 1]
    merges = [group for group in weighed if group.verdict is GroupVerdict.MERGE]
    asked = [group for group in weighed if group.verdict is GroupVerdict.REVIEW]
    return in_order(known_pairs, merges, [*asked, *questions(known_pairs, merges, asked)])


# -- merges


def merge_groups(known_pairs: KnownPairs) -> Iterator[ConceptGroup]:
    for rows in components(known_pairs.near):
        if known_pairs.options.linkage is Linkage.KEEPER:
            yield from around_keepers(known_pairs, rows)
        else:
            yield from holding_together(known_pairs, rows)


def holding_together(known_pairs: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """The cliques among rows that hang together: all of them, or those that remain without the weaker links."""
    levels = [known_pairs.least + share * (1 - known_pairs.least) for share in (0.0, *CLEARER)]
    parts = [list(rows)]
    for level in levels:
        chains = []
        for near in (strong_links(known_pairs, part, level) for part in parts):
            for part in components(near):
                if is_clique(near, part) and known_pairs.crowded.isdisjoint(part) and may_be_so_many(known_pairs, part):
                    yield known_pairs.merge(part, told_alike(known_pairs, part))
                else:
                    chains.append(part)
        parts = chains


def strong_links(known_pairs: KnownPairs, rows: Sequence[Row], level: float) -> dict[Row, set[Row]]:
    inside = set(rows)
    scores = known_pairs.strength
    return neighbours(
        (row, other)
        for row in rows
        for other in known_pairs.near[row]
        if row < other and other in inside and scores[known_pairs.index_of[row, other]] >= level
    )


def may_be_so_many(known_pairs: KnownPairs, rows: Sequence[Row]) -> bool:
    """Errors grow with the group: where an estimate decides, three or more must be nearly equal in every factor."""
    if known_pairs.evidence is None or len(rows) == 2:
        return True
    return all(
        known_pairs.pairs.score[known_pairs.index_of[ends]] >= NEARLY_EQUAL for ends in combinations(sorted(rows), 2)
    )


def told_alike(known_pairs: KnownPairs, rows: Sequence[Row]) -> str:
    links = known_pairs.links(rows)
    lowest = min(link.factors.score for link in links)
    words = f"score {lowest:.3f}" if len(rows) == 2 else f"every pair scores at least {lowest:.3f}"
    if known_pairs.evidence is not None:
        words += f", {chance(min(link.certainty for link in links))} sure"
    return f"{words}, nothing speaks against it"


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


def around_keepers(known_pairs: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """The literal reading: the keeper takes whatever is like it, then the next keeper of those that are left."""
    left = sorted(rows, key=lambda row: keeper_rank(known_pairs.concepts, row, known_pairs.options.keep))
    while left:
        keeper, *others = left
        taken = [keeper]
        for row in others:
            if row in known_pairs.near[keeper] and not known_pairs.apart.forbids(known_pairs.concepts, [*taken, row]):
                taken.append(row)
        if len(taken) > 1:
            yield known_pairs.merge(taken, f"they are like {known_pairs.concepts.names[keeper]!r}, which is kept")
        left = [row for row in left if row not in taken]


def copies_of_others(known_pairs: KnownPairs, merges: Sequence[ConceptGroup]) -> Iterator[ConceptGroup]:
    """Identical rows that are in no merge yet: one is enough, unless there is a doubt about what they are."""
    taken = {row for group in merges for row in group.rows}
    for first, rows in sorted(known_pairs.copies.items()):
        if len(rows) < 2 or not taken.isdisjoint(rows):
            continue
        group = known_pairs.merge([first], "they are identical in all that is compared")
        if not group.links:
            continue
        against = [doubt for doubt in group.links[0].factors.doubts if doubt in known_pairs.options.ask]
        reason = f"they are identical, but {DOUBTS[against[0]]}" if against else group.reason
        yield replace(group, reason=reason, verdict=GroupVerdict.REVIEW if against else GroupVerdict.MERGE)


def asked_if_weighty(known_pairs: KnownPairs, group: ConceptGroup) -> ConceptGroup:
    """A merge that would move much is a question, however sure."""
    rows = list(group.rows)
    links, energy = int(known_pairs.concepts.degree[rows].max()), float(known_pairs.concepts.energy[rows].max())
    if links >= known_pairs.options.ask_from_degree:
        return replace(group, verdict=GroupVerdict.REVIEW, reason=f"{group.reason}; but one of them has {links} links")
    if energy >= known_pairs.options.ask_from_energy:
        return replace(
            group, verdict=GroupVerdict.REVIEW, reason=f"{group.reason}; but one has an energy of {energy:.3g}"
        )
    return group


# -- questions


def questions(
    known_pairs: KnownPairs, merges: Sequence[ConceptGroup], asked: Sequence[ConceptGroup]
) -> Iterator[ConceptGroup]:
    """Chains first, then the pairs that are likely enough. Of what merges, one row speaks for the keeper."""
    keeper_of = {known_pairs.first_of.get(group.keeper, group.keeper): group.keeper for group in merges}
    silent = {row for group in merges for row in group.rows} - keeper_of.keys()
    silent |= {row for group in asked for row in group.rows}
    for crowd in known_pairs.detected.crowds:
        question = crowd_question(known_pairs, [row for row in crowd.tolist() if row not in silent])
        silent.update(crowd.tolist())
        if question is not None:
            yield about_keepers(known_pairs, question, keeper_of)
    for rows in components(known_pairs.near):
        for question in chain_questions(known_pairs, [row for row in rows if row not in silent]):
            silent.update(question.rows)
            yield about_keepers(known_pairs, question, keeper_of)
    worth = [
        ends
        for ends, index in known_pairs.index_of.items()
        if known_pairs.may_be_asked(index) and silent.isdisjoint(ends)
    ]
    for rows in cliques(known_pairs, worth):
        yield about_keepers(known_pairs, known_pairs.question(rows, why_asked(known_pairs, rows)), keeper_of)


def about_keepers(known_pairs: KnownPairs, question: ConceptGroup, keeper_of: Mapping[Row, Row]) -> ConceptGroup:
    """The question, asked about what will be kept: of copies, the one that was compared need not be the keeper."""
    links = [
        replace(link, left=keeper_of.get(link.left, link.left), right=keeper_of.get(link.right, link.right))
        for link in question.links
    ]
    rows = known_pairs.ranked(keeper_of.get(row, row) for row in question.rows)
    return replace(question, rows=rows, links=tuple(links))


def crowd_question(known_pairs: KnownPairs, rows: Sequence[Row]) -> ConceptGroup | None:
    """Very many of one name that differ: one question, with a reason that says where they were not compared."""
    free = unprotected(known_pairs.concepts, rows)
    if len(free) < 2:
        return None
    bound = "" if known_pairs.crowded.isdisjoint(free) else ", too many to compare each with each"
    group = known_pairs.crowd_question(free, f"{len(free):,} are named {known_pairs.concepts.names[free[0]]!r}{bound}")
    return group if group.links else None


def chain_questions(known_pairs: KnownPairs, rows: Sequence[Row]) -> Iterator[ConceptGroup]:
    """A question about a whole chain; piece by piece where it is long or holds what must stay apart."""
    inside = strong_links(known_pairs, rows, known_pairs.least)
    for part in components(inside):
        crowd = "" if known_pairs.crowded.isdisjoint(part) else "one of them is near to very many others, and "
        if len(part) <= LONGEST_CHAIN and not known_pairs.apart.forbids(known_pairs.concepts, part):
            yield known_pairs.question(part, crowd + told_as_chain(known_pairs, part))
        else:
            pairs = [(row, other) for row in part for other in inside[row] if row < other]
            for piece in cliques(known_pairs, pairs):
                yield known_pairs.question(piece, f"{crowd}they are part of a chain of {len(part)}")


def told_as_chain(known_pairs: KnownPairs, rows: Sequence[Row]) -> str:
    by_id = sorted(rows, key=lambda row: str(known_pairs.concepts.ids[row]))
    gap = next(((a, b) for a, b in combinations(by_id, 2) if b not in known_pairs.near[a]), None)
    if gap is None:
        return "they are what is left of a chain"
    left, right = (known_pairs.concepts.names[row] for row in gap)
    return f"a chain: {left!r} and {right!r} hang together only through others"


def cliques(known_pairs: KnownPairs, pairs: Iterable[tuple[Row, Row]]) -> Iterator[list[Row]]:
    """Disjoint sets of rows all of whose pairs are known, grown from the surest pair on."""
    home: dict[Row, set[Row]] = {}
    for row, other in sorted(pairs, key=lambda ends: sureness(known_pairs, ends)):
        ours, theirs = home.get(row, {row}), home.get(other, {other})
        if ours is theirs or not all_pairs_known(known_pairs, ours, theirs):
            continue
        joined = ours | theirs
        home.update(dict.fromkeys(joined, joined))
    yield from sorted({id(rows): sorted(rows) for rows in home.values()}.values())


def sureness(known_pairs: KnownPairs, ends: tuple[Row, Row]) -> tuple[object, ...]:
    return (
        -known_pairs.certainty[known_pairs.index_of[ends]],
        *sorted(str(known_pairs.concepts.ids[row]) for row in ends),
    )


def all_pairs_known(known_pairs: KnownPairs, ours: Collection[Row], theirs: Collection[Row]) -> bool:
    return all((min(a, b), max(a, b)) in known_pairs.index_of for a in ours for b in theirs)


def why_asked(known_pairs: KnownPairs, rows: Sequence[Row]) -> str:
    """The first thing that stands between these rows and a merge."""
    weakest = min(known_pairs.links(rows), key=lambda link: link.factors.score)
    score, options = weakest.factors.score, known_pairs.options
    if known_pairs.evidence is not None:
        return why_asked_by_estimate(known_pairs, rows)
    if score < options.threshold:
        return f"the score {score:.3f} lies between {options.review:g} and {options.threshold:g}"
    against = [doubt for link in known_pairs.links(rows) for doubt in link.factors.doubts if doubt in options.ask]
    phrases = dict.fromkeys(DOUBTS[doubt] for doubt in against)
    return f"the score is {score:.3f}, but {listed(phrases) if phrases else 'a person decides'}"


def why_asked_by_estimate(known_pairs: KnownPairs, rows: Sequence[Row]) -> str:
    """How likely the least likely pair is, and what speaks against it."""
    links = known_pairs.links(rows)
    weakest = min(links, key=lambda link: link.certainty)
    return estimated(
        weakest, (doubt for link in links for doubt in link.factors.doubts if doubt in known_pairs.options.ask)
    )


def estimated(link: PairLink, doubts: Iterable[str]) -> str:
    against = dict.fromkeys(DOUBTS[doubt] for doubt in doubts)
    but = f"; {listed(against)}" if against else ""
    return f"about {chance(link.certainty)} likely, with a score of {link.factors.score:.3f}{but}"


# -- limits


def in_order(known_pairs: KnownPairs, merges: Sequence[ConceptGroup], asked: Sequence[ConceptGroup]) -> Decided:
    """The surest first, and no more merges than a run may make."""

    def order(group: ConceptGroup) -> tuple[object, ...]:
        first = (-group.score, -group.certainty) if known_pairs.evidence is None else (-group.certainty, -group.score)
        return *first, known_pairs.concepts.ids[group.keeper]

    most, ordered = known_pairs.options.most_merges, sorted(merges, key=order)
    return Decided(
        merges=tuple(ordered[:most]), postponed=tuple(ordered[most:]), questions=tuple(sorted(asked, key=order))
    )
