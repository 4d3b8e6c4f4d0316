"""One question on its way through the store: candidates, their ranking, what is chosen, the nodes themselves."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.engine.core import Core, Pace
from recollect.memories.rules.text import count_tokens
from recollect.memories.rules.windows import MOST, ONE_IS_ENOUGH, is_long, windows
from recollect.memories.sql import activity, nodes
from recollect.model import Activity, Hit, LeftOut, Mode, Node, NodeFilter, Parts, Query, Recall
from recollect.ports import Embedder
from recollect.recall.filtered import candidates_within
from recollect.recall.rules import ranking, selection
from recollect.recall.rules.passages import passage_of
from recollect.recall.rules.ranking import Calibration, Numbers
from recollect.recall.sql import candidates, logs
from recollect.recall.sql import windows as windows_sql
from recollect.recall.sql.candidates import Candidate, CandidateQuery, FirstLook, Gathered, LexicalQuestion
from recollect.recall.sql.in_memory import Among, LookInMemory
from recollect.store.database import Transaction
from recollect.wording import counted

LIMIT = 20
LEFT_OUT_SHOWN = 50
COMPARED = 60
LOOKED_AT = 120
# The vector leg takes so many times as many windows as texts are wanted, where texts are long (D47).
BROADEST = 8
# Of so many texts of so many words the nearest few windows are read; all windows where the text holds nearly all asked.
LOOKED_INTO = 30
LONG_WORDS = 500
WINDOWS_READ = 3
NEARLY_ALL = 0.7
COUNT_SECONDS = 30.0
SECONDS_A_DAY = 86_400
LAID_OPEN = tuple(part.name for part in fields(Parts) if part.name not in ("activation", "rerank"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Uses:
    """How often each candidate was recalled (D19), and how it is used (D40), place by place."""

    recalled: Numbers
    engagement: Numbers
    decay: Numbers

    @classmethod
    def none(cls, count: int) -> "Uses":
        return cls(recalled=np.full(count, np.inf), engagement=np.zeros(count), decay=np.ones(count))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """Candidates and their numbers, place by place."""

    candidates: Sequence[Candidate]
    cosine: Numbers
    similarity: Numbers
    lexical: Numbers
    coverage: Numbers
    says: Numbers
    flow: Numbers
    standing: Numbers
    evidence: Numbers
    relevance: Numbers
    recency: Numbers
    importance: Numbers
    engagement: Numbers
    decay: Numbers
    bonus: Numbers
    score: Numbers


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
        share_known: float,
    ) -> None:
        self.core, self.db, self.query = core, db, query
        self.model = embedder.model
        self.kinds = [str(kind) for kind in query.wanted.kinds]
        self.among = Among(seen.version[0], db.space_id, self.model, embedder.dim, tuple(sorted(self.kinds)))
        self.is_selective = selection.is_selective(query.wanted)
        self.most = max(LOOKED_AT, 2 * (query.limit or LIMIT))
        # RECALL and CHALLENGE speak of what was said, never of what was made of it (D39).
        self.with_summaries = query.include_summaries and query.mode not in (Mode.RECALL, Mode.CHALLENGE)
        self.profile = ranking.PROFILES[query.mode]
        self.cools_down = self.profile.cools_down
        self.calibration = ranking.calibration_of(seen.settings, self.model)
        self.asked = CandidateQuery(
            model=self.model,
            dim=embedder.dim,
            vector=vector,
            share_known=share_known,
            words=seen.words,
            mean_length=seen.mean_length,
            with_summaries=self.with_summaries,
        )
        self.documents, self.version = seen.documents, seen.version
        self.look: LookInMemory | None = None
        self.breadth = BROADEST
        self.ways: dict[str, object] = {}
        self.notes: tuple[str, ...] = ()
        self.started = time.perf_counter()

    async def run(self) -> Recall:
        pool = await self._by_passages(await self._candidates())
        ranked = self._rank(pool, await self._uses(pool))
        order = await self._arranged(ranked)
        chosen = await self._selected(ranked, order)
        return await self._recall(ranked, chosen)

    def _rank(self, pool: Sequence[Candidate], uses: Uses | None = None) -> Ranked:
        return rank(
            pool,
            self.query,
            asked=self.asked,
            calibration=self.calibration,
            now=self.core.now(),
            uses=uses,
        )

    async def _uses(self, pool: Sequence[Candidate]) -> Uses:
        """What plain search does not ask for: how often each was recalled, and with D40 on, how it is used."""
        uses = Uses.none(len(pool))
        ids = [candidate.id for candidate in pool]
        if self.profile.floor is not None:
            times = await logs.times_recalled(self.db, ids)
            uses = replace(uses, recalled=np.array([times.get(id_, 0) for id_ in ids], dtype=np.float64))
        if self.query.engagement:
            activities = await activity.get_many(self.db, ids)
            counts = np.array([activities[id_].uses if id_ in activities else 0 for id_ in ids], dtype=np.float64)
            idle = np.array([self._idle_days(activities.get(id_)) for id_ in ids], dtype=np.float64)
            uses = replace(uses, engagement=ranking.engagement(counts), decay=ranking.decay(idle))
        return uses

    def _idle_days(self, used: Activity | None) -> float:
        if used is None or used.last_used_at is None:
            return 0.0
        return (self.core.now() - used.last_used_at).total_seconds() / SECONDS_A_DAY

    async def _candidates(self) -> list[Candidate]:
        """The most promising by vector and by words, and their neighbours, within what may be returned."""
        is_plain = not (self.is_selective or self.with_summaries)
        pool = await (self._gathered() if is_plain else candidates_within(self))
        more = [] if self.is_selective else await self._beside(pool)
        self.ways["by_neighbours"] = len(more)
        return pool + more

    async def _gathered(self) -> list[Candidate]:
        """Of the whole space, by whichever way to the nearest is the faster one here."""
        self.look = await self._in_memory()
        both_legs = (
            self.look.gathered(self._promise(), breadth=self.breadth) if self.look else await self._by_database()
        )
        self.ways |= {"by_vector": both_legs.by_vector, "by_words": both_legs.by_words}
        return both_legs.candidates

    async def _in_memory(self) -> LookInMemory | None:
        """A look at this space in memory, where it is kept there as it is."""
        if self.asked.vector is None or not self.may_be_many:
            return None
        about = {"texts": self.documents, "words": math.ceil(self.documents * self.asked.mean_length)}
        of = self.core.in_memory.of
        kept = of(self.core, self.among, version=self.version, vectors=await self._count(), **about)
        if kept is None:
            return None
        self.ways["search"] = f"exact: {counted(len(kept.vectors.rows), 'vector')} in memory"
        return await kept.look(self.asked, self.asked.vector)

    async def _by_database(self) -> Gathered:
        exactly = await self.exactly()
        started = time.perf_counter()
        find = partial(candidates.gathered, self.db, self.asked, kinds=self.kinds, promise=self._promise())
        both_legs = await find(exactly=exactly, breadth=self.breadth)
        if pace := self.core.paces.get(self.among):
            pace.took(exactly, time.perf_counter() - started)
        return both_legs

    def _promise(self) -> candidates.Promise:
        return candidates.Promise(
            lexical_share=ranking.LEXICAL_SHARE,
            full_match=ranking.FULL_MATCH * self.asked.most_possible,
            low=self.calibration.low,
            high=self.calibration.high,
            most=self.most,
        )

    async def _beside(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """The neighbours of the best. Where a filter says what may be returned, they are not asked for."""
        threaded = [candidate for candidate in pool if candidate.thread is not None]
        if not threaded:
            return []
        relevance = self._rank(threaded).relevance
        best = [threaded[i] for i in np.argsort(-relevance, kind="stable")[: candidates.FLOW_FROM]]
        pool_ids = {candidate.id for candidate in pool}
        if self.look:
            return self.look.neighbours(best, pool_ids=pool_ids)
        return await candidates.neighbours(self.db, self.asked, best, pool_ids=pool_ids)

    async def _by_passages(self, pool: list[Candidate]) -> list[Candidate]:
        """Long texts by the words of the passage that is nearest: what is scattered over all of them is mostly chance.

        One that holds nearly all that was asked is read closely: it may stand together somewhere.
        """

        matched = [i for i, one in enumerate(pool) if one.length >= LONG_WORDS and one.words]
        if not matched:
            return pool
        ranked = self._rank(pool)
        best = sorted(matched, key=lambda i: -ranked.relevance[i])[:LOOKED_INTO]
        closely = [pool[i].id for i in best if ranked.coverage[i] >= NEARLY_ALL]
        by_window = await windows_sql.by_their_windows(
            self.db, self.asked, [pool[i] for i in best], most=WINDOWS_READ, question=self.query.text, closely=closely
        )
        return [by_window.get(candidate.id, candidate) for candidate in pool]

    async def exactly(self) -> bool:
        """Whether to look at every vector; without an index there is no other way, and of very many it never pays."""
        if self.asked.vector is None:
            self.ways["search"] = "by words alone"
            return True
        least, most = self.core.settings.hnsw_min_rows, candidates.MEASURED_UP_TO
        count = await self._count() if self.may_be_many else 0
        if count < least:
            self.ways["search"] = "exact: every vector"
            return True
        exactly = count <= most and bool(self.core.paces.setdefault(self.among, Pace(True, False)).way())
        rows = counted(count, "vector") if count <= most else f"over {most:,} vectors"
        self.ways["search"] = f"{'exact' if exactly else 'HNSW'}: {rows}"
        return exactly

    @property
    def may_be_many(self) -> bool:
        """Whether there can be so many vectors that it pays to count them: a text has as many as it has windows."""
        return self.documents * MOST >= self.core.settings.hnsw_min_rows

    async def _count(self) -> int:
        """Counted at most every half minute: it decides between exact and HNSW, and nothing else."""
        count, at = self.core.counts.get(self.among, (0, -math.inf))
        if time.monotonic() - at > COUNT_SECONDS:
            count = await candidates.count(self.db, model=self.model, kinds=self.kinds)
            self.core.counts[self.among] = (count, time.monotonic())
        if count:
            self.breadth = min(max(round(count / max(self.documents, 1)), 1), BROADEST)
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
            relevance=ranking.logistic(ranked.evidence),
            moments=[candidate.moment for candidate in ranked.candidates],
            texts={i: _statement(read[ranked.candidates[i].id]) for i in first},
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
        ids = [candidate.id for candidate in ranked.candidates]
        compared = {i: row for row, i in enumerate(order[:COMPARED])} if self.profile.floor is not None else {}
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
        made_from_it = NodeFilter(metadata={"parent_id": str(node.id)})
        page = await nodes.list_page(self.db, made_from_it, limit=20, cursor=None)
        return next((item for item in page.items if item.is_summary), None)

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
        shown = {id_: await self._stand_in(node) or node for id_, node in read.items()}
        passages = await self._passages(read, ranked, dict(zip(ids, chosen.kept, strict=True)))
        left_out = tuple(
            LeftOut(id=ranked.candidates[drop.place].id, score=score[drop.place], step=drop.step, why=drop.why)
            for drop in sorted(chosen.dropped, key=lambda drop: -score[drop.place])[:LEFT_OUT_SHOWN]
        )
        return Recall(
            query=self.query.text,
            hits=tuple(
                Hit(
                    node=shown[id_],
                    score=score[i],
                    parts=Parts(**part),
                    source=_source(ranked, i),
                    passage=passages.get(id_) if shown[id_] is read[id_] else None,
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
        texts = {id_: node.text for id_, node in read.items() if node.text and len(node.text) > ONE_IS_ENOUGH}
        stored = await windows_sql.windows_of(self.db, self.asked, list(texts)) if texts else {}
        passages: dict[UUID, str] = {}
        for id_, text in texts.items():
            if some := stored[id_] if id_ in stored else windows(text) if is_long(text) else []:
                nearest = bool(ranked.similarity[places[id_]] >= ranked.lexical[places[id_]])
                passages[id_] = passage_of(text, some, question=self.query.text, nearest=nearest)
        return passages


def _parts(ranked: Ranked, places: Sequence[int]) -> list[dict[str, float]]:
    """The scores of what is kept, laid open; activation is the graph's."""
    columns = [np.round(getattr(ranked, name)[places], 6).tolist() for name in LAID_OPEN]
    return [{"activation": 0.0, **dict(zip(LAID_OPEN, row, strict=True))} for row in zip(*columns, strict=True)]


