"""The command line door: one command a verb, each in the file of its subject.

`run` is what `recollect` starts. Whatever goes wrong on purpose becomes one sentence on stderr and an exit code that a
script can act on; a traceback means a fault of ours.
"""

import io
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from recollect import __version__
from recollect.doors.cli import (
    agents,
    care,
    cases,
    concepts,
    config,
    db,
    demo,
    graph,
    jobs,
    keys,
    links,
    memories,
    moving,
    notify,
    output,
    pages,
    plans,
    questions,
    reasoning,
    recall,
    schedules,
    server,
    spaces,
    usage,
)
from recollect.doors.cli.door import Door, JsonOption, SpaceOption
from recollect.doors.cli.front import CommandGroup, Front
from recollect.errors import (
    Conflict,
    DatabaseProblem,
    DuplicateText,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    NotInstalled,
    ProviderProblem,
    RecollectError,
)

EXIT_CODES = {
    0: "done",
    1: "done, but: not healthy, faults were found, or some items were refused",
    2: "the command or a value in it cannot be accepted",
    3: "not found",
    4: "a conflict: the same text is there already, or the world has moved on",
    5: "not allowed",
    6: "the database cannot be used",
    7: "an embedder or another provider did not do its work",
    130: "interrupted",
}
# The nearest class counts.
CODES: dict[type, int] = {
    RecollectError: 1,
    InvalidInput: 2,
    NotFound: 3,
    Conflict: 4,
    DuplicateText: 4,
    NotAuthenticated: 5,
    NotAllowed: 5,
    DatabaseProblem: 6,
    ProviderProblem: 7,
    NotInstalled: 7,
}
EPILOG = (
    "Exit codes: "
    + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    + ".\n\nOutput: tables on a terminal, tab-separated lines elsewhere, one JSON document with --json (on standard "
    "error, where something went wrong: its code and message). NO_COLOR is honoured. Settings are environment "
    "variables: `recollect config` lists them."
)
INTERRUPTED, ENDED = 130, 143


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    _prepare_streams()
    with _sigterm_as_interrupt() as came:
        code = _run(sys.argv[1:] if arguments is None else arguments)
    sys.exit(ENDED if came and code == INTERRUPTED else code)


def build(*, for_a_terminal: bool = False) -> typer.Typer:
    """The whole command line; its help is drawn with boxes for a terminal only."""
    app = typer.Typer(cls=Front, rich_markup_mode="rich" if for_a_terminal else None, epilog=EPILOG)
    app.callback(invoke_without_command=True)(_root)
    parts = (memories.app, reasoning.app, recall.app, memories.changing, plans.app, links.app, moving.app)
    for part in (*parts, concepts.app, questions.app, jobs.app, care.app):
        app.add_typer(part)
    app.add_typer(reasoning.group, name="recalls", cls=CommandGroup, rich_help_panel=memories.PANEL)
    app.add_typer(cases.app, name="cases", cls=CommandGroup, rich_help_panel=cases.PANEL)
    app.add_typer(plans.group, name="plan", rich_help_panel=plans.PANEL)
    app.add_typer(graph.app, name="graph", cls=CommandGroup, rich_help_panel=graph.PANEL)
    app.add_typer(concepts.group, name="concepts", cls=CommandGroup, rich_help_panel=concepts.PANEL)
    app.add_typer(concepts.never_merge, name="never-merge", cls=CommandGroup, rich_help_panel=concepts.PANEL)
    app.add_typer(pages.group, name="pages", cls=CommandGroup, rich_help_panel=memories.PANEL)
    app.add_typer(spaces.app, name="spaces", cls=CommandGroup, rich_help_panel="Spaces and keys")
    app.add_typer(keys.app, name="keys", cls=CommandGroup, rich_help_panel="Spaces and keys")
    app.add_typer(jobs.group, name="jobs", cls=CommandGroup, rich_help_panel=care.PANEL)
    app.add_typer(schedules.app, name="schedules", cls=CommandGroup, rich_help_panel=care.PANEL)
    app.add_typer(db.app, name="db", cls=CommandGroup, rich_help_panel=care.PANEL)
    app.add_typer(notify.app, name="notify", cls=CommandGroup, rich_help_panel=care.PANEL)
    app.add_typer(server.app)
    app.add_typer(agents.app, name="mcp", cls=CommandGroup, rich_help_panel=agents.PANEL)
    for part in (config.app, demo.app):
        app.add_typer(part)
    return app


@cache
def _built(*, for_a_terminal: bool) -> TyperGroup:
    """Once a process and kind of output: it takes longer than many a command."""
    commands = get_command(build(for_a_terminal=for_a_terminal))
    assert isinstance(commands, TyperGroup)
    return commands


def exit_code(problem: RecollectError) -> int:
    return next(CODES[kind] for kind in type(problem).__mro__ if kind in CODES)


def _root(
    context: typer.Context,
    space: SpaceOption = None,
    json: JsonOption = False,
    home: Annotated[
        Path | None,
        typer.Option("--home", metavar="DIRECTORY", help="Where the database inside lives; RECOLLECT_HOME."),
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option("--database-url", metavar="URL", help="A PostgreSQL of yours instead; RECOLLECT_DATABASE_URL."),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A memory that remembers, recalls, tidies itself, and can undo every tidying.

    Ids can be shortened to their first 4 or more characters. `recollect demo` shows it at work.
    """
    context.obj = Door(space=space, json=json, home=home, database_url=database_url)
    if version:
        output.say(f"recollect {__version__}")
    elif context.invoked_subcommand is None:
        output.say(context.get_help())


def _run(arguments: Sequence[str]) -> int:
    """The exit code of a command, with the sentence said that belongs to it."""
    try:
        _refuse_broken_text(arguments)
        commands = _built(for_a_terminal=sys.stdout.isatty())
        code = commands.main(args=[*arguments], prog_name="recollect", standalone_mode=False)
        output.finish()
    except RecollectError as problem:
        return _say(problem, arguments)
    except BaseExceptionGroup as group:
        # Work done side by side fails side by side; its first problem says it all.
        problems = list(_leaves(group))
        if isinstance(problems[0], RecollectError):
            return _say(problems[0], arguments)
        raise
    except typer.TyperException as problem:
        return _say(InvalidInput(usage.sentence(problem)), arguments)
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _say(problem: RecollectError, arguments: Sequence[str]) -> int:
    """One sentence for people; for programs, who asked for JSON, the document that the REST door sends."""
    if "--json" in takewhile(lambda argument: argument != "--", arguments):
        output.complain_as_json({"code": problem.code, "message": problem.message, **problem.more})
    else:
        output.complain(problem.message)
    return exit_code(problem)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for problem in group.exceptions:
        if isinstance(problem, BaseExceptionGroup):
            yield from _leaves(problem)
        else:
            yield problem


def _refuse_broken_text(arguments: Sequence[str]) -> None:
    """Bytes that are no UTF-8 come in as lone surrogates; only the name of a file may hold such."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument) and not Path(argument).exists():
            shown = argument.encode(errors="surrogateescape").decode(errors="replace")
            raise InvalidInput(f"{shown!r} is not UTF-8 text: convert it first.")


def _prepare_streams() -> None:
    """A terminal that lacks a character gets its code, not an error; whoever has closed them hears nothing."""
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BytesIO())
    sys.stderr = sys.stderr or io.TextIOWrapper(io.BytesIO())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def _sigterm_as_interrupt() -> Iterator[list[int]]:
    """Let SIGTERM end a command the way Ctrl-C does, so that the database inside is stopped; tells whether it came.

    Not by raising SIGINT: that one is ignored in whatever a shell script starts with `&`.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
