"""Nodes: adding (set-based, one statement a table), finding, listing. Changing them is the business of changes.py."""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from os import urandom
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from sqlalchemy import ColumnElement, Select, TableValuedAlias, column, func, select, text, type_coerce
from sqlalchemy.dialects.postgresql import JSONB

from recollect.errors import NotFound
from recollect.memories.rules.text import checksum
from recollect.memories.rules.windows import is_long
from recollect.model import ExportedMemory, Kind, NewMemory, Node, NodeFilter, Order, Page, Status
from recollect.store import references
from recollect.store.cursors import stretch
from recollect.store.database import Transaction
from recollect.store.tables import cases, nodes

COLUMNS = tuple(column for column in nodes.c if column.name not in ("space_id", "recallable"))

# From some nodes down to all that each is made of by merges. LATERAL with OFFSET 0: each row is looked up by its key,
# however small the space is believed to be.
PARTS = """
WITH RECURSIVE part AS (
    SELECT g.id AS keeper, g.id FROM unnest($2::uuid[]) AS g(id)
     UNION
    SELECT part.keeper, n.id FROM part,
           LATERAL (SELECT id FROM nodes WHERE space_id = $1 AND merged_into = part.id OFFSET 0) n
)
"""

# What a memory is stored as, out of arrays that come as $2, $3 and so on; what is named like {text} is from one of
# them. Where all have what is usual the array is empty, and what is taken from it is NULL: the driver looks at every
# element, whatever it is. What comes back from an export (ExportedMemory) brings its state along.
GIVEN = (
    *("id uuid", "subtype text", "text text", "checksum text", "metadata text", "importance float8", "source text"),
    *("source_id text", "thread text", "position int8", "created_at timestamptz", "updated_at timestamptz"),
    *("status text", "merged_into uuid", "protected bool", "exclude bool", "is_summary bool", "version int4"),
)
STATE = ("updated_at", "status", "merged_into", "protected", "exclude", "is_summary", "version")
ARRAYS = {name: f"${number}::{type_}[]" for number, (name, type_) in enumerate(map(str.split, GIVEN), 2)}
INSERT = """
INSERT INTO nodes (space_id, kind, id, subtype, text, checksum, metadata, importance, source, source_id,
                   thread, position, created_at, updated_at,
                   status, merged_into, protected, exclude, is_summary, version)
"""
ROW = """
$1, 'memory', {id}, coalesce({subtype}, 'note'), {text}, {checksum}, coalesce({metadata}::jsonb, '{{}}'), {importance},
{source}, {source_id},
{thread}, {position}, {created_at}, coalesce({updated_at}, {created_at}),
coalesce({status}, 'active'), {merged_into}, coalesce({protected}, false), coalesce({exclude}, false),
coalesce({is_summary}, false), coalesce({version}, 1)
"""
# Whatever is there already (same text, same id, same foreign id) is left alone.
# One alone is written as VALUES, and comes back as it was stored. On Citus that goes straight to the server that has
# the space, where a SELECT from arrays takes several steps, and several times as long.
INSERT_ONE = f"""{INSERT} VALUES ({ROW.format(**{name: f"({array})[1]" for name, array in ARRAYS.items()})})
ON CONFLICT DO NOTHING RETURNING {", ".join(column.name for column in COLUMNS)}
"""
# A batch is sorted by checksum: two writers of the same texts then wait for each other in the same order and cannot
# deadlock.
INSERT_MANY = f"""{INSERT} SELECT {ROW.format(**{name: f"g.{name}" for name in ARRAYS})}
  FROM unnest({", ".join(ARRAYS.values())}) AS g({", ".join(ARRAYS)})
ON CONFLICT DO NOTHING RETURNING id
"""
# Vectors that exported memories bring along, and jobs for those that are still to be made. Both read the nodes that
# they belong to, and take the space from there: so Citus knows that one server has it all.
BRING = """
INSERT INTO embeddings (space_id, node_id, model, dim, vector, kind, recallable, created_at)
SELECT n.space_id, n.id, v.model, vector_dims(v.vector), v.vector, n.kind, n.recallable, $5
  FROM unnest($2::uuid[], $3::text[], $4::halfvec[]) AS v(id, model, vector) JOIN nodes n ON n.id = v.id
 WHERE n.space_id = $1
RETURNING 1
"""
QUEUE = """
INSERT INTO embedding_jobs (space_id, id, node_id, model, max_attempts, created_at, due_at)
SELECT n.space_id, g.id, n.id, $4, $5, $6, $6
  FROM unnest($2::uuid[], $3::uuid[]) AS g(id, node_id) JOIN nodes n ON n.id = g.node_id
 WHERE n.space_id = $1
RETURNING 1
"""

