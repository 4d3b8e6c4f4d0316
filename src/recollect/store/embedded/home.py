"""The home directory: made if missing, refused if it is somebody else's, never altered if we did not make it."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import platformdirs

from recollect.errors import DataDirectoryProblem, ServerDidNotStart
from recollect.store.embedded.account import SYSTEM_HOME, Account, user_name

ELSEWHERE = "Choose another directory with RECOLLECT_HOME."
FOUND_IN_EMPTY_VOLUMES = {"lost+found", ".DS_Store"}


@dataclass(frozen=True, kw_only=True)
class Home:
    path: Path

    @property
    def turn_lock(self) -> Path:
        return self.path / "turn.lock"

    @property
    def users_lock(self) -> Path:
        return self.path / "users.lock"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def postgres(self) -> Path:
        """The server's user owns this one, and everything in it."""
        return self.path / "postgres"

    @property
    def data(self) -> Path:
        return self.postgres / "data"

    @property
    def log(self) -> Path:
        return self.postgres / "server.log"

    @property
    def fingerprint(self) -> str:
        """Tells the servers of several homes apart, in socket names and process lists."""
        return sha256(os.fsencode(self.data)).hexdigest()[:12]

    def prepare(self, account: Account) -> None:
        """Leave the home ready for its first lock, which marks it as ours, or say in one sentence why it cannot be."""
        self._refuse_unreachable(account)
        if not self.path.exists():
            _make(self.path, account)
        self._refuse_foreign()

    def prepare_postgres(self, account: Account) -> None:
        if not self.postgres.exists():
            _make_owned(self.postgres, account)
        self._refuse_owned_by_another(account)

    def _refuse_unreachable(self, account: Account) -> None:
        nearest = next(path for path in (self.path, *self.path.parents) if path.exists())
        if not nearest.is_dir():
            raise DataDirectoryProblem(
                f"{nearest} is a file, so the database cannot be kept in {self.path}. {ELSEWHERE}"
            )
        if account.dropped and not self._can_enter(account, nearest):
            raise DataDirectoryProblem(
                f"The database runs as the user {account.name}, who may not enter {nearest}. Choose a directory "
                f"which that user can reach with RECOLLECT_HOME; as root the default is {SYSTEM_HOME}."
            )

    def _can_enter(self, account: Account, directory: Path) -> bool:
        """Asked again for a second where an empty home is closed: another process may be giving it away just now."""
        for _ in range(20):
            if account.can_enter(directory):
                return True
            if directory != self.path or any(directory.iterdir()):
                return False
            time.sleep(0.05)
        return False

    def _refuse_foreign(self) -> None:
        names = {path.name for path in self.path.iterdir()} - FOUND_IN_EMPTY_VOLUMES
        strangers = {name for name in names if not name.startswith("binaries-")}
        if strangers and self.turn_lock.name not in names:
            raise DataDirectoryProblem(
                f"{self.path} is not empty (it holds {min(strangers)}) and was not made by Recollect, so nothing was "
                f"touched. {ELSEWHERE}"
            )

    def _refuse_owned_by_another(self, account: Account) -> None:
        owner = self.postgres.stat().st_uid
        if owner != account.uid:
            raise DataDirectoryProblem(
                f"The database in {self.path} belongs to the user {user_name(owner)}, and this is {account.name}. "
                f"Run Recollect as {user_name(owner)}, or choose another directory with RECOLLECT_HOME."
            )


def default_home() -> Path:
    return SYSTEM_HOME if os.geteuid() == 0 else platformdirs.user_data_path("recollect")


@contextmanager
def in_plain_words(path: Path) -> Iterator[None]:
    """The operating system's refusals below a home, as one sentence."""
    try:
        yield
    except PermissionError as error:
        raise DataDirectoryProblem(
            f"The user {user_name(os.geteuid())} may not use {error.filename or path}: {error.strerror}. Give that "
            "user the right, or choose another directory with RECOLLECT_HOME."
        ) from None
    except OSError as error:
        raise DataDirectoryProblem(
            f"{error.filename or path} cannot be used: {error.strerror or error}. Mend that, or choose another "
            "directory with RECOLLECT_HOME."
        ) from None
    except subprocess.TimeoutExpired as error:
        raise ServerDidNotStart(
            f"PostgreSQL's program {Path(error.cmd[0]).name} did not finish within {error.timeout:.0f} seconds in "
            f"{path}. See whether the disk is overloaded, or raise RECOLLECT_PG_START_SECONDS."
        ) from None


def _make(path: Path, account: Account) -> None:
    """The home, and what is missing above it; only the home itself is the server's user's own."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(exist_ok=True)
        if account.dropped:
            parent.chmod(0o755)  # root's umask may be closed, and the user has to pass
    _make_owned(path, account)


def _make_owned(path: Path, account: Account) -> None:
    """Two processes may come here at once: whoever is second finds it made."""
    path.mkdir(mode=0o700, exist_ok=True)
    if account.dropped:
        _give_away(path, account)


def _give_away(path: Path, account: Account) -> None:
    """Through a descriptor, so that it is the directory made just now and no link put in its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)
