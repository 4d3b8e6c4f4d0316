"""Recall: how well the right memories are found (--data), and how fast beside a bare pgvector query.

./run bench recall --data DIR [--out run.jsonl]   evaluation data: a folder a conversation
./run bench recall --data DIR --reranker NAME        and what a reranker gains there; with RECOLLECT_RAY, on the cluster
./run bench recall [--size 100000]                   speed
./run bench recall --texts FILE                      speed on texts of your own, one a line; the last 100 are asked
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from pgvector import HalfVector

from bench.figures import Figure
from bench.places import temporary_server
from recollect.engine.engine import Engine
from recollect.memories import embed
from recollect.model import ExportedMemory, NewMemory, NodeFilter
from recollect.ports import Executor
from recollect.providers.executors import make_executor
from recollect.recall.recall import embedded
from recollect.recall.sql import candidates, filtered
from recollect.recall.sql.candidates import CandidateQuery
from recollect.settings import Settings
from recollect.store.database import driver

SIZE = 100_000
DEPTH = 100
QUESTIONS = 100
DIM = 384
BASE = 2000
SEARCHERS = 8
# Smaller spaces, and how many milliseconds a recall may take there.
SMALL = {5_000: 6.0, 20_000: 10.0}


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench recall")
    parser.add_argument("--data", type=Path, help="a folder with one folder a conversation")
    parser.add_argument("--out", type=Path, help="write the scorer's run file here")
    parser.add_argument("--reranker", help="ask every question once more with this one, as RECOLLECT_RERANKER")
    parser.add_argument("--texts", type=Path, help="a file with one text a line")
    given = parser.parse_args(rest)
    if given.data:
        executor = make_executor(Settings.load().ray)
        try:
            return quality(given.data, given.out, given.reranker, executor)
        finally:
            if executor:
                executor.close()
    if given.texts:
        return asyncio.run(speed_on(given.texts))
    return asyncio.run(speed(size or SIZE))


@asynccontextmanager
async def temporary_engine(**given: Any) -> AsyncIterator[Engine]:
    with temporary_server() as server:
        async with Engine(Settings.load(database_url=server.url, **given)) as engine:
            yield engine


@asynccontextmanager
async def second_engine(first: Engine, reranker: str | None) -> AsyncIterator[Engine | None]:
    """The same memories, asked with a reranker; none where there is no reranker."""
    if reranker is None:
        yield None
        return
    async with Engine(first.settings.model_copy(update={"reranker": reranker})) as engine:
        yield engine


# -- quality


@dataclass(kw_only=True)
class Asked:
    """What was found in one conversation, or in all of them."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    found: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    newer: list[bool] = field(default_factory=list)
    reranked: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: "Asked") -> None:
        self.lines += other.lines
        self.newer += other.newer
        for ours, theirs in ((self.found, other.found), (self.reranked, other.reranked)):
            for k, values in theirs.items():
                ours[k] += values


Conversation = tuple[str, list[dict[str, Any]], list[dict[str, Any]]]  # name, corpus, questions


def quality(
    data: Path, out: Path | None, reranker: str | None = None, executor: Executor | None = None
) -> list[Figure]:
    """Ask every question of every conversation, each in a fresh space; plain search, no floors, no caps."""
    folders = sorted(one for one in data.iterdir() if (one / "queries.jsonl").exists())
    every = ((one.name, rows(one / "corpus.jsonl"), rows(one / "queries.jsonl")) for one in folders)
    answers = Asked()
    for one in executor.map(asked_elsewhere, reranker, every) if executor else asked_here(reranker, every):
        answers.add(one)
        print(f"{one.lines[0]['conversation'] if one.lines else '-'}: {len(one.lines)} questions", flush=True)
    return told(data, out, reranker, answers)


def asked_elsewhere(reranker: str | None, conversation: Conversation) -> Asked:
    """One conversation in whichever process, with a database and an engine of its own."""
    return next(asked_here(reranker, [conversation]))


def asked_here(reranker: str | None, conversations: Iterable[Conversation]) -> Iterator[Asked]:
    with asyncio.Runner() as loop, ExitStack() as stack:
        engines = AsyncExitStack()
        stack.callback(lambda: loop.run(engines.aclose()))
        engine = loop.run(engines.enter_async_context(temporary_engine()))
        second = loop.run(engines.enter_async_context(second_engine(engine, reranker)))
        for conversation in conversations:
            yield loop.run(asked_one(engine, second, conversation))


