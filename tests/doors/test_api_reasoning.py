"""Reasoning over HTTP: answers, the query log, feedback."""

from typing import Any

import httpx
import pytest

from tests.doors import test_api_support as support
from tests.doors.test_api_support import problem

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
TEA = "Linh prefers green tea at home"


async def told(client: httpx.AsyncClient, text: str = TEA, **fields: Any) -> dict[str, Any]:
    """A memory just added, and searchable."""
    answer = await client.post("/api/v1/memories", params={"wait": True}, json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_D42_a_query_without_a_model_is_answered_with_the_memories(client: httpx.AsyncClient) -> None:
    node = await told(client)
    answer = (await client.post("/api/v1/query", json={"query": TEA, "mode": "synthesize"})).json()
    assert answer["mode"] == "SYNTHESIZE"
    assert TEA in answer["text"]
    assert "No language model is configured" in answer["problems"][0]
    assert [hit["node"]["id"] for hit in answer["recall"]["hits"]] == [node["id"]]
    assert answer["recall"]["floor"] >= 0.55
    recalled = (await client.post("/api/v1/query", json={"query": TEA})).json()
    assert (recalled["mode"], recalled["problems"]) == ("RECALL", [])


async def test_D21_nothing_known_is_an_answer_too(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/v1/query", json={"query": "quarterly zirconium exports"})
    assert (answer.status_code, answer.json()["text"]) == (200, "Nothing is known about that.")


async def test_D25_D26_a_query_is_filtered(client: httpx.AsyncClient) -> None:
    node = await told(client, content_type="idea", metadata={"tags": ["life"]}, created_at="2026-01-02T00:00:00Z")

    async def found(**filters: object) -> bool:
        answer = await client.post("/api/v1/query", json={"query": TEA, **filters})
        assert answer.status_code == 200, answer.text
        return node["id"] in [hit["node"]["id"] for hit in answer.json()["recall"]["hits"]]

    assert await found(content_types=["idea", "log"])
    assert not await found(content_types=["log"])
    assert await found(metadata={"tags": ["life"]})
    assert not await found(metadata={"tags": ["code"]})
    assert not await found(created_from="2026-06-01T00:00:00Z")
    assert not await found(kinds=["page"])
    assert not await found(thread="no\x00thread")  # which no memory can be in
    searched = await client.post("/api/v1/search", json={"query": TEA, "thread": "no\x00thread"})
    assert searched.json()["hits"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": "a\0b"}, "query"),
        ({"query": "x" * 100_001}, "query"),
        ({"query": "x", "mode": "guess"}, "mode"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 10_000}, "limit"),
        ({"query": "x", "threshold": 1.5}, "threshold"),
        ({"query": "x", "budget_tokens": 0}, "budget_tokens"),
        ({"query": "x", "nonsense": 1}, "nonsense"),
        ({"query": "x", "created_from": "soon"}, "created_from"),
        ({"query": "x", "metadata": 3}, "metadata"),
    ],
)
async def test_what_cannot_be_asked(client: httpx.AsyncClient, body: dict[str, object], field: str) -> None:
    problem(await client.post("/api/v1/query", json=body), 422, "invalid_input", field=field)


@pytest.mark.parametrize("query", ["the of and", "?!...", "trà xanh ở nhà", "녹차", "绿茶", "🙂", "x" * 100_000])
async def test_any_text_can_be_asked(client: httpx.AsyncClient, query: str) -> None:
    assert (await client.post("/api/v1/query", json={"query": query})).status_code == 200


async def test_D11_the_log_is_listed_shown_and_replayed(client: httpx.AsyncClient) -> None:
    node = await told(client)
    modes = ("recall", "EXPAND")
    asked = [(await client.post("/api/v1/query", json={"query": TEA, "mode": mode})).json() for mode in modes]
    page = (await client.get("/api/v1/recalls", params={"limit": 1})).json()
    assert [log["id"] for log in page["items"]] == [asked[1]["id"]]
    rest = (await client.get("/api/v1/recalls", params={"cursor": page["next_cursor"]})).json()
    assert [log["id"] for log in rest["items"]] == [asked[0]["id"]]
    assert len((await client.get("/api/v1/recalls", params={"mode": "expand"})).json()["items"]) == 1
    log = (await client.get(f"/api/v1/recalls/{asked[0]['id'][:8]}")).json()
    assert (log["user_query"], log["mode"], log["memory_ids"]) == (TEA, "RECALL", [node["id"]])
    assert log["token_usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total": 0}
    replay = (await client.post(f"/api/v1/recalls/{asked[1]['id']}/replay")).json()
    assert (replay["added"], replay["removed"], replay["moved"]) == ([], [], [])
    problem(await client.get("/api/v1/recalls/00000000"), 404, "not_found")
    problem(await client.get("/api/v1/recalls", params={"cursor": "x"}), 422, "invalid_input", field="cursor")


async def test_D40_feedback_is_counted(client: httpx.AsyncClient) -> None:
    node = await told(client)
    answer = (await client.post("/api/v1/query", json={"query": TEA})).json()
    path = f"/api/v1/memories/{node['id']}/feedback"
    first = (await client.post(path, json={"helped": True, "recall_id": answer["id"]})).json()
    assert (first["uses"], first["judged"], first["successes"]) == (1, 1, 1)
    second = (await client.post(path, json={"helped": False})).json()
    assert (second["judged"], second["successes"]) == (2, 1)
    problem(await client.post(path, json={}), 422, "invalid_input", field="helped")
    other = await told(client, "something else entirely")
    body = {"helped": True, "recall_id": answer["id"]}
    problem(
        await client.post(f"/api/v1/memories/{other['id']}/feedback", json=body), 422, "invalid_input", field="recall"
    )
