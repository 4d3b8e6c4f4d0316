"""The page as it is served: from inside the package, guarded, small, built from these sources; and signing in."""

import gzip
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from recollect.doors.web.page import STATIC
from recollect.engine.engine import Engine
from recollect.model import Scope
from tests import page as built
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, key_for, problem, visitor

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
MEMORIES, SESSION = "/api/v1/memories", "/api/v1/session"
OURS = {"X-Recollect": "page", "Origin": support.HERE}
MOST_BYTES = 400_000


# -- the files


def test_the_page_is_built_from_these_sources() -> None:
    assert built.stale() == []


def test_a_changed_source_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = built.sources()
    monkeypatch.setattr(built, "WEB", STATIC)
    assert built.sources() != before
    assert built.stale() == ["The built page is not the page of the sources in web/: ./run web builds it anew."]


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in STATIC.rglob("*") if file.is_file()) < MOST_BYTES


async def test_the_page_comes_from_here_alone(client: httpx.AsyncClient) -> None:
    document = await client.get("/")
    assert document.headers["content-type"] == "text/html; charset=utf-8"
    assert "https://" not in document.text
    assert "<style" not in document.text
    assert not re.search(r"<script(?![^>]*\bsrc=)", document.text)
    for name in re.findall(r'(?:src|href)="\./(assets/[^"]+)"', document.text):
        answer = await client.get(f"/{name}")
        assert answer.status_code == 200
        is_hashed = bool(re.search(r"-[\w-]{8}\.", name))
        assert answer.headers["cache-control"] == ("public, max-age=31536000, immutable" if is_hashed else "no-cache")


async def test_the_page_is_guarded_by_its_headers(client: httpx.AsyncClient) -> None:
    headers = (await client.get("/")).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/..%2fpage.py", "/assets/%2e%2e/page.py", "/index.htm"])
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    problem(await client.get(path), 404, "not_found")


async def test_the_page_is_shown_without_a_key_since_it_holds_nothing(app: FastAPI, engine: Engine) -> None:
    await key_for(engine)
    async with visitor(app, peer="192.0.2.7") as anybody:
        assert (await anybody.get("/")).status_code == 200
        assert (await anybody.head("/")).status_code == 200


# -- signing in


@asynccontextmanager
async def signed_in(app: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with visitor(app) as browser:
        answer = await browser.post(SESSION, headers={**OURS, "Authorization": f"Bearer {key}"})
        assert answer.status_code == 201, answer.text
        yield browser


async def test_E28_a_browser_signs_in_and_out(app: FastAPI, engine: Engine) -> None:
    key = await key_for(engine, Scope.READ)
    async with visitor(app) as nobody:
        problem(await nobody.get(SESSION), 401, "not_authenticated")
        problem(await nobody.post(SESSION), 401, "not_authenticated")
    async with signed_in(app, key) as browser:
        me = (await browser.get(SESSION)).json()
        assert (me["name"], me["scopes"], me["keyless"]) == ("a test", ["read"], False)
        cookie = dict(browser.cookies)
        assert (await browser.delete(SESSION, headers=OURS)).status_code == 204
        assert not browser.cookies
        browser.cookies.update(cookie)  # whoever kept it
        problem(await browser.get(MEMORIES), 401, "not_authenticated")


async def test_E28_the_cookie_is_for_this_server_alone_and_no_script_reads_it(app: FastAPI, engine: Engine) -> None:
    key = await key_for(engine)
    async with visitor(app) as browser:
        answer = await browser.post(SESSION, headers={**OURS, "Authorization": f"Bearer {key}"})
        said = answer.headers["set-cookie"]
        assert said.startswith("recollect-7700=")
        assert {"HttpOnly", "SameSite=strict", "Max-Age=43200", "Path=/"} <= set(said.split("; ")[1:])
        assert "Secure" not in said
        assert key not in said
    async with visitor(app, address="https://memory.example", Origin="https://memory.example") as browser:
        answer = await browser.post(SESSION, headers={"Authorization": f"Bearer {key}"})
        assert "Secure" in answer.headers["set-cookie"]


async def test_E28_a_wrong_key_begins_no_session(app: FastAPI, engine: Engine) -> None:
    await key_for(engine)
    async with visitor(app) as browser:
        answer = await browser.post(SESSION, headers={**OURS, "Authorization": "Bearer rk_abcdefgh_" + "x" * 43})
        assert "not known" in problem(answer, 401, "not_authenticated")
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": support.HERE},  # a form can be sent from anywhere, but not with our header
        {"X-Recollect": "page", "Origin": "http://evil.example"},
        {"X-Recollect": "page", "Origin": "http://localhost:9999"},  # another program on this machine
        {"X-Recollect": "page", "Origin": "null"},
        {},
    ],
)
async def test_E28_another_page_does_nothing_with_the_cookie(
    app: FastAPI, engine: Engine, headers: dict[str, str]
) -> None:
    async with signed_in(app, await key_for(engine)) as browser:
        answer = await browser.post(MEMORIES, json={"text": "planted"}, headers=headers)
        assert "own page" in problem(answer, 403, "not_allowed")
        assert await engine.count() == 0
        assert (await browser.post(MEMORIES, json={"text": "mine"}, headers=OURS)).status_code == 201


