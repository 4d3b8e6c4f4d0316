"""A real standby: `pg_basebackup` of a server inside, from the same binaries, that streams from it by its socket."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from recollect.store.embedded import EmbeddedServer
from recollect.store.embedded.account import SYSTEM_HOME, current_account
from recollect.store.embedded.binaries import find_binaries
from tests.conftest import HASTE, open_directory

START_SECONDS = "120"


class Follower:
    """A standby of one primary. It listens at a socket of its own."""

    def __init__(self, primary: EmbeddedServer) -> None:
        self._primary = primary
        self._account = current_account()
        self._binaries = find_binaries(primary.version).reachable_by(self._account, copies=SYSTEM_HOME)
        self._directory = open_directory()
        if self._account.dropped:
            os.chown(self._directory, self._account.uid, self._account.gid)

    @property
    def data(self) -> Path:
        return self._directory / "data"

    @property
    def url(self) -> str:
        return f"postgresql://recollect@/recollect?host={self._directory}&port=5432"

    def make(self) -> None:
        sockets = self._primary.socket_directory
        self._run("pg_basebackup", "-D", self.data, "-h", str(sockets), "-U", "recollect", "-R", "-c", "fast")

    def start(self) -> None:
        self._control("start", "-l", str(self._directory / "log"), "-o", f"-k {self._directory}")

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def promote(self) -> None:
        self._control("promote")

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    async def say(self, statement: str) -> object:
        connection = await asyncpg.connect(self.url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    async def hold_still(self) -> None:
        """What is written from now on is received, and not shown."""
        await self.say("SELECT pg_wal_replay_pause()")

    async def go_on(self) -> None:
        await self.say("SELECT pg_wal_replay_resume()")

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-t", START_SECONDS, *words)

    def _run(self, program: str, *words: str | Path) -> None:
        done = self._account.run(self._binaries.program(program), *words, directory=self._directory, seconds=180)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


@contextmanager
def followed(home: Path, settings: str = "") -> Iterator[tuple[EmbeddedServer, Follower]]:
    """A server in this home, and a standby of it."""
    server = EmbeddedServer(home)
    with (server.data_directory / "postgresql.conf").open("a") as chosen:
        chosen.write(HASTE + "wal_writer_delay = 10ms\n" + settings)
    with server:
        standby = Follower(server)
        try:
            standby.make()
            standby.start()
            yield server, standby
        finally:
            standby.remove()


def kill(server: EmbeddedServer) -> None:
    """As a power failure would."""
    pid = int((server.data_directory / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
