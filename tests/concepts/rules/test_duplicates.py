"""Exact detection: the pairs of brute force, whatever goes in, and bounded where brute force would not be.

TEST_TIMES=20 in the environment compares twenty times as many sets with brute force: several thousand.
"""

import os
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.concepts.rules.concepts import ConceptCandidate, Wording, best_likeness
from recollect.concepts.rules.detection import ConceptColumns, block
from recollect.concepts.rules.detection import compare as comparing
from recollect.concepts.rules.detection.blocks import project, telling_directions
from recollect.concepts.rules.detection.cells import useful_cells
from recollect.concepts.rules.detection.compare import Bounds
from recollect.concepts.rules.detection.detect import useful_dimensions
from recollect.concepts.rules.similarity import WEIGHTS, FactorWeights, compare
from recollect.model import NewConcept
from recollect.providers.executors import LocalExecutor
from tests.concept_sets import brute_force, detect, listed, near_few_directions, random_concepts, without_copies

detecting = import_module("recollect.concepts.rules.detection.detect")
TIMES = int(os.environ.get("TEST_TIMES", "1"))
THRESHOLDS = st.sampled_from([0.95, 0.9, 0.85, 0.7, 0.5, 0.3, 0.1])


def agrees_with_brute_force(concepts: ConceptColumns, threshold: float, **options: object) -> None:
    found = detect(concepts, threshold, **options)  # type: ignore[arg-type]
    expected = without_copies(brute_force(concepts, threshold), found.copies)
    assert listed(found) == pytest.approx(expected, abs=1.1e-6)
    assert not len(found.crowded)


@pytest.mark.parametrize("count", [1, 10, 48, 49, 96, 200])
def test_C23_the_most_telling_directions_leave_the_least_of_few_vectors_as_of_many(count: int) -> None:
    """Few vectors in many dimensions are looked at in another way: up to half as many as dimensions, here 48."""
    vectors = near_few_directions(np.random.default_rng(3), count, 96).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    basis = telling_directions(vectors, np.arange(count), 31)
    assert basis.T @ basis == pytest.approx(np.eye(min(count, 31)), abs=1e-5)
    kept = np.sort(np.square(np.linalg.svd(vectors, compute_uv=False)))[-31:].sum()
    along = project(vectors, basis)[:, :-1]
    assert np.square(along).sum() == pytest.approx(kept, rel=1e-4)
    assert np.square(along[:, -1]).sum() == pytest.approx(np.square(along).sum(axis=0).max(), rel=1e-4)


@settings(max_examples=150 * TIMES, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), st.sampled_from([2, 8, 70]), THRESHOLDS, st.booleans())
def test_C23_the_same_pairs_as_brute_force_on_random_sets(
    seed: int, count: int, width: int, threshold: float, short: bool
) -> None:
    concepts = random_concepts(seed, count, width=width)
    agrees_with_brute_force(concepts, threshold, blocks=block(concepts, dimensions=3) if short else None)


@settings(max_examples=100 * TIMES, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 60),
    st.sampled_from([2, 8, 70, 260]),
    THRESHOLDS,
    st.integers(1, 12),
    st.integers(1, 2),
)
def test_C23_the_same_pairs_as_brute_force_into_however_many_cells_the_space_is_cut(
    seed: int, count: int, width: int, threshold: float, cells: int, threads: int
) -> None:
    concepts = random_concepts(seed, count, width=width)
    agrees_with_brute_force(concepts, threshold, cells=cells, threads=threads)


@settings(max_examples=60 * TIMES, deadline=None)
@given(st.lists(st.text(max_size=6), min_size=2, max_size=12), st.integers(0, 2**32), THRESHOLDS)
def test_C23_the_same_pairs_as_brute_force_with_names_of_any_script(
    names: list[str], seed: int, threshold: float
) -> None:
    vectors = near_few_directions(np.random.default_rng(seed), len(names), 6)
    agrees_with_brute_force(ConceptColumns.of(names=names, vectors=vectors), threshold)


@settings(max_examples=40 * TIMES, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(0.5, 0.3, 0.2), (0.34, 0.33, 0.33), (0.8, 0.1, 0.1)]), THRESHOLDS)
def test_C23_the_same_pairs_with_other_weights(
    seed: int, given_weights: tuple[float, float, float], threshold: float
) -> None:
    weights = FactorWeights(cosine=given_weights[0], name=given_weights[1], metadata=given_weights[2])
    concepts = random_concepts(seed, 25, width=8)
    found = detect(concepts, threshold, weights=weights)
    expected = without_copies(brute_force(concepts, threshold, weights), found.copies)
    assert listed(found) == pytest.approx(expected, abs=1.1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 30), THRESHOLDS)