async def test_E28_a_key_needs_none_of_that(app: FastAPI, engine: Engine) -> None:
    async with visitor(app, key=await key_for(engine), Origin="http://evil.example") as program:
        await added(program)


async def test_E28_a_session_has_the_scopes_and_the_space_of_its_key(app: FastAPI, engine: Engine) -> None:
    key = await key_for(engine, Scope.READ, space=engine.space.slug)
    async with signed_in(app, key) as browser:
        assert (await browser.get(MEMORIES)).status_code == 200
        answer = await browser.post(MEMORIES, json={"text": "no"}, headers=OURS)
        assert "write" in problem(answer, 403, "not_allowed")
        problem(await browser.get(MEMORIES, headers={"X-Recollect-Space": "default"}), 403, "not_allowed")


async def test_E28_a_session_ends_with_its_key_and_with_its_time(
    app: FastAPI, engine: Engine, api_database: str
) -> None:
    key = await key_for(engine)
    keeper = await key_for(engine)
    async with signed_in(app, key) as first, signed_in(app, keeper) as second:
        await engine.revoke_key(key[3:11])
        problem(await first.get(MEMORIES), 401, "not_authenticated")
        assert (await second.get(MEMORIES)).status_code == 200
        await support.sql(api_database, "UPDATE recollect.sessions SET expires_at = now() - interval '1 second'")
        problem(await second.get(MEMORIES), 401, "not_authenticated")


async def test_E28_a_stale_cookie_does_not_shut_out_who_needs_no_key(client: httpx.AsyncClient) -> None:
    client.cookies.set("recollect-7700", "of another memory on this machine")
    assert (await client.get(MEMORIES)).status_code == 200


async def test_E28_consolidation_takes_a_session_for_a_key(app: FastAPI, engine: Engine) -> None:
    async with signed_in(app, await key_for(engine)) as browser:
        assert (await browser.get("/api/v1/consolidation/health")).status_code == 200


# -- what the page asks of the API


async def test_a_space_at_a_glance(app: FastAPI, client: httpx.AsyncClient, engine: Engine) -> None:
    await added(client, "one")
    gone = await added(client, "two", created_at="2020-01-01T00:00:00Z")
    await client.post(f"{MEMORIES}/{gone['id']}/archive")
    seen = (await client.get("/api/v1/overview")).json()
    held = {(one["kind"], one["status"]): one["number"] for one in seen["held"]}
    assert held == {("memory", "active"): 1, ("memory", "archived"): 1}
    assert [one["number"] for one in seen["added"]] == [1]  # the other is older than 30 days
    assert seen["jobs"]["pending"] == 2
    assert seen["index"] == "empty"
    await engine.work()
    assert (await client.get("/api/v1/overview")).json()["index"] == "not needed yet"


async def test_names_for_ids_of_this_space_alone(client: httpx.AsyncClient, engine: Engine) -> None:
    other = await engine.in_space((await engine.add_space(f"o-{engine.space.slug}")).slug)
    theirs = await other.add("theirs", wait=False)
    mine = await added(client, "mine\nand more")
    answer = await client.get("/api/v1/labels", params={"id": [mine["id"], str(theirs.id)]})
    assert answer.json() == {mine["id"]: "mine"}


async def test_D11_looking_while_somebody_types_leaves_no_trace(client: httpx.AsyncClient, engine: Engine) -> None:
    await engine.add("green tea")
    quiet = (await client.post("/api/v1/search", json={"query": "green", "noted": False})).json()
    assert quiet["id"] is None
    assert len(quiet["hits"]) == 1
    assert (await engine.recalls()).items == ()
    await client.post("/api/v1/search", json={"query": "green", "graph": True, "noted": False})
    assert (await engine.recalls()).items == ()
    assert (await client.post("/api/v1/search", json={"query": "green"})).json()["id"] is not None
    assert len((await engine.recalls()).items) == 1


async def test_D17_a_search_has_a_mode_and_says_what_each_part_counts_for(
    client: httpx.AsyncClient, engine: Engine
) -> None:
    await engine.add("green tea", importance=0.9)
    await engine.add("a bicycle")
    for mode in ("neutral", "RECALL"):
        found = (await client.post("/api/v1/search", json={"query": "green tea", "mode": mode})).json()
        for hit in found["hits"]:
            total = sum(weight * hit["parts"][part] for part, weight in found["weights"].items())
            assert total == pytest.approx(hit["score"], abs=1e-4)
    assert found["mode"] == "RECALL"
    assert {one["step"] for one in found["left_out"]} == {"floor"}


async def test_P09_history_says_which_decision_and_whether_it_stands(client: httpx.AsyncClient, engine: Engine) -> None:
    node = await added(client)
    await client.patch(f"{MEMORIES}/{node['id']}", json={"importance": 0.9})
    born, edit = (await client.get(f"/api/v1/nodes/{node['id']}/history")).json()
    assert (born["decision"], born["status"]) == (None, None)
    assert (edit["decision"], edit["status"]) == (1, "applied")
    await client.post(f"/api/v1/plans/{edit['plan_id']}/undo", json={"decisions": [edit["decision"]]})
    history = (await client.get(f"/api/v1/nodes/{node['id']}/history")).json()
    assert [one["status"] for one in history] == [None, "undone", "applied"]
