"""Importing files, folders and standard input: nothing lost, nothing twice, every refusal said (D08)."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.memories import import_ as importing
from recollect.memories.import_ import ImportReport
from recollect.memories.rules.text import checksum, count_tokens, normalise
from recollect.memories.sources import ImportOptions
from recollect.model import Node, NodeFilter
from recollect.settings import Settings
from tests import programs
from tests.conftest import fresh_space

pytestmark = pytest.mark.anyio

EVERYTHING = NodeFilter(kinds=(), statuses=())
SMALL = ImportOptions(chunk_tokens=100)


def section(name: str) -> str:
    """A section that fills a chunk of 100 tokens more than half, so that each becomes a chunk of its own."""
    return f"# {name}\n\n{name}: " + "word " * 65 + "."


def document(*names: str) -> str:
    return "\n\n".join(section(name) for name in names) + "\n"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


async def everything(memory: Engine) -> list[Node]:
    return [node async for node in memory.stream(EVERYTHING)]


async def texts(memory: Engine) -> set[str | None]:
    return {node.text for node in await everything(memory)}


def counts(report: ImportReport) -> tuple[int, int, int]:
    return report.added, report.already_there, len(report.refused)


# -- documents


async def test_D08_a_long_document_becomes_chunks_of_one_parent(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"books/long.md": document("alpha", "beta", "gamma")})
    report = await memory.import_([tmp_path], options=SMALL, wait=False)
    assert counts(report) == (3, 0, 0)
    parent = str(uuid5(memory.space.id, checksum(normalise(document("alpha", "beta", "gamma")))))
    found = await everything(memory)
    assert [node.metadata for node in found] == [
        {"source": "import", "parent_id": parent, "chunk_index": index, "total_chunks": 3} for index in (1, 2, 3)
    ]
    assert [(node.thread, node.position) for node in found] == [("books/long.md", index) for index in (1, 2, 3)]
    assert [node.text for node in found] == [section("alpha"), section("beta"), section("gamma")]


async def test_D08_a_document_is_long_beyond_2000_tokens_unless_set_otherwise(memory: Engine, tmp_path: Path) -> None:
    assert memory.settings.chunk_tokens == 2000
    write(tmp_path, {"exact.txt": "word " * 2000, "longer.txt": "other " * 2001})
    report = await memory.import_([tmp_path], wait=False)
    assert report.added == 3
    assert all(count_tokens(node.text or "") <= 2000 for node in await everything(memory))
    other = await memory.import_([tmp_path], options=ImportOptions(chunk_tokens=3000), wait=False)
    assert counts(other) == (1, 1, 0)


async def test_D08_a_short_document_stays_whole_and_the_store_never_cuts(memory: Engine, tmp_path: Path) -> None:
    await memory.add("word " * 5000, wait=False)
    write(tmp_path, {"short.md": "tea, never coffee\n"})
    await memory.import_([tmp_path], wait=False)
    long, short = sorted(await everything(memory), key=lambda node: -len(node.text or ""))
    assert count_tokens(long.text or "") == 5000
    assert (short.text, short.thread, short.position) == ("tea, never coffee", "short.md", 1)
    assert short.metadata == {"source": "import"}


async def test_D08_a_chunk_that_is_there_already_gains_a_second_parent(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": document("alpha", "shared", "gamma"), "b.md": document("shared", "delta")})
    report = await memory.import_([tmp_path], options=SMALL, wait=False)
    assert (counts(report), report.linked) == ((4, 1, 0), 1)
    shared = next(node for node in await everything(memory) if node.text == section("shared"))
    first, second = (
        str(uuid5(memory.space.id, checksum(normalise(file.read_text())))) for file in sorted(tmp_path.iterdir())
    )
    assert shared.metadata == {
        "source": "import",
        "parent_id": first,
        "chunk_index": 2,
        "total_chunks": 3,
        "extra": {"parents": [{"parent_id": second, "chunk_index": 1, "total_chunks": 2}]},
    }
    assert (shared.thread, shared.position, shared.version) == ("a.md", 2, 2)


async def test_D08_P09_gaining_a_parent_is_a_plan_with_history_and_undo(memory: Engine, tmp_path: Path) -> None:
    before = await memory.add(section("shared"), wait=False)
    write(tmp_path, {"a.md": document("shared", "beta")})
    await memory.import_([tmp_path], options=SMALL, wait=False)
    assert (await memory.get(before.id)).metadata["extra"]["parents"][0]["chunk_index"] == 1
    entry = (await memory.history(before.id))[-1]
    assert (entry.policy, entry.verb) == ("import", "link")
    assert "a.md" in entry.reason
    assert entry.plan_id is not None
    await memory.undo(entry.plan_id)
    assert await memory.get(before.id) == before


async def test_D08_a_section_twice_in_one_document_is_remembered_once_with_both_places(
    memory: Engine, tmp_path: Path
) -> None:
    write(tmp_path, {"a.md": document("refrain", "verse", "refrain")})
    for expected in ((2, 1, 0), (0, 3, 0)):
        assert counts(await memory.import_([tmp_path], options=SMALL, wait=False)) == expected
    refrain = next(node for node in await everything(memory) if node.text == section("refrain"))
    assert refrain.metadata["chunk_index"] == 1
    assert [parent["chunk_index"] for parent in refrain.metadata["extra"]["parents"]] == [3]


async def test_D08_a_chunk_of_very_many_documents_stays_within_its_metadata(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {f"{n:02}.md": document("shared", f"other{n}") for n in range(60)})
    report = await memory.import_([tmp_path], options=SMALL, wait=False)
    assert counts(report) == (61, 59, 0)
    assert 0 < report.linked < 59
    assert len(report.notes) == 59 - report.linked
    assert "more documents" in report.notes[0].message


async def test_D08_importing_again_changes_nothing(memory: Engine, tmp_path: Path) -> None:
    rows = [{"text": f"row {n}", "thread": "chat"} for n in range(5)]
    write(
        tmp_path,
        {
            "a.md": document("alpha", "shared", "alpha"),
            "b.md": "---\ntags: [life]\n---\n" + document("shared", "delta"),
            "rows.jsonl": "\n".join(map(json.dumps, rows)),
            "rows.csv": "text,mood\nin a cell,calm\n",
        },
    )
    first = await memory.import_([tmp_path], options=SMALL)
    before = await everything(memory)
    again = await memory.import_([tmp_path], options=SMALL)
    assert counts(again) == (0, first.added + first.already_there, 0)
    assert again.linked == 0
    assert await everything(memory) == before


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_was_forgotten_is_not_passed_over_in_silence(memory: Engine, tmp_path: Path, dry_run: bool) -> None:
    write(tmp_path, {f"{name}.md": f"{name} drinks green tea." for name in ("Linh", "Minh", "Hoa")})
    await memory.import_([tmp_path])
    by_text = {node.text: node.id for node in await everything(memory)}
    await memory.forget(by_text["Linh drinks green tea."])
    await memory.exclude(by_text["Hoa drinks green tea."])
    report = await memory.import_([tmp_path], dry_run=dry_run)
    assert (report.added, report.already_there, report.refused) == (0, 3, ())
    assert [note.message for note in report.notes] == [
        "2 texts are there already, but forgotten or kept out of recall: "
        "`recollect restore` or `recollect include` brings one back."
    ]


async def test_D08_a_document_that_grew_adds_only_what_is_new(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": document("alpha", "beta", "gamma")})
    await memory.import_([tmp_path], options=SMALL, wait=False)
    write(tmp_path, {"a.md": document("alpha", "beta", "gamma", "delta")})
    report = await memory.import_([tmp_path], options=SMALL, wait=False)
    assert (counts(report), report.linked) == ((1, 3, 0), 3)


async def test_D06_front_matter_is_stored_in_its_places(memory: Engine, tmp_path: Path) -> None:
    front = "---\ntags: [life]\ntype: article\ndate: 2024-02-03\nimportance: 0.9\ntitle: Tea\nmood: calm\n---\n"
    write(tmp_path, {"tea.md": front + "Never coffee."})
    await memory.import_([tmp_path / "tea.md"], wait=False)
    [node] = await everything(memory)
    assert (node.text, node.subtype, node.importance) == ("Never coffee.", "article", 0.9)
    assert node.created_at == datetime(2024, 2, 3, tzinfo=UTC)
    assert node.metadata == {"source": "import", "tags": ["life"], "extra": {"title": "Tea", "mood": "calm"}}
    assert node.thread == "tea.md"


async def test_broken_front_matter_is_text_and_a_note(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"tea.md": "---\ntitle: [tea\n---\nNever coffee."})
    report = await memory.import_([tmp_path], wait=False)
    assert counts(report) == (1, 0, 0)
    assert "not YAML" in str(report.notes[0])
    assert (await everything(memory))[0].text == "---\ntitle: [tea\n---\nNever coffee."


async def test_a_document_without_a_date_has_the_time_of_its_file(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"old.txt": "old", "ahead.txt": "from the future", "b/old.txt": "other"})
    moment = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    os.utime(tmp_path / "old.txt", (moment.timestamp(), moment.timestamp()))
    os.utime(tmp_path / "ahead.txt", (4e9, 4e9))
    before = datetime.now(UTC)
    await memory.import_([tmp_path / "old.txt", tmp_path / "ahead.txt"], wait=False)
    old, ahead = await everything(memory)
    assert old.created_at == moment
    assert before <= ahead.created_at <= datetime.now(UTC)
    os.utime(tmp_path / "b" / "old.txt", (moment.timestamp(), moment.timestamp()))
    await memory.import_([tmp_path / "b"], options=ImportOptions(file_times=False), wait=False)
    assert (await everything(memory))[-1].created_at > moment.replace(year=2025)


async def test_D06_G08_in_a_strict_space_rows_are_refused_or_their_tags_kept_in_extra(
    memory: Engine, tmp_path: Path
) -> None:
    await memory.set_space(memory.space.slug, {"strict_tags": True})
    write(tmp_path, {"tea.csv": 'text,tags\ntea,"life,green-tea"\n'})
    refused = await memory.import_([tmp_path], wait=False)
    assert counts(refused) == (0, 0, 1)
    assert "'green-tea' is not registered" in refused.refused[0].message
    kept = await memory.import_([tmp_path], options=ImportOptions(unknown_tags="extra"), wait=False)
    assert counts(kept) == (1, 0, 0)
    [node] = await everything(memory)
    assert (node.metadata["tags"], node.metadata["extra"]) == (["life"], {"tags": ["green-tea"]})
    with pytest.raises(InvalidInput, match="'oolong' is not registered"):
        await memory.import_([tmp_path], options=ImportOptions(tags=("oolong",)), wait=False)


NOTES: dict[str, str | bytes] = {
    "nested.md": "---\ntags: [area/health, '#Tea', Sức khoẻ, 2024, 1.5, yes, null, [deep, deeper]]\n---\nnested",
    "comma.md": "---\ntags: machine learning, AI\n---\ncomma",
    "unfit.md": '---\ntags: ["' + "x" * 101 + '", "a\\0b", "#", {a: b}]\n---\nunfit',
    "many.md": "---\ntags: [" + ", ".join(f"tag-{number:04}" for number in range(900)) + "]\n---\nmany",
    "odd.md": "---\ntags: {a: [1]}\n---\nodd",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_G08_no_note_is_refused_for_its_tags(memory: Engine, tmp_path: Path, strict: bool, dry_run: bool) -> None:
    await memory.set_space(memory.space.slug, {"strict_tags": strict})
    write(tmp_path, NOTES)
    report = await memory.import_([tmp_path], wait=False, dry_run=dry_run)
    assert counts(report) == (len(NOTES), 0, 0)
    said = [str(line) for line in report.notes]
    assert any("unfit.md: 2 tags of the front matter were left out: a tag has 1 to 100" in line for line in said)
    assert any("many.md" in line and "of its tags were left out, for want of room" in line for line in said)
    aside = "tags are not registered in this strict space, and kept in metadata.extra: machine learning, AI, tag-0000"
    assert any(aside in line for line in said) is strict
    nodes = {} if dry_run else {node.text: node for node in await everything(memory)}
    if nodes and strict:
        assert nodes["nested"].metadata["tags"] == ["deep"]
        assert nodes["nested"].metadata["extra"]["tags"][:3] == ["area/health", "Tea", "Sức khoẻ"]
    elif nodes:
        written = ["area/health", "Tea", "Sức khoẻ", "2024", "1.5", "true", "deep", "deeper"]
        assert nodes["nested"].metadata["tags"] == written
        assert nodes["comma"].metadata["tags"] == ["machine learning", "AI"]
        assert len(nodes["many"].metadata["tags"]) > 200


async def test_G08_an_import_points_out_what_looks_like_a_slip(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "---\ntags: helth\n---\nfirst", "b.md": "---\ntags: helth\n---\nsecond"})
    foreseen = await memory.import_([tmp_path], wait=False, dry_run=True)
    report = await memory.import_([tmp_path], wait=False)
    assert report.lines == foreseen.lines
    [line] = report.notes
    assert (Path(line.file).name, "if you meant 'health'" in line.message) == ("a.md", True)


async def test_options_say_what_the_documents_do_not(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "plain", "b.md": "---\ntags: [ai]\nimportance: 0.1\ntype: idea\n---\nown"})
    options = ImportOptions(subtype="article", source="cli", tags=("life", "ai"), importance=0.7)
    await memory.import_([tmp_path], options=options, wait=False)
    by_text = {node.text: node for node in await everything(memory)}
    plain, own = by_text["plain"], by_text["own"]
    assert (plain.subtype, plain.importance) == ("article", 0.7)
    assert plain.metadata == {"source": "cli", "tags": ["life", "ai"]}
    assert (own.subtype, own.importance, own.metadata["tags"]) == ("idea", 0.1, ["ai", "life"])


async def test_a_very_long_path_still_names_a_thread(memory: Engine, tmp_path: Path) -> None:
    deep = "/".join(["folder-" + "x" * 90] * 6)
    write(tmp_path, {f"{deep}/note.txt": "deep down"})
    assert counts(await memory.import_([tmp_path], wait=False)) == (1, 0, 0)
    thread = (await everything(memory))[0].thread
    assert thread is not None
    assert (len(thread), thread[0], thread[-9:]) == (500, "…", "/note.txt")


# -- what is read and what is skipped


async def test_folders_are_read_in_order_and_every_skipped_file_is_said(memory: Engine, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": "outside"}) / "secret.txt"
    folder = write(
        tmp_path / "in",
        {
            "b.txt": "second",
            "a/z.txt": "first",
            "c.markdown": b"\xef\xbb\xbfthird",
            ".hidden.txt": "hidden",
            ".git/config": "hidden too",
            "picture.png": b"\x89PNG\r\n\0\0",
            "latin.txt": "caf\xe9".encode("latin-1"),
            "wide.txt": "wide".encode("utf-16"),
            "latin.jsonl": b'{"text": "fine"}\n{"text": "caf\xe9"}\n',
            "cut.csv": b"text\nfine\ncut \xe2\x82",
            "list.json": "[]",
            "empty.txt": " \n",
            "headless.csv": "a,b\n1,2\n",
        },
    )
    (folder / "loop").symlink_to(folder)
    (folder / "link.txt").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    report = await memory.import_([folder], wait=False, options=ImportOptions(file_times=False))
    assert [node.text for node in await everything(memory)] == ["first", "second", "third"]
    assert (report.files, report.refused, report.notes) == (3, (), ())
    said = {Path(line.file).name: line.message for line in report.skipped}
    assert set(said) == {
        *(".hidden.txt", ".git", "picture.png", "latin.txt", "wide.txt", "latin.jsonl", "cut.csv", "list.json"),
        *("empty.txt", "headless.csv", "loop", "link.txt", "pipe"),
    }
    assert said["picture.png"] == "It is a binary file, and only text can be remembered."
    assert said["wide.txt"].startswith("It is UTF-16")
    for name in ("latin.txt", "latin.jsonl", "cut.csv"):
        assert said[name].startswith("It is not UTF-8")
    for name in ("loop", "link.txt"):
        assert "links are not followed" in said[name]
    with_hidden = await memory.import_([folder], wait=False, options=ImportOptions(hidden=True))
    assert counts(with_hidden) == (2, 3, 0)


async def test_a_source_that_is_not_there_is_refused_before_anything_is_read(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "here"})
    with pytest.raises(InvalidInput, match="no file or folder"):
        await memory.import_([tmp_path / "a.txt", tmp_path / "missing"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="pipe it in"):
        await memory.import_([tmp_path / "pipe"])
    with pytest.raises(InvalidInput, match="standard input"):
        await memory.import_(["-"])
    with pytest.raises(InvalidInput, match="cannot be read"):
        await memory.import_([tmp_path / ("x" * 5000)])
    with pytest.raises(InvalidInput, match="one of auto, text"):
        await memory.import_([tmp_path / "a.txt"], format="pdf")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least 1 token"):
        ImportOptions(chunk_tokens=0)
    assert await everything(memory) == []


async def test_a_name_that_is_not_utf8_is_read_all_the_same(memory: Engine, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("coffee")
    assert counts(await memory.import_([tmp_path], wait=False)) == (1, 0, 0)
    assert (await everything(memory))[0].thread == "caf\ufffd.txt"


@pytest.mark.parametrize(
    ("data", "format", "expected"),
    [
        (b"plain words", "auto", {"plain words"}),
        (b"---\ntags: [life]\n---\ntea", "auto", {"tea"}),
        (b"---\ntags: [life]\n---\ntea", "text", {"---\ntags: [life]\n---\ntea"}),
        (b'\n{"text": "one"}\n{"text": "two"}\n', "auto", {"one", "two"}),
        (b'\xef\xbb\xbf{"text": "one"}\n', "auto", {"one"}),
        (b"\xef\xbb\xbftext,mood\none,\n", "csv", {"one"}),
    ],
)
async def test_standard_input(memory: Engine, data: bytes, format: Any, expected: set[str]) -> None:
    assert (await memory.import_(["-"], stdin=data, format=format, wait=False)).lines == ()
    assert await texts(memory) == expected
    again = await memory.import_(["-"], stdin=io.BytesIO(data), format=format, wait=False)
    assert counts(again) == (0, len(expected), 0)


async def test_D08_a_long_standard_input_has_a_thread_of_its_own(memory: Engine) -> None:
    await memory.import_(["-"], stdin=document("alpha", "beta").encode(), options=SMALL, wait=False)
    found = await everything(memory)
    assert {node.thread for node in found} == {found[0].metadata["parent_id"]}
    assert [node.position for node in found] == [1, 2]


@pytest.mark.parametrize("format", ["auto", "csv"])
async def test_standard_input_that_is_not_utf8_is_skipped_and_said(memory: Engine, format: Any) -> None:
    report = await memory.import_(["-"], stdin=b"text\nfine\ncaf\xe9\n", format=format, wait=False)
    assert "not UTF-8" in str(report.skipped[0])


# -- rows


async def test_rows_of_jsonl_keep_their_thread_time_and_ids(memory: Engine, tmp_path: Path) -> None:
    id_ = uuid4()
    rows: list[dict[str, Any]] = [
        {"text": "hello", "thread": "chat", "created_at": "2024-01-02T03:04:05Z", "content_type": "conversation"},
        {"raw_text": "good bye", "thread": "chat", "source": "crm", "source_id": "7", "importance_score": 0.3},
        {"text": "mine", "id": str(id_), "metadata": {"source": "telegram", "tags": ["life"]}},
    ]
    write(tmp_path, {"rows.jsonl": "\n\n".join(map(json.dumps, rows))})
    assert counts(await memory.import_([tmp_path], wait=False)) == (3, 0, 0)
    by_text = {node.text: node for node in await everything(memory)}
    hello, bye, mine = by_text["hello"], by_text["good bye"], by_text["mine"]
    assert (hello.thread, hello.position, hello.subtype) == ("chat", 0, "conversation")
    assert hello.created_at == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (bye.thread, bye.position, bye.source, bye.source_id, bye.importance) == ("chat", 1, "crm", "7", 0.3)
    assert (mine.id, mine.metadata, mine.thread) == (id_, {"source": "telegram", "tags": ["life"]}, None)
    assert hello.metadata == {"source": "import"}


async def test_each_refused_row_is_reported_by_its_line_and_the_rest_goes_on(memory: Engine, tmp_path: Path) -> None:
    lines = [
        '{"text": "good"}',
        "not json",
        '{"text": ""}',
        '{"text": "x", "importance": 2}',
        '{"text": "x", "metadata": {"mood": 1}}',
        '{"text": "a\\u0000b"}',
        '{"text": "\\ud800"}',
        '{"text": "x", "metadata": {"extra": {"a": "' + "x" * 5000 + '"}}}',
        '{"text": "also good"}',
        '{"text": "good"}',
    ]
    file = write(tmp_path, {"rows.jsonl": "\n".join(lines)}) / "rows.jsonl"
    report = await memory.import_([file], wait=False)
    assert counts(report) == (2, 1, 7)
    assert sorted(line.line or 0 for line in report.refused) == [2, 3, 4, 5, 6, 7, 8]
    assert all(line.file == str(file) and line.message.endswith(".") for line in report.refused)
    assert str(report.refused[0]).startswith(f"{file}:2: The line is not JSON")


ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    0.5,
    "",
    "x",
    "x" * 600,
    "a\0b",
    "\ud800",
    [],
    [1],
    [["x"]],
    {},
    {"a": {"b": [None]}},
]
FIELDS = ["text", "subtype", "metadata", "importance", "thread", "position", "created_at", "id", "source", "source_id"]
OF_EXPORTS = ["kind", "version", "status", "merged_into", "protected", "exclude", "updated_at", "vectors", "checksum"]


@pytest.mark.parametrize("options", [SMALL, ImportOptions(chunk_tokens=100, tags=("ai",), unknown_tags="extra")])
async def test_whatever_stands_in_a_field_is_imported_or_refused_and_never_stops_the_rest(
    memory: Engine, options: ImportOptions
) -> None:
    rows: list[dict[str, Any]] = []
    for value in ODD:
        rows += [{"text": document(uuid4().hex, "x"), field: value} for field in FIELDS]
        rows += [{"text": uuid4().hex, "kind": "memory", "version": 1, field: value} for field in FIELDS + OF_EXPORTS]
        rows += [{"text": uuid4().hex, "metadata": {field: value}} for field in ("tags", "extra", "parent_id", "type")]
        rows += [{"text": uuid4().hex, "kind": "memory", "version": 1, "vectors": {str(value): [1.0]}}]
    data = "\n".join(map(json.dumps, rows)).encode()
    rehearsed = await memory.import_(["-"], stdin=data, options=options, dry_run=True)
    report = await memory.import_(["-"], stdin=data, options=options, wait=False)
    assert counts(report) == counts(rehearsed)
    assert {line.line for line in report.refused} == {line.line for line in rehearsed.refused}
    assert report.added > 50
    assert await memory.count(EVERYTHING) == report.added


async def test_csv_rows_are_imported_and_refused_rows_reported_by_line(memory: Engine, tmp_path: Path) -> None:
    table = '\ufefftext;importance;tags;Mood\r\n"tea;\r\nnever coffee";0.5;life, ai;calm\r\ncake;high;;\r\nbread;;;\r\n'
    report = await memory.import_([write(tmp_path, {"t.csv": table})], wait=False)
    assert counts(report) == (2, 0, 1)
    assert (report.refused[0].line, report.refused[0].message) == (4, "Importance is a number from 0 to 1, not 'high'.")
    tea = next(node for node in await everything(memory) if node.text == "tea;\nnever coffee")
    assert tea.metadata == {"source": "import", "tags": ["life", "ai"], "extra": {"Mood": "calm"}}


async def test_D08_a_long_row_becomes_chunks(memory: Engine, tmp_path: Path) -> None:
    rows = [{"text": "short"}, {"text": document("alpha", "beta"), "source": "crm", "source_id": "7"}]
    write(tmp_path, {"in/rows.jsonl": "\n".join(map(json.dumps, rows))})
    for expected in ((3, 0, 0), (0, 3, 0)):
        assert counts(await memory.import_([tmp_path], options=SMALL, wait=False)) == expected
    chunks = [node for node in await everything(memory) if node.text != "short"]
    assert [(node.thread, node.position, node.source_id) for node in chunks] == [
        ("in/rows.jsonl:2", 1, "7#1"),
        ("in/rows.jsonl:2", 2, "7#2"),
    ]


async def test_of_two_rows_with_one_id_the_first_has_it(memory: Engine, tmp_path: Path) -> None:
    for _ in range(5):  # whichever text comes first in any order
        id_, first, second = uuid4(), uuid4().hex, uuid4().hex
        rows = [{"text": first, "id": str(id_)}, {"text": second, "id": str(id_)}]
        write(tmp_path, {"rows.jsonl": "\n".join(map(json.dumps, rows))})
        rehearsed = await memory.import_([tmp_path], dry_run=True)
        report = await memory.import_([tmp_path], wait=False)
        assert counts(report) == counts(rehearsed) == (1, 0, 1)
        assert (await memory.get(id_)).text == first
        assert (report.refused[0].line, rehearsed.refused[0].line) == (2, 2)


async def test_a_foreign_id_with_another_text_is_refused_not_overwritten(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"rows.jsonl": json.dumps({"text": "before", "source": "crm", "source_id": "7"})})
    await memory.import_([tmp_path], wait=False)
    write(tmp_path, {"rows.jsonl": json.dumps({"text": "after", "source": "crm", "source_id": "7"})})
    for dry_run in (True, False):
        report = await memory.import_([tmp_path], wait=False, dry_run=dry_run)
        assert counts(report) == (0, 0, 1)
        assert "'7' of the source 'crm' is remembered already" in report.refused[0].message


async def test_rows_appended_to_a_thread_follow_it_without_a_gap(memory: Engine, tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"turn {n}", "thread": "chat"}) for n in range(6)]
    for shown in (3, 6):
        write(tmp_path, {"chat.jsonl": "\n".join(rows[:shown])})
        await memory.import_([tmp_path], wait=False)
    assert [(node.text, node.position) for node in await everything(memory)] == [(f"turn {n}", n) for n in range(6)]


async def test_a_table_is_streamed_not_read_whole(memory: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MOST_MEMORIES", 100)
    stream = io.BytesIO(b"".join(b'{"text": "row %d"}\n' % n for n in range(1000)))
    places: list[tuple[int, int]] = []
    await memory.import_(
        ["-"], stdin=stream, format="jsonl", wait=False, progress=lambda done: places.append((done, stream.tell()))
    )
    assert [done for done, _ in places] == list(range(100, 1001, 100))
    assert places[0][1] < len(stream.getvalue()) / 5


# -- rehearsal


async def test_P02_a_dry_run_says_exactly_what_the_import_does_and_writes_nothing(
    memory: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MOST_MEMORIES", 4)  # twins within a batch, and in different ones
    there = await memory.add("there already", wait=False)
    await memory.add(section("shared"), wait=False)
    rows: list[dict[str, Any]] = [
        {"text": "there already"},
        {"text": "row"},
        {"text": "row", "importance": 5},
        {"text": "row "},
        {"text": "claims an id", "id": str(there.id)},
        *({"text": f"row {n}", "source": "crm", "source_id": str(n % 3)} for n in range(5)),
    ]
    write(
        tmp_path,
        {
            "a.md": document("alpha", "shared", "alpha", "beta"),
            "b.md": document("shared", "beta", "delta"),
            "c.jsonl": "\n".join(map(json.dumps, rows)) + "\nnot json",
            "d.txt": b"caf\xe9",
        },
    )
    before = await everything(memory)
    rehearsed = await memory.import_([tmp_path], options=SMALL, dry_run=True)
    assert await everything(memory) == before
    assert (await memory.jobs()).pending == len(before)
    done = await memory.import_([tmp_path], options=SMALL, wait=False)
    assert counts(rehearsed) == counts(done) == (7, 6, 5)
    assert (rehearsed.linked, rehearsed.files, rehearsed.skipped) == (done.linked, done.files, done.skipped)
    places = [sorted((line.file, line.line or 0) for line in report.refused) for report in (rehearsed, done)]
    assert places[0] == places[1]
    assert "would be added" in str(rehearsed)
    after = await memory.import_([tmp_path], options=SMALL, dry_run=True)
    assert (after.added, after.linked) == (0, 0)


# -- waiting


async def test_D10_an_import_waits_until_what_it_added_can_be_found(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Linh prefers tea", "b.txt": "the moon is far"})
    report = await memory.import_([tmp_path])
    assert report.postponed == {}
    assert (await memory.jobs()).waiting == 0
    assert (await memory.recall("Linh prefers tea"))[0].node.text == "Linh prefers tea"


async def test_D09_an_import_need_not_wait(memory: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Linh prefers tea"})
    await memory.import_([tmp_path], wait=False)
    assert (await memory.jobs()).pending == 1


# -- interruptions and company


def vault(folder: Path) -> Path:
    """A folder with everything that can go wrong half-way: long documents, shared chunks, tables, threads."""
    names = [f"topic{n}" for n in range(40)]
    files: dict[str, str | bytes] = {
        f"doc{n:02}.md": document("shared", *names[n : n + 3], "refrain") for n in range(0, 36, 3)
    }
    rows = [{"text": f"turn {n}", "thread": f"chat {n % 3}"} for n in range(60)]
    files["rows.jsonl"] = "\n".join(map(json.dumps, rows))
    files["table.csv"] = "text,mood\n" + "".join(f"cell {n},calm\n" for n in range(30))
    return write(folder, files)


def picture(found: Sequence[Node], space_id: UUID, folder: Path) -> set[tuple[Any, ...]]:
    """What must be the same in any space: everything but the ids and times, parents by the document they name."""
    parents = {str(uuid5(space_id, checksum(normalise(file.read_text())))): file.name for file in folder.glob("*.md")}

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return tuple(sorted((key, named(item)) for key, item in value.items()))
        if isinstance(value, list):
            return tuple(sorted(named(item) for item in value))
        return parents.get(value, value)

    return {(node.text, node.subtype, node.thread, node.position, node.status, named(node.metadata)) for node in found}


CHILD = """
    import asyncio, sys
    from recollect.memories import import_ as importing
    from recollect.engine.engine import Engine
    from recollect.memories.sources import ImportOptions
    from recollect.settings import Settings

    importing.MOST_MEMORIES = 7

    async def main(url, space, folder, most):
        batches = 0

        def say(done):
            nonlocal batches
            print(done, flush=True)
            if batches == int(most):
                sys.stdin.readline()
            batches += 1

        async with Engine(Settings.load(database_url=url, embedder="hashing:64", space=space, pool_size=4)) as memory:
            say(0)
            await memory.import_([folder], options=ImportOptions(chunk_tokens=100), progress=say)

    asyncio.run(main(*sys.argv[1:]))
