"""Spaces: nothing crosses them, not even a query that forgets its WHERE (DESIGN 5a)."""

from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.model import NewMemory
from recollect.store.tables import GUARDED, UNGUARDED, metadata

pytestmark = pytest.mark.anyio


async def another(memory: Engine) -> Engine:
    slug = f"o-{uuid4().hex[:12]}"
    await memory.add_space(slug)
    return await memory.in_space(slug)


async def test_every_table_with_a_space_is_guarded(memory: Engine) -> None:
    async with memory.core.database.owner() as connection:
        rows = await connection.execute(
            text(
                "SELECT relname, relrowsecurity FROM pg_class"
                " WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r'"
            )
        )
        guarded = {row.relname: row.relrowsecurity for row in rows if row.relname != "alembic_version"}
    assert guarded == dict.fromkeys(GUARDED, True) | dict.fromkeys(UNGUARDED, False)
    assert all("space_id" in metadata.tables[table].c for table in GUARDED)


async def test_a_query_without_a_condition_sees_its_own_space_only(memory: Engine) -> None:
    other = await another(memory)
    await memory.add("mine", wait=False)
    await other.add("theirs", wait=False)
    async with other.core.transaction(other.space.id) as db:
        assert list((await db.execute(text("SELECT text FROM nodes"))).scalars()) == ["theirs"]
        assert (await db.execute(text("SELECT current_user"))).scalar_one() == "recollect_app"


async def test_a_row_cannot_be_written_into_another_space(memory: Engine) -> None:
    other = await another(memory)
    node = await memory.add("mine", wait=False)
    async with other.core.transaction(other.space.id) as db:
        moved = await db.execute(text("UPDATE nodes SET importance = 1 WHERE id = :id"), {"id": node.id})
        assert moved.rowcount == 0
    with pytest.raises(Exception, match="row-level security"):
        async with other.core.transaction(other.space.id) as db:
            await db.execute(
                text("INSERT INTO never_merge (space_id, a, b) VALUES (:space, 'a', 'b')"), {"space": memory.space.id}
            )


@pytest.mark.parametrize(
    ("table", "columns", "values"),
    [
        ("lexicon", "terms, bm25, length, kind, recallable", "'{1}', '{1:1}/1000000000', 1, 'memory', true"),
        ("embedding_jobs", "model", "'a-model'"),
        ("embeddings", "model, dim, vector, kind, recallable", "'a-model', 2, '[1,0]', 'memory', true"),
        ("activity", "uses", "1"),
    ],
)
async def test_what_belongs_to_a_node_cannot_stand_in_another_space_or_in_none(
    memory: Engine, table: str, columns: str, values: str
) -> None:
    """Its one key names node and space together; the owner, whom no policy holds back, cannot write past it either."""
    node = await memory.add("here and nowhere else", wait=False)
    other = await another(memory)
    row = f"INSERT INTO {table} (space_id, node_id, {columns}) VALUES (:space, :node, {values})"
    for space_id, node_id in ((other.space.id, node.id), (uuid4(), node.id), (memory.space.id, uuid4())):
        with pytest.raises(IntegrityError, match="foreign key"):
            async with memory.core.database.owner() as connection:
                await connection.execute(text(row), {"space": space_id, "node": node_id})


async def test_a_foreign_id_is_not_found(memory: Engine) -> None:
    other = await another(memory)
    node = await memory.add("mine", wait=False)
    await memory.forget(node.id)
    plan = (await memory.history(node.id))[-1].plan_id
    assert plan
    for attempt in (other.get(node.id), other.forget(node.id), other.history(node.id), other.undo(plan)):
        with pytest.raises(NotFound):
            await attempt


async def test_D13_metadata_search_uses_the_gin_index_as_the_working_role(memory: Engine) -> None:
    await memory.add_many([NewMemory(text=f"n {i}", metadata={"extra": {"n": i}}) for i in range(3000)], wait=False)
    async with memory.core.database.alone() as connection:
        await connection.execute("VACUUM ANALYZE nodes")
        async with connection.transaction():
            await connection.execute(
                "SELECT set_config('role', 'recollect_app', true), set_config('recollect.space', $1, true)",
                str(memory.space.id),
            )
            assert (
                await connection.fetchval(
                    """SELECT count(*) FROM nodes_holding($1, '{"extra": {"n": 5}}')""", memory.space.id
                )
                == 1
            )
            # The body as the owner plans it inside the function: through the index, not row by row.
            await connection.execute("RESET ROLE")
            plan = await connection.fetch(
                "EXPLAIN SELECT id FROM nodes WHERE space_id = current_setting('recollect.space')::uuid"
                """ AND metadata @> '{"extra": {"n": 5}}'"""
            )
    assert "nodes_metadata" in "\n".join(row[0] for row in plan)


async def test_D13_the_indexes_of_the_document_are_there(memory: Engine) -> None:
    async with memory.core.database.owner() as connection:
        rows = await connection.execute(
            text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'recollect'")
        )
        found = {row.indexname: row.indexdef for row in rows}
    assert "created_at DESC" in found["nodes_created_at"]
    assert "subtype" in found["nodes_content_type"]
    assert "USING gin (metadata" in found["nodes_metadata"]
    assert found["nodes_checksum"].startswith("CREATE UNIQUE INDEX")
    assert "(space_id, status, created_at)" in found["embedding_jobs_status"]
    assert "(space_id, model)" in found["embeddings_model"]


@pytest.mark.parametrize("slug", ["", "With Capitals", "a" * 64, "-x", "ä", "a/b"])
async def test_a_space_needs_a_slug(memory: Engine, slug: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a space"):
        await memory.add_space(slug)


async def test_an_unknown_or_taken_space(memory: Engine) -> None:
    with pytest.raises(NotFound, match="There is no space 'nowhere'"):
        await memory.in_space("nowhere")
    with pytest.raises(Conflict, match="exists already"):
        await memory.add_space("default")
    with pytest.raises(InvalidInput, match="'colour' is not a setting of a space"):
        await memory.set_space(memory.space.slug, {"colour": "blue"})
