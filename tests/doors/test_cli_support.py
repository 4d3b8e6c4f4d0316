"""The ground the command line's tests stand on: a database of their own, since keys, faults and backups concern all
spaces; and a way to run commands in process, the way `recollect` does.

No tests here; each module takes the fixtures it needs: `cli = support.cli`.
"""

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from recollect.doors.cli.app import run
from tests.conftest import MADE


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs commands the way `recollect` does, in a space of its own."""

    space: str
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Answer:
        self.capture.readouterr()
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            run(arguments)
        out, err = self.capture.readouterr()
        assert isinstance(left.value.code, int)
        return Answer(left.value.code, out, err)

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        return self(*arguments, "--json", stdin=stdin).json

    def refused(self, *arguments: str, code: int, stdin: bytes = b"") -> str:
        """The one sentence on stderr of a command that cannot be done."""
        answer = self(*arguments, stdin=stdin)
        assert (answer.code, answer.out) == (code, ""), answer
        assert answer.err.count("\n") == 1, answer.err
        said = str(json.loads(answer.err)["message"]) if "--json" in arguments else answer.err.rstrip("\n")
        assert said.endswith((".", "?")), answer.err
        assert "Traceback" not in answer.err
        return answer.err

    def add(self, *arguments: str) -> str:
        return str(self.json("add", *arguments)["id"])


async def in_server(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def a_database(url: str) -> Iterator[str]:
    name = f"cli_{uuid4().hex[:12]}"
    asyncio.run(in_server(url, f"CREATE DATABASE {name} TEMPLATE {MADE}"))
    yield urlsplit(url)._replace(path=f"/{name}").geturl()
    asyncio.run(in_server(url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(scope="module")
def own_database(database_url: str) -> Iterator[str]:
    """A database of this module's own: keys, faults and restores concern all spaces."""
    with a_database(database_url) as url:
        yield url


@pytest.fixture
def in_default(
    own_database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Cli:
    """In the space that is always there, for what leaves nothing behind."""
    for name, value in {
        "RECOLLECT_DATABASE_URL": own_database,
        "RECOLLECT_EMBEDDER": "hashing:64",
        "RECOLLECT_HOME": str(tmp_path / "home"),
        "RECOLLECT_POOL_SIZE": "2",
    }.items():
        monkeypatch.setenv(name, value)
    return Cli("default", capsys, monkeypatch)


@pytest.fixture
def cli(in_default: Cli) -> Cli:
    """In a space of its own."""
    space = f"t-{uuid4().hex[:12]}"
    assert in_default("spaces", "add", space).code == 0
    in_default.patch.setenv("RECOLLECT_SPACE", space)
    return replace(in_default, space=space)
