"""Long texts: a vector for each window, the best one counts, and the hit shows the passage that was found (D47)."""

import io
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.memories.rules.text import count_tokens
from recollect.memories.rules.windows import TOKENS, windows
from recollect.model import Mode, NewMemory, NodeFilter
from recollect.recall import search
from recollect.recall.sql import candidates, filtered
from recollect.settings import Settings
from recollect.store.database import driver
from tests.conftest import fresh_space
from tests.memories.rules.test_windows import FACT, long_note
from tests.recall.test_recall import walk_the_index
from tests.recall.test_words import messages

pytestmark = pytest.mark.anyio
messages = messages

KEY = "the spare key of the boathouse"
SHORT = "the budget of the boat club"


async def numbers(memory: Engine, id_: object) -> list[int]:
    """The vectors of a text: 0 is that of all of it."""
    async with memory.core.transaction(memory.space.id) as db:
        found = await (await driver(db)).fetch("SELECT passage FROM embeddings WHERE node_id = $1 ORDER BY 1", id_)
    return [row["passage"] for row in found]


def all_of(text: str) -> list[int]:
    return [*range(len(windows(text)) + 1)]


async def best_of_windows(memory: Engine, question: str, text: str) -> float:
    asked, *told = await memory.core.embedder().embed([question, *(one.of(text) for one in windows(text))])
    return max(float(asked @ one) for one in told)


async def as_owner(memory: Engine, *statements: str) -> None:
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def test_D47_a_long_memory_has_a_vector_a_window_and_a_short_one_has_one(memory: Engine) -> None:
    note, short = await memory.add(long_note()), await memory.add(FACT)
    assert await numbers(memory, note.id) == all_of(long_note())
    assert await numbers(memory, short.id) == [0]


async def test_D47_a_hit_is_found_by_its_best_window_once_and_shows_it(memory: Engine) -> None:
    note = await memory.add(long_note())
    await memory.add(SHORT)
    found = await memory.recall(KEY, weak=True)
    (hit,) = [hit for hit in found if hit.node.id == note.id]
    assert FACT in (hit.passage or "")
    assert FACT in str(hit)
    assert count_tokens(hit.text) < 8 * TOKENS
    assert hit.node.text == long_note()
    assert [hit.passage for hit in found if hit.node.id != note.id] == [None]
    assert hit.parts.cosine == pytest.approx(await best_of_windows(memory, KEY, long_note()), abs=2e-3)


