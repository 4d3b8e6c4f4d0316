"""The profile `graph`: similarity, and activation that spreads from the best hits along the edges (A31, A32)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from uuid import UUID

import numpy as np

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.graph.adjacency import walk
from recollect.graph.rules.spread import Reached
from recollect.memories.sql import nodes
from recollect.model import Hit, Parts, Query, Recall
from recollect.ports import Vectors
from recollect.recall.rules import ranking
from recollect.recall.rules.ranking import Numbers, calibration_of
from recollect.recall.search import LIMIT
from recollect.recall.sql import filtered
from recollect.recall.sql.candidates import CandidateQuery
from recollect.store.database import Transaction

SEEDS = 5


async def spread(core: Core, space_id: UUID, query: Query, near: Recall, vector: Vectors | None) -> Recall:
    """What activation reaches from the nearest hits, and those hits, by both. `vector` is that of the question."""
    similar = {hit.node.id: hit for hit in near}
    # How near a hit is to the question: by its vector, or where the model cannot read the question, by its words.
    nearness = attrgetter("parts.relevance" if vector is None else "similarity")
    seeds = {hit.node.id: nearness(hit) for hit in near[:SEEDS] if nearness(hit) > 0}
    async with core.search(space_id) as db:
        walked = await walk(core, db, seeds)
        reached = walked.reached if any(arrival.hops for arrival in walked.reached.values()) else {}
        asked = CandidateQuery(model=near.model, dim=core.embedder(near.model).dim, vector=vector)
        beyond = await _beyond(db, query, asked, reached.keys() - similar.keys())
    everything = {**{hit.node.id: hit for hit in beyond}, **similar}
    scores = {
        id_: _graph_score(nearness(hit), reached.get(id_)) if reached else nearness(hit)
        for id_, hit in everything.items()
    }
    order = sorted((id_ for id_ in scores if scores[id_] >= ranking.GRAPH_MINIMUM), key=lambda id_: -scores[id_])
    hits = tuple(
        _graph_hit(everything[id_], reached.get(id_), scores[id_], is_similar=id_ in similar)
        for id_ in order[: query.limit or LIMIT]
    )
    ways = {**near.ways, "graph": walked.how, "paths": _paths(hits, reached)}
    return replace(
        near,
        hits=hits,
        mode=query.mode,
        floor=ranking.GRAPH_MINIMUM,
        left_out=(),
        weights=ranking.BY_GRAPH if reached else {"similarity": 1.0},
        ways=ways,
    )


async def _beyond(db: Transaction, query: Query, asked: CandidateQuery, ids: Collection[UUID]) -> list[Hit]:
    """What only activation reached, of what may be returned at all, and how similar it is to the question."""
    permitted = await filtered.allowed(db, list(ids), query.wanted) if ids else set()
    _, cosines = await filtered.nearest_of(db, asked, filtered.these(list(permitted)))
    similarity = calibration_of((await spaces.by_id(db)).settings, asked.model).similarity
    read = await nodes.get_many(db, list(permitted))
    return [
        Hit(node=node, score=0.0, parts=_parts_of(cosines.get(node.id, 0.0), similarity))
        for node in read.values()
        if query.include_summaries or not node.is_summary
    ]


def _parts_of(cosine: float, similarity: Callable[[Numbers], Numbers]) -> Parts:
    """The score of a node that was neither near nor matching, laid open."""
    return Parts(
        relevance=0.0,
        similarity=round(float(similarity(np.array([cosine]))[0]), 6),
        cosine=round(cosine, 6),
        lexical=0.0,
        flow=0.0,
        activation=0.0,
        recency=0.0,
        importance=0.0,
    )


def _graph_score(nearness: float, reached: Reached | None) -> float:
    return ranking.hybrid(nearness, reached.activation if reached else 0.0)


def _graph_hit(hit: Hit, reached: Reached | None, score: float, *, is_similar: bool) -> Hit:
    activation = round(reached.activation, 6) if reached else 0.0
    source = "both" if is_similar and reached else "vector" if is_similar else "graph"
    return replace(hit, score=round(score, 6), parts=replace(hit.parts, activation=activation), source=source)


def _paths(hits: Sequence[Hit], reached: Mapping[UUID, Reached]) -> dict[str, dict[str, list[str]]]:
    """By which nodes and edges activation came to each hit that is not where it began."""
    arrivals = [reached[hit.node.id] for hit in hits if hit.node.id in reached and reached[hit.node.id].edges]
    return {
        str(arrival.node): {"nodes": [*map(str, arrival.path)], "edges": [*map(str, arrival.edges)]}
        for arrival in arrivals
    }
