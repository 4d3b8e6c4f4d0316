"""Pages: import a wiki, look at pages and what changed in them, export them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.doors.cli import output, showing
from recollect.doors.cli.door import Door, command, listing
from recollect.doors.cli.plans import is_short
from recollect.model import Page as Stretch
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.pages.apply import Merged
    from recollect.pages.files import PagesWritten
    from recollect.pages.import_ import PageImport
    from recollect.pages.look import PageLink, PageView, Version

MOST_LINES = 20
DEFAULT_FILE = Path("plan.md")

group = typer.Typer()

PageName = Annotated[
    str,
    typer.Argument(metavar="PAGE", help="Its id (Principle:Loading), name, path or alias, or the UUID of its node."),
]
Type = Annotated[str | None, typer.Option("--type", "-t", metavar="TYPE", help="Only pages of this type.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many, at most 1,000.")]
Cursor = Annotated[str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the last listing ended.")]


# -- looking


@listing(group)
def list_pages(door: Door, type_: Type = None, limit: Limit = 50, cursor: Cursor = None) -> None:
    """Keep a wiki: import pages, merge them, look at them, export them.

    \b
    recollect pages import wiki/        propose to merge a folder, and write plan.md
    recollect apply 7f3a --plan-md plan.md
    recollect pages show Principle:Model_Loading
    recollect pages                     list the pages, newest first
    """
    found = door.ask(lambda memory: memory.pages.list(type=type_, limit=limit, cursor=cursor))
    door.show(found, _show_list)


@command(group, "list")
def list_again(door: Door, type_: Type = None, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List pages, newest first."""
    list_pages(door, type_, limit, cursor)


@command(group, "show")
def show(door: Door, page: PageName) -> None:
    """Show a page: its text, its links and back-links, and what happened to it."""
    found = door.ask(lambda memory: memory.pages.get(page))
    door.show(found, _show_page)


@command(group, "versions")
def versions(door: Door, page: PageName) -> None:
    """List the versions of a page, oldest first: when, why and by which plan."""
    found = door.ask(lambda memory: memory.pages.versions(page))
    door.show(found, _show_versions)


@command(group, "diff")
def diff(
    door: Door,
    page: PageName,
    first: Annotated[
        int | None, typer.Argument(metavar="FROM", help="A version; the one before the last, else.")
    ] = None,
    second: Annotated[int | None, typer.Argument(metavar="TO", help="A version; the last, else.")] = None,
) -> None:
    """Show what changed in a page between two versions.

    \b
    recollect pages diff Principle:Model_Loading
    recollect pages diff Principle:Model_Loading 1 3
    """
    found = door.ask(lambda memory: memory.pages.diff(page, first, second))
    door.show(found, output.say, as_json={"page": page, "diff": found})


# -- moving in and out


@command(group, "import")
def import_(
    door: Door,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A wiki, or a vault of Markdown notes.")],
    plan_md: Annotated[
        Path, typer.Option("--plan-md", metavar="FILE", help="Where the plan is written, to be read and edited.")
    ] = DEFAULT_FILE,
    scope: Annotated[
        Literal["subgraph", "type"],
        typer.Option("--scope", help="Compare a page below its parent's match, or with all pages of its type."),
    ] = "subgraph",
    judge: Annotated[
        Literal["thresholds", "model", "person"] | None,
        typer.Option(
            "--judge", help="Who decides about pairs in doubt; a model where one is configured, else a person."
        ),
    ] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="Read hidden files and folders too.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Carry the plan out at once.")] = False,
) -> None:
    """Propose to merge a folder of pages into those there are.

    Pages are compared sub-graph by sub-graph from the top down; each becomes a new page or is merged with the one it
    is. The plan is written to a file as well: change a decision in it (MERGE, CREATE_NEW, DECLINE, another target) and
    hand it back with `recollect apply PLAN --plan-md FILE`. Nothing is changed before. Importing the same folder twice
    changes nothing. Exit code 1 if nothing could be read or something failed.

    \b
    recollect pages import wiki/
    recollect pages import notes/ --scope type --apply
    """

    async def verb(memory: "Engine") -> "tuple[PageImport, Merged | None]":
        with output.progress("Reading and comparing") as progress:
            found = await memory.pages.import_folder(folder, scope=scope, judge=judge, hidden=hidden, progress=progress)
        await memory.pages.write_plan_md(found.plan.id, plan_md)
        if not apply or not found.plan.decisions:
            return found, None
        with output.progress("Merging") as progress:
            return found, await memory.pages.apply(found.plan.id, file=plan_md, progress=progress)

    found, merged = door.ask(verb)
    door.show(
        found, partial(_show_import, merged=merged, file=plan_md), as_json=_import_as_json(found, merged, plan_md)
    )
    if not found.pages or (merged and is_short(merged.outcome)):
        raise typer.Exit(1)


