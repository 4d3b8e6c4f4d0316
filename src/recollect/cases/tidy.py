"""Tidying the case bank: the run that retires, merges and shelves, and the way back for each case.

A run is a plan of the policy consolidate_cases; this file says what came of it in the words of E26, and restores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from recollect.cases import sql
from recollect.cases.policies.bank import INACTIVE, LOW_PERFORMANCE
from recollect.cases.policies.consolidate_cases import POLICY
from recollect.concepts.rules.similarity import CASE_DOUBTS
from recollect.engine.core import Core
from recollect.errors import Conflict, NotFound
from recollect.memories import edit
from recollect.model import Case, CaseStatus, Status
from recollect.plan import Decision, DecisionStatus, Draft, Plan, patch
from recollect.plans import propose, review, undo
from recollect.plans import run as running
from recollect.plans.apply import Progress
from recollect.plans.rules.plan_text import short_name
from recollect.plans.sql import changes, plans
from recollect.store.database import Transaction

NOT_FOUND = "Archived case not found."


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedCase:
    """A case that went into another, and how similar the two are."""

    keeper: UUID
    removed: UUID
    similarity: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DoubtfulCase:
    """A case that may be the same as another, and what speaks against it: both stay until a person decides (E34)."""

    keeper: UUID
    other: UUID
    similarity: float
    doubts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Details:
    """Which cases a run removed for failing, merged, and archived for lying idle."""

    removed: tuple[UUID, ...]
    merged: tuple[MergedCase, ...]
    archived: tuple[UUID, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Consolidation:
    """What a run did (E26), or would do: then it was a rehearsal, or its plan waits for approval.

    The doubtful may be the same as others and wait for a person, whatever became of the rest. `notes` say why it
    waits, and which cases were left alone because they changed meanwhile.
    """

    removed_cases: int
    merged_cases: int
    archived_cases: int
    dry_run: bool
    details: Details
    plan_id: UUID
    status: Literal["applied", "waiting"]
    doubtful_cases: int = 0
    doubtful: tuple[DoubtfulCase, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        would = "would be " if self.status == "waiting" else ""
        doubtful = f"; {self.doubtful_cases:,} to review" if self.doubtful_cases else ""
        return (
            f"{self.removed_cases:,} {would}removed, {self.merged_cases:,} {would}merged, "
            f"{self.archived_cases:,} {would}archived{doubtful}"
        )


async def run(
    core: Core,
    space_id: UUID,
    options: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    by: str = "user",
    progress: Progress | None = None,
) -> Consolidation:
    """Retire what fails, merge what repeats, shelve what nobody asks for; a dry run only says what would be done."""
    if dry_run:
        plan = await propose.propose(core, space_id, POLICY.name, options, created_by=by)
        return _told(plan, plan.decisions, dry_run=True, status="waiting")
    tidied = await running.run(core, space_id, POLICY.name, options, created_by=by, progress=progress)
    if tidied.outcome is None:
        waits = tidied.plan.decisions or tidied.plan.summary["doubtful"]
        status: Literal["applied", "waiting"] = "waiting" if waits else "applied"
        return _told(tidied.plan, tidied.plan.decisions, status=status, notes=tidied.notes)
    async with core.transaction(space_id) as db:
        applied = await plans.decisions_of(db, tidied.plan.id, status=DecisionStatus.APPLIED, with_changes=False)
    return _told(tidied.plan, applied, status="applied", notes=(*tidied.outcome.stale, *tidied.outcome.failed))


def _told(
    plan: Plan,
    decisions: Sequence[Decision],
    *,
    status: Literal["applied", "waiting"],
    dry_run: bool = False,
    notes: tuple[str, ...] = (),
) -> Consolidation:
    if doubted := plan.summary["doubtful"]:
        notes = (*(note for note in notes if decisions or note != running.NOTHING_TO_DO), _in_doubt(doubted))
    merged = tuple(_merged(decision) for decision in decisions if decision.verb == "merge")
    removed, archived = (_archived(decisions, reason) for reason in (LOW_PERFORMANCE, INACTIVE))
    return Consolidation(
        removed_cases=len(removed),
        merged_cases=len(merged),
        archived_cases=len(archived),
        dry_run=dry_run,
        details=Details(removed=removed, merged=merged, archived=archived),
        plan_id=plan.id,
        status=status,
        doubtful_cases=doubted,
        doubtful=tuple(_doubtful(question) for question in plan.summary["questions"]),
        notes=notes,
    )


def _merged(decision: Decision) -> MergedCase:
    factors = decision.factors
    return MergedCase(
        keeper=UUID(factors["keeper"]), removed=UUID(factors["removed"]), similarity=factors["similarity"]
    )


def _in_doubt(number: int) -> str:
    return (
        f"{number:,} {'case' if number == 1 else 'cases'} may be the same as others, and wait for your review: "
        "`recollect cases tidy --dry-run --set ask_about=[]` proposes to merge them as well."
    )


def _doubtful(question: Mapping[str, Any]) -> DoubtfulCase:
    return DoubtfulCase(
        keeper=UUID(question["keeper"]),
        other=UUID(question["other"]),
        similarity=question["similarity"],
        doubts=tuple(CASE_DOUBTS[doubt] for doubt in question["doubts"]),
    )


def _archived(decisions: Sequence[Decision], reason: str) -> tuple[UUID, ...]:
    return tuple(decision.subject for decision in decisions if decision.factors["archived_reason"] == reason)


# -- by hand


async def archive(core: Core, space_id: UUID, id_: UUID, *, reason: str | None = None) -> Case:
    """Take a case out of the bank by hand, with a copy of it in the archive."""
    async with core.transaction(space_id) as db:
        case = await sql.get(db, id_)
    if case.status is CaseStatus.ACTIVE:
        await edit.set_status(core, space_id, id_, Status.ARCHIVED, reason=reason)
    async with core.transaction(space_id) as db:
        return await sql.get(db, id_)


async def restore(core: Core, space_id: UUID, id_: UUID, *, by: str = "user") -> Case:
    """Bring a case back into the bank. One that was merged is taken out of its keeper again, each with its own counts.

    That takes back the very decision which retired it, so its history tells both. It counts as an access, so the next
    run does not retire it at once (E09); and a merge that was taken back is not offered again for a while, like one
    that was declined (P11). A keeper that was merged on since stands in the way, and is named.
    """
    async with core.transaction(space_id) as db:
        case = await _archived_case(db, id_)
        if case.merged_into is not None:
            await _refuse_if_merged_on(db, case.merged_into)
        retired = await sql.retired_by(db, id_)
        if retired is None:  # it came archived, or the plan is of another time
            await _revive(core, db, case, by)
    if retired is not None:
        plan_id, number = retired
        await undo.undo(core, space_id, plan_id, decisions=[number], by=by)
        await review.remember_declined(core, space_id, plan_id, number)
    async with core.transaction(space_id) as db:
        await sql.touch(db, id_, core.now())
        return await sql.get(db, id_)


async def _archived_case(db: Transaction, id_: UUID) -> Case:
    try:
        case = await sql.get(db, id_)
    except NotFound:
        raise NotFound(NOT_FOUND) from None
    if case.status is not CaseStatus.ARCHIVED:
        raise NotFound(NOT_FOUND)
    return case


async def _refuse_if_merged_on(db: Transaction, keeper_id: UUID) -> None:
    keeper = await sql.get(db, keeper_id)
    if keeper.merged_into is None:
        return
    later = await sql.retired_by(db, keeper_id)
    by = "" if later is None else f" by the plan {later[0]}"
    raise Conflict(
        f"It was merged into {keeper_id}, which was merged into {keeper.merged_into} since{by}: "
        f"restore {keeper_id} first. Nothing changed."
    )


async def _revive(core: Core, db: Transaction, case: Case, by: str) -> None:
    before = {
        "status": "archived" if case.merged_into is None else "merged",
        "merged_into": None if case.merged_into is None else str(case.merged_into),
    }
    change = patch(table="nodes", id=case.case_id, before=before, after={"status": "active", "merged_into": None})
    assert change is not None
    draft, title = Draft(), f"Restore “{short_name(case.query)}”"
    draft.decide("restore", case.case_id, "restore by hand", [change])
    await changes.apply(db, draft.plan(policy="hand", title=title, now=core.now(), created_by=by), core.now())
