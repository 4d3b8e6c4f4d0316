"""The Plan: the one way in which existing knowledge changes.

A policy, or a person's edit, says what should change as a list of decisions; each decision carries its reason and the
row changes (only the columns that change, before and after). The same object is shown, applied, audited and turned
round to undo. Remembering and counting only add, and need no plan.

A `Draft` is how a plan is written: it knows the world as it will be after the decisions made so far, so that a later
decision sees the earlier ones, and which decision needs which. What a decision looks at, it looks at through a `Look`,
which notes it: what was read must still be so when the decision is applied (P16).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import md5
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from uuid import UUID, uuid4

if TYPE_CHECKING:  # arrays come from those who have them; a command line that starts needs none
    import numpy as np
    from numpy.typing import NDArray

    # Something of every row, in order.
    Values = NDArray[Any]
    Flags = NDArray[np.bool_]

from recollect.model import PairQuestion

Row = Mapping[str, Any]


class _Identified(Protocol):
    """A thing of the store, by its id."""

    @property
    def id(self) -> UUID: ...


T = TypeVar("T", bound=_Identified)


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
    questions: Sequence[PairQuestion] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    seen: int | None = None

    @property
    def changes(self) -> Iterator[Change]:
        return (change for decision in self.decisions for change in decision.changes)


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenBack:
    """A plan of which decisions are taken back by an undo, and how many of them."""

    id: UUID
    title: str
    decisions: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a plan when it was applied or undone; `chain` is what an undo took back, in order."""

    plan_id: UUID
    status: PlanStatus
    applied: int
    stale: tuple[str, ...] = ()
    declined: int = 0
    failed: tuple[str, ...] = ()
    repeated: bool = False
    run_id: UUID | None = None
    chain: tuple[TakenBack, ...] = ()


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


STRENGTH = {"strength", "last_reinforced_at"}


def patch(*, table: str, id: UUID, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change | None:
    """The Change between two states of a row, or None where nothing differs. A strength is one as of a moment: where
    either of the two differs, both are written down, for an undo has to know how far it has faded (P19)."""
    columns = [column for column in after if before.get(column) != after[column]]
    if STRENGTH & set(columns):
        columns = [column for column in after if column in columns or column in STRENGTH]
    if not columns:
        return None
    return Change(
        table=table,
        id=id,
        before={column: before.get(column) for column in columns},
        after={column: after[column] for column in columns},
    )


class Look:
    """What one decision looks at. Whatever is asked of it becomes a premise: nobody has to list them."""

    def __init__(self, draft: "Draft") -> None:
        self._draft = draft
        self._seen: dict[tuple[str, UUID], dict[str, Any]] = {}

    def at(self, table: str, thing: T, **also: Any) -> T:
        """A thing as it will be; each attribute that is read of it is noted, and so is what is said of it `also`."""
        noted = self._noted(table, thing.id)
        noted |= also
        return cast(T, _Watched(thing, noted))

    def row(self, table: str, id: UUID, stored: Row) -> Row:
        """A row as it will be; each column that is read of it is noted."""
        return _WatchedRow(self._draft.row(table, id, stored) or {}, self._noted(table, id))

    def reads(self, table: str, id: UUID, stored: Row, *columns: str) -> None:
        """That these columns of a row, as it will be, were what counted."""
        row = self._draft.row(table, id, stored) or {}
        self._noted(table, id).update({column: row[column] for column in columns})

    def finds(self, table: str, id: UUID, **columns: Any) -> None:
        """That columns have values, or that tests hold (plans/sql/premises)."""
        self._noted(table, id).update(columns)

    def edges_of(self, node: UUID, edges: Iterable[UUID]) -> None:
        """That a node has these living edges and no others."""
        self.finds("nodes", node, edges=checksum_of(edges))

    def edges_between(self, a: UUID, b: UUID, edges: Iterable[UUID]) -> None:
        """That these living edges and no others join two nodes, whichever way they point."""
        self.finds("nodes", a, edges_with={"node": str(b), "are": checksum_of(edges)})

    def not_apart(self, table: str, id: UUID, pair: Sequence[str], state: str | None) -> None:
        """That nobody keeps a pair apart: for good, or while both are in this state."""
        low, high = sorted(pair)
        self.finds(table, id, not_apart=[low, high, state])

    def premises(self, changes: Iterable[Change]) -> tuple[Premise, ...]:
        """What was noted, but for what changes compare anyway."""
        compared = {(change.table, change.id): change.before or {} for change in changes}
        premises = (
            (row, {name: value for name, value in must.items() if name not in compared.get(row, {})})
            for row, must in self._seen.items()
        )
        return tuple(Premise(table=table, id=id, must=must) for (table, id), must in premises if must)

    def _noted(self, table: str, id: UUID) -> dict[str, Any]:
        return self._seen.setdefault((table, id), {})


class LookAtMany:
    """Questions put to the rows of a table all at once, in columns: each is a premise of every row that is chosen."""

    def __init__(self, table: str, **values: Any) -> None:
        self.table = table
        self.must: dict[str, Any] = dict(values)

    def below(self, test: str, values: "Values", bound: float) -> "Flags":
        self.must[test] = min(bound, self.must.get(test, bound))
        return values < bound

    def at_most(self, test: str, values: "Values", bound: float) -> "Flags":
        self.must[test] = min(bound, self.must.get(test, bound))
        return values <= bound

    def above(self, test: str, values: "Values", bound: float) -> "Flags":
        self.must[test] = max(bound, self.must.get(test, bound))
        return values > bound

    def at_least(self, test: str, values: "Values", bound: float) -> "Flags":
        self.must[test] = max(bound, self.must.get(test, bound))
        return values >= bound

    def lacks(self, test: str, flags: "Flags", value: Any = False) -> "Flags":
        """Those without a flag: a column that is false, or a test that says so."""
        self.must[test] = value
        return ~flags

    def one(self, draft: "Draft", id: UUID) -> Look:
        """The look at one of the rows."""
        look = draft.look()
        look.finds(self.table, id, **self.must)
        return look


class _Watched:
    """Stands for a thing, and notes which of its attributes are read."""

    __slots__ = ("_noted", "_thing")

    def __init__(self, thing: Any, noted: dict[str, Any]) -> None:
        self._thing, self._noted = thing, noted

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        if name != "id":
            self._noted[name] = as_json(value)
        return value


class _WatchedRow(Mapping[str, Any]):
    """Stands for a row, and notes which of its columns are read."""

    __slots__ = ("_noted", "_row")

    def __init__(self, row: Row, noted: dict[str, Any]) -> None:
        self._row, self._noted = row, noted

    def __getitem__(self, name: str) -> Any:
        self._noted[name] = self._row[name]
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)


