"""Memories: add, look, edit, archive, history, export. A text is never changed, nothing is ever deleted (D01)."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from functools import partial
from typing import Annotated, Any, NoReturn, TypeVar

import anyio.to_thread
from fastapi import Body, Depends, Header, HTTPException, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, SkipValidation
from starlette.types import Receive, Scope, Send

from recollect.doors.api import access
from recollect.doors.api.access import Reading, Writing
from recollect.doors.api.schemas import (
    ID,
    WITH_BODY,
    Batch,
    CorrectIn,
    EditIn,
    ImportIn,
    ManyIn,
    MemoryIn,
    ReasonIn,
    Remembered,
    problems,
)
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.memories import edit
from recollect.memories.edit import ManyChanged
from recollect.memories.import_ import ImportReport
from recollect.memories.rules import exported
from recollect.memories.rules.batch import each_checked
from recollect.memories.rules.contract import checked_metadata_filter, memory_from_mapping, parsed_time
from recollect.memories.rules.text import is_storable
from recollect.memories.sources import ImportOptions
from recollect.model import Added, Kind, Node, NodeFilter, Order, Page, Refused, Status
from recollect.plan import HistoryEntry

Given = TypeVar("Given")
router = access.router("memories")

NEVER_DELETED = "A memory is never deleted: POST /api/v1/memories/{id}/archive takes it out of recall, and keeps it."
NEVER_REPLACED = "A memory is never replaced: PATCH changes its metadata, and a new text is a new memory."
BLOCK_BYTES = 65536


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("it holds a NUL byte or a lone surrogate")
    return text


Id = Annotated[
    str, Path(pattern=ID, description="The UUID of a memory, or a unique beginning of it, 4 characters or more.")
]
Wait = Annotated[bool, Query(description="Answer when it can be found, not already when it is stored.")]
Atomic = Annotated[bool, Query(description="Store all or nothing: the first refusal is the answer.")]
Word = Annotated[str, AfterValidator(_storable)]
Moment = Annotated[str | None, Query(json_schema_extra={"format": "date-time"})]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
InOrder = Annotated[Order, Query(description="Newest or oldest first; a cursor goes on in the order it came from.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
IfMatch = Annotated[
    str | None, Header(description='Change it only if it is at this version, as `"3"`.', pattern='^"?[0-9]{1,9}"?$')
]


def filter_of(
    kind: Annotated[list[Kind] | None, Query(description="Any of these; memories, if nothing is said.")] = None,
    content_type: Annotated[list[Word] | None, Query(description="Any of these.")] = None,
    status: Annotated[list[Status] | None, Query(description="Any of these; active, if nothing is said.")] = None,
    excluded: Annotated[bool | None, Query(description="Only what is kept out of recall, or only the rest.")] = None,
    thread: Annotated[Word | None, Query(description="Of this conversation or document.")] = None,
    created_from: Annotated[Moment, Query(description="Not before this moment.")] = None,
    created_to: Annotated[Moment, Query(description="Not after this moment.")] = None,
    tag: Annotated[list[Word] | None, Query(description="Bearing all of these tags.")] = None,
    person_name: Annotated[Word | None, Query(description="`extra.person_name` of the metadata.")] = None,
    type: Annotated[Word | None, Query(description="`type` of the metadata.")] = None,
    source: Annotated[Word | None, Query(description="`source` of the metadata.")] = None,
    metadata: Annotated[str | None, Query(description='JSON that the metadata contains: `{"type": "todo"}`.')] = None,
) -> NodeFilter:
    """What to list. Everything given must hold."""
    named = {"tags": tag, "type": type, "source": source, "extra": person_name and {"person_name": person_name}}
    return NodeFilter(
        kinds=tuple(kind or (Kind.MEMORY,)),
        subtypes=tuple(content_type or ()),
        statuses=tuple(status or (Status.ACTIVE,)),
        excluded=excluded,
        thread=thread,
        created_from=parsed_time("created_from", created_from),
        created_to=parsed_time("created_to", created_to),
        metadata=_containment(metadata, {name: value for name, value in named.items() if value}),
    )


Wanted = Annotated[NodeFilter, Depends(filter_of)]


@router.post("/memories", status_code=201, summary="Remember a text", responses={**WITH_BODY, **problems(409)})
async def add_memory(memory: MemoryIn, engine: Writing, response: Response, wait: Wait = False) -> Remembered:
    """It is stored at once, and can be found when a worker has embedded it.

    A text that is remembered already is refused with 409, naming the id it has. `notes` tells of tags that look like
    slips.
    """
    added = await engine.add_many([memory_from_mapping(memory.fields())], wait=wait, atomic=True)
    node = _at_version(await engine.get(added.ids[0]), response)
    response.headers["Location"] = f"/api/v1/memories/{node.id}"
    values = {field.name: getattr(node, field.name) for field in fields(node)}
    waiting = [f"It is stored, and found by its words alone so far ({why})." for why in added.postponed.values()]
    return Remembered(**values, notes=(*waiting, *(note.message for note in added.notes)))


@router.post(
    "/memories/batch",
    status_code=201,
    summary="Remember many texts",
    responses={
        **WITH_BODY,
        201: {"model": Batch, "description": "All were stored."},
        207: {"model": Batch, "description": "Some were refused (or all): `refused` says which, by position, and why."},
        **problems(409),
    },
)
async def add_memories(
    memories: Annotated[list[SkipValidation[MemoryIn]], Body(min_length=1)],
    engine: Writing,
    response: Response,
    atomic: Atomic = False,
    wait: Wait = False,
) -> Batch:
    """Each that can be stored is stored, each other one is reported by its position; with `atomic`, all or nothing."""
    parsed, refused = await parsed_batch(memories, memory_from_mapping, engine, atomic=atomic)
    added = await engine.add_many(list(parsed.values()), wait=wait, atomic=atomic)
    batch = batch_of(added, refused, list(parsed))
    response.status_code = 207 if batch.refused else 201
    return batch


@router.post("/memories/import", summary="Remember what files hold", responses={**WITH_BODY, **problems(409)})
async def import_memories(given: ImportIn, engine: Writing) -> ImportReport:
    """As `recollect import` does with a folder: nothing twice, and what is refused or skipped is named. An import that
    was interrupted is simply repeated."""
    files = {file.path: file.text for file in given.files}
    options = ImportOptions(source="web", tags=tuple(given.tags))
    return await engine.import_texts(files, format=given.format, options=options, dry_run=given.dry_run)


@router.post("/memories/change", summary="Change many nodes at once", responses={**WITH_BODY, **problems(409)})
async def change_memories(given: ManyIn, engine: Writing) -> ManyChanged:
    """Archive, restore, protect or tag; one plan, which `/plans/{id}/undo` takes back. All of them, or none."""
    return await engine.change_many(
        given.ids,
        archive=given.archive,
        protect=given.protect,
        add_tags=given.add_tags,
        remove_tags=given.remove_tags,
        reason=given.reason,
    )


@router.get("/memories", summary="List memories, newest first")
async def list_memories(
    node_filter: Wanted, engine: Reading, limit: Limit = 50, cursor: Cursor = None, order: InOrder = "newest"
) -> Page:
    return await engine.list(node_filter, limit=limit, cursor=cursor, order=order)


@router.get("/memories/{id}", summary="One memory", responses=problems(409))
async def get_memory(id: Id, engine: Reading, response: Response) -> Node:
    return _at_version(await engine.get(id), response)


@router.patch("/memories/{id}", summary="Change metadata or importance", responses={**WITH_BODY, **problems(409)})
async def edit_memory(id: Id, change: EditIn, engine: Writing, response: Response, if_match: IfMatch = None) -> Node:
    """The text is permanent: a request to change it is refused with 409."""
    if {"text", "raw_text"} & change.model_fields_set:
        await _refuse_text(engine, id)
    importance = change.importance if change.importance is not None else change.importance_score
    if change.metadata is None and importance is None:
        raise InvalidInput("There is nothing to change: give metadata or importance.")
    node = await engine.edit(
        id,
        metadata=change.metadata,
        merge=change.merge,
        importance=importance,
        if_version=change.if_version if if_match is None else int(if_match.strip('"')),
    )
    return _at_version(node, response)


@router.delete(
    "/memories/{id}",
    summary="Refused: archive it instead",
    status_code=405,
    response_model=None,
    responses=problems(405),
)
async def delete_memory(id: Id, _engine: Writing) -> NoReturn:
    raise HTTPException(405, NEVER_DELETED, headers={"Allow": "GET, PATCH"})


@router.put(
    "/memories/{id}",
    summary="Refused: texts are permanent",
    status_code=405,
    response_model=None,
    responses=problems(405),
)
async def replace_memory(id: Id, _engine: Writing) -> NoReturn:
    raise HTTPException(405, NEVER_REPLACED, headers={"Allow": "GET, PATCH"})


CHANGING = {**WITH_BODY, **problems(409)}


@router.post("/memories/{id}/archive", summary="Forget: out of recall, but kept", responses=CHANGING)
async def archive_memory(id: Id, engine: Writing, why: ReasonIn | None = None) -> Node:
    return await engine.forget(id, reason=_reason(why))


@router.post("/memories/{id}/restore", summary="Bring an archived memory back", responses=CHANGING)
async def restore_memory(id: Id, engine: Writing, why: ReasonIn | None = None) -> Node:
    return await engine.restore(id, reason=_reason(why))


@router.post("/memories/{id}/correct", summary="Put a corrected text in its place", responses=CHANGING)
async def correct_memory(id: Id, given: CorrectIn, engine: Writing) -> Node:
    """The new memory, with the tags and the importance of the old one, which is archived: its text is permanent.
    Undoing the plan that its history names brings it back."""
    return await engine.correct(id, given.text, reason=given.reason)


@router.post("/memories/{id}/exclude", summary="Keep out of recall without archiving", responses=CHANGING)
async def exclude_memory(id: Id, engine: Writing, why: ReasonIn | None = None) -> Node:
    return await engine.exclude(id, reason=_reason(why))


@router.post("/memories/{id}/include", summary="Let into recall again", responses=CHANGING)
async def include_memory(id: Id, engine: Writing, why: ReasonIn | None = None) -> Node:
    return await engine.include(id, reason=_reason(why))


@router.get("/memories/{id}/history", summary="What happened to a memory, and why", responses=problems(409))
async def memory_history(id: Id, engine: Reading) -> Sequence[HistoryEntry]:
    return await engine.history(id)


@router.get(
    "/export",
    summary="Every memory of this space, one line of JSON each",
    response_class=StreamingResponse,
    responses={200: {"description": "Memories, oldest first.", "content": {"application/jsonl": {}}}},
)
async def export(engine: Reading) -> StreamingResponse:
    """Whatever their status, as of one moment; `recollect import` brings them back as they are."""
    return _Closing(_lines(engine), media_type="application/jsonl")


# -- parsing and formatting


async def parsed_batch(
    items: Sequence[Any], read: Callable[[Any], Given], engine: Engine, *, atomic: bool
) -> tuple[dict[int, Given], list[Refused]]:
    """What a batch holds, by its position, and refusals of what cannot be read."""
    if len(items) > (most := engine.settings.max_batch_items):
        raise HTTPException(413, f"The batch has {len(items):,} items, the limit is {most:,}: send less at a time.")
    return await anyio.to_thread.run_sync(partial(each_checked, items, read, atomic=atomic))


def batch_of(added: Added, refused: Sequence[Refused], positions: Sequence[int]) -> Batch:
    """The answer to a batch; `positions` tells where what the engine was given stood in it."""
    moved = [replace(refusal, position=positions[refusal.position]) for refusal in added.refused]
    everything = sorted([*refused, *moved], key=lambda refusal: refusal.position)
    notes = tuple(replace(note, position=positions[note.position]) for note in added.notes)
    return Batch(
        stored=len(added.ids), ids=added.ids, refused=tuple(everything), postponed=added.postponed, notes=notes
    )


def _containment(metadata: str | None, named: dict[str, Any]) -> dict[str, Any]:
    """What the metadata must contain: the JSON given, and the filters that have a name of their own."""
    try:
        given = checked_metadata_filter(json.loads(metadata)) if metadata is not None else {}
    except ValueError as error:
        raise InvalidInput('metadata is a JSON object like {"type": "todo"}.', field="metadata") from error
    for name in named:
        if name in given:
            raise InvalidInput(f"Say {name} once: within metadata, or beside it.", field=name)
    return {**given, **named}


async def _refuse_text(engine: Engine, id: str) -> NoReturn:
    await edit.refuse_new_text(engine.core, engine.space.id, (await engine.get(id)).id)
    raise InvalidInput("Only metadata and importance can be changed here.", field="text")


def _reason(why: ReasonIn | None) -> str | None:
    return why.reason if why else None


def _at_version(node: Node, response: Response) -> Node:
    response.headers["ETag"] = f'"{node.version}"'
    return node


class _Closing(StreamingResponse):
    """A stream that is closed, and gives its database connection back, also when nobody listens to the end."""

    def __init__(self, lines: AsyncGenerator[bytes], media_type: str) -> None:
        super().__init__(lines, media_type=media_type)
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines):
            await super().__call__(scope, receive, send)


async def _lines(engine: Engine) -> AsyncGenerator[bytes]:
    block = bytearray()
    async with aclosing(engine.stream(NodeFilter(statuses=()))) as nodes:
        async for node in nodes:
            block += exported.line(node).encode() + b"\n"
            if len(block) >= BLOCK_BYTES:
                yield bytes(block)
                block.clear()
    yield bytes(block)
