"""Two servers on one database against one (X02): searches a second, and whose processor time they take.

A search is the work of the server: it embeds the question, ranks, and writes JSON; the database looks up a few rows of
a small space. One embedding thread a server and no kept answers, so that a server is limited by its own core. Where the
database, the servers and whoever asks share two cores, two servers cannot be twice as fast: the share of the
processor time that is the server's own says how much is possible there, and what a machine with more cores would give.
"""

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

from bench.figures import Figure
from bench.store import texts
from recollect.engine.engine import Engine
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.conftest import open_directory

SIZE = 400
MEMORIES = 2_000
ROUNDS = 5
AT_ONCE = 8
TICKS = os.sysconf("SC_CLK_TCK")
SERVE = """
from recollect.doors import logs
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
    """So many searches: how long they took, and the processor time of the servers, of the database and of the asker."""

    searches: int
    seconds: float
    servers: float
    database: float
    asker: float

    @property
    def rate(self) -> float:
        return self.searches / self.seconds

    @property
    def ms_of_server(self) -> float:
        return 1000 * self.servers / self.searches

    @property
    def share_of_server(self) -> float:
        return self.servers / (self.servers + self.database + self.asker)


def run(size: int | None, _rest: list[str]) -> list[Figure]:
    searches = size or SIZE
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "home") as server, ExitStack() as stack:
            asyncio.run(fill(server.url))
            servers = [stack.enter_context(serving(server.url)) for _ in range(2)]
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
def serving(url: str) -> Iterator[Serving]:
    environment = {**os.environ, **SETTINGS, "RECOLLECT_DATABASE_URL": url}
    with subprocess.Popen([sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            yield Serving(address=one.stdout.readline().strip(), pid=one.pid)
        finally:
            one.terminate()


def measured(servers: Sequence[Serving], database: EmbeddedServer, searches: int) -> dict[int, list[Round]]:
    """One server and two, in turns; the first round of each only warms up."""
    rounds: dict[int, list[Round]] = {1: [], 2: []}
    for number in range(ROUNDS + 1):
        for many, kept in rounds.items():
            questions = [f"{text} {number}" for text in texts(searches, seed=100 + 2 * number + many)]
            one = asyncio.run(one_round(servers[:many], database, questions))
            if number:
                kept.append(one)
    return rounds


async def one_round(servers: Sequence[Serving], database: EmbeddedServer, questions: Sequence[str]) -> Round:
    left = iter(questions)
    postmaster = int((database.data_directory / "postmaster.pid").read_text().split()[0])
    before = processor_seconds(servers, postmaster)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as asking:
        for place in range(AT_ONCE):
            asking.create_task(ask(servers[place % len(servers)], left))
    seconds = time.perf_counter() - started
    spent = [after - earlier for after, earlier in zip(processor_seconds(servers, postmaster), before, strict=True)]
    return Round(searches=len(questions), seconds=seconds, servers=spent[0], database=spent[1], asker=spent[2])


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


def processor_seconds(servers: Sequence[Serving], postmaster: int) -> tuple[float, float, float]:
    """Of the servers, of the database with all its processes, and of this one."""
    return sum(map(spent, (one.pid for one in servers))), spent_below(postmaster), time.process_time()


def spent(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - a name of the kernel's
        after_name = file.read().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS


def spent_below(pid: int) -> float:
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return spent(pid) + sum(spent(int(child)) for child in file.read().split())


def figures(rounds: dict[int, list[Round]], searches: int) -> list[Figure]:
    ratios = [two.rate / one.rate for one, two in zip(rounds[1], rounds[2], strict=True)]
    by_time = [2 * one.ms_of_server / two.ms_of_server for one, two in zip(rounds[1], rounds[2], strict=True)]
    rate = statistics.median(one.rate for one in rounds[1])
    share = statistics.median(one.share_of_server for one in rounds[2])
    how = f"{searches:,} searches of {MEMORIES:,} memories by {AT_ONCE} callers, in turns, median of {ROUNDS} rounds"
    cores = os.cpu_count() or 1
    return [
        Figure(name="two servers, throughput of one", value=statistics.median(ratios), bar=1.6, how=how),
        Figure(
            name="two servers, by processor time of the servers",
            value=statistics.median(by_time),
            bar=1.6,
            how="twice what one search costs the server with one, by what it costs with two: cores enough for all",
        ),
        Figure(
            name="the servers' share of the processor time",
            value=share,
            how="the rest is the database's and the asker's",
        ),
        Figure(
            name=f"most that is possible on these {cores} cores",
            value=min(2.0, cores * share),
            how="with all of it on the same cores",
        ),
        Figure(name="searches a second, one server", value=rate, how="of the same"),
    ]
