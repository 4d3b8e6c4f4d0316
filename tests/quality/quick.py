"""Runs `recollect` and `python` for the test of the documents, without the seconds that starting them takes.

Most of what a short command takes is importing and loading the model. Here one process does that once and runs the
commands of its callers one after the other, each with the caller's arguments, directory, environment, input and output.
`python quick.py SOCKET` waits for callers; `python quick.py SOCKET recollect recall tea` is one.
"""

import json
import os
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

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
    own = [os.dup(standard) for standard in STANDARD]
    _take(files)
    code = _as_asked(json.loads(said))
    sys.stdout.flush()
    sys.stderr.flush()
    _take(own)
    caller.sendall(str(code).encode())


def _take(files: list[int]) -> None:
    """Make these the standard input, output and error."""
    for standard, file in zip(STANDARD, files, strict=True):
        os.dup2(file, standard)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def _as_asked(asked: dict[str, Any]) -> int:
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = asked["arguments"]
    try:
        _run(sys.argv)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - what the interpreter would do
        traceback.print_exc()
        return 1
    return 0


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
