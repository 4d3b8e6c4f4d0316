"""The store: bulk adding against a bare COPY, the embedding pipeline against the bare model, start-up.

Ratios only: both sides are measured in turn in one run, so they mean the same on a slow machine as on a fast one.
"""

import asyncio
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

from bench.figures import Figure, alternate, ratio, seconds
from bench.places import temporary_server
from bench.recall import vocabulary
from recollect.engine.engine import Engine
from recollect.memories.rules.text import checksum
from recollect.memories.sql import vectors
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.database import driver

SIZE = 100_000
EMBED_SHARE = 100  # one in so many texts is embedded: the model is slow, the ratio is the same
ROUNDS = 3
WORDS = vocabulary(5000)


def texts(count: int, seed: int) -> Iterator[str]:
    """Texts of about 40 words."""
    chance = random.Random(seed)
    for number in range(count):
        yield f"{number} " + " ".join(chance.choices(WORDS, k=chance.randint(32, 48)))


def run(size: int | None, _rest: list[str]) -> list[Figure]:
    count = size or SIZE
    with temporary_server() as server:
        return [
            *asyncio.run(adding(server.url, count)),
            memory_needed(server.url, count),
            *asyncio.run(embedding(server.url, max(count // EMBED_SHARE, 256))),
            start_up(),
        ]


async def adding(url: str, count: int) -> list[Figure]:
    ours, bare = [], []
    async with Engine(Settings.load(database_url=url)) as engine:
        for seed in range(ROUNDS):
            ours.append(count / await time_ours(engine, count, seed))
            bare.append(count / await time_copy(engine, count, seed))
    how = f"{count:,} memories of ~40 words, store only; bare = binary COPY of the same rows; {ROUNDS} rounds"
    return [
        Figure(name="bulk add / bare COPY", value=ratio(ours, bare), bar=0.35, how=how),
        Figure(name="bulk add, memories a second", value=statistics.median(ours), how="median of the same rounds"),
    ]


async def new_space(engine: Engine) -> Engine:
    slug = f"b-{uuid4().hex[:12]}"
    await engine.add_space(slug)
    return await engine.in_space(slug)


async def time_ours(engine: Engine, count: int, seed: int) -> float:
    space = await new_space(engine)
    made = [NewMemory(text=text) for text in texts(count, seed)]
    started = time.perf_counter()
    added = await space.add_many(made, wait=False)
    spent = time.perf_counter() - started
    assert len(added.ids) == count
    return spent


async def time_copy(engine: Engine, count: int, seed: int) -> float:
    """The same rows, made before the clock starts, by binary COPY as the owner."""
    space = (await new_space(engine)).space.id
    now = datetime.now(UTC)
    rows = [(space, uuid4(), "memory", "note", text, checksum(text), now, now) for text in texts(count, seed)]
    jobs = [(space, row[1], "minilm", 3, now, now) for row in rows]
    started = time.perf_counter()
    async with engine.core.database.owner() as connection:
        raw = await driver(connection)
        columns = ["space_id", "id", "kind", "subtype", "text", "checksum", "created_at", "updated_at"]
        await raw.copy_records_to_table("nodes", records=rows, columns=columns)
        columns = ["space_id", "node_id", "model", "max_attempts", "created_at", "due_at"]
        await raw.copy_records_to_table("embedding_jobs", records=jobs, columns=columns)
    return time.perf_counter() - started


def memory_needed(url: str, count: int) -> Figure:
    """The highest resident memory of a process that adds a stream of texts."""
    child = subprocess.run(
        [sys.executable, "-m", "bench.store", url, str(count)], capture_output=True, text=True, check=True
    )
    how = f"peak resident memory of a process that streams {count:,} memories into the store"
    return Figure(name="bulk add, MB resident", value=float(child.stdout) / 1024, bar=400, better="lower", how=how)


async def stream_in(url: str, count: int) -> None:
    async with Engine(Settings.load(database_url=url)) as engine:
        space = await new_space(engine)
        await space.add_many((NewMemory(text=text) for text in texts(count, seed=99)), wait=False)


async def embedding(url: str, count: int) -> list[Figure]:
    """The pipeline (claim, embed, save) against the bare model on the same texts in the same batches."""
    piped, bare = [], []
    async with Engine(Settings.load(database_url=url)) as engine:
        embedder, batch = engine.core.embedder(), engine.settings.embedding_batch
        await embedder.embed(["warm up"])
        for seed in range(ROUNDS):
            made = list(texts(count, 1000 + seed))
            started = time.perf_counter()
            for first in range(0, count, batch):
                await embedder.embed(made[first : first + batch])
            bare.append(count / (time.perf_counter() - started))
            space = await new_space(engine)
            await space.add_many([NewMemory(text=text) for text in made], wait=False)
            started = time.perf_counter()
            assert await space.work() == count
            piped.append(count / (time.perf_counter() - started))
        spent = await index_time(engine)
        rows = (await vectors.index_state(engine.core.database, embedder.model, embedder.dim)).rows
    how = f"{count:,} texts of ~40 words, batches of {batch}, no HNSW index meanwhile; {ROUNDS} rounds"
    return [
        Figure(name="embedding pipeline / bare model", value=ratio(piped, bare), bar=0.9, how=how),
        Figure(name="embedded texts a second", value=statistics.median(piped), how="median of the same rounds"),
        Figure(name="HNSW built after, s", value=spent, better="lower", how=f"{rows:,} vectors of 384 dimensions"),
    ]


async def index_time(engine: Engine) -> float:
    embedder, settings = engine.core.embedder(), engine.settings
    started = time.perf_counter()
    await vectors.build_index(
        engine.core.database,
        embedder.model,
        embedder.dim,
        m=settings.hnsw_m,
        ef_construction=settings.hnsw_ef_construction,
    )
    return time.perf_counter() - started


def start_up() -> Figure:
    def version() -> float:
        return seconds(
            lambda: subprocess.run([sys.executable, "-m", "recollect", "--version"], check=True, capture_output=True)
        )

    def bare() -> float:
        return seconds(
            lambda: subprocess.run([sys.executable, "-c", "import typer, rich"], check=True, capture_output=True)
        )

    ours, theirs = alternate(15, version, bare)
    how = "median of 15 alternating starts"
    return Figure(
        name="recollect --version / import typer, rich", value=ratio(ours, theirs), bar=2.5, better="lower", how=how
    )


if __name__ == "__main__":
    asyncio.run(stream_in(sys.argv[1], int(sys.argv[2])))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
