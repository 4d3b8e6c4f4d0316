"""The figures that a healthy graph shows (A29): what came out, what is hoped for, and whether it was met."""

from collections.abc import Mapping
from typing import Any

RUNTIME_SECONDS = 0.2

Figure = dict[str, Any]


def within(value: float, low: float, high: float) -> Figure:
    """Met from `low` to `high`, both included."""
    return {"value": value, "target": f"{low:g} to {high:g}", "in_target": low <= value <= high}


def under(value: float, high: float) -> Figure:
    return {"value": value, "target": f"under {high:g}", "in_target": value < high}


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def runtime(measured: Mapping[str, Any]) -> Figure:
    return under(measured["seconds"], RUNTIME_SECONDS)
