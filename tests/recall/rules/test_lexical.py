"""The lexical leg as rules: words, and BM25 as an inner product."""

import math
import zlib
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.providers.minilm import read_vocabulary
from recollect.recall.rules import lexical, spelling


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Linh's teas, NEVER coffee!", ["linh", "tea", "never", "coffe"]),
        ("the walking walked walks", ["walk", "walk", "walk"]),
        ("Café au lait", ["cafe", "au", "lait"]),
        ("Bạn thích trà đá", ["ban", "thich", "tra", "da"]),
        ("차를 좋아해요", ["차를", "좋아", "아해", "해요"]),
        ("喜欢喝茶", ["喜欢", "欢喝", "喝茶"]),
        ("茶", ["茶"]),
        ("ปลาหมึก", ["ปล", "ลา", "าห", "หม", "มึ", "ึก"]),
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


@given(st.text(st.characters(max_codepoint=127, exclude_characters="0123456789-'")))
def test_plain_prose_has_the_words_it_has_beside_other_letters(text: str) -> None:
    """Prose in ASCII is taken apart in a quicker way, which is no other."""
    assert lexical.words(f"{text} \u03c9") == [*lexical.words(text), "\u03c9"]


def test_one_tokeniser_for_both_sides() -> None:
    assert lexical.words("Teas") == lexical.words("tea") == ["tea"]


@given(st.text(max_size=200))
def test_terms_are_numbers_that_the_database_can_hold(text: str) -> None:
    assert all(1 <= lexical.term(word) <= lexical.DIMENSIONS < 2**31 for word in lexical.indexed(text).words)


@given(st.text(max_size=200))
def test_D44_a_text_is_found_by_itself(text: str) -> None:
    """Whatever the language a text is taken for, the same words asked are among those that it is indexed by."""
    entry = lexical.indexed(text)
    asked = [one for one in lexical.asked(text) if not one.is_bonus]
    assert all(one.stems({entry.language}) & {*entry.words} for one in asked)


@given(st.text(max_size=50), st.text(st.sampled_from("LH e-1\u2010 2.3\n_'sé茶か\u0301"), max_size=50))
def test_D48_a_heading_is_indexed_as_if_it_stood_in_the_text(heading: str, text: str) -> None:
    assert lexical.indexed(text, heading=heading) == lexical.indexed(f"{heading}\n{text}")


def test_bm25_is_the_inner_product_of_the_two_sides() -> None:
    documents = ["tea tea green", "coffee black", "tea and coffee and milk and sugar"]
    counts = [Counter(lexical.words(document)) for document in documents]
    mean = sum(one.total() for one in counts) / 3
    question = lexical.words("green tea")
    containing = {word: sum(word in one for one in counts) for word in question}
    idf = {word: lexical.rarity(3, containing[word]) for word in question}

    def by_hand(one: Counter[str]) -> float:
        length = one.total()
        return sum(idf[w] * one[w] * 2.2 / (one[w] + 1.2 * (0.25 + 0.75 * length / mean)) for w in question if w in one)

    for one in counts:
        numbered = {lexical.term(word): count for word, count in one.items()}
        weights = lexical.document_weights(numbered, length=one.total(), mean_length=mean)
        assert sum(idf[w] * weights.get(lexical.term(w), 0.0) for w in question) == pytest.approx(by_hand(one))


def forms(asked: str, *languages: str) -> set[str]:
    """What a question is searched by, in a space with texts in these languages."""
    return {form for one in lexical.asked(asked) for form in one.stems(languages)}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("the prices went up", "price"),
        ("a party on Friday", "parties"),
        ("she runs every day", "running"),
        ("Die Häuser sind nicht teuer", "Haus"),
        ("Das Haus ist nicht teuer", "Häusern"),
        ("Les prix étaient élevés dans les magasins", "magasin"),
        ("Nous avons préféré les maisons à la campagne", "prefere"),
        ("Los gatos duermen en la casa", "gato"),
        ("De huizen zijn niet duur", "huis"),
        ("Мы купили новые книги", "книга"),
        ("Οι τιμές είναι υψηλές", "τιμή"),
        ("मुझे किताबें पसंद हैं", "किताब"),
        ("اشترينا كتب جديدة من المكتبة", "مكتبة"),
        ("کتاب‌های تازه", "کتاب"),
        ("Dom jest w Łodzi, a nie w Gdańsku", "lodzi"),
    ],
)
def test_D44_the_forms_of_a_word_match_in_its_language(text: str, asked: str) -> None:
    entry = lexical.indexed(text)
    assert forms(asked, entry.language) & {*entry.words}


