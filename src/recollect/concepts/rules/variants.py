"""Other ways to write a name that people take for the same: asked about, never merged by themselves (C34, C35).

    spelling    A.I. / AI, data base / database, Zürich / Zuerich / Zurich, Straße / Strasse, Đà Nẵng / Da Nang;
                colour / color, organisation / organization, centre / center
    order       learning, deep / deep learning; apple / apples
    initials    ML / Machine Learning, JS / JavaScript, k8s / Kubernetes; of several that it may stand for, each is less
                likely
    middle      John F. Kennedy / John Kennedy, Bob Smith / Robert Smith

Each kind leads to pairs through a key that both names have, so the work grows with the names. How likely a kind is to
be right is a plain guess, for an order of the questions; whatever else is known of the two can only add to it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import combinations

from recollect.concepts.rules.names import SMALL_WORDS, plain

# A key that more names have than this says too little.
MOST_ALIKE = 10
LONGEST_INITIALS = 6


class NameVariant(StrEnum):
    SPELLING = "another spelling"
    ORDER = "another order or number of the words"
    MIDDLE = "a name in the middle, or a short form of the first"
    INITIALS = "initials"


LIKELY = {NameVariant.SPELLING: 0.8, NameVariant.ORDER: 0.6, NameVariant.MIDDLE: 0.4, NameVariant.INITIALS: 0.4}

Key = tuple[str, ...]

# What English first names are called for short: the name, then its short forms.
_FIRST_NAMES = """
    alexander alex sandy; andrew andy drew; anthony tony; benjamin ben benny; catherine cathy; charles charlie chuck;
    christopher chris kit; daniel dan danny; david dave; deborah debbie; donald don; edward ed eddie ted;
    elizabeth beth betty liz lizzie; frederick fred freddie; gregory greg; henry hank harry; james jim jimmy jamie;
    jeffrey jeff; jennifer jen jenny; john jack johnny; joseph joe joey; katherine kate katie kathy; kenneth ken;
    lawrence larry; margaret maggie meg peggy; matthew matt; michael mike mick; nicholas nick; patrick pat paddy;
    peter pete; philip phil; rebecca becky; richard dick rick ricky; robert bob bobby rob robbie; ronald ron;
    samuel sam sammy; stephen steve; susan sue susie; theodore theo; thomas tom tommy; timothy tim; victoria vicky;
    william bill billy will; zachary zach
"""
SHORT_NAMES = {short: full for full, *shorts in map(str.split, _FIRST_NAMES.split(";")) for short in shorts}

# Initials leave them out, or not: NASA, IoT.
_UNTOLD = SMALL_WORDS | {"and", "in", "to", "on", "und", "der", "die", "de", "la", "du", "et"}
_WORD = re.compile(r"[^\W_]+")
# k8s: the letters between are only counted.
_LETTERS_LEFT_OUT = re.compile(r"[a-z]\d{1,2}[a-z]")
_HUMPS = re.compile(r"[A-Z](?=[a-z])")
_PERSON = re.compile(r"[^\W\d_a-z][^\W\d_]*\.?")
_TWO_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe", "ß": "ss"})
_ONE_LETTER = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ß": "ss", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "þ": "th"}
)

# Only what stands behind three letters or more: four is not for. The letter before re tells centre from more.
_BRITISH = [
    (re.compile(pattern), other)
    for pattern, other in (
        (r"(?<=[a-z]{3})our(?=(s|ed|ing|ite|ites|able|al|less|ful|hood)?$)", "or"),
        (r"(?<=[a-z]{3})is(?=(e|es|ed|ing|er|ers|ation|ations)$)", "iz"),
        (r"(?<=[a-z]{3})ys(?=(e|es|ed|ing|er|ers)$)", "yz"),
        (r"(?<=[a-z]{2}[bct])re(?=s?$)", "er"),
        (r"(?<=[a-z]{3})ogue(?=s?$)", "og"),
        (r"(?<=[a-z]{3})ence(?=s?$)", "ense"),
        (r"(?<=[a-z]{3})ll(?=(ed|ing|er|ers)$)", "l"),
        (r"(?<=[a-z]{5})mme(?=s?$)", "m"),
        (r"(?<=[a-z]{2})(ae|oe)(?=[a-z]{3})", "e"),
        (r"^licence(?=s?$)", "license"),
        (r"^grey(?=s?$)", "gray"),
        (r"^aluminium$", "aluminum"),
    )
]


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
        both = {"".join(words), "".join(map(american, words))} if words else ()
        return {((spelling,), "") for written in both for spelling in spellings(written)}
    if kind is NameVariant.ORDER:
        return {(tuple(sorted(map(singular, _telling(words)))), "")} if words else set()
    if kind is NameVariant.INITIALS:
        return _initials(name, words)
    return _middle(name)


def spellings(word: str) -> set[str]:
    """A word in the letters of ASCII, where it has others: ü as u and as ue."""
    return {word} if word.isascii() else {_bare(word.translate(_ONE_LETTER)), _bare(word.translate(_TWO_LETTERS))}


@lru_cache(maxsize=100_000)
def american(word: str) -> str:
    """A word of Britain as it is written in America; a guess, by its ending."""
    for ending, other in _BRITISH:
        word = ending.sub(other, word)
    return word


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
    if len(words) == 1:
        return _short_of_one_word(name.strip(), words[0])
    return _short_of_words(name, words)


def _short_of_one_word(name: str, word: str) -> set[tuple[Key, str]]:
    """JS, or k8s; or a word that has such a form: by its capitals, or by how many letters are left out."""
    if _LETTERS_LEFT_OUT.fullmatch(word):
        return {((word,), "short")}
    capitals = "".join(_HUMPS.findall(name)).lower()
    short_forms = {capitals} if len(capitals) > 1 and len(word) >= 3 * len(capitals) else set()
    if len(word) > LONGEST_INITIALS and word.isalpha():
        short_forms.add(f"{word[0]}{len(word) - 2}{word[-1]}")
    return {((short,), "long") for short in short_forms} or _short_of_words(name, [word])


def _short_of_words(name: str, words: Sequence[str]) -> set[tuple[Key, str]]:
    letters = "".join(words)
    is_short = 2 <= len(letters) <= LONGEST_INITIALS and letters.isalpha() and len(words) in (1, len(letters))
    if is_short and any(letter.isupper() for letter in name.strip()[1:]):
        return {((letters,), "short")}
    if len(words) < 2 or not all(word.isalpha() for word in words):
        return set()
    telling = [word for word in words if word not in _UNTOLD]
    shortened = ("".join(word[0] for word in chosen) for chosen in (words, telling))
    return {((initials,), "long") for initials in shortened if 2 <= len(initials) <= LONGEST_INITIALS}


def _middle(name: str) -> set[tuple[Key, str]]:
    """A name of two to four words, each with a capital: its first and last."""
    words = name.replace("_", " ").split()
    if not 2 <= len(words) <= 4 or not all(_PERSON.fullmatch(word) for word in words):
        return set()
    first, last = (plain(word.strip(".")) for word in (words[0], words[-1]))
    side = f"{first} {len(words)}"
    return {((SHORT_NAMES.get(first, first), last), side)} if len(first) > 1 and len(last) > 1 else set()
