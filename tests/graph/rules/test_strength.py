"""Strength: how it fades, what raises it, when an edge was last alive."""

import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.rules import strength
from tests.graphs import LONG_AGO, NOW


def test_A00a_strength_decays_by_five_hundredths_a_day_from_when_it_was_set() -> None:
    tenth_day = strength.current(0.8, 0.05, NOW - timedelta(days=10), NOW)
    assert tenth_day == pytest.approx(0.8 * math.exp(-0.5))
    assert strength.current(0.8, 0.05, NOW, NOW) == 0.8


def test_A00a_looking_twice_changes_nothing_and_the_future_adds_nothing() -> None:
    assert strength.current(0.8, 0.05, NOW + timedelta(days=3), NOW) == 0.8
    assert strength.current(0.8, 0.0, LONG_AGO, NOW) == 0.8


def test_A05_a_strength_never_said_is_one_and_does_not_decay_and_nought_is_nought() -> None:
    assert strength.current(None, 0.05, LONG_AGO, NOW) == 1.0
    assert strength.current(0.0, 0.05, LONG_AGO, NOW) == 0.0


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0, 1)),
            st.floats(0, 1),
            st.integers(-100_000, 10_000_000),
        ),
        max_size=20,
    )
)
def test_A00a_columns_decay_as_single_edges_do(edges: list[tuple[float | None, float, int]]) -> None:
    said = np.array([np.nan if one is None else one for one, _, _ in edges])
    rates = np.array([rate for _, rate, _ in edges])
    times = [NOW - timedelta(seconds=ago) for _, _, ago in edges]
    found = strength.current_of_all(said, rates, np.array([time.timestamp() for time in times]), NOW.timestamp())
    expected = [strength.current(one, rate, time, NOW) for (one, rate, _), time in zip(edges, times, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_A00a_decay_starts_at_the_last_reinforcement_else_at_creation() -> None:
    assert strength.set_at_of_all(np.array([np.nan, 5.0]), np.array([1.0, 1.0])).tolist() == [1.0, 5.0]


def test_A04_last_active_of_columns_is_the_same() -> None:
    nan = np.nan
    found = strength.last_active_of_all(np.array([1.0, nan, nan]), np.array([2.0, nan, nan]), np.array([0.0, 3.0, nan]))
    assert found[:2].tolist() == [2.0, 3.0]
    assert np.isnan(found[2])