@command(group, "plan")
def plan(
    door: Door,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The plan's id, or its first 4 or more characters.")],
) -> None:
    """Print a plan about pages as plan.md: what becomes of each page, and how far it is."""
    text = door.ask(lambda memory: memory.pages.plan_md(plan))
    door.show(text, lambda text: output.say(text.rstrip("\n")), as_json={"plan_md": text})


@command(group, "export")
def export(
    door: Door,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files are written.")],
    format_: Annotated[
        Literal["wiki", "markdown"] | None,
        typer.Option("--format", "-f", help="Write all pages like this; each as it is kept, else."),
    ] = None,
) -> None:
    """Export all pages as files; a page that nobody has touched is written byte by byte as it came."""
    done = door.ask(lambda memory: memory.pages.export(folder, format=format_), doing="Writing")

    def show(done: "PagesWritten") -> None:
        for line in done.left_out:
            output.say(f"{line.file}: {line.message}")
        output.say(f"{counted(done.pages, 'page')} written to {folder}.")

    left_out = [{"page": line.file, "message": line.message} for line in done.left_out]
    door.show(done, show, as_json={"pages": done.pages, "folder": str(folder), "left_out": left_out})
    if done.left_out:
        raise typer.Exit(1)


# -- showing


def _show_list(found: Stretch) -> None:
    output.table(
        ("node", "type", "version", "updated", "page"),
        [
            (output.short(one.id), one.subtype, str(one.version), output.minute(one.updated_at), one.source_id or "")
            for one in found.items
        ],
    )
    if found.next_cursor:
        output.note(f"There is more: `--cursor {found.next_cursor}` goes on.")
    elif not found.items:
        output.note("There are no pages: `recollect pages import FOLDER` brings some in.")


def _show_page(view: "PageView") -> None:
    known = {
        "page": view.page_id,
        "node": str(view.node.id),
        "title": view.title or "",
        "path": f"{view.path} ({view.format})",
        "state": f"{view.node.status.value}, version {view.versions}, updated {output.minute(view.node.updated_at)}",
        "domains": ", ".join(view.domains),
    }
    output.facts((name, value) for name, value in known.items() if value)
    _show_links("Links", view.links)
    _show_links("Linked from", view.back_links)
    if view.nowhere:
        output.heading("Links that lead nowhere")
        output.entries(("", one) for one in view.nowhere)
    output.heading("History")
    output.entries((output.minute(one.at), output.short(one.plan_id), one.verb, one.reason) for one in view.history)
    output.heading("Text")
    output.say((view.node.text or "").rstrip("\n"))


def _show_links(what: str, links: "tuple[PageLink, ...]") -> None:
    if links:
        output.heading(what)
        output.table(("", "", ""), [(one.relation, one.page_id, one.note or "") for one in links])


def _show_versions(found: "Sequence[Version]") -> None:
    output.table(
        ("version", "at", "plan", "characters", "why"),
        [
            (str(one.number), output.minute(one.at), output.short(one.plan_id), f"{len(one.text):,}", one.reason)
            for one in found
        ],
    )


def _show_import(found: "PageImport", *, merged: "Merged | None", file: Path) -> None:
    id_, summary = output.short(found.plan.id), found.plan.summary
    output.say(f"{counted(found.pages, 'page')} read, in {counted(summary['subgraphs'], 'sub-graph')}.")
    for line in found.lines[:MOST_LINES]:
        output.note(line)
    if len(found.lines) > MOST_LINES:
        output.note(f"And {len(found.lines) - MOST_LINES:,} more: `recollect plan show {id_} --md` lists them.")
    if not found.plan.decisions:
        output.say("There is nothing to do.")
    elif merged is None:
        output.say(
            f"The plan {id_} waits: {summary['created']:,} to create, {summary['merged']:,} to merge. See {file}."
        )
        output.hint(f"`recollect apply {id_} --plan-md {file}` carries it out.")
    else:
        showing.merged(merged)


def _import_as_json(found: "PageImport", merged: "Merged | None", file: Path) -> dict[str, object]:
    return {
        "plan_id": str(found.plan.id),
        "plan_md": str(file),
        "pages": found.pages,
        "summary": found.plan.summary,
        "lines": found.lines,
        "merged": merged,
    }
