"""What an import reads: files, folders and standard input, as one stream of memories, each with the place it came from.

Whatever is not read is said, with the reason, and the rest goes on. Tables (JSONL, CSV) are streamed row by row;
a document is read whole. All of it blocks, so the engine runs it in a thread.
"""

import codecs
import io
import re
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from os import fsencode
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar, cast, get_args
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.memories.rules import documents, foreign
from recollect.memories.rules.contract import LONGEST_NAME
from recollect.memories.rules.json_values import json_values
from recollect.memories.rules.pieces import Found, Relation, Thing
from recollect.memories.rules.tables import ReadRow, is_jsonl
from recollect.model import ContentType, ExportedMemory, NewMemory

Format = Literal[
    "auto", "text", "markdown", "jsonl", "csv", "mcp-memory", "mem0", "chatgpt", "claude", "letta", "graphiti"
]
What = Literal["refused", "skipped", "note"]
T = TypeVar("T")

STDIN = Path("-")
BY_SUFFIX: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
# Read value by value: what is in them tells which program wrote it.
JSON_SUFFIXES = (".json", ".af")
JSON_FORMATS: tuple[Format, ...] = ("mem0", "chatgpt", "claude", "letta", "graphiti")
TABLES: tuple[Format, ...] = ("jsonl", "csv", "mcp-memory")
# In an archive that ChatGPT or Claude sent, what was said.
CONVERSATIONS = re.compile(r"conversations.*\.json", re.IGNORECASE)
BEGINNING = 8192
BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportOptions:
    """How to import, for what does not say it itself.

    `tags` are added to every memory; `unknown_tags` says whether in a strict space a row with a tag that is not
    registered is refused, or the tag kept in metadata.extra (a note is never refused for its tags); `file_times` takes
    the time of a file as that of a document without a date.
    """

    subtype: str = ContentType.NOTE
    source: str = "import"
    tags: tuple[str, ...] = ()
    importance: float | None = None
    unknown_tags: Literal["refuse", "extra"] = "refuse"
    chunk_tokens: int | None = None
    hidden: bool = False
    file_times: bool = True

    def __post_init__(self) -> None:
        if self.chunk_tokens is not None and self.chunk_tokens < 1:
            raise InvalidInput(f"A chunk has at least 1 token, not {self.chunk_tokens}.", field="chunk_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLine:
    """One line of the report: what was refused, skipped or is worth knowing, where (unless everywhere), and why."""

    what: What
    file: str
    line: int | None = None
    message: str

    def __str__(self) -> str:
        if not self.file:
            return self.message
        return f"{self.file}{'' if self.line is None else f':{self.line}'}: {self.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceInFile:
    """Where something was read."""

    file: str
    line: int | None = None

    def refused(self, why: str) -> SourceLine:
        return SourceLine(what="refused", file=self.file, line=self.line, message=why)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundInFile(PlaceInFile):
    """A memory that was read, and where; and the names of the things it is about, where that was said.

    `is_note`: somebody wrote it for people, and its tags must not keep it out.
    """

    memory: NewMemory
    about: tuple[str, ...] = ()
    is_note: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignGraph:
    """Things that memories are about, and how they are related."""

    things: tuple[Thing, ...]
    relations: tuple[Relation, ...]


Read = FoundInFile | ForeignGraph | SourceLine
# A piece of what another memory wrote, or what is wrong with it; and its line.
Numbered = tuple[int | None, Found]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceReader:
    """Reads sources in one way, for one space."""

    space_id: UUID
    chunk_tokens: int
    now: datetime
    format: Format = "auto"
    options: ImportOptions = ImportOptions()
    stdin: BinaryIO | None = None

    def read(self, sources: Sequence[Path]) -> Generator[Read, None, None]:
        """Everything in the sources, in their order; folders by name."""
        for source in sources:
            if source == STDIN:
                yield from self._standard_input()
            elif source.is_dir():
                yield from self._folder(source)
            else:
                yield from self._file(source, _thread_name(Path(source.name)))

    def _standard_input(self) -> Iterator[Read]:
        assert self.stdin is not None, "checked before"
        try:
            if self.format in TABLES:
                yield from self._table(self.stdin, self.format, "-", thread=None)
                return
            if self.format in JSON_FORMATS:
                yield from self._json(self.stdin, self.format, "-")
                return
            beginning = _up_to_first_text(self.stdin)
            if self.format == "auto" and beginning and foreign.is_graph(beginning[-1]):
                yield from self._pieces(_graph_pieces(chain(beginning, self.stdin)), "-")
            elif self.format == "auto" and _is_object(beginning):
                yield from self._rows(_jsonl_rows(chain(beginning, self.stdin)), "-", thread=None)
            else:
                data = b"".join([*beginning, self.stdin.read()])
                yield from self._document(data, self.format, "-", thread=None, written=None)
        except InvalidInput as problem:
            yield skipped("-", problem.message)

    def _folder(self, root: Path) -> Iterator[Read]:
        for file in walk(root, hidden=self.options.hidden):
            if isinstance(file, SourceLine):
                yield file
            elif file.name == "chat.html" and any(
                CONVERSATIONS.fullmatch(beside.name) for beside in file.parent.iterdir()
            ):
                yield skipped(shown(file), "It is what the conversations beside it say, as a page.")
            else:
                yield from self._file(file, _thread_name(file.relative_to(root)))

    def _file(self, path: Path, thread: str) -> Iterator[Read]:
        name = shown(path)
        try:
            if path.suffix.lower() == ".zip":
                yield from self._archive(path, name)
                return
            with path.open("rb") as stream:
                beginning = stream.peek(BEGINNING)[:BEGINNING]
                format = self._format_of(path, beginning)
                if documents.looks_binary(beginning):
                    yield skipped(name, "It is a binary file, and only text can be remembered.")
                elif format is None or format in JSON_FORMATS:
                    _require_utf8(stream)
                    yield from self._json(stream, format, name)
                elif format in TABLES:
                    _require_utf8(stream)
                    yield from self._table(stream, format, name, thread=thread)
                else:
                    written = _day_of(path, self.now)
                    if written is None and self.options.file_times:
                        written = _time_of(path, self.now)
                    yield from self._document(stream.read(), format, name, thread=thread, written=written)
        except InvalidInput as problem:
            yield skipped(name, problem.message)
        except OSError as error:
            yield skipped(name, f"It cannot be read ({error.strerror or error}).")

    def _archive(self, path: Path, name: str) -> Iterator[Read]:
        """The conversations in what ChatGPT or Claude sent; nothing is unpacked."""
        try:
            with zipfile.ZipFile(path) as archive:
                parts = [part for part in archive.namelist() if CONVERSATIONS.fullmatch(part.rpartition("/")[2])]
                if not parts:
                    raise InvalidInput("There are no conversations in it: unpack it, and import the folder.")
                for part in parts:
                    with archive.open(part) as stream:
                        yield from self._json(cast("BinaryIO", stream), None, f"{name}/{part}")
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError) as error:
            raise InvalidInput("It is no archive that can be read: unpack it, and import the folder.") from error

    def _json(self, stream: BinaryIO, format: Format | None, name: str) -> Iterator[Read]:
        """What another program wrote as JSON; a file that is broken in its midst is taken as far as it goes."""
        with _as_text(stream) as text:
            blocks = iter(partial(cast("io.TextIOBase", text).read, BLOCK), "")
            yield from self._pieces(((None, piece) for piece in foreign.pieces(json_values(blocks), format)), name)

    def _format_of(self, path: Path, beginning: bytes) -> Format | None:
        """The format of a file; None for JSON, which tells by itself what it is."""
        suffix = path.suffix.lower()
        if self.format == "mcp-memory" and suffix in JSON_SUFFIXES and not foreign.is_graph(beginning):
            return None
        if self.format != "auto":
            return self.format
        if suffix in (*JSON_SUFFIXES, ".jsonl") and foreign.is_graph(beginning):
            return "mcp-memory"
        return None if suffix in JSON_SUFFIXES else BY_SUFFIX.get(suffix, "text")

    def _document(
        self, data: bytes, format: Format, name: str, *, thread: str | None, written: datetime | None
    ) -> Iterator[Read]:
        text = documents.decoded(data)
        document = documents.text_document(text) if format == "text" else documents.markdown_document(text)
        document = documents.with_time_that_has_come(document, self.now)
        for note in document.notes:
            yield SourceLine(what="note", file=name, message=note)
        memory = document.memory
        if not memory.text:
            yield skipped(name, "It is empty.")
            return
        parts = self._chunked(replace(memory, created_at=memory.created_at or written), thread)
        if len(parts) == 1 and thread is not None:
            parts = [replace(parts[0], thread=thread, position=1)]
        yield from (FoundInFile(memory=part, file=name, is_note=True) for part in parts)

    def _table(self, stream: BinaryIO, format: Format, name: str, *, thread: str | None) -> Iterator[Read]:
        if format == "jsonl":
            yield from self._rows(_jsonl_rows(stream), name, thread=thread)
            return
        if format == "mcp-memory":
            yield from self._pieces(_graph_pieces(stream), name)
            return
        with _as_text(stream) as lines:
            yield from self._rows(documents.csv_rows(lines), name, thread=thread)

    def _rows(self, rows: Iterable[documents.Row], name: str, *, thread: str | None) -> Iterator[Read]:
        for row in rows:
            if row.memory is None:
                yield SourceLine(what="refused", file=name, line=row.line, message=row.problem or "")
            elif isinstance(row.memory, ExportedMemory):
                yield FoundInFile(memory=row.memory, file=name, line=row.line)
            else:
                own = thread and _thread_name(Path(f"{thread}:{row.line}"))
                for part in self._chunked(row.memory, own):
                    yield FoundInFile(memory=part, file=name, line=row.line)

    def _pieces(self, pieces: Iterable[Numbered], name: str) -> Iterator[Read]:
        """What another memory wrote; a piece that is only words is what is wrong with it."""
        for line, piece in pieces:
            if isinstance(piece, str):
                yield SourceLine(what="refused", file=name, line=line, message=piece)
                continue
            for memory in piece.memories:
                for part in self._chunked(memory, memory.thread):
                    yield FoundInFile(memory=part, file=name, line=line, about=piece.about)
            yield ForeignGraph(things=piece.things, relations=piece.relations)

    def _chunked(self, memory: NewMemory, thread: str | None) -> list[NewMemory]:
        return documents.chunked(
            _with_defaults(memory, self.options),
            space_id=self.space_id,
            most_tokens=self.chunk_tokens,
            thread=thread,
        )


