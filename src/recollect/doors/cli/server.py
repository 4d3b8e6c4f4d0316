"""The server: the API for agents and programs, with a worker and the daily round beside it."""

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
    from recollect import logs
    from recollect.doors.api.server import serve as run_server

    settings = door.settings(host=host, port=port, production=production or None)
    logs.configure(level=settings.log_level, format=settings.log_format)
    run_server(settings, ready=partial(_say_ready, door))


def _say_ready(door: Door, address: str) -> None:
    """Whoever started this may be waiting for the address, so it must not be held back."""
    door.show(address, lambda address: output.say(f"Serving on {address}"), as_json={"address": address})
    output.finish()
    output.hint("Ctrl-C stops it.")
