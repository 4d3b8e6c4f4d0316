"""`memory.graph`: links by hand, and looking around (graph/link.py, explore.py and pictures.py do it)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from recollect.engine.core import Face, Reference
from recollect.graph import explore, link, pictures, vault, view
from recollect.graph.rules.paths import By
from recollect.model import Edge, NewEdge, Topic
from recollect.plans.sql import plans
from recollect.store.database import reads


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
        new_edge = NewEdge(
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
        (id_,) = await self.link_many([new_edge])
        return await link.get(self.core, self.space_id, id_)

    async def link_many(self, wanted: Sequence[NewEdge]) -> Sequence[UUID]:
        """Make many links at once, all or none; returns their ids in order."""
        return await link.link_many(self.core, self.space_id, wanted)

    @reads
    async def edge(self, reference: Reference) -> Edge:
        """An edge, by its id or a unique beginning of it."""
        return await link.get(self.core, self.space_id, reference)

    @reads
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

    # -- looking around

    @reads
    async def neighbours(
        self, node: Reference, *, hops: int = 1, relations: Sequence[str] | None = None, limit: int = 50
    ) -> Sequence[explore.Neighbour]:
        """The nodes up to 3 hops around a node, nearest and most strongly linked first; by some relations only."""
        return await explore.neighbours(
            self.core, self.space_id, await self.node_id(node), hops=hops, relations=relations, limit=limit
        )

    @reads
    async def look(
        self,
        *,
        around: Sequence[Reference] = (),
        topics: Sequence[str] = (),
        overview: bool = False,
        hops: int = 1,
        limit: int = 300,
        at: datetime | None = None,
    ) -> view.Sight:
        """A part of the graph, now or as it was: around some nodes, of some topics, or the main of all of it."""
        # In the past a node that was merged since stood for itself.
        meant = self.keeper_id if at is None else self.node_id
        focus = [await meant(reference) for reference in around]
        region = view.Wanted(around=focus, topics=topics, overview=overview, hops=hops, limit=limit)
        return await view.look(self.core, self.space_id, region, at)

    @reads
    async def paths(
        self, source: Reference, target: Reference, *, limit: int = 3, hops: int = 4, by: By = "shortest"
    ) -> Sequence[explore.Way]:
        """The best paths between two nodes: the shortest, and of those the strongest first; or the strongest."""
        ends = await self.node_id(source), await self.node_id(target)
        return await explore.find_paths(self.core, self.space_id, *ends, limit=limit, hops=hops, by=by)

    @reads
    async def components(self, *, limit: int = 20) -> explore.Components:
        """Which nodes hang together, the largest components first."""
        return await explore.components(self.core, self.space_id, limit=limit)

    @reads
    async def stats(self) -> explore.Stats:
        """The graph in figures."""
        return await explore.stats(self.core, self.space_id)

    @reads
    async def topics(self, *, of: Sequence[Reference] | None = None) -> Sequence[Topic]:
        """The topics of the last gathering, largest first; or those that contain one of some nodes."""
        ids = None if of is None else [await self.node_id(reference) for reference in of]
        return await explore.topics(self.core, self.space_id, of=ids)

    @reads
    async def topic(self, key: str) -> explore.TopicView:
        """A whole topic: the members it contains, and the edges between them."""
        return await explore.topic(self.core, self.space_id, key)

    @reads
    async def topics_of(self, nodes: Sequence[UUID]) -> Mapping[str, Sequence[UUID]]:
        """Which topics contain which of some nodes, say of the hits of a recall."""
        return await explore.topics_of(self.core, self.space_id, nodes)

    async def export(
        self,
        out: str | Path | BinaryIO,
        *,
        format: explore.Format = "graphml",
        with_isolated: bool = False,
        overwrite: bool = False,
    ) -> int:
        """Write the graph as GraphML, GEXF or JSON, to a file or an open stream; returns how many edges."""
        file = Path(out) if isinstance(out, str) else out
        return await explore.export(
            self.core, self.space_id, file, format=format, with_isolated=with_isolated, overwrite=overwrite
        )

    async def export_vault(
        self, folder: str | Path, *, overwrite: bool = False, progress: vault.Progress | None = None
    ) -> int:
        """Write memories, concepts and cases as Markdown notes with wikilinks, below a folder; returns how many."""
        return await vault.export_vault(self.core, self.space_id, Path(folder), overwrite=overwrite, progress=progress)

    # -- pictures, as the text of an SVG or HTML file

    @reads
    async def picture(self, node: Reference, *, hops: int = 2, limit: int = 100, format: pictures.Form = "svg") -> str:
        """A picture of what is around a node."""
        return await pictures.of_node(
            self.core, self.space_id, await self.node_id(node), hops=hops, limit=limit, form=format
        )

    @reads
    async def topic_picture(self, key: str, *, format: pictures.Form = "svg") -> str:
        """A picture of a topic and the members it contains."""
        return await pictures.of_topic(self.core, self.space_id, key, form=format)

    @reads
    async def plan_picture(self, plan: Reference, *, format: pictures.Form = "html") -> str:
        """A picture of what a plan touches, before and after; as a page one for each of its first groups."""
        async with self.core.transaction(self.space_id) as db:
            id_ = await plans.resolve(db, str(plan))
        return await pictures.of_plan(self.core, self.space_id, id_, form=format)
