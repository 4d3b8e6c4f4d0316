"""Concepts over HTTP: added once, merged, told why, kept apart; and bad requests."""

from typing import Any

import httpx
import pytest

from tests.doors import test_api_support as support
from tests.doors.test_api_support import problem

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
CONCEPTS = "/api/v1/concepts"
TEXT = "what consciousness is made of"


async def add(client: httpx.AsyncClient, name: str, **more: object) -> str:
    answer = await client.post(CONCEPTS, json={"name": name, "text": TEXT, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["concept"]["id"])


async def test_C19_a_twin_is_answered_with_200_and_the_reason(client: httpx.AsyncClient) -> None:
    id_ = await add(client, "consciousness_substrate", energy={"translator": 0.6})
    answer = await client.post(
        CONCEPTS, json={"name": "consciousness substrate", "text": TEXT, "energy": {"translator": 0.3}}
    )
    formed = answer.json()
    assert (answer.status_code, formed["is_new"], formed["concept"]["id"]) == (200, False, id_)
    assert answer.headers["location"] == f"{CONCEPTS}/{id_}"
    assert formed["concept"]["energy"]["translator"] == pytest.approx(0.844, abs=5e-4)
    assert "1.000" in formed["reason"]


async def test_C16_an_absorbed_id_and_name_lead_to_the_keeper(client: httpx.AsyncClient) -> None:
    one, other = await add(client, "tea house"), await add(client, "tea houses")
    merged = (await client.post(f"{CONCEPTS}/merge", json={"keep": one, "others": ["tea houses"]})).json()
    for path in (f"{CONCEPTS}/{other}", f"{CONCEPTS}/tea houses", f"/api/v1/memories/{other}"):
        assert (await client.get(path)).json()["id"] == one
    listed = (await client.get(CONCEPTS)).json()
    assert [item["id"] for item in listed["items"]] == [one]
    await client.post(f"/api/v1/plans/{merged['plan_id']}/undo")
    assert (await client.get(f"{CONCEPTS}/tea houses")).json()["id"] == other


async def test_C09_energy_is_added(client: httpx.AsyncClient) -> None:
    id_ = await add(client, "tea")
    answer = await client.post(f"{CONCEPTS}/tea/energy", json={"energy": {"a": 0.25}})
    assert (answer.json()["id"], answer.json()["raw_energy"]) == (id_, {"a": 0.25})
    bad = await client.post(f"{CONCEPTS}/tea/energy", json={"energy": {"a": -1}})
    problem(bad, 422, "invalid_input", field="energy")
    problem(await client.post(f"{CONCEPTS}/coffee/energy", json={"energy": {"a": 1}}), 404, "not_found")


async def test_C01_C30_duplicates_and_why(client: httpx.AsyncClient) -> None:
    one, other = await add(client, "tea house"), await add(client, "tea houses")
    (pair,) = (await client.get(f"{CONCEPTS}/duplicates", params={"threshold": 0.9})).json()
    assert {pair["a"], pair["b"]} == {one, other}
    told = (await client.get("/api/v1/why", params={"a": "tea house", "b": other})).json()
    assert told["explanation"]["factors"]["score"] == pair["score"]
    assert not told["is_one"]
    problem(await client.get("/api/v1/why", params={"a": one, "b": one}), 422, "invalid_input", field="b")


async def test_C21_pairs_are_added_listed_and_removed(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/v1/never-merge", json={"a": "tea", "b": "coffee"})
    assert (answer.status_code, [(pair["a"], pair["b"]) for pair in answer.json()]) == (201, [("coffee", "tea")])
    assert len((await client.get("/api/v1/never-merge")).json()) == 1
    assert (await client.delete("/api/v1/never-merge", params={"a": "tea", "b": "coffee"})).json() == []
    problem(await client.delete("/api/v1/never-merge", params={"a": "tea", "b": "coffee"}), 404, "not_found")
    problem(await client.post("/api/v1/never-merge", json={"a": "tea", "b": "TEA"}), 422, "invalid_input", field="b")


async def questions(client: httpx.AsyncClient) -> Any:
    """What a person is to look at, looked for anew."""
    assert (await client.post("/api/v1/questions/look")).status_code == 200
    return (await client.get("/api/v1/questions")).json()


async def test_C28_pairs_to_look_at_with_both_records_and_the_factors(client: httpx.AsyncClient) -> None:
    one, other = await add(client, "tea house"), await add(client, "tea houses")
    found = await questions(client)
    (asked,) = found["items"]
    assert (found["total"], asked["keep"]["id"], asked["other"]["id"]) == (1, one, other)
    told = asked["factors"]
    assert [step["name"] for step in told["steps"]] == ["cosine", "name", "metadata"]
    assert sum(step["weight"] * step["value"] for step in told["steps"]) == pytest.approx(told["score"], abs=1e-5)
    assert told["doubts"] == ["the names are not made of the same words"]
    await client.post(f"{CONCEPTS}/merge", json={"keep": one, "others": [other]})
    assert (await questions(client))["items"] == []


@pytest.mark.parametrize("never", [False, True])
async def test_P11_two_that_are_two_are_not_asked_about_until_one_changes(
    client: httpx.AsyncClient, never: bool
) -> None:
    one, other = await add(client, "tea house"), await add(client, "tea houses")
    kept = (await client.post(f"{CONCEPTS}/apart", json={"a": one, "b": "tea houses", "never": never})).json()
    assert (kept["until"] is None) == never
    assert (await questions(client))["total"] == 0
    await client.patch(f"/api/v1/memories/{other}", json={"metadata": {"extra": {"since": 1999}}})
    assert (await questions(client))["total"] == (0 if never else 1)
    taken_back = await client.delete("/api/v1/never-merge", params={"a": kept["a"], "b": kept["b"]})
    assert taken_back.json() == []
    assert (await questions(client))["total"] == 1
    same = await client.post(f"{CONCEPTS}/apart", json={"a": one, "b": one})
    problem(same, 422, "invalid_input", field="b")
    problem(await client.post(f"{CONCEPTS}/apart", json={"a": one, "b": "coffee"}), 404, "not_found")


async def test_C19_many_are_added_at_once_and_refusals_name_their_place(client: httpx.AsyncClient) -> None:
    given = [{"name": "tea"}, {"text": "nameless"}, {"name": "Kettle", "type": "product", "maker": "Acme"}, 7]
    answer = await client.post(f"{CONCEPTS}/batch", json=given)
    body = answer.json()
    assert (answer.status_code, body["made"], len(body["ids"])) == (207, 2, 2)
    assert [(one["position"], one["code"]) for one in body["refused"]] == [(1, "invalid_input"), (3, "invalid_input")]
    assert (await client.get(f"{CONCEPTS}/kettle")).json()["metadata"] == {"maker": "Acme"}
    again = await client.post(f"{CONCEPTS}/batch", json=[given[0], given[2]])
    assert (again.status_code, again.json()["there"]) == (201, 2)
    problem(await client.post(f"{CONCEPTS}/batch?atomic=true", json=given), 422, "invalid_input", field="name")
    problem(await client.post(f"{CONCEPTS}/batch", json=[]), 422, "invalid_input", field="body")
