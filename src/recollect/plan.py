"""The Plan: the one way in which existing knowledge changes.

A policy, or a person's edit, says what should change as a list of decisions; each decision carries its reason and the
row changes (only the columns that change, before and after). The same object is shown, applied, audited and turned
round to undo. Remembering and counting only add, and need no plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The columns of one row that change. JSON values only, so that what is shown is what is stored."""

    table: str
    id: UUID
    before: Row
    after: Row

    def reversed(self) -> "Change":
        return replace(self, before=self.after, after=self.before)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What a person reads and may decline."""

    verb: str
    subject: UUID
    reason: str
    changes: tuple[Change, ...]
    score: float | None = None
    factors: Row = field(default_factory=dict)
    group: int = 0
    premises: Row = field(default_factory=dict)

    def reversed(self, verb: str) -> "Decision":
        return replace(
            self,
            verb=verb,
            reason=f"takes back: {self.reason}",
            premises={},
            changes=tuple(change.reversed() for change in self.changes[::-1]),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Decisions made together by one policy (or by hand) at one time."""

    policy: str
    title: str
    created_at: datetime
    decisions: tuple[Decision, ...]
    created_by: str = "user"
    id: UUID = field(default_factory=uuid4)
    undoes: UUID | None = None
    status: PlanStatus = PlanStatus.PROPOSED

    @property
    def changes(self) -> Iterator[Change]:
        return (change for decision in self.decisions for change in decision.changes)

    def inverse(self, now: datetime) -> "Plan":
        """The plan that takes this one back: the last decision first, each row as it was."""
        return Plan(
            policy="undo",
            title=f"Undo of {self.title}",
            created_at=now,
            decisions=tuple(decision.reversed("undo") for decision in self.decisions[::-1]),
            undoes=self.id,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a plan when it was applied."""

    plan_id: UUID
    status: PlanStatus
    applied: int
    stale: tuple[str, ...] = ()
    repeated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEntry:
    """One thing that happened to a node or edge: when, by which plan and policy, why, before and after."""

    at: datetime
    verb: str
    reason: str
    policy: str
    plan_id: UUID | None
    before: Row
    after: Row


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
    decision = Decision(verb=verb, subject=change.id, reason=reason, changes=(change,))
    return Plan(policy=policy, title=reason, created_at=now, decisions=(decision,), created_by=created_by)
