"""The files of a wiki or a vault of notes: each with its path inside the folder, or a line on why it was not read.

Links are not followed, so nothing outside the folder is read and nothing twice; what is hidden, binary, too large or
not UTF-8 is said and left out, and the rest goes on. It blocks, so the engine runs it in a thread.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from recollect.errors import InvalidInput
from recollect.memories.rules import documents
from recollect.memories.sources import BEGINNING, SourceLine, shown, skipped, walk
from recollect.pages.rules.page import PAGE_SUFFIXES, page_path

LARGEST_PAGE = 10_000_000
"""Bytes. A page is read by people: what is larger is an export of something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFile:
    """A file that holds a page: its path inside the folder, with slashes, and its text exactly as it is."""

    path: str
    text: str


def read_folder(folder: Path, *, hidden: bool = False, largest: int = LARGEST_PAGE) -> Iterator[PageFile | SourceLine]:
    """Every page of a folder, by name; for everything else a line that says why not."""
    has_pages = False
    for file in walk(folder, hidden=hidden):
        if isinstance(file, SourceLine):
            yield replace(file, file=file.file.removeprefix(f"{shown(folder)}/"))
            continue
        page = _read(file, file.relative_to(folder), largest)
        has_pages = has_pages or isinstance(page, PageFile)
        yield page
    if not has_pages:
        yield skipped(shown(folder), f"It holds no pages: files that end in {', '.join(PAGE_SUFFIXES)}.")


def check_folder(folder: Path) -> None:
    """Refuse before anything is read what is no folder."""
    try:
        if not folder.exists():
            raise InvalidInput(f"There is no folder {shown(folder)}.", field="folder")
        if not folder.is_dir():
            raise InvalidInput(f"{shown(folder)} is a file: name the folder it is in.", field="folder")
    except OSError as error:
        raise InvalidInput(f"{shown(folder)} cannot be read ({error.strerror or error}).", field="folder") from error


def _read(file: Path, inside: Path, largest: int) -> PageFile | SourceLine:
    name = shown(inside)
    if file.suffix.lower() not in PAGE_SUFFIXES:
        return skipped(name, "It is not a page.")
    try:
        if (size := file.stat().st_size) > largest:
            return skipped(name, f"It has {size:,} bytes; a page has at most {largest:,}: split it.")
        data = file.read_bytes()
        if documents.looks_binary(data[:BEGINNING]):
            return skipped(name, "It is a binary file.")
        documents.decoded(data)
        # The mark of UTF-8, where there is one, stays: an untouched page is written back byte by byte.
        return PageFile(path=PurePosixPath(*inside.parts).as_posix(), text=data.decode())
    except InvalidInput as problem:
        return skipped(name, problem.message)
    except OSError as error:
        return skipped(name, f"It cannot be read ({error.strerror or error}).")


@dataclass(frozen=True, kw_only=True, slots=True)
class PagesWritten:
    """How many pages an export wrote, and a line for each that it could not."""

    pages: int
    left_out: tuple[SourceLine, ...] = ()


def write_folder(folder: Path, pages: Iterable[tuple[str, str]]) -> PagesWritten:
    """Write pages below a folder, each at its path; one that cannot be written is named, and the rest goes on."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{shown(folder)} cannot be written ({error.strerror or error}).", field="folder") from error
    problems = [(path, _written(folder, path, text)) for path, text in pages]
    left_out = tuple(skipped(path, problem) for path, problem in problems if problem)
    return PagesWritten(pages=len(problems) - len(left_out), left_out=left_out)


def _written(folder: Path, path: str, text: str) -> str | None:
    """Why a page could not be written; None where it was."""
    try:
        file = (folder / page_path(path)).resolve()
        if not file.is_relative_to(folder.resolve()):
            return f"It leads outside {shown(folder)}."
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    except ValueError as problem:
        return str(problem)
    except OSError as error:
        return f"It cannot be written ({error.strerror or error})."
    return None
