"""The legs of a search that keeps to what a filter leaves, or that looks at summaries too."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import numpy as np

from recollect.recall.rules import ranking
from recollect.recall.sql import candidates, filtered
from recollect.recall.sql.candidates import Candidate
from recollect.recall.sql.filtered import Found
from recollect.store.database import Transaction

if TYPE_CHECKING:
    from recollect.recall.search import Search

A = TypeVar("A")
Leg = Coroutine[Any, Any, A]


async def candidates_within(search: "Search") -> list[Candidate]:
    """Of what a filter leaves, and of the summaries."""
    near, matching, summaries = await _found(search)
    ids = list(dict.fromkeys([*_promising(search, near, matching), *summaries]))
    return await filtered.details(search.db, search.asked, ids, cosines=near | summaries, words=matching)


async def _found(search: "Search") -> tuple[Found, Found, Found]:
    """What is near, what matches, and the summaries that are near where no leg looks at them."""
    few = filtered.filtered(search.db, search.query.wanted)
    of_few = filtered.nearest_of(search.db, search.asked, few)
    (left, near), (also, matching) = await _both(
        search, of_few, partial(filtered.matching_of, asked=search.asked, few=few)
    )
    if max(left, also) <= filtered.EXACT_BELOW:
        search.ways["search"] = f"exact: the filter leaves {max(left, also):,}"
        return near, matching, {}
    near, matching = await _both(search, _nearest(search), partial(_matching, search))
    search.ways |= {"by_vector": len(near), "by_words": len(matching)}
    if not search.with_summaries:
        return near, matching, {}
    summaries = filtered.these(await filtered.summaries(search.db))
    return near, matching, (await filtered.nearest_of(search.db, search.asked, summaries))[1]


def _promising(search: "Search", near: Found, matching: Found) -> list[UUID]:
    """Those that could come out first. What one leg did not return is at most as good there as its last; where it
    returned all it has, as good as nothing."""
    ids = list(dict.fromkeys([*near, *matching]))
    if len(ids) <= search.most:
        return ids
    farthest, poorest = (min(leg.values()) if len(leg) >= candidates.POOL else 0.0 for leg in (near, matching))
    cosine = np.array([near.get(id_, farthest) for id_ in ids])
    words = np.array([matching.get(id_, poorest) for id_ in ids])
    lexical = ranking.lexical_match(words, search.asked.most_possible)
    at_best = ranking.own_relevance(lexical, search.calibration.similarity(cosine))
    return [ids[i] for i in np.argsort(-at_best, kind="stable")[: search.most]]


async def _both(search: "Search", near: Leg[A], by_words: Callable[[Transaction], Leg[A]]) -> tuple[A, A]:
    """The two legs; side by side where a second connection is free, since each is work for one core."""
    if not search.core.database.is_at_leisure:
        return await near, await by_words(search.db)

    async def beside() -> A:
        async with search.core.search(search.db.space_id) as other:
            return await by_words(other)

    return await side_by_side(near, beside())


async def _nearest(search: "Search") -> Found:
    exactly = await search.exactly()
    within = search.query.wanted if search.is_selective else None
    return await filtered.nearest(
        search.db, search.asked, kinds=search.kinds, exactly=exactly, breadth=search.breadth, within=within
    )


async def _matching(search: "Search", db: Transaction) -> Found:
    scores = await filtered.matching(db, search.asked, kinds=search.kinds)
    if not search.is_selective:
        return scores
    permitted = await filtered.allowed(db, list(scores), search.query.wanted)
    return {id_: score for id_, score in scores.items() if id_ in permitted}


async def side_by_side(leg: Leg[A], other: Leg[A]) -> tuple[A, A]:
    """Both at once. When one fails, the other too has come to its end before anybody hears of it."""
    first, second = await asyncio.gather(leg, other, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second
