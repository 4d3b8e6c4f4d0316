"""`memory.schedules`: look at what is done by itself, change it, stop it, do it now (schedules/run.py does it)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect.engine.core import Face
from recollect.errors import InvalidInput
from recollect.plans import notices, propose
from recollect.plans.notices import Notified
from recollect.plans.registry import POLICIES
from recollect.ports import Notice
from recollect.schedules.rules.timing import Timing, checked
from recollect.schedules.run import CHORES, HOME, Ran, full_name, next_for, register, run, timed
from recollect.schedules.sql import schedules
from recollect.schedules.sql.schedules import Schedule


class Schedules(Face):
    """What is done by itself in this space: look at it, change it, stop it, do it now."""

    async def list(self) -> Sequence[Schedule]:
        """Every schedule with its next time and what came of it last, soonest first."""
        await register(self.core)
        async with self.core.database.owner() as connection:
            return await schedules.of_space(connection, self.space_id)

    async def get(self, name: str) -> Schedule:
        """A schedule by the name of its policy, whole or as people say it (`prune`)."""
        await register(self.core)
        async with self.core.database.owner() as connection:
            return await schedules.get(connection, self.space_id, full_name(name))

    async def pause(self, name: str) -> Schedule:
        """Do it no more, until it is resumed."""
        return await self._save(replace(await self.get(name), enabled=False))

    async def resume(self, name: str) -> Schedule:
        """Do it again from its next time on; what was missed on purpose is not caught up."""
        schedule = await self.get(name)
        following = next_for(self.core, self.space_id, schedule.name, schedule.timing)
        missed = schedule.next_run_at <= self.core.now()
        return await self._save(
            replace(schedule, enabled=True, next_run_at=following if missed else schedule.next_run_at)
        )

    async def set(
        self,
        name: str,
        *,
        every_minutes: int | None = None,
        cron: str | None = None,
        time_zone: str | None = None,
        jitter_seconds: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Schedule:
        """Say how often: every so many minutes, or by cron in a zone. Any policy can be scheduled, also one that
        usually is not. What is not given stays."""
        before = await self._or_new(full_name(name), every_minutes, cron)
        how_often = (every_minutes, cron)
        if how_often == (None, None):
            how_often = (before.every_minutes, before.cron)
        after = replace(
            before,
            every_minutes=how_often[0],
            cron=how_often[1],
            time_zone=before.time_zone if time_zone is None else time_zone,
            jitter_seconds=before.jitter_seconds if jitter_seconds is None else jitter_seconds,
            options=before.options if options is None else options,
        )
        _check_options(after)
        if checked(after.timing) != before.timing:  # else it comes when it was to come
            following = next_for(self.core, self.space_id, after.name, after.timing)
            after = replace(after, next_run_at=following)
        return await self._save(after)

    async def run(self, name: str) -> Ran:
        """Do it now, whatever its time is and also while it is paused. The gate is passed, with a warning (A27)."""
        ran = await run(self.core, await self.get(name), by_hand=True)
        assert ran is not None, "what is asked for by hand is done"
        return ran

    async def recipients(self) -> Sequence[str]:
        """Who is told of plans that wait, of failures and of reports; nothing secret is in it."""
        return [notifier.name for notifier in self.core.notifiers()]

    async def test_notice(self) -> Sequence[Notified]:
        """Tell everybody that this is a test: who heard it, and who did not and why."""
        self.core.notifiers()
        notice = Notice(
            kind="test",
            title="A test",
            text="If you can read this, you will be told of plans that wait, of failures and of reports.",
            space=self._engine.space.slug,
            at=self.core.now(),
        )
        return await notices.tell(self.core, notice)

    async def _or_new(self, name: str, every_minutes: int | None, cron: str | None) -> Schedule:
        for schedule in await self.list():
            if schedule.name == name:
                return schedule
        if name in CHORES:
            raise InvalidInput(f"{name} concerns every space: set it in the space {HOME}.", field="name")
        timing = checked(Timing(every_minutes=every_minutes, cron=cron, time_zone=self.core.settings.time_zone))
        return timed(self.core, self.space_id, self._engine.space.slug, name, timing)

    async def _save(self, schedule: Schedule) -> Schedule:
        async with self.core.database.owner() as connection:
            await schedules.save(connection, schedule)
        return schedule


def _check_options(schedule: Schedule) -> None:
    if schedule.name in POLICIES:
        propose.options_of(POLICIES[schedule.name], schedule.options)
    elif schedule.options:
        raise InvalidInput(f"{schedule.name} has no options.", field="options")
