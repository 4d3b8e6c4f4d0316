"""The command line as a program of its own: what only shows in a process. Streams, signals, imports, a terminal."""

import asyncio
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from pydantic import SecretStr

from recollect.engine.engine import Engine
from recollect.settings import Settings
from tests import programs
from tests.conftest import fresh_space
from tests.doors import test_cli_support as support
from tests.waiting import HANG_SECONDS, until

own_database = support.own_database

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROGRAM = [sys.executable, "-m", "recollect"]
HEAVY = ("sqlalchemy", "numpy", "onnxruntime", "fastapi", "asyncpg", "pydantic", "recollect.engine", "recollect.store")


@pytest.fixture
def space(settings: Settings, own_database: str) -> Settings:
    """A space of one test's own, and how to reach it."""
    return asyncio.run(fresh_space(settings.model_copy(update={"database_url": SecretStr(own_database)})))


@pytest.fixture
def environment(space: Settings, own_database: str) -> dict[str, str]:
    """The environment of a program that works in that space."""
    return {
        **os.environ,
        "RECOLLECT_DATABASE_URL": own_database,
        "RECOLLECT_EMBEDDER": space.embedder,
        "RECOLLECT_SPACE": space.space,
    }


def remember(settings: Settings, text: str, *, wait: bool = True) -> str:
    """A memory that is there before the program starts; programs take long to start."""

    async def add() -> str:
        async with Engine(settings) as memory:
            return str((await memory.add(text, wait=wait)).id)

    return asyncio.run(add())


def _run(environment: dict[str, str], *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """As it is typed: a new interpreter, which imports what it needs."""
    return subprocess.run([*PROGRAM, *arguments], env=environment, input=stdin, capture_output=True, check=False)


def _start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return programs.Popen([*PROGRAM, *arguments], env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_journey_add_and_recall(environment: dict[str, str]) -> None:
    text = "Linh thích trà, không bao giờ uống cà phê"
    added = _run(environment, "add", "--json", "-", stdin=text.encode())
    assert (added.returncode, added.stderr) == (0, b"")
    id_ = json.loads(added.stdout)["id"]
    again = _run(environment, "add", text)
    assert (again.returncode, again.stdout) == (4, b"")
    assert again.stderr.decode() == f"This text is remembered already, as {id_}.\n"
    recalled = _run(environment, "recall", "trà")
    assert recalled.stdout.decode().rstrip("\n").split("\t")[3:] == [id_[:8], text]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["list", "list --json", "export"])
def test_a_full_disk_is_said_and_no_crash(environment: dict[str, str], command: str) -> None:
    _run(environment, "add", f"something to show with {command}")
    with Path("/dev/full").open("wb") as full:
        shown = subprocess.run(
            [*PROGRAM, *command.split()], env=environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert shown.returncode == 1
    assert shown.stderr.decode().startswith("The answer cannot be written (No space left on device)")
    assert shown.stderr.count(b"\n") == 1


def test_who_has_closed_stdout_gets_no_answer_and_no_crash(environment: dict[str, str]) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "add", "said into the dark"]
    added = subprocess.run(closed, env=environment, stderr=subprocess.PIPE, check=False)
    assert (added.returncode, added.stderr) == (0, b"")
    assert _run(environment, "recall", "dark").stdout


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    script = f"""
import sys
import recollect.doors.cli.app
print([name for name in {HEAVY!r} if name in sys.modules])"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"


# What serves, calls others, or tidies: a program that only remembers and lists waits for none of it.
LATER = (
    "httpx",
    "fastapi",
    "uvicorn",
    "mcp",
    "alembic",
    "onnxruntime",
    "yaml",
    "rustworkx",
    "sqlalchemy.orm",
    "structlog",
    "recollect.plans.registry",
)


def test_opening_a_memory_imports_no_server_no_client_and_no_policy() -> None:
    script = f"""
import sys
import recollect.doors.python
print([name for name in {LATER!r} if name in sys.modules])"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"


def test_help_and_version_need_no_database() -> None:
    environment = {**os.environ, "RECOLLECT_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    assert _run(environment, "--version").stdout.startswith(b"recollect ")
    assert b"Exit codes" in _run(environment, "--help").stdout


def test_completion_completes() -> None:
    words = {"_RECOLLECT_COMPLETE": "complete_bash", "COMP_WORDS": "recollect re", "COMP_CWORD": "1"}
    found = _run({**os.environ, **words})
    assert {"recall", "restore"} <= set(found.stdout.decode().split())


def test_bytes_that_are_no_text_are_refused() -> None:
    refused = subprocess.run([*PROGRAM, "recall", b"caf\xe9"], capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.decode() == "'caf\N{REPLACEMENT CHARACTER}' is not UTF-8 text: convert it first.\n"


def test_a_terminal_without_the_letters_gets_their_codes(space: Settings, environment: dict[str, str]) -> None:
    remember(space, "trà")
    ascii_only = {**environment, "PYTHONIOENCODING": "ascii"}
    assert rb"tr\xe0" in _run(ascii_only, "list").stdout


@pytest.mark.parametrize("verb", ["list", "export"])
def test_whoever_reads_may_stop(space: Settings, environment: dict[str, str], verb: str) -> None:
    remember(space, "x" * 200_000, wait=False)
    process = _start(environment, verb)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(HANG_SECONDS) == 141
    assert process.stderr.read() == b""
    _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_while_it_waits_for_stdin(environment: dict[str, str], number: int, code: int) -> None:
    process = _start(environment, "add", "-")
    _until_it_reads(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out, err) == (code, b"", b"")


def _until_it_reads(process: subprocess.Popen[bytes]) -> None:
    """Until the process has taken what was written to its stdin, and so waits for more."""
    assert process.stdin
    pipe = process.stdin.fileno()
    os.write(pipe, b"half a sentence")
    until(lambda: not any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))))


