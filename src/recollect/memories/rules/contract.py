"""Metadata contract V1, and everything else that is checked before a memory is stored (D02-D07).

Each refusal names the field, the value and what would be accepted.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import Any, NoReturn
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.memories.rules.tags import REGISTERED_TAGS, WHAT_A_TAG_IS, can_be_tag
from recollect.memories.rules.text import is_storable, normalise
from recollect.model import ContentType, Metadata, NewMemory

CONTENT_TYPES = tuple(ContentType)
TYPES = ("expense", "todo", "bookmark")
SOURCES = ("cli", "telegram", "import", "api", "mcp", "web")
FIELDS = ("tags", "type", "source", "source_urls", "extra", "parent_id", "chunk_index", "total_chunks")
# The names that the source document gives these fields are accepted too.
ALSO_KNOWN_AS = {"raw_text": "text", "content_type": "subtype", "importance_score": "importance"}
CLOCKS_MAY_DIFFER = timedelta(days=1)
LAST_POSITION = 2**62  # those after it are to have a number too
LONGEST_NAME = 500
DEEPEST = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What a space accepts."""

    tags: frozenset[str] = REGISTERED_TAGS
    strict_tags: bool = False
    max_text_bytes: int = 1_000_000
    max_metadata_bytes: int = 4096

    @classmethod
    def of_space(cls, settings: Mapping[str, Any], *, max_text_bytes: int, max_metadata_bytes: int) -> "Contract":
        return cls(
            tags=REGISTERED_TAGS | frozenset(settings.get("tags", ())),
            strict_tags=bool(settings.get("strict_tags", False)),
            max_text_bytes=max_text_bytes,
            max_metadata_bytes=max_metadata_bytes,
        )


def checked(handed_in: NewMemory | str | Mapping[str, Any], contract: Contract, now: datetime) -> NewMemory:
    """The memory as it will be stored, or InvalidInput saying what is wrong with it."""
    if isinstance(handed_in, str):  # of a bare text there is nothing else to check
        return NewMemory(text=checked_text(handed_in, contract))
    memory = handed_in if isinstance(handed_in, NewMemory) else memory_from_mapping(handed_in)
    return replace(
        memory,
        text=checked_text(memory.text, contract),
        subtype=checked_content_type(memory.subtype),
        metadata=checked_metadata(memory.metadata, contract),
        importance=checked_importance(memory.importance),
        thread=checked_name("thread", memory.thread),
        position=checked_position(memory.position, memory.thread),
        created_at=checked_time(memory.created_at, now),
        id=checked_id(memory.id),
        source=checked_name("source", memory.source),
        source_id=checked_name("source_id", memory.source_id),
    )


def memory_from_mapping(fields: Mapping[str, Any]) -> NewMemory:
    """A memory from JSON: unknown fields are refused, the source document's names are understood."""
    if not isinstance(fields, Mapping):
        refuse("memory", f"a memory is an object with a text, not {shown(fields)}")
    named = {ALSO_KNOWN_AS.get(name, name): value for name, value in fields.items()}
    unknown = sorted(set(named) - set(NewMemory.__dataclass_fields__))
    if unknown:
        names = ", ".join(NewMemory.__dataclass_fields__)
        refuse(unknown[0], f"{unknown[0]!r} is not a field of a memory; the fields are {names}")
    if named.get("text") is None:
        refuse("text", "a memory needs a text")
    named["id"] = _parsed_id(named.get("id"))
    named["created_at"] = parsed_time("created_at", named.get("created_at"))
    return NewMemory(**{name: value for name, value in named.items() if value is not None})


def checked_text(text: object, contract: Contract) -> str:
    if not isinstance(text, str):
        refuse("text", f"the text must be a string, not {type(text).__name__}")
    if not is_storable(text):
        refuse("text", "the text holds a NUL byte or a lone surrogate, which no text has: remove it")
    size = len(text.encode())
    if size > contract.max_text_bytes:
        refuse(
            "text",
            f"the text has {size:,} bytes, the limit is {contract.max_text_bytes:,} (RECOLLECT_MAX_TEXT_BYTES): "
            f"import it as a document, which cuts it into chunks",
        )
    if not (normalised := normalise(text)):
        refuse("text", "the text is empty: say what to remember")
    return normalised


