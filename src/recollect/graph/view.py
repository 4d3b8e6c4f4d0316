"""A look at the graph: the part of it that a person can take in, now or as it was at some moment.

Around some nodes, within some topics, or, where nothing is named, what every topic is mainly made of and the best
connected nodes besides. Edges are told in columns, by the places of their ends among the nodes: of tens of thousands
that is a tenth of what the edges in full would be.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.engine.core import Core
from recollect.errors import NotFound
from recollect.graph.explore import FARTHEST, check
from recollect.graph.rules import view
from recollect.graph.rules.arrays import EdgeColumns, Ints, Numbers, as_ids, as_uuids, places_in
from recollect.graph.sql import graph, past
from recollect.graph.sql.graph import NO_TOPIC, Seen
from recollect.graph.sql.past import JournalStep
from recollect.model import Topic
from recollect.plans.sql.reader import StoreReader

MOST_NODES = 50_000
MOST_GROWN = 100
STEPS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenNode(Seen):
    """A node of the graph; `degree` counts all its edges, also those that are not shown."""

    degree: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenEdges:
    """Edges in columns: `source` and `target` are places among the nodes, `relation` one among `relations`.

    `strength` is that of the moment. `protected` and `bridges` are the places of the edges that are so: a bridge alone
    holds something together, in the whole graph and not only in what is shown.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    relation: tuple[int, ...]
    relations: tuple[str, ...]
    strength: tuple[float, ...]
    protected: tuple[int, ...]
    bridges: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenTopic:
    """A topic, how many it contains, and the places of those that are shown."""

    key: str
    size: int
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """A part of the graph at a moment, and how much there is in all.

    `since` is when the oldest edge was made, `journal` what changed existing knowledge last, newest first.
    """

    at: datetime
    since: datetime | None
    journal: Sequence[JournalStep]
    nodes: tuple[SeenNode, ...]
    edges: SeenEdges
    topics: tuple[SeenTopic, ...]
    total_nodes: int
    total_edges: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is looked at: what is around some nodes, what topics contain, and the main of everything."""

    around: Sequence[UUID]
    topics: Sequence[str]
    overview: bool
    hops: int
    limit: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _ViewPart:
    """What of the graph is shown: its nodes, how many edges each has in all, and the edges among them."""

    ids: list[UUID]
    degrees: list[int]
    edges: SeenEdges


async def look(core: Core, space_id: UUID, region: Wanted, at: datetime | None = None) -> Sight:
    """The part of the graph that is wanted, as of one moment."""
    check(len(region.around) <= MOST_GROWN, "around", f"at most {MOST_GROWN} nodes", len(region.around))
    check(1 <= region.hops <= FARTHEST, "hops", f"from 1 to {FARTHEST}", region.hops)
    check(1 <= region.limit <= MOST_NODES, "limit", f"from 1 to {MOST_NODES:,}", region.limit)
    now = core.now()
    moment = now if at is None else min(at, now)
    async with core.database.snapshot(space_id) as db:
        columns = await StoreReader(db).edges() if moment == now else await past.edges_at(db, moment)
        topics = await graph.list_topics(db)
        part = await anyio.to_thread.run_sync(partial(_part, columns, topics, region, moment))
        seen = await graph.seen(db, part.ids)
        since = await graph.oldest_edge_at(db)
        journal = await past.journal(db, limit=STEPS)
    return Sight(
        at=moment,
        since=since,
        journal=journal,
        nodes=tuple(_node(seen[id_], degree) for id_, degree in zip(part.ids, part.degrees, strict=True)),
        edges=part.edges,
        topics=tuple(_topics(topics, part.ids)),
        total_nodes=len(columns.nodes),
        total_edges=len(columns),
    )


def _part(columns: EdgeColumns, topics: Sequence[Topic], region: Wanted, moment: datetime) -> _ViewPart:
    strength = columns.strength_at(moment)
    focus = places_in(columns.nodes, as_ids(list(region.around)))
    parts = [
        view.around(columns, strength, focus[focus >= 0], hops=region.hops, limit=region.limit),
        *_members(columns, _named(topics, region.topics)),
    ]
    if region.overview or not (region.around or region.topics):
        parts.append(view.overview(columns, _members(columns, topics), limit=region.limit))
    numbers = view.distinct(parts)[: region.limit]
    alone = [id_ for id_, number in zip(region.around, focus.tolist(), strict=True) if number < 0]
    return _ViewPart(
        ids=as_uuids(columns.nodes[numbers]) + alone,
        degrees=view.degrees(columns)[numbers].tolist() + [0] * len(alone),
        edges=_edges(columns, strength.round(3), numbers),
    )


def _named(topics: Sequence[Topic], keys: Sequence[str]) -> list[Topic]:
    by_key = {topic.key: topic for topic in topics}
    for key in keys:
        if key not in by_key:
            raise NotFound(NO_TOPIC.format(key))
    return [by_key[key] for key in keys]


def _members(columns: EdgeColumns, topics: Collection[Topic]) -> list[Ints]:
    rows = [places_in(columns.nodes, as_ids(list(topic.member_ids))) for topic in topics]
    return [numbers[numbers >= 0] for numbers in rows]


def _edges(columns: EdgeColumns, strength: Numbers, numbers: Ints) -> SeenEdges:
    number_of = np.zeros(len(columns.nodes), dtype=np.int64)
    number_of[numbers] = np.arange(len(numbers))
    shown = view.edges_among(columns, numbers)
    return SeenEdges(
        source=tuple(number_of[columns.source[shown]].tolist()),
        target=tuple(number_of[columns.target[shown]].tolist()),
        relation=tuple(columns.relation[shown].tolist()),
        relations=columns.relations,
        strength=tuple(strength[shown].tolist()),
        protected=tuple(np.flatnonzero(columns.protected[shown]).tolist()),
        bridges=tuple(np.flatnonzero(view.bridges(columns)[shown]).tolist()),
    )


def _topics(topics: Sequence[Topic], ids: Sequence[UUID]) -> list[SeenTopic]:
    number_of = {id_: number for number, id_ in enumerate(ids)}
    return [
        SeenTopic(
            key=topic.key,
            size=len(topic.member_ids),
            members=tuple(number_of[id_] for id_ in topic.member_ids if id_ in number_of),
        )
        for topic in topics
    ]


def _node(seen: Seen, degree: int) -> SeenNode:
    return SeenNode(
        id=seen.id,
        kind=seen.kind,
        subtype=seen.subtype,
        label=seen.label,
        protected=seen.protected,
        status=seen.status,
        degree=degree,
    )
