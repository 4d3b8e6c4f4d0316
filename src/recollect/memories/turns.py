"""How long a thread may keep the interpreter while another waits for it, during a load.

A thread that prepares a batch keeps it for 5 ms at a time, which is Python's usual measure. So long the loop would wait
for every piece of a message that it sends or receives, and the database would wait with it.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 0.0005


class Turns:
    """Short as long as any load is under way; then as they were before the first."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._loads = 0
        self._usual = 0.0

    @contextmanager
    def short(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._one_at_a_time:
            if not self._loads:
                self._usual = sys.getswitchinterval()
            self._loads += more
            sys.setswitchinterval(min(SECONDS, self._usual) if self._loads else self._usual)


turns = Turns()
