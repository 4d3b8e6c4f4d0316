"""Typical mistakes at the command line (G07), and the first words and screens that a newcomer meets.

Each mistake: one clear sentence that says what was wrong and what to do, the documented exit code, nothing changed.
"""

import io
import json
import re
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from pydantic_core.core_schema import ErrorType

from recollect.doors.cli import front, output
from recollect.doors.cli.app import EXIT_CODES
from recollect.doors.cli.memories import show_history
from recollect.plan import HistoryEntry
from recollect.wording import demand
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli

own_database, in_default, cli = support.own_database, support.in_default, support.cli

FOREIGN_WORDS = ("Input should", "Value error", "Traceback", "pydantic", "Invalid value", "Errno", "DSN", "Expecting")
STYLE = re.compile(r"\x1b\[[0-9;]*m")
NEVER_ID = "00000000-0000-4000-8000-000000000001"
# What was typed, the exit code, what was wrong, and what to do.
MISTAKES: list[tuple[list[str], int, str, str]] = [
    (["recal", "tea"], 2, "has no command 'recal'", "did you mean `recollect recall`"),
    (["rememebr", "tea"], 2, "has no command 'rememebr'", "did you mean `recollect remember`?"),
    (["xyzzy"], 2, "has no command 'xyzzy'", "`recollect --help` lists"),
    (["cases", "serach", "tea"], 2, "`recollect cases` has no command 'serach'", "`recollect cases search`"),
    (["plan", "shwo", "7f3a"], 2, "`recollect plan` has no command 'shwo'", "`recollect plan show`"),
    (["help", "nonsense"], 2, "has no command 'nonsense'", "lists"),
    (["add"], 2, "TEXT is missing", "as in `recollect add Linh prefers tea"),
    (["show"], 2, "ID is missing", "`recollect show ID`"),
    (["show", "zzzz"], 2, "'zzzz' is not an id", "give a UUID, or its first 4"),
    (["show", "ab"], 2, "'ab' is too short", "at least the first 4 characters"),
    (["show", NEVER_ID], 3, "Nothing is remembered under", "`recollect list` shows what is"),
    (["show", "one", "two"], 2, "does not take 'two' as well", "quotes"),
    (["list", "--space", "nowhere"], 3, "There is no space 'nowhere'", "`recollect spaces` lists them"),
    (["list", "--since", "yesterday"], 2, "not 'yesterday'", "a time like 2026-11-15"),
    (["recall", "tea", "--limit", "many"], 2, "--limit cannot be 'many'", "must be a whole number"),
    (["recall", "tea", "--limit", "-3"], 2, "not -3", "from 1 to 1,000"),
    (["recall", "tea", "--limit"], 2, "--limit needs a value", "after it"),
    (["recall", "tea", "--lmit", "3"], 2, "has no option --lmit", "did you mean --limit?"),
    (["recall", "tea", "--kind", "case"], 2, "has no option --kind", "see `recollect recall --help`"),
    (["recall", "tea", "--mode", "guess"], 2, "--mode cannot be 'guess'", "one of neutral, recall,"),
    (["recall", "tea", "--threshold", "2"], 2, "not 2.0", "threshold is from 0 to 1"),
    (["add", "-5 degrees"], 2, "has no option -5", "put -- before a text"),
    (["add", "  "], 2, "The text is empty", "say what to remember"),
    (["add", "x", "--tag", "two\nlines"], 2, "cannot be a tag", "1 to 100 characters"),
    (["add", "x", "--importance", "-1"], 2, "not -1.0", "a number from 0 to 1"),
    (["add", "x", "--metadata", "{"], 2, "not '{'", "a JSON object like"),
    (["import", "missing.md"], 2, "There is no file or folder missing.md", "check the name"),
    (["export", "/dev/null/x.jsonl"], 2, "cannot be written", "choose another place"),
    (["export", "--json"], 2, "goes to stdout", "name a file"),
    (["restore", "missing.dump"], 2, "missing.dump cannot be read", "`recollect backup`"),
    (["undo", NEVER_ID], 3, "There is no plan", "`recollect plan list` shows them"),
    (["plan", "sweep"], 2, "There is no policy 'sweep'", "one of prune,"),
    (["plan", "prune", "--set", "threshold=low"], 2, "threshold cannot be 'low'", "must be a number"),
    (["spaces", "add", "Not A Slug"], 2, "cannot name a space", "small letters"),
    (["spaces", "set", "default"], 2, "nothing to set", "give --tag"),
    (["serve", "--port", "99999"], 2, "port cannot be 99999", "at most 65535"),
    (["cases", "add", "why?"], 2, "--answer is missing", "as in `recollect cases add"),
    (["cases", "add", "why?", "--answer", "--category", "tea"], 2, "--answer needs a value", "--category is an option"),
    (["plan", "list", "--policy", "nosuch"], 2, "There is no policy 'nosuch'", "one of prune,"),
    (["never-merge", "add", "--from", "missing.csv"], 2, "missing.csv cannot be read", "name a file"),
]


