"""Importing what somebody sends: files by name and text, as a browser hands them over.

They are written below a directory of their own and imported as any folder is, so that every format means the same at
every door; the directory is removed, and no report names it.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.errors import InvalidInput
from recollect.memories.import_ import ImportReport, import_
from recollect.memories.sources import Format, ImportOptions

LONGEST_PART = 255


async def import_texts(
    core: Core,
    space_id: UUID,
    files: Mapping[str, str],
    *,
    format: Format = "auto",
    options: ImportOptions | None = None,
    dry_run: bool = False,
    wait: bool = True,
) -> ImportReport:
    """Remember what some files hold, given by name and text; a dry run only says what would happen."""
    named = {checked_path(path): text for path, text in files.items()}
    with tempfile.TemporaryDirectory(prefix="recollect-import-") as directory:
        root = Path(directory)
        await anyio.to_thread.run_sync(_write, root, named)
        # When a file was written is not known here: that it was written just now would be wrong.
        chosen = replace(options or ImportOptions(), file_times=False)
        report = await import_(core, space_id, [root], format=format, options=chosen, dry_run=dry_run, wait=wait)
    lines = tuple(replace(line, file=line.file.removeprefix(f"{root}/")) for line in report.lines)
    return replace(report, lines=lines)


def checked_path(path: str) -> PurePosixPath:
    """A name below the folder that is sent, and nowhere else."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    is_one = parts and all(part != ".." and "\0" not in part and _fits(part) for part in parts)
    if not is_one:
        raise InvalidInput(f"{path[:80]!r} is not a file name: give a path below the folder.", field="files")
    return PurePosixPath(*parts)


def _fits(part: str) -> bool:
    try:
        return len(part.encode()) <= LONGEST_PART
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _write(root: Path, files: Mapping[PurePosixPath, str]) -> None:
    for path, text in files.items():
        try:
            (root / path.parent).mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", newline="")
        except (UnicodeEncodeError, OSError) as error:
            raise InvalidInput(f"The file {path} cannot be read: save it as UTF-8 text.", field="files") from error
