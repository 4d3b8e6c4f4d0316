"""Editing: every change to a memory is a plan of one decision, so that it has a history and can be undone; a change of
many is one plan of as many decisions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.cases.policies.bank import BY_HAND, copied
from recollect.concepts.rules.concepts import checked_open_metadata
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.graph.sql import edges
from recollect.memories.rules.contract import checked_importance, checked_metadata
from recollect.memories.rules.text import is_storable
from recollect.memories.sql import nodes
from recollect.model import Kind, Metadata, Node, Space, Status
from recollect.plan import Change, Draft, HistoryEntry, patch
from recollect.plans.rules.plan_text import called
from recollect.plans.sql import changes, journal
from recollect.store.database import Transaction
from recollect.wording import counted, listed

MOST_AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ManyChanged:
    """What a change of many came to: the plan that did it, which can be undone; none where all were so already."""

    plan_id: UUID | None
    changed: int
    unchanged: int


async def edit(
    core: Core,
    space_id: UUID,
    id_: UUID,
    *,
    metadata: Metadata | None = None,
    merge: bool = False,
    importance: float | None = None,
    if_version: int | None = None,
) -> Node:
    """Change metadata (replaced, or with `merge` its fields one by one) or importance; the text is permanent."""
    now = core.now()
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        node = await nodes.get(db, id_)
        if if_version is not None and node.version != if_version:
            raise Conflict(f"{id_} is at version {node.version}, not {if_version}: read it again and repeat.")
        after: dict[str, Any] = {}
        if metadata is not None:
            new_metadata = _merged(node.metadata, metadata) if merge else metadata
            after["metadata"] = _checked(core, space, node, new_metadata)
            if after["metadata"] != node.metadata:
                after |= {"version": node.version + 1, "updated_at": now.isoformat()}
        if importance is not None:
            after["importance"] = checked_importance(importance)
    return await _change(core, space_id, node, after, verb="edit", reason=None, acts=_edits(node, after))


async def set_status(core: Core, space_id: UUID, id_: UUID, status: Status, *, reason: str | None = None) -> Node:
    """Archive a node (out of recall, kept) or bring it back."""
    node = await _get(core, space_id, id_)
    refuse_merged(node)
    verb, also = _verb(status, None), _copies(node, status, core.now())
    return await _change(core, space_id, node, {"status": status.value}, verb=verb, reason=reason, also=also)


async def set_excluded(core: Core, space_id: UUID, id_: UUID, excluded: bool, *, reason: str | None = None) -> Node:
    """Keep a node out of recall without archiving it, or let it in again."""
    node = await _get(core, space_id, id_)
    verb = "exclude" if excluded else "include"
    return await _change(core, space_id, node, {"exclude": excluded}, verb=verb, reason=reason)


async def set_protected(core: Core, space_id: UUID, id_: UUID, protected: bool, *, reason: str | None = None) -> Node:
    """Say that tidying leaves a node alone, or no longer."""
    node = await _get(core, space_id, id_)
    verb = "protect" if protected else "unprotect"
    return await _change(core, space_id, node, {"protected": protected}, verb=verb, reason=reason)


async def change_many(
    core: Core,
    space_id: UUID,
    ids: Sequence[UUID],
    *,
    status: Status | None = None,
    protected: bool | None = None,
    add_tags: Sequence[str] = (),
    remove_tags: Sequence[str] = (),
    reason: str | None = None,
) -> ManyChanged:
    """Change many nodes at once, as one plan; those that are so already are left as they are."""
    unique_ids = list(dict.fromkeys(ids))
    if not unique_ids or len(unique_ids) > MOST_AT_ONCE:
        raise InvalidInput(f"Choose 1 to {MOST_AT_ONCE:,} nodes at a time, not {len(unique_ids):,}.", field="ids")
    acts = _acts(status, protected, add_tags, remove_tags)
    checked = checked_reason(reason or f"{_verb(status, protected)} by hand")
    now, draft = core.now(), Draft()
    async with core.transaction(space_id) as db:
        space, nodes_by_id = await spaces.by_id(db), await nodes.get_many(db, unique_ids)
        for id_ in unique_ids:
            if id_ not in nodes_by_id:
                raise NotFound(f"Nothing is remembered under {id_}. Nothing changed.")
            node, after = nodes_by_id[id_], _flags(status, protected)
            if status is not None:
                refuse_merged(node)
            if add_tags or remove_tags:
                after |= _retagged(core, space, node, add_tags, remove_tags, now)
            change = patch(table="nodes", id=id_, before=_as_row(node), after=after)
            if change is not None:
                draft.decide(_verb(status, protected), id_, checked, [change, *_copies(node, status, now)])
        if not draft.decisions:
            return ManyChanged(plan_id=None, changed=0, unchanged=len(unique_ids))
        title = titled(acts, [nodes_by_id[decision.subject] for decision in draft.decisions], reason)
        outcome = await changes.apply(db, draft.plan(policy="hand", title=title, now=now), now)
    changed = len(draft.decisions)
    return ManyChanged(plan_id=outcome.plan_id, changed=changed, unchanged=len(unique_ids) - changed)


async def refuse_new_text(core: Core, space_id: UUID, id_: UUID) -> None:
    """D01: a memory's text never changes; say so, whoever asks."""
    node = await _get(core, space_id, id_)
    if node.kind is Kind.MEMORY:
        raise Conflict("The text of a memory is permanent: `recollect correct` puts a new text in its place.")


async def history(core: Core, space_id: UUID, reference: UUID | str) -> list[HistoryEntry]:
    """What happened to a node, or to an edge."""
    async with core.transaction(space_id) as db:
        id_ = await _node_or_edge(db, str(reference))
        return await journal.history(db, id_)


