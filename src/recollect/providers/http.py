"""What the embedders behind HTTP share: cutting, batches, and reading vectors with distrust (endpoint.py sends)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import anyio.to_thread
import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from recollect.ports import Vectors
from recollect.providers.endpoint import Endpoint, bearer, checked_key
from recollect.providers.pieces import batches, cut, sum_of_pieces, unit_rows

# A token is at least one byte, so neither can exceed what OpenAI takes: 8,192 tokens a text, 300,000 a request.
MAX_TEXT_BYTES = 8_000
MAX_REQUEST_BYTES = 300_000
MAX_REQUEST_TEXTS = 128


class HttpEmbedder(ABC):
    """One POST a batch. A subclass says what the server is called, what is sent, and where the vectors are."""

    server: ClassVar[str]
    provider: ClassVar[str]
    path: ClassVar[str]

    def __init__(
        self, *, name: str, dim: int, url: str, timeout_seconds: float, api_key: SecretStr | None = None
    ) -> None:
        self._name = name
        self._dim = dim
        key = checked_key(api_key, "EMBEDDING")
        self._endpoint = Endpoint(
            setting="EMBEDDING",
            who=self.server,
            model=name,
            url=url,
            path=self.path,
            timeout_seconds=timeout_seconds,
            key=key,
            headers=bearer(key),
        )

    @property
    def model(self) -> str:
        return f"{self.provider}:{self._name}:{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    @abstractmethod
    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """What is sent."""

    @abstractmethod
    def vectors_in(self, answer: Mapping[str, Any]) -> list[Any] | None:
        """The vectors in the order of the texts, unchecked; None if the answer has another shape."""

    def can_read(self, text: str) -> bool:
        """Any text, as far as we can tell: what the server's model knows is not ours to see."""
        return True

    def knows(self, text: str) -> float:
        """All of it, as far as we can tell."""
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        pieces, owners = cut_all(texts)
        sizes = [len(piece.encode()) for piece in pieces]
        rows = np.empty((len(pieces), self._dim), np.float64)
        for group in batches(sizes, max_items=MAX_REQUEST_TEXTS, max_size=MAX_REQUEST_BYTES):
            response = await self.ask([pieces[index] for index in group])
            # Off the event loop: an answer can be megabytes of digits.
            positions = [owners[index] for index in group]
            vectors = await anyio.to_thread.run_sync(self._read, response, positions)
            # Weighted by length, as a long piece says more than the last few words.
            rows[group] = vectors * np.array([[max(sizes[index], 1)] for index in group])
        return sum_of_pieces(rows, owners, len(texts))

    async def ask(self, texts: Sequence[str]) -> httpx.Response:
        return await self._endpoint.post(self.body(texts))

    async def close(self) -> None:
        await self._endpoint.close()

    def _read(self, response: httpx.Response, positions: Sequence[int]) -> Vectors:
        """The vectors of an answer; `positions` are those of the texts asked about, for messages."""
        vectors = self.vectors_in(self._endpoint.document(response))
        if vectors is None:
            raise self._endpoint.misshapen()
        if len(vectors) != len(positions):
            raise self._endpoint.misbehaved(f"sent {len(vectors)} vectors for {len(positions)} texts.")
        return unit_rows(np.stack([self._read_vector(*pair) for pair in zip(positions, vectors, strict=True)]))

    def _read_vector(self, position: int, values: Any) -> NDArray[np.float64]:
        text = f"for the text at position {position}"
        if not is_numbers(values):
            raise self._endpoint.misbehaved(f"sent no list of numbers {text}.")
        if len(values) != self._dim:
            raise self._endpoint.misbehaved(
                f"sent {len(values)} numbers {text} where {self._dim} were expected. "
                f"Check model and dimension in RECOLLECT_EMBEDDER."
            )
        row = np.array(values, np.float64)
        if not np.isfinite(row).all():
            raise self._endpoint.misbehaved(f"sent NaN or infinity {text}.")
        if not row.any():
            raise self._endpoint.misbehaved(f"sent only zeros {text}.")
        return row


def cut_all(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The pieces of all texts, and for each piece the position of its text."""
    pieces = [(position, piece) for position, text in enumerate(texts) for piece in cut(text, MAX_TEXT_BYTES)]
    return [piece for _, piece in pieces], [position for position, _ in pieces]


def is_numbers(values: Any) -> bool:
    # A whole number beyond what a float holds would overflow; no embedding has one.
    return isinstance(values, list) and all(
        isinstance(value, float) or (type(value) is int and abs(value) < 10**300) for value in values
    )
