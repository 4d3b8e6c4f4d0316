"""The scheduler: does at their time what the table `schedules` asks for, in one process among many.

Each round is a look at the table, not a timer that could be lost: whatever is due is done once, also when the moment
passed while nobody was running. One process leads, as long as it holds a lock on a connection of its own; when it dies
or loses that connection, the next round of another one finds the lock free and leads on.
"""

import anyio

from recollect.concepts import growth
from recollect.engine.core import Core
from recollect.errors import Busy, DatabaseProblem, RecollectError
from recollect.logs import Logger
from recollect.schedules import run
from recollect.schedules.sql.schedules import Schedule
from recollect.store.locks import Lock

log = Logger("recollect.scheduler")

LOOK_EVERY_SECONDS = 30.0


def leadership(core: Core) -> Lock:
    """What one process among all that use this database holds."""
    return Lock(core.database, "scheduler")


async def run_due(core: Core) -> list[str]:
    """Do what is due, one after the other; returns the names of what was done."""
    return [schedule.name for schedule in await run.due(core) if await _is_done(core, schedule)]


async def _is_done(core: Core, schedule: Schedule) -> bool:
    about = {"schedule": schedule.name, "space": schedule.space}
    try:
        return await run.run(core, schedule) is not None
    except Busy:
        return False  # somebody does it by hand just now; if that fails, it is still due
    except DatabaseProblem:
        raise
    except RecollectError as problem:
        log.warning("a scheduled run failed; it comes again at its next time", **about, why=problem.message)
    except Exception:  # a fault in one policy must not stop the others, nor the server beside them
        log.exception("a scheduled run failed unexpectedly; it comes again at its next time", **about)
    return True


async def one_round(core: Core, lead: Lock) -> list[str]:
    """If we lead: new spaces get their schedules, ticks are counted, and what is due is done."""
    try:
        if not await lead.take():
            return []
        await run.register(core)
        await growth.look(core)
        return await run_due(core)
    except (RecollectError, OSError) as problem:
        log.warning("the scheduler will try again", why=str(problem))
        return []


async def schedule_forever(core: Core) -> None:
    """Until cancelled."""
    async with leadership(core) as lead:
        while True:
            await one_round(core, lead)
            await anyio.sleep(LOOK_EVERY_SECONDS)
