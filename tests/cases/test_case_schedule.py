"""The weekly run of the case bank: when it comes, what is sent before and after it (E29, E30)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from recollect.engine.engine import Engine
from recollect.plan import PlanStatus
from recollect.schedules import run
from recollect.schedules.sql import schedules
from recollect.schedules.sql.schedules import Schedule
from tests.case_support import NOW, a_case, statuses, stopped
from tests.cases.test_cases import Heard

pytestmark = pytest.mark.anyio

NAME = "consolidate_cases"


async def the_schedule(memory: Engine) -> Schedule:
    await run.register(memory.core)
    async with memory.core.database.owner() as connection:
        return await schedules.get(connection, memory.space.id, NAME)


@pytest.fixture
async def told(memory: Engine) -> Heard:
    notifier = Heard()
    stopped(memory).core._notifiers = (notifier,)
    return notifier


async def test_E29_sunday_at_two_in_utc(memory: Engine, told: Heard) -> None:
    schedule = await the_schedule(memory)
    assert (schedule.cron, schedule.time_zone) == ("0 2 * * sun", "UTC")
    assert schedule.next_run_at == datetime(2026, 11, 22, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "zone"),
    [
        (datetime(2026, 10, 20, tzinfo=UTC), "Europe/Berlin"),  # the night in which clocks go back
        (datetime(2027, 3, 23, tzinfo=UTC), "Europe/Berlin"),  # in which 02:00 does not exist
        (datetime(2026, 11, 10, tzinfo=UTC), "Asia/Seoul"),
    ],
)
async def test_E29_in_the_configured_zone_also_when_clocks_change(memory: Engine, now: datetime, zone: str) -> None:
    memory.core.settings = memory.core.settings.model_copy(update={"time_zone": zone})
    stopped(memory, now)
    moment = (await the_schedule(memory)).next_run_at.astimezone(ZoneInfo(zone))
    assert moment.weekday() == 6
    assert moment.hour in (2, 3)
    assert now < moment.astimezone(UTC) < now + timedelta(days=7)


async def test_E02_E30_somebody_hears_before_and_gets_the_report_afterwards(memory: Engine, told: Heard) -> None:
    poor = await a_case(memory, "poor", uses=20, rate=1.0)
    await a_case(memory, "unused", idle=100)
    schedule = await the_schedule(memory)
    ran = await run.run(memory.core, schedule, by_hand=True)
    assert ran is not None
    assert ran.outcome == "Removed 1 cases, merged 0, archived 1"
    assert [(notice.kind, notice.title) for notice in told.notices] == [
        ("before", "About to be applied"),
        ("report", "Consolidation Report"),
    ]
    assert told.notices[-1].facts["applied"] == 2
    assert await statuses(memory, poor) == ["archived"]


async def test_E29_a_missed_run_is_caught_up_once(memory: Engine, told: Heard) -> None:
    await a_case(memory, "unused", idle=100)
    schedule = await the_schedule(memory)
    stopped(memory, NOW + timedelta(days=23))
    assert await run.run(memory.core, schedule) is not None
    assert await run.run(memory.core, schedule) is None
    async with memory.core.database.owner() as connection:
        after = await schedules.get(connection, memory.space.id, NAME)
    assert after.next_run_at == datetime(2026, 12, 13, 2, 0, tzinfo=UTC)


async def test_E02_E22_a_weekly_plan_that_nobody_heard_of_waits_and_is_not_applied_the_week_after(
    memory: Engine, told: Heard
) -> None:
    memory.core._notifiers = ()
    poor = await a_case(memory, "poor", uses=20, rate=1.0)
    schedule = await the_schedule(memory)
    stopped(memory, NOW + timedelta(days=8))
    first = await run.run(memory.core, schedule)
    stopped(memory, NOW + timedelta(days=15))
    second = await run.run(memory.core, schedule)
    assert first is not None
    assert second is not None
    assert (first.status, second.status, first.plan_id) == ("waiting", "waiting", second.plan_id)
    assert await statuses(memory, poor) == ["active"]
    assert (await memory.plans.get(first.plan_id or "")).status is PlanStatus.PROPOSED


async def test_E30_a_space_without_cases_gets_no_report(memory: Engine, told: Heard) -> None:
    await run.run(memory.core, await the_schedule(memory), by_hand=True)
    assert told.notices == []
