"""Consolidate the case bank: retire what fails, merge what repeats, shelve what nobody asks for, in this order (E12).

One draft for all three, so that each step sees what the ones before it decided: what is shown is what is done (E20).
Weekly, in the night to Sunday's work; a report is sent afterwards (E29, E30).
"""

from dataclasses import dataclass
from datetime import datetime

import anyio.to_thread

from recollect.cases.policies import archive_poor_cases, archive_unused_cases, merge_duplicate_cases
from recollect.cases.policies import bank as case_bank
from recollect.cases.policies.bank import Bank, Protection, part_of
from recollect.plan import Plan, Risk
from recollect.plans.policy import Policy, Reader


@dataclass(frozen=True, kw_only=True, slots=True)
class Options(Protection):
    """Every threshold of the three steps (E13)."""

    success_rate_below: float = 30.0
    min_usage_count: int = 10
    similarity_threshold: float = 0.95
    success_rates: str = merge_duplicate_cases.WEIGHTED
    ask_about: tuple[str, ...] = merge_duplicate_cases.Options().ask_about
    inactive_days: float = 90.0
    keep_usage_count: int = 100

    def __post_init__(self) -> None:
        for step in (archive_poor_cases, merge_duplicate_cases, archive_unused_cases):
            part_of(self, step.Options)


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    bank = Bank(await reader.cases(), now)
    poor, unused = part_of(options, archive_poor_cases.Options), part_of(options, archive_unused_cases.Options)
    await anyio.to_thread.run_sync(archive_poor_cases.decide, bank, poor)
    await merge_duplicate_cases.decide(reader, bank, part_of(options, merge_duplicate_cases.Options))
    await anyio.to_thread.run_sync(archive_unused_cases.decide, bank, unused)
    summary = bank.summary()
    return bank.draft.plan(
        title="Consolidate cases: {removed:,} removed, {merged:,} merged, {archived:,} archived".format_map(summary),
        now=now,
        summary=summary,
    )


POLICY = Policy(
    name="consolidate_cases",
    about="Cases that fail or that nobody asks for are archived; duplicates are merged.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="cases",
    says="Removed {removed} cases, merged {merged}, archived {archived}",
    tally=case_bank.tally,
    report="Consolidation Report",
    cron="0 2 * * sun",
    announces="removed",
)
