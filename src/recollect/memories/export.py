"""Exporting: every node that fits, one line of JSON each, oldest first, as of one moment. Importing it brings all back.

The lines are written batch by batch, so the memory needed does not grow. A file appears under its name when it is
complete: an export that was interrupted leaves none.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID, uuid4

import anyio.to_thread

from recollect.engine.core import Core
from recollect.errors import Conflict, InvalidInput
from recollect.memories.rules import exported
from recollect.memories.sql import nodes
from recollect.model import Node, NodeFilter
from recollect.store.database import Transaction, read
from recollect.store.dump import refuse_what_is_no_file

Progress = Callable[[int], None]


async def export(
    core: Core,
    space_id: UUID,
    out: Path | BinaryIO,
    *,
    node_filter: NodeFilter,
    with_vectors: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write the nodes that are wanted to a file or an open stream; returns how many.

    `with_vectors` adds their vectors, so that whoever imports them need not embed them again.
    """
    write = partial(_write, core, space_id, node_filter=node_filter, with_vectors=with_vectors, progress=progress)
    if not isinstance(out, Path):
        return await write(out)  # what is in a stream cannot be taken back, should a standby go away half-way
    check_file(out, overwrite=overwrite)
    return await read(partial(to_file, out, write))


def check_file(out: Path, *, overwrite: bool) -> None:
    refuse_what_is_no_file(out)
    if out.exists() and not overwrite:
        raise Conflict(f"{out} exists already: choose another name, or repeat with --overwrite.")


async def to_file(out: Path, write: Callable[[BinaryIO], Awaitable[int]]) -> int:
    """Let something be written to a file, which appears when it is complete."""
    part = out.with_name(f".{out.name[:200]}.{uuid4().hex[:8]}.part")
    try:
        with part.open("xb") as stream:
            count = await write(stream)
        part.replace(out)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written ({error.strerror or error}): choose another place.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return count


async def _write(
    core: Core,
    space_id: UUID,
    stream: BinaryIO,
    *,
    node_filter: NodeFilter,
    with_vectors: bool,
    progress: Progress | None,
) -> int:
    count = 0
    async with core.transaction(space_id) as db:
        async for batch in nodes.stream(db, node_filter):
            lines = await _lines(db, batch, with_vectors=with_vectors)
            await anyio.to_thread.run_sync(stream.write, lines)
            count += len(batch)
            if progress:
                progress(count)
    await anyio.to_thread.run_sync(stream.flush)
    return count


async def _lines(db: Transaction, batch: Sequence[Node], *, with_vectors: bool) -> bytes:
    ids = [node.id for node in batch]
    vectors = await nodes.vectors_of(db, ids) if with_vectors else {}
    return "".join(exported.line(node, vectors.get(node.id)) + "\n" for node in batch).encode()
