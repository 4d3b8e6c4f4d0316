"""What files say, as memories: text, Markdown with front matter, JSONL, CSV, and the lines of our own export."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.memories.rules import documents, exported
from recollect.memories.rules.contract import Contract, checked, checked_metadata, memory_from_mapping
from recollect.memories.rules.documents import chunked, csv_rows, markdown_document, memory_of_line, with_parent
from recollect.memories.rules.text import checksum, count_tokens
from recollect.model import ExportedMemory, Kind, NewMemory, Node, Status

SPACE = UUID("5c0de000-0000-4000-8000-000000000000")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


# -- bytes


def test_utf8_is_read_with_and_without_its_mark() -> None:
    assert documents.decoded("trà".encode()) == documents.decoded("trà".encode("utf-8-sig")) == "trà"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be", "cp1252"])
def test_other_encodings_are_named_or_refused(encoding: str) -> None:
    data = "\ufeffđã trà" if encoding == "utf-16-be" else "café trà"
    with pytest.raises(InvalidInput, match="UTF-8"):
        documents.decoded(data.encode(encoding, errors="replace"))


def test_a_nul_byte_makes_a_file_binary_unless_it_is_utf16() -> None:
    assert documents.looks_binary(b"GIF89a\0\0")
    assert not documents.looks_binary("text".encode("utf-16"))


# -- Markdown


def test_D06_front_matter_goes_to_its_places() -> None:
    document = markdown_document(
        "---\ntitle: Tea\ntags: [life, health]\ntype: todo\ncontent_type: idea\ndate: 2024-02-03\nimportance: 0.8\n"
        "source: telegram\nsource_urls: https://example.org\nmood: calm\n---\n\n# Tea\r\n\r\nNever coffee.\n"
    )
    assert document.memory == NewMemory(
        text="# Tea\n\nNever coffee.",
        subtype="idea",
        importance=0.8,
        created_at=datetime(2024, 2, 3, tzinfo=UTC),
        metadata={
            "tags": ["life", "health"],
            "type": "todo",
            "source": "telegram",
            "source_urls": ["https://example.org"],
            "extra": {"title": "Tea", "mood": "calm"},
        },
    )
    assert document.notes == ()


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("[ai, code]", ["ai", "code"]),
        ("ai, code", ["ai", "code"]),
        ("ai code ai", ["ai", "code"]),
        ("'#ai #code'", ["ai", "code"]),
        ("\n  - ai\n  - 2024", ["ai", "2024"]),
        ("", None),
        ("[]", None),
    ],
)
def test_tags_are_read_however_they_are_written(written: str, tags: list[str] | None) -> None:
    assert markdown_document(f"---\ntags: {written}\n---\ntext").memory.metadata.get("tags") == tags


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("created_at: 2024-02-03T04:05:06Z", datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("created_at: 2024-02-03 04:05:06", datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("date: '2024-02-03T04:05:06+02:00'", datetime(2024, 2, 3, 2, 5, 6, tzinfo=UTC)),
        ("created: 2024-02-03", datetime(2024, 2, 3, tzinfo=UTC)),
        ("date:", None),
    ],
)
def test_dates_of_front_matter(moment: str, expected: datetime | None) -> None:
    document = markdown_document(f"---\n{moment}\n---\ntext")
    assert (document.memory.created_at, document.notes) == (expected, ())


@pytest.mark.parametrize(
    "field", ["date: some day", "date: 0001-01-01T00:00:00Z", "importance: high", "importance: 7", "content_type: poem"]
)
def test_what_does_not_fit_its_place_is_kept_in_extra_and_reported(field: str) -> None:
    name = field.split(":")[0]
    document = markdown_document(f"---\n{field}\n---\ntext")
    assert name in document.memory.metadata["extra"]
    assert document.memory.text == "text"
    assert name in document.notes[0]


@pytest.mark.parametrize("field", ["type: daily-note", "source: https://example.org/clipped"])
def test_names_that_other_tools_use_otherwise_are_kept_in_extra_without_a_word(field: str) -> None:
    name, value = field.split(": ", 1)
    document = markdown_document(f"---\n{field}\n---\ntext")
    assert document.memory.metadata == {"extra": {name: value}}
    assert document.notes == ()


def test_the_type_of_a_note_may_be_its_content_type() -> None:
    assert markdown_document("---\ntype: article\n---\ntext").memory.subtype == "article"


@pytest.mark.parametrize(
    "block",
    [
        "title: 'never closed",
        "a: [1, 2",
        "date: 2024-13-45",
        "- only\n- a list",
        "just words",
        "a: &a [*a]",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "\n".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]" for i in range(8)),
        "a: " + "[" * 3000 + "]" * 3000,
        "number: " + "9" * 5000,
        "key: !!python/object/apply:os.system [ls]",
    ],
)
def test_broken_front_matter_is_kept_as_text_and_reported(block: str) -> None:
    text = f"---\n{block}\n---\n\nThe text."
    document = markdown_document(text)
    assert document.memory == NewMemory(text=text)
    assert "kept as text" in document.notes[0]


def test_front_matter_that_is_never_closed_is_kept_as_text_and_reported() -> None:
    document = markdown_document("---\ntitle: Tea\n\nNever coffee.")
    assert document.memory.text.startswith("---\ntitle")
    assert "never closed" in document.notes[0]


@pytest.mark.parametrize(
    "text", ["---", "---\n\nA rule above.", "# No front matter\n\n---\na: b\n---", "--- x\na: b\n---"]
)
def test_a_rule_is_no_front_matter(text: str) -> None:
    assert markdown_document(text) == documents.Document(memory=NewMemory(text=text))


def test_empty_front_matter_leaves_the_text() -> None:
    assert markdown_document("---\n---\nThe text.\n---\nMore.").memory == NewMemory(text="The text.\n---\nMore.")


def test_values_of_front_matter_are_made_fit_for_json() -> None:
    document = markdown_document(
        "---\nwhen: 2024-02-03\nset: !!set {b, a}\nbytes: !!binary aGk=\nnan: .nan\n1: one\n"
        "nested: {2024-01-01: x}\n---\ntext"
    )
    assert document.memory.metadata["extra"] == {
        "when": "2024-02-03",
        "set": ["a", "b"],
        "bytes": "aGk=",
        "nan": "nan",
        "1": "one",
        "nested": {"2024-01-01": "x"},
    }


@settings(max_examples=300, deadline=None)
@given(block=st.text(max_size=200))
def test_front_matter_never_fails(block: str) -> None:
    document = markdown_document(f"---\n{block}\n---\ntext")
    json.dumps(document.memory.metadata, allow_nan=False)


# -- JSONL


def test_D03_a_line_of_json_is_a_memory_by_either_name_of_its_fields() -> None:
    line = '{"raw_text": "tea", "content_type": "log", "importance_score": 0.5, "thread": "t", "source_id": "7"}'
    assert memory_of_line(line) == NewMemory(text="tea", subtype="log", importance=0.5, thread="t", source_id="7")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{", "not JSON"),
        ("[1]", "object"),
        ('"text"', "object"),
        ("{}", "needs a text"),
        ('{"text": "x", "mood": 1}', "mood"),
        ('{"text": "x", "kind": "note"}', "'kind' is not a field of a memory"),
        ('{"text": "x", "id": "7"}', "UUID"),
        ('{"text": "x", "created_at": "then"}', "not a time"),
        ("[" * 100_000, "JSON"),
        ('{"text": "x", "position": ' + "9" * 5000 + "}", "JSON"),
    ],
)
def test_a_line_that_is_no_memory_is_refused_with_a_sentence(line: str, match: str) -> None:
    with pytest.raises(InvalidInput, match=match) as problem:
        memory_of_line(line)
    assert problem.value.message.endswith(".")


# -- CSV


def memories(*lines: str) -> list[NewMemory]:
    rows = list(csv_rows([line + "\r\n" for line in lines]))
    assert all(row.memory for row in rows), [row.problem for row in rows]
    return [row.memory for row in rows if row.memory]


def test_columns_go_to_their_places_and_the_others_to_extra() -> None:
    [memory] = memories(
        "Text,content_type,importance,thread,position,date,tags,type,source,source_id,Mood,",
        '"tea, never coffee",idea,0.5,chat,3,2024-02-03,"life, health",todo,crm,17,calm,first',
    )
    assert memory == NewMemory(
        text="tea, never coffee",
        subtype="idea",
        importance=0.5,
        thread="chat",
        position=3,
        created_at=datetime(2024, 2, 3, tzinfo=UTC),
        source="crm",
        source_id="17",
        metadata={"tags": ["life", "health"], "type": "todo", "extra": {"Mood": "calm", "column 12": "first"}},
    )


def test_a_column_of_metadata_holds_json() -> None:
    [memory] = memories("text,metadata,mood", 'tea,"{""tags"": [""life""], ""extra"": {""a"": 1}}",calm')
    assert memory.metadata == {"tags": ["life"], "extra": {"a": 1, "mood": "calm"}}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_seen_from_the_header(delimiter: str) -> None:
    [memory] = memories(delimiter.join(["tags", "raw_text"]), delimiter.join(["life", "tea"]))
    assert memory == NewMemory(text="tea", metadata={"tags": ["life"]})


def test_a_cell_may_hold_lines_and_very_much_text() -> None:
    long = "word " * 100_000
    rows = list(csv_rows(["text,mood\n", '"first\n', 'second",calm\n', f'"{long}",\n', "third,\n"]))
    assert [(row.line, row.memory and row.memory.text) for row in rows] == [
        (2, "first\nsecond"),
        (4, long),
        (5, "third"),
    ]


def test_rows_that_cannot_be_read_are_reported_by_line_and_the_rest_goes_on() -> None:
    rows = list(csv_rows(["text,importance\n", "tea,0.5\n", "a,b,c\n", '"x"y,1\n', "\n", "cake,high\n", 'z,"open\n']))
    assert [(row.line, row.problem is None) for row in rows] == [
        (2, True),
        (3, False),
        (4, False),
        (6, True),
        (7, False),
    ]
    assert rows[3].memory is not None
    with pytest.raises(InvalidInput, match="0 to 1, not 'high'"):  # the contract has a sentence for it
        checked(rows[3].memory, Contract(), NOON)


@pytest.mark.parametrize("header", ["", "\n", "body,tags\n", "text,Text\n", "mood,mood,text\n"])
def test_a_header_without_a_text_column_or_with_one_name_twice_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput, match="first line"):
        list(csv_rows([header, "a,b\n"]))


# -- chunks


def long_memory(**fields: Any) -> NewMemory:
    return NewMemory(text="\n\n".join(f"# Part {n}\n\n{'word ' * 70}." for n in range(5)), **fields)


def test_D08_chunks_name_their_parent_their_place_and_their_number() -> None:
    memory = long_memory(metadata={"tags": ["ai"]}, created_at=NOON, source="crm", source_id="7")
    made = chunked(memory, space_id=SPACE, most_tokens=100, thread="notes/long.md")
    parent = str(uuid5(SPACE, checksum(memory.text)))
    assert [part.metadata for part in made] == [
        {"tags": ["ai"], "parent_id": parent, "chunk_index": index, "total_chunks": 5} for index in range(1, 6)
    ]
    assert [(part.thread, part.position) for part in made] == [("notes/long.md", index) for index in range(1, 6)]
    assert [part.source_id for part in made] == ["7#1", "7#2", "7#3", "7#4", "7#5"]
    assert made[0].created_at == NOON
    assert [part.created_at for part in made] == sorted({part.created_at for part in made if part.created_at})
    assert all(count_tokens(part.text) <= 100 for part in made)


def test_D08_a_short_memory_stays_as_it_is() -> None:
    memory = NewMemory(text="tea " * 100)
    assert chunked(memory, space_id=SPACE, most_tokens=100, thread="t") == [memory]


def test_D08_chunks_of_a_row_stay_in_its_thread_and_its_id_names_the_parent() -> None:
    id_ = uuid4()
    made = chunked(long_memory(thread="chat", position=4, id=id_), space_id=SPACE, most_tokens=100, thread="f")
    assert {(part.thread, part.position, part.id) for part in made} == {("chat", 4, None)}
    assert {part.metadata["parent_id"] for part in made} == {str(id_)}


def test_D08_a_memory_that_names_its_parent_is_not_cut_again() -> None:
    memory = long_memory(metadata={"parent_id": "x", "chunk_index": 1})
    assert chunked(memory, space_id=SPACE, most_tokens=100, thread="t") == [memory]


@pytest.mark.parametrize("text", [None, 7, "\ud800" * 300, "\0" * 300])
def test_D08_what_is_no_text_is_left_for_the_contract(text: Any) -> None:
    memory = NewMemory(text=text)
    assert chunked(memory, space_id=SPACE, most_tokens=100, thread="t") == [memory]


def test_D08_a_second_parent_is_added_once() -> None:
    chunk = {"parent_id": "b", "chunk_index": 2, "total_chunks": 9, "tags": ["ai"]}
    first = {"parent_id": "a", "chunk_index": 1, "total_chunks": 3, "extra": {"title": "A"}}
    both = with_parent(first, chunk)
    assert both == {
        **first,
        "extra": {"title": "A", "parents": [{"parent_id": "b", "chunk_index": 2, "total_chunks": 9}]},
    }
    assert with_parent(both, chunk) == both
    assert with_parent(first, first) == first
    assert with_parent({}, chunk)["extra"]["parents"][0]["parent_id"] == "b"
    assert with_parent({"extra": {"parents": "mine"}}, chunk)["extra"]["parents"][0] == "mine"
    checked_metadata(both, Contract())


# -- our own export


def node(**fields: Any) -> Node:
    known: dict[str, Any] = {
        "id": uuid4(),
        "kind": Kind.MEMORY,
        "subtype": "note",
        "name": None,
        "text": "tea \u2028 „never“ coffee",
        "checksum": checksum("tea \u2028 „never“ coffee"),
        "metadata": {"tags": ["life"], "extra": {"a": [1, None, 0.5]}},
        "importance": 0.25,
        "status": Status.ARCHIVED,
        "merged_into": None,
        "protected": True,
        "exclude": True,
        "is_summary": True,
        "source": "crm",
        "source_id": "7",
        "thread": "chat",
        "position": 3,
        "version": 4,
        "created_at": NOON,
        "updated_at": NOON.replace(microsecond=7),
    }
    return Node(**{**known, **fields})


def test_an_exported_line_holds_every_field_and_comes_back() -> None:
    one = node()
    line = exported.line(one, {"hashing:8": np.arange(1, 9, dtype="<f2").tobytes()})
    shown = json.loads(line)
    assert "\n" not in line
    assert set(shown) == {*Node.__dataclass_fields__, "vectors"}
    assert (shown["created_at"], shown["updated_at"]) == ("2026-11-15T12:00:00Z", "2026-11-15T12:00:00.000007Z")
    back = memory_of_line(line)
    assert isinstance(back, ExportedMemory)
    for name in set(NewMemory.__dataclass_fields__) | {"status", "protected", "exclude", "version", "updated_at"}:
        assert getattr(back, name) == getattr(one, name), name
    assert np.frombuffer(back.vectors["hashing:8"], "<f2").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_vectors_may_be_lists_of_numbers() -> None:
    shown = {**json.loads(exported.line(node())), "vectors": {"m": [0.5, 1, -2]}}
    assert np.frombuffer(exported.memory(shown).vectors["m"], "<f2").tolist() == [0.5, 1.0, -2.0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kind": "concept"}, "only memories"),
        ({"text": "altered"}, "altered"),
        ({"status": "gone"}, "status"),
        ({"status": "merged"}, "merged_into"),
        ({"merged_into": "00000000-0000-4000-8000-000000000001"}, "merged_into"),
        ({"status": "merged", "merged_into": "x"}, "not the id"),
        ({"version": 0}, "version"),
        ({"version": 2**31}, "version"),
        ({"version": True}, "version"),
        ({"protected": 1}, "protected"),
        ({"exclude": None}, "exclude"),
        ({"updated_at": "then"}, "time"),
        ({"mood": 1}, "mood"),
        ({"vectors": [1]}, "vectors"),
        ({"vectors": {"m": "?"}}, "base64"),
        ({"vectors": {"m": "AAA="}}, "zero|base64"),
        ({"vectors": {"m": base64.b64encode(b"\0\0\0").decode()}}, "base64"),
        ({"vectors": {"m": ["x"]}}, "list of numbers"),
        ({"vectors": {"m": 7}}, "list of numbers"),
        ({"vectors": {"m": []}}, "empty"),
        ({"vectors": {"m": [0, 0]}}, "zero"),
        ({"vectors": {"m": [1e9]}}, "finite"),
        ({"vectors": {"m": [float("nan")]}}, "finite"),
        ({"vectors": {"m": [1] * 16_001}}, "too long"),
    ],
)
def test_an_exported_line_that_does_not_fit_is_refused(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?i){match}"):
        exported.memory({**json.loads(exported.line(node())), **change})


@pytest.mark.parametrize("field", ["status", "version", "protected", "exclude", "vectors", "updated_at", "merged_into"])
def test_D04_a_new_memory_cannot_claim_what_only_an_exported_one_brings(field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        memory_from_mapping({"text": "tea", field: 1})