@pytest.mark.parametrize(
    ("language", "checksum"),
    [
        ("english", 2_886_609_577),
        ("german", 2_943_207_793),
        ("french", 2_289_869_083),
        ("spanish", 4_158_496_636),
        ("portuguese", 747_701_741),
        ("italian", 121_157_857),
        ("dutch", 451_652_168),
        ("swedish", 1_408_414_876),
        ("norwegian", 1_944_753_079),
        ("danish", 2_594_796_201),
        ("finnish", 4_172_769_331),
        ("hungarian", 3_280_430_784),
        ("romanian", 334_896_612),
        ("turkish", 2_931_573_200),
        ("catalan", 807_727_179),
        ("polish", 3_210_539_680),
        ("czech", 3_446_101_470),
        ("indonesian", 201_552_669),
        ("lithuanian", 3_526_577_626),
        ("estonian", 495_323_118),
    ],
)
def test_D44_a_language_is_stemmed_as_ever(language: str, checksum: int) -> None:
    """What is stored was stemmed so. With other stems raise `lexical.EDITION`, and entries are made anew."""
    words = filter(str.isalpha, filter(str.isascii, read_vocabulary()))
    assert zlib.crc32(" ".join(lexical.stem(word, language) for word in words).encode()) == checksum


@pytest.mark.parametrize(
    ("language", "letters", "checksum"),
    [
        ("russian", "анойеыств", 498_088_951),
        ("arabic", "اتونيهمبل", 2_779_356_910),
        ("persian", "اتونیهمبر", 1_487_735_101),
        ("greek", "ανοσειςυμ", 1_054_467_201),
        ("hindi", "नमकरताोंि", 2_603_919_058),
        ("tamil", "கமநதலாிுள்", 2_752_245_839),
        ("armenian", "անեորւմիկ", 1_472_426_429),
    ],
)
def test_D44_a_script_is_stemmed_as_ever(language: str, letters: str, checksum: int) -> None:
    words = map("".join, product(letters, repeat=4))
    assert zlib.crc32(" ".join(lexical.stem(word, language) for word in words).encode()) == checksum


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wann ist der Termin mit dem Arzt?", "german"),
        ("Où est la clé de la maison et quand est le rendez-vous ?", "french"),
        ("Preise für Häuser", "german"),
        ("die hard movies", "english"),
        ("a de facto standard", "english"),
        ("PR 260", "english"),
        ("", "english"),
        ("The chat noir and the die Katze bar in Berlin", "english"),
    ],
)
def test_D44_a_language_is_told_by_its_little_words_or_taken_for_english(text: str, language: str) -> None:
    assert lexical.indexed(text).language == language


def test_D44_a_word_is_asked_for_in_the_languages_of_the_space_only() -> None:
    assert forms("party") == {"parti"}
    assert forms("Häuser") == {"hauser"}
    assert "haus" in forms("Häuser", "german")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("flight LH1078 to Oslo", "LH 1078"),
        ("flight LH 1078 to Oslo", "LH1078"),
        ("flight lh-1078 to Oslo", "LH1078"),
        ("flight LH1078 to Oslo", "lh-1078"),
        ("IBAN DE89 3704 0044 0532 0130 00 of the club", "DE89370400440532013000"),
        ("IBAN DE89370400440532013000 of the club", "DE89 3704 0044 0532 0130 00"),
        ("call +49 170 1234567", "491701234567"),
        ("it cost 1,250 dollars", "1250"),
        ("my e-mail address", "email"),
        ("my email address", "e-mail"),
        ("room ๑๒๓ and ٤٥٦", "123"),
        ("room ๑๒๓ and ٤٥٦", "456"),
        ("Đà Nẵng", "da nang"),
        ("København", "kobenhavn"),
        ("Hauptstraße", "hauptstrasse"),
        ("Łódź", "lodz"),
        ("ﬁle １２", "file 12"),
    ],
)
def test_D44_what_is_written_in_two_ways_is_found_by_both(text: str, asked: str) -> None:
    assert forms(asked) & {*lexical.indexed(text).words}


def test_D44_joining_makes_no_words_of_plain_prose() -> None:
    entry = lexical.indexed("It was in 2026 that we met; she is 34, he is 5 of 12.")
    assert set(entry.words) == set(lexical.words("It was in 2026 that we met; she is 34, he is 5 of 12."))
    assert lexical.indexed("LH 1078").length == 2


def test_D44_the_first_edition_is_asked_for_while_texts_are_in_it() -> None:
    assert "pric" in {form for one in lexical.asked_before("prices") for form in one.stems(())}
    assert "pric" not in forms("prices")


@pytest.mark.parametrize(
    ("asked", "known", "meant"),
    [
        ("pasport", {"passport", "report"}, {"passport": 1}),
        ("pasporrt", {"passport", "airport"}, {"passport": 2}),
        ("aslary", {"salary", "salad"}, {"salary": 1}),
        ("prty", {"party", "part"}, {"party": 1}),
        ("caat", {"boat", "coat", "cat"}, {"cat": 1, "coat": 1}),
        ("house", {"mouse", "horse"}, {"horse": 1}),
        ("kiribati", {"kilimanjaro"}, {}),
        ("gover", {"govern", "over"}, {"govern": 1}),
        ("паспрт", {"паспорт", "спорт"}, {"паспорт": 1}),
    ],
)
def test_D44_what_a_misspelled_word_may_mean(asked: str, known: set[str], meant: dict[str, int]) -> None:
    assert spelling.nearly_spelled(asked, known) == meant
    assert all(set(spelling.keys_asked(asked, 7)) & set(spelling.keys(one, 7)) for one in meant)