def test_serve_says_where_and_ends_in_order(environment: dict[str, str]) -> None:
    command, pipe = [*PROGRAM, "serve", "--port", "0", "--json"], subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    said = b""
    while not said.rstrip().endswith(b"}"):
        line = process.stdout.readline()
        assert line, process.communicate()[1].decode()
        said += line
    assert json.loads(said)["address"].startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out) == (0, b""), err
    assert b"Traceback" not in err


def test_on_a_terminal_there_are_headings_and_long_texts_are_cut(space: Settings, environment: dict[str, str]) -> None:
    remember(space, "[bold]tea[/bold] :smile: " + "and biscuits " * 30)
    shown = _on_terminal({**environment, "COLUMNS": "80", "NO_COLOR": "1"}, "recall", "tea")
    heading, hit = [STYLE.sub("", line) for line in shown.splitlines() if line and "Opening" not in line][-2:]
    assert heading.split() == ["score", "relevance", "date", "id", "text"]
    assert "[bold]tea[/bold] :smile: and" in hit
    assert hit.rstrip().endswith("…")
    assert len(hit.rstrip()) <= 80


def test_G07_on_a_narrow_terminal_no_id_is_cut_and_no_column_lost(space: Settings, environment: dict[str, str]) -> None:
    id_ = remember(space, "tea")
    shown = _on_terminal({**environment, "COLUMNS": "80", "NO_COLOR": "1"}, "tidy", "prune", "cases")
    assert re.search(r"^ *prune_weak_edges  Prune 0 of 0 links$", STYLE.sub("", shown), re.MULTILINE)
    assert shown.count("There is nothing to do.") == 2
    reason = "nobody drinks it any more, and nobody ever will"
    _on_terminal({**environment, "COLUMNS": "80", "NO_COLOR": "1"}, "forget", str(id_), "--reason", reason)
    shown = _on_terminal({**environment, "COLUMNS": "80", "NO_COLOR": "1"}, "plan")
    assert re.search(r"^[0-9a-f]{8}  .*  hand  .*  Archive “tea”: nobody", STYLE.sub("", shown), re.MULTILINE)


def test_on_a_terminal_long_work_shows_a_bar_without_color(space: Settings, environment: dict[str, str]) -> None:
    remember(space, "tea", wait=False)
    shown = _on_terminal({**environment, "COLUMNS": "80", "NO_COLOR": "1"}, "work")
    assert "Embedding" in shown
    assert " embedded." in shown
    assert "\x1b[3" not in shown


def _on_terminal(environment: dict[str, str], *arguments: str) -> str:
    """What a person would see: stdout and stderr of a program that runs on a terminal."""
    master, slave = pty.openpty()
    process = programs.Popen[bytes]([*PROGRAM, *arguments], env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while block := _read(master):
        shown += block
    os.close(master)
    assert process.wait(HANG_SECONDS) == 0, shown
    return shown.decode().replace("\r\n", "\n").replace("\x1b[2K", "\n")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says so when the last one has closed the terminal
        return b""


def test_G03_the_demonstration_shows_what_sets_it_apart_and_leaves_nothing(empty_home: Path) -> None:
    place = empty_home.parent
    environment = {
        **os.environ,
        "TMPDIR": str(place),
        "RECOLLECT_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    }
    done = programs.run([*PROGRAM, "demo", "--json"], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    shown = json.loads(done.stdout)

    def best(step: str) -> str:
        return str(shown[step]["hits"][0]["node"]["text"])

    def names(step: str) -> set[str]:
        return {concept["name"] for concept in shown[step]}

    assert best("question_1").startswith("Linh")
    assert best("question_2").startswith("Minh")
    assert shown["duplicates"]["counts"] == {"proposed": 1}
    assert "Jasmine Tea" in shown["duplicates"]["decisions"][0]["reason"]
    assert not {"Error E1041", "Error E1042"} - names("merged")
    assert names("apart_again") - names("merged") == {"Jasmine Tea"}
    assert len(shown["prune"]["decisions"]) == 1
    assert {finding["rule"] for finding in shown["prune"]["findings"]} == {"leaf", "splits", "user-made"}
    assert shown["links"] == ["4 links after the pruning", "5 links after its undo"]
    assert [entry["verb"] for entry in shown["history"]] == ["add", "prune", "undo"]
    assert list(place.glob("recollect-demo-*")) == []
