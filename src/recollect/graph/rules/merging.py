"""How things become one. Each way of merging is written here once.

Parallel edges: the strongest wins, the others lend it half of their strength, and it remembers them all (A13-A17).
Nodes: the links of the absorbed one go to the keeper, direction kept; two links that thereby become the same are one,
their strength the mean of all that went into it, so that the order of merges does not matter (C11-C13). Energy, weight,
names and history are not copied: they are read over all that points at the keeper.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from recollect.concepts.rules.energy import running_mean
from recollect.graph.rules.strength import current
from recollect.model import Edge
from recollect.plan import STRENGTH, as_json

LENT = 0.5
CONTRADICTS = "contradicts"

_PREFIX = re.compile(r"^\[Merged (\d+) edges\] ?")
_T = TypeVar("_T", float, datetime)


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeMerge:
    """Parallel edges as one: who wins, who goes into it, and the winner's columns before and after.

    `strengths` are those of the moment, by edge.
    """

    winner: Edge
    absorbed: tuple[Edge, ...]
    strengths: Mapping[UUID, float]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def needs_review(relations: Sequence[str]) -> bool:
    """A13: ends that contradict each other and are linked otherwise too are for a person to look at."""
    return CONTRADICTS in relations and len(set(relations)) > 1


def merged_edges(group: Sequence[Edge], now: datetime) -> EdgeMerge:
    """Edges with the same two ends as one edge. What is compared and summed is their strength at `now`."""
    strengths = {edge.id: strength_at(edge, now) for edge in group}
    winner, *absorbed = sorted(group, key=lambda edge: _precedence(edge, strengths[edge.id]))
    after = {
        "strength": lent_strength(sorted(strengths.values(), reverse=True)),
        "confidence": _most([edge.confidence for edge in group]),
        "explanation": _explanation(winner, sum(map(edges_in, group))),
        "activation_count": sum(edge.activation_count for edge in group),
        "reinforce_count": sum(edge.reinforce_count for edge in group),
        "last_activated_at": _iso(_most([edge.last_activated_at for edge in group])),
        # A strength is stored with the time at which it was set, and decays from there.
        "last_reinforced_at": now.isoformat(),
        # Of all of them, not up to the first: what a decision rests on must not hang on the order of ids (P12).
        "protected": True in [edge.protected or edge.created_by == "user" for edge in group],
        "merged_from": [*(winner.merged_from or []), *(_remembered(edge, strengths[edge.id]) for edge in absorbed)],
    }
    before = _columns_of(winner, after)
    return EdgeMerge(winner=winner, absorbed=tuple(absorbed), strengths=strengths, before=before, after=after)


def lent_strength(strongest_first: Sequence[float]) -> float:
    """A15: the strongest and half of the others, at most 1, to two decimals (a half goes up)."""
    strongest, *others = strongest_first
    return int(min(1.0, strongest + LENT * sum(others)) * 100 + 0.5) / 100


def strength_at(edge: Edge, now: datetime) -> float:
    return current(edge.strength, edge.decay_rate, edge.last_reinforced_at or edge.created_at, now)


def edges_in(edge: Edge) -> int:
    """How many edges went into this one, itself counted: by what it remembers, else by what it says of itself."""
    if edge.merged_from:
        return 1 + sum(map(_edges_in_memory, edge.merged_from))
    prefix = _PREFIX.match(edge.explanation or "")
    return int(prefix[1]) if prefix else 1


def _edges_in_memory(remembered: Mapping[str, Any]) -> int:
    return 1 + sum(map(_edges_in_memory, remembered.get("merged_from") or []))


def _precedence(edge: Edge, strength: float) -> tuple[float, bool, datetime, bytes]:
    """A14: the strongest first; of equals the user-made, then the older, then by id."""
    return -strength, edge.created_by != "user", edge.created_at, edge.id.bytes


def _explanation(winner: Edge, count: int) -> str:
    """A17: one prefix, with the number of all edges that ever went into this one."""
    return f"[Merged {count} edges] {_PREFIX.sub('', winner.explanation or '')}".rstrip()


def _remembered(edge: Edge, strength: float) -> dict[str, Any]:
    return {
        "id": str(edge.id),
        "relation": edge.relation,
        "strength": strength,
        "explanation": edge.explanation,
        "created_by": edge.created_by,
        "merged_from": edge.merged_from or [],
    }


def _columns_of(edge: Edge, columns: Mapping[str, Any]) -> dict[str, Any]:
    values = {column: getattr(edge, column) for column in columns}
    return {column: _iso(value) if isinstance(value, datetime) else value for column, value in values.items()}


def _most(values: Sequence[_T | None]) -> _T | None:
    return max((value for value in values if value is not None), default=None)


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


# -- nodes


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeChange:
    """The columns of an edge that a merge of nodes changes, as JSON."""

    id: UUID
    before: Mapping[str, Any]
    after: Mapping[str, Any]


# How edges are read: who decides by what they say wants to know what was read.
Watch = Callable[[Edge], Edge]


def _unwatched(edge: Edge) -> Edge:
    return edge


class MergedLinks:
    """The living edges around some nodes, as they will be once the merges so far are made."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges: dict[UUID, Edge] = {}
        self._at: defaultdict[UUID, set[UUID]] = defaultdict(set)
        self._between: dict[tuple[UUID, UUID, str], UUID] = {}
        for edge in edges:
            self._put(edge)

    def of(self, node: UUID) -> list[Edge]:
        """The edges of a node, in an order of their own."""
        return [self._edges[id_] for id_ in sorted(self._at[node], key=lambda id_: id_.bytes)]

    def move(self, absorbed: UUID, keeper: UUID, now: datetime, watch: Watch = _unwatched) -> Iterator[EdgeChange]:
        """Give the links of one node to another: nothing hangs on the first any more, nothing links to itself (C12).

        Edges are read through `watch`: of one that only moves, where it leads; of two that become one, all that counts.
        """
        for edge in self.of(absorbed):
            seen = watch(edge)
            source, target = (keeper if end == absorbed else end for end in (seen.source, seen.target))
            self._drop(edge)
            twin = self._between.get((source, target, seen.relation))
            if source == target:
                yield _change(edge, replace(edge, status="pruned"))
            elif twin is None:
                moved = replace(edge, source=source, target=target)
                self._put(moved)
                yield _change(edge, moved)
            else:
                yield from self._join(self._edges[twin], edge, now, watch)

    def _join(self, keeper: Edge, absorbed: Edge, now: datetime, watch: Watch) -> Iterator[EdgeChange]:
        joined = replace(keeper, **averaged(watch(keeper), watch(absorbed), now))
        self._drop(keeper)
        self._put(joined)
        yield _change(absorbed, replace(absorbed, status="merged", merged_into=keeper.id))
        yield _change(keeper, joined)

    def _put(self, edge: Edge) -> None:
        self._edges[edge.id] = edge
        self._between[_place(edge)] = edge.id
        for end in (edge.source, edge.target):
            self._at[end].add(edge.id)

    def _drop(self, edge: Edge) -> None:
        del self._edges[edge.id]
        del self._between[_place(edge)]
        for end in (edge.source, edge.target):
            self._at[end].discard(edge.id)


