"""The vectors of spaces that are asked again and again, kept in memory: the nearest of 20,000 in a few milliseconds.

They are those of one version of a space. The first look of every recall reads the version as it is (the database raises
it in the transaction that changes the space), and what is kept of another one is not used: whoever writes, the answer
is that of the database. To read them costs what ten or twenty questions gain: so after each change the database is
asked some times first, and then they are read in the background. Who writes between few questions has none read; nor
has who would have to push out what others asked for meanwhile, or nobody would ever find theirs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from pgvector import Vector

from recollect.engine.core import Cache
from recollect.engine.keeping import IDLE_SECONDS, Keeping
from recollect.store.copying import copied, row_with_vector
from recollect.store.database import SERVER, Transaction

if TYPE_CHECKING:
    from recollect.engine.core import Core

# Fewer are looked at in the database as fast, and of more nobody counts how many they are.
LEAST, MOST = 1_000, 50_000
BYTES_A_NUMBER, BYTES_AN_ID = 4, 16
ASKED_BEFORE = 8
MOST_COUNTED = 1_000
# More are compared beside the event loop, so that others are answered meanwhile.
IN_PASSING = 10_000
NEARLY_NOTHING = 1e-12
# The tables in which a version counts: those of a restored backup are others, and so are those of another server.
TABLES = f"'embeddings'::regclass::int8 # {SERVER}"
VERSION = f"SELECT {TABLES}, coalesce(max(version), 0) FROM space_versions WHERE space_id = $1"
VECTORS = """
SELECT node_id, vector FROM embeddings
 WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = ANY($4::text[]) AND recallable
"""


class Among(NamedTuple):
    """Which vectors: in which tables, of which space, those of a model, of some kinds of nodes."""

    tables: int
    space_id: UUID
    model: str
    dim: int
    kinds: tuple[str, ...]

    def weight(self, count: int) -> int:
        """The bytes that so many of them take."""
        return count * (BYTES_A_NUMBER * self.dim + BYTES_AN_ID)


class AskedVersion(NamedTuple):
    """How often a version was asked for, and since when."""

    version: tuple[int, int]
    times: int
    since: float


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptVectors:
    """The vectors of one version of a space, each of length one, and the nodes they are of."""

    version: tuple[int, int]
    ids: NDArray[np.void]
    rows: NDArray[np.float32]

    async def nearest(self, vector: NDArray[np.float32], most: int) -> tuple[bytes, Vector]:
        """The ids of the nearest few, one after the other, and their cosines: to a vector as the database gets it.

        Not as arrays of ids and of numbers, each of which would be looked at on its way to the database.
        """
        if len(self.ids) <= IN_PASSING:
            return self._nearest(vector, most)
        return await anyio.to_thread.run_sync(self._nearest, vector, most)

    def _nearest(self, vector: NDArray[np.float32], most: int) -> tuple[bytes, Vector]:
        asked = vector.astype(np.float16)
        # Row by row, in this thread: those of a matrix product would wait for each other busily, and so do the others.
        cosines = np.vecdot(self.rows, _of_length_one(asked))
        few = np.argpartition(-cosines, most)[:most] if most < len(cosines) else np.arange(len(cosines))
        return self.ids[few].tobytes(), Vector(cosines[few])


class VectorsInMemory(Keeping[Among, KeptVectors]):
    """Those of one version of each space, as many as fit."""

    def __init__(self, *, most_mb: int) -> None:
        super().__init__(most=most_mb * 2**20)
        # Those that are not kept.
        self._asked: Cache[AskedVersion] = Cache(most=MOST_COUNTED, seconds=IDLE_SECONDS)

    def of(self, core: "Core", among: Among, *, version: tuple[int, int], count: int) -> KeptVectors | None:
        """Those of this version; None where the database is to look itself. Who asks often has them read."""
        if not LEAST <= count <= MOST or among.weight(count) > self._most:
            return None
        kept = self._kept.get(among)
        if kept is not None and kept.version >= version:
            self._used_at[among] = self._clock()
            # One that is newer is for those who looked after the change; and of none at all there is no nearest.
            return kept if kept.version == version and len(kept.ids) else None
        self._drop(among)
        since = self._asked_often(among, version)
        if since is not None and self._has_room(among.weight(count), since=since):
            self.load_soon(core, among.space_id, among)
        return None

    def _asked_often(self, among: Among, version: tuple[int, int]) -> float | None:
        """Since when, if so. Then it is counted anew: what cannot be read is not tried at every question."""
        before = self._asked.get(among)
        last = before if before and before.version == version else AskedVersion(version, 0, self._clock())
        if last.times + 1 < ASKED_BEFORE:
            self._asked.put(among, last._replace(times=last.times + 1))
            return None
        self._asked.put(among, AskedVersion(version, 0, self._clock()))
        return last.since

    def _has_room(self, weight: float, *, since: float) -> bool:
        """Beside all that somebody asked for since then: what is wanted more often is not pushed out."""
        wanted = (self._weight(kept) for key, kept in self._kept.items() if self._used_at[key] >= since)
        return weight + sum(wanted) <= self._most

    def forget(self) -> None:
        super().forget()
        self._asked.clear()

    def _weight(self, kept: KeptVectors) -> float:
        return kept.rows.nbytes + kept.ids.nbytes

    async def _read(self, db: Transaction, key: Among) -> KeptVectors:
        table, version = await db.fetchrow(VERSION)
        rows = await copied(db, row_with_vector(key.dim), VECTORS, key.model, key.dim, list(key.kinds))
        vectors = await anyio.to_thread.run_sync(_of_length_one, rows["vector"])
        return KeptVectors(version=(table, version), ids=np.ascontiguousarray(rows["id"]), rows=vectors)


def _of_length_one(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """What says nothing, and is nowhere, stays there."""
    rows = vectors.astype(np.float32)
    lengths = np.sqrt(np.vecdot(rows, rows))  # without all the squares in memory at once
    rows /= np.maximum(lengths, NEARLY_NOTHING)[..., np.newaxis]
    return rows