async def asked_one(engine: Engine, second: Engine | None, conversation: Conversation) -> Asked:
    name, corpus, questions = conversation
    answers = Asked()
    space, names = await taught(engine, corpus)
    again = await second.in_space(space.space.slug) if second else None
    for question in questions:
        started = time.perf_counter()
        hits = await space.recall(question["text"], limit=DEPTH, weak=True)
        spent = (time.perf_counter() - started) * 1000
        ids = [name for hit in hits for name in names[hit.node.source_id or ""]]
        answers.lines.append({"conversation": name, "query_id": question["id"], "retrieved": ids, "latency_ms": spent})
        judge(question, ids, answers.found, answers.newer)
        if again:
            hits = await again.recall(question["text"], limit=DEPTH, weak=True)
            judge(question, [name for hit in hits for name in names[hit.node.source_id or ""]], answers.reranked, [])
    return answers


def told(data: Path, out: Path | None, reranker: str | None, answers: Asked) -> list[Figure]:
    lines, found, newer, reranked = answers.lines, answers.found, answers.newer, answers.reranked
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
            Figure(
                name=f"recall@{k}, gain of the reranker",
                value=100 * (statistics.mean(values) - statistics.mean(found[k])),
                how=f"{100 * statistics.mean(values):.1f} with {reranker}",
            )
            for k, values in sorted(reranked.items())
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
    """The whole recall (the question's vector is known) beside a bare pgvector top-200 query, on the same vectors."""
    async with temporary_engine(hnsw_min_rows=min(10_000, count), cache_size=1000) as engine:
        space = await filled(engine, count)
        await ready(space)
        whole = await figures(space, questions(), count)
        return [*whole, *[one for size in SMALL for one in await after_load(size)]]


def questions() -> list[str]:
    return [sentence(np.random.default_rng(900_000 + number)) for number in range(QUESTIONS)]


async def typed_live(space: Engine, count: int) -> list[Figure]:
    """Hits while somebody types: each a question never asked before, embedded and not noted."""
    fresh = [sentence(np.random.default_rng(990_000 + number)) for number in range(QUESTIONS)]
    spent = [await timed(space.recall(question, noted=False)) for question in fresh]
    how = f"{count:,} memories; embedding the question included, nothing noted"
    return [Figure(name="typed live p50, ms", value=1000 * statistics.median(spent), bar=25, better="lower", how=how)]


async def after_load(count: int) -> list[Figure]:
    """A space right after it was loaded, by a worker as users have it, and once it has settled."""
    async with temporary_engine(cache_size=1000) as engine:
        space = await filled(engine, count)
        at_once = await in_turn(space)
        await ready(space)
        settled = statistics.median([await in_turn(space) for _ in range(3)])
    how = f"{count:,} memories, {QUESTIONS} questions, the embedding aside, logging included"
    return [
        Figure(name=f"recall p50 at {count:,}, ms", value=settled, bar=SMALL[count], better="lower", how=how),
        Figure(
            name=f"right after a load of {count:,} / settled, p50",
            value=at_once / settled,
            bar=2.0,
            better="lower",
            how=how,
        ),
    ]


async def in_turn(space: Engine) -> float:
    """The median of a recall in milliseconds, each question's vector known."""
    spent = []
    for question in questions():
        await embedded(space.core, space.core.embedder(), question)
        space.core.recalls.clear()
        spent.append(await timed(space.recall(question)))
    return 1000 * statistics.median(spent)


async def speed_on(file: Path) -> list[Figure]:
    """The same on real texts, with the vectors that the model gives them."""
    lines = file.read_text(encoding="utf8").splitlines()
    texts = list(dict.fromkeys(line for line in lines if line.strip()))
    told, asked = texts[:-QUESTIONS], texts[-QUESTIONS:]
    async with temporary_engine(hnsw_min_rows=10_000, cache_size=1000) as engine:
        space = await space_for(engine)
        await space.add_many(
            (NewMemory(text=text, metadata=in_part(number)) for number, text in enumerate(told)), wait=False
        )
        await space.work()
        await ready(space)
        return await figures(space, asked, len(told))


async def figures(space: Engine, asked: list[str], count: int) -> list[Figure]:
    async with in_the_database(space) as plain:
        for question in asked:
            await space.recall(question)
            await plain.recall(question)
        await space.core.in_memory.settled()
        settled = [*await beside_bare(space, plain, asked, count), *await typed_live(space, count)]
        return [*settled, *await under_load(plain, asked, count)]


@asynccontextmanager
async def in_the_database(space: Engine) -> AsyncIterator[Engine]:
    """The same space for who keeps nothing of it in memory, as it is answered while it changes."""
    settings = space.core.settings.model_copy(update={"search_in_memory_mb": 0})
    async with Engine(settings) as engine:
        yield await engine.in_space(space.space.slug)


