"""What people type, as values: times, spans, JSON, texts from stdin. Each refusal says what would be accepted."""

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import parsed_time, shown

SPAN = re.compile(r"(\d{1,5})([mhdw])")
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
STDIN = "-"
STRETCH = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
MOST_NUMBERS = 1_000_000


def text_of(words: Sequence[str]) -> str:
    """The words as one text; a single - means: what stdin holds."""
    if list(words) != [STDIN]:
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"What came on stdin is not UTF-8 text (byte {error.start:,}): convert it first.") from error


def piped_in() -> BinaryIO | None:
    """What stdin holds, for imports; nothing where somebody sits at it."""
    return None if sys.stdin.isatty() else sys.stdin.buffer


def lines_of(option: str, file: Path) -> list[str]:
    """The lines of a file, or of stdin for `-`; what follows a # is a remark, and empty lines say nothing."""
    try:
        written = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"{file} cannot be read ({why}): name a file that can.", field=option) from error
    return [line for whole in written.splitlines() if (line := whole.partition("#")[0].strip())]


def json_object(option: str, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f'{option} is a JSON object like \'{{"tags": ["code"]}}\', not {shown(text)}.')
    return value


def numbers(option: str, text: str | None) -> list[int] | None:
    """`3,8` and `10-20`, as numbers."""
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.replace(" ", "").split(","):
        stretch = STRETCH.fullmatch(part)
        first, last = (int(stretch[1]), int(stretch[2] or stretch[1])) if stretch else (1, 0)
        if first > last or last - first + len(chosen) >= MOST_NUMBERS:
            raise InvalidInput(f"{option} takes numbers like 3,8 or 10-20, not {shown(text)}.", field=option)
        chosen += range(first, last + 1)
    return chosen


def assignments(option: str, given: Sequence[str]) -> dict[str, Any]:
    """`threshold=0.1`, by name: the value as JSON where it is that, else as text."""
    values = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not name.strip() or not equals:
            raise InvalidInput(f"{option} takes NAME=VALUE like threshold=0.1, not {shown(assignment)}.", field=option)
        try:
            values[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            values[name.strip()] = value
    return values


def past(option: str, text: str | None) -> datetime | None:
    """A moment, or how long ago it was."""
    return _moment(option, text, -1)


def end_of(option: str, text: str | None) -> datetime | None:
    """Like `past`, but a day means all of it."""
    moment = past(option, text)
    if moment is not None and DAY.fullmatch(text or ""):
        return datetime.combine(moment.date(), time.max, UTC)
    return moment


def future(option: str, text: str | None) -> datetime | None:
    """A moment, or how far off it is."""
    return _moment(option, text, +1)


def _moment(option: str, text: str | None, direction: int) -> datetime | None:
    if text is None:
        return None
    if span := SPAN.fullmatch(text):
        return datetime.now(UTC) + direction * int(span[1]) * UNITS[span[2]]
    try:
        return parsed_time(option, text)
    except InvalidInput as error:
        raise InvalidInput(
            f"{option} is a time like 2026-11-15 or 2026-11-15T09:30:00Z, or a span like 30m, 12h, 7d or 4w, "
            f"not {shown(text)}.",
            field=option,
        ) from error
