"""The only writer of what exists already: applies Plans, keeps the journal, turns plans round to undo them.

A plan is saved and applied in one transaction: its rows are locked, compared with what the plan saw (`before`), and
written (`after`); the journal is written beside them. If anything differs, nothing is changed.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from recollect.errors import Conflict, NotFound
from recollect.plan import Change, Decision, DecisionStatus, HistoryEntry, Outcome, Plan, PlanStatus
from recollect.store.nodes import meant_by
from recollect.store.tables import changes, decisions, nodes, plans

# The tables a plan may change, and the column that names a row.
KEYS = {"nodes": "id", "edges": "id", "activity": "node_id"}


async def apply(connection: AsyncConnection, space_id: UUID, plan: Plan, now: datetime) -> Outcome:
    """Save a plan and carry it out; Conflict (and nothing changed) when the world has moved."""
    for (table, columns), rows in _batches(plan.changes).items():
        moved = await _lock_and_compare(connection, space_id, table, columns, rows)
        if moved:
            raise Conflict(await _explain(connection, space_id, plan, moved))
        await _write(connection, space_id, table, columns, rows)
    await _record(connection, space_id, plan, now)
    return Outcome(plan_id=plan.id, status=PlanStatus.APPLIED, applied=len(plan.decisions))


async def undo(connection: AsyncConnection, space_id: UUID, plan_id: UUID, now: datetime) -> Outcome:
    """Take an applied plan back. Undoing what is undone already is success."""
    plan = await get_plan(connection, space_id, plan_id, lock=True)
    if plan.status is PlanStatus.UNDONE:
        return Outcome(plan_id=plan.id, status=PlanStatus.UNDONE, applied=0, repeated=True)
    if plan.status is not PlanStatus.APPLIED:
        raise Conflict(f"The plan {plan_id} is {plan.status}: only an applied plan can be undone.")
    inverse = plan.inverse(now)
    outcome = await apply(connection, space_id, inverse, now)
    await _set_status(connection, space_id, plan.id, PlanStatus.UNDONE, DecisionStatus.UNDONE, undone_at=now)
    if plan.undoes is not None:  # taking back an undo makes the first plan stand again
        await _set_status(connection, space_id, plan.undoes, PlanStatus.APPLIED, DecisionStatus.APPLIED, undone_at=None)
    return outcome


async def get_plan(connection: AsyncConnection, space_id: UUID, plan_id: UUID, *, lock: bool = False) -> Plan:
    statement = select(plans).where(plans.c.space_id == space_id, plans.c.id == plan_id)
    row = (await connection.execute(statement.with_for_update() if lock else statement)).one_or_none()
    if row is None:
        raise NotFound(f"There is no plan {plan_id}: `recollect history <id>` names the plans of a memory.")
    return Plan(
        id=row.id,
        policy=row.policy,
        title=row.title,
        created_at=row.created_at,
        created_by=row.created_by,
        undoes=row.undoes,
        status=PlanStatus(row.status),
        decisions=await _decisions(connection, space_id, plan_id),
    )


async def history(connection: AsyncConnection, space_id: UUID, row_id: UUID) -> list[HistoryEntry]:
    """What happened to a node or edge, oldest first (P09)."""
    statement = (
        select(changes, decisions.c.verb, decisions.c.reason, plans.c.policy)
        .join(
            decisions,
            (decisions.c.space_id == changes.c.space_id)
            & (decisions.c.plan_id == changes.c.plan_id)
            & (decisions.c.number == changes.c.decision),
        )
        .join(plans, (plans.c.space_id == changes.c.space_id) & (plans.c.id == changes.c.plan_id))
        .where(changes.c.space_id == space_id, changes.c.row_id == row_id, changes.c.applied_at.is_not(None))
        .order_by(changes.c.applied_at, changes.c.plan_id, changes.c.number)
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
        )
        for row in await connection.execute(statement)
    ]
    return [*await _birth(connection, space_id, row_id), *entries]


async def resolve_plan(connection: AsyncConnection, space_id: UUID, reference: str) -> UUID:
    """The plan that a reference means: a whole UUID, or a unique beginning of one."""
    low, high = meant_by(reference)
    statement = select(plans.c.id).where(plans.c.space_id == space_id, plans.c.id.between(low, high)).limit(2)
    found = list((await connection.execute(statement)).scalars())
    if not found:
        raise NotFound(f"There is no plan {reference}: `recollect history <id>` names the plans of a memory.")
    if len(found) > 1:
        raise Conflict(f"{reference} is the beginning of several plans: give more of it.")
    return UUID(str(found[0]))


def _batches(wanted: Any) -> dict[tuple[str, tuple[str, ...]], list[Change]]:
    """Changes that write the same columns of the same table go in one statement."""
    batches: dict[tuple[str, tuple[str, ...]], list[Change]] = defaultdict(list)
    for change in wanted:
        batches[(change.table, tuple(sorted(change.after)))].append(change)
    return batches


async def _lock_and_compare(
    connection: AsyncConnection, space_id: UUID, table: str, columns: Sequence[str], rows: Sequence[Change]
) -> list[UUID]:
    """Lock the rows, and return those that are not as the plan saw them."""
    key = KEYS[table]
    same = " AND ".join(f'(t."{column}" IS NOT DISTINCT FROM b."{column}")' for column in columns)
    statement = text(f"""
        SELECT t.{key} AS id, {same} AS same FROM {table} t
          JOIN jsonb_populate_recordset(NULL::{table}, CAST(:rows AS jsonb)) b ON b.{key} = t.{key}
         WHERE t.space_id = :space ORDER BY t.{key} FOR UPDATE OF t""")
    before = json.dumps([{key: str(change.id), **change.before} for change in rows])
    found = {row.id: row.same for row in await connection.execute(statement, {"space": space_id, "rows": before})}
    return [change.id for change in rows if not found.get(change.id, False)]


async def _write(
    connection: AsyncConnection, space_id: UUID, table: str, columns: Sequence[str], rows: Sequence[Change]
) -> None:
    key = KEYS[table]
    assignments = ", ".join(f'"{column}" = a."{column}"' for column in columns)
    statement = text(f"""
        UPDATE {table} t SET {assignments}
          FROM jsonb_populate_recordset(NULL::{table}, CAST(:rows AS jsonb)) a
         WHERE t.space_id = :space AND t.{key} = a.{key}""")
    after = json.dumps([{key: str(change.id), **change.after} for change in rows])
    await connection.execute(statement, {"space": space_id, "rows": after})


async def _record(connection: AsyncConnection, space_id: UUID, plan: Plan, now: datetime) -> None:
    """The journal: the plan, its decisions, and every row change, in the transaction that made them."""
    await connection.execute(
        insert(plans).values(
            space_id=space_id,
            id=plan.id,
            policy=plan.policy,
            title=plan.title,
            status=PlanStatus.APPLIED,
            created_by=plan.created_by,
            undoes=plan.undoes,
            created_at=plan.created_at,
            applied_at=now,
        )
    )
    made = [_decision_row(space_id, plan.id, number, one) for number, one in enumerate(plan.decisions, start=1)]
    await connection.execute(insert(decisions), made)
    journal = [
        {
            "space_id": space_id,
            "plan_id": plan.id,
            "decision": number,
            "number": place,
            "table_name": change.table,
            "row_id": change.id,
            "before": dict(change.before),
            "after": dict(change.after),
            "applied_at": now,
        }
        for number, one in enumerate(plan.decisions, start=1)
        for place, change in enumerate(one.changes, start=1)
    ]
    await connection.execute(insert(changes), journal)


def _decision_row(space_id: UUID, plan_id: UUID, number: int, decision: Decision) -> dict[str, Any]:
    return {
        "space_id": space_id,
        "plan_id": plan_id,
        "number": number,
        "group_number": decision.group,
        "verb": decision.verb,
        "subject": decision.subject,
        "reason": decision.reason,
        "score": decision.score,
        "factors": dict(decision.factors),
        "premises": dict(decision.premises),
        "status": DecisionStatus.APPLIED,
    }


async def _set_status(
    connection: AsyncConnection,
    space_id: UUID,
    plan_id: UUID,
    status: PlanStatus,
    of_decisions: DecisionStatus,
    *,
    undone_at: datetime | None,
) -> None:
    mine = (plans.c.space_id == space_id) & (plans.c.id == plan_id)
    await connection.execute(update(plans).where(mine).values(status=status, undone_at=undone_at))
    theirs = (decisions.c.space_id == space_id) & (decisions.c.plan_id == plan_id)
    await connection.execute(update(decisions).where(theirs).values(status=of_decisions))


async def _decisions(connection: AsyncConnection, space_id: UUID, plan_id: UUID) -> tuple[Decision, ...]:
    of_plan = select(changes).where(changes.c.space_id == space_id, changes.c.plan_id == plan_id)
    made: dict[int, list[Change]] = defaultdict(list)
    for row in await connection.execute(of_plan.order_by(changes.c.decision, changes.c.number)):
        made[row.decision].append(Change(table=row.table_name, id=row.row_id, before=row.before, after=row.after))
    found = select(decisions).where(decisions.c.space_id == space_id, decisions.c.plan_id == plan_id)
    return tuple(
        Decision(
            verb=row.verb,
            subject=row.subject,
            reason=row.reason,
            score=row.score,
            factors=row.factors,
            group=row.group_number,
            premises=row.premises,
            changes=tuple(made[row.number]),
        )
        for row in await connection.execute(found.order_by(decisions.c.number))
    )


async def _birth(connection: AsyncConnection, space_id: UUID, row_id: UUID) -> list[HistoryEntry]:
    statement = select(nodes.c.created_at, nodes.c.kind).where(nodes.c.space_id == space_id, nodes.c.id == row_id)
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return []
    return [
        HistoryEntry(
            at=row.created_at, verb="add", reason=f"{row.kind} added", policy="", plan_id=None, before={}, after={}
        )
    ]


async def _explain(connection: AsyncConnection, space_id: UUID, plan: Plan, moved: Sequence[UUID]) -> str:
    """Why a plan does not fit any more: for an undo, the later plan that must be undone first."""
    statement = (
        select(plans.c.id, plans.c.title)
        .join(changes, (changes.c.space_id == plans.c.space_id) & (changes.c.plan_id == plans.c.id))
        .where(changes.c.space_id == space_id, changes.c.row_id == moved[0], changes.c.applied_at.is_not(None))
        .where(plans.c.status == PlanStatus.APPLIED)
        .order_by(changes.c.applied_at.desc(), changes.c.plan_id)
        .limit(1)
    )
    last = (await connection.execute(statement)).one_or_none()
    if plan.undoes is not None and last is not None and last.id != plan.undoes:
        return (
            f"{moved[0]} was changed since by the plan {last.id} ({last.title}): undo that one first. Nothing changed."
        )
    return f"{moved[0]} has changed in the meantime: look at it again and repeat. Nothing changed."
