"""Models of sentence-transformers, run here: embedders and cross-encoders (D52).

    sentence-transformers:all-MiniLM-L6-v2                             from the cache of Hugging Face
    sentence-transformers:our-model, RECOLLECT_EMBEDDING_FOLDER=...    from a folder

Nothing is downloaded. The dimension is part of an embedder's name; where it is not given
(sentence-transformers:our-model:768), the model is loaded to say it.
"""

import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
import numpy as np

from recollect.errors import InvalidInput, NotInstalled
from recollect.ports import Vectors
from recollect.providers.minilm import MOST_UNREAD, unread_share
from recollect.providers.pieces import embed_pieces, loading
from recollect.providers.rerankers import checked_scores

# Models read 256 to 512 tokens, as a rule: longer texts are embedded in pieces, and the sum counts.
PIECE_BYTES = 1600
BATCH = 32

M = TypeVar("M")


class SentenceTransformersEmbedder:
    def __init__(self, *, name: str, folder: Path | None = None, dim: int | None = None) -> None:
        require_installed("embedder")
        self._name, self._folder, self._dim = name, folder, dim
        self._loading = threading.Lock()
        self._loaded: Any = None

    @property
    def model(self) -> str:
        return f"sentence-transformers:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._dim = dimension_of(self._model())
        return self._dim

    def can_read(self, text: str) -> bool:
        """Whether most of it has tokens of its own; a model that spells what it does not know reads any text."""
        tokenizer: Any = getattr(self._model(), "tokenizer", None)
        unknown = getattr(tokenizer, "unk_token", None)
        fast = getattr(tokenizer, "backend_tokenizer", None)
        return not unknown or fast is None or unread_share(text, fast, unknown) <= MOST_UNREAD

    def knows(self, text: str) -> float:
        """All of it: how a model for many languages cuts a word says nothing of how well it knows it."""
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    async def close(self) -> None:
        self._loaded = None

    def _embed(self, texts: Sequence[str]) -> Vectors:
        def encode(pieces: list[str]) -> Vectors:
            vectors = self._model().encode(pieces, batch_size=BATCH, show_progress_bar=False)
            return np.asarray(vectors, dtype=np.float32)

        return embed_pieces(texts, encode, name=self._name, dim=self.dim, max_bytes=PIECE_BYTES)

    def _model(self) -> Any:
        with self._loading:
            if self._loaded is None:
                from sentence_transformers import SentenceTransformer

                self._loaded = opened(SentenceTransformer, self._name, self._folder, "EMBEDDING")
                if self._dim not in (None, says := dimension_of(self._loaded)):
                    problem = f"{self._name} has {says} dimensions: it cannot give {self._dim}."
                    raise InvalidInput(problem, field="embedder")
            return self._loaded


class SentenceTransformersReranker:
    """A cross-encoder: it reads the question and a text as one."""

    def __init__(self, *, name: str, folder: Path | None = None) -> None:
        require_installed("reranker")
        self._name, self._folder = name, folder
        self._loading = threading.Lock()
        self._loaded: Any = None

    @property
    def name(self) -> str:
        return f"sentence-transformers:{self._name}"

    async def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(self._scores, question, list(texts))

    async def close(self) -> None:
        self._loaded = None

    def _scores(self, question: str, texts: Sequence[str]) -> Vectors:
        pairs = [(question, text) for text in texts]
        scores = self._model().predict(pairs, batch_size=BATCH, show_progress_bar=False, activation_fn=sigmoid)
        return checked_scores(scores, texts=len(texts), name=self._name)

    def _model(self) -> Any:
        with self._loading:
            if self._loaded is None:
                from sentence_transformers import CrossEncoder

                self._loaded = opened(CrossEncoder, self._name, self._folder, "RERANKER")
            return self._loaded


def require_installed(part: str) -> None:
    if find_spec("sentence_transformers") is None:
        raise NotInstalled(
            f'The {part} `sentence-transformers` needs that package: pip install "recollect[sentence-transformers]".'
        )


def sigmoid(logits: Any) -> Any:
    return logits.sigmoid()


def dimension_of(model: Any) -> int:
    """As the model says it; the method was renamed."""
    says = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(says())


def opened(make: Callable[..., M], name: str, folder: Path | None, setting: str) -> M:
    with loading(name, folder, cache="Hugging Face", setting=setting):
        return make(str(folder or name), device="cpu", local_files_only=True)
