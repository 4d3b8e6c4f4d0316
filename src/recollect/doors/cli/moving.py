"""Moving in and out: import files, export everything."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, cast

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, DryRun, NoWait, command
from recollect.doors.cli.memories import Importance, Tags
from recollect.errors import InvalidInput
from recollect.model import ContentType, Kind, NodeFilter
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.memories.import_ import ImportReport
    from recollect.memories.sources import ImportOptions

app = typer.Typer()
PANEL = "Look after the data"

Format = Literal[
    "auto", "text", "markdown", "jsonl", "csv", "mcp-memory", "mem0", "chatgpt", "claude", "letta", "graphiti"
]
UnknownTags = Literal["refuse", "extra"]
OutFormat = Literal["jsonl", "markdown", "graphml"]
COUNTED = {"jsonl": ("memory", "memories"), "markdown": ("note", "notes"), "graphml": ("link", "links")}
PAGES = NodeFilter(kinds=(Kind.PAGE,))


@command(app, "import", rich_help_panel=PANEL)
def import_(
    door: Door,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders; - reads stdin.")],
    format_: Annotated[Format, typer.Option("--format", "-f", help="What they are; by their endings, else.")] = "auto",
    type_: Annotated[
        ContentType, typer.Option("--type", "-t", help="The content type of what does not say its own.")
    ] = ContentType.NOTE,
    tag: Tags = None,
    importance: Importance = None,
    unknown_tags: Annotated[
        UnknownTags,
        typer.Option("--unknown-tags", help="Strict spaces, rows only: refuse, or keep unregistered tags in extra."),
    ] = "refuse",
    hidden: Annotated[bool, typer.Option("--hidden", help="Read hidden files and folders too.")] = False,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
) -> None:
    """Import text, Markdown, JSONL or CSV, what `recollect export` wrote, or what another program exported.

    ChatGPT, Claude (the archive as it came, or conversations.json), mem0, Letta (.af), Graphiti and the memory of the
    MCP reference server are recognised by what is in their files.

    Long documents are cut into chunks. What is remembered already is left alone, so an import that was interrupted is
    simply repeated. Exit code 1 if something was refused, or nothing could be read.

    \b
    recollect import notes/ --tag knowledge
    recollect import chatgpt-export.zip --dry-run
    """
    from recollect.memories.sources import ImportOptions

    options = ImportOptions(
        subtype=type_, tags=tuple(tag or ()), importance=importance, unknown_tags=unknown_tags, hidden=hidden
    )
    report = door.ask(partial(_import, paths=paths, format=format_, options=options, dry_run=dry_run, wait=not no_wait))
    door.show(report, _show_report, as_json=_report_as_json(report))
    if report.refused or not report.added + report.already_there:
        raise typer.Exit(1)


@command(app, "export", rich_help_panel=PANEL)
def export(
    door: Door,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write it; - is stdout.")] = "-",
    format_: Annotated[
        OutFormat, typer.Option("--format", "-f", help="JSON lines, a folder of notes with wikilinks, or the graph.")
    ] = "jsonl",
    with_vectors: Annotated[
        bool, typer.Option("--with-vectors", help="With the vectors, so that they need not be computed again.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one.")] = False,
) -> None:
    """Export all memories of a space as JSON lines; `recollect import` brings them back as they were.

    markdown writes a vault for Obsidian and the like: a note for each memory, concept and case, linked as they are, and
    the pages; graphml writes nodes and links for yEd, Gephi or NetworkX. Both hold what is active.

    \b
    recollect export memories.jsonl
    recollect export | gzip > memories.jsonl.gz
    recollect export vault --format markdown
    """
    to_stdout = file == "-"
    if to_stdout and door.json:
        raise InvalidInput("The export itself goes to stdout: name a file to have a report as JSON.")
    if to_stdout and format_ == "markdown":
        raise InvalidInput("A vault is a folder: name one to write it to.")
    if with_vectors and format_ != "jsonl":
        raise InvalidInput("Only JSON lines hold vectors: leave --with-vectors out, or --format.")
    out = cast("BinaryIO", output.Stdout()) if to_stdout else Path(file)
    number = door.ask(partial(_export, out=out, format=format_, with_vectors=with_vectors, overwrite=overwrite))
    amount = counted(number, *COUNTED[format_])
    if to_stdout:
        output.hint(f"{amount} exported.")
    else:
        report = {"file": file, "format": format_, "exported": number}
        door.show(number, lambda _: output.say(f"Exported {amount} to {file}."), as_json=report)


# -- asking


async def _import(
    memory: "Engine", *, paths: list[str], format: Format, options: "ImportOptions", dry_run: bool, wait: bool
) -> "ImportReport":
    done = [0]
    try:
        with output.progress("Importing") as show:

            def noted(count: int) -> None:
                done[0] = count
                show(count)

            stdin = values.piped_in()
            return await memory.import_(
                paths, format=format, stdin=stdin, options=options, dry_run=dry_run, wait=wait, progress=noted
            )
    except asyncio.CancelledError:
        if not dry_run:
            output.note(f"Interrupted: {done[0]:,} were dealt with and are kept. The same command goes on from there.")
        raise


async def _export(
    memory: "Engine", *, out: Path | BinaryIO, format: OutFormat, with_vectors: bool, overwrite: bool
) -> int:
    with output.progress("Exporting") as show:
        if format == "graphml":
            return await memory.graph.export(out, with_isolated=True, overwrite=overwrite)
        if format == "jsonl":
            return await memory.export(out, with_vectors=with_vectors, overwrite=overwrite, progress=show)
        assert isinstance(out, Path)
        notes = await memory.graph.export_vault(out, overwrite=overwrite, progress=show)
        written = await memory.pages.export(out / "pages") if await memory.count(PAGES) else None
    for line in written.left_out if written else ():
        output.note(f"{line.what}: {line}")
    return notes + (written.pages if written else 0)


# -- showing


def _show_report(report: "ImportReport") -> None:
    output.say(f"{report}.")
    if not (report.added or report.already_there or report.lines):
        output.note("There was nothing to read: name a file with text, or a folder that holds such files.")
    output.lines(report.lines)
    for why, number in report.postponed.items():
        output.note(f"Found by words alone so far: {counted(number, 'text')} ({why}): `recollect work` tries again.")


def _report_as_json(report: "ImportReport") -> dict[str, object]:
    return {
        "dry_run": report.dry_run,
        "added": report.added,
        "already_there": report.already_there,
        "linked": report.linked,
        "concepts": report.concepts,
        "links": report.links,
        "refused": report.refused,
        "skipped": report.skipped,
        "notes": report.notes,
        "postponed": report.postponed,
    }
