"""Plans that are applied while nobody waits for the answer.

They end with the server: whatever group was under way is rolled back, and applying the plan again goes on from there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import UUID

import structlog

from recollect.errors import RecollectError
from recollect.plan import Outcome

log = structlog.get_logger("recollect.api")


class Apply(Protocol):
    def __call__(self, *, started: Callable[[UUID], None]) -> Awaitable[Outcome]: ...


class Running:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Outcome]] = set()

    async def begin(self, apply: Apply) -> UUID | Outcome:
        """Begin; the id of the run, or the outcome where there was nothing left to do. A refusal is raised as ever."""
        started: asyncio.Future[UUID] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(apply(started=started.set_result))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait((started, task), return_when=asyncio.FIRST_COMPLETED)
        return started.result() if started.done() else task.result()

    async def stop(self) -> None:
        """Break off what is under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (problem := task.exception()) is None:
            return
        if isinstance(problem, RecollectError):
            log.warning("a plan could not be applied to the end", why=problem.message)
        else:
            log.error("a plan broke off", exc_info=problem)
