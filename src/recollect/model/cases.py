"""Cases: a question, the answer given, and how well that did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import overload
from uuid import UUID

from recollect.model.memories import Metadata


class CaseStatus(StrEnum):
    """A case is used, or rests; one that was merged rests too, and names its keeper."""

    ACTIVE = "active"
    ARCHIVED = "archived"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCase:
    """A case as it is handed in: a question and the answer given. `usage_count`, `success_rate` (percent) and
    `last_accessed_at` are what another bank knows of it."""

    query: str
    response_text: str
    category_path: str | None = None
    usage_count: int = 0
    success_rate: float | None = None
    last_accessed_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)
    created_at: datetime | None = None
    id: UUID | None = None
    source: str | None = None
    source_id: str | None = None
    updated_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with the answer given, how often it was used, and how well it did (percent; None: not known).

    The counts are those of all cases that were merged into it. `judged` is how many recorded outcomes the rate stands
    on.
    """

    case_id: UUID
    query: str
    response_text: str
    category_path: str | None
    usage_count: int
    success_rate: float | None
    judged: int
    last_accessed_at: datetime | None
    status: CaseStatus
    merged_into: UUID | None
    archived_reason: str | None
    archived_at: datetime | None
    protected: bool
    version: int
    metadata: Metadata
    source: str | None
    source_id: str | None
    created_at: datetime
    updated_at: datetime
    updated_by: str | None

    @property
    def id(self) -> UUID:
        return self.case_id


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFilter:
    """Which cases a listing returns. Everything given must hold; a case without a rate has none to compare."""

    status: CaseStatus | None = CaseStatus.ACTIVE
    category: str | None = None
    success_below: float | None = None
    success_at_least: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePage:
    """A stretch of a listing; `next_cursor` leads on, None means this was the end."""

    items: tuple[Case, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHit:
    """A case that was found, with its score and the raw cosine of its query."""

    case: Case
    score: float
    similarity: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHits(Sequence[CaseHit]):
    """The cases that answer a question, best first. `id` names the entry of the query log."""

    query: str
    hits: tuple[CaseHit, ...]
    id: UUID | None = None
    latency_ms: float = 0.0
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> CaseHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CaseHit, ...]: ...
    def __getitem__(self, index: int | slice) -> CaseHit | tuple[CaseHit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[CaseHit]:
        return iter(self.hits)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseOutcome:
    """How one use of a case went."""

    success: bool
    error_type: str | None = None
    milliseconds: float | None = None
    created_at: datetime | None = None
