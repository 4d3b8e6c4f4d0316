"""Plans as they are kept: saved once, read in stretches, their decisions' fate noted. Applying them is changes.py's."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer
from sqlalchemy import insert, select, text, update

from recollect.errors import NotFound
from recollect.plan import (
    Change,
    Decision,
    DecisionStatus,
    Plan,
    PlanStatus,
    Premise,
    Risk,
    Run,
    Waiting,
    overall,
)
from recollect.plans.sql import looks
from recollect.store import references
from recollect.store.cursors import stretch
from recollect.store.database import Transaction
from recollect.store.tables import changes, decisions, plans, runs

BATCH = 1_000
# Numbers as `listed` writes them. In a sub-select, so that the planner does not weigh each of a hundred thousand.
AMONG = "ANY((SELECT {}::text::int[])::int[])"
# The database takes no document of more than 256 MB; one of pages, each with its text before and after, can be longer.
LONGEST = 16_000_000
# Knows what decisions look like, so that it need not look at each.
DECISIONS: SchemaSerializer = TypeAdapter(list[Decision]).serializer
NO_PLAN = "There is no plan {}: `recollect plan list` shows them."

# Decisions come as one document, just as they are, and are taken apart inside the database: a driver that looks at
# every value of every row takes longer than all the rest.
SAVE = """
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($3::text::jsonb) AS d(
        number int, "group" int, stage int, needs int[], verb text, subject uuid, reason text, score float8,
        factors jsonb, premises jsonb, changes jsonb)),
 saved AS (
    INSERT INTO decisions (space_id, plan_id, number, group_number, stage, needs, verb, subject, reason, score, factors,
                           premises, status)
    SELECT $1, $2, number, "group", stage, needs, verb, subject, reason, score, factors, premises, 'proposed'
      FROM given RETURNING 1)
INSERT INTO changes (space_id, plan_id, decision, number, table_name, row_id, before, after)
SELECT $1, $2, d.number, c.place, c.change->>'table', (c.change->>'id')::uuid,
       nullif(c.change->'before', 'null'), nullif(c.change->'after', 'null')
  FROM given d, jsonb_array_elements(d.changes) WITH ORDINALITY AS c(change, place) RETURNING 1
"""
# What orders those who write a row.
WRITTEN = "(1e6 * date_part('epoch', clock_timestamp()))::bigint"
COUNT = """
UPDATE plans SET counts = coalesce((SELECT jsonb_object_agg(status, number) FROM
    (SELECT status, count(*) AS number FROM decisions WHERE space_id = $1 AND plan_id = $2 GROUP BY status) s
), '{}') WHERE space_id = $1 AND id = $2 RETURNING counts
"""
COUNT_SOME = """
SELECT plan_id, status, count(*) AS number FROM decisions WHERE space_id = $1 AND plan_id = ANY($2) GROUP BY 1, 2
"""

# The plans of one import of pages, or the undoings of them: they name one batch, and they stand.
TRIES = """
WITH batches AS (
    SELECT p.id, p.undoes, p.created_at, p.counts, coalesce(u.options, p.options)->>'batch' AS batch
      FROM plans p LEFT JOIN plans u ON u.space_id = $1 AND u.id = p.undoes
     WHERE p.space_id = $1 AND 'merge_pages' IN (p.policy, u.policy))
SELECT one.id FROM batches one, batches asked
 WHERE asked.id = $2 AND one.batch = asked.batch AND (one.undoes IS NULL) = (asked.undoes IS NULL)
   AND one.counts->>'applied' IS NOT NULL
 ORDER BY one.created_at DESC
