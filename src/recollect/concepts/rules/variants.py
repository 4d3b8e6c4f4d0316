"""Other ways to write a name that people take for the same: asked about, never merged by themselves (C34, C35).

    spelling    A.I. / AI, data base / database, Zürich / Zuerich / Zurich, Straße / Strasse, Đà Nẵng / Da Nang
    order       learning, deep / deep learning; apple / apples
    initials    ML / Machine Learning; of several that it may stand for, each is less likely
    middle      John F. Kennedy / John Kennedy

Each kind leads to pairs through a key that both names have, so the work grows with the names. How likely a kind is to
be right is a plain guess, for an order of the questions; whatever else is known of the two can only add to it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import combinations

from recollect.concepts.rules.names import SMALL_WORDS, plain

# A key that more names have than this says too little.
MOST_ALIKE = 10
LONGEST_INITIALS = 6


class NameVariant(StrEnum):
    SPELLING = "another spelling"
    ORDER = "another order or number of the words"
    MIDDLE = "a name in the middle"
    INITIALS = "initials"


LIKELY = {NameVariant.SPELLING: 0.8, NameVariant.ORDER: 0.6, NameVariant.MIDDLE: 0.4, NameVariant.INITIALS: 0.4}

Key = tuple[str, ...]

# Initials leave them out, or not: NASA, IoT.
_UNTOLD = SMALL_WORDS | {"and", "in", "to", "on", "und", "der", "die", "de", "la", "du", "et"}
_WORD = re.compile(r"[^\W_]+")
_PERSON = re.compile(r"[^\W\d_a-z][^\W\d_]*\.?")
_TWO_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe", "ß": "ss"})
_ONE_LETTER = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ß": "ss", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "þ": "th"}
)


def variants(names: Sequence[str], types: Sequence[int]) -> dict[tuple[int, int], tuple[NameVariant, float]]:
    """Pairs of places whose names are variants of each other, the likeliest kind of each, and how likely it is."""
    likeliest: dict[tuple[int, int], tuple[NameVariant, float]] = {}
    for kind in NameVariant:
        for left, right, likely in _pairs(kind, names, types):
            ends = min(left, right), max(left, right)
            if likeliest.get(ends, (kind, 0.0))[1] < likely:
                likeliest[ends] = kind, likely
    return likeliest


def _pairs(kind: NameVariant, names: Sequence[str], types: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    bearers: defaultdict[tuple[int, Key], dict[int, str]] = defaultdict(dict)
    for index, name in enumerate(names):
        for key, side in keys_of(kind, name):
            bearers[types[index], key].setdefault(index, side)
    for sides in bearers.values():
        if 1 < len(sides) <= MOST_ALIKE:
            pairs = [ends for ends in combinations(sides, 2) if _fit(kind, *(sides[end] for end in ends))]
            shared = len(pairs) if kind is NameVariant.INITIALS else 1
            yield from ((left, right, LIKELY[kind] / shared) for left, right in pairs)


def _fit(kind: NameVariant, side: str, other: str) -> bool:
    """Initials stand for words, not for other initials; a name in the middle is there or not."""
    return kind in (NameVariant.SPELLING, NameVariant.ORDER) or side != other


def keys_of(kind: NameVariant, name: str) -> set[tuple[Key, str]]:
    """The keys of a name for one kind of variant, each with the side on which the name stands."""
    words = _WORD.findall(plain(name))
    if kind is NameVariant.SPELLING:
        return {((spelling,), "") for spelling in spellings("".join(words))} if words else set()
    if kind is NameVariant.ORDER:
        return {(tuple(sorted(map(singular, _telling(words)))), "")} if words else set()
    if kind is NameVariant.INITIALS:
        return _initials(name, words)
    return _middle(name)


def spellings(word: str) -> set[str]:
    """A word in the letters of ASCII, where it has others: ü as u and as ue."""
    return {word} if word.isascii() else {_bare(word.translate(_ONE_LETTER)), _bare(word.translate(_TWO_LETTERS))}


def _bare(word: str) -> str:
    """Without accents; a letter that no other letters stand for stays."""
    apart = unicodedata.normalize("NFD", word.translate(_ONE_LETTER))
    return unicodedata.normalize("NFC", "".join(sign for sign in apart if not unicodedata.combining(sign)))


def singular(word: str) -> str:
    """A guess, for English: parties is party, boxes is box, apples is apple."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in SMALL_WORDS] or list(words)


def _initials(name: str, words: Sequence[str]) -> set[tuple[Key, str]]:
    letters = "".join(words)
    is_short = 2 <= len(letters) <= LONGEST_INITIALS and letters.isalpha() and len(words) in (1, len(letters))
    if is_short and any(letter.isupper() for letter in name.strip()[1:]):
        return {((letters,), "short")}
    if len(words) < 2 or not all(word.isalpha() for word in words):
        return set()
    telling = [word for word in words if word not in _UNTOLD]
    told = ("".join(word[0] for word in some) for some in (words, telling))
    return {((initials,), "long") for initials in told if 2 <= len(initials) <= LONGEST_INITIALS}


def _middle(name: str) -> set[tuple[Key, str]]:
    """A name of two to four words, each with a capital: its first and last."""
    words = name.replace("_", " ").split()
    if not 2 <= len(words) <= 4 or not all(_PERSON.fullmatch(word) for word in words):
        return set()
    first, last = (plain(word.strip(".")) for word in (words[0], words[-1]))
    return {((first, last), str(len(words)))} if len(first) > 1 and len(last) > 1 else set()
