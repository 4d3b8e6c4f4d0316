"""The lexical leg: one tokeniser for texts and questions, and BM25 as an inner product of two sparse vectors.

A text's side is computed once and stored; the question's side is the rarity (IDF) of its words. So exact BM25 is what
the database computes when it multiplies the two (DESIGN 7).

Words are folded (case, accents, digits of any script) and stemmed in the language of their text. Scripts without spaces
are taken in pairs of characters. What is written now with and now without a space or hyphen (LH 1078, e-mail, an IBAN)
is indexed both ways. A question may be too short to tell its language: each of its words is asked for in all the forms
that the languages of its space would give it.
"""

import math
import re
import threading
import unicodedata
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, pairwise
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from Stemmer import Stemmer

from recollect.recall.rules.languages import (
    ACCENTS,
    ARABIC,
    ASKED_WITH,
    ASKED_WITH_IN_A_ROW,
    ASKED_WITH_IN_OTHER_LETTERS,
    ASKING,
    BLOCKS,
    CYRILLIC,
    DEFAULT,
    INDIC,
    LANGUAGES_OF,
    LIKE,
    LITTLE_WORDS,
    NOT_ARABIC,
    NOT_RUSSIAN,
    STOP_WORDS,
    UNSPACED,
    URDU,
)

# Raised when texts are tokenised otherwise than before: what is indexed then is indexed anew, while search goes on.
EDITION = 2

Numbers = NDArray[np.float64]

K1 = 1.2
B = 0.75
DIMENSIONS = 1_000_000_000

