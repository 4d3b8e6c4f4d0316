"""Forming a concept: one that is there already is returned instead, with the reason (C19, C20).

The words are embedded before, so that the check is a look into two indexes: names, then nearness with the joint bound
of the score. Look and insert are one transaction, in which nobody else makes a concept of the type: whoever comes
second finds what the first one made.

Joining loses nothing (C31): what says something new is stored like any concept, and goes into the one that is there by
a plan of one merge. Its text, weight and maker stay with it, the journal tells of it, and undoing it makes them two.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID, uuid4

import numpy as np

from recollect.concepts.policies.merge_duplicate_concepts import enriched, one_of_node, retired, told
from recollect.concepts.rules.concepts import ConceptCandidate, Likeness, best_likeness, checked, words_of
from recollect.concepts.rules.detection.compare import Bounds
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.concepts.rules.names import plain
from recollect.concepts.rules.similarity import DOUBTS, WEIGHTS, Factors
from recollect.concepts.rules.tables import concept_from_mapping
from recollect.concepts.sql import concepts, never_merge
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput, ProviderProblem
from recollect.memories.remember import models_of
from recollect.memories.rules.batch import each_checked
from recollect.memories.sql import nodes
from recollect.model import Formed, FormedMany, Kind, NewConcept, Node, Space
from recollect.plan import Draft, Plan
from recollect.plans.rules.plan_text import short_name
from recollect.plans.sql import changes
from recollect.ports import Vectors
from recollect.providers.embedders import embed_readable
from recollect.recall.sql import candidates, lexicon
from recollect.store.database import Transaction
from recollect.wording import listed

COUNT_SECONDS = 30.0
KINDS = (Kind.CONCEPT.value,)
BATCH = 200
SHOWN_EVERY = 20
Progress = Callable[[int], None]
HandedIn = NewConcept | str | Mapping[str, Any]


async def form(core: Core, space_id: UUID, new: NewConcept, *, threshold: float = THRESHOLD) -> Formed:
    """Make a concept, unless it is one of its type that is there: then that one gains what is new about it."""
    check_threshold(threshold)
    (forming,) = await _embedded(core, space_id, [_checked(core, new)], threshold)
    async with core.transaction(space_id) as db:
        return await forming.form(db)


async def form_many(
    core: Core,
    space_id: UUID,
    given: Sequence[HandedIn],
    *,
    threshold: float = THRESHOLD,
    atomic: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> FormedMany:
    """Make many, each as if it came by itself after those before it; `atomic` makes all or none.

    They are embedded and stored some at a time, so an end in the midst of it leaves those before it. A dry run does it
    all in one transaction that is then given up.
    """
    check_threshold(threshold)
    if isinstance(given, str | Mapping):
        raise InvalidInput("Several concepts are a list of them: give [name], or `add` the one.", field="concepts")
    good, refused = each_checked(given, partial(_checked, core), atomic=atomic)
    news = list(good.values())
    results: list[_Result] = []
    size = len(news) if atomic or dry_run else BATCH
    with suppress(_Rehearsed):
        for first in range(0, len(news), size or 1):
            forming = await _embedded(core, space_id, news[first : first + size], threshold)
            async with core.transaction(space_id) as db:
                for concept in forming:
                    results.append(await concept.settle(db))
                    if progress and len(results) % SHOWN_EVERY == 0:
                        progress(len(results))
                if dry_run:
                    raise _Rehearsed
    fates = Counter(result.fate for result in results)
    return FormedMany(
        ids=tuple(result.id for result in results),
        made=fates["made"],
        there=fates["there"],
        joined=fates["joined"],
        refused=tuple(refused),
    )


class _Rehearsed(Exception):
    """What was done is given up."""


def check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise InvalidInput(f"The threshold is above 0 and at most 1, not {threshold}.", field="threshold")


def _checked(core: Core, new: HandedIn) -> NewConcept:
    """A concept is handed in as one, as its fields, or as a bare name."""
    if not isinstance(new, NewConcept):
        new = NewConcept(name=new) if isinstance(new, str) else concept_from_mapping(new)
    limits = {name: getattr(core.settings, name) for name in ("max_text_bytes", "max_metadata_bytes")}
    return checked(new, core.now(), **limits)


async def _embedded(core: Core, space_id: UUID, news: Sequence[NewConcept], threshold: float) -> list["Forming"]:
    """The concepts with the vectors of their words; without one (no provider answers, or the model cannot read them)
    only its very name is looked for."""
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
    embedder, vectors = core.embedder(space.embedding_model), list[Vectors | None]()
    for first in range(0, len(news), BATCH):
        words = [words_of(new.name, new.text) for new in news[first : first + BATCH]]
        try:
            vectors += await embed_readable(embedder, words)
        except ProviderProblem:
            vectors += [None] * len(words)
    return [Forming(core, space, new, threshold, vector) for new, vector in zip(news, vectors, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Result:
    """The concept that one became, how, and why."""

    id: UUID
    fate: Literal["made", "there", "joined"]
    told: Mapping[str, Any]


class Forming:
    """One concept on its way into a space."""

    def __init__(self, core: Core, space: Space, new: NewConcept, threshold: float, vector: Vectors | None) -> None:
        self.core, self.space, self.new, self.threshold, self.vector = core, space, new, threshold, vector
        self.model = core.embedder(space.embedding_model).model
        self.now = core.now()

    async def form(self, db: Transaction) -> Formed:
        result = await self.settle(db)
        node = await nodes.get(db, result.id)
        (concept,) = await concepts.in_full(db, [node])
        return Formed(concept=concept, is_new=result.fate == "made", **result.told)

    async def settle(self, db: Transaction) -> _Result:
        exactly = await self.is_small(db)
        await concepts.hold(db, self.new.node_type, exactly=exactly)
        alike = await self.best(db, exactly=exactly)
        if alike is None or not alike.is_certain:
            return await self._make(db, alike)
        return await self._join(db, alike)

    async def best(self, db: Transaction, *, exactly: bool) -> Likeness | None:
        """What is there that comes nearest, if anything reaches the threshold: by name first, then by nearness."""
        apart_from = await never_merge.partners(db, [plain(self.new.name)], self.now)
        namesakes = await concepts.namesakes(db, self.new.node_type, self.new.name, model=self.model)
        best = await self._best_of(db, namesakes, apart_from)
        is_found = best is not None and (best.namesakes or (best.is_certain and best.factors.score == 1.0))
        if self.vector is None or is_found or (best is not None and best.by_name):
            return best
        at_least = Bounds(threshold=self.threshold, weights=WEIGHTS).cosine
        ids = {candidate.id for candidate in namesakes}
        near = await concepts.near(
            db, self.new.node_type, self.vector, model=self.model, at_least=at_least, exactly=exactly
        )
        return await self._best_of(
            db, [*namesakes, *(candidate for candidate in near if candidate.id not in ids)], apart_from
        )

    async def _best_of(
        self, db: Transaction, possible: list[ConceptCandidate], apart_from: frozenset[str]
    ) -> Likeness | None:
        if apart_from and possible:
            names = await concepts.names_of(db, [candidate.id for candidate in possible])
            possible = [replace(candidate, names=names.get(candidate.id, frozenset())) for candidate in possible]
        vector = None if self.vector is None else concepts.unit(self.vector.astype(np.float16))
        return best_likeness(self.new, vector, possible, self.threshold, apart_from)

    async def _make(self, db: Transaction, alike: Likeness | None) -> _Result:
        return _Result(id=await self._store(db), fate="made", told=_why_new(alike))

    async def _store(self, db: Transaction) -> UUID:
        id_ = self.new.id or uuid4()
        if self.new.id is not None and await nodes.get_many(db, [id_]):
            raise InvalidInput(f"The id {id_} is taken already.", field="id")
        await concepts.insert(
            db,
            [(id_, self.new, self.vector)],
            model=self.model,
            models=models_of(self.core, self.space),
            max_attempts=self.core.settings.job_max_attempts,
            now=self.now,
        )
        if self.vector is not None:
            await self._searchable(db, id_)
        return id_

    async def _searchable(self, db: Transaction, id_: UUID) -> None:
        created_at = self.new.created_at or self.now
        entry = lexicon.Entry(node_id=id_, name=self.new.name, text=self.new.text, created_at=created_at)
        await lexicon.index(db, await lexicon.read(db.space_id, [entry]))
        if self.space.embedding_model is None:
            await spaces.use_model(db, self.model)

    async def _join(self, db: Transaction, alike: Likeness) -> _Result:
        """What is said again is counted; what says something new becomes part of the one that is there, by a plan."""
        keeper, score = alike.candidate.id, alike.factors.score
        known_as = "there" if alike.candidate.name == self.new.name else repr(alike.candidate.name)
        named = f"{self.new.name!r} is {known_as}"
        reason = f"{named}: {alike.reason}" + ("" if alike.by_name else f", at least {self.threshold:g}")
        if await concepts.was_said(db, keeper, self.new):
            await concepts.add_energy(db, keeper, self.new.energy)
            return _Result(id=keeper, fate="there", told={"reason": reason, "score": score})
        variant = await self._store(db)
        by_id = await nodes.get_many(db, [keeper, variant])
        plan = joining(by_id[keeper], by_id[variant], alike.factors, reason, self.now)
        await changes.apply(db, plan, self.now)
        return _Result(id=keeper, fate="joined", told={"reason": reason, "score": score, "plan_id": plan.id})

    async def is_small(self, db: Transaction) -> bool:
        """Whether each concept is looked at, or the index walked; counted at most every half minute."""
        key = (self.space.id, self.model, KINDS)
        count, at = self.core.counts.get(key, (0, -math.inf))
        if count <= concepts.EXACT_UP_TO // 10 or time.monotonic() - at > COUNT_SECONDS:
            count = await candidates.count(db, model=self.model, kinds=KINDS)
            self.core.counts[key] = (count, time.monotonic())
        return count <= concepts.EXACT_UP_TO


def joining(keeper: Node, variant: Node, factors: Factors, reason: str, now: datetime) -> Plan:
    """The plan by which a concept that was just given becomes part of one that is there.

    Protection does not hinder it: that keeps tidying away, not what is said of it.
    """
    into, going = one_of_node(keeper), one_of_node(variant)
    draft = Draft()
    look = draft.look()
    look.finds("nodes", keeper.id, status="active")
    draft.decide(
        "merge",
        variant.id,
        reason,
        [retired(going, into), enriched(draft, into, going, now)],
        score=factors.score,
        factors=told(into, going, factors),
        look=look,
    )
    title = f"Merge “{short_name(variant.name or '')}” into “{short_name(keeper.name or '')}”"
    return draft.plan(policy="hand", title=title, now=now, created_by=variant.source or "user")


def _why_new(alike: Likeness | None) -> dict[str, Any]:
    if alike is None:
        return {"reason": "nothing of its type is like it"}
    name, factors = alike.candidate.name, alike.factors
    if alike.namesakes:
        reason = f"{alike.reason}: say which one is meant, or describe it"
        return {"reason": reason, "score": factors.score, "resembles": alike.namesakes}
    doubts = listed(DOUBTS[doubt] for doubt in factors.doubts)
    return {
        "reason": f"{alike.reason} with {name!r}, but {doubts}: `recollect why` shows how they compare",
        "score": factors.score,
        "resembles": (alike.candidate.id,),
    }
