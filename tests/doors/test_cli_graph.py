"""The graph on the command line."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from recollect.engine.engine import Engine
from recollect.model import NewEdge
from recollect.settings import Settings
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli

own_database, in_default, cli = support.own_database, support.in_default, support.cli


@pytest.fixture
def linked(cli: Cli) -> list[str]:
    """Three notes in a row, all of one topic, and what the last gathering made of them."""
    ids = [cli.add(text) for text in ("react is a library", "hooks are functions", "state is kept by hooks")]

    async def link() -> None:
        async with Engine(Settings.load(space=cli.space)) as memory:
            nodes = [await memory.node_id(id_) for id_ in ids]
            topics: dict[str, Any] = {"source_topic": "tag:react", "target_topic": "tag:react"}
            await memory.graph.link_many(
                [
                    NewEdge(source=nodes[0], target=nodes[1], relation="supports", strength=0.9, **topics),
                    NewEdge(source=nodes[2], target=nodes[1], relation="extends", strength=0.5, **topics),
                ]
            )
            await memory.plans.run("topics")

    asyncio.run(link())
    return ids


def test_stats(cli: Cli, linked: list[str]) -> None:
    shown = cli("graph", "stats").out
    assert "edges\t2, 0 of them protected" in shown
    assert "scheduled tidying\twaits: the graph has 2 edges, fewer than 50" in shown
    assert cli.json("graph", "stats")["by_relation"] == {"extends": 1, "supports": 1}


def test_neighbours(cli: Cli, linked: list[str]) -> None:
    lines = cli("graph", "neighbours", linked[0][:8], "--hops", "2").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"]
    assert lines[0].endswith("hooks are functions")
    assert [one["hops"] for one in cli.json("graph", "neighbours", linked[0], "--hops", "2")] == [1, 2]
    assert cli("graph", "neighbours", linked[0], "--relation", "extends").err == "Nothing is linked with it.\n"
    assert "hops" in cli.refused("graph", "neighbours", linked[0], "--hops", "5", code=2)
    cli.refused("graph", "neighbours", "ffff0000", code=3)


def test_paths(cli: Cli, linked: list[str]) -> None:
    shown = cli("graph", "paths", linked[0], linked[2]).out
    assert "1. 2 hops, strength 0.45" in shown
    assert "supports →" in shown
    assert "← extends" in shown
    (way,) = cli.json("graph", "paths", linked[0], linked[2], "--strongest")
    assert [node["id"] for node in way["nodes"]] == linked
    alone = cli.add("something else")
    assert cli("graph", "paths", linked[0], alone).err.startswith("No path leads")


def test_components(cli: Cli, linked: list[str]) -> None:
    assert cli("graph", "components").out.startswith("3\t2\thooks are functions")
    assert cli.json("graph", "components")["total"] == 1


def test_A24_topics_and_what_they_contain(cli: Cli, linked: list[str]) -> None:
    assert cli("graph", "topics").out.startswith("tag:react\t3\t2\t0.67\t")
    assert len(cli.json("graph", "topics", "--of", linked[0])) == 1
    shown = cli("graph", "topic", "tag:react").out
    assert shown.startswith("tag:react contains 3 nodes:\n")
    assert "state is kept by hooks" in shown
    assert len(cli.json("graph", "topic", "tag:react")["members"]) == 3
    assert "There is no topic 'tag:none'" in cli.refused("graph", "topic", "tag:none", code=3)


def test_A24_recall_says_which_topics_contain_its_hits(cli: Cli, linked: list[str]) -> None:
    answer = cli("recall", "--topics", "hooks are functions")
    assert "tag:react contains " in answer.err
    assert set(cli.json("recall", "--topics", "--weak", "hooks are functions")["ways"]["topics"]["tag:react"]) == set(
        linked
    )


def test_A31_recall_follows_the_graph(cli: Cli, linked: list[str]) -> None:
    found = cli.json("recall", "--graph", "react is a library")
    assert found["ways"]["graph"] == "in the database"
    explained = cli("recall", "--graph", "--explain", "react is a library")
    assert "graph in the database" in explained.err
    assert "{" not in explained.err


def test_export(cli: Cli, linked: list[str], tmp_path: Path) -> None:
    file = tmp_path / "graph.gexf"
    assert cli("graph", "export", str(file)).out == f"2 edges written to {file}.\n"
    assert "gexf" in file.read_text()
    assert "exists already" in cli.refused("graph", "export", str(file), code=4)
    assert cli.json("graph", "export", str(file), "--format", "json", "--overwrite")["format"] == "json"
    assert len(json.loads(file.read_text())["nodes"]) == 3
    assert "goes to stdout" in cli.refused("graph", "export", "-", "--json", code=2)


def test_pictures(cli: Cli, linked: list[str], tmp_path: Path) -> None:
    svg, page, plan = tmp_path / "a.svg", tmp_path / "b.html", tmp_path / "plan.html"
    assert cli("graph", "picture", linked[0], "--out", str(svg)).out == f"Drawn in {svg}.\n"
    assert svg.read_text().startswith("<svg")
    assert cli.json("graph", "picture", "--topic", "tag:react", "--out", str(page))["format"] == "html"
    assert "contains" in page.read_text()
    forgotten = cli.json("forget", linked[0])
    plan_id = cli.json("history", forgotten["id"])[-1]["plan_id"]
    cli("graph", "picture", "--plan", plan_id[:8], "--out", str(plan))
    assert "Before" in plan.read_text()


def test_a_picture_needs_something_to_draw_and_a_place(cli: Cli, linked: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "x.svg")
    assert "Say what to draw" in cli.refused("graph", "picture", "--out", out, code=2)
    assert "Say what to draw" in cli.refused("graph", "picture", linked[0], "--plan", "abcd", "--out", out, code=2)
    assert "Say where to draw" in cli.refused("graph", "picture", linked[0], code=2)
    assert "Say where to draw" in cli.refused("graph", "picture", linked[0], "--out", "x.png", code=2)
    cli("graph", "picture", linked[0], "--out", out)
    assert "exists already" in cli.refused("graph", "picture", linked[0], "--out", out, code=4)
    assert "cannot be written" in cli.refused(
        "graph", "picture", linked[0], "--out", str(tmp_path / "no" / "x.svg"), code=2
    )
