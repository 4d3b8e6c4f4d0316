"""A year of a case bank in an hour's time or a test's: cases come, are used, do well or badly, and are tidied weekly.

What is true is known beside the bank: which answers are good, how often each case was used, which went into which.
After each week the bank is compared with it. `problems` stays empty as long as all of this holds:

- no case that does well is removed or shelved, and its answer to its question stays in the bank
- nothing is merged with a case whose answer differs
- what a dry run shows is what the run does, and the dry run itself changes nothing
- every use is counted once, however often cases were merged
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.cases.tidy import Consolidation
from recollect.engine.engine import Engine
from recollect.model import CaseStatus, NewCase
from tests.case_support import bank

BEGIN = datetime(2026, 1, 4, 2, 0, tzinfo=UTC)
GOOD, BAD = 0.92, 0.08
DOES_WELL = 60.0
COMPARED_EVERY = 8  # so many weeks every row of the bank is compared before and after a dry run
FORGOTTEN_AFTER = timedelta(days=80)  # a little before the bank may shelve what nobody asks for
ACTIONS = ("reset", "renew", "export", "encrypt", "restart", "archive", "translate", "rotate", "merge", "install")
THINGS = ("password", "licence", "invoice", "mailbox", "cluster", "certificate", "report", "printer", "backup", "token")
PLACES = ("the billing portal", "the Hanoi office", "a new laptop", "the test system", "the mobile app", "the archive")
FILLERS = ("please", "quickly", "again", "now", "exactly")


@dataclass
class Clock:
    """What time it is in the simulation."""

    at: datetime = BEGIN

    def __call__(self) -> datetime:
        return self.at


@dataclass
class Known:
    """What is true of a case, whatever the bank says."""

    topic: int
    query: str
    answer: str
    quality: float
    draw: int  # decides how often and in which season it is asked for: ids are others in each run
    used: list[datetime] = field(default_factory=list)
    successes: list[bool] = field(default_factory=list)
    into: UUID | None = None
    is_gone: bool = False

    @property
    def rate(self) -> float | None:
        last = self.successes[-100:]
        return 100 * sum(last) / len(last) if len(last) >= 10 else None

    def does_well(self, now: datetime) -> bool:
        return self.rate is not None and self.rate >= DOES_WELL and now - self.used[-1] < FORGOTTEN_AFTER


class CaseYear:
    """The bank, the truth about it, and what was found to be wrong."""

    def __init__(self, memory: Engine, clock: Clock, *, cases: int, weekly: int, uses: int, seed: int = 7) -> None:
        self.memory, self.clock, self.first, self.weekly, self.uses = memory, clock, cases, weekly, uses
        self.chance = random.Random(seed)
        self.known: dict[UUID, Known] = {}
        self.topics: list[tuple[str, float]] = []
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.plans: list[UUID] = []

    async def pass_by(self, weeks: int = 52) -> None:
        await self._arrive(self.first)
        for _ in range(weeks):
            await self._one_week()

    async def _one_week(self) -> None:
        await self._arrive(self.weekly)
        await self._are_used()
        self.clock.at += timedelta(days=1)
        await self._are_tidied()
        await self._compare()
        self.counts["weeks"] += 1

    # -- what happens

    async def _arrive(self, number: int) -> None:
        """New questions, and old ones asked otherwise: some with the answer known, some with another."""
        new = [
            self._new_topic() if not self.topics or self.chance.random() < 0.5 else self._variant()
            for _ in range(number)
        ]
        wanted = [
            NewCase(query=one.query, response_text=one.answer, category_path="support", created_at=self.clock.at)
            for one in new
        ]
        added = await self.memory.cases.add_many(wanted)
        refused = {one.position for one in added.refused}
        stored = [one for place, one in enumerate(new) if place not in refused]
        self.known.update(zip(added.ids, stored, strict=True))

    def _new_topic(self) -> Known:
        number = len(self.topics)
        some = self.chance.sample(THINGS, 3)
        query = (
            f"How do I {self.chance.choice(ACTIONS)} the {some[0]} for {self.chance.choice(PLACES)} "
            f"when the {some[1]} number {1000 + number} and the {some[2]} of the team are older "
            "than the rest of the system"
        )
        quality = GOOD if self.chance.random() < 0.7 else BAD
        self.topics.append((query, quality))
        return Known(
            topic=number,
            query=query + "?",
            answer=f"Way {number}: open the settings.",
            quality=quality,
            draw=self._draw(),
        )

    def _variant(self) -> Known:
        topic = self.chance.randrange(len(self.topics))
        query, quality = self.topics[topic]
        words = query.split()
        words.insert(self.chance.randrange(1, len(words)), self.chance.choice(FILLERS))
        if self.chance.random() < 0.3:
            answer, quality = f"Another way {topic}: ask {self.chance.choice(PLACES)}.", self.chance.choice((GOOD, BAD))
        else:
            answer = f"Way {topic}: open the settings."
        said = " ".join(words) + self.chance.choice(("", "?", "!", " ?"))
        return Known(topic=topic, query=said, answer=answer, quality=quality, draw=self._draw())

    def _draw(self) -> int:
        return self.chance.randrange(4 * 97)

    async def _are_used(self) -> None:
        """Over the six days before the run; a few cases are asked for often, some of them only for a while."""
        living = [id_ for id_, one in self.known.items() if one.into is None and not one.is_gone]
        season = int((self.clock.at - BEGIN).days // 91)
        weights = [self._popularity(self.known[id_], season) for id_ in living]
        for place, id_ in enumerate(self.chance.choices(living, weights, k=self.uses)):
            if place % max(1, self.uses // 6) == 0:
                self.clock.at += timedelta(days=1)
            one = self.known[id_]
            success = self.chance.random() < one.quality
            await self.memory.cases.record_outcome(id_, success, error_type=None if success else "did not help")
            one.used.append(self.clock.at)
            one.successes.append(success)

    def _popularity(self, one: Known, season: int) -> float:
        return 0.0 if (one.draw + season) % 4 == 0 else 1.0 / (1 + one.draw % 97)

    async def _are_tidied(self) -> None:
        """Rehearsed, then done. Whatever waits for a person is approved."""
        is_compared = self.counts["weeks"] % COMPARED_EVERY == 0
        before = await bank(self.memory) if is_compared else None
        rehearsed = await self.memory.cases.consolidate(dry_run=True)
        if is_compared and await bank(self.memory) != before:
            self._wrong("a dry run changed the bank")
        done = await self.memory.cases.consolidate()
        if done.details != rehearsed.details:
            self._wrong(f"rehearsed {rehearsed.details}, did {done.details}")
        decided = done.removed_cases + done.merged_cases + done.archived_cases
        if decided and done.status == "waiting":
            outcome = await self.memory.plans.apply(done.plan_id)
            if outcome.applied != decided:
                self._wrong(f"{outcome.applied} of {decided} decisions were applied: {outcome.stale} {outcome.failed}")
        if decided:
            self.plans.append(done.plan_id)
        self._heed(done)

    # -- what must hold

    def _heed(self, done: Consolidation) -> None:
        for gone in (*done.details.removed, *done.details.archived):
            one = self.known[gone]
            if one.does_well(self.clock.at):
                self._wrong(f"a case that does well ({one.rate:.0f} %) was taken out of the bank: {one.query}")
            one.is_gone = True
        for pair in done.details.merged:
            kept, one = self.known[pair.keeper], self.known[pair.removed]
            if kept.answer != one.answer or kept.topic != one.topic:
                self._wrong(f"{one.answer!r} went into {kept.answer!r}")
            one.into = pair.keeper
        self.counts.update(
            removed=done.removed_cases,
            merged=done.merged_cases,
            archived=done.archived_cases,
            asked=done.doubtful_cases,
        )

    async def _compare(self) -> None:
        """The bank beside the truth: who is in it, how often each was used, and whether good answers are there."""
        active = {case.case_id: case async for case in self._cases(CaseStatus.ACTIVE)}
        uses: defaultdict[UUID, int] = defaultdict(int)
        for id_, one in self.known.items():
            uses[self._keeper(id_)] += len(one.used)
        expected = {id_ for id_, one in self.known.items() if one.into is None and not one.is_gone}
        if expected != active.keys():
            self._wrong(f"{len(expected ^ active.keys())} cases are in the bank or out of it without a reason")
        for id_, case in active.items():
            if case.usage_count != uses[id_]:
                self._wrong(f"{case.query}: {uses[id_]} uses, the bank says {case.usage_count}")
        there = {(self.known[id_].topic, case.response_text) for id_, case in active.items()}
        for id_, one in self.known.items():
            keeper = self.known[self._keeper(id_)]
            if one.does_well(self.clock.at) and not keeper.is_gone and (one.topic, one.answer) not in there:
                self._wrong(f"the answer {one.answer!r}, which does well, is lost")

    async def _cases(self, status: CaseStatus) -> Any:
        cursor = None
        while True:
            page = await self.memory.cases.list(status=status, limit=1000, cursor=cursor)
            for case in page.items:
                yield case
            if (cursor := page.next_cursor) is None:
                return

    def _keeper(self, id_: UUID) -> UUID:
        while (into := self.known[id_].into) is not None:
            id_ = into
        return id_

    async def take_everything_back(self) -> None:
        """Every plan of the year, the last first: each case is in the bank again, with its own uses."""
        for plan_id in reversed(self.plans):
            await self.memory.plans.undo(plan_id)
        for one in self.known.values():
            one.into, one.is_gone = None, False
        await self._compare()

    def _wrong(self, what: str) -> None:
        self.problems.append(f"{self.clock.at:%Y-%m-%d}: {what}")
