"""`memory.plans`: propose, show, approve, decline, apply, undo, and what happened (one file a verb beside this one)."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from uuid import UUID

from recollect.engine.core import Face, Reference
from recollect.errors import InvalidInput
from recollect.plan import Decision, DecisionStatus, Outcome, Plan, PlanStatus, Risk, Run, TakenBack
from recollect.plans import apply, propose, review, run, undo
from recollect.plans import show as shown
from recollect.plans.apply import Progress, Started
from recollect.plans.registry import policy_named
from recollect.plans.run import Tidied
from recollect.plans.show import PolicyInfo, ShownPlan
from recollect.plans.sql import plans
from recollect.store.database import reads
from recollect.wording import check_limit

# What plans bear in the place of a policy that no policy proposed.
NOT_TIDYING = (propose.HAND, propose.UNDO, "import")
# Decisions are numbered from 1, in a column of four bytes.
LAST_NUMBER = 2**31 - 1


class Plans(Face):
    """The life of a plan."""

    async def policies(self) -> Sequence[PolicyInfo]:
        """The ways of tidying there are: what each does, its options with their defaults, and when it runs."""
        return shown.policies()

    async def propose(self, policy: str, options: Mapping[str, Any] | None = None, *, created_by: str = "user") -> Plan:
        """Let a policy say what it would change, and why. Nothing is changed; the plan is saved."""
        return await propose.propose(self.core, self.space_id, policy, options, created_by=created_by)

    async def run(
        self,
        policy: str,
        options: Mapping[str, Any] | None = None,
        *,
        created_by: str = "user",
        progress: Progress | None = None,
    ) -> Tidied:
        """Propose, and apply at once where the risk is low and the brake off; else the plan waits for approval."""
        return await run.run(self.core, self.space_id, policy, options, created_by=created_by, progress=progress)

    async def gate(self) -> str | None:
        """Why the graph is not tidied by schedule yet; None when it is."""
        return await run.gate(self.core, self.space_id)

    @reads
    async def get(self, reference: Reference, *, decisions: bool = True) -> Plan:
        """A plan, by its id or a unique beginning of it; without its decisions where they are not wanted."""
        id_ = await self._id(reference)
        async with self.core.transaction(self.space_id) as db:
            read = plans.whole if decisions else plans.head
            return await read(db, id_)

    @reads
    async def show(
        self, reference: Reference, *, after: int = 0, limit: int = 100, status: DecisionStatus | None = None
    ) -> ShownPlan:
        """A plan with a stretch of its decisions, and the names of what they are about; `next_after` leads on."""
        check_limit(limit)
        _check_numbers([after] if after else [], "after")
        id_ = await self._id(reference)
        return await shown.plan(self.core, self.space_id, id_, after=after, limit=limit, status=status)

    async def stretches(
        self, reference: Reference, *, status: DecisionStatus | None = None
    ) -> AsyncGenerator[ShownPlan]:
        """The same for all of a plan, however long, one stretch after the other."""
        async for stretch in shown.stretches(self.core, self.space_id, await self._id(reference), status=status):
            yield stretch

    @reads
    async def warnings(self, plan: Plan) -> Sequence[str]:
        """What to know before a waiting plan is applied by hand: the brake, and why the schedule would not run it."""
        return await shown.warnings(self.core, self.space_id, plan)

    @reads
    async def list(
        self,
        *,
        status: PlanStatus | str | None = None,
        policy: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> tuple[Sequence[Plan], str | None]:
        """Plans, newest first, without their decisions; and the cursor to go on with."""
        check_limit(limit)
        only = None if status is None else _status(status)
        by = None if policy is None else _whole_name(policy)
        async with self.core.transaction(self.space_id) as db:
            return await plans.list_heads(db, status=only, policy=by, limit=limit, cursor=cursor)

    @reads
    async def decisions(
        self,
        reference: Reference,
        *,
        after: int = 0,
        limit: int = 100,
        status: DecisionStatus | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Sequence[Decision]:
        """A stretch of a plan's decisions, with their changes; `after` is the number of the last one seen."""
        check_limit(limit)
        _check_numbers([*([after] if after else []), *(numbers or ())], "numbers")
        id_ = await self._id(reference)
        async with self.core.transaction(self.space_id) as db:
            await plans.head(db, id_)
            return await plans.decisions_of(db, id_, after=after, limit=limit, status=status, numbers=numbers)

    async def approve(self, reference: Reference, *, by: str = "user") -> Plan:
        """Say yes; `apply` carries it out."""
        return await review.approve(self.core, self.space_id, await self._id(reference), by=by)

    async def decline(
        self, reference: Reference, decisions: Sequence[int] | None = None, *, never: bool = False
    ) -> Plan:
        """Say no to a plan, or to some decisions and what needs them. `never` keeps their pairs apart for good."""
        _check_numbers(decisions or (), "decisions")
        id_ = await self._id(reference)
        return await review.decline(self.core, self.space_id, id_, decisions, never=never)

    async def accept(self, reference: Reference, decisions: Sequence[int] | None = None) -> Plan:
        """Take back a no while the plan waits: to all that was declined, or to some decisions with what they need."""
        _check_numbers(decisions or (), "decisions")
        return await review.accept(self.core, self.space_id, await self._id(reference), decisions)

    async def apply(
        self,
        reference: Reference,
        *,
        decline: Sequence[int] = (),
        by: str = "user",
        progress: Progress | None = None,
        started: Started | None = None,
    ) -> Outcome:
        """Carry a plan out, all but what is declined. An interrupted plan goes on; applying twice is success.

        `started` is told the id of the run, once there is one to watch; `progress`, how far it is.
        """
        _check_numbers(decline, "decline")
        id_ = await self._id(reference)
        return await apply.apply(
            self.core, self.space_id, id_, decline=decline, by=by, progress=progress, started=started
        )

    async def apply_within(
        self, reference: Reference, most: Risk, *, decline: Sequence[int] = (), by: str = "user"
    ) -> Tidied:
        """Carry a plan out for somebody who is no person, if its risk is not above `most` or a person approved it."""
        _check_numbers(decline, "decline")
        id_ = await self._id(reference)
        return await run.apply_within(self.core, self.space_id, id_, most, decline=decline, by=by)

    async def undo(
        self,
        reference: Reference,
        *,
        decisions: Sequence[int] | None = None,
        by: str = "user",
        with_later: bool = False,
    ) -> Outcome:
        """Take back a plan, or some of its decisions and what needs them; later use stays. Undoing twice is success.

        Where a later plan stands in the way, it is named and nothing changes; `with_later` takes back all that stands
        in the way first, as one plan.
        """
        _check_numbers(decisions or (), "decisions")
        id_ = await self._id(reference)
        return await undo.undo(self.core, self.space_id, id_, decisions=decisions, by=by, with_later=with_later)

    async def undo_chain(self, reference: Reference, *, decisions: Sequence[int] | None = None) -> Sequence[TakenBack]:
        """What `undo` would take back `with_later`, in order. Nothing is changed."""
        _check_numbers(decisions or (), "decisions")
        return await undo.chain(self.core, self.space_id, await self._id(reference), decisions=decisions)

    async def runs(self, plan: Reference | None = None, *, limit: int = 20) -> Sequence[Run]:
        """What was applied and undone, newest first, with reports."""
        check_limit(limit)
        id_ = None if plan is None else await self._id(plan)
        return await shown.runs(self.core, self.space_id, plan_id=id_, limit=limit)

    async def get_run(self, run_id: UUID) -> Run:
        """One run: how far it is, or its report."""
        return await shown.get_run(self.core, self.space_id, run_id)

    async def _id(self, reference: Reference) -> UUID:
        async with self.core.transaction(self.space_id) as db:
            return await plans.resolve(db, str(reference))


def _check_numbers(numbers: Sequence[int], field: str) -> None:
    for number in numbers:
        if not 1 <= number <= LAST_NUMBER:
            raise InvalidInput(f"There is no decision {number}: they are numbered from 1.", field=field)


def _whole_name(policy: str) -> str:
    """The name that plans bear, also where a policy is called as on the command line."""
    return policy if policy in NOT_TIDYING else policy_named(policy).name


def _status(name: str) -> PlanStatus:
    try:
        return PlanStatus(name)
    except ValueError as error:
        raise InvalidInput(
            f"There is no status {name!r}: it is one of {', '.join(PlanStatus)}.", field="status"
        ) from error
