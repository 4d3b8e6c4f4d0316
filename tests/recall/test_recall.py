"""Recall against a real database: candidates, filters, floors, threads, updates, and input of every kind."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import numpy as np
import pytest

from recollect.engine.core import Pace
from recollect.engine.engine import Engine
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.memories.sql import nodes
from recollect.model import Kind, Mode, NewMemory, NodeFilter, Parts, Recall
from recollect.recall.calibrate import measure
from recollect.recall.rules import lexical, ranking
from recollect.recall.sql import candidates, filtered, lexicon
from recollect.recall.sql.candidates import CandidateQuery
from recollect.settings import Settings
from recollect.store.database import Transaction, driver
from tests.conftest import fresh_space
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.anyio

FACTS = (
    "Linh prefers green tea, never coffee",
    "The deployment of the billing service failed because the migration ran late",
    "Grandmother's dumpling recipe needs two hundred grams of flour",
    "Marta moved to Lisbon in spring and works from a lighthouse",
    "The spare key is with Mrs Okafor in flat three",
)


async def teach(memory: Engine, *texts: str, **fields: Any) -> None:
    await memory.add_many([NewMemory(text=text, **fields) for text in texts])


def texts(found: Recall) -> list[str | None]:
    return [hit.node.text for hit in found]


async def asked_in(db: Transaction, memory: Engine, question: str) -> CandidateQuery:
    """A question as the legs ask it."""
    vector = (await memory.core.embedder().embed([question]))[0]
    seen = await candidates.first_look(db, question)
    return CandidateQuery(model=memory.core.embedder().model, dim=len(vector), vector=vector, words=seen.words)


def walk_the_index(memory: Engine, monkeypatch: pytest.MonkeyPatch, *, over: int) -> None:
    """As if over so many vectors there were an index, and nothing to be measured."""
    settings = memory.core.settings.model_copy(update={"hnsw_min_rows": 0})
    monkeypatch.setattr(memory.core, "settings", settings)
    monkeypatch.setattr(candidates, "MEASURED_UP_TO", over)


async def test_D53_between_an_index_and_all_vectors_the_faster_way_is_taken(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await teach(memory, *FACTS)
    walk_the_index(memory, monkeypatch, over=100)
    took = Pace.took
    monkeypatch.setattr(Pace, "took", lambda pace, exactly, _: took(pace, exactly, 0.02 if exactly else 0.01))
    ways = []
    for _ in range(8):
        memory.core.recalls.clear()
        found = await memory.recall("who keeps the spare key?")
        assert texts(found)[0] == FACTS[4]
        ways.append(str(found.ways["search"]))
    assert ways[:6] == ["exact: 5 vectors"] * 3 + ["HNSW: 5 vectors"] * 3
    assert ways[6:] == ["HNSW: 5 vectors"] * 2


async def renew(db: Transaction) -> None:
    """The worker's way of making the index of words anew."""
    await (await driver(db)).execute(lexicon.BEGIN_RENEWAL, db.space_id)
    while await lexicon.renew_some(db):
        pass


async def test_D31a_words_and_vectors_find_together_and_lay_their_parts_open(memory: Engine) -> None:
    await teach(memory, *FACTS)
    found = await memory.recall("who keeps the spare key?")
    assert found[0].node.text == FACTS[4]
    parts = found[0].parts
    assert parts.lexical > 0.5
    assert parts.cosine > 0
    assert parts.similarity != parts.cosine
    assert parts.recency == pytest.approx(1.0, abs=0.01)
    assert parts.importance == 0.5
    assert found[0].score == pytest.approx(0.6 * parts.relevance + 0.15 * parts.recency + 0.25 * 0.5, abs=1e-4)
    assert found[0].source == "both"


async def test_the_database_computes_the_same_bm25_as_the_rules(memory: Engine) -> None:
    await teach(memory, *FACTS)
    counts = {
        node.text: Counter(lexical.words(f"{node.created_at:%-d %B %Y} {node.text}"))
        for node in (await memory.list()).items
    }
    async with memory.core.transaction(memory.space.id) as db:
        await renew(db)
        asked = await asked_in(db, memory, "green tea for Mrs Okafor")
        found = await memory.list()
        ids = {node.id: node.text for node in found.items}
        rows = await filtered.details(db, asked, list(ids), cosines={}, words={})
    mean = sum(one.total() for one in counts.values()) / len(counts)
    for row in rows:
        held = counts[ids[row.id] or ""]
        numbered = {lexical.term(word): count for word, count in held.items()}
        weights = lexical.document_weights(numbered, length=held.total(), mean_length=mean)
        expected = sum(
            lexical.rarity(candidates.FEW, sum(word in one for one in counts.values())) * weights[lexical.term(word)]
            for word in lexical.words("green tea for Mrs Okafor")
            if word in held
        )
        assert row.words == pytest.approx(expected, rel=1e-4)


