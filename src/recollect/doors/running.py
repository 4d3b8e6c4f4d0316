"""What is carried on while nobody waits for the answer.

A plan that is applied in the background ends with the server: whatever group was under way is rolled back, and applying
the plan again goes on from there. A call of an agent is carried to its end, though the agent may be gone by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar
from uuid import UUID

import anyio

from recollect.errors import Busy, RecollectError
from recollect.logs import Logger
from recollect.plan import Outcome

log = Logger("recollect.api")
T = TypeVar("T")


class Apply(Protocol):
    def __call__(self, *, started: Callable[[UUID], None]) -> Awaitable[Outcome]: ...


class Running:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Future[Any]] = set()

    async def begin(self, apply: Apply) -> UUID | Outcome:
        """Begin; the id of the run, or the outcome where there was nothing left to do. A refusal is raised as ever."""
        started: asyncio.Future[UUID] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(apply(started=started.set_result))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait((started, task), return_when=asyncio.FIRST_COMPLETED)
        return started.result() if started.done() else task.result()

    async def finish(self, call: Coroutine[Any, Any, T]) -> T:
        """What a call comes to. Whoever asked may go: it is carried to its end all the same, so that nothing is left
        half-done.

        It has a task of its own, because the cancelling of anyio is repeated at every await, and so would also cut
        the rollbacks short.
        """
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Busy("The server was stopped before this was done: ask again.") from None
            with anyio.CancelScope(shield=True):
                await asyncio.gather(task, return_exceptions=True)
            raise

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def break_off(self) -> None:
        """Cancel what is under way, without waiting until it has ended."""
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Break off what is under way."""
        tasks = list(self._tasks)
        self.break_off()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Future[Outcome]") -> None:
        self._tasks.discard(task)
        if task.cancelled() or (problem := task.exception()) is None:
            return
        if isinstance(problem, RecollectError):
            log.warning("a plan could not be applied to the end", why=problem.message)
        else:
            log.error("a plan broke off", exc_info=problem)
