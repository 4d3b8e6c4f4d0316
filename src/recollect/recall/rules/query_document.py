"""A query as a document and back: how the log keeps what was asked, and how the cache knows it again."""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.model import Kind, Mode, NodeFilter, Query, Status


def as_document(query: Query) -> dict[str, Any]:
    """A query in JSON's own terms."""
    return {field.name: _plain(getattr(query, field.name)) for field in fields(query)}


def as_key(query: Query) -> str:
    """The same for two queries that ask the same."""
    return json.dumps(as_document(query), sort_keys=True, ensure_ascii=False)


def from_document(document: Mapping[str, Any]) -> Query:
    """The query that a document was made of; what an older log does not know is left to its default."""
    known = {field.name: document[field.name] for field in fields(Query) if field.name in document}
    known["mode"] = Mode(known.get("mode", Mode.NEUTRAL))
    if "wanted" in known:
        known["wanted"] = _filter(known["wanted"])
    return Query(**known)


def _plain(value: Any) -> Any:
    if isinstance(value, NodeFilter):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _filter(document: Mapping[str, Any]) -> NodeFilter:
    known = {field.name: document[field.name] for field in fields(NodeFilter) if field.name in document}
    for name, kind in (("kinds", Kind), ("statuses", Status), ("subtypes", str)):
        if name in known:
            known[name] = tuple(kind(one) for one in known[name])
    for name in ("created_from", "created_to"):
        if known.get(name) is not None:
            known[name] = datetime.fromisoformat(known[name])
    return NodeFilter(**known)
