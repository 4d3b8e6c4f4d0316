"""The graph of a space as a whole: at which moment it is read, what of it sleeps, its figures, its topics, a stream."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, text

from recollect.errors import NotFound
from recollect.graph.rules.titles import title_of
from recollect.graph.sql import edges
from recollect.graph.sql.edges import ALIVE, ALIVE_BUT
from recollect.memories.sql import nodes
from recollect.model import Edge, Kind, Node, Status, Topic
from recollect.store.database import SERVER, Transaction
from recollect.store.tables import topics

# Every transaction below `since` has ended and is seen from here; so what is seen later and not now was written by one
# that is not below it. `table` is another after a restore, or on another server, when nothing kept in memory is worth
# anything. It is asked where the rows are: that server counts the transactions.
MOMENT = f"""
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8 AS since,
       {SERVER} # 'edges'::regclass::oid::int8 AS "table",
       coalesce(v.version, 0) AS version, (SELECT count(*) FROM
           (SELECT FROM edges WHERE space_id = $1 AND changed_in >= $2 LIMIT $3) AS written) AS changed
  FROM spaces s LEFT JOIN space_versions v ON v.space_id = s.id WHERE s.id = $1
"""
ASLEEP = """
SELECT string_agg(uuid_send(id), '' ORDER BY id) FROM nodes WHERE space_id = $1 AND status <> 'active'
"""
AMONG = f"""
SELECT {", ".join(f"e.{column}" for column in edges.COLUMNS)} FROM edges e
 WHERE e.space_id = :space AND e.source = ANY(CAST(:ids AS uuid[])) AND e.target = ANY(CAST(:ids AS uuid[]))
   AND {ALIVE_BUT.format(awake="CAST(:awake AS uuid[])")} ORDER BY e.id
"""
LINKED = f"""
SELECT {", ".join(f"n.{column.name}" for column in nodes.COLUMNS)} FROM nodes n
 WHERE n.space_id = :space AND n.status = 'active' AND (:alone OR EXISTS
       (SELECT FROM edges e WHERE e.space_id = n.space_id AND e.source = n.id AND {ALIVE}) OR EXISTS
       (SELECT FROM edges e WHERE e.space_id = n.space_id AND e.target = n.id AND {ALIVE}))
 ORDER BY n.created_at, n.id
"""
LIVING = f"""
SELECT {", ".join(f"e.{column}" for column in edges.COLUMNS)} FROM edges e
 WHERE e.space_id = :space AND {ALIVE} ORDER BY e.created_at, e.id
