"""Importing: what sources hold, batch by batch, as memories. Nothing twice, nothing missing, however often it is begun.

A batch is one transaction, and what is there already is recognised by its text: an import that was interrupted is
simply repeated. A chunk whose text another document brought becomes a chunk of both, by a plan, as every change is.
A rehearsal (`dry_run`) goes the same way and writes nothing.
"""

import io
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import KNOWN_TEXT, Conflict, InvalidInput
from recollect.memories import embed, import_graph, remember
from recollect.memories.import_graph import GatheredGraph, Woven
from recollect.memories.rules.contract import Contract, checked, checked_metadata, checked_time
from recollect.memories.rules.documents import with_parent
from recollect.memories.rules.tags import tags_of
from recollect.memories.rules.text import checksum
from recollect.memories.sources import (
    ForeignGraph,
    Format,
    FoundInFile,
    ImportOptions,
    Read,
    SourceLine,
    SourceReader,
    check,
)
from recollect.memories.sql import nodes
from recollect.model import ExportedMemory, Metadata, NewMemory, Node, Note, Status
from recollect.plan import Draft
from recollect.plans.sql import changes
from recollect.wording import counted

MOST_MEMORIES = 2000
MOST_CHARACTERS = remember.MOST_CHARACTERS
ATTEMPTS = 5
MOST_NAMED = 10

