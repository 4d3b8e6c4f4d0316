"""Waiting for a state. No test counts on how fast the machine is: the bound is only for what hangs."""

import time
from collections.abc import Awaitable, Callable

import anyio

HANG_SECONDS = 300
PAUSE_SECONDS = 0.02


def until(holds: Callable[[], object]) -> None:
    """Until it holds."""
    give_up = time.monotonic() + HANG_SECONDS
    while not holds():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(PAUSE_SECONDS)


async def until_it_holds(holds: Callable[[], Awaitable[object]]) -> None:
    """The same for whoever must not block the event loop, and has to ask for the state."""
    with anyio.fail_after(HANG_SECONDS):
        while not await holds():  # noqa: ASYNC110 - another process or thread changes it, and sends no event
            await anyio.sleep(PAUSE_SECONDS)
