"""Whole backups, with PostgreSQL's own pg_dump and pg_restore from the package.

A dump is written beside its final name and renamed when complete. A restore is one transaction: the old schema goes and
the new one comes, or nothing happens. It is we who say COMMIT, as the last word: were it left to psql, it would also
commit the half of a script that is left when we are killed half-way.

Whoever gives up waiting ends the programs (`Programs.end`), and the thread that waits for them ends with them.
"""

import contextlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from recollect.errors import Busy, Conflict, DatabaseProblem, InvalidInput
from recollect.store.database import SCHEMA
from recollect.store.embedded import clean_environment, tool

MAGIC = b"PGDMP"
# Owners and rights belong to the server a dump came from; they are given anew where it is restored.
PLAIN = ("--no-owner", "--no-privileges")
# Edges say which transaction wrote them last. A server that has not counted that far yet would take them for changed
# again and again; they count as written now. (Backups of the first version do not say it.)
FORGET_TRANSACTIONS = f"""
DO $$ BEGIN
    IF EXISTS (SELECT FROM information_schema.columns WHERE (table_schema, table_name, column_name)
                = ('{SCHEMA}', 'edges', 'changed_in')) THEN
        UPDATE {SCHEMA}.edges SET changed_in = 0 WHERE changed_in >= pg_current_xact_id()::text::bigint;
    END IF;
END $$;
""".encode()


class Programs:
    """The programs that one thread runs, and another can end."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []
        self._changing = threading.Lock()
        self._is_over = False

    def start(self, command: list[str], **options: Any) -> "subprocess.Popen[bytes]":
        with self._changing:
            if self._is_over:
                raise Busy("It was broken off: nothing was changed.")
            self._running.append(subprocess.Popen([tool(command[0]), *command[1:]], **options))
            return self._running[-1]

    def end(self) -> None:
        with self._changing:
            self._is_over = True
            for program in self._running:
                program.kill()


def dump(dsn: str, file: Path, *, overwrite: bool, programs: Programs, make_directory: bool = False) -> int:
    """Write a backup; returns its size in bytes. The directory is made only for backups that we place ourselves."""
    if file.exists() and not overwrite:
        raise Conflict(f"{file} exists already: give another name, or --overwrite.")
    address, environment = _without_password(dsn)
    partial = file.with_name(file.name + ".partial")
    try:
        if make_directory:
            file.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(mode=0o600)
        _run(
            ["pg_dump", "--format=custom", *PLAIN, f"--schema={SCHEMA}", f"--file={partial}", f"--dbname={address}"],
            environment,
            f"The backup to {file} failed",
            programs,
        )
        partial.replace(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror}): choose another place.") from error
    finally:
        with contextlib.suppress(OSError):  # where it could not be made, there is nothing to remove
            partial.unlink()
    return file.stat().st_size


def restore(dsn: str, file: Path, programs: Programs) -> None:
    """Replace everything by what a backup holds, in one transaction."""
    check_is_dump(file, programs)
    address, environment = _without_password(dsn)
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    reading = ["pg_restore", *PLAIN, "--file=-", str(file)]
    writing = ["psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--dbname={address}", "--file=-"]
    with (
        tempfile.TemporaryFile() as problems,
        programs.start(reading, stdout=pipe, stderr=problems, env=environment) as source,
        programs.start(writing, stdin=pipe, stdout=nowhere, stderr=problems, env=environment) as target,
    ):
        assert source.stdout is not None
        assert target.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # psql stopped at an error, which it has told
            _pass_on(source.stdout, target.stdin, whole=lambda: source.wait() == 0)
        with contextlib.suppress(BrokenPipeError):
            target.stdin.close()
        target.wait()
        source.stdout.close()
        source.wait()
        problems.seek(0)
        told = problems.read()
    if source.returncode != 0 or target.returncode != 0:
        raise DatabaseProblem(f"{file} could not be restored ({_last_line(told)}): nothing was changed.")


def _pass_on(source: IO[bytes], target: IO[bytes], *, whole: Callable[[], bool]) -> None:
    """The script from pg_restore to psql. An older server does not know every setting of a newer dump's head; and if
    the dump ends half-way, an error at the end takes everything back."""
    target.write(f"BEGIN;\nDROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\n".encode())
    for line in source:
        if not line.startswith(b"SET transaction_timeout"):
            target.write(line)
        if line.startswith(b"CREATE SCHEMA"):
            break
    shutil.copyfileobj(source, target)
    target.write(b"\n" + FORGET_TRANSACTIONS + b"COMMIT;\n" if whole() else b"\nSELECT the_backup_is_incomplete;\n")


def check_is_dump(file: Path, programs: Programs) -> None:
    try:
        with file.open("rb") as opened:
            head = opened.read(len(MAGIC))
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read ({error.strerror}): name a file that `recollect backup` has written."
        ) from error
    if head != MAGIC:
        raise InvalidInput(f"{file} is not a backup made by `recollect backup`.")
    listing = _run(
        ["pg_restore", "--list", str(file)], clean_environment(), f"{file} cannot be read as a backup", programs
    )
    if f" {SCHEMA} nodes " not in listing:
        raise InvalidInput(f"{file} is a PostgreSQL dump, but not one of Recollect.")


def _without_password(dsn: str) -> tuple[str, dict[str, str]]:
    """The address without its password (the process list shows it to everyone), and an environment that holds it."""
    environment = clean_environment()
    parts = urlsplit(dsn)
    if parts.password is None:
        return dsn, environment
    environment["PGPASSWORD"] = unquote(parts.password)
    host = parts.netloc.rsplit("@", 1)[1]
    return urlunsplit(parts._replace(netloc=f"{parts.username}@{host}")), environment


def _run(command: list[str], environment: dict[str, str], failure: str, programs: Programs) -> str:
    pipe = subprocess.PIPE
    with programs.start(command, stdout=pipe, stderr=pipe, env=environment) as program:
        said, problems = program.communicate()
    if program.returncode != 0:
        raise DatabaseProblem(f"{failure}: {_last_line(problems)}.")
    return said.decode(errors="replace")


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().rstrip(".") if lines else "no reason given"
