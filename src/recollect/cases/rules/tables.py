"""Tables of cases: JSON lines, and CSV files as other tools write them, row by row with what is wrong with each."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from recollect.cases.rules.cases import ALSO_KNOWN_AS, FIELDS, case_from_mapping
from recollect.errors import InvalidInput
from recollect.memories.rules.tables import read_csv
from recollect.model import NewCase

NO_COLUMNS = "query (or question) and response_text (or answer): name the columns there."


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseRow:
    """One row: a case, or what is wrong with it."""

    line: int
    case: NewCase | None = None
    problem: str | None = None


def jsonl_cases(lines: Iterable[str], *, fractions: bool) -> Iterator[CaseRow]:
    """One object a line, with the fields of a case."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _row(number, partial(_case_of_line, line, fractions=fractions))


def csv_cases(lines: Iterable[str], *, fractions: bool) -> Iterator[CaseRow]:
    """The rows of a CSV file whose first line names the fields; columns that are none of a case's go into extra."""
    for row in read_csv(lines, column=_column, needed=("query", "response_text"), otherwise=NO_COLUMNS):
        if row.problem:
            yield CaseRow(line=row.line, problem=row.problem)
        else:
            yield _row(row.line, partial(_case_of_cells, row.cells, fractions=fractions))


def _row(number: int, read: Callable[[], NewCase]) -> CaseRow:
    try:
        return CaseRow(line=number, case=read())
    except InvalidInput as problem:
        return CaseRow(line=number, problem=problem.message)


def _case_of_line(line: str, *, fractions: bool) -> NewCase:
    return case_from_mapping(_parsed(line), fractions=fractions)


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The line is not JSON: write one object a line.") from error
    if not isinstance(found, dict):
        raise InvalidInput("The line is no JSON object: write one object a line.")
    return found


def _column(name: str) -> str:
    """A known field in its own spelling, however it is written; any other name as it is."""
    plain = name.lower().replace(" ", "_")
    known = ALSO_KNOWN_AS.get(plain, plain)
    return known if known in FIELDS else name


def _case_of_cells(cells: Mapping[str, str], *, fractions: bool) -> NewCase:
    given = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    fields: dict[str, Any] = {name: given.pop(name) for name in FIELDS if name in given}
    fields |= {name: read(fields[name]) for name, read in _CELLS.items() if name in fields}
    if "id" in fields and not isinstance(fields["id"], UUID):
        fields.setdefault("source_id", fields.pop("id"))
    if given:
        metadata = fields.setdefault("metadata", {})
        metadata["extra"] = {**metadata.get("extra", {}), **given}
    return case_from_mapping(fields, fractions=fractions)


def _rate(cell: str) -> float | str:
    """A cell as a number; what is none is left for the check to refuse."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _whole_number(cell: str) -> int | str:
    try:
        return int(cell)
    except ValueError:
        return cell


def _id(cell: str) -> UUID | str:
    try:
        return UUID(cell)
    except ValueError:
        return cell


def _object(cell: str) -> dict[str, Any]:
    found = _parsed(cell)
    if not isinstance(found.get("extra", {}), dict):
        raise InvalidInput("The column metadata holds a JSON object, with an object as its extra.", field="metadata")
    return dict(found)


_CELLS: dict[str, Callable[[str], Any]] = {
    "usage_count": _whole_number,
    "success_rate": _rate,
    "id": _id,
    "metadata": _object,
}
