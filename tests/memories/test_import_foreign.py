"""Moving in from another memory: memory.jsonl of the MCP reference server, and exports of mem0."""

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.engine.engine import Engine
from recollect.memories.import_ import ImportReport
from recollect.memories.rules import pieces
from recollect.model import Kind, NodeFilter

pytestmark = pytest.mark.anyio

LINH = {
    "type": "entity",
    "name": "Linh_Tran",
    "entityType": "person",
    "observations": ["Speaks Vietnamese", "Linh Tran prefers tea"],
}
HUE = {"type": "entity", "name": "Huế", "entityType": "city", "observations": []}
LIVES = {"type": "relation", "from": "Linh_Tran", "to": "Huế", "relationType": "lives_in"}
GRAPH: list[dict[str, Any]] = [LIVES, LINH, HUE]
MEM0: dict[str, Any] = {
    "results": [
        {
            "id": "0c1f9a30-0000-4000-8000-000000000001",
            "memory": "Prefers tea to coffee",
            "hash": "5f2b",
            "metadata": {"mood": "calm"},
            "created_at": "2026-03-01T10:00:00-07:00",
            "updated_at": None,
            "user_id": "linh",
            "run_id": "monday",
            "categories": ["food"],
        },
        {"id": "2", "memory": "Lives in Huế", "user_id": "linh"},
    ],
    "relations": [{"source": "linh", "relationship": "drinks", "target": "tea"}],
}


def written(folder: Path, name: str, *lines: object) -> Path:
    file = folder / name
    file.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return file


async def texts(memory: Engine) -> set[str]:
    return {node.text or "" for node in (await memory.list(limit=100)).items}


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.added, report.already_there, report.concepts, report.links


async def test_a_graph_of_the_reference_server_becomes_memories_concepts_and_links(
    memory: Engine, tmp_path: Path
) -> None:
    file = written(tmp_path, "memory.jsonl", *GRAPH)
    report = await memory.import_([file])
    assert counts(report) == (3, 0, 2, 5)
    assert await texts(memory) == {
        "Linh Tran: Speaks Vietnamese",
        "Linh Tran prefers tea",
        "Linh Tran lives in Huế",
    }
    linh = await memory.concepts.get("Linh_Tran")
    assert linh.node_type == "person"
    edges = await memory.graph.edges(linh.id)
    assert sorted(edge.relation for edge in edges) == ["about", "about", "about", "lives_in"]
    assert {edge.created_by for edge in edges} == {"import"}
    assert {node.thread for node in (await memory.list()).items} == {"Linh_Tran"}
    found = await memory.recall("Linh Tran lives in which city", limit=1)
    assert found[0].node.text == "Linh Tran lives in Huế"


async def test_importing_twice_adds_nothing_twice_and_more_adds_what_is_new(memory: Engine, tmp_path: Path) -> None:
    file = written(tmp_path, "memory.jsonl", *GRAPH)
    await memory.import_([file])
    assert counts(await memory.import_([file])) == (0, 3, 0, 0)
    more = {**LINH, "observations": [*LINH["observations"], "Cycles to work"]}
    again = written(tmp_path, "memory.jsonl", more, HUE, LIVES)
    assert counts(await memory.import_([again])) == (1, 3, 0, 1)
    assert await memory.count(NodeFilter(kinds=(Kind.CONCEPT,))) == 2


async def test_a_rehearsal_foresees_the_same_and_writes_nothing(memory: Engine, tmp_path: Path) -> None:
    file = written(tmp_path, "memory.jsonl", *GRAPH)
    foreseen = await memory.import_([file], dry_run=True)
    assert await memory.count(NodeFilter(kinds=tuple(Kind))) == 0
    assert counts(foreseen) == counts(await memory.import_([file]))
    assert str(foreseen) == (
        "3 would be added, 0 there already, 0 would be refused, 0 skipped, 2 concepts and 5 links would be made"
    )
    assert counts(await memory.import_([file], dry_run=True)) == (0, 3, 0, 0)


async def test_lines_that_are_not_understood_are_reported_and_the_rest_goes_on(memory: Engine, tmp_path: Path) -> None:
    strange: list[object] = [
        LINH,
        {"type": "dream", "name": "x"},
        "not json",
        {"type": "entity", "name": "", "entityType": "person"},
        {"type": "entity", "name": "x", "entityType": "y", "observations": [1]},
        {"type": "relation", "from": "a"},
        "[]",
        HUE,
    ]
    report = await memory.import_([written(tmp_path, "memory.jsonl", *strange)])
    assert [line.line for line in report.refused] == [2, 3, 4, 5, 6, 7]
    assert all(line.message.endswith(".") for line in report.refused)
    assert (report.added, report.concepts) == (2, 2)


