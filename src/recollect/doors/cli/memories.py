"""Memories: add, list, show, edit, correct, forget and restore, exclude and include, and their history."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.doors.cli import care, output, values
from recollect.doors.cli.door import Cursor, Door, Limit, NoWait, Reason, command
from recollect.errors import InvalidInput
from recollect.memories.rules.tags import REGISTERED_TAGS
from recollect.model import Added, ContentType, Metadata, NewMemory, Node, NodeFilter, Page, Status
from recollect.plan import HistoryEntry
from recollect.plans.rules.plan_text import difference
from recollect.wording import LONGEST_PAGE, counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.memories.edit import ManyChanged

app = typer.Typer()
changing = typer.Typer()
PANEL = "Remember and look"
CHANGING = "Change, with a history"

Id = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its first 4 or more characters.")]


def suggested_tags(beginning: str) -> list[str]:
    """For completion: the registered tags. Any other word is a tag too."""
    return sorted(tag for tag in REGISTERED_TAGS if tag.startswith(beginning))


Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag, any word; repeat for more.", autocompletion=suggested_tags),
]
Importance = Annotated[float | None, typer.Option("--importance", metavar="0..1", help="How much it matters.")]
JsonText = Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="Metadata, as a JSON object.")]

# What to list and what to recall is narrowed by the same options.
OnlyTypes = Annotated[list[ContentType] | None, typer.Option("--type", "-t", help="Only this; repeat for more.")]
OnlyTags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Only with all these tags.")]
OnlyThread = Annotated[str | None, typer.Option("--thread", metavar="NAME", help="Only this thread.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Not older: 2026-11-15, or 7d for ago.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Not newer; a day counts whole.")]
Full = Annotated[bool, typer.Option("--full", help="The whole of every text.")]


@command(app, "add", rich_help_panel=PANEL)
def add(
    door: Door,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="What to remember; - reads it from stdin.")],
    type_: Annotated[ContentType, typer.Option("--type", "-t", help="What kind of text it is.")] = ContentType.NOTE,
    tag: Tags = None,
    importance: Importance = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="The conversation or document it belongs to.")
    ] = None,
    metadata: JsonText = None,
    created_at: Annotated[
        str | None,
        typer.Option("--created-at", metavar="TIME", help="When it was said: 2026-11-15T09:30:00Z, or 2d for ago."),
    ] = None,
    no_wait: NoWait = False,
) -> None:
    """Remember a text, for good.

    Prints its id, and that it is searchable. The text never changes; metadata and importance can.

    \b
    recollect add Linh prefers tea, never coffee
    recollect add --tag lesson --importance 0.9 "Run the migration before the deploy"
    git log -1 | recollect add --type log -
    """
    memory = NewMemory(
        text=values.text_of(text),
        subtype=type_,
        metadata=_metadata(values.json_object("--metadata", metadata), tag or ()),
        importance=importance,
        thread=thread,
        created_at=values.past("--created-at", created_at),
    )
    node, added = door.ask(partial(_add, memory=memory, wait=not no_wait))
    searchable = not no_wait and not added.postponed
    door.show(
        node,
        lambda node: output.table(("", ""), [(str(node.id), "searchable" if searchable else "stored")]),
        as_json={**output.plain(node), "searchable": searchable, "notes": [note.message for note in added.notes]},
    )
    for note in added.notes:
        output.note(note.message)
    for why in added.postponed.values():
        output.note(f"It is stored, and found by its words alone so far ({why}): `recollect work` tries again.")


@command(app, "list", rich_help_panel=PANEL)
def list_(
    door: Door,
    type_: OnlyTypes = None,
    tag: OnlyTags = None,
    thread: OnlyThread = None,
    since: Since = None,
    until: Until = None,
    archived: Annotated[bool, typer.Option("--archived", help="What was forgotten, in place of what is known.")] = (
        False
    ),
    excluded: Annotated[bool, typer.Option("--excluded", help="Only what is kept out of recall.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="All of them, however many.")] = False,
    full: Full = False,
) -> None:
    """List what is remembered, newest first."""
    node_filter = NodeFilter(
        subtypes=tuple(type_ or ()),
        statuses=(Status.ARCHIVED,) if archived else (Status.ACTIVE,),
        excluded=True if excluded else None,
        thread=thread,
        created_from=values.past("--since", since),
        created_to=values.end_of("--until", until),
        metadata={"tags": tag} if tag else {},
    )
    if all_:
        page = door.ask(partial(_all_pages, node_filter=node_filter, cursor=cursor))
    else:
        page = door.ask(lambda memory: memory.list(node_filter, limit=limit, cursor=cursor))
    door.show(page, partial(_show_page, full=full))


@command(app, "show", rich_help_panel=PANEL)
def show(door: Door, id_: Id) -> None:
    """Show one memory: its text, and all that is known about it."""
    node = door.ask(lambda memory: memory.get(id_))
    door.show(node, _show_node)


@command(changing, "edit", rich_help_panel=CHANGING)
def edit(
    door: Door,
    id_: Id,
    metadata: JsonText = None,
    replace_: Annotated[
        bool, typer.Option("--replace", help="Put the new metadata in place of the old, not into it.")
    ] = False,
    importance: Importance = None,
    if_version: Annotated[
        int | None, typer.Option("--if-version", metavar="N", help="Only if it is still at this version.")
    ] = None,
) -> None:
    """Change the metadata or the importance of a memory. Its text is permanent.

    The fields you give are put into the metadata it has; null takes a field away.

    \b
    recollect edit 3f2a --metadata '{"tags": ["lesson"], "type": null}'
    """
    fields = values.json_object("--metadata", metadata)
    if fields is None and importance is None:
        raise InvalidInput("There is nothing to change: give --metadata or --importance.")
    node = door.ask(
        lambda memory: memory.edit(
            id_, metadata=fields, merge=not replace_, importance=importance, if_version=if_version
        )
    )
    door.show(node, partial(_done, "Changed"))
    _hint_history(node)


@command(changing, "correct", rich_help_panel=CHANGING)
def correct(
    door: Door,
    id_: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="The text as it should be; - reads it from stdin.")],
    reason: Reason = None,
) -> None:
    """Put a corrected text in the place of a memory's. The old one stays in its history, and `undo` brings it back.

    It keeps its metadata, importance and thread.

    \b
    recollect correct 3f2a The spare key is with Mr Adeyemi in flat 5
    """
    whole = values.text_of(text)
    node = door.ask(lambda memory: memory.correct(id_, whole, reason=reason))
    door.show(node, partial(_done, "Corrected"))
    _hint_history(node)


@command(changing, "forget", rich_help_panel=CHANGING)
def forget(
    door: Door,
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="The memory's id, or its first 4 or more characters; or several."),
    ],
    reason: Reason = None,
) -> None:
    """Forget a memory, or several: out of recall, but kept. `recollect restore` brings it back.

    Several are forgotten all or none, by one plan, and `recollect undo` brings all of them back.
    """
    if len(ids) == 1:
        node = door.ask(lambda memory: memory.forget(ids[0], reason=reason))
        door.show(node, partial(_done, "Forgot"))
        output.hint(f"`recollect restore {output.short(node.id)}` brings it back.")
        return
    many = door.ask(partial(_forget_many, references=ids, reason=reason))
    door.show(many, lambda many: output.say(f"Forgot {counted(many.changed, 'memory', 'memories')}."))
    if many.plan_id is not None:
        output.hint(f"`recollect undo {output.short(many.plan_id)}` brings them back.")


@command(changing, "restore", rich_help_panel=CHANGING)
def restore(
    door: Door,
    what: Annotated[
        str, typer.Argument(metavar="ID|FILE", help="The id of a forgotten memory, or a file made by `backup`.")
    ],
    reason: Reason = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="FILE only: replace the memories that are there now.")
    ] = False,
) -> None:
    """Bring back a forgotten memory, or a backup of everything.

    A name that ends in .dump, holds a / or is a file here is taken for a backup, and everything in the database is
    replaced by what it holds; anything else for the id of a memory. Write ./NAME where a file is named like an id.

    \b
    recollect restore 3f2a
    recollect restore monday.dump --overwrite
    """
    if _names_file(what):
        care.restore_backup(door, Path(what), overwrite=overwrite)
        return
    node = door.ask(lambda memory: memory.restore(what, reason=reason))
    door.show(node, partial(_done, "Restored"))
    _hint_history(node)


@command(changing, "exclude", rich_help_panel=CHANGING)
def exclude(door: Door, id_: Id, reason: Reason = None) -> None:
    """Keep a memory out of recall without forgetting it. `recollect include` lets it in again."""
    node = door.ask(lambda memory: memory.exclude(id_, reason=reason))
    door.show(node, partial(_done, "Excluded"))


@command(changing, "include", rich_help_panel=CHANGING)
def include(door: Door, id_: Id, reason: Reason = None) -> None:
    """Let an excluded memory into recall again."""
    node = door.ask(lambda memory: memory.include(id_, reason=reason))
    door.show(node, partial(_done, "Included"))


@command(changing, "history", rich_help_panel=CHANGING)
def history(
    door: Door,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of a memory or an edge, or its beginning.")],
) -> None:
    """Show what happened to a memory or an edge, and by which plan; oldest first."""
    entries = door.ask(lambda memory: memory.history(id_))
    door.show(entries, show_history)
    if any(entry.plan_id for entry in entries):
        output.hint("`recollect undo PLAN` undoes a change.")


# -- asking


async def _add(engine: "Engine", *, memory: NewMemory, wait: bool) -> tuple[Node, Added]:
    added = await engine.add_many([memory], wait=wait, atomic=True)
    return await engine.get(added.ids[0]), added


async def _forget_many(engine: "Engine", *, references: Sequence[str], reason: str | None) -> "ManyChanged":
    ids = [await engine.node_id(reference) for reference in references]
    return await engine.change_many(ids, archive=True, reason=reason)


async def _all_pages(engine: "Engine", *, node_filter: NodeFilter, cursor: str | None) -> Page:
    page = await engine.list(node_filter, limit=LONGEST_PAGE, cursor=cursor)
    items = [*page.items]
    while page.next_cursor is not None:
        page = await engine.list(node_filter, limit=LONGEST_PAGE, cursor=page.next_cursor)
        items += page.items
    return Page(items=tuple(items), next_cursor=None)


def _metadata(given: Metadata | None, tags: Sequence[str]) -> Metadata:
    """Metadata as it was given, with the tags added; it came by the command line unless it says otherwise."""
    metadata: dict[str, Any] = {"source": "cli", **(given or {})}
    given_tags = metadata.get("tags", [])
    if tags and isinstance(given_tags, list):
        metadata["tags"] = list(dict.fromkeys([*given_tags, *tags]))
    return metadata


def _names_file(reference: str) -> bool:
    """Whether `restore` was given a backup: a file's name rather than an id."""
    could_be_id = set(reference) <= set("0123456789abcdefABCDEF-")
    return reference.endswith(".dump") or "/" in reference or (not could_be_id and Path(reference).is_file())


