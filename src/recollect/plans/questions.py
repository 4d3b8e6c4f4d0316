"""`memory.questions`: are these two one? What policies found likely and leave to a person (C36).

    look        let the policies that ask look again
    list        the open questions, the likeliest first; those that hang together are a group
    answer      merge, separate (for a while), never, later; many at once, or whole groups
    take_back   undo an answer: the question is open again

A merge is a plan, which can be undone like any other; separate and never are remembered pairs (P11).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from textwrap import shorten
from uuid import UUID

from recollect.concepts.rules.concepts import ids_of
from recollect.concepts.rules.never_merge import Apart
from recollect.engine.core import Core, Face
from recollect.errors import InvalidInput, RecollectError
from recollect.memories.sql import nodes
from recollect.model import QuestionSide
from recollect.plan import DecisionStatus, Draft, Risk, Row
from recollect.plans import apply, propose, run, undo
from recollect.plans.policy import REFUSED, Policy
from recollect.plans.registry import POLICIES, policy_named
from recollect.plans.rules import questions as rules
from recollect.plans.rules.questions import Asked
from recollect.plans.sql import declined, labels, plans
from recollect.plans.sql import questions as stored
from recollect.plans.sql.reader import StoreReader
from recollect.store.database import Transaction
from recollect.wording import check_limit, counted

LONGEST_PAGE = 500
MOST_ANSWERS = 10_000
BY_HAND = "two things, as a person said"


class Says(StrEnum):
    """What may be answered. LATER answers nothing: the question comes last from then on."""

    MERGE = "merge"
    SEPARATE = "separate"
    NEVER = "never"
    LATER = "later"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenQuestion:
    """Are these two one? `keep` is the one that would stay; `group` is the number of the group it belongs to.

    `in_words` says what they have in common and what speaks against it, `reason` and `factors` give the figures.
    """

    number: int
    kind: str
    keep: QuestionSide
    other: QuestionSide
    probability: float
    reason: str
    in_words: str
    factors: Row
    group: int
    group_size: int
    asked_at: datetime
    postponed_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionPage:
    """A stretch of the open questions; `total`, `groups`, `postponed` and `kinds` count all of them."""

    items: Sequence[OpenQuestion]
    next_cursor: str | None
    total: int
    groups: int
    postponed: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenAnswer:
    """An answer to a question, or to all of a group. `keep` names the side that stays, if not the one proposed."""

    answer: Says
    number: int | None = None
    group: int | None = None
    keep: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedAnswer:
    """An answer that was not taken, and why."""

    number: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswersTaken:
    """What became of some answers: the questions answered, those refused; the plan that merged; how many are left."""

    answered: tuple[int, ...]
    refused: tuple[RefusedAnswer, ...]
    plans: tuple[UUID, ...]
    left: int


class OpenQuestions(Face):
    """Open questions, whether two are one."""

    async def look(self) -> QuestionPage:
        """Let the policies that ask questions look for them now; returns the first of the open ones."""
        for policy in asking():
            await propose.looked_through(self.core, self.space_id, policy.name)
        return await self.list()

    async def answer(
        self, answers: Mapping[int, Says | str] | Sequence[GivenAnswer], *, by: str = "user", most: Risk | None = None
    ) -> AnswersTaken:
        """Answer questions: `{12: "merge", 13: "never"}`. The good answers are taken, the others refused, each with
        the reason. `most` is the risk that a caller who is no person is trusted with: what is beyond waits."""
        return await answer(self.core, self.space_id, checked(answers), by=by, most=most)

    async def take_back(self, numbers: Sequence[int], *, by: str = "user") -> AnswersTaken:
        """Undo answers: what was merged is two again, what was kept apart may be asked about; all are open again."""
        return await take_back(self.core, self.space_id, numbers, by=by)

    async def list(self, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> QuestionPage:
        """A stretch of the open questions, the likeliest group first; of concepts and cases, or of one kind."""
        check_limit(limit, LONGEST_PAGE)
        if kind not in (None, *KINDS.values()):
            raise InvalidInput(f"Questions are about {' or '.join(KINDS.values())}, not {kind!r:.60}.", field="kind")
        async with self.core.database.snapshot(self.space_id) as db:
            return await page(self.core, db, kind=kind, limit=limit, cursor=cursor)


KINDS = {policy.name: policy.asks_about for policy in POLICIES.values() if policy.asks_about}


def asking() -> list[Policy]:
    """The policies that ask questions."""
    return [policy for policy in POLICIES.values() if policy.join is not None]


def checked(answers: Mapping[int, Says | str] | Sequence[GivenAnswer]) -> Sequence[GivenAnswer]:
    if isinstance(answers, Mapping):
        answers = [GivenAnswer(number=number, answer=says(word)) for number, word in answers.items()]
    if len(answers) > MOST_ANSWERS:
        raise InvalidInput(f"At most {MOST_ANSWERS:,} answers at a time, not {len(answers):,}.", field="answers")
    for answer in answers:
        if (answer.number is None) == (answer.group is None):
            raise InvalidInput("An answer names a question by its number, or a group.", field="number")
    return answers


def says(word: str) -> Says:
    try:
        return Says(word)
    except ValueError:
        raise InvalidInput(f"An answer is one of {', '.join(Says)}, not {word!r:.60}.", field="answer") from None


# -- reading


async def open_questions(core: Core, db: Transaction) -> list[Asked]:
    """The open questions in the order in which they are walked, their sides followed to where they are now."""
    questions = await stored.open_ones(db)
    merged = {id_ for question in questions for id_ in question.merged_ends}
    keepers = await nodes.keepers(db, merged) if merged else {}
    asked = rules.in_order(questions, keepers)
    apart = await _apart_by_name(core, db, asked)
    return rules.in_order(questions, keepers, apart) if apart else asked


async def _apart_by_name(core: Core, db: Transaction, asked: Sequence[Asked]) -> set[frozenset[UUID]]:
    reader = StoreReader(db)
    named = Apart(names=[pair for pair in await reader.distinct_pairs(core.now()) if ids_of(pair) is None])
    if named.is_empty:
        return set()
    names = await reader.names_of({end for question in asked for end in (question.keep, question.other)})
    ends = [(question.keep, question.other) for question in asked]
    return {frozenset(pair) for pair in ends if named.parts_names([tuple(names.get(id_, ())) for id_ in pair])}


async def page(core: Core, db: Transaction, *, kind: str | None, limit: int, cursor: str | None) -> QuestionPage:
    all_open = await open_questions(core, db)
    asked = [question for question in all_open if kind in (None, KINDS[question.policy])]
    rest = rules.behind(asked, cursor) if cursor else asked
    items = await _in_full(db, rest[:limit])
    return QuestionPage(
        items=items,
        next_cursor=rules.cursor_behind(rest[limit - 1]) if len(rest) > limit else None,
        total=len(asked),
        groups=len({question.group for question in asked}),
        postponed=sum(question.postponed_at is not None for question in asked),
        kinds=dict(Counter(KINDS[question.policy] for question in all_open)),
    )


async def _in_full(db: Transaction, asked: Sequence[Asked]) -> list[OpenQuestion]:
    sides = await StoreReader(db).sides(sorted({end for question in asked for end in (question.keep, question.other)}))
    details = await stored.details(db, [question.number for question in asked])
    return [
        _told(question, sides[question.keep], sides[question.other], details[question.number]) for question in asked
    ]


def _told(question: Asked, keep: QuestionSide, other: QuestionSide, why: Row) -> OpenQuestion:
    return OpenQuestion(
        number=question.number,
        kind=KINDS[question.policy],
        keep=keep,
        other=other,
        probability=question.probability,
        reason=why["reason"],
        in_words=rules.in_words(keep.name, other.name, why["reason"], why["factors"]),
        factors=why["factors"],
        group=question.group,
        group_size=question.group_size,
        asked_at=why["asked_at"],
        postponed_at=question.postponed_at,
    )


# -- answering


class _Answering:
    """Some answers on their way: what is meant, what was refused, what is done."""

    def __init__(self, core: Core, space_id: UUID, by: str) -> None:
        self.core, self.space_id, self.by, self.now = core, space_id, by, core.now()
        self.refused: list[RefusedAnswer] = []
        self.answered: list[int] = []
        self.plans: list[UUID] = []

    def refuse(self, number: int, message: str) -> None:
        self.refused.append(RefusedAnswer(number=number, message=message))

    async def result(self) -> AnswersTaken:
        async with self.core.database.snapshot(self.space_id) as db:
            left = await open_questions(self.core, db)
        return AnswersTaken(
            answered=tuple(self.answered), refused=tuple(self.refused), plans=tuple(self.plans), left=len(left)
        )

    async def meant(self, db: Transaction, asked: Sequence[Asked], given: Sequence[GivenAnswer]) -> list["_Meant"]:
        """Which open question each answer is for; the last one counts where one is answered twice."""
        by_number = {number: question for question in asked for number in (question.number, *question.same)}
        states = await stored.states(
            db, [number for answer in given for number in (answer.number, answer.group) if number]
        )
        by_question: dict[int, _Meant] = {}
        for answer in given:
            if answer.number is None:
                questions = _of_group(asked, answer.group or 0, states)
            else:
                questions = [by_number[answer.number]] if answer.number in by_number else []
            by_question |= {question.number: _Meant(question, answer.answer, answer.keep) for question in questions}
            if not questions:
                self._say_missing(answer.number or answer.group or 0, states)
        return [reply for reply in by_question.values() if self._names_a_side(reply)]

    def _say_missing(self, number: int, states: Mapping[int, Row]) -> None:
        state = states.get(number)
        if state is None:
            self.refuse(number, f"There is no question {number}: `recollect review` shows the open ones.")
        elif state["answer"] is not None:
            self.refuse(number, f"Question {number} is answered already: {state['answer']}.")
        else:
            self.refuse(number, f"Question {number} is open no longer: one of its sides has changed.")

    def _names_a_side(self, reply: "_Meant") -> bool:
        if reply.keep in (None, reply.asked.keep, reply.asked.other):
            return True
        self.refuse(reply.asked.number, f"{reply.keep} is no side of question {reply.asked.number}.")
        return False

    async def set_apart(self, db: Transaction, replies: Sequence["_Meant"], verdict: Says) -> None:
        """P11: remembered as two, for a while or for good."""
        sides = await StoreReader(db).sides(sorted({end for reply in replies for end in reply.ends}))
        pairs = {}
        for reply in replies:
            remember = policy_named(reply.asked.policy).remember
            assert remember is not None
            pairs[reply.asked.number] = remember(*(sides[end] for end in reply.ends))
        days = None if verdict is Says.NEVER else self.core.settings.declined_days
        await declined.keep_apart(db, pairs.values(), now=self.now, days=days, reason=BY_HAND)
        outcomes = {
            number: (verdict.value, {"pair": list(pairs[reply.asked.number][:2])})
            for reply in replies
            for number in reply.numbers
        }
        await stored.answer(db, outcomes, by=self.by, now=self.now)
        self.answered += [reply.asked.number for reply in replies]

    async def draft(self, db: Transaction, policy: Policy, replies: Sequence["_Meant"]) -> Draft:
        assert policy.join is not None
        scores = {reply.ends[1]: reply.asked.probability for reply in replies}
        draft = await policy.join(StoreReader(db), rules.clusters([reply.ends for reply in replies]), scores, self.now)
        why_not = {finding.subject: finding.text for finding in draft.findings if finding.rule == REFUSED}
        for reply in replies:
            for end in reply.ends:
                if end in why_not:
                    self.refuse(reply.asked.number, f"Question {reply.asked.number}: {why_not[end]}.")
                    break
        return draft

    async def merge(
        self, policy: Policy, replies: Sequence["_Meant"], most: Risk | None, touched: Collection[int]
    ) -> None:
        """One plan for all of them, each cluster all or nothing; what goes with which decision is noted."""
        async with self.core.transaction(self.space_id) as db:
            draft = await self.draft(db, policy, replies)
            if not draft.decisions:
                return
            title = await _title(db, policy, draft, replies)
            plan = draft.plan(policy=policy.name, title=title, now=self.now, created_by=self.by, risk=policy.risk)
            await plans.save(db, plan)
        if not await self._applied(plan.id, most):
            for reply in replies:
                self.refuse(reply.asked.number, f"It waits until a person approves the plan {str(plan.id)[:8]}.")
            return
        self.plans.append(plan.id)
        async with self.core.transaction(self.space_id) as db:
            await self._note_merged(db, plan.id, replies)
            await stored.restamp(db, touched)

    async def _applied(self, plan_id: UUID, most: Risk | None) -> bool:
        if most is None:
            await apply.apply(self.core, self.space_id, plan_id, by=self.by)
            return True
        return (await run.apply_within(self.core, self.space_id, plan_id, most, by=self.by)).outcome is not None

    async def _note_merged(self, db: Transaction, plan_id: UUID, replies: Sequence["_Meant"]) -> None:
        decided = {decision.subject: decision for decision in await plans.decisions_of(db, plan_id, with_changes=False)}
        outcomes: dict[int, tuple[str | None, Row]] = {}
        refused = {refusal.number for refusal in self.refused}
        for reply in replies:
            going = [decided[end] for end in reversed(reply.ends) if end in decided]
            stands = bool(going) and all(decision.status is DecisionStatus.APPLIED for decision in going)
            if stands and reply.asked.number not in refused:
                outcome = {"plan": str(plan_id), "decision": going[0].number}
                outcomes |= dict.fromkeys(reply.numbers, (Says.MERGE.value, outcome))
                self.answered.append(reply.asked.number)
            elif reply.asked.number not in refused:
                why = going[0].note if going else None
                self.refuse(reply.asked.number, f"Question {reply.asked.number}: {why or 'it could not be merged'}.")
        await stored.answer(db, outcomes, by=self.by, now=self.now)


def _of_group(asked: Sequence[Asked], number: int, states: Mapping[int, Row]) -> list[Asked]:
    """The open questions of a group; one whose first question was answered meanwhile is still known by it."""
    in_group = [question for question in asked if question.group == number]
    if in_group or number not in states:
        return in_group
    ends = {states[number]["keep"], states[number]["other"]}
    groups = {question.group for question in asked if not ends.isdisjoint((question.keep, question.other))}
    return [question for question in asked if question.group in groups]


@dataclass(frozen=True, slots=True)
class _Meant:
    asked: Asked
    answer: Says
    keep: UUID | None

    @property
    def ends(self) -> tuple[UUID, UUID]:
        """The one that stays, then the other."""
        keep, other = self.asked.keep, self.asked.other
        return (other, keep) if self.keep == other else (keep, other)

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.asked.number, *self.asked.same


async def answer(
    core: Core, space_id: UUID, given: Sequence[GivenAnswer], *, by: str = "user", most: Risk | None = None
) -> AnswersTaken:
    """Take answers: what is to stay two first, so that no merge of the same batch goes against it."""
    work = _Answering(core, space_id, by)
    async with core.transaction(space_id) as db:
        asked = await open_questions(core, db)
        meant = await work.meant(db, asked, given)
        for verdict in (Says.SEPARATE, Says.NEVER):
            if replies := [reply for reply in meant if reply.answer is verdict]:
                await work.set_apart(db, replies, verdict)
        later = [reply for reply in meant if reply.answer is Says.LATER]
        await stored.postpone(db, [number for reply in later for number in reply.numbers], work.now)
        work.answered += [reply.asked.number for reply in later]
    for policy in asking():
        replies = [reply for reply in meant if reply.answer is Says.MERGE and reply.asked.policy == policy.name]
        if replies:
            await work.merge(policy, replies, most, _touching(asked, replies))
    return await work.result()


async def _title(db: Transaction, policy: Policy, draft: Draft, replies: Sequence[_Meant]) -> str:
    """A pair is called by its names, so that a list of such plans can be told apart; more are counted."""
    if len(replies) > 1:
        return f"Merge {counted(len(draft.decisions), KINDS[policy.name])}, as a person said"
    names = await labels.nodes(db, replies[0].ends)
    keep, other = (shorten(names[end], 90, placeholder="…") for end in replies[0].ends)
    return f"Merge “{other}” into “{keep}”"


def _touching(asked: Sequence[Asked], replies: Sequence[_Meant]) -> list[int]:
    """The open questions about any of these nodes."""
    ends = {end for reply in replies for end in reply.ends}
    return [
        number
        for question in asked
        if not ends.isdisjoint((question.keep, question.other))
        for number in (question.number, *question.same)
    ]


# -- taking back


async def take_back(core: Core, space_id: UUID, numbers: Sequence[int], *, by: str = "user") -> AnswersTaken:
    """Undo answers, the last first; each question is open again. A merge that later work stands on is named."""
    work = _Answering(core, space_id, by)
    async with core.transaction(space_id) as db:
        before = [number for question in await open_questions(core, db) for number in (question.number, *question.same)]
        states = await stored.states(db, numbers)
        outcomes = {number: states[number]["outcome"] for number in numbers if number in states}
        apart = {number: tuple(outcome["pair"]) for number, outcome in outcomes.items() if "pair" in outcome}
        await declined.let_again(db, apart.values())
        await stored.answer(db, dict.fromkeys(apart, (None, {})), by=None, now=None)
        await stored.postpone(db, numbers, None)
    merged = {
        number: (UUID(outcome["plan"]), outcome["decision"])
        for number, outcome in outcomes.items()
        if "plan" in outcome
    }
    undone = await _undone(work, merged)
    async with core.transaction(space_id) as db:
        await stored.answer(db, dict.fromkeys(undone, (None, {})), by=None, now=None)
        await stored.restamp(db, [*before, *undone])
    for number in numbers:
        if number not in states:
            work.refuse(number, f"There is no question {number}.")
        elif number in apart or number in undone or states[number]["answer"] is None:
            work.answered.append(number)
    return await work.result()


async def _undone(work: _Answering, merged: Mapping[int, tuple[UUID, int]]) -> list[int]:
    """The questions whose merges could be undone, plan by plan."""
    by_plan: defaultdict[UUID, dict[int, int]] = defaultdict(dict)
    for number, (plan_id, decision) in merged.items():
        by_plan[plan_id][number] = decision
    undone: list[int] = []
    for plan_id, decisions in reversed(by_plan.items()):
        try:
            numbers = sorted(set(decisions.values()))
            outcome = await undo.undo(work.core, work.space_id, plan_id, decisions=numbers, by=work.by)
        except RecollectError as problem:
            for number in decisions:
                work.refuse(number, problem.message)
        else:
            work.plans.append(outcome.plan_id)
            undone += decisions
    return undone
