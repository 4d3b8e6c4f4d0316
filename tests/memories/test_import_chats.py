"""Moving in from where people have talked: exports of ChatGPT and Claude, agents of Letta, graphs of Graphiti (D54)."""

import asyncio
import json
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recollect.doors.cli.moving import _import
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.memories.rules.json_values import json_values
from recollect.memories.sources import ImportOptions
from recollect.model import NodeFilter, Status

pytestmark = pytest.mark.anyio


def chatgpt_message(id_: str, role: str, *parts: Any, at: float | None = None, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [*parts]}
    return {"id": id_, "author": {"role": role}, "create_time": at, "content": content, **more}


def chatgpt_nodes(*messages: dict[str, Any] | None) -> dict[str, Any]:
    """Messages in a row, each the answer to the one before."""
    ids = [message["id"] if message else f"root-{place}" for place, message in enumerate(messages)]
    return {
        id_: {"id": id_, "message": message, "parent": ids[place - 1] if place else None, "children": []}
        for place, (id_, message) in enumerate(zip(ids, messages, strict=True))
    }


SEEN = [
    None,
    chatgpt_message("s", "system", "You are helpful"),
    chatgpt_message("u1", "user", "Which tea keeps best?", at=1700000000.5),
    chatgpt_message("t", "tool", "42", at=1700000001),
    chatgpt_message("a0", "assistant", "search('tea')", recipient="browser"),
    chatgpt_message("a1", "assistant", "Pu-erh keeps for decades.", {"content_type": "image_asset_pointer"}),
    chatgpt_message("h", "user", "profile", metadata={"is_visually_hidden_from_conversation": True}),
    chatgpt_message("u2", "user", {"content_type": "audio_transcription", "text": "Und grüner?"}, at=1700000100),
    {**chatgpt_message("th", "assistant"), "content": {"content_type": "thoughts", "thoughts": []}},
    chatgpt_message("a2", "assistant", "  "),
]
EDITED = {"u1-old": {"id": "u1-old", "message": chatgpt_message("u1-old", "user", "Which tee?"), "parent": "s"}}
CHATGPT = {
    "title": "Storing tea",
    "create_time": 1699999999,
    "mapping": {**EDITED, **chatgpt_nodes(*SEEN)},
    "current_node": "a2",
    "conversation_id": "c-1",
}
CLAUDE = {
    "uuid": "c-2",
    "name": "Trà sen",
    "account": {"uuid": "me"},
    "created_at": "2026-02-01T10:00:00Z",
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "Trà sen pha thế nào?", "created_at": "2026-02-01T10:00:00.123456Z"},
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "raw",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Nước 80 độ."},
                {"type": "tool_use", "name": "x"},
                {"type": "text", "text": "Ba phút."},
            ],
            "created_at": None,
        },
        "strange",
        {"uuid": "m3", "sender": "human", "text": ""},
    ],
}


def saved(folder: Path, name: str, value: object) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value, ensure_ascii=False))
    return folder / name


async def everything(memory: Engine, **wanted: Any) -> list[Any]:
    return [node async for node in memory.stream(NodeFilter(**wanted))]


async def test_D54_conversations_of_chatgpt_become_threads(memory: Engine, tmp_path: Path) -> None:
    report = await memory.import_([saved(tmp_path, "conversations.json", [CHATGPT])])
    assert (report.added, report.refused, report.skipped) == (3, (), ())
    nodes = await everything(memory)
    assert [(node.text, node.position, node.metadata["extra"]["role"]) for node in nodes] == [
        ("Which tea keeps best?", 1, "user"),
        ("Pu-erh keeps for decades.", 2, "assistant"),
        ("Und grüner?", 3, "user"),
    ]
    assert {(node.thread, node.source, node.subtype) for node in nodes} == {("chatgpt/c-1", "chatgpt", "conversation")}
    assert [node.created_at.timestamp() for node in nodes] == [1700000000.5, 1700000000.500001, 1700000100]
    assert await memory.recall("storing", limit=1)  # by the title of the conversation


