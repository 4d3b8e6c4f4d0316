"""Correcting: a new text takes the place of an old one.

The text of a memory is permanent (D01), so the old one is archived and the new one remembers what it corrects. Both
happen in one decision: undoing it brings the old text back and archives the new one. The new text is stored out of
recall first, and changes places with the old one when it can be found, so that recall never misses both. Correcting a
correction back brings the first text back.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import Conflict, DuplicateText
from recollect.memories import edit, remember
from recollect.memories.rules.text import normalise
from recollect.memories.sql import nodes
from recollect.model import ExportedMemory, Kind, Metadata, Node, Status
from recollect.plan import Change, Draft, Plan, patch
from recollect.plans.sql import changes

CORRECTS = "corrects"


async def correct(
    core: Core, space_id: UUID, id_: UUID, text: str, *, metadata: Metadata | None = None, reason: str | None = None
) -> Node:
    """Put a new text in the place of a memory's, with its importance, thread and metadata, or other metadata."""
    edit.checked_reason(reason or "")
    async with core.transaction(space_id) as db:
        old = await nodes.get(db, id_)
    _refuse_what_cannot_be(old, text)
    new_metadata = {**(old.metadata if metadata is None else metadata)}
    new_metadata["extra"] = {**new_metadata.get("extra", {}), CORRECTS: str(old.id)}
    new = await _stored(core, space_id, old, text, new_metadata)
    async with core.transaction(space_id) as db:
        await changes.apply(db, _plan(old, new, new_metadata, reason, core.now()), core.now())
        return await nodes.get(db, new.id)


def _refuse_what_cannot_be(old: Node, text: str) -> None:
    edit.refuse_merged(old)
    if old.kind is not Kind.MEMORY:
        raise Conflict(f"{old.id} is a {old.kind.value}, and its text can be edited: only a memory is corrected.")
    if old.status is not Status.ACTIVE:
        raise Conflict(f"{old.id} is archived: restore it first, or remember the new text by itself.")
    if normalise(text) == old.text:
        raise Conflict("The new text is the one that is there: there is nothing to correct.")


async def _stored(core: Core, space_id: UUID, old: Node, text: str, metadata: Metadata) -> Node:
    """The new text, out of recall; one that an earlier correction left behind is taken up."""
    memory = ExportedMemory(
        text=text,
        subtype=old.subtype,
        metadata=metadata,
        importance=old.importance,
        thread=old.thread,
        created_at=core.now(),
        status=Status.ARCHIVED,
    )
    try:
        return await remember.add(core, space_id, memory, wait=True)
    except DuplicateText as twin:
        async with core.transaction(space_id) as db:
            left = await nodes.get(db, twin.existing_id)
        if left.status is Status.ARCHIVED and (_corrects(left, old) or _corrects(old, left)):
            return left
        raise


def _corrects(new: Node, old: Node) -> bool:
    return bool(new.metadata.get("extra", {}).get(CORRECTS) == str(old.id))


def _plan(old: Node, new: Node, metadata: Metadata, reason: str | None, now: datetime) -> Plan:
    archived, active = {"status": Status.ARCHIVED.value}, {"status": Status.ACTIVE.value}
    before: dict[str, Any] = {**archived, "metadata": new.metadata, "version": new.version}
    after: dict[str, Any] = {**active, "metadata": metadata, "version": new.version}
    if new.metadata != metadata:
        before["updated_at"] = new.updated_at.isoformat()
        after |= {"version": new.version + 1, "updated_at": now.isoformat()}
    taken_up = patch(table="nodes", id=new.id, before=before, after=after)
    assert taken_up is not None, "its status changes"
    draft = Draft()
    retired = Change(table="nodes", id=old.id, before=active, after=archived)
    draft.decide("correct", old.id, reason or "corrected by hand", [retired, taken_up])
    return draft.plan(policy="hand", title=edit.titled("correct", [old], reason), now=now)
