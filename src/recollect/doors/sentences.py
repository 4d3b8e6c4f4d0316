"""What pydantic finds wrong with what was sent, in words."""

from collections.abc import Mapping, Sequence
from typing import Any


def place_of(parts: Sequence[str | int]) -> str:
    """`("kinds", 0)` as `kinds[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")


def cannot_be(subject: str, error: Mapping[str, Any]) -> str:
    """One sentence: what was given, and why it cannot be accepted."""
    value = error.get("input")
    shown = f" {value!r:.60}" if isinstance(value, str | int | float | None) else " this"
    return f"{subject} cannot be{shown}: {error['msg'][0].lower()}{error['msg'][1:]}."
