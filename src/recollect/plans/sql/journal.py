"""The journal, read: what happened to a row, and by which plan."""

from uuid import UUID

from sqlalchemy import select

from recollect.plan import DecisionStatus, HistoryEntry
from recollect.store.database import Transaction
from recollect.store.tables import changes, decisions, edges, nodes, plans


async def history(db: Transaction, row_id: UUID) -> list[HistoryEntry]:
    """What happened to a node or edge, oldest first (P09)."""
    statement = (
        select(
            changes,
            decisions.c.verb,
            decisions.c.reason,
            decisions.c.applied_at,
            decisions.c.status.label("standing"),
            plans.c.policy,
        )
        .join(
            decisions,
            (decisions.c.space_id == changes.c.space_id)
            & (decisions.c.plan_id == changes.c.plan_id)
            & (decisions.c.number == changes.c.decision),
        )
        .join(plans, (plans.c.space_id == changes.c.space_id) & (plans.c.id == changes.c.plan_id))
        .where(changes.c.space_id == db.space_id, changes.c.row_id == row_id, decisions.c.applied_at.is_not(None))
        .order_by(
            decisions.c.applied_at,
            decisions.c.written.nulls_first(),
            plans.c.created_at,
            changes.c.plan_id,
            changes.c.decision,
            changes.c.number,
        )
    )
    entries = [
        HistoryEntry(
            at=row.applied_at,
            verb=row.verb,
            reason=row.reason,
            policy=row.policy,
            plan_id=row.plan_id,
            before=row.before,
            after=row.after,
            decision=row.decision,
            status=DecisionStatus(row.standing),
        )
        for row in await db.execute(statement)
    ]
    made_by_plan = any(entry.before is None for entry in entries)
    return entries if made_by_plan else [*await _birth(db, row_id), *entries]


async def _birth(db: Transaction, row_id: UUID) -> list[HistoryEntry]:
    node = select(nodes.c.created_at, nodes.c.kind).where(nodes.c.space_id == db.space_id, nodes.c.id == row_id)
    edge = select(edges.c.created_at, edges.c.created_by).where(edges.c.space_id == db.space_id, edges.c.id == row_id)
    for statement, reason in ((node, "{} added"), (edge, "edge added by {}")):
        row = (await db.execute(statement)).one_or_none()
        if row is not None:
            said = reason.format(row[1])
            return [HistoryEntry(at=row[0], verb="add", reason=said, policy="", plan_id=None, before=None, after=None)]
    return []
