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


@pytest.mark.parametrize(
    ("answer", "bare"),
    [
        ("Linh drinks tea [Memory 1]. She gave up coffee [Memory 2].", []),
        ("Linh drinks tea [Memory 1]. She gave up coffee.", ["She gave up coffee."]),
        ("Linh drinks tea. [Memory 1] She gave up coffee. [Memory 2][1]", []),
        ("She gave up coffee. Linh drinks tea. [Memory 1]", ["She gave up coffee."]),
        ("In short:\n- tea [1]\n- never coffee\n1. cake [2]", ["never coffee"]),
        ("## What is known\n**Drinks**\nTea [1].\n\n```\nno. sentence. here.\n```", []),
        ("Dr. Halloran and J. Smith met Mrs. Quist at 3.30 p.m. in St. Ives [1].", []),
        ("It cost 2.9 percent, approx. 40 euros [1]. Was it dear? That is open!", ["That is open!"]),
        ("林喝茶 [1]。她不喝咖啡。", ["她不喝咖啡。"]),
        ("Линь пьёт чай [1]. Кофе она не пьёт.", ["Кофе она не пьёт."]),
        ("Linh drinks tea [1]. The memories do not answer that.", []),
        ("Tea [1]. “Never coffee.” So she said [2].", ["“Never coffee.”"]),
    ],
)
def test_D51_a_sentence_without_a_citation_is_named(answer: str, bare: list[str]) -> None:
    problems = read(answer, mode=Mode.SYNTHESIZE, given=2).problems
    assert len(problems) == bool(bare)
    for sentence in bare:
        assert f'"{sentence}"' in problems[0]
    if bare:
        assert problems[0].startswith("1 sentence cites no memory: ")


def test_D51_of_many_sentences_the_first_are_named_and_the_others_counted() -> None:
    answer = "Tea [1]. " + " ".join(f"Claim number {number} is made here." for number in range(8))
    (problem,) = read(answer, mode=Mode.SYNTHESIZE, given=1).problems
    assert problem.startswith('8 sentences cite no memory: "Claim number 0 is made here.", ')
    assert problem.endswith('"Claim number 4 is made here.", and 3 more.')
    (long,) = read(f"Tea [1]. {'On and on ' * 40}.", mode=Mode.SYNTHESIZE, given=1).problems
    assert len(long) < 120


def test_D51_knowledge_from_outside_needs_no_citation_and_a_stranger_is_named_once() -> None:
    answer = "Tea [Memory 1]. [External] It holds caffeine. It was grown in Assam."
    (problem,) = read(answer, mode=Mode.EXPAND, given=1).problems
    assert '"It was grown in Assam."' in problem
    assert "caffeine" not in problem
    (stranger,) = read("Tea [Memory 1]. Coffee [Memory 9].", mode=Mode.SYNTHESIZE, given=1).problems
    assert "[Memory 9]" in stranger


@given(st.text(max_size=300), st.sampled_from(list(Mode)))
def test_D51_any_answer_can_be_read_and_every_named_sentence_is_in_it(answer: str, mode: Mode) -> None:
    told = f"Tea [1]. {answer}"
    assert "cites no memory: check" not in " ".join(read(told, mode=mode, given=1).problems)
