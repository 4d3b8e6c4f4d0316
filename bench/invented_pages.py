"""Wikis drawn by chance: principles with an implementation, an environment and a heuristic each, about as long as real
pages; and a second wiki, of which half tells of the same things in other words and half of others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.recall import SHARES, WORDS
from recollect.pages.rules.hierarchy import WIKI
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.stored import read_page

TYPES = WIKI.types[:4]
PARTS = 8
SENTENCES = 5
KEPT = 0.7
"""Of the words of a page, how many another telling of it has too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What four pages that belong together are about: their name, and for each type the sentences of its sections."""

    name: str
    sections: dict[str, list[list[str]]]


def subjects(count: int, *, seed: int, first: int = 0) -> list[Subject]:
    """Enough subjects for so many pages."""
    chance = np.random.default_rng(seed)
    return [_subject(chance, number) for number in range(first, first - (-count // len(TYPES)))]


def second_pages(count: int, known: Sequence[Subject], *, seed: int) -> list[WikiPage]:
    """As many pages: half of them tell of known subjects in other words, half of new ones."""
    chance = np.random.default_rng(seed)
    old = [_retold(chance, one) for one in known[: count // len(TYPES) // 2]]
    return pages([*old, *subjects(count - len(TYPES) * len(old), seed=seed + 100, first=len(known))])


def pages(told: Sequence[Subject]) -> list[WikiPage]:
    files = ((f"{type.folder}/{one.name}.md", _text(one, type.name)) for one in told for type in TYPES)
    return [read_page(path, text).page for path, text in files]


def _subject(chance: np.random.Generator, number: int) -> Subject:
    name = f"{chance.choice(WORDS)}_{chance.choice(WORDS)}_{number}"
    sections = {type.name: [_section(chance) for _ in range(PARTS)] for type in TYPES}
    return Subject(name=name, sections=sections)


def _section(chance: np.random.Generator) -> list[str]:
    return [_sentence(chance.choice(WORDS, 18, p=SHARES)) for _ in range(SENTENCES)]


def _sentence(words: Iterable[str]) -> str:
    return " ".join(words).capitalize() + "."


def _retold(chance: np.random.Generator, one: Subject) -> Subject:
    """The same in other words: some sentences as they were, in the others many words changed."""
    told = {
        type: [[_reworded(chance, sentence) for sentence in section] for section in sections]
        for type, sections in one.sections.items()
    }
    return replace(one, name=f"the_{one.name}", sections=told)


def _reworded(chance: np.random.Generator, sentence: str) -> str:
    if chance.random() < 0.3:
        return sentence
    words = sentence.rstrip(".").lower().split()
    others = chance.choice(WORDS, len(words), p=SHARES)
    return _sentence([word if chance.random() < KEPT else other for word, other in zip(words, others, strict=True)])


def _text(one: Subject, type: str) -> str:
    overview, *parts = (" ".join(section) for section in one.sections[type])
    links = {
        "Principle": f"* [[implemented_by::Implementation:{one.name}]]\n* [[uses_heuristic::Heuristic:{one.name}]]",
        "Implementation": f"* [[requires_env::Environment:{one.name}]]",
    }.get(type, "")
    return (
        f"# {type}: {one.name}\n\n== Overview ==\n{overview}\n\n"
        + "".join(f"== Part {number} ==\n{part}\n\n" for number, part in enumerate(parts))
        + f"== Related Pages ==\n{links}\n"
    )
