"""How nodes are used: counted when a recall hands them out (recalls.py), judged when somebody says whether they helped.

Narrow rows beside the nodes, so that counting touches no index.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select, text

from recollect.model import Activity
from recollect.store.database import Transaction
from recollect.store.tables import activity

JUDGE = text("""
    INSERT INTO activity (space_id, node_id, judged, successes) VALUES (:space, :id, 1, :success)
    ON CONFLICT (space_id, node_id) DO UPDATE
       SET judged = activity.judged + 1, successes = activity.successes + excluded.successes
    RETURNING uses, successes, judged, last_used_at, decay_score
""")


async def judge(db: Transaction, id_: UUID, *, helped: bool) -> Activity:
    """Count a judgement of one node, and return how it stands now."""
    row = (await db.execute(JUDGE, {"space": db.space_id, "id": id_, "success": int(helped)})).one()
    return Activity(**row._mapping)


async def get_many(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, Activity]:
    """How these nodes are used; what was never used nor judged is not among them."""
    columns = (activity.c.uses, activity.c.successes, activity.c.judged, activity.c.last_used_at)
    statement = select(activity.c.node_id, *columns, activity.c.decay_score).where(
        activity.c.space_id == db.space_id, activity.c.node_id.in_(ids)
    )
    return {
        row.node_id: Activity(
            uses=row.uses,
            successes=row.successes,
            judged=row.judged,
            last_used_at=row.last_used_at,
            decay_score=row.decay_score,
        )
        for row in await db.execute(statement)
    }
