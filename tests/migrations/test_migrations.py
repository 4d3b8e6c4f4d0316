"""Migrations: up, down, up again; and the tables in code are the tables in the database (D41)."""

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from recollect.errors import UnsuitableServer
from recollect.store.database import downgrade, open_database, upgrade
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
