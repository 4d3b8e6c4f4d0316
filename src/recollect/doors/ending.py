"""Being told to end: by SIGTERM, or by Ctrl-C unless that is ignored, as it is for what a shell script starts with `&`.

A loop that runs hears a signal as one of its own events, so nothing is cut short in the midst of a step. Once the loop
has closed what it opened, signals mean again what they meant before.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

SIGNALS = (signal.SIGTERM, signal.SIGINT)

T = TypeVar("T")


@contextmanager
def told_by(numbers: tuple[signal.Signals, ...], tell: Callable[[signal.Signals], object]) -> Iterator[None]:
    """In the loop that runs, each of these signals calls `tell`."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in numbers}
    heard = [number for number in numbers if number is signal.SIGTERM or before[number] is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, tell, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


@contextmanager
def leaving_when_told(*, first: Callable[[], object] = lambda: None) -> Iterator[Callable[[], None]]:
    """A signal cancels this task, after calling `first`, and so the block is left in good order. Once the end has begun
    by itself (call what the block is given), and after the first signal, nothing more is cancelled."""
    task = asyncio.current_task()
    assert task is not None
    why: list[str] = []

    def tell(_number: signal.Signals) -> None:
        if not why:
            why.append("told")
            first()
            task.cancel()

    try:
        with told_by(SIGNALS, tell):
            yield lambda: why.append("by itself")
    except asyncio.CancelledError:
        if why != ["told"]:
            raise
        task.uncancel()


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run a loop in which SIGTERM cancels `main`, once; the signal has its usual meaning when everything is closed."""
    signals: list[signal.Signals] = []

    async def until_told() -> T:
        task = asyncio.current_task()
        assert task is not None

        def end(number: signal.Signals) -> None:
            if not signals:
                task.cancel()
            signals.append(number)

        with told_by((signal.SIGTERM,), end):
            return await main()

    try:
        return asyncio.run(until_told())
    finally:
        if signals:
            signal.raise_signal(signal.SIGTERM)
