"""The PostgreSQL inside, on real servers of both versions: started, shared, killed, recovered, and always stopped.

Also the helpers of test_embedded_refusals.py and test_embedded_accounts.py. Since making a cluster takes seconds, most
tests use one that is made once per version; those that damage it use a copy.
"""

import asyncio
import atexit
import functools
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from recollect.store.embedded import EmbeddedServer
from recollect.store.embedded.account import current_account
from recollect.store.embedded.home import Home
from recollect.store.embedded.processes import command_lines
from tests.waiting import HANG_SECONDS, until

both_versions = pytest.mark.parametrize("version", [16, 18])

# ---------------------------------------------------------------------- helpers


def open_directory() -> Path:
    """A temporary directory that the server's user can pass, which pytest's own is not."""
    directory = Path(tempfile.mkdtemp(prefix="re-"))
    directory.chmod(0o755)
    return directory


def end_servers_below(directory: Path) -> None:
    for file in directory.glob("**/postmaster.pid"):
        for pid in family_of(file.parent.parent.parent):
            os.kill(pid, signal.SIGKILL)
        until(lambda home=file.parent.parent.parent: not family_of(home))  # type: ignore[misc]
    for leftover in Path(tempfile.gettempdir()).glob("recollect-*"):
        if leftover.name.rsplit("-", 1)[-1] in {home_of(path).fingerprint for path in directory.iterdir()}:
            shutil.rmtree(leftover)


@pytest.fixture
def place() -> Iterator[Path]:
    directory = open_directory()
    yield directory
    end_servers_below(directory)
    shutil.rmtree(directory)


@pytest.fixture
def version() -> int:
    """Of the tests that are not run on both."""
    return 18


@pytest.fixture
def home(version: int) -> Iterator[Path]:
    """A home with an empty table `notes`, not running."""
    home = made_once(version)
    yield home
    end_servers_below(home.parent)


@functools.cache
def made_once(version: int) -> Path:
    directory = open_directory()
    atexit.register(shutil.rmtree, directory)
    with EmbeddedServer(directory / "home", version=version) as server:
        sql(server.url, "CREATE TABLE notes (id serial)")
    return server.home


def copied(place: Path, version: int = 18, *, name: str = "home") -> Path:
    """Such a home for one test alone."""
    subprocess.run(["cp", "-a", made_once(version), place / name], check=True)
    return place / name


def home_of(path: Path) -> Home:
    return Home(path=path.resolve())


def family_of(path: Path) -> dict[int, str]:
    """The processes of the server of a home."""
    return {pid: line for pid, line in command_lines().items() if f"recollect-{home_of(path).fingerprint}" in line}


def postmaster_of(path: Path) -> int:
    return int((home_of(path).data / "postmaster.pid").read_text().split()[0])


def is_running(path: Path) -> bool:
    return bool(family_of(path))


def sql(url: str, statement: str) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(ask())


