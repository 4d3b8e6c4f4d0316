"""Single keys of a terminal, without Enter; the terminal is as it was afterwards, however the walk ends."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

NextKey = Callable[[], Awaitable[str]]
ESCAPE = "\x1b"


def is_there() -> bool:
    """Whether somebody sits at a terminal that gives single keys."""
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def keys() -> Iterator[NextKey]:
    """The keys as they are pressed, also those pressed ahead; "" when the terminal is gone. Ctrl-C stays what it is."""
    import termios
    import tty

    loop, file = asyncio.get_running_loop(), sys.stdin.fileno()
    pressed: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        written = os.read(file, 1024).decode(errors="replace")
        if not written:
            loop.remove_reader(file)
        if written.startswith(ESCAPE):
            return  # an arrow or another key that means nothing here
        for key in written or ("",):
            pressed.put_nowait(key)

    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    loop.add_reader(file, read)
    try:
        yield pressed.get
    finally:
        loop.remove_reader(file)
        termios.tcsetattr(file, termios.TCSADRAIN, before)