def _statement(node: Node) -> str:
    """What a node states; a long text makes many statements, and none of them is its own."""
    return "" if node.text is None or is_long(node.text) else node.text


def _source(ranked: Ranked, i: int) -> str:
    """What found this hit, mostly."""
    if ranked.flow[i] > max(ranked.lexical[i], ranked.similarity[i]):
        return "neighbour"
    if ranked.lexical[i] > 0 and ranked.similarity[i] > 0:
        return "both"
    return "words" if ranked.lexical[i] > 0 else "vector"


# -- the numbers of each candidate, place by place, and what they add up to: the rules of ranking over whole columns


def rank(
    pool: Sequence[Candidate],
    query: Query,
    *,
    asked: CandidateQuery,
    calibration: Calibration,
    now: datetime,
    uses: Uses | None = None,
) -> Ranked:
    """Lay open what each candidate has, and add it up."""
    cosine, words, moment, length = _columns(pool, "cosine", "words", "moment", "length")
    before, after = _neighbours(pool)
    is_turn = (before >= 0) | (after >= 0)
    similarity = calibration.similarity(cosine)
    says = ranking.says(length, is_turn, asked.mean_length)
    lexical = ranking.lexical_match(words, asked.most_possible)
    coverage = about = np.zeros(len(pool))
    if asked.words is not None:
        held, rarities = _held(pool, asked.words), np.array([*asked.words.rarities.values()])
        window = ranking.together(held, length, rarities, asked.mean_length, before, after)
        beside = ranking.lexical_match(np.where(is_turn, window, words), asked.most_possible)
        lexical = ranking.with_neighbours(lexical, beside)
        coverage = ranking.covered(held, rarities, asked.most_possible, before, after)
        about = _covered_of_the_matter(held, rarities, asked.words, coverage, before, after)
    own = says * ranking.own_relevance(lexical, similarity, by_words_alone=asked.vector is None)
    flow = ranking.flow(own, before, after)
    said = says * similarity
    standing = ranking.standing_out(said)
    evidence = ranking.evidence(own + flow, coverage, standing)
    read = ranking.how_well_read(asked.share_known) * (cosine != 0)
    relevance = ranking.relevance(evidence, said, about, standing, read=read)
    recency = ranking.recency((now.timestamp() - moment) / SECONDS_A_DAY)
    importance = ranking.importance([candidate.importance for candidate in pool])
    used = uses or Uses.none(len(pool))
    bonus = ranking.bonus(similarity, used.recalled)
    score = ranking.score(
        ranking.weights_of(query),
        relevance=relevance,
        recency=recency,
        importance=importance,
        engagement=used.engagement,
        decay=used.decay,
    )
    return Ranked(
        candidates=pool,
        cosine=cosine,
        similarity=similarity,
        lexical=lexical,
        coverage=coverage,
        says=says,
        flow=flow,
        standing=standing,
        evidence=evidence,
        relevance=relevance,
        recency=recency,
        importance=importance,
        engagement=used.engagement,
        decay=used.decay,
        bonus=bonus,
        score=score + bonus,
    )


