"""The energy of a concept: kept as it was given, summed when concepts merge, and bent only when it is shown.

Because what is stored is the plain sum, the order in which concepts merge does not matter, and a merge can be undone.
Weights are running means for the same reason: each side counts for as many concepts as it is made of.
"""

import math
from collections.abc import Iterable, Mapping

E_MAX = 2.0

Energies = Mapping[str, float]


def summed(parts: Iterable[Energies]) -> dict[str, float]:
    """The raw energy of each entity, over all concepts that become one (C09); exact, so in whatever order."""
    gathered: dict[str, list[float]] = {}
    for energies in parts:
        for entity, value in energies.items():
            gathered.setdefault(entity, []).append(value)
    return {entity: math.fsum(values) for entity, values in sorted(gathered.items())}


def shown(raw: float, e_max: float = E_MAX) -> float:
    """What is seen of a raw energy: nearly all of a little, never more than `e_max`."""
    return min(raw, e_max * math.tanh(raw / e_max))  # a rounding error must not lift it over what is there


def running_mean(parts: Iterable[tuple[float, int]]) -> tuple[float, int]:
    """The mean of (value, made of how many), and of how many it is made then (C10, C11)."""
    given = list(parts)
    count = sum(how_many for _, how_many in given)
    if not count:
        return 0.0, 0
    return math.fsum(value * how_many for value, how_many in given) / count, count