# Who was there before: the same text, else the same id, else the same foreign id. LATERAL and LIMIT make each of them a
# look into an index: a plain join is planned as a pass over the whole space, for every batch.
TWINS = """
WITH given AS (
    SELECT * FROM unnest($2::int4[], $3::uuid[], $4::text[], $5::text[], $6::text[])
        AS g(number, id, checksum, source, source_id)
), found AS (
    SELECT g.number, n.id, 'text' AS by, n.out_of_recall, 1 AS rank FROM given g CROSS JOIN LATERAL (
        SELECT id, CASE WHEN status = 'archived' THEN 'forgotten' WHEN exclude THEN 'excluded' END AS out_of_recall
          FROM nodes WHERE space_id = $1 AND kind = 'memory' AND checksum = g.checksum LIMIT 1) n
    UNION ALL
    SELECT g.number, n.id, 'id', NULL, 2 FROM given g CROSS JOIN LATERAL (
        SELECT id FROM nodes WHERE space_id = $1 AND id = g.id LIMIT 1) n
    UNION ALL
    SELECT g.number, n.id, 'source_id', NULL, 3 FROM given g CROSS JOIN LATERAL (
        SELECT id FROM nodes
         WHERE space_id = $1 AND kind = 'memory' AND source = g.source AND source_id = g.source_id LIMIT 1) n
)
SELECT DISTINCT ON (number) number, id, by, out_of_recall FROM found ORDER BY number, rank
"""

VECTORS = "SELECT node_id, model, vector FROM embeddings WHERE space_id = $1 AND node_id = ANY($2) AND passage = 0"

# LATERAL with OFFSET 0, not `= ANY`: each is then looked up by its key, however small the space is believed to be.
GET_MANY = (
    f"SELECT {', '.join(f'n.{column.name}' for column in COLUMNS)} FROM unnest($2::uuid[]) AS g(id),"
    " LATERAL (SELECT * FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n"
)

# In the order of the ids, so that two who link the same nodes wait for each other and cannot deadlock.
HOLD = text("SELECT FROM nodes WHERE space_id = :space AND id = ANY(CAST(:ids AS uuid[])) ORDER BY id FOR SHARE")

# From a node up to what it was merged into in the end.
UP = """
WITH RECURSIVE up AS (
    SELECT g.id AS start, n.id, n.merged_into FROM unnest($2::uuid[]) AS g(id),
           LATERAL (SELECT id, merged_into FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n
     UNION
    SELECT up.start, n.id, n.merged_into FROM up,
           LATERAL (SELECT id, merged_into FROM nodes WHERE space_id = $1 AND id = up.merged_into OFFSET 0) n
) SELECT start, id FROM up WHERE merged_into IS NULL
"""

