"""Where the files of the tests are: in memory, where there is plenty of it.

Databases are copied, filled and removed by the hundred, and most of what that takes is the file system's: to copy one
takes an eighth of the time in memory. Whoever sets TMPDIR has chosen a place.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 12 << 30
OPEN = 0o1777  # to the user that the database runs as, too


def in_memory() -> Path | None:
    """A new directory there, in which this process and those that it starts make theirs; whoever asks removes it."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or min(shutil.disk_usage(MEMORY).free, _free()) < ENOUGH:
        return None
    directory = Path(tempfile.mkdtemp(prefix="tests-", dir=MEMORY))
    directory.chmod(OPEN)
    os.environ["TMPDIR"] = str(directory)
    tempfile.tempdir = None
    return directory


def _free() -> int:
    """What others leave of the memory, in bytes."""
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(told["MemAvailable"].split()[0]) << 10
