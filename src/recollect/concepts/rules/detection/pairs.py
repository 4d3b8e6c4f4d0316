"""Score: what pairs of concepts have in common, exactly, all factors kept.

The same sum as rules/similarity.compare, over arrays; the cheap factors first, and the costly ones only for the pairs
that can still reach the threshold.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from recollect.concepts.rules.detection.blocks import Blocks, Strings
from recollect.concepts.rules.detection.columns import ConceptColumns, Floats, Ints, Mask, Sets
from recollect.concepts.rules.detection.compare import Bounds, best_metadata, best_name
from recollect.concepts.rules.names import plain
from recollect.concepts.rules.similarity import PLACES, Factors, FactorWeights, conflicts, doubts

GATHER = 16_384
ONE_WORKER_UP_TO = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Pairs of rows with their factors; `cosine` is NaN where an embedding is missing."""

    left: Ints
    right: Ints
    score: Floats
    cosine: Floats
    name_plain: Floats
    name_ordered: Floats
    metadata: Floats

    def __len__(self) -> int:
        return len(self.left)

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        """(row, row, score), as the source document has it (C01)."""
        return zip(self.left.tolist(), self.right.tolist(), self.score.tolist(), strict=True)

    def only(self, rows: Ints | Mask) -> "Pairs":
        return self.each(lambda column: column[rows])

    def each(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> "Pairs":
        return Pairs(**{field.name: change(getattr(self, field.name)) for field in fields(self)})  # type: ignore[arg-type]

    def best_first(self) -> "Pairs":
        return self.only(np.lexsort((self.right, self.left, -self.score)))

    def factors(self, concepts: ConceptColumns, index: int) -> Factors:
        """One pair laid open, with its doubts."""
        left, right = concepts.traits(int(self.left[index])), concepts.traits(int(self.right[index]))
        cosine = float(self.cosine[index])
        return Factors(
            score=float(self.score[index]),
            cosine=None if np.isnan(cosine) else cosine,
            name_plain=float(self.name_plain[index]),
            name_ordered=float(self.name_ordered[index]),
            metadata=float(self.metadata[index]),
            same_name=plain(left.name) == plain(right.name) != "",
            doubts=doubts(left, right),
            conflicts=conflicts(left.metadata, right.metadata),
        )

    @classmethod
    def none(cls) -> "Pairs":
        return cls.joined([])

    @classmethod
    def joined(cls, parts: Sequence["Pairs"]) -> "Pairs":
        def column(name: str) -> NDArray[np.generic]:
            kind = np.int64 if name in ("left", "right") else np.float64
            return np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])

        return cls(**{field.name: column(field.name) for field in fields(cls)})  # type: ignore[arg-type]


def scored(blocks: Blocks, bounds: Bounds, left: Ints, right: Ints, threads: int = 1) -> Pairs:
    """The pairs of places that reach the threshold, as pairs of rows."""
    cosine = cosines(blocks, left, right)
    has_cosine = ~np.isnan(cosine)
    hopeful = ~has_cosine | bounds.in_reach(
        np.nan_to_num(cosine), best_name(blocks, left, right), best_metadata(blocks, left, right)
    )
    left, right, cosine = left[hopeful], right[hopeful], cosine[hopeful]
    name_plain, name_ordered = (likenesses(names, left, right, threads) for names in (blocks.plain, blocks.ordered))
    rows, others = blocks.rows[left], blocks.rows[right]
    metadata = overlaps(blocks.concepts.statements, rows, others)
    score = totals(cosine, np.maximum(name_plain, name_ordered), metadata, bounds.weights)
    score[np.isnan(cosine) & ~is_same_name(blocks, left, right)] = 0.0
    return Pairs(
        left=rows,
        right=others,
        score=score,
        cosine=cosine,
        name_plain=name_plain,
        name_ordered=name_ordered,
        metadata=metadata,
    ).only(score >= bounds.threshold)


def is_same_name(blocks: Blocks, left: Ints, right: Ints) -> Mask:
    same: Mask = blocks.spelling[left] == blocks.spelling[right]
    return same & (blocks.plain_lengths[left] > 0)


def cosines(blocks: Blocks, left: Ints, right: Ints) -> Floats:
    """0 to 1, NaN where one has no vector; in double precision, a stretch at a time."""
    values = np.full(len(left), np.nan)
    comparable = np.flatnonzero(blocks.has_vector[left] & blocks.has_vector[right])
    for start in range(0, len(comparable), GATHER):
        part = comparable[start : start + GATHER]
        ours, theirs = blocks.vectors(left[part]), blocks.vectors(right[part])
        values[part] = np.einsum("ij,ij->i", ours, theirs, dtype=np.float64).clip(0.0, 1.0)
    return values


def likenesses(names: Strings, left: Ints, right: Ints, threads: int) -> Floats:
    """1 - edit distance / longer length, for each pair."""
    if not len(left):
        return np.zeros(0)
    ours, theirs = names[left], names[right]
    workers = threads if len(left) > ONE_WORKER_UP_TO else 1
    edits = process.cpdist(ours, theirs, scorer=Levenshtein.distance, dtype=np.int32, workers=workers)
    longer = np.fromiter(map(max, map(len, ours), map(len, theirs)), np.int64, len(ours))
    return np.where(longer == 0, 1.0, 1.0 - edits / np.maximum(longer, 1))


def overlaps(sets: Sets, left: Ints, right: Ints) -> Floats:
    """Jaccard of two rows' sets; two empty ones are alike."""
    sizes = sets.sizes
    shared = np.zeros(len(left), np.int64)
    both = np.flatnonzero((sizes[left] > 0) & (sizes[right] > 0))
    if len(both):
        shared[both] = shared_counts(sets, left[both], right[both])
    together = sizes[left] + sizes[right] - shared
    return np.where(together == 0, 1.0, shared / np.maximum(together, 1))


def shared_counts(sets: Sets, left: Ints, right: Ints) -> Ints:
    """How many values two rows share: those that occur twice when both rows' values are sorted together."""
    most = int(sets.values.max()) + 1
    tagged = np.concatenate([tagged_values(sets, side, most) for side in (left, right)])
    tagged.sort()
    twice = tagged[1:][tagged[1:] == tagged[:-1]]
    return np.bincount(twice // most, minlength=len(left))


def tagged_values(sets: Sets, rows: Ints, most: int) -> Ints:
    """The values of rows, each with the number of its row in front."""
    sizes = sets.sizes[rows]
    owners = np.repeat(np.arange(len(rows)), sizes)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    values: Ints = sets.values[sets.starts[rows][owners] + within]
    return owners * most + values


def totals(cosine: Floats, name: Floats, metadata: Floats, weights: FactorWeights) -> Floats:
    """The weighted sum; where there is no cosine the other weights are stretched (C04)."""
    rest = weights.name * name + weights.metadata * metadata
    with_cosine: Floats = weights.cosine * np.nan_to_num(cosine) + weights.name * name + weights.metadata * metadata
    both: Floats = np.where(np.isnan(cosine), rest / weights.without_cosine, with_cosine)
    return np.round(both, PLACES)
