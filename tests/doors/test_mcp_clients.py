"""`recollect mcp install`: what is written into the files of other programs, and that nothing else in them changes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from recollect.doors.mcp.clients import known_clients, server_entry
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli

own_database, cli, in_default = support.own_database, support.cli, support.in_default

OTHERS = {"numStartups": 7, "mcpServers": {"other": {"command": "x", "args": []}}, "tên": "Trà"}


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody's home, with Claude Code and Cursor."""
    for name in ("CLAUDE_CONFIG_DIR", "APPDATA", "XDG_CONFIG_HOME", "RECOLLECT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".claude.json").write_text(json.dumps(OTHERS, indent=2, ensure_ascii=False))
    (tmp_path / ".claude.json").chmod(0o600)
    return tmp_path


def everything(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def servers(file: Path) -> Any:
    return json.loads(file.read_text())["mcpServers"]


def test_it_is_shown_first_written_when_asked_and_taken_back(in_default: Cli, person: Path) -> None:
    before = everything(person)
    shown = in_default("mcp", "install", "claude-code")
    assert (shown.code, everything(person)) == (1, before)
    assert "Nothing was written: repeat with --yes." in shown.out
    assert f"change: {person / '.claude.json'}" in shown.out
    assert '"recollect": {' in shown.out
    assert "numStartups" not in shown.out

    assert in_default("mcp", "install", "claude-code", "--yes").code == 0
    written = json.loads((person / ".claude.json").read_text())
    entry = written["mcpServers"].pop("recollect")
    assert written == OTHERS
    assert entry["args"][-1] == "mcp"
    assert os.access(entry["command"], os.X_OK)
    assert (person / ".claude.json").stat().st_mode & 0o777 == 0o600
    skill = (person / ".claude/skills/recollect/SKILL.md").read_text()
    assert yaml.safe_load(skill.split("---")[1])["name"] == "recollect"
    assert "call recall" in skill

    again = in_default.json("mcp", "install", "claude-code", "--yes")
    assert [one["change"] for one in again["files"]] == ["unchanged", "unchanged"]
    assert in_default("mcp", "uninstall", "claude-code", "--yes").code == 0
    assert everything(person) == before
    assert "nothing to change" in in_default("mcp", "uninstall", "claude-code", "--yes").out


def test_every_program_that_is_here_is_told_which_memory_is_meant(in_default: Cli, person: Path) -> None:
    told = in_default.json("mcp", "install", "--yes", "--space", "work", "--key", "rk_x")
    files = {Path(one["file"]).name: one["change"] for one in told["files"]}
    assert files == {".claude.json": "change", "SKILL.md": "create", "mcp.json": "create"}
    environment = servers(person / ".cursor/mcp.json")["recollect"]["env"]
    assert (environment["RECOLLECT_SPACE"], environment["RECOLLECT_API_KEY"]) == ("work", "rk_x")
    assert servers(person / ".claude.json")["other"] == OTHERS["mcpServers"]["other"]  # type: ignore[index]
    desktop = in_default.json("mcp", "install", "claude-desktop", "--yes")
    assert [one["change"] for one in desktop["files"]] == ["create"]
    assert in_default("mcp", "uninstall", "--yes").code == 0
    assert not (person / ".cursor/mcp.json").exists()


def test_a_project_is_told_nothing_secret_and_no_path_of_this_machine(in_default: Cli, person: Path) -> None:
    done = in_default("mcp", "install", "cursor", "--project", "--yes", "--space", "work", "--key", "rk_x")
    assert "not written into a project's files" in done.err
    entry = servers(person / ".cursor/mcp.json")["recollect"]
    assert entry == {"command": "recollect", "args": ["mcp"], "env": {"RECOLLECT_SPACE": "work"}}
    rule = (person / ".cursor/rules/recollect.mdc").read_text()
    assert yaml.safe_load(rule.split("---")[1])["alwaysApply"] is True
    assert "no projects" in in_default.refused("mcp", "install", "claude-desktop", "--project", code=2)


@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": 3}', "// a comment\n{}"])
def test_a_file_that_cannot_be_read_is_left_as_it_is(in_default: Cli, person: Path, broken: str) -> None:
    (person / ".claude.json").write_text(broken)
    for verb in ("install", "uninstall"):
        assert "Nothing was changed." in in_default.refused("mcp", verb, "claude-code", "--yes", code=2)
    assert everything(person) == {".claude.json": broken}


def test_what_somebody_else_wrote_is_not_replaced(in_default: Cli, person: Path) -> None:
    skill = person / ".claude/skills/recollect/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("mine")
    assert "--no-guide" in in_default.refused("mcp", "install", "claude-code", "--yes", code=2)
    assert in_default("mcp", "install", "claude-code", "--no-guide", "--yes").code == 0
    assert in_default("mcp", "uninstall", "claude-code", "--yes").code == 0
    assert skill.read_text() == "mine"


def test_a_link_stays_a_link_and_nobody_here_is_said(in_default: Cli, person: Path) -> None:
    (person / "dotfiles.json").write_text("{}")
    (person / ".cursor/mcp.json").symlink_to(person / "dotfiles.json")
    assert in_default("mcp", "install", "cursor", "--yes").code == 0
    assert (person / ".cursor/mcp.json").is_symlink()
    assert "recollect" in servers(person / "dotfiles.json")
    for file in (person / ".cursor/mcp.json", person / ".claude.json"):
        file.unlink()
    (person / ".cursor").rmdir()
    assert "name one" in in_default.refused("mcp", "install", code=2)


def test_each_program_has_its_own_place(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(person / "elsewhere"))
    assert known_clients()["claude-code"].config == person / "elsewhere" / ".claude.json"
    monkeypatch.setenv("PATH", "")
    assert server_entry({})["args"] == ["-m", "recollect", "mcp"]
