"""SIGTERM ends every command, though SIGINT is ignored, as it is for whatever a shell script starts with `&`.

The commands are those that the command line itself lists: every fifth, and all of them with TEST_TIMES=2 or more in the
environment; that all of them run in the same way is the last test. Each is brought to the point where it waits for the
database (whose lock the test holds), told to end, and must do so with its exit code and without a word. Waits of other
kinds (stdin, a question, embedding) are in test_ending.
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest
from typer.main import get_command

import recollect.doors
from recollect.doors.cli.app import ENDED, build
from recollect.store.prepare import PREPARE_LOCK
from tests import programs
from tests.doors import test_cli_support as support
from tests.doors.test_ending import IGNORING_CTRL_C
from tests.waiting import HANG_SECONDS, until_it_holds

own_database = support.own_database

ALL_OF_THEM = int(os.environ.get("TEST_TIMES", "1")) > 1
AT_ONCE = 26
NEEDS_NO_DATABASE = {
    *(("config",), ("notify",), ("notify", "test"), ("plan", "policies")),
    *(("mcp", "install"), ("mcp", "uninstall")),
}
ITS_OWN_DATABASE = {("demo",)}
WORD = "abcd"
# What a command must be told besides its required arguments, or other than any word.
GIVEN = {
    ("cases", "outcome"): ["--success"],
    ("edit",): ["--importance", "0.5"],
    ("graph", "picture"): [WORD, "--out", "new.svg"],
    ("never-merge", "add"): [WORD, "efgh"],
    ("schedules", "set"): ["--every", "1440"],
    ("spaces", "set"): ["--open-tags"],
}
# Python itself, when a KeyboardInterrupt came by within a string that was executed (a dataclass is made so), ends by
# SIGINT whatever exit code it is given, if it was started with -m.
TOLD_WITHIN_A_STRING = """
import os, signal
from recollect.doors.cli import app
from recollect.__main__ import main
app.build = lambda **_: exec("while True: os.kill(os.getpid(), signal.SIGTERM)")
main()
"""
LOOP = r"\b(anyio|asyncio)\.run\(|\.run_until_complete\("
EXIT_CODES = {"serve": 0, "mcp": 0}  # else ENDED


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be typed, with what the command line knows about it."""
    yield from _below(get_command(build()), ())


def _below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    parts = getattr(command, "commands", {})
    if path and (not parts or command.invoke_without_command):
        yield path, command
    for name, part in parts.items():
        yield from _below(part, (*path, name))


def typed(path: tuple[str, ...], command: Any, place: Path) -> list[str]:
    """The command with whatever it requires."""
    words = [word for one in command.params if one.required for word in _value(one, place)]
    return [*path, *words, *GIVEN.get(path, ())]


def _value(parameter: Any, place: Path) -> list[str]:
    values = {"paths": place / "a.txt", "folder": place, "file": place / "new.out", "energy": "0.5", "policy": "cases"}
    value = str(values.get(parameter.name, WORD))
    return [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]


async def until_all_wait(url: str, children: "Mapping[str, subprocess.Popen[bytes]]") -> None:
    """Or have ended before, which their exit code will tell."""
    connection = await asyncpg.connect(url)

    async def all_wait() -> bool:
        rows = await connection.fetch("SELECT application_name FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        waiting = {row[0] for row in rows}
        return all(name in waiting or child.poll() is not None for name, child in children.items())

    try:
        await until_it_holds(all_wait)
    finally:
        await connection.close()


@pytest.fixture
def locked_database(own_database: str) -> Iterator[str]:
    """A database that is being prepared by somebody, and so keeps everybody waiting."""
    with anyio.from_thread.start_blocking_portal() as portal:
        connection = portal.call(asyncpg.connect, own_database)
        portal.call(connection.execute, f"SELECT pg_advisory_lock({PREPARE_LOCK})")
        yield own_database
        portal.call(connection.close)


def test_S01_SIGTERM_ends_every_command_though_SIGINT_is_ignored(locked_database: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a note")
    known = dict(commands())
    assert len(known) > 100
    every = sorted(set(known) - NEEDS_NO_DATABASE - ITS_OWN_DATABASE)
    chosen = every if ALL_OF_THEM else sorted({*every[::5], ("mcp",), ("serve",)})
    ends: dict[str, tuple[int | None, str]] = {}
    for first in range(0, len(chosen), AT_ONCE):
        some = {".".join(path): typed(path, known[path], tmp_path) for path in chosen[first : first + AT_ONCE]}
        ends |= told_to_end_while_they_wait(some, locked_database, tmp_path)
    assert {name: end for name, end in ends.items() if end != (EXIT_CODES.get(name, ENDED), "")} == {}


def test_S01_SIGTERM_while_a_command_is_being_built(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(TOLD_WITHIN_A_STRING)
    end = subprocess.run(
        [sys.executable, "-m", "told", "config"], cwd=tmp_path, capture_output=True, timeout=HANG_SECONDS, check=False
    )
    assert (end.returncode, end.stderr) == (ENDED, b"")


def told_to_end_while_they_wait(
    commands: dict[str, list[str]], url: str, place: Path
) -> dict[str, tuple[int | None, str]]:
    """The exit code of each command, and what it said."""
    children = {name: started(arguments, url, place / name) for name, arguments in commands.items()}
    try:
        asyncio.run(until_all_wait(url, children))
    finally:
        for child in children.values():
            child.terminate()
            child.wait(HANG_SECONDS)
            child.communicate()  # its stdin stayed open till then
    return {name: (child.returncode, complaints(place / name)) for name, child in children.items()}


def started(arguments: list[str], url: str, said: Path) -> "subprocess.Popen[bytes]":
    """Known to the database by the name of the file that takes what it says."""
    chosen = {"DATABASE_URL": f"{url}&application_name={said.name}", "EMBEDDER": "hashing:64", "PORT": "0"}
    environment = {**os.environ, **{f"RECOLLECT_{name}": value for name, value in chosen.items()}}
    command = [sys.executable, "-c", IGNORING_CTRL_C, *arguments]
    with said.open("ab") as file:
        return programs.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=file, stderr=file)


def complaints(said: Path) -> str:
    """What a command said; that a server logs its end is none."""
    return "".join(line for line in said.read_text().splitlines(keepends=True) if "[info" not in line)


def test_S01_every_loop_of_a_command_hears_SIGTERM() -> None:
    """A loop is run by `ending.run`, or by a server that listens to signals itself."""
    doors = Path(recollect.doors.__file__).parent
    run = {str(file.relative_to(doors)) for file in doors.rglob("*.py") if re.search(LOOP, file.read_text())}
    assert run == {"ending.py", "api/server.py", "mcp/stdio.py"}
    for server in ("api/server.py", "mcp/stdio.py"):
        assert "with leaving_when_told(" in (doors / server).read_text()
