"""Archive unused cases: what nobody asked for in a long time goes to rest, unless it once was much used (E08-E12)."""

from dataclasses import dataclass
from datetime import datetime
from math import inf

import anyio.to_thread
import numpy as np

from recollect.cases.policies import bank as case_bank
from recollect.cases.policies.bank import INACTIVE, Bank, Protection
from recollect.graph.rules.arrays import Flags
from recollect.plan import Plan, Risk
from recollect.plans.policy import Policy, Reader
from recollect.wording import counted, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Protection):
    """After how many days without a use a case goes to rest, and from how many uses on it never does."""

    inactive_days: float = 90.0
    keep_usage_count: int = 100

    def __post_init__(self) -> None:
        Protection.__post_init__(self)
        require(0 <= self.inactive_days < inf, "inactive_days", "a number of days, 0 or more")
        case_bank.require_uses(self.keep_usage_count, "keep_usage_count")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    bank = Bank(await reader.cases(), now)
    await anyio.to_thread.run_sync(decide, bank, options)
    return bank.draft.plan(
        title=f"Archive {counted(len(bank.draft.decisions), 'case')} that nobody asks for",
        now=now,
        summary=bank.summary(),
    )


def decide(bank: Bank, options: Options) -> None:
    """The longest unused first."""
    chosen = np.flatnonzero(bank.may_go(options) & is_unused(bank, options) & is_little_used(bank, options))
    for row in chosen[np.argsort(-bank.idle_days[chosen], kind="stable")].tolist():
        bank.archive(row, INACTIVE, _reason(bank, row, options), options.batch)


def is_unused(bank: Bank, options: Options) -> Flags:
    """For more than so many days: exactly so many are not enough."""
    return bank.asked.above("case_idle_days_over", bank.idle_days, options.inactive_days)


def is_little_used(bank: Bank, options: Options) -> Flags:
    return bank.asked.at_most("case_uses_at_most", bank.uses, options.keep_usage_count)


def _reason(bank: Bank, row: int, options: Options) -> str:
    idle, uses = bank.idle_days[row], int(bank.uses[row])
    return f"not used for {idle:,.4g} days > {options.inactive_days:g}, {counted(uses, 'use')} in all"


POLICY = Policy(
    name="archive_unused_cases",
    about="Cases that nobody asked for in a long time are archived, unless they were once used a lot.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="unused-cases",
    says="Archived {archived} unused cases",
    tally=case_bank.tally,
)
