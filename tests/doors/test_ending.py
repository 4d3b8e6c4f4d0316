"""How it ends: silently, in order, and always. From Python and from the command line, in real processes, since what
goes wrong at the end of a process (threads, signals, the interpreter's own closing) shows nowhere else.

TEST_TIMES=30 in the environment runs each of the closings of G02 thirty times.
"""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import asyncpg
import pytest
from sqlalchemy import text

from recollect import Recollect
from recollect.engine.engine import Engine
from recollect.errors import Busy, InvalidInput
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.embedded.processes import command_lines
from tests import programs
from tests.conftest import fresh_space
from tests.doors import test_cli_support as support
from tests.reference import ROOT
from tests.waiting import HANG_SECONDS, until, until_it_holds

own_database = support.own_database

TIMES = int(os.environ.get("TEST_TIMES", "1"))
# What an import says when it is ended (D54).
GOES_ON = b"Interrupted: 0 were dealt with and are kept. The same command goes on from there.\n"
# As a shell script starts what ends in `&`.
IGNORING_CTRL_C = """
import signal
from recollect.__main__ import main
signal.signal(signal.SIGINT, signal.SIG_IGN)
main()
"""

README = """
from recollect import Recollect
with Recollect() as memory:
    memory.add("Linh prefers tea, never coffee"); print(memory.recall("what does Linh drink?"))
"""
AT_ONCE = """
from recollect import Recollect
with Recollect() as memory:
    pass
"""
WHILE_EMBEDDING = """
from recollect import Recollect
from recollect.model import NewMemory
from tests.waiting import until
with Recollect() as memory:
    memory.add_many([NewMemory(text=f"note {n} " * 50) for n in range(500)], wait=False)
    until(lambda: memory.jobs().processing)
"""
NEVER_CLOSED = """
from recollect import Recollect
memory = Recollect()
memory.add("nobody closes this", wait=False)
"""
INTERRUPTED = """
import os, signal, threading
from recollect import Recollect
from recollect.model import NewMemory
from tests.waiting import until
def interrupt():
    until(lambda: memory.jobs().processing)
    os.kill(os.getpid(), signal.SIGINT)
try:
    with Recollect() as memory:
        threading.Thread(target=interrupt).start()
        memory.add_many([NewMemory(text=f"note {n} " * 50) for n in range(500)])
except KeyboardInterrupt:
    pass
"""
FORKED = """
import os, sys
from recollect import Recollect
from recollect.errors import InvalidInput
with Recollect() as memory:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        memory.add("the parent goes on")
    else:
        try:
            memory.count()
        except InvalidInput as problem:
            assert "forked" in problem.message
        else:
            sys.exit("the child used what is its parent's")
"""
FORKED_AFTER_USE = """
import os
from recollect import Recollect
with Recollect() as memory:
    memory.add("The parent drinks tea")
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert memory.recall("tea")
    else:
        with Recollect() as own:
            assert own.recall("what does the parent drink?")
"""


def python(script: str, url: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RECOLLECT_DATABASE_URL": url}
    command = [sys.executable, "-c", script]
    return programs.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS)


@contextmanager
def busy_loops() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_G02_a_memory_closes_silently_beside_busy_loops(database_url: str) -> None:
    scripts = [README, AT_ONCE, WHILE_EMBEDDING]
    ends = []
    with busy_loops(), ThreadPoolExecutor(len(scripts)) as at_once:
        for _ in range(TIMES):
            with ExitStack() as stack:
                urls = [stack.enter_context(support.a_database(database_url)) for _ in scripts]
                ends += list(zip(scripts, at_once.map(python, scripts, urls), strict=True))
    assert [(script, end) for script, end in ends if (end.returncode, end.stderr) != (0, "")] == []


@pytest.mark.parametrize(
    "script",
    [NEVER_CLOSED, INTERRUPTED, FORKED, FORKED_AFTER_USE],
    ids=["never closed", "interrupted", "forked", "forked after use"],
)
def test_S09_a_program_ends_silently(script: str, database_url: str) -> None:
    with support.a_database(database_url) as url:
        end = python(script, url)
    assert (end.returncode, end.stderr) == (0, "")


# -- in this process