@pytest.mark.parametrize(
    ("question", "matter"),
    [
        ("tell me about Okafor", ["okafor"]),
        ("Où habite Sophie maintenant ?", ["habite", "sophie", "maintenant"]),
        ("Qu'est-ce qui ne va pas avec le vélo ?", ["velo"]),
        ("Wem gehört der Schlüssel?", ["gehort", "schlussel"]),
        ("¿Cuándo pasa el coche la inspección?", ["pasa", "coche", "inspeccion"]),
        ("Ai đã sửa máy bơm nước?", ["sua", "may", "bom", "nuoc"]),
        ("Где лежит загранпаспорт?", ["лежит", "загранпаспорт"]),
        ("Πού είναι το κλειδί;", ["κλειδι"]),
        ("रसोई का नल किसने ठीक किया?", ["रसोई", "नल", "ठीक", "किया"]),
        ("鍵はどこですか", ["鍵は"]),
        ("where does Kim live?", ["kim", "live"]),  # who asks in Turkish with "kim" asks for nobody of that name
        ("Kim geldi?", ["geldi"]),
    ],
)
def test_D45_words_that_only_ask_are_not_what_is_asked_about(question: str, matter: list[str]) -> None:
    assert [one.spelled for one in lexical.asked(question) if not (one.is_asking or one.is_bonus)] == matter


def test_D44_a_question_is_asked_in_its_own_language_however_few_texts_are_in_it() -> None:
    """One of its words tells the language; it was asked in English alone, and missed what its texts are indexed by."""
    text = "Bahçeye iki incir ve bir nar ağacı diktik."
    asked = lexical.asked("Bahçeye hangi ağaçları diktik?", languages=())
    indexed = lexical.indexed(text)
    assert indexed.language == "turkish"
    assert {one.spelled for one in asked if one.stems(()) & {*indexed.words}} >= {"bahceye", "diktik"}


@pytest.mark.parametrize(
    ("question", "is_english"),
    [
        ("where is the passport?", True),
        ("kubernetes autoscaling", True),  # two words tell no language
        ("who was Kim?", True),
        ("Wer war Kim?", False),
        ("Qui a peint la cuisine ?", False),
        ("Kemal Bey'in telefon numarası nedir?", False),
    ],
)
def test_D45_little_words_tell_whether_a_question_is_english(question: str, is_english: bool) -> None:
    assert lexical.is_taken_for_english(question) is is_english


@given(st.text(alphabet="abcdefgh", min_size=4, max_size=16), st.data())
def test_D44_one_slip_never_hides_a_word(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(word) - 1))
    kind = data.draw(st.sampled_from(["missed", "doubled", "other", "swapped"]))
    after = word[place:]
    if kind == "swapped":
        after = after[1:2] + after[:1] + after[2:]
    else:
        after = {"missed": after[1:], "doubled": after[0] + after, "other": "z" + after[1:]}[kind]
    slipped = word[:place] + after
    if slipped != word and len(slipped) >= spelling.SHORTEST_MISSPELLED:
        assert set(spelling.keys_asked(slipped, 7)) & set(spelling.keys(word, 7))
        assert spelling.nearly_spelled(slipped, {word}) == {word: 1}


def test_D44_a_word_that_ends_too_early_stands_for_the_most_common_that_begin_with_it() -> None:
    known = {"boiler": 2, "boiling": 1, "boisterous": 9, "boilerplate": 2, "parboiled": 9, "boilersuit": 7}
    assert [*spelling.begun("boil", known)] == ["boilersuit", "boiler", "boilerplate"]
    assert spelling.begun("boilx", known) == {}


def test_D44_a_word_that_has_begun_its_ending_is_finished_by_it() -> None:
    assert "organization" in spelling.finished("organizati")
    assert "available" in spelling.finished("availabl")
    assert "planning" in spelling.finished("plann")
    assert spelling.finished("2026ati") == spelling.finished("boo") == set()


def test_a_rare_word_tells_more() -> None:
    assert lexical.rarity(100, 1) > lexical.rarity(100, 50) > lexical.rarity(100, 99) > 0
    assert lexical.rarity(3, 1) == pytest.approx(math.log(1 + 2.5 / 1.5))


def test_D53_a_question_is_stemmed_only_in_the_languages_that_it_is_asked_in() -> None:
    forms = {one.spelled: one.forms.keys() for one in lexical.asked("nationalities", languages=())}
    in_all = {one.spelled: one.forms.keys() for one in lexical.asked("nationalities")}
    assert forms == {"nationalities": {"nation"}}
    assert len(in_all["nationalities"]) > 3
    assert lexical.asked("Häuser", languages=["german", "russian"]) == lexical.asked("Häuser", languages=["german"])
