"""Settings as they are in effect, each with where it came from and what it is for."""

from collections.abc import Sequence

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command

app = typer.Typer()


@command(app, "config", rich_help_panel="Serve and set up")
def config(door: Door) -> None:
    """Show every setting, where it came from and what it is for.

    Settings are environment variables; these are their names. Secrets stay hidden.
    """
    door.show(door.settings().describe(), _show)


def _show(settings: Sequence[dict[str, str]]) -> None:
    output.entries(
        (setting["name"], setting["value"] or "-", f"from {setting['origin']}", setting["why"]) for setting in settings
    )
