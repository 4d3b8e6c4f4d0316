"""A year of a case bank with weekly runs, by a clock of its own: what must hold of every one of them (E36).

./run bench year [--size 2000]      --size is how many cases there are in the end
"""

import argparse
import asyncio
import time

from bench.figures import Figure
from bench.places import temporary_server
from recollect import AsyncRecollect
from recollect.settings import Settings
from tests.case_year import CaseYear, Clock

SIZE = 2_000
WEEKS = 52


def run(size: int | None, rest: list[str]) -> list[Figure]:
    argparse.ArgumentParser(prog="./run bench year").parse_args(rest)
    return asyncio.run(a_year(size or SIZE))


async def a_year(size: int) -> list[Figure]:
    weekly, clock, started = max(1, size // 130), Clock(), time.perf_counter()
    with temporary_server() as server:
        settings = Settings.load(database_url=server.url, embedder="hashing:256")
        async with AsyncRecollect(settings=settings, clock=clock, worker=False) as memory:
            year = CaseYear(memory, clock, cases=size - WEEKS * weekly, weekly=weekly, uses=size // 5)
            await year.pass_by(WEEKS)
            await year.take_everything_back()
    for problem in year.problems[:20]:
        print(problem)
    did = ", ".join(f"{number:,} {what}" for what, number in year.counts.items() if what != "weeks")
    how = f"{size:,} cases, {WEEKS} weekly runs, {size // 5:,} uses a week: {did}; then every run undone"
    return [
        Figure(name="a year: what did not hold", value=len(year.problems), bar=0, better="lower", how=how),
        Figure(name="a year, s", value=time.perf_counter() - started, better="lower", how=how),
    ]
