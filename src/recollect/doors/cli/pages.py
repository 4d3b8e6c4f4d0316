"""Pages: import a wiki, look at pages and what changed in them, export them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.doors.cli import output, showing
from recollect.doors.cli.door import Cursor, Door, Limit, command, listing
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


# -- looking


@listing(group, as_list="List pages, newest first.")
def list_pages(door: Door, type_: Type = None, limit: Limit = 50, cursor: Cursor = None) -> None:
    """Keep a wiki: import pages, merge them, look at them, export them.

    \b
    recollect pages import wiki/        propose to merge a folder, and write plan.md
    recollect apply 7f3a --plan-md plan.md
    recollect pages show Principle:Model_Loading
    recollect pages                     list the pages, newest first
    """
    stretch = door.ask(lambda memory: memory.pages.list(type=type_, limit=limit, cursor=cursor))
    door.show(stretch, _show_list)


@command(group, "show")
def show(door: Door, page: PageName) -> None:
    """Show a page: its text, its links and back-links, and what happened to it."""
    view = door.ask(lambda memory: memory.pages.get(page))
    door.show(view, _show_page)


@command(group, "versions")
def versions(door: Door, page: PageName) -> None:
    """List the versions of a page, oldest first: when, why and by which plan."""
    listed = door.ask(lambda memory: memory.pages.versions(page))
    door.show(listed, _show_versions)


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
    changes = door.ask(lambda memory: memory.pages.diff(page, first, second))
    door.show(changes, output.say, as_json={"page": page, "diff": changes})


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
            imported = await memory.pages.import_folder(
                folder, scope=scope, judge=judge, hidden=hidden, progress=progress
            )
        await memory.pages.write_plan_md(imported.plan.id, plan_md)
        if not apply or not imported.plan.decisions:
            return imported, None
        with output.progress("Merging") as progress:
            return imported, await memory.pages.apply(imported.plan.id, file=plan_md, progress=progress)

    imported, merged = door.ask(verb)
    door.show(
        imported, partial(_show_import, merged=merged, file=plan_md), as_json=_import_as_json(imported, merged, plan_md)
    )
    if not imported.pages or (merged and is_short(merged.outcome)):
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


def _show_list(stretch: Stretch) -> None:
    output.table(
        ("node", "type", "version", "updated", "page"),
        [
            (
                output.short(page.id),
                page.subtype,
                str(page.version),
                output.minute(page.updated_at),
                page.source_id or "",
            )
            for page in stretch.items
        ],
    )
    if stretch.next_cursor:
        output.note(f"There is more: `--cursor {stretch.next_cursor}` goes on.")
    elif not stretch.items:
        output.note("There are no pages: `recollect pages import FOLDER` brings some in.")


def _show_page(view: "PageView") -> None:
    facts = {
        "page": view.page_id,
        "node": str(view.node.id),
        "title": view.title or "",
        "path": f"{view.path} ({view.format})",
        "state": f"{view.node.status.value}, version {view.versions}, updated {output.minute(view.node.updated_at)}",
        "domains": ", ".join(view.domains),
    }
    output.facts((name, value) for name, value in facts.items() if value)
    _show_links("Links", view.links)
    _show_links("Linked from", view.back_links)
    if view.nowhere:
        output.heading("Links that lead nowhere")
        output.entries(("", target) for target in view.nowhere)
    output.heading("History")
    output.entries(
        (output.minute(entry.at), output.short(entry.plan_id), entry.verb, entry.reason) for entry in view.history
    )
    output.heading("Text")
    output.say((view.node.text or "").rstrip("\n"))


def _show_links(title: str, links: "tuple[PageLink, ...]") -> None:
    if links:
        output.heading(title)
        output.table(("", "", ""), [(link.relation, link.page_id, link.note or "") for link in links])


def _show_versions(listed: "Sequence[Version]") -> None:
    output.table(
        ("version", "at", "plan", "characters", "why"),
        [
            (
                str(version.number),
                output.minute(version.at),
                output.short(version.plan_id),
                f"{len(version.text):,}",
                version.reason,
            )
            for version in listed
        ],
    )


def _show_import(imported: "PageImport", *, merged: "Merged | None", file: Path) -> None:
    id_, summary = output.short(imported.plan.id), imported.plan.summary
    output.say(f"{counted(imported.pages, 'page')} read, in {counted(summary['subgraphs'], 'sub-graph')}.")
    for line in imported.lines[:MOST_LINES]:
        output.note(line)
    if len(imported.lines) > MOST_LINES:
        output.note(f"And {len(imported.lines) - MOST_LINES:,} more: `recollect plan show {id_} --md` lists them.")
    if not imported.plan.decisions:
        output.say("There is nothing to do.")
    elif merged is None:
        output.say(
            f"The plan {id_} waits: {summary['created']:,} to create, {summary['merged']:,} to merge. See {file}."
        )
        output.hint(f"`recollect apply {id_} --plan-md {file}` carries it out.")
    else:
        showing.merged(merged)


def _import_as_json(imported: "PageImport", merged: "Merged | None", file: Path) -> dict[str, object]:
    return {
        "plan_id": str(imported.plan.id),
        "plan_md": str(file),
        "pages": imported.pages,
        "summary": imported.plan.summary,
        "lines": imported.lines,
        "merged": merged,
    }
