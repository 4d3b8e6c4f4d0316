"""P16 as a class of faults: whatever changes between showing and applying, a decision that would not be proposed any
more is not carried out. Every policy there is has its scene here, and one that reads past its `Look` fails.
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from recollect.engine.engine import Engine
from recollect.model import NewEdge, NewMemory
from recollect.plan import Decision, Plan
from recollect.plans import registry
from recollect.plans.policy import Policy, Reader
from recollect.plans.propose import _proposed, options_of
from recollect.plans.registry import POLICIES
from recollect.plans.sql import declined
from tests.case_support import a_case, judged
from tests.plan_support import NOW, TWINS, at, link, some_concepts, some_nodes

pytestmark = pytest.mark.anyio

UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TEA = "the tea is made of leaves and hot water"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a plan is about: the first two nodes, the first edge."""

    nodes: Sequence[UUID]
    edges: Sequence[UUID] = ()
    options: dict[str, Any] = field(default_factory=dict)
    # A plan that came with it, where its policy does not propose by itself.
    plan: Plan | None = None


@pytest.fixture
async def graph(memory: Engine) -> Engine:
    at(memory, NOW)
    return memory


# -- what there is


async def a_small_graph(graph: Engine) -> Stage:
    """Two parallel edges, one of them weak, in a triangle; all nodes bear a topic."""
    made, topics = await some_nodes(graph, 3), {"source_topic": "tag:tea", "target_topic": "tag:tea"}
    a, b, c = made
    edges = await link(graph, (a, b), strength=0.02, **topics)
    edges += await link(graph, (b, a), relation="extends", strength=0.9, created_at=NOW, **topics)
    edges += await link(graph, (b, c), (c, a), strength=1.0, created_at=NOW, **topics)
    return Stage(nodes=made, edges=edges)


async def topics(graph: Engine) -> Stage:
    return replace(await a_small_graph(graph), options={"min_cluster_size": 2})


async def near_each_other(graph: Engine) -> Stage:
    added = await graph.add_many([NewMemory(text=TEA), NewMemory(text=f"{TEA}.")])
    return Stage(nodes=list(added.ids), options={"min_similarity": 0.9})


async def concepts(graph: Engine) -> Stage:
    """Two that are the same, and a third that each of them is linked with."""
    made = [(await graph.concepts.add(name, text=TEA)).concept.id for name in ("substrate", "carrier")]
    made += await some_concepts(graph, "Cossacks")
    edges = await link(graph, (made[0], made[2]), (made[1], made[2]))
    return Stage(nodes=made, edges=edges, options=TWINS)


async def cases(graph: Engine) -> Stage:
    """Two that ask the same, and fail, and were not asked for in a long time."""
    asked = [await a_case(graph, TEA, uses=20, rate=10.0, idle=200.0, wait=True) for _ in range(2)]
    return Stage(nodes=asked)


async def pages(graph: Engine) -> Stage:
    """Two pages that are there, and another version of one that has come in, and leads to the other."""
    water, tea = ("heuristics/water.md", "# Water\n\nCold.\n"), ("heuristics/tea.md", "# Tea\n\nHot water.\n")
    first = await graph.pages.import_texts([water, tea])
    await graph.pages.apply(first.plan.id)
    found = {page.name: page.id for page in (await graph.pages.list()).items}
    plan = (await graph.pages.import_texts([(tea[0], f"{tea[1]}Of [water](water.md), and leaves.\n")])).plan
    return Stage(nodes=[found["water"], found["tea"]], plan=await graph.plans.get(plan.id), options=dict(plan.options))


# -- what happens meanwhile

Meanwhile = Callable[[Engine, Stage], Awaitable[Any]]


async def nothing(_graph: Engine, _stage: Stage) -> None:
    pass


async def used(graph: Engine, stage: Stage) -> None:
    await graph.graph.reinforce(stage.edges[0], "traversal")


async def protected(graph: Engine, stage: Stage) -> None:
    await graph.graph.protect(stage.edges[0])


async def unlinked(graph: Engine, stage: Stage) -> None:
    await graph.graph.unlink(stage.edges[1])


async def forgotten(graph: Engine, stage: Stage) -> None:
    await graph.forget(stage.nodes[0])


async def linked_again(graph: Engine, stage: Stage) -> None:
    again = NewEdge(source=stage.nodes[0], target=stage.nodes[1], explanation="because", confidence=0.9, strength=1.0)
    await graph.graph.link_many([again])


async def linked_otherwise(graph: Engine, stage: Stage) -> None:
    more = {"source_topic": "tag:tea", "target_topic": "tag:milk"}
    await link(graph, (stage.nodes[0], stage.nodes[1]), relation="contradicts", **more)


async def linked(graph: Engine, stage: Stage) -> None:
    await link(graph, (stage.nodes[1], stage.nodes[0]))


async def linked_and_unlinked(graph: Engine, stage: Stage) -> None:
    for edge in await link(graph, (stage.nodes[1], stage.nodes[0])):
        await graph.graph.unlink(edge)


async def tagged(graph: Engine, stage: Stage) -> None:
    await graph.edit(stage.nodes[0], metadata={"tags": ["milk"]})


