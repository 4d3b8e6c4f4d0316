"""What a process keeps of spaces in memory because it is asked for again and again: graphs, and vectors.

It is read in the background when it is asked for again, so that who asks once does not wait for it, and given back when
nobody has asked for it for a while. Whether it is still as the database has it, whoever keeps it asks there.
"""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

import anyio

from recollect.errors import RecollectError
from recollect.logs import Logger
from recollect.store.connections import CLOSE_SECONDS
from recollect.store.database import Transaction

if TYPE_CHECKING:
    from recollect.engine.core import Core

log = Logger("recollect.memory")

IDLE_SECONDS = 900.0

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Keeping(ABC, Generic[K, V]):
    """At most so much of it; what nobody asked for longest goes first."""

    def __init__(
        self, *, most: float, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._idle_seconds, self._clock = most, idle_seconds, clock
        self._kept: dict[K, V] = {}
        self._used_at: dict[K, float] = {}
        self._loading: dict[K, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()  # each takes a connection, and much more memory than what is kept
        self._waking: asyncio.TimerHandle | None = None
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._kept)

    @abstractmethod
    async def _read(self, db: Transaction, key: K) -> V:
        """What is to be kept, as a snapshot of its space has it."""

    def _weight(self, _kept: V) -> float:
        return 1.0

    def load_soon(self, core: "Core", space_id: UUID, key: K) -> None:
        """Read it in the background, unless that is being done."""
        if not self._is_closing and key not in self._loading:
            self._loading[key] = asyncio.create_task(self._load_alone(core, space_id, key))

    def is_asked_again(self, key: K) -> bool:
        """Whether it was asked for before, a short while ago."""
        return self._clock() - self._used_at.get(key, -math.inf) <= self._idle_seconds

    async def settled(self) -> None:
        """Wait until nothing is being read."""
        while self._loading:
            await asyncio.wait(self._loading.values())  # which breaks nothing off where somebody waits no longer

    def forget(self) -> None:
        """Keep nothing any more."""
        self._kept.clear()
        self._used_at.clear()

    async def close(self) -> None:
        """What is being read is read to its end, for a while: a connection that is cut off amid a COPY is lost."""
        self._is_closing = True
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.settled()
        for stuck in self._loading.values():
            stuck.cancel()
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.settled()
        if self._waking is not None:
            self._waking.cancel()
        self.forget()

    def drop_idle(self) -> None:
        """Give back the memory of what nobody asked for lately."""
        for key in [key for key in self._kept if not self.is_asked_again(key)]:
            self._drop(key)

    async def _load_alone(self, core: "Core", space_id: UUID, key: K) -> None:
        """In the background nobody hears a problem: the database goes on answering, and the log knows why."""
        try:
            async with self._one_at_a_time, core.database.snapshot(space_id) as db:
                if not self._is_closing:
                    self._keep(key, await self._read(db, key))
        except RecollectError as problem:
            log.warning("a space could not be read into memory", why=problem.message)
        except Exception:  # a fault of ours: nobody waits for this, and closing must not fail by it
            log.exception("a space could not be read into memory")
        finally:
            self._loading.pop(key, None)

    def _keep(self, key: K, kept: V) -> None:
        if self._weight(kept) > self._most:  # it has grown meanwhile: nothing else goes for what cannot stay
            return
        self._kept[key] = kept
        self._used_at[key] = self._clock()
        by_use = sorted(self._kept, key=self._used_at.__getitem__)
        while sum(map(self._weight, self._kept.values())) > self._most:
            self._drop(by_use.pop(0))
        self._wake_later()

    def _drop(self, key: K) -> None:
        self._kept.pop(key, None)
        self._used_at.pop(key, None)

    def _wake_later(self) -> None:
        if self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(self._idle_seconds, self._wake)

    def _wake(self) -> None:
        self._waking = None
        self.drop_idle()
        if self._kept:
            self._wake_later()
