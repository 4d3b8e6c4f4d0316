"""The lexical leg as rules: words, and BM25 as an inner product."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recall.rules import lexical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Linh's teas, NEVER coffee!", ["linh", "tea", "never", "coffee"]),
        ("the walking walked walks", ["walk", "walk", "walk"]),
        ("Café au lait", ["cafe", "au", "lait"]),
        ("Bạn thích trà đá", ["ban", "thich", "tra", "đa"]),
        ("차를 좋아해요", ["차를", "좋아", "아해", "해요"]),
        ("喜欢喝茶", ["喜欢", "欢喝", "喝茶"]),
        ("茶", ["茶"]),
        ("ปลาหมึก", ["ปล", "ลา", "าห", "หม", "มก"]),
        ("PR #260 on 2026-11-15", ["pr", "260", "2026", "11", "15"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("?! … 🍵", []),
        ("the and of", []),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert lexical.words(text) == words


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("แมวของฉันชอบกินปลา", "แมว"),  # Thai
        ("ແມວຂອງຂ້ອຍມັກກິນປາ", "ແມວ"),  # Lao
        ("ကြောင်ကငါးစားတယ်", "ငါး"),  # Burmese
        ("ឆ្មារបស់ខ្ញុំចូលចិត្តត្រី", "ឆ្មា"),  # Khmer
        ("猫が魚を食べる", "魚を"),
    ],
)
def test_D43_a_word_is_found_in_a_script_without_spaces(text: str, asked: str) -> None:
    assert set(lexical.words(asked)) <= set(lexical.words(text))


def test_one_tokeniser_for_both_sides() -> None:
    assert lexical.terms("Teas") == lexical.terms("tea") == Counter({lexical.term("tea"): 1})


@given(st.text(max_size=200))
def test_terms_are_numbers_that_the_database_can_hold(text: str) -> None:
    assert all(1 <= number <= lexical.DIMENSIONS < 2**31 for number in lexical.terms(text))


def test_bm25_is_the_inner_product_of_the_two_sides() -> None:
    documents = ["tea tea green", "coffee black", "tea and coffee and milk and sugar"]
    counts = [lexical.terms(document) for document in documents]
    mean = sum(one.total() for one in counts) / 3
    question = lexical.terms("green tea")
    containing = {term: sum(term in one for one in counts) for term in question}
    idf = {term: lexical.rarity(3, containing[term]) for term in question}

    def by_hand(one: Counter[int]) -> float:
        length = one.total()
        return sum(idf[t] * one[t] * 2.2 / (one[t] + 1.2 * (0.25 + 0.75 * length / mean)) for t in question if t in one)

    for one in counts:
        weights = lexical.document_weights(one, mean)
        assert sum(idf[t] * weights.get(t, 0.0) for t in question) == pytest.approx(by_hand(one))


def test_a_rare_word_tells_more() -> None:
    assert lexical.rarity(100, 1) > lexical.rarity(100, 50) > lexical.rarity(100, 99) > 0
    assert lexical.rarity(3, 1) == pytest.approx(math.log(1 + 2.5 / 1.5))