async def _node_or_edge(db: Transaction, reference: str) -> UUID:
    for resolve in (nodes.resolve, edges.resolve):
        with suppress(NotFound):
            return await resolve(db, reference)
    raise NotFound(
        f"Nothing is remembered under {reference}, and there is no edge of that id: `recollect list` shows what is."
    )


async def _get(core: Core, space_id: UUID, id_: UUID) -> Node:
    async with core.transaction(space_id) as db:
        return await nodes.get(db, id_)


async def _change(
    core: Core,
    space_id: UUID,
    node: Node,
    after: Mapping[str, Any],
    *,
    verb: str,
    reason: str | None,
    acts: str | None = None,
    also: Sequence[Change] = (),
) -> Node:
    """Apply one decision; asking for what is so already changes nothing."""
    checked = checked_reason(reason or f"{verb} by hand")
    change = patch(table="nodes", id=node.id, before=_as_row(node), after=after)
    now = core.now()
    async with core.transaction(space_id) as db:
        if change is not None:
            draft = Draft()
            draft.decide(verb, node.id, checked, [change, *also])
            plan = draft.plan(policy="hand", title=titled(acts or verb, [node], reason), now=now)
            await changes.apply(db, plan, now)
        return await nodes.get(db, node.id)


def titled(acts: str, changed: Sequence[Node], reason: str | None) -> str:
    """What is done to what, and why where somebody said so: in a list of plans nothing else tells it."""
    first, *more = changed
    name = called(first) or str(first.id)
    objects = counted(len(changed), "memory", "memories") if more else f"“{name}”"
    return f"{acts[0].upper()}{acts[1:]} {objects}{f': {reason}' if reason else ''}"


def _edits(node: Node, after: Mapping[str, Any]) -> str:
    """`edit the tags and importance of`: by the fields of the metadata that become others."""
    metadata = after.get("metadata", node.metadata)
    fields = [name for name in {**node.metadata, **metadata} if node.metadata.get(name) != metadata.get(name)]
    fields += ["importance"] if after.get("importance", node.importance) != node.importance else []
    return f"edit the {listed(fields)} of"


def refuse_merged(node: Node) -> None:
    if node.status is Status.MERGED:
        raise Conflict(f"{node.id} was merged into {node.merged_into}: undo that merge to have it back.")


def _copies(node: Node, status: Status | None, now: datetime) -> list[Change]:
    """A case that goes to rest leaves a copy of itself in the archive, whoever sends it there (E25)."""
    rests = node.kind is Kind.CASE and node.status is Status.ACTIVE and status is Status.ARCHIVED
    return [copied(node.id, BY_HAND, now)] if rests else []


def _verb(status: Status | None, protected: bool | None) -> str:
    if status is not None:
        return "archive" if status is Status.ARCHIVED else "restore"
    if protected is not None:
        return "protect" if protected else "unprotect"
    return "edit"


def _acts(status: Status | None, protected: bool | None, added: Sequence[str], removed: Sequence[str]) -> str:
    """What is done to all of them."""
    tags = [f"add the tag {', '.join(added)} to"] if added else []
    tags += [f"remove the tag {', '.join(removed)} from"] if removed else []
    acts = tags if status is None and protected is None else [_verb(status, protected), *tags]
    if not acts:
        raise InvalidInput("There is nothing to change: archive, restore, protect, or give tags.")
    return " and ".join(acts)


def _flags(status: Status | None, protected: bool | None) -> dict[str, Any]:
    flags: dict[str, Any] = {} if status is None else {"status": status.value}
    return flags if protected is None else {**flags, "protected": protected}


def _retagged(
    core: Core, space: Space, node: Node, added: Sequence[str], removed: Sequence[str], now: datetime
) -> dict[str, Any]:
    tags = [tag for tag in node.metadata.get("tags", ()) if tag not in removed]
    tags += [tag for tag in added if tag not in tags]
    retagged = _merged(node.metadata, {"tags": tags or None})
    metadata = _checked(core, space, node, retagged)
    if metadata == node.metadata:
        return {}
    return {"metadata": metadata, "version": node.version + 1, "updated_at": now.isoformat()}


def checked_reason(reason: str) -> str:
    if len(reason) > 1000:
        raise InvalidInput("The reason is longer than 1,000 characters: shorten it.", field="reason")
    if not is_storable(reason):
        raise InvalidInput("The reason holds a NUL byte or a lone surrogate: remove it.", field="reason")
    return reason


def _checked(core: Core, space: Space, node: Node, metadata: Metadata) -> Metadata:
    """Memories keep contract V1; what describes a concept is not known beforehand."""
    if node.kind is Kind.CONCEPT:
        return checked_open_metadata(metadata, core.settings.max_metadata_bytes)
    return checked_metadata(metadata, core.contract(space))


def _as_row(node: Node) -> dict[str, Any]:
    """The columns of a node that an edit may change, as JSON."""
    return {
        "metadata": node.metadata,
        "importance": node.importance,
        "status": node.status.value,
        "exclude": node.exclude,
        "protected": node.protected,
        "version": node.version,
        "updated_at": node.updated_at.isoformat(),
    }


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Metadata:
    """The fields of `new` over those of `old`; null takes a field away; `extra` is merged the same way."""
    merged = dict(old)
    for field, value in new.items():
        if value is None:
            merged.pop(field, None)
        elif field == "extra" and isinstance(value, Mapping) and isinstance(merged.get(field), Mapping):
            merged[field] = _merged(merged[field], value)
        else:
            merged[field] = value
    return merged
