"""Rows to nouns: the one place where a database row becomes a Node, a Space, a key."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from recollect.model import ApiKey, Edge, Kind, Node, Scope, Space, Status, Topic
from recollect.store.tables import edges, nodes

NODE_COLUMNS = tuple(column for column in nodes.c if column.name not in ("space_id", "recallable"))

EDGE_COLUMNS = tuple(column.name for column in edges.c if column.name not in ("space_id", "changed_in"))


def node(row: Any) -> Node:
    return node_of(row._mapping)


def node_of(columns: Mapping[str, Any]) -> Node:
    fields = {column.name: columns[column.name] for column in NODE_COLUMNS}
    fields |= {"kind": Kind(fields["kind"]), "status": Status(fields["status"])}
    return Node(**fields)


def edge(row: Any) -> Edge:
    fields = row._mapping
    return Edge(**{column: fields[column] for column in EDGE_COLUMNS})


def topic(row: Any) -> Topic:
    return Topic(
        id=row.id,
        key=row.key,
        member_ids=tuple(row.member_ids),
        internal_edges=row.internal_edges,
        connectivity=row.connectivity,
        gathered_at=row.gathered_at,
    )


def space(row: Any) -> Space:
    return space_of(row._mapping)


def space_of(columns: Mapping[str, Any]) -> Space:
    known = {field.name: columns[field.name] for field in fields(Space)}
    return Space(**known | {"settings": _current_settings(known["settings"])})


def _current_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they were stored, in today's words: spaces once had `open_tags`, and were strict without it.

    Only a space that was closed by hand stays strict.
    """
    kept = {name: value for name, value in stored.items() if name != "open_tags"}
    if stored.get("open_tags") is False:
        kept.setdefault("strict_tags", True)
    return kept


def api_key(row: Any) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        space=row.space,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
