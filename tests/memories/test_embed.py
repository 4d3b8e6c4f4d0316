"""Embedding: jobs made with the memory, shared by workers, retried, never lost; models changed without a gap."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import anyio
import asyncpg
import numpy as np
import pytest
from sqlalchemy import text

from recollect.engine import worker
from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.engine.worker import work_once
from recollect.errors import ProviderMisbehaved, ProviderUnavailable
from recollect.memories import embed
from recollect.memories.sql import jobs, vectors
from recollect.model import NewMemory
from recollect.ports import Vectors
from recollect.recall.sql import lexicon
from recollect.store.database import Transaction, driver
from tests.waiting import HANG_SECONDS, until_it_holds

pytestmark = pytest.mark.anyio


class Unreliable:
    """The hashing embedder with a will of its own: refuses certain words, or everything for a while."""

    def __init__(self, inner: object, *, refuse: str = "", outages: int = 0, retry_after: float | None = 0.0) -> None:
        self.inner, self.refuse, self.outages, self.retry_after = inner, refuse, outages, retry_after
        self.calls = 0

    model = property(lambda self: self.inner.model)
    dim = property(lambda self: self.inner.dim)

    def can_read(self, text: str) -> bool:
        return True

    def knows(self, text: str) -> float:
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.outages:
            self.outages -= 1
            raise ProviderUnavailable("The embedder is busy.", retry_after_seconds=self.retry_after)
        if self.refuse and any(self.refuse in text for text in texts):
            raise ProviderMisbehaved(f"The embedder refused {self.refuse!r}.")
        made: Vectors = await self.inner.embed(texts)  # type: ignore[attr-defined]
        return made

    async def close(self) -> None: ...


def make_unreliable(memory: Engine, **how: object) -> Unreliable:
    inner = memory.core.embedder()
    unreliable = Unreliable(inner, **how)  # type: ignore[arg-type]
    memory.core.embedders[memory.settings.embedder] = unreliable
    return unreliable


async def texts_of(memory: Engine, count: int) -> None:
    await memory.add_many([NewMemory(text=f"text number {n}") for n in range(count)], wait=False)


async def test_D09_adding_makes_a_job_and_embeds_nothing(memory: Engine) -> None:
    node = await memory.add("not yet searchable", wait=False)
    assert (await memory.jobs()).pending == 1
    async with memory.core.transaction(memory.space.id) as db:
        assert await (await driver(db)).fetchval("SELECT count(*) FROM embeddings") == 0
    async with memory.core.transaction(memory.space.id) as db:
        (job,) = await jobs.claim(db, model="hashing:64", most=5, now=memory.core.now())
    assert (job.node_id, job.attempts, job.max_attempts) == (node.id, 1, 3)


async def test_D09_memory_and_job_are_stored_together_or_not_at_all(memory: Engine) -> None:
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    await memory.add("one", wait=False)
    for table in ("nodes", "embedding_jobs"):
        assert await connection.fetchval(f"SELECT count(*) FROM {table} WHERE space_id = $1", memory.space.id) == 1
    await connection.close()


async def test_D10_waiting_means_searchable(memory: Engine) -> None:
    node = await memory.add("the kettle is green")
    (hit,) = await memory.recall("green kettle")
    assert hit.node.id == node.id
    assert (await memory.jobs()).completed == 1


async def test_D10_several_workers_share_the_work_and_do_nothing_twice(memory: Engine) -> None:
    await texts_of(memory, 600)
    done = await asyncio.gather(*(memory.work() for _ in range(4)))
    assert sum(done) == 600
    assert (await memory.jobs()).completed == 600
    async with memory.core.transaction(memory.space.id) as db:
        assert not await jobs.lacks_vectors(db, model="hashing:64")


async def test_D10_an_outage_is_retried_until_it_works(memory: Engine) -> None:
    make_unreliable(memory, outages=2)
    node = await memory.add("patient", wait=False)
    await memory.work()
    counts = await memory.jobs()
    assert (counts.pending, counts.failed) == (1, 0)
    await memory.work()
    await memory.work()
    assert [hit.node.id for hit in await memory.recall("patient")] == [node.id]


async def test_D10_after_max_attempts_a_job_fails_with_its_reason_and_can_be_retried(memory: Engine) -> None:
    make_unreliable(memory, outages=3)
    node = await memory.add("stubborn", wait=False)
    for _ in range(4):
        await memory.work()
    assert (await memory.jobs()).failed == 1
    assert list(await memory.job_failures()) == [(node.id, "The embedder is busy.")]
    assert await memory.retry_jobs() == 1
    await memory.work()
    assert (await memory.jobs()).completed == 1


async def test_D10_retry_after_is_honoured(memory: Engine) -> None:
    unreliable = make_unreliable(memory, outages=1, retry_after=3600.0)
    added = await memory.add_many([NewMemory(text="later")])
    assert list(added.postponed.values()) == ["The embedder is busy."]
    await memory.work()
    assert unreliable.calls == 1
    tomorrow = memory.core.now() + timedelta(days=1)
    memory.core.now = lambda: tomorrow
    await memory.work()
    assert (await memory.jobs()).completed == 1


async def test_one_bad_text_does_not_hold_up_its_batch(memory: Engine) -> None:
    make_unreliable(memory, refuse="poison")
    await memory.add_many([NewMemory(text=text) for text in ("good one", "poison", "good two")], wait=False)
    for attempt in range(3):
        later = memory.core.now() + timedelta(hours=attempt)
        memory.core.now = lambda later=later: later  # type: ignore[misc]
        await memory.work()
    counts = await memory.jobs()
    assert (counts.completed, counts.failed) == (2, 1)


async def test_D10_jobs_of_a_worker_that_died_are_reclaimed(memory: Engine) -> None:
    await texts_of(memory, 3)
    async with memory.core.transaction(memory.space.id) as db:
        await jobs.claim(db, model="hashing:64", most=2, now=memory.core.now())
    assert await memory.work() == 1
    later = memory.core.now() + timedelta(minutes=10)
    memory.core.now = lambda: later
    assert await memory.work() == 2


HANGING_WORKER = """
    import asyncio, sys
    from recollect.engine.engine import Engine
    from recollect.settings import Settings

    async def main(url, space):
        async with Engine(Settings.load(database_url=url, embedder="hashing:64", space=space, pool_size=4)) as memory:
            async def hang(texts):
                print("embedding", flush=True)
                await asyncio.sleep(3600)
            memory.core.embedder().embed = hang
            await memory.work()

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_S04_jobs_of_a_killed_worker_are_taken_over_at_once_and_those_of_a_living_one_never(
    memory: Engine, database_url: str
) -> None:
    await texts_of(memory, 3)
    command = [sys.executable, "-c", textwrap.dedent(HANGING_WORKER), database_url, memory.space.slug]
    worker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert worker.stdout is not None
        assert await worker.stdout.readline() == b"embedding\n"
        assert await memory.work() == 0
        assert (await memory.jobs()).processing == 3
    finally:
        worker.kill()
        await worker.wait()
    with anyio.fail_after(HANG_SECONDS):  # the database notices within moments that its client is gone
        while (await memory.jobs()).completed < 3:
            await memory.work()


