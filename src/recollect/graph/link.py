"""Linking: edges by hand. Making an edge adds, using one counts; whatever else changes an edge is a plan."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.graph.rules import strength
from recollect.graph.rules.labels import shortened
from recollect.graph.sql import edges
from recollect.memories.rules.text import is_storable
from recollect.memories.sql import nodes
from recollect.model import Edge, NewEdge, Status
from recollect.plan import Change, Draft, as_json, patch
from recollect.plans.sql import changes, labels, locks
from recollect.store.database import Transaction
from recollect.wording import check_limit

LONGEST_EXPLANATION = 10_000
LONGEST_RELATION = 100
COLUMNS = 28  # of each of two names in one title
# What is done to which two, as a list of plans tells it.
TITLES = {
    "relink": "Link {both} again",
    "unlink": "Unlink {both}",
    "protect": "Protect the link between {both}",
    "unprotect": "Unprotect the link between {both}",
    "important": "Mark the link between {both} as important",
}


async def link_many(core: Core, space_id: UUID, new_edges: Sequence[NewEdge]) -> list[UUID]:
    """Make edges, all or none; an edge that is there already gains what is new about it (A00c). Ids in order."""
    for new_edge in new_edges:
        _check(new_edge)
    now = core.now()
    async with core.transaction(space_id) as db:
        await locks.hold_graph(db)
        await _check_ends(db, new_edges)
        new_ids, there = await edges.add_many(db, new_edges, now)
        keys = [_key(new_edges[position]) for position in there]
        edges_there = await edges.between(db, list(dict.fromkeys(keys))) if there else {}
        draft = Draft()
        for position, key in zip(there, keys, strict=True):
            _link_again(draft, edges_there[key], new_edges[position], now)
        if draft.decisions:
            again = {decision.subject for decision in draft.decisions}
            title = await _titled(db, "relink", [edge for edge in edges_there.values() if edge.id in again])
            await changes.apply(db, draft.plan(policy="hand", title=title, now=now), now)
    return [
        new_ids[position] if position in new_ids else edges_there[_key(new_edge)].id
        for position, new_edge in enumerate(new_edges)
    ]


def _key(new_edge: NewEdge) -> tuple[UUID, UUID, str]:
    return new_edge.source, new_edge.target, new_edge.relation


def _link_again(draft: Draft, edge: Edge, new_edge: NewEdge, now: datetime) -> None:
    """The higher confidence, the higher strength, the newest explanation; and what a person links, a person made."""
    stored = row_of(edge)
    seen = draft.row("edges", edge.id, stored) or stored
    after: dict[str, Any] = {}
    if new_edge.confidence is not None:
        after["confidence"] = max(new_edge.confidence, seen["confidence"] or 0.0)
    if new_edge.strength is not None and new_edge.strength > _current(seen, now):
        after |= {"strength": new_edge.strength, "last_reinforced_at": now.isoformat()}
    if new_edge.explanation is not None:
        after["explanation"] = new_edge.explanation
    if new_edge.created_by == "user":
        after["created_by"] = "user"
    change = draft.patch("edges", edge.id, stored, after)
    if change is not None:
        draft.decide("link", edge.id, "linked again", [change])


def _current(row: Mapping[str, Any], now: datetime) -> float:
    set_at = datetime.fromisoformat(row["last_reinforced_at"] or row["created_at"])
    return strength.current(row["strength"], row["decay_rate"], set_at, now)


async def get(core: Core, space_id: UUID, reference: str | UUID) -> Edge:
    async with core.transaction(space_id) as db:
        id_ = await edges.resolve(db, str(reference))
        return await edges.get(db, id_)


async def of_node(core: Core, space_id: UUID, node_id: UUID, *, limit: int = 100) -> list[Edge]:
    check_limit(limit)
    async with core.transaction(space_id) as db:
        await nodes.get(db, node_id)
        return await edges.of_node(db, node_id, limit=limit)


async def unlink(core: Core, space_id: UUID, reference: str | UUID, *, reason: str | None = None) -> Edge:
    """Take an edge out of the graph; it is kept in the journal, and undo brings it back."""
    return await _change(core, space_id, reference, {"status": "pruned"}, verb="unlink", reason=reason)


async def protect(
    core: Core, space_id: UUID, reference: str | UUID, *, protected: bool = True, reason: str | None = None
) -> Edge:
    """Say that an edge is to be left alone, or no longer."""
    verb = "protect" if protected else "unprotect"
    return await _change(core, space_id, reference, {"protected": protected}, verb=verb, reason=reason)


async def reinforce(core: Core, space_id: UUID, reference: str | UUID, kind: str = "revisit") -> Edge:
    """Make an edge stronger because of how it was used (A00b); `important` makes it 1.0 and protects it."""
    if kind == "important":
        now = core.now().isoformat()
        after = {"strength": 1.0, "last_reinforced_at": now, "protected": True}
        return await _change(core, space_id, reference, after, verb="important", reason=None)
    if kind not in strength.REINFORCEMENTS:
        kinds = ", ".join((*strength.REINFORCEMENTS, "important"))
        raise InvalidInput(f"There is no reinforcement {kind!r}: use one of {kinds}.", field="kind")
    async with core.transaction(space_id) as db:
        id_ = await edges.resolve(db, str(reference))
        _refuse_retired(await edges.get(db, id_))
        walks = 1 if kind in ("traversal", "click") else 0
        await edges.reinforce(db, {id_: (strength.REINFORCEMENTS[kind], 1, walks)}, core.now())
        return await edges.get(db, id_)


async def _change(
    core: Core, space_id: UUID, reference: str | UUID, after: Mapping[str, Any], *, verb: str, reason: str | None
) -> Edge:
    checked = _checked_reason(reason or f"{verb} by hand")
    now = core.now()
    async with core.transaction(space_id) as db:
        id_ = await edges.resolve(db, str(reference))
        edge = await edges.get(db, id_)
        if after.get("status") == edge.status:
            return edge
        _refuse_retired(edge)
        change: Change | None = patch(table="edges", id=id_, before=row_of(edge), after=after)
        if change is not None:
            draft = Draft()
            draft.decide(verb, id_, checked, [change])
            title = await _titled(db, verb, [edge], reason)
            await changes.apply(db, draft.plan(policy="hand", title=title, now=now), now)
        return await edges.get(db, id_)


async def _titled(db: Transaction, verb: str, linked: Sequence[Edge], reason: str | None = None) -> str:
    """What is done to which link, and why where somebody said so: in a list of plans nothing else tells it."""
    first, *more = linked
    names = await labels.nodes(db, [first.source, first.target])
    name, other = (shortened(names.get(end) or str(end), COLUMNS) for end in (first.source, first.target))
    both = f"{len(linked):,} pairs" if more else f"“{name}” and “{other}”"
    return f"{TITLES[verb].format(both=both)}{f': {reason}' if reason else ''}"


def _refuse_retired(edge: Edge) -> None:
    if edge.status == "merged":
        raise Conflict(f"The edge {edge.id} was merged into {edge.merged_into}: undo that merge to have it back.")
    if edge.status != "active":
        raise Conflict(f"The edge {edge.id} is {edge.status}: undo that plan (`recollect history`) to have it back.")


def row_of(edge: Edge) -> dict[str, Any]:
    """An edge as a row of JSON values, as plans compare it."""
    row = {name: getattr(edge, name) for name in Edge.__slots__}
    return {name: as_json(value) for name, value in row.items()}


def _check(new_edge: NewEdge) -> None:
    if new_edge.source == new_edge.target:
        raise InvalidInput("An edge links two different nodes: this one begins and ends at the same.", field="target")
    if not new_edge.relation.strip() or len(new_edge.relation) > LONGEST_RELATION or not is_storable(new_edge.relation):
        raise InvalidInput(f"A relation is a name of 1 to {LONGEST_RELATION} characters.", field="relation")
    for field in ("strength", "confidence", "similarity"):
        value = getattr(new_edge, field)
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1):
            raise InvalidInput(f"The {field} of an edge is from 0 to 1, not {value}.", field=field)
    if new_edge.explanation is not None:
        _check_explanation(new_edge.explanation)
    for field in ("source_topic", "target_topic"):
        _check_topic(field, getattr(new_edge, field))


def _check_explanation(explanation: str) -> None:
    if len(explanation) > LONGEST_EXPLANATION:
        raise InvalidInput(
            f"The explanation is {len(explanation):,} characters long: at most {LONGEST_EXPLANATION:,}.",
            field="explanation",
        )
    if not is_storable(explanation):
        raise InvalidInput("The explanation holds a NUL byte or a lone surrogate: remove it.", field="explanation")


def _check_topic(field: str, key: str | None) -> None:
    if key is not None and (not key.strip() or len(key) > 200 or not is_storable(key)):
        raise InvalidInput("A topic key is a name of 1 to 200 characters, such as tag:react.", field=field)


def _checked_reason(reason: str) -> str:
    if len(reason) > 1000 or not is_storable(reason):
        raise InvalidInput("The reason is at most 1,000 characters, without NUL bytes: shorten it.", field="reason")
    return reason


async def _check_ends(db: Transaction, new_edges: Sequence[NewEdge]) -> None:
    ends = list({end for new_edge in new_edges for end in (new_edge.source, new_edge.target)})
    await nodes.hold(db, ends)
    nodes_by_id = await nodes.get_many(db, ends)
    if missing := sorted(set(ends) - nodes_by_id.keys()):
        raise NotFound(f"There is no node {missing[0]}: an edge needs both its ends. Nothing was linked.")
    for node in nodes_by_id.values():
        if node.status is Status.MERGED:
            raise Conflict(f"{node.id} was merged into {node.merged_into}: link that one. Nothing was linked.")
