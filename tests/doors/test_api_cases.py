"""Cases and their consolidation over HTTP (E26-E28)."""

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.case_support import a_case, direction, stopped, with_vector
from tests.doors import test_api_support as support
from tests.doors.test_api_support import key_for, problem, visitor

pytestmark = pytest.mark.anyio

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, engine, routes, app, client = support.house, support.engine, support.routes, support.app, support.client

RUN, DRY_RUN = "/api/v1/consolidation/run", "/api/v1/consolidation/dry-run"
GUARDED = [
    ("POST", RUN),
    ("POST", DRY_RUN),
    ("POST", f"/api/v1/consolidation/restore/{UUID(int=7)}"),
    ("GET", "/api/v1/consolidation/summary"),
    ("GET", "/api/v1/consolidation/health"),
]


async def keyed(app: FastAPI, engine: Engine, *scopes: Scope) -> httpx.AsyncClient:
    key = await key_for(engine, *scopes, space=engine.space.slug)
    return visitor(app, key=key)


async def filled(engine: Engine) -> dict[str, UUID]:
    """A bank in which there is one thing of each kind to do."""
    stopped(engine)
    made = {
        "poor": await a_case(engine, "poor", uses=20, rate=1.0),
        "keeper": await a_case(engine, "same", uses=9),
        "twin": await a_case(engine, "same!", uses=4),
        "unused": await a_case(engine, "unused", idle=100),
    }
    for name in ("keeper", "twin"):
        await with_vector(engine, made[name], direction(1.0))
    return made


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_E28_consolidation_needs_a_key_always_and_the_scope_consolidate(
    client: httpx.AsyncClient, app: FastAPI, engine: Engine, method: str, path: str
) -> None:
    assert "API key" in problem(await client.request(method, path), 401, "not_authenticated")
    async with visitor(app, key="rk_aaaaaaaa_" + "a" * 43) as stranger:
        problem(await stranger.request(method, path), 401, "not_authenticated")
    async with await keyed(app, engine, Scope.READ, Scope.WRITE) as writer:
        assert "consolidate" in problem(await writer.request(method, path), 403, "not_allowed")
    async with await keyed(app, engine, Scope.CONSOLIDATE) as keeper:
        assert (await keeper.request(method, path)).status_code in (200, 404)


async def test_E26_E27_run_dry_run_and_restore(app: FastAPI, engine: Engine) -> None:
    made = {name: str(case) for name, case in (await filled(engine)).items()}
    details = {
        "removed": [made["poor"]],
        "merged": [{"keeper": made["keeper"], "removed": made["twin"], "similarity": 1.0}],
        "archived": [made["unused"]],
    }
    counted = {"removed_cases": 1, "merged_cases": 1, "archived_cases": 1}
    async with await keyed(app, engine, Scope.CONSOLIDATE, Scope.READ) as keeper:
        dry = (await keeper.post(DRY_RUN)).json()
        assert {name: dry[name] for name in counted} == counted
        assert (dry["dry_run"], dry["status"], dry["details"]) == (True, "waiting", details)
        waiting = (await keeper.post(RUN)).json()
        assert (waiting["dry_run"], waiting["status"], waiting["details"]) == (False, "waiting", details)
        assert "RECOLLECT_NOTIFY" in waiting["notes"][0]
        applied = await keeper.post(f"/api/v1/plans/{waiting['plan_id']}/apply")
        assert applied.status_code == 200, applied.text
        rest = await keeper.post(RUN)
        assert (rest.json()["status"], rest.json()["removed_cases"]) == ("applied", 0)
        restored = await keeper.post(f"/api/v1/consolidation/restore/{made['twin']}")
        assert restored.json() == {"case_id": made["twin"], "status": "restored"}
        again = await keeper.post(f"/api/v1/consolidation/restore/{made['twin']}")
        assert problem(again, 404, "not_found") == "Archived case not found."
        unknown = await keeper.post(f"/api/v1/consolidation/restore/{uuid4()}")
        assert problem(unknown, 404, "not_found") == "Archived case not found."
        summary = (await keeper.get("/api/v1/consolidation/summary")).json()
        assert (summary["active"], summary["archived"], summary["merged"]) == (2, 2, 0)
        assert (await keeper.get("/api/v1/consolidation/health")).json()["status"] == "attention"


async def test_E27_thresholds_of_the_request_are_honoured_and_checked(app: FastAPI, engine: Engine) -> None:
    await filled(engine)
    async with await keyed(app, engine, Scope.CONSOLIDATE) as keeper:
        strict = {"success_rate_below": 0.5, "similarity_threshold": 0.99, "inactive_days": 200}
        done = (await keeper.post(DRY_RUN, json=strict)).json()
        assert [done[name] for name in ("removed_cases", "merged_cases", "archived_cases")] == [0, 1, 0]
        assert (await keeper.post(RUN, json=strict)).json()["status"] == "applied"
        for wrong in (
            {"success_rate_below": 101},
            {"similarity_threshold": 1},
            {"inactive_days": -1},
            {"success_rates": "guess"},
            {"min_usage_count": 1.5},
            {"threshold": 3},
        ):
            problem(await keeper.post(DRY_RUN, json=wrong), 422, "invalid_input", field=next(iter(wrong)))


