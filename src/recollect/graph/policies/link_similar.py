"""Link: memories that are near each other get a `similar` edge, so that there is a graph for those who never link.

Each node with its few nearest, above a raw cosine. The newer points to the older. Pairs that such an edge joins, or
once joined, either way round, are left alone: what was pruned or taken out does not come back by itself. What was
compared by the last applied plan is not compared again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.arrays import EdgeColumns, Flags, Ints, Numbers, as_text, places_in
from recollect.graph.rules.neighbours import NearPairs, near_pairs
from recollect.graph.rules.strength import DECAY_A_DAY
from recollect.model import Kind
from recollect.plan import Change, Draft, Look, Plan, Risk, Row, Waiting
from recollect.plans.policy import OVERLAP, Policy, Reader, newer_than
from recollect.wording import counted, require

RELATION = "similar"


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """From which raw cosine, with how many of its nearest, of which kinds; and only what came after some time.

    No time is that of the last applied plan; "" compares everything with everything. The time is RFC 3339
    text, so that the options are kept with the plan as they were given.
    """

    min_similarity: float = 0.80
    at_most: int = 5
    kinds: tuple[str, ...] = ("memory",)
    only_newer_than: str | None = None
    batch: int = 2000

    def __post_init__(self) -> None:
        require(0 < self.min_similarity <= 1, "min_similarity", "above 0 and at most 1")
        require(self.at_most >= 1, "at_most", "1 or more")
        require(bool(self.kinds) and set(self.kinds) <= set(Kind), "kinds", f"some of {', '.join(Kind)}")
        require(self.batch >= 1, "batch", "1 or more")
        _seconds(self.only_newer_than)


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes:
    """What can be linked, ordered by id."""

    ids: NDArray[np.void]
    vectors: NDArray[np.float32]
    created_at: Numbers

    def id_of(self, row: int) -> UUID:
        return UUID(bytes=self.ids[row].tobytes())


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    ids, vectors, created_at = await reader.vectors(kinds=options.kinds)
    order = np.argsort(as_text(ids))
    nodes = Nodes(ids=ids[order], vectors=vectors[order], created_at=created_at[order])
    since = await _since(reader, options)
    tags = await reader.first_tags(kinds=options.kinds)
    ever = await reader.edges(retired=True)
    return await anyio.to_thread.run_sync(_plan, nodes, ever, tags, since, options, now)


def _plan(
    nodes: Nodes, edges: EdgeColumns, tags: Mapping[UUID, str], since: float, options: Options, now: datetime
) -> Plan:
    asked = np.flatnonzero(nodes.created_at > since)
    near = near_pairs(nodes.vectors, asked, at_least=options.min_similarity, at_most=options.at_most)
    draft = Draft()
    fresh = np.flatnonzero(~is_linked(near, nodes.ids, edges))
    _link(draft, nodes, near, fresh, tags, options, now)
    return draft.plan(
        title=f"Link {counted(len(draft.decisions), 'similar pair')}",
        now=now,
        summary={
            "nodes": len(asked),
            "near": len(near.low),
            "linked": len(draft.decisions),
            # Links are added: nothing that exists is touched.
            "scope": {},
            "touched": {},
        },
    )


async def recheck(reader: Reader, decisions: Sequence[Waiting], _options: Any, _now: datetime) -> Mapping[int, str]:
    """The pairs that were linked since, also those whose link is gone again: it does not come back by itself. (That two
    are not linked is a premise besides; what once was has no index, and is asked for all of them at once.)"""
    return await anyio.to_thread.run_sync(_once_linked, await reader.edges(retired=True), decisions)


def _once_linked(ever: EdgeColumns, decisions: Sequence[Waiting]) -> Mapping[int, str]:
    pairs = [(decision.number, (factors := decision.factors)["source"], factors["target"]) for decision in decisions]
    ends = np.array([UUID(end).bytes for _, *both in pairs for end in both], dtype="V16")
    ids = np.unique(as_text(ends)).view("V16")
    a, b = places_in(ids, ends).reshape(-1, 2).T
    near = NearPairs(low=np.minimum(a, b), high=np.maximum(a, b), similarity=np.ones(len(pairs), np.float32))
    linked = is_linked(near, ids, ever).tolist()
    return {
        number: "the two were linked since" for (number, *_), is_there in zip(pairs, linked, strict=True) if is_there
    }


async def _since(reader: Reader, options: Options) -> float:
    """What came before was linked by the last plan, if that looked at as much: as far, at as many, at all of it."""
    if options.only_newer_than is None:
        last = await reader.last_applied(POLICY.name, _what_is_looked_at(options))
        return -np.inf if last is None else (last - OVERLAP).timestamp()
    return _seconds(options.only_newer_than)


def _what_is_looked_at(options: Options) -> Row:
    return {name: value for name, value in asdict(options).items() if name != "batch"}


def _seconds(time: str | None) -> float:
    """A time as seconds since 1970; none is before all others."""
    moment = newer_than(time)
    return -np.inf if moment is None else moment.timestamp()


def is_linked(near: NearPairs, ids: NDArray[np.void], edges: EdgeColumns) -> Flags:
    """Whether a `similar` edge joins the two or once did, whichever way it points."""
    if RELATION not in edges.relations:
        return np.zeros(len(near.low), dtype=np.bool_)
    alike = edges.relation == edges.relations.index(RELATION)
    rows = places_in(ids, edges.nodes)
    a, b = rows[edges.source[alike]], rows[edges.target[alike]]
    both_there = (a >= 0) & (b >= 0)
    linked = _codes(np.minimum(a, b)[both_there], np.maximum(a, b)[both_there], ids)
    return np.isin(_codes(near.low, near.high, ids), linked)


def _codes(low: Ints, high: Ints, ids: NDArray[np.void]) -> Ints:
    return low * len(ids) + high


def _link(
    draft: Draft,
    nodes: Nodes,
    near: NearPairs,
    fresh: Ints,
    tags: Mapping[UUID, str],
    options: Options,
    now: datetime,
) -> None:
    for number, (low, high, similarity) in enumerate(_best_first(near, fresh)):
        source, target = _newer_first(nodes, low, high)
        row = {**similar_edge(source, target, min(1.0, similarity), now), **_topics(source, target, tags)}
        draft.decide(
            "link",
            UUID(row["id"]),
            f"similarity {similarity:.2f} >= {options.min_similarity:g}",
            [Change(table="edges", id=UUID(row["id"]), before=None, after=row)],
            score=similarity,
            factors={"similarity": similarity, "relation": RELATION, "source": row["source"], "target": row["target"]},
            group=number // options.batch,
            look=unlinked(draft.look(), source, target, {end: tags.get(end) for end in (source, target)}),
        )


def unlinked(look: Look, source: UUID, target: UUID, tags: Mapping[UUID, str | None]) -> Look:
    """Two nodes that are recalled and not linked, either way round; and their tags, where they were looked at."""
    for node, other in ((source, target), (target, source)):
        look.finds("nodes", node, recallable=True, unlinked_with={"node": str(other), "relation": RELATION})
    for node, tag in tags.items():
        look.finds("nodes", node, first_tag=tag)
    return look


def _best_first(near: NearPairs, places: Ints) -> Iterator[tuple[int, int, float]]:
    order = places[np.argsort(-near.similarity[places], kind="stable")]
    return zip(near.low[order].tolist(), near.high[order].tolist(), near.similarity[order].tolist(), strict=True)


def _newer_first(nodes: Nodes, low: int, high: int) -> tuple[UUID, UUID]:
    newer, older = (high, low) if nodes.created_at[high] >= nodes.created_at[low] else (low, high)
    return nodes.id_of(newer), nodes.id_of(older)


def similar_edge(source: UUID, target: UUID, similarity: float, now: datetime) -> Row:
    """A new edge between two that are alike."""
    return {
        "id": str(uuid4()),
        "source": str(source),
        "target": str(target),
        "relation": RELATION,
        "strength": similarity,
        "similarity": similarity,
        "decay_rate": DECAY_A_DAY,
        "created_by": "auto",
        "created_at": now.isoformat(),
    }


def _topics(source: UUID, target: UUID, tags: Mapping[UUID, str]) -> Row:
    """The topic of each end is its first tag, so that topics can be gathered (A20)."""
    ends = {"source_topic": tags.get(source), "target_topic": tags.get(target)}
    return {end: None if tag is None else f"tag:{tag}" for end, tag in ends.items()}


POLICY = Policy(
    name="link_similar",
    about="Memories that say similar things are linked.",
    risk=Risk.LOW,
    options=Options,
    propose=propose,
    short="link",
    says="Linked {linked} pairs",
    every_minutes=1440,
    recheck=recheck,
    rechecks_the_graph_alone=True,
)