async def test_a_relation_without_entities_is_kept_and_one_to_itself_is_no_link(memory: Engine, tmp_path: Path) -> None:
    loop = {"type": "relation", "from": "a thing", "to": "a thing", "relationType": "contains"}
    report = await memory.import_([written(tmp_path, "g.jsonl", LIVES, loop)])
    assert counts(report) == (2, 0, 3, 4)
    assert await texts(memory) == {"Linh Tran lives in Huế", "a thing contains a thing"}
    assert (await memory.concepts.get("Huế")).node_type == "concept"


async def test_the_graph_can_be_piped_in(memory: Engine) -> None:
    piped = "\n".join(json.dumps(one) for one in GRAPH).encode()
    assert counts(await memory.import_(["-"], stdin=piped)) == (3, 0, 2, 5)
    assert counts(await memory.import_(["-"], stdin=piped, format="mcp-memory")) == (0, 3, 0, 0)


@pytest.mark.parametrize("shape", ["results", "memories", "list"])
async def test_an_export_of_mem0_is_taken_with_who_and_when(memory: Engine, tmp_path: Path, shape: str) -> None:
    exported = MEM0["results"] if shape == "list" else {shape: MEM0["results"]}
    file = written(tmp_path, "mem0.json", exported)
    assert counts(await memory.import_([file])) == (2, 0, 0, 0)
    (tea,) = [node for node in (await memory.list()).items if node.text == "Prefers tea to coffee"]
    assert (tea.source, tea.source_id, tea.thread) == ("mem0", "0c1f9a30-0000-4000-8000-000000000001", "monday")
    assert tea.created_at.isoformat() == "2026-03-01T17:00:00+00:00"
    assert tea.metadata["extra"] == {"mood": "calm", "user_id": "linh", "run_id": "monday", "categories": ["food"]}
    assert counts(await memory.import_([file])) == (0, 2, 0, 0)


async def test_D54_exports_of_mem0_are_known_whatever_the_order_of_their_keys(memory: Engine, tmp_path: Path) -> None:
    turned = [dict(reversed(one.items())) for one in MEM0["results"]]
    whole = {"total": 2, "relations": MEM0["relations"], "page": {"x": ["y" * 9000]}, "results": turned}
    assert counts(await memory.import_([written(tmp_path, "whole.json", whole)])) == (3, 0, 2, 3)
    assert counts(await memory.import_([written(tmp_path, "list.json", turned)])) == (0, 2, 0, 0)
    line = dict(reversed(LINH.items()))
    assert counts(await memory.import_([written(tmp_path, "memory.json", line, LIVES)]))[0] == 3


async def test_D54_a_graph_of_the_reference_server_comes_as_one_object_too(memory: Engine, tmp_path: Path) -> None:
    whole = {"relations": [LIVES, 7], "entities": [LINH, {**HUE, "type": "entity"}, {"name": "x"}]}
    report = await memory.import_([written(tmp_path, "memory.json", whole)])
    assert counts(report) == (3, 0, 2, 5)
    assert [line.message.partition(":")[0] for line in report.refused] == ["The entity 3", "The relation 2"]


async def test_the_relations_of_mem0_become_sentences_and_links(memory: Engine, tmp_path: Path) -> None:
    report = await memory.import_([written(tmp_path, "mem0.json", MEM0)])
    assert counts(report) == (3, 0, 2, 3)
    assert "linh drinks tea" in await texts(memory)


async def test_what_is_wrong_in_an_export_of_mem0_is_reported(memory: Engine, tmp_path: Path) -> None:
    strange = {"results": [{"memory": "good"}, {"memory": 3}, "x", {"memory": "when", "created_at": "then"}]}
    report = await memory.import_([written(tmp_path, "mem0.json", strange)], format="mem0")
    assert report.added == 1
    assert [line.message.partition(":")[0] for line in report.refused] == [f"The memory {n}" for n in (2, 3, 4)]
    other = await memory.import_([written(tmp_path, "other.json", {"x": 1})], format="mem0")
    assert "An export of mem0 is a list" in other.skipped[0].message
    unknown = await memory.import_([written(tmp_path, "other.json", {"x": 1})])
    assert "save it as .jsonl" in unknown.skipped[0].message


@pytest.mark.parametrize(
    ("name", "observation", "text"),
    [
        ("Linh", "drinks tea", "Linh: drinks tea"),
        ("Linh", "LINH drinks tea", "LINH drinks tea"),
        ("John_Smith", "likes rain", "John Smith: likes rain"),
        ("John_Smith", "John Smith likes rain", "John Smith likes rain"),
    ],
)
def test_an_observation_says_of_whom_it_is(name: str, observation: str, text: str) -> None:
    assert pieces.about(name, observation) == text
