"""What a memory, a recall and a space cost, and how that grows: what docs/scale.md reckons with.

./run bench scale [--size 1000000]              one space, at a hundredth, a tenth and the whole of that size
./run bench scale [--spaces 300]                and so many spaces of 1,000 memories each

The vectors are given, not made: how fast the model is says `./run bench store`.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.capacity import Growth, off_by
from bench.figures import Figure
from bench.places import temporary_server
from bench.processes import below, kilobytes, postmaster, spent_below
from bench.recall import BASE, FRAME, SHARES, WORDS, bare_query, nearest, questions, share, timed
from recollect.engine.engine import Engine
from recollect.memories import embed
from recollect.model import ExportedMemory
from recollect.recall.recall import embedded
from recollect.settings import Settings
from recollect.store.database import driver
from recollect.store.embedded import EmbeddedServer

SIZE = 1_000_000
SPACES = 300
SMALL_SPACE = 1_000
BATCH = 5_000
CHECKED = 20  # questions whose nearest are also looked up one by one
SINGLE = 50  # memories added one at a time
MODEL_MAY_BE_OFF = 1.33


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench scale")
    parser.add_argument("--spaces", type=int, default=SPACES)
    spaces = parser.parse_args(rest).spaces
    size = size or SIZE
    steps = [measured(count) for count in (size // 100, size // 10, size)]
    return [*(figure for step in steps for figure in step.figures()), *checked(steps), *many_spaces(spaces)]


# -- one space


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What a space of so many memories was seen to cost."""

    memories: int
    stored_a_second: float
    index_seconds: float
    bytes_each: float
    index_bytes_each: float
    recall_ms: float
    recall_p95_ms: float
    recall_cpu_ms: float
    bare_ms: float
    found: float
    add_ms: float
    server_mb: float

    def figures(self) -> list[Figure]:
        def figure(name: str, value: float, how: str, better: str = "lower", bar: float | None = None) -> Figure:
            return Figure(name=f"{self.memories:,}: {name}", value=value, how=how, better=better, bar=bar)

        return [
            figure("stored a second", self.stored_a_second, "in bulk, vectors given, words indexed", "higher"),
            figure("vector index built, s", self.index_seconds, "HNSW, m 16, ef_construction 200"),
            figure("bytes a memory", self.bytes_each, "what the database has grown by; texts of 24 words"),
            figure("of them the vector index", self.index_bytes_each, "384 dimensions, half precision"),
            figure("recall p50, ms", self.recall_ms, f"{len(questions())} questions in turn, the embedding aside"),
            figure("recall p95, ms", self.recall_p95_ms, "the same"),
            figure("processor time of a recall, ms", self.recall_cpu_ms, "the server's and the caller's together"),
            figure("bare pgvector query p50, ms", self.bare_ms, "with the same ef_search, in turn with the recalls"),
            figure(
                "nearest found", self.found, f"of 200, {CHECKED} questions, against an exact search", "higher", 0.95
            ),
            figure("one memory stored p50, ms", self.add_ms, "one after the other, vectors to come"),
            figure("memory of the server, MB", self.server_mb, "its processes', what they share counted once"),
        ]


def measured(count: int) -> Step:
    with temporary_server() as server:
        return asyncio.run(cost_of(server, count))


async def cost_of(server: EmbeddedServer, count: int) -> Step:
    # No index while it is loaded: putting in row by row takes many times as long as building it afterwards.
    given: dict[str, Any] = {"hnsw_min_rows": min(10_000, count), "cache_size": 1000}
    async with Engine(Settings.load(database_url=server.url, **given)) as engine:
        empty, _ = await sizes(engine)
        await engine.add_space("large")
        space = await engine.in_space("large")
        stored = await filled(space, count)
        started = time.perf_counter()
        await embed.ensure_index(space.core, space.core.embedder())
        built = time.perf_counter() - started
        async with space.core.database.alone() as connection:
            await connection.execute("VACUUM ANALYZE")
        print(f"{count:,} memories: stored in {stored:.0f} s, indexed in {built:.0f} s", flush=True)
        whole, index = await sizes(space)
        asked = await in_turn(space, server)
        return Step(
            memories=count,
            stored_a_second=count / stored,
            index_seconds=built,
            bytes_each=(whole - empty) / count,
            index_bytes_each=index / count,
            recall_ms=1000 * statistics.median(asked.whole),
            recall_p95_ms=1000 * float(np.quantile(asked.whole, 0.95)),
            recall_cpu_ms=1000 * asked.processor,
            bare_ms=1000 * statistics.median(asked.bare),
            found=await found_of_the_nearest(space),
            add_ms=1000 * await one_by_one(space),
            server_mb=memory_of(server),
        )


async def filled(space: Engine, count: int) -> float:
    """Seconds that storing takes, the making of texts and vectors aside."""
    spent = 0.0
    for batch in batches(await vectors_of_sentences(space), count, space.core.embedder().model):
        spent += await timed(space.add_many(batch, wait=False))
    return spent + await timed(space.work())


async def vectors_of_sentences(space: Engine) -> np.ndarray[Any, Any]:
    return np.asarray(await space.core.embedder().embed(sentences(np.random.default_rng(0), BASE)))


def batches(base: np.ndarray[Any, Any], count: int, model: str, seed: int = 1) -> Iterator[list[ExportedMemory]]:
    """Memories with vectors shaped as the model's are: mixtures of the vectors of real sentences."""
    chance = np.random.default_rng(seed)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        mixed = 0.7 * base[chance.integers(0, BASE, size)] + 0.3 * base[chance.integers(0, BASE, size)]
        mixed += chance.normal(0, 0.02, mixed.shape)
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        yield [
            ExportedMemory(text=f"{first + number} {text}", vectors={model: vector.astype("<f2").tobytes()})
            for number, (text, vector) in enumerate(zip(sentences(chance, size), mixed, strict=True))
        ]


