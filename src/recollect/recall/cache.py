"""Repeated questions: what was found, and the vectors of questions, kept for a little while (D36).

A recall may be repeated while its space has not changed. The database counts the changes of each space (`version`,
raised in the transaction that changes it), so this holds for every process at once. Only plain search is kept: the
answers of the other modes depend on which answers were given before (D19, D24), and so does engagement (D40).
The vector of a question depends on nothing but the model.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from uuid import UUID

import anyio.to_thread

from recollect.errors import ProviderProblem
from recollect.model import Mode, Query, Recall
from recollect.ports import Embedder, Vectors
from recollect.recall.sql.logs import as_document

if TYPE_CHECKING:
    from recollect.engine.core import Core

V = TypeVar("V")

# What an answer says that was found while the embedder failed (D50).
BY_WORDS_ALONE = "Searched by words alone"


class Cache(Generic[V]):
    """At most so many values, each for at most so long; the least used goes first."""

    def __init__(self, *, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> V | None:
        at, value = self._kept.get(key, (None, None))
        if at is None:
            return None
        if self._clock() - at > self._seconds:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        self._kept[key] = (self._clock(), value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()


def is_repeatable(query: Query) -> bool:
    """Whether the same question finds the same while nothing changes."""
    return query.mode is Mode.NEUTRAL and not query.engagement


def as_key(query: Query) -> str:
    """The same for two queries that ask the same."""
    return json.dumps(as_document(query), sort_keys=True, ensure_ascii=False)


async def repeated(
    core: "Core", space_id: UUID, version: int, query: Query, search: Callable[[], Awaitable[Recall]]
) -> Recall:
    """What `search` finds, or found a moment ago in the same state of the space.

    `version` was read before the search: what changes meanwhile is found, and kept under a version that has passed.
    """
    if not core.settings.cache_size or not is_repeatable(query):
        return await search()
    started = time.perf_counter()
    key = (space_id, version, core.settings.embedder, as_key(query))
    known = core.recalls.get(key)
    if known is None:
        found = await search()
        if not any(note.startswith(BY_WORDS_ALONE) for note in found.notes):  # the embedder may be back in a moment
            core.recalls.put(key, found)
        return found
    latency = round((time.perf_counter() - started) * 1000, 2)
    return replace(known, latency_ms=latency, ways={**known.ways, "search": "as found a moment ago"})


class AskedVector(NamedTuple):
    """The vector of a question, or why there is none."""

    vector: Vectors | None
    why_not: str | None = None


async def embedded(core: "Core", embedder: Embedder, text: str) -> AskedVector:
    """The vector of a question, made once. Without one a question is answered by its words (D43, D50)."""
    key = (embedder.model, text)
    known = core.questions.get(key)
    if known is not None:
        return AskedVector(known)
    try:
        if not await anyio.to_thread.run_sync(embedder.can_read, text):
            return AskedVector(None, f"{embedder.model} cannot read this question: it was searched by words alone.")
        (known,) = await embedder.embed([text])
    except ProviderProblem as problem:
        return AskedVector(None, f"{BY_WORDS_ALONE}: {problem.message}")
    core.questions.put(key, known)
    return AskedVector(known)
