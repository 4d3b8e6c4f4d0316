"""Around every request: a correlation id in and out, one line in the log, one count in the metrics.

And the position of the caller's own writes, out with an answer and in with the next request, so that whichever server
reads at a standby shows them (X03).

Plain ASGI, so that it sees every response, also of a stream, and costs no task of its own.
"""

import re
import time
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from recollect.doors.api.metrics import Metrics
from recollect.logs import Logger
from recollect.store.standby import Writer, as_written, calling, position_of

log = Logger("recollect.api")

CORRELATION = "X-Correlation-ID"
AFTER = "X-Recollect-After"
# A browser keeps it beside its session; by then every standby that is read at all has come that far.
AFTER_SECONDS = 60
# Printable and without blanks at the ends, so that it can go into a header and a log as it is.
ACCEPTED = re.compile(r"[!-~](?:[ -~]{0,126}[!-~])?")
QUIET = ("/health", "/metrics")


class EdgeMiddleware:
    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        correlation_id = _correlation_id(Headers(scope=scope))
        scope.setdefault("state", {})["correlation_id"] = correlation_id
        status, started = 500, time.perf_counter()  # whoever raises past us is answered with 500

        request = Request(scope)
        writer = Writer(after=_after(request))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                finish_headers(headers, correlation_id)
                if writer.wrote:
                    _tell_position(headers, request, as_written(writer.wrote))
            await send(message)

        with bound_contextvars(correlation_id=correlation_id), calling(writer):
            try:
                await self._app(scope, receive, answer)
            finally:
                self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unmatched")
        self._metrics.answered(route=route, method=scope["method"], status=status, seconds=seconds)
        # The path without its query, which may hold what somebody searched for.
        say = log.debug if route.startswith(QUIET) else log.info
        say("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


def finish_headers(headers: MutableHeaders, correlation_id: str) -> None:
    headers[CORRELATION] = correlation_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Cache-Control", "no-store")


def _after(request: Request) -> int:
    """Up to where the caller wrote; what cannot be read is refused where routes are guarded (access.py)."""
    given = request.headers.get(AFTER) or request.cookies.get(f"{cookie_name(request)}-after", "")
    return position_of(given) or 0


def _tell_position(headers: MutableHeaders, request: Request, position: str) -> None:
    headers[AFTER] = position
    name = cookie_name(request)
    if name in request.cookies:
        rules = f"Max-Age={AFTER_SECONDS}; Path=/; HttpOnly; SameSite=Strict"
        headers.append("Set-Cookie", f"{name}-after={position}; {rules}")


def cookie_name(request: Request) -> str:
    """One a port, since a browser sends the cookies of a host to every port of it."""
    return f"recollect-{request.url.port or 'session'}"


def _correlation_id(headers: Headers) -> str:
    """The caller's, if it can be shown as it is; else a new one."""
    given = headers.get(CORRELATION, "")
    return given if ACCEPTED.fullmatch(given) else uuid4().hex
