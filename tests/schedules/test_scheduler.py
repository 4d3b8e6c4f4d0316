"""The scheduler: what is due is done once, by one of many, whatever dies; and every run says what came of it."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import anyio
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.engine.engine import Engine
from recollect.errors import Busy, InvalidInput, NotFound
from recollect.model import NewEdge, NewMemory
from recollect.plan import Draft, PlanStatus, Risk
from recollect.plans import notices
from recollect.plans.registry import POLICIES
from recollect.plans.sql import locks, plans
from recollect.schedules import run as scheduled
from recollect.schedules import scheduler
from recollect.schedules.sql.schedules import Schedule
from recollect.settings import Settings
from recollect.store.database import Transaction, driver
from tests import programs
from tests.conftest import MADE
from tests.doors.test_cli_support import in_server
from tests.local_server import LocalServer, Received, Reply, json_reply
from tests.waiting import HANG_SECONDS, until_it_holds

pytestmark = pytest.mark.anyio

START = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LONG_AGO = START - timedelta(days=100)
A_DAY = timedelta(days=1)
PRUNE, MERGE, TOPICS = "prune_weak_edges", "merge_parallel_edges", "gather_topics"
LINK, MAINTAIN = "link_similar", "maintain"
DAILY = sorted([LINK, MAINTAIN, PRUNE])
DUPLICATES = "merge_duplicate_concepts"
CASES = "consolidate_cases"  # on Sundays, by the clock


@pytest.fixture
def alone(database_url: str, one_server: None, tmp_path: Path) -> Iterator[Settings]:
    """A database of the test's own: the scheduler looks at all spaces. Its gate is open unless a test closes it."""
    name = f"scheduler_{uuid4().hex[:12]}"
    asyncio.run(in_server(database_url, f"CREATE DATABASE {name} TEMPLATE {MADE}"))
    yield Settings.load(
        database_url=urlsplit(database_url)._replace(path=f"/{name}").geturl(),
        home=tmp_path,
        embedder="hashing:32",
        pool_size=3,
        gate_min_edges=0,
        gate_min_days=0,
        brake_share=1,
    )
    asyncio.run(in_server(database_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
async def memory(alone: Settings, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(alone) as engine:
        at(engine, START)
        yield engine


def at(memory: Engine, moment: datetime) -> None:
    """Move the clock."""
    memory.core.now = lambda: moment


def told(memory: Engine, **settings: Any) -> None:
    memory.core.settings = memory.core.settings.model_copy(update=settings)


async def link(memory: Engine, *pairs: tuple[UUID, UUID], **more: Any) -> None:
    told = {"strength": 0.5, "created_by": "auto", "created_at": LONG_AGO, **more}
    await memory.graph.link_many([NewEdge(source=a, target=b, **told) for a, b in pairs])


async def ring(memory: Engine, number: int) -> Sequence[UUID]:
    """Nodes in a ring of strong edges: none of these is ever pruned."""
    added = await memory.add_many([NewMemory(text=f"node {place}") for place in range(number)], wait=False)
    around = [*pairwise(added.ids), (added.ids[-1], added.ids[0])]
    await link(memory, *around, created_by="user", strength=0.9)
    return added.ids


async def weak_chords(memory: Engine, nodes: Sequence[UUID], number: int) -> None:
    """Edges across the ring that may all go."""
    await link(memory, *((nodes[place], nodes[place + 2]) for place in range(number)))


async def count_edges(memory: Engine) -> int:
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        return int(await raw.fetchval("SELECT count(*) FROM edges WHERE status = 'active'"))


async def times(memory: Engine) -> dict[str, Schedule]:
    return {one.name: one for one in await memory.schedules.list()}


async def only(memory: Engine, name: str) -> None:
    """Pause the others."""
    for one in await memory.schedules.list():
        if one.name != name:
            await memory.schedules.pause(one.name)


async def runs_of(memory: Engine) -> list[dict[str, Any]]:
    return [dict(run.report) for run in await memory.plans.runs() if run.action == "schedule"]


# -- what there is


async def test_A25_every_space_has_its_schedules_also_one_made_later(memory: Engine) -> None:
    await scheduled.register(memory.core)
    found = await times(memory)
    assert found.pop(CASES).cron == "0 2 * * sun"
    every = {name: one.every_minutes for name, one in found.items()}
    assert every == {MAINTAIN: 1440, LINK: 1440, PRUNE: 1440, MERGE: 10_080, DUPLICATES: 10_080, TOPICS: 20_160}
    for one in found.values():
        usual = START + timedelta(minutes=one.every_minutes or 0)
        assert usual <= one.next_run_at <= usual + timedelta(seconds=scheduled.JITTER_SECONDS)
    await memory.add_space("later")
    at(memory, START + A_DAY / 2)
    async with scheduler.leadership(memory.core) as lead:
        assert await scheduler.one_round(memory.core, lead) == []
    later = await times(await memory.in_space("later"))
    assert set(later) == {LINK, PRUNE, MERGE, DUPLICATES, TOPICS, CASES}
    assert later[PRUNE].next_run_at >= START + A_DAY * 1.5
    assert {name: one for name, one in (await times(memory)).items() if name != CASES} == found


async def test_A25_what_a_person_set_survives_the_next_start(memory: Engine) -> None:
    wanted = await memory.schedules.set("prune", cron="0 3 * * *", time_zone="Europe/Berlin")
    await memory.schedules.pause("topics")
    await scheduled.register(memory.core)
    found = await times(memory)
    assert found[PRUNE] == wanted
    assert not found[TOPICS].enabled


# -- what is due


async def test_A25_what_was_missed_for_three_weeks_is_caught_up_once(memory: Engine) -> None:
    await scheduled.register(memory.core)
    assert await scheduler.run_due(memory.core) == []
    at(memory, START + 21 * A_DAY)
    assert sorted(await scheduler.run_due(memory.core)) == sorted([*DAILY, MERGE, DUPLICATES, TOPICS, CASES])
    assert await scheduler.run_due(memory.core) == []
    at(memory, START + 22 * A_DAY)
    assert sorted(await scheduler.run_due(memory.core)) == DAILY
    at(memory, START + 28 * A_DAY)
    assert MERGE in await scheduler.run_due(memory.core)


async def test_A25_two_schedulers_do_a_due_thing_once(memory: Engine, alone: Settings) -> None:
    await weak_chords(memory, await ring(memory, 12), 3)
    await scheduled.register(memory.core)
    async with Engine(alone) as other:
        for engine in (memory, other):
            at(engine, START + 1.1 * A_DAY)
        async with scheduler.leadership(memory.core) as one, scheduler.leadership(other.core) as two:
            done = await asyncio.gather(scheduler.one_round(memory.core, one), scheduler.one_round(other.core, two))
        assert sorted(map(len, done)) == [0, 3]
        assert len(await runs_of(memory)) == 2


async def test_A25_even_without_a_leader_nothing_runs_twice(memory: Engine, alone: Settings) -> None:
    """A leader whose connection the server gave up may still be at work when the next one begins."""
    await weak_chords(memory, await ring(memory, 12), 3)
    await scheduled.register(memory.core)
    async with Engine(alone) as other:
        for engine in (memory, other):
            at(engine, START + 1.1 * A_DAY)
        done = await asyncio.gather(scheduler.run_due(memory.core), scheduler.run_due(other.core))
    assert sorted([*done[0], *done[1]]) == DAILY
    assert len(await runs_of(memory)) == 2


async def test_A25_when_the_leader_dies_another_takes_over(memory: Engine, alone: Settings) -> None:
    await scheduled.register(memory.core)
    async with Engine(alone) as other:
        at(other, START + 1.1 * A_DAY)
        async with scheduler.leadership(memory.core) as one, scheduler.leadership(other.core) as two:
            assert await one.take()
            assert await one.take()
            assert await scheduler.one_round(other.core, two) == []
            await cut_off(memory, "advisory")
            assert len(await scheduler.one_round(other.core, two)) == 3
            assert not await one.take()
            await two.let_go()
            assert await one.take()


async def cut_off(memory: Engine, kind: str) -> None:
    """End the connections that hold such a lock, as a broken network or a kill would."""
    async with memory.core.database.owner() as connection:
        raw = await driver(connection)
        ended = await raw.fetch(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = $1 AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            kind,
        )
    assert ended


CHILD = """
import asyncio, sys
from datetime import datetime
from recollect.schedules import scheduler
from recollect.engine.engine import Engine
from recollect.settings import Settings

async def main():
    async with Engine(Settings.load(database_url=sys.argv[1], embedder="hashing:32", gate_min_edges=0,
                                    gate_min_days=0, brake_share=1, home=sys.argv[3])) as memory:
        memory.core.now = lambda: datetime.fromisoformat(sys.argv[2])
        async with scheduler.leadership(memory.core) as lead:
            print(await scheduler.one_round(memory.core, lead), flush=True)

asyncio.run(main())
"""


async def test_A25_a_run_that_was_killed_is_still_due_and_is_finished(memory: Engine, alone: Settings) -> None:
    await weak_chords(memory, await ring(memory, 12), 3)
    await only(memory, PRUNE)
    now = START + 1.1 * A_DAY
    at(memory, now)
    before = (await times(memory))[PRUNE]
    assert alone.database_url
    child = [sys.executable, "-c", CHILD, alone.database_url.get_secret_value(), now.isoformat(), str(alone.home)]
    async with memory.core.database.owner() as connection:
        # So that the child has to wait in the midst of its run.
        await locks.take_turn(Transaction(connection, memory.space.id))
        process = programs.Popen[bytes](child, stdout=subprocess.PIPE)
        try:
            await until_proposed(memory)
            with pytest.raises(Busy, match="is running at this moment"):
                await memory.schedules.run("prune")
        finally:
            process.kill()
            process.communicate()
    assert (await times(memory))[PRUNE] == before
    assert await count_edges(memory) == 15
    with capture_logs() as lines, anyio.fail_after(HANG_SECONDS):
        async with scheduler.leadership(memory.core) as lead:
            # Until the server has noticed that the child is gone.
            while await scheduler.one_round(memory.core, lead) != [PRUNE]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
    assert [line for line in lines if line["event"] == "finishing what an earlier run left"]
    assert await count_edges(memory) == 12
    assert (await times(memory))[PRUNE].next_run_at > now
    assert PlanStatus.APPLIED in {plan.status for plan in (await memory.plans.list(policy=PRUNE))[0]}


async def test_A25_what_an_earlier_run_left_is_found_behind_any_number_of_plans_made_by_hand(memory: Engine) -> None:
    """Of all that wait only the newest twenty were looked at."""
    await weak_chords(memory, await ring(memory, 12), 3)
    await only(memory, PRUNE)
    left = await memory.plans.propose("prune", created_by=scheduled.SCHEDULE)
    async with memory.core.transaction(memory.space.id) as db:
        for number in range(25):
            later = memory.core.now() + timedelta(minutes=number + 1)
            await plans.save(db, Draft().plan(policy=PRUNE, title="by hand", now=later, created_by="user"))
    at(memory, START + 1.1 * A_DAY)
    async with scheduler.leadership(memory.core) as lead:
        assert await scheduler.one_round(memory.core, lead) == [PRUNE]
    assert (await memory.plans.get(left.id)).status is PlanStatus.APPLIED


async def until_proposed(memory: Engine) -> None:
    async def there_is_one() -> bool:
        return bool((await memory.plans.list(policy=PRUNE))[0])

    await until_it_holds(there_is_one)


async def test_A25_forever_means_round_after_round_until_cancelled(memory: Engine) -> None:
    await scheduled.register(memory.core)
    at(memory, START + 1.1 * A_DAY)

    async def has_run() -> bool:
        return (await times(memory))[MAINTAIN].last_outcome is not None

    task = asyncio.create_task(scheduler.schedule_forever(memory.core))
    await until_it_holds(has_run)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    async with scheduler.leadership(memory.core) as lead:
        assert await lead.take()


# -- one run


async def test_A01_A26_each_policy_runs_by_schedule_and_says_what_it_did(memory: Engine) -> None:
    nodes = await ring(memory, 12)
    await weak_chords(memory, nodes, 3)
    await link(memory, (nodes[0], nodes[6]), strength=0.9, created_at=START)
    await link(memory, (nodes[0], nodes[6]), strength=0.9, created_at=START, relation="extends")
    key = {"source_topic": "tag:tea", "target_topic": "tag:tea", "created_at": START, "strength": 0.9}
    await link(memory, (nodes[1], nodes[7]), (nodes[7], nodes[9]), **key)
    await scheduled.register(memory.core)
    at(memory, START + 15 * A_DAY)
    with capture_logs() as lines:
        await scheduler.run_due(memory.core)
    said = [line["event"] for line in lines if line.get("schedule") in (PRUNE, MERGE, TOPICS)]
    assert said == ["Pruned 3 edges", "Merged 1 edges", "Found 1 topics"]
    outcomes = {name: one.last_outcome for name, one in (await times(memory)).items()}
    expected = {MAINTAIN: "done", LINK: "Linked 0 pairs", PRUNE: said[0], MERGE: said[1], TOPICS: said[2]}
    expected |= {CASES: "Removed 0 cases, merged 0, archived 0", DUPLICATES: "Merged 0 duplicate pairs"}
    assert outcomes == expected
    assert {one.last_run_at for one in (await times(memory)).values()} == {START + 15 * A_DAY}
    assert {plan.created_by for plan in (await memory.plans.list())[0] if plan.policy in POLICIES} == {"schedule"}


async def test_A29_P14_every_run_leaves_a_report_also_when_there_was_nothing_to_do(memory: Engine) -> None:
    await weak_chords(memory, await ring(memory, 12), 1)
    await only(memory, PRUNE)
    for day in (1.1, 2.1):
        at(memory, START + day * A_DAY)
        await scheduler.run_due(memory.core)
    second, first = await runs_of(memory)
    assert [first[key] for key in ("said", "planned", "applied", "stale", "declined", "failed")] == [
        *("Pruned 1 edges", 1, 1, 0, 0, 0)
    ]
    assert second["said"] == "Pruned 0 edges"
    assert second["planned"] == 0
    for report in (first, second):
        assert report["seconds"] > 0
        assert all(type(figure["in_target"]) is bool for figure in report["metrics"].values())
    share = {"value": 1 / 13, "target": "0.05 to 0.15", "in_target": True}
    assert first["metrics"]["pruned_share"] == share
    assert not second["metrics"]["pruned_share"]["in_target"]
    assert {"runtime_seconds", "freed_bytes"} & set(first["metrics"])


async def test_A27_a_closed_gate_is_one_line_and_the_next_time(memory: Engine) -> None:
    told(memory, gate_min_edges=50, gate_min_days=14.0)
    await ring(memory, 12)
    await only(memory, PRUNE)
    at(memory, START + 1.1 * A_DAY)
    with capture_logs() as lines:
        assert await scheduler.run_due(memory.core) == [PRUNE]
        assert await scheduler.run_due(memory.core) == []
    assert [(line["event"], line["why"]) for line in lines if line.get("schedule") == PRUNE] == [
        ("skipped", "the graph has 12 edges, fewer than 50")
    ]
    after = (await times(memory))[PRUNE]
    assert after.last_outcome == "skipped: the graph has 12 edges, fewer than 50"
    assert after.next_run_at > START + 1.9 * A_DAY
    assert await runs_of(memory) == []


async def test_A27_the_gate_opens_with_fifty_edges_and_fourteen_days(memory: Engine) -> None:
    told(memory, gate_min_edges=50, gate_min_days=14.0)
    nodes = await ring(memory, 48)
    await link(memory, (nodes[0], nodes[9]), strength=0.9, created_at=START)
    why = await memory.plans.gate()
    assert why == "the graph has 49 edges, fewer than 50"
    await link(memory, (nodes[0], nodes[20]), strength=0.9, created_at=START)
    assert await memory.plans.gate() is None
    at(memory, LONG_AGO + timedelta(days=13.99))
    assert "wait for 14 days" in (await memory.plans.gate() or "")
    at(memory, LONG_AGO + timedelta(days=14))
    assert await memory.plans.gate() is None
    told(memory, graph_enabled=False)
    assert "switched off" in (await memory.plans.gate() or "")


async def test_A27_pruning_the_oldest_edge_does_not_close_the_gate(memory: Engine) -> None:
    told(memory, gate_min_edges=50, gate_min_days=14.0)
    added = await memory.add_many([NewMemory(text=f"node {place}") for place in range(60)], wait=False)
    nodes = added.ids
    around = [*pairwise(nodes), (nodes[-1], nodes[0])]
    await link(memory, *around, created_by="user", created_at=START - A_DAY, strength=0.9)
    await link(memory, (nodes[0], nodes[2]), created_at=LONG_AGO)
    await only(memory, PRUNE)
    for day in (1.1, 2.1):
        at(memory, START + day * A_DAY)
        assert PRUNE in await scheduler.run_due(memory.core)
    assert [report["said"] for report in await runs_of(memory)] == ["Pruned 0 edges", "Pruned 1 edges"]


async def test_A27_by_hand_the_gate_is_passed_with_a_warning(memory: Engine) -> None:
    told(memory, gate_min_edges=50)
    await weak_chords(memory, await ring(memory, 12), 2)
    before = (await times(memory))[PRUNE]
    ran = await memory.schedules.run("prune")
    assert (ran.status, ran.outcome) == ("done", "Pruned 2 edges")
    assert ran.warnings == ("The schedule would not have run this: the graph has 14 edges, fewer than 50.",)
    after = (await times(memory))[PRUNE]
    assert (after.last_run_at, after.last_outcome) == (START, "Pruned 2 edges")
    assert after.next_run_at == before.next_run_at


async def test_run_now_counts_as_the_run_that_was_due(memory: Engine) -> None:
    await scheduled.register(memory.core)
    at(memory, START + 1.1 * A_DAY)
    await memory.schedules.run("prune")
    assert sorted(await scheduler.run_due(memory.core)) == [LINK, MAINTAIN]


async def test_what_is_paused_does_not_run_and_is_not_caught_up(memory: Engine) -> None:
    await only(memory, PRUNE)
    assert not (await memory.schedules.pause("prune")).enabled
    at(memory, START + 5 * A_DAY)
    assert await scheduler.run_due(memory.core) == []
    assert (await memory.schedules.run("prune")).status == "done"
    assert not (await times(memory))[PRUNE].enabled
    resumed = await memory.schedules.resume("prune")
    assert resumed.next_run_at >= START + 6 * A_DAY
    assert await scheduler.run_due(memory.core) == []
    at(memory, START + 6.1 * A_DAY)
    assert await scheduler.run_due(memory.core) == [PRUNE]


async def test_a_time_set_during_a_run_is_kept(memory: Engine) -> None:
    """The run ends with the row as it was when it began; what a person set meanwhile stands."""
    old = await memory.schedules.get("prune")
    at(memory, START + 2 * A_DAY)
    wanted = await memory.schedules.set("prune", every_minutes=60)
    async with memory.core.transaction(memory.space.id) as db:
        running = scheduled._Running(memory.core, old, by_hand=False)
        await running._move_on(db, "done")
    after = (await times(memory))[PRUNE]
    assert after.next_run_at == wanted.next_run_at
    assert after.last_outcome == "done"


async def test_other_options_do_not_put_a_run_off(memory: Engine) -> None:
    before = (await times(memory))[PRUNE]
    at(memory, START + A_DAY / 2)
    for wanted in ({"options": {"threshold": 0.03}}, {"every_minutes": before.every_minutes}, {}):
        changed = await memory.schedules.set("prune", **wanted)
        assert changed.next_run_at == before.next_run_at
    assert changed.options == {"threshold": 0.03}
    assert (await memory.schedules.set("prune", every_minutes=60)).next_run_at < before.next_run_at


async def test_E29_by_cron_in_a_zone(memory: Engine) -> None:
    wanted = await memory.schedules.set("merge-edges", cron="0 2 * * sun", time_zone="Europe/Berlin", jitter_seconds=0)
    assert wanted.every_minutes is None
    assert wanted.next_run_at == datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
    at(memory, datetime(2026, 12, 24, 12, 0, tzinfo=UTC))
    assert MERGE in await scheduler.run_due(memory.core)
    assert (await times(memory))[MERGE].next_run_at == datetime(2026, 12, 27, 1, 0, tzinfo=UTC)


async def test_a_policy_that_is_not_scheduled_can_be(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, LINK, replace(POLICIES[LINK], every_minutes=None))
    with pytest.raises(NotFound, match="Nothing called 'link_similar' is scheduled"):
        await memory.schedules.pause("link")
    made = await memory.schedules.set("link", every_minutes=60, options={"min_similarity": 0.9})
    assert made.name == "link_similar"
    at(memory, made.next_run_at)
    assert "link_similar" in await scheduler.run_due(memory.core)
    (look,) = [run for run in await memory.plans.runs() if run.report.get("policy") == "link_similar"]
    assert look.report["options"]["min_similarity"] == 0.9


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"every_minutes": 0}, "every_minutes"),
    ({"every_minutes": 60, "cron": "0 2 * * sun"}, "cron"),
    ({"cron": "every day"}, "cron"),
    ({"time_zone": "Europe/Atlantis"}, "time_zone"),
    ({"time_zone": "../../etc/passwd"}, "time_zone"),
    ({"time_zone": "Europe"}, "time_zone"),
    ({"jitter_seconds": -1}, "jitter_seconds"),
    ({"options": {"no": "such"}}, "no"),
]


