"""Recall: what is known about a question; what its similarities mean; summaries that may stand in for long memories."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query

from recollect.doors.api import access
from recollect.doors.api.access import Asking, Reading, Writing
from recollect.doors.api.reasoning import MemoryId
from recollect.doors.api.schemas import ID, WITH_BODY, CalibrationIn, SearchIn, SummaryIn, problems, wanted_by
from recollect.memories.rules.contract import parsed_time
from recollect.model import Kind, Node, Recall, Scope
from recollect.recall import calibrate
from recollect.recall.calibrate import Measurement
from recollect.recall.rules.ranking import Calibration

SummaryId = Annotated[str, Path(pattern=ID, description="The UUID of a summary, or a unique beginning of it.")]

router = access.router("recall", problems(502))


@router.post("/search", summary="Search by meaning", responses=WITH_BODY)
async def search(asked: SearchIn, engine: Reading) -> Recall:
    """Hits, best first, each with its score laid open and the whole node. What is archived or excluded is not found."""
    return await engine.recall(
        asked.query,
        mode=asked.mode,
        limit=asked.limit,
        threshold=asked.threshold,
        wanted=wanted_by(asked),
        include_summaries=asked.include_summaries,
        budget_tokens=asked.budget_tokens,
        engagement=asked.engagement,
        graph=asked.graph,
        weak=asked.weak,
        noted=asked.noted,
    )


@router.get("/search", summary="Search by meaning, from a browser's address line")
async def search_by_address(
    engine: Reading,
    q: Annotated[str, Query(min_length=1, description="What to look for.")],
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many hits.")] = 20,
    kind: Annotated[list[Kind] | None, Query(description="Any of these; memories, if nothing is said.")] = None,
    weak: Annotated[bool, Query(description="Also what is hardly related, behind what is.")] = False,
) -> Recall:
    """The same as POST, and neither noted nor counted: a page of somebody else may make a browser ask this. Addresses
    end up in the logs of proxies and in a browser's history."""
    return await engine.recall(q, limit=limit, kinds=kind or (Kind.MEMORY,), weak=weak, noted=False)


@router.get("/calibration", summary="Measure what similarity means on your own memories")
async def measure_calibration(engine: Reading) -> Measurement:
    """How alike related and unrelated pairs of memories are, in twentieths of 0 to 1; the scale in use, and the one
    that follows from it. Nothing is changed."""
    return await engine.measure_calibration()


@router.post("/calibration", summary="Use a calibration", responses=WITH_BODY)
async def use_calibration(given: CalibrationIn, engine: Reading, caller: Asking) -> Calibration:
    """The `proposed` of what GET measured, for its model: floors and scores of this space use that scale from now on.
    Needs admin, as every setting of a space does."""
    caller.need(Scope.ADMIN, engine.space.slug)
    calibration = Calibration(low=given.low, high=given.high)
    await calibrate.use(engine.core, engine.space.id, given.model, calibration)
    return calibration


@router.post(
    "/memories/{id}/summaries",
    status_code=201,
    summary="Propose a summary of a memory",
    responses={**WITH_BODY, **problems(409)},
)
async def propose_summary(id: MemoryId, given: SummaryIn, engine: Writing) -> Node:
    """It waits for approval, out of recall. Summaries are off unless the server says otherwise."""
    return await engine.summarise(id, given.text, expires_at=parsed_time("expires_at", given.expires_at))


@router.get("/memories/{id}/summaries", summary="The summaries of a memory, approved or not", responses=problems(409))
async def list_summaries(id: MemoryId, engine: Reading) -> Sequence[Node]:
    return await engine.summaries(id)


@router.post("/summaries/{id}/approve", summary="Approve a summary", responses=problems(409))
async def approve_summary(id: SummaryId, engine: Writing) -> Node:
    """From now on it is found where summaries are asked for, and stands in for its memory where that would fill the
    whole budget. Approving is a plan: the summary's history names it, and it can be undone."""
    return await engine.approve_summary(id)
