"""A lock between processes, on a connection of its own: whoever loses the connection, however, has lost the lock."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Self
from uuid import UUID, uuid4

import anyio
import asyncpg

from recollect.errors import DatabaseProblem
from recollect.store.connections import said_plainly
from recollect.store.database import Database, Transaction, driver

ANSWER_SECONDS = 10.0
TAKE = "SELECT pg_try_advisory_lock(hashtextextended('recollect ' || $1, 0))"
# The keys of all locks of this kind that are held in this database. An advisory lock shows its key in two halves.
HELD = """(SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
           WHERE locktype = 'advisory' AND objsubid = 1 AND granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""

ENDED = f"""
SELECT id FROM unnest($1::uuid[]) AS given(id) WHERE hashtextextended('recollect lease ' || id, 0) <> ALL (ARRAY{HELD})
"""


class Lock:
    """Held by at most one process, as long as it lives and its connection too. `async with` lets go at the end."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._stack = AsyncExitStack()
        self._connection: asyncpg.Connection | None = None

    @property
    def is_held(self) -> bool:
        """As far as is known without asking: a connection that broke off unnoticed still counts."""
        return self._connection is not None and not self._connection.is_closed()

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


class Lease:
    """A sign for all to see that this process lives: what it has taken on goes to others as soon as it does not."""

    def __init__(self, database: Database) -> None:
        self._id = uuid4()
        self._lock = Lock(database, f"lease {self._id}")
        self._one_at_a_time = anyio.Lock()

    async def hold(self) -> UUID | None:
        """The name to take work on by; None where the database has no connection left for a sign."""
        async with self._one_at_a_time:
            with suppress(DatabaseProblem):
                return self._id if self._lock.is_held or await self._lock.take() else None
        return None

    async def end(self) -> None:
        await self._lock.let_go()


async def ended(db: Transaction, leases: Sequence[UUID]) -> list[UUID]:
    """Those of some leases that nobody holds; one that has ended is never held again."""
    return [row["id"] for row in await (await driver(db)).fetch(ENDED, leases)] if leases else []


async def _answers(connection: asyncpg.Connection) -> bool:
    try:
        await connection.execute("SELECT 1", timeout=ANSWER_SECONDS)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        return False
    return True
