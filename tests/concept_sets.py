"""Sets of concepts to detect duplicates in, and brute force to compare with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.concepts.rules import detection
from recollect.concepts.rules.detection import ConceptColumns, FoundPairs
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.concepts.rules.similarity import WEIGHTS, FactorWeights, compare
from recollect.providers.executors import LocalExecutor

Scores = dict[tuple[int, int], float]
WORDS = [
    "alpha",
    "beta",
    "gamma",
    "the",
    "of",
    "node",
    "red",
    "blue",
    "x1",
    "x2",
    "ab",
    "für",
    "意識",
    "trà",
    "trá",
    "+",
]


def detect(concepts: ConceptColumns, threshold: float = THRESHOLD, *, threads: int = 1, **options: Any) -> FoundPairs:
    """As the policies do, in this process."""
    return detection.detect(concepts, threshold, here=LocalExecutor(threads), **options)


def random_concepts(seed: int, count: int, *, width: int, types: int = 2) -> ConceptColumns:
    """Names of few words, vectors around few directions, some of them missing, metadata with few values."""
    chance = np.random.default_rng(seed)
    names = ["_ "[int(chance.integers(2))].join(chance.choice(WORDS, chance.integers(0, 4))) for _ in range(count)]
    vectors = near_few_directions(chance, count, width)
    return ConceptColumns.of(
        names=[str(name) for name in names],
        vectors=[None if chance.random() < 0.1 else row for row in vectors],
        types=[f"type {chance.integers(types)}" for _ in range(count)],
        metadata=[
            {key: int(chance.integers(3)) for key in ("a", "b", "c") if chance.random() < 0.3} for _ in range(count)
        ],
        has_text=chance.random(count) < 0.5,
    )


def near_few_directions(chance: np.random.Generator, count: int, width: int) -> NDArray[np.float64]:
    directions = chance.normal(size=(5, width))
    noise = chance.normal(size=(count, width)) * chance.choice([0.0, 0.02, 0.1, 0.3, 1.0], (count, 1))
    rows: NDArray[np.float64] = directions[chance.integers(0, 5, count)] + noise
    return rows


def brute_force(concepts: ConceptColumns, threshold: float, weights: FactorWeights = WEIGHTS) -> Scores:
    """Every pair of one type, by the reference rule."""
    scores = {}
    for one in range(len(concepts)):
        for other in range(one + 1, len(concepts)):
            if concepts.types[one] == concepts.types[other]:
                score = compare(concepts.traits(one), concepts.traits(other), weights).score
                if score >= threshold:
                    scores[one, other] = score
    return scores


def without_copies(scores: Scores, copies: Sequence[NDArray[np.int64]]) -> Scores:
    """The scores as the detector lists them: of identical rows only the first."""
    first = {int(row): int(group[0]) for group in copies for row in group}
    kept = {}
    for (one, other), score in scores.items():
        left, right = first.get(one, one), first.get(other, other)
        if left != right:
            kept[min(left, right), max(left, right)] = score
    return kept


def listed(found: FoundPairs) -> Scores:
    return {(one, other): score for one, other, score in found.pairs}