LOCK_THREADS = text("SELECT pg_advisory_xact_lock(hashtextextended(t, 20)) FROM unnest(CAST(:threads AS text[])) AS t")
LAST_POSITIONS = text(
    "SELECT thread, max(position) AS last FROM nodes"
    " WHERE space_id = :space AND thread = ANY(CAST(:threads AS text[])) GROUP BY thread"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """The memory that was there before, and what the two share: text, id or source_id."""

    id: UUID
    by: str
    out_of_recall: str | None = None  # forgotten, or excluded


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """What became of each memory of a batch, in order: its id, or the twin that was there before it."""

    ids: tuple[UUID | None, ...]
    twins: tuple[Twin | None, ...]
    alone: Node | None = None  # of a batch of one, as it was stored


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrivals:
    """Memories in the order in which they came, with what each is known by, and the order in which they are written.

    An id given twice is written once: the first. Those that were given none get theirs in the order of writing, so that
    what is written one after the other stands together in every index.
    """

    memories: Sequence[NewMemory]
    ids: Sequence[UUID]
    sums: Sequence[str]
    order: Sequence[int]

    @classmethod
    def of(cls, memories: Sequence[NewMemory]) -> "Arrivals":
        sums = [checksum(memory.text) for memory in memories]
        given = {memory.id: i for i, memory in reversed([*enumerate(memories)]) if memory.id}
        once = (i for i, memory in enumerate(memories) if not memory.id or given[memory.id] == i)
        order = sorted(once, key=lambda i: (sums[i], i))
        made = dict(zip(order, new_ids(len(order)), strict=True))
        ids = [memory.id or made[i] for i, memory in enumerate(memories)]
        return cls(memories=memories, ids=ids, sums=sums, order=order)

    def column(self, name: str, *, usual: Any = None) -> list[Any]:
        """A field of those that are written; nothing where all have what is usual, which is not sent then."""
        values = [getattr(self.memories[i], name, usual) for i in self.order]
        return values if any(value != usual for value in values) else []


def new_ids(count: int) -> list[UUID]:
    """So many random ids, in ascending order; drawn at once, which is quicker."""
    drawn = urandom(16 * count)
    made = (UUID(bytes=drawn[first : first + 16], version=4) for first in range(0, len(drawn), 16))
    return sorted(made, key=attrgetter("int"))


async def add_memories(
    db: Transaction, given: Arrivals, *, models: Sequence[str], max_attempts: int, now: datetime
) -> Stored:
    """Store a batch, each with its embedding jobs."""
    memories, ids, order = given.memories, given.ids, given.order
    positions = await _positions(db, memories)
    records = await db.fetch(
        INSERT_ONE if len(order) == 1 else INSERT_MANY,
        [ids[i] for i in order],
        given.column("subtype", usual="note"),
        [memories[i].text for i in order],
        [given.sums[i] for i in order],
        [json.dumps(metadata) for metadata in given.column("metadata", usual={})],
        given.column("importance"),
        given.column("source"),
        given.column("source_id"),
        given.column("thread"),
        [positions[i] for i in order] if any(position is not None for position in positions) else [],
        # A batch arrives in its order: one microsecond apart, so that listings keep it.
        [memories[i].created_at or now + timedelta(microseconds=i) for i in order],
        *(given.column(name) for name in STATE),
    )
    written = order
    if len(records) < len(order):
        stored = {record["id"] for record in records}
        written = [i for i in order if ids[i] in stored]
    new = [(ids[i], memories[i]) for i in written]
    await _bring_vectors(db, new, now=now)
    await _queue(db, new, models=models, max_attempts=max_attempts, now=now)
    missing = {*range(len(ids))}.difference(written)
    twins = await _twins(db, given, sorted(missing)) if missing else {}
    return Stored(
        ids=tuple(None if i in missing else id_ for i, id_ in enumerate(ids)),
        twins=tuple(twins.get(i) for i in range(len(ids))),
        alone=node_of(records[0]) if len(order) == 1 and records else None,
    )


async def _bring_vectors(db: Transaction, stored: Sequence[tuple[UUID, NewMemory]], *, now: datetime) -> None:
    """Those that exported memories bring along."""
    brought = [
        (id_, model, HalfVector(np.frombuffer(numbers, "<f2").astype(np.float16)))
        for id_, memory in stored
        if isinstance(memory, ExportedMemory)
        for model, numbers in memory.vectors.items()
    ]
    if brought:
        await db.run(BRING, *map(list, zip(*brought, strict=True)), now)


async def _queue(
    db: Transaction,
    stored: Sequence[tuple[UUID, NewMemory]],
    *,
    models: Sequence[str],
    max_attempts: int,
    now: datetime,
) -> None:
    """Jobs for the vectors that did not come along.

    A long text has its job in any case: it is found by the vector of all of it until its windows have theirs (D47).
    """
    for model in models:
        wanted = [
            id_
            for id_, memory in stored
            if not isinstance(memory, ExportedMemory) or model not in memory.vectors or is_long(memory.text)
        ]
        if wanted:
            await db.run(QUEUE, new_ids(len(wanted)), wanted, model, max_attempts, now)


async def _twins(db: Transaction, given: Arrivals, missing: Sequence[int]) -> dict[int, Twin]:
    """Who was there before some that were not written."""
    records = await db.fetch(
        TWINS,
        missing,
        [given.ids[i] for i in missing],
        [given.sums[i] for i in missing],
        [given.memories[i].source for i in missing],
        [given.memories[i].source_id for i in missing],
    )
    return {
        record["number"]: Twin(id=record["id"], by=record["by"], out_of_recall=record["out_of_recall"])
        for record in records
    }


async def existing(db: Transaction, memories: Sequence[NewMemory]) -> tuple[Twin | None, ...]:
    """For each (checked) memory of a batch, the one that is there already; a look, without writing."""
    twins = await _twins(db, Arrivals.of(memories), range(len(memories)))
    return tuple(twins.get(number) for number in range(len(memories)))


# The newest memories say what tags are in use; to look through all of them would cost more than the answer is worth.
TAGS_IN_USE = """
    SELECT DISTINCT tag
    FROM (SELECT metadata FROM nodes WHERE space_id = $1 ORDER BY created_at DESC, id LIMIT 10000) AS newest,
         jsonb_array_elements_text(
             CASE jsonb_typeof(metadata -> 'tags') WHEN 'array' THEN metadata -> 'tags' END) AS tag
"""


async def tags_in_use(db: Transaction) -> set[str]:
    return {record["tag"] for record in await db.fetch(TAGS_IN_USE)}


async def vectors_of(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, dict[str, bytes]]:
    """The vectors of some nodes, of every model: the numbers as little-endian float16."""
    vectors: dict[UUID, dict[str, bytes]] = {}
    for record in await db.fetch(VECTORS, list(ids)):
        numbers = record["vector"].to_numpy().astype("<f2")
        vectors.setdefault(record["node_id"], {})[record["model"]] = numbers.tobytes()
    return vectors


async def _positions(db: Transaction, memories: Sequence[NewMemory]) -> list[int | None]:
    """The place of each memory in its thread: as given, else after the last, in order of arrival."""
    threads = sorted({m.thread for m in memories if m.thread is not None and m.position is None})
    if not threads:
        return [memory.position for memory in memories]
    await db.execute(LOCK_THREADS, {"threads": threads})
    rows = await db.execute(LAST_POSITIONS, {"space": db.space_id, "threads": threads})
    last = {row.thread: row.last for row in rows if row.last is not None}
    positions: list[int | None] = []
    for memory in memories:
        if memory.thread is None:
            positions.append(None)
            continue
        position = memory.position if memory.position is not None else last.get(memory.thread, -1) + 1
        last[memory.thread] = max(position, last.get(memory.thread, -1))
        positions.append(position)
    return positions


async def get(db: Transaction, id_: UUID) -> Node:
    statement = select(*COLUMNS).where(nodes.c.space_id == db.space_id, nodes.c.id == id_)
    row = (await db.execute(statement)).one_or_none()
    if row is None:
        raise NotFound(f"Nothing is remembered under {id_}: `recollect list` shows what is.")
    return _node(row)


def node_of(columns: Mapping[str, Any]) -> Node:
    """The node that a row is."""
    fields = {column.name: columns[column.name] for column in COLUMNS}
    return Node(**fields | {"kind": Kind(fields["kind"]), "status": Status(fields["status"])})


def _node(row: Any) -> Node:
    return node_of(row._mapping)


async def get_many(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, Node]:
    if not ids:
        return {}
    return {record["id"]: node_of(record) for record in await db.fetch(GET_MANY, list(ids))}


async def keepers(db: Transaction, ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Where each node is now: itself, or whatever it was merged into in the end."""
    return {row["start"]: row["id"] for row in await db.fetch(UP, list(ids))}


async def hold(db: Transaction, ids: Sequence[UUID]) -> None:
    """Keep some nodes from being merged away until this transaction ends: whatever hangs on them is then seen."""
    await db.execute(HOLD, {"space": db.space_id, "ids": list(ids)})


async def resolve(db: Transaction, reference: str) -> UUID:
    """The id that a reference means: a whole UUID, or a unique beginning of one (4 characters or more)."""
    missing = f"Nothing is remembered under {reference}: `recollect list` shows what is."
    return await references.resolve(db, nodes, reference, several="ids", missing=missing)


async def list_page(
    db: Transaction, node_filter: NodeFilter, *, limit: int, cursor: str | None, order: Order = "newest"
) -> Page:
    """A stretch of a listing, newest or oldest first."""
    statement = select(*COLUMNS).where(*conditions(db.space_id, node_filter))
    rows, more = await stretch(db, nodes, statement, limit=limit, cursor=cursor, oldest_first=order == "oldest")
    return Page(items=tuple(map(_node, rows)), next_cursor=more)


async def stream(db: Transaction, node_filter: NodeFilter, *, batch: int = 1000) -> AsyncIterator[tuple[Node, ...]]:
    """All nodes that fit, oldest first, batch by batch, from one snapshot."""
    statement = select(*COLUMNS).where(*conditions(db.space_id, node_filter)).order_by(nodes.c.created_at, nodes.c.id)
    async for part in await db.stream(statement, batch=batch):
        yield tuple(_node(row) for row in part)


async def count(db: Transaction, node_filter: NodeFilter) -> int:
    statement = select(func.count()).select_from(nodes).where(*conditions(db.space_id, node_filter))
    return int((await db.execute(statement)).scalar_one())


def conditions(space_id: UUID, node_filter: NodeFilter) -> list[ColumnElement[bool]]:
    """A filter as SQL, on the nodes of a space."""
    clauses = [nodes.c.space_id == space_id, *plain_conditions(space_id, node_filter)]
    if node_filter.metadata:
        clauses.append(nodes.c.id.in_(select(holding(space_id, node_filter.metadata).c.id)))
    return clauses


def plain_conditions(space_id: UUID, node_filter: NodeFilter, columns: Any = nodes.c) -> list[ColumnElement[bool]]:
    """The same but for metadata, on these columns."""
    clauses: list[ColumnElement[bool]] = []
    if node_filter.kinds and len(node_filter.kinds) < len(Kind):
        clauses.append(columns.kind.in_(node_filter.kinds))
    if node_filter.statuses:
        clauses.append(columns.status.in_(node_filter.statuses))
    if node_filter.subtypes:
        clauses.append(columns.subtype.in_(node_filter.subtypes))
    if node_filter.excluded is not None:
        clauses.append(columns.exclude == node_filter.excluded)
    if node_filter.thread is not None:
        clauses.append(columns.thread == node_filter.thread)
    if node_filter.created_from is not None:
        clauses.append(columns.created_at >= node_filter.created_from)
    if node_filter.created_to is not None:
        clauses.append(columns.created_at <= node_filter.created_to)
    if node_filter.category is not None:
        clauses.append(columns.id.in_(of_category(space_id, node_filter.category)))
    return clauses


def holding(space_id: UUID, metadata: Mapping[str, Any]) -> TableValuedAlias:
    """The nodes whose metadata holds this, with the columns that `plain_conditions` looks at."""
    tested = ("kind", "subtype", "status", "exclude", "thread", "created_at")
    columns = (nodes.c[name] for name in ("id", *tested))
    function = func.nodes_holding(space_id, type_coerce(dict(metadata), JSONB))
    return function.table_valued(
        *(column(tested_column.name, tested_column.type) for tested_column in columns), name="found"
    )


def of_category(space_id: UUID, path: str) -> Select[Any]:
    """The cases of a category and of those below it."""
    here = (cases.c.category_path == path) | cases.c.category_path.startswith(f"{path}/", autoescape=True)
    return select(cases.c.node_id).where(cases.c.space_id == space_id, here)