"""


async def save(db: Transaction, plan: Plan, *, status: PlanStatus = PlanStatus.PROPOSED, **columns: Any) -> None:
    """Keep a plan: its head, with what else is known of it, its decisions and their changes, in batches and never
    twice in memory."""
    head = {
        "space_id": db.space_id,
        "id": plan.id,
        "policy": plan.policy,
        "title": plan.title,
        "status": status,
        "risk": plan.risk,
        "options": dict(plan.options),
        "summary": dict(plan.summary),
        "findings": [looks.finding_as_json(finding) for finding in plan.findings],
        "counts": {"proposed": len(plan.decisions)} if plan.decisions else {},
        "created_by": plan.created_by,
        "undoes": plan.undoes,
        "seen": plan.seen,
        "created_at": plan.created_at,
    }
    await db.execute(insert(plans).values(**head | columns))
    for first in range(0, len(plan.decisions), BATCH):
        await _save_some(db, plan.id, plan.decisions[first : first + BATCH])


async def _save_some(db: Transaction, plan_id: UUID, some: Sequence[Decision]) -> None:
    """Decisions as one document; where they say very much, half of them at a time."""
    document, half = DECISIONS.to_json(list(some)), len(some) // 2
    if len(document) <= LONGEST or not half:
        await db.run(SAVE, plan_id, document.decode())
        return
    await _save_some(db, plan_id, some[:half])
    await _save_some(db, plan_id, some[half:])


async def head(db: Transaction, plan_id: UUID, *, lock: bool = False) -> Plan:
    """A plan without its decisions."""
    statement = f"SELECT * FROM plans WHERE space_id = $1 AND id = $2{' FOR UPDATE' if lock else ''}"
    row = await db.fetchrow(statement, plan_id)
    if row is None:
        if (looked := await looks.get(db, plan_id)) is None:
            raise NotFound(NO_PLAN.format(plan_id))
        return looked
    (plan,) = await _as_they_stand(db, [_plan(row)])
    return plan


async def _as_they_stand(db: Transaction, heads: Sequence[Plan]) -> list[Plan]:
    """Plans that may have been broken off are counted as they are read: their last save may be older (P22)."""
    unsure = [plan.id for plan in heads if plan.status in (PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED)]
    if not unsure:
        return list(heads)
    counts: dict[UUID, dict[str, int]] = {plan_id: {} for plan_id in unsure}
    for row in await db.fetch(COUNT_SOME, unsure):
        counts[row["plan_id"]][row["status"]] = row["number"]
    return [
        replace(plan, counts=counts[plan.id], status=overall(counts[plan.id])) if plan.id in counts else plan
        for plan in heads
    ]


async def is_unfinished(db: Transaction, plan_id: UUID) -> bool:
    """Whether nobody noted yet what became of a plan as a whole: whoever carried it out was killed before."""
    begun = text("counts ? 'proposed'")
    statement = select(begun).select_from(plans).where(plans.c.space_id == db.space_id, plans.c.id == plan_id)
    return bool((await db.execute(statement)).scalar())


async def whole(db: Transaction, plan_id: UUID) -> Plan:
    """A plan with every decision: for those that fit on a page."""
    plan = await head(db, plan_id)
    return replace(plan, decisions=await decisions_of(db, plan_id))


async def list_heads(
    db: Transaction,
    *,
    status: PlanStatus | None = None,
    policy: str | None = None,
    created_by: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
) -> tuple[list[Plan], str | None]:
    """Plans, newest first, without their decisions; and where to go on."""
    statement = select(plans).where(plans.c.space_id == db.space_id)
    if status is not None:
        statement = statement.where(plans.c.status == status)
    if policy is not None:
        statement = statement.where(plans.c.policy == policy)
    if created_by is not None:
        statement = statement.where(plans.c.created_by == created_by)
    rows, more = await stretch(db, plans, statement, limit=limit, cursor=cursor)
    return await _as_they_stand(db, [_plan(row._mapping) for row in rows]), more


async def decisions_of(
    db: Transaction,
    plan_id: UUID,
    *,
    numbers: Sequence[int] | None = None,
    group: int | None = None,
    status: DecisionStatus | None = None,
    after: int = 0,
    limit: int | None = None,
    with_changes: bool = True,
) -> list[Decision]:
    """Decisions, in order, with their changes unless they are not wanted; a stretch of them where asked."""
    mine = (decisions.c.space_id == db.space_id) & (decisions.c.plan_id == plan_id) & (decisions.c.number > after)
    if numbers is not None:
        mine &= text("decisions.number = ANY(:numbers)").bindparams(numbers=list(numbers))
    if group is not None:
        mine &= decisions.c.group_number == group
    if status is not None:
        mine &= decisions.c.status == status
    rows = list(await db.execute(select(decisions).where(mine).order_by(decisions.c.number).limit(limit)))
    made: dict[int, list[Change]] = defaultdict(list)
    statement = (
        select(changes)
        .where(changes.c.space_id == db.space_id, changes.c.plan_id == plan_id)
        .where(text("changes.decision = ANY(:wanted)").bindparams(wanted=[row.number for row in rows]))
        .order_by(changes.c.decision, changes.c.number)
    )
    for row in await db.execute(statement) if with_changes else ():
        made[row.decision].append(Change(table=row.table_name, id=row.row_id, before=row.before, after=row.after))
    return [_decision(row, tuple(made.get(row.number, ()))) for row in rows]


async def waiting(db: Transaction, plan_id: UUID) -> list[Waiting]:
    """What waits in a plan, in short: for looking at all of it once more."""
    rows = await db.fetch(
        """SELECT number, subject, factors::text AS written FROM decisions
            WHERE space_id = $1 AND plan_id = $2 AND status = 'proposed' ORDER BY number""",
        plan_id,
    )
    return [Waiting(**row) for row in rows]


async def group_numbers(db: Transaction, plan_id: UUID) -> list[int]:
    """The groups of a plan, in order."""
    mine = (decisions.c.space_id == db.space_id) & (decisions.c.plan_id == plan_id)
    statement = select(decisions.c.group_number).where(mine).distinct().order_by(decisions.c.group_number)
    return list((await db.execute(statement)).scalars())


def _plan(row: Any) -> Plan:
    return Plan(
        id=row["id"],
        policy=row["policy"],
        title=row["title"],
        status=PlanStatus(row["status"]),
        risk=Risk(row["risk"]),
        options=row["options"],
        summary=row["summary"],
        findings=[looks.finding(noted) for noted in row["findings"]],
        counts=row["counts"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        undoes=row["undoes"],
        seen=row["seen"],
        decisions=(),
    )


def _decision(row: Any, made: tuple[Change, ...]) -> Decision:
    return Decision(
        number=row.number,
        verb=row.verb,
        subject=row.subject,
        reason=row.reason,
        score=row.score,
        factors=row.factors,
        group=row.group_number,
        stage=row.stage,
        needs=tuple(row.needs),
        premises=tuple(Premise(table=p["table"], id=UUID(p["id"]), must=p["must"]) for p in row.premises),
        status=DecisionStatus(row.status),
        note=row.note,
        changes=made,
    )


async def resolve(db: Transaction, reference: str) -> UUID:
    """The plan that a reference means: a whole UUID, or a unique beginning of one."""
    missing = NO_PLAN.format(reference)
    try:
        return await references.resolve(db, plans, reference, several="plans", missing=missing)
    except NotFound:  # a run that found nothing is shown like a plan
        return await references.resolve(db, runs, reference, several="runs", missing=missing)


async def version(db: Transaction) -> int:
    """How often what a recall could find was changed; use that is only counted does not count."""
    return int(await db.fetchval("SELECT version FROM space_versions WHERE space_id = $1") or 0)


async def set_status(db: Transaction, plan_id: UUID, status: PlanStatus, **moments: Any) -> None:
    assigned = "".join(f", {name} = ${number}" for number, name in enumerate(moments, 4))
    statement = f"UPDATE plans SET status = $3{assigned} WHERE space_id = $1 AND id = $2"
    await db.run(statement, plan_id, status, *moments.values())


async def note(db: Transaction, plan_id: UUID, what: str, said: str) -> None:
    """Add to what is known of a plan: why it waits for a person, or which plan has taken its place."""
    await db.execute(
        text("""UPDATE plans SET summary = summary || jsonb_build_object(CAST(:what AS text), CAST(:said AS text))
                 WHERE space_id = :space AND id = :plan"""),
        {"what": what, "said": said, "space": db.space_id, "plan": plan_id},
    )


async def recount(db: Transaction, plan_id: UUID) -> dict[str, int]:
    """How many decisions are in which state now."""
    return dict(await db.fetchval(COUNT, plan_id))


async def needs_of(db: Transaction, plan_id: UUID) -> dict[int, list[int]]:
    """Which decisions need which: only those that need any."""
    statement = (
        select(decisions.c.number, decisions.c.needs)
        .where(decisions.c.space_id == db.space_id, decisions.c.plan_id == plan_id)
        .where(text("decisions.needs <> '{}'"))
    )
    return {row.number: row.needs for row in await db.execute(statement)}


def listed(numbers: Iterable[int]) -> str:
    """Numbers as one text that the database reads as an array: the driver looks at every element of a list, which takes
    longer than all of that."""
    return f"{{{','.join(map(str, numbers))}}}"


async def mark(
    db: Transaction,
    plan_id: UUID,
    notes: Mapping[int, str | None],
    status: DecisionStatus,
    *,
    applied_at: datetime | None = None,
) -> None:
    """Note the fate of decisions, each with its reason."""
    if not notes:
        return
    fate = f"""status = $4, applied_at = coalesce($5, d.applied_at),
              written = CASE WHEN $5 IS NULL THEN d.written ELSE (SELECT {WRITTEN}) END, note"""
    theirs = "d.space_id = $1 AND d.plan_id = $2 AND d.number"
    if not any(notes.values()):
        await db.run(
            f"UPDATE decisions d SET {fate} = NULL WHERE {theirs} = {AMONG.format('$3')}",
            plan_id,
            listed(notes),
            status,
            applied_at,
        )
        return
    statement = f"""WITH n AS MATERIALIZED (SELECT * FROM unnest($3::text::int[], $6::text[]) AS n(number, note))
                    UPDATE decisions d SET {fate} = n.note FROM n WHERE {theirs} = n.number"""
    await db.run(statement, plan_id, listed(notes), status, applied_at, list(notes.values()))


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanGroup:
    """The waiting decisions of a group: how many, and between which numbers they are found."""

    number: int
    size: int
    first: int
    last: int


async def groups_to_do(db: Transaction, plan_id: UUID) -> list[PlanGroup]:
    """The groups that still have waiting decisions, in order."""
    rows = await db.fetch(
        """SELECT group_number AS number, count(*) AS size, min(number) AS first, max(number) AS last FROM decisions
            WHERE space_id = $1 AND plan_id = $2 AND status = 'proposed' GROUP BY 1 ORDER BY 1""",
        plan_id,
    )
    return [PlanGroup(**row) for row in rows]


async def tries_of(db: Transaction, plan_id: UUID) -> list[UUID]:
    """The plans that stand for one merge of pages, which may have taken several tries; the last first."""
    return [row["id"] for row in await db.fetch(TRIES, plan_id)]


async def leave_the_rest(db: Transaction, plan_id: UUID) -> None:
    """What still waits in a plan that is taken back is not wanted either."""
    mine = (decisions.c.space_id == db.space_id) & (decisions.c.plan_id == plan_id) & (decisions.c.status == "proposed")
    await db.execute(update(decisions).where(mine).values(status="declined", note="the plan was undone"))


async def retry_failed(db: Transaction, plan_id: UUID) -> None:
    """Decisions that failed wait again."""
    mine = (decisions.c.space_id == db.space_id) & (decisions.c.plan_id == plan_id) & (decisions.c.status == "failed")
    await db.execute(update(decisions).where(mine).values(status="proposed", note=None))


# -- runs

OF_A_RUN = [runs.c[field.name] for field in fields(Run)]


async def start_run(
    db: Transaction,
    plan_id: UUID | None,
    action: str,
    report: Mapping[str, Any],
    now: datetime,
) -> UUID:
    """Begin a run. One of the same plan that never ended was interrupted: it says so from now on."""
    started: UUID = await db.fetchval(
        """WITH left_over AS (UPDATE runs SET status = 'interrupted', finished_at = $5
                WHERE space_id = $1 AND plan_id = $2 AND status = 'running')
           INSERT INTO runs (space_id, id, plan_id, action, status, report, started_at)
           VALUES ($1, gen_random_uuid(), $2, $3, 'running', $4::jsonb, $5) RETURNING id""",
        plan_id,
        action,
        json.dumps(report),
        now,
    )
    return started


async def note_run(
    db: Transaction,
    run_id: UUID,
    report: Mapping[str, Any],
    *,
    status: str = "running",
    finished_at: datetime | None = None,
) -> None:
    """Write how far a run is, over what it wrote before."""
    await db.run(
        """UPDATE runs SET report = report || $3::jsonb, status = $4, finished_at = $5
            WHERE space_id = $1 AND id = $2""",
        run_id,
        json.dumps(report),
        status,
        finished_at,
    )


async def get_run(db: Transaction, run_id: UUID) -> Run:
    statement = select(*OF_A_RUN).where(runs.c.space_id == db.space_id, runs.c.id == run_id)
    row = (await db.execute(statement)).one_or_none()
    if row is None:
        raise NotFound(f"There is no run {run_id}: `recollect plan runs` lists them.")
    return Run(**row._mapping)


async def list_runs(db: Transaction, *, plan_id: UUID | None = None, limit: int = 20) -> list[Run]:
    statement = select(*OF_A_RUN).where(runs.c.space_id == db.space_id)
    if plan_id is not None:
        statement = statement.where(runs.c.plan_id == plan_id)
    statement = statement.order_by(runs.c.started_at.desc(), runs.c.id).limit(limit)
    return [Run(**row._mapping) for row in await db.execute(statement)]
