"""Noting a question: its entry in the query log (D11, D12) and the use of what was handed out, in one transaction.

Recall itself is read-only; this is a transaction beside it, so that searching never waits for a row that somebody else
counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any
from uuid import UUID, uuid4

from recollect.engine import paths
from recollect.engine.core import Core
from recollect.model import Hit, LoggedHit, Parts, Query, Recall, RecallLog
from recollect.rules.asked import as_document
from recollect.store import recalls

PARTS = tuple(field.name for field in fields(Parts))
NO_WAYS: Mapping[str, Any] = {}


def entry(
    core: Core, query: Query, hits: Iterable[LoggedHit], *, model: str, floor: float | None, latency_ms: float
) -> RecallLog:
    """One question as the log keeps it: all that was found counts as handed out."""
    hits = tuple(hits)
    return RecallLog(
        id=uuid4(),
        user_query=query.text,
        mode=query.mode,
        memory_ids=tuple(hit.id for hit in hits),
        hits=hits,
        asked=as_document(query),
        embedding_model=model,
        floor=floor,
        latency_ms=latency_ms,
        created_at=core.now(),
    )


def entry_of(core: Core, query: Query, found: Recall) -> RecallLog:
    hits = map(_logged, found)
    return entry(core, query, hits, model=found.model, floor=found.floor, latency_ms=found.latency_ms)


async def note(core: Core, space_id: UUID, entry: RecallLog, ways: Mapping[str, Any] = NO_WAYS) -> UUID:
    """Log one question, whoever answered it, and count the use of what was handed out."""
    async with core.database.noting(space_id) as connection:
        await recalls.add(connection, space_id, entry)
        await paths.note(connection, space_id, entry, ways)
    return entry.id


def _logged(hit: Hit) -> LoggedHit:
    return LoggedHit(id=hit.node.id, score=hit.score, parts={name: getattr(hit.parts, name) for name in PARTS})
