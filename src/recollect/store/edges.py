"""Edges: the links of the graph, as recall walks them."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.rules.spread import Link
from recollect.store.database import driver

# Strength as it is now: decayed since it was last set; one that was never said is 1.0 and does not decay (A00a, A05).
AROUND = """
SELECT e.source, e.target, e.relation,
       coalesce(e.strength * exp(-e.decay_rate * greatest(0, extract(epoch FROM
           $3 - coalesce(e.last_reinforced_at, e.created_at)) / 86400)), 1.0) AS strength
  FROM edges e WHERE e.space_id = $1 AND e.status = 'active' AND (e.source = ANY($2) OR e.target = ANY($2))
"""


async def around(connection: AsyncConnection, space_id: UUID, nodes: Collection[UUID], now: datetime) -> list[Link]:
    """The living edges that touch some nodes, with their strength of this moment."""
    raw = await driver(connection)
    found = await raw.fetch(AROUND, space_id, list(nodes), now)
    return [
        Link(source=row["source"], target=row["target"], relation=row["relation"], strength=row["strength"])
        for row in found
    ]
