"""Which of the ranked candidates are returned: floor, diversity guard, gap, cooldown, cap, budget, in this order (D24).

Each step says what it leaves out and why, so that a person can be told why something is not there.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.model import NodeFilter
from recollect.recall.rules.ranking import RELATED, Profile

ABSOLUTE_FLOOR = 0.55
DEFAULT_THRESHOLD = 0.45
WIDEN_BY = 0.05
ENOUGH = 5
GAP = 0.15
TWIN = 0.95
CONTEXT_RECORDS = 30
CONTEXT_TOKENS = 3000

Numbers = NDArray[np.float64]


class Drop(NamedTuple):
    """A candidate (by its place) that a step left out. Why is put into words only for those that are shown."""

    place: int
    step: str
    say: Callable[[int], str]

    @property
    def why(self) -> str:
        return self.say(self.place)


@dataclass(kw_only=True, slots=True)
class Selection:
    """What is left, best first, and what was left out on the way."""

    kept: list[int]
    floor: float | None = None
    dropped: list[Drop] = field(default_factory=list)

    def leave_out(self, step: str, why: Callable[[int], str], gone: Collection[int]) -> None:
        self.dropped += [Drop(i, step, why) for i in self.kept if i in gone]
        self.kept = [i for i in self.kept if i not in gone]


def floor_in_effect(mode_floor: float | None, threshold: float | None, *, weak: bool = False) -> float | None:
    """D20: the highest of the absolute floor, the mode's, and what the caller's threshold asks for.

    Plain search (no mode floor) shows what is related, or what the caller's threshold asks for, or all (D46).
    """
    if mode_floor is None and threshold is None:
        return None if weak else RELATED
    if mode_floor is None:
        return 1 - (threshold or 0.0)
    return max(ABSOLUTE_FLOOR, mode_floor, 1 - (DEFAULT_THRESHOLD if threshold is None else threshold))


def relaxed_floor(
    relevance: Numbers, mode_floor: float | None, threshold: float | None, *, enough: int, weak: bool = False
) -> float | None:
    """D28: with few results, the caller's threshold widens in steps while it is what binds; never below the floors."""
    floor = floor_in_effect(mode_floor, threshold, weak=weak)
    if mode_floor is None or floor is None:
        return floor
    lowest = max(ABSOLUTE_FLOOR, mode_floor)
    while floor > lowest and int((relevance >= floor).sum()) < enough:
        floor = max(lowest, round(floor - WIDEN_BY, 10))
    return floor


def related_first(ranked: Sequence[int], relevance: Numbers) -> list[int]:
    """D46: neither age nor importance lifts what is hardly related above what is."""
    hardly = (relevance < RELATED).tolist()
    return sorted(ranked, key=hardly.__getitem__)


def above_floor(selection: Selection, relevance: Numbers, floor: float | None) -> None:
    """D20, D21: what is not relevant enough is left out: no memory rather than a wrong memory."""
    selection.floor = floor
    if floor is None:
        return
    below = (relevance < floor).tolist()
    gone = {i for i in selection.kept if below[i]}
    selection.leave_out("floor", lambda i: f"relevance {relevance[i]:.2f} is below the floor {floor:.2f}", gone)


def without_twins(selection: Selection, cosine: Callable[[int, int], float], *, most: int) -> None:
    """D30: of two that say the same (cosine over 0.95) only the better ranked stays. Looks until `most` are found."""
    unique: list[int] = []
    gone: dict[int, int] = {}
    for i in selection.kept:
        if len(unique) >= most:
            break
        twin = next((better for better in unique if cosine(i, better) > TWIN), None)
        if twin is None:
            unique.append(i)
        else:
            gone[i] = twin
    selection.leave_out("twin", lambda _: "says the same as a better hit (cosine over 0.95)", gone)


def within_gap(selection: Selection, score: Numbers) -> None:
    """D22: only what comes near the best."""
    if not selection.kept:
        return
    best = max(score[i] for i in selection.kept)
    gone = {i for i in selection.kept if best - score[i] > GAP}
    selection.leave_out("gap", lambda i: f"score {score[i]:.2f} is more than {GAP} below the best ({best:.2f})", gone)


def fresh_first(selection: Selection, ids: Sequence[UUID], lately: Collection[UUID]) -> None:
    """D24: what the last answers to the same question held moves behind what is fresh; nothing is dropped."""
    selection.kept.sort(key=lambda i: ids[i] in lately)


def capped(selection: Selection, most: int | None, step: str = "cap") -> None:
    """D23: at most so many."""
    if most is not None:
        gone = set(selection.kept[most:])
        selection.leave_out(step, lambda _: f"beyond the first {most}", gone)


def within_budget(
    selection: Selection, tokens: Callable[[int], int], budget: int, *, strict_break: bool = False
) -> None:
    """D29, D31: what fits, in order; what does not fit is named and the next is tried.

    `strict_break` is the literal loop of the source document, which stops at the first that does not fit.
    """
    spent = 0
    gone: dict[int, str] = {}
    full = False
    for position, i in enumerate(selection.kept):
        needed = tokens(i)
        if position >= CONTEXT_RECORDS:
            gone[i] = f"beyond the first {CONTEXT_RECORDS} records of a context"
        elif full or spent + needed > budget:
            gone[i] = f"its {needed} tokens do not fit into the budget of {budget}: available on expand"
            full = strict_break
        else:
            spent += needed
    selection.leave_out("budget", gone.__getitem__, gone)


def select(
    ranked: Sequence[int],
    profile: Profile,
    *,
    ids: Sequence[UUID],
    relevance: Numbers,
    score: Numbers,
    cosine: Callable[[int, int], float],
    lately: Collection[UUID] = (),
    threshold: float | None = None,
    weak: bool = False,
    limit: int | None = None,
) -> Selection:
    """All steps in order; `ranked` indexes the other values, best first."""
    selection = Selection(kept=related_first(ranked, relevance))
    most = min((cap for cap in (profile.cap, limit) if cap is not None), default=len(ranked))
    enough = min(ENOUGH, profile.cap or ENOUGH)
    above_floor(selection, relevance, relaxed_floor(relevance, profile.floor, threshold, enough=enough, weak=weak))
    if profile.floor is not None:
        without_twins(selection, cosine, most=len(ranked))
        within_gap(selection, score)
    if profile.cools_down:
        fresh_first(selection, ids, lately)
    capped(selection, profile.cap)
    capped(selection, most, "limit")
    return selection


def is_selective(wanted: NodeFilter) -> bool:
    """Whether anything beyond kind and status was asked for."""
    within = wanted.thread is not None or wanted.category or wanted.metadata
    return bool(within or wanted.subtypes or wanted.created_from or wanted.created_to)
