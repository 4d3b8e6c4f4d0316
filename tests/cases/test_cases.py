"""The case bank in the store: adding, updating, searching, outcomes, consolidating, archiving, restoring."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import anyio
import pytest
import structlog

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import NewCase, NewMemory
from recollect.plan import DecisionStatus, PlanStatus
from recollect.ports import Notice
from recollect.store.database import driver
from tests.case_support import NOW, a_case, ago, bank, direction, judged, rows, statuses, stopped, with_vector

pytestmark = pytest.mark.anyio

ONE, OTHER = direction(1.0), direction(0.0, 1.0)


@pytest.fixture
async def cases(memory: Engine) -> Engine:
    """A memory whose clock stands still, and where somebody is told."""
    memory.core._notifiers = (Heard(),)
    return stopped(memory)


class Heard:
    """A notifier that remembers what it was told, and can be deaf."""

    name = "test"

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.is_deaf = False

    async def notify(self, notice: Notice) -> None:
        if self.is_deaf:
            raise OSError("nobody there")
        self.notices.append(notice)

    async def close(self) -> None: ...


def heard(memory: Engine) -> Heard:
    (notifier,) = memory.core._notifiers or ()
    assert isinstance(notifier, Heard)
    return notifier


async def twins(memory: Engine, *uses: int, rates: list[float | None] | None = None, **more: Any) -> list[UUID]:
    """Cases that say the same."""
    made = []
    for number, (used, rate) in enumerate(zip(uses, rates or [None] * len(uses), strict=True)):
        made.append(await a_case(memory, f"twin {'abcdefgh'[number]}", uses=used, rate=rate, **more))
        await with_vector(memory, made[-1], ONE)
    return made


async def standing(memory: Engine, case: UUID) -> tuple[int, Any]:
    found = await memory.cases.get(case)
    return found.usage_count, found.success_rate


# -- adding, updating, finding


async def test_a_case_has_the_fields_of_the_document(cases: Engine) -> None:
    case = await cases.cases.add(
        "How do I pay?",
        "By card.",
        " billing / paying ",
        usage_count=3,
        success_rate=66.5,
        last_accessed_at=ago(2),
        updated_by="ann",
        source="desk",
        source_id="7",
    )
    assert (case.query, case.response_text, case.category_path) == ("How do I pay?", "By card.", "billing/paying")
    assert (case.usage_count, case.success_rate, case.last_accessed_at) == (3, 66.5, ago(2))
    assert (case.status, case.version, case.updated_by) == ("active", 1, "ann")
    assert (case.created_at, case.updated_at) == (NOW, NOW)
    assert await cases.cases.get(str(case.case_id)[:8]) == case


async def test_many_at_once_the_good_are_stored_and_the_bad_reported(cases: Engine) -> None:
    same = uuid4()
    added = await cases.cases.add_many(
        [
            NewCase(query="a", response_text="1", id=same),
            NewCase(query=" ", response_text="2"),
            NewCase(query="c", response_text="3", id=same),
            NewCase(query="d", response_text="x" * 100_000),
        ]
    )
    assert len(added.ids) == 2
    assert [one.position for one in added.refused] == [1, 2]
    with pytest.raises(InvalidInput):
        await cases.cases.add_many(
            [NewCase(query="e", response_text="1"), NewCase(query="f", response_text="2", success_rate=101)],
            atomic=True,
        )
    assert len((await cases.cases.list()).items) == 2


async def test_an_update_is_a_new_version_and_the_old_answer_stays_in_the_history(cases: Engine) -> None:
    case = await a_case(cases, "old words", wait=True)
    changed = await cases.cases.update(
        case, query="completely new", response_text="better", category_path="a/b", updated_by="ann"
    )
    assert (changed.version, changed.query, changed.response_text) == (2, "completely new", "better")
    assert (changed.category_path, changed.updated_by, changed.updated_at) == ("a/b", "ann", NOW)
    befores: dict[str, Any] = {}
    history = await cases.cases.history(case)
    for entry in history:
        befores |= entry.before or {}
    assert befores["response_text"] == "the answer"
    assert befores["text"] == "old words"
    assert history[-1].plan_id is not None
    assert (await cases.plans.get(history[-1].plan_id)).title == "Edit “old words”"
    await cases.plans.undo(history[-1].plan_id)
    back = await cases.cases.get(case)
    assert (back.version, back.query, back.response_text) == (1, "old words", "the answer")


async def test_a_changed_query_is_embedded_anew_and_found_by_its_new_words_only(cases: Engine) -> None:
    case = await a_case(cases, "umbrella repair", wait=True)
    await a_case(cases, "something else entirely", wait=True)
    await cases.cases.update(case, query="bicycle lights")
    (first, *_) = await cases.cases.search("bicycle lights")
    assert (first.case.case_id, round(first.similarity, 2)) == (case, 1.0)
    words = await rows(cases, "term_stats")
    assert all(row["documents"] >= 0 for row in words)
    totals = (await rows(cases, "lexicon_totals"))[0]
    assert totals["documents"] == 2
    assert totals["total_length"] == sum(row["length"] for row in await rows(cases, "lexicon"))


async def test_a_worker_that_holds_the_old_text_saves_nothing(cases: Engine) -> None:
    """Claimed with the old text, changed meanwhile: the new text is embedded all the same."""
    case = await a_case(cases, "first words")
    embedder = cases.core.embedder()
    embed = embedder.embed

    async def slow(texts: Any) -> Any:
        vectors = await embed(texts)
        embedder.embed = embed  # type: ignore[method-assign]
        await cases.cases.update(case, query="second thoughts", wait=False)
        return vectors

    embedder.embed = slow  # type: ignore[method-assign]
    await cases.work()
    await cases.work()
    (hit, *_) = await cases.cases.search("second thoughts")
    assert round(hit.similarity, 2) == 1.0
    assert (await rows(cases, "lexicon_totals"))[0]["documents"] == 1


async def test_updating_nothing_or_an_outdated_version_is_refused(cases: Engine) -> None:
    case = await a_case(cases, "q")
    with pytest.raises(InvalidInput, match="nothing to change"):
        await cases.cases.update(case)
    await cases.cases.update(case, response_text="two", wait=False)
    with pytest.raises(Conflict, match="version 2, not 1"):
        await cases.cases.update(case, response_text="three", if_version=1)
    same = await cases.cases.update(case, response_text="two", wait=False)
    assert same.version == 2
    with pytest.raises(NotFound, match="There is no case"):
        await cases.cases.update(uuid4(), response_text="x")


async def test_a_memory_is_no_case(cases: Engine) -> None:
    memory = await cases.add("a memory")
    with pytest.raises(NotFound):
        await cases.cases.get(memory.id)
    assert (await cases.cases.search("a memory")).hits == ()


async def test_lists_by_status_category_and_success_rate_page_by_page(cases: Engine) -> None:
    low = await a_case(cases, "low", rate=10.0, category_path="billing")
    mid = await a_case(cases, "mid", rate=50.0, category_path="billing/refunds")
    unknown = await a_case(cases, "unknown", category_path="billing2")
    gone = await a_case(cases, "gone", rate=5.0)
    await cases.cases.archive(gone)

    async def listed(**wanted: Any) -> set[UUID]:
        return {case.case_id for case in (await cases.cases.list(**wanted)).items}

    assert await listed() == {low, mid, unknown}
    assert await listed(status="archived") == {gone}
    assert await listed(status=None) == {low, mid, unknown, gone}
    assert await listed(category="billing") == {low, mid}
    assert await listed(success_below=50) == {low}
    assert await listed(success_at_least=50) == {mid}
    assert await listed(success_below=60, success_at_least=20) == {mid}
    first = await cases.cases.list(limit=2)
    assert first.next_cursor is not None
    second = await cases.cases.list(limit=2, cursor=first.next_cursor)
    assert {case.case_id for case in (*first.items, *second.items)} == {low, mid, unknown}
    assert second.next_cursor is None
    with pytest.raises(InvalidInput, match="active or archived"):
        await cases.cases.list(status="merged")


async def test_E31_a_search_hit_raises_usage_and_last_access(cases: Engine) -> None:
    case = await a_case(cases, "reset my password", uses=4, idle=40, wait=True, category_path="account/password")
    await a_case(cases, "reset my router", wait=True, category_path="network")
    hits = await cases.cases.search("reset my password", category="account")
    assert [hit.case.case_id for hit in hits] == [case]
    assert (hits[0].case.usage_count, hits[0].case.last_accessed_at) == (5, NOW)
    found = await cases.cases.get(case)
    assert (found.usage_count, found.last_accessed_at) == (5, NOW)
    log = await cases.recall_log(hits.id or "")
    assert log.memory_ids == (case,)


async def test_a_repeated_import_adds_nothing_and_an_update_brings_what_is_new(cases: Engine, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(
        "id,question,answer,success_rate\n1,How?,So.,0.9\n2,Why?,Because.,0.2\n,When?,Now.,\n,When?,Now.,\n"
    )
    report = await cases.cases.import_([file])
    assert (report.added, report.already_there, len(report.refused)) == (3, 1, 0)
    assert "fractions" in report.lines[-1].message
    again = await cases.cases.import_([file], fractions=True)
    assert (again.added, again.already_there) == (0, 4)
    file.write_text("id,question,answer\n1,How?,Differently.\n3,,\n")
    rehearsed = await cases.cases.import_([file], update=True, dry_run=True)
    assert (rehearsed.added, rehearsed.updated, rehearsed.refused[0].line) == (0, 1, 3)
    assert str(rehearsed) == "0 would be added, 1 would be updated, 0 there already, 1 would be refused"
    await cases.cases.import_([file], update=True)
    (how,) = [case for case in (await cases.cases.list()).items if case.source_id == "1"]
    assert (how.response_text, how.version, how.success_rate) == ("Differently.", 2, 0.9)
    by_stdin = await cases.cases.import_(["-"], stdin=b'{"query": "q", "response_text": "a", "success_rate": 0.5}')
    assert by_stdin.added == 1


# -- outcomes


async def test_E31_the_rate_is_that_of_the_last_100_outcomes_once_there_are_10(cases: Engine) -> None:
    case = await a_case(cases, "q", rate=77.0)
    nine = await judged(cases, case, successes=3, failures=6)
    assert (nine.success_rate, nine.judged) == (77.0, 9)
    ten = await judged(cases, case, successes=1, failures=0)
    assert (ten.success_rate, ten.judged) == (40.0, 10)
    cases.core.now = lambda: NOW + timedelta(minutes=1)
    hundred = await judged(cases, case, successes=100, failures=0)
    assert (hundred.success_rate, hundred.judged) == (100.0, 100)
    assert len(await cases.cases.outcomes(case, limit=1000)) == 110


async def test_E35_an_outcome_is_a_use_and_an_access(cases: Engine) -> None:
    case = await a_case(cases, "q", uses=4, idle=200)
    after = await judged(cases, case, successes=20, failures=0)
    assert (after.usage_count, after.last_accessed_at) == (24, NOW)
    assert (await cases.cases.consolidate()).archived_cases == 0
    earlier = await cases.cases.record_outcome(case, True, at=ago(3))
    assert (earlier.usage_count, earlier.last_accessed_at) == (25, NOW)
    never_found = await a_case(cases, "r", idle=None)
    told_late = await cases.cases.record_outcome(never_found, False, at=ago(100))
    assert (told_late.usage_count, told_late.last_accessed_at) == (1, ago(100))


async def test_E35_an_outcome_that_names_its_search_is_not_counted_twice(cases: Engine) -> None:
    case, other = [await a_case(cases, text, wait=True) for text in ("reset my password", "reset my router")]
    hits = await cases.cases.search("reset my password", limit=1)
    assert (await cases.cases.record_outcome(case, True, search=hits.id)).usage_count == 1
    assert (await cases.cases.record_outcome(case, True)).usage_count == 2
    with pytest.raises(InvalidInput, match="did not find the case"):
        await cases.cases.record_outcome(other, True, search=str(hits.id))
    with pytest.raises(NotFound):
        await cases.cases.record_outcome(case, True, search=str(case))
    assert (await standing(cases, other))[0] == 0
    assert len(await cases.cases.outcomes(other)) == 0


async def test_E31_reflection_lists_those_below_50_percent_and_why(cases: Engine) -> None:
    bad, worse = await a_case(cases, "bad", uses=20), await a_case(cases, "worse", uses=20)
    good = await a_case(cases, "good", uses=20)
    await judged(cases, bad, successes=4, failures=6, error="timeout")
    await judged(cases, worse, successes=1, failures=2, error="timeout")
    await judged(cases, worse, successes=0, failures=7, error="outdated")
    await judged(cases, good, successes=5, failures=5)
    await a_case(cases, "nobody knows")
    found = await cases.cases.reflection()
    assert [(one.case.case_id, one.case.success_rate) for one in found.warnings] == [(worse, 10.0), (bad, 40.0)]
    assert [(one.error_type, one.times) for one in found.warnings[0].errors] == [("outdated", 7), ("timeout", 2)]
    assert [(one.error_type, one.times) for one in found.errors] == [("timeout", 8), ("outdated", 7)]
    assert (found.cases, found.rated, found.warned) == (4, 3, 2)
    assert found.mean_success_rate == pytest.approx((10 + 40 + 50) / 3)


# -- what is merged unasked


async def near(memory: Engine, *cases: tuple[str, str], uses: tuple[int, ...] = (9, 4), **more: Any) -> list[UUID]:
    """Cases with these queries and answers, their vectors as good as the same."""
    made = [
        await a_case(memory, query, uses=used, response_text=answer, **more)
        for (query, answer), used in zip(cases, uses, strict=True)
    ]
    for place, case in enumerate(made):
        await with_vector(memory, case, direction(1.0, 0.01 * place))
    return made


CSV = ("How do I convert CSV to JSON?", "recollect convert --to json")
JSON = ("How do I convert JSON to CSV?", "recollect convert --to csv")


async def test_E34_cases_with_other_answers_wait_for_a_person_with_usage_and_success_of_both(cases: Engine) -> None:
    keeper, other = await near(cases, CSV, JSON, rate=80.0)
    before = await bank(cases)
    done = await cases.cases.consolidate()
    assert (done.merged_cases, done.doubtful_cases, done.status) == (0, 1, "waiting")
    assert str(done) == "0 would be removed, 0 would be merged, 0 would be archived; 1 to review"
    (pair,) = done.doubtful
    assert (pair.keeper, pair.other) == (keeper, other)
    assert pair.similarity > 0.999
    assert pair.doubts == ("their answers differ", "they use the same words in a different order")
    assert await bank(cases) == before
    (finding,) = (await cases.plans.get(done.plan_id)).findings
    assert "9 uses, 80 % success" in finding.text
    assert "4 uses, 80 % success" in finding.text
    (asked,) = (await cases.questions.list()).items
    assert (asked.keep.id, asked.other.id) == (keeper, other)


async def test_E34_the_rest_of_a_run_is_applied_while_the_doubtful_wait(cases: Engine) -> None:
    await twins(cases, 9, 4)
    await a_case(cases, "unused", uses=1, idle=400)
    other = await a_case(cases, "twin x", uses=2, response_text="another answer")
    await with_vector(cases, other, ONE)
    done = await cases.cases.consolidate()
    assert (done.merged_cases, done.archived_cases, done.doubtful_cases, done.status) == (1, 1, 1, "applied")
    assert (await statuses(cases, other)) == ["active"]


async def test_E34_a_person_may_merge_them_all_the_same_decline_and_take_back(cases: Engine) -> None:
    keeper, other = await near(cases, CSV, JSON)
    before = await bank(cases)
    asked = await cases.cases.consolidate({"ask_about": []}, dry_run=True)
    assert (asked.merged_cases, asked.doubtful_cases) == (1, 0)
    await cases.plans.apply(asked.plan_id)
    assert (await cases.cases.get(other)).merged_into == keeper
    await cases.plans.undo(asked.plan_id)
    after = await bank(cases)
    assert (after["nodes"], after["cases"]) == (before["nodes"], before["cases"])
    again = await cases.cases.consolidate({"ask_about": []}, dry_run=True)
    await cases.plans.decline(again.plan_id, [1], never=True)
    assert (await cases.cases.consolidate()).doubtful_cases == 0


async def test_E34_an_answer_that_changed_since_the_plan_lets_the_merge_drop_out(cases: Engine) -> None:
    keeper, other = await twins(cases, 9, 4)
    plan = await cases.cases.consolidate(dry_run=True)
    await cases.cases.update(keeper, response_text="another answer", wait=False)
    outcome = await cases.plans.apply(plan.plan_id)
    assert (outcome.applied, len(outcome.stale)) == (0, 1)
    assert (await cases.cases.get(other)).merged_into is None


async def test_E34_an_unknown_doubt_is_refused(cases: Engine) -> None:
    with pytest.raises(InvalidInput, match="ask_about must be some of answer, category"):
        await cases.cases.consolidate({"ask_about": ["mood"]})


# -- what is merged counts together, by derivation


async def test_E04_usage_is_summed_and_rates_are_weighted_by_it(cases: Engine) -> None:
    keeper, one, two = await twins(cases, 60, 30, 10, rates=[90.0, 50.0, 20.0])
    done = await cases.cases.consolidate()
    assert (done.merged_cases, done.status) == (2, "applied")
    assert await standing(cases, keeper) == (100, pytest.approx((90 * 60 + 50 * 30 + 20 * 10) / 100))
    assert await standing(cases, one) == (30, 50.0)
    assert await standing(cases, two) == (10, 20.0)


async def test_E04_the_plain_option_averages_alike(cases: Engine) -> None:
    keeper, _ = await twins(cases, 90, 10, rates=[90.0, 50.0])
    done = await cases.cases.consolidate({"success_rates": "plain"})
    assert await standing(cases, keeper) == (100, 70.0)
    await cases.plans.undo(done.plan_id)
    assert await standing(cases, keeper) == (90, 90.0)


@pytest.mark.parametrize(
    ("rates", "combined"), [([None, None], None), ([None, 40.0], 40.0), ([80.0, None], 80.0), ([0.0, 50.0], 25.0)]
)
async def test_E05_an_unknown_rate_never_counts_as_zero(
    cases: Engine, rates: list[float | None], combined: float | None
) -> None:
    await twins(cases, 8, 8, rates=rates, age=20)
    await cases.plans.run("duplicate-cases")
    kept = [case for case in (await cases.cases.list()).items if case.status == "active"]
    assert [(case.usage_count, case.success_rate) for case in kept] == [(16, combined)]


async def test_E07_C29_the_ends_of_a_chain_are_not_joined_by_the_next_run_either(cases: Engine) -> None:
    """Both ends are like the middle one, which has taken one of them in; the other still does not fit that one."""
    angle = math.radians(15)
    for number, at in enumerate((0, -1, 1)):
        case = await a_case(cases, f"case {'abc'[number]}", uses=90 - number)
        await with_vector(cases, case, direction(math.cos(at * angle), math.sin(at * angle)))
    assert (await cases.cases.consolidate()).merged_cases == 1
    again = await cases.cases.consolidate()
    assert again.merged_cases == 0
    (finding,) = (await cases.plans.get(again.plan_id)).findings
    assert finding.rule == "chain"


async def test_E06_E24_E25_what_goes_is_archived_with_its_data(cases: Engine) -> None:
    keeper, other = await twins(cases, 9, 4, rates=[None, 12.5], category_path="a/b")
    await cases.cases.consolidate()
    (copy,) = await rows(cases, "case_archive")
    assert copy["case_id"] == str(other)
    assert (copy["query"], copy["response_text"], copy["category_path"]) == ("twin b", "the answer", "a/b")
    assert (copy["usage_count"], copy["success_rate"], copy["archived_reason"]) == (4, 12.5, "duplicate")
    assert copy["query_vector"].startswith("[1,0,0")
    assert copy["archived_at"].startswith("2026-11-15T08:00:00")
    archived = await cases.cases.get(other)
    assert (archived.status, archived.merged_into, archived.archived_reason) == ("archived", keeper, "duplicate")
    async with cases.core.transaction(cases.space.id) as db:
        raw = await driver(db)
        indexes = await raw.fetch("SELECT indexdef FROM pg_indexes WHERE tablename = 'case_archive'")
    described = " ".join(row["indexdef"] for row in indexes)
    assert "case_id" in described
    assert "archived_at" in described


async def test_E25_the_archive_copies_the_moment_of_archiving_not_of_the_plan(cases: Engine) -> None:
    case = await a_case(cases, "poor", uses=20, rate=1.0)
    dry = await cases.cases.consolidate(dry_run=True)
    await cases.cases.update(case, protected=True)
    await cases.cases.update(case, protected=False)
    await judged(cases, case, successes=1, failures=9, at=ago(20))
    await cases.plans.apply(dry.plan_id)
    (copy,) = await rows(cases, "case_archive")
    assert copy["success_rate"] == 10.0


async def test_E25_archiving_by_hand_leaves_a_copy_too_by_either_way(cases: Engine) -> None:
    one, two = await a_case(cases, "one"), await a_case(cases, "two")
    await cases.cases.archive(one, reason="wrong")
    await cases.forget(two)
    assert [row["archived_reason"] for row in await rows(cases, "case_archive")] == ["by_hand", "by_hand"]
    assert await statuses(cases, one, two) == ["archived", "archived"]
    await cases.cases.restore(one)
    await cases.cases.restore(two)
    assert await rows(cases, "case_archive") == []


# -- the run


async def everything(cases: Engine) -> dict[str, UUID]:
    """One case for each thing that can happen, and one for each that must not."""
    made = {
        "poor": await a_case(cases, "poor", uses=11, rate=29.9),
        "fine": await a_case(cases, "fine", uses=11, rate=30.0),
        "keeper": await a_case(cases, "same", uses=7),
        "twin": await a_case(cases, "same!", uses=6),
        "unused": await a_case(cases, "unused", uses=100, idle=90.01),
        "popular": await a_case(cases, "popular", uses=101, idle=365),
        "recent": await a_case(cases, "recent", uses=50, rate=0.0, idle=7.0),
        "great": await a_case(cases, "great", uses=501, rate=0.0, idle=365),
    }
    for number, (name, case) in enumerate(made.items()):
        await with_vector(cases, case, ONE if name in ("keeper", "twin") else direction(*([0.0] * (number + 2)), 1.0))
    return made


async def test_E12_E14_E26_the_whole_run(cases: Engine) -> None:
    made = await everything(cases)
    done = await cases.cases.consolidate(by="ann")
    assert (done.removed_cases, done.merged_cases, done.archived_cases) == (1, 1, 1)
    assert (done.dry_run, done.status) == (False, "applied")
    assert done.details.removed == (made["poor"],)
    assert done.details.archived == (made["unused"],)
    (pair,) = done.details.merged
    assert (pair.keeper, pair.removed, pair.similarity) == (made["keeper"], made["twin"], 1.0)
    assert await statuses(cases, *made.values()) == [
        "archived" if name in ("poor", "twin", "unused") else "active" for name in made
    ]
    (run,) = await cases.plans.runs(done.plan_id)
    assert (run.status, run.report["applied"]) == ("done", 3)
    for name, verb in {"poor": "archive", "twin": "merge", "unused": "archive"}.items():
        entry = (await cases.cases.history(made[name]))[-1]
        assert (entry.verb, entry.policy, entry.plan_id) == (verb, "consolidate_cases", done.plan_id)


async def test_E19_E20_a_dry_run_changes_nothing_lists_all_and_is_what_the_run_does(cases: Engine) -> None:
    await everything(cases)
    before = await bank(cases)
    dry = await cases.cases.consolidate(dry_run=True)
    assert (dry.dry_run, dry.status) == (True, "waiting")
    assert await bank(cases) == before
    ran = await cases.cases.consolidate()
    assert ran.details == dry.details
    assert (ran.removed_cases, ran.merged_cases, ran.archived_cases) == (
        dry.removed_cases,
        dry.merged_cases,
        dry.archived_cases,
    )


async def test_E17_the_progress_of_a_run_can_be_watched(cases: Engine) -> None:
    for number in range(5):
        await a_case(cases, f"unused {number}", idle=100)
    seen: list[tuple[int, int]] = []
    await cases.cases.consolidate({"batch": 2}, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 5), (2, 5), (4, 5), (5, 5)]


async def test_E22_in_production_the_plan_waits_is_approved_in_part_and_applied(cases: Engine) -> None:
    made = await everything(cases)
    cases.core.settings = cases.core.settings.model_copy(update={"production": True})
    done = await cases.cases.consolidate()
    assert (done.status, done.removed_cases) == ("waiting", 1)
    assert "waits for approval" in done.notes[0]
    assert set(await statuses(cases, *made.values())) == {"active"}
    assert [run.plan_id for run in (await cases.cases.summary()).waiting] == [done.plan_id]
    await cases.plans.approve(done.plan_id)
    outcome = await cases.plans.apply(done.plan_id, decline=[2])
    assert (outcome.applied, outcome.declined) == (2, 1)
    assert await statuses(cases, made["poor"], made["twin"]) == ["archived", "active"]
    again = await cases.cases.consolidate(dry_run=True)
    assert again.merged_cases == 0


async def test_E23_a_refused_row_leaves_no_trace_of_its_group(cases: Engine) -> None:
    """The archive cannot take its copy: then the case is not archived either."""
    case = await a_case(cases, "poor", uses=20, rate=1.0)
    dry = await cases.cases.consolidate(dry_run=True)
    async with cases.core.transaction(cases.space.id) as db:
        raw = await driver(db)
        await raw.execute(
            'UPDATE changes SET after = after || \'{"archived_reason": "no reason"}\' WHERE before IS NULL'
        )
    outcome = await cases.plans.apply(dry.plan_id)
    assert (outcome.status, outcome.applied) == (PlanStatus.FAILED, 0)
    assert await statuses(cases, case) == ["active"]
    assert await rows(cases, "case_archive") == []


@pytest.mark.parametrize("what", ["used", "protected", "better", "changed"])
async def test_P04_what_changed_since_the_plan_is_left_alone(cases: Engine, what: str) -> None:
    """E09-E11 are premises: they are looked at again when the plan is applied."""
    poor = await a_case(cases, "poor", uses=20, rate=1.0)
    keeper, twin = await twins(cases, 9, 4)
    other = await a_case(cases, "also poor", uses=20, rate=2.0)
    dry = await cases.cases.consolidate(dry_run=True)
    match what:
        case "used":
            async with cases.core.transaction(cases.space.id) as db:
                raw = await driver(db)
                now = NOW - timedelta(days=7)
                await raw.execute("UPDATE activity SET last_used_at = $1 WHERE node_id = ANY($2)", now, [poor, twin])
        case "protected":
            await cases.cases.update(poor, protected=True)
            await cases.cases.update(twin, protected=True)
        case "better":
            await judged(cases, poor, successes=3, failures=7)
            await cases.cases.update(keeper, response_text="another answer")
        case "changed":
            await cases.cases.archive(poor)
            await cases.cases.update(twin, query="something else", wait=False)
    outcome = await cases.plans.apply(dry.plan_id)
    assert outcome.applied == 1
    assert len(outcome.stale) == 2
    assert await statuses(cases, twin, other) == ["active", "archived"]


async def test_P04_a_case_used_more_than_500_times_since_stays(cases: Engine) -> None:
    case = await a_case(cases, "poor", uses=500, rate=1.0)
    dry = await cases.cases.consolidate(dry_run=True)
    async with cases.core.transaction(cases.space.id) as db:
        raw = await driver(db)
        await raw.execute("UPDATE activity SET uses = 501 WHERE node_id = $1", case)
    outcome = await cases.plans.apply(dry.plan_id)
    assert outcome.stale == ("1: it was used too often since",)


# -- notice


async def test_E02_somebody_is_told_before_cases_are_removed(cases: Engine) -> None:
    await a_case(cases, "poor", uses=20, rate=1.0)
    done = await cases.cases.consolidate()
    assert done.status == "applied"
    (notice,) = heard(cases).notices
    assert (notice.kind, notice.facts["plan_id"]) == ("before", str(done.plan_id))
    assert "1 removed" in notice.text


async def test_E02_without_anybody_to_tell_removals_wait_and_the_rest_does_not(cases: Engine) -> None:
    cases.core._notifiers = ()
    poor = await a_case(cases, "poor", uses=20, rate=1.0)
    done = await cases.cases.consolidate()
    assert done.status == "waiting"
    assert "RECOLLECT_NOTIFY" in done.notes[0]
    assert await statuses(cases, poor) == ["active"]
    await cases.plans.apply(done.plan_id)
    assert await statuses(cases, poor) == ["archived"]
    await a_case(cases, "unused", idle=100)
    assert (await cases.cases.consolidate()).status == "applied"


async def test_E02_when_nobody_could_be_reached_it_waits(cases: Engine) -> None:
    heard(cases).is_deaf = True
    poor = await a_case(cases, "poor", uses=20, rate=1.0)
    done = await cases.cases.consolidate()
    assert (done.status, await statuses(cases, poor)) == ("waiting", ["active"])
    assert "reached" in (await cases.plans.get(done.plan_id)).summary["waits"]


async def test_P10_a_run_that_touches_much_of_the_bank_waits(cases: Engine) -> None:
    added = [NewCase(query=f"q {n}", response_text="a", created_at=ago(200 if n < 9 else 20)) for n in range(50)]
    await cases.cases.add_many(added, wait=False)
    done = await cases.cases.consolidate()
    assert (done.status, done.archived_cases) == ("waiting", 9)
    assert "18%" in done.notes[0]


# -- looking at what rests, and bringing it back


async def test_E15_asking_for_an_archived_case_warns_and_search_does_not_find_it(cases: Engine) -> None:
    case = await a_case(cases, "a very special question", wait=True)
    await cases.cases.archive(case)
    with structlog.testing.capture_logs() as logs:
        found = await cases.cases.get(case)
    assert found.status == "archived"
    assert [(one["log_level"], one["case"]) for one in logs] == [("warning", str(case))]
    assert (await cases.cases.search("a very special question")).hits == ()


async def test_E16_restoring_makes_it_active_and_searchable(cases: Engine) -> None:
    case = await a_case(cases, "poor question", uses=20, rate=1.0, wait=True)
    await cases.cases.consolidate()
    stopped(cases, NOW + timedelta(hours=1))
    restored = await cases.cases.restore(case)
    assert (restored.status, restored.usage_count) == ("active", 20)
    assert [hit.case.case_id for hit in await cases.cases.search("poor question")] == [case]
    assert (await cases.cases.history(case))[-1].verb == "undo"


async def test_E09_what_was_restored_is_not_retired_again_by_the_next_run(cases: Engine) -> None:
    poor = await a_case(cases, "poor", uses=20, rate=1.0)
    unused = await a_case(cases, "unused", idle=100)
    await cases.cases.consolidate()
    for case in (poor, unused):
        restored = await cases.cases.restore(case)
        assert restored.last_accessed_at == NOW
    done = await cases.cases.consolidate()
    assert (done.removed_cases, done.archived_cases) == (0, 0)


async def test_E16_what_is_unknown_or_not_archived_is_not_found(cases: Engine) -> None:
    case = await a_case(cases, "active")
    memory = await cases.add("no case")
    for reference in (case, uuid4(), "abcd1234", "no id at all", memory.id):
        with pytest.raises(NotFound, match="Archived case not found"):
            await cases.cases.restore(reference)


async def test_E16_restoring_a_merged_case_is_an_un_merge_with_exact_counts(cases: Engine) -> None:
    keeper, one, two = await twins(cases, 60, 30, 10, rates=[90.0, 50.0, 20.0])
    await cases.cases.consolidate()
    # The keeper is used again, and judged.
    await cases.work()
    await cases.cases.search("twin a")
    await judged(cases, keeper, successes=10, failures=0)
    assert await standing(cases, keeper) == (111, pytest.approx((100 * 71 + 50 * 30 + 20 * 10) / 111))
    await cases.cases.restore(one)
    assert await standing(cases, one) == (30, 50.0)
    assert await standing(cases, keeper) == (81, pytest.approx((100 * 71 + 20 * 10) / 81))
    await cases.cases.restore(two)
    assert await standing(cases, keeper) == (71, 100.0)
    assert await rows(cases, "case_archive") == []


async def test_P11_a_merge_that_was_taken_back_is_not_offered_again_until_one_of_them_changes(cases: Engine) -> None:
    _, one = await twins(cases, 9, 4)
    await cases.cases.consolidate()
    await cases.cases.restore(one)
    stopped(cases, NOW + timedelta(days=8))
    assert (await cases.cases.consolidate()).merged_cases == 0
    await cases.cases.update(one, response_text="The answer.")
    assert (await cases.cases.consolidate()).merged_cases == 1


async def test_E16_an_un_merge_works_after_the_keeper_was_archived(cases: Engine) -> None:
    keeper, one = await twins(cases, 9, 4)
    await cases.cases.consolidate()
    await cases.cases.archive(keeper)
    restored = await cases.cases.restore(one)
    assert (restored.status, restored.usage_count) == ("active", 4)
    assert await statuses(cases, keeper) == ["archived"]
    assert await standing(cases, keeper) == (9, None)


async def test_E16_an_un_merge_works_when_the_same_run_archived_the_keeper(cases: Engine) -> None:
    keeper, one = await twins(cases, 9, 4, idle=100)
    done = await cases.cases.consolidate()
    assert (done.merged_cases, done.archived_cases) == (1, 1)
    await cases.cases.restore(one)
    assert await statuses(cases, keeper, one) == ["archived", "active"]


async def test_E16_a_keeper_that_was_merged_on_is_named(cases: Engine) -> None:
    keeper, one = await twins(cases, 9, 4)
    await cases.cases.consolidate()
    best = await a_case(cases, "best", uses=90)
    await with_vector(cases, best, ONE)
    later = await cases.cases.consolidate()
    assert (await cases.cases.get(keeper)).merged_into == best
    assert await standing(cases, best) == (103, None)
    with pytest.raises(Conflict, match=f"merged into {best} since by the plan {later.plan_id}: restore {keeper} first"):
        await cases.cases.restore(one)
    await cases.cases.restore(keeper)
    await cases.cases.restore(one)
    assert [(await standing(cases, case))[0] for case in (best, keeper, one)] == [90, 9, 4]


async def test_P08_a_case_that_came_archived_without_a_plan_can_be_restored(cases: Engine) -> None:
    case = await a_case(cases, "q")
    async with cases.core.transaction(cases.space.id) as db:
        raw = await driver(db)
        await raw.execute("UPDATE nodes SET status = 'archived' WHERE id = $1", case)
    assert (await cases.cases.restore(case)).status == "active"
    assert (await cases.plans.list())[0][0].title == "Restore “q”"


async def test_C11_the_links_of_a_merged_case_go_along_and_come_back(cases: Engine) -> None:
    keeper, one = await twins(cases, 9, 4)
    (note,) = (await cases.add_many([NewMemory(text="a note")], wait=False)).ids
    link = await cases.graph.link(note, one, "supports")
    before = await bank(cases)
    done = await cases.cases.consolidate()
    assert (await cases.graph.edge(link.id)).target == keeper
    await cases.plans.undo(done.plan_id)
    assert await bank(cases) == before


async def test_P04_a_link_made_since_lets_the_merge_drop_out_alone(cases: Engine) -> None:
    _, one = await twins(cases, 9, 4)
    unused = await a_case(cases, "unused", idle=100)
    dry = await cases.cases.consolidate(dry_run=True)
    (note,) = (await cases.add_many([NewMemory(text="a note")], wait=False)).ids
    await cases.graph.link(note, one)
    outcome = await cases.plans.apply(dry.plan_id)
    assert outcome.stale == ("1: its links have changed since",)
    assert await statuses(cases, one, unused) == ["active", "archived"]


async def test_P07_run_and_undo_is_identity_and_undo_can_be_undone(cases: Engine) -> None:
    await everything(cases)
    before = await bank(cases)
    done = await cases.cases.consolidate()
    after = await bank(cases)
    undone = await cases.plans.undo(done.plan_id)
    assert await bank(cases) == before
    await cases.plans.undo(undone.plan_id)
    assert await bank(cases) == after


# -- while it runs


async def test_E18_a_search_during_a_run_returns_what_it_returned_before(cases: Engine) -> None:
    """Never an error, never a half-merged pair: of twins, both before and the keeper alone after."""
    texts = [f"unused thing number {number}" for number in range(60)]
    for text in texts:
        await a_case(cases, text, idle=100)
    keepers = [await a_case(cases, f"kept question {number}", uses=200) for number in range(5)]
    await cases.work()
    question = "kept question 3"
    before = {hit.case.case_id for hit in await cases.cases.search(question, limit=5)}
    assert keepers[3] in before
    dry = await cases.cases.consolidate({"batch": 1, "similarity_threshold": 0.999}, dry_run=True)
    found: list[set[UUID]] = []
    broken: list[Any] = []

    async def keep_searching(running: list[bool]) -> None:
        while running:
            hits = await cases.cases.search(question, limit=5)
            found.append({hit.case.case_id for hit in hits})
            broken.extend(hit for hit in hits if hit.case.status != "active")

    running = [True]
    async with anyio.create_task_group() as group:
        group.start_soon(keep_searching, running)
        outcome = await cases.plans.apply(dry.plan_id)
        running.clear()
    assert outcome.applied == 60
    assert found
    assert broken == []
    assert all(keepers[3] in hits for hits in found)


async def test_P13_decisions_of_a_run_have_their_fate(cases: Engine) -> None:
    await everything(cases)
    done = await cases.cases.consolidate()
    plan = await cases.plans.get(done.plan_id)
    assert {one.status for one in plan.decisions} == {DecisionStatus.APPLIED}


# -- summary and health


async def test_the_bank_at_a_glance_and_whether_it_needs_somebody(cases: Engine) -> None:
    await everything(cases)
    done = await cases.cases.consolidate()
    bad = await a_case(cases, "bad", uses=20)
    await judged(cases, bad, successes=4, failures=6)
    found = await cases.cases.summary()
    assert (found.active, found.archived, found.merged) == (6, 2, 1)
    assert found.archived_by_reason == {"low_performance": 1, "duplicate": 1, "inactive": 1}
    assert [run.plan_id for run in found.last_runs] == [done.plan_id]
    assert found.waiting == ()
    assert found.without_vector == 1
    health = await cases.cases.health()
    assert health.status == "attention"
    assert [sentence.split()[0] for sentence in health.problems] == ["4", "1"]
    cases.core._notifiers = ()
    assert "RECOLLECT_NOTIFY" in (await cases.cases.health()).problems[-1]


async def test_an_empty_bank_is_well(cases: Engine) -> None:
    assert (await cases.cases.health()).status == "ok"
    done = await cases.cases.consolidate()
    assert (done.status, done.removed_cases, done.notes) == ("applied", 0, ("There is nothing to do.",))
    assert (await cases.cases.reflection()).mean_success_rate is None
