"""Rows in binary, by COPY: for who reads a whole space, where row by row would take longer than all the rest."""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, NamedTuple

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.store.database import Transaction

# A binary COPY begins with 19 bytes of header and ends with two that say so.
HEADER, END = 19, 2
# Where in a row of an id and a sparsevec the id begins, its number of numbers stands, and these begin.
SIZE = Struct(">i")
ID_AT, SIZE_AT, NUMBERS_AT = 6, 30, 38


def row_of(columns: Iterable[tuple[str, str]]) -> np.dtype[Any]:
    """A row of columns (name, kind) none of which can be NULL: each field has its length before it."""
    parts = [part for name, kind in columns for part in ((f"{name}_length", ">i4"), (name, kind))]
    return np.dtype([("fields", ">i2"), *parts])


def row_with_vector(dim: int) -> np.dtype[Any]:
    """A row of an id and a halfvec, which is sent as its length, two spare bytes, and its numbers."""
    parts = [("vector_length", ">i4"), ("dim", ">i2"), ("spare", ">i2"), ("vector", ">f2", (dim,))]
    return np.dtype([("fields", ">i2"), ("id_length", ">i4"), ("id", "V16"), *parts])


async def copied(db: Transaction, row: np.dtype[Any], query: str, *given: Any) -> NDArray[np.void]:
    """What a query finds whose $1 is the space, all rows of the same length."""
    return np.frombuffer(await _written(db, query, given), dtype=row)


class SparseRows(NamedTuple):
    """Rows of an id and a sparsevec: how many numbers each has, and those of all, one row after the other."""

    ids: NDArray[np.void]
    sizes: NDArray[np.int64]
    places: NDArray[np.int32]
    numbers: NDArray[np.float32]


async def copied_sparse(db: Transaction, query: str, *given: Any) -> SparseRows:
    """What a query finds whose $1 is the space: an id and a sparsevec, which counts its places from 0."""
    written = await _written(db, query, given)
    return await anyio.to_thread.run_sync(_sparse_rows, written)


def _sparse_rows(written: memoryview) -> SparseRows:
    """A sparsevec is sent as its length, how many numbers it has, a spare one, their places, and the numbers."""
    ids, sizes, at = bytearray(), [], 0
    places, numbers = [np.empty(0, ">i4")], [np.empty(0, ">f4")]
    while at < len(written):
        (size,) = SIZE.unpack_from(written, at + SIZE_AT)
        ids += written[at + ID_AT : at + ID_AT + 16]
        sizes.append(size)
        at += NUMBERS_AT
        places.append(np.frombuffer(written, ">i4", size, at))
        numbers.append(np.frombuffer(written, ">f4", size, at + 4 * size))
        at += 8 * size
    return SparseRows(
        ids=np.frombuffer(bytes(ids), "V16"),
        sizes=np.array(sizes, dtype=np.int64),
        places=np.concatenate(places).astype(np.int32),
        numbers=np.concatenate(numbers).astype(np.float32),
    )


async def _written(db: Transaction, query: str, given: Sequence[Any]) -> memoryview:
    """The rows as they are sent, without what stands before and after them."""
    written = bytearray()

    async def take(piece: bytes) -> None:
        written.extend(piece)

    arguments = (db.space_id, *given)
    if not given:  # the space is written into the query: as an argument it would cost two more journeys
        query, arguments = query.replace("$1", f"'{db.space_id}'::uuid"), ()
    await db.connection.raw.copy_from_query(query, *arguments, output=take, format="binary")
    return memoryview(written)[HEADER:-END]
