"""Open questions: are these two one? Listed with both sides, answered one by one, in batches or as whole groups."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query
from pydantic import Field

from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating, Reading
from recollect.doors.api.memories import Cursor
from recollect.doors.api.schemas import WITH_BODY, RequestBody, examples, problems
from recollect.plans.questions import LONGEST_PAGE, MOST_ANSWERS, AnswersTaken, GivenAnswer, QuestionPage, Says

router = access.router("questions", problems(409))

LAST_NUMBER = 2**63 - 1
Number = Annotated[int, Field(ge=1, le=LAST_NUMBER)]
OfKind = Annotated[Literal["concept", "case"] | None, Query(description="Only of this kind.")]
AtMost = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="At most so many.")]


class AnswerIn(RequestBody):
    """An answer to one question, or to all open questions of a group."""

    answer: Annotated[Says, Field(description="merge, separate (for a while), never, or later: then it comes last.")]
    number: Annotated[Number | None, Field(description="The number of a question.")] = None
    group: Annotated[Number | None, Field(description="Or that of a group: all of it is answered.")] = None
    keep: Annotated[UUID | None, Field(description="Which side stays, where it is not the one proposed.")] = None


class AnswersIn(RequestBody):
    """Answers: the good ones are taken, the others refused, each with the reason."""

    model_config = examples({"answers": [{"number": 12, "answer": "merge"}, {"group": 17, "answer": "never"}]})

    answers: Annotated[list[AnswerIn], Field(min_length=1, max_length=MOST_ANSWERS)]


class NumbersIn(RequestBody):
    """Questions, by their numbers."""

    model_config = examples({"numbers": [12]})

    numbers: Annotated[list[Number], Field(min_length=1, max_length=MOST_ANSWERS)]


@router.get("/questions", summary="Open questions, the likeliest first")
async def list_questions(
    engine: Reading, kind: OfKind = None, limit: AtMost = 50, cursor: Cursor = None
) -> QuestionPage:
    """Whether two concepts, or two cases, are one: both sides with their texts, what speaks for it and against it.

    Questions whose sides hang together are a group and follow each other. The counts are of all open questions.
    """
    return await engine.questions.list(kind=kind, limit=limit, cursor=cursor)


@router.post("/questions/look", summary="Look for questions now")
async def look_for_questions(engine: Consolidating) -> QuestionPage:
    """Scheduled tidying and every proposal do the same; a pair that is asked about already keeps its number."""
    return await engine.questions.look()


@router.post("/questions/answers", summary="Answer questions", responses=WITH_BODY)
async def answer_questions(given: AnswersIn, engine: Consolidating, caller: Asking) -> AnswersTaken:
    """A merge is made at once, as a plan that can be undone; `separate` rests until a side changes or for a while,
    `never` for good."""
    answers: Sequence[GivenAnswer] = [GivenAnswer(**answer.model_dump()) for answer in given.answers]
    return await engine.questions.answer(answers, by=caller.name)


@router.post("/questions/take-back", summary="Take answers back", responses=WITH_BODY)
async def take_back_answers(given: NumbersIn, engine: Consolidating, caller: Asking) -> AnswersTaken:
    """What was merged is two again, what was kept apart may be asked about; the questions are open again."""
    return await engine.questions.take_back(given.numbers, by=caller.name)
