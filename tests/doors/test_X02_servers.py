"""Many servers, one database (X02): real processes that share nothing but a PostgreSQL."""

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests import programs
from tests.doors import test_api_support as support
from tests.waiting import HANG_SECONDS, until

api_database = support.api_database

SERVE = """
from recollect import logs
from recollect.doors.api.server import serve
from recollect.settings import Settings
logs.configure(level="warning", format="json")
serve(Settings.load(), ready=lambda address: print(address, flush=True))
"""
TEAM = "team.example"  # what a load balancer is called by those who ask it


@contextmanager
def process(url: str, *command: str) -> Iterator["subprocess.Popen[str]"]:
    chosen = {"DATABASE_URL": url, "EMBEDDER": "hashing:64", "PORT": "0", "WORKER_POLL_SECONDS": "0.1"}
    environment = {**os.environ, **{f"RECOLLECT_{name}": value for name, value in chosen.items()}}
    with programs.Popen[str]([sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True) as one:
        try:
            yield one
        finally:
            one.terminate()


class House:
    """Two servers, and a key that opens both."""

    def __init__(self, url: str, addresses: list[str], key: str, stack: ExitStack) -> None:
        self.url, self.addresses, self._key, self._stack = url, addresses, key, stack
        self.one, self.other = map(self.visitor, addresses)

    def visitor(self, address: str, key: str | None = None, **headers: str) -> httpx.Client:
        known = {} if key == "" else {"Authorization": f"Bearer {key or self._key}"}
        client = httpx.Client(base_url=address, timeout=HANG_SECONDS, headers={**known, "Host": TEAM, **headers})
        return self._stack.enter_context(client)

    def in_space(self) -> tuple[httpx.Client, httpx.Client]:
        """The same new space at both."""
        slug = f"s-{uuid4().hex[:10]}"
        done(self.one.post("/api/v1/spaces", json={"slug": slug}))
        one, other = (self.visitor(address, **{"X-Recollect-Space": slug}) for address in self.addresses)
        return one, other


@pytest.fixture(scope="module")
def house(api_database: str) -> Iterator[House]:
    key = asyncio.run(made_key(api_database))
    with ExitStack() as stack:
        servers = [stack.enter_context(process(api_database, "-c", SERVE)) for _ in range(2)]
        addresses = [one.stdout.readline().strip() for one in servers if one.stdout]
        yield House(api_database, addresses, key, stack)


async def made_key(url: str) -> str:
    async with Engine(Settings.load(database_url=url, embedder="hashing:64", pool_size=4)) as engine:
        return (await engine.add_key("a test", scopes=[Scope.ADMIN]))[1]


def done(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def add(client: httpx.Client, text: str) -> str:
    return str(done(client.post("/api/v1/memories?wait=true", json={"text": text}))["id"])


def found(client: httpx.Client, query: str, **more: Any) -> list[str]:
    answer = done(client.post("/api/v1/search", json={"query": query, "weak": True, **more}))
    return [hit["node"]["id"] for hit in answer["hits"]]


# -- what a process keeps in memory is never older than what was written elsewhere


def test_X02_no_answer_is_older_than_the_last_write_at_another_server(house: House) -> None:
    """Each question was answered, and kept, at both before the next write."""
    one, other = house.in_space()
    ids: list[str] = []
    for number in range(6):
        writer, reader = (one, other) if number % 2 else (other, one)
        ids.append(add(writer, f"gardens, note {number}"))
        for client in (reader, writer, reader):
            assert sorted(found(client, "gardens")) == sorted(ids)
    gone = ids.pop()
    done(other.post(f"/api/v1/memories/{gone}/archive"))
    assert sorted(found(one, "gardens")) == sorted(ids)
    done(one.post(f"/api/v1/memories/{gone}/restore"))
    assert gone in found(other, "gardens")


def test_X02_a_graph_in_memory_follows_links_made_elsewhere(house: House) -> None:
    """Paths are looked for in the graph that a process keeps."""
    one, other = house.in_space()
    first, *rest = [add(one, text) for text in ("gardens", "an owl", "a fox", "a hare")]
    previous = first
    for hops, node in enumerate(rest, start=1):
        between = {"source": first, "target": node}
        assert done(other.get("/api/v1/graph/paths", params=between)) == []
        done(one.post("/api/v1/edges", json={"source": previous, "target": node}))
        (path,) = done(other.get("/api/v1/graph/paths", params=between))
        assert len(path["edges"]) == hops
        previous = node


def test_X02_settings_of_a_space_hold_everywhere_at_once(house: House) -> None:
    one, other = house.in_space()
    slug = one.headers["X-Recollect-Space"]
    add(other, "before")
    done(one.patch(f"/api/v1/spaces/{slug}", json={"settings": {"strict_tags": True, "tags": ["garden"]}}))
    refused = other.post("/api/v1/memories", json={"text": "after", "metadata": {"tags": ["kitchen"]}})
    assert refused.status_code == 422
    done(one.patch(f"/api/v1/spaces/{slug}", json={"settings": {"strict_tags": False}}))
    done(other.post("/api/v1/memories", json={"text": "after", "metadata": {"tags": ["kitchen"]}}))


# -- sessions and keys


def test_X02_signed_in_at_one_server_is_signed_in_at_the_other(house: House) -> None:
    browser = house.visitor(house.addresses[0])
    done(browser.post("/api/v1/session", headers={"X-Recollect": "page"}))
    (secret,) = [cookie for cookie in browser.cookies.jar if "recollect" in cookie.name]
    elsewhere = house.visitor(house.addresses[1], key="", Cookie=f"{secret.name}={secret.value}")
    assert done(elsewhere.get("/api/v1/session"))["scopes"]
    done(elsewhere.delete("/api/v1/session", headers={"X-Recollect": "page"}))
    here = house.visitor(house.addresses[0], key="", Cookie=f"{secret.name}={secret.value}")
    assert here.get("/api/v1/session").status_code == 401


def test_X02_a_key_revoked_at_one_server_is_refused_at_the_other_at_once(house: House) -> None:
    made = done(house.one.post("/api/v1/keys", json={"name": "a guest", "scopes": ["read"]}))
    guest = house.visitor(house.addresses[1], made["secret"])
    assert guest.get("/api/v1/memories").status_code == 200
    done(house.one.post(f"/api/v1/keys/{made['key']['prefix']}/revoke"))
    assert guest.get("/api/v1/memories").status_code == 401


# -- plans


def weak_links(client: httpx.Client, number: int) -> None:
    """Links that pruning takes out, among strong ones."""
    done(client.post("/api/v1/memories/batch?wait=true", json=[{"text": f"node {n}"} for n in range(number + 1)]))
    ids = [one["id"] for one in done(client.get("/api/v1/memories", params={"limit": number + 1}))["items"]]
    for source, target in itertools.pairwise(ids):
        for relation, strength in (("strong", 0.9), ("weak", 0.01)):
            ends = {"source": source, "target": target, "relation": relation}
            link = {**ends, "strength": strength, "created_by": "auto"}
            done(client.post("/api/v1/edges", json=link))


def proposed(client: httpx.Client) -> dict[str, Any]:
    weak_links(client, 5)
    pruning = {"policy": "prune", "options": {"min_inactive_days": 0, "batch": 1}}
    plan: dict[str, Any] = done(client.post("/api/v1/plans", json=pruning))
    assert plan["decisions"]
    return plan


def test_X02_a_plan_is_proposed_here_applied_there_and_taken_back_here(house: House) -> None:
    """In the background: how far it is can be asked at the server that does not do it."""
    one, other = house.in_space()
    plan = proposed(one)
    address = f"/api/v1/plans/{plan['id']}"
    assert len(done(other.get(address))["decisions"]) == len(plan["decisions"])
    begun = done(other.post(f"{address}/apply?wait=false", json={}))
    until(lambda: done(one.get(f"/api/v1/runs/{begun['run_id']}"))["status"] == "done")
    assert done(one.get(address))["status"] == "applied"
    done(one.post(f"{address}/undo", json={}))
    assert done(other.get(address))["status"] == "undone"


def test_X02_a_plan_applied_at_both_at_once_is_applied_once(house: House) -> None:
    one, _ = house.in_space()
    plan = proposed(one)
    address = f"/api/v1/plans/{plan['id']}"

    async def at_both() -> list[httpx.Response]:
        async with httpx.AsyncClient(timeout=HANG_SECONDS, headers=dict(one.headers)) as client:
            return await asyncio.gather(*(client.post(f"{at}{address}/apply", json={}) for at in house.addresses))

    answers = asyncio.run(at_both())
    assert {answer.status_code for answer in answers} <= {200, 409}, [answer.text for answer in answers]
    assert done(one.get(address))["status"] == "applied"
    changes = f"SELECT count(*) FROM recollect.changes WHERE plan_id = '{plan['id']}'"
    assert asyncio.run(support.sql(house.url, changes))[0][0] == len(plan["decisions"])


# -- jobs, schedules


def test_X02_jobs_are_shared_each_done_once(house: House) -> None:
    one, other = house.in_space()
    texts = [{"text": f"to embed {n}"} for n in range(300)]
    done(one.post("/api/v1/memories/batch", json=texts[:150]))
    done(other.post("/api/v1/memories/batch", json=texts[150:]))
    told(house, "-m", "recollect", "work")
    until(lambda: done(one.get("/api/v1/jobs"))["completed"] == 300)
    counts = done(other.get("/api/v1/jobs"))
    assert (counts["completed"], counts["failed"]) == (300, 0)


def test_X02_one_process_leads(house: House) -> None:
    holding = """SELECT a.client_port, a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                  WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                    AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended('recollect scheduler', 0)
                    AND a.datname = current_database()"""
    until(lambda: asyncio.run(support.sql(house.url, holding)))
    assert len(asyncio.run(support.sql(house.url, holding))) == 1


def test_X02_a_restore_at_one_process_is_seen_at_the_others(house: House, tmp_path: Path) -> None:
    """Versions of spaces never go back, so that no answer from before is taken for one of now."""
    one, other = house.in_space()
    kept = add(one, "gardens, kept")
    recollect = ("-m", "recollect")
    file = tmp_path / "all.dump"
    told(house, *recollect, "backup", str(file))
    for number in range(3):
        add(one, f"gardens, later {number}")
        found(other, "gardens")
        found(one, "gardens")
    told(house, *recollect, "restore", str(file), "--overwrite")
    assert found(other, "gardens") == [kept]
    for number in range(3):
        new = add(one, f"gardens, anew {number}")
        assert new in found(other, "gardens")
        assert len(found(one, "gardens")) == number + 2


def told(house: House, *command: str) -> str:
    with process(house.url, *command) as program:
        said, _ = program.communicate(timeout=HANG_SECONDS)
    assert program.returncode == 0, said
    return said
