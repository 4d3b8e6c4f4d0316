"""The way to PostgreSQL: connections that search and those for all else, and where a verb that only reads does so.

Every transaction of the engine works as the role `recollect_app` with its space set, so that row-level security stands
behind every WHERE: a query that forgets its space sees nothing (DESIGN 5a). The owner's role is used for three things
only: migrations, indexes, and the tables that are read before a space is chosen.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from operator import methodcaller
from typing import Any, ParamSpec, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import anyio
import asyncpg
from sqlalchemy import CursorResult

from recollect.store.connections import (
    CLOSE_SECONDS,
    Batches,
    Connection,
    Pool,
    begun,
    close,
    connect,
    ended,
    fit_for_others,
    heard_of,
    said_plainly,
)
from recollect.store.standby import (
    POSITION,
    WROTE,
    Standby,
    StandbyLost,
    StandbyReport,
    Whereabouts,
    Writes,
    where_primary_is,
)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction in one space. It knows which, so that nobody has to hand the space on beside it."""

    connection: Connection
    space_id: UUID

    @property
    def execute(self) -> Callable[..., Awaitable[CursorResult[*tuple[Any, ...]]]]:
        return self.connection.execute

    @property
    def stream(self) -> Callable[..., Awaitable[Batches]]:
        return self.connection.stream

    # What the driver is asked itself, in haste or for vectors in binary: a statement whose $1 is the space.

    async def fetch(self, statement: str, *given: Any) -> list[Any]:
        rows: list[Any] = await self.connection.raw.fetch(statement, self.space_id, *given)
        return rows

    async def fetchrow(self, statement: str, *given: Any) -> Any:
        return await self.connection.raw.fetchrow(statement, self.space_id, *given)

    async def fetchval(self, statement: str, *given: Any) -> Any:
        return await self.connection.raw.fetchval(statement, self.space_id, *given)

    async def run(self, statement: str, *given: Any) -> str:
        """The driver's word on what was done, like `DELETE 0`."""
        done: str = await self.connection.raw.execute(statement, self.space_id, *given)
        return done


# The server since it was started, as a number: one that took over, or was brought back from a backup, may count what
# the former counted once more, for other rows.
SERVER = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8"
SCHEMA = "recollect"
ROLE = "recollect_app"

# What a search sets for itself. A cached generic plan would pick the wrong index when the filter changes. And nothing
# in a search reads a whole space: it walks HNSW and looks rows up by key. The planner, which cannot know how large a
# space is, would at times rather sort or hash all of it.
SEARCHING = {
    "hnsw.iterative_scan": "relaxed_order",
    "plan_cache_mode": "force_custom_plan",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # Who looks at every vector of a space reads its pages one after the other, not in the order of their keys: that of
    # row-level security makes the planner expect a few rows only.
    "random_page_cost": "4",
}
# Without a filter nothing in the statements of a search depends on what they are given: planning them each time takes
# as long as finding by words (ADR 8). But a table that is small now is read in one go, which a plan that is kept would
# go on doing when it has grown. On Citus each setting is a message more, and plans are made anew.
KEPT_PLANS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
PLANS_MADE_ANEW = {"plan_cache_mode": "force_custom_plan", "enable_seqscan": "on"}

# Where spaces are spread over servers, settings go to the one that has the space; and what runs there may ask the other
# tables of the space, which are on the same server.
CITUS = {"citus.propagate_set_commands": "local", "citus.allow_nested_distributed_execution": "on"}

# For what need not wait for the disk, nor for a standby.
AT_LEISURE = {"synchronous_commit": "off"}


# -- verbs that only read: at a standby, where there is one that will do (store/standby.py)


@dataclass(slots=True)
class Verb:
    """One verb that only reads: where, once that is decided, and how far the standby must have come for it."""

    at_standby: bool | None = None
    after: int = 0


_verb: ContextVar[Verb | None] = ContextVar("verb", default=None)


def current_verb() -> Verb | None:
    """The verb that only reads and is under way here, if there is one."""
    return _verb.get()


async def read(work: Callable[[], Awaitable[T]]) -> T:
    """Do what only reads, at the standby if that will do; else, or if that fails, at the primary."""
    if _verb.get() is not None:
        return await work()
    under_way = _verb.set(Verb())
    try:
        return await work()
    except StandbyLost:
        _verb.set(Verb(at_standby=False))
        return await work()
    finally:
        _verb.reset(under_way)


