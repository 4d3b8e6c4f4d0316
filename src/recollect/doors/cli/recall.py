"""Recall: ask the memory a question."""

from typing import Annotated

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, command
from recollect.doors.cli.memories import PANEL
from recollect.model import Recall

app = typer.Typer()


@command(app, "recall", rich_help_panel=PANEL)
def recall(
    door: Door,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for; - reads it from stdin.")],
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many hits, at most 1,000.")] = 20,
) -> None:
    """Recall what is known about a question, best first.

    Each hit is a line: its score, its date, the beginning of its id, its text.

    \b
    recollect recall what does Linh drink
    recollect recall --limit 3 --json "how do we deploy?"
    """
    question = values.text_of(query)
    found = door.ask(lambda memory: memory.recall(question, limit=limit))
    door.show(found, show_hits)
    for sentence in found.notes:
        output.note(sentence)


def show_hits(found: Recall) -> None:
    output.table(
        ("score", "date", "id", "text"),
        [
            (
                f"{hit.score:.2f}",
                output.day(hit.node.created_at),
                output.short(hit.node.id),
                hit.node.text or hit.node.name or "",
            )
            for hit in found
        ],
    )
    if not found:
        output.note("Nothing is known about that.")
