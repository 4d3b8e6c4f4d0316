"""Words that may be meant by one that occurs nowhere: spelled nearly like it, or beginning with it.

Which keys those share that are spelled nearly alike, and how far they are apart.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping

from rapidfuzz.distance import OSA

# A short word is found by what is left of it without one of its letters, whichever was typed wrongly; a longer one by
# four letters in a row, which two slips seldom spoil altogether.
LONG_WORD = 7
GRAM = 4
MOST_MEANT = 3
MOST_SLIPS = 2
SHORTEST_MISSPELLED = 4
# What a word that is only meant counts for, beside one that is there, by the number of slips.
WORTH = {1: 0.8, 2: 0.6}
# And one that begins with it: who is still typing stands in the midst of a word.
WORTH_BEGUN = 0.8
# Endings that an English stem leaves away: who has typed some letters of one is past the stem, and before the end of
# the word.
ENDINGS = (
    "able", "al", "ally", "ance", "ancy", "ant", "ation", "ational", "ed", "ence", "ency", "ent", "er", "ers", "es",
    "ful", "ible", "ical", "ing", "ion", "ities", "ity", "ive", "ized", "ly", "ment", "ness", "ous",
)  # fmt: skip


def can_be_misspelled(word: str) -> bool:
    """A number or an id is meant as it stands, and of a tiny word anything could be meant."""
    return len(word) >= SHORTEST_MISSPELLED and word.isalpha()


def keys(word: str, salt: int) -> list[int]:
    """What a word of a text is filed under."""
    return _hashed(_grams(word) if len(word) >= LONG_WORD else _shortened(word), salt)


def keys_asked(word: str, salt: int) -> list[int]:
    """Where to look for a word of a question: it may be a letter longer or shorter than what is meant."""
    short = _shortened(word) if len(word) <= LONG_WORD else ()
    long = _grams(word) if len(word) >= LONG_WORD - 1 else ()
    return _hashed({*short, *long}, salt)


def nearly_spelled(word: str, known_words: Collection[str]) -> dict[str, int]:
    """Which of some words may be meant by one that occurs nowhere, and by how many slips: the nearest, at most a few.

    Hardly anybody misses the first letter: one that begins otherwise is meant only where two letters changed places.
    """
    most = MOST_SLIPS if len(word) >= LONG_WORD else 1
    begins = (word[0], word[1::-1])
    near = {other: OSA.distance(word, other, score_cutoff=most) for other in known_words if other.startswith(begins)}
    best = min((slips for slips in near.values() if 0 < slips <= most), default=0)
    return dict(sorted((other, slips) for other, slips in near.items() if slips == best)[:MOST_MEANT]) if best else {}


def begun(word: str, documents: Mapping[str, int]) -> dict[str, float]:
    """Which of some words may be meant by one that ends too early, and what they count for: the most common few."""
    longer = sorted((other for other in documents if other.startswith(word)), key=lambda one: (-documents[one], one))
    return dict.fromkeys(longer[:MOST_MEANT], WORTH_BEGUN)


def finished(word: str) -> set[str]:
    """Words that one may become when the ending is typed that it has begun: "organizati" is on its way to -ation."""
    if not can_be_misspelled(word):
        return set()
    begun_endings = [(ending[:at], ending[at:]) for ending in ENDINGS for at in range(1, len(ending))]
    doubled = {word + "ing"} if word[-1] == word[-2] else set()  # plann|ing
    return doubled | {word + left for typed, left in begun_endings if word.endswith(typed)}


def _shortened(word: str) -> set[str]:
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


def _grams(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + GRAM] for i in range(len(padded) - GRAM + 1)}


def _hashed(parts: Iterable[str], salt: int) -> list[int]:
    return sorted({zlib.crc32(part.encode(), salt) >> 1 for part in parts})
