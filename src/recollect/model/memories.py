"""Nodes, and the memories among them: as they are handed in, kept, listed and used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
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
class ExportedMemory(NewMemory):
    """A memory that comes back from an export, in the state in which it left.

    A class of its own, so that a plain new memory can never claim a version, a status or a vector.
    `vectors` holds, for each model, the numbers as little-endian float16.
    """

    status: Status = Status.ACTIVE
    merged_into: UUID | None = None
    protected: bool = False
    exclude: bool = False
    is_summary: bool = False
    version: int = 1
    updated_at: datetime | None = None
    vectors: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """One memory of a batch that was not stored, and why."""

    position: int
    code: str
    message: str
    existing_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something worth knowing about one of a batch, which was stored all the same: a tag that looks like a slip."""

    position: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """What became of a batch: the ids stored, in order, and what was refused, by position.

    `postponed` names what is stored but not searchable yet, with the reason: nothing is lost, the worker tries again.
    """

    ids: tuple[UUID, ...]
    refused: tuple[Refused, ...] = ()
    postponed: Mapping[UUID, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


# How a listing is ordered, by when things were said.
Order = Literal["newest", "oldest"]


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
    # Cases of this category, and of those below it.
    category: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A stretch of a listing; `next_cursor` leads on, None means this was the end."""

    items: tuple[Node, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """How a node is used: handed out so often, judged so often, and found helpful in so many of those."""

    uses: int = 0
    successes: int = 0
    judged: int = 0
    last_used_at: datetime | None = None
    decay_score: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCounts:
    """Embedding jobs of a space, by state."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    # Without a vector, because the model cannot read the text: found by words alone.
    unreadable: int = 0

    @property
    def waiting(self) -> int:
        return self.pending + self.processing

    @property
    def finished(self) -> int:
        return self.completed + self.unreadable
