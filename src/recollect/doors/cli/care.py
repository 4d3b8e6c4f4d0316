"""Looking after the data: back up and restore, verify, doctor, maintain."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.backup import Backup
    from recollect.engine.care import Checkup, Verification
    from recollect.store.standby import StandbyReport

app = typer.Typer()
PANEL = "Look after the data"


@command(app, "backup", rich_help_panel=PANEL)
def backup(
    door: Door,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; .dump is a good ending.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one.")] = False,
) -> None:
    """Back up everything to one file, while work goes on.

    That is all spaces, their history, vectors and keys. `recollect restore FILE` brings it back.
    """
    backed_up = door.ask_all(lambda memory: memory.backup(file, overwrite=overwrite), doing="Backing up")
    door.show(backed_up, _show_backup)
    output.hint(f"`recollect restore {backed_up.file}` brings it back.")


def restore_backup(door: Door, file: Path, *, overwrite: bool) -> None:
    """`recollect restore FILE`."""
    number = door.ask_all(lambda memory: memory.restore_backup(file, overwrite=overwrite), doing="Restoring")
    door.show(
        number,
        lambda number: output.say(f"Restored {file}: {counted(number, 'memory', 'memories')}."),
        as_json={"file": file, "nodes": number},
    )


@command(app, "verify", rich_help_panel=PANEL)
def verify(door: Door) -> None:
    """Check that everything is whole. Exit code 1 if not.

    Every checksum is computed again, every reference followed, every vector looked at.
    """
    if not _verified(door):
        raise typer.Exit(1)


@command(app, "doctor", rich_help_panel=PANEL)
def doctor(
    door: Door,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check instead that everything is whole, as `verify`.")
    ] = False,
) -> None:
    """Show how the database is, and what to do about it. Exit code 1 if there is something to do."""
    if not (_verified(door) if verify else _examined(door)):
        raise typer.Exit(1)


def _verified(door: Door) -> bool:
    verification = door.ask_all(lambda memory: memory.verify(), doing="Verifying")
    door.show(verification, _show_verification, as_json={"whole": verification.whole, **output.plain(verification)})
    return verification.whole


def _examined(door: Door) -> bool:
    checkup = door.ask_all(lambda memory: memory.doctor())
    door.show(checkup, _show_checkup, as_json={"healthy": checkup.healthy, **output.plain(checkup)})
    return checkup.healthy


@command(app, "maintain", rich_help_panel=PANEL)
def maintain(
    door: Door,
    reindex: Annotated[
        bool | None,
        typer.Option("--reindex/--no-reindex", help="Build the vector indexes anew; by itself every six months."),
    ] = None,
    no_backup: Annotated[bool, typer.Option("--no-backup", help="Leave out the backup.")] = False,
) -> None:
    """Do the daily round: back up, clear finished jobs, vacuum.

    `recollect serve` does it by itself.
    """
    report = door.ask_all(
        lambda memory: memory.maintain(reindex=reindex, with_backup=not no_backup), doing="Maintaining"
    )
    door.show(report, _show_report)


# -- showing


def _show_backup(backed_up: "Backup") -> None:
    output.say(f"Backed up to {backed_up.file} ({output.size(backed_up.bytes)}).")


def _show_verification(verification: "Verification") -> None:
    if verification.whole:
        output.say(f"Everything is whole: {counted(verification.texts, 'text')} checked.")
        return
    output.table(
        ("id", "fault"),
        [(str(id_), fault) for fault, ids in verification.faults.items() for id_ in ids],
    )
    output.note("Some rows are not whole: keep a copy of the database as it is, then restore the last good backup.")


def _show_checkup(checkup: "Checkup") -> None:
    output.facts(_facts(checkup))
    output.say("")
    output.table(
        ("space", "embedded", "waiting", "failed", "no vector", "embedder"),
        [
            (
                space.slug,
                f"{space.jobs.completed:,}",
                f"{space.jobs.waiting:,}",
                f"{space.jobs.failed:,}",
                f"{space.unreadable:,}",
                space.embedding_model or "-",
            )
            for space in checkup.spaces
        ],
    )
    output.say("")
    for sentence in checkup.notes:
        output.say(f"Note: {sentence}")
    for sentence in checkup.advice:
        output.say(f"To do: {sentence}")
    if checkup.healthy:
        output.say("All is well.")


def _facts(checkup: "Checkup") -> Iterator[tuple[str, str]]:
    server = checkup.server
    yield "database", checkup.place
    yield "PostgreSQL", f"{server.version}, with pgvector {server.pgvector}"
    yield "schema", checkup.revision
    yield "memories", f"{checkup.nodes:,}"
    yield "size", output.size(server.bytes)
    if checkup.disk_free_bytes is not None:
        yield "free on disk", output.size(checkup.disk_free_bytes)
    yield "dead rows", f"{server.dead_rows:,} of {server.dead_rows + server.live_rows:,}"
    yield "spaces kept apart by", "row-level security" if checkup.rows_guarded else "conditions in every query only"
    for index in checkup.indexes:
        state = "not built" if index.state == "missing" else index.state
        yield f"index {index.name}", f"{state}, {counted(index.rows, 'vector')}"
    if checkup.standby is not None:
        yield "standby", checkup.standby.trouble or _behind(checkup.standby)
    yield "connections", f"{server.connections} of {server.most_connections}"
    yield "last vacuum", output.minute(server.last_vacuum_at)
    yield "last backup", output.minute(checkup.last_backup_at)
    yield "last maintained", output.minute(checkup.last_maintained_at)


def _behind(standby: "StandbyReport") -> str:
    if not standby.behind_bytes:
        return "is read, and shows all there is"
    return f"is read, {output.size(standby.behind_bytes)} ({standby.lag_seconds or 0:.1f} s) behind"


def _show_report(report: dict[str, Any]) -> None:
    if "backup" in report:
        output.say(f"Backed up to {report['backup']}.")
    output.say(f"Vacuumed; {counted(report['jobs_cleared'], 'finished job')} cleared.")
    if "reindexed" in report:
        output.say(f"Vector indexes built anew: {', '.join(report['reindexed']) or 'there are none yet'}.")
