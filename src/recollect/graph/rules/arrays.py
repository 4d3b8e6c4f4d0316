"""The graph as arrays: which nodes hang together, and which edges hold them together.

A space's living edges are read column by column (a million of them in a few seconds), and the rules work on the
columns; only what is decided about becomes an object.

Pruning, weakest first and looking again after every removal, keeps exactly the edges of a strongest spanning forest
(every edge that is no candidate counting as stronger than any candidate): an edge may go if and only if its ends are
joined by what is stronger. So one forest answers for all candidates at once.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.lists import Lists, begins, distinct
from recollect.graph.rules.strength import DAY, current_of_all, last_active_of_all, set_at_of_all

Ints = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

COMPONENT, LEAF = "component", "leaf"
BRIDGE_RULES = (COMPONENT, LEAF)


@dataclass(frozen=True, kw_only=True, slots=True)
class EdgeColumns:
    """The living edges of a space, place by place, ordered by id. Nodes are numbered by their place in `nodes`.

    Times are seconds since 1970; NaN where there is none. `strength` is as stored, NaN where it was never said.
    Relations and topic keys are numbered by their place in `relations` and `topics`; -1 is no topic.
    """

    ids: NDArray[np.void]
    nodes: NDArray[np.void]
    source: Ints
    target: Ints
    relation: Ints
    relations: tuple[str, ...]
    strength: Numbers
    decay_rate: Numbers
    created_at: Numbers
    activated_at: Numbers
    reinforced_at: Numbers
    activation_count: Ints
    protected: Flags
    by_user: Flags
    source_topic: Ints
    target_topic: Ints
    topics: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def id_of(self, row: int) -> UUID:
        return UUID(bytes=self.ids[row].tobytes())

    def node_of(self, number: int) -> UUID:
        return UUID(bytes=self.nodes[number].tobytes())

    def names_of(self, *numbers: Ints) -> dict[int, str]:
        """The ids of some nodes as text, by number; each is written once, however many edges it has."""
        unique = distinct(np.concatenate(numbers), below=max(1, len(self.nodes)))
        return dict(zip(unique.tolist(), map(str, as_uuids(self.nodes[unique])), strict=True))

    @property
    def set_at(self) -> Numbers:
        return set_at_of_all(self.reinforced_at, self.created_at)

    def strength_at(self, now: datetime) -> Numbers:
        """The current strength of every edge."""
        return current_of_all(self.strength, self.decay_rate, self.set_at, now.timestamp())

    def idle_days_at(self, now: datetime) -> Numbers:
        """Days since every edge was last active; NaN where that is not known."""
        return (now.timestamp() - last_active_of_all(self.activated_at, self.reinforced_at, self.created_at)) / DAY

    def places_of(self, ids: NDArray[np.void]) -> Ints:
        """Where some edges are; -1 for those that are not among them."""
        return places_in(self.ids, ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruning:
    """Which candidates go, weakest first, and which stay, by the rule that keeps them.

    `leaf`: an end would be left without any edge. `splits`: nodes that hang together would no longer.
    """

    removed: Ints
    kept: dict[str, Ints]


def as_ids(ids: list[UUID]) -> NDArray[np.void]:
    """Ids as a column."""
    return np.frombuffer(b"".join(id_.bytes for id_ in ids), dtype="V16")


def as_uuids(ids: NDArray[np.void]) -> list[UUID]:
    """A column of ids as objects."""
    raw = ids.tobytes()
    return [UUID(bytes=raw[start : start + 16]) for start in range(0, len(raw), 16)]


def places_in(ordered: NDArray[np.void], ids: NDArray[np.void]) -> Ints:
    """Where some ids are in an ordered column of ids; -1 for those that are not there."""
    if not len(ordered):
        return np.full(len(ids), -1)
    places = np.searchsorted(as_text(ordered), as_text(ids)).clip(max=len(ordered) - 1)
    return np.where(ordered[places] == ids, places, -1)


def as_text(ids: NDArray[np.void]) -> NDArray[np.bytes_]:
    """Ids as numpy orders them fastest; the order is the same."""
    return np.ascontiguousarray(ids).view("S16")


def components(size: int, a: Ints, b: Ints) -> Ints:
    """For each of `size` nodes, the smallest node of those it hangs together with by the edges (a, b).

    Every root takes the smallest root next to it as its parent, chains are flattened, and edges inside one component
    are forgotten; a few rounds do.
    """
    parent = np.arange(size)
    while len(a):
        np.minimum.at(parent, np.maximum(a, b), np.minimum(a, b))
        parent = _flattened(parent)
        a, b = parent[a], parent[b]
        apart = a != b
        a, b = a[apart], b[apart]
    return parent


def _flattened(parent: Ints) -> Ints:
    """Everyone's parent's parent's ... parent, by jumping twice as far each time."""
    while True:
        further = parent[parent]
        if np.array_equal(further, parent):
            return parent
        parent = further


