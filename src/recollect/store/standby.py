"""Reading at a standby: a PostgreSQL that follows the primary (X03, ADR 26).

A verb that only reads says so (`reads` in store/database.py). Its first look decides where it reads, and all its looks
stay there: what it saw first is never newer than what it sees next. It reads at the standby if that follows closely and
has come as far as the last write of whoever asks, which is waited for a little; else at the primary. Whatever goes
wrong at the standby, the verb is begun again at the primary, and nobody hears of it but the log and `recollect doctor`.

A position is a place in the log that the primary writes and the standby repeats, as a number: 16 MB further is more.
"""

import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from recollect.errors import DatabaseProblem
from recollect.logs import Logger
from recollect.store.connections import LOST, Connection, Pool, begun, connect, reason, throw_away

if TYPE_CHECKING:
    from recollect.store.database import Verb

log = Logger("recollect.standby")

# What a synchronous commit has waited for is flushed. Who does without that at all asks for what is only written.
POSITION = """SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
                      ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::int8"""
WROTE = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
REPLAYED = "SELECT pg_is_in_recovery() AS follows, (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::int8 AS position"
SYSTEM = "SELECT system_identifier FROM pg_control_system()"

PROMOTED = "it follows no other server: it was promoted, or never was a standby"

LOOK_EVERY_SECONDS = 1.0
ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.003
MOST_SPACES = 10_000
WRITTEN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class StandbyLost(DatabaseProblem):
    """A look at the standby came to nothing: the primary is asked instead."""


# -- what has been written


@dataclass(kw_only=True, slots=True)
class Writer:
    """Whoever asks from outside: up to where they wrote before, as they say, and up to where they write now."""

    after: int = 0
    wrote: int = 0


_writer: ContextVar[Writer | None] = ContextVar("writer", default=None)


@contextmanager
def calling(writer: Writer) -> Iterator[Writer]:
    """Within, reads show what the writer wrote, and what it writes is noted."""
    entered = _writer.set(writer)
    try:
        yield writer
    finally:
        _writer.reset(entered)


class Writes:
    """Up to where this process wrote in each space."""

    def __init__(self, everywhere: int = 0) -> None:
        self._everywhere = everywhere
        self._spaces: dict[UUID, int] = {}

    def note(self, space_id: UUID | None, position: int) -> None:
        """A write in a space, or (None) in what all of them share."""
        if space_id is None or len(self._spaces) >= MOST_SPACES:
            self._everywhere = max(self._everywhere, position, *self._spaces.values())
            self._spaces.clear()
        else:
            self._spaces[space_id] = max(position, self._spaces.get(space_id, 0))
        if writer := _writer.get():
            writer.wrote = max(writer.wrote, position)

    def after(self, space_id: UUID) -> int:
        """How far a standby must have come, to be shown to whoever asks now."""
        writer = _writer.get() or Writer()
        return max(self._everywhere, self._spaces.get(space_id, 0), writer.after, writer.wrote)


