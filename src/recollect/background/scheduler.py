"""The scheduler: does at their time what the table `schedules` asks for, in one process among many.

Each round is a look at the table, not a timer that could be lost: whatever is due is done once, also when the moment
passed while nobody was running. A row is claimed under lock by moving its next run on, so two schedulers never do the
same work.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import structlog

from recollect.engine import care
from recollect.engine.core import Core
from recollect.errors import RecollectError
from recollect.store import schedules

log = structlog.get_logger("recollect.scheduler")

LOOK_EVERY_SECONDS = 30.0
DAILY_MINUTES = 1440

Task = Callable[[Core, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def maintain(core: Core, _options: Mapping[str, Any]) -> Mapping[str, Any]:
    return await care.maintain(core)


TASKS: dict[str, Task] = {"maintain": maintain}
EVERY_MINUTES = {"maintain": DAILY_MINUTES}


async def register(core: Core) -> None:
    """Put the schedules of this version into the table; what a person changed there stays."""
    async with core.database.owner() as connection:
        await schedules.register(connection, EVERY_MINUTES, core.now())


async def run_due(core: Core) -> list[str]:
    """Do what is due, one after the other; returns the names of what was done."""
    done: list[str] = []
    while True:
        async with core.database.owner() as connection:
            due = await schedules.claim_due(connection, tuple(TASKS), core.now())
        if due is None:
            return done
        try:
            report = await TASKS[due.name](core, due.options)
            log.info("scheduled run done", name=due.name, **report)
        except (RecollectError, OSError) as problem:
            log.warning("a scheduled run failed; it comes again at its next time", name=due.name, why=str(problem))
        done.append(due.name)


async def schedule_forever(core: Core) -> None:
    """Until cancelled."""
    await register(core)
    while True:
        try:
            await run_due(core)
        except (RecollectError, OSError) as problem:
            log.warning("the scheduler will try again", why=str(problem))
        await anyio.sleep(LOOK_EVERY_SECONDS)
