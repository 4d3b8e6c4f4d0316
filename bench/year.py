"""A year of a case bank with weekly runs, by a clock of its own: what must hold of every one of them (E36).

./run bench year [--size 2000]      --size is how many cases there are in the end
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from bench.figures import Figure
from recollect import AsyncRecollect
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.case_year import CaseYear, Clock

SIZE = 2_000
WEEKS = 52


def run(size: int | None, rest: list[str]) -> list[Figure]:
    argparse.ArgumentParser(prog="./run bench year").parse_args(rest)
    return asyncio.run(a_year(size or SIZE))


async def a_year(size: int) -> list[Figure]:
    weekly, clock, started = max(1, size // 130), Clock(), time.perf_counter()
    directory = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
    directory.chmod(0o755)
    try:
        with EmbeddedServer(directory / "home") as server:
            settings = Settings.load(database_url=server.url, embedder="hashing:256")
            async with AsyncRecollect(settings=settings, clock=clock, worker=False) as memory:
                year = CaseYear(memory, clock, cases=size - WEEKS * weekly, weekly=weekly, uses=size // 5)
                await year.pass_by(WEEKS)
                await year.take_everything_back()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for problem in year.problems[:20]:
        print(problem)
    did = ", ".join(f"{number:,} {what}" for what, number in year.counts.items() if what != "weeks")
    how = f"{size:,} cases, {WEEKS} weekly runs, {size // 5:,} uses a week: {did}; then every run undone"
    return [
        Figure(name="a year: what did not hold", value=len(year.problems), bar=0, better="lower", how=how),
        Figure(name="a year, s", value=time.perf_counter() - started, better="lower", how=how),
    ]