# Compiled when they are first needed, which takes longer than all else here: most texts are ASCII.
_WORDS = rf"([{UNSPACED}]+|(?:[a-z0-9]+|[^\W_{UNSPACED}]+|[{INDIC}]+)+)"
_UNSPACED_ONE = f"[{UNSPACED}]"
_PLAIN_WORDS = re.compile("([a-z0-9]+)")  # the words of what is ASCII and in lower case, and far quicker
_PLAIN_JOINTS = re.compile("[0-9-]")  # where it has none of these nothing is joined
_BLANK = {code: " " for code in range(128) if not chr(code).isalnum()}
_OTHER_DIGITS = re.compile(r"[^\D0-9]")
_ACCENTS = re.compile(ACCENTS)
_LIKE = str.maketrans(LIKE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
# What ids are written with between their parts; a joined one is neither tiny nor a whole table of numbers.
_SEPARATORS = frozenset(" -./,'\u2010\u2011\u2013\u00a0\u202f")
_HYPHENS = frozenset("-\u2010\u2011")
_JOINED = range(4, 41)
# In place of a language: a form that is asked for whatever a space holds.
ALWAYS = ""
_ANY = frozenset([ALWAYS])
_LONGEST_PREFIX = 4
MOST_KNOWN = 200_000


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexedText:
    """A text as it is indexed: its words, each as often as it occurs, how long it is by them, and its language."""

    words: Sequence[str]
    length: int
    language: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedWord:
    """A word of a question, and all forms it may be indexed in, each with the languages that give it that form.

    One that is only another way of writing others of them is a bonus where it is found, and not missed elsewhere.
    """

    spelled: str
    forms: Mapping[str, frozenset[str]]
    is_bonus: bool = False
    # Whether it is a word of asking, and not one of what is asked about.
    is_asking: bool = False
    is_last: bool = False  # nothing follows it, not even a question mark: somebody may still be typing it

    @property
    def can_be_unfinished(self) -> bool:
        """Whether it may be the beginning of another: of one that is still being typed a few letters are enough."""
        return self.spelled.isalpha() and len(self.spelled) >= (3 if self.is_last else 4)

    def stems(self, languages: Collection[str]) -> frozenset[str]:
        """Its forms in these languages, and those in which it is asked for in any case."""
        asked_in = {ALWAYS, *languages}
        return frozenset(form for form, given_by in self.forms.items() if asked_in & given_by)


def words(text: str) -> list[str]:
    """The words of a text as they are compared: folded, stemmed, without those that say nothing."""
    runs, _ = _runs(text)
    return _words_of(runs, language_of(runs))


def indexed(text: str, *, heading: str = "") -> IndexedText:
    """A text as it is indexed, below a heading that many may share: its words, what has two ways of writing in both."""
    above, joined_above = _heading(heading)
    below, between = _runs(f"\n{text}")
    runs = [*above, *below]
    language = language_of(runs)
    in_text = _words_of(runs, language)
    joined = [_form(word, language) for word in dict.fromkeys([*joined_above, *_joined(below, between)])]
    return IndexedText(words=in_text + joined, length=len(in_text), language=language)


@lru_cache(maxsize=1000)
def _heading(text: str) -> tuple[list[str], list[str]]:
    """The runs of a heading, and what is also written in one there: nothing is joined across the end of a line."""
    runs, between = _runs(text)
    return runs, _joined(runs, between)


def asked(text: str, *, languages: Iterable[str] = LITTLE_WORDS) -> list[AskedWord]:
    """The words of a question, each once, in the forms that any of these languages (each takes time) would give it."""
    runs, between = _runs(text)
    likely = likely_languages(set(runs))
    own = likely[0] if len(likely) == 1 and likely[0] in LITTLE_WORDS else DEFAULT
    latin = tuple(dict.fromkeys((own, DEFAULT, *sorted({*languages} & LITTLE_WORDS.keys()))))
    only_ask = _words_of_asking(likely)
    asked_words = [word for run in runs for word in _asked(run, latin, only_ask)]
    if asked_words and text[-1:].isalpha():
        asked_words[-1] = replace(asked_words[-1], is_last=True)
    joined_words = _joined(runs, between)
    asked_words += [AskedWord(spelled=joined, forms=_forms(joined, latin), is_bonus=True) for joined in joined_words]
    return list({word.spelled: word for word in reversed(asked_words)}.values())[::-1]


def asked_before(text: str) -> list[AskedWord]:
    """The words of a question, each once, as texts were indexed in the first edition."""
    return [AskedWord(spelled=word, forms={word: _ANY}, is_bonus=True) for word in dict.fromkeys(light_words(text))]


def fold(text: str) -> str:
    """Without case, accents, and what cannot be seen; digits as 0 to 9. Hangul syllables stay whole."""
    return _plain(_lowered(text))


def is_taken_for_english(question: str) -> bool:
    """Whether its little words say so; of one or two words no language is told."""
    words = set(_runs(question)[0])
    counts = _counts(words)
    return len(words) < TELLING or counts.pop(DEFAULT) > max(counts.values())


def salt_of(space_id: UUID) -> int:
    """Words are numbered by space, so that the index over all spaces finds those of one without reading the others."""
    return zlib.crc32(space_id.bytes)


def term(word: str, salt: int = 0) -> int:
    """The number of a word, 1 to 1,000,000,000. Each space has a salt, and so numbers of its own."""
    return zlib.crc32(word.encode(), salt) % DIMENSIONS + 1


def document_weights(counts: Mapping[int, int], *, length: int, mean_length: float) -> dict[int, float]:
    """A text's side of BM25: how much each of its words says about it, given its length."""
    damping = K1 * (1 - B + B * length / max(mean_length, 1.0))
    return {number: count * (K1 + 1) / (count + damping) for number, count in counts.items()}


def weights(counts: Numbers, lengths: Numbers, means: Numbers | float) -> Numbers:
    """The same of many words at once, each by how often it occurs in a text so long."""
    return counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / np.maximum(means, 1.0)))


def occurrences(weights: Numbers, lengths: Numbers, mean_length: float) -> Numbers:
    """How often each text (a row) holds each word (a column), found again from the weights that are stored."""
    damping = K1 * (1 - B + B * lengths / max(mean_length, 1.0))
    return weights * damping[:, np.newaxis] / np.maximum(K1 + 1 - weights, 1e-6)


