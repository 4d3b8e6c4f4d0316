"""A server has a large space looked through by a process of its own: the same plan, refusals and ends told here."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import anyio
import asyncpg
import pytest
from sqlalchemy import text

from recollect.engine.engine import Engine
from recollect.errors import DatabaseProblem, RecollectError
from recollect.plan import Plan
from recollect.plans import process, propose
from recollect.plans.process import ProposalRequest
from recollect.plans.registry import policy_named
from recollect.store.embedded import EmbeddedServer
from tests.case_support import NOW, a_case, direction, stopped, with_vector
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A bank in which two cases are the same and one fails, as a server has it, however small it is."""
    stopped(memory)
    same = [await a_case(memory, f"how do I reset it{'?' * number}", uses=5 + number) for number in range(2)]
    for case in same:
        await with_vector(memory, case, direction(1.0))
    await with_vector(memory, await a_case(memory, "why is it slow", uses=50, rate=5.0), direction(0.0, 1.0))
    monkeypatch.setattr(memory.core, "serves", True)
    monkeypatch.setattr(propose, "LARGE", 0)
    return memory


class Started:
    """The processes that were started, while a test looks on; `held` ones do nothing, and are found at their work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, held: bool = False) -> None:
        self.children: list[asyncio.subprocess.Process] = []
        self.most_at_a_time = 0
        self.there_is_one = asyncio.Event()
        start = asyncio.create_subprocess_exec

        async def noted(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
            self.children.append(await start(*arguments, **options))
            if held:
                self.children[-1].send_signal(signal.SIGSTOP)
            living = [child for child in self.children if child.returncode is None]
            self.most_at_a_time = max(self.most_at_a_time, len(living))
            self.there_is_one.set()
            return self.children[-1]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)


def said(plan: Plan) -> list[tuple[str, UUID, str, tuple[int, ...]]]:
    return [(one.verb, one.subject, one.reason, one.needs) for one in plan.decisions]


def asked(memory: Engine) -> ProposalRequest:
    options = policy_named("cases").options()
    dsn = memory.core.database.dsn
    return ProposalRequest(dsn=dsn, space_id=memory.space.id, policy="consolidate_cases", options=options, now=NOW)


async def test_E18_what_another_process_proposes_is_what_this_one_would(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch)
    elsewhere = await served.plans.propose("cases")
    assert len(started.children) == 1
    served.core.serves = False
    here = await served.plans.propose("cases")
    assert len(started.children) == 1
    assert said(elsewhere) == said(here)
    assert {one.verb for one in here.decisions} == {"archive", "merge"}
    shown = await served.plans.get(elsewhere.id)
    assert said(shown) == said(elsewhere)
    assert (await served.plans.apply(here.id)).applied == len(elsewhere.decisions)


async def test_a_small_space_is_looked_through_here(served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propose, "LARGE", 3)
    started = Started(monkeypatch)
    assert (await served.plans.propose("cases")).decisions
    assert not started.children


async def test_a_long_plan_comes_whole_and_in_order(served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = await served.plans.propose("cases")
    long = [replace(plan.decisions[0], number=number) for number in range(1, 2 * process.PIECE + 8)]
    pieces = list(process._in_pieces(replace(plan, decisions=long)))
    assert [len(piece) for piece in pieces[1:]] == [process.PIECE, process.PIECE, 7]
    assert [one for piece in pieces[1:] for one in piece] == long


@pytest.mark.usefixtures("one_server")
async def test_what_the_other_process_refuses_is_said_here(served: Engine) -> None:
    nowhere = served.core.database.dsn.replace("/recollect?", f"/nowhere_{uuid4().hex[:8]}?")
    with pytest.raises(DatabaseProblem, match="createdb"):
        await process.proposed(replace(asked(served), dsn=nowhere))


async def test_a_recollect_installed_meanwhile_does_not_upgrade_the_database_below_the_server(
    served: Engine, new_home: Path
) -> None:
    with EmbeddedServer(new_home) as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute("UPDATE recollect.alembic_version SET version_num = '0009'")
        with pytest.raises(DatabaseProblem, match="start the server anew"):
            await process.proposed(replace(asked(served), dsn=server.url))
        assert await connection.fetchval("SELECT version_num FROM recollect.alembic_version") == "0009"
        await connection.close()


async def test_a_process_that_is_killed_is_told_of_and_nothing_changed(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch, held=True)
    proposing = asyncio.create_task(served.plans.propose("cases"))
    await started.there_is_one.wait()
    os.kill(started.children[0].pid, signal.SIGKILL)
    with pytest.raises(RecollectError, match=r"broke off .*Try again"):
        await proposing
    found, _ = await served.plans.list()
    assert not found


async def test_many_who_ask_at_once_do_not_start_as_many_processes(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Started(monkeypatch)
    plans = await asyncio.gather(*(served.plans.propose("cases") for _ in range(4)))
    assert [said(plan) for plan in plans] == [said(plans[0])] * 4
    assert len(started.children) == 4
    assert started.most_at_a_time <= 2


async def test_whoever_gives_up_leaves_no_process_behind(served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, held=True)
    proposing = asyncio.create_task(served.plans.propose("cases"))
    await started.there_is_one.wait()
    proposing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await proposing
    assert started.children[0].returncode == -signal.SIGKILL


async def test_S09_a_server_that_closes_leaves_no_process_behind(
    served: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By anyio, which cancels again at every await."""
    started = Started(monkeypatch, held=True)
    async with anyio.create_task_group() as group:
        group.start_soon(served.plans.propose, "cases")
        await started.there_is_one.wait()
        group.cancel_scope.cancel()
    assert started.children[0].returncode == -signal.SIGKILL


async def test_S09_a_server_that_is_killed_leaves_no_process_behind(memory: Engine) -> None:
    proposing = f"import asyncio, pickle, sys; from {process.__name__} import proposed"
    command = [sys.executable, "-c", f"{proposing}; asyncio.run(proposed(pickle.load(sys.stdin.buffer)))"]
    async with memory.core.database.owner() as connection:
        await connection.execute(text("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE"))

        async def somebody_waits() -> object:
            found = await connection.execute(text("SELECT 1 FROM pg_locks WHERE NOT granted"))
            return found.first()

        async def child_has_ended() -> bool:
            return not _command_line(child)

        server = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)
        try:
            assert server.stdin is not None
            server.stdin.write(pickle.dumps(asked(memory)))
            await until_it_holds(somebody_waits)
            child = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text())
        finally:
            server.kill()
            await server.wait()
        await until_it_holds(child_has_ended)


def _command_line(process: int) -> bytes:
    """Empty for one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""
