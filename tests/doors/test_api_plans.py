"""Plans over HTTP: proposed, shown in stretches, approved, declined, applied, watched, undone; and bad requests."""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import anyio
import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from recollect.doors.running import Running
from recollect.engine.engine import Engine
from recollect.model import NewEdge, NewMemory, Scope
from recollect.settings import Settings
from tests.doors import test_api_support as support
from tests.doors.test_api_support import added, key_for, problem, raw, visitor
from tests.waiting import HANG_SECONDS, until_it_holds

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
PLANS = "/api/v1/plans"


async def star_with_weak_rim(engine: Engine, rim: int) -> list[UUID]:
    """A hub with strong spokes, and weak idle edges along the rim: so many can be pruned. Returns the weak ones."""
    added = await engine.add_many([NewMemory(text=f"node {n} {uuid4()}") for n in range(rim + 2)], wait=False)
    hub, *others = added.ids
    old = engine.core.now() - timedelta(days=60)
    common: dict[str, Any] = {"created_by": "auto", "created_at": old}
    await engine.graph.link_many([NewEdge(source=hub, target=one, strength=1.0, **common) for one in others])
    pairs = pairwise(others)
    weak = [NewEdge(source=a, target=b, strength=0.1 + 0.001 * n, **common) for n, (a, b) in enumerate(pairs)]
    return list(await engine.graph.link_many(weak))


async def doubled(engine: Engine, pairs: int) -> list[UUID]:
    """So many pairs with two edges each: each can be merged. Returns the edges that would win."""
    added = await engine.add_many([NewMemory(text=f"node {n} {uuid4()}") for n in range(2 * pairs)], wait=False)
    winners = []
    for a, b in zip(added.ids[::2], added.ids[1::2], strict=True):
        await engine.graph.link(a, b, "similar", strength=0.3)
        winners.append((await engine.graph.link(a, b, "extends", strength=0.5)).id)
    return winners


async def proposed(client: httpx.AsyncClient, policy: str = "merge-edges", **options: Any) -> dict[str, Any]:
    answer = await client.post(PLANS, json={"policy": policy, "options": options})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def states(client: httpx.AsyncClient, plan: str) -> dict[int, str]:
    shown = (await client.get(f"{PLANS}/{plan}")).json()
    return {one["number"]: one["status"] for one in shown["decisions"]}


async def test_P02_a_proposal_is_saved_and_changes_nothing(client: httpx.AsyncClient, engine: Engine) -> None:
    weak = await star_with_weak_rim(engine, 4)
    answer = await client.post(PLANS, json={"policy": "prune", "options": {"min_inactive_days": 30}})
    plan = answer.json()
    assert answer.headers["location"] == f"{PLANS}/{plan['id']}"
    assert (plan["policy"], plan["status"], plan["counts"]) == ("prune_weak_edges", "proposed", {"proposed": 4})
    assert {one["subject"] for one in plan["decisions"]} == {str(id_) for id_ in weak}
    assert plan["tally"] == {"comes": 0, "returns": 0, "changes": 0, "goes": 4}
    assert plan["options"]["min_inactive_days"] == 30
    for one in plan["decisions"]:
        assert one["changes"][0]["before"] == {"status": "active"}
        assert "—similar→" in plan["labels"][one["subject"]]
        assert "node " in plan["labels"][one["subject"]]
    assert (await client.get(f"{PLANS}/{plan['id']}")).json() == plan
    assert [(await engine.graph.edge(id_)).status for id_ in weak] == ["active"] * 4


async def test_A27_a_proposal_by_hand_warns_where_the_schedule_would_not_run(
    client: httpx.AsyncClient, engine: Engine
) -> None:
    await star_with_weak_rim(engine, 4)
    (warning,) = (await proposed(client, "prune"))["warnings"]
    why = "the graph has 9 edges, fewer than 50"
    assert warning == f"The schedule would not run this yet: {why}. You can still apply it."


async def test_P10_a_proposal_says_that_the_brake_is_on(client: httpx.AsyncClient, engine: Engine) -> None:
    await star_with_weak_rim(engine, 60)
    plan = await proposed(client, "prune")
    assert plan["risk"] == "high"
    assert plan["warnings"][0].startswith(
        "This plan waits for your approval: it touches 60 of 121 links (50%; the limit is 15%)."
    )


