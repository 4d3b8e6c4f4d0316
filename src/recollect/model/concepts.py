"""Concepts: named ideas, each there once, with all that was merged into them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from recollect.model.memories import Metadata, Refused, Status


@dataclass(frozen=True, kw_only=True, slots=True)
class NewConcept:
    """A concept as it is handed in. Only the name is required; without a text, the name is all that is known of it."""

    name: str
    node_type: str = "concept"
    text: str | None = None
    energy: Mapping[str, float] = field(default_factory=dict)
    base_weight: float | None = None
    metadata: Metadata = field(default_factory=dict)
    created_by: str | None = None
    created_at: datetime | None = None
    id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """What a concept has absorbed, as it was given: its own words, its weight, and who gave it."""

    id: UUID
    name: str
    text: str | None
    base_weight: float | None
    created_by: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Concept:
    """A named idea, with everything that was merged into it.

    `raw_energy` is the plain sum by entity, `energy` the same as it is shown (at most 2, rules/energy); `aliases` are
    other names that lead here; `made_of` says how many concepts it is, `absorbed` which others those are, `variants`
    what was said of them, oldest first. What it is made of is derived from what points at it, never copied: so a merge
    can be undone whatever came after it.
    """

    id: UUID
    node_type: str
    name: str
    text: str | None
    metadata: Metadata
    energy: Mapping[str, float]
    raw_energy: Mapping[str, float]
    base_weight: float | None
    aliases: tuple[str, ...]
    absorbed: tuple[UUID, ...]
    links: int
    protected: bool
    status: Status
    version: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime
    variants: tuple[Variant, ...] = ()

    @property
    def made_of(self) -> int:
        return 1 + len(self.absorbed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Formed:
    """What became of a concept that was handed in: made, or taken for one that was there; and why.

    `plan_id` is the plan that joined the two, where something new was said: undoing it makes them two.
    """

    concept: Concept
    is_new: bool
    reason: str
    score: float | None = None
    resembles: tuple[UUID, ...] = ()
    plan_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FormedMany:
    """What became of many concepts: the one that each became, in order, less those refused; how many were made, how
    many were there already, and how many of these gained what was new, each by a plan of its own."""

    ids: tuple[UUID, ...]
    made: int = 0
    there: int = 0
    joined: int = 0
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptApart:
    """Two names (or two nodes, by id) that never become one; until some time, where a declined merge rests."""

    a: str
    b: str
    reason: str | None
    until: datetime | None
    created_at: datetime
