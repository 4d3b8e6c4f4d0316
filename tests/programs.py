"""Starts Python programs as `subprocess` does, without the second that importing Recollect takes each of them.

One process imports everything, once, and forks itself for every program: `Popen` and `run` mean what they mean in
`subprocess`, and what was started is a process of its own, with an id, signals, streams and an exit code. What only a
new interpreter shows (what it imports, what comes about meanwhile, its encodings) is started by `subprocess`.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, AnyStr

IMPORTED = (
    "recollect.doors.api.server",
    "recollect.doors.cli.app",
    "recollect.doors.mcp.stdio",
    "recollect.doors.python",
    "recollect.plans.registry",
)
ROOT = Path(__file__).parents[1]
STANDARD = (0, 1, 2)
LONGEST = 1 << 17
ONE_AT_A_TIME = threading.Lock()


class Popen(subprocess.Popen[AnyStr]):
    """Given `[sys.executable, "-m", MODULE, ...]` or `[sys.executable, "-c", CODE, ...]`."""

    _end: socket.socket  # by which its start and its end are told

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any, *rest: Any
    ) -> None:
        stdin, _, _, stdout, _, stderr = pipes = rest[3:9]
        asked = {
            "arguments": [os.fspath(one) for one in args[1:]],
            "directory": os.fspath(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "alone": rest[14],
        }
        self._end, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given: list[int] = [
            own if one == -1 else one for own, one in zip(STANDARD, (stdin, stdout, stderr), strict=True)
        ]
        with its_end:
            socket.send_fds(_forker(), [json.dumps(asked).encode()], [*given, its_end.fileno()])
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self.pid = int(self._end.recv(LONGEST))
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        return self._waitpid(self.pid, wait_flags)

    def _internal_poll(self, _deadstate: Any = None) -> Any:
        return super()._internal_poll(_deadstate, self._waitpid)  # type: ignore[misc]

    def _waitpid(self, pid: int, flags: int) -> tuple[int, int]:
        """It is the child of the one that forks, which tells how it ended."""
        try:
            status = self._end.recv(LONGEST, socket.MSG_DONTWAIT if flags else 0)
        except BlockingIOError:
            return 0, 0
        self._end.close()
        return pid, int(status)


def run(
    command: list[Any], *, input: Any = None, capture_output: bool = False, timeout: float | None = None, **options: Any
) -> "subprocess.CompletedProcess[Any]":
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen[Any](command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _forker() -> socket.socket:
    with ONE_AT_A_TIME:
        return _started_forker()


@functools.cache
def _started_forker() -> socket.socket:
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, "-m", "tests.programs", str(its.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[its.fileno()])
    atexit.register(process.wait)
    atexit.register(own.close)  # which tells it to end
    return own


# -- the process that forks


class Forker:
    def __init__(self, asking: socket.socket) -> None:
        self.asking = asking
        self.asking.setblocking(False)
        self.running: dict[int, socket.socket] = {}
        self.woken, self.wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> "dict[str, Any] | None":
        """What the program that was forked off is to do; to the one who forks, None at the end."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with selectors.DefaultSelector() as ready:
            ready.register(self.asking, selectors.EVENT_READ)
            ready.register(self.woken, selectors.EVENT_READ)
            while True:
                ready.select()
                self._tell_who_has_ended()
                with suppress(BlockingIOError):
                    said, files, _, _ = socket.recv_fds(self.asking, LONGEST, len(STANDARD) + 1)
                    if not said:
                        return None
                    if asked := self._forked(json.loads(said), files):
                        return asked

    def _forked(self, asked: dict[str, Any], files: list[int]) -> "dict[str, Any] | None":
        *streams, end = files
        telling = socket.socket(fileno=end)
        pid = os.fork()
        if pid:
            self.running[pid] = telling
            telling.send(str(pid).encode())
            for one in streams:
                os.close(one)
            return None
        telling.close()
        self._leave()
        _become(asked, streams)
        return asked

    def _leave(self) -> None:
        """In the child: nothing of what its parent has open is its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (self.asking, *self.running.values()):
            one.close()
        os.close(self.woken)
        os.close(self.wakes)

    def _tell_who_has_ended(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.woken, LONGEST)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with self.running.pop(ended[0]) as telling, suppress(BrokenPipeError):
                    telling.send(str(ended[1]).encode())


def _become(asked: dict[str, Any], streams: list[int]) -> None:
    if asked["alone"]:
        os.setsid()
    for standard, file in zip(STANDARD, streams, strict=True):
        os.dup2(file, standard)
        os.close(file)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", buffering=1 if os.isatty(1) else -1, closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # type: ignore[misc]
    how, what, *arguments = asked["arguments"]
    sys.path[0] = "" if how == "-c" else asked["directory"]
    sys.argv = ["-c" if how == "-c" else what, *arguments]


def _execute(how: str, what: str) -> None:
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        todo = Forker(asking).serve()
    if todo:
        _execute(*todo["arguments"][:2])
