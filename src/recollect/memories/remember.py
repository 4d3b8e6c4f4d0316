"""Remembering: check, normalise, store with its embedding job in one transaction. Nothing is embedded inline (D09)."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from recollect.engine.core import Core, log
from recollect.engine.sql import spaces
from recollect.errors import DuplicateText, InvalidInput
from recollect.memories import embed
from recollect.memories.rules import tags
from recollect.memories.rules.batch import each_checked, refusal
from recollect.memories.rules.contract import Contract, checked
from recollect.memories.sql import nodes
from recollect.model import Added, NewMemory, Node, Note, Refused, Space
from recollect.recall.sql import lexicon
from recollect.store.database import Transaction

BATCH = 2000

HandedIn = NewMemory | str | Mapping[str, Any]
Memories = Iterable[HandedIn] | AsyncIterable[HandedIn]
Progress = Callable[[int], None]


async def add(core: Core, space_id: UUID, memory: NewMemory, *, wait: bool) -> Node:
    """Remember one text; InvalidInput or DuplicateText when it cannot be."""
    added, node = await _store(core, space_id, [memory], first=0, atomic=True)
    assert node is not None, "an atomic batch of one is stored, or refused"
    postponed = await _settled(core, space_id, added.ids, wait=wait)
    warn_of(replace(added, postponed=postponed))
    if not wait:
        return node
    async with core.transaction(space_id) as db:  # a second model's vector may have moved it since
        return await nodes.get(db, node.id)


def warn_of(added: Added) -> None:
    """What is worth knowing of the one that was added, in the log."""
    for id_, why in added.postponed.items():
        log.warning("stored, but not searchable yet; the worker tries again", id=str(id_), why=why)
    for note in added.notes:
        log.warning(note.message, id=str(added.ids[0]))


async def add_many(
    core: Core,
    space_id: UUID,
    memories: Memories,
    *,
    wait: bool,
    atomic: bool = False,
    progress: Progress | None = None,
) -> Added:
    """Remember a batch or a stream: the good ones are stored, each bad one is reported by its position.

    `atomic` stores all or nothing, and so takes the whole batch in one transaction.
    """
    ids: list[UUID] = []
    refused: list[Refused] = []
    notes: list[Note] = []
    done = 0
    async for batch in _batches(memories, whole=atomic):
        if done:
            await embed.first_statistics(core)
        part, _ = await _store(core, space_id, batch, first=done, atomic=atomic)
        ids += part.ids
        refused += part.refused
        notes += part.notes
        done += len(batch)
        if progress:
            progress(done)
    postponed = await _settled(core, space_id, ids, wait=wait)
    return Added(ids=tuple(ids), refused=tuple(refused), postponed=postponed, notes=tuple(notes))


async def _settled(core: Core, space_id: UUID, ids: Sequence[UUID], *, wait: bool) -> dict[UUID, str]:
    """What follows on storing; returns those that were to be waited for and have to wait, and why."""
    postponed = await embed.until_searchable(core, space_id, ids) if wait and ids else {}
    await embed.settle(core, len(ids), at_once=len(ids) >= embed.SETTLE_FROM)
    return postponed


async def _store(
    core: Core, space_id: UUID, batch: Sequence[HandedIn], *, first: int, atomic: bool
) -> tuple[Added, Node | None]:
    """What became of a batch; and, of one alone, the memory as it was stored."""
    now = core.now()
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        contract = core.contract(space)
        check = partial(checked, contract=contract, now=now)
        good, refused = each_checked(batch, check, atomic=atomic, first=first)
        positions, memories = list(good), list(good.values())
        notes = await notes_on_tags(db, contract, memories)
        stored = await nodes.add_memories(
            db,
            memories,
            models=models_of(core, space),
            max_attempts=core.settings.job_max_attempts,
            now=now,
        )
        await lexicon.index(db, _entries(memories, stored, now))
        for index, twin in enumerate(stored.twins):
            if twin is not None:
                problem = twin_problem(twin, memories[index])
                if atomic:
                    raise problem
                refused.append(refusal(positions[index], problem, twin.id))
    ids = tuple(id_ for id_ in stored.ids if id_ is not None)
    placed = [Note(position=positions[note.position], message=note.message) for note in notes]
    by_position = tuple(sorted(refused, key=lambda refusal: refusal.position))
    return Added(ids=ids, refused=by_position, notes=tuple(placed)), stored.alone


async def notes_on_tags(db: Transaction, contract: Contract, memories: Sequence[NewMemory]) -> list[Note]:
    """New tags that look like slips of known ones, each where it stands first; to be asked before they are stored."""
    given = {
        tag: position
        for position, memory in reversed([*enumerate(memories)])
        if memory.metadata
        for tag in tags.tags_of(memory.metadata)
    }
    if not given.keys() - contract.tags:
        return []
    used = await nodes.tags_in_use(db)
    slips = tags.notes_on(given, registered=contract.tags, used=used)
    return [Note(position=position, message=slips[tag]) for tag, position in sorted(given.items()) if tag in slips]


def _entries(memories: Sequence[NewMemory], stored: nodes.Stored, now: datetime) -> list[lexicon.Entry]:
    """What is stored is found by its words from then on (D50)."""
    return [
        lexicon.Entry(
            node_id=id_,
            name=None,
            text=memory.text,
            created_at=memory.created_at or now,
            thread=memory.thread,
            metadata=memory.metadata,
        )
        for memory, id_ in zip(memories, stored.ids, strict=True)
        if id_ is not None
    ]


def models_of(core: Core, space: Space) -> list[str]:
    """The models to embed with: the configured one, and while search still uses another, that one too (D35)."""
    configured = core.embedder().model
    current = space.embedding_model
    return [configured] if current in (None, configured) else [configured, str(current)]


def twin_problem(twin: nodes.Twin, memory: NewMemory) -> InvalidInput:
    if twin.by == "text":
        return DuplicateText(twin.id)
    if twin.by == "id":
        return InvalidInput(f"The id {twin.id} belongs to another memory already.", field="id")
    return InvalidInput(
        f"{memory.source_id!r} of the source {memory.source!r} is remembered already, as {twin.id}.", field="source_id"
    )


async def _batches(memories: Memories, *, whole: bool) -> AsyncIterator[list[HandedIn]]:
    if isinstance(memories, str | Mapping):
        raise InvalidInput("Several memories are a list of them: give [text], or `add` the one.", field="memories")
    batch: list[HandedIn] = []
    async for memory in _each(memories):
        batch.append(memory)
        if len(batch) == BATCH and not whole:
            yield batch
            batch = []
    if batch:
        yield batch


async def _each(memories: Memories) -> AsyncIterator[HandedIn]:
    if isinstance(memories, AsyncIterable):
        async for memory in memories:
            yield memory
    else:
        for memory in memories:
            yield memory
