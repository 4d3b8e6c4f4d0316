"""Names in the forms in which they are compared: what is only another way of writing is folded, what tells apart stays.

    plain       compatibility characters folded (NFKC), nothing invisible, lower case, `_` as a space
    ordered     the words sorted, the small ones left out
    words       without the signs that join; a sign that tells (A-, -x, n!) stays
    numbers     each with its sign and its unit; Roman numerals are numbers too
    capitals    where a capital makes another word: HEAT, Turkey

Accents stay in all of these: they make other words. They are folded for questions alone (rules/variants).
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache

from recollect.concepts.rules.statements import numbers as measured

SMALL_WORDS = frozenset(["a", "an", "the", "of", "for"])

# What no reader sees: soft hyphens, joiners, marks of direction, variation selectors. Not the tags inside of flags.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
# Raised or lowered they are other numbers: 10⁶ is not 106, though NFKC makes it that.
_RAISED = str.maketrans({sign: f"^{number % 10}" for number, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉")})
_FRACTION = re.compile("[¼-¾⅐-⅞]")
_EDGE_SIGNS, _ENDS = ",;:", ".,;:()!?"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LETTERS = re.compile(r"[^\W\d_]+")
_CAPITALS = re.compile(r"[^\W\d_]\w*[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]\w*")
# Signs that join or end words; any other sign (a bracket, a plus) may tell two names apart.
_JOINING = re.compile(r"[\s_\-‐-―'’`´,;:.!?\"“”/]+")
# A hyphen that hangs on one word alone is a sign (A-, -O2; that of -40 is the number's). Else it joins.
_SIGN = re.compile(r"(?<!\S)[-‐-―−](?=[^\W\d])|(?<=\w)[-‐-―−](?!\S)")
# On a single letter or digit these tell: n!, x', 5", 5'.
_MARK = re.compile(r"(?<!\w)(\w|\d+)([!'’\"])(?!\w)")
_NUMERALS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi xxii xxiii xxiv xxv"
_ROMAN = {numeral: str(value) for value, numeral in enumerate(_NUMERALS.split(), 1)}
# Units whose capitals are not a matter of style: mW and MW, Mb and MB.
_UNITS = re.compile(r"(?<=\d)\s?([yzafpnµμmcdhkMGTPE]?(?:m|g|s|A|K|Hz|N|Pa|J|W|C|V|F|H|T|B|b|bit|bps|l|L|eV|Wh))\b")
# Words that are another word with a capital. Such lists are never whole: what both are described by speaks besides.
_CAPITONYMS = """
amazon apple august bass bath bill boxer bush cancer carol chile china clay cork crystal dates dear dolly drew
earth edge faith frank french german gin grace grant guinea hamburger heather hope hungary iris ivy jack japan
jean jersey jet job joy june lance latin lent lima lime lotus mandarin march mark marks mars may mercury
mike mobile moor nancy natal nice norm orange pacific page pages pat patience pearl
piper pole polish puck ray reading rich rob robin rose sally sandy scone scratch
slough spa sparks stone sue sun swede tiger titan titanic turkey violet visa
wales war warren welsh will
arm band bank decke ente essen fest gut los morgen reich reise sie weg
"""
_TWO_WORDS = frozenset(_CAPITONYMS.split())


@dataclass(frozen=True, kw_only=True)
class Name:
    """A name in the forms in which names are compared."""

    given: str

    @cached_property
    def plain(self) -> str:
        """Lower case, `_` as a space, single spaces; compatibility characters folded."""
        return plain(self.given)

    @cached_property
    def ordered(self) -> str:
        """The words sorted, the small ones left out."""
        return ordered(self.plain)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """With sign and unit, in their order; Roman numerals after another word."""
        return (*_measured(self._visible), *self._romans)

    @cached_property
    def round_numbers(self) -> tuple[str, ...]:
        """The same with thousands written without a comma: 1,000 may be 1000."""
        return (*_measured(_THOUSANDS.sub("", self._visible)), *self._romans)

    @cached_property
    def small_numbers(self) -> tuple[str, ...]:
        """The same whatever the capitals: 100 AUD is 100 aud."""
        return (*_measured(self._visible.lower()), *self._romans)

    @cached_property
    def letters(self) -> str:
        """What remains without numbers and signs, the words sorted: equal in `ASR1603` and `ASR1605`."""
        first, *more = self.plain.split() or [""]
        text = " ".join([first, *(word for word in more if word.strip(_ENDS) not in _ROMAN)])
        return " ".join(sorted(_LETTERS.findall(text)))

    @cached_property
    def words(self) -> str:
        """The name without joining signs and gaps: equal in the same name. Accents stay: they make other words."""
        return _JOINING.sub("", _MARK.sub(_kept_mark, _SIGN.sub("−", self.plain)))

    @cached_property
    def unsigned(self) -> str:
        """The words without the signs that hang on one of them."""
        return _JOINING.sub("", _SIGN.sub("", self.plain))

    @cached_property
    def capitals(self) -> tuple[str, ...]:
        """Words with a capital beyond the first letter (HEAT is not Heat), or that are another word without theirs."""
        words = _CAPITALS.findall(_compatible(self.given).replace("_", " "))
        if self.plain in _TWO_WORDS and self.given.strip()[:1].isupper():
            words.append(self.given.strip())
        return tuple(sorted(words + _UNITS.findall(self._visible)))

    @cached_property
    def _visible(self) -> str:
        """As it is read: raised digits set apart, the rest folded."""
        apart = self.given.replace("_", " ")
        if apart.isascii():
            return apart
        return _compatible(_FRACTION.sub(lambda fraction: f" {fraction[0]}", apart.translate(_RAISED)))

    @cached_property
    def _romans(self) -> tuple[str, ...]:
        words = (word.strip(_ENDS) for word in self.plain.split()[1:])
        return tuple(_ROMAN[word] + " " for word in words if word in _ROMAN)


@lru_cache(maxsize=65_536)
def name_of(given: str) -> Name:
    """A name is compared with many: its forms are worked out once."""
    return Name(given=given)


def plain(name: str) -> str:
    """The form in which names are compared, and looked up: lower case, `_` as a space, single spaces, nothing that no
    reader sees, and one character for those that only look different (ﬁ, Ａ, ㎏)."""
    folded = name.lower() if name.isascii() else _compatible(_compatible(name).lower())
    return " ".join(folded.replace("_", " ").split())


def ordered(plain_name: str) -> str:
    """The words of a plain name, sorted, without the small ones (unless there are no others)."""
    words = [word.strip(_EDGE_SIGNS) for word in plain_name.split()]
    telling = [word for word in words if word and word not in SMALL_WORDS]
    return " ".join(sorted(telling or plain_name.split()))


def _compatible(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", name))


def _measured(text: str) -> list[str]:
    """The numbers of a text, their digits as our own, whatever script they are of."""
    if not any(sign.isdecimal() for sign in text):
        return []
    return ["".join(str(unicodedata.decimal(sign, sign)) for sign in number) for number in measured(text)]


def _kept_mark(match: re.Match[str]) -> str:
    return f"{match[1]}{_MARKS[match[2]]}"


# Written otherwise, so that they are not taken for signs that join.
_MARKS = {"!": "¡", "'": "′", "’": "′", '"': "″"}
