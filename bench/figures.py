"""A figure: what was measured, the bar it is held against, and how it was measured."""

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number; without a bar it is for information."""

    name: str
    value: float
    how: str
    bar: float | None = None
    better: str = "higher"

    @property
    def holds(self) -> bool:
        if self.bar is None:
            return True
        return self.value >= self.bar if self.better == "higher" else self.value <= self.bar


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def show(figures: Sequence[Figure]) -> None:
    table = Table("figure", "value", "bar", "holds", "how")
    for one in figures:
        sign = "≥" if one.better == "higher" else "≤"
        bar = "" if one.bar is None else f"{sign} {one.bar:g}"
        table.add_row(
            one.name, shown(one.value), bar, "" if one.bar is None else ("yes" if one.holds else "NO"), one.how
        )
    Console(width=160).print(table)


def save(figures: Sequence[Figure], file: Path, command: str) -> None:
    """As one JSON object, each figure with the day, the commit and the command it was measured with."""
    measured = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit(), "command": command}
    document = {
        one.name: {
            "value": one.value,
            "bar": one.bar,
            "better": one.better,
            "holds": one.holds,
            "how": one.how,
            **measured,
        }
        for one in figures
    }
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def commit() -> str:
    """The commit that was measured; `+` where files were changed since."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "unknown"


def as_typed(name: str, size: int | None, rest: Sequence[str]) -> str:
    """The command that measured, without the paths of the machine it was typed on."""
    sized = [] if size is None else ["--size", str(size)]
    return " ".join(["./run bench", name, *sized, *(_without_path(word) for word in rest)])


def _without_path(word: str) -> str:
    if word.startswith("--") or "/" not in word:
        return word
    return "FILE" if Path(word).is_file() else "DIR"


def alternate(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Measure the sides in turn, round by round, so that a noisy neighbour disturbs them alike."""
    measured: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for values, side in zip(measured, sides, strict=True):
            values.append(side())
    return measured


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
