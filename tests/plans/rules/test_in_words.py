"""What a question says (C36, G06): what two have in common and what speaks against it, without figures."""

import pytest

from recollect.plans.rules.questions import in_words

LIKELY = "about 99% likely, with a score of 0.912"


@pytest.mark.parametrize(
    ("other", "alike", "says"),
    [
        ("dragon", 0.2, "Same name, but different texts."),
        ("dragon", 0.55, "Same name and related texts."),
        ("dragons", 0.85, "Similar names and nearly the same text."),
        ("dragons", None, "Similar names."),
    ],
)
def test_C36_a_question_says_what_two_have_in_common(other: str, alike: float | None, says: str) -> None:
    cosine = [] if alike is None else [{"name": "cosine", "value": alike}]
    factors = {"steps": [*cosine, {"name": "name", "value": 0.9}], "doubts": []}
    assert in_words("dragon", other, LIKELY, factors) == says


def test_C36_what_speaks_against_it_is_said_once() -> None:
    doubt = "the names are not made of the same words"
    factors = {"steps": [{"name": "cosine", "value": 0.9}], "doubts": [doubt]}
    said = in_words("tea", "green tea", f"{LIKELY}; {doubt}", factors)
    assert said == f"Similar names and nearly the same text. Against it: {doubt}."


def test_C36_of_cases_the_reason_is_told_without_its_figure() -> None:
    reason = "their questions are alike (0.9312), but their answers differ"
    said = in_words("How?", "How so?", reason, {"doubts": ["their answers differ"]})
    assert said == "Their questions are alike, but their answers differ."
