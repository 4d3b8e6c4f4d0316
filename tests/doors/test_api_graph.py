"""Links over HTTP: made, looked at, used, protected, taken away; and bad requests."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.engine.engine import Engine
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, problem, raw

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
EDGES = "/api/v1/edges"


async def two(client: httpx.AsyncClient) -> tuple[str, str]:
    tea, coffee = await added(client, f"tea {uuid4()}"), await added(client, f"coffee {uuid4()}")
    return tea["id"], coffee["id"]


async def linked(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    source, target = await two(client)
    answer = await client.post(EDGES, json={"source": source, "target": target, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_A00c_a_link_has_its_fields_and_its_name(client: httpx.AsyncClient) -> None:
    source, target = await two(client)
    body = {"source": source[:13], "target": target, "relation": "extends", "strength": 0.8, "explanation": "why"}
    answer = await client.post(EDGES, json=body)
    edge = answer.json()
    assert answer.headers["location"] == f"{EDGES}/{edge['id']}"
    assert (edge["source"], edge["target"], edge["relation"]) == (source, target, "extends")
    assert (edge["strength"], edge["explanation"], edge["created_by"]) == (0.8, "why", "user")
    assert edge["strength_now"] == pytest.approx(0.8, abs=1e-3)
    assert edge["label"].startswith("tea ")
    assert "—extends→ coffee " in edge["label"]
    seen = (await client.get(f"{EDGES}/{edge['id'][:12]}")).json()
    assert {**seen, "strength_now": None} == {**edge, "strength_now": None}
    assert [one["id"] for one in (await client.get(f"/api/v1/nodes/{target}/edges")).json()] == [edge["id"]]


async def test_A00c_the_same_link_again_is_kept_once(client: httpx.AsyncClient) -> None:
    edge = await linked(client, strength=0.4, explanation="old")
    ends = {"source": edge["source"], "target": edge["target"]}
    again = (await client.post(EDGES, json={**ends, "strength": 0.6, "explanation": "new"})).json()
    other = (await client.post(EDGES, json={**ends, "relation": "supports"})).json()
    assert (again["id"], again["strength"], again["explanation"]) == (edge["id"], 0.6, "new")
    assert other["id"] != edge["id"]


async def test_A00b_a_link_is_reinforced(client: httpx.AsyncClient) -> None:
    edge = await linked(client, strength=0.4)
    path = f"{EDGES}/{edge['id']}/reinforce"
    assert (await client.post(path)).json()["strength_now"] == pytest.approx(0.6, abs=1e-3)
    assert (await client.post(path, json={"kind": "click"})).json()["strength_now"] == pytest.approx(0.7, abs=1e-3)
    important = (await client.post(path, json={"kind": "important"})).json()
    assert (important["strength"], important["protected"]) == (1.0, True)
    problem(await client.post(path, json={"kind": "shouting"}), 422, "invalid_input", field="kind")


async def test_A07_a_link_is_protected_and_no_longer(client: httpx.AsyncClient) -> None:
    path = f"{EDGES}/{(await linked(client))['id']}/protect"
    assert (await client.post(path, json={"reason": "I need it"})).json()["protected"] is True
    assert (await client.post(path, json={"protected": False})).json()["protected"] is False
    problem(await client.post(path, json={"reason": "x" * 1001}), 422, "invalid_input", field="reason")
    problem(await client.post(path, json={"reason": "a\0"}), 422, "invalid_input", field="reason")


async def test_P08_a_link_taken_away_is_kept_and_comes_back_by_undo(client: httpx.AsyncClient) -> None:
    edge = await linked(client, strength=0.5)
    path = f"{EDGES}/{edge['id']}"
    gone = await client.delete(path, params={"reason": "wrong"})
    assert (gone.status_code, gone.json()["status"]) == (200, "pruned")
    assert (await client.delete(path)).json()["status"] == "pruned", "again is success"
    assert (await client.get(f"/api/v1/nodes/{edge['source']}/edges")).json() == []
    problem(await client.post(f"{path}/reinforce"), 409, "conflict")
    entry = (await client.get(f"{path}/history")).json()[-1]
    assert (entry["verb"], entry["reason"]) == ("unlink", "wrong")
    assert (await client.post(f"/api/v1/plans/{entry['plan_id']}/undo")).json()["applied"] == 1
    assert (await client.get(path)).json()["status"] == "active"


# -- bad requests


async def test_C12_an_edge_needs_both_its_ends(client: httpx.AsyncClient, engine: Engine) -> None:
    source, _ = await two(client)
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    theirs = await other.add("theirs", wait=False)
    for missing in (str(uuid4()), "00000000", str(theirs.id)):
        problem(await client.post(EDGES, json={"source": source, "target": missing}), 404, "not_found")
        problem(await client.post(EDGES, json={"source": missing, "target": source}), 404, "not_found")
    assert (await client.get(f"/api/v1/nodes/{source}/edges")).json() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strength", float("nan")),
        ("strength", float("inf")),
        ("strength", -0.1),
        ("strength", 1.1),
        ("strength", "strong"),
        ("confidence", float("nan")),
        ("relation", ""),
        ("relation", " "),
        ("relation", "a\0"),
        ("relation", "x" * 101),
        ("explanation", "x" * 10_001),
        ("explanation", "x" * 5_000_000),
        ("explanation", "a\0"),
        ("explanation", "\ud800"),
        ("source_topic", " "),
        ("target_topic", "x" * 201),
        ("created_by", "somebody"),
        ("created_at", "2020-01-01"),
    ],
    ids=lambda value: f"{value!r:.12}",
)
async def test_A00a_a_bad_link_is_refused_and_nothing_is_linked(
    client: httpx.AsyncClient, field: str, value: Any
) -> None:
    source, target = await two(client)
    answer = await client.post(EDGES, **raw({"source": source, "target": target, field: value}))
    assert len(problem(answer, 422, "invalid_input", field=field)) < 500
    assert (await client.get(f"/api/v1/nodes/{source}/edges")).json() == []


async def test_A00a_an_explanation_of_10_MB_is_too_large(client: httpx.AsyncClient) -> None:
    source, target = await two(client)
    body = {"source": source, "target": target, "explanation": "x" * 10_000_000}
    problem(await client.post(EDGES, json=body), 413, "too_large")
    assert (await client.get(f"/api/v1/nodes/{source}/edges")).json() == []


async def test_C12_no_link_begins_where_it_ends(client: httpx.AsyncClient) -> None:
    source, _ = await two(client)
    problem(await client.post(EDGES, json={"source": source, "target": source}), 422, "invalid_input", field="target")


async def test_an_unknown_edge_is_not_found(client: httpx.AsyncClient, engine: Engine) -> None:
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    a, b = [await other.add(text, wait=False) for text in ("theirs", "theirs too")]
    theirs = await other.graph.link(a.id, b.id)
    for id_ in (uuid4(), theirs.id):
        for method, path in [("GET", ""), ("DELETE", ""), ("POST", "/protect"), ("POST", "/reinforce")]:
            problem(await client.request(method, f"{EDGES}/{id_}{path}"), 404, "not_found")
        problem(await client.get(f"/api/v1/nodes/{id_}/edges"), 404, "not_found")
    assert await other.graph.edge(theirs.id) == theirs


@pytest.mark.parametrize("limit", [0, 1001, "x"])
async def test_a_bad_limit_is_refused(client: httpx.AsyncClient, limit: Any) -> None:
    node, _ = await two(client)
    answer = await client.get(f"/api/v1/nodes/{node}/edges", params={"limit": limit})
    problem(answer, 422, "invalid_input", field="limit")
