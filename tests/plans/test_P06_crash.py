"""P06: kill the process, or the database, at any moment. Each group is in its old or its new state, never a mix;
applying again finishes; undo restores the first state byte for byte.

A moment is counted in decisions, not in seconds: whoever is to be killed tells how far it is and stops by itself
before the end, so it is always found on its way, however fast or slow the machine is."""

import os
import random
import signal
import subprocess
import sys
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
from recollect.store.embedded import EmbeddedServer
from tests import programs
from tests.plan_support import fetched
from tests.waiting import HANG_SECONDS, until

TRIANGLES = 600
BATCH = 2
LONG_AGO = datetime.now(UTC) - timedelta(days=200)

# Applies a plan and tells how far it is; once it has done `most` decisions it waits for its stdin to be closed.
CHILD = """
import sys
from recollect import Recollect
from recollect.settings import Settings
url, space, plan, most = sys.argv[1:]
def tell(done, total):
    print(done, flush=True)
    if done >= int(most):
        sys.stdin.readline()
with Recollect(settings=Settings.load(database_url=url, space=space, embedder="hashing:64"), worker=False) as memory:
    memory.plans.apply(plan, progress=tell)
"""
NAME = "to-be-killed"  # under which a child is known to the database
EVERYTHING = 1_000_000
# How far a child gets at most before it is killed (five times is less than all), and how far it may go on meanwhile.
FARTHEST, LEEWAY = 90, 8 * BATCH


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


def edges(memory: Recollect) -> list[Any]:
    return [
        row["row"] for row in fetched(memory, "SELECT to_jsonb(e) - 'changed_in' AS row FROM edges e ORDER BY e.id")
    ]


def assert_no_group_is_half_done(memory: Recollect, plan: UUID) -> int:
    """Every decision of a group is applied, with its edge pruned, or none is. Returns how many groups are done."""
    rows = fetched(
        memory,
        f"""SELECT d.group_number, bool_and(d.status = 'applied') AS done, bool_or(d.status = 'applied') AS begun,
                   bool_and(e.status = 'pruned') AS pruned, bool_or(e.status = 'pruned') AS some
              FROM decisions d JOIN edges e ON e.space_id = d.space_id AND e.id = d.subject
             WHERE d.plan_id = '{plan}' GROUP BY 1""",
    )
    for row in rows:
        assert row["done"] == row["begun"] == row["pruned"] == row["some"], dict(row)
    return sum(row["done"] for row in rows)


def begun(url: str, space: str, plan: UUID, most: int = EVERYTHING) -> "subprocess.Popen[str]":
    """A process that applies the plan."""
    named = f"{url}{'&' if '?' in url else '?'}application_name={NAME}"
    return programs.Popen(
        [sys.executable, "-c", CHILD, named, space, str(plan), str(most)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def until_done(child: "subprocess.Popen[str]", decisions: int) -> None:
    """Until the child says that it has carried out so many."""
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= decisions:
            return
    raise AssertionError("the child has ended too early")


def ended(child: "subprocess.Popen[str]") -> None:
    child.communicate(timeout=HANG_SECONDS)


def until_the_database_knows(memory: Recollect) -> None:
    """Until no server process works for a killed child any more: its last COMMIT may have been on the way."""
    until(lambda: not fetched(memory, f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{NAME}'"))


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
            moment = BATCH * chance.randint(0, FARTHEST // BATCH)  # a whole number of groups, as it tells them
            child = begun(database_url, space, plan.id, moment + LEEWAY)
            until_done(child, moment)
            child.send_signal(signal.SIGKILL)
            ended(child)
            until_the_database_knows(memory)
            now_done = assert_no_group_is_half_done(memory, plan.id)
            assert moment <= BATCH * (now_done - done) <= moment + LEEWAY
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
        moment = chance.randint(0, FARTHEST)
        child = begun(url, "default", plan.id, moment + LEEWAY)
        until_done(child, moment)
        os.kill(postmaster(new_home), signal.SIGKILL)
        ended(child)
        assert child.returncode != 0
        url = own_server.start()
        with opened(url) as memory:
            assert BATCH * assert_no_group_is_half_done(memory, plan.id) < TRIANGLES
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
        children = [begun(database_url, space, plan.id)]
        until_done(children[0], 0)
        children.append(begun(database_url, space, plan.id))
        undone = memory.plans.undo(plan.id)
        for child in children:
            ended(child)
        after = edges(memory)
        gone = sum(row["status"] == "pruned" for row in after)
        assert undone.applied == TRIANGLES // 4
        # Whoever came last: all of the plan is undone and stays so, for an undone plan is not applied again.
        assert gone == 0
        assert after == before
