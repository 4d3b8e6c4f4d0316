"""The thread in which the engine of a synchronous memory lives, and the way in and out of it.

Closing never hangs, whatever happened before: it waits for the thread, and the thread ends when its loop does. What is
under way by then (calls of other threads, a stream that was read half) is broken off and rolled back first, while the
database is still there. A memory that nobody closes is closed when the program's last thread has ended.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from recollect.errors import Busy, InvalidInput

LOOK_EVERY_SECONDS = 0.25
HELPER = "AnyIO worker thread"  # as anyio names those in which a loop has its blocking work done

T = TypeVar("T")


class PortalThread(threading.Thread):
    """By which the threads of a portal are known."""


class Portal:
    """An asynchronous context manager, open in a thread of its own from here on until `close`."""

    def __init__(self, opening: AbstractAsyncContextManager[object]) -> None:
        self._process = os.getpid()
        self._opening = opening
        self._opened: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._door = threading.Lock()
        self._is_closing = False
        self._calls: set[asyncio.Task[Any]] = set()
        self._streams: set[AsyncGenerator[Any, None]] = set()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = PortalThread(target=self._live, name="recollect")
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:  # also Ctrl-C while it opens
            self.close()
            raise

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """What the function comes to in the loop. Whoever is interrupted while waiting has it broken off."""
        future = self._begin(function)
        try:
            return future.result()
        except CancelledError:
            raise Busy("The memory was closed before this was done: nothing of it is kept. Open it again.") from None
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncGenerator[T, None]) -> Iterator[T]:
        """The items of an asynchronous generator, one by one."""
        self._streams.add(source)
        try:
            while True:
                try:
                    item = self.call(source.__anext__)
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._is_closing:  # else it was ended with the memory
                self.call(source.aclose)
            self._streams.discard(source)

    def close(self) -> None:
        """Break off what is under way, close what was opened, end the thread. Once more does no harm."""
        if os.getpid() != self._process:
            return  # a forked child: the thread is its parent's, and so is what it holds
        if threading.current_thread() is self._thread:
            raise InvalidInput("A memory cannot be closed from within one of its own calls: close it afterwards.")
        with self._door:
            was_closing, self._is_closing = self._is_closing, True
            if not was_closing:
                with suppress(RuntimeError):  # the loop has ended already
                    self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if not was_closing and not self._opened.exception():
            self._ended.result()

    def _begin(self, function: Callable[[], Awaitable[T]]) -> "Future[T]":
        self._refuse_strangers()
        with self._door:
            if self._is_closing or not self._thread.is_alive():
                raise InvalidInput("This memory is closed: open another one with `Recollect()`.")
            return asyncio.run_coroutine_threadsafe(self._called(function), self._loop)

    def _refuse_strangers(self) -> None:
        if os.getpid() != self._process:
            raise InvalidInput(
                "This memory was opened before the process was forked: open one with `Recollect()` in the new process."
            )
        if threading.current_thread() is self._thread:
            raise InvalidInput("A memory cannot be used from within one of its own calls: use it afterwards.")

    # -- in the thread

    def _live(self) -> None:
        """Whatever ends the loop is told to who opened it, or to who closes it."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._hold_open())
        except BaseException as problem:  # noqa: BLE001
            (self._ended if self._opened.done() else self._opened).set_exception(problem)
        else:
            self._ended.set_result(None)

    async def _hold_open(self) -> None:
        async with self._opening:
            self._opened.set_result(None)
            try:
                await self._until_the_end()
            finally:
                with self._door:
                    self._is_closing = True
                await self._break_off()

    async def _until_the_end(self) -> None:
        while not self._end.is_set() and program_goes_on():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), LOOK_EVERY_SECONDS)

    async def _called(self, function: Callable[[], Awaitable[T]]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            return await function()
        finally:
            self._calls.discard(task)

    async def _break_off(self) -> None:
        for _ in range(2):  # one step makes the task of a call that came just before the door closed, one begins it
            await asyncio.sleep(0)
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        for stream in list(self._streams):
            await stream.aclose()


def program_goes_on() -> bool:
    """Whether a thread runs for which Python waits before it ends, other than ours."""
    return any(
        thread.is_alive() and not (thread.daemon or isinstance(thread, PortalThread) or thread.name == HELPER)
        for thread in threading.enumerate()
    )