async def beside_bare(space: Engine, plain: Engine, asked: list[str], count: int) -> list[Figure]:
    """Two bare queries: with ef_search = LIMIT, the least there is; and with the engine's own, which finds as much."""
    whole, changing, bare, careful, few, overlap, missing, right = [], [], [], [], [], [], [], []
    some = NodeFilter(metadata={"extra": {"part": 7}}, excluded=False)
    care = space.core.care(space.space.id)
    for question in asked:
        vector = (await space.core.embedder().embed([question]))[0]
        space.core.recalls.clear()
        plain.core.recalls.clear()
        await embedded(plain.core, plain.core.embedder(), question)
        whole.append(await timed(space.recall(question)))
        changing.append(await timed(plain.recall(question)))
        bare.append(await timed(bare_query(space, vector, ef_search=candidates.POOL)))
        careful.append(await timed(bare_query(space, vector, ef_search=care)))
        few.append(await timed(plain.recall(question, wanted=some)))
        exact = await nearest(space, vector, exactly=True)
        overlap.append(share(await nearest(space, vector, exactly=False), exact))
        missing.append(share(await bare_query(space, vector, ef_search=candidates.POOL), exact))
        right.append(await filter_is_right(space, question, some))
    how = f"{count:,} memories, {len(asked)} questions in turn"
    found = statistics.mean(missing)
    return [
        Figure(
            name="recall / bare pgvector top 200, p50",
            value=statistics.median(whole) / statistics.median(bare),
            bar=2.5,
            better="lower",
            how=f"the bare query with ef_search {candidates.POOL}, which finds {found:.3f} of the nearest",
        ),
        Figure(
            name="recall / bare pgvector top 200 that finds as much, p50",
            value=statistics.median(whole) / statistics.median(careful),
            bar=1.5,
            better="lower",
            how=f"the bare query with ef_search {care}; the space is searched in memory",
        ),
        Figure(
            name="the same while the space changes",
            value=statistics.median(changing) / statistics.median(careful),
            better="lower",
            how=f"nothing of it in memory: both with ef_search {care}",
        ),
        Figure(name="recall p50, ms", value=1000 * statistics.median(whole), better="lower", how="logging included"),
        Figure(name="bare pgvector top 200 p50, ms", value=1000 * statistics.median(bare), better="lower", how=how),
        Figure(
            name="bare query that finds as much p50, ms",
            value=1000 * statistics.median(careful),
            better="lower",
            how=how,
        ),
        Figure(name="candidates' recall against exact", value=statistics.mean(overlap), bar=0.995, how="200 nearest"),
        Figure(
            name="with a 1 % filter / without, p50",
            value=statistics.median(few) / statistics.median(changing),
            bar=1.0,
            better="lower",
            how="metadata containment; both in the database",
        ),
        Figure(name="recall with a 1 % filter", value=statistics.mean(right), bar=1.0, how="against an exact search"),
    ]


async def under_load(space: Engine, asked: list[str], count: int) -> list[Figure]:
    """Searchers at once, alone and while another process adds and embeds."""
    quiet = await searchers(space, asked)
    busy_process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.recall", space.core.database.dsn, space.space.slug
    )
    try:
        await asyncio.sleep(3)
        busy = await searchers(space, asked)
    finally:
        busy_process.terminate()
        await busy_process.wait()
    how = f"{SEARCHERS} searchers in the database, {count:,} memories; meanwhile another process adds and re-embeds"
    return [
        Figure(
            name="p95 under writes / quiet",
            value=float(np.quantile(busy, 0.95) / np.quantile(quiet, 0.95)),
            bar=2.0,
            better="lower",
            how=how,
        ),
        Figure(name="p95 quiet, ms", value=1000 * float(np.quantile(quiet, 0.95)), better="lower", how=how),
    ]


async def searchers(space: Engine, asked: list[str]) -> list[float]:
    spent: list[float] = []

    async def one(first: int) -> None:
        for question in asked[first::SEARCHERS] * 3:
            space.core.recalls.clear()
            spent.append(await timed(space.recall(question)))

    await asyncio.gather(*(one(number) for number in range(SEARCHERS)))
    return spent


async def keep_busy(url: str, slug: str) -> None:
    """Another process: adds memories and embeds with another model (so that everything is embedded anew)."""
    async with Engine(Settings.load(database_url=url, space=slug, embedder="hashing:384")) as engine:
        number = 0
        while True:
            chance = np.random.default_rng(uuid4().int % 2**32)
            await engine.add_many([NewMemory(text=f"{uuid4()} {sentence(chance)}") for _ in range(20)], wait=False)
            number += 1
            await engine.work()


