"""A peer in the run: where it is installed, and the row that its figures go to. A peer that fails keeps its row."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.field import Peer
from bench.peers.talking import PeerFailed, Talk

# All stores of a run lie below one temporary directory.
PREFIX = "recollect-peers-"
PLACES = re.compile(rf"\S*/{PREFIX}\w+")


@dataclass(kw_only=True)
class Row:
    """What was measured of one peer: a number a round, words where a number says too little, and what failed."""

    name: str
    version: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, value: float) -> None:
        self.rounds.setdefault(what, []).append(value)


@dataclass(kw_only=True)
class Contender:
    peer: Peer
    python: Path
    row: Row
    place: Path  # a directory of its own, for as many stores as the run makes
    say: Callable[[str], None]

    def talk(self, store: str, *, seconds: float) -> Talk:
        return Talk(self.python, self.peer.driver, self.place / store, variant=self.peer.variant, seconds=seconds)

    def taken(self) -> Row:
        """The row as it is; what follows goes to a new one."""
        done = self.row
        self.row = Row(name=done.name, version=done.version, words={"how": done.words["how"]})
        return done

    def attempt(self, stage: str, work: Callable[..., None], *given: Any, **named: Any) -> None:
        """Once a stage has failed it is not tried again: its row says why."""
        if stage in self.row.problems:
            return
        self.say(f"{self.peer.name}: {stage}")
        try:
            work(*given, **named)
        except PeerFailed as problem:
            self.row.problems[stage] = in_one_line(str(problem))
            self.say(f"  {self.peer.name} failed: {self.row.problems[stage]}")


def in_one_line(text: str) -> str:
    """What a peer said, without where on this machine its store lies."""
    words = " ".join(PLACES.sub("...", text).split())
    return words if len(words) <= 200 else f"{words[:197]}..."


def same(text: str) -> str:
    """What two texts have in common that differ only in how they are written down."""
    return " ".join(unicodedata.normalize("NFC", text).split())
