"""/mcp of a real server: the SDK's client over HTTP, the same keys and spaces as the API, and clients that leave."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests.doors import test_api_support as support
from tests.doors.test_api_support import key_for
from tests.doors.test_mcp_support import refused, told
from tests.waiting import HANG_SECONDS, until_it_holds

pytestmark = pytest.mark.anyio
anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, engine = support.house, support.engine

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def address(api_settings: Settings) -> Iterator[str]:
    with support.listening(api_settings) as address:
        yield address


@asynccontextmanager
async def agent(address: str, *, key: str | None = None, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    async with (
        create_mcp_http_client(headers=sent) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def call(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": given}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def post(address: str, message: object, *, key: str | None = None, **headers: str) -> httpx.Response:
    sent = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    async with httpx.AsyncClient(headers=sent, timeout=HANG_SECONDS) as http:
        return await http.post(f"{address}/mcp", content=json.dumps(message))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_journey(address: str, engine: Engine, mode: str) -> None:
    async with agent(address, mode=mode, X_Recollect_Space=engine.space.slug) as client:
        assert len((await client.list_tools()).tools) == 16
        added = await told(client, "add_memory", text="Linh prefers tea")
        (hit,) = (await told(client, "recall", query="what does Linh prefer?"))["hits"]
        assert hit["id"] == added["id"]
        assert "get needs id." in await refused(client, "get")
        read = await client.read_resource(f"memory://{added['id']}")
        assert read.contents[0].uri == f"memory://{added['id']}"
    assert await engine.count() == 1


async def test_M01_the_address_works_with_and_without_a_slash(address: str) -> None:
    async with httpx.AsyncClient(headers=HEADERS, timeout=HANG_SECONDS) as http:
        answers = [await http.post(f"{address}{path}", content=json.dumps(LISTING)) for path in ("/mcp", "/mcp/")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_E28_once_a_key_was_made_every_request_needs_one(address: str, engine: Engine) -> None:
    key = await key_for(engine, Scope.READ, space=engine.space.slug)
    for wrong in (None, "rk_nonsense", key[:-1] + "x"):
        answer = await post(address, LISTING, key=wrong)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] == "not_authenticated"
    assert (await post(address, LISTING, key=key)).status_code == 200
    await engine.revoke_key(key[3:11])
    assert (await post(address, LISTING, key=key)).status_code == 401


async def test_E28_beyond_the_scope_or_the_space_of_a_key_is_403(address: str, engine: Engine) -> None:
    key = await key_for(engine, Scope.READ, space=engine.space.slug)
    answer = await post(address, call("add_memory", {"text": "tea"}), key=key)
    assert answer.status_code == 403
    assert answer.json()["id"] == 7
    assert "lacks the scope write" in answer.json()["error"]["message"]
    for message in (LISTING, call("recall", {"query": "tea"})):
        answer = await post(address, message, key=key, X_Recollect_Space="default")
        assert (answer.status_code, "bound to the space" in answer.json()["error"]["message"]) == (403, True)
    assert (await post(address, call("recall", {"query": "tea"}), key=key)).status_code == 200
    async with agent(address, key=key) as client:
        with pytest.raises(MCPError, match="lacks the scope write"):
            await client.call_tool("add_memory", {"text": "tea"})
        assert (await told(client, "recall", query="tea"))["hits"] == []
    assert await engine.count() == 0


async def test_a_space_that_is_not_there_is_said(address: str, engine: Engine) -> None:
    answer = await post(address, LISTING, X_Recollect_Space="nowhere")
    assert (answer.status_code, "'nowhere'" in answer.json()["error"]["message"]) == (404, True)


async def test_E28_a_web_page_from_elsewhere_is_refused(address: str, engine: Engine) -> None:
    assert (await post(address, LISTING, Origin="http://evil.example")).status_code == 403
    assert (await post(address, LISTING, Host="evil.example")).status_code == 403
    assert (await post(address, LISTING, Content_Type="text/plain")).status_code == 415
    assert (await post(address, LISTING, X_Forwarded_For="127.0.0.1")).status_code == 401


async def test_no_session_is_kept_so_nobody_is_left_waiting(address: str, engine: Engine) -> None:
    async with httpx.AsyncClient(headers=HEADERS, timeout=HANG_SECONDS) as http:
        for method in ("GET", "DELETE"):
            assert (await http.request(method, f"{address}/mcp")).status_code == 405
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "a test", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        answer = await http.post(f"{address}/mcp", json=message)
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
        assert "Recall before you answer" in answer.json()["result"]["instructions"]


@pytest.mark.parametrize("body", ["[]", "{", "null", '{"method": 3}', "[" * 100_000])
async def test_what_cannot_be_read_is_refused_by_the_protocol(address: str, engine: Engine, body: str) -> None:
    async with httpx.AsyncClient(headers=HEADERS, timeout=HANG_SECONDS) as http:
        answer = await http.post(f"{address}/mcp", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_two_clients_that_write_at_once_lose_nothing(address: str, engine: Engine) -> None:
    async def write(name: str) -> None:
        async with agent(address, X_Recollect_Space=engine.space.slug) as client:
            for number in range(10):
                await told(client, "add_memories", memories=[{"text": f"{name} {number}"}, {"text": f"both {number}"}])

    async with anyio.create_task_group() as group:
        group.start_soon(write, "one")
        group.start_soon(write, "other")
    assert await engine.count() == 30


async def test_a_client_that_hangs_up_half_way_leaves_nothing_half_done(address: str, engine: Engine) -> None:
    several = {"memories": [{"text": f"memory {number}"} for number in range(300)]}
    body = json.dumps(call("add_memories", several)).encode()
    with sending(address, engine, body, len(body) - 10):
        pass  # in the midst of the request
    assert (await post(address, LISTING)).status_code == 200  # the server has come to what was sent after that
    assert await engine.count() == 0
    with sending(address, engine, body, len(body)):
        await until_it_holds(lambda: engine.count())  # in the midst of the answer
    assert await engine.count() == 300
    await until_it_holds(lambda: all_embedded(engine))


async def all_embedded(memory: Engine) -> bool:
    return not (await memory.jobs()).waiting


@contextmanager
def sending(address: str, engine: Engine, body: bytes, number: int) -> Iterator[None]:
    """Send so many bytes of a request, and hang up."""
    url = urlsplit(address)
    head = {"Host": url.netloc, "Content-Length": str(len(body)), "X-Recollect-Space": engine.space.slug, **HEADERS}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    with socket.create_connection((url.hostname or "", url.port or 0)) as connection:
        connection.sendall("\r\n".join(lines).encode() + body[:number])
        yield


def test_a_server_with_clients_stops_without_giving_up_on_them(
    api_settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with httpx.Client(headers=HEADERS, timeout=HANG_SECONDS) as http:
        with support.listening(api_settings) as address:
            assert http.post(f"{address}/mcp", json=LISTING).status_code == 200
        assert "timeout graceful shutdown exceeded" not in caplog.text
