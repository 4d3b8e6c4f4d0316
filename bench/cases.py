"""Cases: the whole run on a small bank, finding duplicates in a large one beside a bare product, searching meanwhile.

./run bench cases [--size 100000]      --size is that of the large bank; the others shrink with it
"""

import argparse
import asyncio
import statistics
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from bench.figures import Figure, alternate, ratio, seconds
from bench.recall import sentence, temporary_engine, timed
from recollect.cases.rules.duplicates import ROWS, duplicates, similarities, unit_rows
from recollect.engine.engine import Engine
from recollect.model import NewCase
from recollect.plans.throttle import half_of_the_cores
from recollect.settings import Settings
from recollect.store.database import driver

SIZE = 100_000
DIM = 384
SMALL, SMALL_DIM = 1_000, 1536
SEARCHED = 5_000
SEARCHES = 100
RUNS = 4
ABOVE = 0.95
ROUNDS = 3
# Of so many cases one is a duplicate, one poor, one unused: less than the brake stops.
ONE_IN = 25


def run(size: int | None, rest: list[str]) -> list[Figure]:
    argparse.ArgumentParser(prog="./run bench cases").parse_args(rest)
    count = size or SIZE
    return [
        *asyncio.run(whole_run(min(SMALL, count))),
        *beside_bare(count),
        asyncio.run(memory_needed(count)),
        *asyncio.run(searching(max(500, min(SEARCHED, count // 5)))),
    ]


# -- banks


def vectors_of(count: int, dim: int, seed: int = 0) -> NDArray[np.float16]:
    """Vectors in clumps, as those of real questions are; one in so many is a near copy of another."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(max(1, count // 50), dim)).astype(np.float32)
    made = centres[chance.integers(0, len(centres), count)]
    made += chance.normal(scale=0.6, size=(count, dim)).astype(np.float32)
    copies = np.arange(ONE_IN - 1, count, ONE_IN)
    made[copies] = made[copies - 1] + chance.normal(scale=0.05, size=(len(copies), dim)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made.astype(np.float16)


def cases_of(count: int) -> list[NewCase]:
    """Cases, of which one in so many asks and answers what the one before it does, like its vector."""
    chance = np.random.default_rng(1)
    now = datetime.now(UTC)
    said = [(f"{sentence(chance)} {number}", sentence(chance)) for number in range(count)]
    said[ONE_IN - 1 :: ONE_IN] = said[ONE_IN - 2 : -1 : ONE_IN]
    return [
        NewCase(
            query=said[number][0],
            response_text=said[number][1],
            usage_count=20,
            success_rate=5.0 if number % ONE_IN == 1 else 80.0,
            last_accessed_at=now - timedelta(days=120 if number % ONE_IN == 2 else 30),
            created_at=now - timedelta(days=400),
        )
        for number in range(count)
    ]


async def a_bank(engine: Engine, count: int, vectors: NDArray[np.float16]) -> Engine:
    """A bank in a space of its own, with these vectors."""
    await engine.add_space(slug := f"b-{uuid4().hex[:12]}")
    space = await engine.in_space(slug)
    added = await space.cases.add_many(cases_of(count), wait=False)
    await store(space, added.ids, vectors)
    return space


async def store(space: Engine, ids: Sequence[UUID], vectors: NDArray[np.float16]) -> None:
    model, dim, now = space.core.embedder().model, vectors.shape[1], datetime.now(UTC)
    rows = (
        (space.space.id, id_, model, dim, HalfVector(vector), "case", True, now)
        for id_, vector in zip(ids, vectors, strict=True)
    )
    columns = ["space_id", "node_id", "model", "dim", "vector", "kind", "recallable", "created_at"]
    async with space.core.database.owner() as connection:
        raw = await driver(connection)
        await raw.copy_records_to_table("embeddings", records=rows, columns=columns)
        await raw.execute("DELETE FROM embedding_jobs WHERE space_id = $1", space.space.id)
        await raw.execute("UPDATE spaces SET embedding_model = $1 WHERE id = $2", model, space.space.id)
    async with space.core.database.alone() as connection:
        await connection.execute("ANALYZE")


# -- the whole run


async def whole_run(count: int) -> list[Figure]:
    spent, pairs = [], []
    async with temporary_engine(embedder=f"hashing:{SMALL_DIM}") as engine:
        vectors = vectors_of(count, SMALL_DIM)
        for _ in range(ROUNDS):
            space = await a_bank(engine, count, vectors)
            started = time.perf_counter()
            plan = await space.cases.consolidate(dry_run=True)
            outcome = await space.plans.apply(plan.plan_id)
            spent.append(time.perf_counter() - started)
            assert outcome.applied == plan.removed_cases + plan.merged_cases + plan.archived_cases > 0
        free = np.ones(count, dtype=np.bool_)
        pairs = [seconds(lambda: duplicates(vectors, free, above=ABOVE)) for _ in range(ROUNDS)]
    how = f"{count:,} cases x {SMALL_DIM}, {outcome.applied} decisions; propose and apply; median of {ROUNDS}"
    return [
        Figure(name="whole run, s", value=statistics.median(spent), bar=1.0, better="lower", how=how),
        Figure(
            name="E33 duplicates, ms a pair",
            value=1000 * statistics.median(pairs) / (count * (count - 1) / 2),
            bar=1.0,
            better="lower",
            how=f"{count:,} x {SMALL_DIM}, every pair",
        ),
    ]


# -- duplicates in a large bank


def beside_bare(count: int) -> list[Figure]:
    vectors = vectors_of(count, DIM)
    unit, free = unit_rows(vectors), np.ones(count, dtype=np.bool_)

    def ours() -> float:
        with half_of_the_cores():  # as the policy does
            return seconds(lambda: duplicates(vectors, free, above=ABOVE))

    def product() -> None:
        for first in range(0, count, ROWS):
            unit[first : first + ROWS] @ unit.T  # and forgotten: together they would be 40 GB

    def bare() -> float:
        with half_of_the_cores():
            return seconds(product)

    mine, theirs = alternate(1 if count > 50_000 else ROUNDS, ours, bare)
    how = f"{count:,} x {DIM}, blocks of {ROWS} rows against all; both on half of the cores"
    return [
        Figure(name="duplicates / bare product", value=ratio(mine, theirs), bar=1.5, better="lower", how=how),
        Figure(name="duplicates, s", value=statistics.median(mine), better="lower", how=how),
        Figure(name="duplicates' recall", value=recall(vectors, unit), bar=1.0, how="groups, against all pairs"),
    ]


def recall(vectors: NDArray[np.float16], unit: NDArray[np.float32]) -> float:
    """The share of the merges that all pairs above the threshold lead to which were found."""
    near: dict[int, list[int]] = {}
    for first in range(0, len(unit), ROWS):
        rows, others = np.nonzero(unit[first : first + ROWS] @ unit.T > ABOVE - 1e-3)
        for row, other in zip((rows + first).tolist(), others.tolist(), strict=True):
            if row < other and similarities(vectors, row, np.array([other]))[0] > ABOVE:
                near.setdefault(row, []).append(other)
    wanted, gone = set[tuple[int, int]](), set[int]()
    for keeper in sorted(near):
        members: list[int] = []
        for other in near[keeper] if keeper not in gone else ():
            fits = all(max(other, one) in near.get(min(other, one), []) for one in members)
            if other not in gone and fits:
                members.append(other)
        gone.update(members)
        wanted.update((keeper, member) for member in members)
    found = duplicates(vectors, np.ones(len(vectors), dtype=np.bool_), above=ABOVE)
    merged = {(one.keeper, member) for one in found.groups for member in one.members}
    return len(wanted & merged) / len(wanted | merged) if wanted | merged else 1.0


async def memory_needed(count: int) -> Figure:
    """The highest resident memory of a process that reads a bank and proposes the whole run."""
    async with temporary_engine(embedder=f"hashing:{DIM}") as engine:
        space = await a_bank(engine, count, vectors_of(count, DIM))
        peak = await done_by(await begun(space, "propose"))
    how = f"peak resident memory of a process that proposes a run over {count:,} cases x {DIM}"
    return Figure(name="proposing, MB resident", value=peak / 1024, bar=1000, better="lower", how=how)


# -- a process of its own


async def begun(space: Engine, task: str) -> asyncio.subprocess.Process:
    """A process that has the bank open, and is about to do its task."""
    arguments = ("-m", "bench.cases", space.core.database.dsn, space.space.slug, task)
    child = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE)
    assert child.stdout
    assert await child.stdout.readline()
    return child


async def done_by(child: asyncio.subprocess.Process) -> int:
    """Let it do its task; returns what it says in the end."""
    said, _ = await child.communicate(b"go\n")
    return int(said)


async def be_the_child(url: str, slug: str, task: str) -> None:
    async with Engine(Settings.load(database_url=url, space=slug, embedder=f"hashing:{DIM}")) as engine:
        print("ready", flush=True)
        sys.stdin.readline()
        if task == "propose":
            await engine.cases.consolidate(dry_run=True)
            print(peak_kilobytes())
        else:
            print(await one_run(engine))


# -- searching meanwhile


async def searching(count: int) -> list[Figure]:
    """Searches one after the other, quiet and during runs, in turn of this server and of a process of its own."""
    quiet, busy = [], dict[str, list[float]](own=[], same=[])
    async with temporary_engine(embedder=f"hashing:{DIM}", pool_size=8) as engine:
        engine.core.serves = True  # as `recollect serve` does
        vectors, chance = vectors_of(count, DIM), np.random.default_rng(5)
        asked = [sentence(chance) for _ in range(SEARCHES)]
        for _ in range(RUNS):
            for where, during in busy.items():
                space = await a_bank(engine, count, vectors)
                await searched(space, asked)
                quiet += await searched(space, asked)
                work = one_run(space) if where == "same" else done_by(await begun(space, "run"))
                running = asyncio.create_task(work)
                during += await searched(space, asked * 100, running)
                assert await running > 0
    calm, own, same = (float(np.quantile(some, 0.95)) for some in (quiet, *busy.values()))
    how = f"{count:,} cases x {DIM}; {len(quiet)} searches quiet, {{}} during {RUNS} runs in {{}}"
    apart, beside = (
        how.format(len(busy["own"]), "a process of its own"),
        how.format(len(busy["same"]), "the server that searches"),
    )
    return [
        Figure(name="search p95 during a run / quiet", value=own / calm, bar=1.5, better="lower", how=apart),
        Figure(
            name="the same, run by the server that searches", value=same / calm, bar=1.5, better="lower", how=beside
        ),
        Figure(
            name="search p95 during a run, ms", value=1000 * max(own, same), bar=200, better="lower", how="E18, E33"
        ),
        Figure(name="search p95 quiet, ms", value=1000 * calm, better="lower", how=f"{count:,} cases x {DIM}"),
    ]


async def searched(space: Engine, asked: list[str], until: "asyncio.Task[int] | None" = None) -> list[float]:
    """How long each search took; no further ones once `until` is done."""
    spent: list[float] = []
    for question in asked:
        if until is not None and until.done():
            break
        spent.append(await timed(space.cases.search(question, limit=5)))
    return spent


async def one_run(space: Engine) -> int:
    plan = await space.cases.consolidate(dry_run=True)
    return (await space.plans.apply(plan.plan_id)).applied


def peak_kilobytes() -> int:
    """Of this program alone: what the process was before it became this one does not count."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    asyncio.run(be_the_child(*sys.argv[1:]))
