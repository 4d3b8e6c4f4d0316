"""Spaces on Citus beside the same spaces on local tables (X04): ./run bench servers --on citus.

Both are databases of one coordinator, on one machine, asked in turns: what differs is the way to the workers. Texts are
embedded by hashing, at no cost: a model's time would be the same on both sides. RECOLLECT_CITUS_CLUSTER names a
script that starts a cluster (tests/citus.py).

That the spaces of two workers do not slow each other cannot be seen by the clock where both share the same cores. So it
is counted what they have in common: what a worker does while only the spaces of another are used, and whether a write
that is left open in one keeps anybody in another waiting.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import numpy as np

from bench.figures import Figure, ratio
from bench.processes import spent_below
from bench.recall import timed
from bench.scale import sentences
from recollect.engine.engine import Engine
from recollect.settings import Settings
from tests.citus import ABSENT, NODES, SCRIPT, Cluster, new_database, running, space_on

MEMORIES = 3_000
ROUNDS = 20
IN_A_ROUND = 5
SHARDS = 8
MANY = 1_000
TIMES_MANY = 3

Work = Callable[[Engine, str], Awaitable[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A space, and the seconds (by the clock, and of all processors) that each kind of work took there, by round."""

    space: Engine
    clock: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)


async def add(space: Engine, text: str) -> None:
    await space.add(text, wait=False)


async def add_with_vector(space: Engine, text: str) -> None:
    await space.add(text)


async def recall(space: Engine, text: str) -> None:
    await space.recall(text)


WORK: dict[str, Work] = {"recall": recall, "add": add, "add with its vector": add_with_vector}
BARS = {"recall": 1.6, "add": 2.5, "add with its vector": 2.5}


def run(size: int | None) -> list[Figure]:
    if SCRIPT is None:
        sys.exit(f"{ABSENT}.")
    with running() as cluster:
        return asyncio.run(measured(cluster, size or MEMORIES))


async def measured(cluster: Cluster, memories: int) -> list[Figure]:
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(engine_of(await new_database(cluster, "local")))
        spread = await stack.enter_async_context(engine_of(cluster.url))
        await spread.distribute(shards=SHARDS)
        here, there = [await space_on(spread, cluster, node, f"on-{node}") for node in range(1, NODES)]
        for space in (local, here, there):
            await filled(space, memories)
        for engine in (local, spread):
            async with engine.core.database.alone() as connection:
                await connection.execute("VACUUM ANALYZE")  # else it is done by itself, in the midst of a round
        return [
            *await beside_local_tables(cluster, local, here, memories),
            await many_at_once(local, here),
            *await beside_each_other(cluster, here, there),
        ]


def engine_of(url: str) -> Engine:
    return Engine(Settings.load(database_url=url, embedder="hashing:384", cache_size=0))


async def filled(space: Engine, memories: int) -> None:
    await space.add_many(new_texts(memories, seed=1), wait=False)
    await space.work()


def new_texts(count: int, seed: int) -> list[str]:
    return [f"{seed}: {text}" for text in sentences(np.random.default_rng(seed), count)]


# -- beside local tables


async def beside_local_tables(cluster: Cluster, local: Engine, spread: Engine, memories: int) -> list[Figure]:
    sides = Side(space=local), Side(space=spread)
    for number in range(ROUNDS + 1):
        for name, work in WORK.items():
            for side in sides:
                clock, processor = await one_round(cluster, side.space, work, number)
                if number:  # the first round warms up
                    side.clock.setdefault(name, []).append(clock)
                    side.processor.setdefault(name, []).append(processor)
    how = f"{memories:,} memories, {ROUNDS} rounds of {IN_A_ROUND} in turns, median of the ratios"
    return [figure for name in WORK for figure in compared(name, *sides, how)]


async def one_round(cluster: Cluster, space: Engine, work: Work, number: int) -> tuple[float, float]:
    given = [f"{work.__name__} {text}" for text in new_texts(IN_A_ROUND, seed=1000 + number)]
    before = spent_in(cluster)
    clock = await timed(one_by_one(space, work, given))
    return clock, spent_in(cluster) - before


async def one_by_one(space: Engine, work: Work, given: Sequence[str]) -> None:
    for text in given:
        await work(space, text)


def spent_in(cluster: Cluster) -> float:
    """Seconds of the processor: of all servers of the cluster, and of this process."""
    return sum(spent_below(cluster.postmaster(node)) for node in range(NODES)) + time.process_time()


def compared(name: str, local: Side, spread: Side, how: str) -> list[Figure]:
    milliseconds = 1000 * statistics.median(local.clock[name]) / IN_A_ROUND
    by_processor = sum(spread.processor[name]) / sum(local.processor[name])
    return [
        Figure(
            name=f"{name}, Citus / local tables",
            value=ratio(spread.clock[name], local.clock[name]),
            bar=BARS[name],
            better="lower",
            how=f"{how}; {milliseconds:.3g} ms on local tables",
        ),
        Figure(
            name=f"{name}, Citus / local tables, processor time",
            value=by_processor,
            better="lower",
            how="of the same: of all servers and the caller together",
        ),
    ]


async def many_at_once(local: Engine, spread: Engine) -> Figure:
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(TIMES_MANY + 1):
        for kept, space in zip(took, (local, spread), strict=True):
            spent = await timed(space.add_many(new_texts(MANY, seed=5000 + number), wait=False))
            if number:
                kept.append(spent)
    return Figure(
        name=f"{MANY:,} added at once, Citus / local tables",
        value=ratio(took[1], took[0]),
        better="lower",
        how=f"words indexed, vectors to come, {TIMES_MANY} times in turns",
    )


# -- two workers


async def beside_each_other(cluster: Cluster, here: Engine, there: Engine) -> list[Figure]:
    return [await work_of_the_other(cluster, here), await beside_an_open_write(here, there)]


async def work_of_the_other(cluster: Cluster, here: Engine) -> Figure:
    """What the second worker does while only a space of the first is used."""
    before = [spent_below(cluster.postmaster(node)) for node in range(NODES)]
    for number in range(ROUNDS):
        for work in WORK.values():
            await one_round(cluster, here, work, 2000 + number)
    spent = [spent_below(cluster.postmaster(node)) - earlier for node, earlier in enumerate(before)]
    return Figure(
        name="processor time of the other worker while the spaces of one are used",
        value=spent[2] / spent[1],
        bar=0.05,
        better="lower",
        how=f"to that of the one; {ROUNDS * IN_A_ROUND} recalls and {2 * ROUNDS * IN_A_ROUND} adds",
    )


async def beside_an_open_write(here: Engine, there: Engine) -> Figure:
    """Adds at one worker while a write at the other has taken all its locks, against quiet."""
    quiet, beside = [], []
    for number in range(ROUNDS):
        quiet.append(await timed(add(here, f"quiet, {number}")))
        async with there.core.transaction(there.space.id) as db:
            await db.run("UPDATE nodes SET importance = importance WHERE space_id = $1")
            await db.run("UPDATE lexicon_totals SET documents = documents WHERE space_id = $1")
            beside.append(await timed(add(here, f"beside, {number}")))
    return Figure(
        name="add beside a write that is open at the other worker / quiet",
        value=ratio(beside, quiet),
        bar=1.2,
        better="lower",
        how=f"every row of the other's space locked, {ROUNDS} times in turns, median of the ratios",
    )
