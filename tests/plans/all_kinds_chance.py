"""What a sequence of P25 does next: by chance, but not blindly.

Faults live where operations meet on the same rows, between showing and applying, between doing and taking back. Blind
chance seldom leads there: most of what it does touches rows that no plan knows of. So a sequence has a mood, which says
where kinds are to meet: some policies, where it begins, and ways that it goes again and again (something is shown,
something is touched, what was shown is applied). What it does on a way, and to which rows, is left to chance, which
mostly picks such as plans know of. All is drawn from a seed and a number: a sequence can be played without those
before it.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.plans.all_kinds import strength_at

if TYPE_CHECKING:
    from tests.plans.all_kinds_machine import AllKinds

# An operation by its name, and what it is given.
Given = dict[str, Any]
Step = tuple[str, Mapping[str, Any]]

FEWEST, MOST = 4, 11
# How often a way is gone, where there is none under way; else something is done that is on no way.
ON_A_WAY = 0.75
# How often something is done that is on no way, in any mood.
OFTEN = {
    "link": 3,
    "use": 4,
    "wait": 3,
    "change_an_edge": 5,
    "change_a_node": 5,
    "merge_concepts": 4,
    "something_else": 6,
    "propose": 6,
    "decline": 4,
    "apply": 8,
    "come_by_schedule": 2,
    "undo": 6,
}
# What is drawn, and how often. Of links: what they say, how strong they are, by whom and how many days old.
RELATIONS = {"similar": 1, "extends": 1, "contradicts": 1.5}
STRENGTHS = {0.04: 3, 0.02: 1, 0.3: 2, 0.9: 1}
MAKERS = {"auto": 3, "user": 1}
TO_EDGES = {"unlink": 4, "protect": 1, "important": 1, "again": 1}
TO_NODES = {"forget": 3, "restore": 1, "protect": 1, "importance": 3}
ELSE = {"case": 2, "case back": 1, "outcome": 1, "page": 2, "recall": 1, "concept": 1, "say more": 2}
BESIDE = {"beside an unlink": 4, "beside a forget": 2, "beside a merge": 1, "beside an undo": 2}
HOW = {"plainly": 12, "killed": 4, "by two": 1, **BESIDE}
# What is done to what a plan has shown, before that is applied.
TOUCHES = {
    "use": 3,
    "change_an_edge": 3,
    "change_a_node": 3,
    "link": 4,
    "merge_concepts": 2,
    "undo": 2,
    "decline": 1,
    "propose": 1,
    "wait": 1,
}
# How often a sequence has a policy of its own.
POLICIES = {"prune": 3, "merge-edges": 3, "duplicates": 3, "link": 2, "cases": 2, "topics": 1}
# Below which an edge may be pruned.
WEAK = 0.05
SCHEDULED = ("prune_weak_edges", "merge_parallel_edges")
# Words that follow each other: an operation, or one of WORDS, which leave less of it to chance.
Way = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Mood:
    """Where kinds are to meet: the ways, with which policies, from where; none of these is any."""

    ways: Sequence[Way]
    policies: Mapping[str, float] = field(default_factory=lambda: POLICIES)
    openings: Sequence[str] = ()


MOODS = (
    # Somebody touches what a plan has shown.
    Mood(
        ways=[
            ("show", "touch", "apply plainly"),
            ("show", "touch", "touch", "apply plainly"),
            ("show", "link", "apply plainly"),
            ("show", "change_a_node", "apply plainly"),
        ],
    ),
    # Two plans about the same wait beside each other.
    Mood(
        ways=[("show", "show otherwise", "say never", "apply the other"), ("show", "show otherwise", "apply", "apply")],
        policies={"duplicates": 4, "merge-edges": 2, "prune": 1, "cases": 1},
    ),
    # Links move with their nodes, and back.
    Mood(
        ways=[
            ("merge_concepts", "show", "take back", "apply plainly"),
            ("unlink", "merge_concepts", "take back an earlier one"),
            ("do", "merge_concepts", "take back an earlier one"),
            ("show", "merge_concepts", "apply plainly"),
            ("merge_concepts", "take back", "merge_concepts", "take back"),
        ],
        policies={"merge-edges": 4, "prune": 1, "duplicates": 1},
        openings=["around the same"],
    ),
    # What a plan has shown is used, or gets company.
    Mood(
        ways=[("show", "use", "apply plainly"), ("show", "link", "apply plainly")],
        policies={"merge-edges": 4, "link": 1, "duplicates": 1},
        openings=["parallel links", "around the same"],
    ),
    # What a plan has made is used later.
    Mood(
        ways=[("do", "wait", "use"), ("do", "wait", "use", "take back")],
        policies={"merge-edges": 4, "link": 1, "duplicates": 1},
        openings=["parallel links"],
    ),
    # What was done is taken back and brought again.
    Mood(
        ways=[
            ("do", "use", "take back", "bring again"),
            ("do", "take back", "use", "bring again", "take back"),
            ("do", "use", "take back", "touch", "bring again"),
        ],
        policies={"link": 3, "merge-edges": 3, "duplicates": 2, "topics": 1},
    ),
    # One row is changed again and again.
    Mood(
        ways=[
            ("weigh", "again", "again", "take back", "take back an earlier one"),
            ("weigh", "again", "again", "again", "take back an earlier one", "take back an earlier one"),
            ("change_a_node", "again", "take back", "bring again", "take back an earlier one"),
            ("change_an_edge", "again", "take back", "bring again"),
        ],
    ),
    # Somebody else comes in between two groups.
    Mood(
        ways=[("show", "apply beside somebody"), ("show", "touch", "apply beside somebody")],
        policies={"prune": 4, "merge-edges": 1, "duplicates": 1},
        openings=["two ways everywhere", "a ring of weak links"],
    ),
    # The end comes in between two groups.
    Mood(
        ways=[
            ("show by schedule", "break off", "come_by_schedule"),
            ("show", "break off", "touch", "apply"),
            ("show", "break off", "take back"),
        ],
        policies={"prune": 2, "merge-edges": 3, "duplicates": 1},
        openings=["two ways everywhere", "parallel links", "around the same"],
    ),
    # Whatever comes.
    Mood(
        ways=[
            ("something_else", "something_else"),
            ("something_else", "show", "apply", "take back"),
            ("touch", "take back"),
        ]
    ),
)


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
        }
        return bool(needs.get(name, (True,)))

    @cached_property
    def latest(self) -> Collection[UUID]:
        """Rows of the plan that came last."""
        return self._around(self.machine.order[-1:])

    @cached_property
    def known(self) -> Collection[UUID]:
        """Rows of plans that wait and of those that were last carried out."""
        return self._around([*self.waiting[-2:], *self.undoable[-2:]])

    def _around(self, plans: Iterable[UUID]) -> Collection[UUID]:
        """What plans touch, what that hangs on, and what lies beside it."""
        rows = {id_ for plan in plans for id_ in self.world.plans[plan]["touched"]}
        ends = {frozenset(self._ends(id_)) for id_ in rows & self.world.edges.keys()}
        beside = {id_ for id_ in self.edges if frozenset(self._ends(id_)) in ends}
        return rows | beside | {end for pair in ends for end in pair}

    def has_work(self, policy: str) -> bool:
        """Whether a policy may find something: roughly, for what it finds is its own affair."""
        living = self.world.living_edges
        some: dict[str, Callable[[], bool]] = {
            "merge-edges": lambda: len({frozenset(self._ends(id_)) for id_ in living}) < len(living),
            "prune": lambda: any(strength_at(edge, self.machine.at) < WEAK for edge in living.values()),
            "duplicates": lambda: len(self.machine.nodes("concept")) > 1,
            "cases": lambda: len(self.machine.nodes("case")) > 1,
        }
        return some[policy]() if policy in some else True

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
        self.mood = MOODS[number % len(MOODS)]
        self.length = self.dice.randint(FEWEST, MOST)
        self.policies = list(dict.fromkeys(self.one(self.mood.policies) for _ in range(self.dice.randint(1, 3))))
        self.way: list[str] = []
        self.last: Step = ("begin", {})
        self.declined: UUID | None = None

    def begin(self, openings: Sequence[str]) -> Step:
        shown = self.dice.sample(self.policies, self.dice.randint(0, min(2, len(self.policies))))
        some = [self.a_link(self.dice.randrange(5), self.dice.randrange(5)) for _ in range(self.dice.randint(0, 4))]
        opening, chance = self.dice.choice(self.mood.openings or openings), self.dice.randrange(1000)
        return "begin", {"opening": opening, "some": some, "shown": shown, "chance": chance}

    def next(self, machine: "AllKinds") -> Step:
        """The next step of a way; or something that can be done, on no way."""
        now = Now(machine)
        if not self.way and self.happens(ON_A_WAY):
            self.way = list(self.dice.choice(self.mood.ways))
        while self.way:
            word = self.way.pop(0)
            if word == "again":
                return self.last
            word = self.one(TOUCHES) if word == "touch" else word
            if now.can_be(WORDS[word].operation if word in WORDS else word):
                return self.drawn(word, now)
        return self.drawn(self.one({name: often for name, often in OFTEN.items() if now.can_be(name)}), now)

    def drawn(self, word: str, now: Now) -> Step:
        name, settled = (WORDS[word].operation, WORDS[word].settles(self, now)) if word in WORDS else (word, {})
        given = {**DRAWS[name](self, now), **settled}
        if name == "decline":
            self.declined = now.waiting[given["place"]]
        self.last = name, given
        return self.last

    def one(self, weighted: Mapping[Any, float]) -> Any:
        return self.dice.choices(list(weighted), weights=list(weighted.values()))[0]

    def happens(self, share: float) -> bool:
        return self.dice.random() < share

    def near(self, some: Sequence[UUID], now: Now) -> int:
        """The place of one of them: mostly of one that plans know of, the last of all."""
        known = now.latest if self.happens(0.5) else now.known
        places = [place for place, id_ in enumerate(some) if id_ in known]
        return self.dice.choice(places) if places and self.happens(0.85) else self.any_of(some)

    def any_of(self, some: Sequence[UUID]) -> int:
        return self.dice.randrange(max(1, len(some)))

    def newest(self, some: Sequence[int]) -> int:
        """The last of them, mostly."""
        return some[-1] if self.happens(0.7) else self.dice.choice(some)

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
        return {"days": self.dice.choice([0.5, 8, 60, 60])}

    def change_an_edge(self, now: Now) -> Given:
        return {"place": self.near(now.edges, now), "what": self.one(TO_EDGES)}

    def change_a_node(self, now: Now) -> Given:
        return {"place": self.near(now.nodes, now), "what": self.one(TO_NODES)}

    def merge_concepts(self, now: Now) -> Given:
        """Of two neighbours, either may be the one that plans know of."""
        return {"place": max(0, self.near(now.machine.nodes("concept"), now) - self.dice.randrange(2))}

    def something_else(self, _now: Now) -> Given:
        return {"place": self.dice.randrange(100), "what": self.one(ELSE)}

    def propose(self, now: Now) -> Given:
        """One of its own policies, or another: such as have something to do."""
        own, any_ = ([name for name in some if now.has_work(name)] for some in (self.policies, POLICIES))
        policy, by = self.dice.choice(own or any_), self.dice.choice(["user", "schedule"])
        return {"policy": policy, "at_once": self.happens(0.3), "otherwise": self.happens(0.4), "by": by}

    def decline(self, now: Now) -> Given:
        return {
            "place": self.newest(now.open),
            "at": self.dice.randrange(9),
            "never": self.happens(0.6),
            "back": self.happens(0.3),
        }

    def apply(self, now: Now) -> Given:
        how = self.one(HOW)
        return {"place": self.newest(now.open), "how": how, "at": self.who_comes_in_between(how, now)}

    def who_comes_in_between(self, how: str, now: Now) -> int:
        return self.near(now.nodes if "forget" in how or "merge" in how else now.edges, now)

    def come_by_schedule(self, now: Now) -> Given:
        """Mostly of a plan that waits, or was broken off."""
        waiting = {now.world.plans[id_]["policy"] for id_ in now.waiting}
        mine = [name for name in SCHEDULED if name in waiting]
        return {"policy": self.dice.choice(mine or SCHEDULED)}

    def undo(self, now: Now) -> Given:
        """The last, mostly."""
        place = 0 if self.happens(0.5) else self.any_of(now.undoable)
        return {"place": place, "with_later": self.happens(0.4)}

    # -- what some words settle

    def otherwise(self, _now: Now) -> Given:
        """The same as was just proposed, with other options."""
        _, given = self.last
        return {"policy": given["policy"], "otherwise": not given["otherwise"], "at_once": False}

    def the_other(self, now: Now) -> Given:
        """A plan that waits beside the one of which something was declined."""
        others = [place for place in now.open if now.waiting[place] != self.declined]
        return {"how": "plainly", **({"place": others[-1]} if others else {})}

    def beside_somebody(self, now: Now) -> Given:
        how = self.one(BESIDE)
        return {"how": how, "at": self.who_comes_in_between(how, now)}

    def earlier(self, _now: Now) -> Given:
        return {"place": self.dice.randint(1, 3), "with_later": self.happens(0.4)}


DRAWS: dict[str, Callable[[Chance, Now], Given]] = {name: getattr(Chance, name) for name in OFTEN}


@dataclass(frozen=True)
class Word:
    """An operation of which something is not left to chance."""

    operation: str
    settles: Callable[[Chance, Now], Given]


def _always(**given: Any) -> Callable[[Chance, Now], Given]:
    return lambda _chance, _now: given


WORDS = {
    "show": Word("propose", _always(at_once=False)),
    "show otherwise": Word("propose", Chance.otherwise),
    "show by schedule": Word("propose", _always(at_once=False, by="schedule")),
    "do": Word("propose", _always(at_once=True)),
    "say never": Word("decline", _always(never=True, back=False)),
    "apply plainly": Word("apply", _always(how="plainly")),
    "apply the other": Word("apply", Chance.the_other),
    "apply beside somebody": Word("apply", Chance.beside_somebody),
    "break off": Word("apply", _always(how="killed")),
    "weigh": Word("change_a_node", _always(what="importance")),
    "unlink": Word("change_an_edge", _always(what="unlink")),
    "take back": Word("undo", _always(place=0)),
    "bring again": Word("undo", _always(place=0)),
    "take back an earlier one": Word("undo", Chance.earlier),
}
