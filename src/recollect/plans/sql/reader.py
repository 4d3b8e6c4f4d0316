"""What a policy reads: one consistent look at a space, in columns where there is much of it."""

import json
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from recollect.cases import sql as case_store
from recollect.cases.rules.cases import CaseColumns, CaseText, CaseVectors
from recollect.concepts.rules.concepts import KnownConcepts, LastPass
from recollect.concepts.sql import columns, concepts
from recollect.graph.rules.arrays import EdgeColumns, as_ids
from recollect.graph.sql import edges as kept
from recollect.graph.sql import graph
from recollect.memories.sql import nodes
from recollect.model import Case, Concept, Edge, Kind, QuestionSide, Topic
from recollect.pages import sql as page_store
from recollect.pages.rules.stored import PageBatch, StoredPage
from recollect.plans.sql import plans
from recollect.ports import Executor
from recollect.store.copying import copied, row_of
from recollect.store.database import Transaction
from recollect.store.tables import topics

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
ROW = row_of((name, kind) for name, kind, _ in FIELDS)
COPY_EDGES = f"SELECT {', '.join(of for _, _, of in FIELDS)} FROM edges e WHERE e.space_id = $1 AND "
# The same for a few edges, asked for before every walk: no COPY, which takes three journeys, and names as they are.
# Each is looked up by its key, and we order them: a search session, which does not sort, would walk all keys for that.
FEW_EDGES = f"""
WITH few AS MATERIALIZED (
    SELECT id FROM edges WHERE space_id = $1 AND changed_in >= $2
     UNION SELECT id FROM edges WHERE space_id = $1 AND source = ANY($3)
     UNION SELECT id FROM edges WHERE space_id = $1 AND target = ANY($3))
SELECT {", ".join(f"{of} AS {name}" for name, _, of in FIELDS if name not in ("active", "relation"))},
       e.relation, {kept.ALIVE.replace("e.space_id", "$1")} AS active
  FROM few CROSS JOIN LATERAL (SELECT * FROM edges WHERE space_id = $1 AND id = few.id OFFSET 0) e
"""
# Archived and merged nodes are few: they are looked up once, and their edges left out.
LIVING = """e.status = 'active'
  AND e.source NOT IN (SELECT id FROM nodes WHERE space_id = $1 AND status <> 'active')
  AND e.target NOT IN (SELECT id FROM nodes WHERE space_id = $1 AND status <> 'active')"""
NAMES = """
SELECT hashtextextended(name, 0) AS number, name, is_topic FROM (
    SELECT DISTINCT relation AS name, false AS is_topic FROM edges WHERE space_id = $1
     UNION SELECT DISTINCT source_topic, true FROM edges WHERE space_id = $1 AND source_topic IS NOT NULL
     UNION SELECT DISTINCT target_topic, true FROM edges WHERE space_id = $1 AND target_topic IS NOT NULL) s
 ORDER BY name
"""
VECTORS = """
SELECT e.node_id, e.vector, date_part('epoch', e.created_at) AS created_at FROM embeddings e
 WHERE e.space_id = $1 AND e.recallable AND e.kind = ANY($2) AND e.passage = 0
   AND e.model = (SELECT embedding_model FROM spaces WHERE id = $1)
 ORDER BY e.node_id
"""


