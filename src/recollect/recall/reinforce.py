"""Walked edges grow stronger: those that led a recall to its hits, and again those of a hit that helped (A00b)."""

from datetime import datetime
from uuid import UUID

from recollect.graph.rules.strength import REINFORCEMENTS
from recollect.graph.sql import edges
from recollect.model import Recall, RecallLog
from recollect.recall.sql import logs
from recollect.store.database import Transaction


async def note(db: Transaction, entry: RecallLog, recall: Recall) -> None:
    """Note in the log by which edges its hits were reached, and count one traversal of each of those edges."""
    paths = {id_: path["edges"] for id_, path in recall.ways.get("paths", {}).items()}
    if not paths:
        return
    await logs.add_paths(db, entry.id, paths)
    walked = {UUID(edge) for path in paths.values() for edge in path}
    await edges.reinforce(db, dict.fromkeys(walked, _once("traversal")), entry.created_at)


async def clicked(db: Transaction, recall: UUID, node_id: UUID, now: datetime) -> None:
    """Somebody made use of a hit: the path that the log knows to it is clicked; where it knows none, nothing is."""
    path = await logs.path_to(db, recall, node_id)
    await edges.reinforce(db, dict.fromkeys(path, _once("click")), now)


def _once(kind: str) -> tuple[float, int, int]:
    """One use: what it adds, that it is one reinforcement, and one walk."""
    return REINFORCEMENTS[kind], 1, 1
