"""Everything that cannot be accepted: refused with one sentence, never a 500, and nothing is stored."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from recollect.doors.api import limits, memories
from recollect.doors.api.access import MAX_BATCH_BYTES, MAX_BODY_BYTES
from recollect.doors.api.limits import parsed_in_steps
from recollect.engine.engine import Engine
from recollect.memories.rules.contract import memory_from_mapping
from recollect.model import NodeFilter
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, problem, raw

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
MEMORIES = "/api/v1/memories"
JSON = {"Content-Type": "application/json"}

FAR_PAST = b"0001-01-01T00:00:00+23:59|00000000-0000-4000-8000-000000000001"


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


BAD_FIELDS: list[tuple[str, Any, str]] = [
    ("text", "", "text"),
    ("text", " \n\t ", "text"),
    ("text", "x" * 1_000_001, "text"),
    ("text", "é" * 500_001, "text"),
    ("text", "a\0b", "text"),
    ("text", "a\ud800b", "text"),
    ("text", None, "text"),
    ("text", 5, "text"),
    ("text", ["a"], "text"),
    ("content_type", "poem", "content_type"),
    ("content_type", 5, "content_type"),
    ("content_type", [], "content_type"),
    ("metadata", [], "metadata"),
    ("metadata", "text", "metadata"),
    ("metadata", nested(200), "metadata"),
    ("metadata", {"extra": {"long": "x" * 4096}}, "metadata"),
    ("metadata", {"extra": {"deep": nested(60)}}, "metadata"),
    ("metadata", {"extra": {"very deep": nested(400)}}, "metadata"),
    ("metadata", {"extra": {"nan": float("nan")}}, "metadata"),
    ("metadata", {"extra": {"nul": "\0"}}, "metadata"),
    ("metadata", {"extra": {"\udfff": 1}}, "metadata"),
    ("metadata", {"extra": []}, "metadata.extra"),
    ("metadata", {"mood": "good"}, "metadata.mood"),
    ("metadata", {"\ud800": 1}, "metadata"),
    ("metadata", {"tags": ["x" * 101]}, "metadata.tags"),
    ("metadata", {"tags": ["two\nlines"]}, "metadata.tags"),
    ("metadata", {"tags": "ai"}, "metadata.tags"),
    ("metadata", {"tags": [1]}, "metadata.tags"),
    ("metadata", {"type": "poem"}, "metadata.type"),
    ("metadata", {"type": {}}, "metadata.type"),
    ("metadata", {"source": "radio"}, "metadata.source"),
    ("metadata", {"chunk_index": 0}, "metadata.chunk_index"),
    ("importance", float("nan"), "importance"),
    ("importance", float("inf"), "importance"),
    ("importance", 2, "importance"),
    ("importance", -1, "importance"),
    ("importance", 10**400, "importance"),
    ("importance", "x", "importance"),
    ("importance", True, "importance"),
    ("created_at", "2999-01-01T00:00:00Z", "created_at"),
    ("created_at", "yesterday", "created_at"),
    ("created_at", "0001-01-01T00:00:00+23:59", "created_at"),
    ("created_at", "0001-01-01T00:00:00Z", "created_at"),
    ("created_at", "9999-12-31T23:59:59-23:59", "created_at"),
    ("created_at", 1700000000, "created_at"),
    ("created_at", "\ud800", "created_at"),
    ("id", "not-a-uuid", "id"),
    ("id", 7, "id"),
    ("thread", "", "thread"),
    ("thread", "x" * 501, "thread"),
    ("thread", "a\0", "thread"),
    ("source_id", 5, "source_id"),
    ("position", -1, "position"),
    ("position", 2**63, "position"),
    ("position", 2**62 + 1, "position"),
    ("position", 1.5, "position"),
    ("position", 1, "position"),
]


@pytest.mark.parametrize(("field", "value", "named"), BAD_FIELDS)
async def test_D06_a_bad_field_is_refused_and_nothing_stored(
    client: httpx.AsyncClient, engine: Engine, field: str, value: Any, named: str
) -> None:
    """D01-D07: alone and in a batch, with the same sentence."""
    memory = {"text": "fine otherwise", field: value}
    sentence = problem(await client.post(MEMORIES, **raw(memory)), 422, "invalid_input", field=named)
    batch = await client.post(f"{MEMORIES}/batch", **raw([memory]))
    assert (batch.status_code, batch.json()["stored"]) == (207, 0)
    assert batch.json()["refused"][0]["message"] == sentence
    assert await engine.count(NodeFilter(statuses=())) == 0


@pytest.mark.parametrize("name", ["colour", "kind", "version", "raw-text", "", "\ud800", "a\0"])
async def test_D06_an_unknown_field_is_refused(client: httpx.AsyncClient, engine: Engine, name: str) -> None:
    answer = await client.post(MEMORIES, **raw({"text": "fine otherwise", name: 1}))
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_input"
    assert await engine.count() == 0


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"", 422, "A JSON body is needed."),
        (b"{", 422, "The body is not JSON: "),
        (b"{'text': 'x'}", 422, "The body is not JSON: "),
        (b"null", 422, "The body cannot be None: "),
        (b"[]", 422, "The body cannot be this: "),
        (b'"text"', 422, "The body cannot be 'text': "),
        (b"5", 422, "The body cannot be 5: "),
        (b"{}", 422, "A memory needs a text."),
        (b'{"text": "\xff"}', 400, "The body cannot be read as JSON: "),
        (b'{"importance": ' + b"9" * 5000 + b"}", 400, "The body cannot be read as JSON: "),
        (b"[" * 100_000, 400, "The body cannot be read as JSON: "),
        (b'{"text":' * 100_000, 400, "The body cannot be read as JSON: "),
    ],
)
async def test_D01_a_malformed_body_is_refused(
    client: httpx.AsyncClient, engine: Engine, body: bytes, status: int, sentence: str
) -> None:
    answer = await client.post(MEMORIES, content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.json()["message"].startswith(sentence)
    assert answer.json()["correlation_id"]
    assert await engine.count() == 0


@pytest.mark.parametrize("place", ["metadata", "text", "id", "created_at", "colour"])
async def test_D06_nesting_is_refused_at_any_depth(client: httpx.AsyncClient, engine: Engine, place: str) -> None:
    """Also just below the depth at which Python gives up: each step down has less room left than the one before."""
    for depth in (100, 300, 700, *range(850, 1000, 15), 1500):
        deep = "[" * depth + "]" * depth
        for body in (
            f'{{"text": "x", "{place}": {deep}}}',
            f'{{"text": "x", "metadata": {{"extra": {{"a": {deep}}}}}}}',
        ):
            answer = await client.post(MEMORIES, content=body, headers=JSON)
            assert answer.status_code in (400, 422), answer.text
        answer = await client.post(f"{MEMORIES}/batch", content=f'[{{"text": "x", "{place}": {deep}}}]', headers=JSON)
        assert answer.status_code in (207, 400, 422), answer.text
        answer = await client.get(MEMORIES, params={"metadata": f'{{"a": {deep}}}'})
        assert answer.status_code in (400, 422), answer.text
    assert await engine.count() == 0


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_D01_a_body_that_is_not_called_JSON_is_refused(
    client: httpx.AsyncClient, engine: Engine, content_type: str | None
) -> None:
    """Also since a web page may send those to another site without being asked."""
    headers = {"Content-Type": content_type} if content_type else {}
    for path in (MEMORIES, f"{MEMORIES}/batch", "/api/v1/search", f"{MEMORIES}/abcd/archive"):
        answer = await client.post(path, content=b'{"text": "x"}', headers=headers)
        assert "application/json" in problem(answer, 415, "not_json")
    assert await engine.count() == 0


async def test_D01_bodies_are_bounded(client: httpx.AsyncClient, engine: Engine) -> None:
    big = b'{"text": "' + b"x" * MAX_BODY_BYTES + b'"}'
    assert "8,000,000" in problem(await client.post(MEMORIES, content=big, headers=JSON), 413, "too_large")

    async def pieces() -> Any:
        for start in range(0, len(big), 1_000_000):
            yield big[start : start + 1_000_000]

    problem(await client.post(MEMORIES, content=pieces(), headers=JSON), 413, "too_large")
    announced = {**JSON, "Content-Length": str(MAX_BATCH_BYTES + 1)}
    problem(await client.post(f"{MEMORIES}/batch", content=b"[]", headers=announced), 413, "too_large")
    assert (await client.post(f"{MEMORIES}/batch", content=b"[" + big + b"]", headers=JSON)).status_code == 207
    assert await engine.count() == 0


async def test_D01_the_longest_text_fits_however_it_is_escaped(client: httpx.AsyncClient) -> None:
    text = "".join(chr(97 + n % 26) for n in range(1_000_000))
    escaped = "".join(f"\\u{ord(character):04x}" for character in text)
    answer = await client.post(MEMORIES, content=f'{{"text": "{escaped}"}}', headers=JSON)
    assert (answer.status_code, answer.json()["text"]) == (201, text)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 100_000}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": "1" * 5000}, "limit"),
        ({"cursor": "abc"}, "cursor"),
        ({"cursor": "ÿ\0"}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b"2026-01-01|nonsense").decode()}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(FAR_PAST).decode()}, "cursor"),
        ({"kind": "poem"}, "kind[0]"),
        ({"status": "gone"}, "status[0]"),
        ({"content_type": "a\0"}, "content_type[0]"),
        ({"excluded": "perhaps"}, "excluded"),
        ({"thread": "\0"}, "thread"),
        ({"tag": "\0"}, "tag[0]"),
        ({"type": "\0"}, "type"),
        ({"person_name": "\0"}, "person_name"),
        ({"created_from": "yesterday"}, "created_from"),
        ({"created_from": "0001-01-01T00:00:00+23:59"}, "created_from"),
        ({"created_to": "\0"}, "created_to"),
        ({"space": "team"}, "space"),
        ({"tags": "life"}, "tags"),
        ({"metadata": "{"}, "metadata"),
        ({"metadata": "[]"}, "metadata"),
        ({"metadata": '{"a": NaN}'}, "metadata"),
        ({"metadata": '{"a": "\\u0000"}'}, "metadata"),
        ({"metadata": '{"a": "\\ud800"}'}, "metadata"),
        ({"metadata": '{"a": ' + "9" * 5000 + "}"}, "metadata"),
    ],
)
async def test_D25_a_bad_filter_is_refused(client: httpx.AsyncClient, parameters: dict[str, Any], field: str) -> None:
    await added(client)
    problem(await client.get(MEMORIES, params=parameters), 422, "invalid_input", field=field)


async def test_D25_a_cursor_with_a_naive_time_means_UTC(client: httpx.AsyncClient) -> None:
    await added(client)
    cursor = base64.urlsafe_b64encode(f"2001-01-01|{uuid4()}".encode()).decode()
    assert (await client.get(MEMORIES, params={"cursor": cursor})).json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(
    "id_", ["abc", "not-a-uuid", "12345678-1234", "----", "%00%00%00%00", "a" * 37, "%C3%A9%C3%A9%C3%A9"]
)
async def test_D03_a_bad_id_is_refused(client: httpx.AsyncClient, id_: str) -> None:
    path = f"{MEMORIES}/{id_}"
    answers = [
        await client.get(path),
        await client.patch(path, json={"importance": 1}),
        await client.post(f"{path}/archive"),
        await client.get(f"{path}/history"),
        await client.get(f"/api/v1/plans/{id_}"),
    ]
    for answer in answers:
        assert answer.status_code in (404, 422), answer.text
        assert answer.json()["code"] in ("not_found", "invalid_input")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": "a\0"}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x" * 100_001}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": -1}, "limit"),
        ({"query": "x", "limit": 100_000}, "limit"),
        ({"query": "x", "limit": float("nan")}, "limit"),
        ({"query": "x", "limit": 1e400}, "limit"),
        ({"query": "x", "limit": None}, "limit"),
        ({"query": "x", "kinds": []}, "kinds"),
        ({"query": "x", "kinds": ["poem"]}, "kinds[0]"),
        ({"query": "x", "mode": "fast"}, "mode"),
    ],
)
async def test_D27_a_bad_question_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    problem(await client.post("/api/v1/search", **raw(body)), 422, "invalid_input", field=field)


@pytest.mark.parametrize("q", ["", "%00", "%20"])
async def test_D27_a_bad_question_in_the_address_is_refused(client: httpx.AsyncClient, q: str) -> None:
    answer = await client.get(f"/api/v1/search?q={q}")
    assert answer.json()["code"] == "invalid_input"
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"metadata": []}, "metadata"),
        ({"metadata": {"mood": "good"}}, "metadata.mood"),
        ({"metadata": {"extra": {"long": "x" * 4096}}}, "metadata"),
        ({"importance": 2}, "importance"),
        ({"importance": float("nan")}, "importance"),
        ({"importance_score": "x"}, "importance"),
        ({"importance": 1, "if_version": "x"}, "if_version"),
        ({"importance": 1, "merge": "x"}, "merge"),
        ({"importance": 1, "thread": "other"}, "thread"),
    ],
)
async def test_D07_a_bad_edit_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    node = await added(client)
    problem(await client.patch(f"{MEMORIES}/{node['id']}", **raw(body)), 422, "invalid_input", field=field)
    assert (await client.get(f"{MEMORIES}/{node['id']}")).json() == node


@pytest.mark.parametrize("if_match", ["x", "*", '"1", "2"', "-1"])
async def test_D04_a_bad_If_Match_is_refused(client: httpx.AsyncClient, if_match: str) -> None:
    node = await added(client)
    answer = await client.patch(f"{MEMORIES}/{node['id']}", json={"importance": 1}, headers={"If-Match": if_match})
    problem(answer, 422, "invalid_input", field="if-match")


@pytest.mark.parametrize("reason", ["x" * 1001, "a\0", "\ud800", 5])
async def test_D37_a_bad_reason_is_refused(client: httpx.AsyncClient, reason: Any) -> None:
    node = await added(client)
    answer = await client.post(f"{MEMORIES}/{node['id']}/archive", **raw({"reason": reason}))
    problem(answer, 422, "invalid_input", field="reason")
    assert (await client.get(f"{MEMORIES}/{node['id']}")).json()["status"] == "active"


@pytest.mark.parametrize("space", ["no-such-space", "NOT A SLUG", "é", "a" * 300, "'; DROP TABLE spaces; --"])
async def test_D05_an_unknown_space_is_not_found(client: httpx.AsyncClient, space: str) -> None:
    headers = {b"X-Recollect-Space": space.encode()}
    problem(await client.get(MEMORIES, headers=headers), 404, "not_found")
    answer = await client.patch(f"/api/v1/spaces/{space}", json={"settings": {}})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"slug": "Not A Slug"}, "slug"),
        ({"slug": ""}, "slug"),
        ({"slug": "a\n"}, "slug"),
        ({"slug": "a" * 64}, "slug"),
        ({"slug": "fine", "settings": []}, "settings"),
        ({"slug": "fine", "settings": {"colour": "red"}}, "colour"),
        ({"slug": "fine", "settings": {"strict_tags": "yes"}}, "strict_tags"),
        ({"slug": "fine", "settings": {"open_tags": True}}, "open_tags"),
        ({"slug": "fine", "settings": {"tags": ["\0"]}}, "metadata"),
        ({"slug": "fine", "settings": {"tags": [""]}}, "metadata.tags"),
        ({}, "slug"),
    ],
)
async def test_D06_a_bad_space_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    problem(await client.post("/api/v1/spaces", json=body), 422, "invalid_input", field=field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "k", "scopes": []}, "scopes"),
        ({"name": "k", "scopes": ["everything"]}, "scopes[0]"),
        ({"name": "k"}, "scopes"),
        ({"scopes": ["read"]}, "name"),
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": "a\0", "scopes": ["read"]}, "name"),
        ({"name": 5, "scopes": ["read"]}, "name"),
        ({"name": None, "scopes": ["read"]}, "name"),
        ({"name": "k", "scopes": ["read"], "expires_at": "2001-01-01"}, "expires_at"),
        ({"name": "k", "scopes": ["read"], "expires_at": "soon"}, "expires_at"),
        ({"name": "k", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-23:59"}, "expires_at"),
        ({"name": "k", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59.999999Z"}, "expires_at"),
    ],
)
async def test_E28_a_bad_key_is_refused(
    client: httpx.AsyncClient, engine: Engine, body: dict[str, Any], field: str
) -> None:
    problem(await client.post("/api/v1/keys", **raw(body)), 422, "invalid_input", field=field)
    assert await engine.keys() == []


async def test_E28_a_key_for_an_unknown_space_is_refused(client: httpx.AsyncClient, engine: Engine) -> None:
    body = {"name": "k", "scopes": ["read"], "space": "no-such-space\0"}
    problem(await client.post("/api/v1/keys", json=body), 404, "not_found")
    assert await engine.keys() == []


async def test_D06_numbers_at_the_edge_survive_the_way_there_and_back(client: httpx.AsyncClient) -> None:
    extra = {"big": 10**300, "small": 1e-300, "deep": json.loads("[" * 40 + "]" * 40), "emoji": "🦊", "empty": {}}
    node = await added(client, metadata={"extra": extra})
    assert node["metadata"]["extra"] == extra


@pytest.mark.parametrize("path", ["memories", "cases", "concepts"])
async def test_S02_a_batch_of_too_many_items_is_refused_whole(
    client: httpx.AsyncClient, engine: Engine, path: str
) -> None:
    most = engine.settings.max_batch_items
    answer = await client.post(f"/api/v1/{path}/batch", json=[{}] * (most + 1))
    assert f"{most + 1:,} items, the limit is {most:,}" in problem(answer, 413, "too_large")


async def test_S03_a_search_by_address_leaves_nothing_behind(client: httpx.AsyncClient, engine: Engine) -> None:
    """A page of somebody else may make a browser ask it, with the browser's own credentials."""
    await client.post(f"{MEMORIES}?wait=true", json={"text": "green tea"})
    for path, times in (("/api/v1/search?q=green tea", 0), ("/api/v1/search", 1)):
        answer = await (client.post(path, json={"query": "green tea"}) if times else client.get(path))
        assert [hit["node"]["text"] for hit in answer.json()["hits"]] == ["green tea"]
        assert len((await engine.recalls()).items) == times


