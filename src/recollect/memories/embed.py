"""Embedding: jobs are claimed in batches, embedded off the loop, saved with their vectors in one statement.

While the model works on one batch, the one before it is saved and the next is claimed, so the model never waits for
the database. A new model's vectors are added beside the old ones; search switches when they are complete (D35).
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import anyio
import numpy as np

from recollect.engine.core import Core, log
from recollect.engine.sql import spaces
from recollect.errors import (
    Busy,
    DatabaseProblem,
    ProviderMisbehaved,
    ProviderProblem,
    ProviderUnavailable,
    RecollectError,
)
from recollect.memories.rules.windows import WHOLE, Window, windows
from recollect.memories.sql import jobs, vectors
from recollect.model import Kind, Space
from recollect.ports import Embedder, Vectors
from recollect.providers.embedders import embed_readable
from recollect.providers.pieces import unit_rows
from recollect.providers.spread import SpreadEmbedder
from recollect.recall.sql import lexicon

FIRST_RETRY_SECONDS = 5.0
REEMBED_AT_ONCE = 5000
SETTLE_FROM = 1000
PATIENCE_SECONDS = 120.0
GIVE_BACK_SECONDS = 10.0  # a database that is busy takes its time; one that is gone is not waited for longer
NAMED_AT_MOST = 1000
# So many batches are on a cluster at a time, each with the next one claimed.
MOST_SIDE_BY_SIDE = 256

# So much text is embedded between two looks at the clock of the jobs: what waits longer than they may is given back.
CHARACTERS_AT_ONCE = 1_000_000

# Jobs and the vectors of each (D47); none for a text that the model cannot read (D43).
Finished = tuple[Sequence[jobs.Job], Sequence[jobs.Passages]]


async def work(core: Core, space_id: UUID, *, only: Sequence[UUID] | None = None, batches: int | None = None) -> int:
    """Do what is waiting in one space; returns how many nodes were embedded.

    `only` does it for some nodes, `batches` stops after so many (when more are to have their turn).
    """
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        older_than = timedelta(seconds=core.settings.job_stuck_seconds)
        await jobs.reclaim_stuck(db, older_than=older_than, now=core.now())
    done = 0
    for embedder in _embedders(core, space):
        done += await _drain_widely(core, space, core.batch_embedder(embedder), only, batches)
    await _follow_model(core, space)
    await _renew_words(core, space_id, batches)
    await settle(core, done, at_once=batches is None)
    return done


async def until_searchable(core: Core, space_id: UUID, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Work (beside other workers) until these nodes can be found; returns those that have to wait, and why."""
    model = core.embedder().model
    still, last_progress = len(ids), time.monotonic()
    while time.monotonic() - last_progress < PATIENCE_SECONDS:
        done = await work(core, space_id, only=ids if len(ids) <= NAMED_AT_MOST else None)
        async with core.transaction(space_id) as db:
            left = await jobs.waiting(db, ids, model=model, now=core.now())
        if left.open == 0:
            return left.postponed
        if done or left.open < still:
            still, last_progress = left.open, time.monotonic()
        await anyio.sleep(0.02)
    return dict.fromkeys(ids, "its embedding is still waiting for a worker")


async def finish(core: Core, space_id: UUID) -> dict[UUID, str]:
    """Work (beside other workers) until nothing in a space waits; returns what was put off or failed, and why."""
    while True:
        done = await work(core, space_id)
        async with core.transaction(space_id) as db:
            open_, postponed = await jobs.unfinished(db, model=core.embedder().model, now=core.now())
        if not open_:
            return postponed
        if not done:
            await until_searchable(core, space_id, open_)


async def settle(core: Core, new: int, *, at_once: bool) -> None:
    """Statistics follow a load, not the night (D53): once there was much that is new, and it has come to an end."""
    core.unsettled += new
    if core.unsettled >= SETTLE_FROM and (at_once or not new):
        core.unsettled = 0
        await vectors.settle(core.database)


