"""Around every request: correlation ids, the one shape of refusals, health, metrics, and the schema."""

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import structlog
from fastapi import FastAPI

from recollect import __version__
from recollect.doors.api.app import create_app
from recollect.engine.engine import Engine
from recollect.errors import (
    Conflict,
    DatabaseProblem,
    DataDirectoryProblem,
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
from recollect.settings import Settings
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, problem, visitor

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
MEMORIES = "/api/v1/memories"
SOME_ID = "0190d3f1-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def failing_routes(house: Engine) -> FastAPI:
    """An app with a route that raises the first of its errors; made once, for that takes as long as all its tests."""
    app = create_app(house)

    @app.get("/fail")
    async def fail() -> None:
        structlog.get_logger().warning("about to fail")
        raise app.state.errors[0]

    return app


@pytest.fixture
async def failing(failing_routes: FastAPI, engine: Engine) -> AsyncIterator[tuple[httpx.AsyncClient, list[Exception]]]:
    """Somebody at that app, and the list for what it should raise."""
    errors: list[Exception] = []
    failing_routes.state.engine, failing_routes.state.errors = engine, errors
    async with visitor(failing_routes) as client:
        yield client, errors


@pytest.mark.parametrize("given", ["abc", "a b", "~" * 128, "req-1;x=2"])
async def test_D11_a_correlation_id_comes_back(client: httpx.AsyncClient, given: str) -> None:
    for path in ("/health/live", MEMORIES, "/nowhere", f"{MEMORIES}/ffff"):
        answer = await client.get(path, headers={"X-Correlation-ID": given})
        assert answer.headers.get_list("x-correlation-id") == [given]
        assert answer.json().get("correlation_id", given) == given


@pytest.mark.parametrize("given", ["", " ", "~" * 129, "é", "tab\there", " led", "line\x7f"])
async def test_D11_what_cannot_be_shown_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/health/live", headers={b"X-Correlation-ID": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-correlation-id"])


async def test_D11_each_request_has_its_own(client: httpx.AsyncClient) -> None:
    ids = {(await client.get("/health/live")).headers["x-correlation-id"] for _ in range(3)}
    assert len(ids) == 3


async def test_D11_log_lines_carry_it(failing: tuple[httpx.AsyncClient, list[Exception]]) -> None:
    client, errors = failing
    errors.append(NotFound("There is nothing."))
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        await client.get("/fail?q=a-secret-question", headers={"X-Correlation-ID": "abc"})
    assert [line["event"] for line in lines] == ["about to fail", "request"]
    assert {line["correlation_id"] for line in lines} == {"abc"}
    assert lines[1]["status"] == 404
    assert "secret" not in str(lines)


ERRORS: list[tuple[Exception, int]] = [
    (InvalidInput("That is wrong.", field="text"), 422),
    (DuplicateText(UUID(SOME_ID)), 409),
    (NotFound("There is nothing."), 404),
    (Conflict("It has moved."), 409),
    (NotAuthenticated("Who are you."), 401),
    (NotAllowed("Not you."), 403),
    (ProviderMisbehaved("It sent nonsense."), 502),
    (ProviderProblem("It is odd."), 502),
    (NotInstalled("Install it."), 501),
    (RecollectError("Something."), 500),
]


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
async def test_D01_every_error_has_its_status_and_the_same_shape(
    failing: tuple[httpx.AsyncClient, list[Exception]], error: RecollectError, status: int
) -> None:
    client, errors = failing
    errors.append(error)
    answer = await client.get("/fail")
    assert problem(answer, status, error.code, field=getattr(error, "field", None)) == error.message
    assert answer.json().get("existing_id") == (str(error.existing_id) if isinstance(error, DuplicateText) else None)
    assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


@pytest.mark.parametrize(("seconds", "shown"), [(None, "5"), (0.2, "1"), (30, "30")])
async def test_D10_who_should_come_back_is_told_when(
    failing: tuple[httpx.AsyncClient, list[Exception]], seconds: float | None, shown: str
) -> None:
    client, errors = failing
    errors.append(ProviderUnavailable("It is busy.", retry_after_seconds=seconds))
    answer = await client.get("/fail")
    problem(answer, 503, "provider_unavailable")
    assert answer.headers["retry-after"] == shown


@pytest.mark.parametrize("kind", [DatabaseProblem, DataDirectoryProblem])
async def test_D41_a_broken_database_is_503_and_its_whereabouts_stay_here(
    failing: tuple[httpx.AsyncClient, list[Exception]], kind: type[DatabaseProblem]
) -> None:
    client, errors = failing
    errors.append(kind("The directory /secret/place is full."))
    with structlog.testing.capture_logs() as lines:
        answer = await client.get("/fail")
    assert "secret" not in problem(answer, 503, kind.code)
    assert answer.headers["retry-after"]
    assert "/secret/place" in str(lines)


