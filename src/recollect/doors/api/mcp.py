"""/mcp: the tools for agents over HTTP, for the same callers as the API: 401 without a key, 403 beyond its scopes.

Every request stands for itself: it carries its key, and no session is kept, so that a key that is revoked ends at
once, any of several servers may answer, and a server that stops leaves nobody waiting.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from recollect.doors.api.access import (
    JSON_ESCAPE_BYTES,
    MAX_BODY_BYTES,
    authenticate,
    engine_of,
    require_json,
)
from recollect.doors.api.limits import bounded
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.server import create_server, scopes_of
from recollect.doors.mcp.visits import Visit, enter
from recollect.errors import NotAllowed, NotFound

PATH = "/mcp"


class Mcp:
    """The address in an app; `open` it for as long as the app answers."""

    def __init__(self, app: FastAPI) -> None:
        self._most_bytes = max(MAX_BODY_BYTES, JSON_ESCAPE_BYTES * app.state.engine.settings.max_text_bytes)
        self._protocol = StreamableHTTPSessionManager(
            create_server(_visit_of, app.state.running),
            json_response=True,
            stateless=True,
            max_request_body_size=self._most_bytes,
        )
        for path in (PATH, f"{PATH}/"):  # people write either, and a client need not follow a redirect
            app.router.routes.append(Route(path, self, methods=["POST"], include_in_schema=False))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._protocol.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        caller = await authenticate(request)
        require_json(request)
        body = await Request(scope, bounded(request, self._most_bytes)).body()
        asked = _parsed(body)
        scopes = scopes_of(str(asked.get("method")), _name(asked))
        space = request.headers.get("x-recollect-space")
        try:
            request.state.visit = await enter(engine_of(request), caller, scopes, space=space)
        except (NotAllowed, NotFound) as problem:
            await _refused(asked, problem)(scope, receive, send)
        else:
            await self._protocol.handle_request(scope, _again(body, receive), send)


async def _visit_of(request: Request) -> Visit:
    visit: Visit = request.state.visit
    return visit


def _parsed(body: bytes) -> Mapping[str, Any]:
    """What is asked, as far as it can be read; the protocol itself says what is wrong with the rest."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return asked if isinstance(asked, dict) else {}


def _name(asked: Mapping[str, Any]) -> str | None:
    given = asked.get("params")
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


def _refused(asked: Mapping[str, Any], problem: NotAllowed | NotFound) -> JSONResponse:
    """A refusal that also a client of the protocol understands, so that its agent is told the sentence."""
    given = asked.get("id")
    error = {"code": types.INVALID_REQUEST, "message": in_tools(problem.message)}
    answer = {"jsonrpc": "2.0", "id": given if isinstance(given, str | int) else None, "error": error}
    return JSONResponse(answer, 403 if isinstance(problem, NotAllowed) else 404)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever else comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return messages.pop() if messages else await receive()

    return read
