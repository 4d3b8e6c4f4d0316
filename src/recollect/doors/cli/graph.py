"""The graph: its figures, what is near what, ways between nodes, topics, a file of it, pictures of it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, Limit, command, listing
from recollect.errors import Conflict, InvalidInput
from recollect.model import Node, Topic
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.graph.explore import Components, Neighbour, Stats, TopicView, Way
    from recollect.graph.pictures import Form

PANEL = "Graph and links"
app = typer.Typer()

NodeId = Annotated[str, typer.Argument(metavar="NODE", help="A node's id, or its first 4 or more characters.")]
Hops = Annotated[int, typer.Option("--hops", metavar="N", help="How far, from 1 to 3.")]
Relations = Annotated[
    list[str] | None, typer.Option("--relation", "-r", metavar="NAME", help="Only by this relation; repeat for more.")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The topic's key, as `recollect graph topics` shows it.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")]


class FileFormat(StrEnum):
    GRAPHML = "graphml"
    GEXF = "gexf"
    JSON = "json"


@listing(app)
def graph(door: Door) -> None:
    """Look around in the graph: its figures, neighbours, paths, topics, pictures."""
    stats(door)


@command(app, "stats")
def stats(door: Door) -> None:
    """Show the graph in figures."""
    door.show(door.ask(lambda memory: memory.graph.stats(), doing="Counting"), _show_stats)


@command(app, "neighbours")
def neighbours(
    door: Door,
    node: NodeId,
    hops: Hops = 1,
    relation: Relations = None,
    limit: Limit = 50,
) -> None:
    """List the nodes around a node, nearest and most strongly linked first."""
    near = door.ask(lambda memory: memory.graph.neighbours(node, hops=hops, relations=relation, limit=limit))
    door.show(near, _show_neighbours)


@command(app, "paths")
def paths(
    door: Door,
    source: NodeId,
    target: NodeId,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many paths, at most 20.")] = 3,
    hops: Annotated[int, typer.Option("--hops", metavar="N", help="How long a path may be, from 1 to 6.")] = 4,
    strongest: Annotated[bool, typer.Option("--strongest", help="The strongest first, not the shortest.")] = False,
) -> None:
    """Show the best paths between two nodes.

    The shortest come first, and of those the strongest; the strength of a path is the product of its edges' strengths.
    """
    ways = door.ask(
        lambda memory: memory.graph.paths(
            source, target, limit=limit, hops=hops, by="strongest" if strongest else "shortest"
        )
    )
    door.show(ways, _show_paths)


@command(app, "components")
def components(
    door: Door,
    limit: Limit = 20,
) -> None:
    """List what hangs together, the largest components first."""
    door.show(door.ask(lambda memory: memory.graph.components(limit=limit), doing="Counting"), _show_components)


@command(app, "topics")
def topics(
    door: Door,
    of: Annotated[
        list[str] | None, typer.Option("--of", metavar="NODE", help="Only those that contain it; repeat for more.")
    ] = None,
) -> None:
    """List the topics of the last gathering, largest first."""
    door.show(door.ask(lambda memory: memory.graph.topics(of=of)), _show_topics)


@command(app, "topic")
def topic(door: Door, key: Key) -> None:
    """Show a whole topic: what it contains."""
    door.show(door.ask(lambda memory: memory.graph.topic(key)), _show_topic)


@command(app, "export")
def export(
    door: Door,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; - writes to stdout.")],
    format_: Annotated[
        FileFormat | None, typer.Option("--format", "-f", help="As the file's ending says; graphml else.")
    ] = None,
    isolated: Annotated[bool, typer.Option("--isolated", help="Also nodes without any edge.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the graph for another program: GraphML (yEd, NetworkX), GEXF (Gephi) or JSON (D3).

    Strengths are those of this moment.
    """
    chosen = format_ or next(
        (file_format for file_format in FileFormat if file.suffix == f".{file_format}"), FileFormat.GRAPHML
    )
    to_stdout = str(file) == "-"
    if to_stdout and door.json:
        raise InvalidInput("The graph itself goes to stdout: name a file to have a report as JSON.")
    out = cast("BinaryIO", output.Stdout()) if to_stdout else file

    async def write(memory: "Engine") -> int:
        return await memory.graph.export(out, format=chosen.value, with_isolated=isolated, overwrite=overwrite)

    count = door.ask(write, doing="Exporting")
    if not to_stdout:
        report = {"file": file, "format": chosen, "edges": count}
        door.show(report, lambda _: output.say(f"{counted(count, 'edge')} written to {file}."))


