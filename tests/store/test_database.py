"""Servers that cannot be used say why and what to do, in one sentence; those that can are used as they are."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text

from recollect.engine.engine import Engine
from recollect.engine.sql import spaces
from recollect.errors import DatabaseProblem, InvalidInput, UnsuitableServer
from recollect.settings import Settings
from recollect.store import prepare as module
from recollect.store.connections import lost
from recollect.store.prepare import open_database
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio


def address(url: str, *, user: str | None = None, name: str | None = None) -> str:
    parts = urlsplit(url)
    return urlunsplit(
        parts._replace(netloc=f"{user}@" if user else parts.netloc, path=f"/{name}" if name else parts.path)
    )


@pytest.fixture
async def empty_database(database_url: str, anyio_backend: str) -> AsyncIterator[str]:
    """A database of the test server without anything in it."""
    name = f"empty_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"CREATE DATABASE {name}")
    yield address(database_url, name=name)
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


@pytest.fixture
async def plain_user(database_url: str, anyio_backend: str) -> AsyncIterator[str]:
    name = f"plain_{uuid4().hex[:8]}"
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    await connection.execute(f"DROP ROLE {name}")
    await connection.close()


async def test_an_older_server_is_named(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_SERVER", 99)
    with pytest.raises(
        UnsuitableServer, match=r"This server is PostgreSQL 18; Recollect needs 99 or newer: upgrade it"
    ):
        await open_database(database_url, pool_size=1)


async def test_an_older_pgvector_is_named(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await open_database(database_url, pool_size=1)).close()
    monkeypatch.setattr(module, "MIN_PGVECTOR", (9, 9))
    with pytest.raises(UnsuitableServer, match=r"pgvector 0\.\d+\.\d+ is too old.*ALTER EXTENSION vector UPDATE"):
        await open_database(database_url, pool_size=1)


async def test_a_server_without_pgvector(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET extension_control_path = '/nowhere'")
    await connection.close()
    with pytest.raises(UnsuitableServer, match=r"This PostgreSQL has no pgvector: install pgvector 0\.8 or newer"):
        await open_database(empty_database, pool_size=1)


async def test_a_user_who_may_not_add_pgvector(empty_database: str, plain_user: str) -> None:
    with pytest.raises(UnsuitableServer, match="may not add pgvector: let an administrator run CREATE EXTENSION"):
        await open_database(address(empty_database, user=plain_user), pool_size=1)


async def test_a_user_who_may_not_make_the_schema(empty_database: str, plain_user: str) -> None:
    connection = await asyncpg.connect(empty_database)
    await connection.execute("CREATE EXTENSION vector")
    await connection.close()
    with pytest.raises(UnsuitableServer, match=r"may not make the schema recollect: .* GRANT CREATE ON DATABASE"):
        await open_database(address(empty_database, user=plain_user), pool_size=1)


async def test_where_the_role_cannot_be_made_it_is_said_and_the_conditions_hold(
    empty_database: str, plain_user: str
) -> None:
    connection = await asyncpg.connect(empty_database)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute("CREATE EXTENSION vector")
    await connection.execute(f"GRANT CREATE ON DATABASE {name} TO {plain_user}")
    url = address(empty_database, user=plain_user)
    settings = Settings.load(database_url=url, embedder="hashing:32")
    async with Engine(settings) as engine:
        assert engine.core.database.role is None
        assert "let an administrator run: CREATE ROLE recollect_app" in engine.core.database.notes[0]
        await engine.add("still works")
        await engine.add_space("other")
        assert await (await engine.in_space("other")).count() == 0
        assert len(await engine.recall("still works")) == 1
        assert any("recollect_app" in advice for advice in (await engine.doctor()).advice)
    await connection.execute(f"DROP OWNED BY {plain_user} CASCADE")
    await connection.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "No PostgreSQL answers at the given address"),
        ("postgresql://recollect@/recollect?host=/nowhere", "No PostgreSQL answers at the given address"),
        ("mysql://host/db", "DATABASE_URL cannot be used"),
        ("not an address", "DATABASE_URL cannot be used"),
    ],
)
async def test_an_address_where_nobody_answers(url: str, sentence: str) -> None:
    with pytest.raises(DatabaseProblem, match=sentence) as problem:
        await open_database(url, pool_size=1)
    assert "\n" not in problem.value.message


async def test_S05_the_database_inside_is_not_spoken_of_by_an_address(database_url: str) -> None:
    gone = re.sub(r"-[0-9a-f]+&", "-0123456789ab&", database_url)
    with pytest.raises(DatabaseProblem) as problem:
        await open_database(gone, pool_size=1)
    said = problem.value.message
    assert said.startswith("The database inside does not answer (no such file or directory): try again")
    assert "DATABASE_URL" not in said


async def test_S05_a_full_disk_is_named_as_such(memory: Engine) -> None:
    full = (
        "RAISE EXCEPTION 'could not extend file \"base/5/16384\": No space left on device' USING ERRCODE = 'disk_full'"
    )
    with pytest.raises(DatabaseProblem, match=r"^The disk of the database is full, so nothing was stored: make room"):
        async with memory.core.transaction(memory.space.id) as db:
            await db.connection.execute(text(f"DO $$ BEGIN {full}; END $$"))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 5432)"), "connection refused"),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 5432, 0, 0), [Errno 111] ..."),
            "refused",
        ),
        (socket.gaierror(-2, "Name or service not known"), "its host is not known"),
        (TimeoutError(), "it took too long"),
        (asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"), "broke off"),
        (asyncpg.InternalClientError("got result for unknown protocol state 3"), "the connection broke off"),
        (asyncpg.InterfaceError("cannot perform operation: another operation is in progress"), "broke off"),
    ],
)
async def test_S05_a_reason_shows_nothing_of_the_driver(error: Exception, sentence: str) -> None:
    with pytest.raises(DatabaseProblem, match=sentence) as problem:
        raise lost(error)
    assert not re.search(r"Errno|protocol state|operation|Multiple|\(\'", problem.value.message)


async def test_an_unknown_database_is_named(database_url: str) -> None:
    with pytest.raises(DatabaseProblem, match=r'Database "nope" does not exist: create it with `createdb`'):
        await open_database(address(database_url, name="nope"), pool_size=1)


async def test_D41_several_processes_may_prepare_one_database_at_once(empty_database: str) -> None:
    opened = await asyncio.gather(*(open_database(empty_database, pool_size=1) for _ in range(5)))
    for database in opened:
        await database.close()
    connection = await asyncpg.connect(empty_database)
    assert await connection.fetchval("SELECT count(*) FROM recollect.spaces") == 1
    await connection.close()


async def test_a_connection_cut_off_is_one_sentence_and_the_next_call_works(memory: Engine) -> None:
    await memory.add("before", wait=False)

    async def cut_off() -> None:
        async with memory.core.transaction(memory.space.id) as db:
            await db.connection.execute(text("RESET ROLE"))
            await db.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(DatabaseProblem, match=r"The database did not answer .*: try again"):
        await cut_off()
    assert await memory.count() == 1


async def test_connections_that_died_in_the_pool_are_replaced_unnoticed(memory: Engine) -> None:
    async with AsyncExitStack() as stack:
        held = [await stack.enter_async_context(memory.core.transaction(memory.space.id)) for _ in range(4)]
        pids = [(await one.connection.execute(text("SELECT pg_backend_pid()"))).scalar_one() for one in held]
    async with memory.core.database.alone() as connection:
        assert await connection.fetchval(
            "SELECT bool_and(pg_terminate_backend(p, 5000)) FROM unnest($1::int[]) p", pids
        )
    assert await memory.count() == 0
    assert list(await memory.recall("anything")) == []


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_a_transaction_that_fails_leaves_nothing_and_its_connection_is_used_again(
    settings: Settings, error: type[BaseException]
) -> None:
    async def fail(memory: Engine) -> None:
        async with memory.core.database.owner() as connection:
            await spaces.add(connection, f"t-{uuid4().hex[:12]}", {})
            raise error

    async with Engine(settings.model_copy(update={"pool_size": 1})) as memory:
        before = len(await memory.spaces())
        with pytest.raises(error):
            await fail(memory)
        assert len(await memory.spaces()) == before


async def test_a_transaction_cut_short_gives_its_connection_back(settings: Settings) -> None:
    async with Engine(settings.model_copy(update={"pool_size": 1})) as memory:

        async def sleep() -> None:
            async with memory.core.transaction(memory.space.id) as db:
                await db.connection.execute(text("SELECT pg_sleep(60)"))

        for _ in range(2):
            sleeping = asyncio.create_task(sleep())
            await until_it_holds(lambda: is_asleep(memory.core.database.dsn))
            sleeping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sleeping
        async with memory.core.transaction(memory.space.id) as db:
            assert (await db.connection.execute(text("SELECT txid_current_if_assigned()"))).scalar() is None


async def is_asleep(dsn: str) -> bool:
    connection = await asyncpg.connect(dsn)
    try:
        return bool(await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
    finally:
        await connection.close()


async def test_what_holds_until_the_end_of_a_transaction_is_gone_after_it(settings: Settings) -> None:
    async with Engine(settings.model_copy(update={"pool_size": 1})) as memory:
        async with memory.core.search(memory.space.id), memory.core.transaction(memory.space.id):
            pass
        async with memory.core.database.owner() as connection:
            names = ("role", "statement_timeout", "enable_sort", "transaction_read_only", "recollect.space")
            asked = ", ".join(f"current_setting('{name}', true)" for name in names)
            found = (await connection.execute(text(f"SELECT {asked}"))).one()
    assert tuple(found) == ("none", "0", "on", "off", "")


async def test_a_search_that_takes_too_long_is_given_up(memory: Engine) -> None:
    with pytest.raises(DatabaseProblem, match="statement timeout"):
        async with memory.core.database.search(memory.space.id, ef_search=40, timeout_seconds=0.05) as db:
            await db.connection.execute(text("SELECT pg_sleep(5)"))


async def test_a_search_cannot_write(memory: Engine) -> None:
    with pytest.raises(Exception, match="read-only transaction"):
        async with memory.core.search(memory.space.id) as db:
            await db.connection.execute(text("DELETE FROM recalls"))


SEARCHED_AS = "SELECT current_user::text, current_setting('recollect.space'), current_setting('enable_sort')"


async def test_D53_who_searches_the_same_space_again_sends_nothing_but_questions(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add("The kettle is blue")
    other = await memory.in_space((await memory.add_space("elsewhere")).slug)
    await other.add("The kettle is red")
    told: list[str] = []
    execute = asyncpg.Connection.execute

    async def heard(self: asyncpg.Connection, query: str, *given: object, **more: object) -> str:
        told.append(query)
        return str(await execute(self, query, *given, **more))

    monkeypatch.setattr(asyncpg.Connection, "execute", heard)
    for space in (memory, memory, other, other, memory):
        async with space.core.search(space.space.id) as db:
            who, where, sorts = await db.connection.raw.fetchrow(SEARCHED_AS)
            assert (who, where, sorts) == ("recollect_app", str(space.space.id), "off")
            assert len(await db.fetch("SELECT id FROM nodes WHERE $1::uuid IS NOT NULL")) == 1  # by row-level security
    assert len(told) == 3
    assert not any("BEGIN" in query or "COMMIT" in query for query in told)


async def test_D53_a_searching_connection_that_was_hung_up_on_is_not_asked(memory: Engine) -> None:
    await memory.add("The kettle is blue")
    await memory.recall("kettle")
    hang_up = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"""
    async with memory.core.database.alone() as connection:
        await connection.execute(hang_up)
    assert [hit.node.text for hit in await memory.recall("which kettle?")] == ["The kettle is blue"]


def test_a_wrong_setting_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_POOL_SIZE", "many")
    with pytest.raises(InvalidInput, match=r"The setting RECOLLECT_POOL_SIZE cannot be 'many'"):
        Settings.load()


def test_a_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@db/x")
    shown = str(Settings.load().describe())
    assert "hunter2" not in shown
    assert "'origin': 'DATABASE_URL'" in shown


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", "")
    assert Settings.load().home is None
    assert Settings.load().origin("home") == "default"
