"""Looking at cases: one, a list, a search; how they do, and what should worry somebody."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Literal
from uuid import UUID

from recollect.cases import sql as cases
from recollect.cases.rules.cases import checked_category, checked_outcome
from recollect.engine.core import Core, log
from recollect.errors import InvalidInput, NotFound
from recollect.model import (
    Case,
    CaseFilter,
    CaseHit,
    CaseHits,
    CaseOutcome,
    CasePage,
    CaseStatus,
    Hit,
    Kind,
    NodeFilter,
    Query,
)
from recollect.plan import Plan, PlanStatus
from recollect.plans import notices
from recollect.plans.sql import plans
from recollect.recall import recall
from recollect.recall.sql import logs
from recollect.schedules.sql import schedules
from recollect.schedules.sql.schedules import Schedule
from recollect.store.database import Transaction
from recollect.wording import check_limit, counted

LIMIT = 10
WARN_BELOW = 50.0
POLICIES = ("consolidate_cases", "archive_poor_cases", "merge_duplicate_cases", "archive_unused_cases")
LAST_RUNS = 5
LOOKED_AT = 50
# A merge or archiving between searching and reading takes hits away: so many more are asked for.
SPARE = 5


async def get(core: Core, space_id: UUID, id_: UUID) -> Case:
    """A case; asking for an archived one is worth a warning (E15)."""
    async with core.transaction(space_id) as db:
        case = await cases.get(db, id_)
    if case.status is CaseStatus.ARCHIVED:
        log.warning(
            "an archived case was asked for",
            case=str(id_),
            why=case.archived_reason,
            merged_into=None if case.merged_into is None else str(case.merged_into),
        )
    return case


async def list_page(
    core: Core, space_id: UUID, case_filter: CaseFilter, *, limit: int = 50, cursor: str | None = None
) -> CasePage:
    """A stretch of the cases that fit, newest first."""
    check_limit(limit)
    async with core.transaction(space_id) as db:
        return await cases.list_page(db, case_filter, limit=limit, cursor=cursor)


async def search(
    core: Core, space_id: UUID, question: str, *, category: str | None = None, limit: int = LIMIT
) -> CaseHits:
    """The cases whose queries are nearest to a question; each hit counts as a use (E31).

    While a run archives and merges, a search returns what it would have returned before or after: the cases are read in
    one look, and what left the bank since it was found is left out.
    """
    check_limit(limit)
    started = time.perf_counter()
    node_filter = NodeFilter(kinds=(Kind.CASE,), excluded=False, category=checked_category(category))
    query = Query(text=question, limit=min(limit + SPARE, recall.MOST), wanted=node_filter, weak=True)
    recalled = await recall.find(core, space_id, query)
    async with core.transaction(space_id) as db:
        read = await cases.get_many(db, [hit.node.id for hit in recalled])
    active = {case.case_id: case for case in read if case.status is CaseStatus.ACTIVE}
    recalled = replace(recalled, hits=tuple(hit for hit in recalled if hit.node.id in active)[:limit])
    logged = await recall.note(core, space_id, recalled, query=query)
    return CaseHits(
        query=question,
        hits=tuple(_hit(active[hit.node.id], hit, core.now()) for hit in recalled),
        id=logged,
        latency_ms=round((time.perf_counter() - started) * 1000, 2),
        notes=recalled.notes,
    )


def _hit(case: Case, hit: Hit, now: datetime) -> CaseHit:
    """A hit, with this use counted."""
    used = replace(case, usage_count=case.usage_count + 1, last_accessed_at=now)
    return CaseHit(case=used, score=hit.score, similarity=hit.parts.cosine)


# -- how they do


async def record_outcome(
    core: Core, space_id: UUID, id_: UUID, outcome: CaseOutcome, *, search: UUID | str | None = None
) -> Case:
    """Note how a use of a case went. It belongs to the answer that was given, also where that was merged since.

    The outcome counts as a use (E35). `search` names the search that handed the case out: it counted that use already.
    """
    now = core.now()
    checked = checked_outcome(outcome, now)
    async with core.transaction(space_id) as db:
        await cases.get(db, id_)
        if search is not None:
            await _refuse_unless_found(db, id_, str(search))
        await cases.add_outcome(db, id_, checked, now, uses=1 if search is None else 0)
        return await cases.get(db, id_)


async def _refuse_unless_found(db: Transaction, id_: UUID, search: str) -> None:
    logged = await logs.get(db, search)
    if id_ not in logged.memory_ids:
        raise InvalidInput(f"The search {logged.id} did not find the case {id_}: leave it out.", field="search")


async def outcomes(core: Core, space_id: UUID, id_: UUID, *, limit: int = 100) -> Sequence[CaseOutcome]:
    check_limit(limit)
    async with core.transaction(space_id) as db:
        await cases.get(db, id_)
        return await cases.outcomes_of(db, id_, limit=limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorType:
    """Why uses failed (None: nobody said), and how often."""

    error_type: str | None
    times: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseWarning:
    """A case that fails too often, and why."""

    case: Case
    errors: tuple[ErrorType, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reflection:
    """How the active cases do: `rated` of them have a success rate. The worst are listed, and why they fail."""

    cases: int
    rated: int
    mean_success_rate: float | None
    warn_below: float
    warned: int
    warnings: tuple[CaseWarning, ...]
    errors: tuple[ErrorType, ...]


async def reflection(core: Core, space_id: UUID, *, warn_below: float = WARN_BELOW, limit: int = 20) -> Reflection:
    """E31: success rates, the warning list, and the commonest errors of those on it."""
    check_limit(limit)
    if not 0 <= warn_below <= 100:
        raise InvalidInput(f"A success rate is percent, from 0 to 100, not {warn_below}.", field="warn_below")
    async with core.transaction(space_id) as db:
        totals = await cases.totals(db, warn_below=warn_below)
        worst = await cases.get_many(db, await cases.worst(db, below=warn_below, limit=limit))
        errors = await cases.error_types(db, [case.case_id for case in worst])
    total = Counter[str | None]()
    for counts in errors.values():
        total.update(dict(counts))
    return Reflection(
        cases=totals.cases,
        rated=totals.rated,
        mean_success_rate=totals.mean_rate,
        warn_below=warn_below,
        warned=totals.warned,
        warnings=tuple(CaseWarning(case=case, errors=_errors(errors.get(case.case_id, ()))) for case in worst),
        errors=_errors(total.most_common()),
    )


def _errors(counts: Iterable[tuple[str | None, int]]) -> tuple[ErrorType, ...]:
    return tuple(ErrorType(error_type=name, times=times) for name, times in counts)


# -- the bank as a whole


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseRun:
    """A plan of the case bank: what it is, and what became of it."""

    plan_id: UUID
    title: str
    status: PlanStatus
    created_at: datetime
    counts: Mapping[str, int]
    waits: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The bank at a glance: what is active, what rests and why, what waits for approval, what was done last."""

    active: int
    archived: int
    merged: int
    archived_by_reason: Mapping[str, int]
    usage_count: int
    rated: int
    mean_success_rate: float | None
    warned: int
    without_vector: int
    # Of those, how many the model cannot read: they are found by words alone.
    unreadable: int
    waiting: tuple[CaseRun, ...]
    last_runs: tuple[CaseRun, ...]
    next_run_at: datetime | None
    last_outcome: str | None


