"""What every verb needs: settings, the database, the embedders, the clock. Verbs are functions of it, and a face offers
those of one part of the engine."""

import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from uuid import UUID

import anyio
import anyio.to_thread

from recollect.errors import InvalidInput
from recollect.logs import Logger
from recollect.memories.rules.contract import Contract
from recollect.model import Recall, Space
from recollect.ports import Embedder, Executor, LanguageModel, Notifier, Reranker, Vectors
from recollect.providers.embedders import make_embedder
from recollect.providers.notify import make_notifiers
from recollect.providers.rerankers import make_reranker
from recollect.providers.spread import SpreadEmbedder
from recollect.settings import Settings
from recollect.store.database import Database, Transaction
from recollect.store.embedded import EmbeddedServer
from recollect.store.locks import Lease

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.graph.adjacency import Adjacencies
    from recollect.recall.sql.in_memory import SpacesInMemory

log = Logger("recollect")

# So careful is the index searched, for each of the cube root of its vectors: fitted to what finds 0.995 of the nearest
# 200 among 5,000, 20,000 and 100,000 (ADR 8).
CARE = 18
LEAST_CARE = 200
TRIES = 3
REMEMBERED = 9
AGAIN_EVERY = 50

V = TypeVar("V")
Reference = UUID | str
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def clock_of(given: Clock) -> Clock:
    """A clock of the caller's own (E36), read as times are read everywhere: without a zone it means UTC."""

    def now() -> datetime:
        moment = given()
        if not isinstance(moment, datetime):
            raise InvalidInput(f"The clock must return a datetime, not {moment!r:.60}.", field="clock")
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    return now


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


class Pace:
    """Which of two ways is the faster here: both are tried, and the one that took less lately is taken (D53).

    Where looking at every vector stops paying depends on the machine, the model, and what else is going on. So nobody
    guesses: now and then the slower one is taken again, to see whether it still is.
    """

    def __init__(self, *ways: Hashable) -> None:
        """The first of the ways is preferred as long as it is not slower."""
        self._spent: dict[Hashable, deque[float]] = {way: deque(maxlen=REMEMBERED) for way in ways}
        self._asked = 0

    def way(self) -> Hashable:
        """The way to take now."""
        self._asked += 1
        untried = [way for way, spent in self._spent.items() if len(spent) < TRIES]
        if untried:
            return untried[0]
        by_pace = sorted(self._spent, key=lambda way: median(self._spent[way]))
        return by_pace[-1 if self._asked % AGAIN_EVERY == 0 else 0]

    def took(self, way: Hashable, seconds: float) -> None:
        self._spent[way].append(seconds)


class SeenSpace(NamedTuple):
    """A space as a recall saw it: the model by which it is searched, its languages beside English, and about how many
    vectors there are in all spaces."""

    model: str | None
    languages: frozenset[str]
    vectors: int | None


def care_for(vectors: int | None, *, most: int) -> int:
    """The `ef_search` of HNSW: the fewer vectors, the less of it finds the same. Of an unknown number, the most."""
    return most if vectors is None else min(most, max(LEAST_CARE, math.ceil(CARE * vectors ** (1 / 3))))


