"""How alike two pages are, from several sides, and how much that alikeness stands out.

A plain threshold on similarity does not work on real wikis: two pages about sister functions are often more alike than
two pages about the same one. So a pair's score says two things at once: how similar the pages are (the mean of the
views below), and by how much they are closer to each other than to any other page of their type, the lead. A page
whose best match is hardly better than the next has no good match.

    name       words of the name, rare ones counting more, and the spelling as a whole
    overview   words and word pairs of name and overview
    content    words of the whole page, code and identifiers included
    meaning    cosine of the two vectors, where vectors are given
    children   words in the names of the pages that both lead to (leaves aside: everything requires the same ones)

    evidence = similarity + lead / 2        mapped to the scale of the merging thresholds (B29)
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from recollect.pages.rules.hierarchy import WIKI, Hierarchy, forward_edges
from recollect.pages.rules.page import WikiPage, type_and_name
from recollect.recall.rules import lexical

Matrix = NDArray[np.float32]
Weights = NDArray[np.float64]
Numbers = NDArray[np.int64]

LEAD_WEIGHT = 0.5
BACKGROUND = 0.3
"""About what pages of one wiki have in common when they have nothing to do with each other. Where there is no other
page to compare with, a pair's lead is counted from here."""
SCALE = ((0.0, 0.0), (0.35, 0.60), (0.50, 0.85), (1.0, 1.0))
"""Evidence, and the score it stands for. Measured on two independent descriptions of one code base: true pairs begin at
0.55; from 0.35 to 0.50 lie sister pages and true pairs mixed, which is what a judge is for."""
COMMON_SHARE = 4  # a word in more than a quarter of all names (the owner, the project) does not tell pages apart
OVERVIEW_CHARACTERS = 400

