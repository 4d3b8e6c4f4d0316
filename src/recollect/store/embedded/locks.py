"""flock, in three verbs: take (alone or shared, now or never), wait for, and let go.

A flock belongs to an open file, not to a process: each taking opens the file anew, so that several servers within one
process keep apart, and a child that inherits the open file keeps the lock alive.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.errors import DataDirectoryProblem
from recollect.store.embedded.account import Account

POLL_SECONDS = 0.02


def take(path: Path, account: Account, *, shared: bool = False) -> int | None:
    """An open file that carries the lock; None if somebody is in the way."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    if account.dropped:
        os.fchown(descriptor, account.uid, account.gid)  # so that this user may use the home without root, too
    return descriptor


def is_free(path: Path, account: Account) -> bool:
    descriptor = take(path, account)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


@contextmanager
def turn(path: Path, account: Account, *, seconds: float) -> Iterator[None]:
    """Our turn, after waiting for it."""
    deadline = time.monotonic() + seconds
    while (descriptor := take(path, account)) is None:
        if time.monotonic() > deadline:
            raise DataDirectoryProblem(
                f"Another process has been starting or stopping the database in {path.parent} for {seconds:.0f} "
                "seconds. See what it does, or raise RECOLLECT_PG_START_SECONDS."
            )
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def let_go(descriptor: int) -> None:
    """Unlocked first: closing alone would leave the lock with a forked child that has the file open as well."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
