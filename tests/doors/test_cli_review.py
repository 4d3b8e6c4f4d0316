"""`recollect review`: walked with single keys in a real terminal; listed and answered without one (C36)."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import programs
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli
from tests.waiting import HANG_SECONDS

own_database, in_default, cli = support.own_database, support.in_default, support.cli

TEXT = "an account of a thing that several of these names are given to"
PROGRAM = (sys.executable, "-m", "recollect", "review")


@pytest.fixture
def asked(cli: Cli) -> Cli:
    """Three concepts that may be one, and two that may be one for themselves."""
    for ending in "csk":
        known = f'{{"{ending}": "known"}}'
        cli("concepts", "add", f"The Society of Natural Philosophy Ar{ending}", "--text", TEXT, "--metadata", known)
    for name in ("Tea house in Hanoi", "Tea houses in Hanoi"):
        cli("concepts", "add", name, "--text", "where tea is poured by the lake")
    return cli


def test_C36_questions_are_listed_and_answered_without_a_terminal(asked: Cli) -> None:
    listed = asked.json("review")
    assert listed["total"] == 3
    lines = asked("review", "--no-look").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(one["number"]) for one in listed["items"]]
    first, *_ = listed["items"]
    other = next(one for one in listed["items"] if one["group"] != first["group"])
    answered = asked("review", "--answer", f"{first['number']}=separate", "--answer", "99=merge")
    assert answered.code == 1
    assert answered.out == "answered\t1\tleft\t2\n"
    assert "There is no question 99" in answered.err
    written = f"# by hand\ng{other['group']} merge\n".encode()
    done = asked.json("review", "--from", "-", stdin=written)
    assert len(done["plans"]) == 1
    assert asked("review", "--take-back", str(first["number"])).out.startswith("taken back\t1\topen\t")
    assert "12=merge" in asked.refused("review", "--answer", "merge", code=2)
    assert "missing.txt cannot be read" in asked.refused("review", "--from", "missing.txt", code=2)


class Terminal:
    """A real terminal with the walk in it."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process, self.master, self.seen = process, master, ""

    def shows(self, text: str) -> None:
        """Wait until it has shown a text since the last one."""
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], HANG_SECONDS)
            assert ready, f"waited in vain for {text!r}: {self.seen}"
            try:
                self.seen += os.read(self.master, 65_536).decode(errors="replace")
            except OSError:  # it has ended
                assert text in self.seen, self.seen
        self.seen = self.seen.partition(text)[2]

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = programs.Popen[bytes](
        [*PROGRAM, *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
        assert process.wait(HANG_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_C36_one_key_each_with_a_way_back(asked: Cli) -> None:
    with terminal() as shown:
        shown.shows("1 of 3")
        shown.shows("Against it: the names are not made of")
        shown.shows("m merge")
        assert "likely" not in shown.seen
        shown.press("n")
        shown.shows("never asked again")
        shown.shows("2 of 3")
        shown.press("b")  # the last answer is taken back: the same question again
        shown.shows("Taken back: 1 answer")
        shown.shows("1 of 3")
        shown.press("x")  # means nothing: the keys are shown once more
        shown.shows("q quit")
        shown.press("l")
        shown.shows("put off")
        shown.shows("2 of 3")
        shown.press("mm")  # typed ahead
        shown.shows("merged")
        shown.shows("merged")
        shown.shows("put off for later")
        shown.shows("2 questions answered")
    left = asked.json("review", "--no-look")
    assert left["total"] == left["postponed"] == 1


def test_C36_a_capital_answers_for_the_whole_group(asked: Cli) -> None:
    groups = {one["group"]: one["group_size"] for one in asked.json("review")["items"]}
    first, *_ = groups.values()
    with terminal("--no-look") as shown:
        shown.shows("1 of 3")
        shown.press("M")
        shown.shows("merged (2)" if first == 3 else "merged")
        shown.shows("3 of 3" if first == 3 else "2 of 3")
        shown.press("M")
        shown.shows("That was the last question.")
    assert asked.json("review")["total"] == 0
    assert len(asked.json("concepts")["items"]) == 2


def test_C36_leaving_changes_nothing_and_gives_the_terminal_back(asked: Cli) -> None:
    with terminal() as shown:
        shown.shows("1 of 3")
        shown.press("q")
        shown.shows("0 questions answered")
    assert asked.json("review", "--no-look")["total"] == 3
