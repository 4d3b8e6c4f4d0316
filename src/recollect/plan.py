"""The Plan: the one way in which existing knowledge changes.

A policy, or a person's edit, says what should change as a list of decisions; each decision carries its reason and the
row changes (only the columns that change, before and after). The same object is shown, applied, audited and turned
round to undo. Remembering and counting only add, and need no plan.

A `Draft` is how a plan is written: it knows the world as it will be after the decisions made so far, so that a later
decision sees the earlier ones, and which decision needs which.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

Row = Mapping[str, Any]


class PlanStatus(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    PARTLY_APPLIED = "partly_applied"
    STALE = "stale"
    FAILED = "failed"
    UNDONE = "undone"
    DECLINED = "declined"


class DecisionStatus(StrEnum):
    PROPOSED = "proposed"
    DECLINED = "declined"
    APPLIED = "applied"
    STALE = "stale"
    FAILED = "failed"
    UNDONE = "undone"


class Risk(StrEnum):
    """LOW applies by itself; HIGH waits for a person."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The columns of one row that change. JSON values only, so that what is shown is what is stored.

    `before` None: the row is made. `after` None: the row is taken away (never a node, never what a person wrote).
    """

    table: str
    id: UUID
    before: Row | None
    after: Row | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Premise:
    """What must still hold of a row at applying: columns by value, or tests by name (plans/sql/premises)."""

    table: str
    id: UUID
    must: Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What a person reads and may decline.

    `needs` are the numbers of decisions that must stand for this one to make sense; `stage` orders the decisions of a
    group that need each other.
    """

    number: int
    verb: str
    subject: UUID
    reason: str
    changes: tuple[Change, ...]
    score: float | None = None
    factors: Row = field(default_factory=dict)
    group: int = 0
    stage: int = 0
    needs: tuple[int, ...] = ()
    premises: tuple[Premise, ...] = ()
    status: DecisionStatus = DecisionStatus.PROPOSED
    # Why it went stale or failed, or with what it fell away.
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """A decision that waits, in short: there may be hundreds of thousands to look at once more."""

    number: int
    subject: UUID
    written: str

    @property
    def factors(self) -> Row:
        factors: Row = json.loads(self.written)
        return factors


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a policy noticed and left alone, and the rule by which it did."""

    rule: str
    text: str
    subject: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Decisions made together by one policy (or by hand) at one time.

    `summary` holds the policy's own report (counts, metrics), `touched` and `scope` what the brake is computed from;
    `seen` is the version of the space that the policy looked at.
    """

    policy: str
    title: str
    created_at: datetime
    decisions: Sequence[Decision]
    created_by: str = "user"
    id: UUID = field(default_factory=uuid4)
    undoes: UUID | None = None
    status: PlanStatus = PlanStatus.PROPOSED
    risk: Risk = Risk.LOW
    options: Row = field(default_factory=dict)
    summary: Row = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    seen: int | None = None

    @property
    def changes(self) -> Iterator[Change]:
        return (change for decision in self.decisions for change in decision.changes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a plan when it was applied or undone."""

    plan_id: UUID
    status: PlanStatus
    applied: int
    stale: tuple[str, ...] = ()
    declined: int = 0
    failed: tuple[str, ...] = ()
    repeated: bool = False
    run_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One applying or undoing of a plan: how far it is, and in the end its report."""

    id: UUID
    plan_id: UUID | None
    action: str
    status: str
    report: Row
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One thing that happened to a node or edge: when, by which plan and policy, why, before and after."""

    at: datetime
    verb: str
    reason: str
    policy: str
    plan_id: UUID | None
    before: Row | None
    after: Row | None
    # Which decision of the plan it was, and whether that stands or was taken back since.
    decision: int | None = None
    status: DecisionStatus | None = None


def patch(*, table: str, id: UUID, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change | None:
    """The Change between two states of a row, or None where nothing differs."""
    columns = [column for column in after if before.get(column) != after[column]]
    if not columns:
        return None
    return Change(
        table=table,
        id=id,
        before={column: before.get(column) for column in columns},
        after={column: after[column] for column in columns},
    )


def single(*, policy: str, verb: str, reason: str, change: Change, now: datetime, created_by: str = "user") -> Plan:
    """A plan of one decision: a hand edit, an archiving, a restoring."""
    draft = Draft()
    draft.decide(verb, change.id, reason, [change])
    return draft.plan(policy=policy, title=reason, now=now, created_by=created_by)


class Draft:
    """A plan being written, and the world as it will be once it is applied."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.findings: list[Finding] = []
        self._rows: dict[tuple[str, UUID], Row | None] = {}
        self._writer: dict[tuple[str, UUID], int] = {}

    def row(self, table: str, id: UUID, stored: Row) -> Row | None:
        """A row as it will be: what is stored with what was decided over it; None once it is taken away."""
        decided = self._rows.get((table, id), {})
        return None if decided is None else {**stored, **decided}

    def patch(self, table: str, id: UUID, stored: Row, after: Row) -> Change | None:
        """The Change from the row as it will be by then to `after`, or None where nothing differs."""
        return patch(table=table, id=id, before=self.row(table, id, stored) or {}, after=after)

    def decide(
        self,
        verb: str,
        subject: UUID,
        reason: str,
        changes: Iterable[Change | None],
        *,
        score: float | None = None,
        factors: Row | None = None,
        group: int = 0,
        premises: Iterable[Premise] = (),
        needs: Iterable[int] = (),
    ) -> Decision:
        """Write one decision; it needs every earlier one that changed a row it changes or relies on."""
        wanted, relied = tuple(change for change in changes if change is not None), tuple(premises)
        rows = [*((one.table, one.id) for one in wanted), *((one.table, one.id) for one in relied)]
        needed = tuple(sorted({*needs, *(self._writer[row] for row in rows if row in self._writer)}))
        decision = Decision(
            number=len(self.decisions) + 1,
            verb=verb,
            subject=subject,
            reason=reason,
            changes=wanted,
            score=score,
            factors=factors or {},
            group=group,
            stage=self._stage(needed, group),
            needs=needed,
            premises=relied,
        )
        self.decisions.append(decision)
        for change in wanted:
            self._note(change, decision.number)
        return decision

    def note(self, rule: str, text: str, subject: UUID | None = None) -> None:
        """Remember something that was seen and left alone."""
        self.findings.append(Finding(rule=rule, text=text, subject=subject))

    def plan(
        self,
        *,
        policy: str,
        title: str,
        now: datetime,
        created_by: str = "user",
        risk: Risk = Risk.LOW,
        options: Row | None = None,
        summary: Row | None = None,
    ) -> Plan:
        return Plan(
            policy=policy,
            title=title,
            created_at=now,
            decisions=self.decisions,
            created_by=created_by,
            risk=risk,
            options=options or {},
            summary=summary or {},
            findings=self.findings,
        )

    def _stage(self, needed: Iterable[int], group: int) -> int:
        stages = (self.decisions[number - 1] for number in needed)
        return max((one.stage + 1 for one in stages if one.group == group), default=0)

    def _note(self, change: Change, number: int) -> None:
        key = (change.table, change.id)
        known = self._rows.get(key)
        self._writer[key] = number
        # Most rows are changed once: then what was decided is the change's own row, and nothing is copied.
        self._rows[key] = {**known, **change.after} if known and change.after is not None else change.after


def falling_with(numbers: Iterable[int], needs: Mapping[int, Sequence[int]]) -> set[int]:
    """Some decisions and all that fall away with them, because they need one of them, however indirectly."""
    fallen = set(numbers)
    growing = True
    while growing:
        more = {number for number, needed in needs.items() if number not in fallen and fallen.intersection(needed)}
        growing = bool(more)
        fallen |= more
    return fallen


def levels(needs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """For each decision how many others must come before it, one after the other: those of one level can go together.

    A decision needs only such as have a lower number.
    """
    if not any(needs.values()):
        return dict.fromkeys(needs, 0)
    found: dict[int, int] = {}
    for number in sorted(needs):
        found[number] = max((found[needed] + 1 for needed in needs[number] if needed in found), default=0)
    return found


def turned_round(numbers: Iterable[int], needs: Mapping[int, Sequence[int]], beyond: int) -> dict[int, list[int]]:
    """Which decisions need which when some are taken back, the last first: what was needed waits for what needed it.

    A decision that takes back `n` has the number `beyond - n`.
    """
    turned: dict[int, list[int]] = {beyond - number: [] for number in numbers}
    for number, needed in needs.items():
        for one in needed:
            if beyond - one in turned and beyond - number in turned:
                turned[beyond - one].append(beyond - number)
    return turned


def overall(counted: Mapping[str, int]) -> PlanStatus:
    """The state of a plan, from those of its decisions."""
    applied, undone = counted.get("applied", 0), counted.get("undone", 0)
    short = counted.get("stale", 0) + counted.get("failed", 0)
    if counted.get("proposed", 0):
        return PlanStatus.PARTLY_APPLIED if applied else PlanStatus.APPROVED
    if applied:
        return PlanStatus.PARTLY_APPLIED if short or undone else PlanStatus.APPLIED
    if undone:
        return PlanStatus.UNDONE
    if short:
        return PlanStatus.FAILED if counted.get("failed", 0) else PlanStatus.STALE
    return PlanStatus.DECLINED if counted.get("declined", 0) else PlanStatus.APPLIED
