"""What becomes of a memory when two write at once, on `kill -9`, when it is told twice, and when another user asks.

A memory counts as there when a search for its own words finds it: that every peer can do, whatever else it offers.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.peers import texts
from bench.peers.contenders import Contender, in_one_line, same
from bench.peers.talking import TOO_SLOW, PeerFailed, Talk

SECRET = "The key to the blue house lies under the third flower pot"
ANOTHER = "The doctor said that the operation on the left knee can wait until spring"
DEPTH = 5


def measure(contenders: Sequence[Contender], *, writes: int, kills: int, seconds: float) -> None:
    told = texts.known(
        [SECRET, ANOTHER, *texts.sentences(2 * writes, seed=7), *texts.sentences(KILLED * kills, seed=8)]
    )
    for one in contenders:
        one.row.words |= {"kept apart by": one.peer.keeps_apart, "preview": one.peer.preview, "undo": one.peer.undo}
        one.attempt("two writers", _two_writers, one, told, writes, seconds)
        one.attempt("kill -9", _killed, one, told, kills, seconds)
        one.attempt("told twice", _told_twice, one, told, seconds)
        one.attempt("another user", _another_user, one, told, seconds)


# -- two processes write at once


@dataclass
class Writer:
    """One of the processes: which texts it was told are kept, and why others were not."""

    kept: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def write(self, talk: Talk, wanted: Sequence[str]) -> None:
        for text in wanted:
            try:
                talk.add([(text,)])
                self.kept.append(text)
            except PeerFailed as problem:
                self.refused.append(in_one_line(str(problem)))


def _two_writers(one: Contender, told: texts.Known, writes: int, seconds: float) -> None:
    wanted = texts.sentences(2 * writes, seed=7)
    writers = Writer(), Writer()
    with one.talk("writers", seconds=seconds) as first:
        first.know(told.file)
        writers[0].write(first, wanted[:1])
        try:
            with one.talk("writers", seconds=seconds) as second:
                second.know(told.file)
                _side_by_side(
                    lambda: writers[0].write(first, wanted[1:writes]),
                    lambda: writers[1].write(second, wanted[writes:]),
                )
        except PeerFailed as problem:
            writers[1].refused = [in_one_line(str(problem))] * writes
            writers[0].write(first, wanted[1:writes])
    kept = [text for writer in writers for text in writer.kept]
    missing = _missing(one, "writers", told, kept, seconds)
    _note_losses(one, "two writers", len(kept), missing)
    if refused := [why for writer in writers for why in writer.refused]:
        one.row.words["two writers, refused"] = f"{len(refused)} of {2 * writes}: {refused[0]}"


def _side_by_side(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- killed while it writes

KILLED = 400  # so many texts wait to be written before each kill; none gets that far


def _killed(one: Contender, told: texts.Known, kills: int, seconds: float) -> None:
    wanted = texts.sentences(KILLED * kills, seed=8)
    chance = random.Random(1)
    kept: list[str] = []
    try:
        for number in range(kills):
            with one.talk("kills", seconds=seconds) as talk:
                talk.know(told.file)
                dead = talk.killed_after(chance.uniform(0.3, 1.5))
                kept += _written(talk, wanted[KILLED * number : KILLED * (number + 1)])
                dead.join()
        missing = _missing(one, "kills", told, kept, seconds)
    except PeerFailed as problem:
        if str(problem).startswith(TOO_SLOW):
            raise  # nobody knows what it kept: that is no loss
        one.row.words["kill -9, afterwards"] = f"does not open: {in_one_line(str(problem))}"
        missing = len(kept)
    _note_losses(one, "kill -9", len(kept), missing)


def _written(talk: Talk, wanted: Sequence[str]) -> list[str]:
    """What it acknowledged before it died."""
    kept: list[str] = []
    for text in wanted:
        try:
            talk.add([(text,)])
        except PeerFailed:
            break
        kept.append(text)
    return kept


# -- the same text twice, and somebody else's


def _told_twice(one: Contender, told: texts.Known, seconds: float) -> None:
    with one.talk("told", seconds=seconds) as talk:
        talk.know(told.file)
        talk.add([(SECRET,)])
        try:
            talk.add([(SECRET,)])
            second = "accepted"
        except PeerFailed:
            second = "refused"
        (hits,), _ = talk.search([SECRET])
    copies = sum(same(text) == same(SECRET) for text in hits)
    one.row.rounds["copies of a text told twice"] = [copies]
    one.row.words["told twice"] = f"the second is {second}; kept {'once' if copies == 1 else f'{copies} times'}"


def _another_user(one: Contender, told: texts.Known, seconds: float) -> None:
    with one.talk("told", seconds=seconds) as talk:
        talk.know(told.file)
        talk.add([(ANOTHER,)], user="ana")
        (hits,), _ = talk.search([ANOTHER], user="ben")
    seen = any(same(text) == same(ANOTHER) for text in hits)
    one.row.rounds["seen by another user"] = [float(seen)]


# -- afterwards


def _missing(one: Contender, store: str, told: texts.Known, kept: Sequence[str], seconds: float) -> int:
    """How many of the acknowledged a fresh process does not find."""
    with one.talk(store, seconds=seconds) as talk:
        talk.know(told.file)
        found, _ = talk.search(kept, limit=DEPTH)
    return sum(same(text) not in map(same, hits) for text, hits in zip(kept, found, strict=True))


def _note_losses(one: Contender, stage: str, kept: int, missing: int) -> None:
    one.row.rounds[f"{stage}, acknowledged"] = [kept]
    one.row.rounds[f"{stage}, missing"] = [missing]
