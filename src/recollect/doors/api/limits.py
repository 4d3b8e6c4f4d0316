"""What one caller may take of the server: bytes, turns and time, so that everybody else is still answered (S02)."""

import asyncio
import json
import json.scanner
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
from fastapi import HTTPException, Request, Response
from starlette.types import Message, Receive

RETRY_SECONDS = 2
# What is shorter is parsed within a few milliseconds.
PARSED_AT_ONCE_BYTES = 256 * 1024
HEAVY = ("/batch", "/import", "/plans", "/apply", "/run", "/dry-run", "/look", "/calibration")
READING_POSTS = ("/search", "/query", "/replay")
GONE = 499  # nobody reads it; the log shows it


def bounded(request: Request, most: int) -> Receive:
    """The incoming messages, refused once they hold more than so many bytes."""
    refusal = HTTPException(413, f"The body has more than {most:,} bytes: send less at a time.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise refusal
    read = 0

    async def receive() -> Message:
        nonlocal read
        message = await request.receive()
        read += len(message.get("body", b""))
        if read > most:
            raise refusal
        return message

    return receive


class Incoming(Request):
    """A request whose body, if it is long, is parsed beside the event loop."""

    async def json(self) -> Any:
        body = await self.body()
        if len(body) < PARSED_AT_ONCE_BYTES or hasattr(self, "_json"):
            return await super().json()
        self._json = await anyio.to_thread.run_sync(parsed_in_steps, body)
        return self._json


class _InSteps(json.JSONDecoder):
    """Python's own parser written in Python. That in C lets no other thread have a turn until it is done, which takes
    seconds for a large body, however that is nested or torn; this one takes longer, and lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def parsed_in_steps(body: bytes) -> Any:
    """As `json.loads`, a value at a time."""
    return _InSteps().decode(body.decode(json.detect_encoding(body), "surrogatepass"))


class Turns:
    """How many heavy requests of one caller are under way: beyond a few, the others of that caller are refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def one_of(self, caller: str, request: Request) -> Iterator[None]:
        if not is_heavy(request):
            yield
            return
        if self._under_way[caller] >= self._most:
            raise HTTPException(
                429,
                f"{self._most} large requests of this caller are under way: wait for one of them.",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        self._under_way[caller] += 1
        try:
            yield
        finally:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # whoever has none under way is forgotten


def is_heavy(request: Request) -> bool:
    return request.method == "POST" and request.url.path.endswith(HEAVY)


def only_reads(request: Request) -> bool:
    return request.method == "GET" or (request.method == "POST" and request.url.path.endswith(READING_POSTS))


async def unless_gone(request: Request, answer: Awaitable[Response]) -> Response:
    """The answer; once whoever asked has hung up, nobody works on it any more. Only for what changes nothing."""
    working = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:  # also where the server itself breaks off: what it works with is not closed before the work has ended
        leaving.cancel()
        working.cancel()
        await asyncio.wait((working,))
    return Response(status_code=GONE) if working.cancelled() else working.result()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