async def first_statistics(core: Core) -> None:
    """Those of a new database are made during its first load, not at its end.

    Without any, every index that begins with the space looks as good as the key: the check of a foreign key may then
    read through all that the space holds, for each row, and a connection keeps that plan until there are statistics.
    """
    if not core.has_statistics:
        core.has_statistics = True
        if await vectors.lacks_statistics(core.database):
            await vectors.settle(core.database)


async def retry_failed(core: Core, space_id: UUID) -> int:
    async with core.transaction(space_id) as db:
        return await jobs.retry_failed(db, core.now())


async def ensure_index(core: Core, embedder: Embedder) -> bool:
    """Build the HNSW index of a model once there are enough vectors for it to pay."""
    state = await vectors.index_state(core.database, embedder.model, embedder.dim)
    if state.state == "ready" or state.rows < core.settings.hnsw_min_rows:
        return False
    log.info("building the vector index", model=embedder.model, rows=state.rows)
    await vectors.build_index(
        core.database,
        embedder.model,
        embedder.dim,
        m=core.settings.hnsw_m,
        ef_construction=core.settings.hnsw_ef_construction,
    )
    return True


async def _renew_words(core: Core, space_id: UUID, batches: int | None) -> None:
    """The index of words follows the mean length of the texts and the tokeniser, a few texts at a time."""
    async with core.transaction(space_id) as db:
        is_due = await lexicon.is_due(db)
    left = math.inf if batches is None else batches
    while is_due and left > 0:
        async with core.transaction(space_id, in_passing=True) as db:
            is_due = bool(await lexicon.renew_some(db))
        left -= 1


def _embedders(core: Core, space: Space) -> list[Embedder]:
    """The configured embedder, and the one that search still uses if that is another (D35)."""
    embedders = [core.embedder()]
    if space.embedding_model not in (None, embedders[0].model):
        try:
            embedders.append(core.embedder(space.embedding_model))
        except RecollectError as problem:
            log.warning("the former embedder cannot be used", model=space.embedding_model, why=problem.message)
    return embedders


async def _drain_widely(
    core: Core, space: Space, embedder: Embedder, only: Sequence[UUID] | None, batches: int | None
) -> int:
    """Claim, embed and save; on a cluster by as many at a time as find a whole batch, each with its own."""
    many = await _side_by_side(core, space, embedder)
    if many == 1:
        return await _drain(core, space, embedder, only, batches)
    draining = [asyncio.create_task(_drain(core, space, embedder, only, batches)) for _ in range(many)]
    try:
        ended, _ = await asyncio.wait(draining, return_when=asyncio.FIRST_EXCEPTION)
        return sum(task.result() for task in ended)
    finally:
        # Each is cancelled once, and waited for: it gives back what it has claimed.
        for task in draining:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait(draining)


async def _side_by_side(core: Core, space: Space, embedder: Embedder) -> int:
    if not isinstance(embedder, SpreadEmbedder):
        return 1
    async with core.transaction(space.id) as db:
        waiting = (await jobs.counts(db, model=embedder.model)).waiting
    whole = waiting // core.settings.embedding_batch
    return 1 if whole < 2 else min(whole, await anyio.to_thread.run_sync(embedder.width), MOST_SIDE_BY_SIDE)


async def _drain(core: Core, space: Space, embedder: Embedder, only: Sequence[UUID] | None, batches: int | None) -> int:
    """Claim, embed and save until nothing is waiting for this embedder."""
    done, left = 0, math.inf if batches is None else batches
    batch = await _claim(core, space, embedder, only)
    following: list[jobs.Job] = []
    finished: Finished | None = None
    while batch or finished:
        stop = anyio.CancelScope()
        embedding = asyncio.create_task(_embed_unless(stop, core, space, embedder, batch))
        try:
            if finished:
                await _save(core, space, embedder, *finished)
                done += len(finished[0])
                finished = None
            left -= 1
            following = await _claim(core, space, embedder, only) if batch and left > 0 else []
            await asyncio.wait([embedding])
            finished = embedding.result()
        except BaseException:
            stop.cancel()
            await _give_back(core, space, [*batch, *following, *(finished[0] if finished else ())])
            with anyio.CancelScope(shield=True):
                await asyncio.gather(embedding, return_exceptions=True)
            raise
        batch, following = following, []
    return done


