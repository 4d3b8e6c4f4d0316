"""Embedding on a cluster: batches of texts travel, vectors come back; each process there loads the model once (X01).

Only models that run on the processor: one behind an address gains nothing by being asked from elsewhere, and its key
stays here. A few texts, and so every question, are embedded in this process.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anyio.to_thread

from recollect.ports import Embedder, Executor, Vectors
from recollect.providers.embedders import make_embedder, parse
from recollect.settings import Settings

ON_THE_PROCESSOR = ("fastembed", "hashing", "minilm", "sentence-transformers", "static")
# Fewer are embedded before they would have arrived.
WORTH_A_JOURNEY = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """All that another process needs to make the same embedder; `folder` must hold the same files there."""

    model: str
    folder: Path | None = None


class SpreadEmbedder:
    """An embedder whose batches are worked out by an executor."""

    def __init__(self, embedder: Embedder, executor: Executor, *, folder: Path | None = None) -> None:
        self._embedder = embedder
        self._executor = executor
        self._spec = ModelSpec(model=embedder.model, folder=folder)

    @staticmethod
    def helps(embedder: Embedder) -> bool:
        return parse(embedder.model).provider in ON_THE_PROCESSOR

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dim(self) -> int:
        return self._embedder.dim

    def width(self) -> int:
        """How many batches are embedded at a time; asked for the first time, it connects."""
        return self._executor.width

    def can_read(self, text: str) -> bool:
        return self._embedder.can_read(text)

    def knows(self, text: str) -> float:
        return self._embedder.knows(text)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) < WORTH_A_JOURNEY:
            return await self._embedder.embed(texts)
        future = await anyio.to_thread.run_sync(self._executor.submit, embed_block, self._spec, list(texts))
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """What it embeds with belongs to others."""


def embed_block(spec: ModelSpec, texts: Sequence[str]) -> Vectors:
    """The vectors of some texts, in whichever process."""
    return asyncio.run(_embedder_of(spec).embed(texts))


@cache
def _embedder_of(spec: ModelSpec) -> Embedder:
    return make_embedder(spec.model, Settings.load(embedding_folder=spec.folder, embedding_threads=1))
