"""What the tests of Ray have worked on: functions that processes of a cluster find by their names."""

import os
import signal
import time
from pathlib import Path

from recollect.errors import ProviderMisbehaved


def squared(add: int, number: int) -> int:
    return number * number + add


def refuse(_shared: None, number: int) -> int:
    if number == 2:
        raise ProviderMisbehaved("Two is refused.")
    return number


def die_once(folder: Path, number: int) -> int:
    """Kills the process it is in, as the system would: block 3, the first time."""
    with (folder / f"begun-{number}").open("a") as written:
        written.write("x")
    if number == 3 and (folder / "begun-3").read_text() == "x":
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_always(us: int, number: int) -> int:
    """Everywhere but in the process of the tests."""
    if os.getpid() != us:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def wait_to_go(folder: Path, number: int) -> int:
    """Tells on which node it is, and ends when the file `go` is there; a cancelled one tells so."""
    import ray

    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
    (folder / f"{number}-on-{node}").touch()
    try:
        while not (folder / "go").exists():
            time.sleep(0.02)  # G09: the test says when to go on
    except KeyboardInterrupt:
        (folder / f"{number}-cancelled").touch()
        raise
    return number
