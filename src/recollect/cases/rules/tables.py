"""Tables of cases: JSON lines, and CSV files as other tools write them, row by row with what is wrong with each."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

from recollect.cases.rules.cases import ALSO_KNOWN_AS, FIELDS, case_from_mapping
from recollect.errors import InvalidInput
from recollect.memories.rules.tables import ReadRow, cell_as, csv_rows, field_named, json_object, jsonl_rows
from recollect.model import NewCase

NO_COLUMNS = "query (or question) and response_text (or answer): name the columns there."


def jsonl_cases(lines: Iterable[str], *, fractions: bool) -> Iterator[ReadRow[NewCase]]:
    """One object a line, with the fields of a case."""
    return jsonl_rows(lines, partial(case_from_mapping, fractions=fractions))


def csv_cases(lines: Iterable[str], *, fractions: bool) -> Iterator[ReadRow[NewCase]]:
    """The rows of a CSV file whose first line names the fields; columns that are none of a case's go into extra."""
    column = partial(field_named, fields=FIELDS, also_known_as=ALSO_KNOWN_AS)
    make = partial(_case_of_cells, fractions=fractions)
    return csv_rows(lines, make, column=column, needed=("query", "response_text"), otherwise=NO_COLUMNS)


def _case_of_cells(given: dict[str, str], *, fractions: bool) -> NewCase:
    fields: dict[str, Any] = {name: given.pop(name) for name in FIELDS if name in given}
    fields |= {name: read(fields[name]) for name, read in _CELLS.items() if name in fields}
    if "id" in fields and not isinstance(fields["id"], UUID):
        fields.setdefault("source_id", fields.pop("id"))
    if given:
        metadata = fields.setdefault("metadata", {})
        metadata["extra"] = {**metadata.get("extra", {}), **given}
    return case_from_mapping(fields, fractions=fractions)


def _object(cell: str) -> dict[str, Any]:
    value = json_object(cell)
    if not isinstance(value.get("extra", {}), dict):
        raise InvalidInput("The column metadata holds a JSON object, with an object as its extra.", field="metadata")
    return value


_CELLS: dict[str, Callable[[str], Any]] = {
    "usage_count": partial(cell_as, int),
    "success_rate": partial(cell_as, float),
    "id": partial(cell_as, UUID),
    "metadata": _object,
}
