"""The lines of a picture as curves: from rim to rim, with an arrow head, and out of each other's way.

Every curve is a cubic Bezier: a straight line, a bow and the loop of a dot to itself are all the same to whoever draws.
Lines between the same two dots fan out; a single line that would run across a dot it has nothing to do with bows
around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FAN = 30.0  # between the middles of parallel lines
BOWS = (0.0, 0.08, -0.08, 0.16, -0.16)  # of the length of the line: more would lead the eye astray
HIGHEST_BOW = 40.0
CLEARANCE = 5.0
HEAD = 8.0
SAMPLES = np.linspace(0.0, 1.0, 25)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curve:
    """Four points of a cubic Bezier; the head of the arrow lies behind the last, pointing the same way."""

    points: Floats
    head_size: float = HEAD

    def at(self, part: float | Floats) -> Floats:
        """The point or points after this part of the way, 0 to 1."""
        t = np.asarray(part)[..., None]
        a, b, c, d = self.points
        at: Floats = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
        return at

    def head(self) -> Floats:
        """The three corners of the arrow head: its tip, and its two ends."""
        way = _unit(self.points[3] - self.points[2])
        across = np.array([-way[1], way[0]]) * self.head_size * 0.45
        end = self.points[3]
        return np.array([end + way * self.head_size, end + across, end - across])


def bow(
    source: Floats, target: Floats, rims: tuple[float, float], height: float = 0.0, head_size: float = HEAD
) -> Curve:
    """From one rim to the other, the middle lying this far to the side (seen from source to target, to the left)."""
    way = _unit(target - source)
    control = (source + target) / 2 + 2 * height * np.array([way[1], -way[0]])
    start = source + _unit(control - source) * (rims[0] + 1)
    end = target + _unit(control - target) * (rims[1] + head_size + 1.5)
    points = np.array([start, start + (control - start) * 2 / 3, end + (control - end) * 2 / 3, end])
    return Curve(points=points, head_size=head_size)


def loop(centre: Floats, rim: float, size: float) -> Curve:
    """From a dot to itself, over its top."""
    top = centre - np.array([0.0, rim])
    steps = [(-rim * 0.6, 0.0), (-size, -size), (size, -1.2 * size), (rim * 0.6, -HEAD * 0.8)]
    return Curve(points=top + np.array(steps))


def fan(count: int) -> list[float]:
    """The heights of so many parallel lines, balanced around the straight way."""
    return [FAN * (number - (count - 1) / 2) for number in range(count)]


def clear_bow(
    source: Floats, target: Floats, rims: tuple[float, float], others: Floats, rims_of_others: Floats
) -> Curve:
    """The flattest bow that runs across the fewest other dots."""
    length = float(np.hypot(*(target - source)))
    heights = (min(1.0, HIGHEST_BOW / max(0.16 * length, 1e-9)) * height * length for height in BOWS)
    best, hits = bow(source, target, rims), len(others) + 1
    for curve in (bow(source, target, rims, height) for height in heights):
        if (hit := _dots_hit(curve, others, rims_of_others)) < hits:
            best, hits = curve, hit
        if not hits:
            break
    return best


def _dots_hit(curve: Curve, others: Floats, rims: Floats) -> int:
    if len(others) == 0:
        return 0
    x, y = curve.at(SAMPLES).T
    distances = np.hypot(x[:, None] - others[:, 0], y[:, None] - others[:, 1])
    return int((distances.min(axis=0) < rims + CLEARANCE).sum())


def sampled(curves: Sequence[Curve]) -> Floats:
    """Points along all of these curves."""
    return np.concatenate([curve.at(SAMPLES) for curve in curves]) if curves else np.zeros((0, 2))


def _unit(vector: Floats) -> Floats:
    length = float(np.hypot(*vector))
    return vector / length if length > 1e-9 else np.array([1.0, 0.0])
