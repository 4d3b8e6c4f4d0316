"""The graphs that this process keeps in memory, so that activation spreads over a million edges in milliseconds.

A graph is read once, in the background, when a second question walks it: who asks once does not wait for a million
edges. From then on every walk asks the database what changed since the last one, and is told in well under a
millisecond that it was nothing. The answer is exact whoever writes: the trigger on edges notes the transaction that
wrote each, and every transaction that had not ended at the last look counts as later than it (graph/sql/graph.Moment).
A node that was archived or came back changes none of its edges' rows; so where the space has changed at all, the
sleeping nodes are compared too, and the edges of those that differ are read again.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.errors import RecollectError
from recollect.graph.rules.adjacency import FEW, Adjacency, adjacency_of, updated
from recollect.graph.rules.arrays import as_text, as_uuids
from recollect.graph.rules.spread import FADE, HOPS, LEAST, Reached, SpreadLink, spread, spread_over
from recollect.graph.sql import edges, graph
from recollect.graph.sql.graph import Moment
from recollect.logs import Logger
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.core import Core

log = Logger("recollect.graph")

IDLE_SECONDS = 900.0
MOST_GRAPHS = 8
# More changes than these are not mended one by one: the graph is read anew.
MOST_CHANGES = 50_000
# The walk in the database gives up here and has the graph loaded: a hub, or everything strongly linked to everything.
MOST_LINKS = 20_000
REACHED_AT_MOST = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A graph as it was at a moment, and the nodes that slept then."""

    adjacency: Adjacency
    moment: Moment
    asleep: NDArray[np.void]


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    """What activation reached, and where it was walked."""

    reached: Mapping[UUID, Reached]
    how: str