async def test_D54_conversations_of_claude_become_threads(memory: Engine, tmp_path: Path) -> None:
    report = await memory.import_([saved(tmp_path, "conversations.json", {"conversations": [CLAUDE]})])
    assert (report.added, report.refused) == (2, ())
    first, second = await everything(memory)
    assert (first.text, second.text) == ("Trà sen pha thế nào?", "Nước 80 độ.\nBa phút.")
    assert (second.thread, second.source_id) == ("claude/c-2", "m2")
    assert first.created_at < second.created_at
    assert first.metadata["extra"] == {"role": "user", "title": "Trà sen"}


async def test_D54_an_archive_is_read_as_it_came_and_a_second_time_adds_nothing(memory: Engine, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data/conversations-000.json", json.dumps([CHATGPT]))
        archive.writestr("data/conversations-001.json", json.dumps([CLAUDE]))
        archive.writestr("data/user.json", json.dumps({"email": "x"}))
    assert (await memory.import_([tmp_path / "export.zip"], dry_run=True)).added == 5
    assert (await memory.import_([tmp_path / "export.zip"])).added == 5
    again = await memory.import_([tmp_path / "export.zip"])
    assert (again.added, again.already_there, again.refused) == (0, 5, ())

    folder = tmp_path / "unpacked"
    saved(folder, "conversations.json", [CHATGPT])
    saved(folder, "user.json", {"email": "x"})
    (folder / "chat.html").write_text("<html>")
    report = await memory.import_([folder])
    assert (report.added, report.already_there) == (0, 3)
    assert {Path(line.file).name for line in report.skipped} == {"chat.html", "user.json"}


async def test_D54_what_is_broken_is_said_in_a_sentence_and_the_rest_goes_on(memory: Engine, tmp_path: Path) -> None:
    cut = json.dumps([CHATGPT, CLAUDE])[:-40]
    (tmp_path / "cut.json").write_text(cut)
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 no")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.md", "x")
    saved(tmp_path, "mixed.json", [CLAUDE, 7, {"x": 1}])
    report = await memory.import_([tmp_path])
    assert report.added == 5
    said = {Path(line.file).name: line.message for line in report.lines}
    assert "Item 2" in said["cut.json"]
    assert "no archive" in said["no.zip"]
    assert "no conversations" in said["other.zip"]
    assert [line.message.partition(":")[0] for line in report.refused] == ["Item 2", "Item 3"]
    forced = await memory.import_([saved(tmp_path, "c.json", [CLAUDE])], format="chatgpt")
    assert "leave --format out" in forced.skipped[0].message


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("value", [[], [1, 23, "a]", {"b": ["]"]}, None], [[[]]], {"a": 1}, "x", [1.5e3]])
def test_D54_json_is_read_value_by_value_wherever_it_is_cut(size: int, value: Any) -> None:
    text = f" \n{json.dumps(value, indent=1)}\n"
    blocks = [text[place : place + size] for place in range(0, len(text), size)]
    assert list(json_values(blocks)) == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize("text", ["", "{", "[1, 2", "[1, x]", "[{}", "nul", '{"a": 1}\n{"a": 2}', "[" * 100_000])
def test_D54_what_is_not_json_is_said_once(text: str) -> None:
    with pytest.raises(InvalidInput):
        list(json_values([text]))


async def test_D54_an_agent_of_letta_brings_blocks_passages_and_what_was_said(memory: Engine, tmp_path: Path) -> None:
    said: list[dict[str, Any]] = [
        {"role": "system", "content": [{"type": "text", "text": "be kind"}]},
        {"role": "user", "text": json.dumps({"type": "user_message", "message": "I moved to Huế", "time": "x"})},
        {"role": "user", "text": json.dumps({"type": "heartbeat", "reason": "x"})},
        {
            "id": "m-9",
            "role": "assistant",
            "content": [],
            "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Noted, Huế."}'}}],
        },
    ]
    blocks = [{"label": "human", "value": "Likes tea"}, {"label": "persona", "value": ""}]
    whole = {
        "agents": [{"id": "agent-0", "name": "Host", "messages": said}],
        "blocks": blocks,
        "passages": [{"id": "p1", "text": "The roses were cut in May", "created_at": "2026-05-01T00:00:00Z"}],
        "tools": [],
    }
    assert (await memory.import_([saved(tmp_path, "host.af", whole)])).added == 4
    texts = {node.text: node.thread for node in await everything(memory)}
    assert texts == {
        "human: Likes tea": None,
        "The roses were cut in May": None,
        "I moved to Huế": "letta/Host",
        "Noted, Huế.": "letta/Host",
    }
    other = {
        "agents": [{"id": "agent-0", "name": "Guest", "messages": [{**said[3], "content": "Hello"}]}],
        "blocks": [],
    }
    assert (await memory.import_([saved(tmp_path, "guest.af", other)])).added == 1  # ids count within a file alone
    old = {"agent_type": "memgpt_agent", "name": "Host", "core_memory": blocks, "messages": said}
    assert (await memory.import_([saved(tmp_path, "old.af", old)])).already_there == 3