async def test_S04_a_worker_whose_sign_was_lost_gives_it_again(memory: Engine) -> None:
    lease = memory.core.lease
    name = await lease.hold()
    assert name is not None
    assert await lease.hold() == name
    await lease.end()
    await texts_of(memory, 1)
    async with memory.core.transaction(memory.space.id) as db:
        await jobs.claim(db, model="hashing:64", most=1, now=memory.core.now(), by=name)
    assert await lease.hold() == name
    assert await memory.work() == 0, "it lives again, and so its job is its own"
    await lease.end()
    assert await memory.work() == 1


async def test_D10_a_worker_that_is_stopped_gives_its_jobs_back_untried(memory: Engine) -> None:
    class Endless(Unreliable):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            begun.set()
            await asyncio.sleep(60)
            return await super().embed(texts)

    begun = asyncio.Event()
    inner = memory.core.embedder()
    memory.core.embedders[memory.settings.embedder] = Endless(inner)
    await texts_of(memory, 3)
    working = asyncio.create_task(memory.work())
    await begun.wait()
    assert (await memory.jobs()).processing == 3
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (await memory.jobs()).pending == 3
    memory.core.embedders[memory.settings.embedder] = inner
    assert await memory.work() == 3


async def test_D10_what_was_said_last_does_not_wait_behind_a_backlog(memory: Engine) -> None:
    await texts_of(memory, 600)
    urgent = await memory.add("an urgent new fact")
    assert (await memory.jobs()).pending == 600
    found = await memory.recall("urgent new fact")
    assert found[0].node.id == urgent.id
    assert "Some texts wait to be embedded" in found.notes[-1]


async def test_D15_D35_a_new_model_comes_in_beside_the_old_and_search_never_has_a_gap(memory: Engine) -> None:
    await texts_of(memory, 20)
    await memory.work()
    changed = memory.settings.model_copy(update={"embedder": "hashing:128", "space": memory.space.slug})
    async with Engine(changed) as renewed:
        before = await renewed.recall("text number 7", limit=3, weak=True)
        assert (before.model, len(before)) == ("hashing:64", 3)
        assert "hashing:64 until the vectors of hashing:128 are complete" in before.notes[0]
        late = await renewed.add("arrived during the change")
        assert late.id in {hit.node.id for hit in await renewed.recall("arrived during the change")}
        while (await renewed.recall("text")).model == "hashing:64":
            await renewed.work()
        after = await renewed.recall("text number 7", limit=21, weak=True)
        assert (after.model, len(after), after.notes) == ("hashing:128", 21, ())
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    counts = await connection.fetch(
        "SELECT model, count(*) FROM embeddings WHERE space_id = $1 GROUP BY 1 ORDER BY 1", memory.space.id
    )
    await connection.close()
    assert [tuple(row) for row in counts] == [("hashing:128", 21), ("hashing:64", 21)]