class Adjacencies:
    """One graph a space, each current whenever it is handed out."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds, self._clock = idle_seconds, clock
        self._kept: dict[UUID, Kept] = {}
        self._used_at: dict[UUID, float] = {}
        self._loading: dict[UUID, asyncio.Task[None]] = {}
        self._waking: asyncio.TimerHandle | None = None
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._kept)

    async def current(self, db: Transaction) -> Adjacency | None:
        """The graph of a space as this connection sees it; None where it is not kept."""
        self._used_at[db.space_id] = self._clock()
        snapshot = self._kept.get(db.space_id)
        if snapshot is None:
            return None
        now = await _brought_up_to_date(db, snapshot)
        if now is None:
            self._kept.pop(db.space_id, None)
            return None
        self._kept[db.space_id] = now
        return now.adjacency

    async def loaded(self, db: Transaction) -> Adjacency:
        """The same; where it is not kept it is read now."""
        adjacency = await self.current(db)
        return adjacency if adjacency is not None else await self._load(db)

    def load_soon(self, core: "Core", space_id: UUID) -> None:
        """Read a graph in the background, unless that is being done."""
        if not self._is_closing and space_id not in self._kept and space_id not in self._loading:
            self._loading[space_id] = asyncio.create_task(self._load_alone(core, space_id))

    def is_asked_again(self, space_id: UUID) -> bool:
        """Whether a graph was asked for before, a short while ago."""
        return self._clock() - self._used_at.get(space_id, -np.inf) <= self._idle_seconds

    async def settled(self) -> None:
        """Wait until nothing is being read."""
        await asyncio.gather(*self._loading.values())

    def forget(self) -> None:
        """Keep none of them any more."""
        self._kept.clear()
        self._used_at.clear()

    async def close(self) -> None:
        """What is being read is read to the end of its step: a connection that is cut off amid a COPY is lost."""
        self._is_closing = True
        await self.settled()
        if self._waking is not None:
            self._waking.cancel()
        self.forget()

    async def _load_alone(self, core: "Core", space_id: UUID) -> None:
        """In the background nobody hears a problem: walks go on in the database, and the log knows why."""
        try:
            async with core.database.snapshot(space_id) as db:
                if not self._is_closing:
                    await self._load(db)
        except RecollectError as problem:
            log.warning("the graph could not be read into memory", why=problem.message)
        finally:
            self._loading.pop(space_id, None)

    async def _load(self, db: Transaction) -> Adjacency:
        # The moment first: whatever is written while we read is then read again.
        moment = await graph.moment(db)
        asleep = await graph.asleep(db)
        columns = await StoreReader(db).edges()
        adjacency = await anyio.to_thread.run_sync(adjacency_of, columns)
        self._keep(db.space_id, Kept(adjacency=adjacency, moment=moment, asleep=asleep))
        return adjacency

    def _keep(self, space_id: UUID, snapshot: Kept) -> None:
        self._kept[space_id] = snapshot
        self._used_at[space_id] = self._clock()
        for other in sorted(self._kept, key=self._used_at.__getitem__)[:-MOST_GRAPHS]:
            self._drop(other)
        self._wake_later()

    def _drop(self, space_id: UUID) -> None:
        self._kept.pop(space_id, None)
        self._used_at.pop(space_id, None)

    def drop_idle(self) -> None:
        """Give back the memory of graphs that nobody walked for a while."""
        for space_id in [id_ for id_ in self._kept if not self.is_asked_again(id_)]:
            self._drop(space_id)

    def _wake_later(self) -> None:
        if self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(self._idle_seconds, self._wake)

    def _wake(self) -> None:
        self._waking = None
        self.drop_idle()
        if self._kept:
            self._wake_later()


async def walk(core: "Core", db: Transaction, seeds: Mapping[UUID, float]) -> Walk:
    """Spread activation from some seeds (A31): in memory where the graph is kept, else in the database."""
    again = core.adjacencies.is_asked_again(db.space_id)
    adjacency = await core.adjacencies.current(db)
    if adjacency is None:
        if again:
            core.adjacencies.load_soon(core, db.space_id)
        reached = await _walk_in_database(db, seeds, core.now())
        if reached is not None:
            return Walk(reached=reached, how="in the database")
        adjacency = await core.adjacencies.loaded(db)
    reached = spread_over(adjacency, seeds, core.now()).reached(at_most=REACHED_AT_MOST)
    return Walk(reached=reached, how=f"in memory: {counted(len(adjacency), 'edge')}")


async def _walk_in_database(db: Transaction, seeds: Mapping[UUID, float], now: datetime) -> dict[UUID, Reached] | None:
    """Hop by hop, looking only where activation can still go; None if that is too much for it."""
    links: dict[UUID | None, SpreadLink] = {}
    walked_from: set[UUID] = set()
    reached = spread(seeds, lambda _: ())
    for hop in range(1, HOPS + 1):
        frontier = {arrival.node for arrival in reached.values() if arrival.activation * FADE >= LEAST} - walked_from
        if not frontier:
            break
        around = await edges.around(db, frontier, now, at_most=MOST_LINKS + 1)
        if len(around) > MOST_LINKS:
            return None
        links |= {link.id: link for link in around}
        walked_from |= frontier
        reached = spread(seeds, partial(_all, links.values()), hops=hop)
    return reached


def _all(links: Collection[SpreadLink], _nodes: Collection[UUID]) -> Collection[SpreadLink]:
    return links


async def _brought_up_to_date(db: Transaction, snapshot: Kept) -> Kept | None:
    """What is kept, as of now; None if too much has changed since."""
    # The moment first, then what changed: what is written between the two is asked for again next time.
    last = snapshot.moment
    moment = await graph.moment(db, last=last.since, at_most=MOST_CHANGES + 1)
    if moment.changed > MOST_CHANGES or moment.table != last.table:
        return None
    asleep = snapshot.asleep if moment.version == last.version else await graph.asleep(db)
    turned = (
        np.setxor1d(as_text(asleep), as_text(snapshot.asleep)) if asleep is not snapshot.asleep else as_text(asleep[:0])
    )
    if len(turned) > MOST_CHANGES:
        return None
    adjacency = snapshot.adjacency
    if moment.changed or len(turned):
        nodes = as_uuids(turned.view("V16"))
        changed, alive = await StoreReader(db).edges_changed_since(last.since, nodes)
        mend = partial(updated, adjacency, changed, alive)
        adjacency = mend() if len(changed) <= FEW else await anyio.to_thread.run_sync(mend)
    return Kept(adjacency=adjacency, moment=moment, asleep=asleep)
