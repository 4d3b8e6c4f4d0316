"""Where the dots of a picture go: near what they are linked to, apart from each other, the same on every run.

Each component gets a cell of the frame, as large as its share of the dots. Inside it, a chain runs to and fro like the
lines of a page, the leaves of a large star stand on rays, dots without links in rows, and all else is arranged so that
distances in the picture follow the distances in the graph (stress majorisation: every step brings the one nearer to
the other); boxes that still overlap, label included, are then pushed apart.

No chance is involved: the start is computed from the graph itself.
"""

from collections.abc import Sequence

import numpy as np
import rustworkx as rx
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]
Cell = tuple[float, float, float, float]  # left, top, width, height

ASPECT = 1.25
SMALLEST_FRAME = 90_000.0  # square units of the picture
LARGEST_FRAME = 800_000.0
ROOM = 1.8  # the frame has this many times the area of all boxes
MARGIN = 0.25  # of a box: a label near the rim can stand on the other side, or reach over it
MOST_STRETCHED = 4.0  # one way, against the other
LONG_CHAIN = 7
LARGE_STAR = 16
RAYS = (1.0, 0.58, 0.8)
STEPS = 60
STIRRED = 0.5
PUSHES = 120
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def arranged(pairs: Pairs, sizes: Floats, aspect: float = ASPECT) -> Floats:
    """The centre of each box, given the linked pairs by number, the size of each box, and width / height of it all."""
    count = len(sizes)
    if count == 0:
        return np.zeros((0, 2))
    frame = _frame(sizes, aspect)
    places = np.zeros((count, 2))
    parts = _parts(count, pairs)
    for part, cell in zip(parts, _cells([len(part) for part in parts], frame), strict=True):
        places[part] = _in_cell(part, pairs, sizes, cell)
    return places


def _frame(sizes: Floats, aspect: float) -> tuple[float, float]:
    """Width and height that leave every box its room, between the smallest and the largest frame."""
    area = min(max(ROOM * float(np.prod(sizes, axis=1).sum()), SMALLEST_FRAME), LARGEST_FRAME)
    return float(np.sqrt(area * aspect)), float(np.sqrt(area / aspect))


# Parts: the components, largest first; all dots without a link count as one part, the last.


def _parts(count: int, pairs: Pairs) -> list[list[int]]:
    graph = rx.PyGraph()
    graph.add_nodes_from([None] * count)
    graph.add_edges_from_no_data(list(pairs))
    components = sorted((sorted(part) for part in rx.connected_components(graph)), key=lambda part: (-len(part), part))
    alone = [part[0] for part in components if len(part) == 1]
    return [part for part in components if len(part) > 1] + ([alone] if alone else [])


def _cells(counts: Sequence[int], frame: tuple[float, float]) -> list[Cell]:
    """One cell a part: the frame is cut again and again across its longer side, by the numbers of dots."""
    return _split([float(count) for count in counts], (0.0, 0.0, *frame))


def _split(weights: list[float], cell: Cell) -> list[Cell]:
    if len(weights) <= 1:
        return [cell] * len(weights)
    cut = _halfway(weights)
    share = sum(weights[:cut]) / sum(weights)
    left, top, width, height = cell
    if width >= height * ASPECT / 2:
        first, second = (left, top, width * share, height), (left + width * share, top, width * (1 - share), height)
    else:
        first, second = (left, top, width, height * share), (left, top + height * share, width, height * (1 - share))
    return _split(weights[:cut], first) + _split(weights[cut:], second)


def _halfway(weights: list[float]) -> int:
    sums = np.cumsum(weights)
    return int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2))) + 1


# Inside a cell.