# -- showing


def _done(verb: str, node: Node) -> None:
    output.table(("", "", ""), [(verb, output.short(node.id), node.text or node.name or "")])


def _hint_history(node: Node) -> None:
    output.hint(f"`recollect history {output.short(node.id)}` shows what happened to it, and how to undo that.")


def _show_page(page: Page, *, full: bool = False) -> None:
    output.hits(
        ("id", "date", "type", "text"),
        [(output.short(node.id), output.day(node.created_at), node.subtype, _marked(node)) for node in page.items],
        full=full,
    )
    if page.next_cursor:
        output.note(f"There is more: `--cursor {page.next_cursor}` goes on, `--all` lists everything.")
    elif not page.items:
        output.note("There is nothing to list.")


def _marked(node: Node) -> str:
    """The text, with what keeps it out of recall in front."""
    marks = "(excluded) " if node.exclude else ""
    return marks + (node.text or node.name or "")


def _show_node(node: Node) -> None:
    state = node.status.value + (", excluded from recall" if node.exclude else "")
    facts = {
        "id": str(node.id),
        "type": node.subtype,
        "state": state,
        "created": output.minute(node.created_at),
        "updated": output.minute(node.updated_at),
        "version": str(node.version),
        "importance": "" if node.importance is None else f"{node.importance:g}",
        "thread": "" if node.thread is None else f"{node.thread}, position {node.position}",
        "source": "" if node.source_id is None else f"{node.source}: {node.source_id}",
        "merged into": "" if node.merged_into is None else str(node.merged_into),
        "checksum": node.checksum or "",
        **{f"metadata.{name}": output.compact(value) for name, value in node.metadata.items()},
    }
    output.facts((name, value) for name, value in facts.items() if value)
    output.say("\n" + (node.text or node.name or ""))


def show_history(entries: Sequence[HistoryEntry]) -> None:
    output.table(
        ("when", "what", "plan", "why"),
        [
            (
                output.minute(entry.at),
                entry.verb,
                output.short(entry.plan_id),
                entry.reason + difference(entry.before, entry.after),
            )
            for entry in entries
        ],
        wrap=True,
    )
