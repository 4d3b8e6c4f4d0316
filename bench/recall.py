"""Recall: how well the right memories are found (--data), and how fast beside a bare pgvector query.

./run bench recall --data DIR [--out run.jsonl]   evaluation data: a folder a conversation
./run bench recall [--size 100000]                   speed
"""

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from pgvector import HalfVector

from bench.figures import Figure
from recollect.engine import embed
from recollect.engine.engine import Engine
from recollect.model import NewMemory, NodeFilter
from recollect.settings import Settings
from recollect.store import candidates
from recollect.store.database import driver
from recollect.store.embedded import EmbeddedServer

SIZE = 100_000
DEPTH = 100
QUESTIONS = 100
DIM = 384


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench recall")
    parser.add_argument("--data", type=Path, help="a folder with one folder a conversation")
    parser.add_argument("--out", type=Path, help="write the scorer's run file here")
    given = parser.parse_args(rest)
    if given.data:
        return asyncio.run(quality(given.data, given.out))
    return asyncio.run(speed(size or SIZE))


@asynccontextmanager
async def temporary_engine(**given: Any) -> AsyncIterator[Engine]:
    directory = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
    directory.chmod(0o755)
    try:
        with EmbeddedServer(directory / "home") as server:
            async with Engine(Settings.load(database_url=server.url, **given)) as engine:
                yield engine
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# -- quality


async def quality(data: Path, out: Path | None) -> list[Figure]:
    """Ask every question of every conversation, each in a fresh space; plain search, no floors, no caps."""
    lines: list[dict[str, Any]] = []
    found: dict[int, list[float]] = defaultdict(list)
    newer: list[bool] = []
    async with temporary_engine() as engine:
        for folder in sorted(one for one in data.iterdir() if (one / "queries.jsonl").exists()):
            space, names = await taught(engine, rows(folder / "corpus.jsonl"))
            for question in rows(folder / "queries.jsonl"):
                started = time.perf_counter()
                hits = await space.recall(question["text"], limit=DEPTH)
                spent = (time.perf_counter() - started) * 1000
                ids = [name for hit in hits for name in names[hit.node.source_id or ""]]
                lines.append(
                    {"conversation": folder.name, "query_id": question["id"], "retrieved": ids, "latency_ms": spent}
                )
                judge(question, ids, found, newer)
            print(f"{folder.name}: {len(names)} memories", flush=True)
    if out:
        out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [
        *(
            Figure(
                name=f"recall@{k}", value=100 * statistics.mean(values), how=f"{len(values)} questions of {data.name}"
            )
            for k, values in sorted(found.items())
        ),
        *(
            [Figure(name="newer above older", value=statistics.mean(newer), how=f"{len(newer)} questions")]
            if newer
            else []
        ),
        Figure(
            name="latency p50, ms",
            value=statistics.median(line["latency_ms"] for line in lines),
            better="lower",
            how="embedding the question included",
        ),
    ]


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf8").splitlines() if line.strip()]


async def taught(engine: Engine, corpus: list[dict[str, Any]]) -> tuple[Engine, dict[str, list[str]]]:
    """A fresh space that holds a conversation; and which rows each memory stands for (a repeated text is kept once)."""
    await engine.add_space(slug := f"q-{uuid4().hex[:12]}")
    space = await engine.in_space(slug)
    added = await space.add_many(
        NewMemory(
            text=row["text"],
            created_at=datetime.fromisoformat(row["created_at"]),
            thread=f"session {row['metadata'].get('session', 0)}",
            source="bench",
            source_id=row["id"],
        )
        for row in corpus
    )
    assert not added.postponed, "some texts are not searchable yet"
    names = {row["id"]: [row["id"]] for row in corpus}
    for twin in added.refused:
        assert twin.existing_id is not None, twin.message
        first = (await space.get(twin.existing_id)).source_id or ""
        names[first].append(corpus[twin.position]["id"])
    return space, names


def judge(question: dict[str, Any], ids: list[str], found: dict[int, list[float]], newer: list[bool]) -> None:
    """As the evaluation data's own scorer counts."""
    relevant = set(question.get("relevant", ()))
    if relevant and question.get("in_main", True):
        for k in (5, 10, 20, 50):
            found[k].append(len(relevant & set(ids[:k])) / len(relevant))
    if question.get("newer") and question.get("older"):
        place = {name: number for number, name in reversed(list(enumerate(ids)))}
        best_newer = min(place.get(name, DEPTH) for name in question["newer"])
        newer.append(best_newer < min(place.get(name, DEPTH) for name in question["older"]))


