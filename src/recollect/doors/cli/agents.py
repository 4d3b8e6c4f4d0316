"""Agents: serve one over stdin and stdout; tell the programs that agents live in of this memory, and no longer."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command, listing
from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from recollect.doors.mcp.clients import AgentClient, FileChange
    from recollect.settings import Settings

app = typer.Typer()
PANEL = "Serve and set up"

ClientName = Literal["claude-code", "claude-desktop", "cursor"]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="RECOLLECT_API_KEY",
        show_envvar=False,
        help="Only what this API key may do; RECOLLECT_API_KEY. Without one, everything.",
    ),
]
Client = Annotated[ClientName | None, typer.Argument(metavar="CLIENT", help="Which program; all that are here, else.")]
Project = Annotated[bool, typer.Option("--project", help="In the files of the project in this directory.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write it without asking.")]


@listing(app)
def mcp(door: Door, key: Key = None) -> None:
    """Serve one agent over stdin and stdout by the Model Context Protocol, until stdin ends.

    This is for the settings of an agent, which starts it by itself: `recollect mcp install` writes them. `recollect
    serve` offers the same over HTTP, at /mcp.
    """
    from recollect.doors.mcp.stdio import serve as converse

    converse(door.settings(), key=key)


@command(app, "install")
def install(
    door: Door,
    client: Client = None,
    project: Project = False,
    no_guide: Annotated[
        bool, typer.Option("--no-guide", help="Without the file that says when to remember and when to recall.")
    ] = False,
    key: Key = None,
    yes: Yes = False,
) -> None:
    """Tell Claude Code, Claude Desktop or Cursor of this memory; shown first, and `uninstall` takes it back.

    The program starts `recollect mcp` by itself then. Claude Code also gets a skill, and a project of Cursor a rule,
    that say when to remember and when to recall. Exit code 1 if nothing was written.

    \\b
    recollect mcp install claude-code
    recollect mcp install cursor --project --space work
    """
    from recollect.doors.mcp.clients import installing, server_entry

    if project and key:
        output.note("The key is not written into a project's files: set RECOLLECT_API_KEY where the program runs.")
    entry = server_entry(_environment(door.settings(), key, project=project), shared=project)
    changes = [change for agent in _chosen(client, project) for change in installing(agent, entry, guide=not no_guide)]
    _carry_out(door, changes, yes=yes, after="Start the program anew, and it has this memory.")


@command(app, "uninstall")
def uninstall(door: Door, client: Client = None, project: Project = False, yes: Yes = False) -> None:
    """Take this memory out of the settings of Claude Code, Claude Desktop or Cursor; what is remembered stays."""
    from recollect.doors.mcp.clients import uninstalling

    changes = [change for agent in _chosen(client, project) for change in uninstalling(agent)]
    _carry_out(door, changes, yes=yes, after="What is remembered stays.")


def _environment(settings: "Settings", key: str | None, *, project: bool) -> dict[str, str]:
    """What was said here about where to look, and as whom: the program would not know. A project's files are shared, so
    they are told the space alone."""
    carried = {} if project else {"home": settings.home, "database_url": settings.database_url, "api_key": key}
    values = {"space": settings.space, **carried}
    return {
        f"RECOLLECT_{name.upper()}": str(value)
        for name, value in values.items()
        if value is not None and (name == "api_key" or settings.origin(name) != "default")
    }


def _chosen(client: ClientName | None, project: bool) -> "list[AgentClient]":
    from recollect.doors.mcp.clients import known_clients

    clients = known_clients(project=Path.cwd() if project else None)
    if client is None:
        present = [agent for agent in clients.values() if agent.is_here]
        if not present:
            raise InvalidInput(f"None of the programs is here: name one, {' or '.join(clients)}.")
        return present
    if client not in clients:
        raise InvalidInput("Claude Desktop has no projects: leave --project out.")
    return [clients[client]]


def _carry_out(door: Door, changes: "Sequence[FileChange]", *, yes: bool, after: str) -> None:
    from recollect.doors.mcp.clients import carry_out

    pending = [change for change in changes if change.verb != "unchanged"]
    if not door.json:
        _show(changes)
    asks = not door.json and sys.stdin.isatty()
    agreed = bool(pending) and (yes or (asks and typer.confirm("Write this?", default=False, err=True)))
    if agreed:
        carry_out(pending)
    report = {"written": agreed, "files": [{"file": str(change.file), "change": change.verb} for change in changes]}
    refused = "Nothing was written: repeat with --yes."
    ending = "There is nothing to change." if not pending else f"Done. {after}" if agreed else refused
    door.show(report, lambda _: output.say(ending))
    if pending and not agreed:
        raise typer.Exit(1)


def _show(changes: "Sequence[FileChange]") -> None:
    """What would be written, line by line, as a patch shows it."""
    from difflib import unified_diff

    for change in changes:
        output.say(f"{change.verb}: {change.file}")
        before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
        for line in [*unified_diff(before, after, lineterm="", n=0)][2:]:
            output.say(f"  {line}")
