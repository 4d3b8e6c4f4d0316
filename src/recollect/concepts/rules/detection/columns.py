"""Concepts as columns: one array a property, one place a concept, so that millions of pairs can be compared at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recollect.concepts.rules.similarity import Traits, statements

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Matrix = NDArray[np.float32]
Bits = NDArray[np.uint64]
Id = UUID | str

SHORTEST = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class Sets:
    """A set of numbers for each row: the numbers one after the other, and where each row's begin.

    `bits` has one bit a number (several may share one): enough to say how alike two sets can be at most.
    """

    values: Ints
    starts: Ints
    bits: Bits

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def row(self, index: int) -> Ints:
        return self.values[self.starts[index] : self.starts[index + 1]]

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> "Sets":
        sets = [sorted(set(row)) for row in rows]
        starts = np.zeros(len(sets) + 1, np.int64)
        np.cumsum([len(row) for row in sets], out=starts[1:])
        values = np.array([value for row in sets for value in row], np.int64)
        return cls(values=values, starts=starts, bits=one_bit_each(values, starts))

    @classmethod
    def empty(cls, rows: int) -> "Sets":
        return cls(values=np.zeros(0, np.int64), starts=np.zeros(rows + 1, np.int64), bits=np.zeros(rows, np.uint64))


def one_bit_each(values: Ints, starts: Ints) -> Bits:
    bits = np.zeros(len(starts) - 1, np.uint64)
    owners = np.repeat(np.arange(len(bits)), np.diff(starts))
    np.bitwise_or.at(bits, owners, np.left_shift(np.uint64(1), (values % 64).astype(np.uint64)))
    return bits


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptColumns:
    """What is known of the concepts of a space. Vectors are unit vectors; a row of zeros where there is none.

    `statements` numbers the (key, value) pairs of the metadata. `has_text`: the vector is that of a text, not of the
    name; `texts` are they, where they are at hand. `created` grows with time; `degree` counts links; `aliases` are
    names already absorbed, by row.
    """

    ids: Sequence[Id]
    types: Ints
    names: Sequence[str]
    vectors: Matrix
    has_vector: Mask
    has_text: Mask
    metadata: Sequence[Mapping[str, Any]] | None
    statements: Sets
    created: Floats
    energy: Floats
    degree: Ints
    weight: Floats
    protected: Mask
    aliases: Mapping[int, Sequence[str]]
    texts: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def traits(self, row: int) -> Traits:
        """One concept as the reference comparison takes it."""
        return Traits(
            name=self.names[row],
            vector=self.vectors[row] if self.has_vector[row] else None,
            metadata=self.metadata[row] if self.metadata else {},
            has_text=bool(self.has_text[row]),
            text=self.texts[row] if self.texts else None,
        )

    def is_bare(self, row: int) -> bool:
        """Nothing but a name is known of it."""
        return not self.has_text[row] and self.statements.starts[row] == self.statements.starts[row + 1]

    @classmethod
    def of(
        cls,
        *,
        names: Sequence[str],
        vectors: ArrayLike | Sequence[ArrayLike | None] | None = None,
        ids: Sequence[Id] | None = None,
        types: Sequence[str] | None = None,
        has_text: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        created: ArrayLike | None = None,
        energy: ArrayLike | None = None,
        degree: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        protected: ArrayLike | None = None,
        aliases: Mapping[int, Sequence[str]] | None = None,
        texts: Sequence[str | None] | None = None,
    ) -> "ConceptColumns":
        """Columns from what is given; what is not given is empty, zero, or the order of the rows."""
        count = len(names)
        matrix, has_vector = unit_rows(vectors, count)
        return cls(
            ids=ids if ids is not None else [f"{number:012d}" for number in range(count)],
            types=codes(types) if types is not None else np.zeros(count, np.int64),
            names=names,
            vectors=matrix,
            has_vector=has_vector,
            has_text=_column(has_text, np.zeros(count), np.bool_),
            metadata=metadata,
            statements=numbered_statements(metadata, count),
            created=_column(created, np.arange(count), np.float64),
            energy=_column(energy, np.zeros(count), np.float64),
            degree=_column(degree, np.zeros(count), np.int64),
            weight=_column(weight, np.zeros(count), np.float64),
            protected=_column(protected, np.zeros(count), np.bool_),
            aliases=aliases or {},
            texts=texts,
        )


def _column(given: ArrayLike | None, default: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    return np.asarray(default if given is None else given).astype(kind, copy=False)


def codes(values: Sequence[str]) -> Ints:
    """Numbers in the order of the values, so that they do not depend on the order of the rows."""
    number = {value: index for index, value in enumerate(sorted(set(values)))}
    return np.fromiter((number[value] for value in values), np.int64, len(values))


def unit_rows(given: ArrayLike | Sequence[ArrayLike | None] | None, count: int) -> tuple[Matrix, Mask]:
    """Rows of length 1, and which rows have one: a missing vector, or one without direction, is none."""
    if given is None or count == 0:
        return np.zeros((count, 1), np.float32), np.zeros(count, np.bool_)
    rows = given if isinstance(given, np.ndarray) else _stacked(list(given), count)  # type: ignore[arg-type]
    matrix = rows.astype(np.float32, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    has_vector = np.isfinite(lengths) & (lengths > SHORTEST)
    if has_vector.all() and np.abs(lengths - 1.0).max() < SHORTEST:
        return matrix, has_vector
    matrix = np.where(has_vector[:, np.newaxis], matrix, 0.0).astype(np.float32)
    matrix /= np.where(has_vector, lengths, 1.0)[:, np.newaxis].astype(np.float32)
    return matrix, has_vector


def _stacked(rows: Sequence[ArrayLike | None], count: int) -> NDArray[Any]:
    vectors = [np.asarray(row, np.float32) for row in rows if row is not None]
    width = len(vectors[0]) if vectors else 1
    matrix = np.zeros((count, width), np.float32)
    for index, row in enumerate(rows):
        if row is not None:
            matrix[index] = row
    return matrix


def numbered_statements(metadata: Sequence[Mapping[str, Any]] | None, count: int) -> Sets:
    """The (key, value) pairs of each row's metadata, as numbers."""
    if metadata is None or not any(metadata):
        return Sets.empty(count)
    numbers: dict[tuple[str, str], int] = {}
    return Sets.of([numbers.setdefault(statement, len(numbers)) for statement in statements(row)] for row in metadata)
