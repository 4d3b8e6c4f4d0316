"""What the others use: a server to start, and to let go of.

Whoever has started it shares it, whoever lets go last stops it. That happens by itself when Python exits (atexit). A
process ended by a signal it does not handle lets go by ending, but cannot stop the server: the next user to leave does.
So a program that is ended by SIGTERM should turn that into an orderly exit; this library installs no signal handlers.
"""

import atexit
import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from recollect.errors import DataDirectoryProblem, UnsuitableServer
from recollect.store.embedded import locks
from recollect.store.embedded.account import SYSTEM_HOME, Account, current_account
from recollect.store.embedded.binaries import VERSIONS, find_binaries
from recollect.store.embedded.cluster import STOP_SECONDS, Cluster
from recollect.store.embedded.home import Home, default_home, in_plain_words


class EmbeddedServer:
    def __init__(self, home: Path | None = None, *, version: int = 18, start_seconds: int = 120) -> None:
        self._home = Home(path=Path(home or default_home()).expanduser().resolve())
        self._wanted_version = version
        self._start_seconds = start_seconds
        self._cluster: Cluster | None = None
        self._url: str | None = None
        self._hold: int | None = None
        self._holder = 0
        self._one_at_a_time = threading.Lock()

    def start(self) -> str:
        """The address of a server that answers. Call it again after a lost connection: a dead server is restarted."""
        with self._one_at_a_time, in_plain_words(self.home):
            account = current_account()
            self._home.prepare(account)
            with self._turn(account):
                self._home.prepare_postgres(account)
                self._cluster = self._find_cluster(account)
                self._url = self._cluster.bring_up().url
                self._take_hold(account)
            return self._url

    def release(self) -> None:
        """Let go of the server; the last one out stops it. Once more does no harm."""
        with self._one_at_a_time:
            hold, cluster, self._hold, self._url = self._hold, self._cluster, None, None
            atexit.unregister(self.release)
            if hold is None or cluster is None:
                return
            if self._holder != os.getpid():
                os.close(hold)  # a forked child: the hold is its parent's
                return
            with in_plain_words(self.home):
                self._leave(hold, cluster)

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def url(self) -> str:
        """For asyncpg or libpq, while the server is held."""
        if self._url is None:
            raise UnsuitableServer("The PostgreSQL inside has not been started yet: call start() first.")
        return self._url

    @property
    def version(self) -> int:
        """The major version that is, or will be, used here: that of the data, if there are any."""
        return self._version_of_data() or self._wanted_version

    @property
    def home(self) -> Path:
        return self._home.path

    @property
    def data_directory(self) -> Path:
        return self._home.data

    @property
    def log_file(self) -> Path:
        return self._home.log

    @property
    def socket_directory(self) -> Path | None:
        """None while no server runs."""
        postmaster = self._cluster.postmaster() if self._cluster else None
        return postmaster.sockets if postmaster else None

    def _find_cluster(self, account: Account) -> Cluster:
        binaries = find_binaries(self._suitable_version()).reachable_by(account, copies=SYSTEM_HOME)
        return Cluster(home=self._home, account=account, binaries=binaries, start_seconds=self._start_seconds)

    def _suitable_version(self) -> int:
        version = self._version_of_data()
        if version and version not in VERSIONS:
            raise UnsuitableServer(
                f"The database in {self.home} was made by PostgreSQL {version}, and there are only "
                f"{' and '.join(map(str, VERSIONS))} inside. Use a server of version {version} by "
                "RECOLLECT_DATABASE_URL, or choose another directory with RECOLLECT_HOME."
            )
        return version or self._wanted_version

    def _version_of_data(self) -> int | None:
        if not self.data_directory.exists():
            return None
        try:
            return int((self.data_directory / "PG_VERSION").read_text())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise DataDirectoryProblem(
                f"{self.data_directory} is not a whole database: its file PG_VERSION is missing or damaged. "
                "Move that directory away, and restore a backup."
            ) from None

    def _take_hold(self, account: Account) -> None:
        if self._hold is not None and self._holder == os.getpid():
            return
        self._hold = locks.take(self._home.users_lock, account, shared=True)
        self._holder = os.getpid()
        atexit.register(self.release)

    def _leave(self, hold: int, cluster: Cluster) -> None:
        """Let go before waiting for the turn: should that fail, the next one out still finds itself the last."""
        locks.let_go(hold)
        if not self._home.turn_lock.exists():
            return  # the home was deleted under the server, which notices by itself and ends
        with self._turn(cluster.account):
            if locks.is_free(self._home.users_lock, cluster.account):
                cluster.take_down()

    def _turn(self, account: Account) -> AbstractContextManager[None]:
        return locks.turn(self._home.turn_lock, account, seconds=self._start_seconds + STOP_SECONDS)
