"""Citations: what an answer stands on, and what it only pretends to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.model import Mode
from recollect.recall.rules.citations import NOT_ANSWERED, chosen_in, cited_in, read


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Tea [Memory 1].", [1]),
        ("Tea[Memory 1] and cake [memory 2].", [1, 2]),
        ("Tea [Memory 1, 3] or [Memory 2 and 4].", [1, 3, 2, 4]),
        ("Tea [Memory 1; Memory 3], [Memories 5-7].", [1, 3, 5, 6, 7]),
        ("Tea [1] and cake [2, 3], biscuits [4][5].", [1, 2, 3, 4, 5]),
        ("Tea [Memory 2][Memory 1], again [Memory 2].", [2, 1]),
        ("Tea [Memory #2], [ Memory 3 ].", [2, 3]),
        ("It was on [2026-11-15], in [2026].", []),
        ("See matrix[0] and [1](https://example.org).", []),
        ("Nothing [Memory], [Memory x], Memory 3.", []),
        ("[Memory 0] and [Memory 7-2]", [0, 7, 2]),
    ],
)
def test_D42_citations_are_found_in_all_their_forms(text: str, numbers: list[int]) -> None:
    assert cited_in(text) == numbers


def test_D42_an_answer_with_good_citations_has_no_problems() -> None:
    reading = read("Linh drinks tea [Memory 2].\n\nConfidence: 0.8", mode=Mode.SYNTHESIZE, given=2)
    assert (reading.text, reading.cited, reading.problems) == ("Linh drinks tea [Memory 2].", (2,), ())
    assert reading.confidence == 0.8
    assert not reading.external_knowledge_used


def test_D42_an_uncited_answer_is_reported() -> None:
    (problem,) = read("Linh drinks tea.", mode=Mode.REFLECT, given=2).problems
    assert "cites no memory" in problem


@pytest.mark.parametrize("number", [0, 3, 99])
def test_D42_a_citation_out_of_range_is_reported_and_not_passed_on(number: int) -> None:
    reading = read(f"Tea [Memory 1], coffee [Memory {number}].", mode=Mode.SYNTHESIZE, given=2)
    assert reading.cited == (1,)
    (problem,) = reading.problems
    assert f"[Memory {number}]" in problem
    assert "2 memories were given" in problem


def test_D42_saying_that_the_memories_do_not_answer_needs_no_citation() -> None:
    assert read(f"{NOT_ANSWERED}\nConfidence: 0.9", mode=Mode.SYNTHESIZE, given=2).problems == ()


def test_D42_outside_knowledge_belongs_to_EXPAND_alone() -> None:
    answer = "Linh drinks tea [Memory 1]. [External] Tea holds caffeine."
    expanded = read(answer, mode=Mode.EXPAND, given=1)
    assert expanded.external_knowledge_used
    assert expanded.problems == ()
    synthesized = read(answer, mode=Mode.SYNTHESIZE, given=1)
    assert synthesized.external_knowledge_used
    assert "outside, which SYNTHESIZE does not allow" in synthesized.problems[0]


def test_D42_an_expansion_without_any_memory_is_reported() -> None:
    (problem,) = read("[External] Tea holds caffeine.", mode=Mode.EXPAND, given=1).problems
    assert "all of it is knowledge from outside" in problem


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("Confidence: 0.8", 0.8),
        ("**Confidence:** 1", 1.0),
        ("confidence : 70%", 0.7),
        ("Confidence: 7", 0.5),
        ("Confidence: high", 0.5),
        ("", 0.5),
    ],
)
def test_D12_confidence_is_the_models_own_else_a_half(line: str, confidence: float) -> None:
    assert read(f"Tea [Memory 1].\n{line}", mode=Mode.SYNTHESIZE, given=1).confidence == confidence


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("[3, 1]", [3, 1]),
        (" ```json\n[2]\n``` ", [2]),
        ("[1, 2, 3, 4, 5, 6]", [1, 2, 3, 4, 5]),
        ("[]", None),
        ("[0]", None),
        ("[13]", None),
        ("[1, 1]", None),
        ("[1, true]", None),
        ('["1"]', None),
        ("Memory 3 is best", None),
        ("3", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_D42_a_choice_is_a_list_of_different_numbers_or_nothing(answer: str, chosen: list[int] | None) -> None:
    assert chosen_in(answer, given=12) == chosen


@given(st.text(), st.integers(min_value=1, max_value=30))
def test_any_answer_can_be_read(answer: str, number: int) -> None:
    reading = read(answer, mode=Mode.SYNTHESIZE, given=number)
    assert all(1 <= cited <= number for cited in reading.cited)
    assert 0 <= reading.confidence <= 1