@pytest.fixture
def own_space(settings: Settings) -> Settings:
    return asyncio.run(fresh_space(settings))


async def test_G02_whoever_is_cancelled_gives_back_the_connection_in_order(
    memory: Engine, caplog: pytest.LogCaptureFixture, anyio_backend: str
) -> None:
    """By anyio, which cancels again at every await."""

    async def hold() -> None:
        async with memory.core.transaction(memory.space.id) as db:
            holding.set()
            await db.connection.execute(text("SELECT pg_sleep(60)"))

    for _ in range(3):
        holding = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            await holding.wait()
            group.cancel_scope.cancel()
    assert await memory.count() == 0
    assert caplog.text == ""


def test_S09_closing_breaks_off_the_calls_of_other_threads(own_space: Settings, database_url: str) -> None:
    ends: list[object] = []
    memory = Recollect(settings=own_space)

    def add() -> None:
        try:
            memory.add("held up")
        except Busy as problem:
            ends.append(problem.message)

    with locked_nodes(database_url) as somebody_waits:
        thread = threading.Thread(target=add)
        thread.start()
        until(somebody_waits)
        memory.close()
        thread.join()
    assert ends == ["The memory was closed before this was done: nothing of it is kept. Open it again."]
    with Recollect(settings=own_space) as again:
        assert again.count() == 0


@contextmanager
def locked_nodes(url: str, mode: str = "SHARE") -> Iterator[Callable[[], object]]:
    """Nobody can add meanwhile; tells whether somebody waits for it."""
    asking = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'recollect.nodes'::regclass"
    with anyio.from_thread.start_blocking_portal() as portal:
        connection = portal.call(asyncpg.connect, url)
        portal.call(connection.execute, f"BEGIN; LOCK TABLE recollect.nodes IN {mode} MODE")
        try:
            yield lambda: portal.call(connection.fetchval, asking)
        finally:
            portal.call(connection.close)


def test_S09_closed_is_closed(own_space: Settings) -> None:
    memory = Recollect(settings=own_space)
    memory.add_many([NewMemory(text=f"note {n}") for n in range(3)])
    stream = memory.stream()
    next(stream)
    memory.close()
    memory.close()
    with pytest.raises(InvalidInput, match="This memory is closed"):
        memory.count()
    with pytest.raises(InvalidInput, match="This memory is closed"):
        next(stream)
    assert isinstance(stream, Generator)
    stream.close()


def test_S09_two_at_once_one_within_the_other(own_space: Settings) -> None:
    before = threading.active_count()
    with Recollect(settings=own_space) as outer:
        with Recollect(settings=own_space) as inner:
            inner.add("seen by both")
        assert outer.count() == 1
    until(lambda: threading.active_count() <= before)  # anyio's helpers end by themselves, a moment after their loop


# -- the database inside


def processes_of(home: Path) -> list[str]:
    return [command for command in command_lines().values() if str(home) in command]


IN_TROUBLE = """
import sys
from recollect import Recollect
with Recollect() as memory:
    print("open", flush=True)
    sys.stdin.read()
"""


