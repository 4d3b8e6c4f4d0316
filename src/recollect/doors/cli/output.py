"""How the command line speaks; the only place that writes to stdout or stderr.

Answers go to stdout: tables for a terminal, and where stdout is no terminal one line an item, its columns divided by
tabs. Long texts in listings are shortened in both, unless `--full` asks for all of them. With `--json` it is one JSON
document and nothing else. Everything besides the answer (hints, progress, problems) goes to stderr.

What is remembered may hold anything, so control characters are made harmless before a terminal sees them, and nothing
in a text is taken for markup.
"""

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO
from uuid import UUID

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from recollect.memories.sources import SourceLine

SHORTENED = 160  # columns of a text in a line that nobody may ever see on a screen
LINES_OF_BLOCK = 3
INDENT = 4
MOST_LINES = 20
LEAST_OF_LAST = 20  # columns that the last column of a table needs to be read
INCOMPLETE = 1  # done, but
BROKEN_PIPE = 141  # as for every program that a closed pipe ends: 128 + SIGPIPE
SHORT_ID = 8
# Control characters except tab and line feed, and the marks that turn the direction of writing round.
_HARMFUL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    if code not in (0x09, 0x0A)
}


# -- saying


def say(text: str) -> None:
    """A line of the answer."""
    write(sys.stdout, harmless(text) + "\n")


def heading(text: str) -> None:
    """A line above a part of the answer."""
    if sys.stdout.isatty():
        console(sys.stdout).print("\n" + one_line(text), style="bold")
    else:
        say("\n" + one_line(text))


def complain(sentence: str) -> None:
    """What went wrong, in one sentence."""
    if is_watched():
        console(sys.stderr).print(one_line(sentence))  # lines end between words
    else:
        write(sys.stderr, one_line(sentence) + "\n")


def complain_as_json(problem: Mapping[str, str]) -> None:
    """The same for a program: one line, and ASCII, since a message may quote what no terminal should be sent."""
    write(sys.stderr, json.dumps(dict(problem)) + "\n")


def note(sentence: str) -> None:
    """What the reader must know besides the answer."""
    complain(sentence)


def hint(sentence: str) -> None:
    """What to type next; only for people."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        console(sys.stderr).print(harmless(sentence), style="dim")


def document(value: object) -> None:
    """The answer as one JSON document."""
    write(sys.stdout, _json(plain(value), indent=2) + "\n")


def _json(value: object, *, indent: int | None = None) -> str:
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, ensure_ascii=not readable, indent=indent, default=plain)


async def document_in_parts(head: Mapping[str, object], name: str, parts: AsyncIterator[Sequence[object]]) -> None:
    """The same where one list in it is too long to be held: `head`, then the list `name` as its parts come."""
    write(sys.stdout, _json({**plain(head), name: []}, indent=2).removesuffix("]\n}"))
    comma = ""
    async for part in parts:
        for item in part:
            write(sys.stdout, f"{comma}\n    {_json(item)}")
            comma = ","
    write(sys.stdout, ("\n  " if comma else "") + "]\n}\n")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, wrap: bool = False) -> None:
    """One line an item; on a terminal the last column takes what room is left, and is cut there unless it may wrap.

    Where hardly any room is left, it stands on a line of its own: no id is cut, and no column lost.
    """
    if not sys.stdout.isatty():
        for row in rows:
            write(sys.stdout, "\t".join(one_line(cell) for cell in row) + "\n")
        return
    _draw(console(sys.stdout), headings, rows, wrap=wrap)


def hits(headings: Sequence[str], rows: Iterable[Sequence[str]], *, full: bool = False) -> None:
    """A table of texts, one line each: shortened to the room there is, unless the whole of them is wanted."""
    if not sys.stdout.isatty() and not full:
        rows = [(*cells, shortened(text)) for *cells, text in rows]
    table(headings, rows, wrap=full)


def block(head: Sequence[str], text: str, details: Sequence[str], *, full: bool = False) -> None:
    """A hit laid open: on a terminal a few lines that fit any width, elsewhere one line."""
    if not sys.stdout.isatty():
        table((), [(*head, text if full else shortened(text), ", ".join(details))])
        return
    on = console(sys.stdout)
    on.print("  ".join(map(one_line, head)), style="cyan")
    _indented(on, text if full else shortened(text, LINES_OF_BLOCK * (on.width - INDENT)))
    _indented(on, ", ".join(details), style="dim")


def _indented(on: "Console", text: str, style: str = "", *, by: int = INDENT) -> None:
    from rich.padding import Padding
    from rich.text import Text

    on.print(Padding(Text(one_line(text), style=style, overflow="fold"), (0, 0, 0, by)))


def hanging(on: "Console", head: str, text: str, style: str = "") -> None:
    """A line that goes on below its own beginning, not below its head."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(head, style=style), Text(text, style=style))
    on.print(grid)


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """What is known of one thing: a name and a value a line."""
    table(("", ""), pairs, wrap=True)


