"""How fast, how large: loading, adding one by one, searching, starting; each round a fresh process, all in turn."""

import statistics
from collections.abc import Sequence

import numpy as np

from bench.peers import texts
from bench.peers.contenders import Contender
from bench.peers.talking import megabytes_on_disk

STORE = "speed"
WARM_UP, ASKED, EMBEDDED, SINGLES = 10, 50, 20, 20


def measure(contenders: Sequence[Contender], sizes: Sequence[int], *, rounds: int, seconds: float) -> None:
    stored = texts.sentences(sizes[-1], seed=0)
    known = texts.known(stored)
    before = 0
    for size in sizes:
        for first in range(before, size, sizes[0]):
            part = [(text,) for text in stored[first : first + sizes[0]]]
            for one in contenders:
                one.attempt("load", _load, one, part, known, seconds=seconds)
        for number in range(rounds):
            for one in contenders:
                if "load" not in one.row.problems:
                    one.attempt(f"use at {size:,}", _use, one, size=size, number=number, seconds=seconds)
        before = size


def _load(one: Contender, part: Sequence[tuple[str]], known: texts.Known, *, seconds: float) -> None:
    with one.talk(STORE, seconds=seconds) as talk:
        talk.know(known.file)
        stored, findable = talk.load(part)
    one.row.note("loaded a second, stored", len(part) / stored)
    one.row.note("loaded a second, findable", len(part) / findable)


def _use(one: Contender, *, size: int, number: int, seconds: float) -> None:
    """A process from its start to its end: what it answers first, then at its ease, and what it leaves on the disk."""
    seed = 1000 * size + 10 * number
    live = texts.questions(1 + EMBEDDED, seed=seed + 1)
    asked = texts.questions(WARM_UP + ASKED, seed=seed + 2)
    singles = [f"{size}.{number}.{text}" for text in texts.sentences(SINGLES, seed=seed + 3)]
    small = texts.known([*asked, *singles])
    note = one.row.note
    with one.talk(STORE, seconds=seconds) as talk:
        note(f"start to first answer at {size:,}, s", talk.first_answer(live[0]))
        talk.know(small.file)
        talk.search(asked[:WARM_UP])
        _, spent = talk.search(asked[WARM_UP:])
        note(f"search p50 at {size:,}, ms", 1000 * statistics.median(spent))
        note(f"search p95 at {size:,}, ms", 1000 * float(np.quantile(spent, 0.95)))
        _, spent = talk.search(live[1:])
        note(f"search p50 at {size:,} with embedding, ms", 1000 * statistics.median(spent))
        note(f"search p95 at {size:,} with embedding, ms", 1000 * float(np.quantile(spent, 0.95)))
        note(f"add p50 at {size:,}, ms", 1000 * statistics.median(talk.add([(text,) for text in singles])))
        note(f"memory at {size:,}, MB", talk.megabytes())
    note(f"disk at {size:,}, MB", megabytes_on_disk(one.place / STORE))
