"""What all drivers share: requests come in as one JSON object a line, and so go the answers.

A driver runs in a process and a virtual environment of its own, so this file needs numpy and nothing else of ours but
the embedder. The clock is read here, around the peer's own call: pipes and JSON are part of no figure.

    {"do": "know", "file": F}                           vectors that need no model, from here on
    {"do": "add", "memories": [...], "user": U}         one after the other, each durable before the next
    {"do": "load", "memories": [...], "user": U}        all at once, by the way the peer has for it
    {"do": "search", "questions": [...], "user": U, "limit": N}
    {"do": "processes"}                                 whom its memory is asked of
    {"do": "close"}
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DIM = 384


class Memory(NamedTuple):
    """A text; where it stands in a conversation is told too, and used by whoever has a place for it."""

    text: str
    thread: str | None = None
    created_at: str | None = None


class Embedder:
    """The same for all: Recollect's model, read from its own file, in the peer's own process."""

    def __init__(self) -> None:
        self.known: dict[str, NDArray[np.float32]] = {}

    def know(self, file: Path) -> None:
        with np.load(file) as kept:
            self.known.update(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in texts if text not in self.known]
        made = dict(zip(new, by_the_model(new), strict=True)) if new else {}
        return np.stack([self.known[text] if text in self.known else made[text] for text in texts])

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(number) for number in vector] for vector in self(texts)]


def by_the_model(texts: Sequence[str]) -> NDArray[np.float32]:
    from recollect.providers.minilm import embed_windows, split_into_windows
    from recollect.providers.pieces import sum_of_pieces

    windows, owners = split_into_windows(texts)
    return sum_of_pieces(np.concatenate([embed_windows([window]) for window in windows]), owners, len(texts))


class Driver:
    """A peer, opened in a directory of its own. What is added is durable when the call returns, as far as the peer
    has a way to make it so."""

    def __init__(self, directory: Path, embed: Embedder, variant: str) -> None:
        self.directory, self.embed, self.variant = directory, embed, variant
        self.open()

    def open(self) -> None:
        raise NotImplementedError

    def add(self, memory: Memory, user: str) -> None:
        raise NotImplementedError

    def load(self, memories: Sequence[Memory], user: str) -> float | None:
        """All of them; when it knows the moment at which they were stored but not yet findable, that one."""
        for memory in memories:
            self.add(memory, user)
        return None

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        raise NotImplementedError

    def processes(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        """Most have nothing to close."""


def timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(*given), time.perf_counter() - started


def answer(driver: Driver, asked: dict[str, Any]) -> dict[str, Any]:
    match asked["do"]:
        case "know":
            driver.embed.know(Path(asked["file"]))
            return {}
        case "add":
            memories = [Memory(*one) for one in asked["memories"]]
            return {"spent": [timed(driver.add, one, asked["user"])[1] for one in memories]}
        case "load":
            memories = [Memory(*one) for one in asked["memories"]]
            began = time.perf_counter()
            stored, spent = timed(driver.load, memories, asked["user"])
            return {"spent": [spent], "stored": spent if stored is None else stored - began}
        case "search":
            who, most = asked["user"], asked["limit"]
            found = [timed(lambda one: list(driver.search(one, who, most)), one) for one in asked["questions"]]
            return {"found": [texts for texts, _ in found], "spent": [spent for _, spent in found]}
        case "processes":
            return {"pids": driver.processes()}
        case other:
            raise ValueError(f"nobody knows how to {other!r}")


def serve(make: type[Driver], directory: Path, variant: str) -> None:
    """Until told to close, or until nobody asks any more. What a peer prints goes to stderr, and what it raises is
    the answer: a peer that fails has a row that says so."""
    speak = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(work: Callable[..., Any], *given: Any) -> Any:
        try:
            done, said = work(*given), {}
        except Exception as problem:
            done, said = None, {"error": f"{type(problem).__name__}: {problem}"}
        speak.write(json.dumps(done if isinstance(done, dict) else said) + "\n")
        speak.flush()
        return done

    driver: Driver | None = say(make, directory, Embedder(), variant)
    if driver is None:
        return
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "close":
            break
        say(answer, driver, asked)
    say(driver.close)
