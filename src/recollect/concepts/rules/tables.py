"""Tables of concepts: CSV whose first line names the columns, and JSON lines; each row a concept, or what is wrong.

A column or key that is none of a concept's own is a field of its metadata, which is compared like any other.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import parsed_time
from recollect.memories.rules.tables import ReadRow, cell_as, csv_rows, field_named, jsonl_rows
from recollect.model import NewConcept

FIELDS = ("name", "node_type", "text", "energy", "base_weight", "metadata", "created_by", "created_at")
ALSO_KNOWN_AS = {"title": "name", "label": "name", "type": "node_type", "description": "text", "weight": "base_weight"}
NO_COLUMNS = "name (or title, or label): name the column there."
_column = partial(field_named, fields=FIELDS, also_known_as=ALSO_KNOWN_AS)


def jsonl_concepts(lines: Iterable[str]) -> Iterator[ReadRow[NewConcept]]:
    """One object a line."""
    return jsonl_rows(lines, concept_from_mapping)


def csv_concepts(lines: Iterable[str]) -> Iterator[ReadRow[NewConcept]]:
    """The rows of a CSV file whose first line names the columns."""
    return csv_rows(lines, _of_cells, column=_column, needed=("name",), otherwise=NO_COLUMNS)


def concept_from_mapping(given: Mapping[str, Any]) -> NewConcept:
    """A concept from JSON or from the cells of a table: what is no field of a concept is one of its metadata."""
    if not isinstance(given, Mapping):
        raise InvalidInput("A concept is an object with a name.")
    own: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for name, value in given.items():
        field = _column(name)
        if field not in FIELDS:
            more[name] = value
        elif field in own:
            raise InvalidInput(f"{field} is given twice: say it once.", field=field)
        else:
            own[field] = value
    metadata = own.pop("metadata", None) or {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata is a JSON object.", field="metadata")
    own["created_at"] = parsed_time("created_at", own.get("created_at"))
    own = {name: value for name, value in own.items() if value is not None}
    if not own.get("name"):
        raise InvalidInput("A concept needs a name.", field="name")
    return NewConcept(**own, metadata={**metadata, **more})


def _of_cells(cells: Mapping[str, str]) -> NewConcept:
    given: dict[str, Any] = dict(cells)
    for name in ("energy", "metadata"):
        if name in given:
            given[name] = _object(name, given[name])
    if "base_weight" in given:
        given["base_weight"] = cell_as(float, given["base_weight"])
    return concept_from_mapping(given)


def _object(name: str, cell: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The column {name} holds a JSON object.", field=name) from error
