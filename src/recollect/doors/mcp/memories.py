"""Remembering and forgetting: add_memory, add_memories, get, forget, restore, history."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from recollect.doors.mcp import telling
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.telling import short
from recollect.doors.mcp.tools import ADDS_ONCE, CHANGES_ONCE, READS, Budget, Packed, Told, checked, tool
from recollect.doors.mcp.visits import Visit
from recollect.engine.engine import Engine
from recollect.errors import DuplicateText, ForgottenText
from recollect.memories.rules.batch import each_checked
from recollect.memories.rules.contract import memory_from_mapping
from recollect.memories.rules.text import first_tokens
from recollect.model import Added, NewMemory, Node, Refused, Scope
from recollect.plans.show import edges as shown_edges
from recollect.wording import counted

MOST_AT_ONCE = 1000
MOST_LINKS = 10
HISTORY_TOKENS = 1000

Metadata = Annotated[dict[str, Any] | None, Packed]
LIKE_ADD_MEMORY = WithJsonSchema({"type": "array", "items": {"type": "object"}})


class AgentMemoryIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    metadata: Metadata = None
    importance: float | None = None
    thread: str | None = None
    created_at: str | None = None


class AgentRemembered(BaseModel):
    id: str
    added: bool
    notes: list[str] | None = None


class AllRemembered(BaseModel):
    ids: list[str]
    added: int
    refused: list[str]
    notes: list[str] | None = None


class ShownMemory(BaseModel):
    id: str
    kind: str
    status: str
    created_at: datetime
    metadata: dict[str, Any]
    text: str
    links: list[str]
    next_start: int | None = None


class Standing(BaseModel):
    id: str
    status: str


class Event(BaseModel):
    at: datetime
    verb: str
    reason: str
    plan: str | None = None


class Events(BaseModel):
    events: list[Event]


# -- adding


@tool(Scope.WRITE, hints=ADDS_ONCE)
async def add_memory(
    visit: Visit,
    *,
    text: str,
    metadata: Metadata = None,
    importance: float | None = None,
    thread: str | None = None,
    created_at: str | None = None,
) -> Told[AgentRemembered]:
    """Remember one fact, preference, decision or lesson for later conversations, in a full sentence. Not secrets,
    small talk, or what files say. Texts are permanent: to correct one, forget it with instead. Returns the id;
    a known text is kept once. thread is its conversation; metadata {tags: [any word, such as
    lesson, important, person], extra: {any}}."""
    given = AgentMemoryIn(text=text, metadata=metadata, importance=importance, thread=thread, created_at=created_at)
    try:
        added = await visit.memory.add_many([_new(given)], atomic=True)
    except ForgottenText:
        raise
    except DuplicateText as twin:
        data = AgentRemembered(id=str(twin.existing_id), added=False)
        return Told(text=f"Remembered already, as {short(data.id)}.", data=data)
    notes = [note.message for note in added.notes]
    data = AgentRemembered(id=str(added.ids[0]), added=True, notes=notes or None)
    return Told(text=" ".join([f"Remembered as {short(data.id)}.{_postponed(added)}", *notes]), data=data)


@tool(Scope.WRITE, hints=ADDS_ONCE)
async def add_memories(
    visit: Visit,
    *,
    memories: Annotated[list[Any], Packed, Field(min_length=1, max_length=MOST_AT_ONCE), LIKE_ADD_MEMORY],
) -> Told[AllRemembered]:
    """Remember several facts, each an object with the arguments of add_memory. Returns ids in order; a refusal
    does not stop the rest."""
    parsed, refused = each_checked(memories, lambda given: _new(checked(AgentMemoryIn, given, "a memory")))
    added = await visit.memory.add_many(list(parsed.values()))
    return _all_told(added, list(parsed), refused)


def _all_told(added: Added, places: Sequence[int], refused: Sequence[Refused]) -> Told[AllRemembered]:
    twins = {
        places[refusal.position]: str(refusal.existing_id)
        for refusal in added.refused
        if refusal.code == DuplicateText.code
    }
    wrong = {refusal.position: refusal.message for refusal in refused}
    wrong |= {
        places[refusal.position]: refusal.message for refusal in added.refused if refusal.code != DuplicateText.code
    }
    fresh = iter(added.ids)
    ids = {position: twins.get(position) or str(next(fresh)) for position in places if position not in wrong}
    messages = [f"{position + 1}: {in_tools(message)}" for position, message in sorted(wrong.items())]
    notes = [f"{places[note.position] + 1}: {note.message}" for note in added.notes]
    data = AllRemembered(
        ids=[ids[position] for position in sorted(ids)], added=len(added.ids), refused=messages, notes=notes or None
    )
    text = f"{len(added.ids):,} remembered, {len(twins):,} remembered already, {len(messages):,} refused."
    return Told(text="\n".join([text + _postponed(added), *messages, *notes]), data=data)


def _new(given: AgentMemoryIn) -> NewMemory:
    fields = given.model_dump(exclude_none=True)
    metadata = {"source": "mcp", **fields.pop("metadata", {})}
    return memory_from_mapping({**fields, "metadata": metadata})


def _postponed(added: Added) -> str:
    return " It is found by its words alone so far: the embedder is not to be reached now." if added.postponed else ""


# -- looking


@tool(Scope.READ, hints=READS)
async def get(
    visit: Visit,
    *,
    id: str,
    start: Annotated[int, Field(ge=0)] = 0,
    budget_tokens: Budget = 2000,
) -> Told[ShownMemory]:
    """Read one memory, concept, case or page whole, with its links, by its id or the first 4+ characters. To search,
    use recall. In long texts next_start leads on."""
    node = await visit.memory.get(id)
    data = await _shown(visit.memory, node, start, budget_tokens)
    lines = [f"{short(data.id)}  {data.kind}, {data.status}, {data.created_at:%Y-%m-%d}", data.text, *data.links]
    if data.next_start:
        lines.append(f"There is more: start={data.next_start}.")
    return Told(text="\n".join(lines), data=data)


async def _shown(memory: Engine, node: Node, start: int, budget: int) -> ShownMemory:
    whole = "\n".join(part for part in (node.name, node.text) if part)
    edges = await memory.graph.edges(node.id, limit=MOST_LINKS)
    links = [edge.label for edge in await shown_edges(memory.core, memory.space.id, edges)]
    data = ShownMemory(
        id=str(node.id),
        kind=f"{node.kind} ({node.subtype})",
        status=node.status,
        text="",
        created_at=node.created_at,
        metadata=node.metadata,
        links=telling.fitting_lines(links, budget // 2),
        next_start=len(whole),
    )
    room = max(telling.LEAST_TOKENS, budget - telling.cost(data) - telling.AROUND)
    text = first_tokens(whole[start:], room)
    end = start + len(text)
    return data.model_copy(update={"text": text, "next_start": end if end < len(whole) else None})


@tool(Scope.READ, hints=READS)
async def history(visit: Visit, *, id: str) -> Told[Events]:
    """What happened to a memory, concept or link, newest first: when, why, by which plan. Use it before you undo."""
    entries = reversed(await visit.memory.history(id))
    events = [
        Event(
            at=entry.at,
            verb=entry.verb,
            reason=entry.reason,
            plan=None if entry.plan_id is None else str(entry.plan_id),
        )
        for entry in entries
    ]
    fitting = telling.fitting(events, HISTORY_TOKENS, field="reason")
    lines = [f"{event.at:%Y-%m-%d %H:%M}Z  {event.verb}: {event.reason}{_by(event.plan)}" for event in fitting]
    if len(events) > len(fitting):
        lines.append(f"{counted(len(events) - len(fitting), 'older change', 'older changes')} not shown.")
    return Told(text="\n".join(lines) or "Nothing has changed since it was added.", data=Events(events=fitting))


def _by(plan: str | None) -> str:
    return "" if plan is None else f" (plan {short(plan)})"


# -- forgetting


@tool(Scope.WRITE, hints=CHANGES_ONCE)
async def forget(visit: Visit, *, id: str, reason: str | None = None, instead: str | None = None) -> Told[Standing]:
    """Archive what is wrong or outdated: out of recall, but kept; restore brings it back. Nothing is deleted. The text
    instead, if given, takes its place."""
    if instead is not None:
        new = await visit.memory.correct(id, instead, reason=reason)
        text = f"Corrected: {short(new.id)} took its place. The history of {short(new.id)} names the plan to undo."
        return Told(text=text, data=Standing(id=str(new.id), status=new.status))
    node = await visit.memory.forget(id, reason=reason)
    text = f"Archived {short(node.id)}: out of recall, but kept. restore with id {short(node.id)} brings it back."
    return Told(text=text, data=Standing(id=str(node.id), status=node.status))


@tool(Scope.WRITE, hints=ADDS_ONCE)
async def restore(visit: Visit, *, id: str) -> Told[Standing]:
    """Bring something archived back into recall."""
    node = await visit.memory.restore(id)
    return Told(text=f"{short(node.id)} can be recalled again.", data=Standing(id=str(node.id), status=node.status))


TOOLS = (add_memory, add_memories, get, forget, restore, history)
