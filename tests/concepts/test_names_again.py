"""A name given again leads to what bears it: by what was absorbed (C32), and by nothing but a name (C33)."""

from datetime import UTC, datetime
from importlib import import_module

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations

from recollect.engine.engine import Engine
from recollect.errors import NotFound
from recollect.store.database import driver

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LEARNING = "programs that get better at a task by examples instead of rules"
STATISTICS = "the fitting of models to data, with an error that is known"
ORCHARD = "a round fruit that grows on trees and keeps well in winter"


@pytest.fixture
async def there(memory: Engine) -> Engine:
    memory.core.now = lambda: NOW
    return memory


@pytest.mark.parametrize("text", [None, STATISTICS, LEARNING])
async def test_C32_a_name_merged_by_hand_leads_to_its_keeper_when_added_again(there: Engine, text: str | None) -> None:
    keeper = (await there.concepts.add("Machine Learning", text=LEARNING)).concept
    short = (await there.concepts.add("ML", text=STATISTICS)).concept
    await there.concepts.merge(keeper.id, short.id)
    again = await there.concepts.add("ML", text=text)
    assert (again.is_new, again.concept.id) == (False, keeper.id)
    small = await there.concepts.add("ml", text=text)  # capitals may make another word: asked, not joined
    assert (small.is_new, small.resembles) == (True, (keeper.id,))


async def test_C32_a_bare_name_merged_by_hand_leads_to_its_keeper_through_several_merges(there: Engine) -> None:
    first = (await there.concepts.add("Machine Learning", text=LEARNING)).concept
    bare = (await there.concepts.add("ML")).concept
    last = (await there.concepts.add("statistical learning", text=STATISTICS)).concept
    await there.concepts.merge(first.id, bare.id)
    await there.concepts.merge(last.id, first.id)
    again = await there.concepts.add("ML")
    assert (again.is_new, again.concept.id) == (False, last.id)
    await there.concepts.keep_apart("ML", "statistical learning")
    assert (await there.concepts.add("ML")).is_new


async def test_C32_an_absorbed_text_is_compared_too_and_another_meaning_is_another_concept(there: Engine) -> None:
    keeper = (await there.concepts.add("Machine Learning", text=LEARNING)).concept
    absorbed = (await there.concepts.add("statistical learning", text=STATISTICS)).concept
    await there.concepts.merge(keeper.id, absorbed.id)
    near = await there.concepts.add("learning, statistical", text=STATISTICS)
    assert (near.is_new, near.resembles) == (True, (keeper.id,))
    other = await there.concepts.add("statistical learning", text="a thousandth of a litre, as cooks write it")
    assert other.is_new


async def test_C33_a_bare_name_is_the_one_concept_described_under_it(there: Engine) -> None:
    apple = (await there.concepts.add("apple", text=ORCHARD)).concept
    again = await there.concepts.add("apple", energy={"cook": 0.5})
    assert (again.is_new, again.concept.id) == (False, apple.id)
    assert "described under that name" in again.reason
    other_type = await there.concepts.add("apple", "brand")
    assert other_type.is_new
    capital = await there.concepts.add("Apple")
    assert capital.is_new
    assert capital.resembles == (apple.id,)


async def test_C33_of_several_described_ones_a_bare_name_is_a_question(there: Engine) -> None:
    planet = await there.concepts.add("mercury", text="the planet nearest to the sun, small and hot")
    metal = await there.concepts.add("mercury", text="a silver liquid used once in thermometers")
    bare = await there.concepts.add("mercury")
    assert bare.is_new
    assert set(bare.resembles) == {planet.concept.id, metal.concept.id}
    assert "say which" in bare.reason


async def test_C34_names_stored_in_the_old_form_are_found_in_the_new_one(there: Engine) -> None:
    migration = import_module("recollect.store.migrations.versions.0013_names_fold_what_looks_the_same")
    wide = (await there.concepts.add("ｔｅａ\u200b ｈｏｕｓｅ", text=LEARNING)).concept
    async with there.core.transaction(there.space.id) as db:
        await (await driver(db)).execute("UPDATE aliases SET alias = 'ｔｅａ\u200b ｈｏｕｓｅ'")
    with pytest.raises(NotFound):
        await there.concepts.get("tea house")

    def upgrade(connection: object) -> None:
        with Operations.context(MigrationContext.configure(connection)):  # type: ignore[arg-type]
            migration.upgrade()

    async with there.core.database.owner() as connection:
        await connection.run_sync(upgrade)
    assert (await there.concepts.get("tea house")).id == wide.id
