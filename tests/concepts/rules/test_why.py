"""Why two concepts are, or are not, taken for one."""

import numpy as np
import pytest

from recollect.concepts.rules import similarity
from recollect.concepts.rules.similarity import Traits
from recollect.concepts.rules.why import REMEDIES, why


def traits(name: str, *vector: float, has_text: bool = True, **metadata: object) -> Traits:
    given = np.array(vector, np.float32) if vector else None
    return Traits(name=name, vector=given, metadata=metadata, has_text=has_text)


def test_C30_the_factors_are_a_waterfall_that_adds_up_to_the_score() -> None:
    told = why(traits("tea", 1, 0), traits("Tea", 0.8, 0.6), threshold=0.95)
    assert [step.name for step in told.steps] == ["cosine", "name", "metadata"]
    assert sum(step.adds for step in told.steps) == pytest.approx(told.factors.score, abs=1e-6)
    lines = str(told).splitlines()
    assert lines[0].startswith("cosine     0.700 x 0.800  =  0.560   █")
    assert lines[1].index("█") == lines[0].rindex("█") + 1
    assert lines[3].split() == ["score", "0.860", "below", "0.95"]


def test_C30_it_names_the_bound_that_failed_and_what_would_be_enough() -> None:
    told = why(traits("tea", 1, 0), traits("Tea", 0.8, 0.6), threshold=0.95)
    assert not told.would_merge
    assert "the score 0.860 is 0.090 below 0.95" in told.failed
    assert "the cosine 0.800 is below 0.929: nothing else can make up for it" in told.failed
    assert "a cosine of 0.929 would be enough" in told.remedies


def test_C30_where_one_factor_is_not_enough_it_says_so() -> None:
    told = why(traits("tea", 1, 0), traits("rice and salt", 0.8, 0.6, a=1), threshold=0.95)
    assert "more than one factor would have to rise" in told.remedies


def test_C30_what_would_merge_says_so() -> None:
    told = why(traits("tea", 1, 0), traits("Tea", 1, 0), threshold=0.95)
    assert told.would_merge
    assert "would become one by themselves" in str(told)


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        (traits("ASR1603", 1, 0), traits("ASR1605", 1, 0), similarity.DIGITS),
        (traits("tea", 1, 0, year=1), traits("tea", 1, 0, year=2), similarity.CONFLICT),
        (traits("tea", 1, 0, has_text=False), traits("tea", 1, 0), similarity.BARE),
        (traits("tea"), traits("tea"), similarity.NO_EMBEDDING),
    ],
)
def test_C30_a_doubt_is_told_with_its_remedy(one: Traits, other: Traits, doubt: str) -> None:
    told = why(one, other, threshold=0.9)
    assert similarity.DOUBTS[doubt] in told.failed
    assert REMEDIES[doubt] in told.remedies
    assert f"not by itself: {similarity.DOUBTS[doubt]}" in str(told)


def test_C30_other_types_lists_and_protection_are_told_too() -> None:
    told = why(traits("a"), traits("b"), threshold=0.9, is_same_type=False, is_apart=True, is_protected=True)
    assert told.failed[:3] == (
        "they are of different types",
        "they are on the never-merge list",
        "one of them is protected",
    )
    assert "without embeddings only the very same name counts" in told.failed


def test_every_doubt_has_a_remedy() -> None:
    assert REMEDIES.keys() == similarity.DOUBTS.keys()