def check(sources: Sequence[Path], format: str, stdin: BinaryIO | None) -> None:
    """Refuse before anything is read what cannot be read at all."""
    if format not in get_args(Format):
        formats = ", ".join(get_args(Format))
        raise InvalidInput(f"{format!r} is not a format that can be imported; one of {formats} is.", field="format")
    for source in sources:
        if source != STDIN:
            _check_path(source)
        elif stdin is None:
            raise InvalidInput("Nothing was piped in: - stands for the standard input.", field="sources")


def _check_path(path: Path) -> None:
    try:
        if not path.exists():
            raise InvalidInput(
                f"There is no file or folder {shown(path)}: check the name, or pipe it in as -.", field="sources"
            )
        if not (path.is_file() or path.is_dir()):
            raise InvalidInput(f"{shown(path)} is neither file nor folder: pipe it in, as -.", field="sources")
    except OSError as error:
        raise InvalidInput(f"{shown(path)} cannot be read ({error.strerror or error}).", field="sources") from error


def walk(root: Path, *, hidden: bool) -> Iterator[Path | SourceLine]:
    """The files below a folder, by name; links are not followed, so that nothing outside is read, or twice."""
    waiting = [root]
    while waiting:
        here = waiting.pop()
        try:
            if here != root and here.name.startswith(".") and not hidden:
                yield skipped(shown(here), "It is hidden.")
            elif here != root and here.is_symlink():
                yield skipped(shown(here), "It is a link, and links are not followed: name its target to import it.")
            elif here.is_dir():
                waiting += sorted(here.iterdir(), reverse=True)
            elif here.is_file():
                yield here
            else:
                yield skipped(shown(here), "It is not a regular file.")
        except OSError as error:
            yield skipped(shown(here), f"It cannot be read ({error.strerror or error}).")