def checked_content_type(subtype: object) -> str:
    if subtype not in CONTENT_TYPES:
        refuse("content_type", f"{shown(subtype)} is not a content type; one of {', '.join(ContentType)} is")
    return str(subtype)


def checked_importance(importance: object) -> float | None:
    if importance is None:
        return None
    number = importance if isinstance(importance, int | float) and not isinstance(importance, bool) else None
    if number is None or not 0 <= number <= 1:  # false for NaN and infinity too
        refuse("importance", f"importance is a number from 0 to 1, not {shown(importance)}")
    return float(number)


def checked_position(position: object, thread: str | None) -> int | None:
    if position is None:
        return None
    if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position <= LAST_POSITION:
        refuse("position", f"position is a whole number from 0 to {LAST_POSITION:,}, not {shown(position)}")
    if thread is None:
        refuse("position", "a position needs the thread it counts in")
    return position


def checked_name(field: str, name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not is_storable(name):
        refuse(field, f"{field} is a text of 1 to {LONGEST_NAME} characters, not {shown(name)}")
    return name


def checked_time(moment: datetime | None, now: datetime) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        refuse("created_at", f"created_at is a date and time, not {shown(moment)}")
    aware = known_time("created_at", moment)
    if aware > now + CLOCKS_MAY_DIFFER:
        refuse("created_at", f"{aware.isoformat()} lies in the future: give the time when it was said")
    return aware


def checked_id(id_: object) -> UUID | None:
    if id_ is not None and not isinstance(id_, UUID):
        refuse("id", f"an id is a UUID, not {shown(id_)}; an id of your own belongs in source_id")
    return id_


def checked_metadata(metadata: object, contract: Contract) -> Metadata:
    if not isinstance(metadata, Mapping):
        refuse("metadata", f"metadata is an object, not {shown(metadata)}")
    if not metadata:
        return {}
    size = len(_as_json(metadata).encode())
    if size > contract.max_metadata_bytes:
        refuse("metadata", f"metadata has {size:,} bytes as JSON, the limit is {contract.max_metadata_bytes:,}")
    for field, value in metadata.items():
        if field not in FIELDS:
            refuse(
                f"metadata.{field}",
                f"{field!r} is not a metadata field of contract V1 ({', '.join(FIELDS)}): put it into extra",
            )
        _CHECKS[field](field, value, contract)
    return dict(metadata)


def checked_metadata_filter(metadata: object) -> Metadata:
    """What a listing may ask of metadata: any JSON object; what no memory has simply finds nothing."""
    if not isinstance(metadata, Mapping):
        refuse("metadata", f"metadata is an object, not {shown(metadata)}")
    _as_json(metadata)
    return dict(metadata)


def checked_space_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What can be set for a space: more registered tags, and whether only registered ones are accepted."""
    for name, value in settings.items():
        if name == "tags":
            _as_json({"tags": value})
            _tags("tags", value, Contract())
        elif name == "strict_tags":
            if not isinstance(value, bool):
                refuse("strict_tags", f"strict_tags is true or false, not {shown(value)}")
        elif name == "calibrations":
            _calibrations(value)
        elif name == "open_tags":
            refuse(name, "tags are open unless a space is strict: set strict_tags in place of open_tags")
        else:
            refuse(name, f"{name!r} is not a setting of a space; tags and strict_tags are")
    return dict(settings)


def _calibrations(value: object) -> None:
    ends = list(value.values()) if isinstance(value, Mapping) else [None]
    for end in ends:
        if not isinstance(end, Mapping) or set(end) != {"low", "high"} or not -1 <= end["low"] < end["high"] <= 1:
            refuse("calibrations", f"a calibration has a low and a higher high, not {shown(end)}; see calibrate")


def parsed_time(field: str, value: object) -> datetime | None:
    """A time from JSON: RFC 3339, naive means UTC."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        return as_utc(datetime.fromisoformat(value if isinstance(value, str) else ""))
    except (ValueError, OverflowError):
        refuse(field, f"{shown(value)} is not a time; write it like 2026-11-15T09:30:00Z")


def known_time(field: str, moment: datetime) -> datetime:
    """A time to keep, in UTC. Where none is known programs write the first or the last there is (Go, Hugo, .NET),
    which the database would keep as an infinity that nobody can read back."""
    try:
        aware = as_utc(moment)
    except OverflowError:
        aware = None
    if aware is None or aware.year in (MINYEAR, MAXYEAR):
        refuse(field, f"{moment.isoformat()} is what programs write where no time is known: leave {field} out")
    return aware


def as_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _tags(field: str, value: object, contract: Contract) -> None:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        _string_list(field, value, contract)
    assert isinstance(value, Collection)
    if unfit := [tag for tag in value if not can_be_tag(tag)]:
        refuse("metadata.tags", f"{shown(unfit[0])} cannot be a tag: {WHAT_A_TAG_IS}")
    unknown = [tag for tag in value if tag not in contract.tags]
    if unknown and contract.strict_tags:
        refuse(
            "metadata.tags",
            f"the tag {unknown[0]!r} is not registered; registered are {', '.join(sorted(contract.tags))}. "
            f"Register it in this space, or open its tags (`recollect spaces set`)",
        )


def _one_of(choices: tuple[str, ...]) -> Any:
    def check(field: str, value: object, _contract: Contract) -> None:
        if value not in choices:
            refuse(f"metadata.{field}", f"{field} {shown(value)} is unknown; one of {', '.join(choices)} is")

    return check


def _string_list(field: str, value: object, _contract: Contract) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        refuse(f"metadata.{field}", f"{field} is a list of texts, not {shown(value)}")


def _object(field: str, value: object, _contract: Contract) -> None:
    if not isinstance(value, Mapping):
        refuse(f"metadata.{field}", f"{field} is an object, not {shown(value)}")


def _string(field: str, value: object, _contract: Contract) -> None:
    if not isinstance(value, str) or not value:
        refuse(f"metadata.{field}", f"{field} is a text, not {shown(value)}")


def _counting_number(field: str, value: object, _contract: Contract) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        refuse(f"metadata.{field}", f"{field} is a whole number from 1, not {shown(value)}")


_CHECKS = {
    "tags": _tags,
    "type": _one_of(TYPES),
    "source": _one_of(SOURCES),
    "source_urls": _string_list,
    "extra": _object,
    "parent_id": _string,
    "chunk_index": _counting_number,
    "total_chunks": _counting_number,
}


def _as_json(metadata: Mapping[str, Any]) -> str:
    if not all(is_storable(text) for text in _texts_within(metadata)):
        refuse("metadata", "metadata holds a NUL byte or a lone surrogate: remove it")
    try:
        dumped = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        refuse("metadata", f"metadata cannot be written as JSON ({error}): use texts, numbers, lists and objects")
    if not all(isinstance(key, str) for key in metadata):
        refuse("metadata", "the keys of metadata are texts")
    return dumped


def _texts_within(value: object, depth: int = 0) -> Iterator[str]:
    if depth > DEEPEST:  # what writes JSON, here and in the doors, gives up at some depth; we do before it is stored
        refuse("metadata", f"metadata is nested more than {DEEPEST} deep: keep it flatter")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts_within(key, depth + 1)
            yield from _texts_within(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_within(item, depth + 1)


def _parsed_id(value: object) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        refuse("id", f"{shown(value)} is not a UUID; an id of your own belongs in source_id, with its source")


def shown(value: object) -> str:
    written = repr(value)
    return written if len(written) <= 60 else written[:57] + "..."


def refuse(field: str, sentence: str) -> NoReturn:
    raise InvalidInput(sentence[0].upper() + sentence[1:] + ".", field=field)