def spanning_forest(size: int, a: Ints, b: Ints) -> Flags:
    """Which of the edges (a, b) hold together all that they join, later edges preferred to earlier ones (Boruvka).

    In every round each component takes the last edge that leads out of it. No two edges are equally good, so this
    never closes a circle.
    """
    in_forest = np.zeros(len(a), dtype=np.bool_)
    edges = np.flatnonzero(a != b)
    a, b = a[edges], b[edges]
    while len(edges):
        last = np.full(size, -1)
        np.maximum.at(last, a, np.arange(len(a)))
        np.maximum.at(last, b, np.arange(len(b)))
        chosen = last[last >= 0]
        in_forest[edges[chosen]] = True
        joined = components(size, a[chosen], b[chosen])
        a, b = joined[a], joined[b]
        apart = a != b
        edges, a, b = edges[apart], a[apart], b[apart]
    return in_forest


def prunable(columns: EdgeColumns, weakest_first: Ints, *, bridge_rule: str = COMPONENT) -> Pruning:
    """Which candidates can go so that no node loses its last edge and no component falls apart (A06, A08)."""
    if bridge_rule == LEAF:
        return _prunable_by_degree(columns, weakest_first)
    holding = _holding(columns, weakest_first)
    removed, stays = weakest_first[~holding], weakest_first[holding]
    # A bridge that is the only edge of an end when it is looked at is so to the last: whatever else that end had
    # could not all have gone. So the degrees that are left tell the two rules apart.
    degree = _degrees(columns, without=removed)
    leaf = np.minimum(degree[columns.source[stays]], degree[columns.target[stays]]) <= 1
    return Pruning(removed=removed, kept={"leaf": stays[leaf], "splits": stays[~leaf]})


def _holding(columns: EdgeColumns, weakest_first: Ints) -> Flags:
    """Which candidates hold something together that nothing stronger does."""
    firm = np.ones(len(columns), dtype=np.bool_)
    firm[weakest_first] = False
    size = len(columns.nodes)
    joined = components(size, columns.source[firm], columns.target[firm])
    return spanning_forest(size, joined[columns.source[weakest_first]], joined[columns.target[weakest_first]])


def _prunable_by_degree(columns: EdgeColumns, weakest_first: Ints) -> Pruning:
    """The literal rule: an edge stays only if it is the last one of an end."""
    degree: list[int] = _degrees(columns).tolist()
    gone = np.zeros(len(weakest_first), dtype=np.bool_)
    ends = zip(columns.source[weakest_first].tolist(), columns.target[weakest_first].tolist(), strict=True)
    for number, (source, target) in enumerate(ends):
        if degree[source] > 1 and degree[target] > 1:
            gone[number] = True
            degree[source] -= 1
            degree[target] -= 1
    return Pruning(removed=weakest_first[gone], kept={"leaf": weakest_first[~gone], "splits": weakest_first[:0]})


def _degrees(columns: EdgeColumns, *, without: Ints | None = None) -> Ints:
    """How many edges every node has, some left aside."""
    size = len(columns.nodes)
    degree = np.bincount(columns.source, minlength=size) + np.bincount(columns.target, minlength=size)
    if without is not None:
        degree -= np.bincount(columns.source[without], minlength=size)
        degree -= np.bincount(columns.target[without], minlength=size)
    return degree


def pair_codes(columns: EdgeColumns) -> Ints:
    """One number for the two ends of every edge, whichever way it points."""
    low, high = np.minimum(columns.source, columns.target), np.maximum(columns.source, columns.target)
    return low * len(columns.nodes) + high


def parallel_edges(columns: EdgeColumns) -> Lists:
    """The edges that share both their ends with another, a list of places a pair of ends (A13)."""
    codes = pair_codes(columns)
    order = np.argsort(codes)
    first = begins(codes[order])
    starts = np.append(np.flatnonzero(first), len(codes))
    several = np.diff(starts) > 1
    places = order[np.repeat(several, np.diff(starts))]
    return Lists(starts=np.append(0, np.cumsum(np.diff(starts)[several])), values=places)
