"""P12: whatever happens in whatever order, the store does what a simple model of the rules says.

The model below is written the slow, obvious way: a dictionary of edges, removals re-checked by walking the graph, an
undo that takes back differences. Hypothesis links, walks, protects, proposes, declines, applies, undoes and redoes in
random order; after every step the edges of the store are those of the model.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import exp
from typing import Any, ClassVar
from unittest.mock import patch
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect import Recollect
from recollect.errors import Conflict
from recollect.graph.sql import edges
from recollect.model import NewEdge, NewMemory
from recollect.plan import PlanStatus
from recollect.settings import Settings
from tests.plan_support import fetched

NODES = 4
START = datetime(2026, 1, 1, tzinfo=UTC)
USAGE = ("strength", "activation_count", "reinforce_count", "last_activated_at", "last_reinforced_at")
COLUMNS = (*USAGE, "protected", "status", "merged_into")


@dataclass(frozen=True)
class E:
    """An edge of the model."""

    id: UUID
    source: UUID
    target: UUID
    relation: str
    strength: float
    created_by: str
    created_at: datetime
    activation_count: int = 0
    reinforce_count: int = 0
    last_activated_at: datetime | None = None
    last_reinforced_at: datetime | None = None
    protected: bool = False
    status: str = "active"
    merged_into: UUID | None = None
    # What it has taken in, as that was then: no undo takes back a merge below a later one.
    merged_from: tuple[Any, ...] = ()

    def now(self, at: datetime) -> float:
        days = (at - (self.last_reinforced_at or self.created_at)).total_seconds() / 86_400
        return self.strength * exp(-0.05 * days)

    def idle(self, at: datetime) -> float:
        times = [self.created_at, self.last_activated_at, self.last_reinforced_at]
        return (at - max(time for time in times if time)).total_seconds() / 86_400

    @property
    def ends(self) -> frozenset[UUID]:
        return frozenset((self.source, self.target))


Patch = Mapping[str, Any]


@dataclass
class P:
    """A plan of the model: by decision the edges it changes, with the columns before and after."""

    id: UUID
    decisions: dict[int, dict[UUID, tuple[Patch, Patch]]]
    applied: set[int] = field(default_factory=set)
    status: str = "proposed"
    undoes: "P | None" = None
    # The edges as they were when it was proposed: a merge rests on their protection and their use too.
    seen: Mapping[UUID, E] = field(default_factory=dict)
    # How often edges had been used when an undo took them out of their keepers.
    use_then: Mapping[UUID, E] = field(default_factory=dict)

    @property
    def first(self) -> "P":
        """The plan itself, or the one that it brought again: the undo of an undo is what the first took back."""
        return self if self.undoes is None or self.undoes.undoes is None else self.undoes.undoes.first


def by_hand() -> P:
    return P(uuid4(), {}, status="over")


def rests_on(edge: E) -> tuple[Any, ...]:
    return edge.protected, edge.activation_count, edge.reinforce_count, edge.last_reinforced_at


class Model:
    def __init__(self) -> None:
        self.edges: dict[UUID, E] = {}
        self.at = START
        # Which plan wrote which column of which edge, the first first; use is no writing.
        self.writes: list[tuple[UUID, str, P]] = []

    def living(self) -> list[E]:
        return [edge for edge in self.edges.values() if edge.status == "active"]

    def prunable(self) -> list[UUID]:
        """Weakest first, each looking at the graph as the removals before it left it."""
        weak = [e for e in self.living() if e.now(self.at) < 0.05 and e.idle(self.at) >= 7]
        free = [e for e in weak if not e.protected and e.created_by != "user"]
        left = {e.id: e for e in self.living()}
        gone = []
        for edge in sorted(free, key=lambda e: (e.now(self.at), e.id)):
            others = [e for e in left.values() if e.id != edge.id]
            if connected(edge.source, edge.target, others):
                gone.append(edge.id)
                del left[edge.id]
        return gone

    def mergeable(self) -> list[list[E]]:
        """The winner first, of every pair of ends with more than one edge."""
        pairs: dict[frozenset[UUID], list[E]] = {}
        for edge in self.living():
            pairs.setdefault(edge.ends, []).append(edge)
        found = []
        for group in pairs.values():
            relations = {edge.relation for edge in group}
            if len(group) > 1 and not ("contradicts" in relations and len(relations) > 1):
                key = lambda e: (-e.now(self.at), e.created_by != "user", e.created_at, e.id)  # noqa: E731
                found.append(sorted(group, key=key))
        return found

    def merged(self, group: list[E]) -> dict[UUID, tuple[Patch, Patch]]:
        winner, *others = group
        strengths = [edge.now(self.at) for edge in group]
        after = {
            "strength": int(min(1.0, strengths[0] + 0.5 * sum(strengths[1:])) * 100 + 0.5) / 100,
            "activation_count": sum(edge.activation_count for edge in group),
            "reinforce_count": sum(edge.reinforce_count for edge in group),
            "last_activated_at": max((e.last_activated_at for e in group if e.last_activated_at), default=None),
            "last_reinforced_at": self.at,
            "protected": any(edge.protected or edge.created_by == "user" for edge in group),
            "merged_from": (*winner.merged_from, *((edge.id, edge.now(self.at), edge.merged_from) for edge in others)),
        }
        before = {column: getattr(winner, column) for column in after}
        changed = {column for column in after if after[column] != before[column]}
        if changed & {"strength", "last_reinforced_at"}:  # the one says nothing without the other
            changed |= {"strength", "last_reinforced_at"}
        patches: dict[UUID, tuple[Patch, Patch]] = {
            winner.id: ({c: before[c] for c in changed}, {c: after[c] for c in changed})
        }
        for edge in others:
            gone = {"status": "merged", "merged_into": winner.id}
            patches[edge.id] = ({"status": "active", "merged_into": None}, gone)
        return patches

    def differs(self, edge: UUID, before: Patch, *, undoing: bool) -> bool:
        there = self.edges[edge]
        compared = [column for column in before if not (undoing and column in USAGE)]
        return any(getattr(there, column) != before[column] for column in compared)

    def write(self, edge: UUID, before: Patch, after: Patch, *, undoing: bool, by: P) -> None:
        there = self.edges[edge]
        values = {column: self.value(there, column, before, after, undoing) for column in after}
        self.edges[edge] = replace(there, **values)
        self.writes += [(edge, column, by) for column in after if column not in USAGE]

    def set_by_hand(self, edge: UUID, column: str, value: Any) -> None:
        if getattr(self.edges[edge], column) != value:
            self.write(edge, {column: getattr(self.edges[edge], column)}, {column: value}, undoing=False, by=by_hand())

    def changed_back_since(self, plan: P, patches: list[tuple[UUID, Patch, Patch]]) -> bool:
        """Whether others whose doing stands made something else of it since, however it looks by now (P07)."""
        wrote = ((edge, column) for edge, _, after in patches for column in after if column not in USAGE)
        return any(self.standing_since(plan, [by for *what, by in self.writes if what == [*one]]) for one in wrote)

    def standing_since(self, plan: P, writers: list[P]) -> list[UUID]:
        last = max(place for place, by in enumerate(writers) if by.first.id == plan.first.id)
        standing: list[UUID] = []
        for by in writers[last + 1 :]:
            if by.undoes is not None and by.undoes.first.id in standing:
                standing.remove(by.undoes.first.id)
            else:
                standing.append(by.first.id)
        return standing

    def value(self, there: E, column: str, before: Patch, after: Patch, undoing: bool) -> Any:
        now, old, new = getattr(there, column), before[column], after[column]
        if undoing and column == "strength":
            return self.strength_taken_back(there, before, after)
        if not undoing or column not in USAGE or (now == old and not self.used_at_once(there, column, before)):
            return new
        if column.endswith("_count"):
            return max(0, now + new - old)
        return max((time for time in (now, new) if time), default=None)

    def used_at_once(self, there: E, column: str, before: Patch) -> bool:
        """A use in the very moment in which a plan set the strength shows in the strength alone (P19)."""
        return column == "last_reinforced_at" and before.get("strength", there.strength) != there.strength

    def strength_taken_back(self, there: E, before: Patch, after: Patch) -> float:
        """As it was; or, where it was used since, what it was and what the plan made of it faded to that use (P19)."""
        set_at = before.get("last_reinforced_at", there.last_reinforced_at)
        if there.strength == before["strength"] and there.last_reinforced_at == set_at:
            return float(after["strength"])
        was, made = (self.faded(there, side) for side in (after, before))
        return min(1.0, max(was, there.strength + was - made))

    def faded(self, there: E, side: Patch) -> float:
        used, set_at = there.last_reinforced_at or there.created_at, side.get("last_reinforced_at") or there.created_at
        return float(side["strength"]) * exp(-0.05 * max(0.0, (used - set_at).total_seconds() / 86_400))


def connected(a: UUID, b: UUID, edges: list[E]) -> bool:
    seen, todo = {a}, [a]
    while todo:
        here = todo.pop()
        for edge in edges:
            if here in edge.ends:
                (other,) = edge.ends - {here}
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
    return b in seen


LINKS = st.tuples(
    st.permutations(range(NODES)),
    st.sampled_from(["similar", "extends", "supports", "contradicts"]),
    st.sampled_from([0.04, 0.2, 0.5, 0.9]),
    st.sampled_from(["auto", "auto", "auto", "user"]),
    st.sampled_from([0, 3, 40]),
)


class Plans(RuleBasedStateMachine):
    """Random operations on the store and on the model side by side."""

    memory: ClassVar[Recollect]
    # Nodes and edges have the same ids each time: of two that are alike the id decides, and Hypothesis tries the same
    # steps again and again.
    ids: ClassVar[list[int]] = [0]

    @classmethod
    def next_id(cls) -> UUID:
        cls.ids[0] += 1
        return uuid5(NAMESPACE_OID, str(cls.ids[0]))

    def __init__(self) -> None:
        super().__init__()
        slug = f"p-{uuid4().hex[:12]}"
        self.memory.add_space(slug)
        self.there = self.memory.in_space(slug)
        self.model = Model()
        self.there.core.now = lambda: self.model.at
        self.ids[0] = 0
        new = [NewMemory(id=self.next_id(), text=f"node {n} {slug}") for n in range(NODES)]
        self.nodes = sorted(self.there.add_many(new, wait=False).ids)
        self.plans: list[P] = []
        self.last: dict[str, P] = {}

    def edge_of(self, data: st.DataObject) -> E:
        """A living edge, rather one that a plan has touched."""
        living = [edge.id for edge in self.model.living()]
        touched = {e for plan in self.plans for patches in plan.decisions.values() for e in patches}
        known = [edge for edge in living if edge in touched]
        prefer_known: bool = data.draw(st.booleans())
        return self.model.edges[data.draw(st.sampled_from(known if known and prefer_known else living))]

    @initialize(some=st.lists(LINKS, min_size=4, max_size=10))
    def a_graph(self, some: list[tuple[Any, ...]]) -> None:
        for one in some:
            self.link(one)

    @rule(one=LINKS)
    def link(self, one: tuple[Any, ...]) -> None:
        ends, relation, strength, by, age = one
        a, b = self.nodes[ends[0]], self.nodes[ends[1]]
        if any((e.source, e.target, e.relation) == (a, b, relation) for e in self.model.living()):
            return
        made = self.model.at - timedelta(days=age)
        wanted = NewEdge(source=a, target=b, relation=relation, strength=strength, created_by=by, created_at=made)
        (id_,) = self.there.graph.link_many([wanted])
        self.model.edges[id_] = E(id_, a, b, relation, strength, by, made)

    @rule(days=st.sampled_from([0.5, 6.9, 8, 60]))
    def wait(self, days: float) -> None:
        self.model.at += timedelta(days=days)

    @precondition(lambda self: self.model.living())
    @rule(data=st.data(), kind=st.sampled_from(["traversal", "revisit"]))
    def use(self, data: st.DataObject, kind: str) -> None:
        edge, at = self.edge_of(data), self.model.at
        self.there.graph.reinforce(edge.id, kind)
        walked = kind == "traversal"
        self.model.edges[edge.id] = replace(
            edge,
            strength=min(1.0, edge.now(at) + (0.05 if walked else 0.2)),
            last_reinforced_at=at,
            reinforce_count=edge.reinforce_count + 1,
            activation_count=edge.activation_count + walked,
            last_activated_at=at if walked else edge.last_activated_at,
        )

    @precondition(lambda self: self.model.living())
    @rule(data=st.data())
    def protect(self, data: st.DataObject) -> None:
        edge = self.edge_of(data)
        self.there.graph.protect(edge.id)
        self.model.set_by_hand(edge.id, "protected", True)

    @precondition(lambda self: self.model.living())
    @rule(data=st.data())
    def unlink(self, data: st.DataObject) -> None:
        edge = self.edge_of(data)
        self.there.graph.unlink(edge.id)
        self.model.set_by_hand(edge.id, "status", "pruned")

    @rule(at_once=st.booleans())
    def propose_pruning(self, at_once: bool) -> None:
        plan = self.there.plans.propose("prune", {"batch": 2})
        gone = self.model.prunable()
        assert sorted(one.subject for one in plan.decisions) == sorted(gone)
        patch = ({"status": "active"}, {"status": "pruned"})
        self.keep(P(plan.id, {one.number: {one.subject: patch} for one in plan.decisions}), "prune", at_once=at_once)

    @rule(at_once=st.booleans())
    def propose_merging(self, at_once: bool) -> None:
        plan = self.there.plans.propose("merge-edges")
        groups = {group[0].id: group for group in self.model.mergeable()}
        assert {one.subject for one in plan.decisions} == set(groups)
        decided = {one.number: self.model.merged(groups[one.subject]) for one in plan.decisions}
        self.keep(P(plan.id, decided, seen=dict(self.model.edges)), "merge-edges", at_once=at_once)

    def keep(self, plan: P, policy: str, *, at_once: bool) -> None:
        """P24: nothing to do is no plan; and one plan of a policy waits, the last."""
        if not plan.decisions:
            return
        if (before := self.last.get(policy)) is not None and before.status == "proposed":
            before.status = "over"
            with pytest.raises(Conflict, match=str(plan.id)):
                self.there.plans.apply(before.id)
        self.last[policy] = plan
        self.plans.append(plan)
        if at_once:
            self.carry_out(plan, declined=[])

    @precondition(lambda self: any(plan.status == "proposed" for plan in self.plans))
    @rule(data=st.data(), decline=st.booleans())
    def apply(self, data: st.DataObject, decline: bool) -> None:
        """What no longer fits is stale; what fits is done; the declined is left alone."""
        plan = data.draw(st.sampled_from([plan for plan in self.plans if plan.status == "proposed"]))
        declined = sorted(plan.decisions)[:1] if decline and len(plan.decisions) > 1 and self.is_pruning(plan) else []
        self.carry_out(plan, declined)

    def carry_out(self, plan: P, declined: list[int]) -> None:
        outcome = self.there.plans.apply(plan.id, decline=declined)
        told = {int(line.split(":")[0]) for line in outcome.stale}
        for number, patches in plan.decisions.items():
            moved = any(self.model.differs(edge, before, undoing=False) for edge, (before, _) in patches.items())
            fits = not moved and self.still_wanted(plan, number)
            if number in declined:
                continue
            assert (number in told) == (not fits), outcome
            if fits:
                for edge, (before, after) in patches.items():
                    self.model.write(edge, before, after, undoing=False, by=plan)
                plan.applied.add(number)
        assert outcome.applied == len(plan.applied)
        plan.status = "applied" if plan.applied else "over"
        again = self.there.plans.apply(plan.id) if outcome.status is not PlanStatus.STALE else None
        assert again is None or again.repeated

    def is_pruning(self, plan: P) -> bool:
        return all(len(patches) == 1 for patches in plan.decisions.values())

    def still_wanted(self, plan: P, number: int) -> bool:
        """The premises: still weak, idle and free, and no bridge among those that are left; or: still there."""
        if not hasattr(plan, "checked"):
            plan.checked = self.checked(plan)  # type: ignore[attr-defined]
        return number in plan.checked  # type: ignore[attr-defined]

    def checked(self, plan: P) -> set[int]:
        if not self.is_pruning(plan):
            return {number for number, patches in plan.decisions.items() if self.as_proposed(plan, patches)}
        free = set(self.prunable_of(plan))
        return {number for number, patches in plan.decisions.items() if set(patches) <= free}

    def as_proposed(self, plan: P, patches: Mapping[UUID, tuple[Patch, Patch]]) -> bool:
        there = [self.model.edges[edge] for edge in patches]
        ends = {there[0].source, there[0].target}
        between = {edge.id for edge in self.model.living() if {edge.source, edge.target} == ends}
        as_seen = all(edge.status == "active" and rests_on(edge) == rests_on(plan.seen[edge.id]) for edge in there)
        return as_seen and between == set(patches)

    def prunable_of(self, plan: P) -> list[UUID]:
        """Of the plan's own edges, those that may go now; what is not in the plan stays."""
        at, mine = self.model.at, {edge for patches in plan.decisions.values() for edge in patches}
        left = {e.id: e for e in self.model.living()}
        free = [
            e
            for e in left.values()
            if e.id in mine and e.now(at) < 0.05 and e.idle(at) >= 7 and not e.protected and e.created_by != "user"
        ]
        gone = []
        for edge in sorted(free, key=lambda e: (e.now(at), e.id)):
            if connected(edge.source, edge.target, [e for e in left.values() if e.id != edge.id]):
                gone.append(edge.id)
                del left[edge.id]
        return gone

    @precondition(lambda self: any(plan.status == "applied" for plan in self.plans))
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        """All of it, or a named conflict and nothing."""
        plan = data.draw(st.sampled_from([plan for plan in self.plans if plan.status == "applied"]))
        patches = [(edge, *pair) for n in plan.applied for edge, pair in plan.decisions[n].items()]
        blocked = any(self.model.differs(edge, after, undoing=True) for edge, _, after in patches)
        blocked = blocked or self.place_is_taken(patches) or self.keeper_is_gone(patches)
        blocked = blocked or self.model.changed_back_since(plan, patches)
        if blocked:
            with pytest.raises(Conflict):
                self.there.plans.undo(plan.id)
            return
        outcome = self.there.plans.undo(plan.id)
        turned: dict[UUID, tuple[Patch, Patch]] = {}
        back = P(outcome.plan_id, {1: turned}, {1}, "applied", plan)
        for edge, before, after in patches:  # an undo remembers what it found and what it made of it, use included
            found = {column: getattr(self.model.edges[edge], column) for column in before}
            self.model.write(edge, after, before, undoing=True, by=back)
            turned[edge] = (found, {column: getattr(self.model.edges[edge], column) for column in before})
        if plan.undoes is not None:
            self.count_use_since(plan, turned)
        plan.status = "undone"
        assert self.there.plans.undo(plan.id).repeated
        out = {edge: self.model.edges[edge] for edge, before, after in patches if after.get("merged_into")}
        back.use_then = out or plan.use_then
        self.plans.append(back)
        self.pass_on(plan, back)

    def count_use_since(self, undo: P, turned: dict[UUID, tuple[Patch, Patch]]) -> None:
        """P19: what goes into its keeper once more brings with it what it was used since it came out."""
        for edge, then in undo.use_then.items():
            there = self.model.edges[edge]
            if there.merged_into is None:
                continue
            keeper = self.model.edges[there.merged_into]
            counts = {c: getattr(keeper, c) for c in ("activation_count", "reinforce_count")}
            more = {c: count + getattr(there, c) - getattr(then, c) for c, count in counts.items()}
            self.model.edges[keeper.id] = replace(keeper, **more)
            before, after = turned[keeper.id]
            turned[keeper.id] = {**counts, **before}, {**after, **more}

    def pass_on(self, undone: P, by: P) -> None:
        """Taking back an undo makes what it had undone stand again, and what that one had undone fall once more."""
        stands = True
        while undone.undoes is not None:
            undone = undone.undoes
            undone.status = "applied" if stands else "undone"
            if stands:
                by = self.brought_again(undone, by)
            stands = not stands

    def brought_again(self, plan: P, by: P) -> P:
        """What stands again has found the use of this time."""
        found = {edge: pair for patches in by.decisions.values() for edge, pair in patches.items()}
        for patches in plan.decisions.values():
            for edge in patches.keys() & found.keys():
                sides = zip(patches[edge], found[edge], strict=True)
                before, after = ({**old, **{c: new[c] for c in USAGE if c in new}} for old, new in sides)
                patches[edge] = before, after
        return plan

    def keeper_is_gone(self, patches: list[tuple[UUID, Patch, Patch]]) -> bool:
        """What was merged comes out of its keeper, or goes into it again, only while that is no part of another."""
        keepers = {side["merged_into"] for _, *sides in patches for side in sides if side.get("merged_into")}
        return any(self.model.edges[keeper].merged_into is not None for keeper in keepers)

    def place_is_taken(self, patches: list[tuple[UUID, Patch, Patch]]) -> bool:
        """An edge cannot come back where another with its ends and relation lives now."""
        back = [self.model.edges[edge] for edge, before, _ in patches if before.get("status") == "active"]
        living = {(e.source, e.target, e.relation) for e in self.model.living()}
        return any((e.source, e.target, e.relation) in living for e in back)

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        rows = {row["id"]: row for row in fetched(self.there, f"SELECT id, {', '.join(COLUMNS)} FROM edges")}
        for id_, edge in self.model.edges.items():
            for column in COLUMNS:
                expected, found = getattr(edge, column), rows[id_][column]
                assert found == (pytest.approx(expected, abs=1e-9) if column == "strength" else expected), column

    @invariant()
    def nothing_is_lost_and_nothing_dangles(self) -> None:
        for edge in self.model.edges.values():
            if edge.status == "merged":
                assert edge.merged_into in self.model.edges
                assert edge.merged_into != edge.id


