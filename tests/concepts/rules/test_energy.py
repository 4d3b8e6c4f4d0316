"""Energy is kept raw and summed, and bent only when shown; weights are running means."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.concepts.rules.energy import running_mean, shown, summed

Energies = st.dictionaries(st.sampled_from(["translator", "architect"]), st.floats(0, 10), max_size=2)


def test_C09_energies_are_summed_per_entity_and_shown_saturated() -> None:
    merged = summed([{"translator": 0.6}, {"translator": 0.3, "architect": 0.4}])
    assert merged == {"translator": pytest.approx(0.9), "architect": 0.4}
    assert shown(merged["translator"]) == pytest.approx(0.844, abs=5e-4)
    assert shown(merged["translator"]) >= 0.8
    assert shown(merged["architect"]) == pytest.approx(0.395, abs=5e-4)
    assert shown(merged["architect"]) >= 0.35


def test_C24_three_weak_ones_pass_together_what_none_passed_alone() -> None:
    merged = summed([{"x": 0.4}, {"x": 0.3}, {"x": 0.2}])
    assert merged["x"] == pytest.approx(0.9)
    assert shown(merged["x"]) == pytest.approx(0.844, abs=5e-4)
    assert shown(merged["x"]) >= 0.5 > max(shown(alone) for alone in (0.4, 0.3, 0.2))


@given(st.lists(Energies, max_size=6), st.randoms(), st.integers(0, 6))
def test_C09_the_order_of_merges_does_not_matter(parts: list[dict[str, float]], chance: object, cut: int) -> None:
    shuffled = list(parts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summed(parts) == summed(shuffled)
    assert summed([summed(parts[:cut]), summed(parts[cut:])]) == pytest.approx(summed(parts))


@given(st.floats(0, 1e6))
@example(1.8323706856768828e-14)  # there tanh rounds up
def test_C09_what_is_shown_never_exceeds_the_most_and_never_the_raw(raw: float) -> None:
    assert shown(raw) <= min(2.0, raw)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=6), st.integers(0, 6))
def test_C10_weights_are_means_over_all_that_were_merged_in_whatever_order(
    parts: list[tuple[float, int]], cut: int
) -> None:
    value, count = running_mean(parts)
    plain = [one for one, how_many in parts for _ in range(how_many)]
    assert value == pytest.approx(math.fsum(plain) / len(plain))
    assert count == len(plain)
    again = running_mean([running_mean(parts[:cut]), running_mean(parts[cut:])])
    assert again[0] == pytest.approx(value)
    assert again[1] == count


def test_C10_nothing_has_no_weight() -> None:
    assert running_mean([]) == (0.0, 0)
