"""The demonstration: the engine doing its job from end to end, on a sample, in a place of its own.

It shares nothing with the memory that is really used: its database lives in a temporary directory that goes with it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from recollect.doors.cli import output, showing
from recollect.doors.cli.door import Door, ask_memory, command
from recollect.doors.cli.memories import show_history
from recollect.doors.cli.recall import show_explained, show_hits
from recollect.model import Concept, ContentType, NewMemory

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.plans.show import ShownPlan
    from recollect.settings import Settings

app = typer.Typer()

SAMPLE = {
    "tea": ("note", "person", "Linh drinks jasmine tea, never coffee; after four o'clock only water."),
    "espresso": ("note", "person", "Tomás takes his espresso with one sugar, and pretends he does not."),
    "shrimp": ("note", "person", "Minh dị ứng với tôm và cua; khi nấu cho Minh hãy dùng cá hoặc thịt gà."),
    "soup": ("note", "practical", "Grandmother's lentil soup: cumin and garlic first, the lemon at the end."),
    "key": ("note", "life", "Der Ersatzschlüssel liegt bei Frau Weber, hinter dem Gummibaum."),
    "outage": ("reflection", "lesson", "The outage in March: set a lock timeout before every migration."),
    "postgres": ("note", "code", "We chose PostgreSQL: notes and links change in one transaction."),
    "billing": ("conversation", "person", "Amara: ask me before you touch the billing code; the rounding is right."),
}  # fmt: skip
QUESTIONS = ("what does Linh like to drink?", "Minh không ăn được món gì?")
# Two agents wrote down what they know: the same drink twice, and two errors that differ in one digit.
CONCEPTS = (
    ("jasmine_tea", "drink", "Green tea scented with jasmine flowers"),
    ("Jasmine Tea", "drink", "A green tea scented with jasmine flowers"),
    ("Error E1041", "error", "The payment was refused by the bank"),
    ("Error E1042", "error", "The payment was refused by the bank"),
)
LINKS = (
    ("tea", "espresso", 0.45, "auto"),
    ("espresso", "soup", 0.40, "auto"),
    ("tea", "soup", 0.30, "auto"),
    ("outage", "postgres", 0.50, "auto"),
    ("tea", "shrimp", 0.35, "user"),
)
LATER = timedelta(days=60)


@dataclass(frozen=True, kw_only=True)
class DemoStep:
    """One thing the demonstration does: what it says, and what came of it."""

    name: str
    title: str
    answer: Any
    as_text: Callable[[Any], None]


@command(app, "demo", rich_help_panel="Serve and set up")
def demo(door: Door) -> None:
    """See it work: remember, recall, tidy by a plan, undo.

    It takes a few seconds and uses a database of its own, which is removed at the end; what you remember is not
    touched.
    """
    settings = door.settings()
    began = time.monotonic()
    with _temporary_home() as home:
        apart = settings.model_copy(update={"home": home, "database_url": None, "space": "default"})
        output.hint("It gets a database of its own, which goes when it ends.")
        shown = ask_memory(apart, partial(_perform, door=door))
    seconds = time.monotonic() - began
    location = _place(settings)
    if door.json:
        output.document({**shown, "seconds": round(seconds, 1), "your_memories": location})
    else:
        _say_goodbye(seconds, location)


async def _perform(memory: "Engine", *, door: Door) -> dict[str, Any]:
    shown = {}
    number = 0
    for chapter in (_remembering, _merging, _pruning):
        async for step in chapter(memory):
            number += 1
            shown[step.name] = output.plain(step.answer)
            if not door.json:
                output.heading(f"{number}. {step.title}")
                step.as_text(step.answer)
    return shown


async def _remembering(memory: "Engine") -> AsyncIterator[DemoStep]:
    added = await memory.add_many([_sample(*sample) for sample in SAMPLE.values()])
    texts = [text for _, _, text in SAMPLE.values()]
    title = f"Remember {len(added.ids)} things, in three languages; no key, no cloud"
    yield DemoStep(name="remembered", title=title, answer=texts, as_text=_show_texts)

    first, second = [replace(await memory.recall(question, limit=1), left_out=()) for question in QUESTIONS]
    title = f"Recall, with the score laid open: {QUESTIONS[0]}"
    yield DemoStep(name="question_1", title=title, answer=first, as_text=show_explained)
    yield DemoStep(
        name="question_2", title=f"Recall: {QUESTIONS[1]}", answer=second, as_text=partial(show_hits, full=True)
    )


async def _merging(memory: "Engine") -> AsyncIterator[DemoStep]:
    """Two concepts that are one and two that only look so: why, the plan, apply, undo."""
    for name, type_, text in CONCEPTS:  # a threshold of 1, so that the twins meet in a plan rather than on arrival
        await memory.concepts.add(name, type_, text=text, threshold=1.0)
    plan = await memory.plans.show((await memory.plans.propose("duplicates")).id)
    title = f"Two agents wrote {len(CONCEPTS)} concepts. Are two the same? A plan, nothing changed yet"
    yield DemoStep(name="duplicates", title=title, answer=plan, as_text=_show_plan)

    why = await memory.concepts.why("Error E1041", "Error E1042")
    title = "These two only look the same. Why were they left alone?"
    yield DemoStep(name="why", title=title, answer=replace(why, history=()), as_text=_show)

    await memory.plans.apply(plan.id)
    merged, _ = await memory.concepts.list()
    yield DemoStep(
        name="merged", title="Apply it: one tea, and the errors as they were", answer=merged, as_text=_show_names
    )

    await memory.undo(plan.id)
    apart, _ = await memory.concepts.list()
    title = f"Changed your mind? Undo the plan {output.short(plan.id)}: every row as it was"
    yield DemoStep(name="apart_again", title=title, answer=apart, as_text=_show_names)


async def _pruning(memory: "Engine") -> AsyncIterator[DemoStep]:
    """Links that nobody used: one goes, the others are left alone, each for a reason; and it comes back."""
    ids = {node.text: node.id for node in (await memory.list()).items}
    for first, second, strength, by in LINKS:
        source, target = (ids[SAMPLE[end][2]] for end in (first, second))
        await memory.graph.link(source, target, strength=strength, created_by=by)
    today = memory.core.now
    memory.core.now = lambda: today() + LATER
    plan = await memory.plans.show((await memory.plans.propose("prune")).id)
    title = f"{LATER.days} days later: prune weak links, but none that holds something together"
    yield DemoStep(name="prune", title=title, answer=plan, as_text=_show_plan)

    await memory.plans.apply(plan.id)
    pruned = (await memory.graph.stats()).edges
    await memory.undo(plan.id)
    undone = (await memory.graph.stats()).edges
    links = [f"{pruned} links after the pruning", f"{undone} links after its undo"]
    yield DemoStep(name="links", title="Apply it, and undo it", answer=links, as_text=_show_texts)

    entries = await memory.history(plan.decisions[0].subject)
    title = "Nothing happens in secret: the history of that link"
    yield DemoStep(name="history", title=title, answer=entries, as_text=show_history)


def _sample(subtype: str, tag: str, text: str) -> NewMemory:
    return NewMemory(text=text, subtype=ContentType(subtype), metadata={"tags": [tag], "source": "cli"})


def _show(answer: object) -> None:
    output.say(str(answer))


def _show_plan(plan: "ShownPlan") -> None:
    output.say(f"{plan.title}  (plan {output.short(plan.id)})")
    showing.decisions(plan)
    showing.left_alone(plan)


@contextmanager
def _temporary_home() -> Iterator[Path]:
    """A home that the database's own user can enter, also where we are root and it is not."""
    directory = Path(tempfile.mkdtemp(prefix="recollect-demo-"))
    directory.chmod(0o755)
    try:
        yield directory / "home"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _place(settings: "Settings") -> str:
    """Where the memories live that are really used."""
    if settings.database_url is not None:
        return "your own PostgreSQL (RECOLLECT_DATABASE_URL)"
    from recollect.store.embedded import default_home

    return str(settings.home or default_home())


def _show_texts(texts: list[str]) -> None:
    for text in texts:
        output.say(text)


def _show_names(concepts: "Sequence[Concept]") -> None:
    for concept in concepts:
        output.say(concept.name)


def _say_goodbye(seconds: float, location: str) -> None:
    program = os.environ.get("RECOLLECT_PROGRAM", "recollect")  # ./run, where that was what was typed
    output.heading(f"That took {seconds:.0f} seconds, and its database is gone again. Now yours:")
    output.facts(
        [
            ("your memories live in", location),
            ("remember", f"{program} add Linh prefers tea, never coffee"),
            ("recall", f"{program} recall what does Linh drink"),
            ("import your notes", f"{program} import notes/"),
            ("page and agents", f"{program} serve"),
            ("everything else", f"{program} {'help-all' if program.endswith('run') else '--help'}"),
        ]
    )
