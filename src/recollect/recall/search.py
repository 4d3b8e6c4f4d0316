"""One question on its way through the store: candidates, their ranking, what is chosen, the nodes themselves."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.engine.core import Core
from recollect.memories.rules.text import count_tokens
from recollect.memories.rules.windows import MOST, is_long, may_be_long, windows
from recollect.memories.sql import activity, nodes
from recollect.model import Activity, Hit, LeftOut, Mode, Node, NodeFilter, Parts, Query, Recall, Space
from recollect.ports import Embedder
from recollect.recall.rank import SECONDS_A_DAY, Ranked, Uses, rank
from recollect.recall.rules import ranking, selection
from recollect.recall.rules.calibration import Calibration, shipped
from recollect.recall.rules.pace import Pace
from recollect.recall.rules.passages import passage_of
from recollect.recall.sql import candidates, logs
from recollect.recall.sql.candidates import Candidate, CandidateQuery, FirstLook, Found
from recollect.store.database import Transaction
from recollect.wording import counted

LIMIT = 20
LEFT_OUT_SHOWN = 50
COMPARED = 60
LOOKED_AT = 120
# The vector leg takes so many times as many windows as texts are wanted, where texts are long (D47).
BROADEST = 8
COUNT_SECONDS = 30.0
LAID_OPEN = tuple(part.name for part in fields(Parts) if part.name != "activation")

A = TypeVar("A")
Leg = Coroutine[Any, Any, A]


class Search:
    """One question on its way through the store; holds what the steps share."""

    def __init__(
        self,
        core: Core,
        db: Transaction,
        seen: FirstLook,
        query: Query,
        embedder: Embedder,
        vector: NDArray[np.float32] | None,
    ) -> None:
        self.core, self.connection, self.space, self.query = core, db, seen.space, query
        self.model = embedder.model
        self.db = db
        self.kinds = [str(kind) for kind in query.wanted.kinds]
        # RECALL and CHALLENGE speak of what was said, never of what was made of it (D39).
        self.with_summaries = query.include_summaries and query.mode not in (Mode.RECALL, Mode.CHALLENGE)
        self.profile = ranking.PROFILES[query.mode]
        self.cools_down = self.profile.cools_down
        self.calibration = calibration_of(seen.space, self.model)
        self.asked = CandidateQuery(
            space_id=seen.space.id,
            model=self.model,
            dim=embedder.dim,
            vector=vector,
            words=seen.words,
            with_summaries=self.with_summaries,
        )
        self.documents = seen.documents
        self.breadth = BROADEST
        self.ways: dict[str, object] = {}
        self.notes: tuple[str, ...] = ()
        self.started = time.perf_counter()

    async def run(self) -> Recall:
        found = await self._candidates()
        ranked = self._rank(found, await self._uses(found))
        order = await self._arranged(ranked)
        chosen = await self._selected(ranked, order)
        return await self._recall(ranked, chosen)

    def _rank(self, found: Sequence[Candidate], uses: Uses | None = None) -> Ranked:
        return rank(
            found,
            self.query,
            asked=self.asked,
            calibration=self.calibration,
            now=self.core.now(),
            uses=uses,
        )

    async def _uses(self, found: Sequence[Candidate]) -> Uses:
        """What plain search does not ask for: how often each was recalled, and with D40 on, how it is used."""
        uses = Uses.none(len(found))
        ids = [one.id for one in found]
        if self.profile.floor is not None:
            times = await logs.times_recalled(self.db, ids)
            uses = replace(uses, recalled=np.array([times.get(id_, 0) for id_ in ids], dtype=np.float64))
        if self.query.engagement:
            known = await activity.get_many(self.db, ids)
            counts = np.array([known[id_].uses if id_ in known else 0 for id_ in ids], dtype=np.float64)
            idle = np.array([self._idle_days(known.get(id_)) for id_ in ids], dtype=np.float64)
            uses = replace(uses, engagement=ranking.engagement(counts), decay=ranking.decay(idle))
        return uses

    def _idle_days(self, used: Activity | None) -> float:
        if used is None or used.last_used_at is None:
            return 0.0
        return (self.core.now() - used.last_used_at).total_seconds() / SECONDS_A_DAY

    async def _candidates(self) -> list[Candidate]:
        """The most promising by vector and by words, and their neighbours, within what may be returned."""
        is_plain = not (self.query.wanted.is_selective or self.with_summaries)
        found = await (self._gathered() if is_plain else self._within())
        more = [] if self.query.wanted.is_selective else await self._beside(found)
        self.ways["by_neighbours"] = len(more)
        return found + more

    async def _gathered(self) -> list[Candidate]:
        """Of the whole space, by whichever way to the nearest is the faster one here."""
        exactly = await self._exactly()
        started = time.perf_counter()
        found = await candidates.gathered(
            self.db, self.asked, kinds=self.kinds, exactly=exactly, promise=self._promise(), breadth=self.breadth
        )
        if pace := self.core.paces.get(self._key):
            pace.took(exactly, time.perf_counter() - started)
        self.ways |= {"by_vector": found.by_vector, "by_words": found.by_words}
        return found.candidates

    def _promise(self) -> candidates.Promise:
        return candidates.Promise(
            lexical_share=ranking.LEXICAL_SHARE,
            full_match=ranking.FULL_MATCH * self.asked.most_possible,
            low=self.calibration.low,
            high=self.calibration.high,
            most=max(LOOKED_AT, 2 * (self.query.limit or LIMIT)),
        )

    async def _within(self) -> list[Candidate]:
        """Of what a filter leaves, and of the summaries."""
        near, matching, summaries = await self._found()
        ids = list(dict.fromkeys([*self._promising(near, matching), *summaries]))
        return await candidates.details(self.connection, self.asked, ids, cosines=near | summaries, words=matching)

    async def _beside(self, found: Sequence[Candidate]) -> list[Candidate]:
        """The neighbours of the best. Where a filter says what may be returned, they are not asked for."""
        threaded = [one for one in found if one.thread is not None]
        if not threaded:
            return []
        relevance = self._rank(threaded).relevance
        best = [threaded[i] for i in np.argsort(-relevance, kind="stable")[: candidates.FLOW_FROM]]
        return await candidates.neighbours(self.connection, self.asked, best, known={one.id for one in found})

    async def _found(self) -> tuple[Found, Found, Found]:
        """What is near, what matches, and the summaries that are near where no leg looks at them."""
        wanted = self.query.wanted
        if wanted.is_selective or self.with_summaries:
            few = candidates.filtered(self.db, wanted)
            of_few = candidates.nearest_of(self.connection, self.asked, few)
            (left, near), (also, matching) = await self._both(
                of_few, partial(candidates.matching_of, asked=self.asked, few=few)
            )
            if max(left, also) <= candidates.EXACT_BELOW:
                self.ways["search"] = f"exact: the filter leaves {max(left, also):,}"
                return near, matching, {}
        near, matching = await self._both(self._nearest(), self._matching)
        self.ways |= {"by_vector": len(near), "by_words": len(matching)}
        if not self.with_summaries:
            return near, matching, {}
        summaries = candidates.these(await candidates.summaries(self.db))
        return near, matching, (await candidates.nearest_of(self.connection, self.asked, summaries))[1]

    def _promising(self, near: Found, matching: Found) -> list[UUID]:
        """Those that could come out first. What one leg did not return is at most as good there as its last; where it
        returned all it has, as good as nothing."""
        ids = list(dict.fromkeys([*near, *matching]))
        most = max(LOOKED_AT, 2 * (self.query.limit or LIMIT))
        if len(ids) <= most:
            return ids
        farthest, poorest = (min(leg.values()) if len(leg) >= candidates.POOL else 0.0 for leg in (near, matching))
        cosine = np.array([near.get(id_, farthest) for id_ in ids])
        words = np.array([matching.get(id_, poorest) for id_ in ids])
        lexical = ranking.lexical_match(words, self.asked.most_possible)
        at_best = ranking.own_relevance(lexical, self.calibration.similarity(cosine))
        return [ids[i] for i in np.argsort(-at_best, kind="stable")[:most]]

    async def _both(self, near: Leg[A], by_words: Callable[[Transaction], Leg[A]]) -> tuple[A, A]:
        """The two legs; side by side where a second connection is free, since each is work for one core."""
        if not self.core.database.is_at_leisure:
            return await near, await by_words(self.connection)

        async def beside() -> A:
            async with self.core.search(self.space.id) as other:
                return await by_words(other)

        return await side_by_side(near, beside())

    async def _exactly(self) -> bool:
        """Whether to look at every vector; without an index there is no other way, and of very many it never pays."""
        if self.asked.vector is None:
            self.ways["search"] = "by words alone"
            return True
        least, most = self.core.settings.hnsw_min_rows, candidates.MEASURED_UP_TO
        count = await self._count() if self.documents * MOST >= least else 0
        if count:
            self.breadth = min(max(round(count / max(self.documents, 1)), 1), BROADEST)
        if count < least:
            self.ways["search"] = "exact: every vector"
            return True
        exactly = count <= most and bool(self.core.paces.setdefault(self._key, Pace(True, False)).way())
        rows = counted(count, "vector") if count <= most else f"over {most:,} vectors"
        self.ways["search"] = f"{'exact' if exactly else 'HNSW'}: {rows}"
        return exactly

    async def _nearest(self) -> Found:
        exactly = await self._exactly()
        within = self.query.wanted if self.query.wanted.is_selective else None
        return await candidates.nearest(
            self.connection, self.asked, kinds=self.kinds, exactly=exactly, breadth=self.breadth, within=within
        )

    async def _matching(self, db: Transaction) -> Found:
        found = await candidates.matching(db, self.asked, kinds=self.kinds)
        if not self.query.wanted.is_selective:
            return found
        permitted = await candidates.allowed(db, list(found), self.query.wanted)
        return {id_: score for id_, score in found.items() if id_ in permitted}

    @property
    def _key(self) -> tuple[UUID, str, tuple[str, ...]]:
        return self.space.id, self.model, tuple(self.kinds)

    async def _count(self) -> int:
        """Counted at most every half minute: it decides between exact and HNSW, and nothing else."""
        key = self._key
        count, at = self.core.counts.get(key, (0, -math.inf))
        if time.monotonic() - at > COUNT_SECONDS:
            count = await candidates.count(self.db, model=self.model, kinds=self.kinds)
            self.core.counts[key] = (count, time.monotonic())
        return count

    async def _arranged(self, ranked: Ranked) -> list[int]:
        """Best first; of two statements of the same thing the newer first, where the question asks how it is now."""
        order: list[int] = np.argsort(-ranked.score, kind="stable").tolist()
        if not ranking.asks_for_the_present(self.query.text):
            return order
        first = order[: ranking.UPDATE_WINDOW]
        ids = [ranked.candidates[i].id for i in first]
        read = await nodes.get_many(self.db, ids)
        return ranking.newest_first(
            order,
            question=self.query.text,
            relevance=ranked.relevance,
            moments=[one.moment for one in ranked.candidates],
            texts={i: read[ranked.candidates[i].id].text or "" for i in first},
            cosines=await self._cosines(ids),
        )

    async def _cosines(self, ids: Sequence[UUID]) -> NDArray[np.float32]:
        """How alike some nodes are; one without a vector is like none."""
        vectors = await candidates.vectors_of(self.db, ids, model=self.model)
        none = np.zeros(self.asked.dim, dtype=np.float32)
        rows = np.array([vectors.get(id_, none) for id_ in ids], dtype=np.float32).reshape(len(ids), len(none))
        cosines: NDArray[np.float32] = rows @ rows.T
        return cosines

    async def _selected(self, ranked: Ranked, order: list[int]) -> selection.Selection:
        ids = [one.id for one in ranked.candidates]
        compared = {i: place for place, i in enumerate(order[:COMPARED])} if self.profile.floor is not None else {}
        cosines = await self._cosines([ids[i] for i in compared])

        def cosine(a: int, b: int) -> float:
            return float(cosines[compared[a], compared[b]]) if a in compared and b in compared else 0.0

        chosen = selection.select(
            order,
            self.profile,
            ids=ids,
            relevance=ranked.relevance,
            score=ranked.score,
            cosine=cosine,
            lately=await self._lately(),
            threshold=self.query.threshold,
            weak=self.query.weak,
            limit=self.query.limit or (None if self.profile.cap else LIMIT),
        )
        if self.query.budget_tokens is not None:
            read = await nodes.get_many(self.db, [ids[i] for i in chosen.kept])
            tokens = {i: count_tokens(await self._as_told(read[ids[i]])) for i in chosen.kept}
            selection.within_budget(chosen, tokens.__getitem__, self.query.budget_tokens)
        return chosen

    async def _as_told(self, node: Node) -> str:
        """The text a hit is told with: an approved summary stands in for what would fill the budget alone (D31)."""
        stand_in = await self._stand_in(node)
        return (stand_in or node).text or ""

    async def _stand_in(self, node: Node) -> Node | None:
        budget = self.query.budget_tokens
        if not self.with_summaries or budget is None or count_tokens(node.text or "") <= budget:
            return None
        wanted = NodeFilter(metadata={"parent_id": str(node.id)})
        page = await nodes.list_page(self.db, wanted, limit=20, cursor=None)
        return next((one for one in page.items if one.is_summary), None)

    async def _lately(self) -> frozenset[UUID]:
        """What the last answers to this very question held, where the mode lets repeated answers cool down (D24)."""
        if not self.cools_down:
            return frozenset()
        return await logs.last_ids(self.db, self.query.text, self.query.mode)

    async def _recall(self, ranked: Ranked, chosen: selection.Selection) -> Recall:
        score = np.round(ranked.score, 6).tolist()
        parts = _parts(ranked, chosen.kept)
        ids = [ranked.candidates[i].id for i in chosen.kept]
        read = await nodes.get_many(self.db, ids)
        told = {id_: await self._stand_in(node) or node for id_, node in read.items()}
        passages = await self._passages(read, ranked, dict(zip(ids, chosen.kept, strict=True)))
        left_out = tuple(
            LeftOut(id=ranked.candidates[drop.place].id, score=score[drop.place], step=drop.step, why=drop.why)
            for drop in sorted(chosen.dropped, key=lambda drop: -score[drop.place])[:LEFT_OUT_SHOWN]
        )
        return Recall(
            query=self.query.text,
            hits=tuple(
                Hit(
                    node=told[id_],
                    score=score[i],
                    parts=Parts(**part),
                    source=_source(ranked, i),
                    passage=passages.get(id_) if told[id_] is read[id_] else None,
                )
                for id_, i, part in zip(ids, chosen.kept, parts, strict=True)
            ),
            model=self.model,
            mode=self.query.mode,
            floor=chosen.floor,
            left_out=left_out,
            weights=ranking.laid_open(ranking.weights_of(self.query)),
            ways=self.ways,
            notes=self.notes,
            latency_ms=round((time.perf_counter() - self.started) * 1000, 2),
        )

    async def _passages(self, read: Mapping[UUID, Node], ranked: Ranked, places: Mapping[UUID, int]) -> dict[UUID, str]:
        """What was found of each long text (D47). Where it has no vector, its windows are made here."""
        texts = {id_: node.text for id_, node in read.items() if node.text and may_be_long(node.text)}
        known = await candidates.windows_of(self.db, self.asked, list(texts)) if texts else {}
        found: dict[UUID, str] = {}
        for id_, text in texts.items():
            if some := known[id_] if id_ in known else windows(text) if is_long(text) else []:
                nearest = bool(ranked.similarity[places[id_]] >= ranked.lexical[places[id_]])
                found[id_] = passage_of(text, some, question=self.query.text, nearest=nearest)
        return found


async def side_by_side(one: Leg[A], other: Leg[A]) -> tuple[A, A]:
    """Both at once. When one fails, the other too has come to its end before anybody hears of it."""
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    if isinstance(first, BaseException):
        raise first
    if isinstance(second, BaseException):
        raise second
    return first, second


def calibration_of(space: Space, model: str) -> Calibration:
    """The one measured for this space, else the one that comes with the embedder (D28a)."""
    measured = space.settings.get("calibrations", {}).get(model)
    return Calibration(low=measured["low"], high=measured["high"]) if measured else shipped(model)


def _parts(ranked: Ranked, kept: Sequence[int]) -> list[dict[str, float]]:
    """The scores of what is kept, laid open; activation is the graph's."""
    columns = [np.round(getattr(ranked, name)[kept], 6).tolist() for name in LAID_OPEN]
    return [{"activation": 0.0, **dict(zip(LAID_OPEN, row, strict=True))} for row in zip(*columns, strict=True)]


def _source(ranked: Ranked, i: int) -> str:
    """What found this hit, mostly."""
    if ranked.flow[i] > max(ranked.lexical[i], ranked.similarity[i]):
        return "neighbour"
    if ranked.lexical[i] > 0 and ranked.similarity[i] > 0:
        return "both"
    return "words" if ranked.lexical[i] > 0 else "vector"
