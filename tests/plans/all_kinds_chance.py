"""What a sequence of P25 does next: by chance, but not blindly.

Faults live where operations meet on the same rows, between showing and applying, between doing and taking back. Blind
chance seldom leads there: most of what it does touches rows that no plan knows of. So a sequence has a mood, which says
what it does often, and a few policies of its own; what it does, it does mostly to rows that plans know of; and a step
often brings others with it: what was shown is touched and then applied, what was done is used, taken back and brought
again. All is drawn from a seed and a number: a sequence can be played without those before it.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from tests.plans.all_kinds_machine import AllKinds

# An operation by its name, and what it is given.
Given = dict[str, Any]
Step = tuple[str, Mapping[str, Any]]

FEWEST, MOST = 4, 14
# How often something is done, in any mood; and how many times as often in each.
OFTEN = {
    "link": 3,
    "use": 4,
    "wait": 3,
    "change_an_edge": 5,
    "change_a_node": 5,
    "merge_concepts": 4,
    "something_else": 4,
    "propose": 6,
    "decline": 4,
    "apply": 8,
    "come_by_schedule": 2,
    "undo": 6,
}
MOODS: dict[str, dict[str, float]] = {
    "anything": {},
    "plans wait": {"propose": 3, "decline": 2, "apply": 3, "undo": 0.5, "link": 2},
    "back and forth": {"undo": 4, "propose": 2, "merge_concepts": 2, "something_else": 0.3},
    "time and use": {"use": 3, "wait": 3, "undo": 3, "propose": 2},
    "again and again": {"change_a_node": 3, "change_an_edge": 3, "undo": 3, "something_else": 0.3},
    "by itself": {"come_by_schedule": 6, "propose": 2, "apply": 2},
}
# What is drawn, and how often. Of links: what they say, how strong they are, by whom and how many days old.
RELATIONS = {"similar": 1, "extends": 1, "contradicts": 1}
STRENGTHS = {0.04: 3, 0.02: 1, 0.3: 2, 0.9: 1}
MAKERS = {"auto": 3, "user": 1}
TO_EDGES = {"unlink": 4, "protect": 1, "important": 1, "again": 1}
TO_NODES = {"forget": 3, "restore": 2, "protect": 1, "importance": 3}
ELSE = {"case": 2, "case back": 1, "outcome": 1, "page": 2, "recall": 1, "concept": 1, "say more": 2}
HOW = {
    "plainly": 8,
    "killed": 5,
    "by two": 1,
    "beside an unlink": 4,
    "beside a forget": 2,
    "beside a merge": 1,
    "beside an undo": 2,
}
# How often the same is done once more to the same.
AGAIN = {"use": 0.4, "change_an_edge": 0.3, "change_a_node": 0.5}
# What a step brings with it, most of the time. `touch` is one of the next; nothing drawn so brings more with it.
FOLLOWS: dict[str, Sequence[Sequence[str]]] = {
    "propose": (("touch", "apply"), ("touch", "apply"), ("touch", "touch", "apply"), ("propose", "decline", "apply")),
    "at once": (("use", "undo", "undo"), ("wait", "use"), ("touch", "undo")),
    "killed": (("come_by_schedule",), ("touch", "apply"), ("undo",)),
    "merge_concepts": (("propose", "undo", "apply"), ("undo",), ("propose", "touch", "apply")),
    "change_an_edge": (("merge_concepts", "undo an earlier one"), ("undo", "undo")),
    "change_a_node": (("change_a_node", "change_a_node", "undo"), ("undo",)),
}
TOUCHES = {
    "use": 3,
    "change_an_edge": 3,
    "change_a_node": 3,
    "link": 3,
    "merge_concepts": 2,
    "undo": 2,
    "decline": 1,
    "propose": 1,
    "wait": 1,
}
# How often a sequence has a policy of its own.
POLICIES = {"prune": 3, "merge-edges": 3, "duplicates": 3, "link": 2, "cases": 2, "topics": 1}
SCHEDULED = ("prune_weak_edges", "merge_parallel_edges")


class Now:
    """What there is, for whom must say what comes next."""

    def __init__(self, machine: "AllKinds") -> None:
        self.machine, self.world = machine, machine.world
        self.edges, self.nodes = machine.edges(), machine.nodes()
        self.waiting = machine.waiting()
        self.open = [place for place, id_ in enumerate(self.waiting) if id_ in self.world.open]
        self.undoable = machine.undoable()

    def can_be(self, name: str) -> bool:
        needs: dict[str, Collection[Any]] = {
            "use": self.edges,
            "change_an_edge": self.edges,
            "change_a_node": self.nodes,
            "decline": self.open,
            "apply": self.open,
            "undo": self.undoable,
            "undo an earlier one": self.undoable[1:],
        }
        return bool(needs.get(name, (True,)))

    @cached_property
    def known(self) -> Collection[UUID]:
        """Rows of plans that wait and of those that were last carried out, and what they hang on."""
        plans = [*self.waiting[-2:], *self.undoable[-2:]]
        rows = {id_ for plan in plans for id_ in self.world.plans[plan]["touched"]}
        living = self.world.living_edges()
        ends = {frozenset(self._ends(id_)) for id_ in rows & living.keys()}
        beside = {id_ for id_ in living if frozenset(self._ends(id_)) in ends}
        return rows | beside | {end for pair in ends for end in pair}

    def _ends(self, edge: UUID) -> Iterable[UUID]:
        row = self.world.edges[edge]
        return UUID(row["source"]), UUID(row["target"])

    def linked(self, edge: int) -> tuple[int, int]:
        """The places of the two nodes that an edge links."""
        a, b = self._ends(self.edges[edge])
        places = {id_: place for place, id_ in enumerate(self.nodes)}
        return places.get(a, 0), places.get(b, 1)


class Chance:
    """The dice of one sequence."""

    def __init__(self, seed: int, number: int) -> None:
        self.dice = random.Random(f"{seed} {number}")
        self.mood = self.dice.choice(sorted(MOODS))
        self.length = self.dice.randint(FEWEST, MOST)
        self.policies = list(dict.fromkeys(self.one(POLICIES) for _ in range(self.dice.randint(1, 3))))
        self.before: dict[str, Given] = {}
        self.todo: list[str] = []

    def begin(self, openings: Sequence[str]) -> Step:
        shown = self.dice.sample(self.policies, self.dice.randint(0, min(2, len(self.policies))))
        some = [self.a_link(self.dice.randrange(5), self.dice.randrange(5)) for _ in range(self.dice.randint(0, 4))]
        opening, chance = self.dice.choice(openings), self.dice.randrange(1000)
        return "begin", {"opening": opening, "some": some, "shown": shown, "chance": chance}

    def next(self, machine: "AllKinds") -> Step:
        """What a step before brings with it; else what can be done, as often as the mood has it."""
        now = Now(machine)
        while self.todo:
            name = self.todo.pop(0)
            name = self.one(TOUCHES) if name == "touch" else name
            if now.can_be(name):
                return self.drawn(name, now)
        mood = MOODS[self.mood]
        name = self.one({name: often * mood.get(name, 1) for name, often in OFTEN.items() if now.can_be(name)})
        step = self.drawn(name, now)
        self.todo = self.what_follows(*step)
        return step

    def drawn(self, name: str, now: Now) -> Step:
        if name == "undo an earlier one":
            return "undo", {"place": 1, "with_later": self.happens(0.3)}
        if name not in self.before or not self.happens(AGAIN.get(name, 0)):
            self.before[name] = DRAWS[name](self, now)
        return name, self.before[name]

    def what_follows(self, name: str, given: Mapping[str, Any]) -> list[str]:
        if name == "apply":
            name = "killed" if given["how"] == "killed" else "at once"
        elif given.get("at_once"):
            name = "at once"
        follows = FOLLOWS.get(name, ())
        return list(self.dice.choice(follows)) if follows and self.happens(0.7) else []

    def one(self, weighted: Mapping[Any, float]) -> Any:
        return self.dice.choices(list(weighted), weights=list(weighted.values()))[0]

    def happens(self, share: float) -> bool:
        return self.dice.random() < share

    def near(self, some: Sequence[UUID], now: Now) -> int:
        """The place of one of them: mostly of one that plans know of."""
        known = [place for place, id_ in enumerate(some) if id_ in now.known]
        return self.dice.choice(known) if known and self.happens(0.75) else self.any_of(some)

    def any_of(self, some: Sequence[UUID]) -> int:
        return self.dice.randrange(max(1, len(some)))

    def a_link(self, a: int, b: int) -> tuple[Any, ...]:
        relation, strength, by = self.one(RELATIONS), self.one(STRENGTHS), self.one(MAKERS)
        return a, b, relation, strength, by, self.dice.choice([0, 40])

    # -- what each operation is given

    def link(self, now: Now) -> Given:
        """Mostly beside another, in either direction."""
        ends = self.near(now.nodes, now), self.near(now.nodes, now)
        if now.edges and self.happens(0.6):
            ends = now.linked(self.near(now.edges, now))
        return {"some": [self.a_link(*(ends if self.happens(0.5) else reversed(ends)))]}

    def use(self, now: Now) -> Given:
        return {"place": self.near(now.edges, now), "kind": self.dice.choice(["revisit", "traversal"])}

    def wait(self, _now: Now) -> Given:
        return {"days": self.dice.choice([0.5, 8, 60])}

    def change_an_edge(self, now: Now) -> Given:
        return {"place": self.near(now.edges, now), "what": self.one(TO_EDGES)}

    def change_a_node(self, now: Now) -> Given:
        return {"place": self.near(now.nodes, now), "what": self.one(TO_NODES)}

    def merge_concepts(self, now: Now) -> Given:
        return {"place": self.near(now.machine.nodes("concept"), now)}

    def something_else(self, _now: Now) -> Given:
        return {"place": self.dice.randrange(100), "what": self.one(ELSE)}

    def propose(self, _now: Now) -> Given:
        policy, by = self.dice.choice(self.policies), self.dice.choice(["user", "schedule"])
        return {"policy": policy, "at_once": self.happens(0.3), "otherwise": self.happens(0.4), "by": by}

    def decline(self, now: Now) -> Given:
        return {
            "place": self.dice.choice(now.open),
            "at": self.dice.randrange(9),
            "never": self.happens(0.6),
            "back": self.happens(0.3),
        }

    def apply(self, now: Now) -> Given:
        how = self.one(HOW)
        at = self.near(now.nodes if "forget" in how or "merge" in how else now.edges, now)
        return {"place": self.dice.choice(now.open), "how": how, "at": at}

    def come_by_schedule(self, now: Now) -> Given:
        """Mostly of a plan that waits, or was broken off."""
        waiting = {now.world.plans[id_]["policy"] for id_ in now.waiting}
        mine = [name for name in SCHEDULED if name in waiting]
        return {"policy": self.dice.choice(mine or SCHEDULED)}

    def undo(self, now: Now) -> Given:
        """The last, mostly."""
        place = 0 if self.happens(0.5) else self.any_of(now.undoable)
        return {"place": place, "with_later": self.happens(0.4)}


DRAWS: dict[str, Callable[[Chance, Now], Given]] = {name: getattr(Chance, name) for name in OFTEN}
