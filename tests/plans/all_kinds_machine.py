"""The machine of P25: random operations of every kind on one space, in any order, against a real PostgreSQL.

It adds, links, uses, edits, merges, proposes, declines, applies (alone, killed between groups, by two at once, with
somebody who unlinks, forgets, merges or undoes in between, by schedule) and undoes, over memories, concepts, links,
cases, pages and topics at once; all_kinds_chance.py says what comes next, all_kinds.py what must hold. In the end
everything is undone, in a random order, by following what each conflict says must be undone first: every row is as it
was.

Every operation notes itself with what it was given: the steps of a sequence can be done again (`replay`).
"""

import asyncio
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial, wraps
from threading import Thread
from typing import Any, ClassVar
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect import Recollect
from recollect.engine.core import Core
from recollect.errors import Busy, Conflict, InvalidInput
from recollect.model import NewEdge, NewMemory, Space
from recollect.schedules import run as scheduled
from recollect.schedules.rules.timing import Timing
from recollect.schedules.run import Ran
from recollect.schedules.sql import schedules
from recollect.settings import Settings
from recollect.store.database import SCHEMA
from recollect.store.tables import metadata
from tests.plan_support import TWINS
from tests.plans.all_kinds import (
    Decided,
    Given,
    Key,
    World,
    components,
    decided,
    differences,
    done_wrong,
    faults,
    look,
    not_as_shown,
    not_given_back,
    strength_at,
)
from tests.plans.all_kinds_chance import Chance, Step
from tests.waiting import until_it_holds

START = datetime(2026, 1, 1, tzinfo=UTC)
GAINS = {"traversal": 0.05, "revisit": 0.2}
POLICIES: dict[str, dict[str, Any]] = {
    "prune": {"batch": 1},
    "merge-edges": {"batch": 1},
    "topics": {"min_cluster_size": 2},
    "duplicates": TWINS,
    "link": {"min_similarity": 0.5, "kinds": ["memory", "concept"]},
    "cases": {"recent_days": 0.0},
}
# The same with other options is another plan, which waits beside the first.
OTHERWISE: dict[str, dict[str, Any]] = {
    "prune": {"batch": 2},
    "merge-edges": {"batch": 2},
    "topics": {"min_cluster_size": 3},
    "duplicates": {"threshold": 0.51},
    "link": {"at_most": 4},
    "cases": {"batch": 7},
}
# No brake, and no gate before a scheduled run.
AT_ONCE: dict[str, Any] = {"brake_share": 1.0, "gate_min_edges": 0, "gate_min_days": 0}
# The tables of what every sequence begins with.
COPIED = ("nodes", "aliases", "embeddings", "activity", "lexicon", "term_stats", "spellings", "lexicon_totals")
SOMEBODY_WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
TEXT = "what carries it, whatever it is made of"
IN_SCHEMA = {"search_path": f"{SCHEMA},public"}
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Links between the nodes by number; weak ones are 40 days old, and made by the machine.
WEAK = (0.04, "auto", 40)
OPENINGS: dict[str, list[tuple[Any, ...]]] = {
    "a ring of weak links": [(a, (a + 1) % 4, "similar", *WEAK) for a in range(4)],
    "two ways everywhere": [
        (a, b, relation, *WEAK) for a, b in ((0, 1), (1, 2), (3, 0)) for relation in ("similar", "extends")
    ],
    "parallel links": [
        (0, 1, "similar", 0.5, "auto", 0),
        (1, 0, "extends", 0.3, "auto", 0),
        (3, 1, "similar", 0.3, "auto", 0),
        (3, 2, "similar", 0.9, "auto", 0),
        (3, 2, "extends", 0.3, "auto", 0),
    ],
    "around the same": [
        (2, 0, "similar", 0.5, "auto", 3),
        (3, 0, "extends", 0.3, "auto", 3),
        (4, 0, "similar", 0.3, "auto", 3),
        (2, 1, "extends", *WEAK),
        (1, 3, "extends", *WEAK),
    ],
    "little": [(0, 1, "similar", 0.5, "auto", 3)],
}