@pytest.mark.parametrize("way", ["exact", "HNSW", "filter", "wide filter", "summaries", "graph", "mode"])
async def test_D47_every_way_to_the_nearest_gives_a_text_once_by_its_best_window(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    note = await memory.add(long_note())
    others = await memory.add_many([NewMemory(text=f"{SHORT} number {number}") for number in range(5)])
    options: dict[str, dict[str, Any]] = {
        "filter": {"wanted": NodeFilter(created_from=note.created_at)},
        "wide filter": {"wanted": NodeFilter(created_from=note.created_at)},
        "summaries": {"include_summaries": True},
        "graph": {"graph": True},
        "mode": {"mode": Mode.RECALL},
    }
    if way == "HNSW":
        walk_the_index(memory, monkeypatch, over=0)
    if way == "wide filter":
        monkeypatch.setattr(filtered, "EXACT_BELOW", 2)
        monkeypatch.setattr(candidates, "POOL", 2)
    found = await memory.recall(KEY, weak=True, **options.get(way, {}))
    assert len({hit.node.id for hit in found}) == len(found)
    (hit,) = [hit for hit in found if hit.node.id == note.id]
    assert FACT in (hit.passage or "")
    assert hit.parts.cosine == pytest.approx(await best_of_windows(memory, KEY, long_note()), abs=2e-3)
    if way in ("exact", "HNSW"):
        assert len(found) == 1 + len(others.ids)
        assert found.ways["by_vector"] == 6
        assert str(found.ways["search"]).startswith(way)


@pytest.mark.parametrize("wanted", [NodeFilter(), NodeFilter(excluded=False, metadata={"tags": ["life"]})])
async def test_D47_a_few_long_texts_do_not_crowd_out_the_others(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, wanted: NodeFilter
) -> None:
    monkeypatch.setattr(search, "BROADEST", 1)
    monkeypatch.setattr(candidates, "POOL", 4)
    monkeypatch.setattr(filtered, "EXACT_BELOW", 2)
    tags = {"tags": ["life"]}
    told = [long_note(), long_note(140), *(f"{SHORT}, {number} times" for number in range(6))]
    await memory.add_many([NewMemory(text=text, metadata=tags) for text in told])
    found = await memory.recall("the committee discussed the yearly budget", weak=True, wanted=wanted)
    assert len(found) > 2
    assert len({hit.node.id for hit in found}) == len(found)


async def test_D47_a_long_text_that_was_embedded_as_a_whole_gets_its_windows_while_search_goes_on(
    memory: Engine,
) -> None:
    """What an upgrade leaves behind: a text with one vector, and a job to embed it again."""
    note = await memory.add(long_note())
    of_space = f"space_id = '{memory.space.id}'"
    await as_owner(
        memory,
        f"DELETE FROM embeddings WHERE {of_space} AND passage > 0",
        f"UPDATE embedding_jobs SET status = 'pending', attempts = 0 WHERE {of_space}",
    )
    (before,) = await memory.recall("committee budget", weak=True)
    assert (before.node.id, before.passage) == (note.id, None)
    await memory.work()
    assert await numbers(memory, note.id) == all_of(long_note())
    assert [hit.node.id for hit in await memory.recall("committee budget", weak=True)] == [note.id]


async def test_D47_D35_a_new_model_gives_every_window_its_vector(memory: Engine) -> None:
    note = await memory.add(long_note())
    changed = memory.settings.model_copy(update={"embedder": "hashing:128", "space": memory.space.slug})
    async with Engine(changed) as renewed:
        while (hit := await renewed.recall(KEY)).model == "hashing:64":
            assert FACT in (hit[0].passage or "")
            await renewed.work()
        assert FACT in ((await renewed.recall(KEY))[0].passage or "")
    assert await numbers(memory, note.id) == sorted(2 * all_of(long_note()))


async def test_D47_a_long_text_travels_and_is_found_before_and_after_its_windows_are_made_anew(
    memory: Engine, settings: Settings
) -> None:
    note, short = await memory.add(long_note()), await memory.add(SHORT)
    out = io.BytesIO()
    await memory.export(out, with_vectors=True)
    async with Engine(await fresh_space(settings)) as other:
        await other.import_(["-"], stdin=out.getvalue(), wait=False)
        assert (await numbers(other, note.id), await numbers(other, short.id)) == ([0], [0])
        assert note.id in {hit.node.id for hit in await other.recall("committee budget", weak=True)}
        assert await other.work() == 1
        assert await numbers(other, note.id) == all_of(long_note())
        assert FACT in ((await other.recall(KEY))[0].passage or "")


async def test_D47_archived_and_merged_texts_leave_search_with_all_their_windows(memory: Engine) -> None:
    note = await memory.add(long_note())
    await memory.forget(note.id)
    assert len(await memory.recall(KEY, weak=True)) == 0
    assert not (await faults_of(memory, note.id))
    await memory.restore(note.id)
    assert len(await memory.recall(KEY, weak=True)) == 1


async def faults_of(memory: Engine, id_: object) -> list[str]:
    return [fault for fault, ids in (await memory.verify()).faults.items() if id_ in ids]


async def test_D47_D53_long_texts_take_at_most_12_messages(memory: Engine, messages: list[int]) -> None:
    await memory.add_many([NewMemory(text=long_note(150 + number), thread="talk") for number in range(3)])
    for _ in range(2):
        memory.core.recalls.clear()
        messages.clear()
        found = await memory.recall(KEY)
    assert found[0].passage
    assert 0 < len(messages) <= 12


async def test_D47_very_long_texts_are_embedded_a_portion_at_a_time(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.memories.embed.CHARACTERS_AT_ONCE", 3 * len(long_note()))
    at_once: list[int] = []
    embed = memory.core.embedder().embed

    async def counted(texts: list[str]) -> Any:
        at_once.append(len(texts))
        return await embed(texts)

    monkeypatch.setattr(memory.core.embedder(), "embed", counted)
    await memory.add_many([NewMemory(text=f"{number} {long_note()}") for number in range(7)])
    assert max(at_once) <= 3 * len(all_of(long_note()))
    assert (await memory.jobs()).completed == 7


@pytest.mark.parametrize("wanted", [NodeFilter(), NodeFilter(created_from=datetime(2020, 1, 1, tzinfo=UTC))])
async def test_D45_the_only_text_that_holds_a_word_is_looked_at_however_far_its_vector_lies(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, wanted: NodeFilter
) -> None:
    """What the leg of words did not return was taken to be as good as its last: here, as good as the only match."""
    monkeypatch.setattr(search, "LOOKED_AT", 3)
    await memory.add_many([NewMemory(text=f"striped animal number {number}") for number in range(30)])
    zebra = await memory.add("zebra")
    await as_owner(memory, f"UPDATE embeddings SET vector = (vector - vector) - vector WHERE node_id = '{zebra.id}'")
    found = await memory.recall("zebra", limit=1, wanted=wanted)
    assert [hit.node.id for hit in found] == [zebra.id]


SCATTERED = (
    "The harbour office closed early.",
    "A portrait was sold.",
    "The master of the lodge left.",
    "Oars are wet.",
)


def with_scattered_words() -> str:
    """A long note in which the words of a question stand, far from each other."""
    lines = long_note(fact="The swimmers met at noon.").split("\n")
    for number, one in enumerate(SCATTERED):
        lines.insert(30 * number + 10, one)
    return "\n".join(lines)


async def test_D47_words_scattered_over_a_long_text_count_by_the_passage_that_is_nearest(memory: Engine) -> None:
    """The other note holds one more of the words that are asked for; in this one they stand together."""
    asked = "behind a portrait of what harbour master are oars, bicycles and canoes?"
    told, scattered = await memory.add(long_note()), await memory.add(with_scattered_words())
    other = await memory.add("Bicycles and canoes stay in the shed.")
    found = {hit.node.id: hit for hit in await memory.recall(asked, weak=True)}
    assert {*found} == {told.id, scattered.id, other.id}
    assert found[scattered.id].parts.coverage < found[told.id].parts.coverage < search.NEARLY_ALL
    assert found[scattered.id].parts.lexical < found[told.id].parts.lexical
    assert found[told.id].score > found[scattered.id].score


async def test_D47_words_that_a_long_text_holds_count_where_they_stand_together(memory: Engine) -> None:
    """Somewhere in a long text nearly every word stands: all that was asked, a page apart, is no answer."""
    asked = "harbour portrait lodge master"
    scattered = await memory.add(with_scattered_words())
    together = await memory.add(long_note(fact="The portrait of the lodge master faces the harbour."))
    found = {hit.node.id: hit for hit in await memory.recall(asked, weak=True)}
    assert found[together.id].parts.coverage == 1
    assert found[scattered.id].parts.coverage < search.NEARLY_ALL
    assert [hit.node.id for hit in await memory.recall(asked)] == [together.id]


async def test_D47_where_they_stand_together_need_not_be_near_in_meaning(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WINDOWS_READ", 1)
    asked = "committee discussed yearly budget boathouse portrait"
    fact = "Boathouse, portrait: the committee discussed both, in the yearly budget. "
    told = await memory.add(long_note(fact=2 * fact))
    await memory.add(SHORT)
    (hit,) = [hit for hit in await memory.recall(asked, weak=True) if hit.node.id == told.id]
    assert hit.parts.coverage == 1


@pytest.mark.parametrize("asked", ["library", "the libraries", "libary"])
async def test_D47_D44_one_word_finds_the_long_text_that_holds_it(memory: Engine, asked: str) -> None:
    """Its stem is no beginning of it, and a misspelled one stands nowhere."""
    told = await memory.add(long_note(fact="She slipped on the ice near the library."))
    await memory.add(long_note(fact="She slipped on the ice near the museum."))
    first = (await memory.recall(asked))[0]
    assert first.node.id == told.id
    assert first.parts.lexical > 0


@pytest.mark.parametrize("title", ["Regatta", "港口"])
async def test_D47_D48_a_passage_keeps_the_words_of_its_notes_title(memory: Engine, title: str) -> None:
    told = await memory.add(long_note(), metadata={"extra": {"title": title}})
    found = await memory.recall(f"{title}: where do they hang up bicycles and wet umbrellas", weak=True)
    (hit,) = [one for one in found if one.node.id == told.id]
    assert 0 < hit.parts.coverage < search.NEARLY_ALL


async def test_D47_a_long_text_is_no_newer_statement_of_what_another_says(memory: Engine) -> None:
    """It states many numbers, none of them as the value that is asked for."""
    asked = "What is the yearly budget in crowns?"
    day = datetime(2026, 3, 1, tzinfo=UTC)
    older = await memory.add("The committee discussed the yearly budget: it is 40 crowns.", created_at=day)
    await memory.add(long_note(), created_at=day.replace(day=2))
    assert (await memory.recall(asked, weak=True))[0].node.id == older.id
    newer = await memory.add(
        "The committee discussed the yearly budget: it is 50 crowns.", created_at=day.replace(day=3)
    )
    assert (await memory.recall(asked, weak=True))[0].node.id == newer.id
