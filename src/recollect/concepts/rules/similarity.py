"""How alike two concepts are: three factors, kept for every pair (C03-C05).

    score  =  0.7 cosine  +  0.2 name  +  0.1 metadata

The name counts in the better of two forms: as written, and with its words sorted and the small ones left out, so that
"substrate for consciousness" meets "consciousness substrate" while "consciousness" stays apart from "consciousness
engine". Beside the score stand the doubts that forbid merging without asking (DOUBTS): other numbers, other words,
other capitals, metadata or texts that contradict each other, nothing but a name to go by.

`compare` is the reference, one pair at a time; rules/detection computes the same for millions of pairs. Both round
a score to six places, so that 0.95 is 0.95 on either path.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from recollect.concepts.rules.names import Name, name_of
from recollect.concepts.rules.statements import are_opposed, are_turned, denials, numbers, words

Vector = NDArray[np.float32]

PLACES = 6
# What a merge itself writes is no sign that two things are alike.
NOT_COMPARED = frozenset(["merge_history", "aliases"])

# Words and numbers of a value; 24.10 and 129,99 stay whole.
_WORDS = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class FactorWeights:
    """What each factor counts for; they sum to 1."""

    cosine: float = 0.7
    name: float = 0.2
    metadata: float = 0.1

    @property
    def without_cosine(self) -> float:
        """What remains to be shared out where an embedding is missing (C04)."""
        return self.name + self.metadata


WEIGHTS = FactorWeights()


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What of a concept is compared. `has_text`: it is described, so that its vector says more than its name.

    `text` is what describes it, where it is at hand: a vector hardly sees a number or a "not" (C31).
    """

    name: str
    vector: Vector | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    has_text: bool = False
    text: str | None = None

    @property
    def is_bare(self) -> bool:
        """Nothing but a name is known of it."""
        return not self.has_text and not (self.metadata and statements(self.metadata))


@dataclass(frozen=True, kw_only=True, slots=True)
class Factors:
    """The score of a pair, laid open. `cosine` is None where one side has no embedding."""

    score: float
    cosine: float | None
    name_plain: float
    name_ordered: float
    metadata: float
    same_name: bool
    doubts: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def name(self) -> float:
        return max(self.name_plain, self.name_ordered)


# Why a pair, however alike, is not merged without asking: what the mark means, for people.
DIGITS = "digits"
NUMBERS = "numbers"
WORDS = "words"
SIGNS = "signs"
CAPITALS = "capitals"
CONFLICT = "conflict"
NO_EMBEDDING = "no embedding"
BARE = "bare"
NAMELESS = "nameless"
NAMESAKES = "namesakes"  # takes more than the pair to see: concepts/rules/clusters adds it
TEXT_NUMBERS = "text numbers"
DENIAL = "denial"
OPPOSITES = "opposites"
ORDER = "order"
DOUBTS = {
    DIGITS: "the names differ only in digits",
    NUMBERS: "the numbers in the names differ",
    WORDS: "the names are not made of the same words",
    SIGNS: "the names differ in a sign",
    CAPITALS: "they differ in capital letters, which can make a different word",
    CONFLICT: "a metadata field has different values",
    NO_EMBEDDING: "there is no embedding yet, so only the names were compared",
    BARE: "one of them is only a name, without a text",
    NAMELESS: "they have no names, only similar texts",
    NAMESAKES: "another concept of the same name means something else, so the name alone does not tell",
    TEXT_NUMBERS: "the numbers in the texts differ",
    DENIAL: "one text says “not” where the other does not",
    OPPOSITES: "one text says the opposite of the other",
    ORDER: "the texts use the same words in a different order",
}
# The same of two cases, whose queries are sentences (`statements`): what makes a question of the pair (E34).
ANSWER = "answer"
CATEGORY = "category"
CASE_DOUBTS = {
    ANSWER: "their answers differ",
    CATEGORY: "they are in different categories",
    NUMBERS: "the numbers in them differ",
    DENIAL: "one says “not” where the other does not",
    OPPOSITES: "one says the opposite of the other",
    ORDER: "they use the same words in a different order",
}


# -- names


def likeness(left: str, right: str) -> float:
    """1 - edit distance / longer length; two empty names are alike (C05)."""
    longer = max(len(left), len(right))
    return 1.0 - Levenshtein.distance(left, right) / longer if longer else 1.0


def name_doubts(left: Name, right: Name) -> list[str]:
    """What in two names speaks against taking them for one without asking."""
    if left.given == right.given:
        return []
    against = []
    if hold_other_numbers(left, right):
        is_series = left.letters == right.letters and left.round_numbers != right.round_numbers
        against.append(DIGITS if is_series and left.plain != right.plain else NUMBERS)
    if left.words != right.words:
        against.append(SIGNS if left.unsigned == right.unsigned else WORDS)
    if left.capitals != right.capitals:
        against.append(CAPITALS)
    return against