"""


def import_and_kill(url: str, space: str, folder: Path, *, after_batches: int) -> int:
    """Import in a process of its own, and kill it after some batches; its exit code.

    It goes on meanwhile, but not further than two batches: so it is on its way when it is killed, on any machine.
    """
    command = [sys.executable, "-c", textwrap.dedent(CHILD), url, space, str(folder), str(after_batches + 2)]
    with programs.Popen[bytes](command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(1 + after_batches):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        return child.wait()


async def test_D08_P06_an_import_killed_at_any_moment_is_finished_by_another(
    database_url: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(tmp_path)
    monkeypatch.setattr(importing, "MOST_MEMORIES", 7)
    async with Engine(await fresh_space(settings)) as undisturbed:
        await undisturbed.import_([folder], options=SMALL)
        expected = picture(await everything(undisturbed), undisturbed.space.id, folder)
    killed = await fresh_space(settings)
    sizes: list[int] = []
    async with Engine(killed.model_copy(update={"job_stuck_seconds": 0.001})) as memory:
        for after_batches in (0, 1, 2, 4, 3, 8):
            code = await asyncio.to_thread(
                import_and_kill, database_url, killed.space, folder, after_batches=after_batches
            )
            assert code == -signal.SIGKILL
            sizes.append(await memory.count(EVERYTHING))
        assert sizes[-1] < len(expected), "killed too late to tell"
        await memory.import_([folder], options=SMALL)
        found = await everything(memory)
        assert len(found) == len(expected)
        assert picture(found, memory.space.id, folder) == expected
        again = await memory.import_([folder], options=SMALL)
        assert (again.added, again.linked, again.refused) == (0, 0, ())
        await memory.retry_jobs()
        await memory.work()
        assert (await memory.jobs()).waiting == 0


async def test_D08_two_imports_at_once_store_nothing_twice(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(tmp_path)
    monkeypatch.setattr(importing, "MOST_MEMORIES", 7)
    async with Engine(await fresh_space(settings)) as alone, Engine(await fresh_space(settings)) as memory:
        await alone.import_([folder / "doc00.md", folder / "doc03.md", folder / "table.csv"], options=SMALL)
        expected = picture(await everything(alone), alone.space.id, folder)
        sources = [folder / "doc00.md", folder / "doc03.md", folder / "table.csv"]
        reports = await asyncio.gather(
            *(memory.import_(order, options=SMALL, wait=False) for order in (sources, sources, sources))
        )
        assert sum(report.added for report in reports) == len(expected)
        assert all(report.refused == () for report in reports)
        assert picture(await everything(memory), memory.space.id, folder) == expected


async def test_D48_notes_are_found_by_file_name_title_alias_and_heading(memory: Engine, tmp_path: Path) -> None:
    long = "# Garden\n\n" + "soil and seeds again. " * 40 + "\n\n## Orchard\n\n" + "one tree after the other. " * 60
    notes = write(
        tmp_path,
        {
            "Passport.md": "C01X00T47, expires in spring",
            "people/anna.md": "---\ntitle: Doctor Almeida\naliases: [the dentist, Annie]\n---\nAsk her on Monday.",
            "yard.md": long,
        },
    )
    await memory.import_([notes], options=SMALL)

    async def found(asked: str) -> list[str]:
        return [hit.node.text or "" for hit in await memory.recall(asked) if hit.parts.lexical > 0]

    assert (await found("passport"))[0].startswith("C01X00T47")
    for asked in ("Almeida", "dentist", "Annie", "anna"):
        assert (await found(asked))[0] == "Ask her on Monday.", asked
    below = [text for text in await found("orchard") if "Orchard" not in text]
    assert below
    assert all(text.startswith("one tree") for text in below)


async def test_no_front_matter_keeps_a_note_out(memory: Engine, tmp_path: Path) -> None:
    """A post that waits for its day, and a paper's note with its whole abstract: all of it is there, and it is said."""
    abstract = "Сильный ветер. " * 200
    notes = write(
        tmp_path,
        {
            "post.md": "---\ndate: 2099-01-01\nmood: calm\n---\nto come",
            "paper.md": f"---\ntags: [health]\ndate: 2024-02-03\nabstract: {abstract}\n---\non wind",
        },
    )
    report = await memory.import_([notes], options=ImportOptions(file_times=False))
    assert (report.added, report.refused, len(report.lines)) == (2, (), 2)
    post, paper = sorted(await everything(memory), key=lambda node: "wind" in str(node.text))
    assert post.metadata["extra"] | {"date": "2099-01-01T00:00:00+00:00", "mood": "calm"} == post.metadata["extra"]
    assert post.created_at <= memory.core.now()
    assert abstract.strip() in str(paper.text)
    assert (paper.metadata["tags"], f"{paper.created_at:%Y-%m-%d}") == (["health"], "2024-02-03")


async def test_D48_the_date_in_a_daily_notes_name_is_its_time(memory: Engine, tmp_path: Path) -> None:
    notes = write(
        tmp_path,
        {
            "2024-03-09.md": "rain all day",
            "daily/20240310 Sunday.md": "sun at last",
            "11.03.2024.txt": "fog",
            "2024-03-12.md": "---\ndate: 2023-01-01\n---\nan old story",
            "2099-01-01.md": "not yet",
            "2024-99-77.md": "no day",
        },
    )
    await memory.import_([notes], options=ImportOptions(file_times=False))
    days = {node.text: f"{node.created_at:%Y-%m-%d}" for node in await everything(memory)}
    now = f"{memory.core.now():%Y-%m-%d}"
    assert days == {
        "rain all day": "2024-03-09",
        "sun at last": "2024-03-10",
        "fog": "2024-03-11",
        "an old story": "2023-01-01",
        "not yet": now,
        "no day": now,
    }
    assert (await memory.recall("what happened on 9 March 2024?"))[0].node.text == "rain all day"
