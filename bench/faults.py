"""Kill whatever runs, at random, while everything runs; then see whether anything was lost (S06).

./run bench faults [--size 40] [--seed 1]      --size is how many are killed, a few seconds each

Two writers, an asker and a tidier work on one home beside `recollect serve` and `recollect work` (faults_parts.py). Any
of them, a process of the database, or the whole database is killed with SIGKILL, and what has ended is started again.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.faults_parts import GRAPH, HASHING, PARTS, edges, furnish, take_back_everything
from bench.figures import Figure
from recollect.engine.engine import Engine
from recollect.settings import Settings
from recollect.store.database import driver

KILLS = 40
LONGEST_PAUSE_SECONDS = 1.0
HANG_SECONDS = 120.0  # whoever stores nothing for so long has come to a stop
PROGRAMS = ("serve", "work")
BACKEND, POSTMASTER = "a process of the database", "the database"
# A group is a step of a plan: all of it is done or nothing.
HALF_DONE = """
    SELECT count(*) FROM (
        SELECT FROM decisions GROUP BY space_id, plan_id, group_number
        HAVING bool_or(status = 'applied') AND bool_or(status = 'proposed')) AS half"""


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench faults")
    parser.add_argument("--seed", type=int, default=1, help="another seed kills at other moments")
    chance = random.Random(parser.parse_args(rest).seed)
    with tempfile.TemporaryDirectory(prefix="recollect-faults-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)
        return asyncio.run(suffered(House(Path(directory)), size or KILLS, chance))


@dataclass
class House:
    """A home, and the processes that work on it."""

    directory: Path
    start: Callable[..., "subprocess.Popen[bytes]"] = subprocess.Popen
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    killed: Counter[str] = field(default_factory=Counter)
    # Who did not end as it should (by a sentence and a code, where there is no database), with what it said last.
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def home(self) -> Path:
        return self.directory / "home"

    def settings(self, space: str = "default") -> Settings:
        return Settings.load(home=self.home, embedder=HASHING, space=space)

    def start_what_has_ended(self) -> None:
        for name in (*PROGRAMS, *PARTS):
            child = self.running.get(name)
            if child is not None and child.poll() is None:
                continue
            if child is not None:
                self._look_at_the_end_of(name, child.returncode)
            self.running[name] = self._start(name)

    def _start(self, name: str) -> "subprocess.Popen[bytes]":
        environment = os.environ | {"RECOLLECT_HOME": str(self.home), "RECOLLECT_EMBEDDER": HASHING}
        arguments = {"serve": ["serve", "--port", str(self.port)], "work": ["work"]}.get(name)
        given = ["-m", "recollect", *arguments] if arguments else ["-m", "bench.faults_parts", name]
        with (self.directory / f"{name}.log").open("ab") as log:
            return self.start(
                [sys.executable, *given, *([] if arguments else [str(self.directory), str(self.port)])],
                env=environment,
                cwd=Path(__file__).parents[1],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _look_at_the_end_of(self, name: str, code: int) -> None:
        log = self.directory / f"{name}.log"
        said = log.read_text(errors="replace").strip()
        if "Traceback" in said or code not in (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM, *range(128)):
            self.broken.append(f"{name} ended with {code}: {said[:2000]}")
        log.write_text("")

    def kill_one(self, chance: random.Random) -> None:
        """A client, the server, the worker, a backend, or the postmaster."""
        who = chance.choice([*PROGRAMS, *PARTS, BACKEND, POSTMASTER])
        victims = list(self._of_the_database(who)) if who in (BACKEND, POSTMASTER) else [self.running[who].pid]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
                self.killed[who] += 1

    def _of_the_database(self, who: str) -> Iterator[int]:
        with contextlib.suppress(FileNotFoundError, ValueError):  # nobody has started it again yet
            postmaster = int((self.home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
            yield from (map(int, children.split()) if who == BACKEND else [postmaster])

    def acknowledged(self) -> list[str]:
        return [line for file in self.directory.glob("*.acknowledged") for line in file.read_text().splitlines()]

    async def until_something_was_stored(self) -> None:
        before = len(self.acknowledged())
        async with asyncio.timeout(HANG_SECONDS):
            while len(self.acknowledged()) == before:  # noqa: ASYNC110 - other processes write them
                await asyncio.sleep(0.05)

    def stop(self) -> None:
        for name, child in self.running.items():
            child.send_signal(signal.SIGTERM if name in PROGRAMS else signal.SIGKILL)
        for name, child in self.running.items():
            self._look_at_the_end_of(name, child.wait())


async def suffered(house: House, kills: int, chance: random.Random) -> list[Figure]:
    async with Engine(house.settings()) as memory:
        await furnish(memory)
        before = await edges(await memory.in_space(GRAPH))
    try:
        await _kill_again_and_again(house, kills, chance)
    finally:
        house.stop()
    return await _looked_at(house, before)


async def _kill_again_and_again(house: House, kills: int, chance: random.Random) -> None:
    house.start_what_has_ended()
    while house.killed.total() < kills:
        await house.until_something_was_stored()
        await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_SECONDS))
        house.kill_one(chance)
        house.start_what_has_ended()
    await house.until_something_was_stored()


async def _looked_at(house: House, before: list[str]) -> list[Figure]:
    """Afterwards, with everything started anew by a stranger who knows only the home."""
    acknowledged = set(house.acknowledged())
    began = time.perf_counter()
    async with Engine(house.settings()) as memory:
        opened = time.perf_counter() - began
        stored = {node.text async for node in memory.stream()}
        graph = await memory.in_space(GRAPH)
        half_done = await _counted(graph, HALF_DONE)
        plans = await take_back_everything(graph)
        changed = set(before).symmetric_difference(await edges(graph))
        await memory.retry_jobs()
        while await memory.work():
            pass
        jobs = await memory.jobs()
        faults = (await memory.verify()).faults
    how = f"{house.killed.total()} kills: " + ", ".join(f"{name} {number}" for name, number in house.killed.items())
    none: dict[str, Any] = {"bar": 0, "better": "lower"}
    return [
        Figure(name="kills", value=house.killed.total(), how=how),
        Figure(name="acknowledged memories", value=len(acknowledged), how="each by a writer, after it was stored"),
        Figure(name="of them missing", value=len(acknowledged - stored), how="word for word", **none),
        Figure(name="groups half applied", value=half_done, how=f"of {plans} plans, applied or undone", **none),
        Figure(name="links not as before", value=len(changed), how="after all was undone, every column", **none),
        Figure(name="jobs not finished", value=jobs.waiting + jobs.failed, how="after one worker had its turn", **none),
        Figure(name="faults", value=sum(map(len, faults.values())), how="`recollect verify`", **none),
        Figure(name="ends without a sentence", value=len(house.broken), how="; ".join(house.broken) or "none", **none),
        Figure(name="opening afterwards, s", value=opened, how="recovery of the database included"),
    ]


async def _counted(memory: Engine, query: str) -> int:
    async with memory.core.transaction(memory.space.id) as db:
        return int(await (await driver(db)).fetchval(query))