def test_P07_the_model_knows_who_changed_it_and_changed_it_back(settings_of_tests: Settings) -> None:
    """Pruned, taken back, brought again, taken back, pruned anew: the second of them has nothing left to take back."""
    with opened(settings_of_tests):
        state = Plans()
        for age in (0, 40):
            state.link(([0, 1, 2, 3], "similar" if age else "extends", 0.04, "auto", age))
        state.propose_pruning(at_once=True)
        prune = state.plans[0]
        for undone in (prune, None, prune):
            state.undo(Chosen(undone or state.plans[-1]))
        state.propose_pruning(at_once=True)
        state.undo(Chosen(state.plans[2]))
        state.the_store_is_as_the_model_says()
        assert [plan.status for plan in state.plans] == ["undone", "undone", "applied", "applied", "applied"]


@dataclass
class Chosen:
    """Draws one thing, whatever it is asked for."""

    plan: P

    def draw(self, _among: object) -> P:
        return self.plan


@contextmanager
def opened(settings: Settings) -> Iterator[None]:
    with Recollect(settings=settings, worker=False) as memory, patch.object(edges, "uuid4", Plans.next_id):
        Plans.memory = memory
        yield


def test_P12_plans_behave_as_the_model_of_the_rules(settings_of_tests: Settings) -> None:
    random.seed(7)
    with opened(settings_of_tests):
        run_state_machine_as_test(
            Plans,
            settings=settings(
                max_examples=12,
                stateful_step_count=20,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.fixture
def settings_of_tests(database_url: str) -> Settings:
    return Settings.load(database_url=database_url, embedder="hashing:64", pool_size=4)
