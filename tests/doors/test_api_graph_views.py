"""The graph over HTTP."""

from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from fastapi import FastAPI

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, key_for, problem, visitor

pytestmark = pytest.mark.anyio
api_database, api_settings, anyio_backend = support.api_database, support.api_settings, support.anyio_backend
house, engine, routes, app, client = support.house, support.engine, support.routes, support.app, support.client

GRAPH = "/api/v1/graph"


@pytest.fixture
async def ids(engine: Engine, client: httpx.AsyncClient) -> list[str]:
    """Three memories in a row, and the topic that contains them."""
    ids = [(await added(client, text))["id"] for text in ("react", "hooks", "state")]
    topics: dict[str, Any] = {"source_topic": "dom:web/react", "target_topic": "dom:web/react"}
    await engine.graph.link(ids[0], ids[1], "supports", strength=0.9, **topics)
    await engine.graph.link(ids[1], ids[2], "extends", strength=0.5, **topics)
    await engine.plans.run("topics")
    return ids


async def got(client: httpx.AsyncClient, path: str, **asked: Any) -> Any:
    answer = await client.get(f"{GRAPH}/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_stats_and_components(client: httpx.AsyncClient, ids: list[str]) -> None:
    found = await got(client, "stats")
    assert (found["nodes"], found["edges"], found["components"]) == (3, 2, 1)
    assert found["first_edge_at"].endswith("Z")
    parts = await got(client, "components", limit=1)
    assert (parts["total"], parts["items"][0]["size"]) == (1, 3)


async def test_neighbours_and_paths(client: httpx.AsyncClient, ids: list[str]) -> None:
    near = await got(client, f"neighbours/{ids[0][:8]}", hops=2)
    assert [one["node"]["text"] for one in near] == ["hooks", "state"]
    assert await got(client, f"neighbours/{ids[0]}", relation="extends") == []
    (way,) = await got(client, "paths", source=ids[0], target=ids[2], by="strongest")
    assert [node["text"] for node in way["nodes"]] == ["react", "hooks", "state"]
    assert way["strength"] == pytest.approx(0.45, abs=1e-4)
    problem(await client.get(f"{GRAPH}/neighbours/ffff0000"), 404, "not_found")
    problem(await client.get(f"{GRAPH}/neighbours/{ids[0]}?hops=4"), 422, "invalid_input", field="hops")
    same = await client.get(f"{GRAPH}/paths", params={"source": ids[0], "target": ids[0]})
    problem(same, 422, "invalid_input", field="target")


async def test_A24_topics(client: httpx.AsyncClient, ids: list[str]) -> None:
    (topic,) = await got(client, "topics")
    assert (topic["key"], len(topic["member_ids"])) == ("dom:web/react", 3)
    assert await got(client, "topics", of=ids[0]) == [topic]
    view = await got(client, "topics/dom:web/react")
    assert [node["text"] for node in view["members"]] == ["react", "hooks", "state"]
    assert len(view["edges"]) == 2
    problem(await client.get(f"{GRAPH}/topics/tag:none"), 404, "not_found")
    problem(await client.get(f"{GRAPH}/topics/%00"), 404, "not_found")


async def test_export(client: httpx.AsyncClient, ids: list[str]) -> None:
    for format in ("graphml", "gexf"):
        answer = await client.get(f"{GRAPH}/export", params={"format": format})
        assert answer.headers["content-type"].startswith(f"application/{format}+xml")
        assert len(ElementTree.fromstring(answer.content).findall(".//{*}edge")) == 2
    assert len((await got(client, "export", format="json"))["nodes"]) == 3
    problem(await client.get(f"{GRAPH}/export?format=dot"), 422, "invalid_input", field="format")


async def test_pictures(client: httpx.AsyncClient, ids: list[str]) -> None:
    drawn = await client.get(f"{GRAPH}/picture/{ids[0]}.svg")
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in drawn.headers["content-security-policy"]
    assert "3 nodes, 2 links" in drawn.text
    assert (await client.get(f"{GRAPH}/picture/{ids[0]}")).text == drawn.text
    page = await client.get(f"{GRAPH}/picture/{ids[0][:8]}.html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.text.startswith("<!DOCTYPE html>")
    problem(await client.get(f"{GRAPH}/picture/{ids[0]}.png"), 422, "invalid_input", field="name")
    problem(await client.get(f"{GRAPH}/picture/ffff0000.svg"), 404, "not_found")


async def test_C26_a_picture_of_a_plan(client: httpx.AsyncClient, ids: list[str]) -> None:
    await client.post(f"/api/v1/memories/{ids[1]}/archive")
    history = (await client.get(f"/api/v1/memories/{ids[1]}/history")).json()
    address = f"/api/v1/plans/{history[-1]['plan_id']}/picture"
    page, drawn = await client.get(address), await client.get(address, params={"format": "svg"})
    assert page.headers["content-type"].startswith("text/html")
    assert "3 nodes, 2 links" in drawn.text
    problem(await client.get("/api/v1/plans/ffff0000/picture"), 404, "not_found")


async def test_a_picture_runs_nothing_that_a_memory_says(client: httpx.AsyncClient) -> None:
    evil = await added(client, "<script>alert(1)</script>")
    for ending in ("svg", "html"):
        drawn = await client.get(f"{GRAPH}/picture/{evil['id']}.{ending}")
        assert "<script>alert" not in drawn.text
        assert "&lt;script" in drawn.text


async def test_A31_search_follows_the_graph(client: httpx.AsyncClient, engine: Engine, ids: list[str]) -> None:
    await engine.work()
    answer = await client.post("/api/v1/search", json={"query": "react", "graph": True})
    assert answer.json()["ways"]["graph"] == "in the database"


async def test_looking_needs_the_right_to_read(app: FastAPI, engine: Engine, ids: list[str]) -> None:
    writer = await key_for(engine, Scope.WRITE)
    async with visitor(app, key=writer) as client:
        for path in ("stats", "components", "topics", "export", f"picture/{ids[0]}", f"neighbours/{ids[0]}"):
            assert (await client.get(f"{GRAPH}/{path}")).status_code == 403


async def test_A24_a_part_of_the_graph_to_look_at(client: httpx.AsyncClient, ids: list[str]) -> None:
    near = await got(client, "view", around=ids[0][:8])
    assert [node["id"] for node in near["nodes"]] == ids[:2]
    assert (near["edges"]["source"], near["edges"]["target"], near["edges"]["bridges"]) == ([0], [1], [0])
    assert [near["edges"]["relations"][one] for one in near["edges"]["relation"]] == ["supports"]
    both = await got(client, "view", around=ids[:2])
    assert len(both["nodes"]) == 3
    (topic,) = (await got(client, "view", topic="dom:web/react"))["topics"]
    assert (topic["size"], len(topic["members"])) == (3, 3)
    assert (await got(client, "view", at="2020-01-01T00:00:00Z"))["nodes"] == []
    problem(await client.get(f"{GRAPH}/view?at=yesterday"), 422, "invalid_input", field="at")
    problem(await client.get(f"{GRAPH}/view?limit=50001"), 422, "invalid_input", field="limit")
    problem(await client.get(f"{GRAPH}/view?topic=tag:none"), 404, "not_found")