async def test_P02_a_long_plan_is_shown_in_stretches(client: httpx.AsyncClient, engine: Engine) -> None:
    await star_with_weak_rim(engine, 25)
    plan = await proposed(client, "prune")
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        stretch = (await client.get(f"{PLANS}/{plan['id']}", params={"after": after, "limit": 10})).json()
        seen += [one["number"] for one in stretch["decisions"]]
        assert {one["subject"] for one in stretch["decisions"]} <= set(stretch["labels"])
        assert (stretch["tally"] is None) == (after > 0)
        after = stretch["next_after"]
    assert seen == list(range(1, 26))


async def test_P03_a_plan_is_approved_declined_in_part_and_applied(client: httpx.AsyncClient, engine: Engine) -> None:
    winners = await doubled(engine, 3)
    plan = (await proposed(client))["id"]
    assert (await client.post(f"{PLANS}/{plan}/approve")).json()["status"] == "approved"
    declined = (await client.post(f"{PLANS}/{plan}/decline", json={"decisions": [2]})).json()
    assert declined["counts"] == {"proposed": 2, "declined": 1}
    outcome = (await client.post(f"{PLANS}/{plan}/apply", json={"decline": [3]})).json()
    assert (outcome["applied"], outcome["declined"], outcome["status"]) == (1, 2, "applied")
    assert await states(client, plan) == {1: "applied", 2: "declined", 3: "declined"}
    listed = [(await engine.graph.edge(id_)).strength for id_ in winners]
    assert sorted(one or 0 for one in listed) == [0.5, 0.5, 0.65]


async def test_P03_applying_twice_is_success(client: httpx.AsyncClient, engine: Engine) -> None:
    await doubled(engine, 1)
    plan = (await proposed(client))["id"]
    first = (await client.post(f"{PLANS}/{plan}/apply")).json()
    again = await client.post(f"{PLANS}/{plan}/apply")
    assert again.status_code == 200
    assert (first["repeated"], again.json()["repeated"]) == (False, True)
    assert again.json()["applied"] == first["applied"] == 1


async def test_P04_a_decision_whose_world_has_moved_is_stale(client: httpx.AsyncClient, engine: Engine) -> None:
    winners = await doubled(engine, 2)
    plan = (await proposed(client))["id"]
    assert (await client.post(f"/api/v1/edges/{winners[0]}/protect")).status_code == 200
    outcome = (await client.post(f"{PLANS}/{plan}/apply")).json()
    assert (outcome["applied"], outcome["status"]) == (1, "partly_applied")
    assert len(outcome["stale"]) == 1
    assert "it is protected now" in outcome["stale"][0]
    stale = (await client.get(f"{PLANS}/{plan}", params={"status": "stale"})).json()["decisions"]
    assert [one["subject"] for one in stale] == [str(winners[0])]
    assert stale[0]["note"] == "it is protected now"


async def test_P07_some_decisions_are_undone_then_the_rest(client: httpx.AsyncClient, engine: Engine) -> None:
    winners = await doubled(engine, 2)
    plan = (await proposed(client))["id"]
    await client.post(f"{PLANS}/{plan}/apply")
    some = (await client.post(f"{PLANS}/{plan}/undo", json={"decisions": [1]})).json()
    assert (some["applied"], some["repeated"]) == (1, False)
    assert await states(client, plan) == {1: "undone", 2: "applied"}
    await client.post(f"{PLANS}/{plan}/undo")
    assert await states(client, plan) == {1: "undone", 2: "undone"}
    assert [(await engine.graph.edge(id_)).strength for id_ in winners] == [0.5, 0.5]
    assert (await client.post(f"{PLANS}/{plan}/undo")).json()["repeated"] is True


async def test_P11_never_is_kept_for_good(client: httpx.AsyncClient, engine: Engine) -> None:
    await doubled(engine, 1)
    plan = (await proposed(client))["id"]
    declined = (await client.post(f"{PLANS}/{plan}/decline", json={"never": True})).json()
    assert declined["status"] == "declined"
    assert (await proposed(client))["counts"] == {}
    problem(await client.post(f"{PLANS}/{plan}/apply"), 409, "conflict")


