"""Names: what tells two things apart is a doubt, what is only another way of writing is none (C34)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.concepts.rules.names import name_of, plain
from recollect.concepts.rules.similarity import CAPITALS, DIGITS, NUMBERS, SIGNS, WORDS, name_doubts

APART = [
    # signs
    ("-40 C", "40 C", DIGITS),
    ("−40 °C", "40 °C", DIGITS),
    ("A-", "A", SIGNS),
    ("A−", "A", SIGNS),
    ("A-", "A+", WORDS),
    ("blood group O-", "blood group O", SIGNS),
    ("-O2", "O2", SIGNS),
    ("n!", "n", SIGNS),
    ("f'", "f", SIGNS),
    ("C++", "C", WORDS),
    ("C#", "C", WORDS),
    # versions and numbers
    ("v1.2", "v12", DIGITS),
    ("Python 3.11", "Python 3.12", DIGITS),
    ("TLS 1.2", "TLS 12", DIGITS),
    ("0.5 mg", ".05 mg", DIGITS),
    ("1/2", "12", DIGITS),
    ("10⁶", "106", NUMBERS),
    ("2³", "23", NUMBERS),
    ("1½ cups", "11/2 cups", DIGITS),
    ("1,000 steps", "1000 steps", NUMBERS),
    ("World War I", "World War II", DIGITS),
    ("Type I error", "Type II error", DIGITS),
    ("Henry V", "Henry VIII", DIGITS),
    ("第1章", "第2章", DIGITS),
    ("الدرس ٣", "الدرس ٤", DIGITS),
    ("กลุ่ม ๑", "กลุ่ม ๒", DIGITS),
    # units
    ("100 EUR", "100 USD", NUMBERS),
    ("$100", "€100", DIGITS),
    ("5 kg", "5 g", NUMBERS),
    ("5㎏", "5 g", NUMBERS),
    ("40 °C", "40 °F", NUMBERS),
    ("40 %", "40 ‰", DIGITS),
    ("5 mW", "5 MW", CAPITALS),
    ("10 Mb", "10 MB", CAPITALS),
    ("5 giờ", "5 phút", NUMBERS),
    # capitals
    ("Turkey", "turkey", CAPITALS),
    ("Polish", "polish", CAPITALS),
    ("China", "china", CAPITALS),
    ("March", "march", CAPITALS),
    ("AIDS", "aids", CAPITALS),
    ("US", "us", CAPITALS),
    ("Essen", "essen", CAPITALS),
    # accents make other words
    ("má", "mạ", WORDS),
    ("schon", "schön", WORDS),
    ("Zürich", "Zuerich", WORDS),
    ("Straße", "Strasse", WORDS),
    ("Đà Nẵng", "Da Nang", WORDS),
    ("København", "Kobenhavn", WORDS),
    ("год", "гад", WORDS),
    ("東京", "京東", WORDS),
]
ONE = [
    ("machine_learning", "Machine Learning"),
    ("Kubernetes", "kubernetes"),
    ("e-mail", "email"),
    ("A.I.", "AI"),
    ("F-16", "F16"),
    ("Yahoo!", "Yahoo"),
    ("Moby-Dick", "Moby Dick"),
    ("machine\u200blearning", "machinelearning"),
    ("so\u00adft hyphen", "soft hyphen"),
    ("\ufefftea", "tea"),
    ("tea\u200f", "tea"),
    ("ｍａｃｈｉｎｅ　ｌｅａｒｎｉｎｇ", "machine learning"),
    ("ﬁne-tuning", "fine-tuning"),
    ("５㎏", "5 kg"),
    ("H₂O", "H2O"),
    ("100 AUD", "100 aud"),
    ("Ｔｕｒｋｅｙ", "Turkey"),
    ("ｶﾀｶﾅ", "カタカナ"),
    ("한글", "한글"),
    ("cafe\u0301", "café"),
    ("می\u200cخواهم", "میخواهم"),
    ("ΣΟΦΙΑ", "σοφια"),
    ("ТЕОРИЯ", "теория"),
]


@pytest.mark.parametrize(("one", "other", "doubt"), APART)
def test_C34_what_tells_two_names_apart_is_a_doubt(one: str, other: str, doubt: str) -> None:
    assert doubt in name_doubts(name_of(one), name_of(other))
    assert doubt in name_doubts(name_of(other), name_of(one))


@pytest.mark.parametrize(("one", "other"), ONE)
def test_C34_another_way_of_writing_is_no_other_word(one: str, other: str) -> None:
    assert set(name_doubts(name_of(one), name_of(other))) <= {CAPITALS}
    assert name_of(one).words == name_of(other).words


@pytest.mark.parametrize(("one", "other"), [("🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"), ("tea", "teа"), ("m²", "m³")])
def test_C34_what_only_looks_alike_stays_apart(one: str, other: str) -> None:
    assert name_doubts(name_of(one), name_of(other))


@given(st.text(max_size=30))
def test_C34_the_form_in_which_names_are_compared_is_its_own(name: str) -> None:
    assert plain(plain(name)) == plain(name)


@given(st.text(max_size=20), st.text(max_size=20))
def test_C34_doubts_do_not_depend_on_which_comes_first(one: str, other: str) -> None:
    assert name_doubts(name_of(one), name_of(other)) == name_doubts(name_of(other), name_of(one))
    assert name_doubts(name_of(one), name_of(one)) == []
