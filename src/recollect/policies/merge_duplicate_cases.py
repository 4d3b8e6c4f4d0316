"""Merge duplicate cases: of cases whose queries mean the same, the one that is used most stays (E03-E07).

The others are archived with their data and point to it. Its counts are derived from all of them, so a merge can be
taken back at any time, each with its own counts. Complete link: what is similar to the keeper but not to all that it
has taken in stays, and is named for review.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.plan import Plan, Risk
from recollect.policies import case_bank
from recollect.policies.case_bank import LISTED, Bank, Protection, Relinking
from recollect.policies.gently import gently
from recollect.policies.policy import Policy, Reader, require
from recollect.rules.case_duplicates import Group, Grouping, duplicates, fitting
from recollect.rules.cases import CaseVectors
from recollect.rules.graph import Ints, places_in
from recollect.wording import counted

WEIGHTED, PLAIN = "weighted", "plain"

Distinct = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Protection):
    """Above which cosine two cases are the same; and how success rates are combined: weighted by uses, or plain."""

    similarity_threshold: float = 0.95
    success_rates: str = WEIGHTED

    def __post_init__(self) -> None:
        Protection.__post_init__(self)
        require(0 < self.similarity_threshold < 1, "similarity_threshold", "above 0 and below 1")
        require(self.success_rates in (WEIGHTED, PLAIN), "success_rates", f"{WEIGHTED} or {PLAIN}")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    bank = Bank(await reader.cases(), now)
    await decide(reader, bank, options)
    return bank.draft.plan(
        policy=POLICY.name,
        title=f"Merge {counted(len(bank.draft.decisions), 'case')} into those that say the same",
        now=now,
        risk=POLICY.risk,
        options=asdict(options),
        summary=bank.summary(),
    )


async def decide(reader: Reader, bank: Bank, options: Options) -> None:
    apart = await reader.distinct_pairs(bank.now)
    for some in await reader.case_vectors():  # of one length each: others are never compared (E32)
        rows, order, found = await gently(partial(_grouped, bank, some, apart, options))
        involved = {
            bank.cases.id_of(int(order[place])): place for one in found.groups for place in (one.keeper, *one.members)
        }
        within = await reader.case_vectors_within(list(involved), some.vectors.shape[1])
        before = {involved[id]: vectors for id, vectors in within.items()}
        if before:
            found = fitting(found, some.vectors[rows], before, above=options.similarity_threshold)
        links = await reader.edges_of(list(involved))
        await anyio.to_thread.run_sync(_merge_all, bank, order, found, options, Relinking(bank.draft, links))


def _grouped(bank: Bank, some: CaseVectors, apart: Distinct, options: Options) -> tuple[Ints, Ints, Grouping]:
    """The rows of vectors and the places of cases in the order of preference, and the groups among them."""
    places = places_in(bank.cases.ids, some.ids)
    there = np.flatnonzero(places >= 0)
    there = there[~bank.gone[places[there]]]
    rows = there[preferred(bank, places[there])]
    order = places[rows]
    may_go, kept_apart = bank.may_go(options)[order], _kept_apart(bank, order, apart)
    found = duplicates(some.vectors[rows], may_go, above=options.similarity_threshold, apart=kept_apart)
    return rows, order, found


def preferred(bank: Bank, places: Ints) -> NDArray[np.intp]:
    """E03: the most used first; then the higher success rate, an unknown one last; then the older; then by id."""
    rate = np.where(np.isnan(bank.cases.success_rate), -1.0, bank.cases.success_rate)
    return np.lexsort((places, bank.cases.created_at[places], -rate[places], -bank.uses[places]))


def _kept_apart(bank: Bank, order: Ints, apart: Distinct) -> set[tuple[int, int]]:
    """P11: pairs that a person keeps apart for good, or declined as they are now."""
    if not apart:
        return set()
    rank = {str(bank.cases.id_of(place)): number for number, place in enumerate(order.tolist())}
    found: set[tuple[int, int]] = set()
    for (a, b), state in apart.items():
        if a in rank and b in rank and state in (None, bank.state_of(int(order[rank[a]]), int(order[rank[b]]))):
            found.add((min(rank[a], rank[b]), max(rank[a], rank[b])))
    return found


def _merge_all(bank: Bank, order: Ints, found: Grouping, options: Options, links: Relinking) -> None:
    for group in found.groups:
        _merge(bank, order, group, options, links)
    _note_chains(bank, order, found)


def _merge(bank: Bank, order: Ints, group: Group, options: Options, links: Relinking) -> None:
    for member, similarity in zip(group.members, group.similarities, strict=True):
        bank.merge(
            int(order[group.keeper]),
            int(order[member]),
            min(1.0, similarity),
            options.must,
            options.batch,
            rates=options.success_rates,
            links=links,
        )


def _note_chains(bank: Bank, order: Ints, found: Grouping) -> None:
    for keeper, other in found.chains[:LISTED]:
        a, b = (bank.cases.id_of(int(order[place])) for place in (keeper, other))
        bank.draft.note("chain", f"it is like {a}, but not like all that goes into it: a person should look", b)


POLICY = Policy(
    name="merge_duplicate_cases",
    about="Of cases whose queries mean the same, the most used stays and the others go into it.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="duplicate-cases",
    says="Merged {merged} cases",
    tally=case_bank.tally,
)
