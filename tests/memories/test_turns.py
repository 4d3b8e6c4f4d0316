"""Threads take short turns while something is loaded, and only then."""

import sys

import pytest

from recollect.memories.turns import SECONDS, Turns


def test_turns_are_short_until_the_last_load_has_ended() -> None:
    turns, usual = Turns(), sys.getswitchinterval()
    with turns.short():
        with turns.short():
            assert sys.getswitchinterval() == pytest.approx(SECONDS)
        assert sys.getswitchinterval() == pytest.approx(SECONDS)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_load_that_fails_leaves_turns_as_they_were() -> None:
    turns, usual = Turns(), sys.getswitchinterval()
    with pytest.raises(ValueError, match="no text"), turns.short():
        raise ValueError("no text")
    assert sys.getswitchinterval() == pytest.approx(usual)
