"""Block: the rows in an order of their own, identical ones folded, and what the bounds need to know of each.

    order       by type, length of the name, name, id: names that can match lie near each other, and nothing depends on
                the order in which the rows came in
    copies      rows that are equal in all that is compared become one, so that 10,000 equal ones cost what one does; of
                very many of one name those too whose vectors hardly differ
    crowds      very many of one name that do differ: one group, whatever pairs are found in it (C37)
    bits        which letters a name holds (twice): two names differ at least as much as their letters do
    short       each vector in few dimensions, and the length of what that leaves out: the product of two such lengths
                bounds what is missing from the cosine
    spelling    a number for each name, so that equal names are told without reading them
    series      the names that differ only in digits; a long series is named, not paired (C05)

    shrinking   the places whose sorted name is shorter than the name: they match across lengths

A *place* is a position in this order; `rows[place]` is the row of the concepts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.concepts.rules.detection.columns import Bits, ConceptColumns, Id, Ints, Mask, Matrix
from recollect.concepts.rules.names import Name, ordered, plain
from recollect.concepts.rules.statements import denials, numbers, words

Strings = NDArray[np.object_]

DIMENSIONS = 31  # with the rest as the last column 32, a width that processors like
SAMPLE = 5_000
CHUNK = 65_536
# A series up to this long is small enough to be looked at pair by pair.
SMALL_SERIES = 50
# More of one type and name than this are not compared each with each.
MOST_NAMESAKES = 200
# Two rows as near as this to a third are so near to each other that nothing but the vector of a concept differs: their
# score is at least NEARLY_EQUAL, whatever lies between.
NEAR_THE_FIRST = 0.9947

_DIGIT = re.compile(r"\d")
_BUCKETS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlines:
    """What bounds the names and metadata of each place: a few numbers, that travel lightly."""

    types: Ints
    plain_lengths: Ints
    ordered_lengths: Ints
    plain_bits: Bits
    ordered_bits: Bits
    metadata_bits: Bits
    metadata_sizes: Ints
    spelling: Ints
    series: Ints

    def outlines(self) -> "Outlines":
        """These alone."""
        return Outlines(**{one.name: getattr(self, one.name) for one in fields(Outlines)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocks(Outlines):
    """Concepts made ready to be compared. Everything but `concepts`, `copies` and `crowds` is by place."""

    concepts: ConceptColumns
    rows: Ints
    plain: Strings
    ordered: Strings
    has_vector: Mask
    short: Matrix
    basis: Matrix | None
    shrinking: Ints
    shrinking_short: Matrix
    copies: tuple[Ints, ...]
    crowds: tuple[Ints, ...]
    crowd: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def vectors(self, places: Ints) -> Matrix:
        return self.concepts.vectors[self.rows[places]]

    def long_series(self) -> list[Ints]:
        """The series too long to be paired, as rows."""
        members = defaultdict(list)
        for index in np.flatnonzero(self.series >= 0):
            members[int(self.series[index])].append(int(self.rows[index]))
        return [np.array(rows) for _, rows in sorted(members.items())]


def block(concepts: ConceptColumns, *, dimensions: int | None = DIMENSIONS) -> Blocks:
    """The concepts, made ready. `dimensions` None compares whole vectors: for thresholds too low for the bounds."""
    names = [plain(name) for name in concepts.names]
    order = canonical_order(concepts.types, names, concepts.ids)
    rows, copies, crowds = folded(concepts, names, order)
    plains, ordereds = _strings(names[row] for row in rows), _strings(ordered(names[row]) for row in rows)
    short, basis = shortened(concepts, rows, dimensions)
    plain_lengths, ordered_lengths = _lengths(plains), _lengths(ordereds)
    shrinking = np.flatnonzero(ordered_lengths != plain_lengths)
    return Blocks(
        concepts=concepts,
        rows=rows,
        types=concepts.types[rows],
        plain=plains,
        ordered=ordereds,
        plain_lengths=plain_lengths,
        ordered_lengths=ordered_lengths,
        plain_bits=letter_bits(plains),
        ordered_bits=letter_bits(ordereds),
        metadata_bits=concepts.statements.bits[rows],
        metadata_sizes=concepts.statements.sizes[rows],
        spelling=spellings(plains),
        series=series(concepts.types[rows], plains),
        has_vector=concepts.has_vector[rows],
        short=short,
        basis=basis,
        shrinking=shrinking,
        shrinking_short=short[shrinking],
        copies=copies,
        crowds=crowds,
        crowd=crowd_numbers(len(concepts), crowds)[rows],
    )


def canonical_order(types: Ints, names: Sequence[str], ids: Sequence[Id]) -> list[int]:
    keys = list(zip(types.tolist(), map(len, names), names, ids, strict=True))
    return sorted(range(len(names)), key=keys.__getitem__)


# -- copies


def folded(
    concepts: ConceptColumns, names: Sequence[str], order: Sequence[int]
) -> tuple[Ints, tuple[Ints, ...], tuple[Ints, ...]]:
    """One row for each set of identical ones, in order; those sets, that row first; and the crowds that are left."""
    firsts: list[int] = []
    copies: list[Ints] = []
    crowds: list[Ints] = []
    for run in runs(concepts.types, names, order):
        if len(run) == 1:
            firsts += run
            continue
        sets = identical(concepts, run)
        if len(sets) > MOST_NAMESAKES and names[run[0]]:
            sets = nearly_identical(concepts, sets)
        first = [alike[0] for alike in sets]
        firsts += first
        copies += (np.array(alike, np.int64) for alike in sets if len(alike) > 1)
        if len(first) > MOST_NAMESAKES and names[run[0]]:
            crowds.append(np.array(first, np.int64))
    return np.array(firsts, np.int64), tuple(copies), tuple(crowds)


def nearly_identical(concepts: ConceptColumns, sets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sets of identical rows, joined where nothing but the vector differs, and that hardly; the protected ones last."""
    groups: dict[object, list[list[int]]] = {}
    for alike in sets:
        row = alike[0]
        name, metadata, has_text, _ = everything_compared(concepts, row)
        text = concepts.texts[row] if concepts.texts else None
        content = None if text is None else (words(text), numbers(text), denials(text))
        key = (name, metadata, has_text, content, bool(concepts.has_vector[row]))
        groups.setdefault(key, []).append(list(alike))
    return [joined for group in groups.values() for joined in _around_the_first(concepts, group)]


