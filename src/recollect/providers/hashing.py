"""The embedder without a model: words and their letter triples hashed into a fixed number of places.

Texts that share words come out similar and nothing else does. Deterministic on every machine, no download, fast: meant
for tests, and for those who want lexical vectors only.
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.ports import Vectors
from recollect.providers.pieces import unit_rows

DEFAULT_DIM = 256
WORD = re.compile(r"\w+")
# A word weighs 1 as a whole and half as much in all its triples: "colour" and "colours" are near, not equal.
TRIPLES_WEIGHT = 0.5

Features = tuple[NDArray[np.intp], NDArray[np.float64]]  # places, and what is added there


class HashingEmbedder:
    def __init__(self, *, dim: int = DEFAULT_DIM) -> None:
        self._dim = dim

    @property
    def model(self) -> str:
        return f"hashing:{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    def can_read(self, text: str) -> bool:
        """Any text: it is read letter by letter."""
        return True

    def knows(self, text: str) -> float:
        """All of it: no language is nearer to it than another."""
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(hash_texts, list(texts), self._dim)

    async def close(self) -> None:
        """Nothing is held open."""


def hash_texts(texts: Sequence[str], dim: int = DEFAULT_DIM) -> Vectors:
    rows = np.zeros((len(texts), dim), np.float64)
    for row, text in zip(rows, texts, strict=True):
        row += hash_text(text, dim)
    return unit_rows(rows)


def hash_text(text: str, dim: int) -> NDArray[np.float64]:
    # A text without words ("?!") still has to differ from another: it counts as one word.
    words = WORD.findall(text.casefold()) or [text]
    features = [word_features(word, dim) for word in words]
    places = np.concatenate([places for places, _ in features])
    weights = np.concatenate([weights for _, weights in features])
    return np.bincount(places, weights, minlength=dim).astype(np.float64)


@lru_cache(maxsize=50_000)
def word_features(word: str, dim: int) -> Features:
    framed = f"^{word}$"
    triples = [framed[at : at + 3] for at in range(len(framed) - 2)]
    weight = TRIPLES_WEIGHT / max(len(triples), 1) ** 0.5
    hashes = [_hash(word), *(_hash("3:" + triple) for triple in triples)]
    signs = [1.0 if number >> 31 else -1.0 for number in hashes]
    weights = np.array([1.0, *([weight] * len(triples))])
    return np.array([number % dim for number in hashes], np.intp), weights * signs


def _hash(feature: str) -> int:
    return zlib.crc32(feature.encode())