async def test_what_makes_no_sense_changes_nothing(memory: Engine) -> None:
    before = await times(memory)
    for wanted, field in REFUSED:
        with pytest.raises(InvalidInput) as refused:
            await memory.schedules.set("prune", **wanted)
        assert refused.value.field == field
    with pytest.raises(NotFound, match="can be scheduled"):
        await memory.schedules.run("no such thing")
    assert await times(memory) == before


async def test_maintenance_concerns_every_space_and_is_set_at_home(memory: Engine) -> None:
    await memory.add_space("other")
    other = await memory.in_space("other")
    with pytest.raises(InvalidInput, match="concerns every space"):
        await other.schedules.set("maintain", every_minutes=60)
    with pytest.raises(InvalidInput, match="has no options"):
        await memory.schedules.set("maintain", options={"backup": False})


# -- who is told


class Hook(LocalServer[Received]):
    def answer(self, request: Received) -> Reply:
        return json_reply({})


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook(Received) as hook:
        yield hook


async def test_P10_a_plan_that_waits_is_told_once_a_run_and_no_second_one_is_made(memory: Engine, hook: Hook) -> None:
    told(memory, brake_share=0.15, brake_at_least=10, notify=SecretStr(f"webhook:{hook.url}/secret"))
    assert notices.is_anybody_told(memory.core)
    nodes = await ring(memory, 12)
    await weak_chords(memory, nodes, 6)
    await only(memory, PRUNE)
    for day in (1.1, 2.1):
        at(memory, START + day * A_DAY)
        assert await scheduler.run_due(memory.core) == [PRUNE]
    (plan,) = (await memory.plans.list(policy=PRUNE))[0]
    assert plan.status is PlanStatus.PROPOSED
    first, second = (request.body for request in hook.received)
    assert (first["kind"], first["title"], first["space"]) == ("waiting", "A plan waits for approval", "default")
    assert "it touches 6 of 18 links" in first["text"]
    assert f"`recollect apply {str(plan.id)[:8]}`" in first["text"]
    assert f"`recollect apply {str(plan.id)[:8]}`" in second["text"]
    assert "The plan of 2026-11-16 still waits" in second["text"]
    assert first["facts"]["planned"] == second["facts"]["planned"] == 6
    await memory.plans.approve(plan.id)
    at(memory, START + 3.1 * A_DAY)
    assert await scheduler.run_due(memory.core) == [PRUNE]
    assert await count_edges(memory) == 12
    assert len(hook.received) == 2


