"""From nodes, edges and plans to pictures: what is drawn, and how it is told.

A plan is drawn as the rows it changes, twice: as they were and as they will be, from the plan's own changes laid over
what is stored, so the picture is the same before and after it was applied. Around them stands what they hang on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.graph.rules.picture import Dot, Mark, Picture, PictureLine
from recollect.graph.rules.strength import current
from recollect.graph.rules.titles import name_of
from recollect.model import Edge, Node, Topic
from recollect.plan import Change, Decision
from recollect.wording import counted

Row = Mapping[str, Any]

LONGEST_TEXT = 400
TOPIC = "topic"
CONTAINS = "contains"


def dot_of(node: Node, mark: Mark = "") -> Dot:
    """A node as it is drawn: called by its name, or as its text is; the text is told where it says more."""
    label = name_of(node)
    text = "" if label == node.text else (node.text or "")[:LONGEST_TEXT]
    facts = f"{node.kind}, {node.subtype}, since {node.created_at:%Y-%m-%d}"
    detail = "\n".join(filter(None, (facts, text, str(node.id))))
    return Dot(id=str(node.id), label=label, kind=str(node.kind), mark=mark, detail=detail)


def line_of(edge: Edge, now: datetime) -> PictureLine:
    """An edge as it is drawn, as strong as it is now."""
    set_at = edge.last_reinforced_at or edge.created_at
    return PictureLine(
        id=str(edge.id),
        source=str(edge.source),
        target=str(edge.target),
        relation=edge.relation,
        strength=current(edge.strength, edge.decay_rate, set_at, now),
        detail=_about(edge.created_by, edge.activation_count, edge.protected, edge.explanation, edge.id),
    )


def _about(created_by: str, walks: int, protected: bool, explanation: str | None, id_: object) -> str:
    facts = [
        f"made by {created_by}",
        f"walked {counted(walks, 'time')}" if walks else "",
        "protected" if protected else "",
    ]
    return "\n".join(filter(None, (", ".join(filter(None, facts)), (explanation or "")[:LONGEST_TEXT], str(id_))))


def neighbourhood(title: str, focus: UUID, nodes: Iterable[Node], edges: Iterable[Edge], now: datetime) -> Picture:
    """A node and what is around it."""
    return Picture(
        title=title,
        dots=tuple(dot_of(node, "focus" if node.id == focus else "") for node in nodes),
        lines=tuple(line_of(edge, now) for edge in edges),
    )


def topic_picture(topic: Topic, nodes: Iterable[Node], edges: Iterable[Edge], now: datetime) -> Picture:
    """A topic with the members it contains, and the edges between them (A24)."""
    members = list(nodes)
    row = {**topic_row(topic), "member_ids": [str(node.id) for node in members]}
    hub = _topic_dot(str(topic.id), row)
    return Picture(
        title=topic.key,
        dots=(Dot(id=hub.id, label=hub.label, kind=hub.kind, mark="focus", detail=hub.detail), *map(dot_of, members)),
        lines=(*_contains(str(topic.id), row), *(line_of(edge, now) for edge in edges)),
    )


def topic_row(topic: Topic) -> Row:
    return {"key": topic.key, "member_ids": [str(member) for member in topic.member_ids]}


def _topic_dot(id_: str, row: Row) -> Dot:
    name, size = row["key"].removeprefix("tag:"), counted(len(row["member_ids"]), "member")
    return Dot(id=f"topic:{id_}", label=name, kind=TOPIC, detail=size)


def _contains(id_: str, row: Row) -> list[PictureLine]:
    return [
        PictureLine(id=f"{id_}:{member}", source=f"topic:{id_}", target=member, relation=CONTAINS, strength=1.0)
        for member in row["member_ids"]
    ]


# -- plans


@dataclass(frozen=True, kw_only=True, slots=True)
class Touched:
    """What some decisions change, row by row: the columns as they were, and as they will be; None for no row."""

    before: dict[tuple[str, UUID], dict[str, Any] | None] = field(default_factory=dict)
    after: dict[tuple[str, UUID], dict[str, Any] | None] = field(default_factory=dict)

    def note(self, change: Change) -> None:
        key = (change.table, change.id)
        if key not in self.before:
            self.before[key] = None if change.before is None else dict(change.before)
        elif (earlier := self.before[key]) is not None:
            # What an earlier change did to a column is older than what a later one saw of it.
            self.before[key] = {**(change.before or {}), **earlier}
        if change.after is None:
            self.after[key] = None
        else:
            self.after[key] = {**(self.after.get(key) or {}), **change.after}

    def ids(self, table: str) -> list[UUID]:
        return [id_ for name, id_ in self.before if name == table]

    def rows(self, table: str, stored: Mapping[UUID, Row]) -> Iterable[tuple[UUID, Row | None, Row | None]]:
        """Each row whole, before and after: its changed columns over what is stored of it."""
        for id_ in self.ids(table):
            row = stored.get(id_, {})
            was, will_be = self.before[table, id_], self.after[table, id_]
            yield (
                id_,
                None if was is None else {**row, **was},
                None if will_be is None else {**row, **will_be},
            )


def touched_by(decisions: Iterable[Decision]) -> Touched:
    touched = Touched()
    for decision in decisions:
        for change in decision.changes:
            touched.note(change)
    return touched


def nodes_touched(touched: Touched, edges: Mapping[UUID, Row]) -> list[UUID]:
    """The nodes that some decisions concern: those they change, keepers, the ends of edges, the members of topics."""
    nodes: dict[UUID, None] = dict.fromkeys(touched.ids("nodes"))
    into = [row.get("merged_into") for key, row in touched.after.items() if key[0] == "nodes" and row is not None]
    nodes |= dict.fromkeys(UUID(keeper) for keeper in into if keeper)
    for _, *states in touched.rows("edges", edges):
        ends = [UUID(str(row[end])) for row in states if row for end in ("source", "target") if end in row]
        nodes |= dict.fromkeys(ends)
    for _, *states in touched.rows("topics", {}):
        nodes |= dict.fromkeys(UUID(member) for row in states if row for member in row.get("member_ids", ()))
    return list(nodes)


def before_and_after(
    touched: Touched,
    *,
    edges: Mapping[UUID, Row],
    topics: Mapping[UUID, Row],
    nodes: Sequence[Node],
    around: Sequence[Edge],
    now: datetime,
) -> tuple[Picture, Picture]:
    """A plan drawn twice. `edges` and `topics` are stored rows it touches; `around` is what it does not touch."""
    changed = set(touched.ids("edges"))
    context = tuple(line_of(edge, now) for edge in around if edge.id not in changed)

    def side(title: str, number: int) -> Picture:
        states = (touched.before, touched.after)[number]
        hubs, contained = _topic_parts(touched, topics, number)
        dots = [dot_of(node) for node in nodes if _is_alive(node, states)]
        there = {dot.id for dot in dots}
        hanging = [line for line in context if line.source in there and line.target in there]
        return Picture(
            title=title,
            dots=(*dots, *hubs),
            lines=(*hanging, *_edge_lines(touched, edges, number, now), *contained),
        )

    return side("Before", 0), side("After", 1)


def _is_alive(node: Node, states: Mapping[tuple[str, UUID], Row | None]) -> bool:
    """Whether a node is there on one side: one that the plan merges or archives is not there after it."""
    row = states.get(("nodes", node.id), {})
    return row is not None and row.get("status", node.status) == "active"


def _edge_lines(touched: Touched, stored: Mapping[UUID, Row], number: int, now: datetime) -> Iterable[PictureLine]:
    for id_, *states in touched.rows("edges", stored):
        row = states[number]
        if row is not None and row.get("status", "active") == "active" and "source" in row:
            yield _line_of_row(id_, row, now)


def _line_of_row(id_: UUID, row: Row, now: datetime) -> PictureLine:
    set_at = row.get("last_reinforced_at") or row.get("created_at")
    moment = datetime.fromisoformat(set_at) if set_at else now
    return PictureLine(
        id=str(id_),
        source=str(row["source"]),
        target=str(row["target"]),
        relation=row.get("relation") or "",
        strength=current(row.get("strength"), row.get("decay_rate") or 0.0, moment, now),
        detail=_about(
            row.get("created_by") or "user",
            row.get("activation_count") or 0,
            bool(row.get("protected")),
            row.get("explanation"),
            id_,
        ),
    )


def _topic_parts(touched: Touched, stored: Mapping[UUID, Row], number: int) -> tuple[list[Dot], list[PictureLine]]:
    hubs: list[Dot] = []
    lines: list[PictureLine] = []
    for id_, *states in touched.rows("topics", stored):
        row = states[number]
        if row is not None and "key" in row:
            hubs.append(_topic_dot(str(id_), row))
            lines += _contains(str(id_), row)
    return hubs, lines
