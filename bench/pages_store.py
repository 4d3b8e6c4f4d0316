"""Pages in the store: how long it takes to propose and to apply a merge, reading, embedding and audit included.

A wiki is imported into an empty space, then another one into that; both with the default embedder and the database
inside. Planning is measured for a fixed wiki and more and more new pages: it is to grow no faster than they do.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from bench.figures import Figure
from bench.places import temporary_server
from recollect.engine.engine import Engine
from recollect.pages.files import PageFile, read_folder
from recollect.pages.rules.audit import Overall
from recollect.pages.rules.page import WikiPage
from recollect.settings import Settings

Files = list[tuple[str, str]]


def files_of(pages: Sequence[WikiPage]) -> Files:
    return [(page.path, page.raw or "") for page in pages]


def files_in(folder: Path) -> Files:
    return [(one.path, one.text) for one in read_folder(folder, hidden=True) if isinstance(one, PageFile)]


def stored(old: Sequence[WikiPage], new: Sequence[WikiPage], more: Sequence[Sequence[WikiPage]] = ()) -> list[Figure]:
    with temporary_server() as server:
        return asyncio.run(_measured(server.url, files_of(old), files_of(new), [*map(files_of, more)]))


async def _measured(url: str, old: Files, new: Files, more: Sequence[Files]) -> list[Figure]:
    async with Engine(Settings.load(database_url=url)) as engine:
        space = await engine.in_space((await engine.add_space(f"b-{uuid4().hex[:8]}")).slug)
        first = await space.pages.import_texts(old)
        await space.pages.apply(first.plan.id)
        await space.work()
        growing = [await _proposing(space, files) for files in more]
        started = time.perf_counter()
        found = await space.pages.import_texts(new)
        proposing = time.perf_counter() - started
        started = time.perf_counter()
        merged = await space.pages.apply(found.plan.id)
        applying = time.perf_counter() - started
        again = await space.pages.import_texts(new)
        started = time.perf_counter()
        await space.undo(found.plan.id)
        undoing = time.perf_counter() - started
    into = f"{len(new)} pages into {len(old)}"
    did = f"{len(merged.result.created_pages)} created, {len(merged.result.edited_pages)} merged"
    figures = [
        Figure(
            name=f"{into}, proposed, s", value=proposing, bar=30, better="lower", how="read, embedded, compared, saved"
        ),
        Figure(name=f"{into}, applied, s", value=applying, bar=10, better="lower", how=f"audited; {did}"),
        Figure(
            name="sub-graphs that failed",
            value=len(merged.result.failed),
            bar=0,
            better="lower",
            how="of the same merge",
        ),
        Figure(
            name="decisions of a second import",
            value=len(again.plan.decisions),
            bar=0,
            better="lower",
            how="same pages",
        ),
        Figure(name=f"{into}, undone, s", value=undoing, better="lower", how="every row as it was"),
    ]
    assert merged.result.overall in Overall
    if growing:
        figures.append(growth("proposing in the store", [*map(len, more)], growing))
    return figures


def growth(what: str, sizes: Sequence[int], seconds: Sequence[float]) -> Figure:
    """Whether time grows no faster than the number of new pages: what each further page takes, among many and among
    few. What the old pages take is the same for all, and left out of it."""
    between = [(seconds[b] - seconds[a]) / (sizes[b] - sizes[a]) * 1000 for a, b in ((0, len(sizes) // 2), (-2, -1))]
    how = ", ".join(f"{size}: {spent:.2f}" for size, spent in zip(sizes, seconds, strict=True))
    few, many = f"{sizes[0]}-{sizes[len(sizes) // 2]}", f"{sizes[-2]}-{sizes[-1]}"
    return Figure(
        name=f"{what}, a further page among {many} / among {few}",
        value=between[1] / between[0],
        bar=1.5,
        better="lower",
        how=f"{between[1]:.1f} ms / {between[0]:.1f} ms; seconds in all at {how}",
    )


async def _proposing(space: Engine, files: Files) -> float:
    started = time.perf_counter()
    await space.pages.import_texts(files)
    return time.perf_counter() - started