def _jsonl_rows(lines: Iterable[bytes]) -> Iterator[documents.Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            memory = documents.memory_of_line(documents.decoded(line))
        except InvalidInput as problem:
            yield documents.Row(line=number, problem=problem.message)
        else:
            yield documents.Row(line=number, memory=memory)


def _graph_pieces(lines: Iterable[bytes]) -> Iterator[Numbered]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, foreign.graph_piece(documents.decoded(line))
            except InvalidInput as problem:
                yield number, problem.message


@contextmanager
def _as_text(stream: BinaryIO) -> Iterator[Iterator[str]]:
    """The lines of a stream as text, their ends as they are: a cell may hold some."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        yield text
    except UnicodeDecodeError as error:
        raise InvalidInput("The rest of it is not UTF-8: convert it, for example with iconv.") from error
    finally:
        text.detach()  # the stream is the caller's to close


def _require_utf8(stream: BinaryIO) -> None:
    """Read a table once before any of its rows is taken, so that it is taken whole or not at all."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    block = stream.read(BLOCK)
    documents.refuse_foreign(block)
    try:
        while block:
            decoder.decode(block)
            offset += len(block)
            block = stream.read(BLOCK)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"It is not UTF-8 (near byte {offset + error.start:,}): convert it, for example with iconv."
        ) from error
    stream.seek(0)


