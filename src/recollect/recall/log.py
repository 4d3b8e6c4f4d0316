"""Noting a question: its entry in the query log (D11, D12) and the use of what was handed out, in one transaction.

Recall itself is read-only; this comes after it, so that searching never waits for a row that somebody else counts.
"""

from collections.abc import Sequence
from dataclasses import fields
from uuid import UUID, uuid4

from recollect.engine.core import Core
from recollect.graph.rules.strength import ONE_TRAVERSAL
from recollect.graph.sql import edges
from recollect.model import Hit, LoggedHit, Parts, Query, Recall, RecallLog, TokenUsage
from recollect.recall.rules.query_document import as_document
from recollect.recall.sql import logs
from recollect.store.database import Transaction

PARTS = tuple(field.name for field in fields(Parts))


async def note(
    core: Core,
    space_id: UUID,
    recall: Recall,
    *,
    query: Query,
    given: Sequence[UUID] | None = None,
    response: str | None = None,
    prompt_hash: str | None = None,
    debug_prompt: str | None = None,
    external_knowledge_used: bool = False,
    confidence: float = 0.5,
    token_usage: TokenUsage | None = None,
    latency_ms: float | None = None,
) -> UUID:
    """Log one question, whoever answered it, and count the use of what was `given` (all hits, unless said)."""
    ids = tuple(hit.node.id for hit in recall.hits) if given is None else tuple(given)
    entry = RecallLog(
        id=uuid4(),
        user_query=query.text,
        mode=query.mode,
        memory_ids=ids,
        hits=tuple(_logged(hit) for hit in recall.hits),
        asked=as_document(query),
        embedding_model=recall.model,
        floor=recall.floor,
        prompt_hash=prompt_hash,
        debug_prompt=debug_prompt,
        external_knowledge_used=external_knowledge_used,
        confidence_score=confidence,
        response=response,
        token_usage=token_usage or TokenUsage(),
        latency_ms=recall.latency_ms if latency_ms is None else latency_ms,
        created_at=core.now(),
    )
    async with core.database.noting(space_id) as db:
        await logs.add(db, entry)
        await _count_walks(db, entry, recall)
    return entry.id


async def _count_walks(db: Transaction, entry: RecallLog, recall: Recall) -> None:
    """Note by which edges the hits were reached; each of those was walked once, and grows stronger by it (A00b)."""
    paths = {id_: path["edges"] for id_, path in recall.ways.get("paths", {}).items()}
    if paths:
        await logs.add_paths(db, entry.id, paths)
        walked = {UUID(edge) for path in paths.values() for edge in path}
        await edges.reinforce(db, dict.fromkeys(walked, ONE_TRAVERSAL), entry.created_at)


def _logged(hit: Hit) -> LoggedHit:
    return LoggedHit(id=hit.node.id, score=hit.score, parts={name: getattr(hit.parts, name) for name in PARTS})