def _around_the_first(concepts: ConceptColumns, sets: Sequence[list[int]]) -> Iterator[list[int]]:
    """The first with all that are near it, then the first of the rest; after so many it is a crowd whatever follows."""
    vectors = concepts.vectors[[alike[0] for alike in sets]]
    left = np.arange(len(sets))
    for _ in range(MOST_NAMESAKES):
        if not len(left):
            return
        near = vectors[left] @ vectors[left[0]] >= NEAR_THE_FIRST
        near[0] = True
        joined = [row for index in left[near].tolist() for row in sets[index]]
        yield sorted(joined, key=lambda row: bool(concepts.protected[row]))
        left = left[~near]
    yield from (sets[index] for index in left.tolist())


def crowd_numbers(count: int, crowds: Sequence[Ints]) -> Ints:
    """The number of the crowd that each row is in; -1 for none."""
    crowd_of = np.full(count, -1, np.int64)
    for number, rows in enumerate(crowds):
        crowd_of[rows] = number
    return crowd_of


def runs(types: Ints, names: Sequence[str], order: Sequence[int]) -> Iterator[list[int]]:
    """Stretches of the order with one type and name."""
    run: list[int] = []
    for row in order:
        if run and (names[row] != names[run[0]] or types[row] != types[run[0]]):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def identical(concepts: ConceptColumns, run: Sequence[int]) -> list[list[int]]:
    """Rows that no factor and no doubt can tell apart, protected ones last: the first stands for all."""
    groups: dict[object, list[int]] = {}
    for row in sorted(run, key=lambda row: bool(concepts.protected[row])):
        groups.setdefault(everything_compared(concepts, row), []).append(row)
    return list(groups.values())


