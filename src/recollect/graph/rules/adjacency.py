"""The graph as activation walks it: from a node at once to all its edges, and kept current without starting over.

The bulk is wired once and never altered. Edges that changed since are wired beside it, few and quickly, and the old
ones they stand for are marked as gone; when they are no longer few, everything is wired anew. Strengths are kept as
they were set, so that what is walked is always the strength of the moment.
"""

from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.graph.rules.arrays import EdgeColumns, Flags, Ints, Numbers, as_ids, as_text, as_uuids, places_in
from recollect.graph.rules.lists import places_of, starts_of
from recollect.graph.rules.strength import current_of_all

Small = NDArray[np.int32]

# So many changed edges are kept beside the bulk, or this share of it, before everything is wired anew.
FEW = 2_000
SHARE = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """What activation has to know of edges, ordered by id. Ends are numbers of nodes."""

    ids: NDArray[np.void]
    source: Ints
    target: Ints
    relation: Ints
    strength: Numbers
    decay_rate: Numbers
    set_at: Numbers

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, rows: Flags | Ints) -> "Links":
        return Links(**{name: getattr(self, name)[rows] for name in Links.__slots__})

    def and_(self, other: "Links") -> "Links":
        both = {name: np.concatenate((getattr(self, name), getattr(other, name))) for name in Links.__slots__}
        return Links(**both).only(np.argsort(as_text(both["ids"]), kind="stable"))

    def at(self, places: Ints, now: float) -> Numbers:
        """How strong some of them are now."""
        return current_of_all(self.strength[places], self.decay_rate[places], self.set_at[places], now)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wiring:
    """Links at both their ends: of node n, from starts[n] to starts[n + 1], its links and whom they lead to."""

    links: Links
    starts: Ints
    link: Small
    neighbour: Small


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """Ways out of some nodes: from which of them, to whom, by which edge and relation, and how strong it is now."""

    from_: Ints
    to: Ints
    edge: Ints
    relation: Ints
    strength: Numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class Adjacency:
    """The living edges of a space from both their ends.

    Nodes are numbered by their place in `nodes` (ordered by id), and those that came later by their place in `newer`
    behind them. Edges are numbered by their place in `bulk`, and those that changed later by their place in `changed`
    behind them.
    """

    nodes: NDArray[np.void]
    newer: NDArray[np.void]
    relations: tuple[str, ...]
    bulk: Wiring
    gone: Flags
    changed: Wiring

    def __len__(self) -> int:
        """How many edges live."""
        return len(self.bulk.links) - int(np.count_nonzero(self.gone)) + len(self.changed.links)

    def __contains__(self, node: object) -> bool:
        """Whether a node has an edge: one without any is not in the adjacency (A09)."""
        if not isinstance(node, UUID):
            return False
        number = self.numbers_of(as_ids([node]))
        return bool(number[0] >= 0 and len(self.steps_from(number, now=0.0).to))

    @property
    def size(self) -> int:
        """How many nodes have a number."""
        return len(self.nodes) + len(self.newer)

    def numbers_of(self, ids: NDArray[np.void]) -> Ints:
        """The numbers of some nodes; -1 for those that have none."""
        numbers = places_in(self.nodes, ids)
        if not len(self.newer):
            return numbers
        order = np.argsort(as_text(self.newer))
        later = places_in(self.newer[order], ids)
        return np.where(later >= 0, len(self.nodes) + order[later], numbers)

    def nodes_of(self, numbers: Ints) -> list[UUID]:
        return _named(self.nodes, self.newer, numbers)

    def edges_of(self, numbers: Ints) -> list[UUID]:
        return _named(self.bulk.links.ids, self.changed.links.ids, numbers)

    def steps_from(self, nodes: Ints, now: float) -> Steps:
        """Every way out of some nodes; `from_` is a place in what was asked for."""
        rows, from_ = places_of(self.bulk.starts, nodes)
        lives = ~self.gone[self.bulk.link[rows]]
        old = _steps(self.bulk, rows[lives], from_[lives], now, ahead=0)
        if not len(self.changed.links):
            return old
        rows, from_ = places_of(self.changed.starts, nodes)
        return _both(old, _steps(self.changed, rows, from_, now, ahead=len(self.bulk.links)))


def adjacency_of(columns: EdgeColumns) -> Adjacency:
    """The adjacency of a whole graph."""
    numbers = np.arange(len(columns.nodes))
    return _wired_anew(columns.nodes, columns.relations, _links(columns, numbers, columns.relation))


