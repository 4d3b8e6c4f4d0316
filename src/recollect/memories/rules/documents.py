"""Documents and rows as memories: text, Markdown with front matter, JSONL, CSV. Values in, values out.

What names a known field goes to its place; everything else is kept in metadata.extra. A document that is too long
becomes chunks that share a parent (D08). What cannot be understood is said in one sentence, never guessed.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import yaml

from recollect.errors import InvalidInput
from recollect.memories.rules import exported
from recollect.memories.rules.chunking import chunks, headings_above
from recollect.memories.rules.contract import (
    ALSO_KNOWN_AS,
    Contract,
    checked_content_type,
    checked_importance,
    checked_metadata,
    checked_time,
    known_time,
    memory_from_mapping,
    parsed_time,
)
from recollect.memories.rules.contract import FIELDS as CONTRACT_FIELDS
from recollect.memories.rules.tables import read_csv
from recollect.memories.rules.tags import WHAT_A_TAG_IS, can_be_tag, written_tags
from recollect.memories.rules.text import checksum, is_storable, normalise
from recollect.model import ContentType, Metadata, NewMemory

UTF8_MARK = b"\xef\xbb\xbf"
FOREIGN_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
LONGEST_FRONT_MATTER = 100_000
LONGEST_EXTRA = 3900  # metadata holds 4,096 bytes, and where a chunk stands needs some of them
MOST_VALUES = 2000  # metadata holds 4,096 bytes; anchors and aliases can claim millions
NO_TEXT = "text: name the columns there, one of them text."
LONGEST_SECTION = 300
FULL_METADATA = 2500  # metadata holds 4,096 bytes, and where a chunk stands is not worth losing it

# The lazy ?? lets an empty front matter end at once.
FRONT_MATTER = re.compile(r"---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
LOOKS_LIKE_FRONT_MATTER = re.compile(r"---[ \t]*\n[\w-]+[ \t]*:")
_ANY_TAG = Contract()
_DAY_LAST = re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<mark>[-_. ]?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>(?:19|20)\d\d)(?!\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document as one memory, however long, and what should be said about it."""

    memory: NewMemory
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of a table: the memory it makes, or what is wrong with it; and the line it begins at."""

    line: int
    memory: NewMemory | None = None
    problem: str | None = None


def named_date(name: str) -> datetime | None:
    """The day in a file's name (2026-11-15, 20261115, 15.11.2026): that of a daily note, and so its time (D48)."""
    match = _DAY_LAST.search(name) or _DAY_FIRST.search(name)
    if match is None:
        return None
    try:
        return datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC)
    except ValueError:  # a number that looks like a date
        return None


# -- bytes to text


def looks_binary(beginning: bytes) -> bool:
    return b"\0" in beginning and not beginning.startswith(tuple(FOREIGN_MARKS))


def refuse_foreign(data: bytes) -> None:
    """InvalidInput for what begins with the mark of another encoding."""
    for mark, name in FOREIGN_MARKS.items():
        if data.startswith(mark):
            raise InvalidInput(f"It is {name}, not UTF-8: convert it, for example with iconv.")


def decoded(data: bytes) -> str:
    """Bytes as text: UTF-8, with or without its mark; InvalidInput for anything else."""
    refuse_foreign(data)
    try:
        return data.removeprefix(UTF8_MARK).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"It is not UTF-8 (byte 0x{data[error.start]:02x} at {error.start:,}): convert it, for example with iconv."
        ) from error


# -- documents


def text_document(text: str) -> Document:
    return Document(memory=NewMemory(text=normalise(text)))


def markdown_document(text: str) -> Document:
    """Markdown: the front matter's fields in their places, the rest as the text."""
    text = normalise(text)
    match = FRONT_MATTER.match(text)
    if match is None:
        unclosed = LOOKS_LIKE_FRONT_MATTER.match(text) is not None
        return Document(memory=NewMemory(text=text), notes=_kept_as_text("it is never closed") if unclosed else ())
    try:
        fields = front_matter(match[1] or "")
    except InvalidInput as problem:
        return Document(memory=NewMemory(text=text), notes=_kept_as_text(problem.message))
    document = _placed(fields, text[match.end() :].strip())
    metadata = dict(document.memory.metadata)
    if len(json.dumps(metadata.pop("extra", {}), ensure_ascii=False).encode(errors="surrogatepass")) <= LONGEST_EXTRA:
        return document
    notes = (*document.notes, *_kept_as_text("its fields are longer than metadata holds"))
    return Document(memory=replace(document.memory, text=text, metadata=metadata), notes=notes)


def with_time_that_has_come(document: Document, now: datetime) -> Document:
    """A note of a day to come (a plan, a post that waits) without that time, which is kept in metadata.extra."""
    ahead = document.memory.created_at
    try:
        checked_time(ahead, now)
    except InvalidInput as problem:
        note = f"The front matter's date was kept in metadata.extra: {problem.message}"
        extra = {"date": ahead and ahead.isoformat(), **document.memory.metadata.get("extra", {})}
        memory = replace(document.memory, created_at=None, metadata={**document.memory.metadata, "extra": extra})
        return Document(memory=memory, notes=(*document.notes, note))
    return document


