"""A peer at work: its process, asked line by line, bounded in time, measured from outside, killed on demand."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parent.parent.parent
# Nothing leaves the machine: no telemetry, no model hub, and whoever tries all the same is sent to a closed port.
OFFLINE = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "MEM0_TELEMETRY": "False",
    "NO_PROXY": "localhost,127.0.0.1",
    "POSTHOG_DISABLED": "1",
    "TRANSFORMERS_OFFLINE": "1",
    **dict.fromkeys(("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), "http://127.0.0.1:9"),
}
# Nor does anybody compile anew at each start what others have compiled.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
CLOSING_SECONDS = 60
TOO_SLOW = "no answer within"


class PeerFailed(Exception):
    """A peer raised, died or took too long: its row says why, and the run goes on."""


class Talk:
    """With a peer in a directory: `with Talk(python, "chroma", directory) as peer: peer.search(...)`."""

    def __init__(self, python: Path, driver: str, directory: Path, *, variant: str = "", seconds: float = 120) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)
        home = directory.with_name(f"{directory.name}.home")
        home.mkdir(exist_ok=True)
        self.directory, self.seconds = directory, seconds
        self._said = directory.with_name(f"{directory.name}.log")
        self._began = time.perf_counter()
        with self._said.open("a") as log:
            self._process = subprocess.Popen(
                [python, "-m", "bench.peers.drivers", driver, directory, variant],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=ENVIRONMENT | OFFLINE | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "HOME": str(home)},
                cwd=directory,
                encoding="utf-8",
            )
        self._opened = False

    # -- asking

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        if not self._opened:
            self._opened = True
            self._answer()
        self._tell({"do": do, **more})
        return self._answer()

    def know(self, file: Path) -> None:
        self.ask("know", file=str(file))

    def add(self, memories: Sequence[Sequence[str | None]], user: str = "ana") -> list[float]:
        return list(self.ask("add", memories=memories, user=user)["spent"])

    def load(self, memories: Sequence[Sequence[str | None]], user: str = "ana") -> tuple[float, float]:
        """The seconds until they were stored, and until they could be found."""
        said = self.ask("load", memories=memories, user=user)
        return said["stored"], said["spent"][0]

    def search(
        self, questions: Sequence[str], *, user: str = "ana", limit: int = 10
    ) -> tuple[list[list[str]], list[float]]:
        said = self.ask("search", questions=questions, user=user, limit=limit)
        return said["found"], said["spent"]

    def first_answer(self, question: str) -> float:
        """Seconds from the start of the process to its first answer."""
        self.search([question])
        return time.perf_counter() - self._began

    # -- from outside

    def megabytes(self) -> float:
        """What its processes hold, what they share counted once."""
        return sum(proportional(pid) for pid in self.pids()) / 1024

    def pids(self) -> list[int]:
        return families(self.ask("processes")["pids"])

    def killed_after(self, seconds: float) -> threading.Thread:
        """All its processes at once, as when the machine's memory ends; done when the thread is."""
        pids = self.pids()

        def kill() -> None:
            time.sleep(seconds)
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self._process.wait()

        thread = threading.Thread(target=kill)
        thread.start()
        return thread

    def __enter__(self) -> "Talk":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closed in order where it lives; what then still runs is ended."""
        try:
            if self._process.poll() is None and kind is None:
                self.ask("close")
        finally:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    _close_quietly(pipe)
            try:
                self._process.wait(CLOSING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    # -- the lines

    def _tell(self, asked: dict[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self._last_words()) from None

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self.seconds, give_up)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self._process.wait()
            raise PeerFailed(f"{TOO_SLOW} {self.seconds:.0f} s" if late.is_set() else self._last_words())
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise PeerFailed(said["error"])
        return said

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._said.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"ended with {self._process.poll()}"


def _close_quietly(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return


def families(pids: Iterable[int]) -> list[int]:
    """These processes and all below them."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            below.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], list(pids)
    while waiting:
        found.append(waiting.pop())
        waiting += below.get(found[-1], [])
    return found


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has just ended
        return None


def proportional(pid: int) -> int:
    """Kilobytes, each shared page divided among those that share it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def megabytes_on_disk(directory: Path) -> float:
    files = [file for file in directory.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6
