"""Which of two ways is the faster here: both are tried, and the one that took less lately is taken (D53).

Where looking at every vector stops paying depends on the machine, the model, and what else is going on. So nobody
guesses: now and then the slower one is taken again, to see whether it still is.
"""

import math
from collections import deque
from collections.abc import Hashable
from statistics import median

# So careful is the index searched, for each of the cube root of its vectors: measured to find 0.995 of the nearest 200
# among 5,000, 20,000 and 100,000 (ADR 8).
CARE = 18
LEAST_CARE = 200
TRIES = 3
REMEMBERED = 9
AGAIN_EVERY = 50


def care(vectors: int | None, *, most: int) -> int:
    """The `ef_search` of HNSW: the fewer vectors, the less of it finds the same. Of an unknown number, the most."""
    return most if vectors is None else min(most, max(LEAST_CARE, math.ceil(CARE * vectors ** (1 / 3))))


class Pace:
    """How long the ways of doing one thing took lately."""

    def __init__(self, *ways: Hashable) -> None:
        """The first of the ways is preferred as long as it is not slower."""
        self._spent: dict[Hashable, deque[float]] = {way: deque(maxlen=REMEMBERED) for way in ways}
        self._asked = 0

    def way(self) -> Hashable:
        """The way to take now."""
        self._asked += 1
        untried = [way for way, spent in self._spent.items() if len(spent) < TRIES]
        if untried:
            return untried[0]
        by_pace = sorted(self._spent, key=lambda way: median(self._spent[way]))
        return by_pace[-1 if self._asked % AGAIN_EVERY == 0 else 0]

    def took(self, way: Hashable, seconds: float) -> None:
        self._spent[way].append(seconds)