async def test_P13_P14_a_plan_is_applied_in_the_background_and_its_run_watched(
    app: FastAPI, client: httpx.AsyncClient, engine: Engine
) -> None:
    await star_with_weak_rim(engine, 40)
    plan = (await proposed(client, "prune", batch=1))["id"]
    seen: list[dict[str, Any]] = []

    async def look(until: Callable[[dict[str, Any]], bool]) -> bool:
        seen.append((await client.get(begun["url"])).json())
        return until(seen[-1])

    async with engine.core.transaction(engine.space.id) as db:
        # Somebody holds the last of the edges, so that the run comes to a stop there.
        last = f"SELECT subject FROM decisions WHERE plan_id = '{plan}' ORDER BY number DESC LIMIT 1"
        await db.connection.execute(text(f"SELECT 1 FROM edges WHERE id = ({last}) FOR UPDATE"))
        answer = await client.post(f"{PLANS}/{plan}/apply", params={"wait": False})
        assert answer.status_code == 202
        begun = answer.json()
        assert (begun["plan_id"], begun["url"]) == (plan, answer.headers["location"])
        await until_it_holds(lambda: look(lambda run: run["report"]["done"] == 39))
        assert seen[-1]["status"] == "running"
    await until_it_holds(lambda: look(lambda run: run["status"] != "running"))
    counts = [one["report"]["done"] for one in seen]
    assert counts == sorted(counts)
    run = seen[-1]
    assert (run["id"], run["action"], run["status"]) == (begun["run_id"], "apply", "done")
    assert (run["report"]["applied"], run["report"]["stale"], run["report"]["total"]) == (40, 0, 40)
    assert run["report"]["metrics"]["pruned_share"]["in_target"] is False
    assert (await client.get("/api/v1/runs", params={"plan": plan})).json() == [run]
    again = await client.post(f"{PLANS}/{plan}/apply", params={"wait": False})
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    missing = await client.post(f"{PLANS}/{uuid4()}/apply", params={"wait": False})
    problem(missing, 404, "not_found")


async def test_P06_a_server_that_stops_breaks_off_and_the_plan_goes_on_later(
    app: FastAPI, client: httpx.AsyncClient, engine: Engine
) -> None:
    weak = await star_with_weak_rim(engine, 60)
    plan = (await proposed(client, "prune", batch=1))["id"]
    await client.post(f"{PLANS}/{plan}/apply", params={"wait": False})
    running: Running = app.state.running
    await running.stop()
    done = [status for status in (await states(client, plan)).values() if status == "applied"]
    assert len(done) < 60, "it was broken off"
    outcome = (await client.post(f"{PLANS}/{plan}/apply")).json()
    assert (outcome["status"], outcome["applied"]) == ("applied", 60 - len(done))
    assert {(await engine.graph.edge(id_)).status for id_ in weak} == {"pruned"}


async def test_A01_the_policies_are_listed_with_their_options_and_schedules(client: httpx.AsyncClient) -> None:
    found = {one["short"]: one for one in (await client.get("/api/v1/policies")).json()}
    assert {"prune", "merge-edges", "topics", "link"} <= set(found)
    assert found["prune"]["options"]["threshold"] == 0.05
    assert [found[name]["every_minutes"] for name in ("prune", "merge-edges", "topics")] == [1440, 10080, 20160]
    assert all(one["about"] and one["risk"] in ("low", "high") for one in found.values())