def _held(pool: Sequence[Candidate], words: LexicalQuestion) -> Numbers:
    """The weight of each word of the question (a column) in each candidate (a row)."""
    held = np.array([candidate.held for candidate in pool], dtype=np.float64)
    return held.reshape(len(pool), len(words.rarities))


def _covered_of_the_matter(
    held: Numbers,
    rarities: Numbers,
    words: LexicalQuestion,
    coverage: Numbers,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> Numbers:
    """The same without the words of asking, unless there are no others."""
    if not words.asked_about or words.asked_about == words.most_possible:
        return coverage
    matter = np.array([term not in words.asking for term in words.rarities])
    return ranking.covered(held[:, matter], rarities[matter], words.asked_about, before, after)


def _columns(pool: Sequence[Candidate], *names: str) -> list[Numbers]:
    return [np.fromiter(map(attrgetter(name), pool), dtype=np.float64, count=len(pool)) for name in names]


def _neighbours(pool: Sequence[Candidate]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each candidate the places of the one before and the one after it in its thread; -1 for none."""
    places = {(turn.thread, turn.position): row for row, turn in enumerate(pool) if turn.position is not None}

    def beside(step: int) -> NDArray[np.int64]:
        rows = (-1 if turn.position is None else places.get((turn.thread, turn.position + step), -1) for turn in pool)
        return np.fromiter(rows, dtype=np.int64, count=len(pool))

    return beside(-1), beside(1)
