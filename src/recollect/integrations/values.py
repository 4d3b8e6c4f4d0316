"""JSON values kept as memories: what people read and search is the text, what the framework gets back is the value.

A value lies in the metadata of its memory, below the name of the framework, without the text that the memory says
already. One that has no room there is the text itself, as JSON. A text is remembered once in a space, and frameworks
keep the same words in many places: the second one says at its end which it is.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from recollect.engine.engine import Engine
from recollect.errors import KNOWN_TEXT, InvalidInput
from recollect.memories.rules.contract import checked
from recollect.memories.rules.text import normalise
from recollect.model import ContentType, ExportedMemory, Metadata, Node

Path = list[str | int]
# For what else is written into metadata: the length of a text with a mark, what a memory corrects.
SPARE_BYTES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptValue:
    """A value, the text by which it is found ("": it is not searched for), and where the framework keeps it."""

    value: Any
    text: str
    place: Mapping[str, Any] = field(default_factory=dict)
    thread: str | None = None
    position: int | None = None
    created_at: datetime | None = None
    subtype: str = ContentType.NOTE


class Shelf:
    """The values of one framework in one space."""

    def __init__(self, engine: Engine, of: str) -> None:
        self.engine, self.of = engine, of

    def memory(self, new_value: KeptValue, *, mark: str = "") -> ExportedMemory:
        """The memory that holds a value; `mark` sets it apart from others that say the same."""
        text = normalise(new_value.text)
        rest, holes = _without(new_value.value, text) if text else (new_value.value, [])
        own: Metadata = {**new_value.place, "value": rest, **({"text_at": holes} if holes else {})}
        has_room = len(_as_json({"extra": {self.of: own}}).encode()) + SPARE_BYTES <= self._most_bytes
        own, shown = (
            (own, text or _as_text(new_value.value)) if has_room else ({**new_value.place}, _as_text(new_value.value))
        )
        if mark:
            own, shown = {**own, "length": len(shown)}, f"{shown}\n\n({mark})"
        return ExportedMemory(
            text=shown,
            subtype=new_value.subtype,
            metadata={"extra": {self.of: own}},
            thread=new_value.thread,
            position=new_value.position,
            created_at=new_value.created_at,
            exclude=not text,
        )

    def place(self, node: Node) -> Metadata:
        """What the framework said of where a value belongs."""
        return dict(node.metadata["extra"][self.of])

    def text(self, node: Node) -> str:
        """The text of a memory, without its mark."""
        return (node.text or "")[: self.place(node).get("length")]

    def value(self, node: Node) -> Any:
        """The value that a memory holds, as it was given."""
        own = self.place(node)
        if "value" not in own:
            return json.loads(self.text(node))
        value = deepcopy(own["value"])
        for path in own.get("text_at", ()):
            value = _with(value, path, self.text(node))
        return value

    async def add(self, values: Sequence[KeptValue]) -> None:
        """Keep new values, all of them checked before one is stored; those that say what is remembered already come
        last, each with a mark."""
        memories = [self.memory(value) for value in values]
        core = self.engine.core
        for memory in memories:
            checked(memory, core.contract(self.engine.space), core.now())
        added = await self.engine.add_many(memories)
        twins = []
        for refused in added.refused:
            if refused.code not in KNOWN_TEXT:
                raise InvalidInput(refused.message)
            twins.append(values[refused.position])
        if twins:
            await self.engine.add_many([self.memory(twin, mark=new_mark()) for twin in twins])

    @property
    def _most_bytes(self) -> int:
        return self.engine.settings.max_metadata_bytes


def new_mark() -> str:
    """What sets a text apart from another that says the same."""
    return f"once more, {uuid4().hex[:12]}"


def readable(value: Any) -> str:
    """A value as a person would note it down: the one text there is, or a line for each field."""
    leaves = [(path, leaf) for path, leaf in _leaves(value) if leaf is not None and leaf != ""]
    if len(leaves) == 1 and isinstance(leaves[0][1], str):
        return leaves[0][1]
    return "\n".join(f"{' '.join(map(str, path))}: {_spoken(leaf)}" for path, leaf in leaves)


def _spoken(leaf: object) -> str:
    return leaf if isinstance(leaf, str) else _as_json(leaf)


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value, start=1):
            yield from _leaves(item, path if len(value) == 1 else (*path, number))
    else:
        yield path, value


def _without(value: Any, text: str) -> tuple[Any, list[Path]]:
    """A value with null wherever it says the text, and where that is."""
    holes: list[Path] = []

    def emptied(part: Any, path: Path) -> Any:
        if isinstance(part, str) and part == text:
            holes.append(path)
            return None
        return _mapped(part, lambda step, item: emptied(item, [*path, step]))

    return emptied(value, []), holes


def _mapped(value: Any, change: Callable[[str | int, Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: change(name, item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [change(number, item) for number, item in enumerate(value)]
    return value


def _with(value: Any, path: Path, text: str) -> Any:
    if not path:
        return text
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = text
    return value


def _as_text(value: Any) -> str:
    """A value as JSON that is the same after it was normalised, as every text is."""
    plain = _as_json(value)
    return plain if normalise(plain) == plain else json.dumps(value, allow_nan=False)


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"This value cannot be kept as JSON ({error}): use texts, numbers, lists and objects."
        ) from error
