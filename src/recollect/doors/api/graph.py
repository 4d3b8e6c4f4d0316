"""The graph: its figures, what is near what, ways between nodes, topics, a file of it, pictures of it."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path as File
from typing import Annotated

from fastapi import Path, Query
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from recollect.doors.api import access
from recollect.doors.api.access import Reading
from recollect.doors.api.schemas import Responses, Time, problems
from recollect.graph.explore import Components, Format, Neighbour, Stats, TopicView, Way
from recollect.graph.pictures import Form
from recollect.graph.rules.paths import By
from recollect.graph.view import MOST_GROWN, MOST_NODES, Sight
from recollect.memories.rules.contract import parsed_time
from recollect.model import Topic

router = access.router("graph", problems(409))

ID = "[0-9a-fA-F-]{4,36}"
NodeId = Annotated[str, Path(pattern=f"^{ID}$", description="The UUID of a node, or a unique beginning of it.")]
PlanId = Annotated[str, Path(pattern=f"^{ID}$", description="The UUID of a plan, or a unique beginning of it.")]
PictureName = Annotated[
    str, Path(pattern=rf"^{ID}(\.svg|\.html)?$", description="A node's id, and .svg or .html; svg, if nothing is said.")
]
Node = Annotated[str, Query(pattern=f"^{ID}$", description="The UUID of a node, or a unique beginning of it.")]
Hops = Annotated[int, Query(ge=1, le=3, description="How far.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]

KINDS = {"svg": "image/svg+xml", "html": "text/html"}
FILES = {"graphml": "application/graphml+xml", "gexf": "application/gexf+xml", "json": "application/json"}
DRAWN: Responses = {200: {"description": "The picture.", "content": {kind: {} for kind in KINDS.values()}}}
# A picture runs nothing and fetches nothing; a page runs its own script alone, which it says itself.
STILL = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.get("/graph/stats", summary="The graph in figures")
async def graph_stats(engine: Reading) -> Stats:
    """Strengths are those of this moment. `gate` says why tidying by schedule waits; null when it runs."""
    return await engine.graph.stats()


@router.get("/graph/view", summary="A part of the graph to look at, now or as it was")
async def graph_view(
    engine: Reading,
    around: Annotated[
        list[Node] | None, Query(max_length=MOST_GROWN, description="These nodes and those near.")
    ] = None,
    topic: Annotated[list[str] | None, Query(description="What these topics contain.")] = None,
    overview: Annotated[bool, Query(description="Besides these, what is shown when nothing is named.")] = False,
    hops: Hops = 1,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES, description="At most so many nodes.")] = 300,
    at: Annotated[Time, Query(description="As it was then; without a zone it means UTC.")] = None,
) -> Sight:
    """Nothing named: what every topic is mainly made of, and the best connected nodes besides. Edges come in columns.
    The past is what the journal takes back; use is not in it, so an edge used since has the strength of that use."""
    moment = parsed_time("at", at)
    return await engine.graph.look(
        around=around or (), topics=topic or (), overview=overview, hops=hops, limit=limit, at=moment
    )


@router.get("/graph/neighbours/{id}", summary="The nodes around a node")
async def graph_neighbours(
    id: NodeId,
    engine: Reading,
    hops: Hops = 1,
    relation: Annotated[list[str] | None, Query(description="Only by these relations.")] = None,
    limit: Limit = 50,
) -> Sequence[Neighbour]:
    """Nearest first, and of those as near the most strongly linked."""
    return await engine.graph.neighbours(id, hops=hops, relations=relation, limit=limit)


@router.get("/graph/paths", summary="The best paths between two nodes")
async def graph_paths(
    engine: Reading,
    source: Node,
    target: Node,
    limit: Annotated[int, Query(ge=1, le=20, description="At most so many.")] = 3,
    hops: Annotated[int, Query(ge=1, le=6, description="How long a path may be.")] = 4,
    by: Annotated[By, Query(description="What comes first.")] = "shortest",
) -> Sequence[Way]:
    """The strength of a path is the product of its edges' strengths. No path within so many hops: an empty list."""
    return await engine.graph.paths(source, target, limit=limit, hops=hops, by=by)


@router.get("/graph/components", summary="What hangs together, largest first")
async def graph_components(engine: Reading, limit: Limit = 20) -> Components:
    return await engine.graph.components(limit=limit)


@router.get("/graph/topics", summary="The topics of the last gathering, largest first")
async def graph_topics(
    engine: Reading,
    of: Annotated[list[Node] | None, Query(description="Only those that contain one of these nodes.")] = None,
) -> Sequence[Topic]:
    return await engine.graph.topics(of=of)


@router.get("/graph/topics/{key:path}", summary="A whole topic: what it contains")
async def graph_topic(
    key: Annotated[str, Path(description="Its key, such as tag:react.")], engine: Reading
) -> TopicView:
    return await engine.graph.topic(key)


@router.get(
    "/graph/export",
    summary="The graph as a file for another program",
    response_class=FileResponse,
    responses={200: {"description": "The file.", "content": {kind: {} for kind in FILES.values()}}},
)
async def graph_export(
    engine: Reading,
    format: Annotated[Format, Query(description="GraphML (yEd, NetworkX), GEXF (Gephi), JSON (D3).")] = "graphml",
    isolated: Annotated[bool, Query(description="Also nodes without any edge.")] = False,
) -> FileResponse:
    """As of one moment. It is written aside first, so that a slow reader keeps no connection of the database."""
    handle, name = tempfile.mkstemp(prefix="recollect-graph-")
    file = File(name)
    try:
        with os.fdopen(handle, "wb") as out:
            await engine.graph.export(out, format=format, with_isolated=isolated)
    except BaseException:
        file.unlink()
        raise
    return FileResponse(
        file, media_type=FILES[format], filename=f"graph.{format}", background=BackgroundTask(file.unlink)
    )


@router.get(
    "/graph/picture/{name}", summary="A picture of what is around a node", response_class=Response, responses=DRAWN
)
async def graph_picture(
    name: PictureName,
    engine: Reading,
    hops: Hops = 2,
    limit: Annotated[int, Query(ge=1, le=300, description="At most so many nodes.")] = 100,
) -> Response:
    id, _, ending = name.partition(".")
    form: Form = "html" if ending == "html" else "svg"
    return _drawn(await engine.graph.picture(id, hops=hops, limit=limit, format=form), form)


@router.get(
    "/plans/{id}/picture",
    summary="What a plan touches, before and after",
    response_class=Response,
    responses=DRAWN,
    tags=["plans"],
)
async def plan_picture(
    id: PlanId,
    engine: Reading,
    format: Annotated[Form, Query(description="A page with a picture a group, or one picture.")] = "html",
) -> Response:
    return _drawn(await engine.graph.plan_picture(id, format=format), format)


def _drawn(text: str, form: Form) -> Response:
    return Response(text, media_type=KINDS[form], headers=STILL if form == "svg" else None)
