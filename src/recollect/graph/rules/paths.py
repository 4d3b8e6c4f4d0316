"""The best paths between two nodes, by the fewest hops or by the greatest strength; edges count both ways.

The strength of a path is the product of its edges' strengths. First, from the far end, how strong the best way of
exactly r hops to it is, for every node and every r: a few passes over the adjacency. Those are the bounds that lead the
search from the near end: it follows the most promising beginning of a path first, so it finds the paths in their order
and looks at little else. No path visits a node twice.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np

from recollect.graph.rules.adjacency import Adjacency
from recollect.graph.rules.arrays import Ints, Numbers, as_ids

By = Literal["shortest", "strongest"]

HOPS = 6
# So many beginnings are followed at most: in a graph where everything is linked with everything, most lead in circles.
MOST_FOLLOWED = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """A way from one node to another: its nodes, the edges between them, and the product of their strengths."""

    nodes: tuple[UUID, ...]
    edges: tuple[UUID, ...]
    strength: float

    @property
    def hops(self) -> int:
        return len(self.edges)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Beginning:
    """A path on its way: the nodes and edges so far, how strong it is, and of how many hops it is to be."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    strength: float
    length: int

    @property
    def left(self) -> int:
        return self.length - len(self.edges)


def best_paths(
    adjacency: Adjacency,
    source: UUID,
    target: UUID,
    now: datetime,
    *,
    at_most: int = 3,
    hops: int = HOPS,
    by: By = "shortest",
) -> list[Path]:
    """The best paths of at most so many hops, best first: the fewest hops and of those the strongest, or the other
    way round."""
    start, end = adjacency.numbers_of(as_ids([source, target])).tolist()
    if start < 0 or end < 0 or start == end:
        return []
    bounds = _bounds(adjacency, end, now.timestamp(), hops)
    best: list[Path] = []
    for whole in _in_order(adjacency, start, end, bounds, now.timestamp(), by):
        best.append(_as_path(adjacency, whole))
        if len(best) == at_most:
            break
    return best


def _bounds(adjacency: Adjacency, end: int, now: float, hops: int) -> list[Numbers]:
    """For r = 0, 1, ... the strength of the best way of exactly r hops from every node to the end; 0 for none."""
    bounds = [np.zeros(adjacency.size)]
    bounds[0][end] = 1.0
    for _ in range(hops):
        here = np.flatnonzero(bounds[-1])
        steps = adjacency.steps_from(here, now)
        further = np.zeros(adjacency.size)
        np.maximum.at(further, steps.to, steps.strength * bounds[-1][here][steps.from_])
        further[end] = 0.0  # a path ends where it first comes to its end
        bounds.append(further)
    return bounds


def _in_order(
    adjacency: Adjacency, start: int, end: int, bounds: list[Numbers], now: float, by: By
) -> Iterator[_Beginning]:
    """Whole paths, best first."""
    waiting: list[tuple[tuple[float, float], int, _Beginning]] = []
    number = 0

    def wait(beginning: _Beginning) -> None:
        nonlocal number
        bound = beginning.strength * float(bounds[beginning.left][beginning.nodes[-1]])
        if bound > 0:
            number += 1
            order = (float(beginning.length), -bound) if by == "shortest" else (-bound, float(beginning.length))
            heapq.heappush(waiting, (order, number, beginning))

    for length in range(1, len(bounds)):
        wait(_Beginning(nodes=(start,), edges=(), strength=1.0, length=length))
    for _ in range(MOST_FOLLOWED):
        if not waiting:
            return
        _, _, beginning = heapq.heappop(waiting)
        if beginning.nodes[-1] == end:
            yield beginning
            continue
        for further in _steps(adjacency, beginning, bounds[beginning.left - 1], now):
            wait(further)


def _steps(adjacency: Adjacency, beginning: _Beginning, bound: Numbers, now: float) -> Iterator[_Beginning]:
    """A beginning continued by each edge that can still lead to the end; of parallel edges the strongest."""
    steps = adjacency.steps_from(np.array([beginning.nodes[-1]]), now)
    promising = np.flatnonzero(bound[steps.to] * steps.strength)
    strongest = promising[np.argsort(-steps.strength[promising], kind="stable")]
    seen = set(beginning.nodes)
    for step in strongest.tolist():
        to = int(steps.to[step])
        if to not in seen:
            seen.add(to)
            yield _Beginning(
                nodes=(*beginning.nodes, to),
                edges=(*beginning.edges, int(steps.edge[step])),
                strength=beginning.strength * float(steps.strength[step]),
                length=beginning.length,
            )


def _as_path(adjacency: Adjacency, path: _Beginning) -> Path:
    def numbers(values: tuple[int, ...]) -> Ints:
        return np.array(values, dtype=np.int64)

    return Path(
        nodes=tuple(adjacency.nodes_of(numbers(path.nodes))),
        edges=tuple(adjacency.edges_of(numbers(path.edges))),
        strength=path.strength,
    )
