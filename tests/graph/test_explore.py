"""Looking around in the graph: what is shown is what is there, and nothing is changed by looking."""

import json
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from xml.etree import ElementTree

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.graph import pictures
from recollect.model import NewEdge, NewMemory

pytestmark = pytest.mark.anyio

NAMES = ("tea", "green tea", "Linh", "Minh", "Da Nang", "beach", "react", "hooks", "state", "alone")


@pytest.fixture
async def ids(memory: Engine) -> dict[str, UUID]:
    """Linh and what is around her; react by itself; one node alone."""
    added = await memory.add_many([NewMemory(text=name) for name in NAMES], wait=False)
    found = dict(zip(NAMES, added.ids, strict=True))

    def edge(source: str, target: str, relation: str, strength: float, **more: Any) -> NewEdge:
        return NewEdge(
            source=found[source], target=found[target], relation=relation, strength=strength, created_by="auto", **more
        )

    await memory.graph.link_many(
        [
            edge("Linh", "tea", "supports", 0.9),
            edge("green tea", "tea", "extends", 0.8),
            edge("Linh", "Minh", "similar", 0.5),
            edge("Minh", "Da Nang", "applies", 0.4),
            edge("Da Nang", "beach", "applies", 0.2),
            edge("tea", "beach", "similar", 0.1),
            edge("react", "hooks", "supports", 1.0, source_topic="tag:react", target_topic="tag:react"),
            edge("hooks", "state", "supports", 0.8, source_topic="tag:react", target_topic="tag:react"),
        ]
    )
    return found


async def everything(memory: Engine) -> list[Any]:
    connection = await asyncpg.connect(memory.core.database.dsn)
    space = memory.space.id
    tables = ("nodes", "edges", "topics", "plans", "changes", "activity")
    rows = [
        await connection.fetch(f"SELECT t::text FROM recollect.{table} t WHERE space_id = $1 ORDER BY 1", space)
        for table in tables
    ]
    await connection.close()
    return rows


# -- neighbours


async def test_neighbours_come_nearest_first_then_strongest(memory: Engine, ids: dict[str, UUID]) -> None:
    one = await memory.graph.neighbours(ids["Linh"])
    assert [(near.node.text, near.hops) for near in one] == [("tea", 1), ("Minh", 1)]
    assert one[0].strength == pytest.approx(0.9, abs=1e-4)
    two = await memory.graph.neighbours(str(ids["Linh"])[:8], hops=2)
    assert [near.node.text for near in two] == ["tea", "Minh", "green tea", "Da Nang", "beach"]
    assert two[2].strength == pytest.approx(0.72, abs=1e-4)
    assert [len(near.edges) for near in two] == [1, 1, 2, 2, 2]


async def test_neighbours_by_some_relations_only_and_only_so_many(memory: Engine, ids: dict[str, UUID]) -> None:
    found = await memory.graph.neighbours(ids["Linh"], hops=3, relations=["similar", "applies"])
    assert [near.node.text for near in found] == ["Minh", "Da Nang", "beach"]
    assert len(await memory.graph.neighbours(ids["Linh"], hops=3, limit=2)) == 2
    assert await memory.graph.neighbours(ids["alone"]) == []


