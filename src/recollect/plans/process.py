"""Letting a policy propose in a process of its own.

Looking through a large space is much work for Python, and Python does one thing at a time: whoever asks the same
process something meanwhile would wait. So a server leaves it to a process that makes way for all others, reads the
space by itself, and hands the plan back piece by piece. The server saves it, as it does with every other. However the
server ends, that process ends with it.
"""

import asyncio
import os
import pickle
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import anyio

from recollect.errors import DatabaseProblem, RecollectError
from recollect.plan import Decision, Plan
from recollect.plans.registry import policy_named
from recollect.plans.sql.reader import StoreReader
from recollect.plans.throttle import LAST_IN_LINE
from recollect.providers.executors import make_executor
from recollect.store.prepare import open_database

# So many decisions are handed over at a time: taking them in is a matter of milliseconds.
PIECE = 250
LENGTH = 8
# -P: what lies in the directory one happens to be in is not taken for a module.
CHILD = (sys.executable, "-P", "-c", f"from {__name__} import answer; answer()")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalRequest:
    """Which policy is to look through which space, and how."""

    dsn: str
    space_id: UUID
    policy: str
    options: Any
    now: datetime
    # The cluster to use, as the settings name it: connections are not handed on.
    ray: str = ""


async def proposed(asked: ProposalRequest) -> Plan:
    """What a policy proposes, worked out by another process; what it refuses is raised here."""
    child = await asyncio.create_subprocess_exec(*CHILD, stdin=PIPE, stdout=PIPE, start_new_session=True)
    try:
        assert child.stdin
        child.stdin.write(pickle.dumps(asked))  # and left open: it ends with this process, as the other one sees
        return await _received(child)
    finally:
        if child.returncode is None:
            child.kill()
        with anyio.CancelScope(shield=True):
            await child.wait()


async def _received(child: asyncio.subprocess.Process) -> Plan:
    plan: Plan | None = None
    decisions: list[Decision] = []
    async for piece in _pieces(child):
        if isinstance(piece, RecollectError):
            raise piece
        if isinstance(piece, Plan):
            plan = piece
        else:
            decisions += piece
    if await child.wait() or plan is None:
        raise RecollectError(
            f"The process that looked through the space broke off ({child.returncode}): nothing changed. Try again."
        )
    return replace(plan, decisions=decisions)


async def _pieces(child: asyncio.subprocess.Process) -> AsyncIterator[Any]:
    assert child.stdout
    try:
        while length := await child.stdout.read(1):
            length += await child.stdout.readexactly(LENGTH - 1)
            yield pickle.loads(await child.stdout.readexactly(int.from_bytes(length)))
    except asyncio.IncompleteReadError:
        return  # it broke off, as its end will say


# -- the other process


def answer() -> None:
    """Read what is asked, and write the plan, or why there is none."""
    if hasattr(os, "nice"):
        os.nice(LAST_IN_LINE)
    asked = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    for piece in asyncio.run(_answered(asked)):
        written = pickle.dumps(piece)
        sys.stdout.buffer.write(len(written).to_bytes(LENGTH) + written)


def _end_with_the_asker() -> None:
    """Nobody takes the plan of a server that was killed. Nothing is written here, so nothing has to be closed."""
    os.read(sys.stdin.fileno(), 1)  # nothing comes, but the end
    os._exit(1)


async def _answered(asked: ProposalRequest) -> Iterator[Any]:
    try:
        return _in_pieces(await _proposed(asked))
    except RecollectError as problem:
        return iter([problem])


async def _proposed(asked: ProposalRequest) -> Plan:
    database = await open_database(asked.dsn, pool_size=1, before_upgrade=_leave_it)
    executor = make_executor(asked.ray, must_answer=False)  # it did when the server started
    try:
        async with database.snapshot(asked.space_id) as db:
            reader = StoreReader(db, executor)
            plan = await policy_named(asked.policy).propose(reader, asked.options, asked.now)
            return replace(plan, seen=await reader.version())
    finally:
        if executor:
            executor.close()
        await database.close()


async def _leave_it(revision: str) -> None:
    """A Recollect that was installed while the old one serves: it is not for this process to upgrade the database."""
    raise DatabaseProblem(
        f"Another Recollect was installed since the server was started (the database stands at {revision}): start the "
        "server anew. Nothing changed."
    )


def _in_pieces(plan: Plan) -> Iterator[Any]:
    yield replace(plan, decisions=())
    for first in range(0, len(plan.decisions), PIECE):
        yield plan.decisions[first : first + PIECE]
