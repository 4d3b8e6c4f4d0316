"""What the engine asks of the outside world, as small protocols."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Shared = TypeVar("Shared")
Block = TypeVar("Block")
Made = TypeVar("Made")


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

    def can_read(self, text: str) -> bool:
        """Whether the model knows most of a text. What it cannot read gets no vector: all such texts would get the
        same one, and look like one text (D43)."""
        ...

    def knows(self, text: str) -> float:
        """The share of a text's words that the model knows as words, 0 to 1. Of a language that it has only pieces of,
        unrelated texts are near each other, so that nearness tells little (D45)."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, unit length, float32; ProviderUnavailable or ProviderMisbehaved when it cannot."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Reranker(Protocol):
    """Reads a question together with each of a few texts: slower than comparing vectors, and closer (D52)."""

    @property
    def name(self) -> str:
        """`fastembed:Xenova/ms-marco-MiniLM-L-6-v2`: the provider and the model, for people and logs."""
        ...

    async def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        """How well each text answers, 0 to 1; ProviderUnavailable or ProviderMisbehaved when it cannot say."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a language model wrote; `is_cut` when it had to stop before it was done."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_cut: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """Answers a prompt. It is asked, never obeyed: what it writes is checked, and it writes no memory (D38)."""

    @property
    def name(self) -> str:
        """`openai:gpt-4o-mini`: the provider and the model, for people and logs."""
        ...

    async def complete(self, system: str, prompt: str, *, max_tokens: int) -> Completion:
        """The model's answer; ProviderUnavailable or ProviderMisbehaved when there is none."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """What somebody should know who is not looking: a plan waits or is about to be applied, something failed, a report
    is there."""

    kind: Literal["waiting", "before", "failed", "report", "test"]
    title: str
    text: str
    space: str
    at: datetime
    # For programs: ids, counts, the whole report. JSON's own terms.
    facts: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Notifier(Protocol):
    """Tells somebody."""

    @property
    def name(self) -> str:
        """`webhook:https://hooks.example`: where notices go, without what is secret in it."""
        ...

    async def notify(self, notice: Notice) -> None:
        """ProviderUnavailable or ProviderMisbehaved when the notice did not arrive."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Executor(Protocol):
    """Leads blocks through a pure function: in this process, or on the machines of a cluster (X01).

    The function is one of a module, so that another process finds it by its name; `shared` is what every block needs,
    and travels once. What comes out is the same wherever it was worked out.
    """

    @property
    def name(self) -> str:
        """`local`, or the address of a cluster: for people and logs."""
        ...

    @property
    def width(self) -> int:
        """How many blocks are worked on at a time."""
        ...

    def submit(self, work: Callable[[Shared, Block], Made], shared: Shared, block: Block) -> "Future[Made]":
        """One block; cancelling the future gives it up."""
        ...

    def map(
        self,
        work: Callable[[Shared, Block], Made],
        shared: Shared,
        blocks: Iterable[Block],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Made]:
        """The results in the order of the blocks, each told to `progress` by its number, from 1. Whoever stops taking
        them (`close` of the iterator, or an error) gives up what is still under way."""
        ...

    def close(self) -> None: ...
