"""Who works on a home while it is treated badly: python -m bench.faults_parts PART DIRECTORY PORT.

Each part goes on until it is killed. Trouble that is told in a sentence is met by trying again, as a program would;
what is not ends it, and that counts as a fault.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from recollect.engine.engine import Engine
from recollect.errors import RecollectError
from recollect.model import NewEdge, NewMemory
from recollect.plan import PlanStatus
from recollect.settings import Settings
from recollect.store.database import driver

HASHING = "hashing:64"
GRAPH = "graph"
TRIANGLES = 300
BATCH = 2
LONG_AGO = datetime.now(UTC) - timedelta(days=200)
PAUSE_SECONDS = 0.1
UNFINISHED = (PlanStatus.PROPOSED, PlanStatus.APPROVED, PlanStatus.PARTLY_APPLIED)
DONE = (PlanStatus.APPLIED, PlanStatus.PARTLY_APPLIED)


async def furnish(memory: Engine) -> None:
    """A space of its own with links that are worth pruning: one of each triangle can go."""
    await memory.add_space(GRAPH)
    graph = await memory.in_space(GRAPH)
    nodes = (await graph.add_many([NewMemory(text=f"node {place}") for place in range(3 * TRIANGLES)], wait=False)).ids
    told: dict[str, Any] = {"strength": 0.3, "created_by": "auto", "created_at": LONG_AGO}
    await graph.graph.link_many(
        [
            NewEdge(source=nodes[at + a], target=nodes[at + b], **told)
            for at in range(0, len(nodes), 3)
            for a, b in ((0, 1), (1, 2), (2, 0))
        ]
    )


async def edges(graph: Engine) -> list[str]:
    query = "SELECT (to_jsonb(e) - 'changed_in')::text AS row FROM edges e"
    async with graph.core.transaction(graph.space.id) as db:
        return [row["row"] for row in await (await driver(db)).fetch(query)]


async def take_back_everything(graph: Engine) -> int:
    """Whatever plan is under way is finished, and whatever was applied is undone; how many plans there are."""
    heads = [plan async for plan in _plans(graph)]
    for plan in heads:
        if plan.status in UNFINISHED:
            await graph.plans.apply(plan.id)
    async for plan in _plans(graph):
        if plan.status in DONE and plan.policy != "undo":
            await graph.undo(plan.id)
    return len(heads)


async def _plans(graph: Engine) -> Any:
    cursor: str | None = None
    while True:
        heads, cursor = await graph.plans.list(limit=100, cursor=cursor)
        for plan in heads:
            yield plan
        if cursor is None:
            return


class Parts:
    def __init__(self, directory: Path, port: int) -> None:
        self.home, self.address = directory / "home", f"http://127.0.0.1:{port}/api/v1"
        self.directory = directory
        self.numbers = count()

    def texts(self, who: str) -> Iterator[str]:
        return (f"{who} {os.getpid()} wrote fact {number} about herons" for number in self.numbers)

    def acknowledge(self, who: str, text: str) -> None:
        with (self.directory / f"{who}.acknowledged").open("a") as file:
            file.write(f"{text}\n")

    async def writer(self) -> None:
        """In a process of its own, by the library."""
        texts = self.texts("writer")
        async with self.opened() as memory:
            for text in texts:
                await memory.add(text)
                self.acknowledge("writer", text)

    async def visitor(self) -> None:
        """From outside, by HTTP."""
        async with httpx.AsyncClient(timeout=60) as http:
            for text in self.texts("visitor"):
                if (await http.post(f"{self.address}/memories", json={"text": text})).status_code == 201:
                    self.acknowledge("visitor", text)
                else:
                    await asyncio.sleep(PAUSE_SECONDS)

    async def asker(self) -> None:
        async with self.opened() as memory:
            while True:
                await memory.recall("what is known about herons?")

    async def tidier(self) -> None:
        """Prunes, and takes it back, for ever; it begins by what whoever was killed before it has left."""
        async with self.opened(GRAPH) as graph:
            while True:
                await take_back_everything(graph)
                await graph.plans.apply((await graph.plans.propose("prune", {"batch": BATCH})).id)

    def opened(self, space: str = "default") -> Engine:
        settings = Settings.load(home=self.home, embedder=HASHING, space=space)
        return Engine(settings)


PARTS = ("writer", "visitor", "asker", "tidier")


async def keep_trying(part: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await part()
        except (RecollectError, httpx.TransportError) as problem:
            print(f"{type(problem).__name__}: {problem}", flush=True)
            await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    name, directory, port = sys.argv[1:]
    asyncio.run(keep_trying(getattr(Parts(Path(directory), int(port)), name)))
