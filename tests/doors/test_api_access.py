"""Who may do what over HTTP: nobody from elsewhere without a key, nobody with one beyond its scopes and its space."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, key_for, problem, visitor

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
MEMORIES = "/api/v1/memories"


async def test_E28_without_a_key_other_machines_are_refused_on_every_route(app: FastAPI) -> None:
    routes = [(method, path) for path, methods in app.openapi()["paths"].items() for method in methods]
    for peer in ("192.0.2.7", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "testclient", "127.0.0.1.evil.example"):
        async with visitor(app, peer=peer) as stranger:
            for method, path in routes:
                if path.startswith("/api/"):
                    problem(await stranger.request(method.upper(), path), 401, "not_authenticated")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
async def test_E28_without_a_key_this_machine_may_do_everything(app: FastAPI, peer: str) -> None:
    async with visitor(app, peer=peer) as local:
        await added(local)
        assert (await local.get("/api/v1/keys")).status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X_Real_IP", "Forwarded", "Via", "X_Forwarded_Host"])
async def test_E28_what_a_proxy_passes_on_is_not_local(app: FastAPI, header: str) -> None:
    async with visitor(app, **{header: "127.0.0.1"}) as passed_on:
        problem(await passed_on.get(MEMORIES), 401, "not_authenticated")


async def test_E28_a_header_makes_nobody_local(app: FastAPI) -> None:
    async with visitor(app, peer="192.0.2.7", X_Forwarded_For="127.0.0.1", X_Real_IP="127.0.0.1") as stranger:
        problem(await stranger.get(MEMORIES), 401, "not_authenticated")


@pytest.mark.parametrize(
    "address", ["http://evil.example", "http://evil.example:7700", "http://localhost.evil.example", "http://192.0.2.1"]
)
@pytest.mark.parametrize("path", [MEMORIES, "/metrics"])
async def test_E28_without_a_key_only_the_names_of_this_machine_are_answered(
    app: FastAPI, address: str, path: str
) -> None:
    """Else a web page whose name turns into 127.0.0.1 (DNS rebinding) could read everything."""
    async with visitor(app, address=address) as rebound:
        assert "localhost" in problem(await rebound.get(path), 403, "not_allowed")


@pytest.mark.parametrize("host", ["", "[", "localhost:x:y", "@localhost.evil.example", "localhost@evil.example"])
async def test_E28_a_malformed_Host_is_refused(app: FastAPI, host: str) -> None:
    async with visitor(app, Host=host) as odd:
        problem(await odd.get(MEMORIES), 403, "not_allowed")


@pytest.mark.parametrize(
    "address", ["http://localhost", "http://LOCALHOST:99", "http://127.0.0.1:1", "http://[::1]:7700"]
)
async def test_E28_without_a_key_localhost_is_answered_on_any_port(app: FastAPI, address: str) -> None:
    async with visitor(app, address=address) as local:
        assert (await local.get(MEMORIES)).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "https://[", "localhost:7700"]
)
async def test_E28_without_a_key_a_foreign_web_page_changes_nothing(
    app: FastAPI, client: httpx.AsyncClient, engine: Engine, origin: str
) -> None:
    node = await added(client)
    async with visitor(app, Origin=origin) as page:
        problem(await page.post(f"{MEMORIES}/{node['id']}/archive"), 403, "not_allowed")
        problem(await page.post(MEMORIES, json={"text": "planted"}), 403, "not_allowed")
        assert (await page.get(MEMORIES)).status_code == 200
    assert await engine.count() == 1


async def test_E28_our_own_web_page_may(app: FastAPI) -> None:
    async with visitor(app, Origin=support.HERE) as page:
        await added(page)


async def test_E28_no_other_site_may_read_what_a_browser_gets(client: httpx.AsyncClient) -> None:
    answer = await client.options(MEMORIES, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 405
    answer = await client.get(MEMORIES, headers={"Origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_E28_with_a_key_anybody_may_call_from_anywhere(app: FastAPI, engine: Engine) -> None:
    key = await key_for(engine)
    async with visitor(
        app, key=key, peer="192.0.2.7", address="https://memory.example", Origin="http://x.example"
    ) as far:
        await added(far)
    async with visitor(app, peer="192.0.2.7", X_API_Key=key) as far:
        assert (await far.get(MEMORIES)).status_code == 200


@pytest.mark.parametrize(
    ("scope", "reads", "writes", "tidies", "administers"),
    [
        (Scope.READ, True, False, False, False),
        (Scope.WRITE, False, True, False, False),
        (Scope.CONSOLIDATE, False, False, True, False),
        (Scope.ADMIN, True, True, True, True),
    ],
)
async def test_E28_a_key_may_do_what_its_scopes_say(
    app: FastAPI, engine: Engine, scope: Scope, reads: bool, writes: bool, tidies: bool, administers: bool
) -> None:
    node, other = [await engine.add(text, wait=False) for text in ("here before", "here as well")]
    edge = await engine.graph.link(node.id, other.id)
    await engine.graph.link(node.id, other.id, "supports")
    plan = await engine.plans.propose("merge-edges")
    asked: dict[str, list[tuple[str, str, Any]]] = {
        "read": [
            ("GET", MEMORIES, None),
            ("GET", f"{MEMORIES}/{node.id}", None),
            ("GET", f"{MEMORIES}/{node.id}/history", None),
            ("POST", "/api/v1/search", {"query": "x"}),
            ("GET", "/api/v1/export", None),
            ("GET", "/api/v1/jobs", None),
            ("GET", "/api/v1/spaces", None),
            ("GET", "/api/v1/policies", None),
            ("GET", "/api/v1/plans", None),
            ("GET", f"/api/v1/plans/{plan.id}", None),
            ("GET", "/api/v1/runs", None),
            ("GET", f"/api/v1/nodes/{node.id}/history", None),
            ("GET", f"/api/v1/nodes/{node.id}/edges", None),
            ("GET", f"/api/v1/edges/{edge.id}", None),
            ("GET", f"/api/v1/edges/{edge.id}/history", None),
        ],
        "write": [
            ("POST", MEMORIES, {"text": "new"}),
            ("POST", f"{MEMORIES}/batch", [{"text": "newer"}]),
            ("PATCH", f"{MEMORIES}/{node.id}", {"importance": 1}),
            ("POST", f"{MEMORIES}/{node.id}/archive", None),
            ("POST", f"{MEMORIES}/{node.id}/restore", None),
            ("POST", "/api/v1/jobs/retry", None),
            ("POST", "/api/v1/edges", {"source": str(node.id), "target": str(other.id), "relation": "extends"}),
            ("POST", f"/api/v1/edges/{edge.id}/reinforce", None),
            ("POST", f"/api/v1/edges/{edge.id}/protect", {"protected": True}),
            ("DELETE", f"/api/v1/edges/{edge.id}", None),
        ],
        "consolidate": [
            ("POST", "/api/v1/plans", {"policy": "prune"}),
            ("POST", f"/api/v1/plans/{plan.id}/approve", None),
            ("POST", f"/api/v1/plans/{plan.id}/apply", None),
        ],
        "admin": [
            ("GET", "/api/v1/keys", None),
            ("POST", "/api/v1/keys", {"name": "k", "scopes": ["read"]}),
            ("POST", "/api/v1/spaces", {"slug": f"t-{uuid4().hex[:8]}"}),
            ("PATCH", "/api/v1/spaces/default", {"settings": {}}),
        ],
    }
    allowed = {"read": reads, "write": writes, "consolidate": tidies, "admin": administers}
    async with visitor(app, key=await key_for(engine, scope)) as caller:
        for group, requests in asked.items():
            for method, path, body in requests:
                answer = await caller.request(method, path, json=body) if body else await caller.request(method, path)
                assert (answer.status_code < 300) is allowed[group], (method, path, answer.text)
                if not allowed[group]:
                    assert group in problem(answer, 403, "not_allowed")


async def test_E28_a_key_bound_to_a_space_works_there_and_nowhere_else(app: FastAPI, engine: Engine) -> None:
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    theirs = await other.add("theirs", wait=False)
    key = await key_for(engine, Scope.ADMIN, space=engine.space.slug)
    async with visitor(app, key=key) as caller:
        mine = await added(caller, "mine")
        listed = (await caller.get(MEMORIES)).json()["items"]
        assert [node["id"] for node in listed] == [mine["id"]]
        problem(await caller.get(f"{MEMORIES}/{theirs.id}"), 404, "not_found")
        problem(await caller.post(f"{MEMORIES}/{theirs.id}/archive"), 404, "not_found")
        exported = await caller.get("/api/v1/export")
        assert "theirs" not in exported.text
        assert "mine" in exported.text
        # Whether another space exists is not told.
        answers = [
            await caller.get(MEMORIES, headers={"X-Recollect-Space": slug})
            for slug in (other.space.slug, "no-such-space", "NOT A SLUG")
        ]
        assert len({problem(answer, 403, "not_allowed") for answer in answers}) == 1
    assert (await other.get(theirs.id)).status == "active"


async def test_E28_a_bound_key_without_a_header_uses_its_space_not_the_default(app: FastAPI, engine: Engine) -> None:
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    async with visitor(app, key=await key_for(engine, Scope.WRITE, space=other.space.slug)) as caller:
        await added(caller, "over there")
    assert (await engine.count(), await other.count()) == (0, 1)


async def test_E28_an_admin_bound_to_a_space_administers_that_space_only(app: FastAPI, engine: Engine) -> None:
    other = await engine.add_space(f"t-{uuid4().hex[:12]}")
    async with visitor(app, key=await key_for(engine, Scope.ADMIN, space=engine.space.slug)) as caller:
        refused: list[tuple[str, str, Any]] = [
            ("GET", "/api/v1/keys", None),
            ("POST", "/api/v1/keys", {"name": "k", "scopes": ["admin"]}),
            ("POST", "/api/v1/spaces", {"slug": "more"}),
            ("PATCH", f"/api/v1/spaces/{other.slug}", {"settings": {"strict_tags": True}}),
            ("PATCH", "/api/v1/spaces/no-such-space", {"settings": {}}),
            ("GET", "/metrics", None),
        ]
        for method, path, body in refused:
            problem(await caller.request(method, path, json=body), 403, "not_allowed")
        assert [space["slug"] for space in (await caller.get("/api/v1/spaces")).json()] == [engine.space.slug]
        answer = await caller.patch(f"/api/v1/spaces/{engine.space.slug}", json={"settings": {"strict_tags": True}})
        assert answer.json()["settings"] == {"strict_tags": True}


async def test_E28_revoked_expired_wrong_and_unknown_keys_are_refused(
    app: FastAPI, engine: Engine, api_database: str
) -> None:
    good = await key_for(engine)
    revoked = await key_for(engine)
    await engine.revoke_key(revoked)
    expired = await key_for(engine)
    await support.sql(
        api_database,
        f"UPDATE recollect.api_keys SET expires_at = now() - interval '1 second' WHERE prefix = '{expired[3:11]}'",
    )
    wrong = [
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good[:12] + revoked[12:],
        good + "x",
        good[:-1],
        good.upper(),
    ]
    for key in [revoked, expired, *wrong, "rk_", "rk_abcdefgh_" + "x" * 43, "nonsense", "é", "x" * 5000]:
        async with visitor(app) as caller:
            for headers in ({b"Authorization": f"Bearer {key}".encode()}, {b"X-API-Key": key.encode()}):
                answer = await caller.get(MEMORIES, headers=headers)
                problem(answer, 401, "not_authenticated")
                assert answer.headers["www-authenticate"] == "Bearer"
    async with visitor(app, Authorization=f"bEaReR  {good}") as caller:
        assert (await caller.get(MEMORIES)).status_code == 200


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "rk_abcdefgh", ""])
async def test_E28_what_is_no_bearer_token_is_no_key(app: FastAPI, engine: Engine, header: str) -> None:
    await key_for(engine)
    async with visitor(app, Authorization=header) as caller:
        problem(await caller.get(MEMORIES), 401, "not_authenticated")


async def test_E28_a_wrong_key_is_refused_even_where_none_is_needed(app: FastAPI) -> None:
    async with visitor(app, key="rk_abcdefgh_" + "x" * 43) as caller:
        problem(await caller.get(MEMORIES), 401, "not_authenticated")


async def test_E28_who_is_calling_is_asked_before_the_body_is_read(app: FastAPI, engine: Engine) -> None:
    await key_for(engine)
    read: list[int] = []

    async def body() -> Any:
        for number in range(100):
            read.append(number)
            yield b"[" * 1_000_000

    async with visitor(app) as nobody:
        answer = await nobody.post(f"{MEMORIES}/batch", content=body(), headers={"Content-Type": "application/json"})
    problem(answer, 401, "not_authenticated")
    assert read == []


async def test_E28_a_key_is_made_shown_once_listed_and_revoked(app: FastAPI, client: httpx.AsyncClient) -> None:
    expires = datetime.now(UTC) + timedelta(days=1)
    body = {"name": "my agent", "scopes": ["write", "read", "read"], "expires_at": expires.isoformat()}
    answer = await client.post("/api/v1/keys", json=body)
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert made["secret"].startswith(f"rk_{made['key']['prefix']}_")
    assert (made["key"]["name"], made["key"]["scopes"], made["key"]["space"]) == ("my agent", ["read", "write"], None)
    admin = await key_for(app.state.engine)
    problem(await client.get("/api/v1/keys"), 401, "not_authenticated")
    async with visitor(app, key=admin) as caller:
        listed = await caller.get("/api/v1/keys")
        assert made["secret"] not in listed.text
        assert "hash" not in listed.text
        assert len(listed.json()) == 2
        async with visitor(app, key=made["secret"]) as agent:
            assert (await agent.get(MEMORIES)).status_code == 200
            revoked = await caller.post(f"/api/v1/keys/{made['key']['prefix']}/revoke")
            assert revoked.json()["revoked_at"]
            problem(await agent.get(MEMORIES), 401, "not_authenticated")
        problem(await caller.post("/api/v1/keys/zzzzzzzz/revoke"), 404, "not_found")
        problem(await caller.post("/api/v1/keys/%00/revoke"), 422, "invalid_input", field="prefix")


async def test_D06_G08_a_strict_space_registers_tags_of_its_own(client: httpx.AsyncClient, engine: Engine) -> None:
    garden = {"text": "roses", "metadata": {"tags": ["garden"]}}
    await client.patch(f"/api/v1/spaces/{engine.space.slug}", json={"settings": {"strict_tags": True}})
    problem(await client.post(MEMORIES, json=garden), 422, "invalid_input", field="metadata.tags")
    await client.patch(f"/api/v1/spaces/{engine.space.slug}", json={"settings": {"tags": ["garden"]}})
    assert (await client.post(MEMORIES, json=garden)).status_code == 201


async def test_G08_what_looks_like_a_slip_is_in_the_answer(client: httpx.AsyncClient) -> None:
    answer = await client.post(MEMORIES, json={"text": "roses", "metadata": {"tags": ["helth"]}})
    assert (answer.status_code, answer.json()["metadata"]["tags"]) == (201, ["helth"])
    assert "if you meant 'health'" in answer.json()["notes"][0]
    batch = [{"nothing": 1}, {"text": "tulips", "metadata": {"tags": ["techncal"]}}, {"text": "plain"}]
    answer = await client.post(f"{MEMORIES}/batch", json=batch)
    assert [(one["position"], "'technical'" in one["message"]) for one in answer.json()["notes"]] == [(1, True)]


async def test_D05_a_space_is_made_once(client: httpx.AsyncClient) -> None:
    slug = f"t-{uuid4().hex[:12]}"
    answer = await client.post("/api/v1/spaces", json={"slug": slug, "settings": {"strict_tags": True}})
    assert (answer.status_code, answer.json()["slug"]) == (201, slug)
    problem(await client.post("/api/v1/spaces", json={"slug": slug}), 409, "conflict")
    assert slug in [space["slug"] for space in (await client.get("/api/v1/spaces")).json()]


async def test_E27_health_is_open_to_everybody_and_tells_strangers_nothing(app: FastAPI, engine: Engine) -> None:
    key = await key_for(engine, Scope.READ)
    async with visitor(app, peer="192.0.2.7", address="http://memory.example") as stranger:
        assert (await stranger.get("/health/live")).json() == {"status": "ok"}
        assert (await stranger.get("/health/ready")).json() == {"status": "ok"}
        bare = (await stranger.get("/health")).json()
        assert bare == {"live": "ok", "ready": "ok", "version": None, "waiting_jobs": None}
        problem(await stranger.get("/metrics"), 401, "not_authenticated")
    async with visitor(app, key=key, peer="192.0.2.7", address="http://memory.example") as reader:
        assert (await reader.get("/health")).json()["version"]
        assert (await reader.get("/metrics")).status_code == 200
    async with visitor(app) as local:
        assert (await local.get("/health")).json()["version"]
        assert (await local.get("/metrics")).status_code == 200
    async with visitor(app, key=await key_for(engine, Scope.WRITE)) as writer:
        problem(await writer.get("/metrics"), 403, "not_allowed")
        assert (await writer.get("/health")).json()["version"] is None
