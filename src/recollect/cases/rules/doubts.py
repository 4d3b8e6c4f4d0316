"""Whether two cases whose queries are near may become one without asking (E34).

They agree where the answers are the same text (but for case, spacing and the signs that join or end words), the
categories are the same, and the queries hold the same numbers with sign and unit, deny equally often, name no opposites
and have their words in the same order. Anything else is a question. The answers must be the same and not merely
alike: what a search returns after a merge is one of the two, and the other is no longer found.

Most of it is compared as one value a case (`marks`), so that ten thousand error codes with nearly one vector are told
apart without looking at every pair.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from recollect.cases.rules.cases import CaseText
from recollect.concepts.rules.names import Name
from recollect.concepts.rules.similarity import ANSWER, CASE_DOUBTS, CATEGORY, DENIAL, NUMBERS, OPPOSITES, ORDER
from recollect.concepts.rules.statements import are_opposed, are_turned, denials, numbers, words

ALL = tuple(CASE_DOUBTS)
SHOWN = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Stance:
    """What a case says, as far as two cases are compared by it; `shown` is how its query begins."""

    shown: str
    answer: bytes
    category: str | None
    numbers: tuple[str, ...]
    denials: int
    words: tuple[str, ...]

    def marks(self, ask_about: Collection[str]) -> tuple[object, ...]:
        """What must be equal in both, of what is asked about."""
        values = {ANSWER: self.answer, CATEGORY: self.category, NUMBERS: self.numbers, DENIAL: self.denials}
        return tuple(value for doubt, value in values.items() if doubt in ask_about)


def stance(case: CaseText) -> Stance:
    return Stance(
        shown=case.query if len(case.query) <= SHOWN else case.query[: SHOWN - 3] + "...",
        answer=_same_answer(case.answer),
        category=case.category,
        numbers=numbers(case.query),
        denials=denials(case.query),
        words=words(case.query),
    )


def _same_answer(answer: str) -> bytes:
    """Equal in the same answer; numbers beside it, since a sign and a decimal point are among the signs left aside."""
    return hashlib.blake2b(repr((Name(given=answer).words, numbers(answer))).encode(), digest_size=16).digest()


def doubts(case: Stance, other: Stance, ask_about: Collection[str] = ALL) -> list[str]:
    """Everything that speaks against merging the two without asking."""
    differing = {
        ANSWER: case.answer != other.answer,
        CATEGORY: case.category != other.category,
        NUMBERS: case.numbers != other.numbers,
        DENIAL: case.denials != other.denials,
        OPPOSITES: are_opposed(frozenset(case.words), frozenset(other.words)),
        ORDER: are_turned(case.words, other.words),
    }
    return [doubt for doubt, differs in differing.items() if differs and doubt in ask_about]
