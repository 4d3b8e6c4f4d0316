"""What processes take: seconds of the processor, and memory; as the kernel counts them."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def below(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def spent(pid: int) -> float:
    """Seconds of the processor: its own and those of its children that have ended; none where it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def spent_below(pid: int) -> float:
    """The same with its children that still run: all that a PostgreSQL has ever used."""
    return sum(map(spent, below(pid)))


def spent_in_tree(pid: int) -> float:
    """The same with all that they have started in turn."""
    parents = {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}
    found, last = {pid}, {pid}
    while last := {one for one, parent in parents.items() if parent in last} - found:
        found |= last
    return sum(map(spent, found))


def _parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return None


def spent_by_all() -> float:
    """Seconds that all cores of this machine were at work for anybody."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / TICKS


def kilobytes(pid: int) -> int:
    """Memory, what it shares with others counted in part; none where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def postmaster(data_directory: Path) -> int:
    return int((data_directory / "postmaster.pid").read_text().split()[0])