# -- what one caller may take of the server


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "[1]",
        ' [ {"a": [1, "]"]} , null ] ',
        "[1, 2",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1] x",
        '{"a": 1}',
        "",
        "[",
        "nope",
        '["\ud800"]',
        "\ufeff[NaN, 1e999]",
        '{"a": 1, "a": [{}, {"b": "c"}]}',
        "[[1, [2, {}]], -0.5e3",
    ],
)
def test_S02_a_long_body_is_parsed_item_by_item_as_json_is(body: str) -> None:
    def outcome(parse: Callable[[bytes], Any]) -> Any:
        try:
            return repr(parse(body.encode(errors="surrogatepass")))
        except json.JSONDecodeError as error:
            return str(error)

    assert outcome(parsed_in_steps) == outcome(json.loads)


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": "x", "metadata": {"a": [' + b"{}," * 300_000 + b"{}]}}",
        b'[{"text": "x", "metadata": {"a": [' + b"{}," * 300_000 + b"{}]}}]",
    ],
    ids=["one object", "one item"],
)
def test_S02_whatever_a_body_looks_like_others_have_their_turn_while_it_is_parsed(body: bytes) -> None:
    parsing = threading.Thread(target=parsed_in_steps, args=(body,))
    parsing.start()
    turns = 0
    while parsing.is_alive():
        time.sleep(0.001)  # G09: a nap is a turn that others leave
        turns += 1
    assert turns > 10


