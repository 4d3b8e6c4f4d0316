"""Who is told of plans that wait, of failures and of reports; and whether that works."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command, listing

if TYPE_CHECKING:
    from recollect.plans.notices import Notified

app = typer.Typer()


@listing(app)
def list_(door: Door) -> None:
    """List who is told of plans that wait, of failures and of reports.

    RECOLLECT_NOTIFY names them: webhook:https://... or addresses like mailto://..., divided by commas.
    """
    door.show(door.ask_all(lambda memory: memory.schedules.recipients()), _show_names)


@command(app, "test")
def test(door: Door) -> None:
    """Tell everybody that this is a test. Exit code 1 if somebody could not be told."""
    notices = door.ask_all(lambda memory: memory.schedules.test_notice(), doing="Telling")
    door.show(notices, _show)
    if any(notified.problem for notified in notices):
        raise typer.Exit(1)


def _show_names(names: Sequence[str]) -> None:
    for name in names:
        output.say(name)


def _show(notices: "Sequence[Notified]") -> None:
    output.table(("who", "heard it"), [(notified.name, notified.problem or "told") for notified in notices], wrap=True)
