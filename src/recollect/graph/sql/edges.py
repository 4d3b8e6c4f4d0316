"""Edges: making, finding and reinforcing the links of the graph. Their other changes are plans (changes.py)."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select, text

from recollect.errors import NotFound
from recollect.graph.rules.spread import SpreadLink
from recollect.graph.rules.strength import current_in_sql
from recollect.model import Edge, NewEdge
from recollect.store import references
from recollect.store.database import Transaction
from recollect.store.tables import edges

COLUMNS = tuple(column.name for column in edges.c if column.name not in ("space_id", "changed_in"))

# An edge is alive while it is active and both its ends are; archived and merged nodes are few, and have an index.
ALIVE = """(e.status = 'active'
    AND NOT EXISTS (SELECT FROM nodes n WHERE n.space_id = e.space_id AND n.id = e.source AND n.status <> 'active')
    AND NOT EXISTS (SELECT FROM nodes n WHERE n.space_id = e.space_id AND n.id = e.target AND n.status <> 'active'))"""
# The same as if some nodes were awake.
ALIVE_BUT = ALIVE.replace("n.status <> 'active'", "n.status <> 'active' AND n.id <> ALL({awake})")
AROUND = f"""
SELECT e.id, e.source, e.target, e.relation, {current_in_sql("e", "$3")} AS strength
  FROM edges e WHERE e.space_id = $1 AND (e.source = ANY($2) OR e.target = ANY($2))
   AND ($4::text[] IS NULL OR e.relation = ANY($4)) AND {ALIVE_BUT.format(awake="$5::uuid[]")}
"""
STRONGEST = " ORDER BY strength DESC, e.id LIMIT $6"
# LATERAL with OFFSET 0: the edges of each node are looked up by their keys, however many there are believed to be.
AT = """
SELECT DISTINCT e.id FROM unnest($2::uuid[]) AS g(id), LATERAL (
    SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND source = g.id
     UNION ALL SELECT id FROM edges WHERE space_id = $1 AND status = 'active' AND target = g.id OFFSET 0) e
"""
ADD = """
INSERT INTO edges (space_id, id, source, target, relation, strength, confidence, explanation, source_topic,
                   target_topic, similarity, created_by, created_at, metadata)
SELECT $1, * FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::float8[], $7::float8[], $8::text[],
                         $9::text[], $10::text[], $11::float8[], $12::text[], $13::timestamptz[], $14::jsonb[])
ON CONFLICT (space_id, source, target, relation) WHERE status = 'active' DO NOTHING RETURNING id
"""
# Locked in the order of the ids, as plans lock them: two recalls that walked the same edges cannot deadlock.
REINFORCE = f"""
WITH walked AS MATERIALIZED (
    SELECT l.id FROM edges l WHERE l.space_id = $1 AND l.id = ANY($2) AND l.status = 'active'
     ORDER BY l.id FOR NO KEY UPDATE)
UPDATE edges e SET strength = least(1.0, {current_in_sql("e", "$4")} + r.gain), last_reinforced_at = $4,
       reinforce_count = e.reinforce_count + r.times, activation_count = e.activation_count + r.walks,
       last_activated_at = CASE WHEN r.walks > 0 THEN $4 ELSE e.last_activated_at END
  FROM unnest($2::uuid[], $3::float8[], $5::int8[], $6::int8[]) AS r(id, gain, times, walks) JOIN walked USING (id)
 WHERE e.space_id = $1 AND e.id = r.id AND e.status = 'active'
