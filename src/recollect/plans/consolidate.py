"""Tidying: a policy proposes a plan, a person or the policy's risk approves it, the store applies it, group by group.

    propose    a policy reads one snapshot and returns a plan, which is saved; nothing else is written (P02)
    decline    single decisions fall away, with what needs them; a declined pair is remembered (P11)
    apply      one applying at a time in a space; each group is one transaction, audited inside it (P05)
    undo       the plan turned round, applied by the same code, all or nothing (P07)

A run that was killed left each group in its old or its new state: applying the plan again goes on where it stopped.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any
from uuid import UUID

import structlog
from pydantic import TypeAdapter, ValidationError

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import Busy, Conflict, InvalidInput, RecollectError
from recollect.graph.sql import edges
from recollect.memories.remember import models_of
from recollect.memories.sql import jobs
from recollect.plan import Decision, DecisionStatus, Outcome, Plan, PlanStatus, Risk, Run
from recollect.plans import notices, process
from recollect.plans.policy import Policy
from recollect.plans.registry import policy_named
from recollect.plans.sql import changes, plans
from recollect.plans.sql import undo as undoing
from recollect.plans.sql.reader import StoreReader
from recollect.ports import Notice
from recollect.store.database import Transaction
from recollect.wording import cannot_be, counted

log = structlog.get_logger("recollect.consolidate")

Progress = Callable[[int, int], None]
Started = Callable[[UUID], None]
Trying = Callable[[UUID], None]
TRIES = 3
# So many decisions share a transaction at most, where a policy lets its groups share one.
MOST_TOGETHER = 500
# A space of more nodes than this takes long enough to look through for others to notice.
LARGE = 2_000
HAND, UNDO = "hand", "undo"
NOTHING_TO_DO = "There is nothing to do."
NOBODY_IS_TOLD = "somebody is to hear of it first, and nobody is told (RECOLLECT_NOTIFY)"
NOBODY_HEARD = "somebody is to hear of it first, and nobody could be reached"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tidied:
    """What a run of a policy came to: the plan, and what became of it; no outcome means that it waits."""

    plan: Plan
    outcome: Outcome | None
    notes: tuple[str, ...] = ()


# -- proposing


async def propose(
    core: Core,
    space_id: UUID,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    created_by: str = "user",
) -> Plan:
    """Let a policy propose a plan, and keep it. The plan returned is the very one that can be shown and applied."""
    policy = policy_named(name)
    chosen = options_of(policy, options or {})
    proposed = await _proposed(core, space_id, policy, chosen)
    # A plan without decisions has nothing to wait for.
    status = PlanStatus.PROPOSED if proposed.decisions else PlanStatus.APPLIED
    plan = _braked(core, replace(proposed, created_by=created_by, options=asdict(chosen), status=status))
    plan = _needs_telling(core, policy, plan)
    async with core.transaction(space_id) as db:
        await plans.save(db, plan, status=plan.status)
    return replace(plan, counts={"proposed": len(plan.decisions)} if plan.decisions else {})


async def _proposed(core: Core, space_id: UUID, policy: Policy, chosen: Any) -> Plan:
    """What a policy says; a server has a large space looked through by a process of its own."""
    async with core.database.snapshot(space_id) as db:
        reader = StoreReader(db)
        if not (core.serves and await reader.count_nodes() > LARGE):
            return await process.looked_through(reader, policy, chosen, core.now())
    async with core.beside:
        dsn, now = core.database.dsn, core.now()
        asked = process.ProposalRequest(dsn=dsn, space_id=space_id, policy=policy.name, options=chosen, now=now)
        return await process.proposed(asked)


def options_of(policy: Policy, wanted: Mapping[str, Any]) -> Any:
    """A policy's options, checked: unknown names and values that do not fit are said plainly."""
    known = {field.name: field for field in fields(policy.options)}
    if unknown := sorted(set(wanted) - set(known)):
        raise InvalidInput(
            f"{policy.short} has no option {unknown[0]!r}: it has {', '.join(sorted(known))}.", field=unknown[0]
        )
    try:
        return TypeAdapter(policy.options).validate_python(dict(wanted))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InvalidInput(f"{cannot_be(f'The option {name}', first)}.", field=name) from error