async def test_D50_a_batch_is_indexed_bit_by_bit_as_each_of_its_texts_alone(memory: Engine) -> None:
    given = [*FACTS, "?!", "tea tea tea, and LH 1078", "Der Schlüssel liegt bei der Nachbarin", "猫が魚を食べる"]
    await teach(memory, *given)
    read = "SELECT l.*, n.text, n.created_at FROM lexicon l JOIN nodes n ON n.id = l.node_id WHERE l.space_id = $1"
    async with memory.core.transaction(memory.space.id) as db:
        rows, salt = await db.fetch(read), lexical.salt_of(db.space_id)
        mean = await db.fetchval("SELECT weighted_mean FROM lexicon_totals WHERE space_id = $1")
        counted = dict(await db.fetch("SELECT term, documents FROM term_stats WHERE space_id = $1"))
    assert {row["text"] for row in rows} == set(given)
    for row in rows:
        alone = lexical.indexed(f"{row['created_at']:%-d %B %Y}\n\n\n{row['text']}")
        terms = {lexical.term(word, salt): count for word, count in Counter(alone.words).items()}
        weights = lexical.document_weights(terms, length=alone.length, mean_length=mean)
        assert row["terms"] == sorted(terms)
        assert row["bm25"].to_binary() == candidates.sparse(weights).to_binary()
        assert row["length"] == alone.length
    assert counted == Counter(term for row in rows for term in row["terms"])


async def test_a_hit_by_words_alone_is_found_before_any_likeness(memory: Engine) -> None:
    await teach(memory, *FACTS, "ticket ZX-4471 was closed")
    assert texts(await memory.recall("ZX-4471"))[0] == "ticket ZX-4471 was closed"


async def test_D14_what_is_archived_excluded_or_a_summary_is_no_candidate(memory: Engine) -> None:
    await teach(memory, "the red kettle", "the red kettle of Ana", "the red kettle of Bo", "the red kettle of Cy")
    ids = {node.text: node.id for node in (await memory.list()).items}
    await memory.forget(ids["the red kettle of Ana"])
    await memory.exclude(ids["the red kettle of Bo"])
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    await connection.execute("UPDATE nodes SET is_summary = true WHERE id = $1", ids["the red kettle of Cy"])
    await connection.close()
    assert texts(await memory.recall("red kettle")) == ["the red kettle"]
    with_summaries = await memory.recall("red kettle", include_summaries=True)
    assert set(texts(with_summaries)) == {"the red kettle", "the red kettle of Cy"}
    faults = (await memory.verify()).faults  # of the whole database, so of other tests too
    assert not {fault for fault in faults if "recallable" in fault}


async def test_D25_D26_filters_narrow_the_candidates_and_are_answered_exactly(memory: Engine) -> None:
    old = datetime(2020, 5, 1, tzinfo=UTC)
    await teach(memory, "tea with Linh", metadata={"tags": ["life"], "extra": {"person_name": "Linh"}})
    await teach(memory, "tea bill", subtype="log", metadata={"type": "expense", "source": "cli"})
    await teach(memory, "tea plan", subtype="idea", created_at=old, thread="plans")

    async def found(**fields: Any) -> set[str | None]:
        recall = await memory.recall("tea", wanted=NodeFilter(excluded=False, **fields))
        assert "exact: the filter leaves" in str(recall.ways["search"])
        return set(texts(recall))

    assert await found(metadata={"tags": ["life"]}) == {"tea with Linh"}
    assert await found(metadata={"extra": {"person_name": "Linh"}}) == {"tea with Linh"}
    assert await found(metadata={"type": "expense"}) == await found(metadata={"source": "cli"}) == {"tea bill"}
    assert await found(subtypes=("log", "idea")) == {"tea bill", "tea plan"}
    assert await found(created_to=old + timedelta(days=1)) == {"tea plan"}
    assert await found(created_from=old + timedelta(days=1)) == {"tea with Linh", "tea bill"}
    assert await found(thread="plans") == {"tea plan"}
    assert await memory.recall("tea", kinds=[Kind.CONCEPT]) is not None
    assert len(await memory.recall("tea", kinds=[Kind.CONCEPT])) == 0


