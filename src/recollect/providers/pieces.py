"""Long texts are embedded in pieces, and pieces travel in batches.

A model reads a few hundred to a few thousand tokens at once. A longer text is cut, each piece embedded, and the text's
vector is the direction of the sum. Pieces of like size share a batch, so that little is padded and no request too big.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.errors import ProviderMisbehaved
from recollect.ports import Vectors

# A text is known by its first pieces; without a bound, one text of a megabyte would hold up all others.
MAX_PIECES = 64


def batches(sizes: Sequence[int], *, max_items: int, max_size: int) -> list[list[int]]:
    """Indices in groups, the largest first; a group's count times its largest stays within `max_size`."""
    groups: list[list[int]] = []
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        if groups and _has_room(groups[-1], sizes, max_items, max_size):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _has_room(group: list[int], sizes: Sequence[int], max_items: int, max_size: int) -> bool:
    longest = sizes[group[0]]
    return len(group) < max_items and longest * (len(group) + 1) <= max_size


def cut(text: str, max_bytes: int) -> list[str]:
    """The text in pieces of at most `max_bytes` of UTF-8; at least one piece, at most MAX_PIECES."""
    pieces: list[str] = []
    while text and len(pieces) < MAX_PIECES:
        pieces.append(first_piece(text, max_bytes))
        text = text[len(pieces[-1]) :]
    return pieces or [""]


def first_piece(text: str, max_bytes: int) -> str:
    head = text[:max_bytes].encode()[:max_bytes].decode(errors="ignore")  # no half characters
    if len(head) == len(text):
        return head
    after_space = max(head.rfind(" "), head.rfind("\n")) + 1
    return head[: after_space or len(head)]


@contextmanager
def loading(name: str, folder: Path | None, *, cache: str, setting: str) -> Iterator[None]:
    """A model is loaded within, from its folder or from a cache, never from the network."""
    try:
        yield
    except Exception as problem:  # whatever the libraries say of files that do not do; tokenizers raise just this
        raise ProviderMisbehaved(
            f"The model {name} cannot be loaded from {folder or f'the cache of {cache}'}: {problem} "
            f"Recollect downloads none: put its files into a folder and name that in RECOLLECT_{setting}_FOLDER."
        ) from problem


def embed_pieces(
    texts: Sequence[str], encode: Callable[[list[str]], NDArray[np.floating]], *, name: str, dim: int, max_bytes: int
) -> Vectors:
    """A vector a text, of what a local model makes of its pieces; which must be so many numbers, all of them finite."""
    pieces = [(owner, piece) for owner, text in enumerate(texts) for piece in cut(text, max_bytes)]
    vectors = encode([piece for _, piece in pieces])
    if vectors.shape != (len(pieces), dim) or not np.isfinite(vectors).all():
        raise ProviderMisbehaved(
            f"The model {name} gave vectors of the shape {vectors.shape}: {dim} numbers a text are due."
        )
    return sum_of_pieces(vectors, [owner for owner, _ in pieces], len(texts))


def sum_of_pieces(pieces: NDArray[np.floating], owners: Sequence[int], texts: int) -> Vectors:
    """One unit row a text, from rows of which `owners` says whose they are."""
    sums = np.zeros((texts, pieces.shape[1]), np.float64)
    np.add.at(sums, np.asarray(owners, np.intp), pieces)
    return unit_rows(sums)


def unit_rows(rows: NDArray[np.floating]) -> Vectors:
    """Each row at length 1. A row without direction (an empty text) gets a fixed one, since none may be zero."""
    rows = np.array(rows, np.float64)
    peaks = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows[peaks[:, 0] == 0.0, 0] = 1.0
    rows /= np.where(peaks == 0.0, 1.0, peaks)  # so that squaring neither overflows nor vanishes
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)
