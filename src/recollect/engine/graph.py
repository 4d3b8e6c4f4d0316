"""`memory.graph`: links by hand, and looking around (engine/link.py and engine/explore.py do it)."""

from collections.abc import Sequence
from uuid import UUID

from recollect.engine import link
from recollect.engine.face import Face, Reference
from recollect.model import Edge, NewEdge


class Graph(Face):
    """The links between nodes."""

    async def link(
        self,
        source: Reference,
        target: Reference,
        relation: str = "similar",
        *,
        strength: float | None = None,
        confidence: float | None = None,
        explanation: str | None = None,
        source_topic: str | None = None,
        target_topic: str | None = None,
        created_by: str = "user",
    ) -> Edge:
        """Link two nodes. A link with the same ends and relation is kept once: the stronger, the newer explanation."""
        wanted = NewEdge(
            source=await self.keeper_id(source),
            target=await self.keeper_id(target),
            relation=relation,
            strength=strength,
            confidence=confidence,
            explanation=explanation,
            source_topic=source_topic,
            target_topic=target_topic,
            created_by=created_by,
        )
        (id_,) = await self.link_many([wanted])
        return await link.get(self.core, self.space_id, id_)

    async def link_many(self, wanted: Sequence[NewEdge]) -> Sequence[UUID]:
        """Make many links at once, all or none; returns their ids in order."""
        return await link.link_many(self.core, self.space_id, wanted)

    async def edge(self, reference: Reference) -> Edge:
        """An edge, by its id or a unique beginning of it."""
        return await link.get(self.core, self.space_id, reference)

    async def edges(self, node: Reference, *, limit: int = 100) -> Sequence[Edge]:
        """The edges of a node, strongest first."""
        return await link.of_node(self.core, self.space_id, await self.keeper_id(node), limit=limit)

    async def unlink(self, edge: Reference, *, reason: str | None = None) -> Edge:
        """Take an edge out of the graph; it has a history, and undo brings it back."""
        return await link.unlink(self.core, self.space_id, edge, reason=reason)

    async def protect(self, edge: Reference, protected: bool = True, *, reason: str | None = None) -> Edge:
        """Say that tidying leaves an edge alone, or no longer."""
        return await link.protect(self.core, self.space_id, edge, protected=protected, reason=reason)

    async def reinforce(self, edge: Reference, kind: str = "revisit") -> Edge:
        """Make an edge stronger: traversal, revisit, highlight, approved, click, or important (1.0 and protected)."""
        return await link.reinforce(self.core, self.space_id, edge, kind)
