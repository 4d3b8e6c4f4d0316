"""Schedules: what is done by itself in a space, when next, and what came of it last."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path

from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating, Reading
from recollect.doors.api.schemas import WITH_BODY, ScheduleIn, problems
from recollect.model import Scope
from recollect.schedules.run import CHORES, Ran
from recollect.schedules.sql.schedules import Schedule

router = access.router("schedules", problems(409))


def _allowed(name: Annotated[str, Path(description="A policy, like prune, or maintain.")], caller: Asking) -> str:
    """What concerns every space is for those who may do everything in every space."""
    if name in CHORES:
        caller.need(Scope.ADMIN)
    return name


Name = Annotated[str, Depends(_allowed)]


@router.get("/schedules", summary="What is done by itself, and when next")
async def list_schedules(engine: Reading) -> Sequence[Schedule]:
    return await engine.schedules.list()


@router.patch("/schedules/{name}", summary="Say how often something is done", responses=WITH_BODY)
async def set_schedule(name: Name, timing: ScheduleIn, engine: Consolidating) -> Schedule:
    """Every policy can be scheduled, also one that usually is not. Needs the scope consolidate."""
    return await engine.schedules.set(
        name,
        every_minutes=timing.every_minutes,
        cron=timing.cron,
        time_zone=timing.time_zone,
        jitter_seconds=timing.jitter_seconds,
        options=timing.options,
    )


@router.post("/schedules/{name}/pause", summary="Do it no more, until it is resumed")
async def pause_schedule(name: Name, engine: Consolidating) -> Schedule:
    return await engine.schedules.pause(name)


@router.post("/schedules/{name}/resume", summary="Do it again, from its next time on")
async def resume_schedule(name: Name, engine: Consolidating) -> Schedule:
    return await engine.schedules.resume(name)


@router.post("/schedules/{name}/run", summary="Run now")
async def run_schedule(name: Name, engine: Consolidating) -> Ran:
    """Whatever its time, and also while it is paused. A graph that would not be tidied by schedule yet is tidied, with
    a warning. Answers when it is done; the plan and the run it names show the rest."""
    return await engine.schedules.run(name)
