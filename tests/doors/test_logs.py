"""Logs: structlog comes with the first line, and is then set up as was asked for before it came."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from recollect import logs
{set_up}
assert "structlog" not in sys.modules
{then}
logs.Logger("recollect").info("went well")
logs.Logger("recollect").warning("went wrong", why="disk")
"""


def written(set_up: str, then: str = "") -> tuple[str, str]:
    code = PROGRAM.format(set_up=set_up, then=then)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize("level", ["info", "warning"])
def test_a_door_sets_up_logs_before_structlog_is_loaded(level: str) -> None:
    out, err = written(f"logs.configure(level={level!r}, format='json')")
    assert out == ""
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events == (["went well"] if level == "info" else []) + ["went wrong"]


def test_inside_a_program_only_what_went_wrong_is_written_and_to_stderr() -> None:
    out, err = written("logs.unless_configured()")
    assert out == ""
    assert "went well" not in err
    assert "went wrong" in err


def test_what_a_door_asked_for_is_not_undone_by_a_memory_that_it_opens() -> None:
    out, err = written("logs.configure(level='info', format='json'); logs.unless_configured()")
    assert (out, len(err.splitlines())) == ("", 2)


def test_a_program_that_sets_up_structlog_itself_keeps_its_own_also_after_opening() -> None:
    own = "import structlog; structlog.configure(processors=[structlog.processors.KeyValueRenderer()])"
    out, err = written("logs.unless_configured()", own)
    assert out == "event='went well'\nwhy='disk' event='went wrong'\n"
    assert err == ""
