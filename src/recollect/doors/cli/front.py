"""The first screen, and the words that people try first.

`recollect --help` opens with the ten commands that are used most, each as it is typed; the others follow by subject.
Some words lead to a command of another name, as people expect them to; a word that is nearly a command gets a hint.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import pairwise, takewhile
from typing import Any

import typer
from typer.core import TyperGroup

from recollect.doors.cli import output
from recollect.errors import InvalidInput

MOST_USED = {
    "add": ("Linh prefers tea", "remember a text"),
    "recall": ("what does Linh drink", "find what is known, best first"),
    "list": ("", "what is remembered, newest first"),
    "show": ("3f2a", "one memory, and all about it"),
    "forget": ("3f2a", "out of recall, but kept"),
    "import": ("notes/", "Markdown, text, JSONL or CSV files"),
    "plan": ("prune", "see what a tidying would do"),
    "apply": ("7f3a", "carry out a plan"),
    "undo": ("7f3a", "undo a plan"),
    "serve": ("", "the web page and the API"),
}
ALSO_KNOWN_AS = {
    "remember": "add",
    "search": "recall",
    "find": "recall",
    "delete": "forget",
    "get": "show",
}
HELP = "help"
LONGEST_SENTENCE = 200


class CommandGroup(TyperGroup):
    """A group of commands that says so in one sentence when there is no such command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise InvalidInput(_no_such(args[0], ctx.command_path, sorted(self.commands)))
        name, command, rest = super().resolve_command(ctx, args)
        _check_values(getattr(command, "params", ()), rest)
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_said(self.commands)])


def _check_values(params: Iterable[Any], given: Iterable[str]) -> None:
    """An option in the place of a value is a value that was forgotten, not one that is meant."""
    options = [param for param in params if param.param_type_name == "option"]
    names = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    with_value = {name for option in options if not option.is_flag for name in option.opts}
    for name, value in pairwise(takewhile(lambda word: word != "--", given)):
        if name in with_value and value in names:
            raise InvalidInput(
                f"{name} needs a value after it, and {value} is an option: {name}={value} if you mean it."
            )


class Front(CommandGroup):
    """All of `recollect`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        first, *rest = args
        if first == HELP and not rest:
            output.say(ctx.get_help())
            raise typer.Exit
        if first == HELP:
            first, *rest = [*rest, "--help"]
        return super().resolve_command(ctx, [ALSO_KNOWN_AS.get(first, first), *rest])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.format_help_text(ctx, formatter)
        self._format_most_used(formatter)
        for panel, rows in self._by_subject().items():
            with formatter.section(panel):
                formatter.write_dl(rows)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands stand first, not below the options."""

    def _format_most_used(self, formatter: Any) -> None:
        rows = [(f"recollect {name} {example}".strip(), about) for name, (example, about) in MOST_USED.items()]
        with formatter.section("Used most"):
            formatter.write_dl(rows, col_max=40)
        words = ", ".join(f"{word} ({name})" for word, name in ALSO_KNOWN_AS.items())
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"Also understood: {words}. `recollect help COMMAND` tells all about a command.")

    def _by_subject(self) -> dict[str, list[tuple[str, str]]]:
        """The other commands with the first sentence about each, by subject."""
        by_subject: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, about in _said(self.commands):
            if name not in MOST_USED:
                panel = getattr(self.commands[name], "rich_help_panel", None) or "More"
                by_subject[panel].append((name, about))
        return by_subject


def _said(commands: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What each does, in its first sentence, whole."""
    for name, command in commands.items():
        if not command.hidden:
            yield name, command.get_short_help_str(LONGEST_SENTENCE)


def _no_such(word: str, path: str, commands: list[str]) -> str:
    names = commands if path.count(" ") else [*commands, *ALSO_KNOWN_AS]
    near = [f"`{path} {name}`" for name in get_close_matches(word, names, n=2)]
    meant = f"did you mean {' or '.join(near)}?" if near else f"`{path} --help` lists those there are."
    return f"`{path}` has no command {word!r}: {meant}"
