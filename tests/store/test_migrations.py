"""Migrations: up, down, up again; and the tables in code are the tables in the database (D41)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from recollect.engine.engine import Engine
from recollect.errors import UnsuitableServer
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.database import downgrade, driver, open_database, upgrade
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrations import HEAD, is_ours
from recollect.store.tables import metadata

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[16, 18])
def own_server(request: pytest.FixtureRequest, empty_home: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(empty_home, version=request.param) as server:
        yield server


def differences(connection: Connection) -> list[object]:
    options = {
        "compare_type": True,
        "compare_server_default": True,
        "include_object": lambda _object, name, type_, _reflected, _to: is_ours(name, type_),
    }
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_D41_up_down_up_and_autogenerate_finds_nothing(own_server: EmbeddedServer) -> None:
    database = await open_database(own_server.url, pool_size=2)
    try:
        async with database.owner() as connection:
            assert await connection.run_sync(differences) == []
        await downgrade(database, "base")
        async with database.owner() as connection:
            assert len(await connection.run_sync(differences)) > len(metadata.tables)
        await upgrade(database)
        async with database.owner() as connection:
            assert await connection.run_sync(differences) == []
    finally:
        await database.close()


async def test_D41_a_database_of_a_newer_recollect_is_left_alone(own_server: EmbeddedServer) -> None:
    database = await open_database(own_server.url, pool_size=2)
    await database.close()
    connection = await asyncpg.connect(own_server.url)
    await connection.execute("UPDATE recollect.alembic_version SET version_num = '9999'")
    with pytest.raises(UnsuitableServer, match=f"made by a newer Recollect .revision 9999; this one knows {HEAD}"):
        await open_database(own_server.url, pool_size=2)
    await connection.close()


@pytest.mark.parametrize("own_server", [18], indirect=True)
async def test_D43_E35_what_was_stored_before_is_cured(own_server: EmbeddedServer) -> None:
    """Vectors of texts that minilm may not read are made anew; cases have at least the uses that were judged."""
    settings = Settings.load(database_url=own_server.url, embedder="hashing:8", pool_size=2)
    async with Engine(settings) as memory:
        texts = ["a red bicycle", "นอนมากขึ้น", "Красный велосипед, 5 €", "🚲", "x" * 101]
        await memory.add_many([NewMemory(text=text) for text in texts])
        case = await memory.cases.add("how?", "so", usage_count=2)
        await downgrade(memory.core.database, "0010")
        async with memory.core.database.owner() as connection:
            raw = await driver(connection)
            await raw.execute("UPDATE embeddings SET model = 'minilm'")
            await raw.execute("UPDATE embedding_jobs SET model = 'minilm'")
            await raw.executemany(
                "INSERT INTO outcomes (space_id, node_id, success, created_at) VALUES ($1, $2, true, $3)",
                [(memory.space.id, case.case_id, datetime(2026, 1, day, tzinfo=UTC)) for day in range(1, 21)],
            )
        await upgrade(memory.core.database)
        async with memory.core.transaction(memory.space.id) as connection:
            raw = await driver(connection)
            left = await raw.fetch(
                "SELECT text FROM embeddings e JOIN nodes n ON n.id = e.node_id WHERE model = 'minilm'"
            )
            waiting = await raw.fetch(
                "SELECT text FROM embedding_jobs j JOIN nodes n ON n.id = j.node_id WHERE j.status = 'pending'"
            )
            indexed = await raw.fetch("SELECT text FROM lexicon l JOIN nodes n ON n.id = l.node_id")
            counted = await raw.fetchval("SELECT documents FROM lexicon_totals WHERE space_id = $1", memory.space.id)
        assert {row["text"] for row in indexed} == {*texts, "how?"} - {texts[1]}
        assert counted == len(texts)
        assert {row["text"] for row in left} == {texts[0], texts[2], "how?"}
        assert {row["text"] for row in waiting} == {texts[1], texts[3], texts[4]}
        found = await memory.cases.get(case.case_id)
        assert (found.usage_count, found.last_accessed_at) == (20, datetime(2026, 1, 20, tzinfo=UTC))
