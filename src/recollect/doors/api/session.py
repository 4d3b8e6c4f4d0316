"""Sessions: who am I here, and signing in and out with a browser.

The key is sent once, as a key always is; from then on the browser has a cookie that no script can read, that is sent to
this server alone, and that ends within hours (engine/access).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request, Response

from recollect import __version__
from recollect.doors.api import access, edge
from recollect.doors.api.access import Asking, Whole
from recollect.engine.access import LOCAL_ADMIN, Caller
from recollect.engine.engine import Engine
from recollect.errors import NotAuthenticated
from recollect.model import Scope

router = access.router("session")


@dataclass(frozen=True, kw_only=True, slots=True)
class Visitor:
    """Who is calling: by what name, with which scopes, in which space, and whether with a key at all."""

    name: str
    scopes: Sequence[Scope]
    space: str
    bound: bool
    keyless: bool
    version: str


@router.get("/session", summary="Who am I here?")
async def show_session(engine: Whole, caller: Asking) -> Visitor:
    """`space` is the one meant where none is said; `bound`, that there is no other for this key."""
    return _visitor(engine, caller)


@router.post("/session", status_code=201, summary="Sign in with a browser")
async def sign_in(request: Request, response: Response, engine: Whole) -> Visitor:
    """Send the key as `Authorization: Bearer`; the answer sets a cookie for the hours to come."""
    token = access.token_of(request)
    if token is None:
        raise NotAuthenticated("Signing in needs an API key: send it as `Authorization: Bearer <key>`.")
    session = await engine.sign_in(token)
    response.set_cookie(
        edge.cookie_name(request),
        session.secret,
        max_age=session.seconds,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )
    return _visitor(engine, session.caller)


@router.delete("/session", status_code=204, summary="Sign out")
async def sign_out(request: Request, response: Response, engine: Whole) -> None:
    session = access.session_of(request)
    if session is not None:
        await engine.sign_out(session)
        response.delete_cookie(edge.cookie_name(request), httponly=True, samesite="strict")


def _visitor(engine: Engine, caller: Caller) -> Visitor:
    return Visitor(
        name=caller.name,
        scopes=sorted(caller.scopes),
        space=caller.space or engine.settings.space,
        bound=caller.space is not None,
        keyless=caller is LOCAL_ADMIN,
        version=__version__,
    )


def _is_encrypted(request: Request) -> bool:
    """Whether the browser's side is https; where a proxy ends that, only the page's own origin still tells."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
