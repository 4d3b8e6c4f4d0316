"""Groups and verdicts: cliques merge, chains and doubts are questions, what a person said is kept."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.concepts.rules import similarity
from recollect.concepts.rules.certainty import certainties, codes_compared, codes_of, rivals
from recollect.concepts.rules.clusters import ClusterOptions, ConceptGroup, Decided, GroupVerdict, Linkage, decide
from recollect.concepts.rules.detection import ConceptColumns
from recollect.concepts.rules.detection.keeper import Keep, keeper_rank
from recollect.concepts.rules.detection.pairs import Pairs
from recollect.concepts.rules.never_merge import NEVER_MERGE_EXAMPLE, Apart
from recollect.concepts.rules.similarity import compare
from tests.concept_sets import detect, random_concepts


def on_a_circle(*degrees: float) -> list[list[float]]:
    return [[math.cos(math.radians(one)), math.sin(math.radians(one))] for one in degrees]


def described(names: Sequence[str], degrees: Sequence[float], **columns: Any) -> ConceptColumns:
    """Concepts with texts, so that the name is not all that is known of them."""
    return ConceptColumns.of(names=names, vectors=on_a_circle(*degrees), has_text=[True] * len(names), **columns)


def decided(concepts: ConceptColumns, apart: Apart | None = None, **options: Any) -> Decided:
    given = ClusterOptions(**options)
    return decide(concepts, detect(concepts, given.review), given, apart)


def rows_of(groups: Sequence[ConceptGroup]) -> list[set[int]]:
    return [set(group.rows) for group in groups]


def test_C29_a_clique_merges() -> None:
    result = decided(described(["tea", "Tea", "tea"], [0, 5, 10]))
    assert rows_of(result.merges) == [{0, 1, 2}]
    assert result.questions == ()
    assert len(result.merges[0].links) == 3


def test_C29_a_chain_is_a_question() -> None:
    result = decided(described(["tea", "Tea", "tea"], [0, 20, 40]))
    assert result.merges == ()
    assert rows_of(result.questions) == [{0, 1, 2}]
    assert result.questions[0].reason == "a chain: 'tea' and 'tea' hang together only through others"


def test_C29_the_literal_reading_merges_what_is_like_the_keeper() -> None:
    concepts = described(["tea", "Tea", "tea"], [0, 20, 40], created=[2, 1, 3])
    result = decided(concepts, linkage=Linkage.KEEPER)
    assert [group.rows for group in result.merges] == [(1, 0, 2)]


def test_C29_what_holds_together_without_the_weak_link_merges_and_the_rest_is_asked() -> None:
    result = decided(described(["tea", "Tea", "tea"], [0, 1, 22.3]))
    assert rows_of(result.merges) == [{0, 1}]
    assert [group.verdict for group in result.questions] == [GroupVerdict.REVIEW]
    assert 2 in result.questions[0].rows


def test_a_middle_score_is_a_question_and_a_low_one_is_none() -> None:
    result = decided(described(["tea", "Tea", "tea"], [0, 30, 120]))
    assert rows_of(result.questions) == [{0, 1}]
    assert "lies between 0.85 and 0.95" in result.questions[0].reason


@pytest.mark.parametrize(
    ("names", "metadata", "doubt"),
    [
        (["tea house a", "tea house b"], [{}, {}], similarity.WORDS),
        (
            ["tea", "tea"],
            [{"y": 1, "a": 1, "b": 2, "c": 3}, {"y": 2, "a": 1, "b": 2, "c": 3}],
            similarity.CONFLICT,
        ),
        (["HEAT", "Heat"], [{}, {}], similarity.CAPITALS),
        (["", ""], [{}, {}], similarity.NAMELESS),
        (["model 1 x of tea and more", "model 2 y of tea and more"], [{}, {}], similarity.NUMBERS),
    ],
)
def test_C05_a_doubt_makes_a_question_of_a_sure_pair(
    names: list[str], metadata: list[dict[str, int]], doubt: str
) -> None:
    concepts = described(names, [0, 1], metadata=metadata)
    result = decided(concepts, review=0.5)
    assert result.merges == ()
    assert [doubt in link.factors.doubts for link in result.questions[0].links] == [True]
    assert similarity.DOUBTS[doubt] in result.questions[0].reason
    assert len(decided(concepts, ask=frozenset()).merges) == 1


def test_a_bare_name_is_a_question_unless_told_otherwise() -> None:
    concepts = ConceptColumns.of(names=["consciousness_substrate", "consciousness substrate"], vectors=[[1, 0], [1, 0]])
    assert rows_of(decided(concepts).questions) == [{0, 1}]
    trusting = decided(concepts, ask=frozenset(similarity.DOUBTS) - {similarity.BARE})
    assert rows_of(trusting.merges) == [{0, 1}]


def test_C05_names_that_differ_only_in_digits_are_neither_merged_nor_asked_about() -> None:
    assert decided(described(["ASR1603", "ASR1605"], [0, 0])).groups == ()


@pytest.mark.parametrize("names", [("A-", "A"), ("blood group O-", "blood group O"), ("-O2", "O2"), ("n!", "n")])
def test_C34_names_that_differ_in_a_sign_are_neither_merged_nor_asked_about(names: tuple[str, str]) -> None:
    """Asked about, they came first of all questions, at 99 %."""
    assert decided(described(names, [0, 0])).groups == ()


def test_a_name_that_several_things_bear_does_not_tell() -> None:
    metadata = [
        {"year": 2001, "place": "Hue", "by": "Linh"},
        {"year": 2001, "place": "Hue"},
        {"year": 1998, "place": "Hue", "by": "Linh"},
    ]
    concepts = described(["Book review"] * 3, [0, 0, 0], metadata=metadata)
    assert decided(concepts).merges == ()
    alone = described(["Book review"] * 2, [0, 0], metadata=metadata[:2])
    assert rows_of(decided(alone).merges) == [{0, 1}]


def test_C23_identical_ones_merge_at_once_however_many() -> None:
    result = decided(described(["tea"] * 500, [0] * 500))
    assert [len(group.rows) for group in result.merges] == [500]
    assert result.merges[0].reason == "they are identical in all that is compared"


@pytest.mark.parametrize(
    ("keep", "expected"),
    [(Keep.OLDER, 1), (Keep.HIGHER_WEIGHT, 2), (Keep.MORE_LINKS, 0)],
)
def test_C08_the_keeper_is_chosen_by_strategy(keep: Keep, expected: int) -> None:
    concepts = described(["tea"] * 3, [0, 1, 2], created=[2, 1, 3], weight=[0.1, 0.2, 0.9], degree=[9, 2, 3])
    assert decided(concepts, keep=keep).merges[0].keeper == expected


def test_C08_ties_are_settled_by_age_then_links_then_weight_then_id() -> None:
    def kept(**columns: Any) -> int:
        concepts = ConceptColumns.of(names=["a", "b"], ids=["y", "x"], **columns)
        return min(range(2), key=lambda row: keeper_rank(concepts, row, Keep.HIGHER_WEIGHT))

    same = {"weight": [1, 1]}
    assert kept(**same, created=[2, 1], degree=[9, 1]) == 1
    assert kept(**same, created=[1, 1], degree=[1, 2]) == 1
    assert kept(**same, created=[1, 1], degree=[1, 1]) == 1
    older = ConceptColumns.of(names=["a", "b"], ids=["y", "x"], created=[1, 1], weight=[1, 2])
    assert min(range(2), key=lambda row: keeper_rank(older, row)) == 1


def test_C21_never_merge_pairs_are_honoured_also_through_absorbed_names() -> None:
    concepts = described(["tea", "Tea", "tea"], [0, 1, 2], aliases={2: ["herbal infusion"]})
    kept_apart = decided(concepts, Apart(names=[("TEA", "herbal_infusion")]))
    assert rows_of(kept_apart.merges) == [{0, 1}]
    assert kept_apart.questions == ()
    assert rows_of(decided(concepts, Apart(names=[("coffee", "herbal_infusion")])).merges) == [{0, 1, 2}]


def test_C21_the_shipped_example_and_pairs_by_id() -> None:
    apart = Apart(names=NEVER_MERGE_EXAMPLE, ids=[("a", "b")])
    concepts = ConceptColumns.of(
        names=["Consciousness", "consciousness engine", "tea", "tea"], ids=["x", "y", "a", "b"]
    )
    assert apart.forbids(concepts, [0, 1])
    assert apart.forbids(concepts, [2, 3])
    assert not apart.forbids(concepts, [0, 2])
    assert not apart.forbids(concepts, [0])


def test_C21_a_name_kept_apart_from_itself_keeps_two_bearers_apart_and_one_alone() -> None:
    apart = Apart(names=[("tea", "tea")])
    concepts = ConceptColumns.of(names=["tea", "Tea"])
    assert apart.forbids(concepts, [0, 1])
    assert not apart.forbids(concepts, [0])


def test_C21_a_copy_that_has_absorbed_a_forbidden_name_is_left_out_of_the_merge() -> None:
    concepts = described(["tea"] * 3, [0, 0, 0], aliases={2: ["herbal infusion"], 0: ["black tea"]})
    result = decided(concepts, Apart(names=[("black tea", "herbal infusion")]))
    assert rows_of(result.groups) == [{0, 1}]


def test_a_question_names_the_keeper_also_where_a_copy_of_it_was_compared() -> None:
    concepts = described(["tea", "tea", "Tea"], [0, 0, 30], ids=["a", "b", "c"], created=[2, 1, 3])
    result = decided(concepts)
    assert [group.rows for group in result.merges] == [(1, 0)]
    (question,) = result.questions
    assert question.rows == (1, 2)
    assert {question.links[0].left, question.links[0].right} == {1, 2}


def test_protected_concepts_are_left_alone() -> None:
    concepts = described(["tea", "Tea", "tea", "tea"], [0, 0, 0, 0], protected=[True, False, False, False])
    result = decided(concepts)
    assert 0 not in {row for group in result.groups for row in group.rows}
    assert rows_of(result.merges) == [{1, 2, 3}]


def test_top_impact_merges_ask_a_person() -> None:
    concepts = described(["tea", "Tea"], [0, 1], degree=[3, 80], energy=[0.1, 9])
    result = decided(concepts)
    assert result.merges == ()
    assert result.questions[0].reason.endswith("but one of them has 80 links")
    assert "energy of 9" in decided(concepts, ask_from_degree=100).questions[0].reason
    assert len(decided(concepts, ask_from_degree=100, ask_from_energy=10).merges) == 1


def test_no_more_merges_than_a_run_may_make_the_surest_first() -> None:
    concepts = described(["tea", "Tea", "rice", "Rice", "salt", "Salt"], [0, 10, 100, 101, 200, 205])
    result = decided(concepts, most_merges=2)
    assert rows_of(result.merges) == [{2, 3}, {4, 5}]
    assert rows_of(result.postponed) == [{0, 1}]


def test_a_crowd_is_a_question() -> None:
    names = [f"a long name that they all share {chr(97 + n)}" for n in range(26)]
    concepts = described(names, [0.1 * n for n in range(26)])
    found = detect(concepts, 0.85, most_partners=5)
    result = decide(concepts, found, ClusterOptions(ask=frozenset()))
    assert result.merges == ()
    assert all("near to very many others" in group.reason for group in result.questions)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 30), st.sampled_from([0.5, 0.7, 0.95]), st.sampled_from(Linkage))
def test_P12_the_groups_do_not_depend_on_the_order_and_share_no_row(
    seed: int, count: int, threshold: float, linkage: Linkage
) -> None:
    concepts = random_concepts(seed, count, width=6)
    order = np.random.default_rng(seed).permutation(count).tolist()
    options = ClusterOptions(threshold=threshold, review=threshold - 0.2, linkage=linkage, ask=frozenset())
    assert concepts.metadata is not None
    shuffled = ConceptColumns.of(
        names=[concepts.names[row] for row in order],
        vectors=[concepts.vectors[row] if concepts.has_vector[row] else None for row in order],
        ids=[concepts.ids[row] for row in order],
        types=[str(concepts.types[row]) for row in order],
        metadata=[concepts.metadata[row] for row in order],
        has_text=concepts.has_text[order],
        created=concepts.created[order],
    )

    def told(given: ConceptColumns) -> list[tuple[object, ...]]:
        result = decide(given, detect(given, options.review), options)
        return [(*(given.ids[row] for row in group.rows), group.verdict) for group in result.groups]

    assert sorted(told(concepts), key=str) == sorted(told(shuffled), key=str)
    result = decide(concepts, detect(concepts, options.review), options)
    for groups in (result.merges, result.questions):
        rows = [row for group in groups for row in group.rows]
        assert len(rows) == len(set(rows))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 30), st.sampled_from([0.5, 0.7, 0.95]))
def test_C29_every_pair_of_a_merge_is_at_the_threshold(seed: int, count: int, threshold: float) -> None:
    concepts = random_concepts(seed, count, width=6)
    options = ClusterOptions(threshold=threshold, review=threshold, ask=frozenset([similarity.CONFLICT]))
    for group in decide(concepts, detect(concepts, threshold), options).merges:
        for one in group.rows:
            for other in group.rows:
                factors = compare(concepts.traits(one), concepts.traits(other))
                assert one == other or factors.score >= threshold
                assert similarity.CONFLICT not in factors.doubts


def test_certainty_falls_with_rivals_and_other_numbers() -> None:
    names = ["tea", "Tea", "tea", "rice", "Rice"]
    pairs = detect(described(names, [0, 10, 20, 120, 130]), 0.7).pairs
    sure = certainties(pairs, names, np.zeros(len(pairs), np.bool_), 0.7)
    by_pair = {(one, other): value for (one, other, _), value in zip(pairs, sure.tolist(), strict=True)}
    scores = {(one, other): score for one, other, score in pairs}
    assert by_pair[3, 4] == scores[3, 4]
    assert by_pair[0, 1] < scores[0, 1]
    lowered = certainties(pairs, names, np.ones(len(pairs), np.bool_), 0.7)
    assert (lowered < sure).all()


def alike(*ends: tuple[int, int]) -> Pairs:
    """Pairs that all score the same."""
    left, right = np.array(ends, np.int64).T
    same = np.full(len(ends), 0.8)
    return Pairs(left=left, right=right, score=same, cosine=same, name_plain=same, name_ordered=same, metadata=same)


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("Sony Turntable - PSLX350H", {"pslx350h"}),
        ("sony ps-lx350h belt drive (33 rpm)", {"pslx350h"}),
        ("Panasonic 27028, 2-line", {"27028", "2line"}),
        ("the year 1984", set()),
        ("mp3", set()),
        ("", set()),
        ("модель ТК-1520", {"тк1520"}),
    ],
)
def test_codes_are_words_of_letters_and_digits_and_long_numbers(name: str, codes: set[str]) -> None:
    assert codes_of(name) == codes


def test_certainty_rises_with_a_code_that_is_theirs_alone_and_falls_with_codes_of_their_own() -> None:
    pairs = alike((0, 1), (0, 2), (1, 2), (3, 4))
    names = ["Sony PS-LX350H", "PSLX350H turntable", "Sony PS-LX250H", "tea", "Tea"]
    same, other = codes_compared(pairs, names)
    assert (same.tolist(), other.tolist()) == ([True, False, False, False], [False, True, True, False])
    sure = certainties(pairs, names, np.array([True, True, True, False]), 0.7)
    assert sure[0] > sure[3] > sure[1]


def test_a_code_that_a_whole_family_bears_says_nothing() -> None:
    pairs = alike(*((one, one + 1) for one in range(5)))
    assert not codes_compared(pairs, [f"core-i7 {word}" for word in "abcdef"])[0].any()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(7, 12)), unique=True, max_size=20), st.randoms())
def test_rivals_are_the_best_other_pair_of_each_end(pairs: list[tuple[int, int]], chance: Any) -> None:
    scores = np.array([round(chance.random(), 2) for _ in pairs], np.float64)
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    ours, theirs = rivals(left, right, scores, 0.1)
    for place, pair in enumerate(pairs):
        for side, found in ((0, ours), (1, theirs)):
            others = [scores[p] for p, other in enumerate(pairs) if p != place and other[side] == pair[side]]
            assert found[place] == max([*others, 0.1])