async def test_D01_what_nobody_foresaw_is_500_logged_and_not_told(
    failing: tuple[httpx.AsyncClient, list[Exception]],
) -> None:
    client, errors = failing
    errors.append(ZeroDivisionError("a secret"))
    with structlog.testing.capture_logs() as lines:
        answer = await client.get("/fail", headers={"X-Correlation-ID": "abc"})
    assert "secret" not in answer.text
    assert "under abc" in problem(answer, 500, "unexpected")  # said to whoever sees no more than the sentence
    assert answer.headers["x-correlation-id"] == "abc"
    logged = next(line for line in lines if line["event"] == "unexpected")
    assert logged["correlation_id"] == "abc"
    assert logged["exc_info"] is errors[0]


@pytest.mark.parametrize("path", ["/nowhere", "/api/v1", f"{MEMORIES}/", f"{MEMORIES}/a/b/c", "/docs", "/%00"])
async def test_D01_unknown_addresses_are_404_in_the_same_shape(client: httpx.AsyncClient, path: str) -> None:
    assert "/openapi.json" in problem(await client.get(path), 404, "not_found")


@pytest.mark.parametrize(("method", "path"), [("DELETE", MEMORIES), ("POST", "/health"), ("BREW", "/api/v1/jobs")])
async def test_D01_unknown_methods_are_405_in_the_same_shape(client: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"]


async def test_E27_health_knows_version_and_waiting_jobs(client: httpx.AsyncClient, engine: Engine) -> None:
    before = (await client.get("/health")).json()["waiting_jobs"]
    await added(client)
    assert (await client.get("/health")).json() == {
        "live": "ok",
        "ready": "ok",
        "version": __version__,
        "waiting_jobs": before + 1,
    }


async def test_E27_without_its_database_it_is_live_but_not_ready(api_database: str) -> None:
    """The database is there but lets nobody in, and ends the connections it has."""
    name = f"recollect_gone_{uuid4().hex[:8]}"
    await support.sql(api_database, f"CREATE DATABASE {name}")
    url = re.sub("/recollect_api_[0-9a-f]+", f"/{name}", api_database)
    settings = Settings.load(database_url=url, embedder="hashing:64")
    async with Engine(settings) as engine, visitor(create_app(engine)) as client:
        assert (await client.get("/health/ready")).status_code == 200
        await support.sql(
            api_database,
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        assert (await client.get("/health/live")).status_code == 200
        answer = await client.get("/health/ready")
        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()["ready"]) == (503, "unavailable")
        for path in (MEMORIES, "/metrics"):
            problem(await client.get(path), 503, "database_problem")
        await support.sql(api_database, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert (await client.get("/health/ready")).status_code == 200
        assert (await client.get(MEMORIES)).status_code == 200


async def test_D10_metrics_count_requests_by_route_and_jobs_by_state(engine: Engine) -> None:
    async with visitor(create_app(engine)) as client:
        node = await added(client)
        await engine.work()
        await client.get(f"{MEMORIES}/{node['id']}")
        await client.get(f"{MEMORIES}/{SOME_ID}")
        await client.get("/nowhere")
        await client.request("BREW", "/nowhere")
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()

    def value(name: str) -> float:
        return float(next(line for line in lines if line.startswith(name)).rsplit(" ", 1)[1])

    route = 'route="/api/v1/memories/{id}"'
    assert value(f'recollect_http_requests_total{{method="GET",{route},status="200"}}') == 1
    assert value(f'recollect_http_requests_total{{method="GET",{route},status="404"}}') == 1
    assert value('recollect_http_requests_total{method="GET",route="unmatched",status="404"}') == 1
    assert value('recollect_http_requests_total{method="OTHER",route="unmatched",status="404"}') == 1
    assert value(f'recollect_http_request_seconds_count{{method="GET",{route}}}') == 2
    assert value('recollect_jobs{state="completed"}') >= 1
    assert value('recollect_embeddings{model="hashing:64/64"}') >= 1
    assert value("recollect_nodes") >= 1
    assert node["id"] not in answer.text


async def test_D10_two_apps_count_apart(engine: Engine) -> None:
    first, second = create_app(engine), create_app(engine)
    async with visitor(first) as client:
        await client.get("/nowhere")
    async with visitor(second) as client:
        assert "unmatched" not in (await client.get("/metrics")).text


async def test_D01_answers_are_not_kept_and_not_guessed_at(client: httpx.AsyncClient) -> None:
    for path in (MEMORIES, "/nowhere"):
        answer = await client.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_D01_the_schema_tells_of_every_route_and_refusal(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()
    operations: list[dict[str, Any]] = [one for methods in schema["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        assert one["summary"]
        for status, response in one["responses"].items():
            if int(status) >= 400 and "health" not in one["tags"]:
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert schema["components"]["schemas"]["MemoryIn"]["examples"]
    assert set(schema["components"]["securitySchemes"]) == {"Bearer", "API key"}
