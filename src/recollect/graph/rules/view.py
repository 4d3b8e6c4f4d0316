"""Which part of a graph is looked at: what is around some nodes, what is best connected, and the edges in between.

A whole graph is a hairball; a person sees something in a few hundred nodes. Of more than there is room for, the most
strongly linked are taken, so that the same look shows the same part.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import rustworkx as rx

from recollect.graph.rules.arrays import EdgeColumns, Flags, Ints, Numbers, pair_codes


def bridges(columns: EdgeColumns) -> Flags:
    """Which edges alone hold something together: without it a node would be alone, or a component fall apart (A06).

    An edge with a living parallel twin is none.
    """
    codes, first, count = np.unique(pair_codes(columns), return_index=True, return_counts=True)
    graph = rx.PyGraph(multigraph=False)
    graph.add_nodes_from([None] * len(columns.nodes))
    graph.add_edges_from_no_data(list(zip(columns.source[first].tolist(), columns.target[first].tolist(), strict=True)))
    ends = np.array([sorted(ends) for ends in rx.bridges(graph)], dtype=np.int64).reshape(-1, 2)
    alone = np.isin(codes, ends[:, 0] * len(columns.nodes) + ends[:, 1]) & (count == 1)
    flags = np.zeros(len(columns), dtype=np.bool_)
    flags[first[alone]] = True
    return flags


def degrees(columns: EdgeColumns) -> Ints:
    return np.bincount(np.concatenate((columns.source, columns.target)), minlength=len(columns.nodes))


def around(columns: EdgeColumns, strength: Numbers, focus: Ints, *, hops: int, limit: int) -> Ints:
    """Some nodes and what is within so many hops of them: nearest first, of those as near the most strongly linked."""
    reach = np.zeros(len(columns.nodes))
    reach[focus] = 1.0
    seen = [focus]
    for _ in range(hops):
        numbers = np.concatenate(seen)
        if len(numbers) >= limit:
            break
        new = _next(columns, numbers)
        reach[new] = _carried(columns, strength, reach)[new]
        seen.append(new[np.lexsort((new, -reach[new]))])
    return np.concatenate(seen)[: max(limit, len(focus))]


def _next(columns: EdgeColumns, numbers: Ints) -> Ints:
    """The nodes that are linked with what is known, and not known yet."""
    inside = np.zeros(len(columns.nodes), dtype=np.bool_)
    inside[numbers] = True
    ahead, back = inside[columns.source], inside[columns.target]
    return np.setdiff1d(np.concatenate((columns.target[ahead], columns.source[back])), numbers)


def _carried(columns: EdgeColumns, strength: Numbers, reach: Numbers) -> Numbers:
    """What reaches every node over one edge, by the strongest way."""
    carried = np.zeros(len(columns.nodes))
    np.maximum.at(carried, columns.target, reach[columns.source] * strength)
    np.maximum.at(carried, columns.source, reach[columns.target] * strength)
    return carried


def overview(columns: EdgeColumns, groups: Iterable[Ints], *, limit: int) -> Ints:
    """Of every group its best connected nodes, in turn; where there is room, the best connected of all others."""
    degree = degrees(columns)
    ranked = [group[np.lexsort((group, -degree[group]))] for group in groups]
    share = max(1, limit // max(1, len(ranked)))
    of_all = np.lexsort((np.arange(len(degree)), -degree))
    return distinct([*(group[:share] for group in ranked), *(group[share:] for group in ranked), of_all])[:limit]


def distinct(parts: Sequence[Ints]) -> Ints:
    """All of them once, in their order."""
    together = np.concatenate(parts)
    _, first = np.unique(together, return_index=True)
    return together[np.sort(first)]


def edges_among(columns: EdgeColumns, nodes: Ints) -> Ints:
    """The places of the edges that begin and end within some nodes."""
    inside = np.zeros(len(columns.nodes), dtype=np.bool_)
    inside[nodes] = True
    return np.flatnonzero(inside[columns.source] & inside[columns.target])
