"""Text the embedder cannot read has no vector (D43): it is found by words alone, and nothing links or merges it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.model import Mode, NewMemory
from recollect.plan import PlanStatus
from recollect.settings import Settings
from recollect.store.database import driver
from tests.case_support import ago

pytestmark = pytest.mark.anyio

THAI = (
    "ฉันจะรีเซ็ตรหัสผ่านได้อย่างไร",
    "รถไฟไปฮานอยออกเวลาเจ็ดโมง",
    "พี่สาวของฉันซื้อจักรยานสีแดง",
    "หมอแนะนำให้ฉันนอนมากขึ้น",
)
KHMER, AMHARIC, EMOJI = "បងស្រីខ្ញុំទិញកង់ក្រហម", "እህቴ ቀይ ብስክሌት ገዛች", "🚲🔴"
ENGLISH = "My sister bought a red bicycle"


@pytest.fixture
async def reading(database_url: str, memory: Engine) -> AsyncIterator[Engine]:
    """The space of `memory` with the real default embedder."""
    settings = Settings.load(database_url=database_url, embedder="minilm", pool_size=4, space=memory.space.slug)
    async with Engine(settings) as engine:
        yield engine


async def with_vector(memory: Engine) -> int:
    async with memory.core.transaction(memory.space.id) as db:
        return int(await (await driver(db)).fetchval("SELECT count(*) FROM embeddings"))


async def found(memory: Engine, question: str) -> list[str | None]:
    return [hit.node.text for hit in await memory.recall(question)]


async def remember(memory: Engine, texts: Sequence[str]) -> None:
    added = await memory.add_many([NewMemory(text=text) for text in texts])
    assert not added.refused


async def test_D43_what_the_model_cannot_read_gets_no_vector_and_its_job_ends(reading: Engine) -> None:
    await remember(reading, [*THAI, KHMER, AMHARIC, EMOJI, ENGLISH, f"{ENGLISH} 🚲"])
    jobs = await reading.jobs()
    assert (jobs.completed, jobs.unreadable, jobs.waiting, jobs.failed) == (2, 7, 0, 0)
    assert await with_vector(reading) == 2
    assert await reading.work() == 0
    mine = {node.id for node in (await reading.list()).items}
    faults = (await reading.verify()).faults  # of all spaces, and other tests leave some behind
    assert not any(mine & set(ids) for ids in faults.values())
    (report,) = [space for space in (await reading.doctor()).spaces if space.slug == reading.space.slug]
    assert (report.texts, report.unreadable) == (9, 7)


async def test_D43_it_is_found_by_its_words_and_the_answer_says_so(reading: Engine) -> None:
    await remember(reading, [*THAI, ENGLISH])
    hits = await reading.recall(THAI[1])
    assert hits[0].node.text == THAI[1]  # others share pairs of characters with it, and come after
    assert (hits[0].source, hits[0].parts.cosine) == ("words", 0.0)
    assert "cannot read this question" in hits.notes[0]
    assert hits.ways["search"] == "by words alone"
    assert await found(reading, "bicycle") == [ENGLISH]
    assert len(await reading.recall("ภาษาไทย")) == 0
    mixed = await reading.recall(f"who bought a bicycle? {THAI[2]}", weak=True)
    assert {hit.node.text for hit in mixed} >= {ENGLISH, THAI[2]}


@pytest.mark.parametrize("more", [{"include_summaries": True}, {"graph": True}, {"mode": Mode.RECALL}])
async def test_D43_words_alone_serve_summaries_the_graph_and_the_modes_too(
    reading: Engine, more: dict[str, Any]
) -> None:
    await remember(reading, THAI)
    assert THAI[1] in [hit.node.text for hit in await reading.recall(THAI[1], **more)]


async def test_D43_four_unrelated_thai_cases_are_neither_merged_nor_asked_about(reading: Engine) -> None:
    for text in THAI:
        await reading.cases.add(text, "ดูที่คู่มือ", last_accessed_at=ago(30), created_at=ago(60))
    done = await reading.cases.consolidate()
    assert (done.merged_cases, done.doubtful_cases) == (0, 0)
    summary = await reading.cases.summary()
    assert (summary.without_vector, summary.unreadable) == (4, 4)
    assert not [problem for problem in (await reading.cases.health()).problems if "meaning" in problem]
    (hit,) = await reading.cases.search(THAI[3], limit=1)
    assert hit.case.query == THAI[3]


@pytest.mark.parametrize("policy", ["link_similar", "note_similar_memories"])
async def test_D43_no_policy_links_them(reading: Engine, policy: str) -> None:
    await remember(reading, [*THAI, KHMER, AMHARIC, EMOJI])
    plan = await reading.plans.propose(policy)
    assert (len(plan.decisions), plan.status) == (0, PlanStatus.APPLIED)


async def test_D43_concepts_in_thai_are_the_same_only_by_their_words(reading: Engine) -> None:
    first = await reading.concepts.add("กาแฟ")
    again, other = await reading.concepts.add("กาแฟ"), await reading.concepts.add("จักรยาน")
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    await reading.work()
    assert len((await reading.plans.propose("merge_duplicate_concepts")).decisions) == 0
    assert (await reading.concepts.get("กาแฟ")).id == first.concept.id


async def test_D43_a_space_of_nothing_readable_can_be_asked_measured_and_moved(reading: Engine, tmp_path: Path) -> None:
    await remember(reading, THAI)
    with pytest.raises(InvalidInput, match="too few memories to measure"):
        await reading.measure_calibration()
    assert len(await reading.recall("red bicycle")) == 0
    file = tmp_path / "all.jsonl"
    await reading.export(file, with_vectors=True)
    other = await reading.in_space((await reading.add_space(f"{reading.space.slug}-b")).slug)
    await other.import_([file])
    assert (await other.jobs()).unreadable == 4
    assert (await found(other, THAI[0]))[0] == THAI[0]


async def test_D43_another_model_that_can_read_it_gives_it_a_vector(reading: Engine, database_url: str) -> None:
    await remember(reading, THAI)
    settings = Settings.load(database_url=database_url, embedder="hashing:64", pool_size=4, space=reading.space.slug)
    async with Engine(settings) as renewed:
        for _ in range(3):  # the first round finds out what lacks the new model, the next embeds it, the last switches
            await renewed.work()
        assert await with_vector(renewed) == 4
        assert (await renewed.overview()).embedding_model == "hashing:64"
    assert await reading.work() == 0  # and back again: what it could not read before, it is not asked about again
    assert (await reading.overview()).embedding_model == "minilm"


async def test_D43_D47_of_a_long_text_the_model_reads_what_it_can(reading: Engine) -> None:
    """Most of it is Thai: it has no vector as a whole, so that nothing links it, and is found by its English part."""
    note = await reading.add(
        "\n".join([*THAI * 150, "\n", f"{ENGLISH}, and rides it to the harbour every morning. " * 40])
    )
    async with reading.core.transaction(reading.space.id) as db:
        rows = await (await driver(db)).fetch("SELECT passage, starts FROM embeddings WHERE node_id = $1", note.id)
    assert rows
    assert all(row["passage"] > 0 and row["starts"] > 0 for row in rows)
    (hit,) = await reading.recall("who got a new bike?")
    assert ENGLISH in (hit.passage or "")
    assert (await reading.jobs()).unreadable == 0


@pytest.mark.parametrize(
    ("texts", "asked", "in_vain"),
    [
        (
            ("Наша кошка боится пылесоса", "Пароль от сейфа знает только Марина", "Квартплата выросла на две тысячи"),
            "кто знает пароль сейфа?",
            "какой у меня размер обуви?",
        ),
        (
            ("قطتنا تخاف من المكنسة", "موعد الطبيب يوم الثلاثاء الساعة العاشرة", "ليلى تشرب الشاي فقط"),
            "متى موعد الطبيب؟",
            "ما هو رقم جواز سفري؟",
        ),
        (
            ("うちの猫は掃除機がこわい", "歯医者の予約は金曜日の三時です", "リンはお茶しか飲みません"),
            "歯医者の予約はいつですか",
            "パスポートの番号は何ですか",
        ),
    ],
    ids=["Russian", "Arabic", "Japanese"],
)
async def test_D43_D45_of_a_script_it_can_only_spell_it_answers_what_is_there_and_is_silent_else(
    reading: Engine, texts: Sequence[str], asked: str, in_vain: str
) -> None:
    """By their letters alone, unrelated texts of one script looked alike, and any question was answered."""
    await remember(reading, texts)
    assert (await reading.recall(asked)).hits[0].node.text == texts[1]
    answer = await reading.ask(asked)
    assert [hit.node.text for hit in answer.recall] == [texts[1]]
    assert not (await reading.ask(in_vain)).recall.hits


@pytest.mark.parametrize(
    ("texts", "asked", "in_vain"),
    [
        (
            (
                "Le chat a peur de l'aspirateur et se cache dans la salle de bains.",
                "Le rendez-vous chez le dentiste est fixé à vendredi, à trois heures.",
                "Linh ne boit que du thé vert, jamais de café.",
            ),
            "Quand est le rendez-vous chez le dentiste ?",
            "Combien coûte l'abonnement à la piscine ?",
        ),
        (
            (
                "Kedimiz elektrik süpürgesinden korkup banyoda saklanıyor.",
                "Diş hekimi randevusu cuma günü saat üçte.",
                "Linh yalnızca yeşil çay içiyor.",
            ),
            "Diş hekimi randevusu ne zaman?",
            "Kırmızı bavul kaç kilo geliyor?",
        ),
        (
            (
                "Con mèo nhà tôi sợ máy hút bụi và trốn trong phòng tắm.",
                "Lịch hẹn nha sĩ là ba giờ chiều thứ sáu.",
                "Linh chỉ uống trà xanh.",
            ),
            "Lịch hẹn nha sĩ là khi nào?",
            "Đôi giày đỏ mua ở cửa hàng nào?",
        ),
    ],
    ids=["French", "Turkish", "Vietnamese"],
)
async def test_D45_of_a_language_it_has_only_pieces_of_it_answers_what_is_there_and_is_silent_else(
    reading: Engine, texts: Sequence[str], asked: str, in_vain: str
) -> None:
    """All texts of such a language are near each other for a model of English, and any question was answered."""
    await remember(reading, [*texts, ENGLISH])
    assert (await reading.recall(asked)).hits[0].node.text == texts[1]
    assert (await reading.ask(asked)).recall.hits[0].node.text == texts[1]
    assert not (await reading.ask(in_vain)).recall.hits