async def test_P14_plans_are_listed_by_state_and_policy_page_by_page(client: httpx.AsyncClient, engine: Engine) -> None:
    await doubled(engine, 1)
    ids = [(await proposed(client, "merge-edges"))["id"]]
    await client.post(f"{PLANS}/{ids[0]}/decline")
    await doubled(engine, 1)
    ids += [(await proposed(client, "merge-edges"))["id"]]
    await client.post(f"{PLANS}/{ids[1]}/apply")
    await doubled(engine, 1)
    ids += [(await proposed(client, "merge-edges"))["id"]]
    await proposed(client, "topics")  # it finds nothing, and leaves no plan
    first = (await client.get(PLANS, params={"limit": 2})).json()
    rest = (await client.get(PLANS, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None
    for status, id_ in (("declined", ids[0]), ("applied", ids[1]), ("proposed", ids[2])):
        assert [one["id"] for one in (await client.get(PLANS, params={"status": status})).json()["items"]] == [id_]
    for name in ("merge-edges", "merge_parallel_edges"):
        assert len((await client.get(PLANS, params={"policy": name})).json()["items"]) == 3


async def test_P23_a_no_is_taken_back_over_http(client: httpx.AsyncClient, engine: Engine) -> None:
    await doubled(engine, 2)
    plan = (await proposed(client))["id"]
    declined = (await client.post(f"{PLANS}/{plan}/decline", json={"decisions": [1]})).json()
    assert declined["counts"] == {"declined": 1, "proposed": 1}
    accepted = (await client.post(f"{PLANS}/{plan}/accept", json={"decisions": [1]})).json()
    assert accepted["counts"] == {"proposed": 2}
    assert (await client.post(f"{PLANS}/{plan}/apply")).json()["applied"] == 2
    problem(await client.post(f"{PLANS}/{plan}/accept"), 409, "conflict")


async def test_P09_the_history_of_a_node_is_not_that_of_an_edge(client: httpx.AsyncClient, engine: Engine) -> None:
    (edge,) = await doubled(engine, 1)
    node = (await engine.graph.edge(edge)).source
    await client.post(f"{PLANS}/{(await proposed(client))['id']}/apply")
    assert [one["verb"] for one in (await client.get(f"/api/v1/nodes/{node}/history")).json()] == ["add"]
    history = (await client.get(f"/api/v1/edges/{edge}/history")).json()
    assert [one["verb"] for one in history] == ["add", "merge"]
    assert (history[1]["policy"], history[1]["after"]["strength"]) == ("merge_parallel_edges", 0.65)
    problem(await client.get(f"/api/v1/nodes/{edge}/history"), 404, "not_found")
    problem(await client.get(f"/api/v1/edges/{node}/history"), 404, "not_found")


async def test_P07_what_was_done_by_hand_is_undone_with_the_scope_it_was_done_with(
    app: FastAPI, engine: Engine
) -> None:
    await doubled(engine, 1)
    tidied = await engine.plans.propose("merge-edges")
    await engine.plans.apply(tidied.id)
    node = await engine.add("forgotten by hand", wait=False)
    await engine.forget(node.id)
    by_hand = (await engine.history(node.id))[-1].plan_id
    async with visitor(app, key=await key_for(engine, Scope.WRITE)) as writer:
        problem(await writer.post(f"{PLANS}/{tidied.id}/undo"), 403, "not_allowed")
        assert (await writer.post(f"{PLANS}/{by_hand}/undo")).status_code == 200
    async with visitor(app, key=await key_for(engine, Scope.CONSOLIDATE)) as tidier:
        assert (await tidier.post(f"{PLANS}/{tidied.id}/undo")).status_code == 200
    async with visitor(app, key=await key_for(engine, Scope.READ)) as reader:
        problem(await reader.post(f"{PLANS}/{by_hand}/undo"), 403, "not_allowed")


async def test_P18_undo_with_later_shows_the_chain_and_takes_it_back(app: FastAPI, engine: Engine) -> None:
    node = await engine.add("more and more important", wait=False)
    made = []
    for importance in (0.2, 0.4):
        await engine.edit(node.id, importance=importance)
        made.append(str((await engine.history(node.id))[-1].plan_id))
    first, second = made
    async with visitor(app, key=await key_for(engine, Scope.WRITE)) as writer:
        refused = problem(await writer.post(f"{PLANS}/{first}/undo"), 409, "conflict")
        assert second in refused
        problem(await writer.post(f"{PLANS}/{first}/undo", json={"with_later": True}), 403, "not_allowed")
    async with visitor(app, key=await key_for(engine, Scope.CONSOLIDATE)) as tidier:
        foreseen = (await tidier.get(f"{PLANS}/{first}/undo")).json()
        assert [one["id"] for one in foreseen] == [second, first]
        assert (await engine.get(node.id)).importance == 0.4
        done = (await tidier.post(f"{PLANS}/{first}/undo", json={"with_later": True})).json()
    assert (done["chain"], done["applied"]) == (foreseen, 2)
    assert (await engine.get(node.id)).importance is None


async def test_P13_at_a_real_server_a_plan_is_watched_and_broken_off_when_the_server_stops(
    api_settings: Settings, engine: Engine
) -> None:
    await star_with_weak_rim(engine, 400)
    plan = await engine.plans.propose("prune", {"batch": 1})
    here = api_settings.model_copy(update={"space": engine.space.slug})

    def ask() -> dict[str, Any]:
        with support.listening(here) as address, httpx.Client(base_url=address, timeout=HANG_SECONDS) as caller:
            begun = caller.post(f"{PLANS}/{plan.id}/apply", params={"wait": "false"})
            assert begun.status_code == 202, begun.text
            return dict(caller.get(begun.json()["url"]).json())

    run = await anyio.to_thread.run_sync(ask)
    assert run["status"] == "running"
    counts = (await engine.plans.get(plan.id, decisions=False)).counts
    outcome = await engine.plans.apply(plan.id)
    assert outcome.applied < 400, f"the server went on to the end: {counts}"
    assert (await engine.plans.get(plan.id, decisions=False)).counts == {"applied": 400}


# -- bad requests: a clear answer each, and nothing is changed


async def everything(engine: Engine) -> Any:
    """What there is in the space, to be compared."""
    tables = {
        "plans": "id, status, counts",
        "decisions": "plan_id, number, status",
        "edges": "id, status, strength, protected",
        "nodes": "id, status",
        "never_merge": "a, b",
        "runs": "id, status",
    }
    space = engine.space.id
    found = {}
    for table, columns in tables.items():
        rows = await support.sql(
            engine.core.database.dsn,
            f"SELECT {columns} FROM recollect.{table} WHERE space_id = '{space}' ORDER BY 1, 2",
        )
        found[table] = [tuple(row) for row in rows]
    return found


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("POST", "/approve", None),
        ("POST", "/decline", None),
        ("POST", "/decline", {"decisions": [1]}),
        ("POST", "/apply", None),
        ("POST", "/apply?wait=false", None),
        ("POST", "/undo", None),
        ("POST", "/undo", {"decisions": [1]}),
    ],
)
async def test_P03_an_unknown_plan_and_one_of_another_space_are_not_found(
    client: httpx.AsyncClient, engine: Engine, method: str, path: str, body: Any
) -> None:
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    await doubled(other, 1)
    theirs = await other.plans.propose("merge-edges")
    before = await everything(other)
    for id_ in (theirs.id, uuid4(), str(theirs.id)[:12]):
        problem(await client.request(method, f"{PLANS}/{id_}{path}", json=body), 404, "not_found")
    assert await everything(other) == before


