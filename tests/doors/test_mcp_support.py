"""The ground the MCP tests stand on: agents that talk to a server in this process, by the SDK's own client.

No tests here; the database and the engine are those of the API's tests.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from recollect.doors.mcp.server import create_server
from recollect.doors.mcp.visits import Visit
from recollect.doors.running import Running
from recollect.engine.access import LOCAL_ADMIN, Caller
from recollect.engine.engine import Engine
from recollect.model import Scope


def caller(*scopes: Scope) -> Caller:
    return Caller(name="an agent", scopes=frozenset(scopes), space=None)


@asynccontextmanager
async def agent(
    memory: Engine, by: Caller = LOCAL_ADMIN, *, running: Running | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """An agent that uses this memory, with all rights unless told otherwise."""

    async def enter(_request: object) -> Visit:
        return Visit(caller=by, memory=memory)

    async with Client(create_server(enter, running or Running()), mode=mode) as client:
        yield client


def text_of(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


async def told(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """The data of an answer that is no refusal."""
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, text_of(answer)
    assert answer.structured_content is not None
    return dict(answer.structured_content)


async def said(client: Client, tool: str, **given: Any) -> str:
    """The words of an answer that is no refusal."""
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, text_of(answer)
    return text_of(answer)


async def refused(client: Client, tool: str, **given: Any) -> str:
    """The one sentence of a refusal."""
    answer = await client.call_tool(tool, given)
    assert answer.is_error, text_of(answer)
    assert answer.structured_content is None
    sentence = text_of(answer)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def as_sent(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
