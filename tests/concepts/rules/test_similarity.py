"""Similarity as a rule: three factors, kept for every pair, and the doubts that forbid merging without asking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.concepts.rules import similarity
from recollect.concepts.rules.similarity import FactorWeights, Traits, compare


def unit(*numbers: float) -> similarity.Vector:
    vector = np.array(numbers, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def at_cosine(value: float) -> tuple[similarity.Vector, similarity.Vector]:
    return unit(1, 0), unit(value, (1 - value**2) ** 0.5)


def pair(one: str, other: str, cosine: float = 1.0) -> similarity.Factors:
    left, right = at_cosine(cosine)
    return compare(Traits(name=one, vector=left), Traits(name=other, vector=right))


def edits(one: str, other: str) -> int:
    """Levenshtein by the book, so that the library's answer can be wrong."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def test_C03_the_score_is_the_weighted_sum_of_three_factors() -> None:
    left, right = at_cosine(0.9)
    found = compare(
        Traits(name="abcd", vector=left, metadata={"a": 1, "b": 2}),
        Traits(name="abcx", vector=right, metadata={"a": 1}),
    )
    assert found.cosine == pytest.approx(0.9)
    assert (found.name, found.metadata) == (0.75, 0.5)
    assert found.score == pytest.approx(0.7 * 0.9 + 0.2 * 0.75 + 0.1 * 0.5, abs=1e-6)


def test_C03_two_without_metadata_agree_and_history_and_aliases_do_not_count() -> None:
    assert compare(Traits(name="a"), Traits(name="a")).metadata == 1.0
    merged = Traits(name="a", metadata={"merge_history": [{"merged_node_id": "x"}], "aliases": ["b"]})
    assert compare(merged, Traits(name="a")).metadata == 1.0


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ({"year": 1999}, {"year": "1999."}, False),
        ({"year": 1999}, {"year": 2000}, True),
        ({"venue": "SIGMOD Record"}, {"venue": "ACM SIGMOD Record"}, False),
        ({"author": "R. Schapire"}, {"author": "Robert Schapire"}, False),
        ({"author": "Robert Schapire"}, {"author": "Yoav Freund"}, True),
        ({"price": "24.1"}, {"price": "24.10"}, True),
        ({"tags": ["a"]}, {"tags": ["b"]}, False),
        ({"a": 1}, {"b": 2}, False),
        ({"a": None}, {"a": 2}, False),
        ({"a": -1}, {"a": 1}, True),
        ({"aliases": "x"}, {"aliases": "y"}, False),
    ],
)
def test_C03_values_that_contradict_each_other_are_a_doubt(
    one: dict[str, object], other: dict[str, object], conflict: bool
) -> None:
    found = compare(Traits(name="a", metadata=one), Traits(name="a", metadata=other))
    assert (similarity.CONFLICT in found.doubts) is conflict
    assert bool(found.conflicts) is conflict


def test_C04_a_missing_embedding_stretches_the_other_weights_and_is_a_doubt() -> None:
    found = compare(Traits(name="Tea", metadata={"a": 1, "b": 1}), Traits(name="tea", metadata={"a": 1}))
    assert found.score == pytest.approx((0.2 + 0.1 * 0.5) / 0.3, abs=1e-6)
    assert found.cosine is None
    assert similarity.NO_EMBEDDING in found.doubts


@pytest.mark.parametrize(("one", "other"), [("green tea", "green teas"), ("tea green", "green tea"), ("", "")])
def test_C04_without_embeddings_only_the_very_same_name_counts(one: str, other: str) -> None:
    assert compare(Traits(name=one), Traits(name=other, vector=unit(1, 0))).score == 0.0


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("consciousness_substrate", "Consciousness Substrate", 1.0),
        ("substrate_for_consciousness", "consciousness substrate", 1.0),
        ("the Republic of Tea", "tea republic", 1.0),
        ("", "", 1.0),
        ("", "tea", 0.0),
        ("kitten", "sitting", 1 - 3 / 7),
        ("consciousness", "consciousness_engine", 13 / 20),
        ("of the", "the of", 1.0),
    ],
)
def test_C05_the_name_counts_in_the_better_of_two_forms(one: str, other: str, likeness: float) -> None:
    assert pair(one, other).name == pytest.approx(likeness)


