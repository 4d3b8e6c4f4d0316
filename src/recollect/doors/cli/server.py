"""The servers: the API for agents and programs, with a worker and the daily round beside it; and one for an agent."""

from functools import partial
from typing import Annotated

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command

app = typer.Typer()


@command(app, "serve", rich_help_panel="Serve and set up")
def serve(
    door: Door,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen; RECOLLECT_HOST, else 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", help="RECOLLECT_PORT, else 7700; 0 takes a free one.")
    ] = None,
    production: Annotated[
        bool,
        typer.Option("--production", help="Merges and archivings wait for approval; RECOLLECT_PRODUCTION."),
    ] = False,
) -> None:
    """Serve the API until it is stopped by Ctrl-C or SIGTERM.

    It embeds what is added, tidies by schedule and backs up daily. Beyond this machine it needs a key:
    `recollect keys add`.
    """
    from recollect.doors import logs
    from recollect.doors.api.server import serve as run_server

    settings = door.settings(host=host, port=port, production=production or None)
    logs.configure(level=settings.log_level, format=settings.log_format)
    run_server(settings, ready=partial(_say_ready, door))


@command(app, "mcp", rich_help_panel="Serve and set up")
def mcp(
    door: Door,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            envvar="RECOLLECT_API_KEY",
            show_envvar=False,
            help="Only what this API key may do; RECOLLECT_API_KEY. Without one, everything.",
        ),
    ] = None,
) -> None:
    """Serve one agent over stdin and stdout by the Model Context Protocol, until stdin ends.

    This is for the settings of an agent, which starts it by itself. `recollect serve` offers the same over HTTP, at
    /mcp.

    \b
    claude mcp add recollect -- recollect mcp
    """
    from recollect.doors.mcp.stdio import serve as converse

    converse(door.settings(), key=key)


def _say_ready(door: Door, address: str) -> None:
    """Whoever started this may be waiting for the address, so it must not be held back."""
    door.show(address, lambda address: output.say(f"Serving on {address}"), as_json={"address": address})
    output.finish()
    output.hint("Ctrl-C stops it.")
