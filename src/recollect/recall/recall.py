"""Recalling: from a question to the memories a careful person would have picked, in order, each score laid open.

The walk: embed the question; candidates by vector and by words; their neighbours in the thread (recall/search);
relevance and score (recall/rules/ranking); floor, twins, gap, cooldown, cap, budget (recall/rules/selection); then the
nodes themselves. docs/concepts/recall.md goes through it by hand.

Where a reranker is configured, it reads the first hits when the search is done, so that no connection waits for a
model: what may be shown is still decided by relevance, whose floors mean the same everywhere, and the order among that
is the reranker's. Last, the question is noted in the query log, and the use of what was handed out is counted.
"""

import json
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import NamedTuple
from uuid import UUID, uuid4

import anyio.to_thread
import numpy as np

from recollect.engine.core import Core, SeenSpace
from recollect.errors import InvalidInput, ProviderProblem, RecollectError
from recollect.graph.rules.strength import ONE_TRAVERSAL
from recollect.graph.sql import edges
from recollect.memories.rules.text import is_storable
from recollect.model import Hit, LeftOut, LoggedHit, Mode, Parts, Query, Recall, RecallLog, TokenUsage
from recollect.ports import Embedder, Vectors
from recollect.recall.rules import lexical, ranking, selection
from recollect.recall.search import LIMIT, Search
from recollect.recall.sql import candidates, logs
from recollect.store.database import Transaction, read
from recollect.wording import check_limit, listed

MOST = 1000
LONGEST_QUERY = 100_000
# So many hits are read again by a reranker, also where fewer are wanted.
READ_AGAIN = 30
PARTS = tuple(field.name for field in fields(Parts))
# What an answer says that was found while the embedder failed (D50).
BY_WORDS_ALONE = "Searched by words alone"
WAITING = "Some texts wait to be embedded and are found by their words alone until then (`recollect work`)."


async def recall(core: Core, space_id: UUID, query: Query, *, noted: bool = True) -> Recall:
    """Answer a question, log it, and count the use of what was found; or only look, as while somebody types."""
    _check(query)
    answer = partial(_recalled, core, space_id, query, noted=noted)
    # The other modes rest on what was answered before, which a standby may learn later.
    return await (read(answer) if is_repeatable(query) else answer())


async def _recalled(core: Core, space_id: UUID, query: Query, *, noted: bool) -> Recall:
    asked = _widened(core, query)
    recalled, waiting = await (_by_graph if query.graph else _answered)(core, space_id, asked)
    recalled = await _reranked(core, query, recalled)
    notes = (*recalled.notes, WAITING) if waiting else recalled.notes
    return replace(recalled, notes=notes, id=await note(core, space_id, recalled, query=query) if noted else None)


async def find(core: Core, space_id: UUID, query: Query, *, cool_down: bool = True) -> Recall:
    """Answer a question, without logging it."""
    _check(query)
    asked = _widened(core, query)
    recalled, _ = await _answered(core, space_id, asked, cool_down=cool_down, repeat=False)
    return await _reranked(core, query, recalled)


async def _answered(
    core: Core, space_id: UUID, query: Query, *, cool_down: bool = True, repeat: bool = True
) -> tuple[Recall, bool]:
    """What is found, in one look into the database; and whether some texts wait to be embedded.

    The question is embedded before, so that no connection waits for an embedder: with that of the space as it was last
    seen. Should search use another model, it is asked again.
    """
    started = time.perf_counter()
    last = core.seen.get(space_id)
    embedder, notes = _embedder(core, last.model if last else None)
    asked = await embedded(core, embedder, query.text)
    notes = (*notes, asked.why_not) if asked.why_not else notes
    is_plain = not (selection.is_selective(query.wanted) or query.include_summaries)
    async with core.search(space_id, keeps_plans=is_plain) as db:
        seen = await candidates.first_look(db, query.text, languages=last.languages if last else ())
        core.seen[space_id] = SeenSpace(seen.model, seen.languages, seen.vectors)
        if _embedder(core, seen.model)[0] is embedder:
            search = Search(core, db, seen, query, embedder, asked.vector, asked.share_known)
            search.cools_down = cool_down and search.profile.cools_down
            search.notes, search.started = (*notes, *_misspelled(seen.meant)), started
            if not repeat:
                return await search.run(), seen.waiting
            return await repeated(core, space_id, seen.version, query, search.run), seen.waiting
    return await _answered(core, space_id, query, cool_down=cool_down, repeat=repeat)


async def _by_graph(core: Core, space_id: UUID, query: Query) -> tuple[Recall, bool]:
    async with core.transaction(space_id) as db:
        seen = await candidates.first_look(db, query.text)
    search = partial(graph_search, core, space_id, query)
    return await repeated(core, space_id, seen.version, query, search), seen.waiting