@given(st.text(max_size=12), st.text(max_size=12))
def test_C05_likeness_is_one_less_the_share_of_edits(one: str, other: str) -> None:
    longer = max(len(one), len(other))
    assert similarity.likeness(one, other) == (1 - edits(one, other) / longer if longer else 1.0)


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        ("ASR1603", "ASR1605", similarity.DIGITS),
        ("Apollo 8", "Apollo 11", similarity.DIGITS),
        ("python", "python 3", similarity.DIGITS),
        ("node_000123", "node_000124", similarity.DIGITS),
        ("2 of 3", "3 of 2", similarity.DIGITS),
        ("Model T 1", "Model S 2", similarity.NUMBERS),
        ("Northern Line", "Southern Line", similarity.WORDS),
        ("Group A", "Group B", similarity.WORDS),
        ("NADP+", "NADP", similarity.WORDS),
        ("má", "mạ", similarity.WORDS),
        ("HEAT", "Heat", similarity.CAPITALS),
    ],
)
def test_C05_names_that_tell_things_apart_are_a_doubt(one: str, other: str, doubt: str) -> None:
    assert doubt in pair(one, other).doubts
    assert doubt in pair(other, one).doubts


@pytest.mark.parametrize(
    ("one", "other"),
    [("consciousness_substrate", "Consciousness Substrate"), ("F-16", "F16"), ("K League", "K league"), ("trà", "trà")],
)
def test_C05_style_is_no_doubt(one: str, other: str) -> None:
    assert set(pair(one, other).doubts) == {similarity.BARE}


def test_what_is_known_by_its_name_alone_is_a_doubt_and_what_has_no_name_too() -> None:
    known = Traits(name="tea", vector=unit(1, 0), has_text=True)
    assert compare(known, known).doubts == ()
    assert compare(known, Traits(name="tea", vector=unit(1, 0))).doubts == (similarity.BARE,)
    nameless = Traits(name="", vector=unit(1, 0), has_text=True)
    assert compare(nameless, nameless).doubts == (similarity.NAMELESS,)


def test_C22_consciousness_and_its_engine_at_cosine_092_stay_apart() -> None:
    found = pair("consciousness", "consciousness_engine", 0.92)
    assert found.score == pytest.approx(0.7 * 0.92 + 0.2 * 0.65 + 0.1, abs=1e-6)
    assert found.score < 0.90


def test_C07_rounding_makes_a_threshold_inclusive() -> None:
    assert pair("same", "same", (0.95 - 0.3) / 0.7).score == 0.95


@given(st.floats(-1, 1), st.text(max_size=8), st.text(max_size=8))
def test_a_score_lies_between_0_and_1_and_does_not_depend_on_the_order(cosine: float, one: str, other: str) -> None:
    left, right = at_cosine(cosine)
    there = compare(Traits(name=one, vector=left), Traits(name=other, vector=right))
    back = compare(Traits(name=other, vector=right), Traits(name=one, vector=left))
    assert there == back
    assert 0.0 <= there.score <= 1.0


def test_weights_can_be_others() -> None:
    left, right = at_cosine(0.5)
    weights = FactorWeights(cosine=0.5, name=0.3, metadata=0.2)
    found = compare(Traits(name="abcd", vector=left), Traits(name="abcx", vector=right), weights)
    assert found.score == pytest.approx(0.25 + 0.3 * 0.75 + 0.2, abs=1e-6)


def test_E32_vectors_of_different_models_are_not_compared() -> None:
    found = compare(Traits(name="a", vector=unit(1, 0)), Traits(name="a", vector=unit(1, 0, 0)))
    assert found.cosine is None
    assert similarity.NO_EMBEDDING in found.doubts
