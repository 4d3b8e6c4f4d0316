"""Schemathesis: requests made from our own schema, right ones and wrong ones, at a real server with a real key.

Every operation gets as many of them, and the same ones on every machine.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.core.result import Ok

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests.doors import test_api_support as support

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings

REQUESTS = 6  # to each operation: as many as the time limit that was here left on a slow machine
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def known(api_settings: Settings) -> dict[str, str]:
    """What there is to ask for: a memory, an edge, a plan, its run, and a key to everything."""

    async def furnish() -> dict[str, str]:
        async with Engine(api_settings) as engine:
            node = await engine.add("here before", metadata={"tags": ["ai"]}, thread="t")
            await engine.forget(node.id)
            other = await engine.add("here as well")
            edge = await engine.graph.link(node.id, other.id, strength=0.4)
            await engine.graph.link(node.id, other.id, "extends", strength=0.5)
            plan = await engine.plans.propose("merge-edges")
            run = (await engine.plans.apply(plan.id)).run_id
            key = await support.key_for(engine, Scope.ADMIN)
            known = {"memories": node.id, "nodes": node.id, "edges": edge.id, "plans": plan.id, "runs": run, "key": key}
            return {name: str(id_) for name, id_ in known.items()}

    return asyncio.run(furnish())


@pytest.fixture(scope="module")
def address(api_settings: Settings, known: dict[str, str]) -> Iterator[str]:
    with support.listening(api_settings) as address:
        yield address


def test_D01_no_request_makes_the_server_fail_or_answer_off_its_schema(address: str, known: dict[str, str]) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations: list[Any] = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    asked: dict[str, set[int]] = {}
    for operation in operations:
        asked[operation.label] = tried(operation, known)
    answered = set().union(*asked.values())
    assert {200, 201, 207, 404, 405, 422} <= answered
    assert 401 not in answered
    assert all(asked.values()), asked


def tried(operation: Any, known: dict[str, str]) -> set[int]:
    """Send requests of an operation, right and wrong ones; returns the statuses seen."""
    statuses: set[int] = set()

    @hypothesis.settings(
        max_examples=REQUESTS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(case=requests_of(operation, known))
    def run(case: Any) -> None:
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    run()
    return statuses


def requests_of(operation: Any, known: dict[str, str]) -> st.SearchStrategy[Any]:
    """Half of them fit the schema and ask for what is there."""
    headers = {"Authorization": f"Bearer {known['key']}", "X-Recollect-Space": "default"}
    there = [id_ for name, id_ in known.items() if f"/{name}/{{id}}" in operation.path]
    right: st.SearchStrategy[Any] = operation.as_strategy(
        headers=headers, path_parameters={"id": there[0]} if there else None
    )
    if operation.path.startswith("/health") or operation.path == "/metrics":
        return right
    wrong = operation.as_strategy(GenerationMode.NEGATIVE, headers=headers)
    return st.one_of(right, wrong)
