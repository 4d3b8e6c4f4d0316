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
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit
from uuid import uuid4

from recollect.errors import Busy, Conflict, DatabaseProblem, InvalidInput
from recollect.store.database import SCHEMA
from recollect.store.distribute import statements
from recollect.store.embedded import clean_environment, tool

MAGIC = b"PGDMP"
# A script of pg_restore begins with settings; the head of it is shorter than this.
HEAD_LINES = 40
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


# Citus drops a schema only where nothing before it went to several shards at once.
ONE_BY_ONE = b"SET LOCAL citus.multi_shard_modify_mode TO 'sequential';\n"
# Whatever a process keeps of a version of a space is used while the space has that version: none comes twice.
NOTE_VERSIONS = f"""
DO $$ DECLARE last int8 := 0; BEGIN
    IF to_regclass('{SCHEMA}.space_versions') IS NOT NULL THEN
        SELECT coalesce(max(version), 0) INTO last FROM {SCHEMA}.space_versions;
    END IF;
    PERFORM set_config('recollect.last_version', last::text, true);
END $$;
""".encode()
PASS_VERSIONS = f"""
DO $$ BEGIN
    IF to_regclass('{SCHEMA}.space_versions') IS NOT NULL THEN
        UPDATE {SCHEMA}.space_versions SET version = version + current_setting('recollect.last_version')::int8;
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
    refuse_what_is_no_file(file)
    address, environment = _without_password(dsn)
    partial = file.with_name(f"{file.name[:200]}.{uuid4().hex[:8]}.partial")  # others may back up to there as well
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


def refuse_what_is_no_file(file: Path) -> None:
    """What is written beside its name and renamed would take the place of a device, or of a pipe."""
    if file.exists() and not file.is_file():
        what = "a folder" if file.is_dir() else "no file but a device or a pipe"
        raise InvalidInput(f"{file} is {what}: name a file to write to.")


def restore(dsn: str, file: Path, programs: Programs, *, shards: int | None = None, grants: Sequence[str] = ()) -> None:
    """Replace everything by what a backup holds, in one transaction; spread over shards, where a number is given.

    Rights are given in the same transaction: other processes work on, and find the new tables instead of the old.
    """
    check_is_dump(file, programs)
    address, environment = _without_password(dsn)
    writing = ["psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--dbname={address}", "--file=-"]
    with (
        tempfile.TemporaryFile() as problems,
        programs.start(
            writing, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=problems, env=environment
        ) as target,
    ):
        assert target.stdin is not None
        whole = False
        with contextlib.suppress(BrokenPipeError):  # psql stopped at an error, which it has told
            target.stdin.write(b"BEGIN;\n" + (b"" if shards is None else ONE_BY_ONE) + NOTE_VERSIONS)
            target.stdin.write(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\n".encode())
            for part, then in _parts(shards):
                reading = ["pg_restore", *PLAIN, *part, "--file=-", str(file)]
                with programs.start(reading, stdout=subprocess.PIPE, stderr=problems, env=environment) as source:
                    assert source.stdout is not None
                    _pass_on(source.stdout, target.stdin)
                    source.stdout.close()
                    whole = source.wait() == 0
                if not whole:
                    break
                target.stdin.write(then)
            if whole:
                target.stdin.write(PASS_VERSIONS + "".join(f"{grant};\n" for grant in grants).encode())
            # If the dump ends half-way, an error at the end takes everything back.
            target.stdin.write(b"COMMIT;\n" if whole else b"\nSELECT the_backup_is_incomplete;\n")
        with contextlib.suppress(BrokenPipeError):
            target.stdin.close()
        target.wait()
        problems.seek(0)
        message = problems.read()
    if not whole or target.returncode != 0:
        raise DatabaseProblem(f"{file} could not be restored ({_last_line(message)}): nothing was changed.")


def _parts(shards: int | None) -> list[tuple[list[str], bytes]]:
    """What to ask of pg_restore, one after the other, each with what follows it.

    Tables are distributed before they hold anything, and joined by keys and triggers when they hold all.
    """
    if shards is None:
        return [([], b"\n" + FORGET_TRANSACTIONS)]
    spread = ";\n".join(("", *statements(shards), "")).encode()
    forget = f"\nUPDATE {SCHEMA}.edges SET changed_in = 0 WHERE changed_in > 0;\n".encode()
    return [(["--section=pre-data"], spread), (["--section=data"], forget), (["--section=post-data"], b"\n")]


def _pass_on(source: IO[bytes], target: IO[bytes]) -> None:
    """The script from pg_restore to psql. An older server does not know every setting of a newer dump's head."""
    for number, line in enumerate(source):
        if not line.startswith(b"SET transaction_timeout"):
            target.write(line)
        if number > HEAD_LINES:
            break
    shutil.copyfileobj(source, target)


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
