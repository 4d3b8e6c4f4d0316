"""What an import takes from other programs, whichever it was: memories, the things they are about, and how those are
related; and how to read a field of theirs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import LONGEST_NAME, known_time, parsed_time
from recollect.model import NewMemory

# The type of what is named and not described.
UNTYPED = "concept"


@dataclass(frozen=True, kw_only=True, slots=True)
class Thing:
    """Somebody or something that memories are about."""

    name: str
    type: str = UNTYPED


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation:
    """How one thing stands to another."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignPiece:
    """One piece of what was written: memories, the things they are about, and how those are related."""

    memories: tuple[NewMemory, ...] = ()
    things: tuple[Thing, ...] = ()
    relations: tuple[Relation, ...] = ()

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(thing.name for thing in self.things)


# A piece, or a sentence on what is wrong with it.
Found = ForeignPiece | str


def about(name: str, observation: str) -> str:
    """An observation that says of whom it is."""
    folded, spoken = observation.casefold(), in_words(name)
    return observation if name.casefold() in folded or spoken.casefold() in folded else f"{spoken}: {observation}"


def in_words(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """A field that has to be a text."""
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is missing, or is no text.")
    return value.strip()


def objects_in(fields: object, name: str) -> list[Any]:
    """A field that is a list of objects, where there is one; what is none in it is left out."""
    items = fields.get(name) if isinstance(fields, Mapping) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def time_in(fields: Mapping[str, Any], *names: str) -> datetime | None:
    """The first of these fields that is a time, as RFC 3339 or in seconds since 1970; a broken one is none."""
    for name in names:
        value = fields.get(name)
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return known_time(name, datetime.fromtimestamp(value, UTC))
            if isinstance(value, str) and (moment := parsed_time(name, value or None)):
                return known_time(name, moment)
        except (InvalidInput, ValueError, OverflowError, OSError):
            continue
    return None


def named(name: str) -> str:
    """A name that fits where names go."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
