"""Tables as other tools write them: CSV with a first line that names the columns, row by row with what is wrong; and
JSON lines."""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from recollect.errors import InvalidInput

DELIMITERS = (",", ";", "\t")
BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}
LONGEST_CELL = 2**31 - 1  # how long a text may be is checked where it is taken in

T = TypeVar("T")
G = TypeVar("G")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRow(Generic[T]):
    """What a row was made into, a case or a concept; or what is wrong with it."""

    line: int
    made: T | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """The line it begins at, and its cells by column, as they are written; or what is wrong with it."""

    line: int
    cells: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


def jsonl_rows(lines: Iterable[str], make: Callable[[dict[str, Any]], T]) -> Iterator[ReadRow[T]]:
    """One object a line."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _read_row(number, lambda line: make(json_object(line)), line)


def csv_rows(
    lines: Iterable[str],
    make: Callable[[dict[str, str]], T],
    *,
    column: Callable[[str], str],
    needed: Collection[str],
    otherwise: str,
) -> Iterator[ReadRow[T]]:
    """The rows of a CSV file, made of the cells that hold anything (see `read_csv`)."""
    for row in read_csv(lines, column=column, needed=needed, otherwise=otherwise):
        if row.problem:
            yield ReadRow(line=row.line, problem=row.problem)
        else:
            given = {name: cell.strip() for name, cell in row.cells.items() if cell.strip()}
            yield _read_row(row.line, make, given)


def _read_row(number: int, make: Callable[[G], T], given: G) -> ReadRow[T]:
    try:
        return ReadRow(line=number, made=make(given))
    except InvalidInput as problem:
        return ReadRow(line=number, problem=problem.message)


def field_named(name: str, fields: Collection[str], also_known_as: Mapping[str, str]) -> str:
    """A known field in its own spelling, however it is written; any other name as it is."""
    plain = name.lower().replace(" ", "_")
    own_name = also_known_as.get(plain, plain)
    return own_name if own_name in fields else name


def cell_as(kind: Callable[[str], T], cell: str) -> T | str:
    """A cell as a number, an id; what is none is left for the check to refuse."""
    try:
        return kind(cell)
    except ValueError:
        return cell


def read_csv(
    lines: Iterable[str], *, column: Callable[[str], str], needed: Collection[str], otherwise: str
) -> Iterator[TableRow]:
    """The rows that hold anything. `column` is the name that a heading stands for; a table without those that are
    `needed` is refused, and `otherwise` says which those are."""
    csv.field_size_limit(LONGEST_CELL)
    source = iter(lines)
    delimiter, columns = _header(next(source, ""), column, needed, otherwise)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 2
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield TableRow(line=line, problem=f"The row cannot be read as CSV ({error}): check its quotes.")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(columns):
            many = f"The row has {len(cells)} cells, the header names {len(columns)}: put quotes round commas."
            yield TableRow(line=line, problem=many)
        else:
            yield TableRow(line=line, cells=dict(zip(columns, cells, strict=False)))


def _header(line: str, column: Callable[[str], str], needed: Collection[str], otherwise: str) -> tuple[str, list[str]]:
    """The delimiter, and the name of each column."""
    for delimiter in DELIMITERS:
        headings = next(csv.reader([line], delimiter=delimiter), [])
        columns = [column(name.strip()) or f"column {number}" for number, name in enumerate(headings, start=1)]
        if set(needed) <= set(columns):
            if twice := sorted(name for name in set(columns) if columns.count(name) > 1):
                raise InvalidInput(f"Its first line names {twice[0]!r} twice: give each column a name of its own.")
            return delimiter, columns
    raise InvalidInput(f"Its first line names no column {otherwise}")


def is_jsonl(format: str, suffix: str, text: str) -> bool:
    """Whether a table is JSON lines and not CSV: as it is said, else by its ending, else by how it begins."""
    known_format = BY_SUFFIX.get(suffix.lower()) if format == "auto" else format
    return known_format == "jsonl" if known_format else text.lstrip().startswith("{")


def json_object(line: str) -> dict[str, Any]:
    """A line of JSON lines."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The line is not JSON: write one object a line.") from error
    if not isinstance(value, dict):
        raise InvalidInput("The line is no JSON object: write one object a line.")
    return value
