"""Archive poor cases: answers that were tried often enough and mostly failed go to rest (E01, E09-E12).

Never a case whose success nobody knows, never one that was used lately or a lot. Before it takes effect somebody is
told, and where nobody can be, the plan waits (E02).
"""

from dataclasses import dataclass
from datetime import datetime

import anyio.to_thread
import numpy as np

from recollect.cases.policies import bank as case_bank
from recollect.cases.policies.bank import LOW_PERFORMANCE, Bank, Protection
from recollect.graph.rules.arrays import Flags
from recollect.plan import Plan, Risk
from recollect.plans.policy import Policy, Reader
from recollect.wording import counted, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Protection):
    """Below which success (percent), after how many uses, a case goes to rest."""

    success_rate_below: float = 30.0
    min_usage_count: int = 10

    def __post_init__(self) -> None:
        Protection.__post_init__(self)
        require(0 <= self.success_rate_below <= 100, "success_rate_below", "percent, from 0 to 100")
        case_bank.require_uses(self.min_usage_count, "min_usage_count")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    bank = Bank(await reader.cases(), now)
    await anyio.to_thread.run_sync(decide, bank, options)
    return bank.draft.plan(
        title=f"Archive {counted(len(bank.draft.decisions), 'case that mostly fails', 'cases that mostly fail')}",
        now=now,
        summary=bank.summary(),
    )


def decide(bank: Bank, options: Options) -> None:
    """The worst first."""
    chosen = np.flatnonzero(bank.may_go(options) & is_poor(bank, options) & is_tried(bank, options))
    for row in chosen[np.argsort(bank.cases.success_rate[chosen], kind="stable")].tolist():
        bank.archive(row, LOW_PERFORMANCE, _reason(bank, row, options), options.batch)


def is_poor(bank: Bank, options: Options) -> Flags:
    """E11: an unknown rate (NaN) is below nothing."""
    return bank.asked.below("case_success_below", bank.cases.success_rate, options.success_rate_below)


def is_tried(bank: Bank, options: Options) -> Flags:
    return bank.asked.above("case_uses_over", bank.uses, options.min_usage_count)


def _reason(bank: Bank, row: int, options: Options) -> str:
    standing = bank.standing(row)
    rate, least = case_bank.percent(standing["success_rate"]), case_bank.percent(options.success_rate_below)
    return f"success {rate} < {least} in {counted(standing['usage_count'], 'use')}"


POLICY = Policy(
    name="archive_poor_cases",
    about="Cases that were tried often enough and mostly failed are archived.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="poor-cases",
    says="Archived {removed} poor cases",
    tally=case_bank.tally,
    announces="removed",
)
