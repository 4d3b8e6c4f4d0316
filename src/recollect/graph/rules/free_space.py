"""Room for labels: what is taken already, and which of several spots is free and crossed by the fewest lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(kw_only=True, slots=True)
class Room:
    """Boxes that are taken, and points where lines run."""

    lines: Floats
    taken: list[Box] = field(default_factory=list)

    def take(self, boxes: Iterable[Box]) -> None:
        self.taken.extend(boxes)

    def best(self, spots: Sequence[Box]) -> int | None:
        """The number of the free spot that the fewest lines cross, the first among equals; None if all are taken."""
        taken = np.array(self.taken).reshape(-1, 4)
        free = (number for number, spot in enumerate(spots) if not _meets(spot, taken).any())
        return min(free, key=lambda number: self._crossed(spots[number]), default=None)

    def least_bad(self, spots: Sequence[Box]) -> int:
        """The number of the spot that covers the fewest things: for what must be shown, room or no room."""
        taken = np.array(self.taken).reshape(-1, 4)
        return min(range(len(spots)), key=lambda number: (_meets(spots[number], taken).sum(), number))

    def _crossed(self, spot: Box) -> int:
        x, y = self.lines.T
        left, top, right, bottom = spot
        return int(((x > left) & (x < right) & (y > top) & (y < bottom)).sum())


def _meets(spot: Box, taken: Floats) -> NDArray[np.bool_]:
    left, top, right, bottom = spot
    return (taken[:, 0] < right) & (taken[:, 2] > left) & (taken[:, 1] < bottom) & (taken[:, 3] > top)