def entries(rows: Iterable[Sequence[str]]) -> None:
    """Like a table, for what is too wide for one: on a terminal the last column goes below the others."""
    if not sys.stdout.isatty():
        table((), rows)
        return
    for first, *more, last in rows:
        on = console(sys.stdout)
        hanging(on, f"{one_line(first)}  ", "  ".join(map(one_line, more)), style="cyan")
        _indented(on, last)


SIGNED = {"+": "green", "~": "yellow", "-": "red"}


def signed(rows: Iterable[Sequence[str]]) -> None:
    """Like entries, in the colour of their second column: what comes, changes, goes."""
    if not sys.stdout.isatty():
        table((), rows)
        return
    for number, sign, *more, last in rows:
        on = console(sys.stdout)
        hanging(on, f"{number:>5} {sign} ", "  ".join(map(one_line, more)), style=SIGNED.get(sign, ""))
        if last:
            _indented(on, last, style="dim", by=2 * INDENT)


def _draw(on: "Console", headings: Sequence[str], rows: Iterable[Sequence[str]], *, wrap: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    lines = [tuple(map(one_line, row)) for row in rows]
    if not _has_room(on, headings, lines):
        for *short, long in lines:
            on.print("  ".join(short), style="cyan")
            _indented(on, long)
        return
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(headings), header_style="bold")
    for heading in headings[:-1]:
        drawn.add_column(heading, no_wrap=True, style="cyan")
    drawn.add_column(headings[-1])
    for *short, long in lines:
        drawn.add_row(*map(Text, short), Text(long, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis"))
    on.print(drawn)


def _has_room(on: "Console", headings: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Whether the last column can be read beside the others."""
    from rich.cells import cell_len

    *others, last = (max(map(cell_len, column)) for column in zip(headings, *lines, strict=False))
    return sum(others) + 2 * len(others) + min(last, LEAST_OF_LAST) <= on.width


# -- while it takes long


class Progress(Protocol):
    def __call__(self, done: int, total: int | None = None) -> None: ...


def is_watched() -> bool:
    """Whether somebody sees what goes on besides the answer."""
    return sys.stderr.isatty()


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """A spinner while there is nothing to see yet; only on a terminal."""
    if not is_watched():
        yield
        return
    with console(sys.stderr).status(doing):
        yield


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """A bar on stderr, told how much is done and of how much, if that is known; only on a terminal."""
    if not is_watched():
        yield lambda _done, _total=None: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total=None: bar.update(task, completed=done, total=total)


def lines(report: "Sequence[SourceLine]") -> None:
    """What an import has to say of the lines it read, the first of it."""
    for line in report[:MOST_LINES]:
        note(f"{line.what}: {line}")
    if len(report) > MOST_LINES:
        note(f"And {len(report) - MOST_LINES:,} more: --json tells all of them.")


# -- words and values


def one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def shortened(text: str, columns: int = SHORTENED) -> str:
    """The beginning of a text, as wide as there is room (a Chinese character takes two columns), and a sign of more."""
    from rich.cells import cell_len, set_cell_size

    line = one_line(text)
    return line if cell_len(line) <= columns else set_cell_size(line, columns - 1).rstrip() + "…"


def harmless(text: str) -> str:
    """The text without what could steer a terminal."""
    return text.translate(_HARMFUL)


def short(id_: UUID | None) -> str:
    """As much of an id as people type."""
    return "" if id_ is None else str(id_)[:SHORT_ID]


def day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def minute(moment: datetime | None, *, never: str = "never") -> str:
    return never if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def compact(value: object) -> str:
    """A value in few characters: texts as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def size(number: int) -> str:
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def plain(value: Any) -> Any:
    """A value in JSON's own terms; times as RFC 3339 with Z."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | Path | date):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


# -- the streams themselves


def console(file: TextIO) -> "Console":
    from rich.console import Console

    # By itself it takes a dumb terminal for 80 columns wide, whatever its width.
    width = shutil.get_terminal_size().columns if file.isatty() else None
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


class Stdout:
    """Where an answer goes that is bytes."""

    def write(self, data: bytes) -> int:
        with _until_closed():
            return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        with _until_closed():
            sys.stdout.buffer.flush()


def write(stream: TextIO, text: str) -> None:
    with _until_closed():
        stream.write(text)


def finish() -> None:
    """Send what is still held back, while a closed pipe can still be met quietly."""
    with _until_closed():
        sys.stdout.flush()


@contextmanager
def _until_closed() -> Iterator[None]:
    """Whoever reads us may stop at any time (`| head`): then stop too, without a word."""
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(BROKEN_PIPE) from None
        complain(
            f"The answer cannot be written ({error.strerror}): what was asked is done, but what you have is not all."
        )
        raise typer.Exit(INCOMPLETE) from None
