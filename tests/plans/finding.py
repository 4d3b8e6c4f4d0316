"""How P25 finds a fault: a mending is taken out, sequences are played until one fails, and its steps are shortened.

    python -m tests.plans.finding                     every mending: the table of docs/how-it-is-tested.md
    python -m tests.plans.finding P15 P18             these alone
    python -m tests.plans.finding --seeds 1-50 none   nothing taken out: a long look at the code as it is
    python -m tests.plans.finding --seeds 7 --sequences 31-31 none     one sequence, as its seed and number have it

The steps that are printed go into found.py, where the suite plays them again.
"""

import argparse
import asyncio
import logging
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from pprint import pformat

import asyncpg
import structlog

from recollect.store.embedded import EmbeddedServer
from tests.plans.all_kinds_chance import Step
from tests.plans.all_kinds_machine import AllKinds, opened, play, replay
from tests.plans.mendings import MENDINGS, taken_out

SEQUENCES = 120
# Ids and numbers differ each time, and so does what Python says of them.
PARTICULAR = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+(?:\.\d+)?")


def kind(wrong: str) -> str:
    """What was wrong, without what differs from one time to the next."""
    return PARTICULAR.sub("_", wrong.splitlines()[0])[:60]


def wrong_with(steps: Sequence[Step]) -> str | None:
    """What comes of some steps; None when all is well."""
    with suppress(Exception):  # whatever it is: it is compared with what is looked for
        replay(steps)
    return AllKinds.failed[0][2] if AllKinds.failed else None


def shortened(steps: Sequence[Step], wrong: str) -> Sequence[Step]:
    """As few of the steps as lead to the same."""
    wanted, tried = kind(wrong), True
    while tried:
        tried = False
        for fewer in _fewer(steps):
            found = wrong_with(fewer)
            if found is not None and kind(found) == wanted:
                steps, tried = fewer, True
                break
    return steps


def _fewer(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """One step less, the last first; or one thing less of a step that makes several."""
    for place in reversed(range(len(steps))):
        name, given = steps[place]
        if place:
            yield [*steps[:place], *steps[place + 1 :]]
        for what in ("some", "shown"):
            for one in range(len(given.get(what, ()))):
                less = [*given[what][:one], *given[what][one + 1 :]]
                yield [*steps[:place], (name, {**given, what: less}), *steps[place + 1 :]]


def find(seeds: Iterable[int], sequences: Iterable[int]) -> tuple[int, int, Sequence[Step], str] | None:
    """The seed, the number of the sequence, its steps and what was wrong; None when nothing was."""
    for seed in seeds:
        with suppress(Exception):  # it is noted where it happens
            play(seed, sequences)
        if AllKinds.failed:
            return seed, *AllKinds.failed[0]
        print(f"seed {seed}: nothing found", file=sys.stderr, flush=True)
    return None


async def _in_haste(url: str) -> None:
    """Nobody needs this server after a power failure: no waiting for the disk."""
    connection = await asyncpg.connect(url)
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        await connection.execute(f"ALTER SYSTEM SET {setting} = off")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


@contextmanager
def a_server() -> Iterator[str]:
    directory = Path(tempfile.mkdtemp(prefix="recollect-finding-"))
    directory.chmod(0o755)
    try:
        with EmbeddedServer(directory / "home") as server:
            asyncio.run(_in_haste(server.url))
            yield server.url
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", default=sorted(MENDINGS), help="mendings, or none")
    arguments.add_argument("--seeds", default="1-20")
    arguments.add_argument("--sequences", default=f"1-{SEQUENCES}", help="their numbers, for each seed")
    chosen = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with a_server() as url:
        for name in chosen.names:
            with taken_out(name, url), opened(url):
                tell(name, numbers(chosen.seeds), numbers(chosen.sequences))


def numbers(said: str) -> range:
    """Like 1-20, or 7."""
    first, _, last = said.partition("-")
    return range(int(first), int(last or first) + 1)


def tell(name: str, seeds: Iterable[int], sequences: Iterable[int]) -> None:
    found = find(seeds, sequences)
    if found is None:
        print(f"{name}: not found", flush=True)
        return
    seed, number, steps, wrong = found
    fewer = shortened(steps, wrong)
    print(f"| {name} | {seed} | {number} | {len(steps)} | {len(fewer)} |\n# {wrong[:400]}")
    print(f"{pformat(list(fewer), width=118, sort_dicts=False)}\n", flush=True)


if __name__ == "__main__":
    main()
