"""Looking around in the graph: neighbours, paths, components, figures, topics, a file of all of it, pictures.

Nothing here changes anything, and nothing becomes part of the graph by being looked at: a topic that "contains" its
members is a view (A24).
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal
from uuid import UUID

import anyio.from_thread
import anyio.to_thread
import numpy as np

from recollect.engine.core import Core
from recollect.errors import InvalidInput, NotFound
from recollect.graph.rules import graphfile, paths, strength
from recollect.graph.rules.arrays import EdgeColumns, Ints, Numbers, as_uuids
from recollect.graph.rules.arrays import components as joined
from recollect.graph.rules.paths import HOPS
from recollect.graph.rules.picture import STRONG, WEAK
from recollect.graph.rules.spread import SpreadLink
from recollect.graph.rules.view import degrees
from recollect.graph.sql import edges as kept
from recollect.graph.sql import graph
from recollect.memories.export import check_file, to_file
from recollect.memories.rules.text import is_storable
from recollect.memories.sql import nodes
from recollect.model import Edge, Node, Topic
from recollect.plans import run
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction

Row = dict[str, Any]
Format = Literal["graphml", "gexf", "json"]
FORMATS: Mapping[str, Callable[..., Iterator[str]]] = {
    "graphml": graphfile.graphml,
    "gexf": graphfile.gexf,
    "json": graphfile.node_link_json,
}
FARTHEST = 3
MOST = 1000
MOST_LINKS = 50_000
EXAMPLES = 5
WEAKEST = 5
BLOCK = 1 << 16
# Below this pruning looks at an edge (A02).
LOST = 0.05
# Where one stretch of degrees ends and the next begins.
DEGREES = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """A node near another: in how many hops, by which edges, and how strong that way is (the product of its edges)."""

    node: Node
    hops: int
    strength: float
    edges: tuple[UUID, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A path between two nodes, with all that is on it."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    strength: float

    @property
    def hops(self) -> int:
        return len(self.edges)


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """Nodes that hang together: how many, by how many edges, and the best connected of them."""

    size: int
    edges: int
    examples: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Components:
    """The components of the graph, largest first; `total` counts also those that are not listed."""

    total: int
    items: tuple[Component, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WeakEdge:
    """One of the weakest edges, and how strong it is now."""

    id: UUID
    strength: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """The graph in figures. Strengths are those of this moment; `gate` says why tidying by schedule waits (A27)."""

    nodes: int
    linked: int
    isolated: int
    edges: int
    by_relation: Mapping[str, int]
    by_creator: Mapping[str, int]
    by_strength: Mapping[str, int]
    protected: int
    components: int
    largest_component: int
    degrees: Mapping[str, int]
    highest_degree: int
    oldest_edge_at: datetime | None
    first_edge_at: datetime | None
    topics: int
    weakest: tuple[WeakEdge, ...]
    gate: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicView:
    """A whole topic: what it contains, and the edges inside it."""

    topic: Topic
    members: tuple[Node, ...]
    edges: tuple[Edge, ...]


# -- neighbours and paths


async def neighbours(
    core: Core,
    space_id: UUID,
    node_id: UUID,
    *,
    hops: int = 1,
    relations: Collection[str] | None = None,
    limit: int = 50,
) -> list[Neighbour]:
    """The nodes around a node: nearest first, and of those as near the most strongly linked."""
    check(1 <= hops <= FARTHEST, "hops", f"from 1 to {FARTHEST}", hops)
    check(1 <= limit <= MOST, "limit", f"from 1 to {MOST:,}", limit)
    check(all(map(is_storable, relations or ())), "relation", "without NUL bytes and lone surrogates", "this")
    async with core.transaction(space_id) as db:
        await nodes.get(db, node_id)
        reached = await around(db, node_id, core.now(), hops=hops, relations=relations, enough=limit)
        read = await nodes.get_many(db, list(reached)[:limit])
    return [
        Neighbour(node=read[id_], hops=len(walked), strength=round(strong, 6), edges=walked)
        for id_, (strong, walked) in list(reached.items())[:limit]
        if id_ in read
    ]


async def around(
    db: Transaction,
    node_id: UUID,
    now: datetime,
    *,
    hops: int,
    relations: Collection[str] | None = None,
    enough: int,
) -> dict[UUID, tuple[float, tuple[UUID, ...]]]:
    """By node the strength of the best of the shortest ways to it, and its edges; no further once there are enough."""
    reached: dict[UUID, tuple[float, tuple[UUID, ...]]] = {node_id: (1.0, ())}
    frontier: Mapping[UUID, tuple[float, tuple[UUID, ...]]] = dict(reached)
    for _ in range(hops):
        if not frontier or len(reached) > enough:
            break
        links = await kept.around(db, list(frontier), now, relations=relations, at_most=MOST_LINKS)
        frontier = _next(frontier, links, reached)
        reached |= dict(sorted(frontier.items(), key=lambda item: (-item[1][0], item[0])))
    del reached[node_id]
    return reached


def _next(
    frontier: Mapping[UUID, tuple[float, tuple[UUID, ...]]], links: Sequence[SpreadLink], reached: Collection[UUID]
) -> dict[UUID, tuple[float, tuple[UUID, ...]]]:
    """Who is one hop further, each by the strongest way."""
    best: dict[UUID, tuple[float, tuple[UUID, ...]]] = {}
    for link in links:
        for here, there in ((link.source, link.target), (link.target, link.source)):
            if here in frontier and there not in reached and link.id is not None:
                strong, walked = frontier[here]
                if there not in best or strong * link.strength > best[there][0]:
                    best[there] = strong * link.strength, (*walked, link.id)
    return best


async def find_paths(
    core: Core,
    space_id: UUID,
    source: UUID,
    target: UUID,
    *,
    limit: int = 3,
    hops: int = 4,
    by: paths.By = "shortest",
) -> list[Way]:
    """The best paths between two nodes: the shortest (of those the strongest first), or the strongest."""
    check(1 <= hops <= HOPS, "hops", f"from 1 to {HOPS}", hops)
    check(1 <= limit <= 20, "limit", "from 1 to 20", limit)
    check(by in ("shortest", "strongest"), "by", "shortest or strongest", by)
    check(source != target, "target", "another node than the source", target)
    async with core.database.snapshot(space_id) as db:
        for end in (source, target):
            await nodes.get(db, end)
        adjacency = await core.adjacencies.loaded(db)
        best = await anyio.to_thread.run_sync(
            lambda: paths.best_paths(adjacency, source, target, core.now(), at_most=limit, hops=hops, by=by)
        )
        on_them = await nodes.get_many(db, list({id_ for path in best for id_ in path.nodes}))
        walked = await kept.get_many(db, list({id_ for path in best for id_ in path.edges}))
    return [
        Way(
            nodes=tuple(on_them[id_] for id_ in path.nodes),
            edges=tuple(walked[id_] for id_ in path.edges),
            strength=round(path.strength, 6),
        )
        for path in best
    ]


# -- the whole of it


async def components(core: Core, space_id: UUID, *, limit: int = 20) -> Components:
    """Which nodes hang together, the largest components first."""
    check(1 <= limit <= MOST, "limit", f"from 1 to {MOST:,}", limit)
    async with core.database.snapshot(space_id) as db:
        columns = await StoreReader(db).edges()
        total, parts = await anyio.to_thread.run_sync(_parts, columns, limit)
        shown = [as_uuids(columns.nodes[part.examples]) for part in parts]
        read = await nodes.get_many(db, [id_ for ids in shown for id_ in ids])
    items = [
        Component(size=part.size, edges=part.edges, examples=tuple(read[id_] for id_ in ids))
        for part, ids in zip(parts, shown, strict=True)
    ]
    return Components(total=total, items=tuple(items))


@dataclass(frozen=True, kw_only=True, slots=True)
class _ExplorePart:
    """A component, its best connected nodes by number."""

    size: int
    edges: int
    examples: Ints


def _parts(columns: EdgeColumns, limit: int) -> tuple[int, list[_ExplorePart]]:
    """How many components there are, and the largest of them."""
    root = joined(len(columns.nodes), columns.source, columns.target)
    roots, sizes = np.unique(root, return_counts=True)
    within = np.bincount(root[columns.source], minlength=len(columns.nodes))
    by_degree = np.argsort(-degrees(columns), kind="stable")
    largest = np.lexsort((roots, -sizes))[:limit].tolist()
    return len(roots), [
        _ExplorePart(
            size=int(sizes[part]),
            edges=int(within[roots[part]]),
            examples=by_degree[root[by_degree] == roots[part]][:EXAMPLES],
        )
        for part in largest
    ]


async def stats(core: Core, space_id: UUID) -> Stats:
    """The graph in figures, as of one moment."""
    async with core.database.snapshot(space_id) as db:
        reader = StoreReader(db)
        columns = await reader.edges()
        number = await reader.count_nodes()
        by_creator = await graph.by_creator(db)
        first = await graph.first_edge_at(db)
        gathered = await graph.list_topics(db)
    strong, degree = columns.strength_at(core.now()), degrees(columns)
    sizes = np.unique(joined(len(columns.nodes), columns.source, columns.target), return_counts=True)[1]
    return Stats(
        nodes=number,
        linked=len(columns.nodes),
        isolated=number - len(columns.nodes),
        edges=len(columns),
        by_relation=_by_relation(columns),
        by_creator=by_creator,
        by_strength=_bands(strong),
        protected=int(columns.protected.sum()),
        components=len(sizes),
        largest_component=int(sizes.max(initial=0)),
        degrees=_stretches(degree),
        highest_degree=int(degree.max(initial=0)),
        oldest_edge_at=datetime.fromtimestamp(columns.created_at.min(), UTC) if len(columns) else None,
        first_edge_at=first,
        topics=len(gathered),
        weakest=_weakest(columns, strong),
        gate=await run.gate(core, space_id),
    )


def _by_relation(columns: EdgeColumns) -> dict[str, int]:
    counts = np.bincount(columns.relation, minlength=len(columns.relations)).tolist()
    tally = Counter({name: count for name, count in zip(columns.relations, counts, strict=True) if count})
    return dict(tally.most_common())


def _weakest(columns: EdgeColumns, strong: Numbers) -> tuple[WeakEdge, ...]:
    weakest = np.argsort(strong, kind="stable")[:WEAKEST].tolist()
    return tuple(WeakEdge(id=columns.id_of(row), strength=round(float(strong[row]), 6)) for row in weakest)


def _bands(strong: Numbers) -> dict[str, int]:
    """The bands that pictures colour, and below them what pruning looks at."""
    names = (f"over {STRONG:g}", f"{WEAK:g} to {STRONG:g}", f"{LOST:g} to {WEAK:g}", f"under {LOST:g}")
    # Exactly 0.7 is not strong, exactly 0.3 not weak, exactly 0.05 not lost: as pictures and pruning have it (A03).
    lower = [strong > STRONG, strong >= WEAK, strong >= LOST, strong >= 0]
    counts = [int(mask.sum()) for mask in lower]
    return dict(zip(names, np.diff([0, *counts]).tolist(), strict=True))


def _stretches(degree: Ints) -> dict[str, int]:
    """How many nodes have how many edges, in stretches that grow."""
    ends = [*DEGREES, np.inf]
    stretches: dict[str, int] = {}
    for low, high in pairwise(ends):
        name = f"{low:,}" if high == low + 1 else f"{low:,} and more" if high == np.inf else f"{low:,} to {high - 1:,}"
        stretches[name] = int(((degree >= low) & (degree < high)).sum())
    return {name: count for name, count in stretches.items() if count}


# -- topics


async def topics(core: Core, space_id: UUID, *, of: Sequence[UUID] | None = None) -> list[Topic]:
    """The topics of the last gathering, largest first; or those that contain one of some nodes."""
    async with core.transaction(space_id) as db:
        gathered = await graph.list_topics(db)
    return gathered if of is None else [topic for topic in gathered if not set(of).isdisjoint(topic.member_ids)]


async def topic(core: Core, space_id: UUID, key: str) -> TopicView:
    """A whole topic."""
    if not is_storable(key):
        raise NotFound(graph.NO_TOPIC.format(key))
    async with core.transaction(space_id) as db:
        gathered = await graph.topic(db, key)
        members = await nodes.get_many(db, gathered.member_ids)
        inside = await graph.among(db, gathered.member_ids)
    ordered = sorted(members.values(), key=lambda node: (node.created_at, node.id))
    return TopicView(topic=gathered, members=tuple(ordered), edges=tuple(inside))


async def topics_of(core: Core, space_id: UUID, ids: Sequence[UUID]) -> dict[str, list[UUID]]:
    """Which topics contain which of some nodes: what a recall shows beside its hits (A24)."""
    async with core.transaction(space_id) as db:
        return await graph.topics_of(db, ids)


# -- a file of all of it


async def export(
    core: Core,
    space_id: UUID,
    out: Path | BinaryIO,
    *,
    format: str = "graphml",
    with_isolated: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the graph for another program; returns how many edges. A file appears when it is complete."""
    check(format in FORMATS, "format", ", ".join(FORMATS), format)
    write = partial(_write, core, space_id, format=format, with_isolated=with_isolated)
    if not isinstance(out, Path):
        return await write(out)
    check_file(out, overwrite=overwrite)
    return await to_file(out, write)