async def edges_kept_apart(graph: Engine, stage: Stage) -> None:
    await _never(graph, *(f"edges of {node}" for node in stage.nodes[:2]))


async def nodes_kept_apart(graph: Engine, stage: Stage) -> None:
    await _never(graph, *sorted(map(str, stage.nodes[:2])))


async def _never(graph: Engine, a: str, b: str) -> None:
    async with graph.core.transaction(graph.space.id) as db:
        await declined.keep_apart(db, [(a, b, None)], now=NOW, days=None, reason="a person said so")


async def concept_protected(graph: Engine, stage: Stage) -> None:
    for node in stage.nodes[:2]:
        await graph.concepts.protect(node)


async def merged_elsewhere(graph: Engine, stage: Stage) -> None:
    await graph.concepts.merge(stage.nodes[2], stage.nodes[1])


async def case_used(graph: Engine, stage: Stage) -> None:
    for case in stage.nodes:
        await judged(graph, case, successes=40, failures=0, at=NOW)


async def case_said_anew(graph: Engine, stage: Stage) -> None:
    for case in stage.nodes:
        await graph.cases.update(case, query=f"how is milk made for {case}?")


async def page_changed(graph: Engine, _stage: Stage) -> None:
    plan = (await graph.pages.import_texts([("heuristics/tea.md", "# Tea\n\nCold water.\n")])).plan
    await graph.pages.apply(plan.id)


# -- each policy: what there is, what may happen, and by what it is found out if it does not say what it looked at

Scene = tuple[Callable[[Engine], Awaitable[Stage]], list[Meanwhile], Meanwhile]
BANK: Scene = (cases, [case_used, forgotten], case_used)
NEAR: Scene = (near_each_other, [linked, linked_and_unlinked, forgotten, tagged], linked_and_unlinked)
SCENES: dict[str, Scene] = {
    "prune_weak_edges": (a_small_graph, [used, protected, unlinked, forgotten, linked_again], protected),
    "merge_parallel_edges": (
        a_small_graph,
        [used, protected, unlinked, forgotten, linked_again, linked_otherwise, edges_kept_apart],
        linked_otherwise,
    ),
    "gather_topics": (topics, [unlinked, forgotten, linked_otherwise], forgotten),
    "link_similar": NEAR,
    "note_similar_memories": NEAR,
    "merge_duplicate_concepts": (
        concepts,
        [concept_protected, nodes_kept_apart, merged_elsewhere, linked, unlinked, used, forgotten],
        concept_protected,
    ),
    "consolidate_cases": BANK,
    "archive_poor_cases": BANK,
    "archive_unused_cases": BANK,
    "merge_duplicate_cases": (cases, [case_used, case_said_anew, nodes_kept_apart, forgotten], nodes_kept_apart),
    "merge_pages": (pages, [page_changed, forgotten], forgotten),
}
EVERY = [(name, change) for name, (_, changes, _) in SCENES.items() for change in (nothing, *changes)]


async def honoured(graph: Engine, policy: Policy, change: Meanwhile) -> bool:
    """Whether what is carried out after a change is what would be proposed after it."""
    stage = await SCENES[policy.name][0](graph)
    shown = stage.plan or await graph.plans.propose(policy.name, stage.options)
    assert shown.decisions, "there is something to do"
    await change(graph, stage)
    would = await _proposed(graph.core, graph.space.id, policy, options_of(policy, stage.options))
    await graph.plans.apply(shown.id)
    done = [one for one in (await graph.plans.get(shown.id)).decisions if one.status == "applied"]
    assert done or change is not nothing, "where nothing changes it is done"
    known = {str(id_) for id_ in (*stage.nodes, *stage.edges)}
    return {meant(one, known) for one in done} <= {meant(one, known) for one in would.decisions}


def meant(decision: Decision, known: set[str]) -> str:
    """What a decision does. Rows that it makes have another id each time."""
    rows = [[one.table, str(one.id), one.before, one.after] for one in decision.changes]
    return UUIDS.sub(lambda id_: id_[0] if id_[0] in known else "new", json.dumps(rows, sort_keys=True))


def test_P16_every_policy_has_its_scene() -> None:
    assert SCENES.keys() == POLICIES.keys()


@pytest.mark.parametrize(("name", "change"), EVERY, ids=lambda one: getattr(one, "__name__", one))
async def test_P16_what_would_not_be_proposed_any_more_is_not_done(graph: Engine, name: str, change: Meanwhile) -> None:
    assert await honoured(graph, POLICIES[name], change)


@pytest.mark.parametrize("name", SCENES)
async def test_P16_a_policy_that_reads_past_its_look_is_found_out(
    graph: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The same policy, with decisions that do not say what they looked at: the test above does not let it pass."""
    policy = POLICIES[name]

    async def past_the_look(reader: Reader, options: Any, now: datetime) -> Plan:
        plan = await policy.propose(reader, options, now)
        return replace(plan, decisions=[replace(one, premises=()) for one in plan.decisions])

    careless = replace(policy, propose=past_the_look, recheck=None)
    monkeypatch.setitem(registry.POLICIES, name, careless)
    assert not await honoured(graph, careless, SCENES[name][2])
