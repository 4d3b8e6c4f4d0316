"""A first load makes the statistics of a new database on its way, and later ones do not."""

from pathlib import Path

import pytest

from recollect.engine.engine import Engine
from recollect.memories import embed, remember
from recollect.memories.sql import vectors
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.database import Database
from recollect.store.embedded import EmbeddedServer

pytestmark = pytest.mark.anyio


async def test_the_first_load_is_checked_by_keys_before_it_ends(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some texts come first, so that a connection has made its plans over next to nothing."""
    for size in ("FIRST", "BATCH"):
        monkeypatch.setattr(remember, size, 20)
    settled: list[int] = []
    really = vectors.settle

    async def settle(database: Database) -> None:
        settled.append(len(stored))
        await really(database)

    monkeypatch.setattr(vectors, "settle", settle)
    stored: list[int] = []
    with EmbeddedServer(new_home) as server:
        async with Engine(Settings.load(database_url=server.url, embedder="hashing:32")) as memory:
            await memory.add_many([NewMemory(text="the first of all")], wait=False)
            texts = [NewMemory(text=f"note {number} of the load") for number in range(60)]
            await memory.add_many(texts, wait=False, progress=stored.append)
            assert settled == [1], "after the first batch of three, and once"
            assert not await vectors.lacks_statistics(memory.core.database)
        async with Engine(Settings.load(database_url=server.url, embedder="hashing:32")) as another:
            texts = [NewMemory(text=f"another {number}") for number in range(60)]
            await another.add_many(texts, wait=False)
            assert settled == [1], "there are statistics already"
    assert embed.SETTLE_FROM > 60
