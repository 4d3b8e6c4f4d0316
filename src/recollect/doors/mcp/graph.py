"""How things hang together: link, why."""

from typing import Annotated

from pydantic import BaseModel, Field

from recollect.doors.mcp.telling import clipped, short
from recollect.doors.mcp.tools import ADDS_ONCE, READS, Told, tool
from recollect.doors.mcp.visits import Visit
from recollect.model import Scope
from recollect.plans.show import edges as shown_edges

WHY_TOKENS = 1000


class Linked(BaseModel):
    id: str


class Compared(BaseModel):
    would_merge: bool
    score: float
    reasons: list[str]


@tool(Scope.WRITE, hints=ADDS_ONCE)
async def link(
    visit: Visit,
    *,
    source: str,
    target: str,
    relation: Annotated[str, Field(description="supports, contradicts, extends or your own")] = "similar",
    explanation: str | None = None,
) -> Told[Linked]:
    """Connect two remembered things by id, for recall follow_links. Facts belong in memories. A known link is kept
    once."""
    memory = visit.memory
    edge = await memory.graph.link(source, target, relation, explanation=explanation)
    (shown,) = await shown_edges(memory.core, memory.space.id, [edge])
    return Told(text=f"Linked {shown.label} as {short(edge.id)}.", data=Linked(id=str(edge.id)))


@tool(Scope.READ, hints=READS)
async def why(
    visit: Visit,
    *,
    a: str,
    b: str,
) -> Told[Compared]:
    """Why two concepts (name or id) are or are not taken for the same, and what would change it. Use it before you
    judge a merge."""
    reasons = await visit.memory.concepts.why(a, b)
    explained = reasons.explanation
    data = Compared(
        would_merge=explained.would_merge,
        score=round(explained.factors.score, 3),
        reasons=list(explained.failed),
    )
    return Told(text=clipped(str(reasons), WHY_TOKENS), data=data)


TOOLS = (link, why)
