"""`recollect mcp` as a child process: the SDK's client over stdin and stdout, and what only shows in a process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from pydantic import SecretStr

from recollect.doors.mcp.server import create_server
from recollect.doors.mcp.stdio import entrance
from recollect.doors.running import Running
from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests import programs
from tests.conftest import fresh_space
from tests.doors import test_cli_support as support
from tests.doors.test_mcp_support import refused, told
from tests.waiting import HANG_SECONDS

own_database, in_default, cli = support.own_database, support.in_default, support.cli

PROGRAM = [sys.executable, "-m", "recollect", "mcp"]
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}},
}


@pytest.fixture
def space(settings: Settings, own_database: str) -> Settings:
    return asyncio.run(fresh_space(settings.model_copy(update={"database_url": SecretStr(own_database)})))


@pytest.fixture
def environment(space: Settings, own_database: str) -> dict[str, str]:
    return {
        **os.environ,
        "RECOLLECT_DATABASE_URL": own_database,
        "RECOLLECT_EMBEDDER": space.embedder,
        "RECOLLECT_SPACE": space.space,
    }


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return programs.Popen([*PROGRAM, *arguments], env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def ask(process: subprocess.Popen[bytes], message: dict[str, Any]) -> dict[str, Any]:
    tell(process, message)
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def tell(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def call(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": given}}


async def counted(space: Settings) -> int:
    async with Engine(space) as memory:
        return await memory.count()


async def test_two_agents_at_once_over_stdio(space: Settings, environment: dict[str, str], anyio_backend: str) -> None:
    async def write(name: str, mode: str) -> None:
        child = StdioServerParameters(command=PROGRAM[0], args=PROGRAM[1:], env=environment)
        async with Client(child, mode=mode) as client:
            for number in range(5):
                await told(client, "add_memories", memories=[{"text": f"{name} {number}"}, {"text": f"both {number}"}])
            assert (await told(client, "recall", query=f"{name} 3"))["hits"][0]["text"] == f"{name} 3"

    async with anyio.create_task_group() as group:
        group.start_soon(write, "one", "auto")
        group.start_soon(write, "other", "legacy")
    assert await counted(space) == 15


async def test_with_a_key_an_agent_may_do_what_the_key_may(space: Settings, anyio_backend: str) -> None:
    async with Engine(space) as memory:
        key, secret = await memory.add_key("an agent", scopes=[Scope.READ], space=space.space)
        async with Client(create_server(entrance(memory, secret), Running())) as client:
            assert (await told(client, "recall", query="tea"))["hits"] == []
            assert "lacks the scope write" in await refused(client, "add_memory", text="tea")
            await memory.revoke_key(key.prefix)
            assert "was revoked" in await refused(client, "recall", query="tea")


def test_nothing_but_the_protocol_goes_to_stdout_and_the_end_of_stdin_is_the_end(
    space: Settings, environment: dict[str, str]
) -> None:
    """Whoever leaves half-way leaves nothing half-done: the call is carried to its end."""
    process = start({**environment, "RECOLLECT_LOG_LEVEL": "debug"})
    assert ask(process, HELLO)["result"]["serverInfo"]["name"] == "recollect"
    several = [{"text": f"memory {number}"} for number in range(300)]
    tell(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    tell(process, call("add_memories", {"memories": several}))
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert process.returncode == 0, err
    assert b"Traceback" not in err
    assert asyncio.run(counted(space)) in (0, 300)


def test_M01_what_was_asked_before_stdin_ended_is_answered(environment: dict[str, str]) -> None:
    asked = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    asked += [{**call("add_memory", {"text": f"fact {number}"}), "id": number} for number in range(10, 20)]
    process = start(environment)
    out, err = process.communicate("".join(json.dumps(one) + "\n" for one in asked).encode(), timeout=HANG_SECONDS)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert answers.keys() == {1, *range(10, 20)}
    assert [number for number, one in answers.items() if "error" in one or one["result"].get("isError")] == []
    assert (process.returncode, err) == (0, b"")


def test_a_signal_ends_it_while_stdin_is_open(environment: dict[str, str]) -> None:
    process = start(environment)
    ask(process, HELLO)
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG_SECONDS) == 0
    assert process.communicate() == (b"", b"")


def test_what_stands_in_the_way_is_one_sentence_on_stderr(cli: support.Cli) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    assert "127.0.0.1" in cli.refused("--database-url", nowhere, "mcp", code=6)
    assert "'nowhere'" in cli.refused("mcp", "--space", "nowhere", code=3)
    assert "This API key is not known." in cli.refused("mcp", "--key", "rk_nonsense", code=5)
