"""Spreading activation: from a few seeds along the edges of the graph, fading with every hop (A31).

    next  =  activation * strength of the edge * 0.6        (* 1.3 along preferred relations)

Up to 3 hops, nothing below 0.1, and for each node the best path that reached it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

HOPS = 3
FADE = 0.6
PREFERRED = 1.3
LEAST = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An edge as activation sees it: it flows both ways."""

    source: UUID
    target: UUID
    relation: str
    strength: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A node that activation reached, how strongly, and by which path from its seed."""

    node: UUID
    activation: float
    path: tuple[UUID, ...]

    @property
    def hops(self) -> int:
        return len(self.path) - 1


def spread(
    seeds: Mapping[UUID, float],
    links_of: Callable[[Collection[UUID]], Iterable[Link]],
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


def _step(from_: Reached | None, there: UUID, link: Link, fade: float, preferred: Collection[str]) -> Reached | None:
    if from_ is None or there in from_.path:
        return None
    gain = PREFERRED if link.relation in preferred else 1.0
    return Reached(
        node=there, activation=min(1.0, from_.activation * link.strength * fade * gain), path=(*from_.path, there)
    )


def _activation(best: Mapping[UUID, Reached], node: UUID) -> float:
    return best[node].activation if node in best else 0.0
