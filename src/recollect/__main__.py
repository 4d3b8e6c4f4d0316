"""The command line: `recollect` and `python -m recollect`."""

import atexit
import gc
import os
import sys
from typing import NoReturn


def main() -> None:
    # `--version` is asked by scripts and health checks: answer before anything heavy is imported.
    if sys.argv[1:] == ["--version"]:
        from recollect import __version__

        sys.stdout.write(f"recollect {__version__}\n")
        return
    # Nothing of what is loaded is garbage; looking for some each 700 objects takes a twentieth of the time to start.
    gc.set_threshold(50_000)
    from recollect.doors.cli.app import INTERRUPTED, run

    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code >= INTERRUPTED:
            _leave_at_once(end.code)
        raise


def _leave_at_once(code: int) -> NoReturn:
    """Python waits for its threads, but one that reads stdin or compares a million pairs cannot be told to end. And if
    Ctrl-C came while a string was executed (dataclasses are made so), it gives another exit code than ours."""
    atexit._run_exitfuncs()  # the database inside, if it was only just started
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