def saturated(counts: Numbers, lengths: Numbers, means: Numbers) -> Numbers:
    """The weights of words (columns) in texts (rows) that are so long, where texts are so long in the mean."""
    return weights(counts, lengths[:, np.newaxis], means[:, np.newaxis])


def rarity(documents: int, containing: int) -> float:
    """IDF: how much a word tells, from the number of texts and of those that hold it."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


def most_possible(rarities: Iterable[float]) -> float:
    """The score of a text that is all about these words: what a BM25 score is measured against."""
    return (K1 + 1) * sum(rarities)


def rarities_in(most_possible: float) -> float:
    """The rarities of a question's words together, which that score is made of."""
    return most_possible / (K1 + 1)


# -- from text to words


def _runs(text: str) -> tuple[list[str], list[str]]:
    """The runs of letters and digits of a text in lower case, and, where some are joined, what stands before each."""
    whole = _lowered(text)
    if whole.isascii() and not _PLAIN_JOINTS.search(whole):
        return whole.translate(_BLANK).split(), []
    pieces = _PLAIN_WORDS.split(whole) if whole.isascii() else re.split(_WORDS, whole)
    return pieces[1::2], pieces[:-1:2]


def _lowered(text: str) -> str:
    """In lower case and composed, with the digits of every script as 0 to 9; accents stay for the stemmers."""
    text = text.casefold().replace("'s", "").replace("’s", "")
    if text.isascii():  # nothing to compose, and far quicker
        return text
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    text = _OTHER_DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    return _ACCENTS.sub("", text)  # those that compose with nothing


def _plain(word: str) -> str:
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).translate(_LIKE)


def _words_of(runs: Iterable[str], language: str) -> list[str]:
    return list(chain.from_iterable(map(_known(language).__getitem__, runs)))


class _Known(dict[str, Sequence[str]]):
    """What words each run of letters comes to in one language: those of a language come again and again."""

    def __init__(self, language: str) -> None:
        self._language = language

    def __missing__(self, run: str) -> Sequence[str]:
        if _is_unspaced(run[0]):  # half a sentence, which hardly comes again
            return _pairs(_plain(run))
        if len(self) >= MOST_KNOWN:
            self.clear()
        words = self[run] = () if run in STOP_WORDS else (_form(run, self._language),)
        return words


_known = cache(_Known)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _form(run: str, language: str) -> str:
    """A word as a text of this language is indexed by it."""
    languages = languages_of(run, language)
    return _plain(stem(run, languages[0])) if languages else _plain(run)


def _asked(run: str, languages: tuple[str, ...], only_ask: Collection[str]) -> Iterator[AskedWord]:
    spelled = _plain(run)
    if _is_unspaced(run[0]):
        for pair, is_asking in zip(_pairs(spelled), _asking_in_a_row(spelled), strict=False):
            yield AskedWord(spelled=pair, forms={pair: _ANY}, is_asking=is_asking)
    elif run not in STOP_WORDS:
        yield AskedWord(spelled=spelled, forms=_forms(run, languages), is_asking=run in only_ask)