def count(url: str) -> Any:
    return sql(url, "SELECT count(*) FROM notes")


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that uses `server`, made for the home that is its first argument."""
    opening = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from recollect.store.embedded import EmbeddedServer\n"
        "server = EmbeddedServer(Path(sys.argv[1]), version=int(sys.argv[2]))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", opening + program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=HANG_SECONDS)
    return process.returncode


def write_as_server(path: Path, text: str) -> None:
    account = current_account()
    assert account.run("/bin/sh", "-c", 'cat > "$1"', "sh", path, given=text).returncode == 0


def configure(home: Path, *lines: str) -> None:
    file = home_of(home).data / "postgresql.conf"
    file.write_text(file.read_text() + "\n".join(lines) + "\n")


# ---------------------------------------------------------------------- first use


@both_versions
def test_first_start_makes_a_database_of_its_own(place: Path, version: int) -> None:
    with EmbeddedServer(place / "not" / "yet there", version=version) as server:
        assert sql(server.url, "SELECT current_setting('server_version_num')::int / 10000") == version
        assert sql(server.url, "SELECT current_database() || ' ' || current_user") == "recollect recollect"
        assert sql(server.url, "SELECT usesuper FROM pg_user WHERE usename = current_user") is True
        assert sql(server.url, "SHOW server_encoding") == "UTF8"
        assert sql(server.url, "SELECT lower('ÄÉ')") == "äé"
        sql(server.url, "CREATE EXTENSION vector")
        assert server.version == version
        assert server.data_directory.is_relative_to(server.home)
        assert "ready to accept connections" in server.log_file.read_text()
    assert not is_running(server.home)
    assert server.socket_directory is None


@both_versions
def test_settings_are_in_force_from_the_first_start(home: Path, version: int) -> None:
    wanted = {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "jit": "off",
        "fsync": "on",
        "wal_compression": "pglz",
        "wal_recycle": "off",
        "min_wal_size": "8MB",
        "max_wal_size": "1GB",
        "random_page_cost": "1.1",
        "max_connections": "100",
        "data_checksums": "on",
    }
    with EmbeddedServer(home) as server:
        assert {name: sql(server.url, f"SHOW {name}") for name in wanted} == wanted
        assert 128 <= sql(server.url, "SELECT pg_size_bytes(current_setting('shared_buffers')) >> 20") <= 512
        assert 64 <= sql(server.url, "SELECT pg_size_bytes(current_setting('maintenance_work_mem')) >> 20") <= 1024
        rules = sql(server.url, "SELECT string_agg(DISTINCT type || ' ' || auth_method, ', ') FROM pg_hba_file_rules")
        assert rules == "host reject, local trust"


def test_socket_is_in_a_short_private_directory_of_the_servers_user(home: Path) -> None:
    with EmbeddedServer(home) as server:
        directory = server.socket_directory
        assert directory
        found = directory.stat()
        assert (found.st_mode & 0o777, found.st_uid) == (0o700, current_account().uid)
        assert len(str(directory)) < 80
    assert not directory.exists()


@pytest.mark.parametrize("name", ["with spaces", 'it\'s "$HOME" `id` \\ é', "long " * 40])
def test_any_path_will_do(place: Path, version: int, name: str) -> None:
    home = made_once(version).rename(place / name.strip())
    try:
        with EmbeddedServer(home) as server:
            assert count(server.url) == 0
            assert server.home == home
    finally:
        home.rename(made_once(version))
    assert not is_running(home)


def test_long_or_odd_temporary_directories_are_passed_over(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("x" * 90, "with space"):
        (place / name).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place / name))
        with EmbeddedServer(home) as server:
            assert server.socket_directory
            assert not server.socket_directory.is_relative_to(place)
            assert count(server.url) == 0


def test_environment_does_not_interfere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGSERVICE", "PGSSLMODE"):
        monkeypatch.setenv(name, "/nowhere")
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "LC_ALL", "LANG", "TZ"):
        monkeypatch.setenv(name, "/nowhere")
    server = EmbeddedServer(place / "home")
    try:
        url = server.start()
        for name in ("PGPORT", "PGOPTIONS", "PGSERVICE", "PGSSLMODE"):
            monkeypatch.delenv(name)  # these concern the driver here, not the server
        assert sql(url, "SHOW timezone") == "UTC"
    finally:
        server.release()


# ---------------------------------------------------------------------- shared


@both_versions
def test_two_processes_race_for_the_first_start(place: Path, version: int) -> None:
    program = (
        "print('there', flush=True); sys.stdin.readline(); print(server.start(), flush=True); sys.stdin.readline()"
    )
    racers = [python(program, place / "home", version) for _ in range(3)]
    assert [line_of(racer) for racer in racers] == ["there"] * 3
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    urls = {line_of(racer) for racer in racers}
    assert len(urls) == 1
    assert sql(urls.pop(), "SELECT 1") == 1
    log = home_of(place / "home").log.read_text()
    assert log.count("starting PostgreSQL") == 1
    assert [path.name for path in home_of(place / "home").postgres.iterdir() if path.is_dir()] == ["data"]
    assert [ended(racer) for racer in racers] == [0, 0, 0]
    assert not is_running(place / "home")


@both_versions
def test_last_one_out_stops_the_server(home: Path, version: int) -> None:
    other = python("print(server.start(), flush=True); sys.stdin.readline(); server.release()", home, version)
    url = line_of(other)
    first, second = EmbeddedServer(home), EmbeddedServer(home)
    assert {first.start(), second.start(), first.start()} == {url}
    first.release()
    first.release()
    assert ended(other) == 0
    assert count(url) == 0
    second.release()
    assert not is_running(home)


def test_a_server_is_reached_through_another_name_of_its_home(home: Path, place: Path) -> None:
    (place / "alias").symlink_to(home)
    with EmbeddedServer(home) as one, EmbeddedServer(place / "alias") as two:
        assert one.url == two.url


def test_end_of_python_releases(home: Path) -> None:
    process = python("print(server.start(), flush=True)", home, 18)
    assert line_of(process).startswith("postgresql://")
    assert ended(process) == 0
    assert not is_running(home)


def test_orderly_exit_on_sigterm_releases(home: Path) -> None:
    program = (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print(server.start(), flush=True); sys.stdin.readline()"
    )
    process = python(program, home, 18)
    line_of(process)
    process.terminate()
    assert ended(process) == 7
    assert not is_running(home)


def test_server_is_out_of_reach_of_the_terminal(home: Path) -> None:
    with EmbeddedServer(home):
        assert os.getsid(postmaster_of(home)) not in {os.getsid(0), 0}


def test_forked_child_leaves_the_server_to_its_parent(home: Path) -> None:
    program = (
        "server.start()\n"
        "if os.fork() == 0: server.release(); os._exit(0)\n"
        "print(os.wait()[1], flush=True); sys.stdin.readline()"
    )
    process = python(program, home, 18)
    assert line_of(process) == "0"
    assert is_running(home)
    with EmbeddedServer(home):
        pass
    assert is_running(home), "the parent's hold was lost"
    assert ended(process) == 0
    assert not is_running(home)


def test_server_full_of_connections_counts_as_alive(place: Path) -> None:
    home = copied(place)
    configure(home, "max_connections = 3", "superuser_reserved_connections = 0", "max_wal_senders = 0")

    async def fill(url: str) -> None:
        connections = [await asyncpg.connect(url) for _ in range(3)]
        try:
            with EmbeddedServer(home) as other:
                assert other.url == url
        finally:
            for connection in connections:
                await connection.close()

    with EmbeddedServer(home) as server:
        asyncio.run(fill(server.url))


# ---------------------------------------------------------------------- killed


@both_versions
def test_P06_kill_dash_nine_loses_nothing(home: Path, version: int) -> None:
    server = EmbeddedServer(home)
    sql(server.start(), "CREATE TABLE kept AS SELECT generate_series(1, 1000)")
    for pid in family_of(home):
        os.kill(pid, signal.SIGKILL)
    assert sql(server.start(), "SELECT count(*) FROM kept") == 1000
    os.kill(postmaster_of(home), signal.SIGKILL)  # now its children find out by themselves
    assert sql(server.start(), "SELECT count(*) FROM kept") == 1000
    sql(server.url, "DROP TABLE kept")
    server.release()
    assert not is_running(home)


def test_P06_orphan_that_goes_on_with_its_query_is_ended(home: Path) -> None:
    server = EmbeddedServer(home)
    url = server.start()
    busy = python(
        "import asyncio, asyncpg\n"
        "async def ask():\n"
        "    connection = await asyncpg.connect(sys.argv[3])\n"
        "    print('asking', flush=True)\n"
        "    await connection.execute('SELECT sum(sqrt(n)) FROM generate_series(1, 1000000000) n')\n"
        "try: asyncio.run(ask())\n"
        "except (asyncpg.PostgresError, ConnectionError): pass",
        *(home, 18, url),
    )
    line_of(busy)
    until(lambda: any("SELECT" in line for line in family_of(home).values()))
    os.kill(postmaster_of(home), signal.SIGKILL)
    assert count(server.start()) == 0
    assert ended(busy) == 0
    server.release()
    assert not is_running(home)


@both_versions
def test_P06_kill_of_python_leaves_a_server_to_the_next(home: Path, version: int) -> None:
    process = python("print(server.start(), flush=True); sys.stdin.readline()", home, version)
    url = line_of(process)
    postmaster = postmaster_of(home)
    process.kill()
    ended(process)
    assert count(url) == 0
    with EmbeddedServer(home) as server:
        assert server.url == url
        assert postmaster_of(home) == postmaster
    assert not is_running(home)


def test_P06_half_made_cluster_is_made_anew(place: Path, version: int) -> None:
    home = caught_half_made(place, version)
    postgres = home_of(home).postgres
    with EmbeddedServer(home, version=version) as server:
        assert sql(server.url, "SELECT 1") == 1
    assert [path.name for path in postgres.iterdir() if path.is_dir()] == ["data"]


def caught_half_made(place: Path, version: int) -> Path:
    """A home whose maker was killed in the midst. Whoever looked too late, on a busy machine, tries another."""
    for number in itertools.count():
        postgres = home_of(home := place / f"home {number}").postgres
        process = python("server.start(); sys.stdin.readline()", home, version)
        until(lambda at=postgres: [*at.glob("initdb-*/PG_VERSION"), *at.glob("data")])  # type: ignore[misc]
        process.kill()
        ended(process)
        if not (postgres / "data").exists():
            return home
    raise AssertionError


def test_P06_kill_of_python_during_the_start(home: Path) -> None:
    process = python("server.start(); sys.stdin.readline()", home, 18)
    until(lambda: is_running(home))
    process.kill()
    ended(process)
    with EmbeddedServer(home) as server:
        assert count(server.url) == 0
    assert not is_running(home)


def stale_pid_file(home: Path, pid: int) -> None:
    """What a killed server leaves, with a process id that has been given to another since."""
    with EmbeddedServer(home):
        file = home_of(home).data / "postmaster.pid"
        lines = file.read_text().splitlines()
    write_as_server(file, "\n".join([str(pid), *lines[1:]]) + "\n")


@both_versions
def test_stale_pid_file_that_names_a_stranger(home: Path, version: int) -> None:
    account = current_account()
    who = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.dropped else {}
    with subprocess.Popen(["sleep", "600"], **who) as stranger:  # type: ignore[call-overload]
        try:
            stale_pid_file(home, stranger.pid)
            with EmbeddedServer(home) as server:
                assert count(server.url) == 0
                stale = home_of(home).data / "postmaster.pid"
                write_as_server(stale, stale.read_text().replace(str(postmaster_of(home)), str(stranger.pid), 1))
            assert stranger.poll() is None, "release() stopped a process that is not the server"
        finally:
            stranger.kill()


@pytest.mark.parametrize("torn", ["", "\n", "12", "123456\n/nowhere", "\0\0\0\0"])
def test_S05_an_empty_or_torn_pid_file_is_mended(home: Path, torn: str) -> None:
    with EmbeddedServer(home):
        file = home_of(home).data / "postmaster.pid"
    write_as_server(file, torn)
    with EmbeddedServer(home) as server:
        assert count(server.url) == 0
    assert not file.exists()


@both_versions
def test_stale_pid_file_that_names_a_zombie(home: Path, version: int) -> None:
    account = current_account()
    who = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.dropped else {}
    with subprocess.Popen(["true"], **who) as zombie:  # type: ignore[call-overload]
        until(lambda: zombie.pid not in command_lines())
        stale_pid_file(home, zombie.pid)
        os.kill(zombie.pid, 0)  # a zombie has a process id still
        with EmbeddedServer(home) as server:
            assert count(server.url) == 0
        assert not is_running(home)


def test_socket_cleaned_away_is_made_again(home: Path) -> None:
    with EmbeddedServer(home) as server:
        assert server.socket_directory
        shutil.rmtree(server.socket_directory)
        assert count(server.start()) == 0
    assert not is_running(home)


def test_home_deleted_under_a_server_does_not_hinder_release(place: Path) -> None:
    home = copied(place)
    server = EmbeddedServer(home)
    server.start()
    family, sockets = family_of(home), server.socket_directory
    shutil.rmtree(home)
    server.release()
    for pid in family:
        with suppress(ProcessLookupError):  # it may have found out, and gone, by itself
            os.kill(pid, signal.SIGKILL)
    assert sockets
    shutil.rmtree(sockets)


def test_log_is_kept_small(home: Path) -> None:
    with EmbeddedServer(home) as server:
        with server.log_file.open("a") as log:
            log.write("a line of the log\n" * 400_000)
        with EmbeddedServer(home):
            assert server.log_file.stat().st_size < 1_000_000
        sql(server.url, "DO $$ BEGIN RAISE WARNING 'still heard'; END $$")
        assert "still heard" in server.log_file.read_text()
        assert server.log_file.with_name("server.log.1").stat().st_size <= 5_000_000


def test_statements_stay_out_of_the_log(home: Path) -> None:
    with EmbeddedServer(home) as server:
        with pytest.raises(asyncpg.PostgresError):
            sql(server.url, "SELECT 'a secret', no_such_column")
        assert "no_such_column" in server.log_file.read_text()
        assert "a secret" not in server.log_file.read_text()


def test_hold_is_not_inherited_by_other_children(home: Path) -> None:
    server = EmbeddedServer(home)
    server.start()
    with subprocess.Popen(["sleep", "600"], close_fds=False) as child:
        server.release()
        try:
            assert not is_running(home)
        finally:
            child.kill()