async def test_P03_runs_of_another_space_are_not_found(client: httpx.AsyncClient, engine: Engine) -> None:
    other = await engine.in_space((await engine.add_space(f"t-{uuid4().hex[:12]}")).slug)
    await doubled(other, 1)
    plan = await other.plans.propose("merge-edges")
    run = (await other.plans.apply(plan.id)).run_id
    problem(await client.get(f"/api/v1/runs/{run}"), 404, "not_found")
    problem(await client.get(f"/api/v1/runs/{uuid4()}"), 404, "not_found")
    problem(await client.get("/api/v1/runs", params={"plan": str(plan.id)}), 404, "not_found")
    assert (await client.get("/api/v1/runs")).json() == []


async def test_P07_what_was_never_applied_cannot_be_undone(client: httpx.AsyncClient, engine: Engine) -> None:
    await doubled(engine, 2)
    plan = (await proposed(client))["id"]
    before = await everything(engine)
    assert "only what was applied" in problem(await client.post(f"{PLANS}/{plan}/undo"), 409, "conflict")
    assert "only what was applied" in problem(
        await client.post(f"{PLANS}/{plan}/undo", json={"decisions": [1]}), 409, "conflict"
    )
    assert await everything(engine) == before


@pytest.mark.parametrize("number", [99, 2**31 - 1])
@pytest.mark.parametrize(("path", "field"), [("decline", "decisions"), ("undo", "decisions"), ("apply", "decline")])
async def test_P03_an_unknown_decision_is_named(
    client: httpx.AsyncClient, engine: Engine, path: str, field: str, number: int
) -> None:
    await doubled(engine, 1)
    plan = (await proposed(client))["id"]
    before = await everything(engine)
    answer = await client.post(f"{PLANS}/{plan}/{path}", json={field: [1, number]})
    assert answer.status_code == 422, answer.text
    assert f"no decision {number}" in answer.json()["message"]
    assert await everything(engine) == before


