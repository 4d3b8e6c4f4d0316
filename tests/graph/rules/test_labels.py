"""Labels: whatever the text, short, on few lines, and cut where a reader would."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.graph.rules.labels import ELLIPSIS, MOST_MARKS, letters, shortened, tidy, width, wrapped
from tests.effort import costs_at_most

FAMILY = "👩‍👩‍👧"
ANY = st.text(st.one_of(st.characters(), st.sampled_from("\0\n\u202e\u200d\u0301🇻🇳 -_")), max_size=80)


@given(text=ANY, columns=st.integers(2, 30), lines=st.integers(1, 3))
def test_a_label_keeps_within_its_lines_and_columns(text: str, columns: int, lines: int) -> None:
    made = wrapped(text, columns, lines)
    assert len(made) <= lines
    assert all(line and line == line.strip() for line in made)
    assert all(sum(1 for _ in letters(line)) <= columns for line in made)


@given(text=ANY)
def test_nothing_harmful_is_left(text: str) -> None:
    made = tidy(text)
    assert made == " ".join(made.split())
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in made)
    assert not set(made) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@given(text=st.text("abc -é漢", max_size=40))
def test_nothing_is_lost_where_there_is_room(text: str) -> None:
    assert shortened(text, 80) == " ".join(text.split())
    assert "".join(wrapped(text, 40, 5)).replace(" ", "") == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Linh prefers tea, never coffee", ("Linh prefers", "tea, never…")),
        ("consciousness_substrate", ("consciousness_", "substrate")),
        ("Booking duplicates", ("Booking", "duplicates")),
        ("x" * 40, ("x" * 14, "x" * 13 + ELLIPSIS)),
        ("tea", ("tea",)),
        ("", ()),
        ("\u200b\u200d\0", ()),
    ],
)
def test_lines_break_where_a_reader_would(text: str, made: tuple[str, ...]) -> None:
    assert wrapped(text, 14, 2) == made


def test_what_is_seen_as_one_letter_is_never_cut() -> None:
    assert shortened(FAMILY * 9, 7) == FAMILY * 3 + ELLIPSIS
    assert list(letters("🇻🇳🇫🇷")) == ["🇻🇳", "🇫🇷"]
    assert shortened("👍🏽" * 9, 5) == "👍🏽" * 2 + ELLIPSIS


def test_piles_of_marks_are_cut() -> None:
    assert tidy("Z" + "\u0301" * 500) == "Z" + "\u0301" * MOST_MARKS


def test_wide_letters_count_as_wide() -> None:
    assert width("漢字", 10) > width("ab", 10) > width("il", 10)
    assert shortened("漢字" * 10, 9) == "漢字漢字" + ELLIPSIS


@pytest.mark.parametrize("text", ["x" * 10_000, "a" + "\u0301" * 10_000, "\u200d" * 10_000, " a" * 5_000, "🇻" * 10_000])
def test_a_monstrous_label_costs_little(text: str) -> None:
    """Ten times the letters in about ten times the time, not in a hundred times."""
    assert costs_at_most(40, lambda: wrapped(text, 16, 2), lambda: wrapped(text[: len(text) // 10], 16, 2))
