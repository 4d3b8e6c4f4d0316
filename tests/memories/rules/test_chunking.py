"""D08: long documents are cut into chunks: nothing lost, the bound respected, at the best places, in linear time."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memories.rules.chunking import MOST_CHARACTERS, chunks, headings_above
from recollect.memories.rules.text import count_tokens, normalise
from tests.effort import costs_at_most

MARKS = ["# ", "## ", "\n", "\n\n", "- ", "1. ", "```", "~~~~", "---", "===", ". ", "? ", "。", "\t", "  "]
LETTERS = ["é", "e\u0301", "👩‍👩‍👧", "漢字"]
MARKUP = st.sampled_from([*MARKS, *LETTERS])
WORDS = st.sampled_from(["word ", "internationalisation"])
TEXTS = st.lists(st.one_of(MARKUP, WORDS, st.text(max_size=30)), max_size=80)


def without_space(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=300, deadline=None)
@given(parts=TEXTS, most=st.integers(1, 60))
def test_D08_nothing_is_lost_and_every_chunk_keeps_within_the_bound(parts: list[str], most: int) -> None:
    text = normalise("".join(parts))
    made = chunks(text, most)
    assert without_space("".join(made)) == without_space(text)
    assert all(chunk and chunk == normalise(chunk) for chunk in made)
    assert all(count_tokens(chunk) <= most for chunk in made)


@settings(max_examples=200, deadline=None)
@given(parts=TEXTS, most=st.integers(1, 60))
def test_D08_chunks_are_stretches_of_the_document_in_order(parts: list[str], most: int) -> None:
    text = normalise("".join(parts))
    place = 0
    for chunk in chunks(text, most):
        found = text.index(chunk, place)
        assert not text[place:found].strip()
        place = found + len(chunk)
    assert not text[place:].strip()


@settings(max_examples=200, deadline=None)
@given(parts=TEXTS)
def test_D08_a_short_document_stays_whole(parts: list[str]) -> None:
    text = normalise("".join(parts))
    assert chunks(text, max(1, count_tokens(text))) == ([text] if text else [])


@settings(max_examples=100, deadline=None)
@given(parts=TEXTS, more=TEXTS, most=st.integers(4, 40))
def test_D08_what_is_added_at_the_end_leaves_the_first_chunks_as_they_were(
    parts: list[str], more: list[str], most: int
) -> None:
    before = chunks(text := normalise("".join(parts)), most)
    after = chunks(text + "\n\n" + normalise("".join(more)), most)
    kept = max(0, len(before) - 2)  # the last chunks may take in some of what follows
    assert after[:kept] == before[:kept]


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


def test_D08_a_heading_is_the_best_place_to_cut() -> None:
    first = f"# One\n\n{words(30)}.\n\n{words(30)}."
    second = f"## Two\n\n{words(30)}.\n\n{words(30)}."
    assert chunks(f"{first}\n\n{second}", 100) == [first, second]


def test_D08_an_underlined_heading_counts_too() -> None:
    first = f"One\n===\n\n{words(30)}.\n\n{words(30)}."
    second = f"Two\n---\n\n{words(30)}.\n\n{words(30)}."
    assert chunks(f"{first}\n\n{second}", 100) == [first, second]


def test_D08_without_headings_paragraphs_stay_whole() -> None:
    paragraphs = [f"{words(40)}. {words(20)}." for _ in range(4)]
    assert chunks("\n\n".join(paragraphs), 100) == paragraphs


def test_D08_list_items_stay_whole() -> None:
    items = [f"- {words(20)}, {words(15)}" for _ in range(4)]
    made = chunks("\n".join(items), 80)
    assert made == ["\n".join(items[:2]), "\n".join(items[2:])]


def test_D08_a_long_paragraph_is_cut_between_sentences() -> None:
    made = chunks(" ".join([f"{words(9)}."] * 30), 100)
    assert len(made) == 3
    assert all(chunk.endswith(".") and chunk.startswith("word") for chunk in made)


def test_D08_japanese_and_chinese_sentences_end_without_a_space() -> None:
    sentence = "我今天喝茶不喝咖啡。"
    made = chunks(sentence * 40, 100)
    assert all(chunk.endswith("。") and chunk.startswith("我") for chunk in made)


def test_D08_a_long_sentence_is_cut_between_words() -> None:
    made = chunks(words(500, "unpunctuated"), 100)
    assert all(set(chunk.split()) == {"unpunctuated"} for chunk in made)


def test_D08_a_word_longer_than_a_chunk_is_cut_hard() -> None:
    made = chunks("x" * 10_000, 100)
    assert "".join(made) == "x" * 10_000
    assert all(count_tokens(chunk) <= 100 for chunk in made)


def test_D08_a_hard_cut_tears_no_accent_and_no_emoji() -> None:
    accented = "g\u0303" * 1000  # has no single character of its own, in any normal form
    family = "👩‍👩‍👧" * 400
    assert all(chunk[0] == "g" for chunk in chunks(accented, 50))
    assert all(chunk[0] in "👩👧" and "\u200d" not in (chunk[0], chunk[-1]) for chunk in chunks(family, 50))


def test_D08_a_heading_is_not_left_behind_by_its_text() -> None:
    text = f"{words(60)}.\n\n# Heading\n\n{words(50)}."
    assert chunks(text, 64)[1].startswith("# Heading")


def test_D08_a_title_is_not_cut_off_from_its_first_section() -> None:
    text = f"{words(60)}.\n\n# Title\n\n## Section\n\n{words(50)}."
    assert chunks(text, 70)[1].startswith("# Title")


def test_D08_a_comment_in_code_is_no_heading() -> None:
    code = "```python\n" + "\n".join(["# a comment", "call()"] * 10) + "\n```"
    text = f"# Real\n\n{words(20)}.\n\n{code}\n\n# Next\n\n{words(40)}."
    assert [chunk.splitlines()[0] for chunk in chunks(text, 120)] == ["# Real", "# Next"]


def test_D08_endless_white_space_makes_no_oversized_memory() -> None:
    made = chunks("first" + " " * (2 * MOST_CHARACTERS) + "last", 2000)
    assert made == ["first", "last"]


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_D08_nothing_gives_no_chunk(text: str) -> None:
    assert chunks(text, 2000) == []


HARD_CASES: dict[str, Callable[[int], str]] = {
    "letters": lambda size: "a" * size,
    "dots": lambda size: "." * size,
    "quotes after dots": lambda size: "." + '"' * size,
    "one line of words": lambda size: "hello world " * (size // 12),
    "marks": lambda size: "a" + "\u0301" * size,
    "white space": lambda size: "x" + " " * size + "y",
    "empty lines": lambda size: "x" + "\n" * size + "y",
    "backticks": lambda size: "`" * size,
    "hashes": lambda size: "#" * size,
    "short lines": lambda size: "a\n" * (size // 2),
    "dashes": lambda size: "a\n---\n\n" * (size // 7),
}


@pytest.mark.parametrize("shape", HARD_CASES)
def test_D08_time_grows_with_the_length_and_no_faster(shape: str) -> None:
    """Ten times the text in about ten times the time; anything quadratic would take a hundred times as long."""

    short, long = (HARD_CASES[shape](size) for size in (50_000, 500_000))
    assert costs_at_most(40, lambda: chunks(long, 2000), lambda: chunks(short, 2000))


def test_D48_a_chunk_knows_the_headings_it_stands_below() -> None:
    filler = "word " * 60
    text = normalise(
        f"# Travel\n\n{filler}\n\n## Japan\n\n{filler}\n\n{filler}\n\n```\n# no heading\n```\n\n"
        f"## Peru\n\n{filler}\n\nHome\n====\n\n{filler}\n\n{filler}"
    )
    parts = chunks(text, 80)
    above = dict(zip(parts, headings_above(text, parts), strict=True))
    assert [above[part] for part in parts][:2] == ["", "Travel"]
    assert {above[part] for part in parts if part.startswith("word")} == {"Travel / Japan", "Home"}
    assert all("no heading" not in heading for heading in above.values())
