"""Short names for rows, for showing plans and edges: what an id stands for, without reading the rows in full."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from recollect.graph.rules.titles import title_of
from recollect.plans.rules.plan_text import Tally
from recollect.store.database import Transaction

# LATERAL with OFFSET 0: each is looked up by its key, however many there are believed to be.
NODES = """
SELECT n.id, n.name, n.text, n.section FROM unnest($2::uuid[]) AS g(id), LATERAL (
    SELECT id, left(nullif(name, ''), 300) AS name, left(coalesce(text, ''), 1500) AS text,
           metadata #>> '{extra,section}' AS section
      FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n
"""
EDGES = """
SELECT e.id, e.source, e.relation, e.target FROM unnest($2::uuid[]) AS g(id), LATERAL (
    SELECT id, source, relation, target FROM edges WHERE space_id = $1 AND id = g.id OFFSET 0) e
"""
TOPICS = "SELECT id, key AS name FROM topics WHERE space_id = $1 AND id = ANY($2)"
# The same signs as plans/rules/plan_text.sign_of, counted where the changes are. What an undo makes was there before.
TALLY = """
SELECT count(*) FILTER (WHERE sign = '+') AS comes, count(*) FILTER (WHERE sign = '+' AND was_there) AS returns,
       count(*) FILTER (WHERE sign = '~') AS changes, count(*) FILTER (WHERE sign = '-') AS goes
  FROM (SELECT CASE WHEN before IS NULL THEN '+' WHEN after IS NULL THEN '-' WHEN NOT after ? 'status' THEN '~'
                    WHEN after->>'status' = 'active' THEN '+' ELSE '-' END AS sign,
               before IS NOT NULL OR p.undoes IS NOT NULL AS was_there
          FROM changes c JOIN plans p ON p.space_id = c.space_id AND p.id = c.plan_id
          JOIN decisions d ON d.space_id = c.space_id AND d.plan_id = c.plan_id AND d.number = c.decision
         WHERE c.space_id = $1 AND c.plan_id = $2 AND d.status <> 'declined') c
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """What an edge joins, and how."""

    source: UUID
    relation: str
    target: UUID


async def nodes(db: Transaction, ids: Collection[UUID]) -> dict[UUID, str]:
    """The names of nodes, or what their texts are called."""
    rows = await db.fetch(NODES, list(ids))
    return {row["id"]: row["name"] or title_of(row["text"], row["section"]) for row in rows}


async def edges(db: Transaction, ids: Collection[UUID]) -> dict[UUID, Ends]:
    rows = await db.fetch(EDGES, list(ids))
    return {row["id"]: Ends(source=row["source"], relation=row["relation"], target=row["target"]) for row in rows}


async def topics(db: Transaction, ids: Collection[UUID]) -> dict[UUID, str]:
    rows = await db.fetch(TOPICS, list(ids))
    return {row["id"]: row["name"] for row in rows}


async def tally(db: Transaction, plan_id: UUID) -> Tally:
    """How many rows a plan brings, changes and retires."""
    return Tally(**await db.fetchrow(TALLY, plan_id))