async def test_the_choice_between_exact_and_hnsw_is_made_from_counts_and_told(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await teach(memory, *(f"note about topic {n}" for n in range(60)))
    exact = await memory.recall("topic 7", limit=60)
    assert exact.ways["search"] == "exact: every vector"
    monkeypatch.setattr(filtered, "EXACT_BELOW", 50)
    walk_the_index(memory, monkeypatch, over=50)
    memory.core.recalls.clear()
    approximate = await memory.recall("topic 7", limit=60)
    assert approximate.ways["search"] == "HNSW: over 50 vectors"
    assert texts(approximate)[:5] == texts(exact)[:5]
    narrowed = await memory.recall("topic 7", wanted=NodeFilter(subtypes=("note",), excluded=False), limit=60)
    assert set(texts(narrowed)) == set(texts(exact))


async def test_D20_D21_a_question_about_something_never_told_finds_nothing(memory: Engine) -> None:
    await teach(memory, *FACTS)
    unknown = await memory.recall("quantum chromodynamics lattice", mode=Mode.RECALL)
    assert len(unknown) == 0
    assert unknown.floor == pytest.approx(0.65)
    assert {one.step for one in unknown.left_out} == {"floor"}
    assert str(unknown) == "Nothing is known about that."
    known = await memory.recall("spare key with Mrs Okafor", mode=Mode.RECALL)
    assert texts(known)[0] == FACTS[4]
    assert known[0].parts.relevance >= 0.65


async def test_D16a_plain_search_for_weak_matches_has_no_floor_and_its_limit_is_twenty(memory: Engine) -> None:
    await teach(memory, *(f"note {n}" for n in range(30)))
    found = await memory.recall("quantum chromodynamics", weak=True)
    assert (len(found), found.floor) == (20, None)
    strict = await memory.recall("note 7", threshold=0.3)
    assert strict.floor == pytest.approx(0.7)
    assert all(hit.parts.relevance >= 0.7 for hit in strict)


async def test_D46_what_is_hardly_related_is_shown_only_when_asked_for(memory: Engine) -> None:
    await teach(memory, *FACTS)
    await memory.add("the newest and the most important of all", importance=1.0)
    await memory.work()
    found = await memory.recall("who keeps the spare key?")
    assert found[0].node.text == FACTS[4]
    assert all(hit.relevance >= ranking.RELATED for hit in found)
    assert {one.step for one in found.left_out} == {"floor"}
    everything = await memory.recall("who keeps the spare key?", weak=True)
    assert texts(everything)[: len(found)] == texts(found)
    assert len(everything) == len(FACTS) + 1
    assert not await memory.recall("quantum chromodynamics")


async def test_D24_a_repeated_question_shows_fresh_memories_first(memory: Engine) -> None:
    await teach(memory, *(f"the meeting about budget round {word}" for word in ("one", "two", "three")))
    first = await memory.recall("meeting about budget round", mode=Mode.RECALL, limit=1)
    second = await memory.recall("meeting about budget round", mode=Mode.RECALL, limit=3)
    assert second[-1].node.id == first[0].node.id
    assert len(second) == 3


async def test_D30_twins_are_told_once(memory: Engine) -> None:
    await teach(memory, "the bins go out on Tuesday", "the bins go out on Tuesday!")
    found = await memory.recall("when do the bins go out", mode=Mode.RECALL)
    assert len(found) == 1
    assert [one.step for one in found.left_out] == ["twin"]


async def test_D29_D31_a_budget_is_kept_and_what_does_not_fit_is_named(memory: Engine) -> None:
    await teach(memory, "tea " + "and a very long story " * 400, "tea is green", "tea is black")
    found = await memory.recall("tea", budget_tokens=50)
    assert set(texts(found)) == {"tea is green", "tea is black"}
    (left,) = [one for one in found.left_out if one.step == "budget"]
    assert "available on expand" in left.why


async def test_D45_who_asks_to_be_told_about_somebody_misses_neither_word_of_asking(memory: Engine) -> None:
    await teach(memory, "Mr. Okafor mended the boiler", *(f"unrelated remark number {n}" for n in range(30)))
    for question in ("Okafor", "tell me about Okafor", "what do we know about Okafor?", "anything about Okafor?"):
        (hit,) = (await memory.ask(question, mode=Mode.RECALL)).recall
        assert hit.text == "Mr. Okafor mended the boiler"
    assert not (await memory.ask("tell me about Petrov", mode=Mode.RECALL)).recall


async def test_the_turn_before_helps_the_turn_that_answers(memory: Engine) -> None:
    """The answer shares no word with the question; the question before it in the thread does."""
    await teach(memory, "Where did you put the passport?", "In the blue drawer upstairs", thread="chat")
    await teach(memory, *(f"unrelated remark number {n}" for n in range(20)))
    found = await memory.recall("where is the passport")
    assert texts(found)[1] == "In the blue drawer upstairs"
    assert found[1].parts.flow > 0
    alone = await memory.recall("where is the passport", wanted=NodeFilter(thread="chat", excluded=False))
    assert set(texts(alone)) == {"Where did you put the passport?", "In the blue drawer upstairs"}


async def test_the_newer_of_two_values_comes_first_when_the_present_is_asked_for(memory: Engine) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    said = ["I have 40 sources in my Zotero library", "my Zotero library now has 55 sources"]
    for day, text in enumerate(said):
        await teach(memory, text, created_at=start + timedelta(seconds=day))
    assert texts(await memory.recall("How many sources are in my Zotero library?"))[0] == said[1]
    assert texts(await memory.recall("What did I say of 40 sources in my library?"))[0] == said[0]


async def test_dates_can_be_asked_for(memory: Engine) -> None:
    await teach(memory, "we walked along the river", created_at=datetime(2023, 5, 7, tzinfo=UTC))
    await teach(memory, "we walked along the coast", created_at=datetime(2024, 8, 9, tzinfo=UTC))
    assert texts(await memory.recall("where did we walk in May 2023"))[0] == "we walked along the river"


@pytest.mark.parametrize(
    "query",
    [
        "the and of",
        "?!…",
        "🍵",
        "Bạn thích uống gì?",
        "무엇을 마셔요?",
        "喜欢喝什么",
        "a" * 100_000,
        "x" * 5 + "'; DROP",
    ],
)
async def test_any_question_has_a_result(memory: Engine, query: str) -> None:
    await teach(memory, *FACTS)
    assert isinstance(await memory.recall(query), Recall)
    assert isinstance(await memory.recall(query, mode=Mode.RECALL), Recall)


@pytest.mark.parametrize(
    ("query", "fields", "sentence"),
    [
        ("", {}, "The question is empty"),
        (" \n", {}, "The question is empty"),
        ("a\0b", {}, "NUL byte"),
        ("\ud800", {}, "lone surrogate"),
        ("a" * 100_001, {}, "over 100,000 characters"),
        ("x", {"limit": 0}, "The limit is from 1 to 1,000, not 0"),
        ("x", {"limit": -1}, "not -1"),
        ("x", {"limit": 10_000}, "not 10000"),
        ("x", {"threshold": 1.5}, "The threshold is from 0 to 1, not 1.5"),
        ("x", {"threshold": float("nan")}, "The threshold is from 0 to 1"),
        ("x", {"budget_tokens": 0}, "at least 1 token"),
        ("x", {"budget_tokens": float("nan")}, "The budget is a whole number"),
        ("x", {"limit": "3"}, "The limit is from 1 to 1,000, not '3'"),
        ("x", {"limit": 1.5}, "The limit is from 1 to 1,000, not 1.5"),
        (None, {}, "The question must be a string, not NoneType"),
        (b"tea", {}, "The question must be a string, not bytes"),
    ],
)
async def test_a_question_that_cannot_be_asked_is_one_sentence(
    memory: Engine, query: Any, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        await memory.recall(query, **fields)


async def test_an_empty_space_answers_with_nothing(memory: Engine) -> None:
    assert len(await memory.recall("anything")) == 0
    assert len(await memory.recall("anything", mode=Mode.SYNTHESIZE)) == 0


async def test_D40_engagement_lifts_what_is_used_only_where_asked_for(memory: Engine) -> None:
    await teach(memory, "tea is green", "tea is black")
    for _ in range(6):
        await memory.recall("black", limit=1)
    plain = {hit.node.text: hit for hit in await memory.recall("tea")}
    engaged = {hit.node.text: hit for hit in await memory.recall("tea", engagement=True)}
    assert plain["tea is black"].parts.engagement == 0
    gain = engaged["tea is black"].parts.engagement - engaged["tea is green"].parts.engagement
    assert gain > 0.3
    assert engaged["tea is black"].score > engaged["tea is green"].score


async def link(memory: Engine, source: str, target: str, strength: float) -> None:
    ids = {node.text: node.id for node in (await memory.list()).items}
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    await connection.execute(
        "INSERT INTO edges (space_id, id, source, target, relation, strength)"
        " VALUES ($1, gen_random_uuid(), $2, $3, 'supports', $4)",
        *(memory.space.id, ids[source], ids[target], strength),
    )
    await connection.close()


async def test_A31_A32_activation_lifts_what_is_linked_to_a_hit(memory: Engine) -> None:
    side = "Mrs Okafor waters the plants of the whole house"
    await teach(memory, *FACTS, side)
    question = "spare key with Mrs Okafor"
    before = {hit.node.text: hit for hit in await memory.recall(question, graph=True)}
    await link(memory, FACTS[4], side, 1.0)
    found = await memory.recall(question, graph=True)
    after = {hit.node.text: hit for hit in found}
    near, linked = after[FACTS[4]], after[side]
    assert near.source == linked.source == "both"
    assert near.score == pytest.approx(0.6 * near.similarity + 0.4 * near.parts.activation)
    assert linked.score == pytest.approx(0.6 * linked.similarity + 0.4 * linked.parts.activation)
    assert linked.parts.activation >= near.similarity * 0.6 - 1e-4
    assert all(hit.score >= 0.3 for hit in found)
    assert before[FACTS[4]].parts.activation == 0.0


async def test_A32_an_empty_graph_is_similarity_alone(memory: Engine) -> None:
    await teach(memory, *FACTS)
    found = await memory.recall("spare key with Mrs Okafor", graph=True)
    assert all(hit.score == hit.similarity and hit.source == "vector" for hit in found)


async def test_D28a_calibrate_measures_on_the_own_memories_and_is_used_after_consent(memory: Engine) -> None:
    words = [f"word{n}" for n in range(300)]
    chance = np.random.default_rng(3)
    made = [" ".join(chance.choice(words, 30)) for _ in range(150)]
    await teach(memory, *made, thread="diary")
    measured = await measure(memory.core, memory.space.id)
    assert measured.model == "hashing:64"
    assert measured.proposed.low < measured.proposed.high
    assert sum(measured.unrelated) == 75
    before = (await memory.recall(made[3], limit=1))[0].parts
    await memory.use_calibration(measured)
    after = (await memory.recall(made[3], limit=1))[0].parts
    assert after.cosine == pytest.approx(before.cosine, abs=1e-3)
    assert after.similarity != pytest.approx(before.similarity, abs=1e-3)
    with pytest.raises(InvalidInput, match="A calibration has a low and a higher high"):
        await memory.set_space(memory.space.slug, {"calibrations": {"x": {"low": 1, "high": 0}}})


async def test_the_word_weights_follow_the_mean_length(memory: Engine) -> None:
    await teach(memory, "short one")
    await teach(memory, *(f"a much longer text number {n} " + "with many more words " * 20 for n in range(10)))
    async with memory.core.transaction(memory.space.id) as db:
        assert not await lexicon.is_due(db)
    assert texts(await memory.recall("short"))[0] == "short one"


@pytest.mark.usefixtures("one_server")
async def test_the_lexical_search_uses_its_index_as_the_working_role(memory: Engine) -> None:
    await teach(memory, *(f"entry {n} about thing{n}" for n in range(400)))
    async with memory.core.database.alone() as connection:
        await connection.execute("VACUUM ANALYZE lexicon")
    async with memory.core.transaction(memory.space.id) as db:
        asked = await asked_in(db, memory, "thing7")
        raw = await driver(db)
        await raw.execute("SET LOCAL enable_seqscan = off")
        before = await raw.fetchval("SELECT pg_stat_get_xact_numscans('lexicon_terms'::regclass)")
        found = await filtered.matching(db, asked, kinds=["memory"])
        after = await raw.fetchval("SELECT pg_stat_get_xact_numscans('lexicon_terms'::regclass)")
    assert len(found) == 1
    assert after > before


async def test_D25_a_metadata_filter_finds_nothing_of_another_space_and_applies_the_other_conditions(
    memory: Engine, settings: Settings
) -> None:
    tagged = {"metadata": {"extra": {"part": 7}}}
    await teach(memory, FACTS[0], thread="kitchen", **tagged)
    await teach(memory, FACTS[1], thread="office", **tagged)
    await teach(memory, FACTS[2], thread="kitchen")
    async with Engine(await fresh_space(settings)) as other:
        await teach(other, FACTS[3], thread="kitchen", **tagged)
        some = NodeFilter(metadata={"extra": {"part": 7}}, excluded=False)
        assert texts(await other.recall("what?", wanted=some, weak=True)) == [FACTS[3]]
        assert set(texts(await memory.recall("what?", wanted=some, weak=True))) == {FACTS[0], FACTS[1]}
        assert texts(await memory.recall("what?", wanted=replace(some, thread="kitchen"), weak=True)) == [FACTS[0]]


@pytest.mark.usefixtures("one_server")
async def test_a_metadata_filter_uses_its_index_as_the_working_role(memory: Engine) -> None:
    await teach(memory, *(f"entry {n}" for n in range(400)), metadata={"extra": {"part": 1}})
    await teach(memory, "the one", metadata={"extra": {"part": 2}})
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        await raw.execute("SET LOCAL enable_seqscan = off")
        before = await raw.fetchval("SELECT pg_stat_get_xact_numscans('nodes_metadata'::regclass)")
        wanted = NodeFilter(metadata={"extra": {"part": 2}})
        few = filtered.filtered(db, wanted)
        left, found = await filtered.nearest_of(db, await asked_in(db, memory, "one"), few)
        after = await raw.fetchval("SELECT pg_stat_get_xact_numscans('nodes_metadata'::regclass)")
    assert (left, len(found), after > before) == (1, 1, True)


async def test_scores_that_a_leg_found_are_those_that_a_look_would_find(memory: Engine) -> None:
    await teach(memory, *FACTS)
    question = "who keeps the spare key?"
    async with memory.core.search(memory.space.id) as db:
        asked = await asked_in(db, memory, question)
        near = await filtered.nearest(db, asked, kinds=["memory"], exactly=True)
        words = await filtered.matching(db, asked, kinds=["memory"])
        looked = await filtered.details(db, asked, list(near), cosines={}, words={})
        told = await filtered.details(db, asked, list(near), cosines=near, words=words)
    assert words
    assert [one.id for one in told] == [one.id for one in looked]
    for one, other in zip(told, looked, strict=True):
        assert one.cosine == pytest.approx(other.cosine, abs=1e-6)
        assert one.words == pytest.approx(other.words, abs=1e-6)


async def test_both_legs_of_a_filter_find_what_the_legs_of_the_whole_space_find(memory: Engine) -> None:
    await teach(memory, *FACTS)
    async with memory.core.search(memory.space.id) as db:
        asked = await asked_in(db, memory, "who keeps the spare key?")
        near = await filtered.nearest(db, asked, kinds=["memory"], exactly=True)
        words = await filtered.matching(db, asked, kinds=["memory"])
        for few in (
            filtered.filtered(db, NodeFilter(created_to=datetime.now(UTC))),
            filtered.these(list(near)),
        ):
            left, nearest = await filtered.nearest_of(db, asked, few)
            _, matching = await filtered.matching_of(db, asked, few)
            assert left == 5
            assert nearest == pytest.approx(near, abs=1e-6)
            assert matching == pytest.approx(words, abs=1e-6)


@pytest.mark.parametrize("most", [4, 5])
async def test_a_filter_that_leaves_too_many_is_answered_as_the_whole_space_is(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    await teach(memory, *FACTS, metadata={"extra": {"part": 7}})
    monkeypatch.setattr(filtered, "EXACT_BELOW", most)
    walk_the_index(memory, monkeypatch, over=4)
    some = NodeFilter(metadata={"extra": {"part": 7}}, excluded=False)
    found = await memory.recall("who keeps the spare key?", wanted=some, weak=True)
    assert found[0].node.text == FACTS[4]
    assert len(found) == 5
    assert found.ways["search"] == ("exact: the filter leaves 5" if most == 5 else "HNSW: over 4 vectors")


async def test_D39_a_summary_that_matches_by_words_alone_is_found_where_no_leg_looks_at_summaries(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await teach(memory, *(f"the garden and the habitat {n}" for n in range(300)))
    summary = await memory.add("marsupial protection act passed lately")
    await memory.work()
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    await connection.execute("UPDATE nodes SET is_summary = true WHERE id = $1", summary.id)
    await connection.close()
    monkeypatch.setattr(filtered, "EXACT_BELOW", 50)
    walk_the_index(memory, monkeypatch, over=50)
    found = await memory.recall("the garden and the marsupial habitat", include_summaries=True)
    assert found.ways["search"] == "HNSW: over 50 vectors"
    assert summary.id in {hit.node.id for hit in found}


async def test_given_nodes_are_looked_at_however_many(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await teach(memory, *FACTS)
    monkeypatch.setattr(filtered, "EXACT_BELOW", 2)
    ids = [node.id for node in (await memory.list()).items]
    async with memory.core.search(memory.space.id) as db:
        asked = await asked_in(db, memory, "who keeps the spare key?")
        left, found = await filtered.nearest_of(db, asked, filtered.these(ids))
        few = filtered.filtered(db, NodeFilter(created_to=datetime.now(UTC)))
        assert await filtered.nearest_of(db, asked, few) == (3, {})
    assert (left, set(found)) == (5, {*ids})


async def test_a_recall_is_noted_once_however_it_was_found(memory: Engine) -> None:
    await teach(memory, *FACTS)
    first, again = [await memory.recall("who keeps the spare key?") for _ in range(2)]
    assert again.ways["search"] == "as found a moment ago"
    logged = (await memory.recalls(limit=10)).items
    assert [log.id for log in logged] == [again.id, first.id]
    for found, log in ((again, logged[0]), (first, logged[1])):
        assert [(hit.id, hit.score, Parts(**hit.parts)) for hit in log.hits] == [
            (hit.node.id, hit.score, hit.parts) for hit in found
        ]
    assert (await memory.recall("who keeps the spare key?", noted=False)).id is None
    assert len((await memory.recalls(limit=10)).items) == 2


@pytest.mark.parametrize("pool_size", [1, 2, 4])
async def test_more_questions_than_connections_are_all_answered(settings: Settings, pool_size: int) -> None:
    """A recall may take a second connection; never so that recalls wait for each other."""
    small = await fresh_space(settings.model_copy(update={"pool_size": pool_size, "cache_size": 0}))
    async with Engine(small) as memory:
        await teach(memory, *FACTS)
        found = await asyncio.wait_for(asyncio.gather(*(memory.recall(FACTS[n % 5]) for n in range(20))), HANG_SECONDS)
        assert [texts(one)[0] for one in found] == [FACTS[n % 5] for n in range(20)]
        assert len((await memory.recalls(limit=100)).items) == 20


async def test_when_one_leg_fails_the_other_has_ended_and_the_next_question_is_answered(
    memory: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await teach(memory, *FACTS)
    with monkeypatch.context() as broken:
        broken.setattr(filtered, "MATCH", filtered.MATCH.replace("SELECT nullif(", "SELECT 1 / 0 + nullif("))
        some = NodeFilter(subtypes=("note",), excluded=False)
        with pytest.raises(asyncpg.DivisionByZeroError):
            await memory.recall(FACTS[4], wanted=some)
    with monkeypatch.context() as broken:
        broken.setattr(nodes, "GET_MANY", "SELECT 1 / 0, $1::uuid, $2::uuid[]")
        with pytest.raises(asyncpg.DivisionByZeroError):
            await memory.recall(FACTS[4])
    assert not (await memory.recalls(limit=10)).items
    assert memory.core.database.is_at_leisure
    assert texts(await memory.recall(FACTS[4]))[0] == FACTS[4]


async def test_D35_a_space_that_moved_to_another_model_meanwhile_is_asked_with_that(settings: Settings) -> None:
    """What one process remembers of a space is a guess; the space itself decides."""
    here = await fresh_space(settings)
    async with Engine(here) as memory, Engine(here.model_copy(update={"embedder": "hashing:32"})) as other:
        await teach(memory, *FACTS)
        assert (await memory.recall(FACTS[0])).model == "hashing:64"
        assert (await other.recall(FACTS[0])).model == "hashing:64"
        async with memory.core.database.owner() as connection:
            await spaces.use_model(Transaction(connection, memory.space.id), "hashing:32")
        assert (await memory.recall(FACTS[1])).model == "hashing:32"
        assert (await other.recall(FACTS[1])).model == "hashing:32"
