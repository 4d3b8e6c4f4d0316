"""`recollect mcp`: one agent over stdin and stdout, as the person at this machine, or as the holder of a key.

Nothing but the protocol goes to stdout. It ends when stdin does, or by SIGTERM or Ctrl-C; what was asked before stdin
ended is answered first.
"""

import asyncio
import json
import os
from contextlib import suppress
from threading import Thread
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server

from recollect.doors.ending import leaving_when_told
from recollect.doors.mcp.server import create_server
from recollect.doors.mcp.visits import Enter, Visit, enter
from recollect.doors.running import Running
from recollect.engine.access import LOCAL_ADMIN
from recollect.engine.engine import Engine
from recollect.engine.worker import working
from recollect.settings import Settings

GRACE_SECONDS = 5.0


def serve(settings: Settings, *, key: str | None = None) -> None:
    """Serve until stdin ends; with a key, what that key may do."""
    asyncio.run(_serve(settings, key))


async def _serve(settings: Settings, key: str | None) -> None:
    running = Running()
    # A signal breaks off what is under way, which is rolled back, and ends the conversation.
    with leaving_when_told(first=running.break_off) as leave:
        async with Engine(settings) as memory:
            come_in = entrance(memory, key)
            await come_in(None)  # a key that will not do is said at once
            async with working(memory.core):
                await _converse(come_in, running)
            leave()


async def _converse(come_in: Enter, running: Running) -> None:
    server = create_server(come_in, running)
    questions = Questions(running)
    stdin = cast("anyio.AsyncFile[str]", Lines(questions))
    async with stdio_server(stdin=stdin) as (incoming, outgoing):
        answers: Any = Answers(outgoing, questions)
        await server.run(incoming, answers, server.create_initialization_options())


def entrance(memory: Engine, key: str | None) -> Enter:
    """How one comes in: as the person at this machine, or with a key."""

    async def come_in(_request: object) -> Visit:
        if key is None:
            return Visit(caller=LOCAL_ADMIN, memory=memory)
        # Each time anew: a key may be revoked meanwhile.
        return await enter(memory, await memory.authenticate(key, loopback=True))

    return come_in


class Questions:
    """What was asked and is not answered yet."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._open: set[str | int] = set()
        self._answered = asyncio.Event()

    def asked(self, line: str) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return
        if isinstance(id_ := message.get("id"), str | int):
            self._open.add(id_)
        elif message["method"] == "notifications/cancelled" and isinstance(given := message.get("params"), dict):
            self.answered(given.get("requestId"))

    def answered(self, id_: object) -> None:
        if isinstance(id_, str | int):
            self._open.discard(id_)
            self._answered.set()

    async def all_answered(self) -> None:
        """Wait until everything is; what nothing works on any more, and still has no answer, will have none."""
        while self._open:
            self._answered.clear()
            with anyio.move_on_after(GRACE_SECONDS) as waited:
                await self._answered.wait()
            if waited.cancelled_caught and not self._running.is_busy:
                return


class Answers:
    """The way out of the protocol, which notes what has been answered."""

    def __init__(self, outgoing: Any, questions: Questions) -> None:
        self._outgoing, self._questions = outgoing, questions

    async def send(self, message: Any) -> None:
        await self._outgoing.send(message)
        if not isinstance(message.message, types.JSONRPCRequest):
            self._questions.answered(getattr(message.message, "id", None))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outgoing, name)

    async def __aenter__(self) -> "Answers":
        await self._outgoing.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        return await self._outgoing.__aexit__(*problem)


class Lines:
    """The lines of stdin, read in a thread that nobody waits for: such a read cannot be broken off, and who is told to
    stop must not wait for one more line. They end when everything is answered: the protocol stops with them."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(1)
        Thread(target=self._read, name="stdin", daemon=True).start()

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            await self._questions.all_answered()
            raise StopAsyncIteration
        self._questions.asked(line)
        return line

    def _read(self) -> None:
        # A descriptor of its own, since the interpreter wants to close that of `sys.stdin` in the end.
        with suppress(RuntimeError), os.fdopen(os.dup(0), encoding="utf-8", errors="replace", newline="\n") as stdin:
            for line in stdin:
                self._hand_on(line)
            self._hand_on(None)

    def _hand_on(self, line: str | None) -> None:
        putting: Any = self._lines.put(line)
        asyncio.run_coroutine_threadsafe(putting, self._loop).result()
