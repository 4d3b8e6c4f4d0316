"""A space at a glance, and short names for what ids stand for: what a page shows first."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import Query

from recollect.doors.api import access
from recollect.doors.api.access import Reading
from recollect.engine.overview import Overview

router = access.router("overview")


@router.get("/overview", summary="A space at a glance")
async def show_overview(engine: Reading) -> Overview:
    """How many of what kind and status, how many a day of the last 30, embedding jobs, the vector index, the last
    backup, and what policies were in doubt about."""
    return await engine.overview()


@router.get("/labels", summary="Short names of nodes")
async def show_labels(
    engine: Reading,
    id: Annotated[list[UUID], Query(min_length=1, max_length=200, description="The UUIDs of nodes.")],
) -> Mapping[UUID, str]:
    """The beginning of each name or text, on one line; what is not here is left out."""
    return await engine.labels(id)
