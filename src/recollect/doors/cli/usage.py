"""What is wrong with a command as it was typed, in one sentence that says what to do.

Typer finds what is wrong, and speaks of invalid values and unexpected extra arguments; values it checks by pydantic,
whose words are for programmers. Here all of that is said as the rest of the command line speaks.
"""

import re
from difflib import get_close_matches
from typing import Any

import typer

from recollect.wording import cannot_be

ALIKE = 0.7
EXTRA = re.compile(r"unexpected extra argument\(?s?\)? \((.*)\)", re.DOTALL)


def sentence(problem: typer.TyperException) -> str:
    context = getattr(problem, "ctx", None)
    path = context.command_path if context else "recollect"
    return _what(problem, path) or f"{problem.format_message().strip().rstrip('.')} (see `{path} --help`)."


def _what(problem: Any, path: str) -> str | None:
    kind = type(problem).__name__
    if kind == "NoSuchOption":
        return _no_such_option(problem.option_name, problem.possibilities or (), path)
    if kind == "BadOptionUsage":
        takes_none = "does not take" in problem.message
        return f"{problem.option_name} {'takes no value: leave out the =' if takes_none else 'needs a value after it'}."
    if kind == "MissingParameter" and problem.param is not None:
        return f"{_name(problem.param)} is missing: write it as in `{_example(problem.ctx, path)}`."
    if kind == "BadParameter" and problem.param is not None:
        return f"{_wrong_value(problem)} (see `{path} --help`)."
    if extra := EXTRA.search(problem.format_message()):
        return f"`{path}` does not take {extra[1]!r} as well: put quotes round a text, or see `{path} --help`."
    return None


def _no_such_option(name: str, near: Any, path: str) -> str:
    if meant := get_close_matches(name, near, cutoff=ALIKE):  # click names also what has little in common
        return f"`{path}` has no option {name}: did you mean {' or '.join(sorted(meant))}?"
    return f"`{path}` has no option {name}: see `{path} --help`, and put -- before a text that begins with a dash."


def _wrong_value(problem: Any) -> str:
    cause = problem.__cause__
    if hasattr(cause, "errors"):
        return cannot_be(_name(problem.param), cause.errors()[0])
    return f"{_name(problem.param)}: {problem.message.strip().rstrip('.')}"


def _name(param: Any) -> str:
    """`--limit` for an option, `TEXT` for an argument."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.name.upper())


def _example(context: Any, path: str) -> str:
    """A command of the help, as one would type it; else the names of what it takes."""
    for line in (context.command.help or "").splitlines():
        if line.strip().startswith(f"{path} "):
            return str(line.strip())
    needed = [
        _name(param) for param in context.command.params if param.param_type_name == "argument" and param.required
    ]
    return " ".join([path, *needed])