async def summary(core: Core, space_id: UUID) -> Summary:
    async with core.transaction(space_id) as db:
        counts = await cases.counts(db)
        totals = await cases.totals(db, warn_below=WARN_BELOW)
        waiting, last = await _plans(db)
    scheduled = await _scheduled(core, space_id)
    retired = {reason or "by_hand": number for (status, reason), number in counts.items() if status != "active"}
    return Summary(
        active=totals.cases,
        archived=sum(number for (status, _), number in counts.items() if status == "archived"),
        merged=sum(number for (status, _), number in counts.items() if status == "merged"),
        archived_by_reason=retired,
        usage_count=totals.uses,
        rated=totals.rated,
        mean_success_rate=totals.mean_rate,
        warned=totals.warned,
        without_vector=totals.without_vector,
        unreadable=totals.unreadable,
        waiting=waiting,
        last_runs=last,
        next_run_at=scheduled.next_run_at if scheduled and scheduled.enabled else None,
        last_outcome=scheduled.last_outcome if scheduled else None,
    )


async def _plans(db: Transaction) -> tuple[tuple[CaseRun, ...], tuple[CaseRun, ...]]:
    """What waits for approval, and what was run last, of all policies of the bank."""
    waiting: list[CaseRun] = []
    last: list[CaseRun] = []
    for policy in POLICIES:
        heads, _ = await plans.list_heads(db, policy=policy, limit=LOOKED_AT)
        # A plan that was made before one that was carried out is of the past: a rehearsal, or overtaken.
        waiting += [_run(plan) for plan in takewhile(_is_waiting, heads) if plan.counts]
        last += [_run(plan) for plan in heads if not _is_waiting(plan)]
    last.sort(key=lambda run: run.created_at, reverse=True)
    return tuple(waiting), tuple(last[:LAST_RUNS])


def _is_waiting(plan: Plan) -> bool:
    return plan.status is PlanStatus.PROPOSED


def _run(plan: Plan) -> CaseRun:
    return CaseRun(
        plan_id=plan.id,
        title=plan.title,
        status=plan.status,
        created_at=plan.created_at,
        counts=plan.counts,
        waits=plan.summary.get("waits"),
    )


async def _scheduled(core: Core, space_id: UUID) -> Schedule | None:
    async with core.database.owner() as connection:
        try:
            return await schedules.get(connection, space_id, POLICIES[0])
        except NotFound:
            return None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHealth:
    """Whether the bank needs somebody: `problems` are sentences that say what to do."""

    status: Literal["ok", "attention"]
    problems: tuple[str, ...]
    checked_at: datetime


async def health(core: Core, space_id: UUID) -> CaseHealth:
    now = await summary(core, space_id)
    problems = tuple(_problems(core, now))
    return CaseHealth(status="attention" if problems else "ok", problems=problems, checked_at=core.now())


def _problems(core: Core, now: Summary) -> Iterator[str]:
    for run in now.waiting:
        short = str(run.plan_id)[:8]
        yield f"A plan waits for approval ({run.title}): `recollect plan show {short}`, `recollect apply {short}`."
    if now.warned:
        which = counted(now.warned, "case succeeds", "cases succeed")
        yield f"{which} in fewer than {WARN_BELOW:g} % of the uses: `recollect cases reflect`."
    if waiting := now.without_vector - now.unreadable:
        yield f"{counted(waiting, 'case')} cannot be found by meaning yet: `recollect work` embeds them."
    if now.last_outcome is not None and now.last_outcome.startswith("failed"):
        yield f"The last scheduled run {now.last_outcome}"
    if now.active and not notices.is_anybody_told(core):
        yield "Nobody is told before cases are retired, so such plans wait: RECOLLECT_NOTIFY names who is."
