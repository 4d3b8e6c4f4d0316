"""Spreading activation: from a few seeds along the edges of the graph, fading with every hop (A31).

    next  =  activation * strength of the edge * 0.6        (* 1.3 along preferred relations)

Up to 3 hops, nothing below 0.1, and for each node the best path that reached it. `spread` follows links one by one;
`spread_over` does the same on a whole adjacency, a hop at a time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from recollect.graph.rules.adjacency import Adjacency, Steps
from recollect.graph.rules.arrays import Flags, Ints, Numbers, as_ids

HOPS = 3
FADE = 0.6
PREFERRED = 1.3
LEAST = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class SpreadLink:
    """An edge as activation sees it: it flows both ways."""

    source: UUID
    target: UUID
    relation: str
    strength: float
    id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A node that activation reached, how strongly, by which path from its seed, and (where known) by which edges."""

    node: UUID
    activation: float
    path: tuple[UUID, ...]
    edges: tuple[UUID, ...] = ()

    @property
    def hops(self) -> int:
        return len(self.path) - 1


def spread(
    seeds: Mapping[UUID, float],
    links_of: Callable[[Collection[UUID]], Iterable[SpreadLink]],
    *,
    hops: int = HOPS,
    fade: float = FADE,
    least: float = LEAST,
    preferred: Collection[str] = (),
) -> dict[UUID, Reached]:
    """Every node reached, seeds included, with its best path. `links_of` gives the edges that touch some nodes."""
    best = {node: Reached(node=node, activation=start, path=(node,)) for node, start in seeds.items()}
    frontier = dict(best)
    for _ in range(hops):
        if not frontier:
            break
        following: dict[UUID, Reached] = {}
        for link in links_of(frontier.keys()):
            for here, there in ((link.source, link.target), (link.target, link.source)):
                step = _step(frontier.get(here), there, link, fade, preferred)
                if step and step.activation >= least and step.activation > _activation(best, there):
                    best[there] = following[there] = step
        frontier = following
    return best


def _step(
    from_: Reached | None, there: UUID, link: SpreadLink, fade: float, preferred: Collection[str]
) -> Reached | None:
    if from_ is None or there in from_.path:
        return None
    gain = PREFERRED if link.relation in preferred else 1.0
    return Reached(
        node=there,
        activation=min(1.0, from_.activation * link.strength * fade * gain),
        path=(*from_.path, there),
        edges=from_.edges if link.id is None else (*from_.edges, link.id),
    )


