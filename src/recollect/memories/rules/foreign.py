"""What other memories write: the graph of the MCP reference server (memory.jsonl), and exports of mem0.

An observation becomes a memory that names what it is about, since on its own ("speaks Spanish") nobody would find it.
A relation becomes a sentence that can be recalled, and a link between the two things it names.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import parsed_time
from recollect.model import Metadata, NewMemory

GRAPH, MEM0 = "mcp-memory", "mem0"
# The type of what is named and not described.
UNTYPED = "concept"
# As the reference server writes a line: its type comes first.
_GRAPH_LINE = re.compile(rb'\s*\{\s*"type"\s*:\s*"(?:entity|relation)"')
_MEM0_LIST = re.compile(rb'\s*(?:\{\s*"(?:results|memories)"\s*:\s*)?\[\s*\{')
_MEM0_TEXT = re.compile(rb'"memory"\s*:\s*"')
# Where mem0 says who and in which run.
MEM0_FIELDS = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role", "categories")


@dataclass(frozen=True, kw_only=True, slots=True)
class Thing:
    """Somebody or something that memories are about."""

    name: str
    type: str = UNTYPED


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation:
    """How one thing stands to another."""

    source: str
    relation: str
    target: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignPiece:
    """One piece of what was written: memories, the things they are about, and how those are related."""

    memories: tuple[NewMemory, ...] = ()
    things: tuple[Thing, ...] = ()
    relations: tuple[Relation, ...] = ()

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(thing.name for thing in self.things)


def format_of(beginning: bytes) -> str | None:
    """What a file is by its beginning, if it is one of these."""
    if _GRAPH_LINE.match(beginning):
        return GRAPH
    return MEM0 if _MEM0_LIST.match(beginning) and _MEM0_TEXT.search(beginning) else None


# -- memory.jsonl


def graph_piece(line: str) -> ForeignPiece:
    """One line of memory.jsonl; InvalidInput for anything else."""
    found = _object(line)
    match found.get("type"):
        case "entity":
            return _entity(found)
        case "relation":
            return _relation(_text(found, "from"), _text(found, "relationType"), _text(found, "to"), _graph_memory)
    raise InvalidInput('A line is an object of the type "entity" or "relation".')


def _entity(found: Mapping[str, Any]) -> ForeignPiece:
    thing = Thing(name=_text(found, "name"), type=_text(found, "entityType"))
    observations = found.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(one, str) for one in observations):
        raise InvalidInput("The observations of an entity are a list of texts.")
    texts = [about(thing.name, one) for one in observations if one.strip()]
    return ForeignPiece(memories=tuple(_graph_memory(text, thing.name) for text in texts), things=(thing,))


def _graph_memory(text: str, thread: str) -> NewMemory:
    return NewMemory(text=text, thread=thread, source=GRAPH)


def about(name: str, observation: str) -> str:
    """An observation that says of whom it is."""
    known, spoken = observation.casefold(), in_words(name)
    return observation if name.casefold() in known or spoken.casefold() in known else f"{spoken}: {observation}"


def in_words(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


def _relation(source: str, relation: str, target: str, memory: Any) -> ForeignPiece:
    sentence = f"{in_words(source)} {in_words(relation)} {in_words(target)}"
    if source == target:  # a thing is not linked to itself
        return ForeignPiece(memories=(memory(sentence, source),), things=(Thing(name=source),))
    return ForeignPiece(
        memories=(memory(sentence, source),),
        things=(Thing(name=source), Thing(name=target)),
        relations=(Relation(source=source, relation=relation, target=target),),
    )


# -- mem0


def mem0_pieces(text: str) -> Iterator[ForeignPiece | str]:
    """Everything in an export of mem0: what its `get_all` gives, or a list of such memories; or what is wrong."""
    found = _json(text)
    if isinstance(found, dict):
        memories, relations = found.get("results", found.get("memories")), found.get("relations") or []
    else:
        memories, relations = found, []
    if not isinstance(memories, list) or not isinstance(relations, list):
        raise InvalidInput('An export of mem0 is a list of memories, or an object with such a list as "results".')
    for kind, items, read in (("memory", memories, _mem0_memory), ("relation", relations, _mem0_relation)):
        for number, item in enumerate(items, start=1):
            try:
                yield read(item)
            except InvalidInput as problem:
                yield f"The {kind} {number}: {problem.message}"


def _mem0_memory(item: object) -> ForeignPiece:
    if not isinstance(item, dict):
        raise InvalidInput("It is not an object.")
    own = item.get("metadata")
    extra: Metadata = {
        **(own if isinstance(own, dict) else {}),
        **{name: item[name] for name in MEM0_FIELDS if item.get(name) not in (None, [])},
    }
    run = item.get("run_id")
    memory = NewMemory(
        text=_text(item, "memory"),
        metadata={"extra": extra} if extra else {},
        created_at=parsed_time("created_at", item.get("created_at")),
        thread=run if isinstance(run, str) and run else None,
        source=MEM0,
        source_id=str(item["id"]) if item.get("id") else None,
    )
    return ForeignPiece(memories=(memory,))


def _mem0_relation(item: object) -> ForeignPiece:
    if not isinstance(item, dict):
        raise InvalidInput("It is not an object.")
    target = "target" if "target" in item else "destination"
    return _relation(_text(item, "source"), _text(item, "relationship"), _text(item, target), _mem0_sentence)


def _mem0_sentence(text: str, thread: str) -> NewMemory:
    return NewMemory(text=text, thread=thread, source=MEM0)


# -- reading


def _object(line: str) -> Mapping[str, Any]:
    found = _json(line)
    if not isinstance(found, dict):
        raise InvalidInput("A line is a JSON object.")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("It is not JSON.") from error


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is missing, or is no text.")
    return value.strip()
