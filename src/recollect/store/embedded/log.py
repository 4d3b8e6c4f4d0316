"""The server's log: one file, kept small, quoted when something goes wrong."""

import re
from dataclasses import dataclass
from pathlib import Path

from recollect.store.embedded.account import Account

LIMIT_BYTES = 5_000_000
ROUTINE = r"starting PostgreSQL|listening on|database system (is|was)|shutting down|shutdown request|\.\.\. (ok|done)"


@dataclass(frozen=True, kw_only=True)
class Log:
    path: Path
    account: Account

    def trim(self) -> None:
        """In place, since a running server has it open; the older part is kept in one other file."""
        if self.size() > LIMIT_BYTES:
            script = 'tail -c "$2" "$1" > "$1.1" && : > "$1"'
            self.account.run("/bin/sh", "-c", script, "sh", self.path, str(LIMIT_BYTES))

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, position: int) -> str:
        if not self.path.exists():
            return ""
        with self.path.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def ending(self) -> str:
        """A clause for an error message."""
        return f"the end of its log {self.path} says: {essence(self.since(max(0, self.size() - 4000)))}"


def essence(output: str) -> str:
    """The last lines that say what is wrong, without their time stamps."""
    lines = [re.sub(r"^.*?\[\d+\] +", "", line).strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if not re.search(ROUTINE, line)]
    return "; ".join(line.rstrip(".") for line in telling[-3:]) or "nothing of note"
