"""Words that every door shares: how many there are of something, and what is wrong with a value.

Values are checked by pydantic, whose own sentences are written for programmers ("Input should be a valid integer,
unable to parse string as an integer"). People are told what was given, and what it must be.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.errors import InvalidInput

Error = Mapping[str, Any]

# What a value must be, by the kind of error; in {} what the error itself tells.
MUST_BE = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "date_": "a day like 2026-11-15",
    "datetime_": "a time like 2026-11-15T09:30:00Z",
    "dataclass_": "an object",
    "dict_type": "an object",
    "enum": "{choices}",
    "finite_number": "a finite number",
    "float_": "a number",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "int_": "a whole number",
    "json_": "JSON",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "list_type": "a list",
    "literal_error": "{choices}",
    "mapping_type": "an object",
    "model_": "an object",
    "none_required": "left out",
    "path_type": "a path",
    "string_pattern_mismatch": "written like {pattern}",
    "string_too_long": "at most {most_characters}",
    "string_too_short": "at least {least_characters}",
    "string_": "a text",
    "too_long": "at most {most_items}",
    "too_short": "at least {least_items}",
    "url_": "an address like https://example.org",
    "uuid_": "a UUID",
}
SHOWN = 60
# What a listing gives at most at a time.
LONGEST_PAGE = 1000
QUOTE = "'"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 memory`, `2,000 memories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def chance(probability: float) -> str:
    """`84%`; what is still asked about is never quite certain, so at most `99%`."""
    return f"{min(99, round(100 * probability))}%"


def listed(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def place_of(parts: Sequence[str | int]) -> str:
    """`("kinds", 0)` as `kinds[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")


def require(holds: bool, field: str, expected: str) -> None:
    """Refuse an option that makes no sense."""
    if not holds:
        raise InvalidInput(f"The option {field} must be {expected}.", field=field)


def check_limit(limit: int, most: int = LONGEST_PAGE) -> None:
    """Refuse a stretch of a listing that is empty or too long."""
    if not hasattr(limit, "__index__") or not 1 <= limit <= most:
        raise InvalidInput(f"The limit is from 1 to {most:,}, not {limit!r}.", field="limit")


def cannot_be(subject: str, error: Error, *, secret: bool = False) -> str:
    """What was given, and what it must be; without the full stop."""
    value = error.get("input")
    given = repr(value) if isinstance(value, str | int | float | None) and not secret else "this"
    return f"{subject} cannot be {given[:SHOWN]}: {demand(error)}"


def demand(error: Error) -> str:
    """What is demanded of a value that was refused, in our words."""
    kind, said = str(error["type"]), str(error.get("msg", ""))
    if kind in ("value_error", "assertion_error"):
        said = said.split(", ", 1)[-1].rstrip(".")
        choices = said.partition(" is not one of ")[2]
        return f"it must be one of {choices.replace(QUOTE, '')}" if choices else said[:1].lower() + said[1:]
    must_be = MUST_BE.get(kind) or next((words for name, words in MUST_BE.items() if kind.startswith(name)), None)
    if must_be is None:
        return "it is not of the kind that is wanted here"
    told = error.get("ctx", {})
    most, least = told.get("max_length", 0), told.get("min_length", 0)
    words = {
        "choices": str(told.get("expected", "")).replace(QUOTE, ""),
        "most_characters": counted(most, "character"),
        "least_characters": counted(least, "character"),
        "most_items": counted(most, "item"),
        "least_items": counted(least, "item"),
    }
    return f"it must be {must_be.format_map({**told, **words})}"
