"""What a memory is called, beside what it says: a note's title and other names, its file, its heading (D48)."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

# A thread with one of these endings is a file that was imported.
NOTES = frozenset([".md", ".markdown", ".mdx", ".txt", ".text", ".org", ".rst", ".adoc"])
NAMING = ("title", "aliases", "alias", "section")
MOST_CHARACTERS = 2000


def titles(thread: str | None, metadata: Mapping[str, Any]) -> str:
    """All of a memory's names in one line each."""
    if not thread and not metadata:
        return ""
    return "\n".join(dict.fromkeys(_names(thread, metadata)))[:MOST_CHARACTERS]


def _names(thread: str | None, metadata: Mapping[str, Any]) -> Iterator[str]:
    if thread and "." in thread:
        file = PurePosixPath(thread)
        if file.suffix.lower() in NOTES:
            yield file.stem
    extra = metadata.get("extra")
    for field in NAMING:
        for fields in (metadata, extra if isinstance(extra, Mapping) else {}):
            yield from _texts(fields.get(field))


def _texts(value: object) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, str) and item.strip():
            yield item
