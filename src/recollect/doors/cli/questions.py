"""`recollect review`: are these two one? Walked with one key each at a terminal; listed and answered by programs."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.doors.cli import keyboard, output, values
from recollect.doors.cli.door import Door, command
from recollect.errors import InvalidInput
from recollect.model import QuestionSide
from recollect.wording import chance, counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.plans.questions import AnswersTaken, GivenAnswer, OpenQuestion, QuestionPage

app = typer.Typer()
PANEL = "Concepts"
# What a key answers; a capital letter answers for the whole group.
ANSWERS = {"m": "merge", "s": "separate", "n": "never", "l": "later"}
KEYS = "m merge  s separate  n never  l later  o keep other  b back  q quit  CAPITAL: group"
SAID = {"merge": "merged", "separate": "kept separate", "never": "never asked again", "later": "put off"}
WRITTEN = re.compile(r"(?P<group>g?)(?P<number>\d{1,18})\s*[=\s]\s*(?P<answer>\S+)")


@command(app, "review", rich_help_panel=PANEL)
def review(
    door: Door,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help="Only concept, or only case.")] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option("--answer", metavar="NUMBER=ANSWER", help="merge, separate, never or later; g12=... for a group."),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Answers, one a line; - reads them from stdin.")
    ] = None,
    take_back: Annotated[
        list[int] | None, typer.Option("--take-back", metavar="NUMBER", help="Undo an answer; repeat for more.")
    ] = None,
    look: Annotated[bool, typer.Option("--look/--no-look", help="Whether to look for new questions first.")] = True,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many to list at most.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where it ended.")] = None,
) -> None:
    """Answer the open questions: which concepts, and which cases, are one.

    \b
    recollect review                                  one key each: merge, keep separate, never, later, back
    recollect review --json                           the open questions, for programs
    recollect review --answer 12=merge --answer g17=never

    A merge can be undone like any plan; `b` takes the last answer back.
    """
    if take_back:
        door.show(door.ask(lambda memory: memory.questions.take_back(take_back)), _show_taken_back)
    elif answer or from_:
        given = _given([*(answer or ()), *(values.lines_of("from", from_) if from_ else ())])
        done = door.ask(lambda memory: memory.questions.answer(given), doing="Answering")
        door.show(done, _show_answers)
        if done.refused:
            raise typer.Exit(1)
    elif door.json or not keyboard.is_there():
        page = door.ask(lambda memory: _listed(memory, look, kind, limit, cursor), doing="Comparing")
        door.show(page, _show_page)
    else:
        door.ask(lambda memory: walk(memory, look=look, kind=kind))


async def _listed(memory: "Engine", look: bool, kind: str | None, limit: int, cursor: str | None) -> "QuestionPage":
    if look and cursor is None:
        await memory.questions.look()
    return await memory.questions.list(kind=kind, limit=limit, cursor=cursor)


# -- what was typed


def _given(written: Sequence[str]) -> "list[GivenAnswer]":
    from recollect.plans.questions import GivenAnswer, says

    answers = []
    for answer in written:
        match = WRITTEN.fullmatch(answer.strip())
        if match is None:
            raise InvalidInput(f"An answer is written like 12=merge, or g12=merge for a group, not {answer[:60]!r}.")
        number, verdict = int(match["number"]), says(match["answer"])
        answers.append(
            GivenAnswer(group=number, answer=verdict) if match["group"] else GivenAnswer(number=number, answer=verdict)
        )
    return answers


# -- walking


async def walk(memory: "Engine", *, look: bool, kind: str | None) -> None:
    """From the likeliest to the least likely; what was put off on this walk ends it."""
    if look:
        with output.busy("Comparing"):
            await memory.questions.look()
    with keyboard.keys() as next_key:
        await _Walk(memory, kind, next_key).run()


class _Walk:
    def __init__(self, memory: "Engine", kind: str | None, next_key: keyboard.NextKey) -> None:
        self.memory, self.kind, self.next_key = memory, kind, next_key
        self.began = memory.core.now()
        self.last: list[tuple[str, tuple[int, ...]]] = []

    async def run(self) -> None:
        while (page := await self._page()).items:
            first = page.items[0]
            if first.postponed_at is not None and first.postponed_at >= self.began:
                output.say(f"\n{counted(page.total, 'question')} put off for later.")
                break
            number = self.count("merge", "separate", "never", "later") + 1
            _show_question(first, number, number - 1 + page.total - self.count("later"))
            if not await self._answered(first):
                break
        else:
            output.say("\nThat was the last question." if self.last else "\nThere are no open questions.")
        output.say(f"{counted(self.count('merge', 'separate', 'never'), 'question')} answered.")

    def count(self, *said: str) -> int:
        return sum(len(numbers) for answer, numbers in self.last if answer in said)

    async def _page(self) -> "QuestionPage":
        return await self.memory.questions.list(kind=self.kind, limit=1)

    async def _answered(self, question: "OpenQuestion") -> bool:
        """Wait for a key that means something, and do it; False: to leave."""
        while True:
            key = await self.next_key()
            if key in ("q", "\x04", ""):
                return False
            if key == "b":
                return await self._back()
            if key.lower() in ANSWERS or key == "o":
                await self._answer(question, key)
                return True
            output.say(KEYS)

    async def _answer(self, question: "OpenQuestion", key: str) -> None:
        from recollect.plans.questions import GivenAnswer, Says

        verdict = Says(ANSWERS.get(key.lower(), "merge"))
        keep = question.other.id if key == "o" else None
        group, number = (question.group, None) if key.isupper() else (None, question.number)
        done = await self.memory.questions.answer([GivenAnswer(answer=verdict, keep=keep, group=group, number=number)])
        for refused in done.refused:
            output.say(f"  {refused.message}")
        if done.answered:
            self.last.append((verdict, done.answered))
            output.say(f"  {SAID[verdict]}" + (f" ({len(done.answered)})" if len(done.answered) > 1 else ""))
        else:
            await self.memory.questions.answer({question.number: Says.LATER})

    async def _back(self) -> bool:
        if not self.last:
            output.say("  There is nothing to take back.")
            return True
        _, numbers = self.last.pop()
        done = await self.memory.questions.take_back(numbers)
        for refused in done.refused:
            output.say(f"  {refused.message}")
        output.say(f"  Taken back: {counted(len(done.answered), 'answer')}.")
        return True


# -- showing


def _show_question(question: "OpenQuestion", number: int, total: int) -> None:
    group = f"   group of {question.group_size}" if question.group_size > 2 else ""
    output.heading(f"{number} of {total}   {question.kind} {question.number}{group}")
    screen = output.console(sys.stdout)
    for label, side in (("keep", question.keep), ("other", question.other)):
        name = f"{output.one_line(side.name)}  [{output.short(side.id)}]{_about(side)}"
        output.hanging(screen, f"  {label:<6}", name)
        if side.text:
            output.hanging(screen, " " * 8, output.shortened(output.one_line(side.text)))
    output.hanging(screen, "  ", question.in_words)
    output.say(f"  {KEYS}")


def _about(side: QuestionSide) -> str:
    parts = [
        *([f"{counted(side.usage_count, 'use')}"] if side.usage_count is not None else []),
        *([f"success rate {side.success_rate:.0f}%"] if side.success_rate is not None else []),
        *([f"{counted(side.links, 'link')}"] if side.links else []),
        *([f"also {', '.join(side.aliases[:3])}"] if side.aliases else []),
        *([output.shortened(output.compact(side.metadata), 80)] if side.metadata else []),
    ]
    return "".join(f"  {part}" for part in parts)


def _show_page(page: "QuestionPage") -> None:
    output.table(
        ("number", "estimate", "group", "kind", "names"),
        [
            (
                str(question.number),
                chance(question.probability),
                str(question.group),
                question.kind,
                f"{question.keep.name}  ~  {question.other.name}",
            )
            for question in page.items
        ],
    )
    if not page.items:
        output.note("There are no open questions.")
    if page.next_cursor:
        output.note(f"There are more ({page.total:,} in all): --cursor {page.next_cursor}")


def _show_answers(done: "AnswersTaken") -> None:
    plans = "".join(f"\tplan {output.short(id_)}" for id_ in done.plans)
    output.say(f"answered\t{len(done.answered)}\tleft\t{done.left}{plans}")
    for refused in done.refused:
        output.note(refused.message)


def _show_taken_back(done: "AnswersTaken") -> None:
    output.say(f"taken back\t{len(done.answered)}\topen\t{done.left}")
    for refused in done.refused:
        output.note(refused.message)