"""
# LATERAL with OFFSET 0: each is looked up by its key, however many there are believed to be.
SEEN = """
SELECT n.* FROM unnest($2::uuid[]) AS g(id), LATERAL (
    SELECT id, kind, subtype, protected, status,
           left(nullif(name, ''), 80) AS name, metadata #>> '{extra,section}' AS section,
           left(text, CASE WHEN text ~ '^\\s*[<.|!\\[]' THEN 1500 ELSE 200 END) AS text
      FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n
"""
LABEL = 80
OLDEST = "SELECT min(created_at) FROM edges WHERE space_id = $1"
NO_TOPIC = "There is no topic {!r}: `recollect graph topics` lists them, `recollect plan topics` gathers them."


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """Where a reader stands: what changes from here on is written by transaction `since` or a later one.

    `version` changes with anything that a recall could find; `changed` counts the edges that changed since the last
    moment, up to a limit.
    """

    since: int
    table: int
    version: int
    changed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """As much of a node as a graph shows; `label` is the beginning of its name, or of its text."""

    id: UUID
    kind: Kind
    subtype: str
    label: str
    protected: bool
    status: Status


async def moment(db: Transaction, *, last: int = 0, at_most: int = 0) -> Moment:
    return Moment(**await db.fetchrow(MOMENT, last, at_most))


async def asleep(db: Transaction) -> NDArray[np.void]:
    """The nodes that are archived or merged, ordered by id; their edges are not walked."""
    return np.frombuffer(await db.fetchval(ASLEEP) or b"", dtype="V16")


async def among(db: Transaction, nodes: Sequence[UUID], *, awake: Sequence[UUID] = ()) -> list[Edge]:
    """The living edges that begin and end within some nodes; `awake` nodes count as living, whatever they are."""
    given = {"space": db.space_id, "ids": list(nodes), "awake": list(awake)}
    rows = await db.execute(text(AMONG), given)
    return [edges.edge_of(row) for row in rows]


async def seen(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, Seen]:
    """What there is to see of some nodes, whatever their status."""
    rows = await db.fetch(SEEN, list(ids))
    return {row["id"]: _seen(**row) for row in rows}


def _seen(*, kind: str, status: str, name: str | None, text: str | None, section: str | None, **rest: Any) -> Seen:
    label = name or title_of(text or "", section)[:LABEL]
    return Seen(kind=Kind(kind), status=Status(status), label=label, **rest)


async def oldest_edge_at(db: Transaction) -> datetime | None:
    """When the oldest edge was made, also if it is gone by now."""
    oldest: datetime | None = await db.fetchval(OLDEST)
    return oldest


async def stream_nodes(db: Transaction, *, with_isolated: bool, batch: int = 1000) -> AsyncGenerator[Sequence[Node]]:
    """The living nodes that have an edge (or all), oldest first."""
    async for part in await db.stream(text(LINKED), {"space": db.space_id, "alone": with_isolated}, batch=batch):
        yield [nodes.node_of(row._mapping) for row in part]


async def stream_edges(db: Transaction, *, batch: int = 1000) -> AsyncGenerator[Sequence[Edge]]:
    """The living edges, oldest first."""
    async for part in await db.stream(text(LIVING), {"space": db.space_id}, batch=batch):
        yield [edges.edge_of(row) for row in part]


async def by_creator(db: Transaction) -> dict[str, int]:
    """How many living edges were made by whom, most first."""
    rows = await db.fetch(
        f"""SELECT created_by, count(*) AS number FROM edges e WHERE space_id = $1 AND {ALIVE}
             GROUP BY 1 ORDER BY 2 DESC, 1"""
    )
    return {row["created_by"]: row["number"] for row in rows}


async def first_edge_at(db: Transaction) -> datetime | None:
    """When the first edge ever was added, also if it is gone by now."""
    first_at: datetime | None = await db.fetchval("SELECT first_edge_at FROM graph_losses WHERE space_id = $1")
    return first_at


# -- topics


async def list_topics(db: Transaction) -> list[Topic]:
    """The topics of the last gathering, largest first."""
    size = text("cardinality(member_ids) DESC")
    statement = select(topics).where(topics.c.space_id == db.space_id).order_by(size, topics.c.key)
    return [topic_of(row) for row in await db.execute(statement)]


async def topic(db: Transaction, key: str) -> Topic:
    statement = select(topics).where(topics.c.space_id == db.space_id, topics.c.key == key)
    row = (await db.execute(statement)).one_or_none()
    if row is None:
        raise NotFound(NO_TOPIC.format(key))
    return topic_of(row)


async def topics_of(db: Transaction, nodes: Sequence[UUID]) -> dict[str, list[UUID]]:
    """Which topics contain which of some nodes."""
    rows = await db.fetch(
        """SELECT t.key, array_agg(m ORDER BY m) AS members FROM topics t, unnest(t.member_ids) AS m
            WHERE t.space_id = $1 AND m = ANY($2) GROUP BY t.key ORDER BY count(*) DESC, t.key""",
        list(nodes),
    )
    return {row["key"]: row["members"] for row in rows}


def topic_of(row: Any) -> Topic:
    return Topic(
        id=row.id,
        key=row.key,
        member_ids=tuple(row.member_ids),
        internal_edges=row.internal_edges,
        connectivity=row.connectivity,
        gathered_at=row.gathered_at,
    )
