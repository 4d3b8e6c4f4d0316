"""What is kept of a space in memory finds what the database finds, whoever writes to it (D53)."""

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast
from uuid import UUID, uuid4

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.engine import keeping
from recollect.engine.engine import Engine
from recollect.errors import RecollectError
from recollect.model import Kind, Mode, NewMemory, NodeFilter, Recall, Status
from recollect.recall.sql import candidates, in_memory
from recollect.recall.sql.candidates import Candidate, CandidateQuery, Promise
from recollect.recall.sql.in_memory import Among, KeptSpace, SpacesInMemory
from recollect.settings import Settings
from recollect.store.copying import SparseRows, row_with_vector

pytestmark = pytest.mark.anyio

HALF = 2**20 // (64 * in_memory.BYTES_A_NUMBER + in_memory.BYTES_A_TEXT) // 2
WORDS = "tea green Hanoi train bicycle rain garden passport kitchen music winter harbour violin bread letter"


@pytest.fixture(autouse=True)
def kept_however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "LEAST", 1)
    monkeypatch.setattr(in_memory, "ASKED_BEFORE", 2)


@pytest.fixture
async def told(memory: Engine) -> Engine:
    """Fifty-five sentences, most of them said in two conversations, and one long text, with their vectors."""
    chosen = random.Random(1)
    for number in range(55):
        thread, importance = (None, "one", "other")[number % 3], (None, 0.2, 0.5, 0.9)[number % 4]
        text = " ".join(chosen.sample(WORDS.split(), 6))
        await memory.add(text, thread=thread, importance=importance, wait=False)
    await memory.add(" ".join(f"{word} of number {n}." for n in range(60) for word in WORDS.split()), wait=False)
    await memory.work()
    return memory


@pytest.fixture
async def beside(told: Engine, settings: Settings) -> AsyncIterator[Engine]:
    """Another process that keeps nothing: it writes, and tells what the database finds."""
    async with Engine(settings.model_copy(update={"search_in_memory_mb": 0})) as other:
        yield await other.in_space(told.space.slug)


async def asked(memory: Engine, question: str = "green tea in Hanoi", **given: Any) -> Recall:
    """Searched for, also where the same was found a moment ago; what is being read is read before anybody asks on."""
    memory.core.recalls.clear()
    found = await memory.recall(question, **given)
    await memory.core.in_memory.settled()
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
    assert len(told.core.in_memory) == 0
    assert [way(await asked(told)) for _ in range(4)][2:] == ["exact: every vector", way(await asked(told))]
    assert len(told.core.in_memory) == 1


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
    assert len(told.core.in_memory) == 2


async def test_what_keeps_to_a_filter_or_cannot_be_read_is_asked_of_the_database(told: Engine) -> None:
    await kept(told)
    assert not way(await asked(told, wanted=NodeFilter(thread="nowhere"))).endswith("in memory")
    assert way(await asked(told, mode=Mode.RECALL)).endswith("in memory")


