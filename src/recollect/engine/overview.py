"""The overview: a space at a glance, for whoever opens the page in the morning."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from recollect.engine.core import Core
from recollect.engine.sql import care, overview
from recollect.engine.sql.overview import Day, Held
from recollect.memories.sql import jobs, vectors
from recollect.model import JobCounts
from recollect.plans.questions import KINDS, open_questions

GROWTH = timedelta(days=30)
IndexWord = Literal["ready", "not needed yet", "to be built", "empty"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """What is remembered, how it grew of late, how many questions are open of what kind, and how it is."""

    held: Sequence[Held]
    added: Sequence[Day]
    questions: Mapping[str, int]
    jobs: JobCounts
    embedding_model: str | None
    index: IndexWord
    last_backup_at: datetime | None


async def show(core: Core, space_id: UUID) -> Overview:
    async with core.transaction(space_id) as db:
        held = await overview.held(db)
        added = await overview.added(db, core.now() - GROWTH)
        asked = await open_questions(core, db)
        waiting = await jobs.counts(db)
        model, dim = await overview.searched(db)
    async with core.database.owner() as connection:
        backed_up = await care.last_run(connection, "backup")
    return Overview(
        held=held,
        added=added,
        questions=Counter(KINDS[question.policy] for question in asked),
        jobs=waiting,
        embedding_model=model,
        index=await _index(core, model, dim),
        last_backup_at=backed_up,
    )


async def _index(core: Core, model: str | None, dim: int | None) -> IndexWord:
    """How search finds vectors; few are compared one by one, and need no index."""
    if model is None or dim is None:
        return "empty"
    if await vectors.is_indexed(core.database, model, dim):
        return "ready"
    rows = (await vectors.index_state(core.database, model, dim)).rows
    return "not needed yet" if rows < core.settings.hnsw_min_rows else "to be built"
