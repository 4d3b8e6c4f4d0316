"""Recall that walks an edge reinforces it (A00b), and what helped reinforces the path to it."""

from collections.abc import Sequence
from uuid import UUID

import anyio
import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.model import Edge, NewMemory, Recall

pytestmark = pytest.mark.anyio

KEY = "The spare key is with Mrs Okafor on the second floor"
PLANTS = "Mrs Okafor waters plants every Friday morning"
FAR = "Zirconium melts at a very high temperature"
QUESTION = KEY


@pytest.fixture
async def linked(memory: Engine) -> list[Edge]:
    """The key is linked with the plants, and these with zirconium."""
    added = await memory.add_many([NewMemory(text=text) for text in (KEY, PLANTS, FAR)])
    key, plants, far = added.ids
    return [
        await memory.graph.link(key, plants, "supports", strength=0.8),
        await memory.graph.link(plants, far, "supports", strength=0.6),
    ]


async def again(memory: Engine, some: Sequence[Edge]) -> list[Edge]:
    return [await memory.graph.edge(one.id) for one in some]


def hit_of(found: Recall, text: str) -> UUID:
    return next(hit.node.id for hit in found if hit.node.text == text)


@pytest.mark.parametrize(
    ("kind", "gain"), [("traversal", 0.05), ("revisit", 0.2), ("highlight", 0.1), ("approved", 0.15), ("click", 0.1)]
)
async def test_A00b_each_kind_of_use_adds_its_own(memory: Engine, linked: list[Edge], kind: str, gain: float) -> None:
    before = linked[0].strength or 0
    stronger = await memory.graph.reinforce(linked[0].id, kind)
    assert stronger.strength == pytest.approx(min(1.0, before + gain), abs=1e-5)
    assert not stronger.protected


async def test_A00b_important_is_whole_and_protected_and_an_unknown_use_names_the_known(
    memory: Engine, linked: list[Edge]
) -> None:
    important = await memory.graph.reinforce(linked[0].id, "important")
    assert (important.strength, important.protected) == (1.0, True)
    with pytest.raises(InvalidInput, match=r"'shouting'.*traversal.*important"):
        await memory.graph.reinforce(linked[0].id, "shouting")


async def test_A00b_a_recall_reinforces_the_edges_on_the_paths_to_its_hits(memory: Engine, linked: list[Edge]) -> None:
    found = await memory.recall(QUESTION, graph=True, limit=2)
    assert {hit.node.text for hit in found} == {KEY, PLANTS}
    walked, left = await again(memory, linked)
    (path,) = {tuple(path["edges"]) for path in found.ways["paths"].values()}
    assert path == (str(linked[0].id),)
    assert walked.strength == pytest.approx(0.85, abs=1e-5)
    assert (walked.activation_count, walked.reinforce_count) == (1, 1)
    assert walked.last_activated_at == walked.last_reinforced_at is not None
    assert left == linked[1]


async def test_A00b_each_recall_counts_once_also_one_answered_from_the_cache(
    memory: Engine, linked: list[Edge]
) -> None:
    for _ in range(3):
        await memory.recall(QUESTION, graph=True, limit=2)
    walked, _ = await again(memory, linked)
    assert (walked.activation_count, walked.reinforce_count) == (3, 3)
    assert walked.strength == pytest.approx(0.95, abs=1e-4)


async def test_A00b_traversals_never_lift_an_edge_over_one(memory: Engine, linked: list[Edge]) -> None:
    await memory.graph.reinforce(linked[0].id, "important")
    await memory.recall(QUESTION, graph=True, limit=2)
    walked, _ = await again(memory, linked)
    assert (walked.strength, walked.activation_count) == (1.0, 1)


async def test_A00b_plain_recall_walks_no_edge(memory: Engine, linked: list[Edge]) -> None:
    await memory.recall(QUESTION)
    assert await again(memory, linked) == linked