async def _write(core: Core, space_id: UUID, out: BinaryIO, *, format: str, with_isolated: bool) -> int:
    """The formats are written by plain code in a thread; it asks us for one batch of rows after the other."""
    now = core.now()
    count = 0

    def rows(batches: AsyncIterator[Sequence[Any]], as_row: Callable[[Any], Row]) -> Iterator[Row]:
        while batch := anyio.from_thread.run(_next_batch, batches):
            yield from map(as_row, batch)

    def edge_row(edge: Edge) -> Row:
        nonlocal count
        count += 1
        return _edge_row(edge, now)

    async with (
        core.database.snapshot(space_id) as db,
        aclosing(graph.stream_nodes(db, with_isolated=with_isolated)) as node_batches,
        aclosing(graph.stream_edges(db)) as linked,
    ):
        pieces = FORMATS[format](rows(node_batches, _node_row), rows(linked, edge_row))
        await anyio.to_thread.run_sync(_write_blocks, out, pieces)
    return count


def _write_blocks(out: BinaryIO, pieces: Iterator[str]) -> None:
    """Pieces are small: they are gathered before they are written."""
    block = bytearray()
    for piece in pieces:
        block += piece.encode()
        if len(block) >= BLOCK:
            out.write(block)
            block.clear()
    out.write(block)
    out.flush()


async def _next_batch(batches: AsyncIterator[Sequence[Any]]) -> Sequence[Any]:
    async for batch in batches:
        return batch
    return []


def _node_row(node: Node) -> Row:
    return {
        "id": node.id,
        "kind": str(node.kind),
        "subtype": node.subtype,
        "name": node.name,
        "text": node.text,
        "importance": node.importance,
        "protected": node.protected,
        "thread": node.thread,
        "tags": node.metadata.get("tags"),
        "metadata": node.metadata or None,
        "created_at": node.created_at,
    }


def _edge_row(edge: Edge, now: datetime) -> Row:
    """An edge with its strength of this moment; what was stored is beside it."""
    row = {name: getattr(edge, name) for name in Edge.__slots__ if name not in ("status", "merged_into", "metadata")}
    set_at = edge.last_reinforced_at or edge.created_at
    row["strength"] = round(strength.current(edge.strength, edge.decay_rate, set_at, now), 6)
    return {**row, "stored_strength": edge.strength, "metadata": edge.metadata or None}


def check(holds: bool, field: str, expected: str, given: object) -> None:
    if not holds:
        raise InvalidInput(f"{field} must be {expected}, not {given}.", field=field)
