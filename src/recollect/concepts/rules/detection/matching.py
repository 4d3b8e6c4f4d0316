"""The best match for one new concept (C19): a concept that duplicates another is not made a second time.

The same bounds as in compare, for one row: a product with the names of like length, then a look at the few that remain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.concepts.rules.detection.blocks import Blocks, project
from recollect.concepts.rules.detection.columns import Ints, Matrix, unit_rows
from recollect.concepts.rules.detection.compare import MARGIN, Bounds, band, products_with_one
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.concepts.rules.detection.keeper import keeper_rank
from recollect.concepts.rules.similarity import (
    BARE,
    WEIGHTS,
    Factors,
    FactorWeights,
    Name,
    Traits,
    compare,
    likeness,
    name_of,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """The concept that a new one duplicates."""

    row: int
    factors: Factors

    @property
    def is_certain(self) -> bool:
        """No doubts, but that little may be known: to give the same name twice is to mean the same."""
        return not set(self.factors.doubts) - {BARE}


def best_match(
    one: Traits,
    kind: int,
    blocks: Blocks,
    threshold: float = THRESHOLD,
    *,
    weights: FactorWeights = WEIGHTS,
    is_apart: Callable[[int], bool] = lambda row: False,
) -> Match | None:
    """The best of the type `kind` that reaches the threshold: certain ones first, then by score, then as a keeper.

    `is_apart` says which rows must never be taken for it (C21).
    """
    name = name_of(one.name)
    best: Match | None = None
    for place, cosine in nearest_first(one, name, kind, blocks, Bounds(threshold=threshold, weights=weights)):
        if best and best.is_certain and is_out_of_reach(cosine, 1.0, best.factors.score, weights):
            break
        alike = max(likeness(name.plain, blocks.plain[place]), likeness(name.ordered, blocks.ordered[place]))
        row = int(blocks.rows[place])
        if is_out_of_reach(cosine, alike, threshold, weights) or is_apart(row):
            continue
        match = Match(row=row, factors=compare(one, blocks.concepts.traits(row), weights))
        if match.factors.score >= threshold and (not best or rank(match, blocks) < rank(best, blocks)):
            best = match
    return best


def rank(match: Match, blocks: Blocks) -> tuple[object, ...]:
    """The lowest is the best match."""
    return (not match.is_certain, -match.factors.score, *keeper_rank(blocks.concepts, match.row))


def is_out_of_reach(cosine: float, name: float, wanted: float, weights: FactorWeights) -> bool:
    """Whether not even equal metadata could lift a pair to what is wanted."""
    return weights.cosine * min(max(cosine, 0.0), 1.0) + weights.name * name + weights.metadata < wanted - MARGIN


def nearest_first(one: Traits, name: Name, kind: int, blocks: Blocks, bounds: Bounds) -> list[tuple[int, float]]:
    """The places that can match, each with a bound of its cosine."""
    base, beyond = np.searchsorted(blocks.types, [kind, kind + 1]).tolist()
    found = dict.fromkeys(namesakes_without_cosine(one, name, blocks, base, beyond), 1.0)
    if one.vector is not None and len(one.vector) == blocks.concepts.vectors.shape[1]:
        vector = unit_rows(one.vector[np.newaxis], 1)[0]
        query = (vector if blocks.basis is None else project(vector, blocks.basis))[0]
        begin, end = (base + edge for edge in near_lengths(name, blocks.plain_lengths[base:beyond], bounds))
        found |= reaching(blocks.short[begin:end], range(begin, end), query, blocks, bounds)
        first, last = np.searchsorted(blocks.shrinking, [base, beyond])
        found |= reaching(blocks.shrinking_short[first:last], blocks.shrinking[first:last], query, blocks, bounds)
    return sorted(found.items(), key=lambda item: -item[1])


def near_lengths(name: Name, lengths: Ints, bounds: Bounds) -> tuple[int, int]:
    """Where the lengths come near those of the name in either form."""
    return band(lengths, np.array([len(name.plain), len(name.ordered)]), bounds.name)


def reaching(
    short: Matrix, places: Sequence[int] | Ints, query: Matrix, blocks: Blocks, bounds: Bounds
) -> dict[int, float]:
    """The places whose cosine may be high enough."""
    products = products_with_one(short, query)
    which = np.flatnonzero(products >= bounds.product).tolist()
    return {int(places[at]): float(products[at]) for at in which if blocks.has_vector[places[at]]}


def namesakes_without_cosine(one: Traits, name: Name, blocks: Blocks, base: int, beyond: int) -> list[int]:
    """Places of the very same name where an embedding is missing on either side (C04)."""
    if not name.plain:
        return []
    lengths = blocks.plain_lengths[base:beyond]
    begin, end = (base + int(edge) for edge in np.searchsorted(lengths, [len(name.plain), len(name.plain) + 1]))
    first = np.searchsorted(blocks.plain[begin:end], name.plain)
    last = np.searchsorted(blocks.plain[begin:end], name.plain, "right")
    return [
        place
        for place in range(begin + int(first), begin + int(last))
        if one.vector is None or not blocks.has_vector[place]
    ]
