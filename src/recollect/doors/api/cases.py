"""Cases: questions with the answers given; add, search, say how it went, update, look."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Body, Path, Query, Response
from pydantic import Field, SkipValidation, WithJsonSchema

from recollect.cases import add
from recollect.cases.look import Reflection
from recollect.cases.rules.cases import case_from_mapping
from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating, Reading, Writing
from recollect.doors.api.memories import Atomic, Cursor, IfMatch, Limit, Wait, batch_of, parsed_batch
from recollect.doors.api.schemas import (
    ID,
    WITH_BODY,
    Batch,
    Count,
    Name,
    OwnId,
    ReasonIn,
    RequestBody,
    Text,
    Time,
    examples,
    problems,
)
from recollect.memories.rules.contract import LONGEST_NAME, parsed_time
from recollect.model import Case, CaseHits, CaseOutcome, CasePage, CaseStatus
from recollect.plan import HistoryEntry

router = access.router("cases", problems(409))

Id = Annotated[str, Path(pattern=ID, description="The UUID of a case, or a unique beginning of it.")]
_Path = Annotated[Any, WithJsonSchema({"type": "string", "maxLength": LONGEST_NAME})]
_Rate = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})]


class CaseIn(RequestBody):
    """A case as it is handed in: the query and the answer given are required."""

    model_config = examples(
        {
            "query": "How do I reset my password?",
            "response_text": "Open Settings, then Security, and choose Reset.",
            "category_path": "account/password",
        },
        required=["query", "response_text"],
    )

    query: Annotated[Text, Field(description="The question; it is what a search compares.")] = None
    response_text: Annotated[Text, Field(description="The answer given.")] = None
    category_path: Annotated[_Path, Field(description="Like billing/refunds.")] = None
    usage_count: Annotated[Count, Field(description="How often it was used elsewhere before.")] = None
    success_rate: Annotated[_Rate, Field(description="Percent, as known elsewhere; outcomes count later.")] = None
    last_accessed_at: Annotated[Time, Field(description="When it was last used elsewhere.")] = None
    metadata: Annotated[Any, WithJsonSchema({"type": "object"}), Field(description="As of a memory.")] = None
    created_at: Annotated[Time, Field(description="When it was made; without a zone it means UTC.")] = None
    id: Annotated[OwnId, Field(description="A UUID of yours; one is made otherwise.")] = None
    source: Annotated[Name, Field(description="Where source_id comes from.")] = None
    source_id: Annotated[Name, Field(description="Your own id, unique within its source.")] = None
    updated_by: Annotated[Name, Field(description="Who wrote it; the key's name, if nothing is said.")] = None


class CaseEditIn(RequestBody):
    """What to change of a case; what is not given stays."""

    model_config = examples({"response_text": "A better answer."})

    query: Annotated[str | None, Field(description="It is embedded anew.")] = None
    response_text: Annotated[str | None, Field(description="The old answer stays in the history.")] = None
    category_path: Annotated[str | None, Field(description="Empty takes it out of its category.")] = None
    protected: Annotated[bool | None, Field(description="Whether every policy leaves it alone.")] = None
    updated_by: Annotated[str | None, Field(description="The key's name, if nothing is said.")] = None
    reason: Annotated[str | None, Field(description="Kept in the history.")] = None
    if_version: Annotated[int | None, Field(description="Change it only if it is at this version.")] = None


class CaseSearchIn(RequestBody):
    """A question to the case bank."""

    model_config = examples({"query": "password lost", "category": "account", "limit": 3})

    query: Annotated[str, Field(min_length=1, description="What to look for.")]
    category: Annotated[str | None, Field(description="Only this category, and those below it.")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many.")] = 10


class OutcomeIn(RequestBody):
    """How one use of a case went."""

    model_config = examples({"success": False, "error_type": "outdated"})

    success: bool
    error_type: Annotated[str | None, Field(description="Why it failed, in a word or two.")] = None
    milliseconds: Annotated[float | None, Field(ge=0, description="How long it took.")] = None
    at: Annotated[Time, Field(description="When; now, if nothing is said.")] = None
    search: Annotated[
        str | None, Field(description="The id of the search that found the case: it counted this use already.")
    ] = None


# -- adding


@router.post("/cases", status_code=201, summary="Add a case", responses=WITH_BODY)
async def add_case(case: CaseIn, engine: Writing, caller: Asking, response: Response, wait: Wait = False) -> Case:
    """It is stored at once, and can be found when a worker has embedded its query."""
    new = case_from_mapping({"updated_by": caller.name, **case.fields()})
    added = await add.add(engine.core, engine.space.id, new, wait=wait)
    response.headers["Location"] = f"/api/v1/cases/{added.case_id}"
    return _at_version(added, response)


@router.post(
    "/cases/batch",
    status_code=201,
    summary="Add many cases",
    responses={
        **WITH_BODY,
        201: {"model": Batch, "description": "All were stored."},
        207: {"model": Batch, "description": "Some were refused (or all): `refused` says which, by position, and why."},
    },
)
async def add_cases(
    cases: Annotated[list[SkipValidation[CaseIn]], Body(min_length=1)],
    engine: Writing,
    response: Response,
    atomic: Atomic = False,
    wait: Wait = False,
) -> Batch:
    """Each that can be stored is stored, each other one is reported by its position; with `atomic`, all or nothing."""
    parsed, refused = await parsed_batch(cases, case_from_mapping, engine, atomic=atomic)
    added = await engine.cases.add_many(list(parsed.values()), wait=wait, atomic=atomic)
    batch = batch_of(added, refused, list(parsed))
    response.status_code = 207 if batch.refused else 201
    return batch


# -- looking


@router.get("/cases", summary="List cases, newest first")
async def list_cases(
    engine: Reading,
    status: Annotated[CaseStatus | None, Query(description="All, if nothing is said.")] = None,
    category: Annotated[str | None, Query(max_length=LONGEST_NAME, description="And those below it.")] = None,
    success_below: Annotated[float | None, Query(ge=0, le=100, description="Percent.")] = None,
    success_at_least: Annotated[float | None, Query(ge=0, le=100, description="Percent.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> CasePage:
    return await engine.cases.list(
        status=status,
        category=category,
        success_below=success_below,
        success_at_least=success_at_least,
        limit=limit,
        cursor=cursor,
    )


@router.post("/cases/search", summary="The cases that answer a question", responses={**WITH_BODY, **problems(502)})
async def search_cases(asked: CaseSearchIn, engine: Reading) -> CaseHits:
    """Best first. Each hit counts as a use; what is archived is not found."""
    return await engine.cases.search(asked.query, category=asked.category, limit=asked.limit)


@router.get("/cases/reflection", summary="How the cases do, and why some fail")
async def reflect_on_cases(
    engine: Reading,
    warn_below: Annotated[float, Query(ge=0, le=100, description="Percent: cases below are listed.")] = 50.0,
    limit: Limit = 20,
) -> Reflection:
    return await engine.cases.reflection(warn_below=warn_below, limit=limit)


@router.get("/cases/{id}", summary="One case")
async def get_case(id: Id, engine: Reading, response: Response) -> Case:
    """An archived one too; then the server's log has a warning."""
    return _at_version(await engine.cases.get(id), response)


