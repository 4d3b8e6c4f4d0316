"""Reviewing duplicates: the pairs of concepts that may be one, each with all that a person decides by.

They are looked for anew, by the rules of the policy that merges duplicates, so that what was merged, declined or kept
apart meanwhile is no question any more. The answer is a merge by hand, or that they are two: for now, or for good.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import anyio.to_thread

from recollect.concepts import compare
from recollect.concepts.policies.merge_duplicate_concepts import Options, apart_of, decide
from recollect.concepts.rules.clusters import ConceptGroup, Decided, GroupVerdict, PairLink
from recollect.concepts.rules.concepts import pair_of, state_of
from recollect.concepts.rules.similarity import DOUBTS, WEIGHTS
from recollect.concepts.rules.why import Step, steps_of
from recollect.concepts.sql import concepts, never_merge
from recollect.engine.core import Core
from recollect.engine.part import Reference
from recollect.errors import InvalidInput
from recollect.memories.sql import nodes
from recollect.model import Concept, KeptApart
from recollect.plans.sql import declined
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction

BY_HAND = "two things, as a person said"


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """Are these two one? `keep` is the one that would stay; `steps` are the factors of the score, one by one.

    `verdict` says what tidying would do by itself, and `reason` why; `doubts` speak against it.
    """

    keep: Concept
    other: Concept
    score: float
    steps: tuple[Step, ...]
    verdict: GroupVerdict
    reason: str
    doubts: tuple[str, ...]
    conflicts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """The pairs to look at, most alike first; `total` counts also those that are not listed."""

    total: int
    items: tuple[Question, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    keep: UUID
    other: UUID
    group: ConceptGroup
    link: PairLink


async def review(core: Core, space_id: UUID, *, threshold: float, limit: int) -> Review:
    """What may be one and is not, most alike first. It looks, and changes nothing."""
    options = Options(threshold=threshold)
    async with core.database.snapshot(space_id) as db:
        reader = StoreReader(db)
        known = await reader.concepts()
        kept_apart = apart_of(known, await reader.distinct_pairs(core.now()))
        decided = await anyio.to_thread.run_sync(decide, known, None, kept_apart, options)
        pairs = sorted(_pairs(known.ids, decided), key=lambda pair: (-pair.link.factors.score, pair.keep, pair.other))
        in_full = await _in_full(db, pairs[:limit])
    return Review(total=len(pairs), items=tuple(_question(in_full, pair) for pair in pairs[:limit]))


def _pairs(ids: Sequence[UUID], decided: Decided) -> Iterator[_Pair]:
    """Every link of a group is a question of its own, asked of the better ranked as the one that stays."""
    for group in (*decided.groups, *decided.postponed):
        rank = {row: place for place, row in enumerate(group.rows)}
        for link in group.links:
            keep, other = sorted((link.left, link.right), key=rank.__getitem__)
            yield _Pair(keep=ids[keep], other=ids[other], group=group, link=link)


async def _in_full(db: Transaction, pairs: Sequence[_Pair]) -> dict[UUID, Concept]:
    ids = {id_ for pair in pairs for id_ in (pair.keep, pair.other)}
    read = await nodes.get_many(db, sorted(ids))
    return {one.id: one for one in await concepts.in_full(db, list(read.values()))}


def _question(in_full: dict[UUID, Concept], pair: _Pair) -> Question:
    factors = pair.link.factors
    return Question(
        keep=in_full[pair.keep],
        other=in_full[pair.other],
        score=factors.score,
        steps=steps_of(factors, WEIGHTS),
        verdict=pair.group.verdict,
        reason=pair.group.reason,
        doubts=tuple(DOUBTS[doubt] for doubt in factors.doubts),
        conflicts=factors.conflicts,
    )


async def keep_apart(core: Core, space_id: UUID, a: Reference, b: Reference, *, never: bool) -> KeptApart:
    """Say that two concepts are two: until either changes or the wait for declined merges ends, or for good (P11)."""
    now = core.now()
    async with core.transaction(space_id) as db:
        one, other = [await compare.find(db, given) for given in (a, b)]
        if one.id == other.id:
            raise InvalidInput("These are one concept: give two.", field="b")
        pair = pair_of(one.id, other.id)
        state = state_of([one.name or "", other.name or ""], [one.version, other.version])
        days = None if never else core.settings.declined_days
        await declined.keep_apart(db, [(*pair, state)], now=now, days=days, reason=BY_HAND)
        (kept,) = [one for one in await never_merge.list_all(db, now) if (one.a, one.b) == pair]
        return kept
