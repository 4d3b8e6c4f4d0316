"""Reasoning: answers from memories, the log of what was asked, and whether it helped."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field, WithJsonSchema

from recollect.doors.api import access
from recollect.doors.api.access import Reading, Writing
from recollect.doors.api.schemas import ID, WITH_BODY, AnyCase, RequestBody, Time, examples, problems, wanted_by
from recollect.model import Activity, Answer, ContentType, Kind, Mode, RecallLog, RecallLogs, Replay

router = access.router("reasoning", problems(409, 502))

MemoryId = Annotated[str, Path(pattern=ID, description="The UUID of a memory, or a unique beginning of it.")]
RecallId = Annotated[str, Path(pattern=ID, description="The UUID of an entry of the log, or a unique beginning of it.")]
Containment = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]


class QueryIn(RequestBody):
    """A question to be answered from memories."""

    model_config = examples({"query": "what does Linh drink?", "mode": "SYNTHESIZE"})

    query: Annotated[str, Field(min_length=1, description="What to answer.")]
    mode: Annotated[
        Annotated[Mode, AnyCase] | None,
        Field(description="How; with a language model SYNTHESIZE, without one RECALL, if nothing is said."),
    ] = None
    limit: Annotated[int | None, Field(ge=1, le=1000, description="At most so many memories; the mode's cap too.")] = (
        None
    )
    threshold: Annotated[float | None, Field(ge=0, le=1, description="The floor is at least 1 minus this.")] = None
    budget_tokens: Annotated[int | None, Field(ge=1, le=1_000_000, description="Tokens of memory a model reads.")] = (
        None
    )
    kinds: Annotated[list[Kind] | None, Field(min_length=1, description="Memories, if nothing is said.")] = None
    content_types: Annotated[list[ContentType] | None, Field(min_length=1, description="Only these.")] = None
    thread: Annotated[str | None, Field(description="Only this conversation or document.")] = None
    created_from: Annotated[Time, Field(description="Not older than this.")] = None
    created_to: Annotated[Time, Field(description="Not newer than this.")] = None
    metadata: Annotated[Containment, Field(description='What the metadata must contain, like {"type": "todo"}.')] = None
    include_summaries: bool = False


class FeedbackIn(RequestBody):
    """Whether a memory helped."""

    model_config = examples({"helped": True})

    helped: bool
    recall_id: Annotated[
        str | None, Field(pattern=ID, description="The entry of the log that handed it out, if that is known.")
    ] = None


@router.post("/query", summary="Ask for an answer from memories", responses=WITH_BODY)
async def query(asked: QueryIn, engine: Reading) -> Answer:
    """A text with [Memory N] citations, the memories it stands on in that order, and what is wrong with it.

    Nothing above the floor: an empty answer, and no model is asked. No model, or one that fails: the memories
    themselves, and `problems` says so.
    """
    return await engine.ask(
        asked.query,
        mode=asked.mode,
        limit=asked.limit,
        threshold=asked.threshold,
        wanted=wanted_by(asked),
        include_summaries=asked.include_summaries,
        budget_tokens=asked.budget_tokens,
    )


@router.get("/recalls", summary="The query log, newest first")
async def list_recalls(
    engine: Reading,
    mode: Annotated[Annotated[Mode, AnyCase] | None, Query(description="Only questions in this mode.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 20,
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
) -> RecallLogs:
    """What was asked, found, handed out and answered."""
    return await engine.recalls(mode=mode, limit=limit, cursor=cursor)


@router.get("/recalls/{id}", summary="One entry of the query log")
async def get_recall(id: RecallId, engine: Reading) -> RecallLog:
    return await engine.recall_log(id)


@router.post("/recalls/{id}/replay", summary="Ask a question of the log again, and compare")
async def replay_recall(id: RecallId, engine: Reading) -> Replay:
    """What the ranking holds now that it did not then, what it no longer holds, and what has changed places. Asking
    again is not logged."""
    return await engine.replay(id)


@router.post("/memories/{id}/feedback", summary="Say whether a memory helped", responses=WITH_BODY)
async def give_feedback(id: MemoryId, said: FeedbackIn, engine: Writing) -> Activity:
    """Counted beside its uses; the memory itself does not change."""
    return await engine.helped(id, said.helped, recall=said.recall_id)
