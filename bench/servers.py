"""Two servers on one database against one (X02): searches a second, and whose processor time they take.

./run bench servers [--size 200]        two servers on one PostgreSQL
./run bench servers --on citus          the spaces of one database on several servers (X04, bench/citus.py)

A search is the work of the server: it embeds the question (as long as what an agent asks with: the message it was
given), ranks, and writes JSON; the database looks up some rows of a small space. Each server is held to one core, as a
container with one processor is, and keeps no answers. Where the database, the servers and whoever asks share two
cores, two servers cannot be twice as fast: by the processor time that each part takes of a search, it is reckoned how
much is possible there, and what cores enough for all would give.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench import citus
from bench.figures import Figure
from bench.processes import postmaster, spent, spent_below, spent_by_all
from bench.store import texts
from recollect.engine.engine import Engine
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.conftest import open_directory

SIZE = 200
MEMORIES = 500
TEXTS_A_QUESTION = 4  # about 160 words
ROUNDS = 5
AT_ONCE = 8
SERVE = """
from recollect import logs
from recollect.doors.api.server import serve
from recollect.settings import Settings
logs.configure(level="warning", format="json")
serve(Settings.load(), ready=lambda address: print(address, flush=True))
"""
SETTINGS = {"RECOLLECT_CACHE_SIZE": "0", "RECOLLECT_EMBEDDING_THREADS": "1", "RECOLLECT_PORT": "0"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    address: str
    pid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """So many searches: how long they took, and the processor time of the servers, of the database, of the asker, and
    of whatever else was going on."""

    searches: int
    seconds: float
    servers: float
    database: float
    asker: float
    others: float

    @property
    def rate(self) -> float:
        return self.searches / self.seconds


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench servers")
    parser.add_argument("--on", choices=["citus"], help="spaces on a Citus cluster, beside local tables")
    if parser.parse_args(rest).on == "citus":
        return citus.run(size)
    searches = size or SIZE
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "home") as server, ExitStack() as stack:
            asyncio.run(fill(server.url))
            servers = [stack.enter_context(serving(server.url, core)) for core in range(2)]
            rounds = measured(servers, server, searches)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return figures(rounds, searches)


async def fill(url: str) -> None:
    async with Engine(Settings.load(database_url=url)) as engine:
        await engine.add_many([NewMemory(text=text) for text in texts(MEMORIES, seed=7)], wait=False)
        while await engine.work():
            pass


@contextmanager
def serving(url: str, core: int) -> Iterator[Serving]:
    """A server that is held to one core."""
    environment = {**os.environ, **SETTINGS, "RECOLLECT_DATABASE_URL": url}
    with subprocess.Popen([sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            os.sched_setaffinity(one.pid, {core % (os.cpu_count() or 1)})
            yield Serving(address=one.stdout.readline().strip(), pid=one.pid)
        finally:
            one.terminate()


def measured(servers: Sequence[Serving], database: EmbeddedServer, searches: int) -> dict[int, list[Round]]:
    """One server and two, in turns; the first round of each only warms up."""
    rounds: dict[int, list[Round]] = {1: [], 2: []}
    for number in range(ROUNDS + 1):
        for many, kept in rounds.items():
            questions = asked(searches, seed=100 + 2 * number + many)
            one = asyncio.run(one_round(servers[:many], database, questions))
            if number:
                kept.append(one)
    return rounds


def asked(count: int, seed: int) -> list[str]:
    """Questions that were never asked before."""
    parts = list(texts(TEXTS_A_QUESTION * count, seed=seed))
    return [
        " ".join([str(seed), *parts[first : first + TEXTS_A_QUESTION]])
        for first in range(0, len(parts), TEXTS_A_QUESTION)
    ]


async def one_round(servers: Sequence[Serving], database: EmbeddedServer, questions: Sequence[str]) -> Round:
    left = iter(questions)
    before = processor_seconds(servers, database)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as asking:
        for place in range(AT_ONCE):
            asking.create_task(ask(servers[place % len(servers)], left))
    seconds = time.perf_counter() - started
    after = processor_seconds(servers, database)
    ours, theirs, mine, everybodys = (late - early for late, early in zip(after, before, strict=True))
    others = max(0.0, everybodys - ours - theirs - mine)
    return Round(searches=len(questions), seconds=seconds, servers=ours, database=theirs, asker=mine, others=others)


async def ask(server: Serving, questions: Iterator[str]) -> None:
    """One search after the other, on one connection, with as little work of our own as possible."""
    host = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(host.hostname, host.port)
    for question in questions:
        body = json.dumps({"query": question, "limit": 10}).encode()
        head = f"POST /api/v1/search HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
    writer.close()
    await writer.wait_closed()


def processor_seconds(servers: Sequence[Serving], database: EmbeddedServer) -> tuple[float, float, float, float]:
    """Of the servers, of the database with all its processes, of this one, and of everybody."""
    of_database = spent_below(postmaster(database.data_directory))
    return sum(spent(one.pid) for one in servers), of_database, time.process_time(), spent_by_all()


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Milliseconds of the processor that one search takes, by who spends them."""

    server: float
    database: float
    asker: float

    @property
    def all(self) -> float:
        return self.server + self.database + self.asker

    def a_second(self, servers: int, cores: int) -> float:
        """The most searches that so many servers of one core each can answer where all share so many cores."""
        return min(servers / self.server, cores / self.all) * 1000


def parts(rounds: Sequence[Round]) -> Parts:
    searches = sum(one.searches for one in rounds)
    server, database, asker = (
        1000 * sum(getattr(one, part) for one in rounds) / searches for part in ("servers", "database", "asker")
    )
    return Parts(server=server, database=database, asker=asker)


def figures(rounds: dict[int, list[Round]], searches: int) -> list[Figure]:
    one, two, cores = parts(rounds[1]), parts(rounds[2]), os.cpu_count() or 1
    everything = [*rounds[1], *rounds[2]]
    ratios = [both.rate / alone.rate for alone, both in zip(rounds[1], rounds[2], strict=True)]
    how = f"{searches:,} searches of {MEMORIES:,} memories by {AT_ONCE} callers, in turns, median of {ROUNDS} rounds"
    of_two = "processor time of one search where two answer"
    return [
        Figure(name="two servers, throughput of one", value=statistics.median(ratios), bar=1.6, how=how),
        Figure(
            name="cores that other programs took meanwhile",
            value=sum(round_.others for round_ in everything) / sum(round_.seconds for round_ in everything),
            better="lower",
            how="of the same: where they took any, the clock says little of the servers",
        ),
        Figure(
            name="two servers, throughput of one, with cores enough for all",
            value=two.a_second(2, 1_000) / one.a_second(1, 1_000),
            bar=1.6,
            how="by the processor time of a server: 2 would be as much for each search as where one answers",
        ),
        Figure(
            name=f"two servers, throughput of one, most that is possible on {cores} cores",
            value=two.a_second(2, cores) / one.a_second(1, cores),
            how="by the processor time of all parts, which share them",
        ),
        Figure(name="server, ms a search", value=two.server, better="lower", how=of_two),
        Figure(name="database, ms a search", value=two.database, better="lower", how=of_two),
        Figure(name="asker, ms a search", value=two.asker, better="lower", how=of_two),
        Figure(name="server, ms a search, where one answers", value=one.server, better="lower", how="of the same"),
    ]