async def timed(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def vocabulary(size: int) -> list[str]:
    """English words, the more common first: those of the model's own vocabulary."""
    words = (files("recollect.providers") / "data" / "vocab.txt").read_text(encoding="utf8").splitlines()
    return [word for word in words if word.isascii() and word.isalpha() and len(word) >= 4][:size]


FRAME = "{} told {} that the {} of the {} was {} in {} when {} came from {} with a {} {}"
WORDS = vocabulary(8000)
# As in language: few words are common, most are rare.
SHARES = 1 / np.arange(10, 10 + len(WORDS))
SHARES /= SHARES.sum()


def sentence(chance: np.random.Generator) -> str:
    return FRAME.format(*(WORDS[number] for number in chance.choice(len(WORDS), FRAME.count("{}"), p=SHARES)))


async def filled(engine: Engine, count: int) -> Engine:
    """A space of memories with vectors shaped as the model's are: mixtures of the vectors of real sentences."""
    chance = np.random.default_rng(0)
    space = await space_for(engine)
    base = await engine.core.embedder().embed([sentence(chance) for _ in range(BASE)])
    for first in range(0, count, 2000):
        size = min(2000, count - first)
        one, other = base[chance.integers(0, BASE, size)], base[chance.integers(0, BASE, size)]
        mixed = 0.7 * one + 0.3 * other + chance.normal(0, 0.02, one.shape)
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        await space.add_many(
            [
                ExportedMemory(
                    text=f"{first + number} {sentence(chance)}",
                    metadata=in_part(first + number),
                    vectors={engine.core.embedder().model: vector.astype("<f2").tobytes()},
                )
                for number, vector in enumerate(mixed)
            ],
            wait=False,
        )
    await space.work()
    return space


def in_part(number: int) -> dict[str, Any]:
    """What the filter of 1 % asks for."""
    return {"extra": {"part": number % 100}}


async def space_for(engine: Engine) -> Engine:
    await engine.add_space("speed")
    return await engine.in_space("speed")


async def ready(space: Engine) -> None:
    await embed.ensure_index(space.core, space.core.embedder())
    async with space.core.database.alone() as connection:
        await connection.execute("VACUUM ANALYZE")


async def bare_query(space: Engine, vector: np.ndarray[Any, Any], *, ef_search: int) -> list[Any]:
    model = space.core.embedder().model
    async with space.core.database.search(space.space.id, ef_search=ef_search, timeout_seconds=30) as db:
        raw = await driver(db)
        found = await raw.fetch(
            f"SELECT node_id FROM embeddings WHERE model = $2 AND dim = {DIM}"
            f" ORDER BY vector::halfvec({DIM}) <=> $1 LIMIT {candidates.POOL}",
            *(HalfVector(vector), model),
        )
    return [record["node_id"] for record in found]


async def nearest(space: Engine, vector: np.ndarray[Any, Any], *, exactly: bool) -> list[Any]:
    """The vector leg, as a recall asks for it."""
    async with space.core.search(space.space.id) as db:
        return list(await filtered.nearest(db, asked_in(space, vector), kinds=["memory"], exactly=exactly))


def asked_in(space: Engine, vector: np.ndarray[Any, Any]) -> CandidateQuery:
    return CandidateQuery(model=space.core.embedder().model, dim=len(vector), vector=vector)


def share(ours: list[Any], true: list[Any]) -> float:
    return len(set(ours) & set(true)) / len(true)


async def filter_is_right(space: Engine, question: str, some: NodeFilter) -> float:
    """The share of the best by vector that the filtered candidates hold: all of them, since both are exact.

    The question is rounded as the database rounds it, and two that differ by less than that are as good as each other.
    """
    vector = (await space.core.embedder().embed([question]))[0]
    async with space.core.search(space.space.id) as db:
        few = filtered.filtered(db, some)
        _, ours = await filtered.nearest_of(db, asked_in(space, vector), few)
        ids = [record[0] for record in await (await driver(db)).fetch(few.statement, *few.values)]
        vectors = await candidates.vectors_of(db, ids, model=space.core.embedder().model)
    asked = vector.astype(np.float16).astype(np.float64)
    cosines = {id_: float(one @ asked / np.linalg.norm(one) / np.linalg.norm(asked)) for id_, one in vectors.items()}
    best = sorted(cosines.values(), reverse=True)[: candidates.POOL]
    return sum(cosines[id_] > best[-1] - 1e-6 for id_ in ours) / len(best)


if __name__ == "__main__":
    asyncio.run(keep_busy(sys.argv[1], sys.argv[2]))
