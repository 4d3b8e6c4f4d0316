"""Recalling: from a question to the memories a careful person would have picked, in order, each score laid open.

The walk: embed the question; candidates by vector and by words; their neighbours in the thread (recall/search);
relevance and score (recall/rank, recall/rules/ranking); floor, twins, gap, cooldown, cap, budget
(recall/rules/selection); then the nodes themselves. docs/concepts/recall.md goes through it by hand.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput, RecollectError
from recollect.memories.rules.text import is_storable
from recollect.model import Mode, Query, Recall, Space
from recollect.ports import Embedder
from recollect.recall import by_graph, cache, log
from recollect.recall.search import Search
from recollect.recall.sql import candidates

MOST = 1000
LONGEST_QUERY = 100_000
WAITING = "Some texts wait to be embedded and are found by their words alone until then (`recollect work`)."


async def recall(core: Core, space_id: UUID, query: Query, *, noted: bool = True) -> Recall:
    """Answer a question, log it, and count the use of what was found; or only look, as while somebody types."""
    _check(query)
    found, waiting = await (_by_graph if query.graph else _answered)(core, space_id, query)
    notes = (*found.notes, WAITING) if waiting else found.notes
    return replace(found, notes=notes, id=await log.note(core, space_id, found, query=query) if noted else None)


async def find(core: Core, space_id: UUID, query: Query, *, cool_down: bool = True) -> Recall:
    """Answer a question, without logging it."""
    _check(query)
    found, _ = await _answered(core, space_id, query, cool_down=cool_down, repeat=False)
    return found


async def _answered(
    core: Core, space_id: UUID, query: Query, *, cool_down: bool = True, repeat: bool = True
) -> tuple[Recall, bool]:
    """What is found, in one look into the database; and whether some texts wait to be embedded.

    The question is embedded before, so that no connection waits for an embedder: with that of the space as it was last
    seen. Should search have moved on to another model since, it is asked again.
    """
    started = time.perf_counter()
    embedder, notes = _embedder(core, await _last_seen(core, space_id))
    asked = await cache.embedded(core, embedder, query.text)
    notes = (*notes, asked.why_not) if asked.why_not else notes
    async with core.search(space_id) as db:
        seen = await candidates.first_look(db, query.text)
        core.seen[space_id] = seen.space
        if _embedder(core, seen.space)[0] is embedder:
            search = Search(core, db, seen, query, embedder, asked.vector)
            search.cools_down = cool_down and search.profile.cools_down
            search.notes, search.started = (*notes, *_misspelled(seen.meant)), started
            if not repeat:
                return await search.run(), seen.waiting
            return await cache.repeated(core, space_id, seen.version, query, search.run), seen.waiting
    return await _answered(core, space_id, query, cool_down=cool_down, repeat=repeat)


async def _by_graph(core: Core, space_id: UUID, query: Query) -> tuple[Recall, bool]:
    async with core.transaction(space_id) as db:
        seen = await candidates.first_look(db, query.text)
    search = partial(graph_search, core, space_id, query)
    return await cache.repeated(core, space_id, seen.version, query, search), seen.waiting


async def _last_seen(core: Core, space_id: UUID) -> Space:
    if space_id not in core.seen:
        async with core.transaction(space_id) as db:
            core.seen[space_id] = await spaces.by_id(db)
    return core.seen[space_id]


async def graph_search(core: Core, space_id: UUID, query: Query) -> Recall:
    """By similarity, and by activation that spreads from what is nearest (recall/by_graph)."""
    near = await find(
        core, space_id, replace(query, limit=candidates.POOL, mode=Mode.NEUTRAL, threshold=None, weak=True)
    )
    return await by_graph.spread(core, space_id, query, near)


def _misspelled(meant: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Which words of a question no text holds, where words that are spelled nearly like them were looked for (D44)."""
    if not meant:
        return ()
    those = " and ".join(f'"{word}"' for word in meant)
    return (f"No text holds {those}: words that are spelled nearly like that were looked for.",)


def _check(query: Query) -> None:
    if not query.text.strip():
        raise InvalidInput("The question is empty: say what to look for.", field="query")
    if not is_storable(query.text):
        raise InvalidInput("The question holds a NUL byte or a lone surrogate: remove it.", field="query")
    if len(query.text) > LONGEST_QUERY:
        raise InvalidInput(f"The question has over {LONGEST_QUERY:,} characters: shorten it.", field="query")
    if query.limit is not None and not 1 <= query.limit <= MOST:
        raise InvalidInput(f"The limit is from 1 to {MOST:,}, not {query.limit}.", field="limit")
    if query.threshold is not None and not 0 <= query.threshold <= 1:
        raise InvalidInput(f"The threshold is from 0 to 1, not {query.threshold}.", field="threshold")
    if query.budget_tokens is not None and query.budget_tokens < 1:
        raise InvalidInput("The budget is at least 1 token.", field="budget_tokens")


def _embedder(core: Core, space: Space) -> tuple[Embedder, tuple[str, ...]]:
    """The embedder whose vectors search uses; while a new model is being brought in, still the former one (D35)."""
    wanted = core.embedder()
    if space.embedding_model in (None, wanted.model):
        return wanted, ()
    try:
        former = core.embedder(space.embedding_model)
    except RecollectError:
        note = f"The vectors of {wanted.model} are not complete yet, and {space.embedding_model} cannot be used."
        return wanted, (note,)
    return former, (f"Search uses {former.model} until the vectors of {wanted.model} are complete.",)
