"""Tables as other tools write them: CSV with a first line that names the columns, row by row with what is wrong."""

import csv
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from recollect.errors import InvalidInput

DELIMITERS = (",", ";", "\t")
LONGEST_CELL = 2**31 - 1  # how long a text may be is checked where it is taken in


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """The line it begins at, and its cells by column, as they are written; or what is wrong with it."""

    line: int
    cells: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


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