async def test_none_are_kept_where_none_are_wanted_or_too_many_there(told: Engine, beside: Engine) -> None:
    for _ in range(4):
        assert way(await asked(beside)) == "exact: every vector"
    assert len(beside.core.in_memory) == 0
    few = SpacesInMemory(most_mb=1)
    among = Among(1, told.space.id, "a model", 64, ("memory",))
    for vectors, texts, words in ((2**20 // 256 + 1, 1, 0), (1, 5_000, 0), (1, 1, 2**17)):
        for _ in range(3):
            assert few.of(told.core, among, version=(1, 1), vectors=vectors, texts=texts, words=words) is None
    await few.settled()
    assert len(few) == 0


async def test_a_restored_backup_counts_anew(told: Engine) -> None:
    """In other tables: the version of a space may be one that was there before, with other texts."""
    await kept(told)
    (among,) = told.core.in_memory._kept
    table, version = told.core.in_memory._kept[among].version
    assert (
        told.core.in_memory.of(told.core, among, version=(table + 1, version), vectors=55, texts=55, words=55) is None
    )
    await told.core.in_memory.settled()


async def test_as_many_as_fit_those_asked_for_last() -> None:
    vectors = SpacesInMemory(most_mb=1)
    keys = [Among(1, uuid4(), "a model", 64, ("memory",)) for _ in range(3)]
    for key in keys:
        vectors._keep(key, half_of_a_megabyte())
    assert list(vectors._kept) == keys[1:]
    await vectors.close()


def half_of_a_megabyte(version: int = 1) -> KeptSpace:
    return kept_space(np.ones((HALF, 64), dtype=np.float16), version=version)


def kept_space(vectors: NDArray[np.float16], version: int = 1) -> KeptSpace:
    """Texts without words, each with one of these vectors."""
    texts, rows = np.zeros(len(vectors), in_memory.TEXT), np.zeros(len(vectors), row_with_vector(vectors.shape[1]))
    texts["id"] = rows["id"] = [number.to_bytes(16) for number in range(len(vectors))]
    texts["thread"], rows["vector"] = -1, vectors
    none = np.empty(0, np.int32)
    words = SparseRows(ids=none.view("V16"), sizes=none.astype(np.int64), places=none, numbers=none.astype(np.float32))
    return KeptSpace.of((1, version), texts, [], rows, words)


class Loads(SpacesInMemory):
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
            vectors.of(nobody, key, version=(1, 1), vectors=HALF, texts=HALF, words=0)
    assert not vectors.begun
    for key in (third, second, third):  # nobody asks for the first any more
        vectors.of(nobody, key, version=(1, 1), vectors=HALF, texts=HALF, words=0)
    assert vectors.begun == [third]
    await vectors.close()


async def test_who_looked_before_the_last_change_takes_nothing_from_the_others() -> None:
    vectors, nobody = Loads(), cast("Any", None)
    key = Among(1, uuid4(), "a model", 64, ("memory",))
    vectors._keep(key, half_of_a_megabyte(version=2))
    assert vectors.of(nobody, key, version=(1, 1), vectors=HALF, texts=HALF, words=0) is None
    assert vectors.of(nobody, key, version=(1, 2), vectors=HALF, texts=HALF, words=0) is not None
    assert vectors.of(nobody, key, version=(1, 3), vectors=HALF, texts=HALF, words=0) is None
    assert len(vectors) == 0
    await vectors.close()


async def test_where_all_is_gone_nothing_is_near(told: Engine, beside: Engine) -> None:
    await asked(told)
    for node in (await beside.list(limit=100)).items:
        await beside.forget(node.id)
    for _ in range(4):
        assert not await asked(told)
    assert len(told.core.in_memory) == 1


async def test_what_cannot_be_read_is_not_tried_at_every_question(
    told: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def fail(*_: object) -> KeptSpace:
        nonlocal tried
        tried += 1
        raise (RecollectError("no") if tried % 2 else ValueError("nonsense"))

    monkeypatch.setattr(told.core.in_memory, "_read", fail)
    for _ in range(8):
        assert way(await asked(told)) == "exact: every vector"
    assert tried == 4
    await told.core.in_memory.close()


async def test_closing_waits_for_what_is_being_read_but_not_for_good(
    told: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = anyio.Event(), anyio.Event()

    async def stand_still(*_: object) -> KeptSpace:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    monkeypatch.setattr(told.core.in_memory, "_read", stand_still)
    for _ in range(2):
        told.core.recalls.clear()
        await told.recall("green tea")
    await begun.wait()
    monkeypatch.setattr(keeping, "CLOSE_SECONDS", 0.1)
    await told.core.in_memory.close()
    assert ended.is_set()
    assert len(await asked(told, "green tea")) > 0


async def test_what_is_gathered_in_memory_is_what_the_statement_gathers(memory: Engine) -> None:
    """Of more than either leg brings: with what the last of each leaves the others to promise."""
    chosen = random.Random(3)
    words = [f"{start}{end}" for start in ("bal", "cor", "din", "fer", "gal") for end in ("ado", "ima", "olt", "un")]
    for number in range(450):
        text = " ".join(chosen.choices(words, weights=range(1, 21), k=chosen.randrange(4, 30)))
        thread, importance = chosen.choice((None, "one", "other")), chosen.choice((None, 0.3))
        position = None if number % 9 else 1000 * number - 10_000
        given = NewMemory(text=f"{text} {number}", thread=thread, position=position, importance=importance)
        await memory.add_many([given], wait=False)
    await memory.work()
    embedder = memory.core.embedder()
    for question in ("balado corima dinolt", "galun", "ferun galima zzz", "nothing of it"):
        (vector,) = await embedder.embed([question])
        async with memory.core.search(memory.space.id) as db:
            seen = await candidates.first_look(db, question)
            asked = CandidateQuery(
                model=embedder.model, dim=embedder.dim, vector=vector, words=seen.words, mean_length=seen.mean_length
            )
            full_match = 0.3 * asked.most_possible
            promise = Promise(lexical_share=0.45, full_match=full_match, low=0.0, high=0.7, most=120)
            theirs = await candidates.gathered(db, asked, kinds=["memory"], exactly=True, promise=promise)
            beside = await candidates.neighbours(db, asked, theirs.candidates[:60], pool_ids=ids(theirs.candidates))
        async with memory.core.database.snapshot(memory.space.id) as db:
            among = Among(seen.version[0], memory.space.id, embedder.model, embedder.dim, ("memory",))
            look = await (await memory.core.in_memory._read(db, among)).look(asked, vector)
        ours = look.gathered(promise, breadth=1)
        assert (ours.by_vector, ours.by_words, ours.windows) == (theirs.by_vector, theirs.by_words, theirs.windows)
        assert same(ours.candidates, theirs.candidates)
        assert beside
        assert same(look.neighbours(theirs.candidates[:60], pool_ids=ids(theirs.candidates)), beside)


async def test_where_several_stand_at_one_place_it_is_the_same_one_that_counts(told: Engine, beside: Engine) -> None:
    """In whatever order they were stored, or moved since: else a text would have other neighbours here than there."""
    chosen = random.Random(5)
    names = [UUID(int=chosen.getrandbits(128), version=4) for _ in range(150)]
    await told.add_many(
        NewMemory(
            id=id_, text=" ".join(chosen.sample(WORDS.split(), 6)) + f" {n}", thread=f"t{n % 3}", position=n // 18
        )
        for n, id_ in enumerate(names)
    )
    for id_ in names[::7]:
        await told.forget(id_)
        await told.restore(id_)
    await kept(told)
    for n in range(12):
        question = " ".join(chosen.sample(WORDS.split(), 2))
        ours = await asked(told, question, limit=60, weak=True)
        assert way(ours).endswith("in memory")
        assert found(ours) == found(await asked(beside, question, limit=60, weak=True)), n


async def test_what_has_outgrown_its_room_is_not_kept_and_pushes_nobody_out() -> None:
    spaces = SpacesInMemory(most_mb=1)
    small, large = (Among(1, uuid4(), "a model", 64, ("memory",)) for _ in range(2))
    spaces._keep(small, half_of_a_megabyte())
    spaces._keep(large, kept_space(np.ones((3 * HALF, 64), dtype=np.float16)))
    assert list(spaces._kept) == [small]
    assert spaces.of(cast("Any", None), small, version=(1, 1), vectors=HALF, texts=in_memory.MOST + 1, words=0) is None
    assert not spaces._kept
    await spaces.close()


def ids(found: Sequence[Candidate]) -> set[UUID]:
    return {one.id for one in found}


def same(ours: Sequence[Candidate], theirs: Sequence[Candidate]) -> bool:
    """The database multiplies numbers of four bytes."""
    mine, others = ({one.id: one for one in found} for found in (ours, theirs))
    return mine.keys() == others.keys() and all(
        one[:3] == others[id_][:3]
        and one.importance == others[id_].importance
        and _numbers(one) == pytest.approx(_numbers(others[id_]), abs=1e-5, rel=1e-5)
        for id_, one in mine.items()
    )


def _numbers(one: Candidate) -> list[float]:
    return [one.cosine, one.words, one.length, *one.held, one.moment % 1000]


async def nearest(kept: KeptSpace, vector: NDArray[np.float64], most: int) -> list[tuple[int, float]]:
    """Which texts promise most by their vectors, and their cosines."""
    asked = CandidateQuery(model="a model", dim=len(vector), vector=vector.astype(np.float32))
    look = await kept.look(asked, vector.astype(np.float32))
    found = look.gathered(Promise(lexical_share=0.0, full_match=0.0, low=-1.0, high=1.0, most=most), breadth=1)
    return [(one.id.int, one.cosine) for one in found.candidates]


async def test_what_is_nowhere_is_near_to_nothing() -> None:
    kept = kept_space(np.array([[0.0, 0.0], [0.0, 3.0]], dtype=np.float16))
    assert await nearest(kept, np.array([0.0, 2.0]), 5) == [(1, 1.0), (0, 0.0)]
    assert await nearest(kept, np.zeros(2), 5) == [(0, 0.0), (1, 0.0)]


@pytest.mark.parametrize("in_passing", [10_000, 100])
async def test_the_nearest_are_the_nearest(in_passing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "IN_PASSING", in_passing)
    rows = np.random.default_rng(3).normal(size=(500, 64))
    asked = np.random.default_rng(4).normal(size=64)
    found = await nearest(kept_space(rows.astype(np.float16)), asked, 20)
    right = rows @ asked / np.linalg.norm(rows, axis=1) / np.linalg.norm(asked)
    best = np.argsort(-right)[:20].tolist()
    assert [place for place, _ in found] == best
    assert [cosine for _, cosine in found] == pytest.approx(right[best].tolist(), abs=1e-3)
