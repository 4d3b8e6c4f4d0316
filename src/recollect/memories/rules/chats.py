"""Conversations that other programs export: those of ChatGPT and Claude (conversations.json), agents of Letta (.af).

What people and the model said becomes a memory each, in the order and the thread of its conversation and with its time;
what tools said and what a model thought does not. Of a conversation that was edited, the branch that stands is taken.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recollect.memories.rules.pieces import ForeignPiece, about, named, objects_in, text_in, time_in
from recollect.model import ContentType, Metadata, NewMemory

CHATGPT, CLAUDE, LETTA = "chatgpt", "claude", "letta"
A_MOMENT = timedelta(microseconds=1)
SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Something that was said: who, what, when, and its id at the source."""

    role: str
    text: str
    at: datetime | None
    id: str | None = None


def is_chatgpt(conversation: Mapping[str, Any]) -> bool:
    return isinstance(conversation.get("mapping"), dict)


def is_claude(conversation: Mapping[str, Any]) -> bool:
    return isinstance(conversation.get("chat_messages"), list)


def is_letta(export: Mapping[str, Any]) -> bool:
    return isinstance(export.get("core_memory"), list) or (
        isinstance(export.get("agents"), list) and isinstance(export.get("blocks"), list)
    )


def chatgpt(conversation: Mapping[str, Any]) -> ForeignPiece:
    """One conversation of ChatGPT."""
    messages = [node["message"] for node in _branch(conversation) if isinstance(node.get("message"), dict)]
    turns = [turn for message in messages if (turn := _chatgpt_turn(message)) is not None]
    id_ = conversation.get("conversation_id") or conversation.get("id")
    return _conversation(CHATGPT, id_, conversation.get("title"), turns, time_in(conversation, "create_time"))


def claude(conversation: Mapping[str, Any]) -> ForeignPiece:
    """One conversation of Claude."""
    turns = [
        Turn(
            role=str(message.get("sender", "")).lower(),
            text=_text_of(message.get("content")) or str(message.get("text") or ""),
            at=time_in(message, "created_at"),
            id=_id(message, "uuid"),
        )
        for message in objects_in(conversation, "chat_messages")
    ]
    name = conversation.get("name") or conversation.get("title")
    return _conversation(CLAUDE, conversation.get("uuid"), name, turns, time_in(conversation, "created_at"))


def letta(export: Mapping[str, Any]) -> ForeignPiece:
    """An agent file of Letta: what its blocks and passages say, and what was said. Its ids (message-0) count within the
    file alone, so none is taken over."""
    agents = objects_in(export, "agents") or [dict(export)]
    name = ", ".join(str(agent["name"]) for agent in agents if agent.get("name")) or "agent"
    memories = [
        NewMemory(
            text=about(str(block.get("label") or "memory"), block["value"]),
            metadata={"extra": {"label": block.get("label"), "agent": name}},
            created_at=time_in(block, "created_at"),
            source=LETTA,
        )
        for block in (*objects_in(export, "blocks"), *objects_in(export, "core_memory"))
        if isinstance(block.get("value"), str) and block["value"].strip()
    ]
    memories += [
        NewMemory(
            text=text_in(passage, "text"),
            metadata={"extra": {"agent": name}},
            created_at=time_in(passage, "created_at"),
            source=LETTA,
        )
        for passage in (*objects_in(export, "passages"), *objects_in(export, "archival_memory"))
        if isinstance(passage.get("text"), str) and passage["text"].strip()
    ]
    conversations = [
        memory
        for agent in agents
        for memory in _conversation(
            LETTA, agent.get("name") or agent.get("id"), agent.get("name"), _letta_turns(agent), None
        ).memories
    ]
    return ForeignPiece(memories=(*memories, *conversations))