"""


async def around(
    db: Transaction,
    nodes: Collection[UUID],
    now: datetime,
    *,
    relations: Collection[str] | None = None,
    at_most: int | None = None,
    awake: Collection[UUID] = (),
) -> list[SpreadLink]:
    """The living edges that touch some nodes, with their strength of this moment; or so many, the strongest first.

    `awake` nodes count as living, whatever they are.
    """
    given = (list(nodes), now, None if relations is None else list(relations), list(awake))
    if at_most is None:
        return [SpreadLink(**row) for row in await db.fetch(AROUND, *given)]
    return [SpreadLink(**row) for row in await db.fetch(AROUND + STRONGEST, *given, at_most)]


async def add_many(db: Transaction, new_edges: Sequence[NewEdge], now: datetime) -> tuple[dict[int, UUID], list[int]]:
    """Make edges: the ids of those made, by place, and the places of those that are there already."""
    ids = [uuid4() for _ in new_edges]
    columns = zip(*(_values(id_, new_edge, now) for id_, new_edge in zip(ids, new_edges, strict=True)), strict=True)
    stored = {row["id"] for row in await db.fetch(ADD, *columns)} if new_edges else set()
    places = {position: id_ for position, id_ in enumerate(ids) if id_ in stored}
    return places, [position for position in range(len(new_edges)) if position not in places]


def _values(id_: UUID, new_edge: NewEdge, now: datetime) -> tuple[Any, ...]:
    return (
        id_,
        new_edge.source,
        new_edge.target,
        new_edge.relation,
        new_edge.strength,
        new_edge.confidence,
        new_edge.explanation,
        new_edge.source_topic,
        new_edge.target_topic,
        new_edge.similarity,
        new_edge.created_by,
        new_edge.created_at or now,
        json.dumps(new_edge.metadata),
    )


def edge_of(row: Any) -> Edge:
    """The edge that a row is."""
    fields = row._mapping
    return Edge(**{column: fields[column] for column in COLUMNS})


async def get(db: Transaction, id_: UUID) -> Edge:
    edges_by_id = await get_many(db, [id_])
    if id_ not in edges_by_id:
        raise NotFound(f"There is no edge {id_}: `recollect graph edges <node>` lists those of a node.")
    return edges_by_id[id_]


async def get_many(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, Edge]:
    statement = select(edges).where(edges.c.space_id == db.space_id)
    statement = statement.where(text("edges.id = ANY(:ids)").bindparams(ids=list(ids)))
    return {row.id: edge_of(row) for row in await db.execute(statement)}


async def between(db: Transaction, ends: Sequence[tuple[UUID, UUID, str]]) -> dict[tuple[UUID, UUID, str], Edge]:
    """The living edges with these ends and relations, locked."""
    statement = (
        select(edges)
        .join(
            text(
                "unnest(CAST(:sources AS uuid[]), CAST(:targets AS uuid[]), CAST(:relations AS text[]))"
                " AS asked(source, target, relation)"
            ),
            text("asked.source = edges.source AND asked.target = edges.target AND asked.relation = edges.relation"),
        )
        .where(edges.c.space_id == db.space_id, edges.c.status == "active")
        .order_by(edges.c.id)
        .with_for_update(of=edges)
    )
    values = {
        "sources": [source for source, _, _ in ends],
        "targets": [target for _, target, _ in ends],
        "relations": [relation for _, _, relation in ends],
    }
    rows = await db.execute(statement, values)
    return {(row.source, row.target, row.relation): edge_of(row) for row in rows}


async def of_node(db: Transaction, node_id: UUID, *, limit: int, statuses: Sequence[str] = ("active",)) -> list[Edge]:
    """The edges that begin or end at a node, strongest first."""
    touching = (edges.c.source == node_id) | (edges.c.target == node_id)
    statement = select(edges).where(edges.c.space_id == db.space_id, touching, edges.c.status.in_(statuses))
    statement = statement.order_by(edges.c.strength.desc().nulls_first(), edges.c.id).limit(limit)
    return [edge_of(row) for row in await db.execute(statement)]


async def of_nodes(db: Transaction, ids: Sequence[UUID]) -> list[Edge]:
    """The living edges that begin or end at any of some nodes, each once."""
    rows = await db.fetch(AT, list(ids))
    return list((await get_many(db, [row["id"] for row in rows])).values())


async def resolve(db: Transaction, reference: str) -> UUID:
    """The edge that a reference means: a whole UUID, or a unique beginning of one."""
    missing = f"There is no edge {reference}: `recollect graph edges <node>` lists those of a node."
    return await references.resolve(db, edges, reference, several="edges", missing=missing)


async def reinforce(db: Transaction, gains: Mapping[UUID, tuple[float, int, int]], now: datetime) -> None:
    """Add to the strength of edges: by edge the gain, how many reinforcements it stands for, and how many walks."""
    if not gains:
        return
    ids = sorted(gains)
    gain, times, walks = zip(*(gains[id_] for id_ in ids), strict=True)
    await db.run(REINFORCE, ids, gain, now, times, walks)


async def graph_age(db: Transaction) -> tuple[int, datetime | None]:
    """How many living edges a space has, and when its first edge ever was added."""
    row = await db.fetchrow(
        """SELECT (SELECT count(*) FROM edges WHERE space_id = $1 AND status = 'active') AS edges,
                  (SELECT first_edge_at FROM graph_losses WHERE space_id = $1) AS first_edge_at
             FROM spaces WHERE id = $1"""
    )
    return row["edges"], row["first_edge_at"]