@pytest.mark.parametrize("numbers", [[0], [-1], [2**31], [10**30], [1.5], ["x"], "1", [None], [True, {}]])
@pytest.mark.parametrize(("path", "field"), [("decline", "decisions"), ("undo", "decisions"), ("apply", "decline")])
async def test_P03_what_is_no_number_of_a_decision_is_refused(
    client: httpx.AsyncClient, engine: Engine, path: str, field: str, numbers: Any
) -> None:
    await doubled(engine, 1)
    plan = (await proposed(client))["id"]
    before = await everything(engine)
    answer = await client.post(f"{PLANS}/{plan}/{path}", json={field: numbers})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert await everything(engine) == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "policy"),
        ({"policy": ""}, "policy"),
        ({"policy": "nonsense"}, "policy"),
        ({"policy": "prune\0"}, "policy"),
        ({"policy": "x" * 101}, "policy"),
        ({"policy": "prune", "colour": "red"}, "colour"),
        ({"policy": "prune", "options": {"colour": "red"}}, "colour"),
        ({"policy": "prune", "options": {"threshold": "low"}}, "threshold"),
        ({"policy": "prune", "options": {"threshold": 2}}, "threshold"),
        ({"policy": "prune", "options": {"threshold": None}}, "threshold"),
        ({"policy": "prune", "options": {"threshold": float("nan")}}, "threshold"),
        ({"policy": "prune", "options": {"min_inactive_days": float("inf")}}, "min_inactive_days"),
        ({"policy": "prune", "options": {"batch": 0}}, "batch"),
        ({"policy": "prune", "options": {"batch": 1.5}}, "batch"),
        ({"policy": "prune", "options": {"bridge_rule": "\0"}}, "bridge_rule"),
        ({"policy": "merge-edges", "options": {"review_contradictions": "perhaps"}}, "review_contradictions"),
        ({"policy": "link", "options": {"kinds": ["\0"]}}, "kinds"),
        ({"policy": "link", "options": {"kinds": []}}, "kinds"),
        ({"policy": "link", "options": {"only_newer_than": "yesterday"}}, "only_newer_than"),
        ({"policy": "topics", "options": {"topic_overlap_threshold": 0}}, "topic_overlap_threshold"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else None,
)
async def test_P01_a_bad_proposal_is_refused_and_nothing_is_saved(
    client: httpx.AsyncClient, engine: Engine, body: Any, field: str
) -> None:
    await added(client)
    problem(await client.post(PLANS, **raw(body)), 422, "invalid_input", field=field)
    assert (await client.get(PLANS)).json()["items"] == []


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 1001}, {"status": "nonsense"}, {"cursor": "x"}, {"policy": "\0"}],
    ids=lambda query: str(query).replace("\0", "NUL"),
)
async def test_P14_a_bad_listing_is_refused(client: httpx.AsyncClient, query: Any) -> None:
    assert (await client.get(PLANS, params=query)).status_code == 422


@pytest.mark.parametrize("query", [{"after": -1}, {"after": 2**31}, {"limit": 0}, {"status": "x"}])
async def test_P02_a_bad_stretch_is_refused(client: httpx.AsyncClient, engine: Engine, query: Any) -> None:
    plan = (await proposed(client, "topics"))["id"]
    assert (await client.get(f"{PLANS}/{plan}", params=query)).status_code == 422