def _braked(core: Core, plan: Plan) -> Plan:
    """P10: a plan that touches a large share of the graph waits for a person, whatever its policy's risk."""
    scope, touched = plan.summary.get("scope", {}), plan.summary.get("touched", {})
    share, least = core.settings.brake_share, core.settings.brake_at_least
    for what, total in scope.items():
        part = touched.get(what, 0)
        if total >= least and part > share * total:
            reason = f"it touches {part:,} of {total:,} {what} ({part / total:.0%}, more than {share:.0%})"
            return replace(plan, risk=Risk.HIGH, summary={**plan.summary, "waits": reason})
    return plan


def _is_announced(policy: Policy, plan: Plan) -> bool:
    return policy.announces is not None and plan.summary.get(policy.announces, 0) > 0


def _needs_telling(core: Core, policy: Policy, plan: Plan) -> Plan:
    """E02: what somebody must hear of beforehand waits for a person where nobody can be told."""
    if "waits" in plan.summary or not _is_announced(policy, plan) or notices.is_anybody_told(core):
        return plan
    return replace(plan, summary={**plan.summary, "waits": NOBODY_IS_TOLD})


# -- running: propose, and apply what may be applied without asking


async def run(
    core: Core,
    space_id: UUID,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    created_by: str = "user",
    progress: Progress | None = None,
) -> Tidied:
    """Propose, and apply at once where the risk allows it (P03); else the plan waits."""
    plan = await propose(core, space_id, name, options, created_by=created_by)
    if not plan.decisions or not applies_by_itself(core, plan):
        return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    return await carry_out(core, space_id, plan, by=created_by, progress=progress)


async def carry_out(
    core: Core,
    space_id: UUID,
    plan: Plan,
    *,
    decline: Sequence[int] = (),
    by: str = "user",
    progress: Progress | None = None,
) -> Tidied:
    """Apply a plan that may be applied without asking; who must hear of it beforehand is told first, else it waits."""
    if plan.status is PlanStatus.PROPOSED and _is_announced(policy_named(plan.policy), plan):
        told = await notices.tell(core, await _announcement(core, space_id, plan))
        if not notices.reached_anybody(told):
            async with core.transaction(space_id) as db:
                await plans.note(db, plan.id, "waits", NOBODY_HEARD)
            plan = replace(plan, summary={**plan.summary, "waits": NOBODY_HEARD})
            return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    outcome = await apply(core, space_id, plan.id, decline=decline, by=by, progress=progress)
    return Tidied(plan=plan, outcome=outcome)


async def apply_within(
    core: Core, space_id: UUID, plan_id: UUID, most: Risk, *, decline: Sequence[int] = (), by: str = "user"
) -> Tidied:
    """Apply a plan that is not too risky to be applied with no person asked, or that a person approved; else it waits.

    `most` is the risk that whoever asks is trusted with; the settings of the house and the brake bind them besides.
    """
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id)
    is_safe = plan.risk is Risk.LOW or most is Risk.HIGH
    if plan.status is PlanStatus.PROPOSED and not (is_safe and applies_by_itself(core, plan)):
        return Tidied(plan=plan, outcome=None, notes=_why_it_waits(plan))
    return await carry_out(core, space_id, plan, decline=decline, by=by)


async def _announcement(core: Core, space_id: UUID, plan: Plan) -> Notice:
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
    short = str(plan.id)[:8]
    return Notice(
        kind="before",
        title="About to be applied",
        text=f"{plan.title}. `recollect plan show {short}` shows it, `recollect undo {short}` takes it back.",
        space=space.slug,
        at=core.now(),
        facts={"plan_id": str(plan.id), "policy": plan.policy, "summary": dict(plan.summary)},
    )


def applies_by_itself(core: Core, plan: Plan) -> bool:
    """Low risk does; high risk only outside production, and never when the brake is on."""
    return plan.risk is Risk.LOW or (not core.settings.production and "waits" not in plan.summary)


def _why_it_waits(plan: Plan) -> tuple[str, ...]:
    if not plan.decisions and not plan.counts:
        return (NOTHING_TO_DO,)
    return (f"The plan waits for approval: {plan.summary.get('waits', 'its risk is high')}.",)


