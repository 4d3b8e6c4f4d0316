"""Every block of the documents runs, in the order in which they are read, in one home that is empty at first (G04).

- ```sh is given to bash, ```python to Python; both must end well. Variables and the directory last until the page ends.
- ```console is typed command by command, and what is shown below each is what is to be seen. Ids and times differ from
  run to run: an id of the document stands for the one that was seen in its place, and must go on standing for it.
- A block that names a file (```csv answers.csv) is that file, in the directory where the commands are typed.
- ```text is to look at. Any other block says before it why it is not run: <!-- not run: needs Claude Code -->, and is
  in the list below, so that such blocks do not grow in silence.

The reader is somebody who has a folder of notes. `recollect serve`, which they leave running in
another terminal, runs beside; the port of the documents stands for one that is free.

`ACCEPT=1 pytest tests/quality/test_blocks.py` writes what was seen into the documents; look at the difference.
"""

import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from recollect.store.embedded import EmbeddedServer
from tests.quality.test_documents import PAGES
from tests.reference import ROOT
from tests.waiting import until

# Page, reason, and how many blocks.
NOT_RUN = {
    ("docs/how-to/grow.md", "needs servers of yours"): 8,
    ("docs/how-to/grow.md", "needs machines of yours"): 3,
    ("README.md", "installs packages; the first job of CI does it, in an environment of its own"): 1,
    ("CONTRIBUTING.md", "it is the suite itself"): 2,
    ("docs/how-it-is-tested.md", "it is the suite itself"): 1,
    ("docs/how-to/agents.md", "needs Claude Code"): 1,
    ("docs/how-to/ask-with-a-model.md", "needs a language model"): 1,
    ("docs/how-to/case-bank.md", "needs an address that takes notices"): 1,
    ("docs/how-to/langchain.md", "installs packages"): 1,
    ("docs/how-to/langgraph.md", "installs packages"): 1,
    ("docs/how-to/langgraph.md", "needs a graph of yours"): 1,
    ("docs/how-to/llama-index.md", "installs packages"): 1,
    ("docs/how-to/llama-index.md", "needs a language model"): 1,
    ("docs/how-to/openai-agents.md", "installs packages"): 1,
    ("docs/how-to/openai-agents.md", "needs a language model"): 1,
    ("docs/how-to/pydantic-ai.md", "installs packages"): 1,
    ("docs/how-to/serve-a-team.md", "needs a PostgreSQL of yours"): 2,
    ("docs/how-to/tidy-by-schedule.md", "needs addresses that take notices"): 1,
}
ORDER = ("README.md", "docs/quickstart.md", "docs/why.md", "docs/concepts", "docs/how-to", "")
TO_LOOK_AT = {"text"}
BLOCK = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>.+?) -->\n)?^(?P<indent> *)```(?P<language>\w+)(?: (?P<name>[\w./-]+))?\n"
    r"(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\dZ)?")
SERVE = re.compile(r"^(?:recollect|\./run) serve\b([^#\n]*).*$", re.MULTILINE)
PORT = "7700"
ACCEPT = "ACCEPT" in os.environ
NOTES = {
    "notes/tea.md": "# Tea\n\nLinh likes it green, three minutes, no sugar.\n",
    "notes/garden.txt": "The roses were cut back in February.\n",
}


@dataclass(frozen=True, kw_only=True)
class Block:
    page: Path
    line: int
    language: str
    name: str | None
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"

    @property
    def runs(self) -> bool:
        return not (self.reason or self.name or self.language in TO_LOOK_AT)

    @property
    def steps(self) -> list[tuple[str, list[str]]]:
        """The commands of a transcript in order, each with the lines that follow it."""
        parts = [part.splitlines() for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]]
        return [(first, rest) for first, *rest in parts]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            name=found["name"],
            text=re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            reason=found["reason"],
        )
        for found in BLOCK.finditer(text)
    ]


def in_order() -> list[Path]:
    """As they are read: the README first, then the quick start, ideas before instructions."""

    def place(page: Path) -> tuple[int, Path]:
        path = str(page.relative_to(ROOT))
        return next(number for number, start in enumerate(ORDER) if path.startswith(start)), page

    return sorted(PAGES, key=place)


class Ids:
    """Which id of this run an id of the document stands for; the short of an id with it."""

    def __init__(self) -> None:
        self._meant: dict[str, str] = {}

    def real(self, command: str) -> str:
        return ID.sub(lambda found: self._meant[found[0]], command)

    def learn(self, shown: str, seen: str) -> None:
        for document, real in zip(ID.findall(shown), ID.findall(seen), strict=True):
            for length in {8, len(document)}:
                assert self._meant.setdefault(document[:length], real[:length]) == real[:length], (shown, seen)

    def documents(self, line: str) -> str:
        """A line that was seen, with the ids that the document has for those in it."""
        known = {real: document for document, real in self._meant.items()}
        return ID.sub(lambda found: known.get(found[0], found[0]), line)


def bare(line: str) -> str:
    return " ".join(TIME.sub("TIME", ID.sub("ID", line)).split())


@dataclass
class Reader:
    """Somebody who types everything the documents say."""

    directory: Path
    environment: dict[str, str]
    tools: ExitStack
    port: int
    serving: tuple[str, subprocess.Popen[bytes]] | None = None
    ids: Ids = field(default_factory=Ids)

    def begin(self, page: Path) -> None:
        """A new terminal for each page: its variables and its directory are not those of the last."""
        self.ids = Ids()
        self._state.write_text(f"cd {self.directory}\n")
        for block in blocks_of(page):
            if block.name:
                (self.directory / block.name).parent.mkdir(parents=True, exist_ok=True)
                (self.directory / block.name).write_text(block.text)

    @property
    def _state(self) -> Path:
        return self.directory.parent / "state"

    def run(self, block: Block) -> str | None:
        """Type a block; the transcript as it was seen, where it is one."""
        text = block.text.replace(PORT, str(self.port))
        if block.language == "console":
            return self._type(block)
        if block.language == "python":
            self._must(block, "python", text)
            return None
        assert block.language == "sh", f"{block}: what is a block of {block.language}? Say why it is not run."
        before, *served = SERVE.split(text)
        self._must(block, "bash", before)
        for how, after in zip(served[::2], served[1::2], strict=True):
            self.serve(how.strip())
            self._must(block, "bash", after)
        return None

    def _type(self, block: Block) -> str:
        """Each command of a transcript; where something else is to be seen than is shown, that is an error."""
        accepted = ""
        for command, shown in block.steps:
            done = self.bash(self.ids.real(command))
            seen = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            if ACCEPT and [bare(line) for line in seen] != [bare(line) for line in shown if line.strip()]:
                shown = [self.ids.documents(line).replace("\t", "  ") for line in seen]
            accepted += "\n".join([f"$ {command}", *shown]) + "\n"
            shown = [line for line in shown if line.strip()]
            assert [bare(line) for line in seen] == [bare(line) for line in shown], f"{block}: {command}"
            self.ids.learn("\n".join(shown), "\n".join(seen))
        return accepted

    def _must(self, block: Block, program: str, text: str) -> None:
        done = self.bash(text) if program == "bash" else self.bash("python", stdin=text)
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{done.stdout}{done.stderr}"

    def bash(self, text: str, *, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        script = (
            f"set -a; . {self._state}; set -e -o pipefail\n{text}\n{{ export -p; echo cd $PWD; }} > {self._state}\n"
        )
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def serve(self, how: str) -> None:
        """What stays in another terminal: one server, started again where other options are asked for."""
        if self.serving and how in ("", self.serving[0]):
            return
        self.stop()
        command = [sys.executable, "-m", "recollect", "serve", *how.split(), "--port", str(self.port)]
        with (self.directory.parent / "server.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.directory, env=self.environment, stdout=log, stderr=log)
        self.serving = how, process
        self.tools.callback(self.stop)
        until(lambda: self._answers(process))

    def _answers(self, server: "subprocess.Popen[bytes]") -> bool:
        assert server.poll() is None, (self.directory.parent / "server.log").read_text()
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health/ready", verify=False).is_success
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        if self.serving:
            process = self.serving[1]
            self.serving = None
            process.terminate()
            process.wait(60)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def reader(new_home: Path) -> Iterator[Reader]:
    top = new_home.parent
    programs, directory = top / "programs", top / "reader"
    programs.mkdir()
    for path, text in NOTES.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    environment = {
        "RECOLLECT_HOME": str(new_home),
        "HOME": str(directory),
        "PATH": f"{programs}:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
    }
    quick = [sys.executable, str(Path(__file__).with_name("quick.py")), str(top / "quick")]
    call = f"exec {sys.executable} -S -E {' '.join(quick[1:])}"
    _program(programs / "recollect", f'{call} recollect "$@"')
    _program(programs / "python", f"{call} python")
    _program(directory / "run", 'exec recollect "$@"')
    with EmbeddedServer(new_home), ExitStack() as tools:  # else each command would start it anew
        server = tools.enter_context(subprocess.Popen(quick, env=environment | {"PYTHONPATH": str(ROOT / "src")}))
        tools.callback(server.terminate)
        until(lambda: (top / "quick").exists() or server.poll() is not None)
        assert server.poll() is None
        yield Reader(directory, environment, tools, free_port())


def _program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def test_G04_every_block_of_the_documents_runs_in_order_in_one_home(reader: Reader) -> None:
    for page in in_order():
        reader.begin(page)
        for block in blocks_of(page):
            if block.runs:
                seen = reader.run(block)
                if seen and ACCEPT:
                    page.write_text(page.read_text().replace(block.text, seen))


def test_G04_what_is_not_run_says_why_and_does_not_grow_in_silence() -> None:
    marked = [block for page in PAGES for block in blocks_of(page) if block.reason]
    assert Counter((str(block.page.relative_to(ROOT)), block.reason) for block in marked) == NOT_RUN


def test_G04_every_block_is_seen() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *```\w+", page.read_text(), re.MULTILINE)
        assert len(blocks_of(page)) == len(fences), page


def words_of(page: Path) -> str:
    return " ".join(command for block in blocks_of(page) if block.language == "console" for command, _ in block.steps)


def test_P02_the_page_about_plans_has_a_transcript() -> None:
    words = words_of(ROOT / "docs" / "concepts" / "plan.md")
    assert all(
        verb in words for verb in ("plan link", "--decline", "plan prune", "protect", "apply", "undo", "history")
    )


def test_E30_the_page_about_cases_walks_from_a_table_to_the_weekly_run() -> None:
    words = words_of(ROOT / "docs" / "how-to" / "case-bank.md")
    assert all(
        verb in words for verb in ("import", "search", "outcome", "--dry-run", "apply", "restore", "schedules run")
    )