class StoreReader:
    """The Reader that policies are given."""

    def __init__(self, db: Transaction, executor: Executor | None = None) -> None:
        self.db = db
        self.executor = executor

    async def edges(self, *, retired: bool = False) -> EdgeColumns:
        rows = await copied(self.db, ROW, COPY_EDGES + ("true" if retired else LIVING))
        names = await self._names()
        # A second or two for a million edges: in a thread, so that nobody who asks meanwhile has to wait.
        return await anyio.to_thread.run_sync(_edge_columns, rows, *names)

    async def edges_changed_since(
        self, transaction: int, touching: Sequence[UUID] = ()
    ) -> tuple[EdgeColumns, NDArray[np.bool_]]:
        """Edges written by that transaction or a later one, and those of some nodes; and whether each is alive.

        Without their topics, which nobody asks of single edges.
        """
        rows = sorted(await self.db.fetch(FEW_EDGES, transaction, list(touching)), key=itemgetter("id"))
        return few_columns(rows), np.array([row["active"] for row in rows], dtype=np.bool_)

    async def _names(self) -> tuple[dict[int, str], dict[int, str]]:
        """The relations and the topics, each by the number that the database gives it."""
        relations: dict[int, str] = {}
        topics: dict[int, str] = {}
        for row in await self.db.fetch(NAMES):
            (topics if row["is_topic"] else relations)[row["number"]] = row["name"]
        return relations, topics

    async def edges_in_full(self, ids: Sequence[UUID]) -> Mapping[UUID, Edge]:
        return await kept.get_many(self.db, ids)

    async def topics(self) -> Sequence[Topic]:
        statement = select(topics).where(topics.c.space_id == self.db.space_id).order_by(topics.c.key)
        return [graph.topic_of(row) for row in await self.db.execute(statement)]

    async def distinct_pairs(self, now: datetime) -> Mapping[tuple[str, str], str | None]:
        rows = await self.db.fetch(
            "SELECT a, b, state FROM never_merge WHERE space_id = $1 AND (until IS NULL OR until > $2)", now
        )
        return {(row["a"], row["b"]): row["state"] for row in rows}

    async def vectors(
        self, *, kinds: Sequence[str]
    ) -> tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.float64]]:
        rows = await self.db.fetch(VECTORS, list(kinds))
        ids = np.frombuffer(b"".join(row["node_id"].bytes for row in rows), dtype="V16")
        vectors = np.array([row["vector"].to_numpy() for row in rows], dtype=np.float32)
        shape = (len(rows), -1) if rows else (0, 1)
        return ids, vectors.reshape(shape), np.array([row["created_at"] for row in rows], dtype=np.float64)

    async def first_tags(self, *, kinds: Sequence[str]) -> Mapping[UUID, str]:
        rows = await self.db.fetch(
            """SELECT id, metadata->'tags'->>0 AS tag FROM nodes WHERE space_id = $1 AND kind = ANY($2)
                  AND status = 'active' AND metadata->'tags'->>0 IS NOT NULL""",
            list(kinds),
        )
        return {row["id"]: row["tag"] for row in rows}

    async def last_applied(self, policy: str, options: Mapping[str, Any]) -> datetime | None:
        last: datetime | None = await self.db.fetchval(
            """SELECT max(created_at) FROM plans
                WHERE space_id = $1 AND policy = $2 AND applied_at IS NOT NULL AND options @> $3::jsonb""",
            policy,
            json.dumps(options),
        )
        return last

    async def edges_of(self, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Edge]]:
        edges_by_node: dict[UUID, list[Edge]] = {}
        node_ids = set(ids)
        for edge in sorted(await self.edges_around(ids), key=lambda edge: edge.id):
            for end in {edge.source, edge.target} & node_ids:
                edges_by_node.setdefault(end, []).append(edge)
        return edges_by_node

    async def cases(self) -> CaseColumns:
        return await case_store.columns(self.db)

    async def case_vectors(self) -> Sequence[CaseVectors]:
        return await case_store.vectors(self.db)

    async def case_texts(self, ids: Sequence[UUID]) -> Sequence[CaseText]:
        return await case_store.texts(self.db, ids)

    async def case_vectors_within(self, ids: Sequence[UUID], dim: int) -> Mapping[UUID, NDArray[np.float16]]:
        return await case_store.vectors_within(self.db, ids, dim)

    async def edges_around(self, ids: Sequence[UUID]) -> Sequence[Edge]:
        return await kept.of_nodes(self.db, ids)

    async def concepts(self, only: Sequence[UUID] | None = None) -> KnownConcepts:
        return await columns.read(self.db, only)

    async def sides(self, ids: Sequence[UUID]) -> Mapping[UUID, QuestionSide]:
        """Concepts and cases as a person compares them."""
        nodes_by_id = await nodes.get_many(self.db, ids)
        concept_nodes = [node for node in nodes_by_id.values() if node.kind is Kind.CONCEPT]
        case_ids = [node.id for node in nodes_by_id.values() if node.kind is Kind.CASE]
        sides = [
            *map(_concept_side, await concepts.in_full(self.db, concept_nodes) if concept_nodes else ()),
            *map(_case_side, await case_store.get_many(self.db, case_ids) if case_ids else ()),
        ]
        return {side.id: side for side in sides}

    async def concepts_changed_since(self, moment: datetime) -> Collection[UUID]:
        return await columns.changed_since(self.db, moment)

    async def names_of(self, ids: Collection[UUID]) -> Mapping[UUID, frozenset[str]]:
        return await concepts.names_of(self.db, ids)

    async def keepers(self, ids: Collection[UUID]) -> Mapping[UUID, UUID]:
        return await nodes.keepers(self.db, ids)

    async def last_pass(self, policy: str, options: Mapping[str, Any]) -> LastPass | None:
        return await columns.last_pass(self.db, policy, options)

    async def version(self) -> int:
        """A number that grows with every change of what is remembered or linked."""
        return await plans.version(self.db)

    async def count_nodes(self) -> int:
        return int(await self.db.fetchval("SELECT count(*) FROM nodes WHERE space_id = $1 AND status = 'active'"))

    async def pages(self, ids: Sequence[UUID] | None = None) -> Sequence[StoredPage]:
        return await page_store.all_pages(self.db, ids)

    async def page_batch(self, batch: UUID, page_ids: Sequence[str] | None = None) -> PageBatch:
        return await page_store.get_batch(self.db, batch, page_ids)

    async def page_edges(self) -> Mapping[tuple[UUID, str, UUID], UUID]:
        return await page_store.edges(self.db)

    async def page_aliases(self) -> AbstractSet[tuple[str, UUID]]:
        return await page_store.aliases(self.db)


