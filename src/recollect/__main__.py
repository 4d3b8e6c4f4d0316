"""The command line: `recollect` and `python -m recollect`."""

import os
import sys
import threading
from typing import NoReturn


def main() -> None:
    # `--version` is asked by scripts and health checks: answer before anything heavy is imported.
    if sys.argv[1:] == ["--version"]:
        from recollect import __version__

        sys.stdout.write(f"recollect {__version__}\n")
        return
    from recollect.doors.cli.app import INTERRUPTED, run

    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code >= INTERRUPTED:
            _leave_at_once(end.code)
        raise


def _leave_at_once(code: int) -> NoReturn:
    """Python waits for its threads, but one that reads stdin or compares a million pairs cannot be told to end. By now
    whatever had to be closed is closed."""
    if any(not (thread.daemon or thread is threading.main_thread()) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
