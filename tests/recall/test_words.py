"""Finding by words: in every script and form, misspelled, at once, and while the embedder fails (D44, D50)."""

import asyncio.selector_events
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.memories import embed
from recollect.model import Mode, NewMemory, Recall
from recollect.recall.sql import candidates, lexicon
from recollect.settings import Settings
from recollect.store.database import driver

pytestmark = pytest.mark.anyio

TEXTS = (
    "the prices at the market went up",
    "a party at the harbour on Friday",
    "she runs along the river",
    "flight LH 1078 to Oslo",
    "account DE89370400440532013000 of the club",
    "the passport is in the blue drawer",
    "Die Häuser in der Altstadt sind nicht teuer",
    "Đà Nẵng has a long bridge",
    "รถไฟไปฮานอยออกเวลาเจ็ดโมง",
    "the boiler was serviced in May",
    "котёл проверили в мае",
)


def by_words(found: Recall) -> list[str | None]:
    return [hit.node.text for hit in found if hit.parts.lexical > 0]


@pytest.fixture
async def unreachable(database_url: str, memory: Engine) -> AsyncIterator[Engine]:
    """The space of `memory` with an embedder that nobody answers for."""
    settings = Settings.load(
        database_url=database_url,
        embedder="ollama:none:64",
        embedding_url="http://127.0.0.1:9",
        pool_size=4,
        space=memory.space.slug,
    )
    async with Engine(settings) as engine:
        yield engine


async def remember(memory: Engine, *texts: str) -> None:
    added = await memory.add_many([NewMemory(text=text) for text in texts], wait=False)
    assert not added.refused


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ("price", "prices"),
        ("parties", "party"),
        ("running", "runs"),
        ("LH1078", "LH 1078"),
        ("LH-1078", "LH 1078"),
        ("DE89 3704 0044 0532 0130 00", "DE89"),
        ("Haus", "Häuser"),
        ("da nang", "Đà Nẵng"),
        ("ฮานอย", "ฮานอย"),
        ("pasport", "passport"),
        ("pasporrt drawr", "passport"),
        ("harbuor", "harbour"),
        ("boil", "boiler"),
        ("the harb", "harbour"),
        ("dra", "drawer"),
        ("ser", "serviced"),  # a little word of Spanish, too
        ("провер", "проверили"),
    ],
)
async def test_D44_D50_a_text_is_found_by_its_words_the_moment_it_is_stored(
    memory: Engine, asked: str, held: str
) -> None:
    await remember(memory, *TEXTS)
    found = by_words(await memory.recall(asked))
    assert held in (found[0] or "")


async def test_D44_only_a_word_that_occurs_nowhere_is_taken_for_another(memory: Engine) -> None:
    await remember(memory, "the horse in the stable", "a house by the sea")
    found = await memory.recall("house")
    assert by_words(found) == ["a house by the sea"]
    assert found.notes == ("Some texts wait to be embedded and are found by their words alone until then "
                           "(`recollect work`).",)  # fmt: skip
    found = await memory.recall("hoise")
    assert set(by_words(found)) == {"the horse in the stable", "a house by the sea"}
    assert 'No text holds "hoise": words that begin like that or are spelled nearly so were looked for.' in found.notes
    assert by_words(await memory.recall("90 1078")) == []


async def test_D44_the_beginning_of_a_word_stands_for_the_most_common_of_those_that_begin_so(memory: Engine) -> None:
    words = ("tangerine", "tangible", "tango", "tangle", "tank")
    await remember(memory, *(f"{word} number {n}" for times, word in enumerate(words, 1) for n in range(times)))
    async with memory.core.search(memory.space.id) as db:
        assert (await candidates.first_look(db, "tan")).meant == {"tan": ["tangl", "tango", "tank"]}
        assert (await candidates.first_look(db, "tanger")).meant == {"tanger": ["tangerin"]}
        assert (await candidates.first_look(db, "ta 10")).meant == {}
        assert (await candidates.first_look(db, "who has a tan?")).meant == {}  # three letters, and typed to their end
        assert (await candidates.first_look(db, "tan to number")).meant == {}


async def test_D44_what_begins_alike_is_no_more_asked_for_where_the_word_itself_is_there(memory: Engine) -> None:
    await remember(memory, "the boiler was serviced in May", "boil the eggs for six minutes")
    assert by_words(await memory.recall("boil")) == ["boil the eggs for six minutes"]


async def test_D44_every_letter_more_of_a_word_finds_the_same_texts(memory: Engine) -> None:
    await remember(
        memory, "the organization of the archive", "planning a garden", *(f"a remark on {n}" for n in range(9))
    )
    for word, held in (("organization", "the organization of the archive"), ("planning", "planning a garden")):
        for letters in range(3, len(word) + 1):
            assert by_words(await memory.recall(word[:letters])) == [held], word[:letters]


async def test_D44_the_beginning_of_a_word_that_is_there_is_not_taken_for_a_slip_while_it_is_typed(
    memory: Engine,
) -> None:
    await remember(memory, "the boiler was serviced in May", "a bool is true or false")
    assert by_words(await memory.recall("boil")) == ["the boiler was serviced in May"]
    assert len(by_words(await memory.recall("boil?"))) == 2


