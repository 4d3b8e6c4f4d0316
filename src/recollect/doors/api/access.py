"""Who is calling, and what may they do here? Asked before a byte of the body is read.

The peer of the socket is believed, never a header: `X-Forwarded-For` and its kin only take the privilege of being
local away. As long as no key was ever made, local callers are admin; so that a web page in a local browser is not one
of them, such requests must name this machine as their Host (else DNS rebinding reaches it) and, when they change
anything, come from no foreign Origin.

A browser that signed in (session.py) sends a cookie with whatever any page makes it send. So a request by cookie that
changes anything must come from our own page: it carries a header that no other page may add, and our own Origin.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.requests import ClientDisconnect

from recollect.doors.api.edge import AFTER, cookie_name
from recollect.doors.api.limits import GONE, Incoming, bounded, only_reads, unless_gone
from recollect.doors.api.schemas import ALWAYS, Responses
from recollect.engine.access import LOCAL_ADMIN, Caller
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotAllowed, NotAuthenticated
from recollect.model import Scope
from recollect.store.standby import position_of

MEGABYTE = 1_000_000
MAX_BODY_BYTES = 8 * MEGABYTE
MAX_BATCH_BYTES = 64 * MEGABYTE
# A character of text takes up to six bytes as a JSON escape, so a text just within its limit fits in any case.
JSON_ESCAPE_BYTES = 6

LOCAL_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# Sent along by our own page; a page from elsewhere cannot, without being asked for permission that is never given.
OWN_PAGE = "x-recollect"
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})

bearer = HTTPBearer(auto_error=False, scheme_name="Bearer", description="An API key: `recollect keys add` makes one.")
api_key = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="API key", description="The same, by itself.")


def engine_of(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


async def authenticate(request: Request) -> Caller:
    """The caller, or NotAuthenticated; a keyless one must be local, and not a web page from elsewhere."""
    token = token_of(request)
    if token is None and (signed_in := await _signed_in(request)):
        refuse_forgery(request)
        return signed_in
    caller = await engine_of(request).authenticate(token, loopback=is_local(request))
    if token is None:
        refuse_web_pages(request)
    return caller


def token_of(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return request.headers.get("x-api-key")


async def _signed_in(request: Request) -> Caller | None:
    """Who signed in with this browser; a cookie that means nothing here (any more) is as good as none."""
    session = session_of(request)
    return await engine_of(request).resume(session) if session else None


def session_of(request: Request) -> str | None:
    return request.cookies.get(cookie_name(request))


def is_local(request: Request) -> bool:
    """Whether the other end of the socket is this machine, and not a proxy that passes on what comes from outside."""
    if request.client is None or any(name in request.headers for name in PASSED_ON):
        return False
    try:
        peer = ip_address(request.client.host)
    except ValueError:
        return False
    return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback


def refuse_web_pages(request: Request) -> None:
    host = request.headers.get("host", "")
    if not LOCAL_HOST.fullmatch(host):
        raise NotAllowed(f"Without an API key this serves localhost only, not {host!r}: make a key, and send it along.")
    if is_foreign(request) and request.method not in HARMLESS:
        origin = request.headers.get("origin")
        raise NotAllowed(f"Without an API key, the web page {origin!r} may not change anything here: send a key along.")


def refuse_forgery(request: Request) -> None:
    """What a browser that signed in is made to do by a page from elsewhere."""
    if request.method not in HARMLESS and (OWN_PAGE not in request.headers or is_foreign(request)):
        raise NotAllowed("Signed in with a browser, only this server's own page may change anything: send a key along.")


def is_foreign(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is not None and _netloc(origin) != request.headers.get("host", "").lower()


async def need_insight(request: Request) -> None:
    """Figures of the whole house are for this machine, and for keys that may read in every space."""
    if token_of(request) is None and is_local(request):
        refuse_web_pages(request)
    else:
        (await authenticate(request)).need(Scope.READ)


def need_key(request: Request) -> None:
    """E28: for what is done with a key only, also on this machine and before the first key was made."""
    if caller_of(request) is LOCAL_ADMIN:
        raise NotAuthenticated(
            "This needs an API key, also on this machine: `recollect keys add NAME --scope consolidate` makes one."
        )


def refuse_unreadable_position(request: Request) -> None:
    given = request.headers.get(AFTER)
    if given is not None and position_of(given) is None:
        raise InvalidInput(
            f"{AFTER} cannot be {given!r:.60}: send the last one that an answer carried, or none.", field=AFTER
        )


def refuse_unknown_parameters(request: Request, known: Collection[str]) -> None:
    """As in a body: what nobody reads may be what mattered (`?space=`, `?dry_run=true`)."""
    for name in request.query_params:
        if name not in known:
            instead = (
                "the header X-Recollect-Space chooses the space" if name == "space" else "/openapi.json lists those"
            )
            raise InvalidInput(f"{name!r:.60} is not a parameter of this request: {instead}.", field=f"{name:.60}")


def _parameters(dependant: Dependant) -> Iterator[str]:
    """What a route and all that it depends on read in the query of an address."""
    yield from (field.alias for field in dependant.query_params)
    for other in dependant.dependencies:
        yield from _parameters(other)


def _caller_in_short(request: Request) -> str:
    """Whose turn it is: that of a key, of a browser that signed in, or of this machine."""
    return token_of(request) or session_of(request) or ""


Handle = Callable[[Request], Coroutine[Any, Any, Response]]


class Guarded(APIRoute):
    """A route that asks who is calling, and how much they send, before it reads what they say."""

    def get_route_handler(self) -> Handle:
        handle, known = super().get_route_handler(), frozenset(_parameters(self.dependant))

        async def guarded(request: Request) -> Response:
            request.state.caller = await authenticate(request)
            refuse_unreadable_position(request)
            refuse_unknown_parameters(request, known)
            with request.app.state.turns.one_of(_caller_in_short(request), request):
                return await self._answered(request, handle)

        return guarded

    async def _answered(self, request: Request, handle: Handle) -> Response:
        if self.body_field is not None:
            require_json(request)
            request = Incoming(request.scope, bounded(request, self._max_bytes(request)))
            try:
                await request.body()  # before anybody listens whether the caller is still there
            except ClientDisconnect:
                return Response(status_code=GONE)
        return await (unless_gone(request, handle(request)) if only_reads(request) else handle(request))

    def _max_bytes(self, request: Request) -> int:
        if self.path.endswith("/batch"):
            return MAX_BATCH_BYTES
        return max(MAX_BODY_BYTES, JSON_ESCAPE_BYTES * engine_of(request).settings.max_text_bytes)


def operation_id(route: APIRoute) -> str:
    return route.name


def router(tag: str, responses: Responses | None = None) -> APIRouter:
    """A router under /api/v1 whose routes are guarded."""
    return APIRouter(
        prefix="/api/v1",
        tags=[tag],
        route_class=Guarded,
        generate_unique_id_function=operation_id,
        dependencies=[Depends(bearer), Depends(api_key)],
        responses={**ALWAYS, **(responses or {})},
    )


SpaceName = Annotated[
    str | None,
    Header(alias="X-Recollect-Space", description="The space; the key's own or the server's default otherwise."),
]


def _in_space(scope: Scope, *or_else: Scope) -> Callable[[Request, str | None], Awaitable[Engine]]:
    """The engine in the space that is meant, for callers who hold one of these scopes."""

    async def enter(request: Request, space: SpaceName = None) -> Engine:
        engine, caller = engine_of(request), caller_of(request)
        slug = space or caller.space or engine.settings.space
        caller.need_any(
            (scope, *or_else), slug
        )  # first, so that a key bound elsewhere does not learn which spaces there are
        return await engine.in_space(slug)

    return enter


def caller_of(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _admin(request: Request) -> Engine:
    caller_of(request).need(Scope.ADMIN)
    return engine_of(request)


Asking = Annotated[Caller, Depends(caller_of)]
Whole = Annotated[Engine, Depends(engine_of)]
Reading = Annotated[Engine, Depends(_in_space(Scope.READ))]
Writing = Annotated[Engine, Depends(_in_space(Scope.WRITE))]
Consolidating = Annotated[Engine, Depends(_in_space(Scope.CONSOLIDATE))]
# For what is told apart only once it is looked at.
Changing = Annotated[Engine, Depends(_in_space(Scope.CONSOLIDATE, Scope.WRITE))]
Administering = Annotated[Engine, Depends(_admin)]


def require_json(request: Request) -> None:
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and not (kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))):
        raise HTTPException(415, "The body must be JSON: send it with `Content-Type: application/json`.")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
