"""How an adapter reaches its memory: frameworks call with and without `await`, from whatever loop they run."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio.to_thread

from recollect.doors.python import Recollect
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput

T = TypeVar("T")
Memory = Recollect | Engine


class Calls:
    """Both ways into one memory. What is asked is a function of no arguments that returns something to await."""

    def __init__(self, memory: Memory) -> None:
        self._portal = memory._portal if isinstance(memory, Recollect) else None
        self.engine: Engine = memory._engine if isinstance(memory, Recollect) else memory

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._portal is None:
            raise InvalidInput("An AsyncRecollect serves calls with `await`: await this, or open a Recollect.")
        return self._portal.call(work)

    async def acall(self, work: Callable[[], Awaitable[T]]) -> T:
        return await (work() if self._portal is None else anyio.to_thread.run_sync(self._portal.call, work))
