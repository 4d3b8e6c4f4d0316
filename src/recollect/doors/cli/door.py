"""What every command has: the options that are the same everywhere, and the way to the engine.

A command is a function whose first parameter is a Door; the others are its own arguments and options. The Door knows
which space and which database are meant and how to show the answer. The engine (database, model) is imported when a
command asks it something, not before: `--help` and `--version` stay quick.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from recollect.doors.cli import output

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.settings import Settings

T = TypeVar("T")
Verb = Callable[["Engine"], Awaitable[T]]
EVERYWHERE = "Options of every command"

SpaceOption = Annotated[
    str | None,
    typer.Option(
        "--space", metavar="SPACE", help="The space to work in; RECOLLECT_SPACE else.", rich_help_panel=EVERYWHERE
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Answer with one JSON document, for programs.", rich_help_panel=EVERYWHERE)
]

# What several commands ask for in the same words.
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many, at most 1,000.")]
Cursor = Annotated[str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the last listing ended.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the history.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return once it is stored, before it is searchable.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """What was said on the command line about where to look and how to answer."""

    space: str | None = None
    json: bool = False
    home: Path | None = None
    database_url: str | None = None

    def settings(self, **given: Any) -> "Settings":
        """The settings in effect; logs follow them from here on."""
        from recollect import logs
        from recollect.settings import Settings

        known = {"space": self.space, "home": self.home, "database_url": self.database_url}
        settings = Settings.load(**known | given)
        # Somebody at a prompt wants the answer; what went wrong on the way is said, what went well is not.
        quiet = settings.origin("log_level") == "default"
        logs.configure(level="warning" if quiet else settings.log_level, format=settings.log_format)
        return settings

    def ask(self, verb: "Verb[T]", *, doing: str | None = None) -> T:
        """Open the memory, do one thing in the space that was named, and close it again.

        What may take long is named by `doing`, for a spinner.
        """
        return ask_memory(self.settings(), verb, doing)

    def ask_all(self, verb: "Verb[T]", *, doing: str | None = None) -> T:
        """The same for what concerns every space, and so must work when the named one does not exist (yet)."""
        return ask_memory(self.settings(space="default"), verb, doing)

    def show(self, answer: T, as_text: Callable[[T], None], *, as_json: object = None) -> None:
        """The answer: as JSON where that was asked for (the very object, unless another is given), else as text."""
        if self.json:
            output.document(answer if as_json is None else as_json)
        else:
            as_text(answer)


def command(app: typer.Typer, name: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function that takes a Door a command, with the options of every command."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, **settings)(_with_door(function))
        return function

    return register


def listing(app: typer.Typer, *, as_list: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function the answer to a group's bare name: `recollect spaces` lists the spaces.

    Where the group's help tells of more than that, `as_list` is the help of the same as a command, `list`.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.callback(invoke_without_command=True)(_with_door(function))
        if as_list:
            app.command("list", help=as_list)(_with_door(function))
        return function

    return register


def ask_memory(settings: "Settings", verb: "Verb[T]", doing: str | None = None) -> T:
    """Open the memory of these settings, do one thing, and close it; the one place where the engine comes in."""
    from recollect.doors import ending
    from recollect.engine.engine import Engine

    async def answer() -> T:
        async with AsyncExitStack() as stack:
            with output.busy("Opening the memory"):
                memory = await stack.enter_async_context(Engine(settings))
            with output.busy(doing) if doing else nullcontext():
                return await verb(memory)

    return ending.run(answer)


def _with_door(function: Callable[..., None]) -> Callable[..., None]:
    """The function as Typer sees it: in place of the Door, the options that make one."""
    _, *own = inspect.signature(function, eval_str=True).parameters.values()

    @functools.wraps(function)
    def call(*, context: typer.Context, space: str | None, json: bool, **given: Any) -> None:
        above = context.obj or Door()
        door = context.obj = replace(above, space=space or above.space, json=json or above.json)
        if context.invoked_subcommand is None:
            function(door, **given)

    shared = [
        _parameter("context", typer.Context),
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own),
        _parameter("space", SpaceOption, None),
        _parameter("json", JsonOption, False),
    ]
    call.__signature__ = inspect.Signature(shared)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
