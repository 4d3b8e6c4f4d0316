"""Whole backups, with PostgreSQL's own pg_dump and pg_restore from the package.

A dump is written beside its final name and renamed when complete. A restore is one transaction: the old schema goes and
the new one comes, or nothing happens.
"""

import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from recollect.errors import Conflict, DatabaseProblem, InvalidInput
from recollect.store.database import SCHEMA
from recollect.store.embedded import clean_environment, tool

MAGIC = b"PGDMP"
# Owners and rights belong to the server a dump came from; they are given anew where it is restored.
PLAIN = ("--no-owner", "--no-privileges")


def dump(dsn: str, file: Path, *, overwrite: bool) -> int:
    """Write a backup; returns its size in bytes."""
    if file.exists() and not overwrite:
        raise Conflict(f"{file} exists already: give another name, or --overwrite.")
    address, environment = _without_password(dsn)
    partial = file.with_name(file.name + ".partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(mode=0o600)
        _run(
            ["pg_dump", "--format=custom", *PLAIN, f"--schema={SCHEMA}", f"--file={partial}", f"--dbname={address}"],
            environment,
            f"The backup to {file} failed",
        )
        partial.replace(file)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror}): choose another place.") from error
    finally:
        partial.unlink(missing_ok=True)
    return file.stat().st_size


def restore(dsn: str, file: Path) -> None:
    """Replace everything by what a backup holds, in one transaction."""
    check_is_dump(file)
    address, environment = _without_password(dsn)
    script = subprocess.Popen(
        [str(tool("pg_restore")), *PLAIN, "--file=-", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    with script:
        assert script.stdout is not None
        assert script.stderr is not None
        psql = [str(tool("psql")), "--quiet", "--no-psqlrc", "--single-transaction", "--set=ON_ERROR_STOP=1"]
        target = subprocess.Popen(
            [*psql, f"--dbname={address}", f"--command=DROP SCHEMA IF EXISTS {SCHEMA} CASCADE", "--file=-"],
            stdin=script.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        script.stdout.close()
        _, problem = target.communicate()
        broken = script.stderr.read()
    if script.returncode != 0 or target.returncode != 0:
        raise DatabaseProblem(f"{file} could not be restored ({_last_line(broken + problem)}): nothing was changed.")


def check_is_dump(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            head = opened.read(len(MAGIC))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror}).") from error
    if head != MAGIC:
        raise InvalidInput(f"{file} is not a backup made by `recollect backup`.")
    listing = _run(["pg_restore", "--list", str(file)], clean_environment(), f"{file} cannot be read as a backup")
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


def _run(command: list[str], environment: dict[str, str], failure: str) -> str:
    program, *words = command
    done = subprocess.run([tool(program), *words], capture_output=True, env=environment, check=False)
    if done.returncode != 0:
        raise DatabaseProblem(f"{failure}: {_last_line(done.stderr)}.")
    return done.stdout.decode(errors="replace")


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().rstrip(".") if lines else "no reason given"