def _in_cell(part: list[int], pairs: Pairs, sizes: Floats, cell: Cell) -> Floats:
    number = {dot: index for index, dot in enumerate(part)}
    links = sorted({tuple(sorted((number[a], number[b]))) for a, b in pairs if a in number and a != b})
    inner = _without_margin(cell, sizes[part])
    if not links:
        return _in_rows(len(part), inner, to_and_fro=False)
    linked = np.zeros((len(part), len(part)), dtype=bool)
    linked[tuple(np.array(links).T)] = True
    linked |= linked.T
    chain = _chain(linked)
    if len(chain) > LONG_CHAIN:
        return _in_rows(len(part), inner, to_and_fro=True)[np.argsort(chain)]
    hub = _hub(linked)
    if hub is not None and len(part) > LARGE_STAR:
        return _in_rays(len(part), hub, inner)
    return _pushed_apart(_fitted(_by_distance(linked), inner), sizes[part], inner)


def _without_margin(cell: Cell, sizes: Floats) -> Cell:
    left, top, width, height = cell
    across, down = np.minimum(sizes.max(axis=0) * MARGIN, (width * 0.2, height * 0.2))
    return left + across, top + down, width - 2 * across, height - 2 * down


def _in_rows(count: int, cell: Cell, *, to_and_fro: bool) -> Floats:
    """Places in rows; to and fro, every second row runs backwards, so that neighbours stay neighbours."""
    left, top, width, height = cell
    columns = max(1, min(count, round(np.sqrt(count * max(width, 1.0) / max(height, 1.0) / 1.2))))
    rows = -(-count // columns)
    row, column = np.divmod(np.arange(count), columns)
    if to_and_fro:
        column = np.where(row % 2, columns - 1 - column, column)
    x = left + (width * column / (columns - 1) if columns > 1 else np.full(count, width / 2))
    y = top + (height * row / (rows - 1) if rows > 1 else np.full(count, height / 2))
    return np.stack([x, y], axis=1)


def _chain(linked: NDArray[np.bool_]) -> list[int]:
    """The dots from one end to the other, if this part is a chain; else nothing."""
    degrees = linked.sum(axis=1)
    if degrees.max() > 2 or (degrees == 1).sum() != 2:
        return []
    order = [int(np.argmax(degrees == 1))]
    while len(order) < len(linked):
        onward = [int(dot) for dot in np.flatnonzero(linked[order[-1]]) if dot not in order[-2:]]
        if not onward:  # the other end, and there are dots beside the chain
            return []
        order.append(onward[0])
    return order


def _hub(linked: NDArray[np.bool_]) -> int | None:
    """The dot that all others hang on, if this part is a star."""
    degrees = linked.sum(axis=1)
    hub = int(np.argmax(degrees))
    return hub if degrees[hub] == len(linked) - 1 and degrees.sum() == 2 * degrees[hub] else None


def _in_rays(count: int, hub: int, cell: Cell) -> Floats:
    """The hub in the middle, every other dot on a ray of its own; neighbouring rays differ in length."""
    left, top, width, height = cell
    rays = np.arange(count - 1)
    turn = 2 * np.pi * (rays + 0.5) / (count - 1)
    length = np.array(RAYS)[rays % len(RAYS)]
    leaves = np.stack([width / 2 * length * np.cos(turn), height / 2 * length * np.sin(turn)], axis=1)
    places: Floats = np.insert(leaves, hub, 0.0, axis=0) + np.array([left + width / 2, top + height / 2])
    return places


def _by_distance(linked: NDArray[np.bool_]) -> Floats:
    """Places whose distances follow the distances in the graph, near ones counting most."""
    distances = _wanted_distances(linked)
    weights = np.where(np.eye(len(distances), dtype=bool), 0.0, 1 / np.maximum(distances, 1e-9) ** 2)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    solved = np.linalg.inv(laplacian + 1 / len(distances))
    pulls = -weights * distances
    places = _start(distances)
    for _ in range(STEPS):
        pull = pulls / _apart(places)
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = solved @ (pull @ places)
    return places


def _apart(places: Floats) -> Floats:
    """The distance between each two places, never quite 0."""
    x, y = places.T
    apart: Floats = np.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)
    return apart + 1e-6


