"""The fast embedder: wordllama's table of token vectors, 256 numbers a text, weaker than minilm and far quicker.

A text's vector is the direction of the sum of its token vectors; order plays no part. We take the table and the
tokeniser from the installed package and do the sum here: its own `embed` pads every text of a batch to the longest,
which for one text of a megabyte among short ones would need gigabytes.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.errors import NotInstalled
from recollect.ports import Vectors
from recollect.providers.pieces import unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIM = 256
MAX_CHARACTERS = 160_000


class StaticEmbedder:
    def __init__(self) -> None:
        if find_spec("wordllama") is None:
            raise NotInstalled('The embedder `static` needs wordllama: pip install "recollect[static]".')

    @property
    def model(self) -> str:
        return "static"

    @property
    def dim(self) -> int:
        return DIM

    def can_read(self, text: str) -> bool:
        """Any text: what has no token of its own is read byte by byte."""
        return True

    def knows(self, text: str) -> float:
        """All of it, as far as we can tell."""
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(embed_texts, list(texts))

    async def close(self) -> None:
        """The table is shared by the whole process and stays loaded."""


def embed_texts(texts: Sequence[str]) -> Vectors:
    table = the_table()
    cut = [text[:MAX_CHARACTERS] for text in texts]
    encodings = table.tokenizer.encode_batch_fast(cut, add_special_tokens=False)
    rows = np.zeros((len(texts), DIM), np.float32)
    for row, encoding in zip(rows, encodings, strict=True):
        row += table.vectors[encoding.ids].sum(axis=0)
    return unit_rows(rows)


@dataclass(frozen=True, kw_only=True)
class WordTable:
    tokenizer: "Tokenizer"
    vectors: NDArray[np.float32]


_loading = threading.Lock()


def the_table() -> WordTable:
    """The table of this process, loaded when it is first needed."""
    with _loading:
        return _load()


@cache
def _load() -> WordTable:
    with root_logger_left_alone():
        import wordllama

    # Its own load() looks for the tokeniser in a directory that does not exist and then goes to the network.
    package = Path(wordllama.__file__).parent
    loaded = wordllama.WordLlama.load(cache_dir=package, dim=DIM, disable_download=True)
    loaded.tokenizer.no_padding()
    return WordTable(tokenizer=loaded.tokenizer, vectors=loaded.embedding)


@contextmanager
def root_logger_left_alone() -> Iterator[None]:
    """wordllama calls logging.basicConfig when imported, but how a program logs is for the program to say."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