@command(app, "picture")
def picture(
    door: Door,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="What to draw the surroundings of.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write it: FILE.svg or FILE.html.")
    ] = None,
    hops: Hops = 2,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many nodes, at most 300.")] = 100,
    plan: Annotated[str | None, typer.Option("--plan", metavar="ID", help="A plan, before and after.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="KEY", help="A topic and what it contains.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw what is around a node, a topic, or what a plan changes, as SVG or as one HTML page.

    \b
    recollect graph picture 7f3a --out tea.svg
    recollect graph picture --plan 5b9d --out plan.html
    """
    if sum(given is not None for given in (node, plan, topic)) != 1:
        raise InvalidInput("Say what to draw: a NODE, --plan ID or --topic KEY.")
    file = _picture_file(out, overwrite)
    form: Form = "html" if file.suffix == ".html" else "svg"

    async def draw(memory: "Engine") -> str:
        if plan is not None:
            return await memory.graph.plan_picture(plan, format=form)
        if topic is not None:
            return await memory.graph.topic_picture(topic, format=form)
        assert node is not None
        return await memory.graph.picture(node, hops=hops, limit=limit, format=form)

    _write(file, door.ask(draw, doing="Drawing"))
    door.show({"file": file, "format": form}, lambda _: output.say(f"Drawn in {file}."))


def _picture_file(out: Path | None, overwrite: bool) -> Path:
    if out is None or out.suffix not in (".svg", ".html"):
        raise InvalidInput("Say where to draw it: --out FILE.svg or --out FILE.html.", field="out")
    if out.exists() and not overwrite:
        raise Conflict(f"{out} exists already: choose another name, or repeat with --overwrite.")
    return out


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror or error}): choose another place.") from error


# -- showing


def _show_stats(figures: "Stats") -> None:
    weakest = ", ".join(f"{output.short(edge.id)} {edge.strength:.2f}" for edge in figures.weakest)
    output.facts(
        [
            ("nodes", f"{figures.nodes:,}, {figures.isolated:,} of them without an edge"),
            ("edges", f"{figures.edges:,}, {figures.protected:,} of them protected"),
            ("by relation", _listed(figures.by_relation)),
            ("by creator", _listed(figures.by_creator)),
            ("by strength", _listed(figures.by_strength)),
            ("components", f"{figures.components:,}, the largest with {counted(figures.largest_component, 'node')}"),
            ("edges of a node", _listed(figures.degrees)),
            ("most edges", f"{figures.highest_degree:,}"),
            ("oldest edge", output.minute(figures.oldest_edge_at, never="none")),
            ("first edge ever", output.minute(figures.first_edge_at, never="none")),
            ("weakest edges", weakest or "none"),
            ("topics", f"{figures.topics:,}"),
            ("scheduled tidying", f"waits: {figures.gate}" if figures.gate else "runs"),
        ]
    )


def _listed(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{name}: {count:,}" for name, count in counts.items()) or "none"


def _show_neighbours(near: "Sequence[Neighbour]") -> None:
    rows = [
        (
            str(neighbour.hops),
            f"{neighbour.strength:.2f}",
            neighbour.node.kind,
            output.short(neighbour.node.id),
            _text(neighbour.node),
        )
        for neighbour in near
    ]
    output.table(("hops", "strength", "kind", "id", "text"), rows)
    if not near:
        output.note("Nothing is linked with it.")


def _show_paths(ways: "Sequence[Way]") -> None:
    for number, way in enumerate(ways, start=1):
        output.heading(f"{number}. {counted(way.hops, 'hop')}, strength {way.strength:.2f}")
        output.table(("by", "id", "text"), _steps(way))
    if not ways:
        output.note("No path leads from one to the other within so many hops.")


def _steps(way: "Way") -> list[tuple[str, str, str]]:
    """A line a node, with the edge that leads to it; an arrow shows which way that points."""
    rows = [("", output.short(way.nodes[0].id), _text(way.nodes[0]))]
    for edge, node in zip(way.edges, way.nodes[1:], strict=True):
        by = f"{edge.relation} →" if edge.target == node.id else f"← {edge.relation}"
        rows.append((by, output.short(node.id), _text(node)))
    return rows


def _show_components(parts: "Components") -> None:
    rows = [
        (f"{part.size:,}", f"{part.edges:,}", " · ".join(_text(node)[:40] for node in part.examples))
        for part in parts.items
    ]
    output.table(("nodes", "edges", "best connected"), rows)
    if not parts.items:
        output.note("There is no edge yet.")
    elif parts.total > len(parts.items):
        output.note(f"There are {parts.total - len(parts.items):,} more, none of them larger.")


def _show_topics(listed: Sequence[Topic]) -> None:
    output.table(
        ("topic", "contains", "linked pairs", "connectivity", "gathered"),
        [
            (
                topic.key,
                f"{len(topic.member_ids):,}",
                f"{topic.internal_edges:,}",
                f"{topic.connectivity:.2f}",
                output.minute(topic.gathered_at),
            )
            for topic in listed
        ],
    )
    if not listed:
        output.note("There is no such topic yet: `recollect plan topics` gathers them.")


def _show_topic(view: "TopicView") -> None:
    output.say(f"{view.topic.key} contains {counted(len(view.members), 'node')}:")
    output.table(("kind", "id", "text"), [(node.kind, output.short(node.id), _text(node)) for node in view.members])


def _text(node: Node) -> str:
    return node.name or node.text or ""
