"""Many concepts at once: the same as one after the other, and from files, nothing twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.concepts.import_ import ConceptImport
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.model import NewConcept
from recollect.settings import Settings
from tests.concepts.test_concepts import make
from tests.conftest import fresh_space

pytestmark = pytest.mark.anyio

TEA = "leaves of a plant in hot water, drunk in the morning"
MANY = [
    NewConcept(name="green_tea", text=TEA, metadata={"from": "Japan"}),
    NewConcept(name="green tea", text=TEA, metadata={"from": "Japan"}),
    NewConcept(name="Green Tea", text=TEA, metadata={"colour": "green"}),
    NewConcept(name="Sencha", text="a tea of whole leaves"),
    NewConcept(name="C++"),
    NewConcept(name="C"),
    NewConcept(name="trà xanh", text="một loại trà", node_type="đồ uống"),
    *(NewConcept(name=f"model {chr(97 + number)}", text=f"the model {chr(97 + number)}") for number in range(20)),
]


async def held(memory: Engine) -> list[tuple[object, ...]]:
    found, _ = await memory.concepts.list(limit=1000)
    return sorted((one.name, one.node_type, one.text, json.dumps(one.metadata, sort_keys=True)) for one in found)


async def test_C19_many_are_made_as_if_each_came_by_itself(settings: Settings) -> None:
    async with Engine(await fresh_space(settings)) as one_by_one, Engine(await fresh_space(settings)) as at_once:
        single = [await one_by_one.concepts.add(**_fields(new)) for new in MANY]
        many = await at_once.concepts.add_many(MANY)
        assert await held(at_once) == await held(one_by_one)
        assert many.made == sum(one.is_new for one in single)
        assert many.joined == sum(one.plan_id is not None for one in single)
        assert many.made + many.joined + many.there == len(many.ids) == len(MANY)
        assert many.ids[0] == many.ids[1] != many.ids[3]


def _fields(new: NewConcept) -> dict[str, Any]:
    return {"name": new.name, "node_type": new.node_type, "text": new.text, "metadata": dict(new.metadata)}


async def test_C19_of_many_the_bad_are_named_and_the_good_are_made(memory: Engine) -> None:
    good = [NewConcept(name="tea"), NewConcept(name="pot")]
    bad = [NewConcept(name="  "), NewConcept(name="cup", base_weight=-1)]
    given = [good[0], *bad, good[1]]
    done = await memory.concepts.add_many(given)
    assert [one.position for one in done.refused] == [1, 2]
    assert done.refused[0].message == "Name is a text of 1 to 500 characters, not '  '."
    assert (done.made, len(done.ids)) == (2, 2)
    with pytest.raises(InvalidInput, match="Name is a text of 1 to 500"):
        await memory.concepts.add_many([NewConcept(name="saucer"), NewConcept(name="")], atomic=True)
    assert [name for name, *_ in await held(memory)] == ["pot", "tea"]
    assert (await memory.concepts.add_many([])).ids == ()
    plain = await memory.concepts.add_many(["plate", {"name": "bowl", "colour": "white"}])
    assert [(await memory.concepts.get(id_)).name for id_ in plain.ids] == ["plate", "bowl"]
    with pytest.raises(InvalidInput, match="a list of them"):
        await memory.concepts.add_many("saucer")


async def test_C19_a_table_is_brought_in_with_its_fields_and_nothing_twice(memory: Engine, tmp_path: Path) -> None:
    table = tmp_path / "products.csv"
    table.write_text(
        "Title;Type;Description;maker;price\n"
        "Kettle 2000;product;boils water in a minute;Acme;39.90\n"
        ";product;nameless;Acme;1\n"
        "ấm trà;product;;Bát Tràng;\n"
    )
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"name": "Mug", "type": "product", "maker": "Acme", "metadata": {"holds": "0.3 l"}}\nno json\n')

    async def bring(*, dry_run: bool = False) -> ConceptImport:
        return await memory.concepts.import_([table, lines], dry_run=dry_run)

    rehearsed = await bring(dry_run=True)
    assert str(rehearsed).startswith(
        "3 would be added, 0 would be joined to one that is there, 0 there already, 2 would"
    )
    assert await held(memory) == []
    done = await bring()
    assert (done.made, done.there, done.joined) == (rehearsed.made, rehearsed.there, rehearsed.joined) == (3, 0, 0)
    assert [(Path(one.file).name, one.line, one.message) for one in done.refused] == [
        ("products.csv", 3, "A concept needs a name."),
        ("more.jsonl", 2, "The line is not JSON: write one object a line."),
    ]
    kettle = await memory.concepts.get("kettle 2000")
    assert (kettle.node_type, kettle.text) == ("product", "boils water in a minute")
    assert kettle.metadata == {"maker": "Acme", "price": "39.90"}
    assert (await memory.concepts.get("Mug")).metadata == {"maker": "Acme", "holds": "0.3 l"}
    before = await held(memory)
    again = await bring()
    assert (again.made, again.there, again.joined) == (0, 3, 0)
    assert await held(memory) == before


async def test_C37_hundreds_of_one_name_become_one_and_are_hundreds_again(memory: Engine) -> None:
    """As they come in by another way, where nobody looks at what is there."""
    for _ in range(210):
        await make(memory, "Machine Learning", text="machines that learn from examples")
    before = await held(memory)
    plan = await memory.plans.propose("duplicates")
    outcome = await memory.plans.apply(plan.id)
    assert (outcome.applied, len(await held(memory))) == (209, 1)
    await memory.plans.undo(plan.id)
    assert await held(memory) == before
