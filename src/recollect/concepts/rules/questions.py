"""Which pairs a person is asked about (C36): of a group that may be one, each is asked about once.

With the one that would stay, where the two were compared; else with whichever it is most likely to be one.
"""

from collections.abc import Iterator
from dataclasses import asdict

from recollect.concepts.rules.clusters import ConceptGroup, Decided, PairLink, estimated
from recollect.concepts.rules.concepts import KnownConcepts
from recollect.concepts.rules.similarity import DOUBTS, WEIGHTS
from recollect.concepts.rules.why import steps_of
from recollect.model import PairQuestion


def probability(link: PairLink) -> float:
    """How likely two are one, by which questions are ordered."""
    return link.certainty


def questions_of(concepts: KnownConcepts, decided: Decided, policy: str) -> list[PairQuestion]:
    return [question for group in decided.questions for question in _asked(concepts, group, policy)]


def _asked(concepts: KnownConcepts, group: ConceptGroup, policy: str) -> Iterator[PairQuestion]:
    rank = {row: index for index, row in enumerate(group.rows)}
    best: dict[int, PairLink] = {}
    # The last one stands: those with the keeper come after all others, the likeliest after the less likely.
    for link in sorted(group.links, key=lambda link: (group.keeper in (link.left, link.right), probability(link))):
        best[max(link.left, link.right, key=rank.__getitem__)] = link
    for row in group.absorbed:
        if row in best:
            keep, other = sorted((best[row].left, best[row].right), key=rank.__getitem__)
            yield _question(concepts, group, best[row], keep, other, policy)


def _question(
    concepts: KnownConcepts, group: ConceptGroup, link: PairLink, keep: int, other: int, policy: str
) -> PairQuestion:
    factors = link.factors
    return PairQuestion(
        policy=policy,
        keep=concepts.ids[keep],
        other=concepts.ids[other],
        versions=(concepts.versions[keep], concepts.versions[other]),
        probability=probability(link),
        # A group's reason tells of its least likely pair: one of several is told of by itself.
        reason=group.reason if len(group.rows) == 2 else estimated(link, factors.doubts),
        factors={
            "score": factors.score,
            "steps": [asdict(step) for step in steps_of(factors, WEIGHTS)],
            "doubts": [DOUBTS[doubt] for doubt in factors.doubts],
            "conflicts": list(factors.conflicts),
        },
    )
