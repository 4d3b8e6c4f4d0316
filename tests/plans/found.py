"""Steps that lead to each fault of which the mending is taken out (mendings.py), in the words of the machine of P25.

As short as they come, written by hand; how soon the machine comes upon each by itself is what
`python -m tests.plans.finding` tells. Nodes by number: two memories, then the concepts bbb, ccc and ddd; edges in the
order of their age, then of the names of their ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.plans.all_kinds_chance import Step


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is said of it, and how one gets there."""

    says: str
    steps: Sequence[Step]


def begin(opening: str = "little", *some: tuple[Any, ...], shown: Sequence[str] = ()) -> Step:
    return "begin", {"opening": opening, "some": list(some), "shown": list(shown)}


def step(name: str, **given: Any) -> Step:
    return name, given


def weak(a: int, b: int, relation: str, strength: float) -> tuple[Any, ...]:
    return a, b, relation, strength, "auto", 40


def link(a: int, b: int, relation: str = "similar") -> tuple[Any, ...]:
    return a, b, relation, 0.3, "auto", 3


# Two pairs of nodes with two weak links each: of each pair the weaker one goes, that of the second pair first.
TWO_PAIRS = (
    weak(1, 2, "similar", 0.04),
    weak(1, 2, "extends", 0.03),
    weak(2, 3, "similar", 0.04),
    weak(2, 3, "extends", 0.02),
)
IMPORTANCE = step("change_a_node", place=0, what="importance")
FOUND: dict[str, Found] = {
    "P15": Found(
        says="which was merged away",
        steps=[
            begin("little", link(3, 0)),
            step("change_an_edge", place=1, what="unlink"),
            step("merge_concepts", place=0),
            step("undo", place=1),
        ],
    ),
    "P16-parallel": Found(
        says="merged edges that were not parallel",
        steps=[
            begin("little", link(3, 0), link(2, 0, "extends")),
            step("merge_concepts", place=0),
            step("propose", policy="merge-edges"),
            step("undo", place=0),
            step("apply", place=0),
        ],
    ),
    "P16-use": Found(
        says="and was used 1 times",
        steps=[
            begin("parallel links", shown=["merge-edges"]),
            step("use", place=1, kind="traversal"),
            step("apply", place=0),
        ],
    ),
    "P16-contradicts": Found(
        says="merged edges between ends that contradict each other",
        steps=[
            begin("parallel links", shown=["merge-edges"]),
            step("link", some=[link(0, 1, "contradicts")]),
            step("apply", place=0),
        ],
    ),
    "P16-links": Found(
        says="failed, and was not stale",
        steps=[
            begin("little", shown=["duplicates"]),
            step("link", some=[link(2, 0), link(3, 0), link(4, 0)]),
            step("apply", place=0),
        ],
    ),
    "P16-never": Found(
        says="merged a pair that a person keeps apart",
        steps=[
            begin("little", shown=["duplicates"]),
            step("propose", policy="duplicates", otherwise=True),
            step("decline", place=0, never=True),
            step("apply", place=1),
        ],
    ),
    "P17-race": Found(
        says="P17: pruning cut what hung together",
        steps=[begin("little", *TWO_PAIRS, shown=["prune"]), step("apply", place=0, how="beside an unlink", at=1)],
    ),
    "P17-archived": Found(
        says="P17: decision",
        steps=[
            begin("little", *TWO_PAIRS, shown=["prune"]),
            step("change_a_node", place=3, what="forget"),
            step("apply", place=0),
        ],
    ),
    "P18": Found(
        says="P18",
        steps=[
            begin(),
            IMPORTANCE,
            IMPORTANCE,
            IMPORTANCE,
            step("undo", place=0),
            step("undo", place=2, with_later=True),
        ],
    ),
    "P19-redo": Found(
        says="and was used 1 times",
        steps=[
            begin(),
            step("propose", policy="link", at_once=True),
            step("use", place=1, kind="traversal"),
            step("undo", place=0),
            step("undo", place=0),
        ],
    ),
    "P19-strength": Found(
        says="without any plan",
        steps=[
            begin("parallel links"),
            step("propose", policy="merge-edges", at_once=True),
            step("wait", days=60),
            step("use", place=0, kind="traversal"),
        ],
    ),
    "P22-shown": Found(
        says="P22: counted as it is",
        steps=[begin("little", *TWO_PAIRS, shown=["prune"]), step("apply", place=0, how="killed")],
    ),
    "P22-schedule": Found(
        says="P22: 1 were done",
        steps=[
            begin("little", *TWO_PAIRS),
            step("propose", policy="prune", by="schedule"),
            step("apply", place=0, how="killed"),
            step("come_by_schedule", policy="prune_weak_edges"),
        ],
    ),
    "C31": Found(says="C31", steps=[begin(), step("something_else", place=0, what="say more")]),
}
