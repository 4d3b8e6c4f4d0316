"""What other memories write, told by its shape: the graph of the MCP reference server, exports of mem0, of Graphiti and
Zep, agent files of Letta, conversations of ChatGPT and Claude. The order of keys never matters.

An observation becomes a memory that names what it is about, since on its own ("speaks Spanish") nobody would find it.
A relation becomes a sentence that can be recalled, and a link between the two things it names.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules import chats, graphiti
from recollect.memories.rules.contract import parsed_time
from recollect.memories.rules.pieces import ForeignPiece, Found, Relation, Thing, about, in_words, text_in
from recollect.model import Metadata, NewMemory

GRAPH, MEM0, CONVERSATIONS = "mcp-memory", "mem0", "conversations"
GRAPH_KEYS = ("entityType", "relationType")
_LINE = re.compile(rb'"type"\s*:\s*"(?:entity|relation)"')
_LISTS = re.compile(rb'"(?:entities|relations)"\s*:\s*\[')
# Where mem0 says who and in which run.
MEM0_FIELDS = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role", "categories")
Reader = Callable[[Any], Iterator[Found]]
NOT_KNOWN = (
    "It is JSON of a kind that is not known here (known are exports of ChatGPT, Claude, mem0, Letta and Graphiti, and "
    "the memory of the MCP reference server): save it as .jsonl, one object with a text a line."
)


def is_graph(beginning: bytes) -> bool:
    """Whether a file is memory.jsonl, by its first line; of a very long one, by the beginning of it."""
    first = beginning.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    if not first.startswith(b"{"):
        return False
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        return _LINE.search(first) is not None and _LISTS.search(first) is None
    return "entities" not in line and _is_graph(line)


def pieces(values: Iterable[Any], format: str | None) -> Iterator[Found]:
    """Everything in the values of a JSON file, each by its shape, or all as `format` says."""
    number = 0
    for number, value in enumerate(values, start=1):
        shape = format or shape_of(value)
        if shape is None and number == 1:
            raise InvalidInput(NOT_KNOWN)
        try:
            if shape is None:
                raise InvalidInput("It is of a kind that is not known here.")
            yield from _READERS[shape](value)
        except InvalidInput as problem:
            if format and number == 1:
                raise
            yield f"Item {number:,}: {problem.message}"
    if not number:
        raise InvalidInput("The list in it is empty.")


def shape_of(value: object) -> str | None:
    """Which program wrote a value: one of the list in its file, or all that is in it."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("conversations"), list):
        return CONVERSATIONS
    shapes: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        chats.CHATGPT: chats.is_chatgpt,
        chats.CLAUDE: chats.is_claude,
        chats.LETTA: chats.is_letta,
        GRAPH: _is_graph,
        graphiti.GRAPHITI: graphiti.is_graphiti,
        MEM0: _is_mem0,
    }
    return next((name for name, fits in shapes.items() if fits(value)), None)


# -- memory.jsonl


def graph_piece(line: str) -> ForeignPiece:
    """One line of memory.jsonl; InvalidInput for anything else."""
    try:
        return _graph_item(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise InvalidInput("It is not JSON.") from error


def _is_graph(value: Mapping[str, Any]) -> bool:
    lists = isinstance(value.get("entities"), list) and isinstance(value.get("relations", []), list)
    return lists or (value.get("type") in ("entity", "relation") and not value.keys().isdisjoint(GRAPH_KEYS))


def _graph(value: object) -> Iterator[Found]:
    """A whole graph, as the server's read_graph gives it, or one line of its file."""
    if not isinstance(value, dict) or not isinstance(value.get("entities"), list):
        yield _graph_item(value)
        return
    for kind, name in (("entity", "entities"), ("relation", "relations")):
        items = value.get(name)
        for number, item in enumerate(items if isinstance(items, list) else [], start=1):
            try:
                yield _graph_item({**item, "type": kind} if isinstance(item, dict) else item)
            except InvalidInput as problem:
                yield f"The {kind} {number}: {problem.message}"


def _graph_item(value: object) -> ForeignPiece:
    if isinstance(value, dict) and value.get("type") == "entity":
        return _entity(value)
    if isinstance(value, dict) and value.get("type") == "relation":
        return _relation(text_in(value, "from"), text_in(value, "relationType"), text_in(value, "to"), GRAPH)
    raise InvalidInput('A line is an object of the type "entity" or "relation".')


def _entity(entity: Mapping[str, Any]) -> ForeignPiece:
    thing = Thing(name=text_in(entity, "name"), type=text_in(entity, "entityType"))
    observations = entity.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(observation, str) for observation in observations):
        raise InvalidInput("The observations of an entity are a list of texts.")
    texts = [about(thing.name, observation) for observation in observations if observation.strip()]
    memories = tuple(NewMemory(text=text, thread=thing.name, source=GRAPH) for text in texts)
    return ForeignPiece(memories=memories, things=(thing,))


def _relation(source: str, relation: str, target: str, program: str) -> ForeignPiece:
    sentence = f"{in_words(source)} {in_words(relation)} {in_words(target)}"
    memories = (NewMemory(text=sentence, thread=source, source=program),)
    if source == target:  # a thing is not linked to itself
        return ForeignPiece(memories=memories, things=(Thing(name=source),))
    return ForeignPiece(
        memories=memories,
        things=(Thing(name=source), Thing(name=target)),
        relations=(Relation(source=source, relation=relation, target=target),),
    )


# -- mem0


def _is_mem0(value: Mapping[str, Any]) -> bool:
    memories = value.get("results", value.get("memories"))
    listed = isinstance(memories, list) and all(isinstance(memory, dict) and "memory" in memory for memory in memories)
    return listed or isinstance(value.get("memory"), str)


def _mem0(value: object) -> Iterator[Found]:
    """What mem0's `get_all` gives, or one memory of a list of them."""
    if isinstance(value, dict) and "memory" in value:
        yield _mem0_memory(value)
        return
    whole = value if isinstance(value, dict) else {}
    memories, relations = whole.get("results", whole.get("memories")), whole.get("relations") or []
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
        text=text_in(item, "memory"),
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
    return _relation(text_in(item, "source"), text_in(item, "relationship"), text_in(item, target), MEM0)


# -- conversations


def _conversation(
    read: Callable[[Mapping[str, Any]], ForeignPiece], fits: Callable[[Mapping[str, Any]], bool]
) -> Reader:
    def found_in(value: object) -> Iterator[Found]:
        if not isinstance(value, dict) or not fits(value):
            raise InvalidInput("It is not what such an export holds: leave --format out, or name another one.")
        yield read(value)

    return found_in


def _conversations(value: object) -> Iterator[Found]:
    """Conversations that lie in a list inside an object."""
    assert isinstance(value, dict)
    yield from pieces(value["conversations"], None)


_READERS: Mapping[str, Reader] = {
    GRAPH: _graph,
    MEM0: _mem0,
    graphiti.GRAPHITI: graphiti.pieces,
    chats.CHATGPT: _conversation(chats.chatgpt, chats.is_chatgpt),
    chats.CLAUDE: _conversation(chats.claude, chats.is_claude),
    chats.LETTA: _conversation(chats.letta, chats.is_letta),
    CONVERSATIONS: _conversations,
}
