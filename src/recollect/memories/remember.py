"""Remembering: check, normalise, store with its embedding job in one transaction. Nothing is embedded inline (D09)."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Any
from uuid import UUID

import anyio
import anyio.to_thread

from recollect.engine.core import Core, log
from recollect.engine.sql import spaces
from recollect.errors import DuplicateText, ForgottenText, InvalidInput
from recollect.memories import embed
from recollect.memories.rules import tags
from recollect.memories.rules.batch import each_checked, refusal
from recollect.memories.rules.contract import Contract, checked
from recollect.memories.sql import nodes
from recollect.model import Added, NewMemory, Node, Note, Refused, Space
from recollect.recall.sql import lexicon
from recollect.store.database import Transaction

# The first batch of a load is small: until it is prepared the database has nothing to store. Of long texts a batch has
# fewer: who adds one of their own waits for a batch at most, and two of them are in memory.
FIRST, BATCH = 500, 4000
MOST_CHARACTERS = 16_000_000
SWITCH_SECONDS = 0.0005

HandedIn = NewMemory | str | Mapping[str, Any]
Memories = Iterable[HandedIn] | AsyncIterable[HandedIn]
Progress = Callable[[int], None]


async def add(core: Core, space_id: UUID, memory: NewMemory, *, wait: bool) -> Node:
    """Remember one text; InvalidInput or DuplicateText when it cannot be."""
    added, node = await _store(core, space_id, _Batch(given=[memory], first=0, atomic=True, now=core.now()))
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
    load = _Load(core, space_id, atomic=atomic, progress=progress)
    try:
        async for batch in _batches(memories, whole=atomic):
            await load.take(batch)
            if isinstance(memories, AsyncIterable):  # more may be long in coming
                await load.until_stored()
        await load.until_stored()
    except Exception:  # of whoever hands them in: what came before is stored
        await load.until_stored()
        raise
    finally:
        await load.leave()
    ids = tuple(id_ for part in load.parts for id_ in part.ids)
    return Added(
        ids=ids,
        refused=tuple(refused for part in load.parts for refused in part.refused),
        notes=tuple(note for part in load.parts for note in part.notes),
        postponed=await _settled(core, space_id, ids, wait=wait),
    )


async def _settled(core: Core, space_id: UUID, ids: Sequence[UUID], *, wait: bool) -> dict[UUID, str]:
    """What follows on storing; returns those that were to be waited for and have to wait, and why."""
    postponed = await embed.until_searchable(core, space_id, ids) if wait and ids else {}
    await embed.settle(core, len(ids), at_once=len(ids) >= embed.SETTLE_FROM)
    return postponed


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batch:
    """What is stored in one transaction: as it was handed in, the place of its first in the load, and its moment."""

    given: Sequence[HandedIn]
    first: int
    atomic: bool
    now: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """A batch for which all is done that needs no database, by the contract that its space had then."""

    contract: Contract
    positions: Sequence[int]
    arrivals: nodes.Arrivals
    words: lexicon.IndexedBatch
    refused: Sequence[Refused]


class _Load:
    """Batch after batch: while the database stores one, the next is prepared."""

    def __init__(self, core: Core, space_id: UUID, *, atomic: bool, progress: Progress | None) -> None:
        self._core, self._space_id, self._atomic, self._progress = core, space_id, atomic, progress
        self._contract: Contract | None = None
        self._storing: asyncio.Task[None] | None = None
        self._taken = 0
        self._next_moment: datetime | None = None
        self._beside: ExitStack | None = None
        self.parts: list[Added] = []

    async def take(self, given: Sequence[HandedIn]) -> None:
        """Prepare a batch, and begin to store it when the one before is stored.

        The first of several is prepared alone: two threads would take turns, and the database wait for both.
        """
        if self._storing and not self._beside:
            self._beside = ExitStack()
            self._beside.enter_context(_one_beside_the_other())
        batch = _Batch(given=given, first=self._taken, atomic=self._atomic, now=self._moment_for(len(given)))
        self._taken += len(given)
        prepared = await self._prepare(batch) if self._storing or len(given) == FIRST else None
        await self.until_stored()
        self._storing = asyncio.create_task(self._store(batch, prepared))

    async def until_stored(self) -> None:
        """Wait for the batch that was taken last, and hear what became of it."""
        if self._storing is not None:
            await asyncio.wait([self._storing])
            storing, self._storing = self._storing, None
            storing.result()

    async def leave(self) -> None:
        """What is still under way is broken off, and taken back."""
        if self._beside:
            self._beside.close()
        if self._storing is not None:
            self._storing.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(self._storing, return_exceptions=True)

    def _moment_for(self, count: int) -> datetime:
        """The moment of a batch, whose texts are a microsecond apart: after all of the batch before it."""
        now = self._core.now()
        moment = max(now, self._next_moment or now)
        self._next_moment = moment + timedelta(microseconds=count)
        return moment

    async def _prepare(self, batch: _Batch) -> _Prepared:
        if self._contract is None:
            async with self._core.transaction(self._space_id) as db:
                self._contract = self._core.contract(await spaces.by_id(db))
        return await _prepare(self._space_id, batch, self._contract)

    async def _store(self, batch: _Batch, prepared: _Prepared | None) -> None:
        if batch.first:
            await embed.first_statistics(self._core)
        part, _ = await _store(self._core, self._space_id, batch, prepared)
        self.parts.append(part)
        if self._progress:
            self._progress(batch.first + len(batch.given))


@contextmanager
def _one_beside_the_other() -> Iterator[None]:
    """While a thread prepares, who waits for the database is heard at once, not after five milliseconds each time. And
    the many objects of a load would have all others of the process searched for garbage, time and again.

    Whoever has set either for reasons of their own has it left so.
    """
    freezes, interval = not gc.get_freeze_count(), sys.getswitchinterval()
    if freezes:
        gc.freeze()
    if interval > SWITCH_SECONDS:
        sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()
        if interval > SWITCH_SECONDS:
            sys.setswitchinterval(interval)


async def _prepare(space_id: UUID, batch: _Batch, contract: Contract) -> _Prepared:
    """Many are looked at beside the event loop."""
    arrive = partial(_arrive, batch, contract)
    positions, arrivals, refused = arrive() if len(batch.given) == 1 else await anyio.to_thread.run_sync(arrive)
    words = await lexicon.read(space_id, _entries(arrivals, batch.now))
    return _Prepared(contract=contract, positions=positions, arrivals=arrivals, words=words, refused=refused)


def _arrive(batch: _Batch, contract: Contract) -> tuple[list[int], nodes.Arrivals, list[Refused]]:
    """The positions of those that can be stored, these themselves, and the others."""
    check = partial(checked, contract=contract, now=batch.now)
    good, refused = each_checked(batch.given, check, atomic=batch.atomic, first=batch.first)
    return list(good), nodes.Arrivals.of(list(good.values())), refused


async def _store(
    core: Core, space_id: UUID, batch: _Batch, prepared: _Prepared | None = None
) -> tuple[Added, Node | None]:
    """What became of a batch; and, of one alone, the memory as it was stored.

    What was prepared by another contract than the space has now is prepared anew.
    """
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        contract = core.contract(space)
        if prepared is None or prepared.contract != contract:
            prepared = await _prepare(space_id, batch, contract)
        memories, positions, words = prepared.arrivals.memories, prepared.positions, prepared.words
        notes = await notes_on_tags(db, contract, memories)
        stored = await nodes.add_memories(
            db,
            prepared.arrivals,
            models=models_of(core, space),
            max_attempts=core.settings.job_max_attempts,
            now=batch.now,
        )
        ids = tuple(id_ for id_ in stored.ids if id_ is not None)
        await lexicon.index(db, words if len(ids) == len(words.ids) else words.only({*ids}))
        refused = [*prepared.refused]
        for index, twin in enumerate(stored.twins):
            if twin is not None:
                problem = twin_problem(twin, memories[index])
                if batch.atomic:
                    raise problem
                refused.append(refusal(positions[index], problem, twin.id))
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


def _entries(given: nodes.Arrivals, now: datetime) -> list[lexicon.Entry]:
    """What is stored is found by its words from then on (D50); in the order in which it is written."""
    return [
        lexicon.Entry(
            node_id=given.ids[i],
            name=None,
            text=given.memories[i].text,
            created_at=given.memories[i].created_at or now,
            thread=given.memories[i].thread,
            metadata=given.memories[i].metadata,
        )
        for i in given.order
    ]


def models_of(core: Core, space: Space) -> list[str]:
    """The models to embed with: the configured one, and while search still uses another, that one too (D35)."""
    configured = core.embedder().model
    current = space.embedding_model
    return [configured] if current in (None, configured) else [configured, str(current)]


def twin_problem(twin: nodes.Twin, memory: NewMemory) -> InvalidInput:
    if twin.by == "text" and twin.out_of_recall:
        return ForgottenText(twin.id, excluded=twin.out_of_recall == "excluded")
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
    left = len(memories) if isinstance(memories, Sized) else inf
    most, characters = FIRST, 0
    async for memory in _each(memories):
        batch.append(memory)
        characters += _length(memory)
        if not whole and (len(batch) == most or characters >= MOST_CHARACTERS):
            yield batch
            left -= len(batch)
            most = BATCH if left > FIRST + BATCH else FIRST + BATCH  # no small one at the end
            batch, characters = [], 0
    if batch:
        yield batch


def _length(given: HandedIn) -> int:
    """Of its text; of what has none, which is refused later, nothing."""
    text = given.get("text") if isinstance(given, Mapping) else getattr(given, "text", given)
    return len(text) if isinstance(text, str) else 0


async def _each(memories: Memories) -> AsyncIterator[HandedIn]:
    if isinstance(memories, AsyncIterable):
        async for memory in memories:
            yield memory
    else:
        for memory in memories:
            yield memory