def _wanted_distances(linked: NDArray[np.bool_]) -> Floats:
    """Shortest ways between all dots. A link between dots with few neighbours in common is longer: hubs get room."""
    near = (linked | np.eye(len(linked), dtype=bool)).astype(float)
    shared = near @ near
    own = np.diag(shared)
    differing = own[:, None] + own[None] - 2 * shared
    lengths = np.where(linked, 1 + 0.5 * np.sqrt(np.maximum(differing, 0.0)), 0.0)
    return rx.floyd_warshall_numpy(rx.PyGraph.from_adjacency_matrix(lengths), float)


def _start(distances: Floats) -> Floats:
    """Along two axes between dots that lie far apart, stirred a little so that dots that are alike do not coincide."""
    dot = int(distances[0].argmax())
    other = int(distances[dot].argmax())
    third = int(np.minimum(distances[dot], distances[other]).argmax())
    fourth = int(distances[third].argmax())
    axes = np.stack([_along(distances, dot, other), _along(distances, third, fourth)], axis=1)
    numbers = np.arange(len(distances))
    spiral = np.stack([np.cos(GOLDEN_ANGLE * numbers), np.sin(GOLDEN_ANGLE * numbers)], axis=1)
    start: Floats = axes + STIRRED * distances.mean() * np.sqrt((numbers[:, None] + 0.5) / len(numbers)) * spiral
    return start


def _along(distances: Floats, dot: int, other: int) -> Floats:
    """How far each dot lies along the way from one to the other, by its distances to both (the law of cosines)."""
    between = max(float(distances[dot, other]), 1e-9)
    along: Floats = (distances[dot] ** 2 - distances[other] ** 2 + between**2) / (2 * between)
    return along


def _fitted(places: Floats, cell: Cell) -> Floats:
    """Turned so that the longest extent lies along the longer side, and stretched to the cell, within reason."""
    left, top, width, height = cell
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ _facing(axes, centred).T
    turned = turned if width >= height else turned[:, ::-1]
    middle, extent = (turned.max(axis=0) + turned.min(axis=0)) / 2, np.maximum(np.ptp(turned, axis=0), 1e-6)
    scale = np.array([width, height]) / extent
    scale = np.minimum(scale, MOST_STRETCHED * scale.min())
    fitted: Floats = (turned - middle) * scale + np.array([left + width / 2, top + height / 2])
    return fitted


def _facing(axes: Floats, centred: Floats) -> Floats:
    """The axes with their signs settled: the farthest dot lies to the right, and above."""
    along = centred @ axes.T
    farthest = along[np.abs(along).argmax(axis=0), np.arange(2)]
    return axes * np.where(farthest < 0, -1.0, 1.0)[:, None]


def _pushed_apart(places: Floats, sizes: Floats, cell: Cell) -> Floats:
    """Overlapping boxes moved apart, each pair the shorter way; their centres stay in the cell."""
    least_x, least_y = ((side[:, None] + side) / 2 for side in sizes.T)
    first, last = np.array(cell[:2]), np.array(cell[:2]) + np.array(cell[2:])
    for _ in range(PUSHES):
        x, y = places.T
        meets = (np.abs(x[:, None] - x) < least_x - 0.5) & (np.abs(y[:, None] - y) < least_y - 0.5)
        dot, other = np.nonzero(np.triu(meets, k=1))
        if len(dot) == 0:
            break
        push = _push(places[dot] - places[other], np.stack([least_x[dot, other], least_y[dot, other]], axis=1))
        np.add.at(places, dot, push)
        np.add.at(places, other, -push)
        places = np.clip(places, first, last)
    return places


def _push(apart: Floats, least: Floats) -> Floats:
    """How far the first of each pair moves: a part of the overlap, along the side where that is shorter."""
    overlap = least - np.abs(apart)
    shorter = np.argmin(overlap, axis=1)[:, None] == np.arange(2)
    direction = np.where(apart < 0, -1.0, 1.0)
    push: Floats = np.where(shorter, 0.35 * overlap * direction, 0.0)
    return push
