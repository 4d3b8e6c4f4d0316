"""Links between nodes: made, used, protected and taken away."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from recollect.doors.api import access
from recollect.doors.api.access import Reading, Writing
from recollect.doors.api.plans import NodeId
from recollect.doors.api.schemas import ID, WITH_BODY, RequestBody, examples, problems
from recollect.engine.engine import Engine
from recollect.model import Edge
from recollect.plan import HistoryEntry
from recollect.plans import show
from recollect.plans.show import ShownEdge

router = access.router("links", problems(409))

Id = Annotated[str, Path(pattern=ID, description="The UUID of an edge, or a unique beginning of it.")]
Reference = Annotated[str, Field(pattern=ID)]


class EdgeIn(RequestBody):
    """A link to be made."""

    model_config = examples({"source": "3f2a91bc", "target": "91bc3f2a", "relation": "extends"})

    source: Annotated[Reference, Field(description="The node it begins at: a UUID, or a unique beginning of one.")]
    target: Annotated[Reference, Field(description="The node it ends at.")]
    relation: Annotated[str, Field(description="similar, supports, contradicts, extends, applies, or your own.")] = (
        "similar"
    )
    strength: Annotated[
        float | None, Field(description="From 0 to 1; it decays. Without it: 1.0, and it does not decay.")
    ] = None
    confidence: Annotated[float | None, Field(description="From 0 to 1.")] = None
    explanation: Annotated[str | None, Field(description="Why; at most 10,000 characters.")] = None
    source_topic: Annotated[str | None, Field(description="The topic of its source, such as tag:react.")] = None
    target_topic: Annotated[str | None, Field(description="The topic of its target.")] = None
    created_by: Annotated[
        Literal["user", "auto", "import", "system"], Field(description="What a user made is never pruned.")
    ] = "user"


class ReinforceIn(RequestBody):
    """How the link was used."""

    model_config = examples({"kind": "click"})

    kind: Annotated[
        Literal["traversal", "revisit", "highlight", "approved", "click", "important"],
        Field(description="`important` makes it 1.0 and protects it."),
    ] = "revisit"


class ProtectIn(RequestBody):
    """Whether tidying leaves the link alone."""

    model_config = examples({"protected": True})

    protected: bool = True
    reason: Annotated[str | None, Field(max_length=1000, description="Kept in the history.")] = None


@router.post("/edges", status_code=201, summary="Link two nodes", responses=WITH_BODY)
async def add_edge(link: EdgeIn, engine: Writing, response: Response) -> ShownEdge:
    """The same link again is kept once: the higher strength and confidence, the newer explanation."""
    edge = await engine.graph.link(**link.model_dump())
    response.headers["Location"] = f"/api/v1/edges/{edge.id}"
    return await _shown(engine, edge)


@router.get("/edges/{id}", summary="One link")
async def get_edge(id: Id, engine: Reading) -> ShownEdge:
    """`strength` is as it was set, `strength_now` as it is after the days since."""
    return await _shown(engine, await engine.graph.edge(id))


@router.delete("/edges/{id}", summary="Take a link out of the graph")
async def unlink_edge(
    id: Id,
    engine: Writing,
    reason: Annotated[str | None, Query(max_length=1000, description="Kept in the history.")] = None,
) -> ShownEdge:
    """It is kept as pruned, with its history, and undoing the plan brings it back."""
    return await _shown(engine, await engine.graph.unlink(id, reason=reason))


@router.post("/edges/{id}/reinforce", summary="Make a link stronger because it was used", responses=WITH_BODY)
async def reinforce_edge(id: Id, engine: Writing, used: ReinforceIn | None = None) -> ShownEdge:
    return await _shown(engine, await engine.graph.reinforce(id, (used or ReinforceIn()).kind))


@router.post("/edges/{id}/protect", summary="Say that tidying leaves a link alone, or no longer", responses=WITH_BODY)
async def protect_edge(id: Id, engine: Writing, said: ProtectIn | None = None) -> ShownEdge:
    protection = said or ProtectIn()
    return await _shown(engine, await engine.graph.protect(id, protection.protected, reason=protection.reason))


@router.get("/edges/{id}/history", summary="What happened to a link, when, why, and by which plan")
async def edge_history(id: Id, engine: Reading) -> Sequence[HistoryEntry]:
    return await engine.history((await engine.graph.edge(id)).id)


@router.get("/nodes/{id}/edges", summary="The links of a node, strongest first")
async def list_edges(
    id: NodeId,
    engine: Reading,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many.")] = 100,
) -> Sequence[ShownEdge]:
    return await show.edges(engine.core, engine.space.id, await engine.graph.edges(id, limit=limit))


async def _shown(engine: Engine, edge: Edge) -> ShownEdge:
    (shown,) = await show.edges(engine.core, engine.space.id, [edge])
    return shown
