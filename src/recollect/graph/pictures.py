"""Pictures of the graph: what is around a node, a topic, and a plan before and after (C26), as SVG or as one page."""

from collections.abc import Collection, Sequence
from typing import Literal
from uuid import UUID

import anyio.to_thread

from recollect.engine.core import Core
from recollect.graph.explore import FARTHEST, around, check
from recollect.graph.explore import topic as whole_topic
from recollect.graph.link import row_of
from recollect.graph.rules import drawing
from recollect.graph.rules.drawing import Touched, before_and_after, nodes_touched, touched_by
from recollect.graph.rules.labels import shortened
from recollect.graph.rules.picture import MOST_DOTS, Picture
from recollect.graph.rules.picture_svg import page, side_by_side, svg
from recollect.graph.rules.titles import name_of
from recollect.graph.sql import edges, graph
from recollect.memories.sql import nodes
from recollect.plan import Decision, DecisionStatus, Plan
from recollect.plans.sql import plans
from recollect.store.database import Transaction
from recollect.wording import counted

Form = Literal["svg", "html"]
FORMS = ("svg", "html")
MOST_PICTURES = 12
# Around what a plan touches as much again is drawn, but at least so many nodes: what it hangs on.
LEAST_AROUND = 24
# These change nothing any more.
OUT_OF_IT = {DecisionStatus.DECLINED, DecisionStatus.STALE, DecisionStatus.FAILED}


async def of_node(
    core: Core, space_id: UUID, node_id: UUID, *, hops: int = 2, limit: int = 100, form: Form = "svg"
) -> str:
    """A node and what is around it, the nearest and most strongly linked."""
    check(1 <= hops <= FARTHEST, "hops", f"from 1 to {FARTHEST}", hops)
    check(1 <= limit <= MOST_DOTS, "limit", f"from 1 to {MOST_DOTS}", limit)
    _check_form(form)
    async with core.database.snapshot(space_id) as db:
        focus = await nodes.get(db, node_id)
        near = await around(db, node_id, core.now(), hops=hops, enough=limit)
        ids = [node_id, *list(near)[: limit - 1]]
        read = await nodes.get_many(db, ids)
        links = await graph.among(db, ids)
    name = shortened(name_of(focus) or str(focus.id), 60)
    picture = drawing.neighbourhood(name, node_id, (read[id_] for id_ in ids), links, core.now())
    left_out = len(near) + 1 - len(ids)
    intro = f"What is within {counted(hops, 'hop')} of “{name}”."
    if left_out:
        intro += f" {left_out:,} more are as near, but less strongly linked, and left out."
    return await anyio.to_thread.run_sync(lambda: _drawn([(name, svg(picture))], name, intro, form))


async def of_topic(core: Core, space_id: UUID, key: str, *, form: Form = "svg") -> str:
    """A topic with the members it contains, and the edges between them."""
    _check_form(form)
    view = await whole_topic(core, space_id, key)
    picture = drawing.topic_picture(view.topic, view.members, view.edges, core.now())
    intro = (
        f"The topic {key} contains {counted(len(view.members), 'node')} and "
        f"{counted(view.topic.internal_edges, 'linked pair')} of them "
        f"(connectivity {view.topic.connectivity:.2f})."
    )
    return await anyio.to_thread.run_sync(lambda: _drawn([(key, svg(picture))], f"Topic {key}", intro, form))


async def of_plan(core: Core, space_id: UUID, plan_id: UUID, *, form: Form = "html") -> str:
    """A plan before and after: as SVG in one picture, as a page in one for each of its first groups."""
    _check_form(form)
    async with core.database.snapshot(space_id) as db:
        plan = await plans.head(db, plan_id)
        groups = await plans.group_numbers(db, plan_id)
        shown = groups[:MOST_PICTURES]
        of_groups = [await plans.decisions_of(db, plan_id, group=number) for number in shown]
        parts = [[decision for group in of_groups for decision in group]] if form == "svg" else of_groups
        drawn = [await _two_sides(core, db, part) for part in parts]
    return await anyio.to_thread.run_sync(lambda: _plan_drawn(plan, drawn, len(groups), form))


