"""Bags: the words of each row, or the character 3-grams of its name, as unit vectors weighted by how rare each is.

A word that every record bears ("proceedings") says nothing, one that two bear says nearly all. How rare is counted
within a type, since only rows of one type are compared. A bag is three columns, sorted by row and then by token.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from recollect.concepts.rules.detection.columns import Floats, Ints, Mask
from recollect.concepts.rules.names import plain

SLICE = 200_000

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bag:
    """Tokens by row: `tokens` and `weights` of row r lie from `starts[r]` to `starts[r + 1]`; `bearers` by token."""

    starts: Ints
    tokens: Ints
    weights: Floats
    bearers: Ints

    @property
    def rows(self) -> Ints:
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def cosines(self, left: Ints, right: Ints) -> Floats:
        """The cosine of each pair of rows; 0 where one of them is empty."""
        keys = self.rows * len(self.bearers) + self.tokens
        parts = [
            self._cosines(keys, left[first : first + SLICE], right[first : first + SLICE])
            for first in range(0, len(left), SLICE)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _cosines(self, keys: Ints, left: Ints, right: Ints) -> Floats:
        if not len(keys):
            return np.zeros(len(left))
        sizes = np.diff(self.starts)[left]
        owners = np.repeat(np.arange(len(left)), sizes)
        places = np.arange(len(owners)) + np.repeat(self.starts[left] - (np.cumsum(sizes) - sizes), sizes)
        sought = right[owners] * len(self.bearers) + self.tokens[places]
        positions = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        shared = np.flatnonzero(keys[positions] == sought)
        products = self.weights[places[shared]] * self.weights[positions[shared]]
        return np.bincount(owners[shared], products, len(left)).clip(0.0, 1.0)


def words_of(text: str) -> list[str]:
    return _WORD.findall(plain(text))


def of_words(documents: Sequence[Sequence[str]], types: Ints) -> Bag:
    """Bags of the words of some documents."""
    numbers: dict[str, int] = {}
    sizes = np.fromiter(map(len, documents), np.int64, len(documents))
    words = chain.from_iterable(documents)
    tokens = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int64, int(sizes.sum()))
    return _weighted(np.repeat(np.arange(len(documents)), sizes), tokens, types)


def of_grams(texts: Iterable[str], types: Ints) -> Bag:
    """Bags of the character 3-grams of some texts, word by word, its edges being characters too."""
    spaced = [f" {'  '.join(words_of(text))} " for text in texts]
    sizes = np.fromiter(map(len, spaced), np.int64, len(spaced))
    letters = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    rows = np.repeat(np.arange(len(spaced)), sizes)
    if len(letters) < 3:
        return _weighted(np.zeros(0, np.int64), np.zeros(0, np.int64), types)
    first, middle, last = letters[:-2], letters[1:-1], letters[2:]
    whole: Mask = (middle != ord(" ")) & (rows[:-2] == rows[2:])
    grams = ((first << 42) | (middle << 21) | last)[whole]
    _, tokens = np.unique(grams, return_inverse=True)
    return _weighted(rows[:-2][whole], tokens.astype(np.int64), types)


def _weighted(rows: Ints, tokens: Ints, types: Ints) -> Bag:
    """Unit vectors: each token once a row, weighted by how often it is there and how few of its type bear it."""
    width = int(tokens.max()) + 1 if len(tokens) else 1
    occurrences, times = np.unique(rows * width + tokens, return_counts=True)
    rows, tokens = np.divmod(occurrences, width)
    _, tokens = np.unique(types[rows] * width + tokens, return_inverse=True)
    bearers = np.bincount(tokens, minlength=1)
    population = np.bincount(types, minlength=1)[types[rows]]
    weights = (1.0 + np.log(times)) * (1.0 + np.log((1.0 + population) / (1.0 + bearers[tokens])))
    lengths = np.sqrt(np.bincount(rows, weights**2, len(types)))
    order = np.lexsort((tokens, rows))
    return Bag(
        starts=np.searchsorted(rows[order], np.arange(len(types) + 1)),
        tokens=tokens[order].astype(np.int64),
        weights=(weights / np.maximum(lengths[rows], 1e-12))[order],
        bearers=bearers,
    )
