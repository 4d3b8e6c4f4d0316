"""One real PostgreSQL a test session, one fresh space a test: nothing crosses a space, so tests do not meet.

`--fast` runs what needs neither a browser nor processes of its own; what was left out is said at the end.
"""

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import hypothesis
import pytest
import structlog

from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.settings import Settings
from recollect.store.database import Database
from recollect.store.distribute import distribute
from recollect.store.embedded import EmbeddedServer
from recollect.store.prepare import open_database
from tests import citus, room
from tests.waiting import until

MADE = "made"
POOL_SIZE = 4
HERE = Path(__file__).parent
# Rooms of a subject that need neither a browser nor processes of their own; and what speaks to providers.
FAST = {"rules", "policies", "providers", "architecture"}
# What takes long by itself: programs that are started and ended many times, and a browser.
LONG = (
    "quality/test_S06",
    "quality/test_blocks",
    "doors/test_ending",
    "plans/test_P06",
    "doors/test_api_schema",
    "web/",
)
# Nobody needs these servers after a power failure: they do not wait for the disk. What tests kill is set as users' is.
# Nor is what they write worth compressing: a database that is made of another is written ahead page by page.
HASTE = "fsync = off\nfull_page_writes = off\nwal_compression = off\n"
GARBAGE = 50_000  # objects after which some is looked for, as in the program itself
# No example is too slow, nor too slow to make: that would be the machine's fault.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only rules, policies and worked examples")
    parser.addoption("--citus", action="store_true", help="on tables that are spread over two servers (tests/citus.py)")


def pytest_configure(config: pytest.Config) -> None:
    """What a script starts with `&` ignores Ctrl-C, and so would every program that the tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(GARBAGE)
    if place := room.in_memory():
        config.add_cleanup(lambda: shutil.rmtree(place, ignore_errors=True))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave it to the others to say no, unless only what is fast was asked for."""
    is_slow = collection_path.suffix == ".py" and not FAST & set(collection_path.relative_to(HERE).parts)
    return True if config.getoption("--fast") and is_slow and collection_path.name.startswith("test_") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: whoever is done early takes over some of the short ones, and nobody waits for the last."""
    items.sort(key=lambda item: not item.nodeid.removeprefix("tests/").startswith(LONG))


def pytest_collection_finish() -> None:
    """What was imported stays: nobody needs to look through it for garbage again and again."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not tried, and why: a green end must not be taken for more than it is."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if config.getoption("--fast"):
        reasons["--fast: everything but rules, policies, providers and worked examples was left out"] = 0
    if not reasons:
        return
    terminalreporter.section("not tried here, and why")
    for reason, times in reasons.most_common():
        tests = f"{times} test{'s' if times != 1 else ''}: " if times else ""
        terminalreporter.line(f"{tests}{reason}")


@pytest.fixture(scope="session", autouse=True)
def clean_environment() -> Iterator[None]:
    """The tests decide what Recollect is told, not the shell they run in."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RECOLLECT_") or name == "DATABASE_URL"]:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def every_line_is_logged() -> None:
    """A command of an earlier test may have set up logs that leave lines out."""
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop a module, so that its tests can share connections."""
    return "asyncio"


def open_directory() -> Path:
    """A temporary directory that the database's own user can enter (pytest's tmp_path is closed to it)."""
    directory = Path(tempfile.mkdtemp(prefix="recollect-test-"))
    directory.chmod(0o755)
    return directory


@pytest.fixture
def empty_home() -> Iterator[Path]:
    """A home that holds nothing yet: the first use makes its database."""
    directory = open_directory()
    yield directory / "home"
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def made_home() -> Iterator[Path]:
    """A home whose database is made and at rest, to copy, as is the database `made` in it: making one takes seconds."""
    with a_made_home() as home:
        yield home


@pytest.fixture(scope="session")
def made_home_of_16() -> Iterator[Path]:
    """The same of the oldest PostgreSQL inside."""
    with a_made_home(16) as home:
        yield home


