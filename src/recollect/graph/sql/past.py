"""The graph as it was: what stands now, with all that the journal wrote since taken back.

A change keeps the columns that it changed as they were before; of each column the first change after a moment tells
what it was at that moment. What was made since is left out, what was taken away since is there again. Use (how often
an edge was walked, and so reinforced) is counted and not journalled: an edge that was used since has the strength that
its last use gave it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from uuid import UUID

from recollect.graph.rules.arrays import EdgeColumns
from recollect.plans.sql.reader import FIELDS, few_columns
from recollect.store.database import Transaction

# A plan that makes an edge says only what is not as in every new one.
NEW = '{"status": "active", "decay_rate": 0.05, "activation_count": 0, "protected": false, "created_by": "user"}'
# By row that was changed since: its columns as they were, and whether it was there at all.
WAS = f"""
WITH was AS MATERIALIZED (
    SELECT c.table_name, c.row_id,
           (array_agg(c.before IS NULL ORDER BY d.applied_at, p.created_at, c.decision, c.number))[1] AS unborn,
           coalesce(jsonb_object_agg(k.key, k.value ORDER BY d.applied_at DESC, p.created_at DESC, c.decision DESC,
                    c.number DESC) FILTER (WHERE k.key IS NOT NULL), '{{}}') AS before
      FROM decisions d
      JOIN changes c ON c.space_id = d.space_id AND c.plan_id = d.plan_id AND c.decision = d.number
      JOIN plans p ON p.space_id = d.space_id AND p.id = d.plan_id
      LEFT JOIN LATERAL jsonb_each(c.before) AS k ON true
     WHERE d.space_id = $1 AND d.applied_at > $2 AND c.table_name IN ('nodes', 'edges')
     GROUP BY c.table_name, c.row_id),
asleep AS MATERIALIZED (
    SELECT n.id FROM nodes n LEFT JOIN was w ON w.table_name = 'nodes' AND w.row_id = n.id
     WHERE n.space_id = $1 AND (coalesce(w.before->>'status', n.status) <> 'active' OR w.unborn
           OR coalesce((w.before->>'created_at')::timestamptz, n.created_at) > $2)),
once AS (
    SELECT e.* FROM edges e WHERE e.space_id = $1
       AND NOT EXISTS (SELECT FROM was w WHERE w.table_name = 'edges' AND w.row_id = e.id)
     UNION ALL SELECT o.* FROM was w JOIN edges e ON e.space_id = $1 AND e.id = w.row_id,
                LATERAL jsonb_populate_record(e, w.before) o WHERE w.table_name = 'edges' AND NOT w.unborn
     UNION ALL SELECT o.* FROM was w, LATERAL jsonb_populate_record(NULL::edges, '{NEW}' || w.before) o
                WHERE w.table_name = 'edges' AND NOT w.unborn
                  AND NOT EXISTS (SELECT FROM edges e WHERE e.space_id = $1 AND e.id = w.row_id))
"""
WANTED = [(name, of) for name, _, of in FIELDS if name not in ("active", "relation", "source_topic", "target_topic")]
EDGES = f"""{WAS}
SELECT {", ".join(f"{of} AS {name}" for name, of in WANTED)}, e.relation FROM once e
 WHERE e.status = 'active' AND e.created_at <= $2
   AND e.source NOT IN (SELECT id FROM asleep) AND e.target NOT IN (SELECT id FROM asleep)
"""
JOURNAL = """
SELECT id AS plan_id, title, applied_at AS at FROM plans WHERE space_id = $1 AND applied_at IS NOT NULL
 ORDER BY applied_at DESC, id LIMIT $2
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalStep:
    """Something that changed what was known: a plan, when it was applied, and what it is called."""

    plan_id: UUID
    title: str
    at: datetime


async def journal(db: Transaction, *, limit: int) -> Sequence[JournalStep]:
    """The last steps, newest first; taking one back is a step too."""
    return [JournalStep(**row) for row in await db.fetch(JOURNAL, limit)]


async def edges_at(db: Transaction, at: datetime) -> EdgeColumns:
    """The edges that lived at a moment, between nodes that did; without their topics."""
    return few_columns(sorted(await db.fetch(EDGES, at), key=itemgetter("id")))
