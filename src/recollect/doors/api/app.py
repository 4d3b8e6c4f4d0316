"""The app: its routes, and the one place where an error becomes an answer.

Every refusal has the same shape, {code, message, correlation_id} and where there is one field and existing_id.
"""

import http
import json
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.models import Schema
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException

from recollect import __version__
from recollect.doors.api import (
    cases,
    concepts,
    consolidation,
    graph,
    health,
    jobs,
    keys,
    links,
    memories,
    overview,
    pages,
    plans,
    questions,
    reasoning,
    recall,
    schedules,
    session,
    spaces,
)
from recollect.doors.api.edge import EdgeMiddleware, finish_headers
from recollect.doors.api.limits import Turns
from recollect.doors.api.metrics import Metrics
from recollect.doors.api.schemas import Problem
from recollect.doors.running import Running
from recollect.doors.web import page
from recollect.engine.engine import Engine
from recollect.errors import (
    Conflict,
    DatabaseProblem,
    DuplicateText,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotInstalled,
    ProviderMisbehaved,
    ProviderProblem,
    ProviderUnavailable,
    RecollectError,
)
from recollect.logs import Logger
from recollect.wording import cannot_be, place_of

log = Logger("recollect.api")

DESCRIPTION = """
A memory that remembers, recalls, tidies itself, and can undo every tidying.

Send an API key as `Authorization: Bearer rk_...`. On the machine itself none is needed until the first one is made.
`X-Recollect-Space` chooses the space. Every answer carries `X-Correlation-ID`, taken from the request or made anew, and
every refusal has the same shape. Times are RFC 3339; without a zone they mean UTC.
"""

STATUSES: Mapping[type[RecollectError], int] = {
    InvalidInput: 422,
    DuplicateText: 409,
    NotFound: 404,
    Conflict: 409,
    NotAuthenticated: 401,
    NotAllowed: 403,
    DatabaseProblem: 503,
    ProviderProblem: 502,
    ProviderUnavailable: 503,
    ProviderMisbehaved: 502,
    NotInstalled: 501,
    RecollectError: 500,
}
CODES = {
    400: "unreadable",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "not_json",
    429: "too_many",
}
SENTENCES = {
    400: "The body cannot be read as JSON: it is not UTF-8, nested too deeply, or holds a number too long.",
    404: "There is nothing at this address: /openapi.json lists what there is.",
    405: "This method is not for this address: /openapi.json lists what is.",
}
RETRY_SECONDS = 5


class Api(FastAPI):
    """What every refusal looks like is described once, here, and referred to by every route."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schemas = super().openapi()["components"]["schemas"]
            problem = Schema(**Problem.model_json_schema())
            schemas["Problem"] = problem.model_dump(mode="json", by_alias=True, exclude_none=True)
            for name in sorted(schemas):
                schemas[name] = schemas.pop(name)
        return super().openapi()


def create_app(engine: Engine, *, metrics: Metrics | None = None) -> FastAPI:
    """The API of an open engine; whoever opened it closes it."""
    app = Api(
        title="Recollect",
        summary="A memory for agents and people.",
        description=DESCRIPTION,
        version=__version__,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        # The usual pages of documentation load scripts from elsewhere, into a page that may change memories here.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.engine = engine
    app.state.metrics = metrics or Metrics()
    app.state.running = Running()
    app.state.turns = Turns(engine.settings.max_large_requests)
    app.add_middleware(EdgeMiddleware, metrics=app.state.metrics)
    parts = (
        memories,
        cases,
        consolidation,
        concepts,
        pages,
        plans,
        questions,
        links,
        graph,
        schedules,
        recall,
        reasoning,
    )
    for part in (*parts, overview, jobs, spaces, keys, session, health, page):
        app.router.routes.extend(part.router.routes)  # including a router builds each of its routes a second time
    app.add_exception_handler(RecollectError, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _not_http)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(Exception, _unexpected)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RecollectError)
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    message, headers = error.message, dict[str, str]()
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, ProviderUnavailable):
        headers["Retry-After"] = str(math.ceil(error.retry_after_seconds or RETRY_SECONDS))
    if isinstance(error, DatabaseProblem):  # its sentence is for whoever runs the server: it names paths and hosts
        log.error("the database cannot be used", why=error.message)
        message, headers["Retry-After"] = "The database cannot be used for now: try again.", str(RETRY_SECONDS)
    return _problem(request, status, error.code, message, headers=headers, **error.more)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    field, sentence = sentence_of(error.errors()[0])
    return _problem(request, 422, InvalidInput.code, sentence, field=field)


async def _not_http(request: Request, error: Exception) -> Response:
    """Unknown addresses and methods, bodies too large or unreadable."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    is_own = error.detail not in (http.HTTPStatus(status).phrase, "There was an error parsing the body")
    sentence = error.detail if is_own else SENTENCES.get(status, error.detail)
    return _problem(request, status, CODES.get(status, "error"), sentence, headers=error.headers)


async def _too_deep(request: Request, _error: Exception) -> Response:
    return _problem(request, 422, InvalidInput.code, "The body is nested too deeply.")


async def _unexpected(request: Request, error: Exception) -> Response:
    """The one handler for what nobody foresaw: the log gets everything, the caller only the id to find it by."""
    log.error("unexpected", correlation_id=request.state.correlation_id, path=request.url.path, exc_info=error)
    said = f"Something went wrong here; the log of the server knows more under {request.state.correlation_id}."
    return _problem(request, 500, "unexpected", said)


def _problem(
    request: Request, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None, **more: str
) -> Response:
    correlation_id = request.state.correlation_id
    # ASCII, since a message may quote what was sent, and that need not be encodable (lone surrogates).
    body = json.dumps({"code": code, "message": message, "correlation_id": correlation_id, **more})
    response = Response(body, status, headers, media_type="application/json")
    finish_headers(MutableHeaders(raw=response.raw_headers), correlation_id)
    return response


def sentence_of(error: Mapping[str, Any]) -> tuple[str, str]:
    """What pydantic found wrong, as the field's name and one sentence."""
    field = place_of(error["loc"][1:]) or str(error["loc"][0])
    match error["type"]:
        case "json_invalid":
            return "body", f"The body is not JSON: look at character {error['loc'][-1]}."
        case "missing":
            return field, "A JSON body is needed." if field == "body" else f"{field} is missing."
        case "extra_forbidden":
            return field, f"{field!r} is not a field of this request: /openapi.json lists those that are."
    return field, cannot_be("The body" if field == "body" else field, error) + "."