def sentences(chance: np.random.Generator, count: int) -> list[str]:
    """As `bench.recall.sentence`, many at once."""
    drawn = np.searchsorted(np.cumsum(SHARES), chance.random((count, FRAME.count("{}"))))
    return [FRAME.format(*(WORDS[min(number, len(WORDS) - 1)] for number in row)) for row in drawn]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Seconds of each recall and of each bare query, and the processor's seconds of one recall."""

    whole: list[float]
    bare: list[float]
    processor: float


async def in_turn(space: Engine, server: EmbeddedServer) -> Asked:
    whole, bare, processor = [], [], []
    for question in questions():
        vector = await vector_of(space, question)
        space.core.recalls.clear()
        before = processor_of(server)
        whole.append(await timed(space.recall(question)))
        processor.append(processor_of(server) - before)
        bare.append(await timed(bare_query(space, vector, ef_search=space.core.care(space.space.id))))
    return Asked(whole=whole, bare=bare, processor=statistics.mean(processor))


async def vector_of(space: Engine, question: str) -> np.ndarray[Any, Any]:
    """Made once: what a recall then takes is without the model's time."""
    asked = await embedded(space.core, space.core.embedder(), question)
    assert asked.vector is not None
    return asked.vector


async def found_of_the_nearest(space: Engine) -> float:
    shares = []
    for question in questions()[:CHECKED]:
        vector = await vector_of(space, question)
        shares.append(share(await nearest(space, vector, exactly=False), await nearest(space, vector, exactly=True)))
    return statistics.mean(shares)


async def one_by_one(space: Engine) -> float:
    texts = sentences(np.random.default_rng(77), SINGLE)
    return statistics.median([await timed(space.add(f"one more: {text}", wait=False)) for text in texts])


async def sizes(space: Engine) -> tuple[int, int]:
    """Bytes of the whole database, and of the vector index."""
    async with space.core.database.owner() as connection:
        raw = await driver(connection)
        whole = await raw.fetchval("SELECT pg_database_size(current_database())")
        index = await raw.fetchval(
            "SELECT coalesce(sum(pg_relation_size(indexrelid)), 0) FROM pg_stat_user_indexes"
            " WHERE indexrelname LIKE 'embeddings_hnsw_%'"
        )
    return int(whole), int(index)


# -- what the reckoning would have said


def checked(steps: list[Step]) -> list[Figure]:
    """The largest step, reckoned from the two smaller ones, beside what was measured."""
    small, middle, large = steps
    growths: dict[str, tuple[Growth, Callable[[Step], float]]] = {
        "bytes a memory": (Growth.EVEN, lambda step: step.bytes_each),
        "vector index built, s": (Growth.LINEAR, lambda step: step.index_seconds),
        "recall p50, ms": (Growth.LOGARITHMIC, lambda step: step.recall_ms),
    }
    return [
        Figure(
            name=f"reckoned for {large.memories:,} and measured apart: {name}",
            value=off_by(
                growth, [(step.memories, value(step)) for step in (small, middle)], large.memories, value(large)
            ),
            bar=MODEL_MAY_BE_OFF,
            better="lower",
            how=f"times; reckoned from {small.memories:,} and {middle.memories:,}, {growth.value}",
        )
        for name, (growth, value) in growths.items()
    ]


# -- many spaces


def many_spaces(count: int) -> list[Figure]:
    with temporary_server() as server:
        return asyncio.run(cost_of_spaces(server, count))


async def cost_of_spaces(server: EmbeddedServer, count: int) -> list[Figure]:
    async with Engine(Settings.load(database_url=server.url, cache_size=1000)) as engine:
        empty, _ = await sizes(engine)
        base = await vectors_of_sentences(engine)
        spent = 0.0
        for number in range(count):
            started = time.perf_counter()
            await engine.add_space(f"small-{number}")
            space = await engine.in_space(f"small-{number}")
            spent += time.perf_counter() - started
            for batch in batches(base, SMALL_SPACE, space.core.embedder().model, seed=number):
                spent += await timed(space.add_many(batch, wait=False))
        await engine.work()
        await embed.ensure_index(engine.core, engine.core.embedder())
        async with engine.core.database.alone() as connection:
            await connection.execute("VACUUM ANALYZE")
        whole, _ = await sizes(engine)
        asked = await in_turn(await engine.in_space(f"small-{count // 2}"), server)
    how = f"{count:,} spaces of {SMALL_SPACE:,} memories in one database"
    return [
        Figure(name="spaces: filled a second", value=count / spent, how=how),
        Figure(name="spaces: bytes a memory", value=(whole - empty) / count / SMALL_SPACE, better="lower", how=how),
        Figure(name="spaces: recall p50, ms", value=1000 * statistics.median(asked.whole), better="lower", how=how),
        Figure(name="spaces: processor time of a recall, ms", value=1000 * asked.processor, better="lower", how=how),
    ]


# -- what the server's processes take


def processor_of(server: EmbeddedServer) -> float:
    """Seconds of the processor that the server, with all that it ever started, and this process have used."""
    return spent_below(postmaster(server.data_directory)) + time.process_time()


def memory_of(server: EmbeddedServer) -> float:
    return sum(map(kilobytes, below(postmaster(server.data_directory)))) / 1024