async def gate(core: Core, space_id: UUID) -> str | None:
    """Why scheduled tidying of the graph would not run yet (A27); None when it may."""
    settings = core.settings
    if not settings.graph_enabled:
        return "the graph is switched off (RECOLLECT_GRAPH_ENABLED)"
    async with core.transaction(space_id) as db:
        number, first = await edges.graph_age(db)
    if number < settings.gate_min_edges:
        return f"the graph has {counted(number, 'edge')}, fewer than {settings.gate_min_edges}"
    days = (core.now() - first).total_seconds() / 86_400 if first else 0.0
    if days < settings.gate_min_days:
        return f"the graph is {days:.1f} days old, younger than {settings.gate_min_days:g}"
    return None


def policy_of(plan: Plan) -> Policy | None:
    """The policy that proposed a plan; a change by hand has none, nor has an undo."""
    return None if plan.policy in (HAND, UNDO) else policy_named(plan.policy)


# -- approving and declining


async def approve(core: Core, space_id: UUID, plan_id: UUID, *, by: str = "user") -> Plan:
    """Say yes to a plan; `apply` carries it out."""
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id, lock=True)
        _refuse_unless(plan, PlanStatus.PROPOSED, PlanStatus.APPROVED, what="approved")
        moments = {"approved_at": core.now(), "approved_by": by}
        await plans.set_status(db, plan_id, PlanStatus.APPROVED, **moments)
        return await plans.head(db, plan_id)


async def decline(
    core: Core, space_id: UUID, plan_id: UUID, numbers: Sequence[int] | None = None, *, never: bool = False
) -> Plan:
    """Decline a plan, or some of its decisions and what needs them; declined pairs are not offered again for a while.

    `never` makes the pairs of the named decisions distinct for good.
    """
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id, lock=True)
        if numbers is None:  # named decisions are looked at one by one: a no said before can still become a never
            _refuse_unless(plan, PlanStatus.PROPOSED, PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED, what="declined")
        await _decline(core, db, plan, numbers, never=never)
        counted = await plans.recount(db, plan_id)
        if not counted.get("proposed"):
            await plans.set_status(db, plan_id, changes.overall(counted))
        return await plans.head(db, plan_id)


async def _decline(core: Core, db: Transaction, plan: Plan, numbers: Sequence[int] | None, *, never: bool) -> None:
    """What a declined decision takes with it is its policy's to say: it plans anew, or whatever needs it falls away."""
    waiting = DecisionStatus.PROPOSED if numbers is None else None
    meant = await plans.decisions_of(db, plan.id, numbers=numbers, status=waiting, with_changes=False)
    policy = policy_of(plan)
    alone = policy is not None and policy.without is not None
    await plans.decline(db, plan.id, [one.number for one in meant] if numbers is None else numbers, alone=alone)
    await _keep_apart(core, db, meant, f"declined in plan {plan.id}", never=never)


async def remember_declined(core: Core, space_id: UUID, plan_id: UUID, number: int) -> None:
    """P11 for a decision that was taken back on its own: whoever did so does not want it offered again at once."""
    async with core.transaction(space_id) as db:
        meant = await plans.decisions_of(db, plan_id, numbers=[number], with_changes=False)
        await _keep_apart(core, db, meant, f"taken back from plan {plan_id}", never=False)


async def _keep_apart(core: Core, db: Transaction, meant: Sequence[Decision], reason: str, *, never: bool) -> None:
    await plans.keep_apart(
        db,
        [_pair(one) for one in meant if "pair" in one.factors],
        now=core.now(),
        days=None if never else core.settings.declined_days,
        reason=reason,
    )


def _pair(decision: Decision) -> tuple[str, str, str | None]:
    a, b = decision.factors["pair"]
    return str(a), str(b), decision.factors.get("state")


def _refuse_unless(plan: Plan, *statuses: PlanStatus, what: str) -> None:
    if plan.status not in statuses:
        raise Conflict(f"The plan {plan.id} is {plan.status}: it cannot be {what} any more.")


