"""The directory of the server's socket: short, since a socket's path may have 103 bytes, and closed to all others.

It is the only protection of the database, which trusts whoever can open the socket. So a directory of our name that
somebody else made beforehand is refused, and so is a parent in which others could replace it.
"""

import os
import re
import stat
import tempfile
from pathlib import Path

from recollect.errors import DataDirectoryProblem
from recollect.store.embedded.account import Account, user_name

PORT = 5432  # a name for the socket's file; nothing listens on the network
LONGEST_PATH = 103
INSIDE = re.compile(r"recollect-\d+-[0-9a-f]+(?=&|$)")


def make_socket_directory(fingerprint: str, account: Account) -> Path:
    directory = _parent(fingerprint, account) / _name(fingerprint, account)
    if not directory.is_symlink():
        directory.mkdir(mode=0o700, exist_ok=True)
    if account.dropped and directory.lstat().st_uid == os.geteuid():
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    if not is_private(directory, account):
        raise DataDirectoryProblem(
            f"The directory for the database's socket, {directory}, belongs to {user_name(directory.lstat().st_uid)} "
            "or is open to others, so it cannot be trusted. Remove it, or set TMPDIR to a short path of your own."
        )
    return directory


def is_private(directory: Path, account: Account) -> bool:
    try:
        state = directory.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == account.uid and not state.st_mode & 0o077


def socket_file(directory: Path, port: int) -> Path:
    return directory / f".s.PGSQL.{port}"


def clear(directory: Path) -> None:
    """What a killed server left behind would keep the next one from starting, were its process id re-used."""
    for file in directory.glob(".s.PGSQL.*"):
        file.unlink(missing_ok=True)


def remove_if_empty(directory: Path, account: Account) -> None:
    if is_private(directory, account) and not any(directory.iterdir()):
        directory.rmdir()


def is_inside(url: str) -> bool:
    """Whether an address is that of a database inside, whoever gave it."""
    return INSIDE.search(url) is not None


def _name(fingerprint: str, account: Account) -> str:
    return f"recollect-{account.uid}-{fingerprint}"  # see INSIDE


def _parent(fingerprint: str, account: Account) -> Path:
    for parent in dict.fromkeys(Path(folder) for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if _is_short_and_plain(parent / _name(fingerprint, account)) and _is_safe(parent, account):
            return parent
    raise DataDirectoryProblem(
        "There is no place for the database's socket: neither TMPDIR nor /tmp nor /var/tmp is short, writable and safe "
        "from others. Set TMPDIR to a short path of your own."
    )


def _is_short_and_plain(directory: Path) -> bool:
    """Plain, because the path passes through a shell and a comma-separated setting on its way to the server."""
    path = str(socket_file(directory, PORT))
    return len(path) <= LONGEST_PATH and re.fullmatch(r"[\w./-]+", path, re.ASCII) is not None


def _is_safe(parent: Path, account: Account) -> bool:
    """Nobody else may rename what is in it: it is sticky, or only its owner writes there."""
    try:
        state = parent.stat()
    except OSError:
        return False
    shared = state.st_mode & 0o022
    ours = state.st_uid in {0, account.uid, os.geteuid()}
    return ours and (not shared or bool(state.st_mode & stat.S_ISVTX)) and _can_make_in(parent, account)


def _can_make_in(parent: Path, account: Account) -> bool:
    return account.can_enter(parent) if account.dropped else os.access(parent, os.W_OK | os.X_OK)
