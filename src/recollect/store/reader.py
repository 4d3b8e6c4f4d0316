"""What a policy reads: one consistent look at a space, in columns where there is much of it."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.model import Edge, Topic
from recollect.rules.graph import EdgeColumns
from recollect.rules.stored_pages import Batch, StoredPage
from recollect.store import edges as kept
from recollect.store import pages as page_store
from recollect.store import rows
from recollect.store.database import driver
from recollect.store.tables import topics

# A binary COPY begins with 19 bytes of header; every row here has the same length, for no field can be NULL.
HEADER = 19
FIELDS = (
    ("id", "V16", "e.id"),
    ("source", "V16", "e.source"),
    ("target", "V16", "e.target"),
    ("relation", ">i8", "hashtextextended(e.relation, 0)"),
    ("strength", ">f8", "coalesce(e.strength, 'NaN')"),
    ("decay_rate", ">f8", "e.decay_rate"),
    ("created_at", ">f8", "date_part('epoch', e.created_at)"),
    ("activated_at", ">f8", "coalesce(date_part('epoch', e.last_activated_at), 'NaN')"),
    ("reinforced_at", ">f8", "coalesce(date_part('epoch', e.last_reinforced_at), 'NaN')"),
    ("activation_count", ">i8", "e.activation_count"),
    ("protected", "?", "e.protected"),
    ("by_user", "?", "e.created_by = 'user'"),
    ("active", "?", "e.status = 'active'"),
    ("source_topic", ">i8", "coalesce(hashtextextended(e.source_topic, 0), 0)"),
    ("target_topic", ">i8", "coalesce(hashtextextended(e.target_topic, 0), 0)"),
)
ROW = np.dtype(
    [("fields", ">i2")] + [part for name, kind, _ in FIELDS for part in ((f"{name}_length", ">i4"), (name, kind))]
)
COPY_EDGES = f"SELECT {', '.join(of for _, _, of in FIELDS)} FROM edges e WHERE e.space_id = $1 AND "
# Archived and merged nodes are few: they are looked up once, and their edges left out.
LIVING = """e.status = 'active'
  AND e.source NOT IN (SELECT id FROM nodes WHERE space_id = $1 AND status <> 'active')
  AND e.target NOT IN (SELECT id FROM nodes WHERE space_id = $1 AND status <> 'active')"""
NAMES = {
    "relation": "SELECT DISTINCT relation AS name FROM edges WHERE space_id = $1",
    "topic": """SELECT DISTINCT source_topic AS name FROM edges WHERE space_id = $1 AND source_topic IS NOT NULL
                 UNION SELECT DISTINCT target_topic FROM edges WHERE space_id = $1 AND target_topic IS NOT NULL""",
}
VECTORS = """
SELECT e.node_id, e.vector, date_part('epoch', e.created_at) AS created_at FROM embeddings e
 WHERE e.space_id = $1 AND e.recallable AND e.kind = ANY($2)
   AND e.model = (SELECT embedding_model FROM spaces WHERE id = $1)
 ORDER BY e.node_id