def everything(cli: Cli) -> Any:
    listed = [cli.json("list", "--all"), cli.json("plan", "list"), cli.json("spaces")]
    return json.dumps(listed, sort_keys=True)


def test_G07_typical_mistakes_each_get_one_sentence_a_code_and_change_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.add("Linh prefers tea")
    before = everything(cli)
    said = []
    for arguments, code, wrong, advice in MISTAKES:
        sentence = cli.refused(*arguments, code=code)
        assert (wrong in sentence, advice in sentence) == (True, True), (arguments, sentence)
        assert not any(word in sentence for word in FOREIGN_WORDS), sentence
        said.append(sentence)
    for arguments, code, _, _ in MISTAKES[::6]:
        assert set(json.loads(cli.refused(*arguments, "--json", code=code))) >= {"code", "message"}
    assert len(set(said)) == len(MISTAKES)
    assert {code for _, code, _, _ in MISTAKES} <= set(EXIT_CODES)
    assert everything(cli) == before


@pytest.mark.parametrize(
    ("variable", "value", "code", "wrong", "advice"),
    [
        ("RECOLLECT_POOL_SIZE", "many", 2, "RECOLLECT_POOL_SIZE cannot be 'many'", "a whole number"),
        ("RECOLLECT_POOL_SIZE", "-1", 2, "RECOLLECT_POOL_SIZE cannot be '-1'", "at least 2"),
        ("RECOLLECT_LOG_LEVEL", "loud", 2, "cannot be 'loud'", "must be debug, info, warning or error"),
        ("RECOLLECT_PRODUCTION", "maybe", 2, "cannot be 'maybe'", "true or false"),
        ("RECOLLECT_EMBEDDER", "nobody", 2, "There is no embedder 'nobody'", "Known are"),
        ("RECOLLECT_DATABASE_URL", "postgresql://me@127.0.0.1:1/x", 6, "No PostgreSQL answers", "check DATABASE_URL"),
        ("RECOLLECT_DATABASE_URL", "nonsense", 6, "DATABASE_URL cannot be used", "write it like postgresql://"),
        ("RECOLLECT_SPACE", "nowhere", 3, "There is no space 'nowhere'", "`recollect spaces add` makes one"),
    ],
)
def test_G07_a_bad_environment_is_said_in_our_own_words(
    in_default: Cli, variable: str, value: str, code: int, wrong: str, advice: str
) -> None:
    in_default.patch.setenv(variable, value)
    sentence = in_default.refused("recall", "tea", code=code)
    assert (wrong in sentence, advice in sentence) == (True, True), sentence
    assert "Input should" not in sentence


