"""The graphs that this process keeps in memory, so that activation spreads over a million edges in milliseconds.

A graph is read once, in the background, when a second question walks it: who asks once does not wait for a million
edges. From then on every walk asks the database what changed since the last one, and is told in well under a
millisecond that it was nothing. The answer is exact whoever writes: the trigger on edges notes the transaction that
wrote each, and every transaction that had not ended at the last look counts as later than it (graph/sql/graph.Moment).
A node that was archived or came back changes none of its edges' rows; so where the space has changed at all, the
sleeping nodes are compared too, and the edges of those that differ are read again.
"""

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

from recollect.engine.keeping import IDLE_SECONDS, Keeping
from recollect.graph.rules.adjacency import FEW, Adjacency, adjacency_of, updated
from recollect.graph.rules.arrays import as_text, as_uuids
from recollect.graph.rules.spread import FADE, HOPS, LEAST, Reached, SpreadLink, spread, spread_over
from recollect.graph.sql import edges, graph
from recollect.graph.sql.graph import Moment
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.core import Core

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


class Adjacencies(Keeping[UUID, Kept]):
    """One graph a space, each current whenever it is handed out."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(most=MOST_GRAPHS, idle_seconds=idle_seconds, clock=clock)

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
        if adjacency is None:
            self._keep(db.space_id, kept := await self._read(db, db.space_id))
            adjacency = kept.adjacency
        return adjacency

    async def _read(self, db: Transaction, key: UUID) -> Kept:
        # The moment first: whatever is written while we read is then read again.
        moment = await graph.moment(db)
        asleep = await graph.asleep(db)
        columns = await StoreReader(db).edges()
        return Kept(adjacency=await anyio.to_thread.run_sync(adjacency_of, columns), moment=moment, asleep=asleep)


async def walk(core: "Core", db: Transaction, seeds: Mapping[UUID, float]) -> Walk:
    """Spread activation from some seeds (A31): in memory where the graph is kept, else in the database."""
    again = core.adjacencies.is_asked_again(db.space_id)
    adjacency = await core.adjacencies.current(db)
    if adjacency is None:
        if again:
            core.adjacencies.load_soon(core, db.space_id, db.space_id)
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
