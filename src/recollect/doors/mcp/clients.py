"""The programs that agents live in, and how each is told of this memory: by an entry in a JSON file of its own, and a
small file that says when to remember and when to recall, where it reads such files.

Everything else in those files stays as it is. What would be written can be seen before, and taking it out again leaves
what was there before.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from recollect.doors.mcp.guide import TEXT
from recollect.errors import InvalidInput

NAME = "recollect"
SERVERS = "mcpServers"
WHEN = (
    "Long-term memory that lasts between conversations. Use it when a task begins, when a person, a project, a "
    "preference, a decision or 'as before' comes up, and when you learn something that will matter again."
)
SKILL = f"---\nname: {NAME}\ndescription: {WHEN}\n---\n\n{TEXT}\n"
RULES = f"---\ndescription: {WHEN}\nalwaysApply: true\n---\n\n{TEXT}\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentClient:
    """Where a program looks for servers, and for a text that teaches it; None where it reads none there."""

    name: str
    says: str
    config: Path
    guide: Path | None = None
    guide_text: str = SKILL
    home: Path

    @property
    def is_here(self) -> bool:
        return self.config.exists() or self.home.is_dir()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """What a file holds now and what it would hold; None: it is not there."""

    file: Path
    before: str | None
    after: str | None

    @property
    def verb(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "change"


def known_clients(*, project: Path | None = None) -> dict[str, AgentClient]:
    """The programs there are, for this person, or for one project of theirs."""
    person = Path.home()
    claude = Path(os.environ["CLAUDE_CONFIG_DIR"]) if os.environ.get("CLAUDE_CONFIG_DIR") else None
    desktop = _programs_folder(person) / "Claude"
    if project is not None:
        clients = [
            AgentClient(
                name="claude-code",
                says="Claude Code",
                config=project / ".mcp.json",
                guide=project / ".claude" / "skills" / NAME / "SKILL.md",
                home=project / ".claude",
            ),
            AgentClient(
                name="cursor",
                says="Cursor",
                config=project / ".cursor" / "mcp.json",
                guide=project / ".cursor" / "rules" / f"{NAME}.mdc",
                guide_text=RULES,
                home=project / ".cursor",
            ),
        ]
    else:
        clients = [
            AgentClient(
                name="claude-code",
                says="Claude Code",
                config=(claude or person) / ".claude.json",
                guide=(claude or person / ".claude") / "skills" / NAME / "SKILL.md",
                home=claude or person / ".claude",
            ),
            AgentClient(
                name="claude-desktop",
                says="Claude Desktop",
                config=desktop / "claude_desktop_config.json",
                home=desktop,
            ),
            AgentClient(name="cursor", says="Cursor", config=person / ".cursor" / "mcp.json", home=person / ".cursor"),
        ]
    return {client.name: client for client in clients}


def _programs_folder(person: Path) -> Path:
    if sys.platform == "darwin":
        return person / "Library" / "Application Support"
    return Path(os.environ.get("APPDATA") or os.environ.get("XDG_CONFIG_HOME") or person / ".config")


def server_entry(environment: Mapping[str, str], *, shared: bool = False) -> dict[str, Any]:
    """How a program starts this server: by its whole path, since programs seldom know the path of a shell; by its name
    in what is shared with other machines."""
    program = NAME if shared else shutil.which(NAME)
    start = [sys.executable, "-m", NAME] if program is None else [NAME if shared else str(Path(program).absolute())]
    entry: dict[str, Any] = {"command": start[0], "args": [*start[1:], "mcp"]}
    return {**entry, "env": dict(environment)} if environment else entry


def installing(client: AgentClient, entry: Mapping[str, Any], *, guide: bool = True) -> list[FileChange]:
    """What telling a program of this memory would change."""
    before = _read(client.config)
    settings = _parsed(client.config, before)
    settings[SERVERS] = {**_servers(client.config, settings), NAME: dict(entry)}
    changes = [FileChange(file=client.config, before=before, after=_written(settings, like=before))]
    if guide and client.guide is not None:
        there = _read(client.guide)
        if there is not None and not _is_ours(there):
            raise InvalidInput(f"{client.guide} was written by somebody else: move it away, or repeat with --no-guide.")
        changes.append(FileChange(file=client.guide, before=there, after=client.guide_text))
    return changes


def uninstalling(client: AgentClient) -> list[FileChange]:
    """What taking this memory out of a program would change; a file that was made for it alone goes."""
    before = _read(client.config)
    settings = _parsed(client.config, before)
    servers = {name: server for name, server in _servers(client.config, settings).items() if name != NAME}
    if servers:
        settings[SERVERS] = servers
    else:
        settings.pop(SERVERS, None)
    is_there = before is not None and NAME in _servers(client.config, _parsed(client.config, before))
    after = (_written(settings, like=before) if settings else None) if is_there else before
    changes = [FileChange(file=client.config, before=before, after=after)]
    if client.guide is not None and (there := _read(client.guide)) is not None and _is_ours(there):
        changes.append(FileChange(file=client.guide, before=there, after=None))
    return changes


def carry_out(changes: Sequence[FileChange]) -> None:
    """Write each file whole or not at all; a link stays a link, and who may read it stays as it was."""
    for change in changes:
        if change.verb == "unchanged":
            continue
        file = change.file.resolve()
        if _read(file) != change.before:
            raise InvalidInput(f"{change.file} was changed meanwhile: repeat the command.")
        try:
            if change.after is None:
                file.unlink()
                if file.parent.name == NAME:  # the folder of the skill
                    file.parent.rmdir()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            _replace(file, change.after)
        except OSError as error:
            raise InvalidInput(f"{change.file} cannot be written ({error.strerror or error}).") from error


def _replace(file: Path, text: str) -> None:
    with NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8", newline="") as new:
        new.write(text)
    part = Path(new.name)
    try:
        part.chmod(file.stat().st_mode & 0o777 if file.exists() else 0o600)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read ({error}): nothing was changed.") from error


def _parsed(file: Path, text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text and text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"{file} is not a JSON object that can be read: mend it first. Nothing was changed.")
    return value


def _servers(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    servers = settings.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"{SERVERS} in {file} is not an object: mend it first. Nothing was changed.")
    return servers


def _written(settings: Mapping[str, Any], *, like: str | None) -> str:
    """The settings in the style in which they were: as deep an indent, an end of line or none."""
    indent = re.search(r"\{\r?\n([ \t]+)", like or "{\n  ")
    text = json.dumps(settings, indent=indent[1] if indent else None, ensure_ascii=False)
    return text + ("\n" if like is None or like.endswith("\n") else "")


def _is_ours(text: str) -> bool:
    return WHEN in text
