"""Other ways to write a name: asked about, whatever the vectors say, and never merged by themselves (C34, C35)."""

from itertools import combinations

import numpy as np
import pytest

from recollect.concepts.policies.merge_duplicate_concepts import blocked, found_around
from recollect.concepts.rules.clusters import ClusterOptions, Decided, decide
from recollect.concepts.rules.detection import ConceptColumns
from recollect.concepts.rules.evidence import weigh
from recollect.concepts.rules.variants import NameVariant, spellings, variants

SAME = [
    ("A.I.", "AI", NameVariant.SPELLING),
    ("data base", "database", NameVariant.SPELLING),
    ("Zürich", "Zuerich", NameVariant.SPELLING),
    ("Zürich", "Zurich", NameVariant.SPELLING),
    ("Straße", "Strasse", NameVariant.SPELLING),
    ("København", "Kobenhavn", NameVariant.SPELLING),
    ("Møller", "Moeller", NameVariant.SPELLING),
    ("Đà Nẵng", "Da Nang", NameVariant.SPELLING),
    ("Łódź", "Lodz", NameVariant.SPELLING),
    ("colour", "color", NameVariant.SPELLING),
    ("Organisation of labour", "organization of labor", NameVariant.SPELLING),
    ("city centre", "city center", NameVariant.SPELLING),
    ("deep learning", "learning, deep", NameVariant.ORDER),
    ("neural network", "neural networks", NameVariant.ORDER),
    ("the party", "parties", NameVariant.ORDER),
    ("ML", "Machine Learning", NameVariant.INITIALS),
    ("M.L.", "machine_learning", NameVariant.INITIALS),
    ("NASA", "National Aeronautics and Space Administration", NameVariant.INITIALS),
    ("IoT", "Internet of Things", NameVariant.INITIALS),
    ("JS", "JavaScript", NameVariant.INITIALS),
    ("GH", "GitHub", NameVariant.INITIALS),
    ("k8s", "Kubernetes", NameVariant.INITIALS),
    ("i18n", "internationalization", NameVariant.INITIALS),
    ("John F. Kennedy", "John Kennedy", NameVariant.MIDDLE),
    ("Bob Smith", "Robert Smith", NameVariant.MIDDLE),
    ("Юрий Гагарин", "Юрий Алексеевич Гагарин", NameVariant.MIDDLE),
]
APART = [
    ("Apollo 8", "Apollo 11"),
    ("machine learning", "machine earning"),
    ("ml", "mother load"),
    ("John Kennedy", "Jane Kennedy"),
    ("Bob Smith", "Bob Smyth"),
    ("four", "for"),
    ("i7", "internationalization"),
    ("Internet", "Intranet"),
    ("東京", "京都"),
]


def settled(names: list[str]) -> Decided:
    """Names of which nothing else is known, and whose vectors have nothing in common."""
    concepts = ConceptColumns.of(names=names, vectors=np.eye(len(names), dtype=np.float32))
    blocks, options = blocked(concepts, 0.85), ClusterOptions()
    found = found_around(concepts, options.review, None, blocks)
    return decide(concepts, found, options, None, weigh(blocks, found).above(options.ask_from, options.review))


@pytest.mark.parametrize(("one", "other", "kind"), SAME)
def test_C35_another_way_to_write_it_is_a_question_and_never_a_merge(one: str, other: str, kind: NameVariant) -> None:
    assert variants([one, other], [0, 0])[0, 1][0] is kind
    assert not variants([one, other], [0, 1])
    decided = settled([one, other, "green tea", "the hill beyond the river"])
    assert decided.merges == ()
    assert [set(group.rows) for group in decided.questions] == [{0, 1}]


@pytest.mark.parametrize(("one", "other"), APART)
def test_C35_what_only_looks_near_is_no_variant(one: str, other: str) -> None:
    assert not variants([one, other], [0, 0])


def test_C35_the_likeliest_question_comes_first_and_ambiguous_initials_are_less_likely() -> None:
    decided = settled(["ML", "Machine Learning", "data base", "database", "green tea"])
    assert [set(group.rows) for group in decided.questions] == [{2, 3}, {0, 1}]
    many = variants(["ML", *(f"M{vowel}x L{vowel}x".title() for vowel in "aeiou")], [0] * 6)
    assert all(likely < 0.1 for kind, likely in many.values() if kind is NameVariant.INITIALS)


def test_C34_letters_are_folded_for_questions_alone() -> None:
    assert spellings("zürich") == {"zurich", "zuerich"}
    assert spellings("straße") == {"strasse"}
    assert spellings("ночь") == {"ночь"}
    names = ["má", "mạ", "ma", "mà"]
    assert set(combinations(range(4), 2)) == set(variants(names, [0] * 4))
    assert settled(names).merges == ()