def _conversation(
    source: str, id_: object, title: object, turns: Iterable[Turn], began: datetime | None
) -> ForeignPiece:
    """The turns of a conversation as memories; one without a time comes a moment after the one before."""
    name = str(title).strip() if title else ""
    thread = named(f"{source}/{id_ or name or 'conversation'}")
    memories: list[NewMemory] = []
    at = began
    for turn in turns:
        text = turn.text.strip()
        if turn.role not in SPEAKERS or not text:
            continue
        at = turn.at or (at and at + A_MOMENT)
        extra: Metadata = {"role": SPEAKERS[turn.role], **({"title": named(name)} if name else {})}
        memories.append(
            NewMemory(
                text=text,
                subtype=ContentType.CONVERSATION,
                metadata={"extra": extra},
                thread=thread,
                position=len(memories) + 1,
                created_at=at,
                source=source,
                source_id=turn.id,
            )
        )
    return ForeignPiece(memories=tuple(memories))


# -- ChatGPT


def _branch(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes from the first message to the last that stands; all of them, where nobody says which that is."""
    mapping = {id_: node for id_, node in conversation["mapping"].items() if isinstance(node, dict)}
    at = conversation.get("current_node")
    if at not in mapping:
        return sorted(mapping.values(), key=lambda node: _time_of(node))
    branch: list[Mapping[str, Any]] = []
    while isinstance(at, str) and (node := mapping.pop(at, None)) is not None:  # taken out, so that a ring ends too
        branch.append(node)
        at = node.get("parent")
    return branch[::-1]


def _time_of(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    at = time_in(message, "create_time") if isinstance(message, dict) else None
    return at.timestamp() if at else 0.0


def _chatgpt_turn(message: Mapping[str, Any]) -> Turn | None:
    """A message that a person saw; None for what went to and fro between the model and its tools."""
    author, notes = message.get("author"), message.get("metadata")
    hidden = isinstance(notes, dict) and notes.get("is_visually_hidden_from_conversation")
    if hidden or not isinstance(author, dict) or message.get("recipient", "all") != "all":
        return None
    return Turn(
        role=str(author.get("role", "")),
        text=_parts(message.get("content")),
        at=time_in(message, "create_time"),
        id=_id(message, "id"),
    )


def _parts(content: object) -> str:
    if not isinstance(content, dict) or content.get("content_type") not in ("text", "multimodal_text"):
        return ""
    parts = content.get("parts")
    said = [_part(part) for part in parts] if isinstance(parts, list) else []
    return "\n".join(part for part in said if part)


def _part(part: object) -> str:
    """What a part of a message says: words, or the transcript of a voice; of a picture, nothing."""
    spoken = part.get("text") if isinstance(part, dict) else part
    return spoken if isinstance(spoken, str) else ""


# -- Letta


def _letta_turns(agent: Mapping[str, Any]) -> Iterator[Turn]:
    for message in objects_in(agent, "messages"):
        at = time_in(message, "created_at")
        text = _text_of(message.get("content")) or str(message.get("text") or "")
        yield Turn(role=str(message.get("role", "")), text=_unwrapped(text), at=at)
        for said in _sent(message):
            yield Turn(role="assistant", text=said, at=at)


def _unwrapped(text: str) -> str:
    """The words of a message that came in an envelope; nothing for the events that Letta sends itself."""
    try:
        envelope = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return text
    if not isinstance(envelope, dict) or "type" not in envelope:
        return text
    said = envelope.get("message")
    return said if envelope["type"] == "user_message" and isinstance(said, str) else ""


def _sent(message: Mapping[str, Any]) -> Iterator[str]:
    """What an agent said to a person by the tool that is for this."""
    for call in objects_in(message, "tool_calls"):
        function = call.get("function")
        if isinstance(function, dict) and function.get("name") == "send_message":
            try:
                said = json.loads(function.get("arguments") or "{}")
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(said, dict) and isinstance(said.get("message"), str):
                yield said["message"]


# -- both


def _text_of(content: object) -> str:
    """The text of a message that comes in blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _id(fields: Mapping[str, Any], name: str) -> str | None:
    return named(str(fields[name])) if fields.get(name) else None
