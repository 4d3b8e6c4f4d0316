"""The query log: every question with its mode, what was found and handed out, and what was answered (D11, D12).

The column `hits` holds one document: the query as it was asked, the ranking, and what ranked it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text

from recollect.model import Kind, LoggedHit, Mode, NodeFilter, Query, RecallLog, RecallLogs, Status, TokenUsage
from recollect.store import references
from recollect.store.cursors import stretch
from recollect.store.database import Transaction
from recollect.store.tables import recalls

# Enters the space as the role it is given, adds the entry and counts one use of what was handed out: whether it is said
# in a transaction or is one of its own, and once or twice.
ADD = "SELECT note_recall($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"

# Counted when an entry is added. Asking the log itself would read it from end to end: `&&` is not leakproof, so
# row-level security keeps it from a GIN index.
TIMES_RECALLED = text("""
    SELECT node_id AS id, recalled AS times FROM activity
     WHERE space_id = :space AND node_id = ANY(CAST(:ids AS uuid[])) AND recalled > 0
""")

ADD_PATHS = text(
    "UPDATE recalls SET hits = coalesce(hits, '{}') || CAST(:paths AS jsonb) WHERE space_id = :space AND id = :id"
)
PATH_TO = text("SELECT hits->'paths'->:node FROM recalls WHERE space_id = :space AND id = :id")


def as_noted(log: RecallLog) -> Sequence[Any]:
    """What `ADD` is given of an entry, beside the space and the role."""
    return (
        *(log.id, log.user_query, log.mode.value, list(log.memory_ids), json.dumps(_document(log))),
        *(log.prompt_hash, log.debug_prompt, log.external_knowledge_used, log.confidence_score, log.response),
        *(json.dumps(asdict(log.token_usage)), log.latency_ms, log.created_at),
    )


async def get(db: Transaction, reference: str) -> RecallLog:
    """An entry by its id, or by a unique beginning of it."""
    missing = f"No recall is logged under {reference}: `recollect recalls` lists them."
    id_ = await references.resolve(db, recalls, reference, several="recalls", missing=missing)
    mine = (recalls.c.space_id == db.space_id) & (recalls.c.id == id_)
    return _log((await db.execute(select(recalls).where(mine))).one())


async def list_page(db: Transaction, *, mode: Mode | None = None, limit: int, cursor: str | None = None) -> RecallLogs:
    """A stretch of the log, newest first."""
    statement = select(recalls).where(recalls.c.space_id == db.space_id)
    if mode is not None:
        statement = statement.where(recalls.c.mode == mode)
    rows, more = await stretch(db, recalls, statement, limit=limit, cursor=cursor)
    return RecallLogs(items=tuple(map(_log, rows)), next_cursor=more)


async def last_ids(db: Transaction, query: str, mode: Mode, *, most: int = 2) -> frozenset[UUID]:
    """What the last answers to the same question in the same mode held (D24)."""
    statement = (
        select(recalls.c.memory_ids)
        .where(recalls.c.space_id == db.space_id, recalls.c.query_hash == func.md5(query), recalls.c.mode == mode)
        .order_by(recalls.c.created_at.desc(), recalls.c.id)
        .limit(most)
    )
    return frozenset(id_ for ids in (await db.execute(statement)).scalars() for id_ in ids)


async def times_recalled(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, int]:
    """In how many entries of the log each of these nodes is; those in none are left out (D19)."""
    if not ids:
        return {}
    rows = await db.execute(TIMES_RECALLED, {"space": db.space_id, "ids": list(ids)})
    return {row.id: row.times for row in rows}


# -- the paths by which hits were reached, beside the ranking in `hits`


async def add_paths(db: Transaction, id_: UUID, paths: Mapping[str, Sequence[str]]) -> None:
    """Note by which edges each hit was reached, where activation led to it."""
    await db.execute(ADD_PATHS, {"space": db.space_id, "id": id_, "paths": json.dumps({"paths": paths})})


async def path_to(db: Transaction, id_: UUID, node_id: UUID) -> list[UUID]:
    """The edges by which an entry's hit was reached; none where it was found otherwise."""
    edges = await db.execute(PATH_TO, {"space": db.space_id, "id": id_, "node": str(node_id)})
    return [UUID(edge) for edge in edges.scalar_one_or_none() or ()]


# -- rows to nouns and back


def _document(log: RecallLog) -> dict[str, Any]:
    return {
        "asked": dict(log.asked),
        "floor": log.floor,
        "embedding_model": log.embedding_model,
        "found": [{"id": str(hit.id), "score": hit.score, "parts": dict(hit.parts)} for hit in log.hits],
    }


def _log(row: Any) -> RecallLog:
    document: Mapping[str, Any] = row.hits or {}
    return RecallLog(
        id=row.id,
        user_query=row.user_query,
        mode=Mode(row.mode),
        memory_ids=tuple(row.memory_ids),
        hits=tuple(
            LoggedHit(id=UUID(hit["id"]), score=hit["score"], parts=hit["parts"]) for hit in document.get("found", ())
        ),
        asked=document.get("asked", {}),
        embedding_model=document.get("embedding_model"),
        floor=document.get("floor"),
        prompt_hash=row.prompt_hash,
        debug_prompt=row.debug_prompt,
        external_knowledge_used=row.external_knowledge_used,
        confidence_score=row.confidence_score,
        response=row.response,
        token_usage=TokenUsage(**row.token_usage),
        latency_ms=row.latency_ms,
        created_at=row.created_at,
    )


# -- a query as a document and back


def as_document(query: Query) -> dict[str, Any]:
    """A query in JSON's own terms."""
    return {field.name: _plain(getattr(query, field.name)) for field in fields(query)}


def from_document(document: Mapping[str, Any]) -> Query:
    """The query that a document was made of; what an older log does not know is left to its default."""
    values = {field.name: document[field.name] for field in fields(Query) if field.name in document}
    values["mode"] = Mode(values.get("mode", Mode.NEUTRAL))
    if "wanted" in values:
        values["wanted"] = _filter(values["wanted"])
    return Query(**values)


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
    values = {field.name: document[field.name] for field in fields(NodeFilter) if field.name in document}
    for name, kind in (("kinds", Kind), ("statuses", Status), ("subtypes", str)):
        if name in values:
            values[name] = tuple(kind(value) for value in values[name])
    for name in ("created_from", "created_to"):
        if values.get(name) is not None:
            values[name] = datetime.fromisoformat(values[name])
    return NodeFilter(**values)