async def test_A00b_walking_changes_no_answer_that_is_kept(memory: Engine, linked: list[Edge]) -> None:
    """Counts do not make the space another: what was found a moment ago still is what would be found."""
    await memory.recall(QUESTION, graph=True)
    second = await memory.recall(QUESTION, graph=True)
    assert second.ways["search"] == "as found a moment ago"


async def test_A00b_a_hit_that_helped_clicks_its_path(memory: Engine, linked: list[Edge]) -> None:
    found = await memory.recall(QUESTION, graph=True, limit=2)
    reached = UUID(next(iter(found.ways["paths"])))
    await memory.helped(reached, recall=found.id)
    walked, left = await again(memory, linked)
    assert walked.strength == pytest.approx(0.95, abs=1e-5)
    assert (walked.activation_count, walked.reinforce_count) == (2, 2)
    assert left == linked[1]


async def test_A00b_without_a_known_path_nothing_is_clicked(memory: Engine, linked: list[Edge]) -> None:
    plain = await memory.recall(QUESTION, limit=2, weak=True)
    await memory.helped(hit_of(plain, PLANTS), recall=plain.id)
    await memory.helped(hit_of(plain, PLANTS))
    found = await memory.recall(QUESTION, graph=True, limit=2)
    before = await again(memory, linked)
    reached = UUID(next(iter(found.ways["paths"])))
    await memory.helped(reached, False, recall=found.id)
    assert await again(memory, linked) == before


async def test_A00b_an_edge_pruned_since_is_not_brought_back_by_a_click(memory: Engine, linked: list[Edge]) -> None:
    found = await memory.recall(QUESTION, graph=True, limit=2)
    pruned = await memory.graph.unlink(linked[0].id)
    await memory.helped(UUID(next(iter(found.ways["paths"]))), recall=found.id)
    assert await memory.graph.edge(pruned.id) == pruned


async def test_A00b_many_recalls_at_once_are_all_counted(memory: Engine, linked: list[Edge]) -> None:
    async def ask(limit: int) -> None:
        await memory.recall(QUESTION, graph=True, limit=limit)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(ask, 2 + number)
    walked, _ = await again(memory, linked)
    assert walked.activation_count == 8


async def test_A32_what_only_the_graph_reached_has_its_true_similarity_and_obeys_the_filter(memory: Engine) -> None:
    """The pool of near memories is small enough here to leave the linked one out."""
    texts = [f"tea number {n} is brewed slowly in a pot" for n in range(260)]
    far = "the pot is on the shelf in Hanoi"
    added = await memory.add_many([NewMemory(text=text) for text in (*texts, far)])
    await memory.graph.link(added.ids[0], added.ids[-1], strength=1.0)
    question = texts[0]
    found = await memory.recall(question, graph=True, limit=500)
    reached = next(hit for hit in found if hit.node.text == far)
    assert reached.parts.activation == pytest.approx(0.6 * found[0].similarity, abs=1e-4)
    assert reached.similarity > 0
    assert reached.score == pytest.approx(0.6 * reached.similarity + 0.4 * reached.parts.activation, abs=1e-5)
    await memory.exclude(added.ids[-1])
    assert far not in {hit.node.text for hit in await memory.recall(question, graph=True, limit=500)}


async def test_a_replayed_graph_recall_walks_the_graph_and_reinforces_nothing(
    memory: Engine, linked: list[Edge]
) -> None:
    found = await memory.recall(QUESTION, graph=True)
    assert found.id
    before = await again(memory, linked)
    replayed = await memory.replay(found.id)
    assert {hit.id for hit in replayed.log.hits} == {hit.node.id for hit in replayed.recall}
    assert replayed.recall.ways["graph"]
    assert await again(memory, linked) == before


async def test_the_log_keeps_the_walked_edges(memory: Engine, linked: list[Edge]) -> None:
    found = await memory.recall(QUESTION, graph=True, limit=2)
    connection = await asyncpg.connect(memory.core.database.dsn)
    kept = await connection.fetchval("SELECT hits->>'paths' FROM recollect.recalls WHERE id = $1", found.id)
    await connection.close()
    assert str(linked[0].id) in kept
    assert str(linked[1].id) not in kept
