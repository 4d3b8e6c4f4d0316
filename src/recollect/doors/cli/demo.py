"""The demonstration: the engine doing its job from end to end, on a sample, in a place of its own.

It shares nothing with the memory that is really used: its database lives in a temporary directory that goes with it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, ask_memory, command
from recollect.doors.cli.memories import show_history
from recollect.doors.cli.recall import show_hits
from recollect.model import ContentType, NewMemory

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.settings import Settings

app = typer.Typer()

SAMPLE = (
    ("note", "person", "Linh drinks jasmine tea and never coffee; after four in the afternoon only water."),
    ("note", "person", "Tomás takes his espresso with one sugar, and pretends that he did not ask for the sugar."),
    ("reflection", "lesson", "From the outage in March: a migration waited for a lock and everything queued behind it. "
     "Set a lock timeout before every migration, and run it on a copy first."),
    ("note", "code", "We chose PostgreSQL over a document store: notes and their links must change in one transaction, "
     "and the team knows how to run it."),
    ("note", "practical", "Lentil soup the way grandmother made it: cumin and garlic first, then red lentils and "
     "tomatoes; the lemon at the very end, never while it boils."),
    ("note", "person", "Minh dị ứng với tôm và cua, nên khi nấu ăn cho Minh hãy dùng cá hoặc thịt gà."),
    ("note", "life", "지수는 매주 화요일 저녁에 한강에서 달리기를 한다."),
    ("note", "life", "Der Ersatzschlüssel liegt bei Frau Weber im zweiten Stock, hinter dem Gummibaum."),
    ("log", "product", "The blue sign-up page brought twice as many people as the green one, but only on phones."),
    ("conversation", "person", "Amara said: ask me before you touch the billing code, the rounding looks wrong and is "
     "right."),
    ("idea", "product", "A calendar that shows only the days on which nothing is planned."),
    ("article", "knowledge", "From a book on systems: where the feedback comes late, people over-correct, like under a "
     "shower that warms up slowly."),
)  # fmt: skip
QUESTIONS = (
    "what does Linh like to drink?",
    "how do we run a migration safely?",
    "Minh không ăn được món gì?",
)
HITS = 3


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing the demonstration does: what it says, and what came of it."""

    name: str
    title: str
    answer: Any
    as_text: Callable[[Any], None]


@command(app, "demo", rich_help_panel="Serve and set up")
def demo(door: Door) -> None:
    """See it work: remember, recall, forget, undo.

    It takes well under a minute and uses a database of its own, which is removed at the end; what you remember is
    not touched.
    """
    settings = door.settings()
    began = time.monotonic()
    with _temporary_home() as home:
        apart = settings.model_copy(update={"home": home, "database_url": None, "space": "default"})
        output.hint("A database of its own is being made for this; the first time takes a few seconds.")
        shown = ask_memory(apart, partial(_perform, door=door))
    seconds = time.monotonic() - began
    place = _place(settings)
    if door.json:
        output.document({**shown, "seconds": round(seconds, 1), "your_memories": place})
    else:
        _say_goodbye(seconds, place)


async def _perform(memory: "Engine", *, door: Door) -> dict[str, Any]:
    shown = {}
    async for step in _steps(memory):
        shown[step.name] = output.plain(step.answer)
        if not door.json:
            output.heading(step.title)
            step.as_text(step.answer)
    return shown


async def _steps(memory: "Engine") -> AsyncIterator[Step]:
    added = await memory.add_many([_sample(*one) for one in SAMPLE])
    texts = [text for _, _, text in SAMPLE]
    yield Step(name="remembered", title=f"Remember {len(added.ids)} things", answer=texts, as_text=_show_texts)

    for number, question in enumerate(QUESTIONS, start=1):
        found = await memory.recall(question, limit=HITS)
        yield Step(name=f"question_{number}", title=f"Recall: {question}", answer=found, as_text=show_hits)

    forgotten = await memory.forget(added.ids[0], reason="Linh drinks coffee now")
    yield Step(name="forgotten", title="Forget one of them", answer=forgotten.text, as_text=output.say)

    found = await memory.recall(QUESTIONS[0], limit=HITS)
    yield Step(name="without_it", title=f"Recall: {QUESTIONS[0]} (it is gone)", answer=found, as_text=show_hits)

    entries = await memory.history(forgotten.id)
    yield Step(name="history", title="But it is kept, with its history", answer=entries, as_text=show_history)

    outcome = await memory.undo(entries[-1].plan_id or "")
    found = await memory.recall(QUESTIONS[0], limit=HITS)
    title = f"Undo the plan {output.short(entries[-1].plan_id)}, and recall once more"
    yield Step(name="undone", title=title, answer=found, as_text=show_hits)
    assert outcome.applied == 1, "the demonstration's own undo"


def _sample(subtype: str, tag: str, text: str) -> NewMemory:
    return NewMemory(text=text, subtype=ContentType(subtype), metadata={"tags": [tag], "source": "cli"})


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
    output.table((" ",), [(text,) for text in texts])


def _say_goodbye(seconds: float, place: str) -> None:
    program = os.environ.get("RECOLLECT_PROGRAM", "recollect")  # ./run, where that was what was typed
    output.heading(f"That took {seconds:.0f} seconds; the demonstration's database is removed again")
    output.facts(
        [
            ("your memories live in", place),
            ("remember", f"{program} add Linh prefers tea, never coffee"),
            ("recall", f"{program} recall what does Linh drink"),
            ("import your notes", f"{program} import notes/"),
            ("serve agents", f"{program} serve"),
            ("everything else", f"{program} {'help-all' if program.endswith('run') else '--help'}"),
        ]
    )