@contextmanager
def a_made_home(version: int = 18) -> Iterator[Path]:
    directory = open_directory()
    with EmbeddedServer(directory / "home", version=version) as server:
        asyncio.run(_make_databases(server.url))
    yield directory / "home"
    shutil.rmtree(directory, ignore_errors=True)


async def _make_databases(url: str) -> None:
    async with Engine(Settings.load(database_url=url, embedder="hashing:32")):
        pass
    connection = await asyncpg.connect(url.replace("/recollect?", "/template1?"))
    await connection.execute(f"CREATE DATABASE {MADE} TEMPLATE recollect")
    await connection.close()


@pytest.fixture
def new_home(made_home: Path, empty_home: Path) -> Path:
    """A home with a new database of one test's own."""
    return copied(made_home, empty_home)


def copied(made: Path, home: Path) -> Path:
    subprocess.run(["cp", "-a", made, home], check=True)
    return home


@pytest.fixture(scope="session")
def server(made_home: Path) -> Iterator[EmbeddedServer]:
    directory = open_directory()
    with in_haste(copied(made_home, directory / "home")) as server:
        yield server
        end_at_once(server)
    shutil.rmtree(directory, ignore_errors=True)


def in_haste(home: Path) -> EmbeddedServer:
    server = EmbeddedServer(home)
    with (server.data_directory / "postgresql.conf").open("a") as chosen:
        chosen.write(HASTE)
    return server


def end_at_once(server: EmbeddedServer) -> None:
    """Hundreds of databases would take many seconds to be written down, and nobody will read them."""
    pid_file, sockets = server.data_directory / "postmaster.pid", server.socket_directory
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
    until(lambda: not pid_file.exists())
    assert sockets is not None
    shutil.rmtree(sockets)


@pytest.fixture(scope="session")
def database_url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("citus_url" if request.config.getoption("--citus") else "server_url")
    return found


@pytest.fixture
def one_server(request: pytest.FixtureRequest) -> None:
    """For what only one server has: triggers of a test's own, its plans of statements, databases made of another."""
    if request.config.getoption("--citus"):
        pytest.skip("it looks at what only one server has")


@pytest.fixture(scope="session")
def server_url(server: EmbeddedServer) -> str:
    return server.url


@pytest.fixture(scope="session")
def cluster() -> Iterator[citus.Cluster]:
    if citus.SCRIPT is None:
        pytest.skip(citus.ABSENT)
    with citus.running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def citus_url(cluster: citus.Cluster) -> str:
    """A database whose spaces are spread over the two workers of a cluster."""
    asyncio.run(_distribute(cluster.url))
    return cluster.url


async def _distribute(url: str) -> None:
    database = await open_database(url, pool_size=2)
    await distribute(database, shards=4)
    await database.close()


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings.load(database_url=database_url, embedder="hashing:64", pool_size=POOL_SIZE)


async def fresh_space(settings: Settings) -> Settings:
    async with Engine(settings) as engine:
        slug = await _new_space(engine)
    return settings.model_copy(update={"space": slug})


async def _new_space(engine: Engine) -> str:
    return (await engine.add_space(f"t-{uuid4().hex[:12]}")).slug


class Lent(Database):
    """The open connections of a module: whoever borrows them closes the rest of an engine, and leaves these open."""

    async def close(self) -> None:
        """Not yet."""

    async def close_for_good(self) -> None:
        await super().close()


@pytest.fixture(scope="module")
async def lent(database_url: str, anyio_backend: str) -> AsyncIterator[Lent]:
    """Connecting, and all that a new connection has yet to learn, takes longer than most tests do."""
    opened = await open_database(database_url, pool_size=POOL_SIZE)
    lent = Lent(
        pool=opened.pool,
        dsn=opened.dsn,
        role=opened.role,
        notes=opened.notes,
        searchers=opened.searchers,
        distributed=opened.distributed,
    )
    yield lent
    await lent.close_for_good()


@pytest.fixture
async def memory(settings: Settings, lent: Lent) -> AsyncIterator[Engine]:
    """An engine in a space of its own, with the hashing embedder and no worker beside it."""
    engine = Engine(settings)
    engine._core = Core(settings=settings, database=lent)
    yield await engine.in_space(await _new_space(engine))
    await engine.core.close()
