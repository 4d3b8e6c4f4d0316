"""The ground the API tests stand on: a database of their own, since whether a key was ever made concerns all of it.

No tests here; each module takes the fixtures it needs: `client = support.client`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from uuid import uuid4

import anyio
import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from recollect.doors.api.app import create_app
from recollect.doors.api.server import Listening, bind
from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests.conftest import MADE

HERE = "http://localhost:7700"


async def sql(url: str, *statements: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            answer = await connection.fetch(statement)
    finally:
        await connection.close()
    return answer


@pytest.fixture(scope="module")
def api_database(database_url: str) -> str:
    """The address of a database beside the one that the other tests use."""
    name = f"recollect_api_{uuid4().hex[:8]}"
    asyncio.run(sql(database_url, f"CREATE DATABASE {name} TEMPLATE {MADE}"))
    return database_url.replace("/recollect?", f"/{name}?")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop a module, so that its tests can share an engine."""
    return "asyncio"


@pytest.fixture(scope="module")
def api_settings(api_database: str) -> Settings:
    return Settings.load(database_url=api_database, embedder="hashing:64", pool_size=4)


@pytest.fixture(scope="module")
async def house(api_settings: Settings, anyio_backend: str) -> AsyncIterator[Engine]:
    """An open engine, with the hashing embedder and no worker beside it."""
    async with Engine(api_settings) as engine:
        yield engine


@pytest.fixture
async def engine(house: Engine) -> AsyncIterator[Engine]:
    """The engine in a space of the test's own, in a database where no key was ever made."""
    space = await house.add_space(f"t-{uuid4().hex[:12]}")
    engine = await house.in_space(space.slug)
    yield engine
    if await house.needs_key():
        await sql(house.core.database.dsn, "DELETE FROM recollect.api_keys")


@pytest.fixture(scope="module")
def routes(house: Engine) -> FastAPI:
    return create_app(house)


@pytest.fixture
def app(routes: FastAPI, engine: Engine) -> FastAPI:
    """The app, its routes made once a module, with the engine of this test."""
    routes.state.engine = engine
    return routes


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody on this machine, without a key."""
    async with visitor(app) as client:
        yield client


def visitor(
    app: FastAPI, *, key: str | None = None, peer: str = "127.0.0.1", address: str = HERE, **headers: str
) -> httpx.AsyncClient:
    """Somebody who calls from there, with this key and these headers."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    transport = httpx.ASGITransport(app, client=(peer, 50000), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=address, headers=sent)


async def key_for(engine: Engine, *scopes: Scope, space: str | None = None) -> str:
    _, secret = await engine.add_key("a test", scopes=scopes or (Scope.ADMIN,), space=space)
    return secret


async def added(client: httpx.AsyncClient, text: str | None = None, **fields: Any) -> dict[str, Any]:
    """A memory just added, as the API shows it."""
    answer = await client.post("/api/v1/memories", json={"text": text or f"a memory {uuid4()}", **fields})
    assert answer.status_code == 201, answer.text
    node = dict(answer.json())
    assert node.pop("notes") == []
    return node


def problem(answer: httpx.Response, status: int, code: str, *, field: str | None = None) -> str:
    """The sentence of a refusal, which must have the shape that every refusal has."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["code"] == code
    assert body["correlation_id"] == answer.headers["x-correlation-id"]
    assert set(body) <= {"code", "message", "correlation_id", "field", "existing_id"}
    assert body.get("field") == field
    assert body["message"].endswith(".")
    return str(body["message"])


def raw(value: Any) -> dict[str, Any]:
    """A request's body as Python would write it: NaN, Infinity and lone surrogates as they are."""
    return {"content": json.dumps(value), "headers": {"Content-Type": "application/json"}}


@contextmanager
def listening(settings: Settings, port: int = 0) -> Iterator[str]:
    """The address of a real server on a real socket, in a thread."""
    listener = bind("127.0.0.1", port)
    servers: list[Listening] = []
    addresses: list[str] = []

    async def run() -> None:
        async with Engine(settings) as engine:
            servers.append(Listening(engine, listener, addresses.append))
            await servers[0].answer()

    thread = Thread(target=anyio.run, args=(run,))
    thread.start()
    try:
        while not addresses and thread.is_alive():
            thread.join(0.01)
        yield addresses[0]
    finally:
        for server in servers:
            server.should_exit = True
        thread.join()
        listener.close()
