"""Concepts are looked through as the graph grows, not only by the clock (C01, C18).

Every 1,000 ticks duplicates are looked for and counted, every 10,000 their merging, which is scheduled anyway, is
brought forward. A tick is a transaction that changed the space. Merging has its own rules of who must be asked.
"""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from recollect.concepts import compare
from recollect.concepts.policies.merge_duplicate_concepts import POLICY
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.engine.core import Core
from recollect.logs import Logger
from recollect.plans.sql import ticks
from recollect.plans.sql.ticks import Ticks

log = Logger("recollect.ticks")

MOST_COUNTED = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticked:
    """What was done because so many ticks had passed."""

    space_id: UUID
    tick: int
    did: Literal["detection", "merging"]
    pairs: int | None = None


async def look(core: Core, only: UUID | None = None) -> list[Ticked]:
    """Do what is due in all spaces, or in one; returns what was done."""
    async with core.database.owner() as connection:
        due = await ticks.look(connection, only)
    return [done for space in due if (done := await _tick(core, space)) is not None]


async def _tick(core: Core, space: Ticks) -> Ticked | None:
    settings = core.settings
    if space.is_due(since=space.merged, every=settings.duplicates_merge_every):
        return await _merge_soon(core, space)
    if space.is_due(since=max(space.detected, space.merged), every=settings.duplicates_detect_every):
        return await _detect(core, space)
    return None


async def _merge_soon(core: Core, space: Ticks) -> Ticked:
    async with core.database.owner() as connection:
        await ticks.bring_forward(connection, space.space_id, POLICY.name, core.now())
    await _note(core, space, ticks.MERGING, {})
    return Ticked(space_id=space.space_id, tick=space.now, did="merging")


async def _detect(core: Core, space: Ticks) -> Ticked:
    pairs = await compare.duplicates(core, space.space_id, threshold=THRESHOLD, node_type=None, limit=MOST_COUNTED)
    await _note(core, space, ticks.DETECTION, {"pairs": len(pairs)})
    if pairs:
        log.info(f"Found {len(pairs)} duplicate pairs", space=space.slug)
    return Ticked(space_id=space.space_id, tick=space.now, did="detection", pairs=len(pairs))


async def _note(core: Core, space: Ticks, action: str, more: dict[str, int]) -> None:
    async with core.transaction(space.space_id) as db:
        await ticks.note(db, action, {"tick": space.now, **more}, core.now())