# -- speed


async def speed(count: int) -> list[Figure]:
    """The whole recall (question embedding aside) beside a bare pgvector top-200 query, on the same vectors."""
    chance = np.random.default_rng(1)
    async with temporary_engine(embedder=f"hashing:{DIM}", hnsw_min_rows=min(10_000, count)) as engine:
        space = await filled(engine, count)
        embedder = engine.core.embedder()
        words = [f"word{number}" for number in range(5000)]
        asked = [" ".join(chance.choice(words, 6)) for _ in range(QUESTIONS)]
        for question in asked[:10]:
            await space.recall(question)
        whole, bare, few, overlap, exact_few = [], [], [], [], []
        some = NodeFilter(metadata={"extra": {"part": 7}}, excluded=False)
        for question in asked:
            vector = (await embedder.embed([question]))[0]
            started = time.perf_counter()
            await embedder.embed([question])
            embedding = time.perf_counter() - started
            started = time.perf_counter()
            await space.recall(question)
            whole.append(time.perf_counter() - started - embedding)
            started = time.perf_counter()
            near = await bare_query(space, vector)
            bare.append(time.perf_counter() - started)
            started = time.perf_counter()
            filtered = await space.recall(question, wanted=some, limit=20)
            few.append(time.perf_counter() - started - embedding)
            overlap.append(await share_of_exact(space, vector, near))
            exact_few.append(all(hit.node.metadata["extra"]["part"] == 7 for hit in filtered) and len(filtered) == 20)
    how = f"{count:,} memories, {QUESTIONS} questions in turn"
    return [
        Figure(
            name="recall / bare pgvector top 200, p50",
            value=statistics.median(whole) / statistics.median(bare),
            bar=2.5,
            better="lower",
            how=how,
        ),
        Figure(
            name="recall p50, ms", value=1000 * statistics.median(whole), better="lower", how="question embedding aside"
        ),
        Figure(name="bare pgvector top 200 p50, ms", value=1000 * statistics.median(bare), better="lower", how=how),
        Figure(name="candidates' recall against exact", value=statistics.mean(overlap), bar=0.995, how="200 nearest"),
        Figure(
            name="with a 1 % filter / without, p50",
            value=statistics.median(few) / statistics.median(whole),
            bar=1.0,
            better="lower",
            how="metadata containment; answered exactly",
        ),
        Figure(
            name="1 % filter answered right",
            value=statistics.mean(exact_few),
            bar=1.0,
            how="only what the filter allows",
        ),
    ]


async def filled(engine: Engine, count: int) -> Engine:
    """A space of memories of ~12 words, embedded, indexed."""
    chance = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5000)])
    await engine.add_space("speed")
    space = await engine.in_space("speed")
    made = (
        NewMemory(text=f"{number} " + " ".join(chance.choice(words, 12)), metadata={"extra": {"part": number % 100}})
        for number in range(count)
    )
    await space.add_many(made, wait=False)
    while await space.work():
        pass
    await embed.ensure_index(engine.core, engine.core.embedder())
    async with engine.core.database.alone() as connection:
        await connection.execute("VACUUM ANALYZE")
    return space


async def bare_query(space: Engine, vector: np.ndarray[Any, Any]) -> list[Any]:
    async with space.core.search(space.space.id) as connection:
        raw = await driver(connection)
        found = await raw.fetch(
            f"SELECT node_id FROM embeddings WHERE model = $2 AND dim = {DIM}"
            f" ORDER BY vector::halfvec({DIM}) <=> $1 LIMIT {candidates.POOL}",
            *(HalfVector(vector), f"hashing:{DIM}"),
        )
    return [record["node_id"] for record in found]


async def share_of_exact(space: Engine, vector: np.ndarray[Any, Any], near: list[Any]) -> float:
    async with space.core.search(space.space.id) as connection:
        place, model = (connection, space.space.id), f"hashing:{DIM}"
        ours = await candidates.nearest(*place, vector, model=model, kinds=["memory"], exactly=False)
        true = await candidates.nearest(*place, vector, model=model, kinds=["memory"], exactly=True)
    return len(set(ours) & set(true)) / len(true)