def _activation(best: Mapping[UUID, Reached], node: UUID) -> float:
    return best[node].activation if node in best else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wave:
    """The nodes that one hop reached: a row each of its path (numbers of nodes) and of the edges walked."""

    activation: Numbers
    path: Ints
    edges: Ints

    @property
    def node(self) -> Ints:
        return self.path[:, -1]

    def only(self, rows: Ints | Flags) -> "Wave":
        return Wave(activation=self.activation[rows], path=self.path[rows], edges=self.edges[rows])


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Where activation went. Nodes become objects when they are asked for, the most activated first."""

    adjacency: Adjacency
    waves: tuple[Wave, ...]
    outside: Mapping[UUID, float]

    def __len__(self) -> int:
        return sum(len(wave.activation) for wave in self.waves) + len(self.outside)

    def reached(self, at_most: int | None = None) -> dict[UUID, Reached]:
        """Every node reached, seeds included, or the most activated of them, with its best path and its edges."""
        arrivals = [Reached(node=node, activation=start, path=(node,)) for node, start in self.outside.items()]
        least = self._least_of(at_most)
        for wave in self.waves:
            arrivals += self._objects(wave.only(wave.activation >= least))
        arrivals.sort(key=lambda arrival: -arrival.activation)
        return {arrival.node: arrival for arrival in arrivals[:at_most]}

    def _least_of(self, at_most: int | None) -> float:
        """The activation of the last of so many."""
        activation = np.concatenate([wave.activation for wave in self.waves])
        if at_most is None or at_most >= len(activation):
            return -np.inf
        return float(-np.partition(-activation, at_most - 1)[at_most - 1]) if at_most > 0 else np.inf

    def _objects(self, wave: Wave) -> list[Reached]:
        nodes = self.adjacency.nodes_of(wave.path.ravel())
        edges = self.adjacency.edges_of(wave.edges.ravel())
        hops = wave.edges.shape[1]
        return [
            Reached(
                node=nodes[row * (hops + 1) + hops],
                activation=activation,
                path=tuple(nodes[row * (hops + 1) : (row + 1) * (hops + 1)]),
                edges=tuple(edges[row * hops : (row + 1) * hops]),
            )
            for row, activation in enumerate(wave.activation.tolist())
        ]


def spread_over(
    adjacency: Adjacency,
    seeds: Mapping[UUID, float],
    now: datetime,
    *,
    hops: int = HOPS,
    fade: float = FADE,
    least: float = LEAST,
    preferred: Collection[str] = (),
) -> Spread:
    """What `spread` finds, on the strengths of this moment."""
    first, outside = _seeded(adjacency, seeds)
    best = np.zeros(adjacency.size)
    best[first.node] = first.activation
    gain = np.array([PREFERRED if relation in preferred else 1.0 for relation in adjacency.relations])
    waves = [first]
    for _ in range(hops):
        # What could not pass `least` even along the strongest edge need not be looked at.
        reaching = waves[-1].only(waves[-1].activation * fade * gain.max(initial=1.0) >= least)
        steps = adjacency.steps_from(reaching.node, now.timestamp())
        activation = np.minimum(1.0, reaching.activation[steps.from_] * steps.strength * fade * gain[steps.relation])
        better = (activation >= least) & (activation > best[steps.to]) & _is_new(reaching, steps)
        waves.append(_best_steps(reaching, steps, activation, np.flatnonzero(better), best))
    return Spread(adjacency=adjacency, waves=_last_word(waves, best), outside=outside)


def _seeded(adjacency: Adjacency, seeds: Mapping[UUID, float]) -> tuple[Wave, dict[UUID, float]]:
    """The seeds that have a number as the first wave, and those that the graph does not know."""
    numbers = adjacency.numbers_of(as_ids(list(seeds)))
    starts = np.array(list(seeds.values()), dtype=np.float64)
    in_graph = numbers >= 0
    wave = Wave(
        activation=starts[in_graph], path=numbers[in_graph][:, None], edges=np.zeros((int(in_graph.sum()), 0), np.int64)
    )
    return wave, {node: start for (node, start), here in zip(seeds.items(), in_graph, strict=True) if not here}


def _is_new(wave: Wave, steps: Steps) -> Flags:
    """Whether a step leads to a node that is not on the path already: activation does not flow in circles."""
    return np.asarray((wave.path[steps.from_] != steps.to[:, None]).all(axis=1))


def _best_steps(wave: Wave, steps: Steps, activation: Numbers, better: Ints, best: Numbers) -> Wave:
    """The wave of the strongest step to each node, the first of equals; notes in `best` what it brings."""
    np.maximum.at(best, steps.to[better], activation[better])
    strongest = better[activation[better] == best[steps.to[better]]]
    first = np.empty(len(best), dtype=np.int64)
    first[steps.to[strongest[::-1]]] = strongest[::-1]
    chosen = strongest[first[steps.to[strongest]] == strongest]
    from_ = steps.from_[chosen]
    return Wave(
        activation=activation[chosen],
        path=np.concatenate((wave.path[from_], steps.to[chosen][:, None]), axis=1),
        edges=np.concatenate((wave.edges[from_], steps.edge[chosen][:, None]), axis=1),
    )


def _last_word(waves: list[Wave], best: Numbers) -> tuple[Wave, ...]:
    """Each node only in the wave that activated it best: a later wave has it again only if it brought more."""
    return tuple(wave.only(wave.activation == best[wave.node]) for wave in waves)
