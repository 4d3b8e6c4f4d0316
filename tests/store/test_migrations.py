"""Migrations: up, down, up again; and the tables in code are the tables in the database (D41)."""

import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pgvector import SparseVector
from sqlalchemy import Connection

from recollect.engine.engine import Engine
from recollect.errors import UnsuitableServer
from recollect.memories.rules.windows import windows
from recollect.model import NewMemory
from recollect.recall.rules import lexical
from recollect.recall.sql import lexicon
from recollect.settings import Settings
from recollect.store.database import driver
from recollect.store.embedded import EmbeddedServer
from recollect.store.migrations import HEAD, is_ours
from recollect.store.prepare import downgrade, open_database, upgrade
from recollect.store.tables import metadata
from tests.conftest import copied, in_haste
from tests.memories.rules.test_windows import long_note

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[16, 18])
def own_server(request: pytest.FixtureRequest, empty_home: Path) -> Iterator[EmbeddedServer]:
    """Whose database has gone through every migration already."""
    made = request.getfixturevalue("made_home" if request.param == 18 else f"made_home_of_{request.param}")
    with in_haste(copied(made, empty_home)) as server:
        assert server.version == request.param
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
    connection = await asyncpg.connect(own_server.url)
    await connection.execute("UPDATE recollect.alembic_version SET version_num = '9999'")
    with pytest.raises(UnsuitableServer, match=f"made by a newer Recollect .revision 9999; this one knows {HEAD}"):
        await open_database(own_server.url, pool_size=2)
    await connection.close()


@pytest.mark.parametrize("own_server", [18], indirect=True)
async def test_D44_an_upgrade_loses_no_hit_and_texts_are_indexed_anew_while_search_goes_on(
    own_server: EmbeddedServer,
) -> None:
    texts = {
        "the prices of these parties": "prices",
        "she was running with us": "running",
        "Die Häuser und das Meer sind nicht weit": "Häuser",
        "นอนมากขึ้น": "มากขึ้น",
        "flight LH 1078 leaves": "LH 1078",
        "naïve cafés": "cafés",
    }
    anew = {"price": "prices", "party": "parties", "run": "running", "Haus": "Häuser", "LH1078": "LH 1078"}
    settings = Settings.load(database_url=own_server.url, embedder="hashing:8", pool_size=2)
    async with Engine(settings) as memory:
        await memory.add_many([NewMemory(text=text) for text in texts])
        await downgrade(memory.core.database, "0011")
        await _index_as_before(memory)
        await upgrade(memory.core.database)

        async def found(question: str) -> list[str | None]:
            return [hit.node.text for hit in await memory.recall(question) if hit.parts.lexical > 0]

        async def all_are_found() -> bool:
            return all([text in await found(asked) for text, asked in texts.items()])

        async def renewed_some() -> bool:
            async with memory.core.transaction(memory.space.id) as db:
                await lexicon.renew_some(db, most=2)
                return await lexicon.is_due(db)

        assert await all_are_found()
        while await renewed_some():
            assert await all_are_found()
        for asked, held in anew.items():
            assert [text for text in await found(asked) if text and held in text], asked
        async with memory.core.transaction(memory.space.id) as db:
            raw = await driver(db)
            counted = await raw.fetch("SELECT term, documents FROM term_stats WHERE documents > 0")
            held = await raw.fetch("SELECT term, count(*) FROM lexicon, unnest(terms) AS term GROUP BY term")
            totals = await raw.fetchrow("SELECT documents, total_length, edition, languages FROM lexicon_totals")
            length = await raw.fetchval("SELECT sum(length) FROM lexicon")
        assert {*map(tuple, counted)} == {*map(tuple, held)}
        assert tuple(totals) == (len(texts), length, lexical.EDITION, {"german": 1})


async def _index_as_before(memory: Engine) -> None:
    """The index of words as the first tokeniser made it."""
    async with memory.core.transaction(memory.space.id) as db:
        raw, salt = await driver(db), zlib.crc32(memory.space.id.bytes)
        await raw.execute("DELETE FROM lexicon")
        await raw.execute("DELETE FROM term_stats")
        found = await raw.fetch("SELECT id, text FROM nodes")
        for row in found:
            terms = Counter(lexical.term(word, salt) for word in lexical.light_words(row["text"]))
            weights = SparseVector({term - 1: 1.0 for term in terms}, lexical.DIMENSIONS)
            await raw.execute(
                "INSERT INTO lexicon SELECT space_id, id, $2, $3, $4, kind, recallable FROM nodes WHERE id = $1",
                *(row["id"], sorted(terms), weights, terms.total()),
            )
        await raw.execute(
            "INSERT INTO term_stats (space_id, term, documents)"
            " SELECT space_id, term, count(*) FROM lexicon, unnest(terms) AS term GROUP BY 1, 2"
        )
        await raw.execute("UPDATE lexicon_totals SET total_length = (SELECT sum(length) FROM lexicon)")


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
        assert {row["text"] for row in left} == {texts[0], "how?"}
        assert {row["text"] for row in waiting} == {*texts[1:]}
        found = await memory.cases.get(case.case_id)
        assert (found.usage_count, found.last_accessed_at) == (20, datetime(2026, 1, 20, tzinfo=UTC))


@pytest.mark.parametrize("own_server", [18], indirect=True)
async def test_D47_an_upgrade_loses_no_hit_and_long_texts_get_their_windows_while_search_goes_on(
    own_server: EmbeddedServer,
) -> None:
    told = {
        "the boat is blue": "boat",
        long_note(): "committee",
        "字" * 2500: "字字",
        " ".join(["one two three four five six"] * 10): "three",
    }
    settings = Settings.load(database_url=own_server.url, embedder="hashing:8", pool_size=2)
    async with Engine(settings) as memory:
        added = await memory.add_many([NewMemory(text=text) for text in told])
        await downgrade(memory.core.database, "0017")
        await upgrade(memory.core.database)

        async def found() -> bool:
            hits = [{hit.node.text for hit in await memory.recall(word, weak=True)} for word in told.values()]
            return all(text in some for text, some in zip(told, hits, strict=True))

        async def windows_of() -> list[int]:
            async with memory.core.transaction(memory.space.id) as db:
                rows = await (await driver(db)).fetch("SELECT node_id, count(*) FROM embeddings GROUP BY 1")
            counts = {row["node_id"]: row["count"] for row in rows}
            return [counts[id_] for id_ in added.ids]

        assert await windows_of() == [1, 1, 1, 1]
        assert (await memory.jobs()).pending == 2  # the others have one window, and keep their vector
        assert await found()
        await memory.work()
        in_windows = [1, 1 + len(windows(long_note())), 1 + len(windows("字" * 2500)), 1]
        assert await windows_of() == in_windows
        assert await found()
        await downgrade(memory.core.database, "0026")  # whose windows were longer: they are made anew
        await upgrade(memory.core.database)
        assert (await memory.jobs()).pending == 2
        assert await found()
        await memory.work()
        assert await windows_of() == in_windows