# -- applying


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
    applied = 0
    async with _turn(core, space_id):
        next_one: UUID | None = await _settled(core, space_id, plan_id, decline, by)
        while next_one is not None:
            plan_id = next_one
            if trying is not None:
                trying(plan_id)
            outcome = await _apply_once(core, space_id, plan_id, by, progress, started)
            applied += outcome.applied
            next_one = await _next_try(core, space_id, plan_id, outcome, by)
    return replace(outcome, applied=applied)


async def _apply_once(
    core: Core, space_id: UUID, plan_id: UUID, by: str, progress: Progress | None, started: Started | None
) -> Outcome:
    async with core.transaction(space_id) as db:
        plan = await _made_ready(core, db, plan_id, by)
        applying = _Applying(core, space_id, plan, progress, started)
        if not await applying.begin(db):
            return await _as_it_is(db, plan_id)
    return await applying.run()


async def _settled(core: Core, space_id: UUID, plan_id: UUID, decline: Sequence[int], by: str) -> UUID:
    """The plan that is to be applied: this one less what is declined, or the one its policy makes without that."""
    async with core.transaction(space_id) as db:
        plan = await _in_force(db, plan_id)
        if decline and plan.id != plan_id:
            raise Conflict(f"The plan {plan_id} was replaced by {plan.id}: look at that one, its numbers are others.")
        _refuse_ended(plan)
        if decline:
            await _decline(core, db, plan, decline, never=False)
        policy = policy_of(plan)
        declined = await plans.decisions_of(db, plan.id, status=DecisionStatus.DECLINED, with_changes=False)
        waiting = await plans.groups_to_do(db, plan.id)
    if policy is None or policy.without is None or not declined or not waiting:
        return plan.id
    return (await anew(core, space_id, plan, policy.without(plan, declined), by)).id


async def _in_force(db: Transaction, plan_id: UUID) -> Plan:
    """A plan, or the one that has taken its place."""
    plan = await plans.head(db, plan_id, lock=True)
    while later := plan.summary.get("replaced_by"):
        plan = await plans.head(db, UUID(later), lock=True)
    return plan


async def anew(core: Core, space_id: UUID, plan: Plan, options: Mapping[str, Any], by: str) -> Plan:
    """A plan made again with other options; it takes the place of the first."""
    made = await propose(core, space_id, plan.policy, options, created_by=by)
    async with core.transaction(space_id) as db:
        waiting = [
            one
            for status in (DecisionStatus.PROPOSED, DecisionStatus.FAILED)
            for one in await plans.decisions_of(db, plan.id, status=status, with_changes=False)
        ]
        notes = dict.fromkeys((one.number for one in waiting), f"the plan {made.id} takes its place")
        await plans.mark(db, plan.id, notes, DecisionStatus.DECLINED)
        await plans.set_status(db, plan.id, changes.overall(await plans.recount(db, plan.id)))
        await plans.note(db, plan.id, "replaced_by", str(made.id))
    return made


async def _next_try(core: Core, space_id: UUID, plan_id: UUID, outcome: Outcome, by: str) -> UUID | None:
    """The plan of another try at what failed, where its policy knows one."""
    if not outcome.failed:
        return None
    async with core.transaction(space_id) as db:
        plan = await plans.head(db, plan_id)
        failed = await plans.decisions_of(db, plan_id, status=DecisionStatus.FAILED, with_changes=False)
    policy = policy_of(plan)
    options = policy.again(plan, failed) if policy and policy.again else None
    if options is None:
        log.error("a plan could not be applied as a whole", plan=str(plan_id), why=outcome.failed[0])
        return None
    made = await propose(core, space_id, plan.policy, options, created_by=by)
    log.warning("what failed is tried again", plan=str(made.id), why=outcome.failed[0])
    return made.id if made.decisions else None


@asynccontextmanager
async def _turn(core: Core, space_id: UUID) -> AsyncIterator[None]:
    """One applying or undoing at a time in a space, over all processes."""
    async with core.applying, core.database.owner() as connection:
        await plans.take_turn(Transaction(connection, space_id))
        yield


def _refuse_ended(plan: Plan) -> None:
    if plan.status in (PlanStatus.DECLINED, PlanStatus.UNDONE, PlanStatus.STALE):
        raise Conflict(f"The plan {plan.id} is {plan.status}: propose a new one.")


