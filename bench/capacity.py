"""The arithmetic of docs/scale.md: from what was measured on one machine to what 1, 10 and 100 machines hold.

Everything here is reckoned from bench/results/scale.json, and what Citus costs from servers-citus.json. What the
reckoning is worth says the run itself: it reckons
its largest size from the two smaller ones, and prints by how much that was off.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from bench.results import kept

GB = 1_000_000_000
# What of a machine is left for us: the system, other programs and hours of high load take the rest.
SHARE_OF_MEMORY = 0.75
SHARE_OF_DISK = 0.6  # backups, the journal of changes, and an index that is built anew beside the old one
SHARE_OF_CORES = 0.5
# A space of no more memories is read whole; of many such spaces, this share is in use at a time.
SMALL_SPACE = 10_000
SHARE_IN_USE = 0.1


class Growth(Enum):
    """How a cost grows with the number of memories in a space."""

    EVEN = "the same for each"
    LINEAR = "in proportion"
    LOGARITHMIC = "by as much for each tenfold"

    def reckon(self, known: Sequence[tuple[int, float]], count: int) -> float:
        """The cost at `count`, from two sizes at which it is known."""
        (small, low), (large, high) = known
        if self is Growth.EVEN:
            return high
        if self is Growth.LINEAR:
            return high * count / large
        return high + (high - low) * math.log(count / large) / math.log(large / small)


def off_by(growth: Growth, known: Sequence[tuple[int, float]], count: int, measured: float) -> float:
    """How many times too high or too low the reckoning was; 1 is right."""
    reckoned = growth.reckon(known, count)
    return max(reckoned / measured, measured / reckoned) if reckoned > 0 else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    cores: int
    memory_gb: int
    disk_gb: int


LAPTOP = Machine(cores=8, memory_gb=32, disk_gb=500)
SERVER = Machine(cores=32, memory_gb=256, disk_gb=4_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Unit costs, as `./run bench scale` measured them."""

    sizes: tuple[int, int]
    bytes_each: float
    index_bytes_each: float
    recall_cpu_ms: tuple[float, float]
    small_space_bytes_each: float
    small_space_recall_cpu_ms: float

    def of_spaces(self, memories_each: int) -> "UnitCosts":
        """Search is quick while the vector index is in memory. Small spaces are read whole, and only those in use."""
        if memories_each <= SMALL_SPACE:
            in_memory = SHARE_IN_USE * self.index_bytes_each
            return UnitCosts(self.small_space_bytes_each, in_memory, self.small_space_recall_cpu_ms)
        known = list(zip(self.sizes, self.recall_cpu_ms, strict=True))
        return UnitCosts(self.bytes_each, self.index_bytes_each, Growth.LOGARITHMIC.reckon(known, memories_each))


class UnitCosts(NamedTuple):
    """What one memory takes on disk and in memory, and a recall of the processor, in spaces of one size."""

    disk_bytes: float
    memory_bytes: float
    recall_cpu_ms: float


def costs(figures: dict[str, dict[str, Any]]) -> Costs:
    """From the figures of a run: the middle and the largest size of one space, and the many small ones."""
    sizes = sorted({int(name.split(":")[0].replace(",", "")) for name in figures if name[0].isdigit()})
    middle, large = sizes[-2:]

    def value(size: int, name: str) -> float:
        return float(figures[f"{size:,}: {name}"]["value"])

    return Costs(
        sizes=(middle, large),
        bytes_each=value(large, "bytes a memory"),
        index_bytes_each=value(large, "of them the vector index"),
        recall_cpu_ms=(
            value(middle, "processor time of a recall, ms"),
            value(large, "processor time of a recall, ms"),
        ),
        small_space_bytes_each=float(figures["spaces: bytes a memory"]["value"]),
        small_space_recall_cpu_ms=float(figures["spaces: processor time of a recall, ms"]["value"]),
    )


def citus(verb: str, *of: str) -> float:
    """How many times as much a verb takes on Citus as on local tables."""
    return float(kept("servers-citus")[", ".join([verb, "Citus / local tables", *of])]["value"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """So many spaces of so many memories each."""

    spaces: int
    memories_each: int

    @property
    def memories(self) -> int:
        return self.spaces * self.memories_each


@dataclass(frozen=True, kw_only=True, slots=True)
class Reckoned:
    """What a load takes of machines of one kind."""

    disk_gb: float
    index_gb: float
    machines_for_disk: int
    machines_for_memory: int
    recalls_a_second: float

    @property
    def machines(self) -> int:
        return max(self.machines_for_disk, self.machines_for_memory)

    @property
    def first_limit(self) -> str:
        return "memory" if self.machines_for_memory > self.machines_for_disk else "disk"


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What some machines of one kind hold and answer."""

    memories_on_disk: float
    memories_in_memory: float
    recalls_a_second: float


def held(machines: int, machine: Machine, unit: UnitCosts) -> Held:
    spread = citus("recall", "processor time") if machines > 1 else 1.0
    return Held(
        memories_on_disk=machines * machine.disk_gb * SHARE_OF_DISK * GB / unit.disk_bytes,
        memories_in_memory=machines * machine.memory_gb * SHARE_OF_MEMORY * GB / unit.memory_bytes,
        recalls_a_second=machines * machine.cores * SHARE_OF_CORES * 1000 / (unit.recall_cpu_ms * spread),
    )


def reckoned(load: Load, machine: Machine, costs: Costs) -> Reckoned:
    unit = costs.of_spaces(load.memories_each)
    one = held(1, machine, unit)
    for_disk = math.ceil(load.memories / one.memories_on_disk)
    for_memory = math.ceil(load.memories / one.memories_in_memory)
    return Reckoned(
        disk_gb=load.memories * unit.disk_bytes / GB,
        index_gb=load.memories * costs.index_bytes_each / GB,
        machines_for_disk=for_disk,
        machines_for_memory=for_memory,
        recalls_a_second=held(max(for_disk, for_memory), machine, unit).recalls_a_second,
    )
