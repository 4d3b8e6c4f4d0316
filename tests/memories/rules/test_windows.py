"""Long texts are read in windows (D47)."""

from itertools import pairwise

import pytest

from recollect.memories.rules.text import count_tokens
from recollect.memories.rules.windows import BESIDE, MOST, OVERLAP, TOKENS, WHOLE, Window, is_long, passage, windows
from recollect.recall.rules.passages import passage_of

SENTENCE = "The committee discussed item {} of the yearly budget at length and adjourned without a vote."
FACT = "The spare key of the boathouse hangs behind the portrait of the harbour master."


def long_note(sentences: int = 150, *, fact: str = FACT) -> str:
    told = [SENTENCE.format(number) for number in range(sentences)]
    return "\n".join([*told[: sentences // 2], fact, *told[sentences // 2 :]])


def reaches(text: str, found: list[Window]) -> list[tuple[int, int]]:
    return [(one.start, len(text) if one.end is None else one.end) for one in found]


def test_D47_windows_cover_a_text_overlap_and_end_with_sentences() -> None:
    text = long_note()
    found = windows(text)
    places = reaches(text, found)
    assert (places[0][0], places[-1][1]) == (0, len(text))
    assert all(one[0] < other[0] <= one[1] < other[1] for one, other in pairwise(places))
    assert all(TOKENS / 2 < count_tokens(one.of(text)) < 1.5 * TOKENS for one in found)
    shared = [count_tokens(text[other[0] : one[1]]) for one, other in pairwise(places)]
    assert OVERLAP / 2 <= sum(shared) / len(shared) <= 2 * OVERLAP
    assert sum(one.of(text).endswith(".") for one in found) > len(found) / 2
    assert any(FACT in one.of(text) for one in found)


@pytest.mark.parametrize("text", ["", "short", "word " * 1000, "พ่อชอบดื่มชา" * 10])
def test_D47_a_text_of_one_window_stays_whole(text: str) -> None:
    assert not is_long(text)
    assert windows(text) == [WHOLE]


@pytest.mark.parametrize("text", ["字" * 3000, "x" * 40_000, "word " * 100_000, "a\n" * 3000, "สวัสดี" * 900])
def test_D47_windows_of_any_text_cover_it_and_are_not_too_many(text: str) -> None:
    found = reaches(text, windows(text))
    assert is_long(text)
    assert 1 < len(found) <= MOST
    assert (found[0][0], found[-1][1]) == (0, len(text))
    assert all(one[1] >= other[0] for one, other in pairwise(found))
    assert all(start < end for start, end in found)


def test_D47_the_passage_is_the_nearest_or_the_one_that_holds_the_words() -> None:
    text = long_note()
    ranked = windows(text)[::-1]
    first = "The committee"
    nearest = text[text.rindex(first, 0, ranked[BESIDE].start + len(first)) :]
    assert FACT in passage_of(text, ranked, question="boathouse key", nearest=False)
    assert passage_of(text, ranked, question="boathouse key", nearest=True) == nearest
    assert passage_of(text, ranked, question="nothing of the kind?!", nearest=False) == nearest


def test_D47_a_rare_word_of_the_question_outweighs_what_every_passage_holds() -> None:
    text = long_note(fact="Nobody expected the tarantula.")
    found = passage_of(
        text, windows(text), question="the yearly budget of the committee and a tarantula", nearest=False
    )
    assert "tarantula" in found


SENTENCES_OF_140 = "鸭苹蛇猪，" * 28 + "。"


@pytest.mark.parametrize(
    "text",
    [
        SENTENCES_OF_140 * 40,
        "ああいう，" * 700,
        "🦊 🐻 🐼 " * 1500,
        "\n".join(f"{n},{'x' * (n % 90)},{n * 7}" for n in range(900)),
        "\n".join("  ".join(f"cell{n}".ljust(2 + 37 * (n * k) % 119) for k in range(12)) for n in range(200)),
    ],
    ids=["Chinese", "Japanese", "emoji", "CSV", "table"],
)
def test_D47_a_passage_holds_the_window_it_is_shown_for_and_windows_leave_nothing_out(text: str) -> None:
    found = windows(text)
    places = reaches(text, found)
    assert (places[0][0], places[-1][1]) == (0, len(text))
    assert all(one[1] >= other[0] for one, other in pairwise(places))
    for window in found:
        start, end = passage(text, window, found)
        assert start <= window.start
        assert end is None or (window.end is not None and window.end <= end)


def test_D47_a_word_is_pointed_at_whatever_its_stem_ends_with() -> None:
    text = long_note(fact="She slipped near the libraries of the city.")
    for question in ("library", "cities", "slipping"):
        assert "She slipped" in passage_of(text, windows(text), question=question, nearest=False)
