"""Looks: runs of a policy that found nothing to do. Each is a run, under the id of the plan that it would have been,
and is shown like a plan without decisions; among the plans there is none (P24)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select

from recollect.plan import Finding, Plan, PlanStatus, Risk
from recollect.store.database import Transaction
from recollect.store.tables import runs

LOOK = "look"
# What policies have said, by plans that stand for themselves and by looks.
SAID = f"""(
    SELECT id, policy, options, summary, counts, status, applied_at, created_at FROM plans
     WHERE space_id = $1 AND NOT summary ? 'superseded_by'
     UNION ALL
    SELECT id, report->>'policy', report->'options', report->'summary', '{{}}'::jsonb, 'applied', started_at, started_at
      FROM runs WHERE space_id = $1 AND action = '{LOOK}') AS said
"""


async def note(db: Transaction, plan: Plan) -> None:
    """Keep what a policy said that found nothing to do."""
    report = {
        "policy": plan.policy,
        "title": plan.title,
        "risk": plan.risk,
        "options": dict(plan.options),
        "summary": dict(plan.summary),
        "findings": [finding_as_json(finding) for finding in plan.findings],
        "created_by": plan.created_by,
        "seen": plan.seen,
    }
    moments = {"started_at": plan.created_at, "finished_at": plan.created_at}
    await db.execute(
        insert(runs).values(space_id=db.space_id, id=plan.id, action=LOOK, status="done", report=report, **moments)
    )


async def get(db: Transaction, plan_id: UUID) -> Plan | None:
    statement = select(runs).where(runs.c.space_id == db.space_id, runs.c.id == plan_id, runs.c.action == LOOK)
    row = (await db.execute(statement)).one_or_none()
    if row is None:
        return None
    said = row.report
    return Plan(
        id=row.id,
        policy=said["policy"],
        title=said["title"],
        status=PlanStatus.APPLIED,
        risk=Risk(said["risk"]),
        options=said["options"],
        summary=said["summary"],
        findings=[finding(noted) for noted in said["findings"]],
        created_by=said["created_by"],
        created_at=row.started_at,
        seen=said["seen"],
        decisions=(),
    )


def finding_as_json(finding: Finding) -> dict[str, Any]:
    subject = None if finding.subject is None else str(finding.subject)
    return {"rule": finding.rule, "text": finding.text, "subject": subject}


def finding(noted: Mapping[str, Any]) -> Finding:
    subject = noted.get("subject")
    return Finding(rule=noted["rule"], text=noted["text"], subject=UUID(subject) if subject else None)