Operation = Callable[..., None]
# A sequence that failed: which it was, its steps, and what was wrong.
Failed = tuple[int, Sequence[Step], str]


def step(can_be: "Callable[[AllKinds], Any]" = lambda _machine: True) -> Callable[[Operation], Operation]:
    """Of an operation: it notes that it was done, unless it is part of another; where it cannot be done, nothing is
    (steps are played again without some of those before them)."""

    def of(operation: Operation) -> Operation:
        @wraps(operation)
        def noted(machine: "AllKinds", **given: Any) -> None:
            if machine.over or not can_be(machine):
                return
            if machine.inside:
                operation(machine, **given)
                return
            machine.steps.append((operation.__name__, given))
            machine.inside = True
            with machine.noticing():
                operation(machine, **given)
            machine.inside = False

        return noted

    return of


class Killed(Exception):
    """Nothing more is done, as after kill -9: what was committed stays."""


class AllKinds:
    """Random operations of every kind on one space."""

    memory: ClassVar[Recollect]
    other: ClassVar[Recollect]
    runner: ClassVar[asyncio.Runner]
    connection: ClassVar[asyncpg.Connection]
    dsn: ClassVar[str]
    # What every sequence begins with, made once: three concepts and two memories.
    first: ClassVar["AllKinds | None"] = None
    number: ClassVar[int] = 0
    # The sequences that failed. The first is the end, or all are wanted.
    failed: ClassVar[list[Failed]] = []
    wants_all: ClassVar[bool] = False

    def __init__(self) -> None:
        slug = f"p25-{uuid4().hex[:12]}"
        self.space_id = self.memory.add_space(slug).id
        if self.first:
            self.runner.run(copy_space(self.connection, self.first.space_id, self.space_id))
        self._there = self.memory.in_space(slug)
        self.at = START
        for one in (self.memory, self.other):
            one.core.now = lambda: self.at
        self.space = self._there.space
        self.given: Given = deepcopy(self.first.given) if self.first else Given()
        self.names: int = self.first.names if self.first else 0
        self.known: World | None = None
        self.order: list[UUID] = []
        self.chance = random.Random(0)
        self.steps: list[Step] = []
        self.inside = self.over = False

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """Whatever goes wrong in here is remembered with the steps that led to it, and ends the sequence."""
        try:
            yield
        except Exception as problem:
            self.over = True
            problem.add_note(f"sequence {AllKinds.number}: {self.steps}")
            AllKinds.failed.append((AllKinds.number, list(self.steps), str(problem) or repr(problem)))
            if not AllKinds.wants_all:
                raise

    def do(self, one: Step) -> None:
        name, given = one
        getattr(self, name)(**given)
        self.nothing_is_wrong()

    # -- looking

    @cached_property
    def elsewhere(self) -> Recollect:
        """The same space, as another process has it."""
        return self.other.in_space(self.space.slug)

    @property
    def there(self) -> Recollect:
        """The space; whoever asks for it may change it."""
        self.known = None
        return self._there

    @property
    def world(self) -> World:
        """As it is now; plans are known in the order in which they came."""
        if self.known is None:
            self.known = self.runner.run(look(self.connection, self.space_id))
            self.order += [id_ for id_ in self.known.plans if id_ not in self.order]
        return self.known

    def same(self, before: World, why: str, *, but: Iterable[Key] = ()) -> None:
        """Nothing has changed since, use aside, but for some rows."""
        moved = differences(before, self.world, but=but)
        assert moved == [], f"{why}: {moved}"

    def give(self, verb: Callable[[], Any]) -> Any:
        """Do something that only adds."""
        before = self.world
        done = verb()
        self.given.take(before, self.world)
        return done

    def nodes(self, kind: str | None = None, status: str = "active") -> list[UUID]:
        """In the order in which they came: ids are random."""
        found = [
            (row["created_at"], str(row["name"] or row["text"]), id_)
            for id_, row in self.world.nodes.items()
            if row["status"] == status and kind in (None, row["kind"])
        ]
        return [id_ for *_, id_ in sorted(found)]

    def edges(self) -> list[UUID]:
        """The living ones, in an order that does not hang on ids: by when they came and what they joined then."""
        names = {id_: row["name"] or row["text"] for id_, row in self.world.nodes.items()}
        living = self.world.living_edges
        found = [
            (made["created_at"], names[UUID(made["source"])], names[UUID(made["target"])], made["relation"], str(id_))
            for id_, row in living.items()
            for made in [self.given.rows.get(("edges", id_), row)]
        ]
        return [UUID(id_) for *_, id_ in sorted(found)]

    def waiting(self) -> list[UUID]:
        """Such as can be applied: waiting, or broken off."""
        open_ = ("proposed", "approved", "partly_applied")
        return [id_ for id_ in self.order if self.world.plans[id_]["status"] in open_]

    # -- adding and using

    @step()
    def begin(
        self, opening: str, some: Sequence[tuple[Any, ...]] = (), shown: Sequence[str] = (), chance: int = 0
    ) -> None:
        """Few nodes, so that much meets: three concepts, two memories, a graph with work to do, plans that wait."""
        self.chance = random.Random(chance)
        self.link(some=[*OPENINGS[opening], *some])
        for policy in shown:
            self.propose(policy=policy)

    def add_what_all_begin_with(self) -> None:
        texts = ["a memory about tea", "a memory about tea too"]
        self.give(lambda: self.there.add_many([NewMemory(text=text, created_at=START) for text in texts]))
        for _ in range(3):
            self.add_concept(same=True)

    def add_concept(self, same: bool) -> None:
        self.names += 1
        text = TEXT if same else f"something else, the {self.names}th of its kind"
        name, energy = f"idea {'abcdefghijklmnopqrstuvwxyz'[self.names % 26] * 3}", {"mind": 0.25}
        self.given.energy.update(energy)
        self.give(lambda: self.there.concepts.add(name, text=text, energy=energy))

    def say_more_of_a_concept(self, place: int) -> None:
        """C31: a join on adding is a node of its own, merged by a plan."""
        some = self.nodes("concept")
        known = self.world.nodes[some[place % len(some)]]
        before = self.world
        maker = f"maker {place}"
        formed = self.there.concepts.add(known["name"], text=known["text"], created_by=maker, threshold=0.9)
        after = self.world
        self.given.take(before, after)
        kept = [row for row in after.nodes.values() if (row["text"], row["source"]) == (known["text"], maker)]
        assert kept, "C31: what was said, or who said it, is lost"
        if formed.plan_id is not None:  # had it not been joined, it would be a concept like any other
            (new,) = after.nodes.keys() - before.nodes.keys()
            row = after.nodes[new]
            self.given.rows["nodes", new] = {**row, "status": "active", "merged_into": None, "recallable": True}

    @step()
    def link(self, some: list[tuple[Any, ...]]) -> None:
        """New links; not where one was before, which could then not come back. (That is P20's, and tested there.)"""
        nodes = self.nodes()
        taken = {(edge["source"], edge["target"], edge["relation"]) for edge in self.world.edges.values()}
        wanted = []
        for first, second, relation, strength, by, age in some if len(nodes) > 1 else ():
            a, b = nodes[first % len(nodes)], nodes[second % len(nodes)]
            if a == b or (str(a), str(b), relation) in taken:
                continue
            taken.add((str(a), str(b), relation))
            made, topics = self.at - timedelta(days=age), {"source_topic": "tag:one", "target_topic": "tag:two"}
            told = {"strength": strength, "created_by": by, "created_at": made, **topics}
            wanted.append(NewEdge(source=a, target=b, relation=relation, **told))
        if wanted:
            self.give(lambda: self.there.graph.link_many(wanted))

    @step(lambda self: self.edges())
    def use(self, place: int, kind: str) -> None:
        edge = self.edges()[place % len(self.edges())]
        strength = strength_at(self.world.edges[edge], self.at)
        self.there.graph.reinforce(edge, kind)
        self.used(edge, strength, kind)

    def used(self, edge: UUID, strength: float, kind: str) -> None:
        """No edge is stronger than 1: what a use would have added beyond that is added nowhere (A00b)."""
        gain = min(GAINS[kind], 1.0 - strength)
        self.given.uses[edge].use(gain, self.at, walks=kind == "traversal")

    @step()
    def wait(self, days: float) -> None:
        self.at += timedelta(days=days)

    # -- by hand

    @step(lambda self: self.edges())
    def change_an_edge(self, place: int, what: str) -> None:
        edge = self.edges()[place % len(self.edges())]
        row = self.world.edges[edge]
        if what == "unlink":
            self.there.graph.unlink(edge)
        elif what == "protect":
            self.there.graph.protect(edge)
        elif what == "important":
            self.there.graph.reinforce(edge, "important")
        else:
            ends = UUID(row["source"]), UUID(row["target"])
            again = NewEdge(source=ends[0], target=ends[1], relation=row["relation"], confidence=0.9)
            with suppress(Conflict):
                self.there.graph.link_many([again])

    @step(lambda self: self.nodes())
    def change_a_node(self, place: int, what: str) -> None:
        archived = self.nodes(status="archived")
        if what == "restore" and archived:
            self.there.restore(archived[place % len(archived)])
            return
        node = self.nodes()[place % len(self.nodes())]
        row, importance = self.world.nodes[node], round(self.chance.random(), 3)
        if what == "forget":
            self.there.forget(node)
        elif what == "protect" and row["kind"] == "concept":
            self.there.concepts.protect(node)
        else:
            self.there.edit(node, importance=importance)

    @step(lambda self: len(self.nodes("concept")) > 1)
    def merge_concepts(self, place: int) -> None:
        some = self.nodes("concept")
        keep, other = some[place % len(some)], some[(place + 1) % len(some)]
        seen = self.world
        with suppress(Conflict):
            outcome = self.there.concepts.merge(keep, other)
            self.judge([outcome.plan_id], seen)

    # -- cases and pages

    def add_case(self, place: int) -> None:
        asked, category = f"How is the tea made that number {place % 2} likes?", f"tea/{place % 2}"
        self.names += 1
        self.give(lambda: self.there.cases.add(asked, "With water.", category_path=category))

    def touch_a_case(self, place: int, what: str) -> None:
        """One that rests or was merged comes back; or it is said how one did."""
        resting = [id_ for status in ("archived", "merged") for id_ in self.nodes("case", status)]
        some = resting if what == "case back" else self.nodes("case")
        if not some:
            return
        with suppress(Conflict):
            if what == "case back":
                self.there.cases.restore(some[place % len(some)])
            else:
                self.there.cases.record_outcome(some[place % len(some)], bool(place % 3))

    def import_pages(self, place: int) -> None:
        body = "A page about tea, and how water is boiled.\n"
        files = [(f"heuristics/tea_{place % 3}.md", f"# Tea {place % 3}\n\n{body * (1 + place % 2)}")]
        with suppress(InvalidInput):
            self.there.pages.import_texts(files)

    def recall(self, place: int) -> None:
        """It uses the edges that it walks: as many times as their counts say, and by nothing else."""
        before = self.world.edges
        self.there.recall(("tea", TEXT)[place % 2])
        for id_, row in self.world.edges.items():
            for _ in range(row["reinforce_count"] - before[id_]["reinforce_count"]):
                self.used(id_, strength_at(before[id_], self.at), "traversal")

    @step()
    def something_else(self, place: int, what: str) -> None:
        if what == "case":
            self.add_case(place)
        elif what in ("case back", "outcome"):
            self.touch_a_case(place, what)
        elif what == "page":
            self.import_pages(place)
        elif what == "recall":
            self.recall(place)
        elif what == "concept":
            self.add_concept(same=bool(place % 2))
        elif self.nodes("concept"):
            self.say_more_of_a_concept(place)

    # -- plans

    @step()
    def propose(self, policy: str, at_once: bool = False, otherwise: bool = False, by: str = "user") -> None:
        before = self.world
        options = POLICIES[policy] | (OTHERWISE[policy] if otherwise else {})
        plan = self.there.plans.propose(policy, options, created_by=by)
        self.same(before, "a proposal changes nothing")
        if at_once and plan.decisions and plan.counts.get("proposed"):
            self.carry_out(plan.id)

    @step(lambda self: self.waiting())
    def decline(self, place: int, at: int = 0, never: bool = False, back: bool = False) -> None:
        id_ = self.waiting()[place % len(self.waiting())]
        waiting = [one for one in self.there.plans.get(id_).decisions if one.status == "proposed"]
        if not waiting:
            return
        one = waiting[at % len(waiting)]
        before = self.world
        self.there.plans.decline(id_, [one.number], never=never)
        if back and self.there.plans.get(id_, decisions=False).counts.get("proposed"):
            self.there.plans.accept(id_, [one.number])
        elif never and "pair" in one.factors:
            self.given.never.add(frozenset(one.factors["pair"]))
        self.same(before, "a no changes nothing but the plan")

    @step(lambda self: self.waiting())
    def apply(self, place: int, how: str = "plainly", at: int = 0) -> None:
        id_ = self.waiting()[place % len(self.waiting())]
        if how == "killed":
            self.kill_between_groups(id_)
        elif how == "by two":
            self.by_two(id_)
        elif how.startswith("beside"):
            self.beside(id_, how.rsplit(" ", 1)[1], at)
        else:
            self.carry_out(id_)

    def carry_out(self, id_: UUID) -> None:
        """Whoever applies twice has applied once."""
        seen = self.world
        if not self.applied(id_):
            return
        self.judge([id_], seen)
        if self.chance.random() < 0.7:
            return
        after = self.world
        self.applied(id_)
        self.same(after, "applying twice is applying once")

    def applied(self, id_: UUID, **more: Any) -> bool:
        """A plan that was replaced, declined or taken back meanwhile says so, and changes nothing."""
        before = self.world
        try:
            if self.world.plans[id_]["policy"] == "merge_pages":
                self.there.pages.apply(id_)
            else:
                self.there.plans.apply(id_, **more)
        except Conflict as problem:
            self.is_in_words(problem)
            self.same(before, "what is refused changes nothing")
            return False
        return True

    def kill_between_groups(self, id_: UUID) -> None:
        """P22: what is shown of it is counted as it stands."""
        seen = self.world

        def die(done: int, _total: int) -> None:
            if done:
                raise Killed

        with suppress(Killed):
            self.applied(id_, progress=die)
        self.judge([id_], seen)
        shown = self.there.plans.get(id_)
        states = [one.status.value for one in shown.decisions]
        assert shown.counts == {state: states.count(state) for state in set(states)}, "P22: counted as it is"

    def by_two(self, id_: UUID) -> None:
        """Two that apply the same plan at once: it is done once."""
        seen = self.world
        if seen.plans[id_]["policy"] == "merge_pages":
            return
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(one.plans.apply, id_) for one in (self.there, self.elsewhere)]
        for one in both:
            assert one.exception() is None or isinstance(one.exception(), Conflict | Busy), one.exception()
        self.judge([id_], seen)

    def beside(self, id_: UUID, what: str, place: int) -> None:
        """Somebody else takes something out of the graph between two groups; or wants to bring it back or to merge, for
        which one waits until the last group is written."""
        between: list[World] = []
        others: list[Future[object]] = []
        todo = self.to_do_elsewhere(what, place)

        def go_on(done: int, _total: int) -> None:
            if done and not others:
                others.append(pool.submit(todo))
                seen = asyncio.run(look_beside(self.dsn, self.space_id, others[0]))
                between.extend([seen] if others[0].done() else [])

        with ThreadPoolExecutor(1) as pool:
            self.applied(id_, progress=lambda *far: run_elsewhere(go_on, *far))
            for other in others:
                with suppress(Conflict, InvalidInput):  # such as: they are one concept already
                    other.result()
        self.known = None
        self.follow_what_was_made()
        if between and self.world.plans[id_]["policy"] == "prune_weak_edges":
            assert components(between[0]) == components(self.world), "P17: pruning cut what hung together"

    def to_do_elsewhere(self, what: str, place: int) -> Callable[[], object]:
        """What it will be is chosen before: the machine does not look while a plan is being applied."""
        elsewhere, edges, nodes = self.elsewhere, self.edges(), self.nodes()
        concepts, standing = self.nodes("concept"), self.undoable()
        if what == "unlink" and edges:
            return partial(elsewhere.graph.unlink, edges[place % len(edges)])
        if what == "forget" and nodes:
            return partial(elsewhere.forget, nodes[place % len(nodes)])
        if what == "merge" and len(concepts) > 1:
            keep, other = (concepts[at % len(concepts)] for at in (place, place + 1))
            return partial(elsewhere.concepts.merge, keep, other)
        if what == "undo" and standing:
            return partial(elsewhere.plans.undo, standing[-1 - place % len(standing)])
        return lambda: None

    @step()
    def come_by_schedule(self, policy: str) -> None:
        """P22: a scheduled run says what it did, of plans too that an earlier one had left."""
        seen = self.world
        ran = self.there._portal.call(partial(scheduled_now, self._there.core, self.space, policy))
        done = self.world.applied - seen.applied
        assert ran.report["applied"] == len(done), f"P22: {len(done)} were done, and it said: {ran.outcome}"
        self.judge({plan for plan, _ in done}, seen)

    def decided(self, plans: Iterable[UUID]) -> list[Decided]:
        return self.runner.run(decided(self.connection, self.space_id, plans))

    def judge(self, plans: Collection[UUID], seen: World) -> None:
        """What was just carried out was shown, was still wanted, and touched nothing else."""
        after = self.world
        wrong, rows, written = [], set[Key](), dict[tuple[Key, str], Any]()
        for one in self.decided(plans):
            if (one.plan, one.number) in seen.applied:
                continue
            wrong += done_wrong(one, after.plans[one.plan]["policy"], seen, self.given)
            rows |= {key for key, _ in one.written}
            written |= {(key, name): value for key, after_ in one.written for name, value in after_.items()}
        assert wrong == [], f"P16: {wrong}"
        made = {key for key in after.rows.keys() - seen.rows.keys() if key[0] in ("activity", "aliases", "cases")}
        self.same(seen, "P02: it changed what it had not shown", but=rows | made)
        assert (other := not_as_shown(written, after)) == [], f"P02: it is not as it was shown: {other}"
        self.follow_what_was_made()
        if {after.plans[id_]["policy"] for id_ in plans} == {"prune_weak_edges"}:
            assert components(seen) == components(after), "P17: pruning cut what hung together"

    def follow_what_was_made(self) -> None:
        """Edges that a plan made are used like any other."""
        for id_, row in self.world.edges.items():
            self.given.follow(id_, row)

    # -- undo

    @step(lambda self: self.undoable())
    def undo(self, place: int, with_later: bool = False) -> None:
        """All of it, or a conflict that names a plan which stands, and nothing changed."""
        standing = self.undoable()
        id_ = standing[-1 - place % len(standing)]
        if self.taken_back(id_) in self.world.plans and with_later:
            self.take_back_with_later(id_)

    def take_back_with_later(self, id_: UUID) -> None:
        """All that stands in the way is taken back too, unless that is an edge which somebody has made by hand."""
        before = self.world
        try:
            self.there.plans.undo(id_, with_later=True)
        except Conflict as problem:
            self.is_in_words(problem)
            self.same(before, "a conflict changes nothing")
            self.names_an_edge(str(problem))
        else:
            assert id_ not in self.world.standing, "P18: it was taken back, and stands"

    def names_an_edge(self, problem: str) -> None:
        made = self.given.rows.keys() & {("edges", UUID(one)) for one in UUIDS.findall(problem)}
        assert made, f"P18: the conflict names no edge that somebody made: {problem}"

    def undoable(self) -> list[UUID]:
        """Plans that stand, and of the undoings of one plan the last: what an earlier one brought again may have been
        written by another plan since, with the same values (values are compared, not who wrote them)."""
        last: dict[UUID, UUID] = {}
        for id_ in self.order:
            last[self.root(id_)] = id_
        standing = self.world.standing
        return [id_ for id_ in self.order if id_ in standing and id_ in (self.root(id_), last[self.root(id_)])]

    def root(self, id_: UUID) -> UUID:
        undoes = self.world.plans[id_]["undoes"]
        return id_ if undoes is None else self.root(undoes)

    def taken_back(self, id_: UUID) -> UUID | None:
        """None when it was done; else the plan that must be undone first."""
        before = self.world
        rows = {key for one in self.decided([id_]) for key, _ in one.written}
        try:
            self.there.plans.undo(id_)
        except Conflict as problem:
            self.same(before, "a conflict changes nothing")
            return self.advised(id_, problem)
        self.same(before, "an undo touches nothing but what its plan did", but=rows)
        self.is_sound()
        return None

    def advised(self, id_: UUID, problem: Conflict) -> UUID:
        """P18: what stands in the way is a plan that still stands, or an edge that somebody has made since."""
        self.is_in_words(problem)
        named = [UUID(one) for one in UUIDS.findall(str(problem))]
        plans = [one for one in named if one in self.world.plans and one != id_]
        edges = [one for one in named if one in self.edges()]
        assert plans or edges, f"P18: the conflict names no plan, and no edge: {problem}"
        assert not plans or plans[0] in self.world.standing, f"P18: the plan to undo first does not stand: {problem}"
        return (plans or edges)[0]

    def is_in_words(self, problem: Exception) -> None:
        """P20: nobody reads a database's own words."""
        for word in ("was refused", "constraint", "violates", "duplicate key", "asyncpg", "foreign key"):
            assert word not in str(problem), problem

    # -- what must hold

    def nothing_is_wrong(self) -> None:
        if not self.over:
            with self.noticing():
                self.is_sound()

    def is_sound(self) -> None:
        wrong = faults(self.world, self.given)
        assert wrong == [], wrong

    def teardown(self) -> None:
        """Undo everything, in any order, as the conflicts say: every row is as it was."""
        if not self.given.rows or self.over:
            return
        with self.noticing():
            self.undo_all()
            wrong = not_given_back(self.world, self.given, self.at)
            assert wrong == [], wrong
            self.is_sound()

    def undo_all(self) -> None:
        most = 3 * len(self.world.plans) + 5
        for _ in range(most):
            todo = [id_ for id_ in self.order if id_ in self.world.standing and not self.world.plans[id_]["undoes"]]
            if not todo:
                return
            self.undo_with_what_is_in_the_way(self.chance.choice(todo), most)
        raise AssertionError("undoing everything does not end")

    def undo_with_what_is_in_the_way(self, id_: UUID, most: int) -> None:
        """P18: following the advice leads somewhere."""
        chain = [id_]
        for _ in range(most):
            first = self.taken_back(chain[-1])
            if first is None:
                chain.pop()
                if not chain or chain[-1] not in self.world.standing:
                    return
            else:
                assert first in self.world.plans, f"P18: {chain[-1]} cannot be undone, for the edge {first}"
                assert first not in chain, f"P18: the advice leads in a circle: {[*chain, first]}"
                chain.append(first)
        raise AssertionError(f"P18: the advice does not end: {chain}")


