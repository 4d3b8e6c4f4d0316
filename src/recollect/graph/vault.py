"""Exporting a vault: memories, concepts and cases as Markdown notes with wikilinks between them, as in Obsidian.

All of it is of one moment. Names and links are kept in memory, notes are written batch by batch.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.errors import Conflict, InvalidInput
from recollect.graph.rules.notes import FOLDERS, Names, note
from recollect.graph.sql import graph
from recollect.model import Node

Progress = Callable[[int], None]
Links = Mapping[UUID, Sequence[tuple[str, str]]]


async def export_vault(
    core: Core, space_id: UUID, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> int:
    """Write what is remembered as notes below a folder; returns how many."""
    _check(folder, overwrite=overwrite)
    names, paths, count = Names(), dict[UUID, str](), 0
    links: dict[UUID, list[tuple[str, str]]] = defaultdict(list)
    async with core.database.snapshot(space_id) as db:
        async with aclosing(graph.stream_nodes(db, with_isolated=True)) as batches:
            async for batch in batches:
                paths |= {node.id: names.path_of(node) for node in batch if node.kind in FOLDERS}
        async with aclosing(graph.stream_edges(db)) as linked:
            async for edges in linked:
                for edge in edges:
                    if edge.target in paths:
                        links[edge.source].append((edge.relation, paths[edge.target]))
        async with aclosing(graph.stream_nodes(db, with_isolated=True)) as batches:
            async for batch in batches:
                count += await anyio.to_thread.run_sync(_write, folder, batch, paths, links)
                if progress:
                    progress(count)
    return count


def _check(folder: Path, *, overwrite: bool) -> None:
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file: name a folder to write the notes to.")
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise Conflict(f"{folder} is not empty: choose another folder, or repeat with --overwrite.")
        for name in FOLDERS.values():
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written ({error.strerror or error}): choose another place.") from error


def _write(folder: Path, batch: Sequence[Node], paths: Mapping[UUID, str], links: Links) -> int:
    count = 0
    for node in batch:
        if node.id in paths:
            try:
                (folder / f"{paths[node.id]}.md").write_text(note(node, links.get(node.id, ())), "utf-8", newline="")
            except OSError as error:
                raise InvalidInput(f"{folder} cannot be written ({error.strerror or error}).") from error
            count += 1
    return count
