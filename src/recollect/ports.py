"""What the engine asks of the outside world, as small protocols."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors.

    `model` is the full name under which vectors are stored, and from which the embedder can be made again
    (`minilm`, `hashing:256`, `openai:text-embedding-3-small:512`): vectors of different models are never compared.
    """

    @property
    def model(self) -> str: ...

    @property
    def dim(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, unit length, float32; ProviderUnavailable or ProviderMisbehaved when it cannot."""
        ...

    async def close(self) -> None: ...