async def _two_sides(core: Core, db: Transaction, decisions: Sequence[Decision]) -> tuple[str, Picture, Picture]:
    """A title, and the part of the graph that some decisions touch, before and after."""
    acting = [decision for decision in decisions if decision.status not in OUT_OF_IT]
    rows = await _edge_rows(db, touched_by(acting))
    fitting = _fitting(acting, rows)
    touched = touched_by(fitting)
    centre = nodes_touched(touched, rows)
    shown = await _with_context(core, db, centre)
    read = await nodes.get_many(db, shown)
    before, after = before_and_after(
        touched,
        edges=rows,
        topics={topic.id: drawing.topic_row(topic) for topic in await graph.list_topics(db)},
        nodes=[read[id_] for id_ in shown if id_ in read],
        around=await graph.among(db, shown, awake=centre),
        now=core.now(),
    )
    return _title(fitting, len(decisions)), before, after


async def _edge_rows(db: Transaction, touched: Touched) -> dict[UUID, dict[str, object]]:
    edges_by_id = await edges.get_many(db, touched.ids("edges"))
    return {id_: row_of(edge) for id_, edge in edges_by_id.items()}


def _fitting(decisions: Sequence[Decision], rows: dict[UUID, dict[str, object]]) -> list[Decision]:
    """As many whole decisions, in their order, as a picture has room for; at least one."""
    fitting: list[Decision] = []
    seen: set[UUID] = set()
    for decision in decisions:
        seen.update(nodes_touched(touched_by([decision]), rows))
        if fitting and len(seen) > MOST_DOTS:
            break
        fitting.append(decision)
    return fitting


async def _with_context(core: Core, db: Transaction, centre: Collection[UUID]) -> list[UUID]:
    """Some nodes, and those they are most strongly linked with, as far as there is room."""
    room = min(MOST_DOTS, max(LEAST_AROUND, 2 * len(centre)))
    shown = dict.fromkeys(centre)
    for link in await edges.around(db, list(centre), core.now(), at_most=10 * MOST_DOTS, awake=centre):
        for end in (link.source, link.target):
            if len(shown) < room:
                shown[end] = None
    return list(shown)


def _title(fitting: Sequence[Decision], total: int) -> str:
    """What a reader of many pictures looks for: the only decision's reason, or what is decided how often."""
    if len(fitting) == 1:
        return f"{fitting[0].verb}: {shortened(fitting[0].reason, 100)}"
    verbs = {
        verb: sum(decision.verb == verb for decision in fitting)
        for verb in dict.fromkeys(decision.verb for decision in fitting)
    }
    counts = ", ".join(f"{verb} {number:,}" for verb, number in verbs.items()) or "nothing that changes the graph"
    return counts if len(fitting) == total else f"{counts} (of {counted(total, 'decision')})"


def _plan_drawn(plan: Plan, parts: Sequence[tuple[str, Picture, Picture]], groups: int, form: Form) -> str:
    pictures = [(title, side_by_side(before, after)) for title, before, after in parts]
    intro = f"Plan {str(plan.id)[:8]} ({plan.policy}), {plan.status.replace('_', ' ')}."
    if groups > MOST_PICTURES:
        intro += f" The first {MOST_PICTURES} of {groups:,} groups are drawn; {groups - MOST_PICTURES:,} more are not."
    if not pictures:
        intro += " It has no decisions."
        pictures = [("", side_by_side(*(Picture(title=title, dots=(), lines=()) for title in ("Before", "After"))))]
    return _drawn(pictures, plan.title, intro, form)


def _drawn(pictures: Sequence[tuple[str, str]], title: str, intro: str, form: Form) -> str:
    return pictures[0][1] if form == "svg" else page(title, pictures, intro)


def _check_form(form: str) -> None:
    check(form in FORMS, "format", "svg or html", form)
