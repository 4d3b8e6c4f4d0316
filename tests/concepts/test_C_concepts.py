"""Concepts under random merges: undo restores everything, order does not matter, nothing dangles, nothing is lost; and
many writers in several processes who make the same concept make it once (C20, P12)."""

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import Recollect
from recollect.concepts.rules.concepts import words_of
from recollect.concepts.sql import concepts
from recollect.engine.sql import spaces
from recollect.model import NewConcept, NewEdge
from recollect.settings import Settings
from recollect.store.database import driver
from tests import programs
from tests.waiting import HANG_SECONDS

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
NAMES = ["tea house", "Tea House", "tea_house", "rice bowl", "Rice_Bowl", "green field"]
RELATIONS = ["extends", "similar"]
Nodes = Sequence[tuple[int, dict[str, float], float | None]]
Links = Sequence[tuple[int, int, int, float]]

# Adds one concept under several spellings, as fast as it can, and prints the ids it was given.
WRITER = """
import sys
from recollect import Recollect
from recollect.settings import Settings
url, space, number = sys.argv[1:]
settings = Settings.load(database_url=url, space=space, embedder="hashing:64", pool_size=2)
with Recollect(settings=settings, worker=False) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for place in range(10):
        spelling = ["tea house", "Tea House", "tea_house"][(place + int(number)) % 3]
        formed = memory.concepts.add(f"{spelling} {'abcdefghij'[place]}", energy={"writer": 1.0})
        print(formed.concept.id, formed.is_new, flush=True)
"""


@pytest.fixture
def opened(database_url: str) -> Iterator[Recollect]:
    chosen = Settings.load(database_url=database_url, embedder="hashing:64", pool_size=4)
    with Recollect(settings=chosen, worker=False) as memory:
        yield memory


def fresh(memory: Recollect) -> Recollect:
    slug = f"c-{uuid4().hex[:12]}"
    memory.add_space(slug)
    there = memory.in_space(slug)
    there.core.now = lambda: NOW
    return there


