"""Exporting, and bringing it back: the same memories, in the same state, with the same vectors."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.memories.sql import nodes
from recollect.model import ExportedMemory, Kind, Node, NodeFilter, Status
from recollect.settings import Settings
from tests.conftest import fresh_space

pytestmark = pytest.mark.anyio

EVERYTHING = NodeFilter(kinds=(), statuses=())


@pytest.fixture
async def other(settings: Settings, anyio_backend: str) -> AsyncIterator[Engine]:
    """An empty space to come back into."""
    async with Engine(await fresh_space(settings)) as engine:
        yield engine


async def everything(memory: Engine) -> list[Node]:
    return [node async for node in memory.stream(EVERYTHING)]


async def exported(memory: Engine, **options: Any) -> bytes:
    out = io.BytesIO()
    await memory.export(out, **options)
    return out.getvalue()


async def as_owner(memory: Engine, statement: str, *values: Any) -> None:
    connection = await asyncpg.connect(memory.core.database.dsn, server_settings={"search_path": "recollect,public"})
    try:
        await connection.execute(statement, *values)
    finally:
        await connection.close()


async def vectors(memory: Engine, ids: list[UUID]) -> dict[UUID, dict[str, bytes]]:
    async with memory.core.transaction(memory.space.id) as db:
        return await nodes.vectors_of(db, ids)


async def eventful(memory: Engine) -> None:
    """Memories with everything that can happen to them."""
    then = datetime(2024, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
    await memory.add("plain", wait=False)
    await memory.add(
        "with all its fields \u2028 „là trà“ 🍵",
        subtype="reflection",
        metadata={"tags": ["life"], "extra": {"nested": [1, None, 0.1, {"a": "b"}]}},
        importance=1 / 3,
        thread="chat",
        created_at=then,
        source="crm",
        source_id="7",
        wait=False,
    )
    second = await memory.add("second of the thread", thread="chat", wait=False)
    edited = await memory.add("edited twice", wait=False)
    await memory.edit(edited.id, metadata={"tags": ["ai"]})
    await memory.edit(edited.id, metadata={"tags": ["ai", "code"]}, importance=0.9)
    await memory.forget((await memory.add("archived", wait=False)).id)
    await memory.exclude((await memory.add("excluded", wait=False)).id)
    await as_owner(memory, "UPDATE nodes SET protected = true, is_summary = true WHERE id = $1", second.id)


async def test_D03_a_line_holds_every_field_with_times_in_rfc3339(memory: Engine) -> None:
    await eventful(memory)
    lines = [json.loads(line) for line in (await exported(memory)).decode().split("\n")[:-1]]
    assert all(set(line) == set(Node.__dataclass_fields__) for line in lines)
    assert [line["text"] for line in lines] == [node.text for node in await everything(memory)]
    assert lines[0]["created_at"] == "2024-02-03T04:05:06.000789Z"
    assert all(line["created_at"].endswith("Z") and line["updated_at"].endswith("Z") for line in lines)


async def test_what_was_exported_comes_back_as_it_was(memory: Engine, other: Engine) -> None:
    await eventful(memory)
    report = await other.import_(["-"], stdin=await exported(memory))
    assert (report.added, report.already_there, report.lines) == (6, 0, ())
    assert await everything(other) == await everything(memory)
    assert {node.status for node in await everything(other)} == {Status.ACTIVE, Status.ARCHIVED}


@pytest.mark.parametrize("with_vectors", [False, True])
async def test_what_is_archived_or_excluded_stays_out_of_recall(
    memory: Engine, other: Engine, with_vectors: bool
) -> None:
    await eventful(memory)
    await memory.work()
    await other.import_(["-"], stdin=await exported(memory, with_vectors=with_vectors))
    found = {hit.node.text for hit in await other.recall("archived excluded plain")}
    assert "plain" in found
    assert found.isdisjoint({"archived", "excluded"})


async def test_importing_an_export_again_changes_nothing(memory: Engine, other: Engine) -> None:
    await eventful(memory)
    data = await exported(memory)
    before = await everything(memory)
    report = await memory.import_(["-"], stdin=data)
    assert (report.added, report.already_there, report.refused) == (0, 6, ())
    assert await everything(memory) == before


async def test_vectors_come_along_and_need_no_job(memory: Engine, other: Engine) -> None:
    await eventful(memory)
    await memory.work()
    before = await everything(memory)
    await other.import_(["-"], stdin=await exported(memory, with_vectors=True))
    assert (await other.jobs()).completed == 0
    assert (await other.jobs()).waiting == 0
    assert await everything(other) == before
    ids = [node.id for node in before]
    assert await vectors(other, ids) == await vectors(memory, ids)
    assert set((await vectors(other, ids))[ids[0]]) == {"hashing:64"}


async def test_D35_vectors_of_another_model_come_along_and_the_own_are_made(memory: Engine, other: Engine) -> None:
    node = await memory.add("tea")
    line = json.loads(await exported(memory))
    foreign = {**line, "vectors": {"elsewhere:3": [0.5, 0.5, 1]}}
    await other.import_(["-"], stdin=json.dumps(foreign).encode())
    assert set((await vectors(other, [node.id]))[node.id]) == {"elsewhere:3", "hashing:64"}
    assert (await other.recall("tea"))[0].node.id == node.id


async def test_a_vector_of_the_wrong_length_is_refused_not_stored(memory: Engine, other: Engine) -> None:
    await memory.add("tea")
    wrong = {**json.loads(await exported(memory)), "vectors": {"hashing:64": [1.0, 2.0]}}
    report = await other.import_(["-"], stdin=json.dumps(wrong).encode())
    assert "does not have 64 numbers" in report.refused[0].message
    assert await everything(other) == []


async def test_a_folder_with_chunks_round_trips(memory: Engine, other: Engine, tmp_path: Path) -> None:
    sections = [f"# Part {n}\n\n" + f"word{n} " * 1500 for n in range(4)]
    (tmp_path / "long.md").write_text("\n\n".join(sections))
    await memory.import_([tmp_path], wait=False)
    file = tmp_path / "export.jsonl"
    assert await memory.export(file) == 4
    report = await other.import_([file], wait=False)
    assert (report.added, report.files) == (4, 1)
    assert await everything(other) == await everything(memory)


async def test_what_is_wanted_is_exported(memory: Engine) -> None:
    await eventful(memory)
    assert await memory.export(io.BytesIO(), wanted=NodeFilter()) == 5
    assert await memory.export(io.BytesIO(), wanted=NodeFilter(thread="chat")) == 2
    assert await memory.export(io.BytesIO(), wanted=NodeFilter(kinds=(Kind.CASE,))) == 0
    assert await memory.export(io.BytesIO()) == 6


async def merged_chain(memory: Engine) -> list[Node]:
    """first -> second -> third, as merges leave them: the merged ones are older than their keepers, and come first."""
    added = [await memory.add(name, wait=False) for name in ("first", "second", "third")]
    for absorbed, keeper in pairwise(added):
        await as_owner(
            memory, "UPDATE nodes SET status = 'merged', merged_into = $2 WHERE id = $1", absorbed.id, keeper.id
        )
    return await everything(memory)


@pytest.mark.parametrize("dry_run", [False, True])
async def test_merged_memories_find_their_keepers(memory: Engine, other: Engine, dry_run: bool) -> None:
    before = await merged_chain(memory)
    report = await other.import_(["-"], stdin=await exported(memory), dry_run=dry_run)
    assert (report.added, report.lines) == (3, ())
    assert await everything(other) == ([] if dry_run else before)


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_merged_memory_without_its_keeper_is_refused(memory: Engine, other: Engine, dry_run: bool) -> None:
    await merged_chain(memory)
    only_merged = await exported(memory, wanted=NodeFilter(statuses=(Status.MERGED,)))
    report = await other.import_(["-"], stdin=only_merged, dry_run=dry_run)
    assert (report.added, len(report.refused)) == (0, 2)
    assert all("which is not here" in line.message for line in report.refused)


async def test_an_altered_line_is_refused_and_the_rest_goes_on(memory: Engine, other: Engine) -> None:
    await memory.add("untouched", wait=False)
    await memory.add("original", wait=False)
    data = (await exported(memory)).replace(b'"text":"original"', b'"text":"altered"')
    report = await other.import_(["-"], stdin=data, wait=False)
    assert report.added == 1
    assert (report.refused[0].line, "altered" in report.refused[0].message) == (2, True)


async def test_the_contract_of_the_new_space_holds(memory: Engine, other: Engine) -> None:
    await other.set_space(other.space.slug, {"strict_tags": True})
    await memory.add("free", metadata={"tags": ["anything"]}, wait=False)
    report = await other.import_(["-"], stdin=await exported(memory), wait=False)
    assert "not registered" in report.refused[0].message
    line = {**json.loads(await exported(memory)), "updated_at": "2999-01-01T00:00:00Z", "metadata": {}}
    report = await other.import_(["-"], stdin=json.dumps(line).encode(), wait=False)
    assert "future" in report.refused[0].message


async def test_a_file_appears_when_it_is_complete_and_is_not_overwritten_unasked(
    memory: Engine, tmp_path: Path
) -> None:
    await memory.add("tea", wait=False)
    file = tmp_path / "out.jsonl"
    assert await memory.export(str(file)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    await memory.add("cake", wait=False)
    with pytest.raises(Conflict, match="--overwrite"):
        await memory.export(file)
    assert len(file.read_text().splitlines()) == 1
    assert await memory.export(file, overwrite=True) == 2
    assert len(file.read_text().splitlines()) == 2
    with pytest.raises(InvalidInput, match="cannot be written"):
        await memory.export(tmp_path / "missing" / "out.jsonl")


async def test_an_export_that_fails_half_way_leaves_no_file(memory: Engine, tmp_path: Path) -> None:
    await memory.add("tea", wait=False)

    def stop(_done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await memory.export(tmp_path / "out.jsonl", progress=stop)
    assert list(tmp_path.iterdir()) == []


async def test_an_export_is_written_batch_by_batch(memory: Engine) -> None:
    async def many() -> AsyncIterator[ExportedMemory]:
        for number in range(2500):
            yield ExportedMemory(text=f"memory {number}", id=uuid4(), version=2)

    await memory.add_many(many(), wait=False)
    out = io.BytesIO()
    places: list[tuple[int, int]] = []
    assert await memory.export(out, progress=lambda done: places.append((done, out.tell()))) == 2500
    assert [done for done, _ in places] == [1000, 2000, 2500]
    assert places[0][1] < places[1][1] < places[2][1] == len(out.getvalue())


async def test_D04_the_exported_state_is_only_for_what_is_new(memory: Engine) -> None:
    """Importing adds; it never changes what is there, whatever the line says."""
    node = await memory.add("tea", wait=False)
    line = {**json.loads(await exported(memory)), "status": "archived", "version": 9, "importance": 1}
    report = await memory.import_(["-"], stdin=json.dumps(line).encode(), wait=False)
    assert report.already_there == 1
    assert await memory.get(node.id) == replace(node)
