"""Merge duplicate cases: of cases whose queries mean the same, the one that is used most stays (E03-E07).

Near queries are only candidates. Merged are those that agree (cases/rules/doubts): the same answer and category, and no
other numbers, denial, opposites or order of words in the query. The rest is named for review (E34).

The others are archived with their data and point to it. Its counts are derived from all of them, so a merge can be
taken back at any time, each with its own counts. Complete link: what is similar to the keeper but not to all that it
has taken in stays, and is named for review.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.cases.policies import bank as case_bank
from recollect.cases.policies.bank import LISTED, Bank, Protection, Relinking
from recollect.cases.rules.cases import CaseText, CaseVectors
from recollect.cases.rules.doubts import Stance, doubts, stance
from recollect.cases.rules.duplicates import Agreement, CaseGroup, Grouping, duplicates, fitting
from recollect.concepts.rules.similarity import CASE_DOUBTS
from recollect.graph.rules.arrays import Flags, Ints, as_ids, places_in
from recollect.model import QuestionSide
from recollect.plan import Draft, Plan, Risk
from recollect.plans.policy import REFUSED, Policy, Reader
from recollect.plans.throttle import gently
from recollect.wording import counted, require

WEIGHTED, PLAIN = "weighted", "plain"
READ_AT_ONCE = 1000

Distinct = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Protection):
    """Above which cosine two cases may be the same; and how success rates are combined: weighted by uses, or plain.

    `ask_about` names what makes a question of a pair that differs in it; [] merges whatever is near.
    """

    similarity_threshold: float = 0.95
    success_rates: str = WEIGHTED
    ask_about: tuple[str, ...] = tuple(sorted(CASE_DOUBTS))

    def __post_init__(self) -> None:
        Protection.__post_init__(self)
        require(0 < self.similarity_threshold < 1, "similarity_threshold", "above 0 and below 1")
        require(self.success_rates in (WEIGHTED, PLAIN), "success_rates", f"{WEIGHTED} or {PLAIN}")
        require(set(self.ask_about) <= set(CASE_DOUBTS), "ask_about", f"some of {', '.join(sorted(CASE_DOUBTS))}")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    bank = Bank(await reader.cases(), now)
    await decide(reader, bank, options)
    return bank.draft.plan(
        title=f"Merge {counted(len(bank.draft.decisions), 'case')} into those that say the same",
        now=now,
        summary=bank.summary(),
    )


async def decide(reader: Reader, bank: Bank, options: Options) -> None:
    apart = await reader.distinct_pairs(bank.now)
    for case_vectors in await reader.case_vectors():  # of one length each: others are never compared (E32)
        stances = await _stances(reader, case_vectors, options)
        rows, order, grouping = await gently(partial(_grouped, bank, case_vectors, stances, apart, options))
        involved = {
            bank.cases.id_of(int(order[rank])): rank
            for group in grouping.groups
            for rank in (group.keeper, *group.members)
        }
        within = await reader.case_vectors_within(list(involved), case_vectors.vectors.shape[1])
        before = {involved[id]: vectors for id, vectors in within.items()}
        if before:
            grouping = fitting(grouping, case_vectors.vectors[rows], before, above=options.similarity_threshold)
        links = await reader.edges_of(list(involved))
        await anyio.to_thread.run_sync(_merge_all, bank, order, grouping, options, Relinking(bank.draft, links))
        _ask(bank, order, grouping, [stances[row] for row in rows] if stances else [], options)


async def _stances(reader: Reader, case_vectors: CaseVectors, options: Options) -> list[Stance]:
    """What each case says, row by row; nothing where nobody asks."""
    if not options.ask_about:
        return []
    ids = [UUID(bytes=id_.tobytes()) for id_ in case_vectors.ids]
    stance_of: dict[UUID, Stance] = {}
    for start in range(0, len(ids), READ_AT_ONCE):  # answers may be long: none is kept
        read = await reader.case_texts(ids[start : start + READ_AT_ONCE])
        stance_of |= await gently(partial(_said, read))
    return [stance_of[id_] for id_ in ids]


def _said(cases: Sequence[CaseText]) -> dict[UUID, Stance]:
    return {case.id: stance(case) for case in cases}


def _agreement(stances: Sequence[Stance], rows: Ints, options: Options) -> Agreement | None:
    """Which of some rows say the same."""
    if not stances:
        return None
    ordered = [stances[row] for row in rows]
    numbered: dict[tuple[object, ...], int] = {}
    codes = [numbered.setdefault(entry.marks(options.ask_about), len(numbered)) for entry in ordered]
    return Agreement(
        codes=np.array(codes, dtype=np.int64),
        differ=lambda row, other: bool(doubts(ordered[row], ordered[other], options.ask_about)),
    )


def _grouped(
    bank: Bank, case_vectors: CaseVectors, stances: Sequence[Stance], apart: Distinct, options: Options
) -> tuple[Ints, Ints, Grouping]:
    """The rows of vectors and the places of cases in the order of preference, and the groups among them."""
    places = places_in(bank.cases.ids, case_vectors.ids)
    there = np.flatnonzero(places >= 0)
    there = there[~bank.gone[places[there]]]
    rows = there[preferred(bank, places[there])]
    order = places[rows]
    may_go, kept_apart = bank.may_go(options)[order], _kept_apart(bank, order, apart)
    grouping = duplicates(
        case_vectors.vectors[rows],
        may_go,
        above=options.similarity_threshold,
        apart=kept_apart,
        agreement=_agreement(stances, rows, options),
    )
    return rows, order, grouping


def preferred(bank: Bank, places: Ints) -> NDArray[np.intp]:
    """E03: the most used first; then the higher success rate, an unknown one last; then the older; then by id."""
    rate = np.where(np.isnan(bank.cases.success_rate), -1.0, bank.cases.success_rate)
    return np.lexsort((places, bank.cases.created_at[places], -rate[places], -bank.uses[places]))


def _kept_apart(bank: Bank, order: Ints, apart: Distinct) -> set[tuple[int, int]]:
    """P11: pairs that a person keeps apart for good, or declined as they are now."""
    if not apart:
        return set()
    rank = {str(bank.cases.id_of(row)): number for number, row in enumerate(order.tolist())}
    pairs: set[tuple[int, int]] = set()
    for (a, b), state in apart.items():
        if a in rank and b in rank and state in (None, bank.state_of(int(order[rank[a]]), int(order[rank[b]]))):
            pairs.add((min(rank[a], rank[b]), max(rank[a], rank[b])))
    return pairs


def _merge_all(bank: Bank, order: Ints, grouping: Grouping, options: Options, links: Relinking) -> None:
    for group in grouping.groups:
        _merge(bank, order, group, options, links)
    _note_chains(bank, order, grouping)


def _merge(bank: Bank, order: Ints, group: CaseGroup, options: Options, links: Relinking) -> None:
    for member, similarity in zip(group.members, group.similarities, strict=True):
        bank.merge(
            int(order[group.keeper]),
            int(order[member]),
            min(1.0, similarity),
            options.batch,
            rates=options.success_rates,
            links=links,
        )


def _note_chains(bank: Bank, order: Ints, grouping: Grouping) -> None:
    for keeper, other in grouping.chains[:LISTED]:
        a, b = (bank.cases.id_of(int(order[rank])) for rank in (keeper, other))
        bank.draft.note("chain", f"it is like {a}, but not like all that goes into it: a person should look", b)


def _ask(bank: Bank, order: Ints, grouping: Grouping, ordered: Sequence[Stance], options: Options) -> None:
    """E34: what is near and does not agree is for a person to look at."""
    for keeper, other, similarity in grouping.doubtful:
        why = doubts(ordered[keeper], ordered[other], options.ask_about)
        shown = ordered[keeper].shown, ordered[other].shown
        bank.ask(int(order[keeper]), int(order[other]), min(1.0, similarity), why, shown, policy=POLICY.name)


async def join(reader: Reader, groups: Sequence[Sequence[UUID]], scores: Mapping[UUID, float], now: datetime) -> Draft:
    """What a person says is one becomes one, whatever speaks against it but protection and the never-merge list."""
    bank = Bank(await reader.cases(), now)
    free = bank.asked.lacks("protected", bank.cases.protected)
    ids = [id_ for group in groups for id_ in group]
    distinct = {pair for pair, state in (await reader.distinct_pairs(now)).items() if state is None}
    links = Relinking(bank.draft, await reader.edges_of(ids))
    places = dict(zip(ids, places_in(bank.cases.ids, as_ids(ids)).tolist(), strict=True))
    for keep, *others in groups:
        for id_ in others:
            if why := _unfit(bank, free, places[keep], places[id_], distinct):
                bank.draft.note(REFUSED, why, id_)
            else:
                at = places[keep], places[id_]
                bank.merge(*at, scores.get(id_, 0.0), 100, rates=WEIGHTED, links=links)
    return bank.draft


def remember(side: QuestionSide, other: QuestionSide) -> tuple[str, str, str]:
    low, high = sorted((str(side.id), str(other.id)))
    return low, high, case_bank.state_of([(side.id, side.version), (other.id, other.version)])


def _unfit(bank: Bank, free: Flags, keep: int, absorbed: int, distinct: Collection[tuple[str, str]]) -> str | None:
    """Why a case cannot go into another, whoever says so."""
    if min(keep, absorbed) < 0 or bank.gone[keep] or bank.gone[absorbed]:
        return "one of them is in the bank no longer"
    low, high = sorted(str(bank.cases.id_of(at)) for at in (keep, absorbed))
    if not (free[keep] and free[absorbed]):
        return "one of them is protected: take the protection off first"
    return "they are on the never-merge list" if (low, high) in distinct else None


POLICY = Policy(
    name="merge_duplicate_cases",
    about="Of cases with the same question and answer, the most used stays and the others are merged into it.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="duplicate-cases",
    says="Merged {merged} cases",
    tally=case_bank.tally,
    asks_about="case",
    join=join,
    remember=remember,
)