@router.get("/cases/{id}/history", summary="What happened to a case, and why: every version of its answer")
async def case_history(id: Id, engine: Reading) -> Sequence[HistoryEntry]:
    return await engine.cases.history(id)


@router.get("/cases/{id}/outcomes", summary="How the uses of a case went, newest first")
async def case_outcomes(id: Id, engine: Reading, limit: Limit = 100) -> Sequence[CaseOutcome]:
    return await engine.cases.outcomes(id, limit=limit)


# -- changing


@router.patch("/cases/{id}", summary="A new version of a case", responses=WITH_BODY)
async def update_case(
    id: Id, change: CaseEditIn, engine: Writing, caller: Asking, response: Response, if_match: IfMatch = None
) -> Case:
    """What it said before stays in its history; undoing the plan named there brings it back."""
    case = await engine.cases.update(
        id,
        query=change.query,
        response_text=change.response_text,
        category_path=change.category_path,
        protected=change.protected,
        updated_by=change.updated_by or caller.name,
        reason=change.reason,
        if_version=change.if_version if if_match is None else int(if_match.strip('"')),
        wait=False,
    )
    return _at_version(case, response)


@router.post("/cases/{id}/outcomes", status_code=201, summary="Say how a use went", responses=WITH_BODY)
async def record_outcome(id: Id, outcome: OutcomeIn, engine: Writing) -> Case:
    """The last 100 make the success rate, once there are 10. It counts as a use, unless `search` names the one that
    found the case: that counted it already."""
    return await engine.cases.record_outcome(
        id,
        outcome.success,
        error_type=outcome.error_type,
        milliseconds=outcome.milliseconds,
        at=parsed_time("at", outcome.at),
        search=outcome.search,
    )


@router.post("/cases/{id}/archive", summary="Take a case out of the bank by hand", responses=WITH_BODY)
async def archive_case(id: Id, engine: Writing, why: ReasonIn | None = None) -> Case:
    """It is kept, with its data; `/restore` brings it back."""
    return await engine.cases.archive(id, reason=why.reason if why else None)


@router.post("/cases/{id}/restore", summary="Bring an archived case back by hand")
async def restore_case(id: Id, engine: Consolidating, caller: Asking) -> Case:
    """One that was merged is taken out of its keeper again, each with its own counts: so this needs consolidate."""
    return await engine.cases.restore(id, by=caller.name)


def _at_version(case: Case, response: Response) -> Case:
    response.headers["ETag"] = f'"{case.version}"'
    return case
