"""Spaces: tenants that see nothing of each other."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command, listing
from recollect.errors import InvalidInput
from recollect.model import Space

app = typer.Typer()

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The space's name: small letters, digits, - and _.")]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag it registers besides the common ones; repeat for more."),
]
StrictTags = Annotated[
    bool | None, typer.Option("--strict-tags/--open-tags", help="Accept only registered tags, or any.")
]


@listing(app)
def list_(door: Door) -> None:
    """List the spaces: each one a memory of its own."""
    spaces = door.ask_all(lambda memory: memory.spaces())
    door.show(spaces, _show)


@command(app, "add")
def add(door: Door, slug: Slug, tag: Tags = None, strict_tags: StrictTags = None) -> None:
    """Make a space."""
    space = door.ask_all(lambda memory: memory.add_space(slug, _settings(tag, strict_tags)))
    door.show(space, lambda space: _show([space]))
    output.hint(f"Use it by `--space {space.slug}`, or by RECOLLECT_SPACE={space.slug}.")


@command(app, "set")
def set_(door: Door, slug: Slug, tag: Tags = None, strict_tags: StrictTags = None) -> None:
    """Change what a space accepts. The tags you give replace those it registered before."""
    settings = _settings(tag, strict_tags)
    if not settings:
        raise InvalidInput("There is nothing to set: give --tag, --strict-tags or --open-tags.")
    space = door.ask_all(lambda memory: memory.set_space(slug, settings))
    door.show(space, lambda space: _show([space]))


def _settings(tags: list[str] | None, strict_tags: bool | None) -> dict[str, Any]:
    given = {"tags": tags, "strict_tags": strict_tags}
    return {name: value for name, value in given.items() if value is not None}


def _show(spaces: Sequence[Space]) -> None:
    output.table(
        ("space", "made", "embedder", "tags"),
        [(space.slug, output.day(space.created_at), space.embedding_model or "-", _tags(space)) for space in spaces],
    )


def _tags(space: Space) -> str:
    own = ", ".join(space.settings.get("tags", ()))
    if not space.settings.get("strict_tags"):
        return f"any, suggested {own}" if own else "any"
    return f"only the registered, and {own}" if own else "only the registered"
