"""Applying: one at a time in a space; each group of a plan is one transaction, audited inside it (P05).

A run that was killed left each group in its old or its new state: applying the plan again goes on where it stopped.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import Busy, Conflict, RecollectError
from recollect.logs import Logger
from recollect.memories.remember import models_of
from recollect.memories.sql import jobs
from recollect.plan import DecisionStatus, Outcome, Plan, PlanStatus, overall
from recollect.plans.propose import anew, options_of, policy_of, propose
from recollect.plans.review import decline_in
from recollect.plans.sql import changes, locks, plans
from recollect.plans.sql.reader import StoreReader
from recollect.plans.sql.work import AppliedGroups
from recollect.store.database import Transaction

log = Logger("recollect.consolidate")

Progress = Callable[[int, int], None]
Started = Callable[[UUID], None]
Trying = Callable[[UUID], None]
TRIES = 3
# So many decisions share a transaction at most, where a policy lets its groups share one.
MOST_TOGETHER = 500


async def apply(
    core: Core,
    space_id: UUID,
    plan_id: UUID,
    *,
    decline: Sequence[int] = (),
    by: str = "user",
    progress: Progress | None = None,
    started: Started | None = None,
    trying: Trying | None = None,
) -> Outcome:
    """Carry out a plan, group by group; a plan that was interrupted goes on. Applying twice is success.

    Every door comes through here (P21). A policy may plan anew without what was declined, and try again what failed:
    then several plans are applied, one after the other, and `trying` is told each.
    """
    wishes = _Said(by=by, progress=progress, started=started, trying=trying)
    applied = 0
    async with _turn(core, space_id):
        applying: _Applying | None = await _settled(core, space_id, plan_id, decline, wishes)
        while applying is not None:
            outcome = await applying.run()
            applied += outcome.applied
            applying = await _next_try(core, space_id, outcome, wishes)
    return replace(outcome, applied=applied)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Said:
    """Who applies, and whom to tell how far it is."""

    by: str
    progress: Progress | None
    started: Started | None
    trying: Trying | None


async def _settled(core: Core, space_id: UUID, plan_id: UUID, decline: Sequence[int], wishes: _Said) -> "_Applying":
    """The plan to apply, ready: this one less what is declined, or the one its policy makes without that.

    Being approved and begun reaches the disk with the first group; what is declined is waited for here.
    """
    async with core.transaction(space_id, in_passing=not decline) as db:
        plan = await _in_force(db, plan_id)
        if decline and plan.id != plan_id:
            raise Conflict(f"The plan {plan_id} was replaced by {plan.id}: look at that one, its numbers are others.")
        _refuse_ended(plan)
        if decline:
            await decline_in(core, db, plan, decline, never=False)
        options = await _options_without_declined(db, plan)
        if options is None:
            return await _ready(core, db, plan, wishes)
    return await _taken_up(core, space_id, (await anew(core, space_id, plan, options, wishes.by)).id, wishes)


async def _options_without_declined(db: Transaction, plan: Plan) -> Mapping[str, Any] | None:
    """How its policy plans anew without what was declined; None where it does not, or nothing was or nothing waits."""
    policy = policy_of(plan)
    if policy is None or policy.without is None:
        return None
    declined = await plans.decisions_of(db, plan.id, status=DecisionStatus.DECLINED, with_changes=False)
    return policy.without(plan, declined) if declined and await plans.groups_to_do(db, plan.id) else None


async def _taken_up(core: Core, space_id: UUID, plan_id: UUID, wishes: _Said) -> "_Applying":
    async with core.transaction(space_id) as db:
        return await _ready(core, db, await plans.head(db, plan_id, lock=True), wishes)


async def _ready(core: Core, db: Transaction, plan: Plan, wishes: _Said) -> "_Applying":
    """A plan, approved, with what failed waiting again, on its way into the tables."""
    if wishes.trying is not None:
        wishes.trying(plan.id)
    if plan.status is PlanStatus.PROPOSED:
        moments = {"approved_at": core.now(), "approved_by": wishes.by}
        await plans.set_status(db, plan.id, PlanStatus.APPROVED, **moments)
    else:
        await plans.retry_failed(db, plan.id)
    applying = _Applying(core, db.space_id, plan, wishes)
    await applying.begin(db)
    return applying


async def _in_force(db: Transaction, plan_id: UUID) -> Plan:
    """A plan, or the one that has taken its place."""
    plan = await plans.head(db, plan_id, lock=True)
    while later := plan.summary.get("replaced_by"):
        plan = await plans.head(db, UUID(later), lock=True)
    return plan


async def _next_try(core: Core, space_id: UUID, outcome: Outcome, wishes: _Said) -> "_Applying | None":
    """Another try at what failed, where its policy knows one."""
    if not outcome.failed:
        return None
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, outcome.plan_id)
        failed = await plans.decisions_of(db, plan.id, status=DecisionStatus.FAILED, with_changes=False)
    policy = policy_of(plan)
    options = policy.again(plan, failed) if policy and policy.again else None
    if options is None:
        log.error("a plan could not be applied as a whole", plan=str(plan.id), why=outcome.failed[0])
        return None
    new_plan = await propose(core, space_id, plan.policy, options, created_by=wishes.by)
    log.warning("what failed is tried again", plan=str(new_plan.id), why=outcome.failed[0])
    return await _taken_up(core, space_id, new_plan.id, wishes) if new_plan.decisions else None


@asynccontextmanager
async def _turn(core: Core, space_id: UUID) -> AsyncIterator[None]:
    """One applying or undoing at a time in a space, over all processes."""
    async with core.applying, core.database.owner() as connection:
        await locks.take_turn(Transaction(connection, space_id))
        yield


def _refuse_ended(plan: Plan) -> None:
    if later := plan.summary.get("superseded_by"):
        raise Conflict(f"The plan {plan.id} was replaced by {later}: look at that one.")
    if plan.status in (PlanStatus.DECLINED, PlanStatus.UNDONE, PlanStatus.STALE):
        raise Conflict(f"The plan {plan.id} is {plan.status}: propose a new one.")


async def _as_it_is(db: Transaction, plan_id: UUID) -> Outcome:
    plan = await plans.head(db, plan_id)
    counts = plan.counts
    return Outcome(
        plan_id=plan_id,
        status=plan.status,
        applied=counts.get("applied", 0),
        declined=counts.get("declined", 0),
        repeated=True,
    )


class AuditFailed(RecollectError):
    """What was written is not what should be there: the group is taken back."""

    code = "audit_failed"


def together(groups: Sequence[plans.PlanGroup], most: int) -> Iterator[list[plans.PlanGroup]]:
    """Groups that follow each other, so many at a time as long as they are small."""
    batch: list[plans.PlanGroup] = []
    for group in groups:
        if batch and (len(batch) >= most or sum(member.size for member in batch) + group.size > MOST_TOGETHER):
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch


@dataclass(frozen=True, kw_only=True, slots=True)
class _HowFar:
    """How far a run is: decisions seen and applied, and how large the edges are that left the living graph."""

    seen: int = 0
    applied: int = 0
    freed_bytes: int = 0

    def further(self, seen: int, applied: int = 0, freed_bytes: int = 0) -> "_HowFar":
        return _HowFar(
            seen=self.seen + seen, applied=self.applied + applied, freed_bytes=self.freed_bytes + freed_bytes
        )


class _Applying:
    """One run of a plan."""

    def __init__(self, core: Core, space_id: UUID, plan: Plan, wishes: _Said) -> None:
        self.core, self.space_id, self.plan = core, space_id, plan
        self.policy = policy_of(plan)
        self.progress = wishes.progress or (lambda _done, _total: None)
        self.has_started = wishes.started or (lambda _run_id: None)
        self.started = time.perf_counter()
        self.total = 0
        self.far = _HowFar()
        self.stale: dict[int, str] = {}
        self.failed: dict[int, str] = {}
        # Once it has ended; or from the beginning, where nothing waits.
        self.outcome: Outcome | None = None

    async def begin(self, db: Transaction) -> None:
        """Look at what waits, once more where it rests on much, and say so in a run."""
        self.groups = await plans.groups_to_do(db, self.plan.id)
        if not self.groups:
            if await plans.is_unfinished(db, self.plan.id):
                await changes.finish(db, self.plan.id, self.core.now())
            self.outcome = await _as_it_is(db, self.plan.id)
            return
        self.losses = await locks.losses(db) if self._may_recheck else 0
        if not await self._is_as_seen(db) and await self._recheck(db):
            self.groups = await plans.groups_to_do(db, self.plan.id)
        self.total = sum(group.size for group in self.groups)
        about = {"policy": self.plan.policy, "total": self.total, "done": 0}
        self.run_id = await plans.start_run(db, self.plan.id, "apply", about, self.core.now())

    async def run(self) -> Outcome:
        if self.outcome is not None:
            return self.outcome
        self.has_started(self.run_id)
        self.progress(0, self.total)
        for batch in together(self.groups, self.policy.together if self.policy else 1):
            await self._groups(batch)
            self.progress(self.far.seen, self.total)
        if self.outcome is None:
            async with self.core.transaction(self.space_id) as db:
                self.outcome = await self._finish(db, self.far)
        return self.outcome

    @property
    def _may_recheck(self) -> bool:
        return self.policy is not None and self.policy.recheck is not None

    async def _is_as_seen(self, db: Transaction) -> bool:
        """Whether a plan that rests on the graph alone is about the very graph that there is."""
        alone = self.policy is not None and self.policy.rechecks_the_graph_alone
        return alone and self.plan.seen == await plans.version(db)

    async def _recheck(self, db: Transaction) -> bool:
        """Decisions that rest on more than their own rows (a bridge, say) are looked at once more: has any moved?"""
        if self.policy is None or self.policy.recheck is None:
            return False
        waiting = await plans.waiting(db, self.plan.id)
        chosen = options_of(self.policy, self.plan.options)
        reader = StoreReader(db)
        moved = await self.policy.recheck(reader, waiting, chosen, self.core.now())
        await plans.mark(db, self.plan.id, moved, DecisionStatus.STALE)
        self.stale |= moved
        return bool(moved)

    async def _groups(self, batch: Sequence[plans.PlanGroup]) -> None:
        """Small groups share a transaction; where one of them fails, each is tried in its own (P05)."""
        if len(batch) > 1:
            try:
                await self._write(batch)
                return
            except (AuditFailed, Conflict):
                log.info("groups are written one by one", plan=str(self.plan.id), groups=len(batch))
        for group in batch:
            await self._group(group)

    async def _group(self, group: plans.PlanGroup) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._write([group])
                return
            except Busy as problem:
                if attempt == TRIES:
                    await self._fail(group, problem.message)
            except (AuditFailed, Conflict) as problem:
                await self._fail(group, problem.message)
                return

    async def _write(self, batch: Sequence[plans.PlanGroup]) -> None:
        """One transaction: written, audited, counted; with the last of them the run has ended. The disk is waited for
        then, once for all."""
        core, size = self.core, sum(group.size for group in batch)
        is_last = self.far.seen + size == self.total
        async with core.transaction(self.space_id, in_passing=not is_last) as db:
            losses = await self._graph_as_known(db)
            done = await changes.apply_groups(db, self.plan.id, batch, core.now())
            await self._embed_what_was_made(db, done.applied)
            await self._audit(db, done)
            far = self.far.further(size, len(done.applied), done.freed_bytes)
            if is_last:
                outcome = await self._finish(db, far, done.stale)
            else:
                await self._note_how_far(db, far)
        self.losses, self.far = losses + 1, far
        self.stale |= done.stale
        if is_last:
            self.outcome = outcome

    async def _note_how_far(self, db: Transaction, far: "_HowFar") -> None:
        await plans.note_run(db, self.run_id, {"done": far.seen, "applied": far.applied})
        if far.applied and not self.far.applied:
            await plans.set_status(db, self.plan.id, PlanStatus.PARTLY_APPLIED)

    async def _graph_as_known(self, db: Transaction) -> int:
        """Hold the graph alone; where others took something out of it since the last look, look again (P17)."""
        losses = await locks.hold_graph_alone(db)
        if self._may_recheck and losses != self.losses:
            await self._recheck(db)
        return losses

    async def _embed_what_was_made(self, db: Transaction, applied: Sequence[int]) -> None:
        if self.policy is None or not self.policy.makes_nodes:
            return
        core = self.core
        space = await spaces.by_id(db)
        await jobs.enqueue_made(
            db,
            self.plan.id,
            applied,
            models=models_of(core, space),
            max_attempts=core.settings.job_max_attempts,
            now=core.now(),
        )

    async def _audit(self, db: Transaction, done: AppliedGroups) -> None:
        """What a policy looks at in what it has written; that no edge hangs in the air, the database sees to."""
        if self.policy is None or self.policy.audit is None:
            return
        written = await plans.decisions_of(
            db, self.plan.id, numbers=done.applied, with_changes=self.policy.audits_changes
        )
        if wrong := await self.policy.audit(StoreReader(db), written):
            raise AuditFailed(f"The audit found: {'; '.join(wrong[:3])}.")

    async def _fail(self, group: plans.PlanGroup, why: str) -> None:
        """A group that could not be written leaves no trace but this."""
        async with self.core.transaction(self.space_id) as db:
            waiting = await plans.decisions_of(db, self.plan.id, group=group.number, status=DecisionStatus.PROPOSED)
            notes = {decision.number: why for decision in waiting}
            await plans.mark(db, self.plan.id, notes, DecisionStatus.FAILED)
        self.far = self.far.further(group.size)
        self.failed |= notes
        log.warning("a group of a plan failed", plan=str(self.plan.id), group=group.number, why=why)

    async def _finish(self, db: Transaction, far: "_HowFar", stale: Mapping[int, str] | None = None) -> Outcome:
        """Say what became of the plan, of the decisions that have just gone stale too."""
        core = self.core
        counts = await changes.finish(db, self.plan.id, core.now())
        status = overall(counts)
        report = self._report(status, counts, far)
        await plans.note_run(db, self.run_id, report, status="done", finished_at=core.now())
        return Outcome(
            plan_id=self.plan.id,
            status=status,
            applied=far.applied,
            stale=tuple(f"{number}: {why}" for number, why in sorted({**self.stale, **(stale or {})}.items())),
            declined=counts.get("declined", 0),
            failed=tuple(f"{number}: {why}" for number, why in sorted(self.failed.items())),
            run_id=self.run_id,
        )

    def _report(self, status: PlanStatus, counts: Mapping[str, int], far: "_HowFar") -> dict[str, Any]:
        """P14: planned, applied, stale, declined, failed, how long, and the policy's own metrics with their marks."""
        measured = {"seconds": round(time.perf_counter() - self.started, 4), "freed_bytes": far.freed_bytes}
        metrics = self.policy.metrics(self.plan.summary, measured) if self.policy and self.policy.metrics else {}
        return {
            "status": status,
            "done": far.seen,
            "planned": sum(counts.values()),
            **{state: counts.get(state, 0) for state in ("applied", "stale", "declined", "failed")},
            **measured,
            "metrics": metrics,
        }
