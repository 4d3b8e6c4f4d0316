"""Computing beside other work, so that whoever searches meanwhile notices nothing (E18).

Large products take half of the cores only: with all of them, each waits for the one that had to make way. And they are
computed in a thread of their own that lets every other go first. For what is numpy's work alone: a thread that holds
Python's lock and waits for its turn would hold up everybody.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio.to_thread
from threadpoolctl import threadpool_limits

LAST_IN_LINE = 10

T = TypeVar("T")


async def gently(work: Callable[[], T]) -> T:
    """Do work in a thread that makes way for all others."""
    return await anyio.to_thread.run_sync(partial(_in_its_own_thread, work))


@contextmanager
def half_of_the_cores() -> Iterator[None]:
    """Products within take at most so many threads."""
    with threadpool_limits(limits=max(1, (os.cpu_count() or 1) // 2), user_api="blas"):
        yield


def _in_its_own_thread(work: Callable[[], T]) -> T:
    """A thread that stepped back once cannot step forward again, so it is not one that others use after."""
    with half_of_the_cores(), ThreadPoolExecutor(1, initializer=_step_back) as alone:
        return alone.submit(work).result()


def _step_back() -> None:
    if sys.platform == "linux":  # only there does a thread have a priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LAST_IN_LINE)