async def _made_ready(core: Core, db: Transaction, plan_id: UUID, by: str) -> Plan:
    """The plan, approved, with what failed waiting again."""
    plan = await plans.head(db, plan_id, lock=True)
    if plan.status is PlanStatus.PROPOSED:
        moments = {"approved_at": core.now(), "approved_by": by}
        await plans.set_status(db, plan_id, PlanStatus.APPROVED, **moments)
    else:
        await plans.retry_failed(db, plan_id)
    return plan


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
    some: list[plans.PlanGroup] = []
    for group in groups:
        if some and (len(some) >= most or sum(one.size for one in some) + group.size > MOST_TOGETHER):
            yield some
            some = []
        some.append(group)
    if some:
        yield some


class _Applying:
    """One run of a plan."""

    def __init__(
        self, core: Core, space_id: UUID, plan: Plan, progress: Progress | None, started: Started | None
    ) -> None:
        self.core, self.space_id, self.plan = core, space_id, plan
        self.policy = policy_of(plan)
        self.progress = progress or (lambda _done, _total: None)
        self.has_started = started or (lambda _run_id: None)
        self.started = time.perf_counter()
        self.total = self.seen = self.applied = self.freed_bytes = 0
        self.stale: dict[int, str] = {}
        self.failed: dict[int, str] = {}

    async def begin(self, db: Transaction) -> bool:
        """Look at what waits, once more where it rests on much, and say so in a run; False when nothing waits."""
        self.groups = await plans.groups_to_do(db, self.plan.id)
        if not self.groups:
            if self.plan.status in (PlanStatus.PROPOSED, PlanStatus.APPROVED):
                await changes.finish(db, self.plan.id, self.core.now())
            return False
        if await self._recheck(db):
            self.groups = await plans.groups_to_do(db, self.plan.id)
        self.total = sum(group.size for group in self.groups)
        about = {"policy": self.plan.policy, "total": self.total, "done": 0}
        self.run_id = await plans.start_run(db, self.plan.id, "apply", about, self.core.now())
        return True

    async def run(self) -> Outcome:
        self.has_started(self.run_id)
        self.progress(0, self.total)
        for some in together(self.groups, self.policy.together if self.policy else 1):
            await self._groups(some)
            self.progress(self.seen, self.total)
        return await self._finish()

    async def _recheck(self, db: Transaction) -> bool:
        """Decisions that rest on more than their own rows (a bridge, say) are looked at once more: has any moved?"""
        if self.policy is None or self.policy.recheck is None:
            return False
        if self.policy.rechecks_the_graph_alone and self.plan.seen == await spaces.version(db):
            return False
        waiting = await plans.waiting(db, self.plan.id)
        chosen = options_of(self.policy, self.plan.options)
        reader = StoreReader(db)
        moved = await self.policy.recheck(reader, waiting, chosen, self.core.now())
        await plans.mark(db, self.plan.id, moved, DecisionStatus.STALE)
        self.stale |= moved
        return bool(moved)

    async def _groups(self, some: Sequence[plans.PlanGroup]) -> None:
        """Small groups share a transaction; where one of them fails, each is tried in its own (P05)."""
        if len(some) > 1:
            try:
                await self._write(some)
                return
            except (AuditFailed, Conflict):
                log.info("groups are written one by one", plan=str(self.plan.id), groups=len(some))
        for group in some:
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

    async def _write(self, some: Sequence[plans.PlanGroup]) -> None:
        """One transaction: written, audited, counted. The disk is waited for at the end of the run, once for all."""
        core, size = self.core, sum(group.size for group in some)
        async with core.transaction(self.space_id, in_passing=True) as db:
            done = await changes.apply_groups(db, self.plan.id, some, core.now())
            await self._embed_what_was_made(db, done.applied)
            await self._audit(db, done)
            report = {"done": self.seen + size, "applied": self.applied + len(done.applied)}
            await plans.note_run(db, self.run_id, report)
        self.seen += size
        self.applied += len(done.applied)
        self.freed_bytes += done.freed_bytes
        self.stale |= done.stale

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

    async def _audit(self, db: Transaction, done: changes.AppliedGroups) -> None:
        wrong = list(await changes.dangling(db, self.plan.id, done.applied)) if "nodes" in done.tables else []
        if self.policy is not None and self.policy.audit is not None:
            written = await plans.decisions_of(
                db, self.plan.id, numbers=done.applied, with_changes=self.policy.audits_changes
            )
            wrong += await self.policy.audit(StoreReader(db), written)
        if wrong:
            raise AuditFailed(f"The audit found: {'; '.join(wrong[:3])}.")

    async def _fail(self, group: plans.PlanGroup, why: str) -> None:
        """A group that could not be written leaves no trace but this."""
        async with self.core.transaction(self.space_id) as db:
            waiting = await plans.decisions_of(db, self.plan.id, group=group.number, status=DecisionStatus.PROPOSED)
            notes = {one.number: why for one in waiting}
            await plans.mark(db, self.plan.id, notes, DecisionStatus.FAILED)
        self.seen += group.size
        self.failed |= notes
        log.warning("a group of a plan failed", plan=str(self.plan.id), group=group.number, why=why)

    async def _finish(self) -> Outcome:
        core = self.core
        async with core.transaction(self.space_id) as db:
            counts = await changes.finish(db, self.plan.id, core.now())
            status = changes.overall(counts)
            seconds = time.perf_counter() - self.started
            report = self._report(status, counts, seconds)
            await plans.note_run(db, self.run_id, report, status="done", finished_at=core.now())
        return Outcome(
            plan_id=self.plan.id,
            status=status,
            applied=self.applied,
            stale=tuple(f"{number}: {why}" for number, why in sorted(self.stale.items())),
            declined=counts.get("declined", 0),
            failed=tuple(f"{number}: {why}" for number, why in sorted(self.failed.items())),
            run_id=self.run_id,
        )

    def _report(self, status: PlanStatus, counts: Mapping[str, int], seconds: float) -> dict[str, Any]:
        """P14: planned, applied, stale, declined, failed, how long, and the policy's own metrics with their marks."""
        measured = {"seconds": round(seconds, 4), "freed_bytes": self.freed_bytes}
        metrics = self.policy.metrics(self.plan.summary, measured) if self.policy and self.policy.metrics else {}
        return {
            "status": status,
            "planned": sum(counts.values()),
            **{state: counts.get(state, 0) for state in ("applied", "stale", "declined", "failed")},
            **measured,
            "metrics": metrics,
        }


