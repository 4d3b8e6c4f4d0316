"""Open questions: review, which lists and answers them. What is risky waits until a person approves it."""

from typing import Annotated

from pydantic import BaseModel

from recollect.doors.mcp import telling
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.telling import short
from recollect.doors.mcp.tools import CHANGES_ONCE, Packed, Told, tool
from recollect.doors.mcp.visits import Visit
from recollect.model import QuestionSide, Scope
from recollect.plans.questions import GivenAnswer, OpenQuestion, says
from recollect.wording import counted

TOKENS = 1500
SHOWN = 20


class Reviewed(BaseModel):
    answered: list[int]
    problems: list[str]
    questions: list[str]


@tool(Scope.CONSOLIDATE, hints=CHANGES_ONCE)
async def review(visit: Visit, *, answers: Annotated[dict[str, str], Packed]) -> Told[Reviewed]:
    """Say which concepts or cases are the same: {"12": "merge"}, or separate, never, later. {} lists the questions."""
    given = [GivenAnswer(number=_number(number), answer=says(answer)) for number, answer in answers.items()]
    done = await visit.memory.questions.answer(given, by=visit.caller.name, most=visit.caller.most_risk)
    page = await visit.memory.questions.list(limit=SHOWN)
    lines = telling.fitting_lines([telling.clipped(_line(question), 200) for question in page.items], TOKENS)
    problems = [f"{refusal.number}: {in_tools(refusal.message)}" for refusal in done.refused]
    head = f"{counted(done.left, 'open question')}." if done.left else "There are no open questions."
    if answers:
        head = f"{len(done.answered):,} answered, {len(problems):,} not. {head}"
    head += "".join(f" undo_plan with id {short(id_)} takes the merges back." for id_ in done.plans)
    data = Reviewed(
        answered=list(done.answered),
        problems=problems[: telling.SHARES * SHOWN],
        questions=lines,
    )
    return Told(text="\n".join([head, *problems[:SHOWN], *lines]), data=data)


def _number(written: str) -> int:
    """Question 0 is none: it is refused like any other that does not exist."""
    return int(written) if written.isdecimal() and len(written) < 19 else 0


def _line(question: OpenQuestion) -> str:
    sides = " ~ ".join(_side(side) for side in (question.keep, question.other))
    return f"{question.number} ({question.probability:.2f}) {sides}: {question.in_words}"


def _side(side: QuestionSide) -> str:
    return f"{side.name!r} [{short(side.id)}]" + (f" {' '.join(side.text.split())[:80]}" if side.text else "")


TOOLS = (review,)
