"""Recall's options, calibration and summaries over HTTP."""

from typing import Any

import asyncpg
import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors import test_api_support as support
from tests.doors.test_api_support import key_for, problem, visitor
from tests.memories.rules.test_windows import FACT, long_note

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio

KEY = "the spare key lies with Mrs Okafor"
PLANTS = "somebody waters the plants on Sundays"
LONG = "the red kettle of Ana " + "and all that happened with it " * 400


async def told(client: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/api/v1/memories", params={"wait": True}, json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def found(client: httpx.AsyncClient, query: str, **options: Any) -> list[dict[str, Any]]:
    answer = await client.post("/api/v1/search", json={"query": query, **options})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["hits"])


async def test_D47_a_hit_shows_the_passage_of_a_long_text(client: httpx.AsyncClient) -> None:
    note = await told(client, long_note())
    await told(client, KEY)
    hits = {hit["node"]["id"]: hit for hit in await found(client, "the spare key of the boathouse", weak=True)}
    (shown,) = [hit for id_, hit in hits.items() if id_ == note["id"]]
    assert FACT in shown["passage"]
    assert shown["passage"] in shown["node"]["text"] == long_note()
    assert [hit["passage"] for id_, hit in hits.items() if id_ != note["id"]] == [None]


# -- options of a search


async def test_A31_A32_a_search_can_follow_the_graph(client: httpx.AsyncClient, engine: Engine) -> None:
    key, plants = await told(client, KEY), await told(client, PLANTS)
    connection = await asyncpg.connect(engine.core.database.dsn)
    await connection.execute(
        "INSERT INTO recollect.edges (space_id, id, source, target, relation, strength)"
        " VALUES ($1, gen_random_uuid(), $2, $3, 'supports', 1.0)",
        *(engine.space.id, key["id"], plants["id"]),
    )
    await connection.close()
    plain = {hit["node"]["id"]: hit for hit in await found(client, KEY, weak=True)}
    assert plain[plants["id"]]["parts"]["activation"] == 0
    linked = {hit["node"]["id"]: hit for hit in await found(client, KEY, graph=True)}
    assert linked[plants["id"]]["parts"]["activation"] > 0.3


async def test_D40_a_search_can_rank_by_use(client: httpx.AsyncClient) -> None:
    await told(client, KEY)
    before = (await found(client, KEY))[0]["parts"]
    after = (await found(client, KEY, engagement=True))[0]["parts"]
    assert (before["engagement"], after["engagement"] > 0) == (0, True)


# -- calibration


async def diary(client: httpx.AsyncClient) -> None:
    words, chance = [f"word{n}" for n in range(300)], np.random.default_rng(3)
    batch = [{"text": " ".join(chance.choice(words, 30)), "thread": "diary"} for _ in range(150)]
    answer = await client.post("/api/v1/memories/batch", params={"wait": True}, json=batch)
    assert answer.status_code == 201, answer.text


async def test_D28a_a_calibration_is_measured_and_used_after_consent(client: httpx.AsyncClient, engine: Engine) -> None:
    problem(await client.get("/api/v1/calibration"), 422, "invalid_input")
    await diary(client)
    measured = (await client.get("/api/v1/calibration")).json()
    assert measured["model"] == "hashing:64"
    assert sum(measured["unrelated"]) == 75
    assert (await client.get("/api/v1/calibration")).json()["current"] == measured["current"]
    assert measured["proposed"] != measured["current"]
    used = await client.post("/api/v1/calibration", json={"model": "hashing:64", **measured["proposed"]})
    assert (used.status_code, used.json()) == (200, measured["proposed"])
    assert (await client.get("/api/v1/calibration")).json()["current"] == measured["proposed"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"low": 0.7}, "calibrations"),
        ({"low": -2}, "low"),
        ({"high": "NaN"}, "high"),
        ({"model": "minilm"}, "model"),
        ({"model": "a\0b"}, "model"),
        ({"more": 1}, "more"),
    ],
)
async def test_D28a_what_is_no_calibration_is_refused(
    client: httpx.AsyncClient, change: dict[str, object], field: str
) -> None:
    body = {"model": "hashing:64", "low": 0.1, "high": 0.6, **change}
    problem(await client.post("/api/v1/calibration", json=body), 422, "invalid_input", field=field)


async def test_D28a_only_an_admin_of_the_space_sets_its_scale(app: FastAPI, engine: Engine) -> None:
    body = {"model": "hashing:64", "low": 0.1, "high": 0.6}
    async with visitor(app, key=await key_for(engine, Scope.READ, Scope.WRITE)) as agent:
        problem(await agent.post("/api/v1/calibration", json=body), 403, "not_allowed")
    async with visitor(app, key=await key_for(engine, Scope.ADMIN, space=engine.space.slug)) as admin:
        assert (await admin.post("/api/v1/calibration", json=body)).status_code == 200


# -- summaries


@pytest.fixture
def with_summaries(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.core, "settings", engine.core.settings.model_copy(update={"summaries": True}))


async def test_D39_summaries_are_off_by_default(client: httpx.AsyncClient) -> None:
    node = await told(client, LONG)
    answer = await client.post(f"/api/v1/memories/{node['id']}/summaries", json={"text": "Ana's kettle"})
    assert "RECOLLECT_SUMMARIES" in problem(answer, 422, "invalid_input", field="summaries")


@pytest.mark.usefixtures("with_summaries")
async def test_D38_D39_a_summary_is_proposed_listed_and_approved(client: httpx.AsyncClient) -> None:
    node = await told(client, LONG)
    path = f"/api/v1/memories/{node['id']}/summaries"
    made = await client.post(path, json={"text": "Ana's kettle, in short", "expires_at": "2099-01-01T00:00:00"})
    assert made.status_code == 201, made.text
    summary = made.json()
    assert (summary["is_summary"], summary["status"]) == (True, "archived")
    assert summary["metadata"]["extra"]["expires_at"] == "2099-01-01T00:00:00+00:00"
    assert [one["id"] for one in (await client.get(path)).json()] == [summary["id"]]
    assert len(await found(client, "kettle", include_summaries=True)) == 1
    approved = await client.post(f"/api/v1/summaries/{summary['id'][:13]}/approve")
    assert (approved.status_code, approved.json()["status"]) == (200, "active")
    assert len(await found(client, "kettle", include_summaries=True)) == 2
    assert len(await found(client, "kettle")) == 1


@pytest.mark.usefixtures("with_summaries")
async def test_D39_what_cannot_be_summarised_or_approved(client: httpx.AsyncClient) -> None:
    node = await told(client, LONG)
    path = f"/api/v1/memories/{node['id']}/summaries"
    problem(await client.post(path, json={}), 422, "invalid_input", field="text")
    late = {"text": "short", "expires_at": "soon"}
    problem(await client.post(path, json=late), 422, "invalid_input", field="expires_at")
    problem(await client.post("/api/v1/memories/00000000/summaries", json={"text": "x"}), 404, "not_found")
    problem(await client.get("/api/v1/memories/00000000/summaries"), 404, "not_found")
    problem(await client.post(f"/api/v1/summaries/{node['id']}/approve"), 409, "conflict")
    problem(await client.post("/api/v1/summaries/00000000/approve"), 404, "not_found")