def _concept_side(concept: Concept) -> QuestionSide:
    return QuestionSide(
        id=concept.id,
        kind=Kind.CONCEPT,
        node_type=concept.node_type,
        name=concept.name,
        text=concept.text,
        metadata=concept.metadata,
        version=concept.version,
        created_at=concept.created_at,
        aliases=concept.aliases,
        links=concept.links,
    )


def _case_side(case: Case) -> QuestionSide:
    return QuestionSide(
        id=case.id,
        kind=Kind.CASE,
        node_type=Kind.CASE,
        name=case.query,
        text=case.response_text,
        metadata=case.metadata,
        version=case.version,
        created_at=case.created_at,
        category_path=case.category_path,
        usage_count=case.usage_count,
        success_rate=case.success_rate,
    )


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


def _edge_columns(rows: NDArray[np.void], relations: Mapping[int, str], topic_keys: Mapping[int, str]) -> EdgeColumns:
    edges = rows[_in_order(rows["id"])]
    nodes, ends = _numbered(np.concatenate([edges["source"], edges["target"]]))
    return EdgeColumns(
        ids=np.ascontiguousarray(edges["id"]),
        nodes=nodes,
        source=ends[: len(edges)],
        target=ends[len(edges) :],
        relation=_places(edges["relation"], relations),
        relations=tuple(relations.values()),
        strength=edges["strength"].astype(np.float64),
        decay_rate=edges["decay_rate"].astype(np.float64),
        created_at=edges["created_at"].astype(np.float64),
        activated_at=edges["activated_at"].astype(np.float64),
        reinforced_at=edges["reinforced_at"].astype(np.float64),
        activation_count=edges["activation_count"].astype(np.int64),
        protected=edges["protected"].astype(np.bool_),
        by_user=edges["by_user"].astype(np.bool_),
        source_topic=_places(edges["source_topic"], topic_keys),
        target_topic=_places(edges["target_topic"], topic_keys),
        topics=tuple(topic_keys.values()),
    )


def few_columns(rows: Sequence[Any]) -> EdgeColumns:
    """The same of rows that came one by one, in the order of their ids."""
    nodes, ends = _numbered(as_ids([row[end] for end in ("source", "target") for row in rows]))
    relations = sorted({row["relation"] for row in rows})
    numbers = {relation: number for number, relation in enumerate(relations)}
    none = np.full(len(rows), -1, dtype=np.int64)
    plain = {
        name: np.array([row[name] for row in rows], dtype=kind.replace(">", "="))
        for name, kind, _ in FIELDS
        if name in EdgeColumns.__slots__ and kind != "V16" and name not in ("relation", "source_topic", "target_topic")
    }
    return EdgeColumns(
        ids=as_ids([row["id"] for row in rows]),
        nodes=nodes,
        source=ends[: len(rows)],
        target=ends[len(rows) :],
        relation=np.array([numbers[row["relation"]] for row in rows], dtype=np.int64),
        relations=tuple(relations),
        source_topic=none,
        target_topic=none,
        topics=(),
        **plain,
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
    name_numbers = np.fromiter(names, dtype=np.int64, count=len(names))
    if not len(name_numbers):
        return np.full(len(numbers), -1, dtype=np.int64)
    order = np.argsort(name_numbers)
    native = numbers.astype(np.int64)
    at = order[np.searchsorted(name_numbers, native, sorter=order).clip(max=len(name_numbers) - 1)]
    return np.where(name_numbers[at] == native, at, -1).astype(np.int64)