async def test_neighbours_are_not_reached_through_what_is_archived_or_pruned(
    memory: Engine, ids: dict[str, UUID]
) -> None:
    await memory.forget(ids["tea"])
    found = await memory.graph.neighbours(ids["Linh"], hops=2)
    assert [near.node.text for near in found] == ["Minh", "Da Nang"]
    (minh,) = [edge for edge in await memory.graph.edges(ids["Linh"]) if edge.target == ids["Minh"]]
    await memory.graph.unlink(minh.id)
    assert await memory.graph.neighbours(ids["Linh"], hops=2) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"hops": 0}, "hops"), ({"hops": 4}, "hops"), ({"limit": 0}, "limit"), ({"relations": ["\0"]}, "relation")],
)
async def test_neighbours_refuse_what_makes_no_sense(
    memory: Engine, ids: dict[str, UUID], wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory.graph.neighbours(ids["Linh"], **wrong)
    assert refused.value.field == field


async def test_what_is_not_there_has_no_neighbours(memory: Engine) -> None:
    with pytest.raises(NotFound):
        await memory.graph.neighbours(uuid4())


# -- paths


async def test_paths_are_the_shortest_or_the_strongest(memory: Engine, ids: dict[str, UUID]) -> None:
    shortest = await memory.graph.paths(ids["Linh"], ids["beach"])
    assert [[node.text for node in way.nodes] for way in shortest] == [
        ["Linh", "tea", "beach"],
        ["Linh", "Minh", "Da Nang", "beach"],
    ]
    assert shortest[0].strength == pytest.approx(0.09, abs=1e-4)
    for way in shortest:
        for edge, ends in zip(way.edges, pairwise(way.nodes), strict=True):
            assert {edge.source, edge.target} == {node.id for node in ends}
    (strongest,) = await memory.graph.paths(ids["Linh"], ids["beach"], by="strongest", limit=1)
    assert strongest == shortest[0]
    assert await memory.graph.paths(ids["Linh"], ids["react"]) == []
    assert len(await memory.graph.paths(ids["Linh"], ids["beach"], hops=2)) == 1


async def test_paths_refuse_what_makes_no_sense(memory: Engine, ids: dict[str, UUID]) -> None:
    for wrong in ({"hops": 7}, {"limit": 0}, {"by": "prettiest"}):
        with pytest.raises(InvalidInput):
            await memory.graph.paths(ids["Linh"], ids["beach"], **wrong)
    with pytest.raises(InvalidInput, match="another node"):
        await memory.graph.paths(ids["Linh"], ids["Linh"])
    with pytest.raises(NotFound):
        await memory.graph.paths(ids["Linh"], uuid4())


# -- the whole of it


async def test_components_are_listed_largest_first(memory: Engine, ids: dict[str, UUID]) -> None:
    found = await memory.graph.components()
    assert (found.total, [(one.size, one.edges) for one in found.items]) == (2, [(6, 6), (3, 2)])
    assert found.items[1].examples[0].text == "hooks"
    assert len((await memory.graph.components(limit=1)).items) == 1


async def test_stats_count_what_is_there(memory: Engine, ids: dict[str, UUID]) -> None:
    await memory.graph.protect((await memory.graph.edges(ids["Linh"]))[0].id)
    found = await memory.graph.stats()
    assert (found.nodes, found.linked, found.isolated, found.edges, found.protected) == (10, 9, 1, 8, 1)
    assert found.by_relation == {"supports": 3, "applies": 2, "similar": 2, "extends": 1}
    assert found.by_creator == {"auto": 8}
    assert found.by_strength == {"over 0.7": 4, "0.3 to 0.7": 2, "0.05 to 0.3": 2, "under 0.05": 0}
    assert (found.components, found.largest_component, found.highest_degree) == (2, 6, 3)
    assert found.degrees == {"1": 3, "2": 5, "3 to 4": 1}
    assert found.weakest[0].strength == pytest.approx(0.1, abs=1e-4)
    assert found.oldest_edge_at == found.first_edge_at
    assert found.gate == "the graph has 8 edges, fewer than 50"
    later = memory.core.now() + timedelta(days=90)
    memory.core.now = lambda: later
    assert (await memory.graph.stats()).by_strength["under 0.05"] == 8


async def test_stats_of_an_empty_graph(memory: Engine) -> None:
    found = await memory.graph.stats()
    assert (found.nodes, found.edges, found.components, found.degrees, found.weakest) == (0, 0, 0, {}, ())
    assert found.oldest_edge_at is None
    assert (await memory.graph.components()).items == ()


# -- topics


@pytest.fixture
async def gathered(memory: Engine, ids: dict[str, UUID]) -> dict[str, UUID]:
    await memory.plans.run("topics")
    return ids


async def test_A24_a_topic_is_returned_whole_as_a_view(memory: Engine, gathered: dict[str, UUID]) -> None:
    before = await everything(memory)
    (topic,) = await memory.graph.topics()
    assert (topic.key, len(topic.member_ids), topic.internal_edges) == ("tag:react", 3, 2)
    view = await memory.graph.topic("tag:react")
    assert {node.text for node in view.members} == {"react", "hooks", "state"}
    assert len(view.edges) == 2
    assert await memory.graph.topics(of=[gathered["hooks"]]) == [topic]
    assert await memory.graph.topics(of=[gathered["tea"]]) == []
    assert await memory.graph.topics_of([gathered["hooks"], gathered["tea"]]) == {"tag:react": [gathered["hooks"]]}
    assert await everything(memory) == before
    for unknown in ("tag:none", "\0"):
        with pytest.raises(NotFound, match="There is no topic"):
            await memory.graph.topic(unknown)


async def test_A24_the_picture_of_a_topic_shows_what_it_contains(memory: Engine, gathered: dict[str, UUID]) -> None:
    drawn = await memory.graph.topic_picture("tag:react")
    assert drawn.count(">contains 1.00<") == 3
    assert "4 nodes, 5 links" in drawn


# -- a file of all of it


async def test_export_writes_what_lives_in_every_format(memory: Engine, ids: dict[str, UUID], tmp_path: Path) -> None:
    await memory.forget(ids["green tea"])
    assert await memory.graph.export(tmp_path / "g.json", format="json") == 7
    document = json.loads((tmp_path / "g.json").read_text())
    assert {node["text"] for node in document["nodes"]} == {*NAMES} - {"green tea", "alone"}
    by_ends = {(edge["source"], edge["target"]): edge for edge in document["edges"]}
    assert by_ends[str(ids["Linh"]), str(ids["tea"])]["strength"] == pytest.approx(0.9, abs=1e-4)
    for format in ("graphml", "gexf"):
        await memory.graph.export(str(tmp_path / f"g.{format}"), format=format)
        root = ElementTree.parse(tmp_path / f"g.{format}").getroot()
        assert [len(root.findall(f".//{{*}}{tag}")) for tag in ("node", "edge")] == [8, 7]
    await memory.graph.export(tmp_path / "all.json", format="json", with_isolated=True)
    assert "alone" in {node["text"] for node in json.loads((tmp_path / "all.json").read_text())["nodes"]}


async def test_export_reads_batch_by_batch(memory: Engine, tmp_path: Path) -> None:
    added = await memory.add_many([NewMemory(text=f"n{n}") for n in range(1501)], wait=False)
    await memory.graph.link_many([NewEdge(source=a, target=b) for a, b in pairwise(added.ids)])
    assert await memory.graph.export(tmp_path / "g.json", format="json") == 1500
    document = json.loads((tmp_path / "g.json").read_text())
    assert (len(document["nodes"]), len(document["edges"])) == (1501, 1500)


async def test_export_replaces_nothing_and_leaves_nothing_half_written(
    memory: Engine, ids: dict[str, UUID], tmp_path: Path
) -> None:
    file = tmp_path / "g.graphml"
    file.write_text("mine")
    with pytest.raises(Conflict, match="exists already"):
        await memory.graph.export(file)
    assert file.read_text() == "mine"
    await memory.graph.export(file, overwrite=True)
    assert file.read_text().startswith("<?xml")
    with pytest.raises(InvalidInput, match="cannot be written"):
        await memory.graph.export(tmp_path / "no" / "such" / "g.gexf", format="gexf")
    with pytest.raises(InvalidInput, match="format must be"):
        await memory.graph.export(tmp_path / "x", format="dot")  # type: ignore[arg-type]
    assert [one.name for one in tmp_path.iterdir()] == ["g.graphml"]


# -- pictures


async def test_a_picture_of_what_is_around_a_node(memory: Engine, ids: dict[str, UUID]) -> None:
    before = await everything(memory)
    drawn = await memory.graph.picture(ids["Linh"], hops=2)
    ElementTree.fromstring(drawn)
    assert "6 nodes, 6 links" in drawn
    assert drawn.count('class="dot memory focus"') == 1
    assert "2 nodes, 1 link" in await memory.graph.picture(ids["Linh"], limit=2)
    page = await memory.graph.picture(ids["Linh"], hops=2, limit=2, format="html")
    assert page.startswith("<!DOCTYPE html>")
    assert "1 more are as near" in page
    assert await everything(memory) == before


async def test_a_picture_of_a_node_alone(memory: Engine, ids: dict[str, UUID]) -> None:
    assert "1 node, 0 links" in await memory.graph.picture(ids["alone"])


async def test_pictures_refuse_what_makes_no_sense(memory: Engine, ids: dict[str, UUID]) -> None:
    for wrong in ({"hops": 9}, {"limit": 301}, {"format": "png"}):
        with pytest.raises(InvalidInput):
            await memory.graph.picture(ids["Linh"], **wrong)
    with pytest.raises(NotFound):
        await memory.graph.picture(uuid4())
    with pytest.raises(NotFound, match="no plan"):
        await memory.graph.plan_picture(uuid4())


def counts(drawn: str) -> list[str]:
    return re.findall(r">(\d+ nodes?, \d+ links?)<", drawn)


async def test_C26_a_plan_is_drawn_before_and_after_and_the_same_once_applied(
    memory: Engine, ids: dict[str, UUID]
) -> None:
    await memory.graph.link(ids["Linh"], ids["tea"], "similar", strength=0.4, created_by="auto")
    plan = await memory.plans.propose("merge-edges")
    proposed = await memory.graph.plan_picture(plan.id, format="svg")
    assert counts(proposed) == ["5 nodes, 5 links", "5 nodes, 4 links"]
    assert proposed.count("− similar 0.40") == 1
    await memory.plans.apply(plan.id)
    assert counts(await memory.graph.plan_picture(str(plan.id)[:8], format="svg")) == counts(proposed)


async def test_C26_an_archived_node_takes_its_edges_out_of_the_picture(memory: Engine, ids: dict[str, UUID]) -> None:
    await memory.forget(ids["tea"])
    plan = (await memory.history(ids["tea"]))[-1].plan_id
    assert plan
    drawn = await memory.graph.plan_picture(plan, format="svg")
    assert counts(drawn) == ["4 nodes, 3 links", "3 nodes, 0 links"]
    assert drawn.count('class="dot memory removed"') == 1


async def test_C26_topics_are_drawn_as_what_they_contain(memory: Engine, ids: dict[str, UUID]) -> None:
    plan = await memory.plans.propose("topics")
    assert counts(await memory.graph.plan_picture(plan.id)) == ["3 nodes, 2 links", "4 nodes, 5 links"]
    await memory.plans.apply(plan.id)
    assert counts(await memory.graph.plan_picture(plan.id)) == ["3 nodes, 2 links", "4 nodes, 5 links"]


async def test_C26_many_groups_are_many_pictures_and_the_page_says_how_many_more(memory: Engine) -> None:
    added = await memory.add_many([NewMemory(text=f"n{n}") for n in range(30)], wait=False)
    for a, b in zip(added.ids[::2], added.ids[1::2], strict=True):
        for relation in ("similar", "extends"):
            await memory.graph.link(a, b, relation, strength=0.5, created_by="auto")
    plan = await memory.plans.propose("merge-edges", {"batch": 1})
    page = await memory.graph.plan_picture(plan.id)
    assert page.count("<figure>") == pictures.MOST_PICTURES
    assert "The first 12 of 15 groups are drawn; 3 more are not." in page


async def test_C26_a_plan_larger_than_a_picture_is_drawn_as_far_as_it_fits(memory: Engine) -> None:
    added = await memory.add_many([NewMemory(text=f"n{n}") for n in range(700)], wait=False)
    edges = [
        NewEdge(source=a, target=b, relation=relation, strength=0.5, created_by="auto")
        for a, b in zip(added.ids[::2], added.ids[1::2], strict=True)
        for relation in ("similar", "extends")
    ]
    await memory.graph.link_many(edges)
    plan = await memory.plans.propose("merge-edges", {"batch": 1000})
    page = await memory.graph.plan_picture(plan.id)
    assert counts(page) == ["300 nodes, 300 links", "300 nodes, 150 links"]
    assert "merge 150 (of 350 decisions)" in page


async def test_a_plan_without_decisions_is_an_empty_picture(memory: Engine) -> None:
    plan = await memory.plans.propose("prune")
    assert counts(await memory.graph.plan_picture(plan.id)) == ["0 nodes, 0 links", "0 nodes, 0 links"]


async def test_a_declined_decision_is_not_drawn(memory: Engine, ids: dict[str, UUID]) -> None:
    await memory.graph.link(ids["Linh"], ids["tea"], "similar", strength=0.4, created_by="auto")
    await memory.graph.link(ids["Linh"], ids["Minh"], "extends", strength=0.4, created_by="auto")
    plan = await memory.plans.propose("merge-edges")
    await memory.plans.decline(plan.id, [1])
    assert "merge 1" not in await memory.graph.plan_picture(plan.id)
    drawn = await memory.graph.plan_picture(plan.id, format="svg")
    assert len(re.findall(r">− (?:similar|extends) ", drawn)) == 1
