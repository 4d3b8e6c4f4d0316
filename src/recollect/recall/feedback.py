"""Feedback: somebody says whether a memory helped. Counted beside its uses; engagement (D40) and cases read it."""

from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import InvalidInput
from recollect.graph.rules.strength import ONE_CLICK
from recollect.graph.sql import edges
from recollect.memories.sql import activity, nodes
from recollect.model import Activity
from recollect.recall.sql import logs


async def judge(core: Core, space_id: UUID, node_id: UUID, *, helped: bool, recall: str | None = None) -> Activity:
    """Count a judgement; with `recall` (the id of a log entry), of a memory which that recall handed out."""
    async with core.transaction(space_id) as db:
        await nodes.get(db, node_id)
        if recall is not None:
            log = await logs.get(db, recall)
            if node_id not in log.memory_ids:
                raise InvalidInput(
                    f"The recall {log.id} did not hand out {node_id}: judge what it did.", field="recall"
                )
            if helped:
                # The path that the log knows to the hit is clicked (A00b); where it knows none, nothing is.
                path = await logs.path_to(db, log.id, node_id)
                await edges.reinforce(db, dict.fromkeys(path, ONE_CLICK), core.now())
        return await activity.judge(db, node_id, helped=helped)
