"""Plans: what changed existing knowledge, shown as it was applied, and taken back."""

from typing import Annotated

from fastapi import Path

from recollect.doors.api import access
from recollect.doors.api.access import Reading, Writing
from recollect.doors.api.schemas import problems
from recollect.plan import Outcome, Plan

router = access.router("plans", problems(409))

Id = Annotated[
    str,
    Path(
        pattern="^[0-9a-fA-F-]{4,36}$",
        description="The UUID of a plan (a memory's history names them), or a unique beginning of it.",
    ),
]


@router.get("/plans/{id}", summary="A plan: its decisions, why, and every row before and after")
async def get_plan(id: Id, engine: Reading) -> Plan:
    return await engine.plan(id)


@router.post("/plans/{id}/undo", summary="Take a plan back")
async def undo_plan(id: Id, engine: Writing) -> Outcome:
    """Every row is as it was; what happened since (counts, other changes) stays. Undoing twice is success. Where a
    later change stands in the way, 409 names it and nothing is changed. An undo is a plan itself: it can be undone."""
    return await engine.undo(id)