async def scheduled_now(core: Core, space: Space, policy: str) -> Ran:
    """One run of what is due at this moment."""
    timing = Timing(every_minutes=60)
    due = replace(scheduled.timed(core, space.id, space.slug, policy, timing), next_run_at=core.now())
    async with core.database.owner() as connection:
        await schedules.save(connection, due)
    ran = await scheduled.run(core, due)
    assert ran is not None
    return ran


async def copy_space(connection: asyncpg.Connection, first: UUID, to: UUID) -> None:
    """All that is in a space, into one that is empty (ids are a space's own): cheaper than making it anew."""
    statements = [
        f"""UPDATE spaces s SET embedding_model = f.embedding_model, settings = f.settings FROM spaces f
             WHERE s.id = '{to}' AND f.id = '{first}'"""
    ]
    for table in COPIED:
        columns = ", ".join(f'"{one.name}"' for one in metadata.tables[table].c if one.computed is None)
        others = columns.removeprefix('"space_id", ')
        statements.append(
            f"""INSERT INTO {table} (space_id, {others}) SELECT '{to}', {others} FROM {table}
                 WHERE space_id = '{first}' ON CONFLICT DO NOTHING"""
        )
    await connection.execute(";".join(statements))


def run_elsewhere(do: Callable[[int, int], None], done: int, total: int) -> None:
    """In a thread without a loop of its own."""
    thread = Thread(target=do, args=(done, total))
    thread.start()
    thread.join()


