"""A figure: what was measured, the bar it is held against, and how it was measured."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def show(figures: Sequence[Figure], file: Path | None) -> None:
    table = Table("figure", "value", "bar", "holds", "how")
    for one in figures:
        sign = "≥" if one.better == "higher" else "≤"
        bar = "" if one.bar is None else f"{sign} {one.bar:g}"
        table.add_row(
            one.name, _shown(one.value), bar, "" if one.bar is None else ("yes" if one.holds else "NO"), one.how
        )
    Console(width=160).print(table)
    if file:
        file.write_text(
            json.dumps(
                {
                    one.name: {
                        "value": one.value,
                        "bar": one.bar,
                        "better": one.better,
                        "holds": one.holds,
                        "how": one.how,
                    }
                    for one in figures
                },
                indent=2,
            )
        )


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