async def test_D54_a_graph_of_graphiti_brings_facts_and_archives_those_that_no_longer_hold(
    memory: Engine, tmp_path: Path
) -> None:
    graph = {
        "nodes": [
            {"uuid": "n1", "name": "Linh", "labels": ["Entity", "Person"], "summary": "Linh teaches."},
            {"uuid": "n2", "name": "Huế", "labels": ["Entity"], "summary": ""},
        ],
        "edges": [
            {"uuid": "e1", "fact": "Linh lives in Huế", "name": "LIVES_IN", "valid_at": "2026-01-01T00:00:00Z"}
            | {"source_node_uuid": "n1", "target_node_uuid": "n2"},
            {"uuid": "e2", "fact": "Linh lives in Hanoi", "name": "LIVES_IN", "invalid_at": "2026-01-01T00:00:00Z"},
            {"uuid": "e3", "fact": None},
        ],
        "episodes": [{"uuid": "p1", "content": "Linh: I moved", "source": "message", "group_id": "g"}],
    }
    file = saved(tmp_path, "graph.json", graph)
    report = await memory.import_([file])
    assert (report.added, report.concepts, report.links) == (4, 2, 4)
    assert [line.message.partition(":")[0] for line in report.refused] == ["The edge 3"]
    assert [node.text for node in await everything(memory, statuses=(Status.ARCHIVED,))] == ["Linh lives in Hanoi"]
    assert (await memory.concepts.get("Linh")).node_type == "person"
    again = await memory.import_([file])
    assert (again.added, again.already_there, again.concepts, again.links) == (0, 4, 0, 0)


async def test_D54_rows_of_jsonl_may_say_their_tags_beside_the_text(memory: Engine, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "one", "tags": ["garden", "May"], "source_urls": ["https://example.org"]},
        {"text": "two", "tags": "garden, roses", "type": "idea"},
        {"text": "three", "tags": None, "metadata": {"tags": ["own"]}},
        {"text": "four", "tags": [1]},
        {"text": "five", "unknown": 1},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    report = await memory.import_([tmp_path / "rows.jsonl"])
    assert [line.line for line in report.refused] == [4, 5]
    found = {node.text: (node.metadata.get("tags"), node.subtype) for node in await everything(memory)}
    assert found == {
        "one": (["garden", "May"], "note"),
        "two": (["garden", "roses"], "idea"),
        "three": (["own"], "note"),
    }


class Stalling:
    """A pipe that brings some lines and then nothing for a while."""

    def __init__(self, lines: int) -> None:
        self.lines, self.waiting, self.go_on = lines, threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        for number in range(self.lines):
            yield json.dumps({"text": f"note {number}"}).encode()
        self.waiting.set()
        self.go_on.wait()


async def test_D54_an_interrupted_import_says_what_was_done_and_how_to_go_on(
    memory: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = Stalling(2500)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False, buffer=pipe))
    importing = asyncio.create_task(
        _import(memory, paths=["-"], format="jsonl", options=ImportOptions(), dry_run=False, wait=False)
    )
    await asyncio.to_thread(pipe.waiting.wait)
    importing.cancel()
    pipe.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await importing
    assert "2,000 were dealt with and are kept. The same command goes on from there." in capsys.readouterr().err
    assert await memory.count() == 2000
