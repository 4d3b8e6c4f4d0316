"""Very many of one name: one group, found in nearly linear time, and what was not compared is counted (C37)."""

import numpy as np
import pytest

from recollect.concepts.policies.merge_duplicate_concepts import Options, decide
from recollect.concepts.rules.clusters import Decided
from recollect.concepts.rules.concepts import KnownConcepts
from recollect.concepts.rules.detection.blocks import MOST_NAMESAKES, NEAR_THE_FIRST, block
from recollect.concepts.rules.detection.columns import ConceptColumns
from recollect.concepts.rules.evidence import NEARLY_EQUAL
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.similarity import WEIGHTS
from tests.effort import costs_at_most

OTHERS = 40


def named_alike(count: int, *, spread: float, texts: str = "the study of machines that learn") -> ConceptColumns:
    """So many of one name around one direction, among a few others."""
    chance = np.random.default_rng(3)
    around = chance.normal(size=64) + spread * chance.normal(size=(count, 64))
    others = [f"{first}{second} of its own" for first in "kmpr" for second in "aeiouwxyzq"]
    return ConceptColumns.of(
        names=["Machine Learning"] * count + others,
        vectors=np.vstack([around, chance.normal(size=(OTHERS, 64))]),
        has_text=[True] * (count + OTHERS),
        texts=[texts.format(number) for number in range(count)] + others,
    )


def decided(columns: ConceptColumns, apart: Apart | None = None) -> Decided:
    known = KnownConcepts(
        columns=columns, ids=(), types=["idea"] * len(columns), metadata=(), versions=(), created_at=(), updated_at=()
    )
    return decide(known, None, apart or Apart(), Options())


@pytest.mark.parametrize("count", [MOST_NAMESAKES, MOST_NAMESAKES + 1, MOST_NAMESAKES + 2, 2_000])
def test_C37_however_many_of_one_name_and_meaning_become_one(count: int) -> None:
    found = decided(named_alike(count, spread=0.01))
    assert [len(group.rows) for group in found.merges] == [count]
    assert (found.questions, found.left_out) == ((), 0)


def test_C37_a_crowd_whose_texts_differ_is_one_question_that_says_what_was_not_compared() -> None:
    found = decided(named_alike(300, spread=0.01, texts="the study of {} machines that learn"))
    assert found.merges == ()
    [question] = found.questions
    assert len(question.rows) == 300
    assert question.reason == "300 are named 'Machine Learning', too many to compare each with each"
    assert 0 < found.left_out <= 300 * 299 // 2


def test_C37_a_crowd_whose_meanings_differ_is_one_question_beside_what_is_found_in_it() -> None:
    columns = named_alike(300, spread=3.0)
    columns.vectors[299] = columns.vectors[0]
    found = decided(columns)
    assert [sorted(group.rows) for group in found.merges] == [[0, 299]]
    [question] = found.questions
    assert (len(question.rows), question.reason) == (299, "299 are named 'Machine Learning'")
    assert found.left_out == 0


def test_C37_what_a_person_keeps_apart_is_asked_about_no_more() -> None:
    columns = named_alike(300, spread=0.6)
    [question] = decided(columns).questions
    ids = [columns.ids[row] for row in question.rows]
    apart = Apart(ids=[(ids[0], other) for other in ids[1:]])
    assert decided(columns, apart).questions == ()


def test_C37_two_that_are_near_the_first_are_near_each_other() -> None:
    furthest = 2 * np.arccos(NEAR_THE_FIRST)
    assert WEIGHTS.cosine * np.cos(furthest) + WEIGHTS.name + WEIGHTS.metadata >= NEARLY_EQUAL


def test_C37_the_work_grows_with_the_crowd_and_not_with_its_square() -> None:
    small, large = (named_alike(count, spread=0.6) for count in (1_000, 4_000))
    assert costs_at_most(9, more=lambda: block(large), less=lambda: block(small))