def as_json(value: Any) -> Any:
    """A value of a row as plans compare it."""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def checksum_of(ids: Iterable[UUID]) -> str:
    """A set of rows in short, as the database reckons it too (plans/sql/premises)."""
    return md5(" ".join(sorted(map(str, ids))).encode(), usedforsecurity=False).hexdigest()


class Draft:
    """A plan being written, and the world as it will be once it is applied."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.findings: list[Finding] = []
        self.questions: list[PairQuestion] = []
        self._rows: dict[tuple[str, UUID], Row | None] = {}
        self._writer: dict[tuple[str, UUID], int] = {}

    def look(self) -> Look:
        """What the next decision looks at."""
        return Look(self)

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
        look: Look | None = None,
        needs: Iterable[int] = (),
    ) -> Decision:
        """Write one decision; it needs every earlier one that changed a row it changes or looked at."""
        written = tuple(change for change in changes if change is not None)
        relied = look.premises(written) if look is not None else ()
        rows = [
            *((change.table, change.id) for change in written),
            *((premise.table, premise.id) for premise in relied),
        ]
        needed = tuple(sorted({*needs, *(self._writer[row] for row in rows if row in self._writer)}))
        decision = Decision(
            number=len(self.decisions) + 1,
            verb=verb,
            subject=subject,
            reason=reason,
            changes=written,
            score=score,
            factors=factors or {},
            group=group,
            stage=self._stage(needed, group),
            needs=needed,
            premises=relied,
        )
        self.decisions.append(decision)
        for change in written:
            self._note(change, decision.number)
        return decision

    def note(self, rule: str, text: str, subject: UUID | None = None) -> None:
        """Remember something that was seen and left alone."""
        self.findings.append(Finding(rule=rule, text=text, subject=subject))

    def plan(
        self,
        *,
        title: str,
        now: datetime,
        policy: str = "",
        created_by: str = "user",
        risk: Risk = Risk.LOW,
        summary: Row | None = None,
    ) -> Plan:
        return Plan(
            policy=policy,
            title=title,
            created_at=now,
            decisions=self.decisions,
            created_by=created_by,
            risk=risk,
            summary=summary or {},
            findings=self.findings,
            questions=self.questions,
        )

    def _stage(self, needed: Iterable[int], group: int) -> int:
        stages = (self.decisions[number - 1] for number in needed)
        return max((decision.stage + 1 for decision in stages if decision.group == group), default=0)

    def _note(self, change: Change, number: int) -> None:
        key = (change.table, change.id)
        decided = self._rows.get(key)
        self._writer[key] = number
        # Most rows are changed once: then what was decided is the change's own row, and nothing is copied.
        self._rows[key] = {**decided, **change.after} if decided and change.after is not None else change.after


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
