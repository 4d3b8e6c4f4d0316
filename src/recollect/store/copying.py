"""Rows in binary, by COPY: for who reads a whole space, where row by row would take longer than all the rest."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.store.database import Transaction

# A binary COPY begins with 19 bytes of header and ends with two that say so.
HEADER, END = 19, 2


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
    written = bytearray()

    async def take(piece: bytes) -> None:
        written.extend(piece)

    arguments = (db.space_id, *given)
    if not given:  # the space is written into the query: as an argument it would cost two more journeys
        query, arguments = query.replace("$1", f"'{db.space_id}'::uuid"), ()
    await db.connection.raw.copy_from_query(query, *arguments, output=take, format="binary")
    return np.frombuffer(memoryview(written)[HEADER:-END], dtype=row)