def reads(verb: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Mark a verb that only reads: PostgreSQL itself refuses whatever it would write, except logs and counts of use."""

    @wraps(verb)
    async def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        return await read(lambda: verb(*args, **kwargs))

    return reading


# -- the database


class Database:
    """A prepared PostgreSQL. Make one with `open_database` (store/prepare.py)."""

    def __init__(
        self,
        *,
        pool: Pool,
        dsn: str,
        role: str | None,
        notes: tuple[str, ...],
        searchers: Pool | None = None,
        distributed: bool = False,
    ) -> None:
        self.pool = pool
        self.searchers = searchers
        # What a connection that searches was told last.
        self._entered_by: WeakKeyDictionary[asyncpg.Connection, str] = WeakKeyDictionary()
        self.dsn = dsn
        self.role = role
        self.notes = notes
        self.distributed = distributed
        self.standby: Standby | None = None
        self._writes = Writes()
        self._watch: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def transaction(self, space_id: UUID, *, in_passing: bool = False) -> AsyncIterator[Transaction]:
        """Reads and writes in one space, all or nothing.

        In passing: one of many steps. Its commit does not wait for the disk; the last step's does, and what reached
        the disk with it is all that came before, for the log is written in order.
        """
        if current_verb() is not None:
            look = self._looking("BEGIN READ ONLY", self._entered(space_id), space_id)
        elif in_passing:
            look = self._begun("BEGIN", self._entered(space_id) | AT_LEISURE)
        else:
            look = self._writing(self._entered(space_id), space_id)
        async with look as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def noting(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """For logs and counts: all or nothing too, but the caller does not wait for the disk.

        A crash of the database may lose the last half second of them, never anything that was remembered or changed.
        """
        counting = {**AT_LEISURE, "recollect.counting": "'on'"}
        async with self._begun("BEGIN", self._entered(space_id) | counting) as connection:
            yield Transaction(connection, space_id)

    async def note(self, space_id: UUID, statement: str, *given: Any) -> None:
        """The same in one message, for a statement that enters its space by itself: it is given the space and the role.

        It may be said twice: a connection that breaks off does not tell what became of it, and the next is asked.
        """
        role = self.role or "none"
        say = methodcaller("execute", statement, space_id, role, *given)
        try:
            async with said_plainly(), aclosing(await begun(self.pool, say)):
                pass
        except asyncpg.InsufficientPrivilegeError:
            # Citus hands the statement to the server that has the space. Where the space has left that one just then,
            # it goes on to the next, which hears no settings outside a transaction: row-level security refuses it.
            if not self.distributed:
                raise
            async with self.noting(space_id) as db:
                await db.run(statement, role, *given)

    @asynccontextmanager
    async def snapshot(self, space_id: UUID) -> AsyncIterator[Transaction]:
        """A read-only look into one space that stays the same however long it takes: what a policy reads."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        async with self._looking(begin, self._entered(space_id), space_id) as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def search(
        self, space_id: UUID, *, ef_search: int, timeout_seconds: float, keeps_plans: bool = False
    ) -> AsyncIterator[Transaction]:
        """A read-only look into one space, tuned for nearest-neighbour search and bounded in time.

        Who asks the whole space asks the same statements again and again: their plans may be kept.
        """
        bounds = {"statement_timeout": f"{timeout_seconds * 1000:.0f}", "hnsw.ef_search": f"{ef_search:d}"}
        if self.searchers is None or self.distributed:
            settings = self._entered(space_id) | bounds | SEARCHING
            look = self._looking("BEGIN READ ONLY", settings, space_id)
        else:
            planning = KEPT_PLANS if keeps_plans else PLANS_MADE_ANEW
            look = self._searching(self.searchers, {"recollect.space": f"'{space_id}'", **bounds, **planning})
        async with look as connection:
            yield Transaction(connection, space_id)

    @asynccontextmanager
    async def _searching(self, searchers: Pool, settings: Mapping[str, str]) -> AsyncIterator[Connection]:
        """By a connection that only searches. It enters a space where it was last in another one: who asks in the same
        space again sends nothing but questions, each of which sees what was written before it."""
        entering = "; ".join(f"SET {name} = {value}" for name, value in settings.items())

        async def enter(raw: asyncpg.Connection) -> None:
            await heard_of(raw)
            if self._entered_by.get(raw) != entering:
                await raw.execute(entering)
                self._entered_by[raw] = entering

        async with said_plainly(), aclosing(await begun(searchers, enter)) as connection, fit_for_others(connection):
            yield connection

    @asynccontextmanager
    async def owner(self, *, in_passing: bool = False) -> AsyncIterator[Connection]:
        """As the owner: migrations, indexes, and the tables without a space."""
        async with self._begun("BEGIN", AT_LEISURE) if in_passing else self._writing({}, None) as connection:
            yield connection

    @property
    def is_at_leisure(self) -> bool:
        """Whether less than half of the connections that search are in use, so that one task may take a second one.

        Never ask for a second one otherwise: those who hold one and wait for another would wait for each other.
        """
        verb = current_verb()
        primary = self.searchers or self.pool
        pool = self.standby.pool if self.standby and verb and verb.at_standby else primary
        return 2 * pool.in_use < pool.size

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection outside any transaction, for VACUUM, REINDEX and CREATE INDEX CONCURRENTLY."""
        async with said_plainly():
            connection = await connect(self.dsn, server_settings={"search_path": f"{SCHEMA},public,extensions"})
            try:
                yield connection
            finally:
                await close(connection)

    async def follow(self, standby: Standby) -> None:
        """From now on, verbs that only read do so at a standby, where it is of use (store/standby.py)."""
        self._writes = Writes((await self._where_it_is()).position)  # what was there before is there for this process
        self.standby = standby
        self._watch = asyncio.create_task(standby.watch(self._where_it_is))

    async def how_the_standby_is(self) -> StandbyReport | None:
        """As of now; None where there is none."""
        return await self.standby.look(self._where_it_is) if self.standby else None

    async def close(self) -> None:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._watch is not None:
                self._watch.cancel()
                await asyncio.wait([self._watch])
            if self.standby is not None:
                await self.standby.pool.dispose()
            await self.leave_connections()

    async def leave_connections(self) -> None:
        """Close those that nobody has; whoever comes next gets new ones, which know the tables as they are then."""
        for pool in (self.searchers, self.pool):
            if pool is not None:
                await pool.dispose()

    async def _where_it_is(self) -> Whereabouts:
        async with self._begun("BEGIN READ ONLY", {}) as connection:
            return await where_primary_is(connection.raw)

    def _entered(self, space_id: UUID) -> dict[str, str]:
        return {"role": self.role or "none", "recollect.space": f"'{space_id}'"}

    def _opening(self, begin: str, settings: Mapping[str, str]) -> str:
        """The beginning of a transaction and its settings in one message.

        Citus hands settings on to the servers that a transaction comes to, each with the message it came in: in a block
        each is a message of its own.
        """
        if not self.distributed or not settings:
            return "; ".join([begin, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())])
        handed_on = {**CITUS, **settings}
        statements = "; ".join(f"SET LOCAL {name} = {value}" for name, value in handed_on.items())
        return f"{begin}; DO $$ BEGIN {statements}; END $$"

    @asynccontextmanager
    async def _begun(self, begin: str, settings: Mapping[str, str]) -> AsyncIterator[Connection]:
        """A transaction at the primary whose beginning and settings are one message."""
        start = methodcaller("execute", self._opening(begin, settings))
        async with said_plainly(), aclosing(await begun(self.pool, start)) as connection, ended(connection):
            yield connection

    @asynccontextmanager
    async def _writing(self, settings: Mapping[str, str], space_id: UUID | None) -> AsyncIterator[Connection]:
        """The same for what may write: where there is a standby, how far that must come to show it is noted."""
        start = methodcaller("execute", self._opening("BEGIN", settings))
        async with said_plainly(), aclosing(await begun(self.pool, start)) as connection:
            raw, did_write = connection.raw, False
            async with ended(connection):
                yield connection
                did_write = self.standby is not None and bool(await raw.fetchval(WROTE))
            if did_write:
                self._writes.note(space_id, int(await raw.fetchval(POSITION)))

    @asynccontextmanager
    async def _looking(self, begin: str, settings: Mapping[str, str], space_id: UUID) -> AsyncIterator[Connection]:
        """A look into a space: here it is decided where."""
        there = await self._begun_at_standby(self._opening(begin, settings), space_id)
        if self.standby is None or there is None:
            async with self._begun(begin, settings) as connection:
                yield connection
        else:
            async with aclosing(there), self.standby.heard(there), ended(there):
                yield there

    async def _begun_at_standby(self, opening: str, space_id: UUID) -> Connection | None:
        """None for whoever must ask the primary. All looks of a verb are at the same place."""
        verb, standby = current_verb(), self.standby
        if verb is None or standby is None or verb.at_standby is False:
            return None
        verb.after = max(verb.after, self._writes.after(space_id))
        connection = await standby.begun(opening, verb)
        if connection is None and verb.at_standby:
            raise StandbyLost("The standby went away in the midst of it: ask again.")
        verb.at_standby = connection is not None
        return connection


async def driver(of: Connection | Transaction) -> asyncpg.Connection:
    """The asyncpg connection below, in the same transaction: for vectors in binary, for COPY, and for haste."""
    connection = of.connection if isinstance(of, Transaction) else of
    return connection.raw
