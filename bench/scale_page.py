"""The tables of docs/scale.md, written into it from what `./run bench scale` measured last and the arithmetic of
bench/capacity.py. The words between the tables are written by hand.
"""

import re
from typing import Any

from bench.capacity import (
    LAPTOP,
    SERVER,
    SHARE_OF_CORES,
    SHARE_OF_DISK,
    SHARE_OF_MEMORY,
    Costs,
    Load,
    Machine,
    citus,
    costs,
    held,
    reckoned,
)
from bench.figures import shown
from bench.results import ROOT, bar, kept

PAGE = ROOT / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- written by ./run fix: (?P<name>\w+) -->\n).*?(<!-- /written -->\n)", re.DOTALL)
KINDS = (
    ("1 laptop", LAPTOP, 1),
    ("1 server", SERVER, 1),
    ("10 servers", SERVER, 10),
    ("100 servers", SERVER, 100),
)


def page() -> str:
    blocks = written(kept("scale"))
    return BLOCK.sub(lambda found: f"{found[1]}{blocks[found['name']]}{found[3]}", PAGE.read_text(encoding="utf8"))


def written(figures: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Each block of the page by its name."""
    cost = costs(figures)
    return {
        "run": _run(next(iter(figures.values()))),
        "costs": _by_size(figures),
        "spaces": _spaces(figures),
        "check": _check(figures),
        "machines": _machines(),
        "capacity": _capacity(cost),
        "servers": _listed(kept("servers")),
        "citus": _listed(kept("servers-citus")),
        "loads": _loads(cost),
    }


def _run(one: dict[str, Any]) -> str:
    return f"`{one['command']}`, {one['date']}, commit `{one['commit']}`, on 2 cores with 24 GB.\n"


def _machines() -> str:
    kinds = f"A laptop here has {_machine(LAPTOP)}, a server {_machine(SERVER)}."
    shares = (
        f"Of each, {SHARE_OF_MEMORY:.0%} of the memory, {SHARE_OF_DISK:.0%} of the disk and {SHARE_OF_CORES:.0%} of "
        "the cores are counted on."
    )
    several = (
        f"Several servers means Citus, where a recall takes {shown(citus('recall', 'processor time'))} times the "
        "processor time that it takes on local tables."
    )
    return f"{kinds} {shares}\n{several}\n"


def _listed(figures: dict[str, dict[str, Any]]) -> str:
    """A run as it is: a row a figure."""
    rows = [f"| {name} | {shown(one['value'])} | {bar(one)} |\n" for name, one in figures.items()]
    return f"{_run(next(iter(figures.values())))}\n| | measured | bar |\n|---|---|---|\n" + "".join(rows)


def _by_size(figures: dict[str, dict[str, Any]]) -> str:
    """A row a cost, a column a size."""
    sizes = list(dict.fromkeys(name.split(": ")[0] for name in figures if name[0].isdigit()))
    names = [name.split(": ", 1)[1] for name in figures if name.startswith(f"{sizes[0]}: ")]
    rows = [
        f"| {name} | " + " | ".join(shown(figures[f"{size}: {name}"]["value"]) for size in sizes) + " |\n"
        for name in names
    ]
    return f"| memories in one space | {' | '.join(sizes)} |\n|---|{'---|' * len(sizes)}\n" + "".join(rows)


def _spaces(figures: dict[str, dict[str, Any]]) -> str:
    found = {name.removeprefix("spaces: "): one for name, one in figures.items() if name.startswith("spaces: ")}
    said = ", ".join(f"{name} {shown(one['value'])}" for name, one in found.items())
    return f"{next(iter(found.values()))['how']}: {said}.\n"


def _check(figures: dict[str, dict[str, Any]]) -> str:
    rows = [
        f"| {name.split(': ')[1]} | {shown(one['value'])} | {'yes' if one['holds'] else '**no**'} |\n"
        for name, one in figures.items()
        if name.startswith("reckoned")
    ]
    return "| | times apart | within a third |\n|---|---|---|\n" + "".join(rows)


def _machine(machine: Machine) -> str:
    return f"{machine.cores} cores, {machine.memory_gb} GB, {machine.disk_gb:,} GB of disk"


def _capacity(cost: Costs) -> str:
    rows = [_holds(name, machine, count, cost) for name, machine, count in KINDS]
    head = "| machines | memories, index in memory | memories, on disk | recalls a second (spaces of a million) |\n"
    return head + "|---|---|---|---|\n" + "".join(rows)


def _holds(name: str, machine: Machine, count: int, cost: Costs) -> str:
    it = held(count, machine, cost.of_spaces(1_000_000))
    in_memory, on_disk = _millions(it.memories_in_memory), _millions(it.memories_on_disk)
    return f"| {name} | {in_memory} | {on_disk} | {_rounded(it.recalls_a_second)} |\n"


def _loads(cost: Costs) -> str:
    loads = (
        ("10 million in one space", Load(spaces=1, memories_each=10_000_000)),
        ("a million spaces of 1,000", Load(spaces=1_000_000, memories_each=1_000)),
    )
    head = "| load | disk | vector index | servers | limited by | recalls a second |\n|---|---|---|---|---|---|\n"
    return head + "".join(_load(name, load, cost) for name, load in loads)


def _load(name: str, load: Load, cost: Costs) -> str:
    it = reckoned(load, SERVER, cost)
    return (
        f"| {name} | {_rounded(it.disk_gb)} GB | {_rounded(it.index_gb)} GB | {it.machines} "
        f"| {it.first_limit} | {_rounded(it.recalls_a_second)} |\n"
    )


def _millions(value: float) -> str:
    return f"{_rounded(value / 1_000_000)} million"


def _rounded(value: float) -> str:
    """Two figures: more would promise what no reckoning keeps."""
    return f"{float(f'{value:.2g}'):,.0f}"
