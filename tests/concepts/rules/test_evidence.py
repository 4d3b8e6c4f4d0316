"""What the space teaches about its duplicates, without labels (C38): bags, blocking, fields, estimate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.concepts.policies.merge_duplicate_concepts import blocked, found_around
from recollect.concepts.rules.clusters import ClusterOptions, Decided, decide
from recollect.concepts.rules.detection import ConceptColumns
from recollect.concepts.rules.evidence import Evidence, weigh
from recollect.concepts.rules.evidence.bags import of_grams, of_words
from recollect.concepts.rules.evidence.candidates import block
from recollect.concepts.rules.evidence.fields import MORE, OTHER, compare_fields
from recollect.concepts.rules.similarity import CONFLICT

VERBS = ("sorting", "joining", "finding", "counting", "hashing")
THINGS = ("large tables", "short strings", "sparse graphs")
TITLES = [f"{verb} {what} in {where}" for verb in VERBS for what in THINGS for where in ("memory", "databases")]
VENUES = ("Very Large Data Bases", "VLDB")


def columns(names: Sequence[str], metadata: Sequence[dict[str, Any]] | None = None, **more: Any) -> ConceptColumns:
    """Names with vectors of their letters, so that the same name has the same vector."""
    vectors = np.zeros((len(names), 26), np.float32)
    for row, name in enumerate(names):
        for letter in name.lower():
            if "a" <= letter <= "z":
                vectors[row, ord(letter) - ord("a")] += 1.0
    return ConceptColumns.of(names=names, vectors=vectors, metadata=metadata, **more)


def taught(concepts: ConceptColumns, **options: Any) -> tuple[Evidence, Decided]:
    chosen = ClusterOptions(**options)
    blocks = blocked(concepts, chosen.review)
    found = found_around(concepts, chosen.review, None, blocks)
    evidence = weigh(blocks, found)
    return evidence, decide(concepts, found, chosen, None, evidence.above(chosen.ask_from, chosen.review))


def two_libraries() -> ConceptColumns:
    """The same papers twice: the venue is written in two ways, the year is right; one title came out in two years."""
    names = [*TITLES, *(title.title() for title in TITLES), "sorting large tables in memory"]
    metadata = [{"venue": venue, "year": str(1990 + place)} for venue in VENUES for place in range(len(TITLES))]
    return columns(names, [*metadata, {"venue": VENUES[0], "year": "2015"}])


@given(st.lists(st.lists(st.sampled_from(["tea", "rice", "the", "house"]), max_size=5), min_size=2, max_size=6))
def test_C38_cosines_of_bags_are_those_of_plain_vectors(documents: list[list[str]]) -> None:
    bag = of_words(documents, np.zeros(len(documents), np.int64))
    table = np.zeros((len(documents), len(bag.bearers)))
    table[bag.rows, bag.tokens] = bag.weights
    left, right = np.triu_indices(len(documents), 1)
    assert bag.cosines(left, right) == pytest.approx((table @ table.T)[left, right])


def test_C38_rare_words_weigh_more_and_types_are_counted_apart() -> None:
    documents = [["the", "tea"], ["the", "tea"], ["the", "rice"], ["the", "field"], ["the", "tea"]]
    bag = of_words(documents, np.array([0, 0, 0, 0, 1]))
    same, common, other_type = bag.cosines(np.array([0, 0, 0]), np.array([1, 2, 4]))
    assert same == pytest.approx(1.0)
    assert 0 < common < 0.5
    assert other_type == 0.0


def test_C38_letters_find_a_typo_in_any_script() -> None:
    bag = of_grams(["Кубернетес", "Кубернетис", "чай", ""], np.zeros(4, np.int64))
    near, far, nothing = bag.cosines(np.array([0, 0, 0]), np.array([1, 2, 3]))
    assert near > 0.5
    assert (far, nothing) == (0.0, 0.0)


def test_C38_blocking_finds_what_shares_something_rare_and_counts_what_it_skips() -> None:
    common = [["the"] for _ in range(150)]
    words = of_words([["zebra", "the"], ["zebra", "the"], *common], np.zeros(152, np.int64))
    nothing = of_grams([""] * 152, np.zeros(152, np.int64))
    found = block(words, nothing, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    assert (found.left.tolist(), found.right.tolist()) == ([0], [1])
    assert found.skipped == 150


def test_C38_values_that_meet_again_and_again_mean_the_same_and_a_year_stays_a_year() -> None:
    evidence, decided = taught(two_libraries())
    pairs = [{group.rows[0], group.rows[1]} for group in decided.merges]
    assert all(len(group.rows) == 2 for group in decided.merges)
    assert len(pairs) >= len(TITLES) - 1
    assert all(abs(one - other) == len(TITLES) for one, other in pairs)
    place = [(one, other) for one, other, _ in evidence.pairs].index((0, 2 * len(TITLES)))
    assert not evidence.agrees[place]


def test_C38_what_one_value_means_is_learnt_from_sure_pairs_alone() -> None:
    metadata = [{"venue": venue, "year": year} for venue in VENUES for year in ("1", "2", "3", "4", "5", "6")]
    left, right = np.arange(6), np.arange(6, 12)
    surely = np.ones(6, np.bool_)
    learnt = compare_fields(metadata, left, right, surely, np.full(6, 0.5))
    assert (learnt.levels[:, learnt.keys.index("venue")] == MORE).all()
    unsure = compare_fields(metadata, left, right, ~surely, np.full(6, 0.5))
    assert (unsure.levels[:, unsure.keys.index("venue")] == OTHER).all()


def test_C38_homonyms_with_different_texts_are_asked_about_and_never_merged() -> None:
    names = ["mercury", "mercury", "tea house", "rice field"]
    texts = ["the planet nearest to the sun", "a silver liquid metal", "where tea is served", "where rice grows"]
    vectors = np.eye(4, dtype=np.float32)
    concepts = ConceptColumns.of(names=names, vectors=vectors, has_text=[True] * 4, texts=texts)
    _, decided = taught(concepts)
    assert decided.merges == ()
    assert [set(group.rows) for group in decided.questions] == [{0, 1}]


def test_C38_no_estimate_overrides_a_doubt() -> None:
    names = ["sensor at -40 C", "sensor at 40 C", "Python 3.11 guide", "Python 3.12 guide", "grade A-", "grade A"]
    texts = ["the very same words"] * len(names)
    vectors = np.ones((len(names), 4), np.float32)
    concepts = ConceptColumns.of(names=names, vectors=vectors, has_text=[True] * len(names), texts=texts)
    _, decided = taught(concepts)
    assert decided.merges == ()


def test_C38_a_merge_shows_its_estimate_its_factors_and_its_rivals() -> None:
    _, decided = taught(two_libraries())
    link = decided.merges[0].links[0]
    assert link.certainty >= 0.995
    assert "% sure" in decided.merges[0].reason
    assert link.evidence is not None
    assert {"words", "letters", "score", "metadata"} <= {name for name, _ in link.evidence.adds}
    assert {key for key, _ in link.evidence.fields} == {"venue", "year"}
    assert 0 <= link.evidence.rival_of_left < 1
    assert CONFLICT not in link.factors.doubts


def test_C38_nothing_depends_on_the_order_of_the_rows() -> None:
    concepts = two_libraries()
    order = np.random.default_rng(1).permutation(len(concepts))
    assert concepts.metadata is not None
    turned = columns([concepts.names[row] for row in order], [dict(concepts.metadata[row]) for row in order],
                     ids=[concepts.ids[row] for row in order])  # fmt: skip
    _, one = taught(concepts)
    _, other = taught(turned)
    ours = {frozenset(str(concepts.ids[row]) for row in group.rows) for group in one.merges}
    assert ours == {frozenset(str(turned.ids[row]) for row in group.rows) for group in other.merges}


def test_C38_a_pass_over_what_changed_decides_as_one_over_everything() -> None:
    concepts = two_libraries()
    chosen = ClusterOptions()
    blocks = blocked(concepts, chosen.review)
    changed = np.zeros(len(concepts), np.bool_)
    changed[3] = True
    found = found_around(concepts, chosen.review, changed, blocks)
    evidence = weigh(blocks, found).above(chosen.ask_from, chosen.review)
    part = decide(concepts, found, chosen, None, evidence.around(changed))
    _, whole = taught(concepts)
    assert {group.rows for group in part.merges} <= {group.rows for group in whole.merges}
    assert (3, 33) in {group.rows for group in part.merges}


def named(texts: Sequence[str | None]) -> ConceptColumns:
    """Concepts of one name, with vectors that have nothing in common."""
    count = len(texts)
    told = [text is not None for text in texts]
    vectors = np.eye(count + 1, dtype=np.float32)
    names, more = ["tea ceremony"] * count, ["a house on the hill"]
    return ConceptColumns.of(names=names + more, vectors=vectors, has_text=[*told, True], texts=[*texts, "far away"])


def test_C33_a_bare_name_becomes_the_one_described_under_it_which_stays() -> None:
    _, decided = taught(named([None, "how tea is made in company"]))
    assert [group.rows for group in decided.merges] == [(1, 0)]


def test_C33_beside_several_described_ones_a_bare_name_is_a_question() -> None:
    _, decided = taught(named([None, "how tea is made in company", "a film about a summer by the sea"]))
    assert decided.merges == ()
    assert [set(group.rows) for group in decided.questions] == [{0, 1, 2}]