async def test_E26_a_run_that_only_merges_and_shelves_is_applied_at_once(app: FastAPI, engine: Engine) -> None:
    made = await filled(engine)
    await engine.cases.update(made["poor"], protected=True)
    async with await keyed(app, engine, Scope.CONSOLIDATE) as keeper:
        done = (await keeper.post(RUN, json={})).json()
    assert (done["status"], done["merged_cases"], done["archived_cases"]) == ("applied", 1, 1)


async def test_cases_by_every_verb(client: httpx.AsyncClient) -> None:
    sent: dict[str, Any] = {"query": "How do I pay?", "response_text": "By card.", "category_path": "billing"}
    made = await client.post("/api/v1/cases?wait=true", json=sent)
    assert made.status_code == 201, made.text
    case = made.json()
    address = made.headers["location"]
    assert address == f"/api/v1/cases/{case['case_id']}"
    assert {name: case[name] for name in sent} == sent
    assert (case["updated_by"], case["version"], made.headers["etag"]) == ("local", 1, '"1"')
    found = await client.post("/api/v1/cases/search", json={"query": "how do I pay", "category": "billing"})
    (hit,) = found.json()["hits"]
    assert (hit["case"]["case_id"], hit["case"]["usage_count"]) == (case["case_id"], 1)
    for success in [False] * 6 + [True] * 4:
        answer = await client.post(f"{address}/outcomes", json={"success": success, "error_type": "stale"})
        assert answer.status_code == 201, answer.text
    assert answer.json()["success_rate"] == 40.0
    assert len((await client.get(f"{address}/outcomes")).json()) == 10
    reflection = (await client.get("/api/v1/cases/reflection")).json()
    assert reflection["warnings"][0]["errors"] == [{"error_type": "stale", "times": 6}]
    changed = await client.patch(address, json={"response_text": "By transfer."}, headers={"If-Match": '"1"'})
    assert (changed.json()["response_text"], changed.json()["version"]) == ("By transfer.", 2)
    problem(await client.patch(address, json={"response_text": "x"}, headers={"If-Match": '"1"'}), 409, "conflict")
    history = (await client.get(f"{address}/history")).json()
    assert any((entry["before"] or {}).get("response_text") == "By card." for entry in history)
    listed = await client.get("/api/v1/cases", params={"category": "billing", "success_below": 50})
    assert [one["case_id"] for one in listed.json()["items"]] == [case["case_id"]]
    archived = await client.post(f"{address}/archive", json={"reason": "wrong"})
    assert (archived.json()["status"], archived.json()["archived_reason"]) == ("archived", "by_hand")
    assert (await client.get(address)).json()["status"] == "archived"
    assert (await client.get("/api/v1/cases", params={"status": "active"})).json()["items"] == []


async def test_a_batch_of_cases_and_what_is_refused(client: httpx.AsyncClient) -> None:
    batch = [
        {"query": "a", "response_text": "1"},
        {"query": "b"},
        {"query": "c", "response_text": "3", "success_rate": 300},
    ]
    answer = await client.post("/api/v1/cases/batch", json=batch)
    assert (answer.status_code, answer.json()["stored"]) == (207, 1)
    assert [one["position"] for one in answer.json()["refused"]] == [1, 2]
    problem(
        await client.post("/api/v1/cases/batch?atomic=true", json=batch), 422, "invalid_input", field="response_text"
    )


async def test_what_cannot_be_is_refused_by_its_field(client: httpx.AsyncClient) -> None:
    problem(await client.post("/api/v1/cases", json={"query": "a"}), 422, "invalid_input", field="response_text")
    wrong = {"query": "a", "response_text": "b", "colour": 1}
    problem(await client.post("/api/v1/cases", json=wrong), 422, "invalid_input", field="colour")
    problem(await client.get(f"/api/v1/cases/{uuid4()}"), 404, "not_found")
    problem(await client.post(f"/api/v1/cases/{uuid4()}/outcomes", json={"success": True}), 404, "not_found")
    problem(
        await client.get("/api/v1/cases", params={"success_below": 101}), 422, "invalid_input", field="success_below"
    )


async def test_E16_a_case_archived_by_hand_is_restored_by_hand(client: httpx.AsyncClient, engine: Engine) -> None:
    case = f"/api/v1/cases/{await a_case(engine, 'resting')}"
    archived = (await client.post(f"{case}/archive")).json()
    assert archived["status"] == "archived"
    restored = await client.post(f"{case}/restore")
    assert (restored.status_code, restored.json()["status"]) == (200, "active")
    assert "Archived case not found" in problem(await client.post(f"{case}/restore"), 404, "not_found")


async def test_E28_restoring_by_hand_needs_the_scope_consolidate(app: FastAPI, engine: Engine) -> None:
    case = f"/api/v1/cases/{await a_case(engine, 'resting')}"
    async with await keyed(app, engine, Scope.READ, Scope.WRITE) as writer:
        assert (await writer.post(f"{case}/archive")).status_code == 200
        assert "consolidate" in problem(await writer.post(f"{case}/restore"), 403, "not_allowed")