async def test_a_node_archived_while_it_is_embedded_does_not_come_back(memory: Engine) -> None:
    node = await memory.add("gone meanwhile", wait=False)
    await memory.forget(node.id)
    await memory.work()
    assert len(await memory.recall("gone meanwhile")) == 0
    await memory.restore(node.id)
    assert len(await memory.recall("gone meanwhile")) == 1


async def test_D13_D33_the_hnsw_index_is_built_when_it_pays_and_used(memory: Engine) -> None:
    embedder = memory.core.embedder("hashing:48")
    few = memory.settings.model_copy(
        update={"embedder": "hashing:48", "hnsw_min_rows": 300, "space": memory.space.slug}
    )
    async with Engine(few) as engine:
        await texts_of(engine, 300)
        await engine.work()
        assert await embed.ensure_index(engine.core, embedder)
        assert not await embed.ensure_index(engine.core, embedder)
        state = await vectors.index_state(engine.core.database, embedder.model, embedder.dim)
        assert (state.state, state.rows) == ("ready", 300)
        async with engine.core.database.owner() as connection:
            found = await connection.execute(text(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{state.name}'"))
            definition = found.scalar_one()
        assert "m='16'" in definition
        assert "ef_construction='200'" in definition
        assert "halfvec_cosine_ops" in definition
        assert await vectors.rebuild_index(engine.core.database, embedder.model, embedder.dim)
        async with engine.core.database.owner() as connection:
            await connection.execute(text(f"DROP INDEX {state.name}"))
        assert not await vectors.rebuild_index(engine.core.database, embedder.model, embedder.dim)


async def test_D53_who_comes_and_goes_begins_no_index(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off, it would begin anew with the next who comes, and take the cores from whoever asks meanwhile."""
    in_haste = {"embedder": "hashing:40", "hnsw_min_rows": 30, "worker_poll_seconds": 0.01, "space": memory.space.slug}
    async with Engine(memory.settings.model_copy(update=in_haste)) as engine:
        rounds: list[bool] = []

        async def noted(core: Core, *, builds_index: bool) -> int:
            rounds.append(builds_index)
            return await work_once(core, builds_index=builds_index)

        async def went_round() -> bool:
            return len(rounds) >= 5

        async def is_built() -> bool:
            return await vectors.is_indexed(engine.core.database, "hashing:40", 40)

        monkeypatch.setattr(worker, "work_once", noted)
        await texts_of(engine, 30)
        async with worker.working(engine.core):
            await until_it_holds(went_round)
        assert (any(rounds), await is_built()) == (False, False)
        monkeypatch.setattr(worker, "STAYS_SECONDS", 0.0)
        async with worker.working(engine.core):
            await until_it_holds(is_built)
        async with engine.core.database.owner() as connection:
            await connection.execute(text(f"DROP INDEX {vectors.index_name('hashing:40', 40)}"))


async def test_D27_recall_gives_the_nearest_twenty_in_order(memory: Engine) -> None:
    await texts_of(memory, 30)
    await memory.work()
    found = await memory.recall("text number 7", weak=True)
    assert len(found) == 20
    assert found[0].node.text == "text number 7"
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    asked = (await memory.core.embedder().embed(["text number 7"]))[0]
    mine = (await memory.core.embedder().embed([found[0].node.text or ""]))[0]
    assert found[0].parts.cosine == pytest.approx(float(np.dot(asked, mine)), abs=2e-3)
    assert str(found).splitlines()[0].endswith("text number 7")


async def test_D53_statistics_do_not_wait_for_who_builds_an_index(memory: Engine) -> None:
    """Who builds one holds the table and waits for all who look at it: two that wait for each other never end."""
    await memory.add("a text", wait=False)
    async with memory.core.database.alone() as builder:
        await builder.execute("BEGIN; LOCK TABLE embeddings IN SHARE UPDATE EXCLUSIVE MODE")
        async with asyncio.timeout(HANG_SECONDS):
            await vectors.settle(memory.core.database)
        await builder.execute("ROLLBACK")


async def test_a_worker_that_a_plan_deadlocks_with_comes_again(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended for good, and whatever was added from then on was never embedded."""
    case = await memory.cases.add("How do I reset my password?", "Settings, Security, Reset.")
    await memory.cases.update(case.case_id, query="How do I set a new password?")
    (renamed,), _ = await memory.plans.list()
    await memory.undo(renamed.id)
    index, sent_away = lexicon.index_missing, [asyncpg.DeadlockDetectedError("deadlock detected")]

    async def crossed(db: Transaction, ids: Sequence[UUID]) -> None:
        if sent_away:
            raise sent_away.pop()
        await index(db, ids)

    monkeypatch.setattr(lexicon, "index_missing", crossed)
    await memory.work()
    assert not sent_away
    assert ((await memory.jobs()).pending, (await memory.verify()).faults) == (0, {})
