"""Rows to nouns: the one place where a database row becomes a Node, a Space, a key."""

from collections.abc import Mapping
from typing import Any

from recollect.model import ApiKey, Kind, Node, Scope, Space, Status
from recollect.store.tables import nodes

NODE_COLUMNS = tuple(column for column in nodes.c if column.name not in ("space_id", "recallable"))


def node(row: Any) -> Node:
    return node_of(row._mapping)


def node_of(columns: Mapping[str, Any]) -> Node:
    fields = {column.name: columns[column.name] for column in NODE_COLUMNS}
    fields |= {"kind": Kind(fields["kind"]), "status": Status(fields["status"])}
    return Node(**fields)


def space(row: Any) -> Space:
    return Space(
        id=row.id, slug=row.slug, settings=row.settings, embedding_model=row.embedding_model, created_at=row.created_at
    )


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