@lru_cache(maxsize=20_000)
def _forms(run: str, languages: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
    """The forms of a question's word: in its own language (the first) and in English always, in others where the space
    has them.

    With accents and without, since many leave them out.
    """
    forms: dict[str, frozenset[str]] = {}
    for latin in languages:
        for language in languages_of(run, latin):
            given_by = _ANY if latin in (languages[0], DEFAULT) else {language}
            for spelled in {run, _plain(run)}:
                form = _plain(stem(spelled, language))
                forms[form] = forms.get(form, frozenset()) | given_by
    return forms or {_plain(run): _ANY}


def _joined(runs: Sequence[str], betweens: Sequence[str]) -> list[str]:
    """What is also written in one: LH 1078, e-mail, DE89 3704 0044 05, 1,000."""
    parts = [n for n, is_word in enumerate(map(str.isalpha, runs)) if not is_word]
    if not _HYPHENS.isdisjoint(betweens):
        parts += [n for n, between in enumerate(betweens) if between in _HYPHENS]
    joined: list[str] = []
    begun: list[str] = []
    last, kind = "", ""
    for n in sorted({*parts, *(part - 1 for part in parts if part)}):  # the words that are far from any join nothing
        run, between = runs[n], betweens[n]
        if run.isalpha() and between not in _HYPHENS:  # it ends a chain, and may begin one
            joined += _whole(begun)
            begun = [run] if _is_prefix(run) else []
            last, kind = run, between
            continue
        has_digit = _has_digit(run)
        follows = between in _SEPARATORS and bool(last) and not _is_unspaced(run[0])
        if follows and (_is_prefix(last) if has_digit else between in _HYPHENS and not _has_digit(last)):
            joined.append(last + run)
        if not (follows and has_digit) or (len(begun) > 1 and between != kind):
            joined += _whole(begun)
            begun = begun[1:] if follows and has_digit and len(begun) == 2 and _is_prefix(begun[0]) else []
        if has_digit or _is_prefix(run):
            begun.append(run)
        last, kind = run, between
    joined += _whole(begun)
    return [word for word in dict.fromkeys(joined) if len(word) in _JOINED]


def _whole(parts: list[str]) -> list[str]:
    """A chain in one; and without the word before it, which may belong to it (LH) or not (IBAN)."""
    ends = (parts, parts[1:] if parts and _is_prefix(parts[0]) else [])
    return ["".join(end) for end in ends if len(end) > 1]


def _is_prefix(run: str) -> bool:
    """Whether a word may be the beginning of an id."""
    return len(run) <= _LONGEST_PREFIX and run.isalpha() and run not in STOP_WORDS and not _is_unspaced(run[0])


def _has_digit(run: str) -> bool:
    return not run.isalpha() and (run.isascii() or any(character.isdigit() for character in run))


def _is_unspaced(character: str) -> bool:
    return not character.isascii() and re.match(_UNSPACED_ONE, character) is not None


# -- which language a question is in, and which of its words only ask: nobody misses those in an answer (D45)

# So many words of a question tell its language.
TELLING = 3


def _with_and_without_accents(words: str) -> frozenset[str]:
    """Many leave accents out. Who does not means them: "mấy" asks how many, "máy" is a machine."""
    return frozenset(form for word in words.split() for form in (word, _plain(word)))


_LITTLE = {
    language: _with_and_without_accents(f"{LITTLE_WORDS.get(language, '')} {ASKED_WITH.get(language, '')}")
    for language in LITTLE_WORDS | ASKED_WITH
}
_LITTLE[DEFAULT] |= STOP_WORDS | ASKING
_ALWAYS = ASKING | _with_and_without_accents(ASKED_WITH_IN_OTHER_LETTERS)
_IN_A_ROW = re.compile(ASKED_WITH_IN_A_ROW)
# Particles and endings of Japanese: what is spoken of is mostly written in other characters.
_HIRAGANA = range(0x3040, 0x30A0)


def likely_languages(words: Collection[str]) -> list[str]:
    """Those whose little words a question holds most of: English where it is one of them, else all that are as likely.

    A question is short, so that one word tells more often than not.
    """
    counts = _counts(words)
    most = max(counts.values())
    return [DEFAULT] if counts[DEFAULT] == most else [language for language, count in counts.items() if count == most]


def _counts(words: Collection[str]) -> dict[str, int]:
    return {language: len(little.intersection(words)) for language, little in _LITTLE.items()}


def _words_of_asking(languages: Iterable[str]) -> frozenset[str]:
    """The words of asking of these languages, and those that no other language has.

    By language, since "kim" asks in Turkish and is somebody in English.
    """
    return _ALWAYS.union(*(_LITTLE[language] for language in languages))


def _asking_in_a_row(run: str) -> list[bool]:
    """Of each two characters in a row where words are not told apart, whether they only ask."""
    asking = {position for match in _IN_A_ROW.finditer(run) for position in range(match.start() - 1, match.end())}
    endings = [ord(character) in _HIRAGANA for character in run]
    both = [ending and other for ending, other in pairwise(endings)] or endings
    return [position in asking or is_ending for position, is_ending in enumerate(both)]


# -- which language a text is in, and what its words have in common with their other forms (Snowball stems)

# The script decides, and within Latin the little words that every text of a language is full of. A text too short to
# tell is taken for English; a question is short as a rule, so it is asked in every language its space holds (`asked`).
CLEAR_LETTERS = 5
_NEVER_ENGLISH = frozenset(word for word, languages in LANGUAGES_OF.items() if DEFAULT not in languages)


def language_of(words: Collection[str]) -> str:
    """The language of a text's Latin words: the one whose little words it holds most of, if it is a clear case."""
    if _NEVER_ENGLISH.isdisjoint(words):  # as most texts are, and far quicker
        return DEFAULT
    little_words = [word for word in dict.fromkeys(words) if word in LANGUAGES_OF]
    counts = Counter(chain.from_iterable(map(LANGUAGES_OF.__getitem__, little_words)))
    language = max(counts, key=counts.__getitem__)
    if counts[DEFAULT] == counts[language]:
        return DEFAULT
    of = {language: [word for word in little_words if language in LANGUAGES_OF[word]] for language in counts}
    return language if _is_clear(of.pop(language), others=[*of.values()]) else DEFAULT


def _is_clear(words: list[str], *, others: Sequence[list[str]]) -> bool:
    """Whether some little words tell a language: two of them, if not tiny ones; or one with a letter of its own."""
    if len(words) > 1:
        return sum(map(len, words)) >= CLEAR_LETTERS
    return not words[0].isascii() and not any(len(other) == len(words) for other in others)


@lru_cache(maxsize=100_000)
def languages_of(word: str, latin: str) -> tuple[str, ...]:
    """The languages whose stemmers know a word's script, the likeliest first; none where it stays whole."""
    script = _script(word[0])
    if script == "latin":
        return (latin,)
    if script == "cyrillic":
        return () if NOT_RUSSIAN & {*word} else CYRILLIC
    if script == "arabic":
        return () if URDU & {*word} else ARABIC[::-1] if NOT_ARABIC & {*word} else ARABIC
    return (script,) if script else ()


@lru_cache(maxsize=200_000)  # the words of a language come again and again
def stem(word: str, language: str = DEFAULT) -> str:
    """A word in lower case without its ending; what holds a digit as it is."""
    if not word.isalpha() and any(character.isdigit() for character in word):
        return word
    with _ONE_AT_A_TIME:
        return str(_stemmer(language).stemWord(word))


# A stemmer keeps the word it is at, and so serves one thread at a time.
_ONE_AT_A_TIME = threading.Lock()


@cache
def _stemmer(language: str) -> Stemmer:
    """Snowball, of one version: another would stem questions otherwise than texts."""
    return Stemmer(language, 0)  # it need not remember words: `stem` does


def _script(character: str) -> str:
    number = ord(character)
    return next((script for end, script in BLOCKS if number < end), "")


# -- words lightly stemmed: they keep short names apart, which are compared by them; the first edition had them

_LIGHT_WORDS = rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+"
_SUFFIXES = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3


def light_words(text: str) -> list[str]:
    """The words of a text without case, accents and the commonest English endings."""
    text = text.casefold().replace("'s", "").replace("’s", "")
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFC", "".join(c for c in apart if unicodedata.category(c) != "Mn"))
    light: list[str] = []
    for run in re.findall(_LIGHT_WORDS, text):
        if _is_unspaced(run[0]):
            light += _pairs(run)
        elif run not in STOP_WORDS:
            light.append(light_stem(run))
    return light


@lru_cache(maxsize=100_000)
def light_stem(word: str) -> str:
    """The word without a common English ending; numbers and short words as they are."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word
