"""A node as a note of a vault: a file name that people and every file system can read, and Markdown whose front matter
says what is known of it, links included. The text below is the node's own, so importing the note finds it again."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from recollect.model import Kind, Node

FOLDERS = {Kind.MEMORY: "memories", Kind.CONCEPT: "concepts", Kind.CASE: "cases"}
LONGEST_BYTES = 120
# What Obsidian, Windows or a link cannot have in a name.
_UNFIT = re.compile(r'[\[\]#^|\\/:*?"<>\x00-\x1f\x7f\u2028\u2029]+')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


class Names:
    """Paths of notes, each given once: two that say the same are told apart by their ids."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def path_of(self, node: Node) -> str:
        """The path of a note in its vault, without its ending."""
        plain = f"{FOLDERS[node.kind]}/{title(node)}"
        path = plain if plain.casefold() not in self._taken else f"{plain} ({node.id})"
        self._taken.add(path.casefold())
        return path


def title(node: Node) -> str:
    """What a note is called: its name, or the beginning of what it says."""
    first = next((line for line in (node.name or node.text or "").splitlines() if line.strip()), "")
    clean = " ".join(_UNFIT.sub(" ", first).split()).lstrip("-+`. ")
    while len(clean.encode()) > LONGEST_BYTES:
        clean = clean[: -max(1, (len(clean.encode()) - LONGEST_BYTES) // 4)]
    clean = clean.strip(" .")
    return clean if clean and not _RESERVED.fullmatch(clean) else f"{node.kind} {str(node.id)[:8]}"


def note(node: Node, links: Iterable[tuple[str, str]]) -> str:
    """A node as Markdown; `links` are relations and the paths they lead to."""
    front = yaml.safe_dump(_front(node, sorted(links)), allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{front}---\n\n{node.text or f'# {node.name}'}\n"


def _front(node: Node, links: Sequence[tuple[str, str]]) -> dict[str, Any]:
    values = {
        "id": str(node.id),
        "created_at": node.created_at.isoformat(),
        "subtype": node.subtype if node.kind is Kind.MEMORY else None,
        "importance": node.importance,
        "thread": node.thread,
        "aliases": [node.name] if node.name and node.name != title(node) else None,
        **node.metadata,
        "links": [f"[[{path}|{relation}: {path.rpartition('/')[2]}]]" for relation, path in links] or None,
    }
    return {name: value for name, value in values.items() if value is not None}
