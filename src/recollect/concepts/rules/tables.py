"""Tables of concepts: CSV whose first line names the columns, and JSON lines; each row a concept, or what is wrong.

A column or key that is none of a concept's own is a field of its metadata, which is compared like any other.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import parsed_time
from recollect.memories.rules.tables import read_csv
from recollect.model import NewConcept

FIELDS = ("name", "node_type", "text", "energy", "base_weight", "metadata", "created_by", "created_at")
ALSO_KNOWN_AS = {"title": "name", "label": "name", "type": "node_type", "description": "text", "weight": "base_weight"}
NO_COLUMNS = "name (or title, or label): name the column there."


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptRow:
    """One row: a concept, or what is wrong with it."""

    line: int
    concept: NewConcept | None = None
    problem: str | None = None


def jsonl_concepts(lines: Iterable[str]) -> Iterator[ConceptRow]:
    """One object a line."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _row(number, partial(_of_line, line))


def csv_concepts(lines: Iterable[str]) -> Iterator[ConceptRow]:
    """The rows of a CSV file whose first line names the columns."""
    for row in read_csv(lines, column=_column, needed=("name",), otherwise=NO_COLUMNS):
        if row.problem:
            yield ConceptRow(line=row.line, problem=row.problem)
        else:
            yield _row(row.line, partial(_of_cells, row.cells))


def concept_from_mapping(given: Mapping[str, Any]) -> NewConcept:
    """A concept from JSON or from the cells of a table: what is no field of a concept is one of its metadata."""
    if not isinstance(given, Mapping):
        raise InvalidInput("A concept is an object with a name.")
    own: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for name, value in given.items():
        known = _column(name)
        if known not in FIELDS:
            more[name] = value
        elif known in own:
            raise InvalidInput(f"{known} is given twice: say it once.", field=known)
        else:
            own[known] = value
    metadata = own.pop("metadata", None) or {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata is a JSON object.", field="metadata")
    own["created_at"] = parsed_time("created_at", own.get("created_at"))
    own = {name: value for name, value in own.items() if value is not None}
    if not own.get("name"):
        raise InvalidInput("A concept needs a name.", field="name")
    return NewConcept(**own, metadata={**metadata, **more})


def _row(number: int, read: Callable[[], NewConcept]) -> ConceptRow:
    try:
        return ConceptRow(line=number, concept=read())
    except InvalidInput as problem:
        return ConceptRow(line=number, problem=problem.message)


def _of_line(line: str) -> NewConcept:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The line is not JSON: write one object a line.") from error
    if not isinstance(found, dict):
        raise InvalidInput("The line is no JSON object: write one object a line.")
    return concept_from_mapping(found)


def _of_cells(cells: Mapping[str, str]) -> NewConcept:
    given: dict[str, Any] = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    for name in ("energy", "metadata"):
        if name in given:
            given[name] = _object(name, given[name])
    if "base_weight" in given:
        given["base_weight"] = _number(given["base_weight"])
    return concept_from_mapping(given)


def _column(name: str) -> str:
    """A field of a concept in its own spelling, however it is written; any other name as it is."""
    plain = name.lower().replace(" ", "_")
    known = ALSO_KNOWN_AS.get(plain, plain)
    return known if known in FIELDS else name


def _object(name: str, cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The column {name} holds a JSON object.", field=name) from error


def _number(cell: str) -> float | str:
    """A cell as a number; what is none is left for the check to refuse."""
    try:
        return float(cell)
    except ValueError:
        return cell
