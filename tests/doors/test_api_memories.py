"""Memories over HTTP: added, found, edited, archived, with their history; and what is never done to them."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from recollect.engine.engine import Engine
from recollect.model import ContentType, NodeFilter
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, problem, visitor

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
MEMORIES = "/api/v1/memories"


async def test_D03_a_memory_has_its_fields(client: httpx.AsyncClient) -> None:
    answer = await client.post(
        MEMORIES,
        json={
            "text": "Linh prefers tea",
            "subtype": "reflection",
            "importance": 0.7,
            "metadata": {"tags": ["life"], "extra": {"person_name": "Linh"}},
            "thread": "chat",
            "created_at": "2026-01-02T03:04:05+02:00",
            "source": "notes",
            "source_id": "n-1",
        },
    )
    node = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{MEMORIES}/{node['id']}"
    assert answer.headers["etag"] == '"1"'
    assert UUID(node["id"])
    assert (node["text"], node["subtype"], node["importance"], node["version"]) == (
        "Linh prefers tea",
        "reflection",
        0.7,
        1,
    )
    assert node["metadata"] == {"tags": ["life"], "extra": {"person_name": "Linh"}}
    assert (node["kind"], node["status"], node["exclude"], node["is_summary"]) == ("memory", "active", False, False)
    assert (node["thread"], node["position"], node["source"], node["source_id"]) == ("chat", 0, "notes", "n-1")
    assert node["created_at"] == "2026-01-02T01:04:05Z"
    assert len(node["checksum"]) == 64
    assert {**(await client.get(f"{MEMORIES}/{node['id']}")).json(), "notes": []} == node


async def test_D03_the_names_of_the_source_document_are_understood(client: httpx.AsyncClient) -> None:
    answer = await client.post(
        MEMORIES, json={"raw_text": "in other words", "content_type": "idea", "importance_score": 1}
    )
    node = answer.json()
    assert (node["text"], node["subtype"], node["importance"]) == ("in other words", "idea", 1.0)


async def test_D03_times_are_RFC_3339_with_Z(client: httpx.AsyncClient) -> None:
    node = await added(client)
    assert node["created_at"].endswith("Z")
    assert datetime.fromisoformat(node["created_at"]).tzinfo is not None


@pytest.mark.parametrize("subtype", list(ContentType))
async def test_D02_each_of_the_six_content_types(client: httpx.AsyncClient, subtype: str) -> None:
    assert (await added(client, content_type=subtype))["subtype"] == subtype


async def test_D05_the_same_text_twice_is_refused_naming_the_first(client: httpx.AsyncClient) -> None:
    first = await added(client, "only once")
    answer = await client.post(MEMORIES, json={"text": "only once\r\n"})
    assert first["id"] in problem(answer, 409, "duplicate", field="text")
    assert answer.json()["existing_id"] == first["id"]


async def test_D05_the_same_text_may_be_in_two_spaces(app: FastAPI, client: httpx.AsyncClient, engine: Engine) -> None:
    other = await engine.add_space(f"t-{uuid4().hex[:12]}")
    await added(client, "here and there")
    async with visitor(app, X_Recollect_Space=other.slug) as elsewhere:
        await added(elsewhere, "here and there")


async def test_D09_adding_does_not_embed_and_waiting_does(client: httpx.AsyncClient, engine: Engine) -> None:
    await added(client, "the later one")
    assert (await engine.jobs()).pending == 1
    answer = await client.post(f"{MEMORIES}?wait=true", json={"text": "the one waited for"})
    assert answer.status_code == 201
    assert (await engine.jobs()).pending == 1, "the one before it still waits for a worker"
    found = (await client.post("/api/v1/search", json={"query": "the one waited for", "limit": 1})).json()
    assert found["hits"][0]["node"]["id"] == answer.json()["id"]


# -- batches


async def test_D09_a_batch_is_stored_in_order(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{MEMORIES}/batch", json=[{"text": "one"}, {"raw_text": "two"}, {"text": "three"}])
    assert answer.status_code == 201
    body = answer.json()
    assert (body["stored"], body["refused"], body["postponed"]) == (3, [], {})
    texts = [(await client.get(f"{MEMORIES}/{id_}")).json()["text"] for id_ in body["ids"]]
    assert texts == ["one", "two", "three"]


async def test_D09_the_good_of_a_batch_are_stored_and_the_bad_named_by_position(client: httpx.AsyncClient) -> None:
    known = await added(client, "known already")
    batch: list[Any] = [
        {"text": "fine"},
        {"text": " "},
        {"text": "known already"},
        {"text": "x", "colour": "red"},
        "no object",
        {"text": "fine too"},
        {"text": "dated", "created_at": "yesterday"},
        {"text": None},
    ]
    answer = await client.post(f"{MEMORIES}/batch", json=batch)
    body = answer.json()
    assert answer.status_code == 207
    assert body["stored"] == len(body["ids"]) == 2
    assert [one["position"] for one in body["refused"]] == [1, 2, 3, 4, 6, 7]
    assert [one["code"] for one in body["refused"]] == ["invalid_input", "duplicate", *["invalid_input"] * 4]
    assert body["refused"][1]["existing_id"] == known["id"]
    assert "'colour'" in body["refused"][2]["message"]


@pytest.mark.parametrize("bad", [{"text": ""}, {"text": "x", "colour": "red"}, 5])
async def test_D09_an_atomic_batch_is_all_or_nothing(client: httpx.AsyncClient, engine: Engine, bad: Any) -> None:
    answer = await client.post(f"{MEMORIES}/batch?atomic=true", json=[{"text": "good"}, bad])
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_input"
    assert await engine.count() == 0


async def test_D05_an_atomic_batch_with_a_known_text_is_refused_whole(
    client: httpx.AsyncClient, engine: Engine
) -> None:
    known = await added(client, "known")
    answer = await client.post(f"{MEMORIES}/batch?atomic=true", json=[{"text": "new"}, {"text": "known"}])
    problem(answer, 409, "duplicate", field="text")
    assert answer.json()["existing_id"] == known["id"]
    assert await engine.count() == 1


async def test_D10_a_batch_can_be_waited_for(client: httpx.AsyncClient, engine: Engine) -> None:
    await client.post(f"{MEMORIES}/batch?wait=true", json=[{"text": f"number {n}"} for n in range(20)])
    assert (await engine.jobs()).completed == 20


# -- looking


async def test_D26_listing_goes_on_from_page_to_page_newest_first(client: httpx.AsyncClient) -> None:
    await client.post(f"{MEMORIES}/batch", json=[{"text": f"number {n}"} for n in range(7)])
    texts, cursor = [], None
    while True:
        page = (await client.get(MEMORIES, params={"limit": 3} | ({"cursor": cursor} if cursor else {}))).json()
        texts += [node["text"] for node in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert texts == [f"number {n}" for n in range(6, -1, -1)]


async def found(client: httpx.AsyncClient, **filters: Any) -> list[str]:
    answer = await client.get(MEMORIES, params=filters)
    assert answer.status_code == 200, answer.text
    return sorted(node["text"] for node in answer.json()["items"])


async def test_D25_filters_by_tag_person_type_and_source(client: httpx.AsyncClient) -> None:
    await added(client, "a", metadata={"tags": ["ai", "code"], "type": "todo"})
    await added(client, "b", metadata={"tags": ["ai"], "source": "telegram", "extra": {"person_name": "Linh", "n": 1}})
    await added(client, "c")
    assert await found(client, tag="ai") == ["a", "b"]
    assert await found(client, tag=["ai", "code"]) == ["a"]
    assert await found(client, person_name="Linh") == ["b"]
    assert await found(client, type="todo") == ["a"]
    assert await found(client, source="telegram") == ["b"]
    assert await found(client, metadata=json.dumps({"extra": {"n": 1}})) == ["b"]
    assert await found(client, metadata=json.dumps({"type": "todo"}), tag="code") == ["a"]
    assert await found(client, metadata="{}") == ["a", "b", "c"]
    assert await found(client, tag="no such tag") == []


async def test_D26_filters_by_content_types_thread_time_and_status(client: httpx.AsyncClient) -> None:
    await added(client, "a", content_type="idea", created_at="2020-01-01", thread="t")
    await added(client, "b", content_type="log", created_at="2021-01-01T00:00:00")
    c = await added(client, "c", created_at="2022-01-01T00:00:00Z")
    assert await found(client, content_type=["idea", "log"]) == ["a", "b"]
    assert await found(client, thread="t") == ["a"]
    assert await found(client, created_from="2021-01-01T00:00:00Z") == ["b", "c"]
    assert await found(client, created_to="2021-01-01T00:00:00Z") == ["a", "b"]
    await client.post(f"{MEMORIES}/{c['id']}/exclude")
    assert await found(client, excluded="true") == ["c"]
    assert await found(client, excluded="false") == ["a", "b"]
    await client.post(f"{MEMORIES}/{c['id']}/archive")
    assert await found(client, status="archived") == ["c"]
    assert await found(client, status=["active", "archived"]) == ["a", "b", "c"]
    assert await found(client, kind="page") == []


async def test_D25_a_filter_is_said_once(client: httpx.AsyncClient) -> None:
    answer = await client.get(MEMORIES, params={"type": "todo", "metadata": '{"type": "expense"}'})
    problem(answer, 422, "invalid_input", field="type")


async def test_D03_a_memory_is_found_by_the_beginning_of_its_id(client: httpx.AsyncClient) -> None:
    first = await added(client, id="abcd0000-0000-4000-8000-000000000001")
    await added(client, id="abcd0000-0000-4000-8000-000000000002")
    assert (await client.get(f"{MEMORIES}/{first['id']}")).json()["id"] == first["id"]
    problem(await client.get(f"{MEMORIES}/abcd"), 409, "conflict")
    problem(await client.get(f"{MEMORIES}/ffff"), 404, "not_found")
    problem(await client.get(f"{MEMORIES}/{uuid4()}"), 404, "not_found")


# -- what is never done


async def test_D01_deleting_and_replacing_are_refused(client: httpx.AsyncClient) -> None:
    node = await added(client)
    deleted = await client.delete(f"{MEMORIES}/{node['id']}")
    assert "archive" in problem(deleted, 405, "method_not_allowed")
    assert deleted.headers["allow"] == "GET, PATCH"
    replaced = await client.put(f"{MEMORIES}/{node['id']}", json={"text": "other"})
    assert "PATCH" in problem(replaced, 405, "method_not_allowed")
    assert (await client.get(f"{MEMORIES}/{node['id']}")).json() == node


@pytest.mark.parametrize("field", ["text", "raw_text"])
@pytest.mark.parametrize("value", ["other", None, ""])
async def test_D01_a_new_text_is_refused(client: httpx.AsyncClient, field: str, value: str | None) -> None:
    node = await added(client)
    answer = await client.patch(f"{MEMORIES}/{node['id']}", json={field: value, "importance": 1})
    assert "permanent" in problem(answer, 409, "conflict")
    assert (await client.get(f"{MEMORIES}/{node['id']}")).json() == node


# -- changing


async def test_D04_the_version_follows_the_metadata(client: httpx.AsyncClient) -> None:
    node = await added(client, metadata={"tags": ["ai"], "extra": {"a": 1}})
    path = f"{MEMORIES}/{node['id']}"
    answer = await client.patch(path, json={"importance_score": 0.9})
    assert (answer.json()["importance"], answer.json()["version"]) == (0.9, 1)
    answer = await client.patch(path, json={"metadata": {"type": "todo", "extra": {"b": 2}}, "merge": True})
    assert answer.json()["metadata"] == {"tags": ["ai"], "type": "todo", "extra": {"a": 1, "b": 2}}
    assert answer.json()["version"] == 2
    assert answer.headers["etag"] == '"2"'
    answer = await client.patch(path, json={"metadata": {}})
    assert (answer.json()["metadata"], answer.json()["version"]) == ({}, 3)


@pytest.mark.parametrize(
    ("headers", "body"), [({"If-Match": '"7"'}, {}), ({"If-Match": "7"}, {}), ({}, {"if_version": 7})]
)
async def test_D04_an_edit_of_another_version_is_refused(
    client: httpx.AsyncClient, headers: dict[str, str], body: dict[str, Any]
) -> None:
    node = await added(client)
    answer = await client.patch(
        f"{MEMORIES}/{node['id']}", json={"metadata": {"tags": ["ai"]}, **body}, headers=headers
    )
    assert "version 1" in problem(answer, 409, "conflict")
    answer = await client.patch(f"{MEMORIES}/{node['id']}", json={"importance": 1}, headers={"If-Match": '"1"'})
    assert answer.status_code == 200


async def test_D04_an_edit_of_nothing_is_refused(client: httpx.AsyncClient) -> None:
    node = await added(client)
    problem(await client.patch(f"{MEMORIES}/{node['id']}", json={}), 422, "invalid_input")


async def test_D37_archiving_and_excluding_can_be_taken_back(client: httpx.AsyncClient) -> None:
    node = (await client.post(f"{MEMORIES}?wait=true", json={"text": "tea and cake"})).json()

    async def hits() -> int:
        return len((await client.get("/api/v1/search", params={"q": "tea and cake"})).json()["hits"])

    path = f"{MEMORIES}/{node['id']}"
    for there, back, state in [("archive", "restore", "status"), ("exclude", "include", "exclude")]:
        gone = await client.post(f"{path}/{there}", json={"reason": "spring cleaning"})
        assert gone.json()[state] in ("archived", True)
        assert await hits() == 0
        assert (await client.post(f"{path}/{back}")).json()[state] == node[state]
        assert await hits() == 1


async def test_P09_the_history_tells_what_happened_and_why(client: httpx.AsyncClient) -> None:
    node = await added(client)
    await client.post(f"{MEMORIES}/{node['id']}/archive", json={"reason": "out of date"})
    history = (await client.get(f"{MEMORIES}/{node['id']}/history")).json()
    assert [entry["verb"] for entry in history] == ["add", "archive"]
    assert history[1]["reason"] == "out of date"
    assert (history[1]["before"], history[1]["after"]) == ({"status": "active"}, {"status": "archived"})
    plan = (await client.get(f"/api/v1/plans/{history[1]['plan_id']}")).json()
    assert plan["status"] == "applied"
    assert plan["decisions"][0]["subject"] == node["id"]
    assert plan["decisions"][0]["changes"][0]["after"] == {"status": "archived"}


async def test_P07_a_plan_is_undone_and_undoing_twice_is_success(client: httpx.AsyncClient) -> None:
    node = await added(client, metadata={"tags": ["ai"]})
    path = f"{MEMORIES}/{node['id']}"
    await client.patch(path, json={"metadata": {"tags": ["code"]}})
    plan = (await client.get(f"{path}/history")).json()[-1]["plan_id"]
    undone = await client.post(f"/api/v1/plans/{plan[:8]}/undo")
    assert undone.json()["applied"] == 1
    assert (await client.get(path)).json()["metadata"] == {"tags": ["ai"]}
    again = (await client.post(f"/api/v1/plans/{plan}/undo")).json()
    assert (again["repeated"], again["applied"]) == (True, 0)


async def test_P07_an_undo_in_the_wrong_order_names_what_stands_in_the_way(client: httpx.AsyncClient) -> None:
    node = await added(client)
    path = f"{MEMORIES}/{node['id']}"
    for tag in ("ai", "code"):
        await client.patch(path, json={"metadata": {"tags": [tag]}})
    first, second = [entry["plan_id"] for entry in (await client.get(f"{path}/history")).json()[1:]]
    assert second in problem(await client.post(f"/api/v1/plans/{first}/undo"), 409, "conflict")


@pytest.mark.parametrize("id_", ["ffffffff-ffff-4fff-8fff-ffffffffffff", "ffffffff"])
async def test_P07_an_unknown_plan_is_not_found(client: httpx.AsyncClient, id_: str) -> None:
    await client.post(f"{MEMORIES}/{(await added(client))['id']}/archive")
    problem(await client.post(f"/api/v1/plans/{id_}/undo"), 404, "not_found")
    problem(await client.get(f"/api/v1/plans/{id_}"), 404, "not_found")


@pytest.mark.parametrize("id_", ["%25", "_", "abc", "%00%00%00%00"])
async def test_P07_what_is_no_id_undoes_nothing(client: httpx.AsyncClient, engine: Engine, id_: str) -> None:
    await client.post(f"{MEMORIES}/{(await added(client))['id']}/archive")
    problem(await client.post(f"/api/v1/plans/{id_}/undo"), 422, "invalid_input", field="id")
    assert await engine.count() == 0


# -- recall, jobs, export


async def test_D27_search_returns_hits_with_score_and_node(client: httpx.AsyncClient) -> None:
    await client.post(f"{MEMORIES}/batch?wait=true", json=[{"text": t} for t in ("green tea", "red wine", "blue sky")])
    answer = await client.post(
        "/api/v1/search", json={"query": "green tea", "limit": 2, "kinds": ["memory"], "weak": True}
    )
    body = answer.json()
    assert (body["query"], body["model"], len(body["hits"])) == ("green tea", "hashing:64", 2)
    assert body["hits"][0]["node"]["text"] == "green tea"
    scores = [hit["score"] for hit in body["hits"]]
    assert scores == sorted(scores, reverse=True)
    same = (await client.get("/api/v1/search", params={"q": "green tea", "limit": 2, "weak": True})).json()
    assert [hit["node"] for hit in same["hits"]] == [hit["node"] for hit in body["hits"]]
    assert (await client.get("/api/v1/search", params={"q": "tea", "kind": "page"})).json()["hits"] == []


async def test_D10_jobs_are_counted_and_failed_ones_tried_again(client: httpx.AsyncClient, engine: Engine) -> None:
    node = await added(client)
    jobs = (await client.get("/api/v1/jobs")).json()
    assert jobs == {"pending": 1, "processing": 0, "completed": 0, "failed": 0, "unreadable": 0, "failures": []}
    await support.sql(
        engine.core.database.dsn,
        "UPDATE recollect.embedding_jobs SET status = 'failed', error_message = 'no luck'"
        f" WHERE node_id = '{node['id']}'",
    )
    jobs = (await client.get("/api/v1/jobs")).json()
    assert jobs["failures"] == [{"id": node["id"], "why": "no luck"}]
    assert (await client.post("/api/v1/jobs/retry")).json() == {"retried": 1}
    assert (await client.get("/api/v1/jobs")).json()["pending"] == 1


async def test_D03_everything_can_be_exported_one_line_each(client: httpx.AsyncClient, engine: Engine) -> None:
    long = "long " * 2000
    await client.post(f"{MEMORIES}/batch", json=[{"text": f"{long} {n}\nwith ünïcode"} for n in range(30)])
    archived = (await client.get(MEMORIES, params={"limit": 1})).json()["items"][0]
    await client.post(f"{MEMORIES}/{archived['id']}/archive")
    async with client.stream("GET", "/api/v1/export") as answer:
        assert answer.headers["content-type"] == "application/jsonl"
        nodes = [json.loads(line) async for line in answer.aiter_lines()]
    assert len(nodes) == 30
    assert nodes[-1]["status"] == "archived"
    assert nodes[0] == (await client.get(f"{MEMORIES}/{nodes[0]['id']}")).json()
    assert await engine.count(NodeFilter(statuses=())) == 30


async def test_D03_an_empty_space_exports_nothing(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/export")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_parameter_that_nobody_reads_is_refused_before_anything_is_done(
    client: httpx.AsyncClient, engine: Engine
) -> None:
    """Who writes ?dry_run=true means it, and who writes ?space=team does not mean the default."""
    known = await engine.add("kept")
    elsewhere = await client.post(f"{MEMORIES}?space=team", json={"text": "for the team"})
    assert "X-Recollect-Space" in problem(elsewhere, 422, "invalid_input", field="space")
    rehearsed = await client.delete(f"{MEMORIES}/{known.id}?dry_run=true")
    assert "is not a parameter" in problem(rehearsed, 422, "invalid_input", field="dry_run")
    assert [node.text for node in (await engine.list()).items] == ["kept"]
