"""Runs `recollect` and `python` for the test of the documents, each in a process of its own that starts at once.

Most of what a short command takes is importing. Here one process imports everything and forks for each command: the
child has the caller's arguments, directory, environment, input and output, and ends with an exit code of its own.
`python quick.py SOCKET` waits for callers; `python quick.py SOCKET recollect recall tea` is one.
"""

import json
import os
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

STANDARD = (0, 1, 2)
LONGEST = 1 << 17


def serve(address: str) -> None:
    import onnxruntime  # noqa: F401
    import tokenizers  # noqa: F401

    import recollect.doors.cli.app
    import recollect.doors.python  # noqa: F401

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        while True:
            caller, _ = listening.accept()
            with caller:
                _answer(caller)


def _answer(caller: socket.socket) -> None:
    said, files, _, _ = socket.recv_fds(caller, LONGEST, len(STANDARD))
    child = os.fork()
    if child == 0:
        _become(json.loads(said), files)
    for file in files:
        os.close(file)
    _, status = os.waitpid(child, 0)
    caller.sendall(str(os.waitstatus_to_exitcode(status) % 256).encode())


def _become(asked: dict[str, Any], files: list[int]) -> NoReturn:
    """The command that was asked for, and nothing after it."""
    for standard, file in zip(STANDARD, files, strict=True):
        os.dup2(file, standard)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["arguments"]
    code: object = 0
    try:
        _run(sys.argv)
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001 - what the interpreter would do
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _run(arguments: list[str]) -> None:
    from recollect.__main__ import main

    if arguments[0] == "recollect":
        main()
    else:
        exec(compile(sys.stdin.read(), "block.py", "exec"), {"__name__": "__main__"})


def call(address: str, arguments: list[str]) -> int:
    asked = {"arguments": arguments, "directory": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(asked).encode()], STANDARD)
        return int(server.recv(LONGEST) or 1)


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])
