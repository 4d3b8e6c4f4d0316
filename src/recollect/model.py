"""The nouns: what is remembered, what is asked, what is found.

The only set of classes for these nouns: the store makes them from rows, the doors print them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, overload
from uuid import UUID

Metadata = dict[str, Any]


class Kind(StrEnum):
    MEMORY = "memory"
    CASE = "case"
    CONCEPT = "concept"
    PAGE = "page"


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    MERGED = "merged"


class ContentType(StrEnum):
    """The six subtypes of a memory."""

    NOTE = "note"
    CONVERSATION = "conversation"
    REFLECTION = "reflection"
    IDEA = "idea"
    ARTICLE = "article"
    LOG = "log"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """Anything remembered."""

    id: UUID
    kind: Kind
    subtype: str
    name: str | None
    text: str | None
    checksum: str | None
    metadata: Metadata
    importance: float | None
    status: Status
    merged_into: UUID | None
    protected: bool
    exclude: bool
    is_summary: bool
    source: str | None
    source_id: str | None
    thread: str | None
    position: int | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMemory:
    """A memory as it is handed in. Only the text is required."""

    text: str
    subtype: str = ContentType.NOTE
    metadata: Metadata = field(default_factory=dict)
    importance: float | None = None
    thread: str | None = None
    position: int | None = None
    created_at: datetime | None = None
    id: UUID | None = None
    source: str | None = None
    source_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """One memory of a batch that was not stored, and why."""

    position: int
    code: str
    message: str
    existing_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """What became of a batch: the ids stored, in order, and what was refused, by position.

    `postponed` names what is stored but not searchable yet, with the reason: nothing is lost, the worker tries again.
    """

    ids: tuple[UUID, ...]
    refused: tuple[Refused, ...] = ()
    postponed: Mapping[UUID, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFilter:
    """Which nodes a listing (and later a recall) may return. Everything given must hold."""

    kinds: tuple[Kind, ...] = (Kind.MEMORY,)
    subtypes: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = (Status.ACTIVE,)
    excluded: bool | None = None
    thread: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_selective(self) -> bool:
        """Whether anything beyond kind and status was asked for."""
        return bool(self.subtypes or self.thread or self.created_from or self.created_to or self.metadata)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A stretch of a listing; `next_cursor` leads on, None means this was the end."""

    items: tuple[Node, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One answer of a recall."""

    node: Node
    score: float
    similarity: float

    def __str__(self) -> str:
        text = " ".join((self.node.text or self.node.name or "").split())
        return f"{self.score:.2f}  {self.node.created_at:%Y-%m-%d}  {text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall(Sequence[Hit]):
    """The hits of one recall, best first; prints one line a hit."""

    query: str
    hits: tuple[Hit, ...]
    model: str
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __str__(self) -> str:
        return "\n".join(str(hit) for hit in self.hits) or "Nothing is known about that."


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A tenant: nothing crosses it."""

    id: UUID
    slug: str
    settings: Mapping[str, Any]
    embedding_model: str | None
    created_at: datetime


class Scope(StrEnum):
    """What a key may do; each scope is its own, admin holds all."""

    READ = "read"
    WRITE = "write"
    CONSOLIDATE = "consolidate"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A key as it can be shown: the secret itself is kept only as a hash."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    space: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCounts:
    """Embedding jobs of a space, by state."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0

    @property
    def waiting(self) -> int:
        return self.pending + self.processing
