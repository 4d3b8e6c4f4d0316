"""What tests of plans share: a memory whose clock stands where it is put, links, concepts, and every row there is."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from recollect import Recollect
from recollect.engine.engine import Engine
from recollect.model import NewEdge, NewMemory
from recollect.store.database import driver

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=100)
# Concepts of the same text are merged, and nobody is asked.
TWINS: dict[str, Any] = {"ask_about": (), "threshold": 0.5, "review": 0.5, "precision": 0.0}


def at(memory: Engine, moment: datetime) -> None:
    memory.core.now = lambda: moment


async def some_nodes(memory: Engine, number: int) -> list[UUID]:
    added = await memory.add_many([NewMemory(text=f"node {place}") for place in range(number)], wait=False)
    return list(added.ids)


async def some_concepts(memory: Engine, *names: str) -> list[UUID]:
    return [(await memory.concepts.add(name)).concept.id for name in names]


async def link(memory: Engine, *pairs: tuple[UUID, UUID], **more: Any) -> list[UUID]:
    """Weak edges, made long ago by the machine."""
    told = {"strength": 0.5, "created_by": "auto", "created_at": LONG_AGO, **more}
    return list(await memory.graph.link_many([NewEdge(source=a, target=b, **told) for a, b in pairs]))


async def last_plan(memory: Engine) -> UUID:
    """The plan that was made last, by hand or by a policy."""
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        id_: UUID = await raw.fetchval("SELECT id FROM plans ORDER BY xmin::text::bigint DESC LIMIT 1")
    return id_


async def unlink(memory: Engine, edge: UUID) -> UUID:
    """Take an edge out of the graph; returns the plan that did."""
    known = {one.plan_id for one in await memory.history(edge)}
    await memory.graph.unlink(edge)
    (plan,) = {one.plan_id for one in await memory.history(edge)} - known
    assert plan is not None
    return plan


def fetched(memory: Recollect, query: str) -> list[Any]:
    """What a query finds in the space of a synchronous memory."""

    async def fetch() -> list[Any]:
        async with memory.core.transaction(memory.space.id) as db:
            return list(await (await driver(db)).fetch(query))

    return list(memory._portal.call(fetch))


async def edge_rows(memory: Engine) -> dict[UUID, dict[str, Any]]:
    """Every edge there is, retired ones too, as rows."""
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        found = await raw.fetch("SELECT id, to_jsonb(t) - 'changed_in' AS row FROM edges t ORDER BY id")
    return {row["id"]: row["row"] for row in found}


async def world(memory: Engine) -> list[list[dict[str, Any]]]:
    """Every row of what plans change: what an exact restoring is compared by."""
    found = []
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        for table in ("nodes", "edges", "activity", "topics", "aliases", "cases"):
            rows = await raw.fetch(f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {table} t ORDER BY 1")
            found.append([row["row"] for row in rows])
    return found


async def without_edges(memory: Engine, nodes: Sequence[UUID]) -> list[UUID]:
    """Which of some nodes have no living edge."""
    ends = {UUID(row[end]) for row in (await edge_rows(memory)).values() if row["status"] == "active" for end in ENDS}
    return [node for node in nodes if node not in ends]


ENDS = ("source", "target")