def test_C03_the_factors_kept_are_those_of_the_reference(seed: int, count: int, threshold: float) -> None:
    concepts = random_concepts(seed, count, width=6)
    found = detect(concepts, threshold)
    for place, (one, other, _) in enumerate(found.pairs):
        kept = found.pairs.factors(concepts, place)
        reference = compare(concepts.traits(one), concepts.traits(other))
        assert replace(kept, cosine=None, score=0.0) == replace(reference, cosine=None, score=0.0)
        assert (kept.cosine is None) == (reference.cosine is None)
        assert kept.cosine == pytest.approx(reference.cosine, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), THRESHOLDS)
def test_C18_only_what_changed_is_compared_and_nothing_of_it_is_missed(seed: int, count: int, threshold: float) -> None:
    concepts = random_concepts(seed, count, width=70)
    changed = np.random.default_rng(seed).random(count) < 0.3
    blocks = block(concepts, dimensions=5)
    everything, part = detect(concepts, threshold, blocks=blocks), detect(concepts, threshold, changed=changed)
    touched = changed.copy()
    for group in blocks.copies:
        touched[group] = changed[group].any()
    assert listed(part) == {ends: score for ends, score in listed(everything).items() if touched[list(ends)].any()}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), THRESHOLDS, st.integers(2, 3))
def test_P12_neither_the_order_of_the_rows_nor_the_number_of_threads_matters(
    seed: int, count: int, threshold: float, threads: int
) -> None:
    concepts = random_concepts(seed, count, width=8)
    order = np.random.default_rng(seed).permutation(count)
    assert concepts.metadata is not None
    shuffled = ConceptColumns.of(
        names=[concepts.names[row] for row in order],
        vectors=[concepts.vectors[row] if concepts.has_vector[row] else None for row in order],
        ids=[concepts.ids[row] for row in order],
        types=[str(concepts.types[row]) for row in order],
        metadata=[concepts.metadata[row] for row in order],
        has_text=concepts.has_text[order],
    )

    def by_id(given: ConceptColumns, threads: int) -> dict[frozenset[object], float]:
        return {
            frozenset([given.ids[one], given.ids[other]]): score
            for one, other, score in detect(given, threshold, threads=threads).pairs
        }

    assert by_id(concepts, 1) == pytest.approx(by_id(shuffled, threads), abs=1.1e-6)


def test_C01_C07_pairs_come_best_first_and_the_threshold_is_inclusive() -> None:
    cosine = (0.95 - 0.3) / 0.7
    vectors = np.array([[1, 0], [cosine, (1 - cosine**2) ** 0.5], [1, 0]])
    found = detect(ConceptColumns.of(names=["tea", "tea", "Tea"], vectors=vectors), 0.95)
    assert list(found.pairs) == [(0, 2, 1.0), (0, 1, 0.95), (1, 2, 0.95)]


def test_C02_only_within_one_type() -> None:
    found = detect(ConceptColumns.of(names=["tea", "Tea"], vectors=[[1, 0], [1, 0]], types=["drink", "plant"]), 0.5)
    assert not len(found.pairs)


def test_names_that_only_meet_without_their_small_words_are_found() -> None:
    names = ["the substrate of the consciousness for a the", "consciousness substrate", "unrelated words here"]
    agrees_with_brute_force(
        ConceptColumns.of(names=names, vectors=np.array([[1, 0, 0], [1, 0.05, 0], [0, 1, 0]])), 0.95
    )