def test_G07_a_port_in_use_is_named(in_default: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = in_default.refused("serve", "--port", str(port), code=4)
    assert f"port {port}" in sentence
    assert "another program uses it: stop that one, or choose another port" in sentence


def test_E28_without_a_key_it_refuses_in_one_sentence_to_be_open_to_everybody(in_default: Cli) -> None:
    async def opened(*_: object) -> None:
        raise AssertionError("it serves")

    in_default.patch.setattr("recollect.doors.api.server._work_and_serve", opened)
    sentence = in_default.refused("serve", "--host", "0.0.0.0", "--port", "0", code=2)
    assert "no API key was ever made: make one with `recollect keys add`" in sentence


def test_G07_files_that_cannot_be_read_are_named_and_the_rest_is_taken(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{bad\n{"text": 3}\n')
    answer = cli("import", str(tmp_path))
    assert (answer.code, answer.out) == (1, "1 added, 0 there already, 2 refused, 1 skipped.\n")
    assert "bad.jsonl:2: The line is not JSON (see its column 2): write one object a line." in answer.err
    assert "picture.png: It is a binary file" in answer.err
    assert not any(word in answer.err for word in FOREIGN_WORDS)


def test_G07_applying_and_undoing_again_says_so_and_does_no_harm(cli: Cli) -> None:
    id_ = cli.add("tea")
    cli("forget", id_)
    [entry] = [one for one in cli.json("history", id_) if one["plan_id"]]
    assert "was applied already" in cli("apply", entry["plan_id"]).out
    assert cli("undo", entry["plan_id"]).code == 0
    assert cli("undo", entry["plan_id"]).out == "That was undone already.\n"


def test_G07_no_error_of_pydantic_is_told_in_its_own_words() -> None:
    context = {"expected": "'a' or 'b'", "pattern": "^a$", "min_length": 1, "max_length": 2}
    context |= {"ge": 1, "gt": 1, "le": 1, "lt": 1}
    for kind in get_args(ErrorType):
        told = demand({"type": kind, "msg": "Value error, Something is wrong", "ctx": context})
        assert told.startswith("something is wrong" if kind in ("value_error", "assertion_error") else "it "), kind
        assert not any(word in told for word in ("Value error", "Input", "{")), told


# -- the usual words


def test_G07_the_usual_words_lead_to_the_commands(cli: Cli) -> None:
    id_ = cli.json("remember", "Linh prefers tea", "--tag", "life", "--importance", "0.7")["id"]
    assert cli.json("search", "tea", "-n", "1")["hits"][0]["node"]["id"] == id_
    assert cli("find", "tea").out.split("\t")[3] == id_[:8]
    assert cli("delete", id_[:8], "--reason", "wrong").out.split("\t")[0] == "Forgot"
    assert cli.json("list")["items"] == []
    assert cli.json("remember", "-", stdin="trà xanh".encode())["text"] == "trà xanh"


def test_G07_help_is_a_word_too(in_default: Cli) -> None:
    assert in_default("help").out == in_default("--help").out
    assert in_default("help", "remember").out == in_default("add", "--help").out
    assert in_default("help", "plan", "show").out == in_default("plan", "show", "--help").out


def test_G07_the_first_screen_opens_with_the_ten_commands_most_used(in_default: Cli) -> None:
    shown = in_default("--help").out
    first = shown.partition("Used most:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[1] for line in first] == list(front.MOST_USED)
    assert len(first) == 10
    assert max(map(len, shown.splitlines())) <= 80
    rest = shown.partition("Used most:")[2]
    for name in ("ask", "tidy", "doctor", "cases", "mcp", "demo"):
        assert f"\n  {name} " in rest


@pytest.mark.parametrize("group", ["cases", "plan", "graph", "concepts", "pages", "schedules"])
def test_G07_the_help_of_a_group_tells_what_each_command_does_whole(cli: Cli, group: str) -> None:
    shown = cli(group, "--help").out
    told = shown.partition("Commands:\n")[2]
    assert told
    assert "..." not in told


# -- at any width


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is written to a terminal of so many columns."""

    def lines_of(columns: int, write: Any) -> list[str]:
        written = io.StringIO()
        monkeypatch.setattr(written, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "1")
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", written)
            write()
        return [STYLE.sub("", line) for line in written.getvalue().splitlines()]

    return lines_of


TEXTS = [
    "Linh prefers tea, never coffee",
    "Chị Linh thích uống trà xanh mỗi buổi sáng " * 10,
    "茶は緑茶が一番好きです。" * 30,
    "ลินห์ชอบดื่มชาไม่ชอบกาแฟ" * 20,
    "🍵👩‍👩‍👧 " * 80,
    "x" * 700,
]


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
@pytest.mark.parametrize("text", TEXTS, ids=["short", "vietnamese", "japanese", "thai", "emoji", "long word"])
def test_G07_a_hit_laid_open_keeps_its_text_at_any_width(terminal: Any, columns: int, text: str) -> None:
    from rich.cells import cell_len

    parts = [f"{name} 0.50" for name in ("relevance", "words", "meaning", "cosine", "recency", "importance")]
    head = ("0.78", "2026-11-16", "332bd26a", "by words and meaning")
    lines = terminal(columns, lambda: output.block(head, text, parts))
    assert all(cell_len(line) <= columns for line in lines)
    assert len(lines) <= 8
    shown = "".join(line.strip() for line in lines[1:])
    assert text.replace(" ", "")[:20] in shown.replace(" ", "")
    assert "importance 0.50" in " ".join(line.strip() for line in lines)
    whole = terminal(columns, lambda: output.block(head, text, parts, full=True))
    assert text.replace(" ", "") in "".join(whole).replace(" ", "")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_G07_what_was_skipped_goes_on_below_its_own_beginning_and_keeps_its_columns_apart(
    terminal: Any, columns: int
) -> None:
    rows = [("user-made", "833c7464", " ".join(TEXTS[:1] * 6), "kept because a person made it")]
    lines = terminal(columns, lambda: output.entries(rows))
    assert lines[0].startswith("user-made  833c7464  Linh")
    assert all(line.startswith(" ") and len(line) <= columns for line in lines[1:])
    assert lines[-1].strip() == rows[0][-1]


def test_G07_a_history_is_never_cut(terminal: Any) -> None:
    reason = "strength 0.015 < 0.05, idle 60 days, its ends stay connected, and so on for longer than a line is wide"
    entry = HistoryEntry(
        at=datetime(2026, 11, 16, tzinfo=UTC),
        verb="prune",
        policy="prune",
        reason=reason,
        plan_id=UUID(NEVER_ID),
        before={},
        after={},
    )
    lines = terminal(80, lambda: show_history([entry]))
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert " ".join(" ".join(line[36:].split()) for line in lines[1:]).split() == reason.split()
