"""The database itself: over how many servers it is spread."""

from typing import Annotated

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command, listing
from recollect.wording import counted

app = typer.Typer()


@listing(app)
def show(door: Door) -> None:
    """Tell whether the spaces lie on one server, or are spread over several."""
    spread = door.ask_all(lambda memory: memory.is_distributed())
    where = "The spaces are spread over several servers." if spread else "All spaces are on one server."
    door.show({"distributed": spread}, lambda _: output.say(where))


@command(app, "distribute")
def distribute(
    door: Door,
    shards: Annotated[
        int, typer.Option("--shards", help="Groups of spaces; at least as many as there will ever be servers.")
    ] = 32,
) -> None:
    """Spread the spaces of an empty database over the servers that Citus knows.

    All of it or none: whoever is interrupted repeats it. A database that holds something is moved by `recollect backup`
    and `recollect restore`. See docs/how-to/grow.md.
    """
    done = door.ask_all(lambda memory: memory.distribute(shards=shards), doing="Distributing")
    where = f"over {counted(done.servers, 'server')}, in {counted(done.shards, 'shard')}"
    sentence = f"The spaces are spread already, {where}." if done.repeated else f"The spaces are spread {where}."
    door.show(done, lambda _: output.say(sentence))
