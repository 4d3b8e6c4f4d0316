"""Links between nodes, and the topics they gather in."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.model.memories import Metadata


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A directed link between two nodes. `strength` is as it was stored; it decays from then on (rules/strength)."""

    id: UUID
    source: UUID
    target: UUID
    relation: str
    strength: float | None
    confidence: float | None
    explanation: str | None
    activation_count: int
    reinforce_count: int
    decay_rate: float
    similarity: float | None
    source_topic: str | None
    target_topic: str | None
    created_by: str
    protected: bool
    status: str
    merged_into: UUID | None
    merged_from: Any
    metadata: Metadata
    created_at: datetime
    last_activated_at: datetime | None
    last_reinforced_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEdge:
    """A link to be made, as a door hands it in."""

    source: UUID
    target: UUID
    relation: str = "similar"
    strength: float | None = None
    confidence: float | None = None
    explanation: str | None = None
    source_topic: str | None = None
    target_topic: str | None = None
    similarity: float | None = None
    created_by: str = "user"
    created_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A named group of nodes: metadata about the graph, never a node of it."""

    id: UUID
    key: str
    member_ids: tuple[UUID, ...]
    internal_edges: int
    connectivity: float
    gathered_at: datetime