async def graph_search(core: Core, space_id: UUID, query: Query) -> Recall:
    """By similarity, and by activation that spreads from what is nearest (recall/by_graph)."""
    from recollect.recall import by_graph  # with all that reads a graph: only those wait who walk one

    wide = replace(query, limit=candidates.POOL, mode=Mode.NEUTRAL, threshold=None, weak=True)
    near, _ = await _answered(core, space_id, wide, repeat=False)
    asked = await embedded(core, core.embedder(near.model), query.text)
    return await by_graph.spread(core, space_id, query, near, asked.vector)


def _misspelled(meant: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Which words of a question no text holds, where others were looked for in their stead (D44)."""
    if not meant:
        return ()
    unknown = listed(f'"{word}"' for word in meant)
    return (f"No text holds {unknown}: words that begin like that or are spelled nearly so were looked for.",)


def _check(query: Query) -> None:
    if not isinstance(query.text, str):
        raise InvalidInput(f"The question must be a string, not {type(query.text).__name__}.", field="query")
    if not query.text.strip():
        raise InvalidInput("The question is empty: say what to look for.", field="query")
    if not is_storable(query.text):
        raise InvalidInput("The question holds a NUL byte or a lone surrogate: remove it.", field="query")
    if len(query.text) > LONGEST_QUERY:
        raise InvalidInput(f"The question has over {LONGEST_QUERY:,} characters: shorten it.", field="query")
    if query.limit is not None:
        check_limit(query.limit, MOST)
    if query.threshold is not None and not 0 <= query.threshold <= 1:
        raise InvalidInput(f"The threshold is from 0 to 1, not {query.threshold}.", field="threshold")
    if query.budget_tokens is not None and not (hasattr(query.budget_tokens, "__index__") and query.budget_tokens >= 1):
        raise InvalidInput("The budget is a whole number, at least 1 token.", field="budget_tokens")


def _embedder(core: Core, in_use: str | None) -> tuple[Embedder, tuple[str, ...]]:
    """The embedder whose vectors search uses; while a new model is being brought in, still the former one (D35).

    Of a space that was not seen yet it is guessed.
    """
    configured = core.embedder()
    if in_use in (None, configured.model):
        return configured, ()
    try:
        former = core.embedder(in_use)
    except RecollectError:
        return configured, (f"The vectors of {configured.model} are not complete yet, and {in_use} cannot be used.",)
    return former, (f"Search uses {former.model} until the vectors of {configured.model} are complete.",)


# -- repeated questions: what was found, and the vectors of questions, kept for a little while (D36)
#
# A recall may be repeated while its space has not changed. The database counts the changes of each space (`version`,
# raised in the transaction that changes it), so this holds for every process at once. Only plain search is kept: the
# answers of the other modes depend on which answers were given before (D19, D24), and so does engagement (D40).
# The vector of a question depends on nothing but the model.


def is_repeatable(query: Query) -> bool:
    """Whether the same question finds the same while nothing changes."""
    return query.mode is Mode.NEUTRAL and not query.engagement


def as_key(query: Query) -> str:
    """The same for two queries that ask the same."""
    return json.dumps(logs.as_document(query), sort_keys=True, ensure_ascii=False)


async def repeated(
    core: Core, space_id: UUID, version: Hashable, query: Query, search: Callable[[], Awaitable[Recall]]
) -> Recall:
    """What `search` finds, or found a moment ago in the same state of the space.

    `version` was read before the search: what changes meanwhile is found, and kept under a version that has passed.
    """
    if not core.settings.cache_size or not is_repeatable(query):
        return await search()
    started = time.perf_counter()
    key = (space_id, version, core.settings.embedder, as_key(query))
    earlier = core.recalls.get(key)
    if earlier is None:
        recall = await search()
        if not any(note.startswith(BY_WORDS_ALONE) for note in recall.notes):  # the embedder may be back in a moment
            core.recalls.put(key, recall)
        return recall
    latency = round((time.perf_counter() - started) * 1000, 2)
    return replace(earlier, latency_ms=latency, ways={**earlier.ways, "search": "as found a moment ago"})


class AskedVector(NamedTuple):
    """The vector of a question, how much of the question its model knows, or why there is none."""

    vector: Vectors | None
    share_known: float = 1.0
    why_not: str | None = None


async def embedded(core: Core, embedder: Embedder, text: str) -> AskedVector:
    """The vector of a question, made once. Without one a question is answered by its words (D43, D50)."""
    key = (embedder.model, text)
    earlier = core.questions.get(key)
    if earlier is not None:
        return AskedVector(*earlier)
    try:
        if not await anyio.to_thread.run_sync(embedder.can_read, text):
            why_not = f"{embedder.model} cannot read this question: it was searched by words alone."
            return AskedVector(None, why_not=why_not)
        (vector,) = await embedder.embed([text])
        share_known = (
            1.0 if lexical.is_taken_for_english(text) else await anyio.to_thread.run_sync(embedder.knows, text)
        )
    except ProviderProblem as problem:
        return AskedVector(None, why_not=f"{BY_WORDS_ALONE}: {problem.message}")
    core.questions.put(key, (vector, share_known))
    return AskedVector(vector, share_known)


# -- a second look at the first hits, by a reranker that reads each together with the question (D52)


def _widened(core: Core, query: Query) -> Query:
    """The question as it is searched for: with enough hits for the reranker to choose from."""
    if query.graph or core.reranker() is None:
        return query
    return replace(query, limit=max(query.limit or LIMIT, READ_AGAIN))


async def _reranked(core: Core, query: Query, recalled: Recall) -> Recall:
    """The hits in the order of the reranker, as many as were asked for."""
    reranker = core.reranker()
    if query.graph or reranker is None or not recalled:
        return recalled
    started = time.perf_counter()
    try:
        scores = await reranker.scores(query.text, [hit.text for hit in recalled[:READ_AGAIN]])
    except ProviderProblem as problem:
        return _cut(replace(recalled, notes=(*recalled.notes, f"Not reranked: {problem.message}")), query)
    read = [_scored(hit, float(score)) for hit, score in zip(recalled[:READ_AGAIN], scores, strict=True)]
    # What is hardly related stays behind what is (D46), whatever a reranker thinks of it.
    read.sort(key=lambda hit: (hit.relevance < ranking.RELATED, -hit.parts.rerank))
    spent = 1000 * (time.perf_counter() - started)
    ways = {**recalled.ways, "reranked": f"{len(read)} by {reranker.name}"}
    whole = replace(
        recalled, hits=(*read, *recalled[READ_AGAIN:]), ways=ways, latency_ms=round(recalled.latency_ms + spent, 2)
    )
    return _cut(whole, query)


def _scored(hit: Hit, score: float) -> Hit:
    return replace(hit, parts=replace(hit.parts, rerank=round(float(np.clip(score, 0, 1)), 6)))


def _cut(recalled: Recall, query: Query) -> Recall:
    """As many hits as were asked for; a mode with a cap has kept to it already."""
    most = query.limit or (len(recalled) if ranking.PROFILES[query.mode].cap else LIMIT)
    beyond = tuple(
        LeftOut(id=hit.node.id, score=hit.score, step="limit", why=f"beyond the first {most}")
        for hit in recalled[most:]
    )
    return replace(recalled, hits=recalled[:most], left_out=beyond + recalled.left_out)


# -- the query log (D11, D12): written after a recall, so that searching never waits for a row that somebody else counts


async def note(
    core: Core,
    space_id: UUID,
    recall: Recall,
    *,
    query: Query,
    given: Sequence[UUID] | None = None,
    response: str | None = None,
    prompt_hash: str | None = None,
    debug_prompt: str | None = None,
    external_knowledge_used: bool = False,
    confidence: float = 0.5,
    token_usage: TokenUsage | None = None,
    latency_ms: float | None = None,
) -> UUID:
    """Log one question, whoever answered it, and count the use of what was `given` (all hits, unless said)."""
    ids = tuple(hit.node.id for hit in recall.hits) if given is None else tuple(given)
    entry = RecallLog(
        id=uuid4(),
        user_query=query.text,
        mode=query.mode,
        memory_ids=ids,
        hits=tuple(_logged(hit) for hit in recall.hits),
        asked=logs.as_document(query),
        embedding_model=recall.model,
        floor=recall.floor,
        prompt_hash=prompt_hash,
        debug_prompt=debug_prompt,
        external_knowledge_used=external_knowledge_used,
        confidence_score=confidence,
        response=response,
        token_usage=token_usage or TokenUsage(),
        latency_ms=recall.latency_ms if latency_ms is None else latency_ms,
        created_at=core.now(),
    )
    paths = {id_: path["edges"] for id_, path in recall.ways.get("paths", {}).items()}
    if not paths:
        await core.database.note(space_id, logs.ADD, *logs.as_noted(entry))
        return entry.id
    async with core.database.noting(space_id) as db:
        await db.run(logs.ADD, core.database.role or "none", *logs.as_noted(entry))
        await _count_walks(db, entry, paths)
    return entry.id


async def _count_walks(db: Transaction, entry: RecallLog, paths: Mapping[str, Sequence[str]]) -> None:
    """Note by which edges the hits were reached; each of those was walked once, and grows stronger by it (A00b)."""
    await logs.add_paths(db, entry.id, paths)
    walked = {UUID(edge) for path in paths.values() for edge in path}
    await edges.reinforce(db, dict.fromkeys(walked, ONE_TRAVERSAL), entry.created_at)


def _logged(hit: Hit) -> LoggedHit:
    return LoggedHit(id=hit.node.id, score=hit.score, parts={name: getattr(hit.parts, name) for name in PARTS})
