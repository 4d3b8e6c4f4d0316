"""What is done by itself: which policies come when, and one run of one of them.

A schedule is a row, its next time moved on after a run and not before: a run that was killed is still due, and one that
was missed, however often, is caught up once. Each run holds a lock of its own, so that nothing runs twice at once.
schedules/scheduler.py asks again and again what is due; scheduling.py is how people look at it and change it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from recollect.engine import care
from recollect.engine.core import Core
from recollect.errors import Busy, InvalidInput, NotFound, RecollectError
from recollect.logs import Logger
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus
from recollect.plans import notices, show
from recollect.plans import run as running
from recollect.plans.policy import Policy
from recollect.plans.registry import POLICIES, policy_named
from recollect.plans.run import Tidied
from recollect.plans.sql import plans
from recollect.ports import Notice
from recollect.schedules.rules.timing import Timing, next_time
from recollect.schedules.sql import schedules
from recollect.schedules.sql.schedules import Schedule
from recollect.store.database import Transaction
from recollect.store.locks import Lock
from recollect.wording import counted

log = Logger("recollect.scheduler")

HOME = "default"
DAILY_MINUTES = 1440
# Spaces were often made at the same moment; their tidying need not begin at the same moment.
JITTER_SECONDS = 300
LONGEST_OUTCOME = 500
SCHEDULE = "schedule"
# As many plans as runs may have left: far more than ever are.
MOST_LEFT = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What came of one run: in a sentence, and for policies with the ids of its plan and its report."""

    name: str
    status: Literal["done", "waiting", "partly failed", "skipped"]
    outcome: str
    plan_id: UUID | None = None
    run_id: UUID | None = None
    warnings: tuple[str, ...] = ()
    report: Mapping[str, Any] = field(default_factory=dict)


# -- what there is


async def _maintain(core: Core) -> Mapping[str, Any]:
    return await care.maintain(core)


# What concerns the whole house is scheduled once, in the space that is always there.
CHORES: dict[str, Callable[[Core], Awaitable[Mapping[str, Any]]]] = {"maintain": _maintain}


def known() -> tuple[str, ...]:
    """Everything that can be scheduled."""
    return (*CHORES, *POLICIES)


def full_name(name: str) -> str:
    """The name under which something is scheduled, also for what people say (`prune`)."""
    if name in CHORES:
        return name
    try:
        return policy_named(name).name
    except InvalidInput as error:
        raise NotFound(
            f"Nothing called {name[:60]!r} can be scheduled: `recollect schedules` lists what is."
        ) from error


def check_settings(core: Core) -> None:
    """Say at once, not at night, when nobody can be told or there is no such time zone."""
    core.notifiers()
    zone_named(core.settings.time_zone)


def usual_timing(core: Core, name: str) -> Timing | None:
    """How often something is done unless a person says otherwise; None for what is done only where it is asked for."""
    if name in CHORES:
        return Timing(every_minutes=DAILY_MINUTES)
    policy = POLICIES[name]
    if policy.cron is not None:
        return Timing(cron=policy.cron, time_zone=core.settings.time_zone)
    if policy.every_minutes is not None:
        return Timing(every_minutes=policy.every_minutes, jitter_seconds=JITTER_SECONDS)
    return None


async def register(core: Core) -> None:
    """Give every space the usual schedules that it lacks; what a person changed stays."""
    timings = {name: timing for name in known() if (timing := usual_timing(core, name))}
    async with core.database.owner() as connection:
        missing = await schedules.missing(connection, list(timings))
        new_schedules = [
            timed(core, space_id, slug, name, timings[name])
            for space_id, slug, name in missing
            if name not in CHORES or slug == HOME
        ]
        await schedules.add(connection, new_schedules)


def timed(core: Core, space_id: UUID, slug: str, name: str, timing: Timing) -> Schedule:
    return Schedule(
        space_id=space_id,
        space=slug,
        name=name,
        every_minutes=timing.every_minutes,
        cron=timing.cron,
        time_zone=timing.time_zone,
        jitter_seconds=timing.jitter_seconds,
        next_run_at=next_for(core, space_id, name, timing),
    )


