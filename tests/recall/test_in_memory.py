"""The vectors kept in memory find what the database finds, whoever writes to it (D53)."""

import random
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID, uuid4

import anyio
import numpy as np
import pytest

from recollect.engine import keeping
from recollect.engine.engine import Engine
from recollect.errors import RecollectError
from recollect.model import Kind, Mode, NodeFilter, Recall, Status
from recollect.recall.sql import in_memory
from recollect.recall.sql.in_memory import Among, KeptVectors, VectorsInMemory
from recollect.settings import Settings

pytestmark = pytest.mark.anyio

HALF = 2**20 // (64 * 4 + 16) // 2
WORDS = "tea green Hanoi train bicycle rain garden passport kitchen music winter harbour violin bread letter"


@pytest.fixture(autouse=True)
def kept_however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "LEAST", 1)
    monkeypatch.setattr(in_memory, "ASKED_BEFORE", 2)


@pytest.fixture
async def told(memory: Engine) -> Engine:
    """Fifty-five sentences and one long text, with their vectors."""
    chosen = random.Random(1)
    for _ in range(55):
        await memory.add(" ".join(chosen.sample(WORDS.split(), 6)), wait=False)
    await memory.add(" ".join(f"{word} of number {n}." for n in range(60) for word in WORDS.split()), wait=False)
    await memory.work()
    return memory


@pytest.fixture
async def beside(told: Engine, settings: Settings) -> AsyncIterator[Engine]:
    """Another process that keeps nothing: it writes, and tells what the database finds."""
    async with Engine(settings.model_copy(update={"vectors_in_memory_mb": 0})) as other:
        yield await other.in_space(told.space.slug)


async def asked(memory: Engine, question: str = "green tea in Hanoi", **given: Any) -> Recall:
    """Searched for, also where the same was found a moment ago; what is being read is read before anybody asks on."""
    memory.core.recalls.clear()
    found = await memory.recall(question, **given)
    await memory.core.vectors.settled()
    return found


def way(recall: Recall) -> str:
    return str(recall.ways["search"])


def found(recall: Recall) -> list[tuple[object, ...]]:
    return [(hit.node.id, hit.passage, pytest.approx(hit.score, abs=2e-5)) for hit in recall]


async def kept(memory: Engine) -> None:
    """Asked as often as it takes."""
    for _ in range(3):
        last = await asked(memory)
    assert way(last).endswith("in memory")


async def test_D53_who_asks_an_unchanged_space_again_is_answered_from_memory(told: Engine, beside: Engine) -> None:
    ways = [way(await asked(told)) for _ in range(3)]
    assert ways[:2] == ["exact: every vector"] * 2
    vectors = int(ways[2].split()[1])
    assert ways[2] == f"exact: {vectors} vectors in memory"
    assert vectors > 56
    for question in ("green tea in Hanoi", "a violin by the harbour", "passport", "zzz"):
        assert found(await asked(told, question)) == found(await asked(beside, question))


async def test_D53_who_writes_between_any_two_questions_has_nothing_read(
    told: Engine, beside: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_memory, "ASKED_BEFORE", 3)
    for number in range(4):
        for _ in range(2):
            assert way(await asked(told)) == "exact: every vector"
        await beside.add(f"cup of tea number {number}", wait=True)
    assert len(told.core.vectors) == 0
    assert [way(await asked(told)) for _ in range(4)][2:] == ["exact: every vector", way(await asked(told))]
    assert len(told.core.vectors) == 1


async def test_D53_what_somebody_else_writes_is_found_at_once(told: Engine, beside: Engine) -> None:
    await kept(told)
    added = await beside.add("green tea in Hanoi, as always", wait=True)
    assert added.id in [hit.node.id for hit in await asked(told)]
    await kept(told)
    await beside.forget(added.id)
    assert added.id not in [hit.node.id for hit in await asked(told)]
    await kept(told)
    assert added.id not in [hit.node.id for hit in await asked(told)]