@dataclass(kw_only=True)
class Core:
    """One process's engine room, shared by all spaces."""

    settings: Settings
    database: Database
    server: EmbeddedServer | None = None
    now: Clock = utc_now
    # The cluster for large batches (X01); None: they are done here.
    executor: Executor | None = None
    embedders: dict[str, Embedder] = field(default_factory=dict)
    models: dict[str, LanguageModel] = field(default_factory=dict)
    # Spaces as a recall last saw them: by that the next one guesses, and looks again where it was wrong.
    seen: dict[UUID, SeenSpace] = field(default_factory=dict)
    # One plan is applied at a time in a process: a turn holds a connection beside those that the work needs.
    applying: anyio.Lock = field(default_factory=anyio.Lock)
    # Whether others ask this process meanwhile, so that long work is better done by another one.
    serves: bool = False
    # So many of those work at a time: each takes its own memory and a connection, however many ask.
    beside: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(2))
    # How many vectors a kind of search looks at, and when they were counted.
    counts: dict[Hashable, tuple[int, float]] = field(default_factory=dict)
    # And how long each way to the nearest took there lately.
    paces: dict[Hashable, Pace] = field(default_factory=dict)
    # How many texts came in since the statistics of the database were made last, as far as this process knows.
    unsettled: int = 0
    # Whether there are any, as far as this process has looked.
    has_statistics: bool = False

    def __post_init__(self) -> None:
        most, seconds = self.settings.cache_size, self.settings.cache_seconds
        self.recalls: Cache[Recall] = Cache(most=most, seconds=seconds)
        # The vector of a question, and how much of it the model knows.
        self.questions: Cache[tuple[Vectors, float]] = Cache(most=most, seconds=math.inf)
        self._notifiers: tuple[Notifier, ...] | None = None
        self._reranker: Reranker | None = None
        self._adjacencies: Adjacencies | None = None
        self._in_memory: SpacesInMemory | None = None
        self.lease = Lease(self.database)

    def embedder(self, model: str | None = None) -> Embedder:
        """The embedder of a model, the configured one by default; each is made once."""
        spec = model or self.settings.embedder
        if spec not in self.embedders:
            embedder = make_embedder(spec, self.settings)
            self.embedders[spec] = self.embedders.setdefault(embedder.model, embedder)
        return self.embedders[spec]

    def batch_embedder(self, embedder: Embedder) -> Embedder:
        """The same for batches: on the cluster, where there is one that helps it."""
        if self.executor is None or not SpreadEmbedder.helps(embedder):
            return embedder
        return SpreadEmbedder(embedder, self.executor, folder=self.settings.embedding_folder)

    @property
    def adjacencies(self) -> "Adjacencies":
        """The graphs that this process keeps in memory."""
        if self._adjacencies is None:
            from recollect.graph.adjacency import Adjacencies  # all that reads a graph: only those wait who walk one

            self._adjacencies = Adjacencies()
        return self._adjacencies

    @property
    def in_memory(self) -> "SpacesInMemory":
        """The spaces that this process searches in memory."""
        if self._in_memory is None:
            from recollect.recall.sql.in_memory import SpacesInMemory

            self._in_memory = SpacesInMemory(most_mb=self.settings.search_in_memory_mb)
        return self._in_memory

    def reranker(self) -> Reranker | None:
        """The configured reranker, made once; None where there is none."""
        spec = self.settings.reranker.strip()
        if spec and self._reranker is None:
            self._reranker = make_reranker(spec, self.settings)
        return self._reranker

    def language_model(self) -> LanguageModel | None:
        """The configured language model, made once; None where there is none."""
        spec = self.settings.model.strip()
        if spec and spec not in self.models:
            from recollect.providers.models import make_model  # brings an HTTP client: only those wait who ask a model

            self.models[spec] = make_model(spec, self.settings)
        return self.models.get(spec)

    def notifiers(self) -> tuple[Notifier, ...]:
        """Whoever is told, made once: the log, and those that the settings name."""
        if self._notifiers is None:
            self._notifiers = make_notifiers(self.settings.notify)
        return self._notifiers

    def contract(self, space: Space) -> Contract:
        return Contract.of_space(
            space.settings,
            max_text_bytes=self.settings.max_text_bytes,
            max_metadata_bytes=self.settings.max_metadata_bytes,
        )

    @asynccontextmanager
    async def transaction(self, space_id: UUID, *, in_passing: bool = False) -> AsyncIterator[Transaction]:
        async with self.database.transaction(space_id, in_passing=in_passing) as db:
            yield db

    def care(self, space_id: UUID) -> int:
        """How carefully the index is searched, by what the last recall saw."""
        seen = self.seen.get(space_id)
        return care_for(seen.vectors if seen else None, most=self.settings.hnsw_ef_search)

    @asynccontextmanager
    async def search(self, space_id: UUID, *, keeps_plans: bool = False) -> AsyncIterator[Transaction]:
        async with self.database.search(
            space_id,
            ef_search=self.care(space_id),
            timeout_seconds=self.settings.statement_timeout_seconds,
            keeps_plans=keeps_plans,
        ) as db:
            yield db

    async def close(self) -> None:
        """Everything, the database last, also where one of them cannot be closed."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            stack.push_async_callback(self.lease.end)
            if self.executor is not None:
                stack.push_async_callback(anyio.to_thread.run_sync, self.executor.close)
            for notifier in self._notifiers or ():
                stack.push_async_callback(notifier.close)
            if self._reranker is not None:
                stack.push_async_callback(self._reranker.close)
            for model in self.models.values():
                stack.push_async_callback(model.close)
            for embedder in set(self.embedders.values()):
                stack.push_async_callback(embedder.close)
            for kept in (self._adjacencies, self._in_memory):
                if kept is not None:
                    await kept.close()


class Face:
    """What `memory.plans`, `memory.graph` and the others have in common: the verbs of one part, bound to a space."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @property
    def core(self) -> Core:
        return self._engine.core

    @property
    def space_id(self) -> UUID:
        return self._engine.space.id

    async def node_id(self, reference: Reference) -> UUID:
        """The node that a reference means: a whole id, or a unique beginning of one."""
        return await self._engine.node_id(reference)

    async def keeper_id(self, reference: Reference) -> UUID:
        """The same, but what was merged leads to the node that it is now part of."""
        return await self._engine.keeper_id(reference)
