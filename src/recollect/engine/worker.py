"""The worker: embeds what was added, space by space, and builds the vector index when it pays."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from recollect.engine.build import revive
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import RecollectError
from recollect.logs import Logger
from recollect.memories import embed

log = Logger("recollect.worker")
# Then the next space has its turn: a long import in one must not hold up a single note in another.
BATCHES_A_ROUND = 4
# Who comes and goes begins no index: its building takes the cores from whoever asks meanwhile, and one that is broken
# off begins anew with the next who comes.
STAYS_SECONDS = 30.0


async def work_once(core: Core, *, builds_index: bool = True) -> int:
    """One round over all spaces; returns how many nodes were embedded."""
    async with core.database.owner() as connection:
        all_spaces = await spaces.list_all(connection)
    done = 0
    for space in all_spaces:
        done += await embed.work(core, space.id, batches=BATCHES_A_ROUND)
    if done == 0 and builds_index:
        await embed.ensure_index(core, core.embedder())
    return done


async def work_forever(core: Core) -> None:
    """Until cancelled. Trouble with the database or a provider is logged and tried again, never fatal."""
    began = time.monotonic()
    while True:
        try:
            done = await work_once(core, builds_index=time.monotonic() - began >= STAYS_SECONDS)
        except (RecollectError, OSError) as problem:
            log.warning("the worker will try again", why=str(problem))
            done = 0
            await revive(core)
        if not done:
            await anyio.sleep(core.settings.worker_poll_seconds)


@asynccontextmanager
async def working(core: Core) -> AsyncIterator[None]:
    """With a worker beside whatever is done in the block. At the end it is asked to stop, and waited for.

    It is a task of its own and is cancelled once: what anyio cancels, it cancels again at every await, and so also the
    rollback and the giving back of texts by which a worker leaves.
    """
    worker = asyncio.create_task(work_forever(core))
    try:
        yield
    finally:
        worker.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([worker])
        if not worker.cancelled():
            worker.result()  # it broke off before, by a fault of ours: that is said
