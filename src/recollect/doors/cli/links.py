"""Links between memories: made, used, protected and taken away by hand."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.doors.cli import graph, output, values
from recollect.doors.cli.door import Door, Limit, Reason, Verb, command
from recollect.model import Edge

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.plans.show import ShownEdge

app = typer.Typer()
PANEL = "Graph and links"

EdgeId = Annotated[str, typer.Argument(metavar="EDGE", help="The edge's id, or its first 4 or more characters.")]
NodeId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, or its first 4 or more characters.")]


@command(app, "link", rich_help_panel=PANEL)
def link(
    door: Door,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The id of a memory, or its beginning.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The id of another.")],
    relation: Annotated[
        str,
        typer.Option("--relation", "-r", metavar="NAME", help="similar, supports, contradicts, extends, applies, ..."),
    ] = "similar",
    strength: Annotated[
        float | None, typer.Option("--strength", metavar="0..1", help="How strong; decays unless it is used.")
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", metavar="0..1", help="How sure.")] = None,
    explanation: Annotated[
        str | None, typer.Option("--explanation", "-e", metavar="TEXT", help="Why; - reads it from stdin.")
    ] = None,
) -> None:
    """Link two memories.

    The same link again is kept once: the higher strength and confidence, the newer explanation. Without a strength it
    is 1.0 and does not decay. What you link by hand is never pruned.

    \b
    recollect link 3f2a 91bc --relation extends --strength 0.8 --explanation "same recipe, more people"
    """
    note = None if explanation is None else values.text_of([explanation])

    async def verb(memory: "Engine") -> Edge:
        return await memory.graph.link(
            source, target, relation, strength=strength, confidence=confidence, explanation=note
        )

    edge = door.ask(partial(_one, verb=verb))
    door.show(edge, partial(_done, "Linked"))


@command(app, "unlink", rich_help_panel=PANEL)
def unlink(door: Door, edge: EdgeId, reason: Reason = None) -> None:
    """Take a link out of the graph; it is kept in the history, and `recollect undo` brings it back."""
    gone = door.ask(partial(_one, verb=lambda memory: memory.graph.unlink(edge, reason=reason)))
    door.show(gone, partial(_done, "Unlinked"))
    output.hint(f"`recollect history {output.short(gone.id)}` shows the plan; `recollect undo PLAN` undoes it.")


@command(app, "reinforce", rich_help_panel=PANEL)
def reinforce(
    door: Door,
    edge: EdgeId,
    kind: Annotated[
        str,
        typer.Option(
            "--kind", "-k", metavar="KIND", help="traversal, revisit, highlight, approved, click, or important."
        ),
    ] = "revisit",
) -> None:
    """Make a link stronger because it was used; `--kind important` makes it 1.0 and protects it."""
    stronger = door.ask(partial(_one, verb=lambda memory: memory.graph.reinforce(edge, kind)))
    door.show(stronger, partial(_done, "Reinforced"))


@command(app, "protect", rich_help_panel=PANEL)
def protect(
    door: Door,
    edge: EdgeId,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
    reason: Reason = None,
) -> None:
    """Say that tidying must leave a link alone."""
    changed = door.ask(partial(_one, verb=lambda memory: memory.graph.protect(edge, not off, reason=reason)))
    door.show(changed, partial(_done, "Unprotected" if off else "Protected"))


@command(graph.app, "edges")
def edges(
    door: Door,
    node: NodeId,
    limit: Limit = 100,
) -> None:
    """List the links of a memory, strongest first."""
    listed = door.ask(partial(_edges, node=node, limit=limit))
    door.show(listed, partial(_show_edges, limit=limit))


# -- asking


async def _one(memory: "Engine", *, verb: "Verb[Edge]") -> "ShownEdge":
    from recollect.plans import show

    (edge,) = await show.edges(memory.core, memory.space.id, [await verb(memory)])
    return edge


async def _edges(memory: "Engine", *, node: str, limit: int) -> "list[ShownEdge]":
    from recollect.plans import show as showing

    return await showing.edges(memory.core, memory.space.id, await memory.graph.edges(node, limit=limit))


# -- showing


def _done(verb: str, edge: "ShownEdge") -> None:
    output.table(("", "", "", ""), [(verb, *_line(edge))])


def _show_edges(listed: "Sequence[ShownEdge]", *, limit: int) -> None:
    output.table(("edge", "strength", "by", "link"), [_line(edge) for edge in listed])
    if not listed:
        output.note("It has no links: `recollect link` makes one, `recollect plan link` proposes some.")
    elif len(listed) == limit:
        output.note("There may be more: `--limit` lists up to 1,000.")


def _line(edge: "ShownEdge") -> tuple[str, ...]:
    marks = "".join(
        f" ({mark})" for mark, holds in (("protected", edge.protected), (edge.status, edge.status != "active")) if holds
    )
    return output.short(edge.id), f"{edge.strength_now:.2f}", edge.created_by, edge.label + marks