def _up_to_first_text(stream: BinaryIO) -> list[bytes]:
    """The lines of a stream up to the first that is not empty."""
    lines: list[bytes] = []
    for line in stream:
        lines.append(line)
        if line.strip():
            break
    return lines


def _is_object(lines: Sequence[bytes]) -> bool:
    """Whether the first text looks like a line of JSONL."""
    return bool(lines) and lines[-1].removeprefix(documents.UTF8_MARK).lstrip().startswith(b"{")


def _day_of(path: Path, now: datetime) -> datetime | None:
    """The day in a file's name, if it has come."""
    day = documents.named_date(path.stem)
    return day if day is not None and day <= now else None


def _time_of(path: Path, now: datetime) -> datetime | None:
    """When a file was written last; None where its clock cannot be believed."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (ValueError, OverflowError):
        return None
    return written if written <= now else None


def _with_defaults(memory: NewMemory, options: ImportOptions) -> NewMemory:
    """A memory with what the options say where it says nothing; what is malformed is left for the contract."""
    if not isinstance(memory.metadata, dict):
        return memory
    metadata = {"source": options.source, **memory.metadata}
    if options.tags:
        own = metadata.get("tags", [])
        metadata["tags"] = [*own, *(tag for tag in options.tags if tag not in own)] if isinstance(own, list) else own
    return replace(
        memory,
        metadata=metadata,
        subtype=options.subtype if memory.subtype == ContentType.NOTE else memory.subtype,
        importance=options.importance if memory.importance is None else memory.importance,
    )


def _thread_name(path: Path) -> str:
    """A path as the name of a thread: its end, where it is too long for one."""
    name = shown(path)
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]


def shown(path: Path) -> str:
    """A path as text; a name that is not UTF-8 cannot be stored or printed as it is."""
    return fsencode(path).decode(errors="replace")


def skipped(file: str, why: str) -> SourceLine:
    return SourceLine(what="skipped", file=file, message=why)


def read_table(
    source: Path,
    stdin: BinaryIO | None,
    format: str,
    report: list[SourceLine],
    *,
    jsonl: Callable[[Iterable[str]], Iterator[ReadRow[T]]],
    csv: Callable[[Iterable[str]], Iterator[ReadRow[T]]],
) -> list[tuple[int, T]]:
    """What the rows of one file were made into, each with its line; what cannot be read is reported."""
    rows: list[tuple[int, T]] = []

    def refuse(message: str, line: int | None = None) -> None:
        report.append(SourceLine(what="refused", file=str(source), line=line, message=message))

    try:
        text = documents.decoded(stdin.read() if source == STDIN and stdin is not None else source.read_bytes())
        read = jsonl if is_jsonl(format, source.suffix, text) else csv
        for row in read(io.StringIO(text, newline="")):
            if row.made is None:
                refuse(row.problem or "", row.line)
            else:
                rows.append((row.line, row.made))
    except InvalidInput as problem:
        refuse(problem.message)
    except OSError as error:
        refuse(f"It cannot be read ({error.strerror or error}).")
    return rows
