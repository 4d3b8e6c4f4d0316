"""Is it up, is it ready, how is it? The first two need no key, and say nothing else."""

from dataclasses import dataclass
from typing import Literal

import anyio
from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from recollect import __version__
from recollect.doors.api.access import Whole, engine_of, need_insight, operation_id
from recollect.doors.api.metrics import Metrics
from recollect.doors.api.schemas import problems
from recollect.engine.engine import Engine
from recollect.errors import DatabaseProblem, NotAllowed, NotAuthenticated

router = APIRouter(tags=["health"], generate_unique_id_function=operation_id)

READY_SECONDS = 2.0
State = Literal["ok", "unavailable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """Whether it serves (live) and whether its database answers (ready); version and jobs for who may look."""

    live: State
    ready: State
    version: str | None = None
    waiting_jobs: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    status: State


@router.get("/health/live", summary="Is it up?")
async def live() -> Sign:
    return Sign(status="ok")


@router.get("/health/ready", summary="Does its database answer?", responses={503: {"model": Sign}})
async def ready(engine: Whole, response: Response) -> Sign:
    state = await _state(engine)
    response.status_code = 200 if state == "ok" else 503
    return Sign(status=state)


@router.get("/health", summary="How is it?", responses={503: {"model": Health}})
async def health(engine: Whole, request: Request, response: Response) -> Health:
    """The version and the number of waiting jobs are shown to this machine, and to keys that may read everywhere."""
    state = await _state(engine)
    if state != "ok":
        response.status_code = 503
    elif await _may_look(request):
        jobs = (await engine.totals()).jobs
        return Health(live="ok", ready=state, version=__version__, waiting_jobs=jobs.waiting)
    return Health(live="ok", ready=state)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **problems(401, 403, 503)},
    dependencies=[Depends(need_insight)],
)
async def metrics(request: Request) -> Response:
    """For this machine, and for keys that may read everywhere."""
    figures: Metrics = request.app.state.metrics
    return Response(figures.exposed(await engine_of(request).totals()), media_type=CONTENT_TYPE_LATEST)


async def _state(engine: Engine) -> State:
    """Whether the database answers, and soon."""
    with anyio.move_on_after(READY_SECONDS):
        try:
            await engine.ping()
        except DatabaseProblem:
            return "unavailable"
        return "ok"
    return "unavailable"


async def _may_look(request: Request) -> bool:
    try:
        await need_insight(request)
    except (NotAllowed, NotAuthenticated):
        return False
    return True