async def test_a_run_that_fails_is_told_and_comes_again_at_its_next_time(memory: Engine, hook: Hook) -> None:
    told(memory, notify=SecretStr(f"webhook:{hook.url}/secret"))
    await only(memory, PRUNE)
    await weak_chords(memory, await ring(memory, 12), 1)
    async with memory.core.database.owner() as connection:
        raw = await driver(connection)
        await raw.execute("""UPDATE schedules SET options = '{"threshold": -1}' WHERE name = 'prune_weak_edges'""")
    at(memory, START + 1.1 * A_DAY)
    assert await scheduler.run_due(memory.core) == [PRUNE]
    (request,) = hook.received
    assert (request.body["kind"], request.body["title"]) == ("failed", f"{PRUNE} failed")
    assert "threshold" in request.body["text"]
    after = (await times(memory))[PRUNE]
    assert (after.last_outcome or "").startswith("failed: ")
    assert after.next_run_at > START + 1.9 * A_DAY
    assert [report["status"] for report in await runs_of(memory)] == ["failed"]
    with pytest.raises(InvalidInput):
        await memory.schedules.run("prune")


async def test_a_fault_of_ours_in_one_policy_does_not_stop_the_others(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> Any:
        raise ZeroDivisionError("a fault")

    monkeypatch.setitem(POLICIES, PRUNE, replace(POLICIES[PRUNE], propose=broken))
    await scheduled.register(memory.core)
    at(memory, START + 8 * A_DAY)
    assert set(await scheduler.run_due(memory.core)) == {*DAILY, MERGE, DUPLICATES, CASES}
    outcomes = {name: one.last_outcome for name, one in (await times(memory)).items()}
    assert outcomes[PRUNE] == "failed: ZeroDivisionError: a fault"
    assert outcomes[MERGE] == "Merged 0 edges"


async def test_E30_a_policy_that_reports_sends_its_report_after_each_run(
    memory: Engine, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, PRUNE, replace(POLICIES[PRUNE], report="Consolidation Report"))
    told(memory, notify=SecretStr(f"log, webhook:{hook.url}/x"))
    await weak_chords(memory, await ring(memory, 12), 2)
    await only(memory, PRUNE)
    at(memory, START + 1.1 * A_DAY)
    await scheduler.run_due(memory.core)
    (request,) = hook.received
    assert (request.body["kind"], request.body["title"]) == ("report", "Consolidation Report")
    assert request.body["text"].startswith("Pruned 2 edges.\n2 planned, 2 applied, 0 stale, 0 declined, 0 failed; ")
    assert "pruned_share: 0.1429 (in target: 0.05 to 0.15)" in request.body["text"]


async def test_a_notice_that_cannot_be_sent_breaks_no_run(memory: Engine, hook: Hook) -> None:
    hook.every_reply = Reply(status=404)
    told(memory, notify=SecretStr(f"webhook:{hook.url}/secret"), production=True)
    policy = POLICIES[PRUNE]
    assert policy.risk is Risk.LOW
    told(memory, brake_share=0.01, brake_at_least=1)
    await weak_chords(memory, await ring(memory, 12), 2)
    await only(memory, PRUNE)
    at(memory, START + 1.1 * A_DAY)
    with capture_logs() as lines:
        assert await scheduler.run_due(memory.core) == [PRUNE]
    (line,) = [line for line in lines if line["event"] == "somebody could not be told"]
    assert "answered 404: check RECOLLECT_NOTIFY" in line["why"]
    assert "secret" not in str(line)
    assert "The plan waits for approval" in ((await times(memory))[PRUNE].last_outcome or "")


async def test_a_test_notice_says_who_heard_it(memory: Engine, hook: Hook) -> None:
    assert not notices.is_anybody_told(memory.core)
    memory.core._notifiers = None
    told(memory, notify=SecretStr(f"webhook:{hook.url}/secret"))
    assert await memory.schedules.recipients() == ["log", f"webhook:{hook.url}"]
    assert [(one.name, one.problem) for one in await memory.schedules.test_notice()] == [
        ("log", None),
        (f"webhook:{hook.url}", None),
    ]
    assert hook.received[0].body["kind"] == "test"
