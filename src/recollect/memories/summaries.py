"""Persisted summaries (D39, off by default): a short text that may stand in for a long memory.

A summary is proposed, by a person or on behalf of a model, and stored out of sight; only an approved one can be
recalled, and only where summaries are asked for. It never replaces its memory, never takes part in RECALL or CHALLENGE,
and goes back out of sight when it expires. Approving and expiring are plans, so both can be undone.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import Conflict, InvalidInput
from recollect.memories import edit, remember
from recollect.memories.rules.contract import as_utc
from recollect.memories.sql import nodes
from recollect.model import ExportedMemory, Node, NodeFilter, Status

GENERATED_BY = "system"
LOOKED_AT_ONCE = 1000


async def propose(core: Core, space_id: UUID, parent: UUID, text: str, *, expires_at: datetime | None = None) -> Node:
    """Store a summary of a memory; it waits, out of recall, until it is approved."""
    if not core.settings.summaries:
        raise InvalidInput("Persisted summaries are off: set RECOLLECT_SUMMARIES=true to use them.", field="summaries")
    async with core.transaction(space_id) as db:
        of = await nodes.get(db, parent)
    if of.is_summary:
        raise InvalidInput("A summary of a summary is not kept: summarise the memory itself.", field="parent")
    extra = {"generated_by": GENERATED_BY, **({"expires_at": as_utc(expires_at).isoformat()} if expires_at else {})}
    summary = ExportedMemory(
        text=text,
        subtype=of.subtype,
        metadata={"parent_id": str(of.id), "extra": extra},
        is_summary=True,
        status=Status.ARCHIVED,
        created_at=core.now(),
    )
    return await remember.add(core, space_id, summary, wait=True)


async def approve(core: Core, space_id: UUID, summary: UUID) -> Node:
    """Let a proposed summary be recalled where summaries are asked for."""
    async with core.transaction(space_id) as db:
        node = await nodes.get(db, summary)
    if not node.is_summary:
        raise Conflict(f"{summary} is a memory, not a summary: there is nothing to approve.")
    return await edit.set_status(core, space_id, summary, Status.ACTIVE, reason="summary approved")


async def of_memory(core: Core, space_id: UUID, parent: UUID) -> Sequence[Node]:
    """The summaries of a memory, approved or not, newest first."""
    node_filter = NodeFilter(statuses=(), metadata={"parent_id": str(parent)})
    async with core.transaction(space_id) as db:
        page = await nodes.list_page(db, node_filter, limit=100, cursor=None)
    return [node for node in page.items if node.is_summary]


async def expire(core: Core, space_id: UUID) -> int:
    """Put what has expired back out of recall; returns how many."""
    node_filter = NodeFilter(metadata={"extra": {"generated_by": GENERATED_BY}})
    now, expired, cursor, ended = core.now(), list[UUID](), None, False
    async with core.transaction(space_id) as db:
        while not ended:
            page = await nodes.list_page(db, node_filter, limit=LOOKED_AT_ONCE, cursor=cursor)
            expired += [node.id for node in page.items if node.is_summary and _is_over(node, now)]
            cursor, ended = page.next_cursor, page.next_cursor is None
    for id_ in expired:
        await edit.set_status(core, space_id, id_, Status.ARCHIVED, reason="summary expired")
    return len(expired)


def _is_over(node: Node, now: datetime) -> bool:
    until = node.metadata["extra"].get("expires_at")
    return bool(until) and datetime.fromisoformat(until) <= now