Progress = Callable[[int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """What an import did, or in a rehearsal would do.

    `files` counts those in which memories were found. Every memory is added, already there, or refused. `linked`
    counts those already there that became chunks of one more document; `postponed` those that are stored but not
    searchable yet, by the reason. `concepts` and `links` are new ones, of imports that bring a graph.
    """

    dry_run: bool
    files: int
    added: int
    already_there: int
    linked: int
    lines: tuple[SourceLine, ...]
    postponed: Mapping[str, int]
    concepts: int = 0
    links: int = 0

    @property
    def refused(self) -> tuple[SourceLine, ...]:
        return tuple(line for line in self.lines if line.what == "refused")

    @property
    def skipped(self) -> tuple[SourceLine, ...]:
        return tuple(line for line in self.lines if line.what == "skipped")

    @property
    def notes(self) -> tuple[SourceLine, ...]:
        return tuple(line for line in self.lines if line.what == "note")

    def __str__(self) -> str:
        would_be = "would be " if self.dry_run else ""
        graph = f", {counted(self.concepts, 'concept')} and {counted(self.links, 'link')} {would_be}made"
        return (
            f"{self.added:,} {would_be}added, {self.already_there:,} there already, "
            f"{len(self.refused):,} {would_be}refused, {len(self.skipped):,} skipped"
            f"{graph if self.concepts or self.links else ''}"
        )


async def import_(
    core: Core,
    space_id: UUID,
    sources: Sequence[Path],
    *,
    format: Format = "auto",
    stdin: BinaryIO | bytes | None = None,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
) -> ImportReport:
    """Remember what files and folders hold, or the standard input (`-`); a dry run only says what would happen.

    `wait` returns when what was added can be found; `progress` is told how many memories were dealt with so far.
    """
    options = options or ImportOptions()
    stream = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
    check(sources, format, stream)
    async with core.transaction(space_id) as db:
        contract = core.contract(await spaces.by_id(db))
    checked_metadata({"tags": list(options.tags)}, contract)
    reader = SourceReader(
        space_id=space_id,
        chunk_tokens=options.chunk_tokens or core.settings.chunk_tokens,
        now=core.now(),
        format=format,
        options=options,
        stdin=stream,
    )
    desk = (_Rehearsal if dry_run else _Desk)(core, space_id, contract)
    with _closing(reader.read(sources)) as read:  # whatever happens, no file stays open
        passed = _passed(read, partial(_fit, core, contract, options, desk.tally), desk.tally)
        await _take_all(desk, passed, progress)
        await desk.weave()
    if wait and not dry_run:  # also what an import that was interrupted had stored
        desk.tally.postponed.update((await embed.finish(core, space_id)).values())
    return desk.tally.report(dry_run=dry_run)


@contextmanager
def _closing(read: Generator[Read]) -> Iterator[Generator[Read]]:
    """Closes the files; where an interrupt came while a thread still reads, its end closes them."""
    try:
        yield read
    finally:
        with suppress(ValueError):  # generator already executing
            read.close()


# -- from the reader to the desk


def _passed(read: Iterable[Read], fit: Callable[[FoundInFile], NewMemory], tally: "_Tally") -> Iterator[FoundInFile]:
    """What passed the contract; the rest becomes lines of the report."""
    for item in read:
        if isinstance(item, SourceLine):
            tally.lines.append(item)
            continue
        if isinstance(item, ForeignGraph):
            tally.graph.take(item.things, item.relations)
            continue
        tally.files.add(item.file)
        try:
            accepted = replace(item, memory=fit(item))
        except InvalidInput as problem:
            tally.lines.append(item.refused(problem.message))
        else:
            if accepted.about:
                tally.graph.note(accepted.memory.text, accepted.about)
            yield accepted


def _fit(core: Core, contract: Contract, options: ImportOptions, tally: "_Tally", record: FoundInFile) -> NewMemory:
    """The memory as it will be stored, or InvalidInput."""
    memory = record.memory
    if contract.strict_tags and (record.is_note or options.unknown_tags == "extra"):
        memory = _with_known_tags(memory, contract, tally)
    if record.is_note:
        memory = _with_tags_that_fit(replace(record, memory=memory), contract, tally)
    memory = checked(memory, contract, core.now())
    if isinstance(memory, ExportedMemory):
        embedder = core.embedder()
        numbers = memory.vectors.get(embedder.model)
        if numbers is not None and len(numbers) != 2 * embedder.dim:  # two bytes a number
            raise InvalidInput(f"The vector of {embedder.model} does not have {embedder.dim} numbers: remove it.")
        if numbers is not None and not embedder.can_read(memory.text):  # made before such texts went without (D43)
            others = {model: vector for model, vector in memory.vectors.items() if model != embedder.model}
            memory = replace(memory, vectors=others)
        return replace(memory, updated_at=checked_time(memory.updated_at, core.now()))
    return memory


def _with_known_tags(memory: NewMemory, contract: Contract, tally: "_Tally") -> NewMemory:
    """The tags that a strict space does not know, in metadata.extra instead."""
    unknown = [tag for tag in tags_of(memory.metadata) if tag not in contract.tags]
    extra = memory.metadata.get("extra", {}) if unknown else None
    if not isinstance(extra, dict):
        return memory
    tally.set_aside.update(dict.fromkeys(unknown))
    registered = [tag for tag in memory.metadata["tags"] if tag not in unknown]
    return replace(memory, metadata={**memory.metadata, "tags": registered, "extra": {**extra, "tags": unknown}})


def _with_tags_that_fit(record: FoundInFile, contract: Contract, tally: "_Tally") -> NewMemory:
    """A note with as many of its tags as its metadata has room for."""
    memory = record.memory
    tags, extra = tags_of(memory.metadata), memory.metadata.get("extra", {})
    aside = tags_of(extra) if contract.strict_tags else []
    excess = _size(memory.metadata) - contract.max_metadata_bytes
    left_out = 0
    while excess > 0 and (aside or tags):
        excess -= _size((aside or tags).pop()) + len(", ")
        left_out += 1
    if not left_out:
        return memory
    why = f"{left_out:,} of its tags {'was' if left_out == 1 else 'were'} left out, for want of room in its metadata."
    tally.note(SourceLine(what="note", file=record.file, line=record.line, message=why))
    extra = {**extra, "tags": aside} if contract.strict_tags and "tags" in extra else extra
    metadata = {**memory.metadata, "tags": tags, **({"extra": extra} if extra else {})}
    return replace(memory, metadata=metadata)


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


def _grouped(passed: Iterable[FoundInFile]) -> Iterator[list[FoundInFile]]:
    """Batches that fit a transaction, in none of which two memories claim the same id: the first of them has it."""
    batch: list[FoundInFile] = []
    claimed: set[object] = set()
    size = 0
    for record in passed:
        claims = _claims(record.memory)
        if len(batch) == MOST_MEMORIES or size > MOST_CHARACTERS or not claimed.isdisjoint(claims):
            yield batch
            batch, claimed, size = [], set(), 0
        batch.append(record)
        claimed |= claims
        size += len(record.memory.text)
    if batch:
        yield batch


def _claims(memory: NewMemory) -> set[object]:
    """What only one memory can have: its id, and its id at the source."""
    claims: set[object] = set()
    if memory.id is not None:
        claims.add(memory.id)
    if memory.source_id is not None:
        claims.add((memory.source, memory.source_id))
    return claims


async def _take_all(desk: "_Desk", passed: Iterator[FoundInFile], progress: Progress | None) -> None:
    merged: list[FoundInFile] = []
    async for batch in _in_thread(_grouped(passed)):
        merged += [record for record in batch if _keeper(record)]
        await desk.take([record for record in batch if not _keeper(record)])
        if progress:
            progress(desk.tally.done)
    while merged:  # a merged memory points at its keeper, which has to be there before it
        stored = await desk.which_are_there({keeper for record in merged if (keeper := _keeper(record))})
        ready = [record for record in merged if _keeper(record) in stored]
        merged = [record for record in merged if _keeper(record) not in stored]
        if not ready:
            why = "It was merged into {}, which is not here: export what is active, archived and merged together."
            desk.tally.lines += [record.refused(why.format(_keeper(record))) for record in merged]
            return
        for batch in _grouped(ready):
            await desk.take(batch)
            if progress:
                progress(desk.tally.done)


async def _in_thread(batches: Iterator[list[FoundInFile]]) -> AsyncIterator[list[FoundInFile]]:
    """Reading and parsing block, so they happen beside the event loop."""
    while (batch := await anyio.to_thread.run_sync(partial(next, batches, None))) is not None:
        yield batch


def _keeper(record: FoundInFile) -> UUID | None:
    memory = record.memory
    return memory.merged_into if isinstance(memory, ExportedMemory) and memory.status is Status.MERGED else None


# -- the desk, where memories are taken in


@dataclass(kw_only=True)
class _Tally:
    """The report while it grows."""

    files: set[str] = field(default_factory=set)
    added: int = 0
    already_there: int = 0
    linked: int = 0
    lines: list[SourceLine] = field(default_factory=list)
    postponed: Counter[str] = field(default_factory=Counter)
    graph: GatheredGraph = field(default_factory=GatheredGraph)
    woven: Woven = field(default_factory=Woven)
    # Tags of notes that a strict space does not know; a mapping keeps their order.
    set_aside: dict[str, None] = field(default_factory=dict)
    forgotten: set[UUID] = field(default_factory=set)

    def note(self, line: SourceLine) -> None:
        """Once only: the chunks of a document all say the same."""
        if line not in self.lines:
            self.lines.append(line)

    @property
    def done(self) -> int:
        return self.added + self.already_there + sum(line.what == "refused" for line in self.lines)

    def report(self, *, dry_run: bool) -> ImportReport:
        if self.forgotten:
            self.lines.insert(0, SourceLine(what="note", file="", message=_about_forgotten(len(self.forgotten))))
        if self.set_aside:
            self.lines.insert(0, SourceLine(what="note", file="", message=_about_set_aside([*self.set_aside])))
        return ImportReport(
            dry_run=dry_run,
            files=len(self.files),
            added=self.added,
            already_there=self.already_there,
            linked=self.linked,
            lines=tuple(self.lines),
            postponed=dict(self.postponed),
            concepts=self.woven.concepts,
            links=self.woven.links,
        )


def _about_set_aside(tags: Sequence[str]) -> str:
    names = ", ".join(tags[:MOST_NAMED]) + (", ..." if len(tags) > MOST_NAMED else "")
    tags_are = counted(len(tags), "tag is", "tags are")
    return f"{tags_are} not registered in this strict space, and kept in metadata.extra: {names}."


def _about_forgotten(count: int) -> str:
    there = f"{counted(count, 'text is', 'texts are')} there already, but forgotten or kept out of recall"
    return f"{there}: `recollect restore` or `recollect include` brings one back."


class _Desk:
    """Takes batches in: stores what is new, links what is there already to its new parent."""

    def __init__(self, core: Core, space_id: UUID, contract: Contract) -> None:
        self.core, self.space_id, self.contract = core, space_id, contract
        self.tally = _Tally()

    async def take(self, batch: Sequence[FoundInFile]) -> None:
        twins = await self._twins(batch)
        there = [(record, twin.id) for record, twin in zip(batch, twins, strict=True) if twin and twin.by == "text"]
        fresh = [record for record, twin in zip(batch, twins, strict=True) if not twin or twin.by != "text"]
        added = await remember.add_many(self.core, self.space_id, [record.memory for record in fresh], wait=False)
        for refusal in added.refused:
            record = fresh[refusal.position]
            if refusal.code in KNOWN_TEXT and refusal.existing_id:
                there.append((record, refusal.existing_id))
            else:
                self.tally.lines.append(record.refused(refusal.message))
        self._note_tags(fresh, added.notes)
        self.tally.added += len(added.ids)
        self.tally.already_there += len(there)
        await self._link(there)

    def _note_tags(self, batch: Sequence[FoundInFile], notes: Iterable[Note]) -> None:
        messages = {line.message for line in self.tally.lines if line.what == "note"}
        for note in notes:
            if note.message not in messages:
                record = batch[note.position]
                self.tally.note(SourceLine(what="note", file=record.file, line=record.line, message=note.message))

    async def weave(self) -> None:
        self.tally.woven = woven = await import_graph.weave(self.core, self.space_id, self.tally.graph)
        self.tally.lines += [SourceLine(what="note", file="-", message=problem) for problem in woven.problems]

    async def which_are_there(self, ids: Collection[UUID]) -> Collection[UUID]:
        async with self.core.transaction(self.space_id) as db:
            return set(await nodes.get_many(db, list(ids)))

    async def _twins(self, batch: Sequence[FoundInFile]) -> Sequence[nodes.Twin | None]:
        async with self.core.transaction(self.space_id) as db:
            twins = await nodes.existing(db, [record.memory for record in batch])
        self.tally.forgotten |= {twin.id for twin in twins if twin and twin.by == "text" and twin.out_of_recall}
        return twins

    async def _link(self, there: Sequence[tuple[FoundInFile, UUID]]) -> None:
        """Give each chunk that is there already the parent that brought it again."""
        chunks_by_id: dict[UUID, list[FoundInFile]] = defaultdict(list)
        for record, id_ in there:
            if _names_parent(record):
                chunks_by_id[id_].append(record)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._link_at_once(chunks_by_id)
                break
            except Conflict:  # another writer changed one of them since it was read
                if attempt == ATTEMPTS:
                    raise

    async def _link_at_once(self, chunks_by_id: Mapping[UUID, Sequence[FoundInFile]]) -> None:
        if not chunks_by_id:
            return
        now = self.core.now()
        outcomes: list[_Linked] = []
        draft = Draft()
        async with self.core.transaction(self.space_id) as db:
            nodes_by_id = await nodes.get_many(db, list(chunks_by_id))
            for id_, chunks in chunks_by_id.items():
                outcomes.append(linked := _with_parents(nodes_by_id[id_].metadata, chunks, self.contract))
                if linked.count:
                    _decide(draft, nodes_by_id[id_], linked.metadata, chunks, now.isoformat())
            if draft.decisions:
                chunks_are = counted(len(draft.decisions), "memory is a chunk", "memories are chunks")
                title = f"{chunks_are} of one more document"
                plan = draft.plan(policy="import", title=title, now=now)
                await changes.apply(db, plan, now)
        for linked in outcomes:
            self.tally.linked += linked.count
            self.tally.lines += linked.lines


class _Rehearsal(_Desk):
    """Takes batches in without writing: remembers by itself what the import would have added so far."""

    def __init__(self, core: Core, space_id: UUID, contract: Contract) -> None:
        super().__init__(core, space_id, contract)
        self._metadata: dict[str, Metadata] = {}  # by checksum, of what was added or linked in this rehearsal
        self._claimed: set[object] = set()

    async def take(self, batch: Sequence[FoundInFile]) -> None:
        twins = await self._twins(batch)
        ids = [twin.id for record, twin in zip(batch, twins, strict=True) if twin is not None and _names_parent(record)]
        async with self.core.transaction(self.space_id) as db:
            nodes_by_id = await nodes.get_many(db, ids)
            memories = [record.memory for record in batch]
            notes = await remember.notes_on_tags(db, self.contract, memories)
        self._note_tags(batch, notes)
        for record, twin in zip(batch, twins, strict=True):
            self._foresee(record, twin, nodes_by_id)

    async def weave(self) -> None:
        self.tally.woven = await import_graph.foresee(self.core, self.space_id, self.tally.graph)

    async def which_are_there(self, ids: Collection[UUID]) -> Collection[UUID]:
        return {*await super().which_are_there(ids), *(id_ for id_ in ids if id_ in self._claimed)}

    def _foresee(self, record: FoundInFile, twin: nodes.Twin | None, nodes_by_id: Mapping[UUID, Node]) -> None:
        memory, sum_ = record.memory, checksum(record.memory.text)
        if sum_ in self._metadata:
            self._foresee_link(record, sum_, self._metadata[sum_])
        elif twin is not None and twin.by == "text":
            self._foresee_link(record, sum_, nodes_by_id[twin.id].metadata if twin.id in nodes_by_id else {})
        elif twin is not None:
            self.tally.lines.append(record.refused(remember.twin_problem(twin, memory).message))
        elif not self._claimed.isdisjoint(_claims(memory)):
            self.tally.lines.append(record.refused("Its id, or its id at the source, belongs to an earlier one."))
        else:
            self.tally.added += 1
            self._metadata[sum_] = memory.metadata
            self._claimed |= _claims(memory)

    def _foresee_link(self, record: FoundInFile, sum_: str, metadata: Metadata) -> None:
        self.tally.already_there += 1
        if _names_parent(record):
            linked = _with_parents(metadata, [record], self.contract)
            self._metadata[sum_] = linked.metadata
            self.tally.linked += linked.count
            self.tally.lines += linked.lines


def _names_parent(record: FoundInFile) -> bool:
    return "parent_id" in record.memory.metadata


@dataclass(frozen=True, kw_only=True, slots=True)
class _Linked:
    """Metadata that names more parents, how many more, and what the report should say."""

    metadata: Metadata
    count: int
    lines: list[SourceLine]


def _with_parents(metadata: Metadata, chunks: Sequence[FoundInFile], contract: Contract) -> _Linked:
    count, lines = 0, list[SourceLine]()
    for chunk in chunks:
        new_metadata = with_parent(metadata, chunk.memory.metadata)
        if new_metadata == metadata:
            continue
        try:
            metadata = checked_metadata(new_metadata, contract)
            count += 1
        except InvalidInput:
            number = chunk.memory.metadata.get("chunk_index")
            why = f"Its chunk {number} is remembered, but in more documents than metadata can name: this one is not."
            lines.append(SourceLine(what="note", file=chunk.file, line=chunk.line, message=why))
    return _Linked(metadata=metadata, count=count, lines=lines)


def _decide(draft: Draft, node: Node, metadata: Metadata, chunks: Sequence[FoundInFile], now: str) -> None:
    before = {"metadata": node.metadata, "version": node.version, "updated_at": node.updated_at.isoformat()}
    after = {"metadata": metadata, "version": node.version + 1, "updated_at": now}
    change = draft.patch("nodes", node.id, before, after)
    draft.decide("link", node.id, f"also a chunk of {chunks[0].file}"[:1000], [change])
