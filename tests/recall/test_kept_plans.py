"""Without a filter the statements of a recall are planned once in a connection, and that plan fits any size (D53)."""

import re
from typing import Any

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.memories import embed
from recollect.model import NodeFilter
from recollect.settings import Settings

pytestmark = pytest.mark.anyio

HOW_PLANNED = "SELECT current_setting('plan_cache_mode')"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The statements that searching connections are asked, each with the way in which it is planned."""
    heard: dict[str, str] = {}
    for name in ("fetch", "fetchrow"):
        asked = getattr(asyncpg.Connection, name)

        async def hearing(self: asyncpg.Connection, query: str, *given: object, asked: Any = asked) -> object:
            heard[query] = str(await self.fetchval(HOW_PLANNED))
            return await asked(self, query, *given)

        monkeypatch.setattr(asyncpg.Connection, name, hearing)
    return heard


async def kept_plan(memory: Engine, statement: str) -> str:
    """The plan of a statement whatever it is given."""
    places = max(int(number) for number in re.findall(r"\$(\d+)", statement))
    async with memory.core.search(memory.space.id, keeps_plans=True) as db:
        raw = db.connection.raw
        await raw.execute(f"PREPARE asked AS {statement}")
        lines = await raw.fetch(f"EXPLAIN EXECUTE asked ({', '.join(['NULL'] * places)})")
        await raw.execute("DEALLOCATE asked")
    return "\n".join(line[0] for line in lines)


@pytest.mark.usefixtures("one_server")
async def test_D53_plans_are_kept_unless_a_filter_makes_each_question_another(
    memory: Engine, statements: dict[str, str]
) -> None:
    await memory.add("The kettle is blue")
    statements.clear()
    await memory.recall("kettle", noted=False)
    assert {*statements.values()} == {"force_generic_plan"}
    statements.clear()
    await memory.recall("kettle", wanted=NodeFilter(thread="kitchen"), noted=False)
    assert {*statements.values()} == {"force_custom_plan"}


async def test_D53_a_plan_that_was_made_for_few_texts_looks_them_up_by_their_keys(
    memory: Engine, statements: dict[str, str]
) -> None:
    await memory.add("The kettle is blue")
    statements.clear()
    await memory.recall("what is blue?", noted=False)
    asked = list(statements)
    assert len(asked) >= 3
    for statement in asked:
        assert "Seq Scan" not in await kept_plan(memory, statement)


@pytest.mark.usefixtures("one_server")
async def test_D53_a_kept_plan_walks_the_index_of_its_model(settings: Settings, statements: dict[str, str]) -> None:
    # A model that no other test uses: all spaces of a database share the index of a model, and this one stays.
    async with Engine(settings.model_copy(update={"hnsw_min_rows": 1, "embedder": "hashing:44"})) as memory:
        await memory.add_many([f"The kettle number {n} is blue" for n in range(5)])
        await embed.ensure_index(memory.core, memory.core.embedder())
        for n in range(8):  # each way is tried
            await memory.recall(f"what is blue, and {n}?", noted=False)
        walked = [statement for statement in statements if "AND model = '" in statement]
        assert walked
        for statement in walked:
            assert "embeddings_hnsw_" in await kept_plan(memory, statement)