async def test_S02_a_large_batch_is_read_beside_the_event_loop(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noted(given: Any) -> Any:
        threads.add(threading.get_ident())
        return memory_from_mapping(given)

    def parsed(body: bytes) -> Any:
        threads.add(threading.get_ident())
        return parsed_in_steps(body)

    monkeypatch.setattr(memories, "memory_from_mapping", noted)
    monkeypatch.setattr(limits, "parsed_in_steps", parsed)
    many = [{"text": f"{number} {'x' * 1000}"} for number in range(400)]
    assert (await client.post(f"{MEMORIES}/batch", json=many)).json()["stored"] == 400
    assert threads
    assert threading.get_ident() not in threads


async def test_S02_of_one_caller_only_a_few_large_requests_are_under_way(
    app: FastAPI, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = await support.key_for(engine), await support.key_for(engine)
    held, going = asyncio.Event(), asyncio.Semaphore(0)

    async def hold(*_: object, **__: object) -> Any:
        going.release()
        await held.wait()
        return await engine.add_many([], atomic=False)

    monkeypatch.setattr(type(engine), "add_many", hold)
    most = engine.settings.max_large_requests
    async with support.visitor(app, key=key) as mine, support.visitor(app, key=other) as theirs:
        batch: Any = {"json": [{"text": "a"}]}
        under_way = [asyncio.create_task(mine.post(f"{MEMORIES}/batch", **batch)) for _ in range(most)]
        for _ in under_way:
            await going.acquire()
        refused = await mine.post(f"{MEMORIES}/batch", **batch)
        assert "large requests of this caller" in problem(refused, 429, "too_many")
        assert refused.headers["retry-after"]
        assert (await mine.get(MEMORIES)).status_code == 200, "what is small goes on"
        under_way.append(asyncio.create_task(theirs.post(f"{MEMORIES}/batch", **batch)))
        await going.acquire()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