def _kept_as_text(why: str) -> tuple[str, ...]:
    return (f"The front matter was kept as text, because {why}.",)


def front_matter(block: str) -> dict[str, Any]:
    """The fields of a front matter as JSON values; InvalidInput with a reason where it is broken."""
    if len(block) > LONGEST_FRONT_MATTER:
        raise InvalidInput(f"it is longer than {LONGEST_FRONT_MATTER:,} characters")
    try:
        fields = _json_safe(yaml.safe_load(block), budget=[MOST_VALUES])
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        at = f" at line {where.line + 2}" if where else ""
        raise InvalidInput(f"it is not YAML{at}") from error
    if fields is not None and not isinstance(fields, dict):
        raise InvalidInput("it names no fields")
    return fields or {}


def _json_safe(value: Any, *, budget: list[int]) -> Any:
    """A YAML value as JSON: times as text, keys as text; InvalidInput when it holds too much."""
    budget[0] -= 1
    if budget[0] < 0:
        raise InvalidInput(f"it holds more than {MOST_VALUES:,} values")
    if isinstance(value, Mapping):
        return {str(key): _json_safe(item, budget=budget) for key, item in value.items()}
    if isinstance(value, set):
        return [_json_safe(item, budget=budget) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [_json_safe(item, budget=budget) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _placed(fields: Mapping[str, Any], text: str) -> Document:
    """Each field where it belongs; what is unknown, or unfit for its place, in metadata.extra."""
    memory: dict[str, Any] = {}
    metadata: Metadata = {}
    extra: Metadata = {}
    notes: list[str] = []
    for name, value in fields.items():
        if name in ("tags", "tag") and "tags" not in metadata:
            metadata |= _tags(value, notes)
            continue
        field, fit, note = _place_or_extra(name, value)
        if note:
            notes.append(note)
        target = metadata if field in CONTRACT_FIELDS else memory
        if field == "extra":
            extra |= fit
        elif field in target:
            extra[name] = value
        elif fit is not None:
            target[field] = fit
    if extra:
        metadata["extra"] = extra
    return Document(memory=NewMemory(text=text, metadata=metadata, **memory), notes=tuple(notes))


def _tags(value: Any, notes: list[str]) -> Metadata:
    """The tags of a note. Whatever stands there, the note is kept: what cannot be a tag is left out, and counted."""
    given = written_tags(value)
    tags = [tag for tag in given if can_be_tag(tag)]
    if left_out := len(given) - len(tags):
        tags_were = "1 tag of the front matter was" if left_out == 1 else f"{left_out:,} tags of the front matter were"
        notes.append(f"{tags_were} left out: {WHAT_A_TAG_IS}.")
    return {"tags": tags} if tags else {}


def _place_or_extra(name: str, value: Any) -> tuple[str, Any, str | None]:
    """Where a front matter field goes, its value there, and a note where that is not the place it names."""
    try:
        field, fit = _place(name, value)
        return field, fit, None
    except InvalidInput as problem:
        # Other tools use `type` and `source` in a sense of their own: that is no mistake.
        note = f"The front matter's {name} was kept in metadata.extra: {problem.message}"
        return "extra", {name: value}, None if name in ("type", "source") else note


def _place(name: str, value: Any) -> tuple[str, Any]:
    if name in ("created_at", "date", "created"):
        moment = parsed_time(name, value)
        return "created_at", moment and known_time(name, moment)
    if name in ("importance", "importance_score"):
        return "importance", checked_importance(value)
    if name in ("subtype", "content_type") or (name == "type" and value in tuple(ContentType)):
        return "subtype", None if value is None else checked_content_type(value)
    if name in CONTRACT_FIELDS:
        fit = [value] if name == "source_urls" and isinstance(value, str) else value
        if fit is not None:
            checked_metadata({name: fit}, _ANY_TAG)
        return name, fit or ({} if name == "extra" else None)
    return "extra", {name: value}


# -- rows


def memory_of_line(line: str) -> NewMemory:
    """One line of JSONL: the fields of a memory, or a line of our own export."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The line is not JSON (see its column {error.colno}): write one object a line.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The line is no JSON that can be read (a number or a nesting is too long).") from error
    return exported.memory(fields) if exported.is_exported(fields) else memory_from_mapping(_with_metadata(fields))


def _with_metadata(fields: Any) -> Any:
    """A row that says beside its text what belongs into metadata, as a column of a table does (D54)."""
    given = fields.get("metadata", {}) if isinstance(fields, dict) else None
    if not isinstance(given, dict):
        return fields
    row = {name: value for name, value in fields.items() if name not in _METADATA_CELLS}
    beside = {name: fields[name] for name in _METADATA_CELLS if fields.get(name) is not None}
    if beside.get("type") in tuple(ContentType):
        row.setdefault("subtype", beside.pop("type"))
    read = {name: _METADATA_CELLS[name](value) if isinstance(value, str) else value for name, value in beside.items()}
    return {**row, "metadata": {**read, **given}} if read else row


def csv_rows(lines: Iterable[str]) -> Iterator[Row]:
    """The rows of a CSV file whose first line names the fields; InvalidInput where it has no text column."""
    for row in read_csv(lines, column=_column, needed=("text",), otherwise=NO_TEXT):
        try:
            memory = None if row.problem else _memory_of_cells(row.cells)
            yield Row(line=row.line, memory=memory, problem=row.problem)
        except InvalidInput as problem:
            yield Row(line=row.line, problem=problem.message)


def _column(name: str) -> str:
    """A known field in its own spelling, however it is written; any other name as it is."""
    field = {**ALSO_KNOWN_AS, "date": "created_at"}.get(name.lower(), name.lower())
    return field if field in {**_MEMORY_CELLS, **_METADATA_CELLS} else name


def _memory_of_cells(cells: Mapping[str, str]) -> NewMemory:
    given = {name: cell for name, cell in cells.items() if name == "text" or cell.strip()}
    if given.get("type", "").strip() in tuple(ContentType):
        given.setdefault("subtype", given.pop("type"))
    memory = {name: read(given.pop(name)) for name, read in _MEMORY_CELLS.items() if name in given}
    metadata: Metadata = memory.pop("metadata", {})
    metadata |= {name: read(given.pop(name)) for name, read in _METADATA_CELLS.items() if name in given}
    if given:
        metadata["extra"] = {**metadata.get("extra", {}), **given}
    return memory_from_mapping({**memory, "metadata": metadata})


def _number(cell: str) -> float | str:
    """A cell as a number; what is none is left for the contract to refuse."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _whole_number(cell: str) -> int | str:
    try:
        return int(cell)
    except ValueError:
        return cell


def _cell_tags(cell: str) -> list[str] | None:
    return written_tags(cell) or None


def _object(cell: str) -> Metadata:
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("extra", {}), dict):
        raise InvalidInput("The column metadata holds a JSON object, with an object as its extra.", field="metadata")
    return value


_MEMORY_CELLS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "subtype": str.strip,
    "importance": _number,
    "thread": str.strip,
    "position": _whole_number,
    "created_at": str.strip,
    "id": str.strip,
    "source": str.strip,
    "source_id": str.strip,
    "metadata": _object,
}
_METADATA_CELLS: dict[str, Callable[[str], Any]] = {"tags": _cell_tags, "type": str.strip, "source_urls": str.split}


