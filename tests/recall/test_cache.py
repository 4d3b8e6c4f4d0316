"""The cache of repeated questions: small, short-lived, and never behind its space (D36)."""

from dataclasses import dataclass, field

import pytest

from recollect.engine.core import Cache
from recollect.engine.engine import Engine
from recollect.model import Mode, Query, Recall
from recollect.plans.sql import plans
from recollect.ports import Vectors
from recollect.recall.recall import embedded, find, is_repeatable, repeated

ASKED = Query(text="Linh drinks green tea")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Finder:
    """Searches for real, and counts how often."""

    memory: Engine
    query: Query = ASKED
    searches: list[Recall] = field(default_factory=list)

    async def __call__(self) -> Recall:
        core, space_id = self.memory.core, self.memory.space.id
        async with core.transaction(space_id) as db:
            version = await plans.version(db)
        return await repeated(core, space_id, version, self.query, self._find)

    async def _find(self) -> Recall:
        self.searches.append(await find(self.memory.core, self.memory.space.id, self.query))
        return self.searches[-1]


@pytest.fixture
async def finder(memory: Engine) -> Finder:
    return Finder(memory)


# --- keeping


def test_D36_the_least_used_goes_first() -> None:
    cache = Cache[int](most=2, seconds=60)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


def test_D36_nothing_is_kept_for_longer_than_its_time() -> None:
    clock = Clock()
    cache = Cache[int](most=2, seconds=60, clock=clock)
    cache.put("a", 1)
    clock.now = 60
    assert cache.get("a") == 1
    clock.now = 60.1
    assert cache.get("a") is None
    assert len(cache) == 0


def test_D36_a_cache_of_size_0_keeps_nothing() -> None:
    cache = Cache[int](most=0, seconds=60)
    cache.put("a", 1)
    assert cache.get("a") is None


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.NEUTRAL])
def test_D24_modes_whose_answers_depend_on_earlier_answers_are_not_kept(mode: Mode) -> None:
    assert not is_repeatable(Query(text="x", mode=mode))
    assert is_repeatable(Query(text="x"))
    assert not is_repeatable(Query(text="x", engagement=True))


@pytest.mark.anyio
async def test_D36_a_question_is_embedded_once(memory: Engine) -> None:
    inner = memory.core.embedder()

    class Counting:
        asked: list[str] = []  # noqa: RUF012
        model, dim, close = inner.model, inner.dim, inner.close
        can_read, knows = inner.can_read, inner.knows

        async def embed(self, texts: list[str]) -> Vectors:
            self.asked.extend(texts)
            return await inner.embed(texts)

    counting = Counting()
    first = (await embedded(memory.core, counting, "tea")).vector  # type: ignore[arg-type]
    second = (await embedded(memory.core, counting, "tea")).vector  # type: ignore[arg-type]
    assert first is not None
    assert first is second
    assert (first == (await inner.embed(["tea"]))[0]).all()
    assert counting.asked == ["tea"]


# --- never behind the space


@pytest.mark.anyio
async def test_D36_the_same_question_is_searched_once_while_nothing_changes(finder: Finder) -> None:
    await finder.memory.add("Linh drinks green tea at home")
    first, second = await finder(), await finder()
    assert len(finder.searches) == 1
    assert (second.hits, second.floor, second.ways["search"]) == (first.hits, first.floor, "as found a moment ago")
    finder.query = Query(text=ASKED.text, limit=1)
    await finder()
    assert len(finder.searches) == 2


@pytest.mark.anyio
async def test_D36_whatever_changes_the_space_is_seen_at_once(finder: Finder) -> None:
    memory = finder.memory
    node = await memory.add("Linh drinks green tea at home")
    assert [hit.node.id for hit in await finder()] == [node.id]
    other = await memory.add("Linh drinks green tea abroad")
    assert {hit.node.id for hit in await finder()} == {node.id, other.id}
    await memory.forget(node.id)
    assert [hit.node.id for hit in await finder()] == [other.id]
    await memory.restore(node.id)
    await memory.edit(other.id, importance=1.0, metadata={"tags": ["ai"]})
    assert {hit.node.id for hit in await finder()} == {node.id, other.id}
    assert {hit.node.importance for hit in finder.searches[-1]} == {None, 1.0}
    await memory.exclude(node.id)
    assert [hit.node.id for hit in await finder()] == [other.id]


@pytest.mark.anyio
async def test_D36_another_process_changes_the_space_too(finder: Finder) -> None:
    await finder()
    async with Engine(finder.memory.settings) as beside:
        node = await beside.add("Linh drinks green tea at home")
    assert [hit.node.id for hit in await finder()] == [node.id]


@pytest.mark.anyio
async def test_D36_asking_and_judging_change_no_space_nor_does_another_space(finder: Finder) -> None:
    memory = finder.memory

    async def version() -> int:
        async with memory.core.transaction(memory.space.id) as db:
            return await plans.version(db)

    node = await memory.add("Linh drinks green tea at home")
    before = await version()
    await memory.ask(ASKED.text)
    await memory.helped(node.id)
    beside = await memory.in_space((await memory.add_space(f"{memory.space.slug}-b")).slug)
    await beside.add("elsewhere")
    assert await version() == before
    await memory.forget(node.id)
    assert await version() > before
