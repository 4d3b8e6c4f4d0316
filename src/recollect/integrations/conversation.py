"""A conversation whose turns are memories: in their order, in a thread of their own, and found by recall like all else.

Taking the last turn away and clearing archive: undoing the plan brings the turns back.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import anyio

from recollect.engine.engine import Engine
from recollect.integrations.values import KeptValue, Shelf
from recollect.memories.edit import MOST_AT_ONCE
from recollect.model import ContentType, Node, NodeFilter, Status
from recollect.wording import LONGEST_PAGE

MOMENT = timedelta(microseconds=1)

# What a turn says, for those who search; "" where it says nothing, as the call of a tool does.
Reading = Callable[[Any], str]


class Conversation:
    """The turns of one framework in one thread."""

    def __init__(self, engine: Engine, thread: str, *, of: str, reading: Reading) -> None:
        self._shelf, self._thread, self._reading = Shelf(engine, of), thread, reading
        self._engine = engine
        self._writing: anyio.Lock | None = None

    async def turns(self, limit: int | None = None) -> list[Any]:
        """All turns, or the last ones, in their order."""
        return [self._shelf.value(node) for node in reversed(await self._newest(limit))]

    async def add(self, turns: Sequence[Any]) -> None:
        self._writing = self._writing or anyio.Lock()
        async with self._writing:
            last = await self._newest(1, statuses=(Status.ACTIVE, Status.ARCHIVED))
            now, first = self._engine.core.now(), 1
            if last:  # whatever the clock says, what comes later is later
                now, first = max(now, last[0].created_at + MOMENT), (last[0].position or 0) + 1
            values = [self._kept(turn, number, first, now) for number, turn in enumerate(turns)]
            await self._shelf.add(values)

    async def pop(self) -> Any | None:
        """Take the last turn away; None where there is none."""
        last = await self._newest(1)
        if not last:
            return None
        await self._engine.forget(last[0].id, reason="taken from the end of its conversation")
        return self._shelf.value(last[0])

    async def clear(self) -> None:
        """Archive every turn, by one plan; a very long conversation by a few."""
        nodes = await self._newest(None)
        for first in range(0, len(nodes), MOST_AT_ONCE):
            ids = [node.id for node in nodes[first : first + MOST_AT_ONCE]]
            await self._engine.change_many(ids, archive=True, reason="conversation cleared")

    def _kept(self, turn: Any, number: int, first: int, now: datetime) -> KeptValue:
        return KeptValue(
            value=turn,
            text=self._reading(turn),
            thread=self._thread,
            position=first + number,
            created_at=now + number * MOMENT,
            subtype=ContentType.CONVERSATION,
        )

    async def _newest(self, limit: int | None, statuses: tuple[Status, ...] = (Status.ACTIVE,)) -> list[Node]:
        node_filter = NodeFilter(thread=self._thread, metadata={"extra": {self._shelf.of: {}}}, statuses=statuses)
        nodes: list[Node] = []
        cursor: str | None = None
        while limit is None or len(nodes) < limit:
            most = LONGEST_PAGE if limit is None else min(limit - len(nodes), LONGEST_PAGE)
            page = await self._engine.list(node_filter, limit=most, cursor=cursor)
            nodes += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return nodes
