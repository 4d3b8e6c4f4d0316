"""Schedules: what is done by itself, when next, and what came of it last."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, command, listing
from recollect.errors import InvalidInput
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.schedules.run import Ran
    from recollect.schedules.sql.schedules import Schedule

app = typer.Typer()
SPANS = {1440: "day", 10_080: "week", 20_160: "two weeks", 60: "hour"}

Name = Annotated[str, typer.Argument(metavar="NAME", help="What is scheduled: prune, merge-edges, topics, ...")]


@listing(app)
def list_(door: Door) -> None:
    """List what is done by itself in a space, when next, and what came of it last.

    A running `recollect serve` does it.
    """
    door.show(door.ask(lambda memory: memory.schedules.list()), _show)


@command(app, "pause")
def pause(door: Door, name: Name) -> None:
    """Do something no more by itself, until it is resumed."""
    door.show(door.ask(lambda memory: memory.schedules.pause(name)), _show_one)


@command(app, "resume")
def resume(door: Door, name: Name) -> None:
    """Do something by itself again, from its next time on."""
    door.show(door.ask(lambda memory: memory.schedules.resume(name)), _show_one)


@command(app, "run")
def run(door: Door, name: Name) -> None:
    """Do something now, whatever its time. Exit code 1 if a part of it failed.

    A young or small graph, which would not be tidied by schedule yet, is tidied, with a warning.
    """
    ran = door.ask(lambda memory: memory.schedules.run(name), doing=f"Running {name}")
    door.show(ran, _show_run)
    for warning in ran.warnings:
        output.note(warning)
    if ran.status == "partly failed":
        raise typer.Exit(1)


@command(app, "set")
def set_(
    door: Door,
    name: Name,
    every: Annotated[int | None, typer.Option("--every", metavar="MINUTES", help="1440 is daily.")] = None,
    cron: Annotated[
        str | None,
        typer.Option("--cron", metavar="CRON", help='Minute, hour, day, month, day of week: "0 2 * * sun".'),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option("--time-zone", metavar="ZONE", help="Of the cron expression: Europe/Berlin.")
    ] = None,
    jitter: Annotated[
        int | None,
        typer.Option("--jitter", metavar="SECONDS", help="Kept apart from other schedules by up to so much."),
    ] = None,
    options: Annotated[
        str | None, typer.Option("--options", metavar="JSON", help="Options of the policy, as a JSON object.")
    ] = None,
) -> None:
    """Say how often something is done by itself. What is not given stays.

    Every policy can be scheduled, also one that usually is not: `recollect schedules set link --every 1440`.
    """
    if (every, cron, time_zone, jitter, options) == (None,) * 5:
        raise InvalidInput("There is nothing to set: give --every, --cron, --time-zone, --jitter or --options.")
    chosen = values.json_object("--options", options)
    schedule = door.ask(
        lambda memory: memory.schedules.set(
            name, every_minutes=every, cron=cron, time_zone=time_zone, jitter_seconds=jitter, options=chosen
        )
    )
    door.show(schedule, _show_one)


# -- showing


def _show_one(schedule: "Schedule") -> None:
    _show([schedule])


def _show(schedules: "Sequence[Schedule]") -> None:
    output.table(
        ("name", "how often", "next", "last", "outcome"),
        [
            (
                schedule.name,
                _how_often(schedule),
                output.minute(schedule.next_run_at) if schedule.enabled else "paused",
                output.minute(schedule.last_run_at),
                schedule.last_outcome or "-",
            )
            for schedule in schedules
        ],
    )


def _how_often(schedule: "Schedule") -> str:
    if schedule.cron is not None:
        return f"{schedule.cron} {schedule.time_zone}"
    minutes = schedule.every_minutes or 0
    return f"every {SPANS[minutes]}" if minutes in SPANS else f"every {counted(minutes, 'minute')}"


def _show_run(ran: "Ran") -> None:
    output.say(ran.outcome if ran.outcome.endswith(".") else f"{ran.outcome.capitalize()}.")
    if ran.plan_id is not None:
        output.hint(f"`recollect undo {output.short(ran.plan_id)}` undoes what was applied.")
