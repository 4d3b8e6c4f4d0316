"""A new cluster: made beside its place and renamed into it when complete, so a half-made one is never used."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import DataDirectoryProblem, ServerDidNotStart
from recollect.store.embedded.account import Account, has_name
from recollect.store.embedded.binaries import Binaries
from recollect.store.embedded.home import ELSEWHERE, Home
from recollect.store.embedded.log import essence
from recollect.store.embedded.tuning import WAL_SEGMENT_MB, memory_bytes, settings_for

DATABASE = OWNER = "recollect"
UNFINISHED = "initdb-"
NO_SPACE = "No space left on device"
TAKES_MB = 36


@dataclass(frozen=True, kw_only=True)
class Maker:
    home: Home
    account: Account
    binaries: Binaries
    seconds: float

    def make(self) -> None:
        self._refuse_nameless_user()
        self._remove_unfinished()
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self.home.postgres))
        if self.account.dropped:
            os.chown(unfinished, self.account.uid, self.account.gid, follow_symlinks=False)
        try:
            self._initdb(unfinished)
            self._name_database(unfinished)
            unfinished.rename(self.home.data)
        finally:
            # Once more: an initdb whose starter was killed may have gone on writing while its directory was removed.
            self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        for leftover in self.home.postgres.glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _initdb(self, directory: Path) -> None:
        for locale in self._locales():
            # `trust` asks no password of those who reach the socket; its 0700 directory is what keeps others away.
            # Should somebody switch on listen_addresses, the network is still refused.
            made = self.account.run(
                *(self.binaries.program("initdb"), "-D", directory, "-U", OWNER, "--encoding=UTF8", "--locale=C"),
                *("--auth-local=trust", "--auth-host=reject", "--data-checksums", f"--wal-segsize={WAL_SEGMENT_MB}"),
                *locale,
                *(f"--set={name}={value}" for name, value in settings_for(memory_bytes()).items()),
                seconds=self.seconds,
            )
            if "invalid locale name" not in made.stderr:
                break
        self._refuse_unmade(made)

    def _locales(self) -> list[list[str]]:
        """Unicode letters on any machine: built in since 17; before, where the system has C.UTF-8; else ASCII only."""
        if self.binaries.version >= 17:
            return [["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
        return [["--lc-ctype=C.UTF-8"], []]

    def _name_database(self, directory: Path) -> None:
        """The one that initdb makes for whoever connects becomes ours: another would be 8 MB more, which nobody uses.
        Before the cluster has its name, so that there is none without its database."""
        self._refuse_unmade(
            self.account.run(
                self.binaries.program("postgres"),
                *("--single", "-c", "exit_on_error=on", "-D", str(directory), "template1"),
                given=f"ALTER DATABASE postgres RENAME TO {DATABASE};\nCOMMENT ON DATABASE {DATABASE} IS NULL;\n",
                seconds=self.seconds,
            )
        )

    def _refuse_unmade(self, made: subprocess.CompletedProcess[str]) -> None:
        if made.returncode and NO_SPACE in made.stderr:  # that may be said long before the last lines
            raise DataDirectoryProblem(
                f"The disk of {self.home.path} has no room for a new database, which takes {TAKES_MB} MB: "
                f"make room there. {ELSEWHERE}"
            )
        if made.returncode:
            raise DataDirectoryProblem(
                f"The database could not be made in {self.home.path}: {essence(made.stderr)}. Mend that. {ELSEWHERE}"
            )

    def _refuse_nameless_user(self) -> None:
        if not has_name(self.account.uid):
            raise ServerDidNotStart(
                f"PostgreSQL cannot be set up by the user id {self.account.uid}, which has no name on this machine. "
                "Add it to /etc/passwd, run as another user, or set RECOLLECT_DATABASE_URL."
            )
