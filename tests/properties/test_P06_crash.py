"""P06: kill the process, or the database, at any moment. Each group is in its old or its new state, never a mix;
applying again finishes; undo restores the first state byte for byte."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from recollect import Recollect
from recollect.model import NewEdge, NewMemory
from recollect.plan import PlanStatus
from recollect.settings import Settings
from recollect.store.database import driver
from recollect.store.embedded import EmbeddedServer

TRIANGLES = 600
BATCH = 2
LONG_AGO = datetime.now(UTC) - timedelta(days=200)

# Applies a plan and says when it begins; it is killed somewhere on the way.
CHILD = """
import sys
from recollect import Recollect
from recollect.settings import Settings
url, space, plan = sys.argv[1:]
with Recollect(settings=Settings.load(database_url=url, space=space, embedder="hashing:64"), worker=False) as memory:
    memory.plans.apply(plan, progress=lambda done, total: print(done, flush=True))
"""


def opened(url: str, space: str = "default") -> Recollect:
    return Recollect(settings=Settings.load(database_url=url, space=space, embedder="hashing:64"), worker=False)


def weak_triangles(memory: Recollect, number: int) -> None:
    added = memory.add_many([NewMemory(text=f"node {place}") for place in range(3 * number)], wait=False)
    nodes = added.ids
    told: dict[str, Any] = {"strength": 0.3, "created_by": "auto", "created_at": LONG_AGO}
    memory.graph.link_many(
        [
            NewEdge(source=nodes[at + a], target=nodes[at + b], **told)
            for at in range(0, len(nodes), 3)
            for a, b in ((0, 1), (1, 2), (2, 0))
        ]
    )


def table(memory: Recollect, query: str) -> list[Any]:
    async def fetch() -> list[Any]:
        async with memory.core.transaction(memory.space.id) as connection:
            return list(await (await driver(connection)).fetch(query))

    return list(memory._portal.call(fetch))


def edges(memory: Recollect) -> list[Any]:
    return [row["row"] for row in table(memory, "SELECT to_jsonb(e) - 'changed_in' AS row FROM edges e ORDER BY e.id")]


def assert_no_group_is_half_done(memory: Recollect, plan: UUID) -> int:
    """Every decision of a group is applied, with its edge pruned, or none is. Returns how many groups are done."""
    rows = table(
        memory,
        f"""SELECT d.group_number, bool_and(d.status = 'applied') AS done, bool_or(d.status = 'applied') AS begun,
                   bool_and(e.status = 'pruned') AS pruned, bool_or(e.status = 'pruned') AS some
              FROM decisions d JOIN edges e ON e.space_id = d.space_id AND e.id = d.subject
             WHERE d.plan_id = '{plan}' GROUP BY 1""",
    )
    for row in rows:
        assert row["done"] == row["begun"] == row["pruned"] == row["some"], dict(row)
    return sum(row["done"] for row in rows)


def begun(url: str, space: str, plan: UUID) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, space, str(plan)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "0"
    return child


def ended(child: subprocess.Popen[Any]) -> None:
    child.wait(timeout=60)
    if child.stdout is not None:
        child.stdout.close()


@pytest.fixture
def chance() -> random.Random:
    return random.Random(20261115)


def test_A28_P06_killed_appliers_leave_no_group_half_done(database_url: str, chance: random.Random) -> None:
    with opened(database_url) as main:
        space = f"crash-{os.getpid()}"
        main.add_space(space)
        memory = main.in_space(space)
        weak_triangles(memory, TRIANGLES)
        before = edges(memory)
        plan = memory.plans.propose("prune", {"batch": BATCH})
        assert len(plan.decisions) == TRIANGLES
        done = 0
        for _ in range(5):
            child = begun(database_url, space, plan.id)
            time.sleep(chance.uniform(0.0, 0.35))
            child.send_signal(signal.SIGKILL)
            ended(child)
            now_done = assert_no_group_is_half_done(memory, plan.id)
            assert now_done >= done
            done = now_done
        outcome = memory.plans.apply(plan.id)
        assert outcome.applied == TRIANGLES - done * BATCH
        assert memory.plans.get(plan.id, decisions=False).status is PlanStatus.APPLIED
        assert "interrupted" in {run.status for run in memory.plans.runs(plan.id)}
        memory.plans.undo(plan.id)
        assert edges(memory) == before


@pytest.fixture
def own_server(new_home: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(new_home)
    yield server
    server.release()


def postmaster(home: Path) -> int:
    (file,) = home.rglob("postmaster.pid")
    return int(file.read_text().splitlines()[0])


def test_A28_P06_a_killed_database_leaves_no_group_half_done(
    own_server: EmbeddedServer, new_home: Path, chance: random.Random
) -> None:
    url = own_server.start()
    with opened(url) as memory:
        weak_triangles(memory, TRIANGLES)
        before = edges(memory)
        plan = memory.plans.propose("prune", {"batch": BATCH})
    for _ in range(3):
        child = begun(url, "default", plan.id)
        time.sleep(chance.uniform(0.0, 0.3))
        os.kill(postmaster(new_home), signal.SIGKILL)
        ended(child)
        url = own_server.start()
        with opened(url) as memory:
            assert_no_group_is_half_done(memory, plan.id)
    with opened(url) as memory:
        memory.plans.apply(plan.id)
        assert memory.plans.get(plan.id, decisions=False).status is PlanStatus.APPLIED
        memory.plans.undo(plan.id)
        assert edges(memory) == before


def test_P06_two_appliers_and_an_undo_at_once_never_interleave(database_url: str) -> None:
    with opened(database_url) as main:
        space = f"race-{os.getpid()}"
        main.add_space(space)
        memory = main.in_space(space)
        weak_triangles(memory, TRIANGLES // 4)
        before = edges(memory)
        plan = memory.plans.propose("prune", {"batch": BATCH})
        children: list[subprocess.Popen[Any]] = [begun(database_url, space, plan.id)]
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", CHILD, database_url, space, str(plan.id)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        undone = memory.plans.undo(plan.id)
        for child in children:
            ended(child)
        after = edges(memory)
        gone = sum(row["status"] == "pruned" for row in after)
        assert undone.applied == TRIANGLES // 4
        # Whoever came last: all of the plan is undone and stays so, for an undone plan is not applied again.
        assert gone == 0
        assert after == before