@contextmanager
def opened(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that has the memory of this home open, and closes it when its stdin ends."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "RECOLLECT_HOME": str(home), "RECOLLECT_EMBEDDER": "hashing:64"}
    command = [sys.executable, "-c", IN_TROUBLE]
    with programs.Popen[str](command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def test_S09_with_its_home_removed_it_still_ends(new_home: Path) -> None:
    with opened(new_home) as process:
        # The server is still writing there: a directory that was just emptied may hold a file again.
        until(lambda: subprocess.run(["rm", "-rf", new_home], check=False).returncode == 0)
        _, said = process.communicate(timeout=HANG_SECONDS)
    assert "Traceback" not in said, said
    until(lambda: not processes_of(new_home))


def test_S09_with_its_database_killed_it_still_ends(new_home: Path) -> None:
    with opened(new_home) as process:
        os.kill(int((new_home / "postgres/data/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        _, said = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    until(lambda: not processes_of(new_home))


# -- SIGTERM, though SIGINT is ignored


def start(environment: dict[str, str], *arguments: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", IGNORING_CTRL_C, *arguments]
    return programs.Popen(command, env={**os.environ, **environment}, stdin=stdin, stdout=pipe, stderr=pipe)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """The exit code of a process that was told to end, and what it complained of. Its stdin stays open till then."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    code = process.wait(HANG_SECONDS)
    return code, process.communicate()[1]


def reads_stdin(process: subprocess.Popen[bytes]) -> bool:
    """Whether any of its threads blocks in a read of its stdin (system call 0, file 0)."""
    assert process.poll() is None, process.communicate()
    return any(task.joinpath("syscall").read_text().startswith("0 0x0 ") for task in tasks(process))


def tasks(process: subprocess.Popen[bytes]) -> list[Path]:
    return list(Path(f"/proc/{process.pid}/task").iterdir())


@pytest.mark.parametrize(("command", "said"), [("add", b""), ("import", GOES_ON)], ids=["add", "import"])
def test_S01_a_command_that_reads_stdin(command: str, said: bytes, own_database: str) -> None:
    process = start({"RECOLLECT_DATABASE_URL": own_database, "RECOLLECT_EMBEDDER": "hashing:64"}, command, "-")
    until(lambda: reads_stdin(process))
    assert ended(process) == (143, said)


def test_S01_a_command_that_embeds_gives_back_what_it_had_claimed(settings: Settings, database_url: str) -> None:
    with support.a_database(database_url) as url:
        states = asyncio.run(_ended_while_it_embeds(url))
    assert states == [(143, b""), 0]


async def _ended_while_it_embeds(url: str) -> list[object]:
    async with Engine(Settings.load(database_url=url)) as memory:
        await memory.add_many([NewMemory(text=f"note {n} " * 50) for n in range(1000)], wait=False)
        process = start({"RECOLLECT_DATABASE_URL": url}, "work")

        async def is_embedding() -> int:
            return (await memory.jobs()).processing

        await until_it_holds(is_embedding)
        return [await anyio.to_thread.run_sync(ended, process), (await memory.jobs()).processing]


def test_S01_a_command_that_asks_a_question(own_database: str) -> None:
    with Recollect(settings=Settings.load(database_url=own_database, embedder="hashing:64")) as memory:
        memory.add_many([NewMemory(text=f"{n} bottles of tea, and {n + 1} of {n} cups") for n in range(100)])
    terminal, its_end = pty.openpty()
    process = start(
        {"RECOLLECT_DATABASE_URL": own_database, "RECOLLECT_EMBEDDER": "hashing:64"}, "calibrate", stdin=its_end
    )
    os.close(its_end)
    until(lambda: reads_stdin(process))
    assert ended(process)[0] == 143
    os.close(terminal)


def test_S01_a_backup_leaves_no_program_and_no_half_file(own_database: str, tmp_path: Path) -> None:
    with locked_nodes(own_database, "ACCESS EXCLUSIVE") as somebody_waits:
        process = start({"RECOLLECT_DATABASE_URL": own_database}, "backup", str(tmp_path / "a.dump"))
        until(somebody_waits)
        assert ended(process) == (143, b"")
        assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_S09_a_restore_that_is_killed_half_way_changes_nothing(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.dump"
    with support.a_database(database_url) as url:
        settings = Settings.load(database_url=url, embedder="hashing:64")
        with Recollect(settings=settings) as memory:
            memory.add("in the backup")
            memory.backup(file)
            memory.add("since then")
        with locked_nodes(url, "ACCESS SHARE") as somebody_waits:
            process = start({"RECOLLECT_DATABASE_URL": url}, "restore", str(file), "--overwrite")
            until(somebody_waits)
            process.kill()
            process.communicate()
        until(lambda: not processes_of(Path(url)))  # psql, which is told where to write
        with Recollect(settings=settings) as memory:
            assert memory.count() == 2


def test_S01_the_demonstration_leaves_nothing_behind(empty_home: Path) -> None:
    place = empty_home.parent
    process = start({"TMPDIR": str(place)}, "demo")
    until(lambda: list(place.glob("recollect-demo-*/home/postgres/*")))
    assert ended(process) == (143, b"")
    assert list(place.glob("recollect-demo-*")) == []
    until(lambda: not processes_of(place))
