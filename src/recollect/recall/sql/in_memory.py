"""The vectors of spaces that are asked again and again, kept in memory: the nearest of 20,000 in a few milliseconds.

They are those of one version of a space. The first look of every recall reads the version as it is (the database raises
it in the transaction that changes the space), and what is kept of another one is not used: whoever writes, the answer
is that of the database. To read them costs what ten or twenty questions gain: so after each change the database is
asked some times first, and then they are read in the background. Who writes between few questions has none read.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from pgvector import Vector

from recollect.engine.keeping import Keeping
from recollect.store.copying import copied, row_with_vector
from recollect.store.database import Transaction

if TYPE_CHECKING:
    from recollect.engine.core import Core

# Fewer are looked at in the database as fast, and of more nobody counts how many they are.
LEAST, MOST = 1_000, 50_000
BYTES_A_NUMBER = 4
ASKED_BEFORE = 8
NEARLY_NOTHING = 1e-12
VERSION = "SELECT 'embeddings'::regclass::int8, coalesce(max(version), 0) FROM space_versions WHERE space_id = $1"
VECTORS = """
SELECT node_id, vector FROM embeddings
 WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4::text[]) AND recallable
"""


class Among(NamedTuple):
    """Which vectors of a space: those of a model, of some kinds of nodes."""

    space_id: UUID
    model: str
    dim: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptVectors:
    """The vectors of one version of a space, each of length one, and the nodes they are of."""

    version: tuple[int, int]
    ids: NDArray[np.void]
    rows: NDArray[np.float32]

    def nearest(self, vector: NDArray[np.float32], most: int) -> tuple[bytes, Vector]:
        """The ids of the nearest few, one after the other, and their cosines: to a vector as the database gets it.

        Not as arrays of ids and of numbers, each of which would be looked at on its way to the database.
        """
        asked = vector.astype(np.float16)
        # Row by row, in this thread: those of a matrix product would wait for each other busily, and so do the others.
        cosines = np.vecdot(self.rows, _of_length_one(asked))
        few = np.argpartition(-cosines, most)[:most] if most < len(cosines) else np.arange(len(cosines))
        return self.ids[few].tobytes(), Vector(cosines[few])


class VectorsInMemory(Keeping[Among, KeptVectors]):
    """Those of one version of each space, as many as fit."""

    def __init__(self, *, most_mb: int) -> None:
        super().__init__(most=most_mb * 2**20)
        # Which version was asked last, and how often.
        self._asked: dict[Among, tuple[tuple[int, int], int]] = {}

    def of(self, core: "Core", among: Among, *, version: tuple[int, int], count: int) -> KeptVectors | None:
        """Those of this version; None where the database is to look itself. Who asks often has them read."""
        if not LEAST <= count <= min(MOST, self._most / (BYTES_A_NUMBER * among.dim)):
            return None
        kept = self._kept.get(among)
        if kept is not None and kept.version == version:
            self._used_at[among] = self._clock()
            return kept
        self._drop(among)
        last, before = self._asked.get(among, (version, 0))
        times = before + 1 if last == version else 1
        self._asked[among] = (version, times)
        if times >= ASKED_BEFORE:
            self.load_soon(core, among.space_id, among)
        return None

    def forget(self) -> None:
        super().forget()
        self._asked.clear()

    def _weight(self, kept: KeptVectors) -> float:
        return kept.rows.nbytes

    async def _read(self, db: Transaction, key: Among) -> KeptVectors:
        table, version = await db.fetchrow(VERSION)
        rows = await copied(db, row_with_vector(key.dim), VECTORS, key.model, key.dim, list(key.kinds))
        vectors = await anyio.to_thread.run_sync(_of_length_one, rows["vector"])
        return KeptVectors(version=(table, version), ids=np.ascontiguousarray(rows["id"]), rows=vectors)


def _of_length_one(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """What says nothing, and is nowhere, stays there."""
    rows = vectors.astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), NEARLY_NOTHING)
    return rows