async def look_beside(dsn: str, space_id: UUID, doing: Future[object]) -> World:
    """The space as it is once somebody has done something there, or waits for another to be done."""
    connection = await asyncpg.connect(dsn, server_settings=IN_SCHEMA)

    async def is_done_or_waits() -> bool:
        return doing.done() or await connection.fetchval(SOMEBODY_WAITS)

    try:
        await until_it_holds(is_done_or_waits)
        return await look(connection, space_id)
    finally:
        await connection.close()


@contextmanager
def opened(database_url: str) -> Iterator[None]:
    """The machine has its memories; groups of plans are written one by one, so that there is a between."""
    chosen = Settings.load(database_url=database_url, embedder="hashing:64", pool_size=2, **AT_ONCE)
    with (
        pytest.MonkeyPatch.context() as patch,
        Recollect(settings=chosen, worker=False) as AllKinds.memory,
        Recollect(settings=chosen, worker=False) as AllKinds.other,
        asyncio.Runner() as AllKinds.runner,
    ):
        patch.setattr("recollect.plans.apply.MOST_TOGETHER", 1)
        AllKinds.dsn = AllKinds.memory.core.database.dsn
        AllKinds.connection = AllKinds.runner.run(asyncpg.connect(AllKinds.dsn, server_settings=IN_SCHEMA))
        AllKinds.first = None
        first = AllKinds()
        first.add_what_all_begin_with()
        AllKinds.first = first
        yield
        AllKinds.runner.run(AllKinds.connection.close())


def play(seed: int, sequences: Iterable[int], *, on_and_on: bool = False) -> None:
    """Sequences by their numbers, always the same ones for a seed. What fails is in `AllKinds.failed`, as it was; the
    first is the end, unless it is to go `on_and_on`."""
    AllKinds.failed, AllKinds.wants_all = [], on_and_on
    for AllKinds.number in sequences:
        machine, chance = AllKinds(), Chance(seed, AllKinds.number)
        machine.do(chance.begin(sorted(OPENINGS)))
        for _ in range(chance.length):
            if machine.over:
                break
            machine.do(chance.next(machine))
        machine.teardown()


def replay(steps: Iterable[Step]) -> None:
    """Do some steps again, as they were done."""
    AllKinds.failed, AllKinds.wants_all = [], False
    machine = AllKinds()
    for one in steps:
        machine.do(one)
    machine.teardown()
