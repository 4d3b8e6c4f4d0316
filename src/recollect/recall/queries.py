"""The query log, looked at again: listed, shown, and replayed, to see what has changed for a question since."""

from collections.abc import Sequence
from uuid import UUID

from recollect.engine.core import Core
from recollect.model import Mode, Move, RecallLog, RecallLogs, Replay
from recollect.recall import recall as recalling
from recollect.recall.sql import logs
from recollect.wording import check_limit


async def list_logs(
    core: Core, space_id: UUID, *, mode: Mode | None = None, limit: int = 20, cursor: str | None = None
) -> RecallLogs:
    """A stretch of the log, newest first."""
    check_limit(limit)
    async with core.transaction(space_id) as db:
        return await logs.list_page(db, mode=mode, limit=limit, cursor=cursor)


async def show(core: Core, space_id: UUID, reference: str) -> RecallLog:
    async with core.transaction(space_id) as db:
        return await logs.get(db, reference)


async def replay(core: Core, space_id: UUID, reference: str) -> Replay:
    """Ask a question of the log again, without logging it, and compare the two rankings."""
    log = await show(core, space_id, reference)
    asked = logs.from_document(log.asked)
    if asked.graph:
        now = await recalling.graph_search(core, space_id, asked)
    else:
        now = await recalling.find(core, space_id, asked, cool_down=False)
    before, after = [hit.id for hit in log.hits], [hit.node.id for hit in now]
    return Replay(
        log=log,
        recall=now,
        added=tuple(id_ for id_ in after if id_ not in before),
        removed=tuple(id_ for id_ in before if id_ not in after),
        moved=moves(before, after),
    )


def moves(before: Sequence[UUID], after: Sequence[UUID]) -> tuple[Move, ...]:
    """What both rankings hold, at different places among what both hold; so one newcomer does not move all below it."""
    old = [id_ for id_ in before if id_ in set(after)]
    new = [id_ for id_ in after if id_ in set(before)]
    return tuple(
        Move(id=now, before=before.index(now) + 1, after=after.index(now) + 1)
        for now, then in zip(new, old, strict=True)
        if now != then
    )