def everything_compared(concepts: ConceptColumns, row: int) -> tuple[object, ...]:
    """What has neither name nor vector is like nothing but itself."""
    if not concepts.has_vector[row] and not concepts.names[row].strip():
        return (row,)
    metadata = concepts.statements.row(row).tobytes()
    return concepts.names[row], metadata, bool(concepts.has_text[row]), concepts.vectors[row].tobytes()


# -- names


def _strings(names: Iterator[str]) -> Strings:
    strings = list(names)
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


def _lengths(names: Strings) -> Ints:
    return np.fromiter(map(len, names), np.int64, len(names))


def letter_bits(names: Strings) -> Bits:
    """64 bits a name: which of 32 classes of letters it holds, and which twice."""
    parts = [_letter_bits(names[first : first + CHUNK]) for first in range(0, len(names), CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _letter_bits(names: Strings) -> Bits:
    letters = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), np.uint32)
    owners = np.repeat(np.arange(len(names)), _lengths(names))
    counts = np.bincount(owners * _BUCKETS + letters % _BUCKETS, minlength=len(names) * _BUCKETS)
    counts = counts.reshape(len(names), _BUCKETS)
    packed: NDArray[Any] = np.packbits(np.hstack([counts >= 1, counts >= 2]), axis=1)
    return packed.view(np.uint64)[:, 0]


def spellings(names: Strings) -> Ints:
    """Equal names lie side by side within a type; across types, which are never compared, numbers may differ."""
    if not len(names):
        return np.zeros(0, np.int64)
    return np.cumsum(np.append(False, np.asarray(names[1:] != names[:-1], np.bool_)))


def series(types: Ints, names: Strings) -> Ints:
    """For each name with digits the number of its series, -1 where the series is short or there is none."""
    keys = [
        (kind, Name(given=name).letters) if _DIGIT.search(name) else None
        for kind, name in zip(types.tolist(), names, strict=True)
    ]
    sizes = Counter(key for key in keys if key is not None)
    numbers = {key: number for number, key in enumerate(key for key, size in sizes.items() if size > SMALL_SERIES)}
    return np.fromiter((numbers.get(key, -1) for key in keys), np.int64, len(keys))  # type: ignore[arg-type]


# -- vectors


def shortened(concepts: ConceptColumns, rows: Ints, dimensions: int | None) -> tuple[Matrix, Matrix | None]:
    """The vectors along the directions that tell most, with the length of the rest as the last column.

    Whole vectors where that would not make them much shorter.
    """
    width = concepts.vectors.shape[1]
    if dimensions is None or width <= 2 * dimensions:
        return concepts.vectors[rows], None
    basis = telling_directions(concepts.vectors, rows[concepts.has_vector[rows]], dimensions)
    short = np.empty((len(rows), basis.shape[1] + 1), np.float32)
    for first in range(0, len(rows), CHUNK):
        part = slice(first, first + CHUNK)
        short[part] = project(concepts.vectors[rows[part]], basis)
    short[~concepts.has_vector[rows]] = 0.0
    return short, basis


def telling_directions(vectors: Matrix, rows: Ints, dimensions: int) -> Matrix:
    """The directions along which the vectors of a sample are longest, these last; not more of them than vectors."""
    step = max(1, len(rows) // SAMPLE)
    sample = vectors[rows[::step]]
    if 0 < 2 * len(sample) <= sample.shape[1]:  # of few vectors in many dimensions: a fraction of the work
        directions = np.linalg.svd(sample, full_matrices=False).Vh[::-1].T
    else:
        directions = np.linalg.eigh(sample.T @ sample).eigenvectors
    return np.ascontiguousarray(directions[:, -dimensions:], np.float32)


def project(vectors: Matrix, basis: Matrix) -> Matrix:
    along = vectors @ basis
    rest = np.sqrt(np.maximum(0.0, 1.0 - np.einsum("ij,ij->i", along, along)))
    return np.column_stack([along, rest]).astype(np.float32, copy=False)