async def _give_back(core: Core, space: Space, claimed: Sequence[jobs.Job]) -> None:
    """A worker that stops leaves its texts to the others at once (what they cannot be told, time tells: reclaim)."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(GIVE_BACK_SECONDS), contextlib.suppress(DatabaseProblem):
        async with core.transaction(space.id) as db:
            await jobs.release(db, claimed)


async def _claim(core: Core, space: Space, embedder: Embedder, only: Sequence[UUID] | None) -> list[jobs.Job]:
    """Whoever is cancelled just now may have claimed texts without knowing which: the claim is carried to its end."""
    claiming = asyncio.create_task(_claimed(core, space, embedder, only))
    try:
        await asyncio.wait([claiming])
    except asyncio.CancelledError:
        with anyio.move_on_after(GIVE_BACK_SECONDS, shield=True), contextlib.suppress(DatabaseProblem):
            await _give_back(core, space, await claiming)
        raise
    return claiming.result()


async def _claimed(core: Core, space: Space, embedder: Embedder, only: Sequence[UUID] | None) -> list[jobs.Job]:
    most, by = core.settings.embedding_batch, await core.lease.hold()
    async with core.transaction(space.id) as db:
        claimed = await jobs.claim(db, model=embedder.model, most=most, now=core.now(), by=by, only=only)
        if left := claimed[_portion(claimed) :]:
            await jobs.release(db, left)
            claimed = claimed[: -len(left)]
    # Words need no model: what a plan made or changed is found by them, however long its vector has to wait (D50).
    if unindexed := [job.node_id for job in claimed if not job.is_indexed]:
        await _index(core, space, unindexed)
    return claimed


async def _index(core: Core, space: Space, ids: Sequence[UUID]) -> None:
    """A plan that changes several texts may hold what this waits for, and wait for what this holds. Then the database
    sends one of the two away; if it is this one, it comes again, and the plan is done by then."""
    while True:
        with contextlib.suppress(Busy):
            async with core.transaction(space.id) as db:
                return await lexicon.index_missing(db, ids)


def _portion(claimed: Sequence[jobs.Job]) -> int:
    """How many of some texts are embedded in one go: all of them, unless they are very long."""
    characters = 0
    for number, job in enumerate(claimed):
        characters += len(job.text or "")
        if number and characters > CHARACTERS_AT_ONCE:
            return number
    return len(claimed)


async def _save(
    core: Core, space: Space, embedder: Embedder, done: Sequence[jobs.Job], passages: Sequence[jobs.Passages]
) -> None:
    async with core.transaction(space.id) as db:
        renewing = space.embedding_model is not None and space.embedding_model != embedder.model
        await jobs.save(
            db,
            done,
            passages,
            model=embedder.model,
            dim=embedder.dim,
            renewing=renewing,
            now=core.now(),
        )


async def _embed_unless(
    stop: anyio.CancelScope, core: Core, space: Space, embedder: Embedder, batch: Sequence[jobs.Job]
) -> Finished | None:
    """The same until told to stop. That is a scope and not the task's own cancelling, which would leave the model's
    threads at work: a process that ends while they are is aborted."""
    with stop:
        return await _embed(core, space, embedder, batch)
    return None


async def _embed(core: Core, space: Space, embedder: Embedder, batch: Sequence[jobs.Job]) -> Finished | None:
    """The vectors of a batch; what cannot be embedded is put back or given up, and the rest goes on."""
    if not batch:
        return None
    try:
        return batch, await _vectors(embedder, batch)
    except ProviderMisbehaved as problem:
        if len(batch) > 1:
            await _embed_singly(core, space, embedder, batch)
        else:
            await _postpone(core, space, batch, problem)
    except ProviderProblem as problem:
        await _postpone(core, space, batch, problem)
    return None


async def _vectors(embedder: Embedder, batch: Sequence[jobs.Job]) -> list[jobs.Passages]:
    """The vectors of each text: one, and of a long memory one for each of its windows besides."""
    texts = [(_text_of(job), _windows_of(job)) for job in batch]
    new_vectors = iter(await embed_readable(embedder, [part.of(text) for text, parts in texts for part in parts]))
    return [_with_whole(parts, list(islice(new_vectors, len(parts)))) for _, parts in texts]


def _windows_of(job: jobs.Job) -> Sequence[Window]:
    """Other kinds than memories are compared as a whole, and short."""
    return windows(job.text) if job.kind == Kind.MEMORY and job.text is not None else (WHOLE,)


def _with_whole(parts: Sequence[Window], new_vectors: Sequence[Vectors | None]) -> jobs.Passages:
    """The vector of a long text is the direction of its windows together, if the model can read most of them."""
    read = {part: vector for part, vector in zip(parts, new_vectors, strict=True) if vector is not None}
    if len(parts) == 1 or 2 * len(read) < len(parts):
        return read
    return {WHOLE: unit_rows(np.sum([*read.values()], axis=0)[np.newaxis, :])[0], **read}


async def _embed_singly(core: Core, space: Space, embedder: Embedder, batch: Sequence[jobs.Job]) -> None:
    """One bad text must not hold up the others of its batch."""
    for job in batch:
        finished = await _embed(core, space, embedder, [job])
        if finished:
            await _save(core, space, embedder, *finished)


async def _postpone(core: Core, space: Space, batch: Sequence[jobs.Job], problem: ProviderProblem) -> None:
    log.warning("embedding failed", texts=len(batch), why=problem.message)
    async with core.transaction(space.id) as db:
        due = core.now() + timedelta(seconds=_pause(problem, batch[0].attempts))
        await jobs.fail(db, batch, message=problem.message, due=due)


def _pause(problem: ProviderProblem, attempts: int) -> float:
    """How long to wait: what the provider asked for, else longer after each attempt."""
    if isinstance(problem, ProviderUnavailable) and problem.retry_after_seconds is not None:
        return problem.retry_after_seconds
    return FIRST_RETRY_SECONDS * 4.0 ** (attempts - 1)


def _text_of(job: jobs.Job) -> str:
    """What a node is embedded by: its text; a node that has only a name, by its name in plain words.

    A page is embedded by its name and overview, which is also what pages are compared by.
    """
    if job.kind == Kind.PAGE and job.text is not None:
        from recollect.pages.rules.stored import embedded_by  # how pages are read is much to load for other texts

        return embedded_by(job.name, job.text)
    if job.text is not None and (job.kind != Kind.CONCEPT or job.text.strip()):
        return job.text
    return (job.name or "").lower().replace("_", " ")


async def _follow_model(core: Core, space: Space) -> None:
    """Bring the space to the configured model: embed what lacks its vectors, then let search switch."""
    configured = core.embedder()
    if space.embedding_model == configured.model:
        return
    async with core.transaction(space.id) as db:
        if space.embedding_model is not None and await _lacks(core, space, configured.model):
            return
        await spaces.use_model(db, configured.model)
    if space.embedding_model is not None:
        log.info(
            "search now uses the new model", space=space.slug, model=configured.model, before=space.embedding_model
        )


async def _lacks(core: Core, space: Space, model: str) -> bool:
    now: datetime = core.now()
    async with core.transaction(space.id) as db:
        await jobs.enqueue_missing(
            db,
            model=model,
            max_attempts=core.settings.job_max_attempts,
            most=REEMBED_AT_ONCE,
            now=now,
        )
        return await jobs.lacks_vectors(db, model=model)
