"""Schedules and notices by the command line and over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from recollect.doors.cli.app import run as recollect
from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors import test_api_support as api
from tests.doors import test_cli_support as command_line
from tests.doors.test_api_support import key_for, problem, visitor
from tests.doors.test_cli_support import Cli
from tests.local_server import LocalServer, Received, Reply, json_reply

anyio_backend, api_database, api_settings = api.anyio_backend, api.api_database, api.api_settings
house, engine, routes, app, client = api.house, api.engine, api.routes, api.app, api.client
own_database, in_default, cli = command_line.own_database, command_line.in_default, command_line.cli

PRUNE = "prune_weak_edges"


class Hook(LocalServer[Received]):
    def answer(self, request: Received) -> Reply:
        return json_reply({})


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook(Received) as hook:
        yield hook


# -- the command line


def test_A25_the_command_lists_what_is_done_by_itself(cli: Cli) -> None:
    lines = [line.split("\t") for line in cli("schedules").out.splitlines()]
    usual = {
        "link_similar": "every day",
        "prune_weak_edges": "every day",
        "merge_parallel_edges": "every week",
        "merge_duplicate_concepts": "every week",
        "gather_topics": "every two weeks",
    }
    assert {line[0]: line[1] for line in lines}.items() >= usual.items()
    assert lines[-1][0] == "gather_topics"
    assert {(line[3], line[4]) for line in lines} == {("never", "-")}
    (shown,) = [one for one in cli.json("schedules") if one["name"] == PRUNE]
    assert datetime.fromisoformat(shown["next_run_at"]) > datetime.now(UTC)
    assert "maintain" in cli("schedules", "--space", "default").out


def test_A01_the_command_pauses_resumes_sets_and_runs(cli: Cli) -> None:
    assert "\tpaused\t" in cli("schedules", "pause", "prune").out
    assert "\tpaused\t" not in cli("schedules", "resume", PRUNE).out
    cron = ("--cron", "0 2 * * sun", "--time-zone", "Europe/Berlin")
    assert "0 2 * * sun Europe/Berlin" in cli("schedules", "set", "prune", *cron).out
    assert "every 90 minutes" in cli("schedules", "set", "prune", "--every", "90", "--jitter", "5").out
    set_ = cli.json("schedules", "set", "prune", "--options", '{"threshold": 0.1}')
    assert (set_["every_minutes"], set_["jitter_seconds"], set_["options"]) == (90, 5, {"threshold": 0.1})
    ran = cli("schedules", "run", "prune")
    assert (ran.code, ran.out) == (0, "Pruned 0 edges.\n")
    assert "The schedule would not have run this: the graph has 0 edges, fewer than 50." in ran.err
    assert cli("schedules").out.count("Pruned 0 edges") == 1
    assert cli.json("schedules", "run", "topics")["outcome"] == "Found 0 topics"


def test_the_command_refuses_what_makes_no_sense(cli: Cli) -> None:
    assert "can be scheduled" in cli.refused("schedules", "pause", "nonsense", code=3)
    assert "There is nothing to set" in cli.refused("schedules", "set", "prune", code=2)
    assert "five fields" in cli.refused("schedules", "set", "prune", "--cron", "daily", code=2)
    assert "one of the two" in cli.refused("schedules", "set", "prune", "--cron", "0 2 * * *", "--every", "5", code=2)
    assert "no time zone 'Mars'" in cli.refused("schedules", "set", "prune", "--time-zone", "Mars", code=2)
    assert "JSON object" in cli.refused("schedules", "set", "prune", "--options", "[]", code=2)
    assert "scheduled in this space" in cli.refused("schedules", "pause", "maintain", code=3)


def test_the_command_tests_who_is_told(in_default: Cli, hook: Hook) -> None:
    assert in_default("notify").out == "log\n"
    in_default.patch.setenv("RECOLLECT_NOTIFY", f"webhook:{hook.url}/secret")
    assert in_default("notify").out == f"log\nwebhook:{hook.url}\n"
    answer = in_default("notify", "test")
    assert (answer.code, answer.out) == (0, f"log\ttold\nwebhook:{hook.url}\ttold\n")
    assert [request.body["kind"] for request in hook.received] == ["test"]
    hook.every_reply = Reply(status=404)
    refused = in_default("notify", "test")
    assert refused.code == 1
    assert "answered 404: check RECOLLECT_NOTIFY" in refused.out
    assert "secret" not in in_default("config").out + refused.out + refused.err
    in_default.patch.setenv("RECOLLECT_NOTIFY", "nonsense")
    assert "RECOLLECT_NOTIFY" in in_default.refused("notify", "test", code=2)


def test_serve_says_at_once_when_nobody_can_be_told(in_default: Cli) -> None:
    in_default.patch.setenv("RECOLLECT_NOTIFY", "nonsense")
    assert "RECOLLECT_NOTIFY" in in_default.refused("serve", "--port", "0", code=2)
    in_default.patch.delenv("RECOLLECT_NOTIFY")
    in_default.patch.setenv("RECOLLECT_TIME_ZONE", "Mars")
    assert "no time zone 'Mars'" in in_default.refused("serve", "--port", "0", code=2)


@pytest.mark.parametrize(("given", "expected"), [(("--production",), True), ((), False)])
def test_P03_serve_in_production(
    given: tuple[str, ...], expected: bool, in_default: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    monkeypatch.setattr("recollect.doors.api.server.serve", lambda settings, **_: seen.append(settings.production))
    with pytest.raises(SystemExit):
        recollect(["serve", *given])
    assert seen == [expected]


# -- HTTP


@pytest.mark.anyio
async def test_A25_the_api_lists_and_changes_schedules(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/api/v1/schedules")).json()
    usual = {
        "link_similar": 1440,
        "prune_weak_edges": 1440,
        "merge_parallel_edges": 10_080,
        "merge_duplicate_concepts": 10_080,
        "gather_topics": 20_160,
    }
    assert {one["name"]: one["every_minutes"] for one in listed}.items() >= usual.items()
    assert not (await client.post("/api/v1/schedules/prune/pause")).json()["enabled"]
    assert (await client.post("/api/v1/schedules/prune/resume")).json()["enabled"]
    wanted = {"cron": "0 2 * * sun", "time_zone": "Europe/Berlin", "jitter_seconds": 0}
    changed = (await client.patch("/api/v1/schedules/prune", json=wanted)).json()
    assert {key: changed[key] for key in wanted} == wanted
    assert changed["every_minutes"] is None
    assert datetime.fromisoformat(changed["next_run_at"]).astimezone(UTC).hour in (0, 1)


@pytest.mark.anyio
async def test_A01_A27_the_api_runs_a_schedule_now(client: httpx.AsyncClient) -> None:
    ran = (await client.post("/api/v1/schedules/prune/run")).json()
    assert (ran["status"], ran["outcome"]) == ("done", "Pruned 0 edges")
    assert "would not have run" in ran["warnings"][0]
    assert ran["report"]["planned"] == 0
    assert ran["run_id"]


@pytest.mark.anyio
async def test_the_api_refuses_what_makes_no_sense(client: httpx.AsyncClient) -> None:
    assert "can be scheduled" in problem(await client.post("/api/v1/schedules/x/run"), 404, "not_found")
    problem(await client.post("/api/v1/schedules/maintain/pause"), 404, "not_found")
    for wanted, field in (
        ({"cron": "x"}, "cron"),
        ({"every_minutes": 0}, "every_minutes"),
        ({"every_minutes": 5, "cron": "0 2 * * *"}, "cron"),
        ({"time_zone": "Mars"}, "time_zone"),
        ({"surprise": 1}, "surprise"),
        ({"options": {"threshold": "a lot"}}, "threshold"),
    ):
        answer = await client.patch("/api/v1/schedules/prune", json=wanted)
        problem(answer, 422, "invalid_input", field=field)


@pytest.mark.anyio
async def test_E28_schedules_are_changed_with_the_scope_consolidate(app: object, engine: Engine) -> None:
    reader = await key_for(engine, Scope.READ, Scope.WRITE)
    keeper = await key_for(engine, Scope.CONSOLIDATE)
    async with visitor(app, key=reader) as someone:  # type: ignore[arg-type]
        assert (await someone.get("/api/v1/schedules")).status_code == 200
        for call in ("pause", "resume", "run"):
            problem(await someone.post(f"/api/v1/schedules/prune/{call}"), 403, "not_allowed")
        problem(await someone.patch("/api/v1/schedules/prune", json={}), 403, "not_allowed")
    async with visitor(app, key=keeper) as someone:  # type: ignore[arg-type]
        assert (await someone.post("/api/v1/schedules/prune/pause")).status_code == 200
        # It would back up, and vacuum, what others keep.
        home = {"X-Recollect-Space": "default"}
        problem(await someone.post("/api/v1/schedules/maintain/run", headers=home), 403, "not_allowed")
