"""How things become one. Each way of merging is written here once.

Parallel edges: the strongest wins, the others lend it half of their strength, and it remembers them all (A13-A17).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from recollect.model import Edge
from recollect.rules.strength import current

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
        "protected": any(edge.protected or edge.created_by == "user" for edge in group),
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
    said = _PREFIX.match(edge.explanation or "")
    return int(said[1]) if said else 1


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
