"""Why two pages must not become one, however alike they read (B29). One rule a type:

    Implementation   only the same API: each page shows what it declares, and one speaks of what the other declares
    Environment      only compatible versions: nothing that both require is required in versions that exclude each other
    Heuristic        never when the advice contradicts: "use X" and "avoid X", "increase Y" and "reduce Y"

A rule that finds nothing to go by says nothing: a veto needs evidence.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from recollect.pages.rules.page import WikiPage, normal_name
from recollect.pages.rules.text import lines_with_code, said, sentences
from recollect.recall.rules import lexical

Veto = Callable[[WikiPage, WikiPage], str | None]
"""Two pages in, the reason against merging them out; None where there is none."""


def veto(new: WikiPage, old: WikiPage) -> str | None:
    rule = VETOES.get(new.type)
    return rule(new, old) if rule else None


# -- Implementation: the same API

_DECLARED = re.compile(r"(?:async[ \t]+)?(?:def|class|function|func|fn|interface|struct)[ \t]+([A-Za-z_]\w+)")


def other_api(new: WikiPage, old: WikiPage) -> str | None:
    """Two pages of one name are about one API; else one of them must at least mention what the other declares."""
    if normal_name(new.name) == normal_name(old.name):
        return None
    here, there = declared(new), declared(old)
    if not here or not there or here & there:
        return None
    if _mentions(old, here) or _mentions(new, there):
        return None
    return f"another API: {_some(here)} here, {_some(there)} there"


def declared(page: WikiPage) -> set[str]:
    """What the code of a page declares at the margin; methods and helpers inside are not its API."""
    lines = (line for text in page.texts for line, is_code in lines_with_code(text) if is_code)
    return {match[1] for line in lines if (match := _DECLARED.match(line))}


def _mentions(page: WikiPage, names: set[str]) -> bool:
    return not names.isdisjoint(re.findall(r"\w+", f"{page.name} {page.content}"))


def _some(names: set[str]) -> str:
    first = sorted(names)[:3]
    return ", ".join(first) + (" ..." if len(names) > len(first) else "")


# -- Environment: compatible versions

Version = tuple[int, ...]
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z][\w.-]*[A-Za-z_-]|[A-Za-z])`?[ \t|:]*"
    r"(?P<how>>=|<=|==|~=|>|<|=)?[ \t]*v?(?P<version>\d+(?:\.\d+)+|\d+(?=\.x|\+))"
    r"(?P<tail>\.x|\+|[ \t]+or[ \t]+(?:later|newer|higher))?"
)
_REQUIRES = re.compile(r"overview|description|summary|require|dependenc|package|install|version", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Versions from `low` on, up to but without `high`."""

    low: Version = ()
    high: Version | None = None

    def overlaps(self, other: "Range") -> bool:
        return _begins_before_end(self, other) and _begins_before_end(other, self)

    def __str__(self) -> str:
        low = ".".join(map(str, self.low)) or "any"
        return f"{low}+" if self.high is None else f"{low} up to below {'.'.join(map(str, self.high))}"


def incompatible_versions(new: WikiPage, old: WikiPage) -> str | None:
    here, there = requirements(new), requirements(old)
    for name in sorted(here.keys() & there.keys()):
        if not here[name].overlaps(there[name]):
            return f"incompatible versions: {name} {here[name]} here, {there[name]} there"
    return None


def requirements(page: WikiPage) -> dict[str, Range]:
    """What a page requires, as it says it first: later mentions tell of exceptions and errors."""
    ranges: dict[str, Range] = {}
    for text in _requiring_texts(page):
        for match in _REQUIREMENT.finditer(text):
            name = match["name"].casefold().replace("_", "-")
            ranges.setdefault({"pytorch": "torch"}.get(name, name), _range(match))
    return ranges


def _requiring_texts(page: WikiPage) -> Iterator[str]:
    yield page.lead
    for section in page.sections:
        if _REQUIRES.search(section.heading):
            yield section.body


def _range(match: re.Match[str]) -> Range:
    version = tuple(map(int, match["version"].split(".")))
    how, tail = match["how"] or "", match["tail"] or ""
    if how in (">=", ">") or (tail and tail != ".x"):
        return Range(low=version)
    if how == "<":
        return Range(high=version)
    if how == "<=":
        return Range(high=_next(version))
    if how == "~=":
        return Range(low=version, high=_next(version[:-1]))
    return Range(low=version, high=_next(version))


def _next(version: Version) -> Version:
    return (*version[:-1], version[-1] + 1) if version else version


def _begins_before_end(first: Range, other: Range) -> bool:
    if other.high is None:
        return True
    pairs = list(zip_longest(first.low, other.high, fillvalue=0))
    return [low for low, _ in pairs] < [high for _, high in pairs]


# -- Heuristic: advice that contradicts

CONTRADICTION = "contradicting advice"
_LEAST_COMMON = 0.75
_FEWEST_WORDS = 2
# What a word advises: the axis it speaks of, and which end of it.
_ADVICE: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("use", "prefer", "choose", "apply", "always", "enable", "keep", "recommended"), ("use", 1)),
    **dict.fromkeys(("avoid", "never", "disable", "skip", "omit", "discouraged"), ("use", -1)),
    **dict.fromkeys(("increase", "raise", "higher", "larger", "more", "bigger"), ("size", 1)),
    **dict.fromkeys(("decrease", "reduce", "lower", "smaller", "fewer", "less"), ("size", -1)),
}
_NEGATION = re.compile(r"\b(?:do not|don['’]?t|should not|shouldn['’]?t|must not|not|no)\b", re.IGNORECASE)
_FIRST_WORDS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    axis: str
    end: int
    about: frozenset[str]
    sentence: str


def contradicting_advice(new: WikiPage, old: WikiPage) -> str | None:
    there = list(advice(old))
    for advised in advice(new):
        for other in there:
            if advised.axis == other.axis and advised.end == -other.end and _same_matter(advised.about, other.about):
                return f"{CONTRADICTION}: “{_short(advised.sentence)}” here, “{_short(other.sentence)}” there"
    return None


def advice(page: WikiPage) -> Iterator[Advice]:
    """The sentences of a page that advise something: which begin with advice, or deny it."""
    for text in (page.lead, *(section.body for section in page.sections)):
        prose = "\n".join(line for line, is_code in lines_with_code(text) if not is_code)
        for sentence in sentences(prose):
            if advised := _advice_of(sentence):
                yield advised


def _advice_of(sentence: str) -> Advice | None:
    words = said(sentence).split()
    spoken = next((word for word in words[:_FIRST_WORDS] if word in _ADVICE), None)
    if spoken is None:
        return None
    axis, end = _ADVICE[spoken]
    if _NEGATION.search(" ".join(sentence.split()[:_FIRST_WORDS])):
        end = -end
    plain = _NEGATION.sub(" ", sentence)
    about = frozenset(lexical.light_words(plain)) - {lexical.light_stem(word) for word in _ADVICE}
    return Advice(axis=axis, end=end, about=about, sentence=sentence) if about else None


def _same_matter(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two pieces of advice speak of one thing: nearly all the words of the shorter are in the longer."""
    shared, shorter = len(words & other), min(len(words), len(other))
    return shared >= min(_FEWEST_WORDS, max(len(words), len(other))) and shared >= _LEAST_COMMON * shorter


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 60 else sentence[:57].rstrip() + "..."


VETOES: Mapping[str, Veto] = {
    "Implementation": other_api,
    "Environment": incompatible_versions,
    "Heuristic": contradicting_advice,
}
