"""What the documents show of a terminal is what is to be seen there: each ```console block is typed, and compared.

A block that names a file (```csv answers.csv) is that file, in the directory where the commands are typed.
Ids and times differ from run to run. An id of the document stands for the one that was seen in its place, and must go
on standing for it.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli
from tests.quality.test_documents import PAGES
from tests.reference import ROOT

own_database, in_default, cli = support.own_database, support.in_default, support.cli

ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\dZ)?")
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
FILE = re.compile(r"```[a-z]+ ([\w-]+\.[a-z]+)\n(.*?)```", re.DOTALL)
WITH_TRANSCRIPT = [page for page in PAGES if BLOCK.search(page.read_text())]


def steps(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page in order, each with the lines that follow it."""
    typed = "\n".join(BLOCK.findall(page.read_text()))
    parts = [part.splitlines() for part in re.split(r"^\$ recollect ", typed, flags=re.MULTILINE)[1:]]
    return [(first, [line for line in rest if line.strip()]) for first, *rest in parts]


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


def bare(line: str) -> str:
    return " ".join(TIME.sub("TIME", ID.sub("ID", line)).split())


@pytest.mark.parametrize("page", WITH_TRANSCRIPT, ids=lambda page: str(page.relative_to(ROOT)))
def test_P02_what_a_page_shows_of_a_terminal_is_what_is_to_be_seen(
    page: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "minilm")
    for name, content in FILE.findall(page.read_text()):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    ids = Ids()
    for command, shown in steps(page):
        answer = cli(*shlex.split(ids.real(command)))
        seen = [line for line in (answer.out + answer.err).splitlines() if line.strip()]
        assert [bare(line) for line in seen] == [bare(line) for line in shown], command
        for line_shown, line_seen in zip(shown, seen, strict=True):
            ids.learn(line_shown, line_seen)


def test_P02_the_page_about_plans_has_a_transcript() -> None:
    (page,) = [page for page in WITH_TRANSCRIPT if page.name == "plan.md"]
    words = " ".join(command for command, _ in steps(page))
    assert all(
        verb in words for verb in ("plan link", "--decline", "plan prune", "protect", "apply", "undo", "history")
    )


def test_E30_the_page_about_cases_walks_from_a_table_to_the_weekly_run() -> None:
    (page,) = [page for page in WITH_TRANSCRIPT if page.name == "case-bank.md"]
    words = " ".join(command for command, _ in steps(page))
    assert all(
        verb in words for verb in ("import", "search", "outcome", "--dry-run", "apply", "restore", "schedules run")
    )