def test_C20_many_writers_in_several_processes_make_each_concept_once(opened: Recollect, database_url: str) -> None:
    there = fresh(opened)
    slug = there.space.slug
    writers = [
        programs.Popen[str](
            [sys.executable, "-c", WRITER, database_url, slug, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    told = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        out, _ = writer.communicate(timeout=HANG_SECONDS)
        assert writer.returncode == 0
        told += [line.split() for line in out.splitlines()]
    found, _ = there.concepts.list(limit=1000)
    assert len(found) == 10
    assert sum(is_new == "True" for _, is_new in told) == 10
    assert {id_ for id_, _ in told} == {str(concept.id) for concept in found}
    assert all(concept.raw_energy == {"writer": 3.0} for concept in found)


# -- random graphs


def plant(memory: Recollect, nodes: Nodes, links: Links) -> list[UUID]:
    """Concepts as they came in by another way, oldest first, and the links between them."""

    async def insert() -> list[UUID]:
        core, ids = memory.core, [UUID(int=place + (uuid4().int >> 32 << 32)) for place in range(len(nodes))]
        some: list[Any] = []
        for place, (name, energy, weight) in enumerate(nodes):
            made = NewConcept(
                name=NAMES[name],
                text=f"about {NAMES[name].lower().replace('_', ' ')}",
                energy=energy,
                base_weight=weight,
                metadata={},
                created_at=NOW - timedelta(days=30 - place),
            )
            (vector,) = await core.embedder().embed([words_of(made.name, made.text)])
            some.append((ids[place], made, vector))
        model = core.embedder().model
        async with core.transaction(memory.space.id) as db:
            told: dict[str, Any] = {"model": model, "models": [model], "max_attempts": 1, "now": NOW}
            await concepts.insert(db, some, **told)
            await spaces.use_model(db, model)
        return ids

    ids: list[UUID] = memory._portal.call(insert)
    wanted = {
        (a % len(ids), b % len(ids), relation): NewEdge(
            source=ids[a % len(ids)],
            target=ids[b % len(ids)],
            relation=RELATIONS[relation],
            strength=strength,
            created_by="auto",
            created_at=NOW - timedelta(days=1),
        )
        for a, b, relation, strength in links
        if a % len(ids) != b % len(ids)
    }
    memory.graph.link_many(list(wanted.values()))
    return ids


def table(memory: Recollect, query: str) -> list[Any]:
    async def fetch() -> list[Any]:
        async with memory.core.transaction(memory.space.id) as db:
            return [row["row"] for row in await (await driver(db)).fetch(query)]

    return list(memory._portal.call(fetch))


def world(memory: Recollect) -> list[list[Any]]:
    names = ("nodes", "edges", "activity", "aliases")
    return [table(memory, f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {name} t ORDER BY 1") for name in names]


def graph(memory: Recollect, ids: Sequence[UUID]) -> Any:
    """What the graph says, by the places at which the concepts were planted: for worlds with other ids."""
    place = {str(id_): number for number, id_ in enumerate(ids)}
    living = table(memory, "SELECT to_jsonb(e) AS row FROM edges e WHERE status = 'active'")
    edges = {
        (place[e["source"]], place[e["target"]], e["relation"]): (
            round(e["strength"], 9),
            e["protected"],
            e["activation_count"],
        )
        for e in living
    }
    found, _ = memory.concepts.list(limit=1000)
    rounded = {
        place[str(one.id)]: (
            {entity: round(value, 9) for entity, value in one.raw_energy.items()},
            None if one.base_weight is None else round(one.base_weight, 9),
            sorted(place[str(id_)] for id_ in one.absorbed),
        )
        for one in found
    }
    return edges, rounded


def assert_sound(memory: Recollect, ids: Sequence[UUID]) -> None:
    """No dangling edge, no loop; every id leads to something that lives."""
    merged = set(table(memory, "SELECT to_jsonb(id) AS row FROM nodes n WHERE status = 'merged'"))
    for edge in table(memory, "SELECT to_jsonb(e) AS row FROM edges e WHERE status = 'active'"):
        assert edge["source"] != edge["target"]
        assert {edge["source"], edge["target"]}.isdisjoint(merged)
    for id_ in ids:
        assert memory.concepts.get(id_).status == "active"


def energies(memory: Recollect) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in memory.concepts.list(limit=1000)[0]:
        for entity, value in one.raw_energy.items():
            total[entity] = total.get(entity, 0.0) + value
    return {entity: round(value, 9) for entity, value in total.items()}


NODES = st.lists(
    st.tuples(
        st.integers(0, len(NAMES) - 1),
        st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([0.25, 0.5, 1.0]), max_size=2),
        st.sampled_from([None, 0.2, 0.7]),
    ),
    min_size=2,
    max_size=8,
)
LINKS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 1), st.sampled_from([0.2, 0.5, 0.9])), max_size=14
)
SHORT = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@SHORT
@given(nodes=NODES, links=LINKS)
def test_P12_C12_undo_restores_merged_concepts_with_energies_links_and_names(
    opened: Recollect, nodes: Nodes, links: Links
) -> None:
    there = fresh(opened)
    ids = plant(there, nodes, links)
    before, charged = world(there), energies(there)
    plan = there.plans.propose("duplicates")
    outcome = there.plans.apply(plan.id)
    assert (outcome.stale, outcome.failed) == ((), ())
    assert outcome.applied == len(plan.decisions)
    assert_sound(there, ids)
    assert energies(there) == charged
    assert there.plans.propose("duplicates", {"only_newer_than": ""}).decisions == []
    if plan.decisions:
        after = world(there)
        undone = there.plans.undo(plan.id)
        assert world(there) == before
        there.plans.undo(undone.plan_id)
        assert world(there) == after


@SHORT
@given(nodes=NODES, links=LINKS, chance=st.integers(0, 1000))
def test_P12_C09_C10_C11_the_order_of_merges_by_hand_does_not_matter(
    opened: Recollect, nodes: Nodes, links: Links, chance: int
) -> None:
    def merged_in(order: Callable[[list[int]], list[int]]) -> Any:
        there = fresh(opened)
        ids = plant(there, nodes, links)
        for place in order(list(range(1, len(ids) - 1))):
            there.concepts.merge(ids[0], ids[place])
        assert_sound(there, ids)
        return graph(there, ids)

    def shuffled(places: list[int]) -> list[int]:
        return random.Random(chance).sample(places, len(places))

    assert merged_in(shuffled) == merged_in(lambda places: places)


@SHORT
@given(nodes=NODES, links=LINKS, data=st.data())
def test_P12_single_merges_of_a_plan_can_be_declined_and_undone(
    opened: Recollect, nodes: Nodes, links: Links, data: st.DataObject
) -> None:
    there = fresh(opened)
    ids = plant(there, nodes, links)
    before, charged = world(there), energies(there)
    plan = there.plans.propose("duplicates")
    numbers = [one.number for one in plan.decisions]
    if not numbers:
        return
    declined = data.draw(st.lists(st.sampled_from(numbers), max_size=2, unique=True))
    outcome = there.plans.apply(plan.id, decline=declined)
    assert not outcome.failed
    assert_sound(there, ids)
    applied = [one.number for one in there.plans.get(plan.id).decisions if one.status == "applied"]
    for number in data.draw(st.permutations(applied)):
        there.plans.undo(plan.id, decisions=[number])
        assert_sound(there, ids)
        assert energies(there) == charged
    assert world(there) == before