async def test_D53_it_finds_the_same_whatever_is_done_in_whatever_order(told: Engine, beside: Engine) -> None:
    chosen = random.Random(7)
    written = [node.id for node in (await told.list()).items]
    gone: list[UUID] = []

    async def add() -> None:
        written.append((await beside.add(" ".join(chosen.sample(WORDS.split(), 5)), wait=chosen.random() < 0.5)).id)

    async def forget() -> None:
        gone.append(written.pop(chosen.randrange(len(written))))
        await beside.forget(gone[-1])

    async def restore() -> None:
        if gone:
            written.append(gone.pop())
            is_forgotten = (await beside.get(written[-1])).status is Status.ARCHIVED
            await (beside.restore if is_forgotten else beside.include)(written[-1])

    async def correct() -> None:
        wrong = written.pop(chosen.randrange(len(written)))
        written.append((await beside.correct(wrong, " ".join(chosen.sample(WORDS.split(), 7)))).id)

    async def exclude() -> None:
        gone.append(written.pop(chosen.randrange(len(written))))
        await beside.exclude(gone[-1])

    async def work() -> None:
        await beside.work()

    from_memory = 0
    for _ in range(60):
        for _ in range(chosen.choice((0, 1, 1, 2))):
            await chosen.choice((add, forget, exclude, restore, correct, work))()
        question = " ".join(chosen.sample(WORDS.split(), 3))
        ours = await asked(told, question)
        assert found(ours) == found(await asked(beside, question)), way(ours)
        from_memory += way(ours).endswith("in memory")
    assert from_memory >= 5


async def test_kinds_are_kept_apart(told: Engine, beside: Engine) -> None:
    await told.concepts.add("green tea")
    await told.work()
    await kept(told)
    for _ in range(3):
        concepts = await asked(told, kinds=[Kind.CONCEPT])
    assert way(concepts) == "exact: 1 vector in memory"
    assert found(concepts) == found(await asked(beside, kinds=[Kind.CONCEPT]))
    assert len(told.core.vectors) == 2


async def test_what_keeps_to_a_filter_or_cannot_be_read_is_asked_of_the_database(told: Engine) -> None:
    await kept(told)
    assert not way(await asked(told, wanted=NodeFilter(thread="nowhere"))).endswith("in memory")
    assert way(await asked(told, mode=Mode.RECALL)).endswith("in memory")