def far_apart(count: int) -> ConceptColumns:
    """Rows of which hardly any two are near, every fourth a second time, nearly."""
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(count, 16))
    vectors[1::4] = vectors[::4] + chance.normal(size=(len(vectors[1::4]), 16)) * 0.01
    letters = chance.choice(list("abcdefgh"), (count // 2, 8))
    return ConceptColumns.of(
        names=[name for row in letters for name in ("".join(row), "".join(row) + "s")], vectors=vectors
    )


def test_C23_cells_leave_out_most_of_what_is_far_apart_and_no_pair() -> None:
    concepts = far_apart(3000)
    blocks, least = block(concepts), Bounds(threshold=0.95, weights=WEIGHTS).product
    cells = useful_cells(blocks, least, 60, LocalExecutor())
    assert cells
    met = sum(len(cells.reaching(cell)) * len(cells.members(cell)) for cell in range(len(cells)))
    assert met < 0.3 * 3000**2
    found = detect(concepts, cells=60)
    assert len(found.pairs) >= 700
    assert listed(found) == listed(detect(concepts))


def test_C23_a_small_set_and_a_low_threshold_want_no_cells() -> None:
    blocks = block(far_apart(1000))
    assert useful_cells(blocks, Bounds(threshold=0.95, weights=WEIGHTS).product, None, LocalExecutor()) is None
    assert useful_cells(blocks, Bounds(threshold=0.2, weights=WEIGHTS).product, 60, LocalExecutor()) is None


class Elsewhere(LocalExecutor):
    """Hands on what would travel to another process, and keeps how many bytes it is."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: list[int] = []
        self.sent: list[int] = []
        self.received: list[int] = []

    def map(self, work: Any, shared: Any, blocks: Any, *, progress: Any = None) -> Any:
        there = self._travel(shared, self.shared)
        for one in blocks:
            yield self._travel(work(there, self._travel(one, self.sent)), self.received)

    def _travel(self, what: Any, sizes: list[int]) -> Any:
        sizes.append(len(packed := pickle.dumps(what)))
        return pickle.loads(packed)


@pytest.mark.parametrize("cells", [None, 60])
def test_X01_little_travels_however_much_is_multiplied(cells: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "WORTH_A_JOURNEY", 0)
    concepts, there = far_apart(3000), Elsewhere()
    found = detect(concepts, cells=cells, executor=there)
    assert listed(found) == listed(detect(concepts, cells=cells))
    assert len(there.shared) == 1
    assert len(there.sent) == 1  # 4.5 million products are worth one block
    assert there.sent[0] < 10_000
    assert there.received[0] < 200 + 2 * 16 * len(found.pairs)


@pytest.mark.parametrize("cells", [None, 5])
def test_C23_a_block_that_finds_very_many_goes_on_where_they_are_taken(
    cells: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    concepts = random_concepts(1, 300, width=8)
    whole = detect(concepts, 0.5, cells=cells)
    assert len(whole.pairs) > 300
    monkeypatch.setattr(comparing, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(comparing, "PRODUCTS_AT_A_TIME", 5_000)
    monkeypatch.setattr(comparing, "PRODUCTS_A_MEETING", 2_000)
    there = Elsewhere()
    monkeypatch.setattr(detecting, "WORTH_A_JOURNEY", 0)
    in_pieces = detect(concepts, 0.5, cells=cells, executor=there)
    assert listed(in_pieces) == listed(whole)
    assert max(there.received) < 16 * len(whole.pairs) / 2


# -- hostile sets: each must come out in bounded time, and right


def test_C23_ten_thousand_equal_concepts_cost_what_one_does() -> None:
    found = detect(ConceptColumns.of(names=["tea"] * 10_000, vectors=np.tile([0.6, 0.8], (10_000, 1))))
    assert [len(group) for group in found.copies] == [10_000]
    assert not len(found.pairs)


def test_C23_ten_thousand_equal_names_of_different_things() -> None:
    vectors = np.random.default_rng(0).normal(size=(10_000, 100))
    vectors[1] = vectors[0] + 0.001
    found = detect(ConceptColumns.of(names=["tea"] * 10_000, vectors=vectors))
    assert ([rows.tolist() for rows in found.copies], len(found.pairs)) == ([[0, 1]], 0)


def test_C23_thousands_of_equal_names_told_apart_by_metadata_alone() -> None:
    metadata = [{"serial": number, "lot": number} for number in range(3000)]
    metadata[7] = {"serial": -1, "lot": -1}
    metadata[8] = {"serial": -1, "lot": -1, "extra": 1}
    found = detect(ConceptColumns.of(names=["tea"] * 3000, vectors=np.tile([0.6, 0.8], (3000, 1)), metadata=metadata))
    assert [ends for *ends, _ in found.pairs] == [[7, 8]]


def test_C05_a_long_numbered_series_is_named_not_paired() -> None:
    chance = np.random.default_rng(0)
    names = [f"node_{number:06d}" for number in range(3000)] + ["Node 000007", "something else"]
    vectors = np.ones((3002, 80)) + chance.normal(size=(3002, 80)) * 0.01
    found = detect(ConceptColumns.of(names=names, vectors=vectors))
    assert [ends for *ends, _ in found.pairs] == [[7, 3000]]
    assert [len(series) for series in found.series] == [3001]


def test_C05_a_short_series_is_paired() -> None:
    names = [f"ASR160{number}" for number in range(4)]
    found = detect(ConceptColumns.of(names=names, vectors=np.ones((4, 3))))
    assert len(found.pairs) == 6


def test_C23_a_hub_is_said_to_be_crowded_and_what_lies_outside_is_found() -> None:
    chance = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["a very long name that all of them share " + "".join(chance.choice(letters, 3)) for _ in range(3000)]
    vectors = np.ones((3002, 40)) + chance.normal(size=(3002, 40)) * 0.001
    vectors[3000:] = -np.arange(40)
    found = detect(ConceptColumns.of(names=[*names, "far away", "Far away"], vectors=vectors))
    assert len(found.crowded) == 3000
    assert len(found.pairs) < 3000 * 1000
    assert (3000, 3001) in listed(found)


@pytest.mark.parametrize("names", [[""] * 3000, ["", " ", "_"] * 1000])
def test_C23_empty_names_are_told_apart_by_their_vectors(names: list[str]) -> None:
    vectors = np.random.default_rng(1).normal(size=(3000, 90))
    vectors[5] = vectors[3]
    found = detect(ConceptColumns.of(names=names, vectors=vectors))
    assert len(found.pairs) + len(found.copies) == 1


def test_C04_missing_embeddings_meet_by_name_and_nothing_without_either_meets() -> None:
    found = detect(ConceptColumns.of(names=["tea", "Tea", "coffee", "", ""], vectors=[[1, 0], None, None, None, None]))
    assert list(found.pairs) == [(0, 1, 1.0)]
    assert found.copies == ()


def test_C23_thousands_without_embeddings() -> None:
    metadata = [{"serial": number} for number in range(1500)]
    found = detect(ConceptColumns.of(names=["tea"] * 1500, metadata=metadata))
    assert not len(found.pairs)


def test_E32_zero_and_endless_vectors_count_as_missing() -> None:
    concepts = ConceptColumns.of(names=["a", "b", "c"], vectors=np.array([[0, 0], [np.nan, 1], [1, 0]], np.float32))
    assert concepts.has_vector.tolist() == [False, False, True]
    assert not len(detect(concepts, 0.1).pairs)


def test_nothing_and_one_are_no_duplicates() -> None:
    assert not len(detect(ConceptColumns.of(names=[])).pairs)
    assert not len(detect(ConceptColumns.of(names=["a"], vectors=[[1, 0]])).pairs)


def test_C28_low_thresholds_switch_to_whole_vectors_by_themselves() -> None:
    concepts = ConceptColumns.of(names=["x"] * 500, vectors=np.random.default_rng(0).normal(size=(500, 300)))

    def dimensions(threshold: float) -> int | None:
        return useful_dimensions(concepts, Bounds(threshold=threshold, weights=WEIGHTS))

    high, low = dimensions(0.95), dimensions(0.35)
    assert high is not None
    assert low is None


# -- one new concept


def likely(name: str, day: int, vector: list[float], **more: Any) -> ConceptCandidate:
    numbers = np.array(vector, np.float32)
    made = datetime(2026, 1, day, tzinfo=UTC)
    wording = Wording(name=name, vector=numbers)
    return ConceptCandidate(id=UUID(int=day), wordings=(wording,), metadata={}, created_at=made, **more)


def test_C19_of_equal_matches_the_older_is_returned_and_numbers_are_not_mistaken() -> None:
    there = [likely("consciousness_substrate", 5, [1, 0]), likely("consciousness substrate", 3, [1, 0])]
    match = best_likeness(
        NewConcept(name="Consciousness Substrate"), there[0].wordings[0].vector, there, 0.95, frozenset()
    )
    assert match is not None
    assert (match.candidate, match.is_certain) == (there[1], True)
    numbered = likely("ASR1603", 1, [0, 1])
    other = best_likeness(NewConcept(name="ASR1605"), numbered.wordings[0].vector, [numbered], 0.95, frozenset())
    assert other is not None
    assert not other.is_certain


def test_C21_a_match_that_must_stay_apart_is_not_offered() -> None:
    there = [likely("tea", 1, [1, 0], names=frozenset({"tea"})), likely("Tea", 2, [1, 0], names=frozenset({"Tea"}))]
    match = best_likeness(NewConcept(name="tea"), there[0].wordings[0].vector, there, 0.95, frozenset({"tea"}))
    assert match is not None
    assert match.candidate == there[1]
