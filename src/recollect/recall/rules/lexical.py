"""The lexical leg: one tokeniser for texts and questions, and BM25 as an inner product of two sparse vectors.

A text's side is computed once and stored; the question's side is the rarity (IDF) of its words. So exact BM25 is what
the database computes when it multiplies the two (DESIGN 7).
"""

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

K1 = 1.2
B = 0.75
DIMENSIONS = 1_000_000_000

# fmt: off
STOP_WORDS = frozenset([
    "a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "is", "are", "was", "were", "be", "been", "do",
    "does", "did", "i", "you", "he", "she", "it", "we", "they", "my", "your", "his", "her", "its", "our", "their",
    "me", "him", "them", "this", "that", "these", "those", "with", "at", "by", "from", "as", "what", "when", "where",
    "who", "which", "how", "why", "has", "have", "had", "not",
])
# fmt: on

# Scripts that put no space between words: CJK; Thai and Lao, Burmese, Khmer.
_UNSPACED = "぀-ヿ㐀-䶿一-鿿가-힯豈-﫿\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORDS = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_SUFFIXES = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3


def words(text: str) -> list[str]:
    """The words of a text as they are compared: folded, stemmed lightly; without spaces, pairs of characters."""
    found: list[str] = []
    for run in _WORDS.findall(fold(text)):
        if _is_unspaced(run[0]):
            found += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        elif run not in STOP_WORDS:
            found.append(stem(run))
    return found


def fold(text: str) -> str:
    """Without case and accents; Hangul syllables stay whole."""
    text = text.casefold().replace("'s", "").replace("’s", "")
    if text.isascii():  # nothing to take apart, and far quicker
        return text
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in apart if unicodedata.category(c) != "Mn"))


@lru_cache(maxsize=100_000)  # the words of a language come again and again
def stem(word: str) -> str:
    """The word without a common English ending; numbers and short words as they are."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word


def term(word: str, salt: int = 0) -> int:
    """The number of a word, 1 to 1,000,000,000. Each space has a salt, and so numbers of its own."""
    return zlib.crc32(word.encode(), salt) % DIMENSIONS + 1


def terms(text: str, salt: int = 0) -> Counter[int]:
    """How often each word of a text occurs, by its number."""
    return Counter(term(word, salt) for word in words(text))


def document_weights(counts: Mapping[int, int], mean_length: float) -> dict[int, float]:
    """A text's side of BM25: how much each of its words says about it, given its length."""
    length = sum(counts.values())
    damping = K1 * (1 - B + B * length / max(mean_length, 1.0))
    return {number: count * (K1 + 1) / (count + damping) for number, count in counts.items()}


def rarity(documents: int, containing: int) -> float:
    """IDF: how much a word tells, from the number of texts and of those that hold it."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def most_possible(rarities: Iterable[float]) -> float:
    """The score of a text that is all about these words: what a BM25 score is measured against."""
    return (K1 + 1) * sum(rarities)


def _is_unspaced(character: str) -> bool:
    return not character.isascii() and bool(re.match(f"[{_UNSPACED}]", character))