# -- long documents


def chunked(memory: NewMemory, *, space_id: UUID, most_tokens: int, thread: str | None) -> list[NewMemory]:
    """A memory as it is where it is short enough; else as chunks, each a memory that names its parent (D08).

    The parent is named by the document's text and space, so that importing it again finds the same chunks. They follow
    each other in the memory's own thread, else in the one given, else in one named after the parent. A memory that
    names a parent was cut before, by someone else: it stays as it is.
    """
    if not isinstance(memory.text, str) or len(memory.text) <= most_tokens:
        return [memory]
    if not isinstance(memory.metadata, Mapping) or "parent_id" in memory.metadata:
        return [memory]
    text = normalise(memory.text)
    parts = chunks(text, most_tokens) if is_storable(text) else []
    if len(parts) <= 1:
        return [memory]
    parent = str(memory.id or uuid5(space_id, checksum(text)))
    above = headings_above(text, parts)
    return [
        replace(
            memory,
            text=part,
            id=None,
            thread=memory.thread or thread or parent,
            position=memory.position if memory.thread else index,
            metadata={
                **_below(memory.metadata, above[index - 1]),
                "parent_id": parent,
                "chunk_index": index,
                "total_chunks": len(parts),
            },
            # One microsecond apart, so that listings keep the order.
            created_at=memory.created_at and memory.created_at + timedelta(microseconds=index - 1),
            source_id=memory.source_id and f"{memory.source_id}#{index}",
        )
        for index, part in enumerate(parts, start=1)
    ]


def _below(metadata: Mapping[str, Any], heading: str) -> Metadata:
    """Metadata with the heading that a chunk stands below, by which it is found too (D48), unless it says so itself."""
    extra = metadata.get("extra", {})
    has_room = len(json.dumps(metadata, default=str)) < FULL_METADATA
    if not (heading and has_room and isinstance(extra, Mapping)) or "section" in extra:
        return dict(metadata)
    return {**metadata, "extra": {**extra, "section": heading[:LONGEST_SECTION]}}


def with_parent(metadata: Mapping[str, Any], chunk: Mapping[str, Any]) -> Metadata:
    """The metadata of a memory that turned out to be a chunk of one more document; unchanged if it knew."""
    parent = {name: chunk[name] for name in ("parent_id", "chunk_index", "total_chunks") if name in chunk}
    extra = dict(metadata.get("extra", {}))
    others = extra.get("parents", [])
    others = others if isinstance(others, list) else [others]
    if any(_is_same(parent, other) for other in (metadata, *others)):
        return dict(metadata)
    return {**metadata, "extra": {**extra, "parents": [*others, parent]}}


def _is_same(parent: Mapping[str, Any], other: object) -> bool:
    return isinstance(other, Mapping) and all(
        other.get(name) == parent.get(name) for name in ("parent_id", "chunk_index")
    )
