"""Topics: the nodes that bear a topic key, gathered from the edges that name it (A20-A22).

An edge puts its source under its source's key and its target under its target's. Groups whose members bear much the
same keys become one topic, named by the largest of them. Topics are metadata: gathering reads, and alters nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.arrays import EdgeColumns, components, pair_codes
from recollect.graph.rules.lists import Lists, begins, counted, distinct, listed, stretches

Ints = NDArray[np.int64]

FULL, PREFIX = "full", "prefix"
KEYS = (FULL, PREFIX)
MIN_CLUSTER_SIZE = 3
OVERLAP = 0.4

# So many numbers are looked at in one go: enough for speed, little enough for memory.
STRETCH = 500_000


@dataclass(frozen=True, kw_only=True, slots=True)
class GatheredTopics:
    """A topic as it was found: its members are numbers of nodes, ascending."""

    key: str
    members: Ints
    internal_edges: int

    @property
    def connectivity(self) -> float:
        """A22: how many of the possible pairs of members are joined."""
        count = len(self.members)
        return self.internal_edges / (count * (count - 1) / 2) if count > 1 else 0.0


def gathered(
    columns: EdgeColumns, *, min_size: int = MIN_CLUSTER_SIZE, overlap: float | None = OVERLAP, key: str = FULL
) -> list[GatheredTopics]:
    """All topics of the graph, by key."""
    names, bearers = _bearers(columns, key)
    topic_of = np.arange(len(names)) if overlap is None else _joined(bearers, overlap, len(columns.nodes))
    members = _members(bearers, topic_of, len(columns.nodes))
    large = np.flatnonzero(members.lengths >= min_size)
    members = _only(members, large)
    inside = _internal_edges(columns, members)
    named = _names(names, bearers.lengths, topic_of)
    topics = [
        GatheredTopics(key=named[topic], members=members[number], internal_edges=int(inside[number]))
        for number, topic in enumerate(large.tolist())
    ]
    return sorted(topics, key=lambda topic: topic.key)


def prefix_of(key: str) -> str:
    """`tag:react-hooks` is about `tag:react`. The name of a domain is one name, however many hyphens it has."""
    kind, colon, name = key.partition(":")
    if not colon or kind == "dom":
        return key
    return f"{kind}:{name.split('-')[0] or name}"


def _bearers(columns: EdgeColumns, key: str) -> tuple[list[str], Lists]:
    """The keys, and for each of them the nodes that bear it."""
    spoken = [prefix_of(topic) if key == PREFIX else topic for topic in columns.topics]
    names = sorted(set(spoken))
    number = {name: index for index, name in enumerate(names)}
    place_of = np.array([number[name] for name in spoken], dtype=np.int64)
    size = len(columns.nodes)
    sides = ((columns.source_topic, columns.source), (columns.target_topic, columns.target))
    codes = [place_of[topic[topic >= 0]] * size + node[topic >= 0] for topic, node in sides]
    return names, _decoded(distinct(np.concatenate(codes), below=max(1, len(names) * size)), len(names), size)


def _decoded(codes: Ints, rows: int, size: int) -> Lists:
    """Lists from ordered numbers that hold row * size + value."""
    return listed(codes // max(1, size), codes % max(1, size), rows)


def _rows(lists: Lists) -> Ints:
    return np.repeat(np.arange(len(lists)), lists.lengths)


def _turned(lists: Lists, size: int) -> Lists:
    """For each value the rows that hold it."""
    codes = np.sort(lists.values * max(1, len(lists)) + _rows(lists))
    return _decoded(codes, size, len(lists))


def _joined(bearers: Lists, overlap: float, nodes: int) -> Ints:
    """For each key the smallest key of its topic: groups join whose members bear much the same keys (A21)."""
    beside = _keys_beside(bearers, nodes)
    blocks = components(len(beside), _rows(beside), beside.values)
    topic_of = np.arange(len(beside))
    costs = np.bincount(_rows(beside), weights=beside.lengths[beside.values], minlength=len(beside))
    for keys in stretches(costs.astype(np.int64), STRETCH):
        open_ = keys[_is_open(topic_of, blocks)[keys]]
        if len(open_):
            a, b = _near(beside, open_, overlap)
            topic_of = components(len(beside), topic_of[a], topic_of[b])[topic_of]
    return topic_of


def _keys_beside(bearers: Lists, nodes: int) -> Lists:
    """For each key all the keys that its members bear, itself among them."""
    keys = len(bearers)
    borne = _turned(bearers, nodes)
    # A member that bears one key alone brings no other.
    several = np.flatnonzero(borne.lengths[bearers.values] > 1)
    own, members = _rows(bearers)[several], bearers.values[several]
    codes = [np.arange(keys) * (keys + 1)]
    for stretch in stretches(borne.lengths[members], STRETCH):
        others, owner = borne.of(members[stretch])
        codes.append(distinct(own[stretch][owner] * keys + others, below=keys * keys))
    return _decoded(distinct(np.concatenate(codes), below=max(1, keys * keys)), keys, keys)


def _is_open(topic_of: Ints, blocks: Ints) -> NDArray[np.bool_]:
    """Keys that may still join another: not all that they could reach is one topic already."""
    open_ = np.zeros(len(blocks), dtype=np.bool_)
    open_[blocks[topic_of != blocks]] = True
    return open_[blocks]


def _near(beside: Lists, keys: Ints, overlap: float) -> tuple[Ints, Ints]:
    """Pairs (a of `keys`, any b) of which the sets of keys beside them overlap enough.

    A key is beside another as the other is beside it; so b meets the keys beside a as often as they share one.
    """
    first, owner = beside.of(keys)
    second, through = beside.of(first)
    codes, shared = counted(owner[through] * len(beside) + second, below=len(keys) * len(beside))
    a, b = keys[codes // len(beside)], codes % len(beside)
    lengths = beside.lengths
    enough = shared / (lengths[a] + lengths[b] - shared) >= overlap
    return a[enough], b[enough]


def _members(bearers: Lists, topic_of: Ints, nodes: int) -> Lists:
    """The members of every topic: whoever bears one of its keys. Keys that name no topic have none."""
    codes = topic_of[_rows(bearers)] * nodes + bearers.values
    return _decoded(distinct(codes, below=max(1, len(bearers) * nodes)), len(bearers), nodes)


def _only(lists: Lists, rows: Ints) -> Lists:
    values, owner = lists.of(rows)
    return listed(owner, values, len(rows))


def _names(keys: list[str], bearers: Ints, topic_of: Ints) -> dict[int, str]:
    """What each topic is called: as the largest of its groups, the first in the alphabet of equals."""
    largest_last = np.lexsort((-np.arange(len(keys)), bearers))
    return {topic: keys[row] for topic, row in zip(topic_of[largest_last].tolist(), largest_last.tolist(), strict=True)}


def _internal_edges(columns: EdgeColumns, members: Lists) -> Ints:
    """How many pairs of each topic's members are joined, however many edges join them (A22)."""
    size, topics = len(columns.nodes), len(members)
    of_node = _turned(members, size)
    low, high = _joined_pairs(columns, of_node.lengths > 0)
    inside = np.zeros(topics, dtype=np.int64)
    for stretch in stretches(of_node.lengths[low] * of_node.lengths[high], STRETCH):
        lows, pair = of_node.of(low[stretch])
        highs, through = of_node.of(high[stretch][pair])
        inside += np.bincount(highs[highs == lows[through]], minlength=topics)
    return inside


def _joined_pairs(columns: EdgeColumns, inside: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The pairs of wanted nodes that an edge joins, each once."""
    codes = pair_codes(columns)[inside[columns.source] & inside[columns.target]]
    once = np.sort(codes)
    once = once[begins(once)]
    return once // max(1, len(columns.nodes)), once % max(1, len(columns.nodes))
