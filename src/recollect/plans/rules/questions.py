"""The order in which questions are walked (C36): the likeliest group first, and in it the likeliest question.

Questions whose sides hang together are a group, so that it can be answered at once; its number is that of its first
question. Sides that were merged since count as their keeper: what became one is no question, and what became the same
question is asked once. What was put off until later comes at the end.
"""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput

Key = tuple[str, float, int, float, int]
# How alike two texts are, as numbers, from which one speaks of them so.
NEARLY_SAME, RELATED = 0.85, 0.55
# What a reason holds for those who reckon with it: an estimate that rests on names and fields, and scores.
FIGURES = re.compile(r"^about [\d.]+ ?% likely, with a score of [\d.]+(?:; |$)| \([\d.]+\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredQuestion:
    """A question as it is kept: its ends, and whether they are still there themselves."""

    number: int
    policy: str
    keep: UUID
    other: UUID
    probability: float
    postponed_at: datetime | None
    keep_status: str
    other_status: str

    @property
    def merged_ends(self) -> list[UUID]:
        ends = ((self.keep, self.keep_status), (self.other, self.other_status))
        return [id_ for id_, status in ends if status == "merged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """An open question in its place: its ends as they are now, and its group. `same` are others that ask the same."""

    number: int
    policy: str
    keep: UUID
    other: UUID
    probability: float
    postponed_at: datetime | None
    group: int
    group_size: int
    key: Key
    same: tuple[int, ...] = ()


def in_order(
    stored: Sequence[StoredQuestion], keepers: Mapping[UUID, UUID], apart: Collection[frozenset[UUID]] = ()
) -> list[Asked]:
    """The questions as they are walked; `keepers` tells where merged nodes are, `apart` which pairs are two by name."""
    alike: defaultdict[tuple[str, frozenset[UUID]], list[StoredQuestion]] = defaultdict(list)
    for question in stored:
        ends = frozenset(keepers.get(end, end) for end in (question.keep, question.other))
        if len(ends) == 2 and ends not in apart:
            alike[question.policy, ends].append(question)
    likeliest = [
        sorted(questions, key=lambda question: (-question.probability, question.number)) for questions in alike.values()
    ]
    askable = [(first, tuple(question.number for question in rest)) for first, *rest in likeliest]
    ends_of = {
        first.number: (keepers.get(first.keep, first.keep), keepers.get(first.other, first.other))
        for first, _ in askable
    }
    groups = _groups([(number, *ends) for number, ends in ends_of.items()])
    best: dict[int, float] = {}
    for first, _ in askable:
        best[groups[first.number][0]] = max(best.get(groups[first.number][0], 0.0), first.probability)
    asked = [_asked(first, same, keepers, groups[first.number], best) for first, same in askable]
    return sorted(asked, key=lambda question: question.key)


def _asked(
    question: StoredQuestion,
    same: tuple[int, ...],
    keepers: Mapping[UUID, UUID],
    group: tuple[int, int],
    best: Mapping[int, float],
) -> Asked:
    number, size = group
    later = "" if question.postponed_at is None else question.postponed_at.isoformat()
    return Asked(
        number=question.number,
        policy=question.policy,
        keep=keepers.get(question.keep, question.keep),
        other=keepers.get(question.other, question.other),
        probability=question.probability,
        postponed_at=question.postponed_at,
        group=number,
        group_size=size,
        key=(later, -best[number], number, -question.probability, question.number),
        same=same,
    )


def _groups(pairs: Iterable[tuple[int, UUID, UUID]]) -> dict[int, tuple[int, int]]:
    """For each question the number of its group and how many nodes that has."""
    questions = list(pairs)
    home: dict[UUID, UUID] = {}

    def root(node: UUID) -> UUID:
        home.setdefault(node, node)
        while home[node] != node:
            home[node] = node = home[home[node]]
        return node

    for _, node, other in questions:
        home[root(node)] = root(other)
    first: dict[UUID, int] = {}
    for number, node, _ in questions:
        first[root(node)] = min(first.get(root(node), number), number)
    sizes: defaultdict[UUID, int] = defaultdict(int)
    for node in list(home):
        sizes[root(node)] += 1
    return {number: (first[root(node)], sizes[root(node)]) for number, node, _ in questions}


def clusters(pairs: Sequence[tuple[UUID, UUID]]) -> list[list[UUID]]:
    """Pairs that are one, as groups, the one that stays first: of those that go into no other, the first."""
    into: dict[UUID, list[UUID]] = {}
    for keep, other in pairs:
        ours, theirs = into.setdefault(keep, [keep]), into.setdefault(other, [other])
        if ours is not theirs:
            ours += theirs
            into.update(dict.fromkeys(theirs, ours))
    goes = {other for _, other in pairs}
    groups = {id(group): group for group in into.values()}
    return [sorted(group, key=lambda node: node in goes) for group in groups.values()]


# -- pages


def cursor_behind(question: Asked) -> str:
    return base64.urlsafe_b64encode(json.dumps(question.key).encode()).decode()


def behind(asked: Sequence[Asked], cursor: str) -> list[Asked]:
    """Those that come after a cursor, also where the one it stands for was answered meanwhile."""
    try:
        later, best, group, probability, number = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        key: Key = (str(later), float(best), int(group), float(probability), int(number))
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            "This cursor is not one that a listing gave: start again without it.", field="cursor"
        ) from error
    return [question for question in asked if question.key > key]


# -- what a question says


def in_words(keep: str, other: str, reason: str, factors: Mapping[str, Any]) -> str:
    """What two have in common and what speaks against it, as one would say it: the same at every door.

    No percentage: two that only share a name are "99% likely" by it, and that would mislead.
    """
    gist = _gist(keep == other, factors["steps"]) if factors.get("steps") else ""
    doubts = [doubt for doubt in factors.get("doubts", ()) if gist or doubt not in reason]
    told = FIGURES.sub("", reason)
    said = (
        [gist] if any(doubt in told for doubt in doubts) else [gist, f"{told[:1].upper()}{told[1:]}." if told else ""]
    )
    against = f"Against it: {'; '.join(doubts)}." if doubts else ""
    return " ".join(filter(None, (*said, against)))


def _gist(is_same_name: bool, steps: Sequence[Mapping[str, Any]]) -> str:
    names = "Same name" if is_same_name else "Similar names"
    alike = next((step["value"] for step in steps if step["name"] == "cosine"), None)
    if alike is None:
        return f"{names}."
    texts = "and nearly the same text" if alike >= NEARLY_SAME else "and related texts" if alike >= RELATED else None
    return f"{names} {texts}." if texts else f"{names}, but different texts."