async def test_none_are_kept_where_none_are_wanted_or_too_many_there(told: Engine, beside: Engine) -> None:
    for _ in range(4):
        assert way(await asked(beside)) == "exact: every vector"
    assert len(beside.core.vectors) == 0
    few = VectorsInMemory(most_mb=1)
    among = Among(1, told.space.id, "a model", 64, ("memory",))
    for _ in range(3):
        assert few.of(told.core, among, version=(1, 1), count=2**20 // 256 + 1) is None
    await few.settled()
    assert len(few) == 0


async def test_a_restored_backup_counts_anew(told: Engine) -> None:
    """In other tables: the version of a space may be one that was there before, with other texts."""
    await kept(told)
    (among,) = told.core.vectors._kept
    table, version = told.core.vectors._kept[among].version
    assert told.core.vectors.of(told.core, among, version=(table + 1, version), count=55) is None
    await told.core.vectors.settled()


async def test_as_many_as_fit_those_asked_for_last() -> None:
    vectors = VectorsInMemory(most_mb=1)
    keys = [Among(1, uuid4(), "a model", 64, ("memory",)) for _ in range(3)]
    for key in keys:
        vectors._keep(key, half_of_a_megabyte())
    assert list(vectors._kept) == keys[1:]
    await vectors.close()


def half_of_a_megabyte(version: int = 1) -> KeptVectors:
    rows = np.ones((HALF, 64), dtype=np.float32)
    return KeptVectors(version=(1, version), ids=np.zeros(len(rows), "V16"), rows=rows)


class Loads(VectorsInMemory):
    """Notes what it would read, and does not."""

    def __init__(self) -> None:
        super().__init__(most_mb=1)
        self.begun: list[Among] = []

    def load_soon(self, core: Any, space_id: UUID, key: Among) -> None:
        self.begun.append(key)


async def test_what_does_not_fit_beside_what_others_ask_for_is_not_read_in_vain() -> None:
    """Else each of three spaces that are asked in turn would push out the next, and none be there when it is asked."""
    vectors, nobody = Loads(), cast("Any", None)
    first, second, third = (Among(1, uuid4(), "a model", 64, ("memory",)) for _ in range(3))
    vectors._keep(first, half_of_a_megabyte())
    vectors._keep(second, half_of_a_megabyte())
    for _ in range(20):
        for key in (first, second, third):
            vectors.of(nobody, key, version=(1, 1), count=HALF)
    assert not vectors.begun
    for key in (third, second, third):  # nobody asks for the first any more
        vectors.of(nobody, key, version=(1, 1), count=HALF)
    assert vectors.begun == [third]
    await vectors.close()


async def test_who_looked_before_the_last_change_takes_nothing_from_the_others() -> None:
    vectors, nobody = Loads(), cast("Any", None)
    key = Among(1, uuid4(), "a model", 64, ("memory",))
    vectors._keep(key, half_of_a_megabyte(version=2))
    assert vectors.of(nobody, key, version=(1, 1), count=HALF) is None
    assert vectors.of(nobody, key, version=(1, 2), count=HALF) is not None
    assert vectors.of(nobody, key, version=(1, 3), count=HALF) is None
    assert len(vectors) == 0
    await vectors.close()


async def test_where_all_is_gone_nothing_is_near(told: Engine, beside: Engine) -> None:
    await asked(told)
    for node in (await beside.list(limit=100)).items:
        await beside.forget(node.id)
    for _ in range(4):
        assert not await asked(told)
    assert len(told.core.vectors) == 1


async def test_what_cannot_be_read_is_not_tried_at_every_question(
    told: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def fail(*_: object) -> KeptVectors:
        nonlocal tried
        tried += 1
        raise (RecollectError("no") if tried % 2 else ValueError("nonsense"))

    monkeypatch.setattr(told.core.vectors, "_read", fail)
    for _ in range(8):
        assert way(await asked(told)) == "exact: every vector"
    assert tried == 4
    await told.core.vectors.close()


async def test_closing_waits_for_what_is_being_read_but_not_for_good(
    told: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def stand_still(*_: object) -> KeptVectors:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    monkeypatch.setattr(told.core.vectors, "_read", stand_still)
    for _ in range(2):
        told.core.recalls.clear()
        await told.recall("green tea")
    await begun.wait()
    monkeypatch.setattr(keeping, "CLOSE_SECONDS", 0.1)
    await told.core.vectors.close()
    assert ended.is_set()
    assert len(await asked(told, "green tea")) > 0


async def test_what_is_nowhere_is_near_to_nothing() -> None:
    ids = np.array([uuid4().bytes, uuid4().bytes], dtype="V16")
    rows = in_memory._of_length_one(np.array([[0.0, 0.0], [0.0, 3.0]], dtype=np.float16))
    kept = KeptVectors(version=(1, 1), ids=ids, rows=rows)
    assert (await kept.nearest(np.array([0.0, 2.0], dtype=np.float32), 5))[1].to_list() == [0.0, 1.0]
    assert (await kept.nearest(np.zeros(2, dtype=np.float32), 5))[1].to_list() == [0.0, 0.0]


@pytest.mark.parametrize("in_passing", [10_000, 100])
async def test_the_nearest_are_the_nearest(in_passing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "IN_PASSING", in_passing)
    rows = np.random.default_rng(3).normal(size=(500, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = np.array([uuid4().bytes for _ in rows], dtype="V16")
    asked = np.random.default_rng(4).normal(size=64).astype(np.float32)
    few, cosines = await KeptVectors(version=(1, 1), ids=ids, rows=rows).nearest(asked, 20)
    right = rows @ (asked / np.linalg.norm(asked))
    best = np.argsort(-right)[:20]
    assert {few[start : start + 16] for start in range(0, len(few), 16)} == {ids[place].tobytes() for place in best}
    assert sorted(cosines.to_numpy()) == pytest.approx(sorted(right[best]), abs=1e-3)
