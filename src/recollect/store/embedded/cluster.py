"""One data directory: brought up, asked, and taken down. The caller holds the turn.

`postmaster.pid` says where a server can be reached and is not believed beyond that: whether anything of one lives is
asked of `server.lock`, and whether a process is ours, of its command line, which carries the cluster's name.
"""

import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from recollect.errors import DataDirectoryProblem, ServerDidNotStart
from recollect.store.embedded import locks, sockets
from recollect.store.embedded.account import Account
from recollect.store.embedded.binaries import Binaries
from recollect.store.embedded.home import Home
from recollect.store.embedded.log import Log, essence
from recollect.store.embedded.making import DATABASE, OWNER, Maker
from recollect.store.embedded.processes import command_lines

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 2.0  # with processes that should have ended, or a socket that should be there
UNSEEN_SECONDS = 10.0
STOP_SECONDS = 60
FULL = ("too many clients already", "remaining connection slots are reserved")


@dataclass(frozen=True, kw_only=True)
class Postmaster:
    """What a server wrote of itself into postmaster.pid."""

    pid: int
    port: int
    sockets: Path
    is_ready: bool

    @property
    def socket(self) -> Path:
        return sockets.socket_file(self.sockets, self.port)

    @property
    def url(self) -> str:
        return f"postgresql://{OWNER}@/{DATABASE}?host={quote(str(self.sockets), safe='/')}&port={self.port}"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    home: Home
    account: Account
    binaries: Binaries
    start_seconds: int

    def bring_up(self) -> Postmaster:
        """A server that answers: the one that runs, or a new one."""
        if not self.home.data.exists():
            self._maker.make()
        self._log.trim()
        began = time.monotonic()
        while (postmaster := self.answering()) is None:
            waited = time.monotonic() - began
            self._refuse_to_wait_longer(waited)
            lock = locks.take(self.home.server_lock, self.account)
            if lock is None:
                self._wait_for_what_lives(waited)
            else:
                self._launch(lock)
        return postmaster

    def take_down(self) -> None:
        """Stop the server, if there is one of ours; it disconnects whoever is left and writes everything down."""
        postmaster = self.postmaster()
        if postmaster is None or not self._is_ours(postmaster.pid):
            return
        if self._stop("fast") and self._stop("immediate"):
            raise ServerDidNotStart(
                f"The PostgreSQL inside did not stop within {STOP_SECONDS} seconds; {self._log.ending()}. "
                f"End its process {postmaster.pid} by hand."
            )
        sockets.remove_if_empty(postmaster.sockets, self.account)

    def answering(self) -> Postmaster | None:
        postmaster = self.postmaster()
        if postmaster is None or not sockets.is_private(postmaster.sockets, self.account):
            return None
        return postmaster if self._answers(postmaster) else None

    def postmaster(self) -> Postmaster | None:
        try:
            lines = self._pid_file.read_text(errors="replace").splitlines()
            pid, port, directory = int(lines[0]), int(lines[3]), lines[4]
        except (FileNotFoundError, IndexError, ValueError):
            return None  # no server, or one that is only beginning
        if not directory:
            return None
        return Postmaster(pid=pid, port=port, sockets=Path(directory), is_ready=lines[-1].strip() == "ready")

    # ------------------------------------------------------------------ up and down

    def _answers(self, postmaster: Postmaster) -> bool:
        try:
            said = self.account.run(
                *(self.binaries.program("psql"), "-XAtqw", "-h", postmaster.sockets, "-p", str(postmaster.port)),
                *("-U", OWNER, "-d", DATABASE, "-c", "SELECT 1"),
                environment={"PGCONNECT_TIMEOUT": "5"},
                seconds=10,
            )
        except subprocess.TimeoutExpired:
            return False
        return said.stdout.strip() == "1" or any(sign in said.stderr for sign in FULL)

    def _launch(self, lock: int) -> None:
        """Start the server, which inherits the lock and keeps it until its last process has ended."""
        try:
            self._refuse_a_server_of_other_origin()
            self._disown_pid_file()
            directory = sockets.make_socket_directory(self.home.fingerprint, self.account)
            sockets.clear(directory)
            before = self._log.size()
            started = self._pg_ctl(
                *("start", "-l", self.home.log.name, "-o", f"-k {directory} -c cluster_name={self._name}"),
                seconds=self.start_seconds,
                keep_open=[lock],
            )
        finally:
            os.close(lock)
        if started.returncode and not self._still_tries():
            sockets.remove_if_empty(directory, self.account)
            raise ServerDidNotStart(
                f"The PostgreSQL inside did not start: {essence(self._log.since(before) or started.stderr)}. "
                f"Mend that and try again; its log is {self.home.log}."
            )

    def _stop(self, mode: str) -> int:
        return self._pg_ctl("stop", "-m", mode, seconds=STOP_SECONDS).returncode

    def _pg_ctl(self, *words: str, seconds: int, keep_open: Iterable[int] = ()) -> subprocess.CompletedProcess[str]:
        """The directories are not named in arguments, since pg_ctl passes those through a shell unquoted."""
        return self.account.run(
            self.binaries.program("pg_ctl"),
            *(*words, "-w", "-t", str(seconds)),
            environment={"PGDATA": str(self.home.data)},
            directory=self.home.postgres,
            seconds=seconds + 30,
            keep_open=tuple(keep_open),
        )

    # ------------------------------------------------------------------ something lives and does not answer

    def _wait_for_what_lives(self, waited: float) -> None:
        """It is starting, ending, orphaned, cut off, or out of sight."""
        time.sleep(POLL_SECONDS)
        if waited < PATIENCE_SECONDS:
            return
        family = self._family()
        if not family and waited > UNSEEN_SECONDS:
            self._refuse_the_unseen()
        elif all(command.startswith("postgres: ") for command in family.values()):
            self._end_orphans(family)
        elif self._is_cut_off():
            self.take_down()

    def _end_orphans(self, pids: Iterable[int]) -> None:
        """Children that outlive a killed postmaster go on with their query, and no server may start beside them."""
        for pid in pids:
            self.account.run("/bin/sh", "-c", f"kill -QUIT {pid}")

    def _is_cut_off(self) -> bool:
        """It runs, but somebody cleaned up the directory of its socket."""
        postmaster = self.postmaster()
        return postmaster is not None and postmaster.is_ready and not postmaster.socket.exists()

    def _still_tries(self) -> bool:
        """It was not ready in time, which is no failure: it goes on recovering, and may be done at the next attempt."""
        return not locks.is_free(self.home.server_lock, self.account)

    def _refuse_to_wait_longer(self, waited: float) -> None:
        if waited > self.start_seconds:
            raise ServerDidNotStart(
                f"The PostgreSQL inside did not answer within {self.start_seconds} seconds; {self._log.ending()}. "
                "It may still be recovering: try again, or raise RECOLLECT_PG_START_SECONDS."
            )

    def _refuse_the_unseen(self) -> None:
        if not locks.is_free(self.home.server_lock, self.account):
            raise DataDirectoryProblem(
                f"The database in {self.home.path} is in use by processes that cannot be seen from here, perhaps in "
                "another container. Stop those, or let both use one server by RECOLLECT_DATABASE_URL."
            )

    # ------------------------------------------------------------------ whose process is it

    @property
    def _name(self) -> str:
        """In the command line of every process of the server, so that none is taken for another's."""
        return f"recollect-{self.home.fingerprint}"

    def _family(self) -> dict[int, str]:
        return {pid: command for pid, command in command_lines().items() if self._name in command}

    def _is_ours(self, pid: int) -> bool:
        return pid in self._family()

    def _refuse_a_server_of_other_origin(self) -> None:
        postmaster, running = self.postmaster(), command_lines()
        suspects = [postmaster.pid] if postmaster else running  # a torn file names nobody
        strangers = [pid for pid in suspects if f"postgres -D {self.home.data}" in running.get(pid, "")]
        if strangers:
            raise DataDirectoryProblem(
                f"A PostgreSQL that Recollect did not start (process {strangers[0]}) works in {self.home.data}. "
                "Stop it with `pg_ctl stop`, and try again."
            )

    def _disown_pid_file(self) -> None:
        """Nothing of our server lives, so the process named there is a zombie or a stranger, to which PostgreSQL would
        yield. Our own id is one that it passes over (that of pg_ctl's parent). The file is kept rather than removed:
        by its other lines PostgreSQL makes sure that the old shared memory is out of use. One that is empty or torn,
        after a power failure or on a full disk, says nothing, and no server would start beside it.
        """
        if self.postmaster() is None:
            self.account.run("/bin/sh", "-c", 'rm -f "$1"', "sh", self._pid_file)
        else:
            script = 'sed "1s/.*/$2/" "$1" > "$1.new" && mv "$1.new" "$1"'
            self.account.run("/bin/sh", "-c", script, "sh", self._pid_file, str(os.getpid()))

    # ------------------------------------------------------------------ its parts

    @property
    def _pid_file(self) -> Path:
        return self.home.data / "postmaster.pid"

    @property
    def _log(self) -> Log:
        return Log(path=self.home.log, account=self.account)

    @property
    def _maker(self) -> Maker:
        return Maker(
            home=self.home, account=self.account, binaries=self.binaries, seconds=self.start_seconds + STOP_SECONDS
        )
