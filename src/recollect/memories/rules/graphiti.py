"""Graphs of Graphiti and Zep as JSON: nodes, edges (facts) and episodes, with the field names of their models.

A fact becomes a memory about its two ends, and a link between them; one that no longer holds is kept out of recall. The
summary of a node becomes a memory about it; an episode is what was said, with its time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from recollect.errors import InvalidInput
from recollect.memories.rules.pieces import (
    UNTYPED,
    ForeignPiece,
    Found,
    Relation,
    Thing,
    about,
    named,
    objects_in,
    text_in,
    time_in,
)
from recollect.model import ContentType, ExportedMemory, Metadata, NewMemory, Status

GRAPHITI = "graphiti"
# The label that every node has says nothing.
EVERY_NODE = "Entity"
TIMES = ("valid_at", "invalid_at", "expired_at")


def is_graphiti(value: Mapping[str, Any]) -> bool:
    edges = objects_in(value, "edges")
    episodes = objects_in(value, "episodes")
    return (
        isinstance(value.get("fact"), str)
        or (bool(edges) and all("fact" in edge for edge in edges))
        or (bool(episodes) and all("content" in episode for episode in episodes))
    )


def pieces(value: object) -> Iterator[Found]:
    """A graph, or one fact of a list of them."""
    if not isinstance(value, dict) or not is_graphiti(value):
        raise InvalidInput(
            "A graph of Graphiti is an object with nodes, edges (facts) and episodes, or a list of facts."
        )
    if "fact" in value:
        yield _fact(value, {})
        return
    nodes = {str(node["uuid"]): node for node in objects_in(value, "nodes") if node.get("uuid") and node.get("name")}
    for kind, items in (
        ("node", [*nodes.values()]),
        ("edge", objects_in(value, "edges")),
        ("episode", _in_time(value)),
    ):
        for number, item in enumerate(items, start=1):
            try:
                yield _node(item) if kind == "node" else _fact(item, nodes) if kind == "edge" else _episode(item)
            except InvalidInput as problem:
                yield f"The {kind} {number}: {problem.message}"


def _in_time(graph: Mapping[str, Any]) -> list[Any]:
    return sorted(
        objects_in(graph, "episodes"),
        key=lambda episode: str(episode.get("valid_at") or episode.get("created_at") or ""),
    )


def _thing(node: Mapping[str, Any]) -> Thing:
    labels = node.get("labels")
    own = [str(label) for label in labels if label != EVERY_NODE] if isinstance(labels, list) else []
    return Thing(name=text_in(node, "name"), type=own[0].lower() if own else UNTYPED)


def _node(node: Mapping[str, Any]) -> ForeignPiece:
    thing, summary = _thing(node), node.get("summary")
    if not isinstance(summary, str) or not summary.strip():
        return ForeignPiece(things=(thing,))
    memory = NewMemory(
        text=about(thing.name, summary.strip()),
        created_at=time_in(node, "created_at"),
        thread=named(thing.name),
        source=GRAPHITI,
    )
    return ForeignPiece(memories=(memory,), things=(thing,))


def _fact(edge: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> ForeignPiece:
    ends = [nodes.get(str(edge.get(name))) for name in ("source_node_uuid", "target_node_uuid")]
    things = tuple(dict.fromkeys(_thing(node) for node in ends if node is not None))
    extra: Metadata = {name: edge[name] for name in (*TIMES, "name", "group_id") if edge.get(name)}
    holds = not (edge.get("invalid_at") or edge.get("expired_at"))
    memory = ExportedMemory(
        text=text_in(edge, "fact"),
        metadata={"extra": extra} if extra else {},
        created_at=time_in(edge, "valid_at", "created_at"),
        source=GRAPHITI,
        source_id=str(edge["uuid"]) if edge.get("uuid") else None,
        status=Status.ACTIVE if holds else Status.ARCHIVED,
    )
    if not holds:
        return ForeignPiece(memories=(memory,))
    return ForeignPiece(memories=(memory,), things=things, relations=_relations(edge, things))


def _relations(edge: Mapping[str, Any], things: tuple[Thing, ...]) -> tuple[Relation, ...]:
    name = edge.get("name")
    if len(things) != 2 or not isinstance(name, str) or not name.strip():
        return ()
    return (Relation(source=things[0].name, relation=name.strip().lower(), target=things[1].name),)


def _episode(episode: Mapping[str, Any]) -> ForeignPiece:
    group = episode.get("group_id")
    memory = NewMemory(
        text=text_in(episode, "content"),
        subtype=ContentType.CONVERSATION if episode.get("source") == "message" else ContentType.NOTE,
        created_at=time_in(episode, "valid_at", "created_at"),
        thread=named(f"{GRAPHITI}/{group}") if group else None,
        source=GRAPHITI,
        source_id=str(episode["uuid"]) if episode.get("uuid") else None,
    )
    return ForeignPiece(memories=(memory,))
