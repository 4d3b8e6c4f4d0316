"""Questions: are these two one? What a policy asks, and its sides as a person compares them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class PairQuestion:
    """Are these two one? What a policy found likely and leaves to a person; `keep` is the one that would stay (C36).

    `policy` merges them if the answer is yes. `probability` orders questions and merges nothing; `factors` are what
    speaks for it and against it, as they are shown.
    """

    policy: str
    keep: UUID
    other: UUID
    versions: tuple[int, int]
    probability: float
    reason: str
    factors: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionSide:
    """A concept or a case beside the one it may be the same as. A case's query is its name, its answer its text."""

    id: UUID
    kind: str
    node_type: str
    name: str
    text: str | None
    metadata: Mapping[str, Any]
    version: int
    created_at: datetime
    aliases: tuple[str, ...] = ()
    links: int | None = None
    category_path: str | None = None
    usage_count: int | None = None
    success_rate: float | None = None