def next_for(core: Core, space_id: UUID, name: str, timing: Timing, due: datetime | None = None) -> datetime:
    zone = zone_named(timing.time_zone)
    return next_time(timing, zone=zone, now=core.now(), who=f"{space_id} {name}", due=due)


def zone_named(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput(
            f"There is no time zone {name[:60]!r}: give a name like Europe/Berlin, or UTC.", field="time_zone"
        ) from error


# -- running


async def due(core: Core) -> Sequence[Schedule]:
    """What should be done now, in all spaces, longest due first."""
    async with core.database.owner() as connection:
        return await schedules.due(connection, known(), core.now())


async def run(core: Core, schedule: Schedule, *, by_hand: bool = False) -> Ran | None:
    """Do what is scheduled; None when somebody did it meanwhile. Whatever comes of it is written down."""
    async with Lock(core.database, f"schedule {schedule.space_id} {schedule.name}") as lock:
        if not await lock.take():
            raise Busy(f"{schedule.name} is running at this moment: `recollect schedules` shows when it is done.")
        async with core.database.owner() as connection:
            current = await schedules.get(connection, schedule.space_id, schedule.name)
        if not by_hand and not current.is_due(core.now()):
            return None
        return await _Running(core, current, by_hand=by_hand).run()


class _Running:
    """One run of one schedule."""

    def __init__(self, core: Core, schedule: Schedule, *, by_hand: bool) -> None:
        self.core, self.schedule, self.by_hand = core, schedule, by_hand
        self.space_id, self.name = schedule.space_id, schedule.name
        self.started_at, self.started = core.now(), time.perf_counter()
        self.log = log.bind(schedule=self.name, space=schedule.space)
        self.finished: list[Tidied] = []

    async def run(self) -> Ran:
        try:
            ran = await self._do()
        except Busy:
            raise  # another plan is being applied: it is still due
        except Exception as problem:
            await self._failed(problem)
            raise
        async with self.core.transaction(self.space_id) as db:
            ran = await self._leave_report(db, ran)
            await self._move_on(db, ran.outcome)
        await self._tell(ran)
        return ran

    # -- the work

    async def _do(self) -> Ran:
        if self.name in CHORES:
            report = await CHORES[self.name](self.core)
            self.log.info("scheduled run done", **report)
            return Ran(name=self.name, status="done", outcome="done", report=report)
        policy = POLICIES[self.name]
        closed = await running.gate(self.core, self.space_id) if policy.gated else None
        if closed and not self.by_hand:
            self.log.info("skipped", why=closed)
            return Ran(name=self.name, status="skipped", outcome=f"skipped: {closed}")
        return await self._tidy(policy, closed)

    async def _tidy(self, policy: Policy, closed: str | None) -> Ran:
        tidied = await self._tidied()
        sentence = "; ".join([await self._said(policy, tidied), *await self._said_of_finished(policy)])
        if not policy.quiet or (tidied.outcome is not None and tidied.outcome.applied):
            self.log.info(sentence, plan=str(tidied.plan.id))
        return Ran(
            name=self.name,
            status=_status(tidied),
            outcome=_outcome(sentence, tidied),
            plan_id=tidied.plan.id if tidied.plan.counts else None,
            warnings=self._warnings(closed),
            report=await self._report(policy, tidied, sentence),
        )

    async def _tidied(self) -> Tidied:
        """Finish what an earlier run left, then propose anew; while a plan of ours waits, no second one is made."""
        if self.by_hand:
            return await running.run(self.core, self.space_id, self.name, self.schedule.options, created_by="user")
        for plan in await self._left():
            if plan.status is PlanStatus.PROPOSED and not running.applies_by_itself(self.core, plan):
                return Tidied(plan=plan, outcome=None, notes=(_still_waits(plan),))
            self.log.info("finishing what an earlier run left", plan=str(plan.id))
            tidied = await running.carry_out(self.core, self.space_id, plan, by=SCHEDULE)
            if tidied.outcome is None:
                return tidied
            self.finished.append(tidied)
        return await running.run(self.core, self.space_id, self.name, self.schedule.options, created_by=SCHEDULE)

    async def _left(self) -> list[Plan]:
        """Plans of earlier runs that were neither carried out to the end nor declined."""
        left_over: list[Plan] = []
        async with self.core.transaction(self.space_id) as db:
            for status in (PlanStatus.PROPOSED, PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED):
                heads, _ = await plans.list_heads(
                    db, status=status, policy=self.name, created_by=SCHEDULE, limit=MOST_LEFT
                )
                left_over += [plan for plan in heads if plan.counts.get("proposed")]
        return left_over

    def _warnings(self, closed: str | None) -> tuple[str, ...]:
        """A27: whoever runs it by hand may pass the gate, and is told that it is closed."""
        if closed is None:
            return ()
        self.log.warning("run by hand although the gate is closed", why=closed)
        return (f"The schedule would not have run this: {closed}.",)

    async def _said(self, policy: Policy, tidied: Tidied) -> str:
        """A26: what was done, in the policy's words."""
        summary, outcome = tidied.plan.summary, tidied.outcome
        if outcome is not None and outcome.applied == len(tidied.plan.decisions):
            return policy.says.format_map(summary)
        if policy.tally is None:
            return policy.says.format_map(_Everywhere(outcome.applied if outcome else 0))
        async with self.core.transaction(self.space_id) as db:
            applied = await plans.decisions_of(db, tidied.plan.id, status=DecisionStatus.APPLIED, with_changes=False)
        return policy.says.format_map(policy.tally(summary, applied))

    async def _said_of_finished(self, policy: Policy) -> list[str]:
        """P22: what was done of plans that an earlier run had left."""
        return [
            f"finished the plan {str(tidied.plan.id)[:8]} of {tidied.plan.created_at:%Y-%m-%d}:"
            f" {await self._said(policy, tidied)}, {counted(tidied.outcome.applied, 'decision')} of it now"
            for tidied in self.finished
            if tidied.outcome is not None
        ]

    async def _report(self, policy: Policy, tidied: Tidied, sentence: str) -> dict[str, Any]:
        """P14 and A29, of the whole run: proposing, and applying where it was applied."""
        applied = [await self._applied(tidying.outcome) for tidying in (*self.finished, tidied)]
        measured = {
            "seconds": round(time.perf_counter() - self.started, 4),
            "freed_bytes": sum(figures.get("freed_bytes", 0) for figures in applied),
        }
        states = ("applied", "stale", "declined", "failed")
        return {
            "schedule": self.name,
            "said": sentence,
            "status": _status(tidied),
            "looked_at": sum(tidied.plan.summary.get("scope", {}).values()),
            "planned": sum(sum(tidying.plan.counts.values()) for tidying in (*self.finished, tidied)),
            **{state: sum(figures.get(state, 0) for figures in applied) for state in states},
            **measured,
            "notes": [*tidied.notes],
            **({"finished": [str(tidying.plan.id) for tidying in self.finished]} if self.finished else {}),
            "metrics": dict(policy.metrics(tidied.plan.summary, measured)) if policy.metrics else {},
        }

    async def _applied(self, outcome: Outcome | None) -> Mapping[str, Any]:
        """What the applying itself reported, if there was one."""
        if outcome is None or outcome.run_id is None:
            return {}
        # The plan's report counts what earlier runs applied of it too; this one did so many.
        report = (await show.get_run(self.core, self.space_id, outcome.run_id)).report
        return {**report, "applied": outcome.applied}

    # -- what is written down

    async def _leave_report(self, db: Transaction, ran: Ran) -> Ran:
        """A run that was skipped was none, and a chore keeps its own record."""
        if ran.status == "skipped" or self.name in CHORES:
            return ran
        return replace(ran, run_id=await self._note_run(db, ran.plan_id, ran.report, "done"))

    async def _note_run(self, db: Transaction, plan_id: UUID | None, report: Mapping[str, Any], status: str) -> UUID:
        run_id = await plans.start_run(db, plan_id, SCHEDULE, report, self.started_at)
        await plans.note_run(db, run_id, {}, status=status, finished_at=self.core.now())
        return run_id

    async def _move_on(self, db: Transaction, outcome: str) -> None:
        """Only now is it no longer due. Run by hand before its time, it comes at its time all the same."""
        schedule, now = self.schedule, self.core.now()
        due = schedule.next_run_at
        following = next_for(self.core, self.space_id, self.name, schedule.timing, due) if due <= now else due
        shown = outcome if len(outcome) <= LONGEST_OUTCOME else outcome[: LONGEST_OUTCOME - 3] + "..."
        await schedules.note(db.connection, schedule, ran_at=self.started_at, outcome=shown, next_at=following)

    async def _failed(self, problem: Exception) -> None:
        """It comes again at its next time; until then somebody should look."""
        why = problem.message if isinstance(problem, RecollectError) else f"{type(problem).__name__}: {problem}"
        report = {"schedule": self.name, "status": "failed", "why": why}
        async with self.core.transaction(self.space_id) as db:
            await self._note_run(db, None, report, "failed")
            await self._move_on(db, f"failed: {why}")
        await self._notice("failed", f"{self.name} failed", why, report)

    # -- who is told

    async def _tell(self, ran: Ran) -> None:
        title = POLICIES[self.name].report if self.name in POLICIES else None
        if ran.status == "waiting":
            await self._notice("waiting", "A plan waits for approval", _how_to_approve(ran), ran.report)
        elif ran.status == "partly failed":
            await self._notice("failed", f"{self.name} failed in part", ran.outcome, ran.report)
        if title is not None and ran.status != "skipped" and ran.report.get("looked_at"):
            await self._notice("report", title, as_text(ran), ran.report)

    async def _notice(
        self, kind: Literal["waiting", "failed", "report"], title: str, text: str, facts: Mapping[str, Any]
    ) -> None:
        notice = Notice(kind=kind, title=title, text=text, space=self.schedule.space, at=self.core.now(), facts=facts)
        await notices.tell(self.core, notice)


class _Everywhere(dict[str, int]):
    """The same number under every name."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __missing__(self, _key: str) -> int:
        return self._number


def _status(tidied: Tidied) -> Literal["done", "waiting", "partly failed"]:
    if tidied.outcome is None:
        return "waiting" if tidied.plan.counts else "done"
    return "partly failed" if tidied.outcome.failed else "done"


def _outcome(sentence: str, tidied: Tidied) -> str:
    """One sentence for the table: what was done, or why it waits, and what was left undone."""
    outcome = tidied.outcome
    if outcome is None:
        return " ".join(tidied.notes) if tidied.plan.counts else sentence
    left = {"stale": len(outcome.stale), "failed": len(outcome.failed)}
    undone = ", ".join(f"{number:,} {state}" for state, number in left.items() if number)
    return f"{sentence} ({undone})" if undone else sentence


def _still_waits(plan: Plan) -> str:
    why = plan.summary.get("waits", "its risk is high")
    return f"The plan of {plan.created_at:%Y-%m-%d} still waits for approval: {why}."


def _how_to_approve(ran: Ran) -> str:
    short = str(ran.plan_id)[:8]
    return (
        f"{ran.name}: {ran.outcome} `recollect plan show {short}` shows it, `recollect apply {short}` carries it out."
    )


def as_text(ran: Ran) -> str:
    """A report for people: what was done, how many, how long, and which figures are off their target."""
    report = ran.report
    counts = ", ".join(f"{report[state]:,} {state}" for state in ("planned", "applied", "stale", "declined", "failed"))
    lines = [f"{ran.outcome}.", f"{counts}; {report['seconds']:.1f} s."]
    for name, figure in report["metrics"].items():
        mark = "in target" if figure["in_target"] else "OUT OF TARGET"
        lines.append(f"{name}: {figure['value']:.4g} ({mark}: {figure['target']})")
    return "\n".join(lines)
