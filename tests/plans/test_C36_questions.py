"""C36: open questions, whether two are one, are kept and numbered until they are answered or their sides change."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.memories.sql import nodes
from recollect.model import Node, PairQuestion
from recollect.plans.questions import GivenAnswer, OpenQuestion, Says
from recollect.plans.sql import questions as stored
from tests.case_support import NOW, a_case, direction, stopped, with_vector

TEXT = "an account of a thing that several of these names are given to"


@pytest.fixture
async def asked(memory: Engine) -> Engine:
    """Three concepts that may be one, in a chain of names; and two cases with different answers."""
    stopped(memory)
    for ending in "csk":
        await memory.concepts.add(
            f"The Society of Natural Philosophy Ar{ending}", text=TEXT, metadata={ending: "known"}
        )
    for number, answer in enumerate(("in the settings", "ask the office")):
        case = await a_case(memory, "How do I reset it" + "?" * number, uses=5 - number, response_text=answer)
        await with_vector(memory, case, direction(1.0, 0.01 * number))
    return memory


async def questions(memory: Engine, **more: object) -> Sequence[OpenQuestion]:
    return (await memory.questions.list(**more)).items  # type: ignore[arg-type]


async def node(memory: Engine, id_: UUID) -> Node:
    async with memory.core.transaction(memory.space.id) as db:
        return await nodes.get(db, id_)


@pytest.mark.anyio
async def test_C36_questions_are_numbered_and_keep_their_numbers(asked: Engine) -> None:
    first = await asked.questions.look()
    assert first.kinds == {"concept": 2, "case": 1}
    assert first.total == 3
    assert sorted(one.number for one in first.items) == [1, 2, 3]
    assert [one.probability for one in first.items] == sorted((one.probability for one in first.items), reverse=True)
    again = await asked.questions.look()
    assert [(one.number, one.keep.id) for one in again.items] == [(one.number, one.keep.id) for one in first.items]
    await asked.concepts.add("The Society of Natural Philosophy Art", text=TEXT, metadata={"t": "known"})
    more = await asked.questions.look()
    assert {one.number for one in first.items} < {one.number for one in more.items}


@pytest.mark.anyio
async def test_C36_a_plan_keeps_its_questions(asked: Engine) -> None:
    """No look is needed: whoever proposes, by hand or by schedule, asks."""
    await asked.plans.propose("cases")
    (one,) = await questions(asked)
    assert one.kind == "case"
    assert (one.keep.usage_count, one.keep.text) == (5, "in the settings")
    assert one.factors["doubts"] == ["their answers differ"]


@pytest.mark.anyio
async def test_C36_the_sides_are_shown_with_their_texts(asked: Engine) -> None:
    await asked.questions.look()
    one, *_ = await questions(asked, kind="concept")
    assert one.keep.text == one.other.text == TEXT
    assert one.keep.metadata == {one.keep.name[-1]: "known"}
    assert {step["name"] for step in one.factors["steps"]} == {"cosine", "name", "metadata"}
    assert one.factors["doubts"] == ["the names are not made of the same words"]
    assert one.in_words.endswith("Against it: the names are not made of the same words.")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["concept", "case"])
async def test_C36_a_merge_is_a_plan_and_can_be_taken_back(asked: Engine, kind: str) -> None:
    await asked.questions.look()
    one, *_ = await questions(asked, kind=kind)
    done = await asked.questions.answer({one.number: "merge"})
    assert done.answered == (one.number,)
    assert (await node(asked, one.other.id)).status == "merged"
    assert (await node(asked, one.other.id)).merged_into == one.keep.id
    (plan,) = done.plans
    assert (await asked.plans.get(plan)).title == f"Merge “{one.other.name}” into “{one.keep.name}”"
    assert one.number not in [other.number for other in await questions(asked)]
    back = await asked.questions.take_back([one.number])
    assert back.answered == (one.number,)
    assert (await node(asked, one.other.id)).status == "active"
    assert one in await questions(asked, kind=kind)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["concept", "case"])
async def test_C36_what_is_separate_rests_and_what_is_never_does_not_come_back(asked: Engine, kind: str) -> None:
    await asked.questions.look()
    one, *_ = await questions(asked, kind=kind)
    await asked.questions.answer({one.number: "separate"})
    await asked.questions.look()
    assert one.number not in [other.number for other in await questions(asked)]
    stopped(asked, NOW + timedelta(days=31))
    await asked.questions.look()
    assert one.number in [other.number for other in await questions(asked)]
    await asked.questions.answer({one.number: Says.NEVER})
    stopped(asked, NOW + timedelta(days=4000))
    await asked.questions.look()
    assert one.number not in [other.number for other in await questions(asked)]
    await asked.questions.take_back([one.number])
    assert one.number in [other.number for other in await questions(asked)]


@pytest.mark.anyio
async def test_C36_a_question_falls_away_with_what_it_was_about(asked: Engine) -> None:
    await asked.questions.look()
    (case,) = await questions(asked, kind="case")
    await asked.cases.update(case.other.id, response_text="a new answer", wait=False)
    assert await questions(asked, kind="case") == []
    refused = await asked.questions.answer({case.number: "merge", 99: "merge"})
    assert [one.message for one in refused.refused] == [
        f"Question {case.number} is open no longer: one of its sides has changed.",
        "There is no question 99: `recollect review` shows the open ones.",
    ]
    assert (await node(asked, case.other.id)).status == "active"
    one, *_ = await questions(asked, kind="concept")
    await asked.concepts.protect(one.keep.id)
    assert one.number not in [other.number for other in await questions(asked)]


@pytest.mark.anyio
async def test_C36_what_another_door_says_answers_too(asked: Engine) -> None:
    await asked.questions.look()
    one, two = await questions(asked, kind="concept")
    await asked.concepts.set_apart(one.keep.id, one.other.id)
    assert await questions(asked, kind="concept") == [two] or len(await questions(asked, kind="concept")) == 1
    await asked.concepts.keep_apart(two.keep.name, two.other.name)
    assert await questions(asked, kind="concept") == []


@pytest.mark.anyio
async def test_C36_a_group_is_answered_at_once_and_what_changes_with_it_stays_asked(asked: Engine) -> None:
    """Merging one pair changes what stays (its metadata), and moves the other question to it."""
    await asked.questions.look()
    one, two = await questions(asked, kind="concept")
    assert one.group == two.group
    assert one.group_size == 3
    await asked.questions.answer({one.number: "merge"})
    (left,) = await questions(asked, kind="concept")
    assert left.number == two.number
    assert {left.keep.id, left.other.id} & {one.keep.id}
    done = await asked.questions.answer([GivenAnswer(group=left.group, answer=Says.MERGE)])
    assert done.answered == (two.number,)
    assert await questions(asked, kind="concept") == []
    (kept,) = (await asked.concepts.list())[0]
    assert kept.made_of == 3
    await asked.questions.take_back([one.number, two.number])
    assert [found.number for found in await questions(asked, kind="concept")] == [one.number, two.number]


@pytest.mark.anyio
async def test_C36_a_batch_keeps_its_good_answers_and_the_other_side_may_stay(asked: Engine) -> None:
    await asked.questions.look()
    one, two = await questions(asked, kind="concept")
    (case,) = await questions(asked, kind="case")
    answers = [
        GivenAnswer(number=one.number, answer=Says.SEPARATE),
        GivenAnswer(number=two.number, answer=Says.LATER),
        GivenAnswer(number=case.number, answer=Says.MERGE, keep=case.other.id),
        GivenAnswer(number=7, answer=Says.MERGE),
    ]
    done = await asked.questions.answer(answers, by="linh")
    assert sorted(done.answered) == sorted((one.number, two.number, case.number))
    assert [refused.number for refused in done.refused] == [7]
    assert done.left == 1
    assert (await node(asked, case.keep.id)).merged_into == case.other.id
    (left,) = await questions(asked)
    assert left.postponed_at == NOW


@pytest.mark.anyio
async def test_C36_what_is_put_off_comes_last_and_pages_follow_each_other(asked: Engine) -> None:
    await asked.questions.look()
    first, *rest = await questions(asked)
    await asked.questions.answer({first.number: "later"})
    assert [one.number for one in await questions(asked)] == [*(one.number for one in rest), first.number]
    page = await asked.questions.list(limit=2)
    assert page.next_cursor is not None
    behind = await asked.questions.list(limit=2, cursor=page.next_cursor)
    assert [one.number for one in (*page.items, *behind.items)] == [*(one.number for one in rest), first.number]
    assert behind.next_cursor is None
    with pytest.raises(InvalidInput, match="This cursor is not one"):
        await asked.questions.list(cursor="nonsense")
    with pytest.raises(InvalidInput, match="An answer is one of merge, separate, never, later, not 'maybe'"):
        await asked.questions.answer({first.number: "maybe"})


@pytest.mark.anyio
async def test_C36_the_same_pair_under_another_name_is_one_question(memory: Engine) -> None:
    """B and C were each asked about with A and with each other: after B went into A, one question is left."""
    ids: list[UUID] = []
    for name in ("alpha beta", "gamma delta", "epsilon zeta"):
        ids.append((await memory.concepts.add(name, text=f"the {name} of it")).concept.id)
    a, b, c = ids
    pairs = [(a, b, 0.9), (b, c, 0.8), (a, c, 0.7)]
    async with memory.core.transaction(memory.space.id) as db:
        wanted = [
            PairQuestion(
                policy="merge_duplicate_concepts", keep=x, other=y, versions=(1, 1), probability=p, reason="alike"
            )
            for x, y, p in pairs
        ]
        await stored.keep(db, wanted, NOW)
    await memory.questions.answer({1: "merge"})
    (left,) = await questions(memory)
    assert {left.keep.id, left.other.id} == {a, c}
    await memory.questions.answer({left.number: "never"})
    assert await questions(memory) == []
