"""A lock between processes, on a connection of its own: whoever loses the connection, however, has lost the lock."""

from contextlib import AsyncExitStack, suppress
from typing import Self

import asyncpg

from recollect.errors import DatabaseProblem
from recollect.store.database import Database, said_plainly

ANSWER_SECONDS = 10.0
TAKE = "SELECT pg_try_advisory_lock(hashtextextended('recollect ' || $1, 0))"


class Lock:
    """Held by at most one process, as long as it lives and its connection too. `async with` lets go at the end."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._stack = AsyncExitStack()
        self._connection: asyncpg.Connection | None = None

    async def take(self) -> bool:
        """Whether the lock is ours: still, or from now on. Nobody waits for it."""
        if self._connection is not None and await _answers(self._connection):
            return True
        await self.let_go()
        connection = await self._stack.enter_async_context(self._database.alone())
        async with said_plainly():
            ours = bool(await connection.fetchval(TAKE, self._name, timeout=ANSWER_SECONDS))
        if ours:
            self._connection = connection
        else:
            await self.let_go()
        return ours

    async def let_go(self) -> None:
        self._connection = None
        with suppress(DatabaseProblem):  # it is gone already, and the lock with it
            await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.let_go()


async def _answers(connection: asyncpg.Connection) -> bool:
    try:
        await connection.execute("SELECT 1", timeout=ANSWER_SECONDS)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        return False
    return True