def as_written(position: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def position_of(written: str) -> int | None:
    """The same read; None if it is none."""
    match = WRITTEN.fullmatch(written.strip())
    return int(match[1], 16) << 32 | int(match[2], 16) if match else None


# -- the standby


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadAt:
    """Where to read, and within which bounds."""

    dsn: str
    wait_seconds: float
    lag_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StandbyReport:
    """How a standby is: why it is not read, if it is not; how far it is behind the primary."""

    trouble: str | None
    behind_bytes: int | None = None
    lag_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """How far a primary has written, and which family of servers it belongs to, as far as it tells."""

    position: int
    system: int | None


class Lag:
    """How old the state is that a standby shows, by comparing positions alone: no clock but ours is asked."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=1000)

    def seconds(self, now: float, primary: int, standby: int) -> float:
        """At `now` the primary was here, and the standby there: how long ago the primary was where the standby is."""
        self._marks.append((now, primary))
        while len(self._marks) > 1 and self._marks[0][1] <= standby:
            self._marks.popleft()
        at, position = self._marks[0]
        return 0.0 if position <= standby else now - at


class Standby:
    """A server that follows the primary, as its last look found it. Readers never wait for one that is in trouble."""

    def __init__(self, read_at: ReadAt, pool: Pool) -> None:
        self.pool = pool
        self.report = StandbyReport(trouble="it has not answered yet")
        self._read_at = read_at
        self._lag = Lag()
        self._connection: asyncpg.Connection | None = None
        self._system: int | None = None
        self._warned = False
        self._one_look = anyio.Lock()

    # -- for whoever reads

    async def begun(self, opening: str, verb: "Verb") -> Connection | None:
        """A look that has begun, at a state that holds what the verb must see; None where the primary must be asked."""
        has_come = False

        async def begin(raw: asyncpg.Connection) -> None:
            nonlocal has_come
            has_come = await self._has_come(raw, verb)
            if has_come:
                await raw.execute(opening)

        if self.report.trouble is not None:
            return None
        try:
            connection = await begun(self.pool, begin)
        except PoolTimeout:
            return None
        except (*LOST, asyncpg.PostgresError, DatabaseProblem, OSError) as error:
            self._broke(error)
            return None
        if has_come:
            return connection
        await connection.aclose()
        return None

    @asynccontextmanager
    async def heard(self, connection: Connection) -> AsyncIterator[None]:
        """Whatever the server complains of within, the primary is asked once more: it says the same, or it does not."""
        try:
            yield
        except (*LOST, asyncpg.PostgresError, DBAPIError, OSError) as error:
            await throw_away(connection)
            if isinstance(error, (*LOST, OSError)) and not isinstance(error, asyncpg.DataError):
                self._broke(error)
            raise StandbyLost(f"The standby did not do what was asked ({reason(error)}): ask again.") from error

    async def _has_come(self, raw: asyncpg.Connection, verb: "Verb") -> bool:
        """Whether it shows what the verb must see, now or after a little while."""
        give_up = time.monotonic() + self._read_at.wait_seconds
        while True:
            here = await raw.fetchrow(REPLAYED, timeout=ANSWER_SECONDS)
            if not here["follows"]:
                self._turned(PROMOTED)
                return False
            if here["position"] >= verb.after:
                verb.after = here["position"]
                return True
            if time.monotonic() >= give_up:
                return False
            await anyio.sleep(POLL_SECONDS)

    # -- how it is

    async def watch(self, primary: Callable[[], Awaitable[Whereabouts]]) -> None:
        """Look once a second, until cancelled."""
        try:
            while True:
                await self.look(primary)
                await anyio.sleep(LOOK_EVERY_SECONDS)
        finally:
            self._let_go()

    async def look(self, primary: Callable[[], Awaitable[Whereabouts]]) -> StandbyReport:
        """Where both are. A primary that does not answer is no fault of the standby."""
        async with self._one_look:
            with suppress(DatabaseProblem):
                await self._compare(await primary())
        return self.report

    async def _compare(self, primary: Whereabouts) -> None:
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                self._found(await self._where_it_is(), primary)
        except (*LOST, asyncpg.PostgresError, DatabaseProblem, OSError) as error:  # a TimeoutError is an OSError
            self._let_go()
            self._broke(error)

    async def _where_it_is(self) -> asyncpg.Record:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._read_at.dsn, seconds=ANSWER_SECONDS)
            self._system = await _system_of(self._connection)
        return await self._connection.fetchrow(REPLAYED)

    def _found(self, here: asyncpg.Record, primary: Whereabouts) -> None:
        if not here["follows"]:
            self._turned(PROMOTED)
        elif None not in (primary.system, self._system) and primary.system != self._system:
            self._turned("it follows another server than that of DATABASE_URL")
        else:
            lag = self._lag.seconds(time.monotonic(), primary.position, here["position"])
            late = f"it is {lag:.0f} s behind" if lag > self._read_at.lag_seconds else None
            self._turned(late, behind_bytes=max(0, primary.position - here["position"]), lag_seconds=lag)

    def _broke(self, error: BaseException) -> None:
        """It went away, or was never there."""
        cause = error.__cause__ if isinstance(error, DatabaseProblem) and error.__cause__ else error
        self._turned(f"it does not answer ({reason(cause)})")

    def _turned(self, trouble: str | None, **figures: Any) -> None:
        """One line in the log when it goes wrong, and one when it is well again."""
        self.report = StandbyReport(trouble=trouble, **figures)
        if trouble and not self._warned:
            log.warning("the standby of DATABASE_READ_URL is not read, the primary is", why=trouble)
        elif self._warned and not trouble:
            log.info("the standby of DATABASE_READ_URL is read again")
        self._warned = trouble is not None

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


async def where_primary_is(connection: asyncpg.Connection) -> Whereabouts:
    return Whereabouts(position=int(await connection.fetchval(POSITION)), system=await _system_of(connection))


async def _system_of(connection: asyncpg.Connection) -> int | None:
    """Which family of servers it belongs to; None where that is not told."""
    try:
        return int(await connection.fetchval(SYSTEM))
    except asyncpg.InsufficientPrivilegeError:
        return None
