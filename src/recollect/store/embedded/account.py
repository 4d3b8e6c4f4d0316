"""The user the server runs as: ourselves, or, since PostgreSQL refuses to be root, the system user `recollect`.

Everything below the cluster's directory is done by a child process with that user's rights. Root's own hand makes
directories and gives them away, no more: a file that user could swap for a link is never written by root.
"""

import errno
import fcntl
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import ServerDidNotStart

SYSTEM_USER = "recollect"
SYSTEM_HOME = Path("/var/lib/recollect")
MAKING = Path("/run/recollect-user.lock")


@dataclass(frozen=True, kw_only=True)
class Account:
    name: str
    uid: int
    gid: int
    dropped: bool  # we are root, and become this user for the server's sake

    def run(
        self,
        *argv: str | Path,
        environment: Mapping[str, str] | None = None,
        directory: Path = Path("/"),  # ours may be one that the user cannot enter
        given: str = "",
        seconds: float = 60,
        keep_open: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as this user, away from our terminal (so that Ctrl-C does not reach it)."""
        try:
            return subprocess.run(
                [str(part) for part in argv],
                env=clean_environment() | dict(environment or {}),
                cwd=directory,
                input=given,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
                pass_fds=keep_open,
                start_new_session=True,
                umask=0o077,
                check=False,
                **self._identity(),
            )
        except PermissionError as error:
            if self.dropped and error.errno == errno.EPERM:
                raise ServerDidNotStart(
                    f"PostgreSQL does not run as root, and this root may not become the user {self.name} (it lacks "
                    "CAP_SETUID or CAP_SETGID). Run Recollect as an ordinary user, or set RECOLLECT_DATABASE_URL."
                ) from None
            raise

    def can_enter(self, directory: Path) -> bool:
        """Found by trying: mode bits alone know nothing of access lists and mounts."""
        return self.run("/bin/sh", "-c", 'cd "$1"', "sh", directory).returncode == 0

    def _identity(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.dropped else {}


def current_account() -> Account:
    if os.geteuid() == 0:
        entry = _system_user()
        return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, dropped=True)
    return Account(name=user_name(os.geteuid()), uid=os.geteuid(), gid=os.getegid(), dropped=False)


def user_name(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name if has_name(uid) else str(uid)


def has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def clean_environment() -> dict[str, str]:
    """What PostgreSQL's programs may see of our environment: no PG* or LD_* variable, and messages in English."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _system_user() -> pwd.struct_passwd:
    return _known_system_user() or _made_system_user()


def _known_system_user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _made_system_user() -> pwd.struct_passwd:
    with _one_at_a_time():
        why = "" if _known_system_user() else _make_system_user()
    if made := _known_system_user():
        return made
    raise ServerDidNotStart(
        f"PostgreSQL does not run as root, and the system user {SYSTEM_USER} could not be made ({why}). "
        f"Make it with `useradd --system {SYSTEM_USER}`, run as an ordinary user, or set RECOLLECT_DATABASE_URL."
    )


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """useradd looks whether there is such a user before it waits for its turn: of several at once each would give the
    user another id, and homes would belong to ids that nobody has any more."""
    with ExitStack() as stack:
        with suppress(OSError):  # where nothing can be written there, useradd is asked without a turn
            descriptor = os.open(MAKING, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _make_system_user() -> str:
    """Why it was not made, if it was not."""
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not useradd:
        return "there is no useradd here"
    command = ["--system", "--user-group", "--no-create-home", "--home-dir", str(SYSTEM_HOME), SYSTEM_USER]
    done = subprocess.run([useradd, *command], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"useradd ended with {done.returncode}"