def updated(adjacency: Adjacency, changed: EdgeColumns, active: Flags) -> Adjacency:
    """The adjacency after some edges changed, came, or (where not `active`) went."""
    if not len(changed):
        return adjacency
    adjacency, numbers = _with_nodes(adjacency, changed, active)
    relations, relation = _with_relations(adjacency.relations, changed)
    unchanged = adjacency.changed.links.only(~np.isin(as_text(adjacency.changed.links.ids), as_text(changed.ids)))
    links = unchanged.and_(_links(changed, numbers, relation).only(active))
    gone = adjacency.gone.copy()
    places = places_in(adjacency.bulk.links.ids, changed.ids)
    gone[places[places >= 0]] = True
    if len(links) + np.count_nonzero(gone) > max(FEW, SHARE * len(gone)):
        nodes = np.concatenate((adjacency.nodes, adjacency.newer))
        return _wired_anew(nodes, relations, adjacency.bulk.links.only(~gone).and_(links))
    return replace(adjacency, relations=relations, gone=gone, changed=_wired(links, adjacency.size))


def _named(old: NDArray[np.void], new: NDArray[np.void], numbers: Ints) -> list[UUID]:
    """Ids by number, those of `new` numbered behind those of `old`."""
    later = numbers >= len(old)
    ids = np.empty(len(numbers), dtype="V16")
    ids[~later] = old[numbers[~later]]
    ids[later] = new[numbers[later] - len(old)]
    return as_uuids(ids)


def _steps(wiring: Wiring, rows: Ints, from_: Ints, now: float, *, ahead: int) -> Steps:
    links = wiring.link[rows].astype(np.int64)
    return Steps(
        from_=from_,
        to=wiring.neighbour[rows].astype(np.int64),
        edge=links + ahead,
        relation=wiring.links.relation[links],
        strength=wiring.links.at(links, now),
    )


def _both(steps: Steps, other: Steps) -> Steps:
    return Steps(**{name: np.concatenate((getattr(steps, name), getattr(other, name))) for name in Steps.__slots__})


def _links(columns: EdgeColumns, numbers: Ints, relation: Ints) -> Links:
    """Edges as they were read, with other numbers for their nodes and relations."""
    return Links(
        ids=columns.ids,
        source=numbers[columns.source],
        target=numbers[columns.target],
        relation=relation,
        strength=columns.strength,
        decay_rate=columns.decay_rate,
        set_at=columns.set_at,
    )


def _with_nodes(adjacency: Adjacency, changed: EdgeColumns, active: Flags) -> tuple[Adjacency, Ints]:
    """The adjacency with a number for every end of a living changed edge, and the numbers of the changes' nodes."""
    numbers = adjacency.numbers_of(changed.nodes)
    ends = np.zeros(len(numbers), dtype=np.bool_)
    ends[changed.source[active]] = True
    ends[changed.target[active]] = True
    new = np.flatnonzero(ends & (numbers < 0))
    if not len(new):
        return adjacency, numbers
    numbers[new] = adjacency.size + np.arange(len(new))
    newer = np.concatenate((adjacency.newer, changed.nodes[new]))
    starts = np.append(adjacency.bulk.starts, np.full(len(new), adjacency.bulk.starts[-1]))
    return replace(adjacency, newer=newer, bulk=replace(adjacency.bulk, starts=starts)), numbers


def _with_relations(earlier: tuple[str, ...], changed: EdgeColumns) -> tuple[tuple[str, ...], Ints]:
    """All relations, and the changes' relations by their places among all."""
    relations = (*earlier, *(relation for relation in changed.relations if relation not in earlier))
    places = np.array([relations.index(relation) for relation in changed.relations], dtype=np.int64)
    return relations, places[changed.relation]


def _wired_anew(nodes: NDArray[np.void], relations: tuple[str, ...], links: Links) -> Adjacency:
    """Everything in one bulk, its nodes numbered by id, nothing beside it."""
    order = np.argsort(as_text(nodes))
    number = np.empty(len(nodes), dtype=np.int64)
    number[order] = np.arange(len(nodes))
    links = replace(links, source=number[links.source], target=number[links.target])
    gone = np.zeros(len(links), dtype=np.bool_)
    return Adjacency(
        nodes=nodes[order],
        newer=nodes[:0],
        relations=relations,
        bulk=_wired(links, len(nodes)),
        gone=gone,
        changed=_wired(links.only(gone), len(nodes)),
    )


def _wired(links: Links, size: int) -> Wiring:
    """Links listed at both their ends, by number of node."""
    count = max(1, len(links))
    ends = np.concatenate((links.source, links.target))
    # Ordered as one number (node, place): much quicker than asking for the order.
    rows = np.sort(ends * (2 * count) + np.arange(len(ends))) % (2 * count)
    others = np.concatenate((links.target, links.source)).astype(np.int32)
    return Wiring(
        links=links, starts=starts_of(ends, size), link=(rows % count).astype(np.int32), neighbour=others[rows]
    )