# -- undoing


async def undo(
    core: Core, space_id: UUID, plan_id: UUID, *, decisions: Sequence[int] | None = None, by: str = "user"
) -> Outcome:
    """Take back a plan, or some of its decisions: every row as it was, later use kept; or a named conflict.

    A merge of pages that took several tries is several plans: they are taken back together, the last first.
    """
    async with core.applying, core.transaction(space_id) as db:
        await plans.take_turn(db)
        tries = await plans.tries_of(db, plan_id) if decisions is None else []
        done = [await _undo(core, db, one, decisions, by) for one in tries or [plan_id]]
        return replace(done[-1], applied=sum(one.applied for one in done))


async def _undo(core: Core, db: Transaction, plan_id: UUID, decisions: Sequence[int] | None, by: str) -> Outcome:
    now = core.now()
    started = time.perf_counter()
    outcome = await undoing.undo(db, plan_id, now, numbers=decisions, created_by=by)
    if outcome.repeated:
        return outcome
    run_id = await plans.start_run(db, plan_id, "undo", {}, now)
    report = {
        "undone": outcome.applied,
        "by_plan": str(outcome.plan_id),
        "seconds": round(time.perf_counter() - started, 4),
    }
    await plans.note_run(db, run_id, report, status="done", finished_at=core.now())
    return replace(outcome, run_id=run_id)


# -- looking


async def runs(core: Core, space_id: UUID, *, plan_id: UUID | None = None, limit: int = 20) -> list[Run]:
    async with core.transaction(space_id) as db:
        return await plans.list_runs(db, plan_id=plan_id, limit=limit)


async def get_run(core: Core, space_id: UUID, run_id: UUID) -> Run:
    async with core.transaction(space_id) as db:
        return await plans.get_run(db, run_id)
