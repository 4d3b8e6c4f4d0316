"""Spaces, and the keys that open them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


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