"""


class StoreReader:
    """The Reader that policies are given."""

    def __init__(self, connection: AsyncConnection, space_id: UUID) -> None:
        self.connection, self.space_id = connection, space_id

    async def edges(self, *, retired: bool = False) -> EdgeColumns:
        return (await self._columns("true" if retired else LIVING))[0]

    async def edges_changed_since(self, transaction: int) -> tuple[EdgeColumns, NDArray[np.bool_]]:
        """Edges written by that transaction or a later one, and whether each is alive."""
        return await self._columns("e.changed_in >= $2", transaction)

    async def _columns(self, wanted: str, *arguments: int) -> tuple[EdgeColumns, NDArray[np.bool_]]:
        raw = await driver(self.connection)
        written = bytearray()

        async def take(piece: bytes) -> None:
            written.extend(piece)

        await raw.copy_from_query(COPY_EDGES + wanted, self.space_id, *arguments, output=take, format="binary")
        found = np.frombuffer(memoryview(written)[HEADER:-2], dtype=ROW)
        found = found[_in_order(found["id"])]
        relations, topic_keys = await self._names("relation"), await self._names("topic")
        return _edge_columns(found, relations, topic_keys), found["active"].astype(np.bool_)

    async def _names(self, what: str) -> dict[int, str]:
        """Names by the number that the database gives them."""
        raw = await driver(self.connection)
        found = await raw.fetch(
            f"SELECT hashtextextended(name, 0) AS number, name FROM ({NAMES[what]}) s ORDER BY name", self.space_id
        )
        return {row["number"]: row["name"] for row in found}

    async def edges_in_full(self, ids: Sequence[UUID]) -> Mapping[UUID, Edge]:
        return await kept.get_many(self.connection, self.space_id, ids)

    async def topics(self) -> Sequence[Topic]:
        statement = select(topics).where(topics.c.space_id == self.space_id).order_by(topics.c.key)
        return [rows.topic(row) for row in await self.connection.execute(statement)]

    async def distinct_pairs(self, now: datetime) -> Mapping[tuple[str, str], str | None]:
        raw = await driver(self.connection)
        found = await raw.fetch(
            "SELECT a, b, state FROM never_merge WHERE space_id = $1 AND (until IS NULL OR until > $2)",
            self.space_id,
            now,
        )
        return {(row["a"], row["b"]): row["state"] for row in found}

    async def vectors(
        self, *, kinds: Sequence[str]
    ) -> tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.float64]]:
        raw = await driver(self.connection)
        found = await raw.fetch(VECTORS, self.space_id, list(kinds))
        ids = np.frombuffer(b"".join(row["node_id"].bytes for row in found), dtype="V16")
        vectors = np.array([row["vector"].to_numpy() for row in found], dtype=np.float32)
        shape = (len(found), -1) if found else (0, 1)
        return ids, vectors.reshape(shape), np.array([row["created_at"] for row in found], dtype=np.float64)

    async def first_tags(self, *, kinds: Sequence[str]) -> Mapping[UUID, str]:
        raw = await driver(self.connection)
        found = await raw.fetch(
            """SELECT id, metadata->'tags'->>0 AS tag FROM nodes WHERE space_id = $1 AND kind = ANY($2)
                  AND status = 'active' AND metadata->'tags'->>0 IS NOT NULL""",
            self.space_id,
            list(kinds),
        )
        return {row["id"]: row["tag"] for row in found}

    async def last_applied(self, policy: str) -> datetime | None:
        raw = await driver(self.connection)
        last: datetime | None = await raw.fetchval(
            "SELECT max(created_at) FROM plans WHERE space_id = $1 AND policy = $2 AND applied_at IS NOT NULL",
            self.space_id,
            policy,
        )
        return last

    async def count_nodes(self) -> int:
        raw = await driver(self.connection)
        return int(
            await raw.fetchval("SELECT count(*) FROM nodes WHERE space_id = $1 AND status = 'active'", self.space_id)
        )

    async def pages(self, ids: Sequence[UUID] | None = None) -> Sequence[StoredPage]:
        return await page_store.all_pages(self.connection, self.space_id, ids)

    async def page_batch(self, batch: UUID, page_ids: Sequence[str] | None = None) -> Batch:
        return await page_store.get_batch(self.connection, self.space_id, batch, page_ids)

    async def page_edges(self) -> Mapping[tuple[UUID, str, UUID], UUID]:
        return await page_store.edges(self.connection, self.space_id)

    async def page_aliases(self) -> AbstractSet[tuple[str, UUID]]:
        return await page_store.aliases(self.connection, self.space_id)


def _halves(ids: NDArray[np.void]) -> NDArray[np.uint64]:
    """Each id as two numbers; ids are random, so that the first nearly always tells them apart."""
    return np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).astype(np.uint64)


def _in_order(ids: NDArray[np.void]) -> NDArray[np.int64]:
    halves = _halves(ids)
    order = np.argsort(halves[:, 0], kind="stable")
    first = halves[order, 0]
    if np.any(first[1:] == first[:-1]):
        order = np.lexsort((halves[:, 1], halves[:, 0]))
    return order


def _edge_columns(found: NDArray[np.void], relations: Mapping[int, str], topic_keys: Mapping[int, str]) -> EdgeColumns:
    nodes, ends = _numbered(np.concatenate([found["source"], found["target"]]))
    return EdgeColumns(
        ids=np.ascontiguousarray(found["id"]),
        nodes=nodes,
        source=ends[: len(found)],
        target=ends[len(found) :],
        relation=_places(found["relation"], relations),
        relations=tuple(relations.values()),
        strength=found["strength"].astype(np.float64),
        decay_rate=found["decay_rate"].astype(np.float64),
        created_at=found["created_at"].astype(np.float64),
        activated_at=found["activated_at"].astype(np.float64),
        reinforced_at=found["reinforced_at"].astype(np.float64),
        activation_count=found["activation_count"].astype(np.int64),
        protected=found["protected"].astype(np.bool_),
        by_user=found["by_user"].astype(np.bool_),
        source_topic=_places(found["source_topic"], topic_keys),
        target_topic=_places(found["target_topic"], topic_keys),
        topics=tuple(topic_keys.values()),
    )


def _numbered(ends: NDArray[np.void]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The distinct ids in order, and for each end its place among them."""
    halves = _halves(ends)
    _, first, places = np.unique(halves[:, 0], return_index=True, return_inverse=True)
    if not np.array_equal(halves[first, 1][places], halves[:, 1]):  # two ids with the same first half
        _, first, places = np.unique(halves, axis=0, return_index=True, return_inverse=True)
    return np.ascontiguousarray(ends)[first], places.reshape(-1).astype(np.int64)


def _places(numbers: NDArray[np.int64], names: Mapping[int, str]) -> NDArray[np.int64]:
    """For each number of a name its place among the names; -1 for none."""
    known = np.fromiter(names, dtype=np.int64, count=len(names))
    if not len(known):
        return np.full(len(numbers), -1, dtype=np.int64)
    order = np.argsort(known)
    native = numbers.astype(np.int64)
    at = order[np.searchsorted(known, native, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[at] == native, at, -1).astype(np.int64)
