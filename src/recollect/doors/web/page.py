"""The page: one document and its assets, all from inside the package, with nothing from anywhere else.

It is not guarded: it holds no memory. What it shows it asks of the API, as whoever is signed in (doors/api/session).
Where to look is behind the # of the address, which no server ever sees.
"""

import gzip
import mimetypes
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi import Path as InPath

STATIC = Path(__file__).parent / "static"
GUARD = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# The build names a file by what is in it, so it never changes; the others are asked for again.
NAMED_BY_CONTENT = re.compile(r".+-[\w-]{8}\.\w+")
FOREVER, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A file of the page, as it is sent."""

    body: bytes
    zipped: bytes
    media_type: str


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    return _sent(request, "index.html")


@router.api_route("/assets/{name}", methods=["GET", "HEAD"])
async def asset(request: Request, name: Annotated[str, InPath(max_length=200)]) -> Response:
    return _sent(request, f"assets/{name}")


@cache
def assets() -> dict[str, Asset]:
    """Every file of the page by its name; only what is here is ever sent."""
    files = [file for file in STATIC.rglob("*") if file.is_file()]
    return {file.relative_to(STATIC).as_posix(): _asset(file) for file in files}


def _asset(file: Path) -> Asset:
    body = file.read_bytes()
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return Asset(body=body, zipped=gzip.compress(body, mtime=0), media_type=media_type)


def _sent(request: Request, name: str) -> Response:
    file = assets().get(name)
    if file is None:
        raise HTTPException(404)
    headers = {**GUARD, "Vary": "Accept-Encoding", "Cache-Control": _cached(name)}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.body, headers=headers, media_type=file.media_type)
    return Response(file.zipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)


def _cached(name: str) -> str:
    return FOREVER if NAMED_BY_CONTENT.fullmatch(name) else ASK_AGAIN
