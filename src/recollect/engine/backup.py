"""Backups: the whole database to a file and back."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from recollect.engine.core import Core
from recollect.engine.sql import care, spaces
from recollect.errors import Conflict
from recollect.store import distribute
from recollect.store import dump as dumps
from recollect.store.prepare import GRANTS, upgrade
from recollect.wording import counted

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A backup file."""

    file: Path
    bytes: int
    made_at: datetime


async def dump(dsn: str, file: Path, *, overwrite: bool, make_directory: bool = False) -> int:
    return await _run(
        lambda programs: dumps.dump(dsn, file, overwrite=overwrite, programs=programs, make_directory=make_directory)
    )


async def backup(core: Core, file: Path, *, overwrite: bool = False, make_directory: bool = False) -> Backup:
    """Write everything (all spaces, the journal, vectors, keys) to one file."""
    size = await dump(core.database.dsn, file, overwrite=overwrite, make_directory=make_directory)
    async with core.database.owner() as connection:
        home = await spaces.get(connection, "default")
        await care.note_run(connection, home.id, "backup", {"file": str(file), "bytes": size}, core.now())
    return Backup(file=file, bytes=size, made_at=core.now())


async def restore(core: Core, file: Path, *, overwrite: bool = False) -> int:
    """Bring back a backup, all or nothing; returns how many nodes there are now.

    Refuses to replace memories that are there, unless told to overwrite them.
    """
    await _run(lambda programs: dumps.check_is_dump(file, programs))
    async with core.database.owner() as connection:
        present = await care.count_nodes(connection)
    if present and not overwrite:
        raise Conflict(
            f"A restore would replace what the database holds ({counted(present, 'memory', 'memories')}): "
            f"back it up first, then repeat with --overwrite."
        )
    shards = await distribute.count_shards(core.database)
    grants = GRANTS if core.database.role else ()
    await _run(lambda programs: dumps.restore(core.database.dsn, file, programs, shards=shards, grants=grants))
    core.recalls.clear()  # a backup of the first version has no versions of spaces
    core.adjacencies.forget()
    core.in_memory.forget()
    await core.database.leave_connections()  # the types of the old schema are gone, and connections remember them
    await upgrade(core.database)
    async with core.database.owner() as connection:
        return await care.count_nodes(connection)


async def _run(work: Callable[[dumps.Programs], T]) -> T:
    """In a thread. Whoever is cancelled ends the programs it runs, and waits until it has put things in order."""
    programs = dumps.Programs()
    thread = asyncio.create_task(anyio.to_thread.run_sync(work, programs))
    try:
        await asyncio.wait([thread])
    except asyncio.CancelledError:
        programs.end()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(thread, return_exceptions=True)
        raise
    return thread.result()


def rotate(directory: Path, *, keep: int) -> Sequence[Path]:
    """Remove all but the newest daily backups, and what was broken off on earlier days; returns what was removed."""
    daily = sorted(directory.glob("daily-*.dump"), reverse=True)
    newest = daily[0].name if daily else ""
    broken_off = [left for left in directory.glob("daily-*.partial") if not left.name.startswith(newest)]
    for file in (old := [*daily[keep:], *broken_off]):
        file.unlink(missing_ok=True)
    return old