@pytest.mark.usefixtures("one_server")
async def test_D44_spellings_stay_in_their_space_and_are_found_by_their_index(memory: Engine) -> None:
    await remember(memory, *TEXTS)
    async with memory.core.transaction(memory.space.id) as db:  # of a few words an index is not the quickest way
        await db.run("INSERT INTO spellings SELECT $1, -n, 'word' || n, ARRAY[-n] FROM generate_series(1, 20000) AS n")
    other = await memory.in_space((await memory.add_space(f"t-{uuid4().hex[:12]}")).slug)
    await remember(other, "nothing of the kind")
    assert by_words(await other.recall("pasport boil")) == []
    indexes = "SELECT pg_stat_get_xact_numscans(unnest('{spellings_keys, spellings_word}'::regclass[]))"
    async with memory.core.search(memory.space.id) as db:
        raw = await driver(db)
        before = [row[0] for row in await raw.fetch(indexes)]
        seen = await candidates.first_look(db, "pasport boil")
        after = [row[0] for row in await raw.fetch(indexes)]
    assert seen.meant == {"pasport": ["passport"], "boil": ["boiler"]}
    assert all(now > then for now, then in zip(after, before, strict=True))


async def test_D44_another_mean_length_is_weighed_anew_a_few_at_a_time(memory: Engine) -> None:
    await remember(memory, *(f"short note {n}" for n in range(5)))
    await remember(memory, *(f"a long one {n} " + "with many more words " * 20 for n in range(5)))
    async with memory.core.transaction(memory.space.id) as db:
        assert await lexicon.renew_some(db, most=4) == 4
    async with memory.core.transaction(memory.space.id) as db:
        assert await lexicon.is_due(db)  # half-way through, whatever the mean is now
    assert len(by_words(await memory.recall("note"))) == 5
    await memory.work()
    async with memory.core.transaction(memory.space.id) as db:
        assert not await lexicon.is_due(db)


async def test_D50_while_the_embedder_fails_recall_and_ask_answer_by_words_and_say_so(unreachable: Engine) -> None:
    await remember(unreachable, *TEXTS)
    found = await unreachable.recall("where is the passport?")
    assert by_words(found)[0] == TEXTS[5]
    assert [note for note in found.notes if note.startswith("Searched by words alone: ")]
    answer = await unreachable.ask("where is the passport?", mode=Mode.RECALL)
    assert TEXTS[5] in answer.text
    assert [note for note in answer.recall.notes if note.startswith("Searched by words alone: ")]
    graph = await unreachable.recall("where is the passport?", graph=True)
    assert graph[0].node.text == TEXTS[5]


async def test_D50_an_answer_by_words_alone_is_not_kept_for_when_the_embedder_is_back(
    unreachable: Engine, memory: Engine
) -> None:
    await remember(memory, *TEXTS)
    await memory.work()
    unreachable.core.embedders[memory.core.embedder().model] = failing = unreachable.core.embedder()
    assert (await unreachable.recall("passport")).notes
    unreachable.core.embedders[memory.core.embedder().model] = memory.core.embedder()
    assert failing is not memory.core.embedder()
    again = await unreachable.recall("passport")
    assert not [note for note in again.notes if note.startswith("Searched by words alone: ")]


async def test_D50_what_a_plan_changes_is_found_by_its_new_words_though_the_embedder_fails(
    unreachable: Engine,
) -> None:
    case = await unreachable.cases.add("where is the old anchor?", "in the shed", wait=False)
    await unreachable.work()
    await unreachable.cases.update(case.case_id, query="where is the new compass?", wait=False)
    await unreachable.work()
    found = await unreachable.cases.search("compass")
    assert [hit.case.case_id for hit in found.hits] == [case.case_id]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every message that goes to the database."""
    sent: list[int] = []
    transport: Any = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write = transport.write

    def counted(self: Any, data: Any) -> None:
        sent.append(len(data))
        write(self, data)

    monkeypatch.setattr(transport, "write", counted)
    return sent


@pytest.mark.parametrize(
    "asked", ["a party at the harbour", "where is the pasport now?", "how many prices are there at the market?"]
)
async def test_D53_a_recall_takes_at_most_12_messages(memory: Engine, messages: list[int], asked: str) -> None:
    await memory.add_many([NewMemory(text=text, thread="talk") for text in TEXTS])
    for _ in range(2):  # statements are prepared once
        memory.core.recalls.clear()
        messages.clear()
        found = await memory.recall(asked)
    assert found.id
    assert found.ways["by_words"]
    assert 0 < len(messages) <= 12


async def test_D53_an_answer_of_memories_takes_few_messages_more(memory: Engine, messages: list[int]) -> None:
    await memory.add_many([NewMemory(text=text, thread="talk") for text in TEXTS])
    for _ in range(2):
        messages.clear()
        await memory.ask("a party at the harbour", mode=Mode.RECALL)
    assert 0 < len(messages) <= 12


async def test_D53_statistics_follow_a_load(memory: Engine) -> None:
    memory.core.unsettled = 0
    statement = "SELECT analyze_count FROM pg_stat_user_tables WHERE relname = 'lexicon'"
    async with memory.core.database.alone() as connection:
        before = await connection.fetchval(statement)
        await memory.add_many([NewMemory(text=f"note {n}") for n in range(embed.SETTLE_FROM)], wait=False)
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        after = await connection.fetchval(statement)
    assert after > before
    assert memory.core.unsettled == 0


async def test_D44_D53_a_space_is_asked_in_the_languages_that_it_holds_as_soon_as_it_holds_them(memory: Engine) -> None:
    """What is known of its languages is kept from one question to the next, and never older than the answer."""
    await memory.add("The house of my uncle is blue")
    assert [hit.text for hit in await memory.recall("houses")] == ["The house of my uncle is blue"]
    assert memory.core.seen[memory.space.id].languages == frozenset()
    await memory.add("Die Versicherungen der Nachbarn sind nicht mit denen der Firma zu vergleichen")
    (hit,) = await memory.recall("Versicherung")
    assert hit.text.startswith("Die Versicherungen")
    assert memory.core.seen[memory.space.id].languages == {"german"}