@lru_cache(maxsize=65_536)
def text_doubts(left: str, right: str) -> tuple[str, ...]:
    """What in two texts says that they cannot both be meant: other numbers, a denial, an opposite, a direction."""
    if left == right:
        return ()
    ours, theirs = words(left), words(right)
    differing = {
        TEXT_NUMBERS: numbers(left) != numbers(right),
        DENIAL: denials(left) != denials(right),
        OPPOSITES: are_opposed(frozenset(ours), frozenset(theirs)),
        ORDER: are_turned(ours, theirs),
    }
    return tuple(doubt for doubt, differs in differing.items() if differs)


def hold_other_numbers(left: Name, right: Name) -> bool:
    """Other digits, another sign, another unit; where only capitals differ they make no unit (100 aud, 100 AUD)."""
    if left.plain == right.plain:
        return left.small_numbers != right.small_numbers
    return left.numbers != right.numbers


# -- metadata


def statements(metadata: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Metadata as (key, value) pairs; each element of a list is a pair of its own; what is empty says nothing."""
    return frozenset(
        (key, said)
        for key, value in metadata.items()
        if key not in NOT_COMPARED
        for element in (value if isinstance(value, list | tuple) else [value])
        if (said := folded(element))
    )


def folded(value: Any) -> str:
    """A value as it is compared: case, punctuation and spacing aside ("1999." is "1999"); numbers as they are."""
    if value is None:
        return ""
    return _folded_text(value) if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


@lru_cache(maxsize=65_536)
def _folded_text(text: str) -> str:
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return text
    return " ".join(_WORDS.findall(unicodedata.normalize("NFC", text.casefold()))) or text


def overlap(left: frozenset[tuple[str, str]], right: frozenset[tuple[str, str]]) -> float:
    """Jaccard of the (key, value) pairs; two without metadata are alike (C03)."""
    together = len(left | right)
    return len(left & right) / together if together else 1.0


def conflicts(left: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys whose values contradict each other. Lists only add to each other; to say more is no contradiction."""
    shared = sorted(key for key in left.keys() & right.keys() if key not in NOT_COMPARED)
    return tuple(key for key in shared if contradict(left[key], right[key]))


def contradict(left: Any, right: Any) -> bool:
    """Whether neither value is covered by the other: "SIGMOD Record" agrees with "ACM SIGMOD Record"."""
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return False
    return _say_different(folded(left), folded(right))


@lru_cache(maxsize=65_536)
def _say_different(left: str, right: str) -> bool:
    ours, theirs = left.split(), right.split()
    return not covers(ours, theirs) and not covers(theirs, ours)


def covers(whole: Collection[str], part: Collection[str]) -> bool:
    """Whether every word of the part is in the whole, in full or as an initial: "R. Schapire" agrees with "Robert"."""
    return all(
        word in whole or any(is_initial(word, other) or is_initial(other, word) for other in whole) for word in part
    )


def is_initial(letter: str, word: str) -> bool:
    return len(letter) == 1 and letter.isalpha() and word.startswith(letter)


# -- the score


def cosine(left: Vector | None, right: Vector | None) -> float | None:
    """0 to 1: opposite is no less alike than unrelated. None where a vector is missing, or of another model."""
    if left is None or right is None or left.shape != right.shape:
        return None
    return min(1.0, max(0.0, float(np.dot(left.astype(np.float64), right.astype(np.float64)))))


def total(cosine: float | None, name: float, metadata: float, same_name: bool, weights: FactorWeights) -> float:
    """The weighted sum; without embeddings the other weights are stretched, and only an equal name counts (C04)."""
    if cosine is not None:
        return round(weights.cosine * cosine + weights.name * name + weights.metadata * metadata, PLACES)
    if not same_name:
        return 0.0
    return round((weights.name * name + weights.metadata * metadata) / weights.without_cosine, PLACES)


def doubts(left: Traits, right: Traits) -> tuple[str, ...]:
    """Everything that speaks against merging the two without asking, whatever they score."""
    against = name_doubts(name_of(left.name), name_of(right.name))
    if left.metadata and right.metadata and conflicts(left.metadata, right.metadata):
        against.append(CONFLICT)
    if left.text and right.text:
        against.extend(text_doubts(left.text, right.text))
    if left.vector is None or right.vector is None or left.vector.shape != right.vector.shape:
        against.append(NO_EMBEDDING)
    if not left.name.strip() and not right.name.strip():
        against.append(NAMELESS)
    elif left.is_bare or right.is_bare:
        against.append(BARE)
    return tuple(against)


def compare(left: Traits, right: Traits, weights: FactorWeights = WEIGHTS) -> Factors:
    """All there is to say about how alike two concepts are. Vectors are unit vectors."""
    ours, theirs = name_of(left.name), name_of(right.name)
    name_plain, name_ordered = likeness(ours.plain, theirs.plain), likeness(ours.ordered, theirs.ordered)
    same_name = ours.plain == theirs.plain != ""
    meaning = cosine(left.vector, right.vector)
    metadata = overlap(statements(left.metadata), statements(right.metadata))
    return Factors(
        score=total(meaning, max(name_plain, name_ordered), metadata, same_name, weights),
        cosine=meaning,
        name_plain=name_plain,
        name_ordered=name_ordered,
        metadata=metadata,
        same_name=same_name,
        doubts=doubts(left, right),
        conflicts=conflicts(left.metadata, right.metadata),
    )
