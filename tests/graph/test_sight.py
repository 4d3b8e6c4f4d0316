"""A look at the graph: around a node, of a topic, of all of it; now, and as the journal says it was."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotFound
from recollect.graph.view import Sight
from recollect.model import NewEdge, NewMemory

pytestmark = pytest.mark.anyio

NAMES = ("tea", "green tea", "Linh", "react", "hooks", "state", "alone")


@pytest.fixture
async def ids(memory: Engine) -> dict[str, UUID]:
    """A chain of three, a triangle that is a topic, and one node alone."""
    added = await memory.add_many([NewMemory(text=name) for name in NAMES], wait=False)
    found = dict(zip(NAMES, added.ids, strict=True))

    def edge(source: str, target: str, strength: float, **more: Any) -> NewEdge:
        return NewEdge(source=found[source], target=found[target], strength=strength, created_by="auto", **more)

    topic = {"source_topic": "tag:react", "target_topic": "tag:react"}
    await memory.graph.link_many(
        [
            edge("Linh", "tea", 0.9),
            edge("tea", "green tea", 0.5),
            edge("react", "hooks", 0.8, **topic),
            edge("hooks", "state", 0.6, **topic),
            edge("state", "react", 0.2, **topic),
        ]
    )
    return found


def links(sight: Sight) -> set[tuple[str, str]]:
    label = [node.label for node in sight.nodes]
    return {(label[a], label[b]) for a, b in zip(sight.edges.source, sight.edges.target, strict=True)}


def labels(sight: Sight) -> list[str]:
    return [node.label for node in sight.nodes]


async def test_A06_around_a_node_with_protected_and_bridge_edges_marked(memory: Engine, ids: dict[str, UUID]) -> None:
    (tea, *_) = await memory.graph.edges(ids["Linh"])
    await memory.graph.protect(tea.id)
    sight = await memory.graph.look(around=[ids["Linh"]])
    assert (labels(sight), links(sight)) == (["Linh", "tea"], {("Linh", "tea")})
    assert (list(sight.edges.protected), list(sight.edges.bridges)) == ([0], [0])
    assert list(sight.edges.strength) == [pytest.approx(0.9, abs=1e-3)]
    assert [node.degree for node in sight.nodes] == [1, 2]
    assert (sight.total_nodes, sight.total_edges) == (6, 5)
    circle = await memory.graph.look(around=[ids["react"]])
    assert (len(circle.edges.source), list(circle.edges.bridges)) == (3, [])


async def test_grown_nodes_show_the_edges_between_all_that_is_shown(memory: Engine, ids: dict[str, UUID]) -> None:
    both = await memory.graph.look(around=[ids["Linh"], ids["tea"]])
    assert links(both) == {("Linh", "tea"), ("tea", "green tea")}
    alone = await memory.graph.look(around=[ids["alone"]])
    assert ([(node.label, node.degree) for node in alone.nodes], links(alone)) == ([("alone", 0)], set())


async def test_A24_a_topic_contains_its_members_and_leads_the_view_of_all(memory: Engine, ids: dict[str, UUID]) -> None:
    await memory.plans.run("topics")
    of_topic = await memory.graph.look(topics=["tag:react"])
    assert set(labels(of_topic)) == {"react", "hooks", "state"}
    (topic,) = of_topic.topics
    assert (topic.key, topic.size, sorted(topic.members)) == ("tag:react", 3, [0, 1, 2])
    everything = await memory.graph.look(limit=4)
    assert set(labels(everything)[:3]) == {"react", "hooks", "state"}
    assert labels(everything)[3] == "tea"  # the best connected of the others
    grown = await memory.graph.look(around=[ids["Linh"]], overview=True, limit=5)
    assert (labels(grown)[:2], set(labels(grown)[2:])) == (["Linh", "tea"], {"react", "hooks", "state"})
    with pytest.raises(NotFound):
        await memory.graph.look(topics=["tag:none"])


async def test_P09_the_graph_as_it_was(memory: Engine, ids: dict[str, UUID]) -> None:
    before = datetime.now(UTC)
    (gone,) = await memory.graph.edges(ids["green tea"])
    await memory.graph.unlink(gone.id)
    await memory.forget(ids["hooks"])
    later = await memory.add("coffee", wait=False)
    await memory.graph.link(later.id, ids["tea"])
    now = await memory.graph.look()
    assert links(now) == {("Linh", "tea"), ("state", "react"), ("coffee", "tea")}
    was = await memory.graph.look(at=before)
    assert links(was) == {
        ("Linh", "tea"),
        ("tea", "green tea"),
        ("react", "hooks"),
        ("hooks", "state"),
        ("state", "react"),
    }
    assert was.at == before
    assert (await memory.graph.look(at=datetime(2020, 1, 1, tzinfo=UTC))).total_edges == 0


async def test_C26_before_a_merge_its_links_hung_on_what_was_absorbed(memory: Engine) -> None:
    one, other = [(await memory.concepts.add(name, text=name)).concept.id for name in ("tea house", "teahouses")]
    third = (await memory.concepts.add("street", text="where houses are")).concept.id
    await memory.graph.link(other, third)
    before = datetime.now(UTC)
    outcome = await memory.concepts.merge(one, other)
    merged = datetime.now(UTC)
    await memory.undo(outcome.plan_id)
    assert links(await memory.graph.look(at=before)) == {("teahouses", "street")}
    assert links(await memory.graph.look(at=merged)) == {("tea house", "street")}
    assert links(await memory.graph.look()) == {("teahouses", "street")}
    # What is part of another now stood for itself then.
    assert labels(await memory.graph.look(around=[other], at=merged)) == ["teahouses"]
    undone, made = (await memory.graph.look()).journal
    assert (made.plan_id, before < made.at < merged < undone.at) == (outcome.plan_id, True)


async def test_an_edge_that_a_plan_made_and_an_undo_took_away_was_there_between(memory: Engine) -> None:
    texts = ["the same thing said twice", "the same thing said twice !"]
    await memory.add_many([NewMemory(text=text) for text in texts], wait=True)
    await memory.work()
    before = datetime.now(UTC)
    plan = await memory.plans.propose("twins", {"min_similarity": 0.5})
    await memory.plans.apply(plan.id)
    made = datetime.now(UTC)
    await memory.undo(plan.id)
    totals = [(await memory.graph.look(at=at)).total_edges for at in (before, made, None)]
    assert totals == [0, 1, 0]


async def test_what_cannot_be_looked_at_is_said(memory: Engine) -> None:
    with pytest.raises(NotFound):
        await memory.graph.look(around=[str(uuid4())])
    for wrong in ({"hops": 4}, {"limit": 0}, {"limit": 50_001}, {"around": [uuid4()] * 101}):
        with pytest.raises(InvalidInput):
            await memory.graph.look(**wrong)
    empty = await memory.graph.look()
    assert (list(empty.nodes), empty.since, empty.total_edges) == ([], None, 0)
