"""The command lines of what lives on this machine. A zombie has none, so it does not count as living."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def command_lines() -> dict[int, str]:
    return dict(_from_proc() if sys.platform == "linux" else _from_ps())


def _from_proc() -> Iterator[tuple[int, str]]:
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                words = (directory / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended while we looked, or is hidden from us
            if words:
                yield int(directory.name), words.replace(b"\0", b" ").decode(errors="replace")


def _from_ps() -> Iterator[tuple[int, str]]:
    listing = subprocess.run(["ps", "-axo", "pid=,stat=,command="], capture_output=True, text=True, check=True).stdout
    for pid, state, command in (line.split(None, 2) for line in listing.splitlines() if len(line.split(None, 2)) == 3):
        if not state.startswith("Z"):
            yield int(pid), command
