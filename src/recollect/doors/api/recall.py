"""Recall: what is known about a question."""

from typing import Annotated

from fastapi import Query

from recollect.doors.api import access
from recollect.doors.api.access import Reading
from recollect.doors.api.schemas import WITH_BODY, SearchIn, problems
from recollect.model import Kind, Recall

router = access.router("recall", problems(502))


@router.post("/search", summary="Search by meaning", responses=WITH_BODY)
async def search(asked: SearchIn, engine: Reading) -> Recall:
    """Hits, best first, each with its score laid open and the whole node. What is archived or excluded is not found."""
    return await engine.recall(
        asked.query,
        limit=asked.limit,
        threshold=asked.threshold,
        wanted=asked.wanted(),
        include_summaries=asked.include_summaries,
        budget_tokens=asked.budget_tokens,
        engagement=asked.engagement,
        graph=asked.graph,
    )


@router.get("/search", summary="Search by meaning, from a browser's address line")
async def search_by_address(
    engine: Reading,
    q: Annotated[str, Query(min_length=1, description="What to look for.")],
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many hits.")] = 20,
    kind: Annotated[list[Kind] | None, Query(description="Any of these; memories, if nothing is said.")] = None,
) -> Recall:
    """The same as POST; note that addresses end up in the logs of proxies and in a browser's history."""
    return await engine.recall(q, limit=limit, kinds=kind or (Kind.MEMORY,))