# Between a small letter or digit and a capitalised word, so that FastCohereModel has three words and MoE one.
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Scores(Protocol):
    """Where decisions get their scores from: a comparison, or figures supplied by somebody else."""

    def of(self, new_id: str, old_ids: Sequence[str]) -> list[float]:
        """The scores of one new page with some old ones, in their order."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SuppliedScores:
    """Scores that were given, pair by pair; a pair that is not named has nothing in common."""

    scores: Mapping[tuple[str, str], float]

    def of(self, new_id: str, old_ids: Sequence[str]) -> list[float]:
        return [self.scores.get((new_id, old_id), 0.0) for old_id in old_ids]


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityTable:
    """All new pages of a type against all old ones."""

    new_at: Mapping[str, int]
    old_at: Mapping[str, int]
    views: Mapping[str, Matrix]
    similarity: Matrix
    scores: Matrix


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    tables: Mapping[str, SimilarityTable]
    type_of: Mapping[str, str] = field(default_factory=dict)

    def of(self, new_id: str, old_ids: Sequence[str]) -> list[float]:
        table = self.tables[self.type_of[new_id]]
        places = [table.old_at[id] for id in old_ids]
        scores: list[float] = table.scores[table.new_at[new_id], places].astype(float).round(6).tolist()
        return scores

    def factors(self, new_id: str, old_id: str) -> dict[str, float]:
        """What a score is made of, for people."""
        table = self.tables[self.type_of[new_id]]
        cell = table.new_at[new_id], table.old_at[old_id]
        seen = {name: float(view[cell]) for name, view in table.views.items() if not math.isnan(view[cell])}
        return {name: round(value, 4) for name, value in {**seen, "similarity": float(table.similarity[cell])}.items()}


def text_for_vector(page: WikiPage) -> str:
    """What a page is embedded by: its name and the beginning of its overview."""
    name = _HUMPS.sub(" ", page.name.rsplit("/", 1)[-1]).replace("_", " ")
    return f"{name}. {page.overview[:OVERVIEW_CHARACTERS]}".strip()


def compare(
    new: Sequence[WikiPage],
    old: Sequence[WikiPage],
    *,
    new_vectors: Matrix | None = None,
    old_vectors: Matrix | None = None,
    hierarchy: Hierarchy = WIKI,
) -> Comparison:
    """Every new page with every old one of its type (B02).

    Vectors are unit rows in the order of the pages; zeros stand for a page that has none.
    """
    views = [_WordView(read, [*new, *old]) for read in _readers(hierarchy).values()]
    names = dict(zip(_readers(hierarchy), views, strict=True))
    spellings = _spellings([*new, *old])
    tables: dict[str, SimilarityTable] = {}
    for type in sorted({page.type for page in new}):
        rows = [index for index, page in enumerate(new) if page.type == type]
        columns = [index for index, page in enumerate(old) if page.type == type]
        olds = [len(new) + index for index in columns]
        seen = {name: view.cosines(rows, olds) for name, view in names.items()}
        seen["name"] = np.float32(0.5) * (seen["name"] + _spelling_ratios(spellings, rows, olds))
        if new_vectors is not None and old_vectors is not None:
            seen["meaning"] = _meaning(new_vectors[rows], old_vectors[columns])
        similarity = _mean_of_present(list(seen.values()))
        tables[type] = SimilarityTable(
            new_at={new[index].id: row for row, index in enumerate(rows)},
            old_at={old[index].id: column for column, index in enumerate(columns)},
            views=seen,
            similarity=similarity,
            scores=scaled(similarity + LEAD_WEIGHT * lead(similarity)),
        )
    return Comparison(tables=tables, type_of={page.id: page.type for page in new})


def lead(similarity: Matrix) -> Matrix:
    """By how much each pair is more alike than either page is to any other of the other side."""
    other = np.maximum(_best_elsewhere(similarity), _best_elsewhere(similarity.T).T)
    return similarity - np.maximum(other, np.float32(BACKGROUND))


def scaled(evidence: Matrix) -> Matrix:
    """Evidence as a score between 0 and 1."""
    levels, scores = zip(*SCALE, strict=True)
    return np.interp(evidence, levels, scores).astype(np.float32)


def _best_elsewhere(similarity: Matrix) -> Matrix:
    """For each cell, the best of its row outside the cell itself."""
    rows, columns = similarity.shape
    best = np.zeros_like(similarity)
    if columns < 2 or not rows:
        return best
    first = similarity.argmax(axis=1)
    rest = similarity.copy()
    rest[np.arange(rows), first] = -np.inf
    best[:] = similarity.max(axis=1, keepdims=True)
    best[np.arange(rows), first] = rest.max(axis=1)
    return best


def _mean_of_present(views: Sequence[Matrix]) -> Matrix:
    """The mean of the views that have something to say about a pair; NaN says that one has not."""
    together = np.stack(views)
    present = ~np.isnan(together)
    mean: Matrix = np.where(present, together, 0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return mean.astype(np.float32)


def _meaning(new: Matrix, old: Matrix) -> Matrix:
    """The cosines of vectors; NaN where a page has none."""
    cosines = (new @ old.T).astype(np.float32)
    cosines[~new.any(axis=1), :] = np.nan
    cosines[:, ~old.any(axis=1)] = np.nan
    return cosines


# -- words


def name_words(name: str) -> list[str]:
    """The words of a name, whether written with `_`, with spaces or as one hump after the other."""
    return lexical.light_words(_HUMPS.sub(" ", name).replace("_", " "))


def _readers(hierarchy: Hierarchy) -> dict[str, Callable[[WikiPage], list[str]]]:
    return {
        "name": lambda page: name_words(page.name),
        "overview": lambda page: _with_pairs([*name_words(page.name), *name_words(page.overview)]),
        "content": lambda page: name_words(page.content),
        "children": lambda page: _children_words(page, hierarchy),
    }


def _with_pairs(words: list[str]) -> list[str]:
    return [*words, *(f"{word} {following}" for word, following in pairwise(words))]


def _children_words(page: WikiPage, hierarchy: Hierarchy) -> list[str]:
    leaves = {type_.name for type_ in hierarchy.types if type_.is_leaf}
    targets = (type_and_name(edge.target) for edge in forward_edges(page, hierarchy))
    return [word for type, name in targets if type not in leaves for word in name_words(name)]


class _WordView:
    """One view of all pages as weighted words: the cosines between two groups of them, by way of an inverted list."""

    def __init__(self, read: Callable[[WikiPage], list[str]], pages: Sequence[WikiPage]) -> None:
        numbers: dict[str, int] = {}
        texts = [[numbers.setdefault(word, len(numbers)) for word in read(page)] for page in pages]
        owners = np.repeat(np.arange(len(pages)), [len(text) for text in texts])
        words = np.fromiter(chain.from_iterable(texts), np.int64, len(owners))
        self._vocabulary = len(numbers)
        self._owners, self._words, self._weights = _weighted(owners, words, len(pages), len(numbers))
        self._starts = np.searchsorted(self._owners, np.arange(len(pages) + 1))

    def cosines(self, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
        """NaN where a page has no words here at all."""
        places, weights, starts = self._inverted(columns)
        cosines = np.zeros((len(rows), len(columns)), np.float32)
        for number, row in enumerate(rows):
            words, own = self._of(row)
            counts = starts[words + 1] - starts[words]
            at = _ranges(starts[words], counts)
            cosines[number] = np.bincount(places[at], weights[at] * np.repeat(own, counts), len(columns))
        cosines[[self._is_empty(row) for row in rows], :] = np.nan
        cosines[:, [self._is_empty(column) for column in columns]] = np.nan
        return cosines

    def _of(self, page: int) -> tuple[Numbers, Weights]:
        mine = slice(self._starts[page], self._starts[page + 1])
        return self._words[mine], self._weights[mine]

    def _is_empty(self, page: int) -> bool:
        return bool(self._starts[page] == self._starts[page + 1])

    def _inverted(self, columns: Sequence[int]) -> tuple[Numbers, Weights, Numbers]:
        """For each word the places where it occurs among the columns and how much it weighs there, word after word."""
        first = self._starts[:-1][columns]
        counts = self._starts[1:][columns] - first
        at = _ranges(first, counts)
        order = np.argsort(self._words[at], kind="stable")
        places = np.repeat(np.arange(len(columns)), counts)[order]
        starts = np.searchsorted(self._words[at][order], np.arange(self._vocabulary + 1))
        return places, self._weights[at][order], starts


def _weighted(owners: Numbers, words: Numbers, pages: int, vocabulary: int) -> tuple[Numbers, Numbers, Weights]:
    """Each word of each page once, page after page, as a direction: often here and rare elsewhere weighs most."""
    pairs, counts = np.unique(owners * max(vocabulary, 1) + words, return_counts=True)
    owner, word = np.divmod(pairs, max(vocabulary, 1))
    containing = np.bincount(word, minlength=vocabulary)
    weights = (1 + np.log(counts)) * np.log((pages + 1) / (containing[word] + 0.5))
    lengths = np.sqrt(np.bincount(owner, weights * weights, pages))
    return owner, word, weights / lengths[owner]


def _ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """All places from each start on, as many as its count says, one range after the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _spellings(pages: Sequence[WikiPage]) -> list[str]:
    """The telling words of each name, as one text."""
    words = [set(name_words(page.name)) for page in pages]
    common = Counter(word for name in words for word in name)
    return [" ".join(sorted(_telling(name, common, len(pages)))) for name in words]


def _telling(words: Iterable[str], common: Mapping[str, int], pages: int) -> list[str]:
    return [word for word in words if pages < 2 * COMMON_SHARE or common[word] * COMMON_SHARE < pages]


def _spelling_ratios(spellings: Sequence[str], rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)), np.float32)
    ratios: NDArray[Any] = process.cdist(
        [spellings[row] for row in rows], [spellings[column] for column in columns], scorer=fuzz.ratio, dtype=np.float32
    )
    return (ratios / 100).astype(np.float32)