def averaged(keeper: Edge, absorbed: Edge, now: datetime) -> dict[str, Any]:
    """Two edges that have become the same as one (C11): the running mean, counts summed, timestamps the latest. The
    columns of the one that is kept."""
    both = (keeper, absorbed)
    strength, set_at = _mean_strength(both, now)
    return {
        "strength": strength,
        "last_reinforced_at": set_at,
        "confidence": _most([edge.confidence for edge in both]),
        "explanation": keeper.explanation or absorbed.explanation,
        "activation_count": sum(edge.activation_count for edge in both),
        "reinforce_count": sum(edge.reinforce_count for edge in both),
        "last_activated_at": _most([edge.last_activated_at for edge in both]),
        "protected": keeper.protected or absorbed.protected or _hides_a_users(keeper, absorbed),
        "merged_from": [*(keeper.merged_from or []), _remembered(absorbed, strength_at(absorbed, now))],
    }


def _mean_strength(edges: Sequence[Edge], now: datetime) -> tuple[float | None, datetime | None]:
    """The mean of the strengths of this moment, each for as many edges as it is made of; never said stays unsaid."""
    if all(edge.strength is None for edge in edges):
        return None, _most([edge.last_reinforced_at for edge in edges])
    mean, _ = running_mean([(strength_at(edge, now), edges_in(edge)) for edge in edges])
    return min(1.0, mean), now


def _hides_a_users(keeper: Edge, absorbed: Edge) -> bool:
    """What a user made is never pruned (A07), also once it is part of what the machine made."""
    return absorbed.created_by == "user" and keeper.created_by != "user"


def united(keeper: Mapping[str, Any], absorbed: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of both; where both speak, the keeper's stands (C13)."""
    return {**absorbed, **keeper}


def _place(edge: Edge) -> tuple[UUID, UUID, str]:
    return edge.source, edge.target, edge.relation


def _change(before: Edge, after: Edge) -> EdgeChange:
    """What differs; of a strength that differs, the moment too (plan.patch says why)."""
    differing = {field.name for field in fields(Edge) if getattr(before, field.name) != getattr(after, field.name)}
    if differing & STRENGTH:
        differing |= STRENGTH
    names = [field.name for field in fields(Edge) if field.name in differing]
    old, new = ({name: as_json(getattr(edge, name)) for name in names} for edge in (before, after))
    return EdgeChange(id=before.id, before=old, after=new)
