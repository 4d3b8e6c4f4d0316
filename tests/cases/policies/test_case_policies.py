"""The policies of the case bank, at the values where they change their mind (E01-E13)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from recollect.cases.policies import archive_poor_cases, archive_unused_cases, consolidate_cases, merge_duplicate_cases
from recollect.cases.rules.cases import SECONDS_A_DAY, CaseColumns, CaseVectors
from recollect.errors import InvalidInput
from recollect.graph.rules.arrays import as_ids
from recollect.model import Edge
from recollect.plan import Decision, Plan, Risk, checksum_of
from recollect.plans.policy import Policy
from recollect.plans.registry import POLICIES
from tests.graphs import NOW, Known, edge, edge_id, node

pytestmark = pytest.mark.anyio

# A cosine of exactly 0.95 with ONE: 19² + 6² + 3 = 20².
ONE = (1.0, 0.0, 0.0, 0.0, 0.0)
EXACTLY = (19.0, 6.0, 1.0, 1.0, 1.0)
JUST_ABOVE = (19.0, 6.0, 1.0, 1.0, 0.9)


@dataclass(frozen=True)
class C:
    """A case of a test: not used for a month, made a year ago, nothing known of its success."""

    uses: int = 0
    rate: float | None = None
    idle: float = 30.0
    age: float = 365.0
    protected: bool = False
    vector: tuple[float, ...] | None = None
    version: int = 1


def columns(cases: Sequence[C]) -> CaseColumns:
    now = NOW.timestamp()
    return CaseColumns(
        ids=as_ids([node(number) for number in range(len(cases))]),
        uses=np.array([case.uses for case in cases], dtype=np.int64),
        success_rate=np.array([np.nan if case.rate is None else case.rate for case in cases], dtype=np.float64),
        last_used_at=np.array([now - case.idle * SECONDS_A_DAY for case in cases], dtype=np.float64),
        created_at=np.array([now - case.age * SECONDS_A_DAY for case in cases], dtype=np.float64),
        protected=np.array([case.protected for case in cases], dtype=np.bool_),
        version=np.array([case.version for case in cases], dtype=np.int64),
        plain=np.zeros(len(cases), dtype=np.bool_),
    )


def vectors(cases: Sequence[C]) -> list[CaseVectors]:
    """Each length for itself, as the store reads them."""
    found = []
    for dim in sorted({len(case.vector) for case in cases if case.vector}):
        there = [number for number, case in enumerate(cases) if case.vector and len(case.vector) == dim]
        numbers = np.array([cases[number].vector for number in there], dtype=np.float16)
        found.append(CaseVectors(ids=as_ids([node(number) for number in there]), vectors=numbers))
    return found


async def proposed(policy: Policy, *cases: C, edges: Sequence[Edge] = (), apart: Any = None, **options: Any) -> Plan:
    reader = Known(edges, cases=columns(cases), case_vectors=vectors(cases), apart=apart)
    return await policy.propose(reader, policy.options(**options), NOW)


def gone(plan: Plan) -> list[int]:
    """The numbers of the cases that a plan archives or merges."""
    return sorted(one.subject.int >> 64 for one in plan.decisions)


def merged(plan: Plan) -> list[tuple[int, int]]:
    """(keeper, removed), as numbers."""
    pairs = [(one.factors["keeper"], one.factors["removed"]) for one in plan.decisions if one.verb == "merge"]
    return [(UUID(keeper).int >> 64, UUID(removed).int >> 64) for keeper, removed in pairs]


def must_of(decision: Decision) -> dict[str, Any]:
    return dict(next(premise.must for premise in decision.premises if premise.id == decision.subject))


POOR, DUPLICATE = archive_poor_cases.POLICY, merge_duplicate_cases.POLICY
UNUSED, ALL = archive_unused_cases.POLICY, consolidate_cases.POLICY


# -- poor cases


@pytest.mark.parametrize(("rate", "goes"), [(29.999, True), (30.0, False), (30.001, False), (0.0, True)])
async def test_E01_only_a_rate_below_30_percent_is_poor(rate: float, goes: bool) -> None:
    assert bool(gone(await proposed(POOR, C(uses=11, rate=rate)))) is goes


@pytest.mark.parametrize(("uses", "goes"), [(10, False), (11, True), (500, True), (501, False)])
async def test_E01_E10_poor_cases_go_after_more_than_10_uses_and_never_after_more_than_500(
    uses: int, goes: bool
) -> None:
    assert bool(gone(await proposed(POOR, C(uses=uses, rate=5.0)))) is goes


@pytest.mark.parametrize(("idle", "goes"), [(6.999, False), (7.0, False), (7.001, True)])
async def test_E09_what_was_used_within_7_days_is_never_archived(idle: float, goes: bool) -> None:
    assert bool(gone(await proposed(POOR, C(uses=50, rate=5.0, idle=idle)))) is goes
    twin = C(uses=50, vector=ONE)
    assert bool(gone(await proposed(DUPLICATE, twin, C(uses=1, idle=idle, vector=ONE)))) is goes
    assert gone(await proposed(UNUSED, C(idle=idle), inactive_days=0)) == ([0] if goes else [])


async def test_E11_an_unknown_rate_is_not_poor() -> None:
    assert gone(await proposed(POOR, C(uses=50, rate=None))) == []


async def test_E01_the_plan_says_why_and_what_must_still_hold() -> None:
    (decision,) = (await proposed(POOR, C(uses=40, rate=12.5))).decisions
    assert decision.reason == "success 12.5 % < 30 % in 40 uses"
    assert decision.factors["archived_reason"] == "low_performance"
    assert must_of(decision) == {
        "protected": False,
        "case_idle_days_over": 7.0,
        "case_uses_at_most": 500,
        "case_success_below": 30.0,
        "case_uses_over": 10,
    }
    archived, copied = decision.changes
    assert (archived.before, archived.after) == ({"status": "active"}, {"status": "archived"})
    assert copied.table == "case_archive"
    assert copied.before is None


async def test_a_protected_case_is_left_alone_by_every_policy() -> None:
    poor_and_old = C(uses=50, rate=1.0, idle=200, protected=True, vector=ONE)
    assert gone(await proposed(ALL, poor_and_old, C(uses=99, rate=99.0, vector=ONE))) == []


# -- duplicates


@pytest.mark.parametrize(("vector", "goes"), [(EXACTLY, False), (JUST_ABOVE, True)])
async def test_E03_duplicates_are_more_than_95_percent_similar(vector: tuple[float, ...], goes: bool) -> None:
    plan = await proposed(DUPLICATE, C(uses=5, vector=ONE), C(uses=3, vector=vector))
    assert merged(plan) == ([(0, 1)] if goes else [])


async def test_E03_the_more_used_is_kept_then_the_more_successful_then_the_older() -> None:
    assert merged(await proposed(DUPLICATE, C(uses=1, vector=ONE), C(uses=2, vector=ONE))) == [(1, 0)]
    better = [C(uses=2, rate=None, vector=ONE), C(uses=2, rate=0.0, vector=ONE), C(uses=2, rate=9.0, vector=ONE)]
    assert sorted(merged(await proposed(DUPLICATE, *better))) == [(2, 0), (2, 1)]
    older = [C(age=10, idle=9, vector=ONE), C(age=11, idle=9, vector=ONE)]
    assert merged(await proposed(DUPLICATE, *older)) == [(1, 0)]


async def test_E03_the_decision_shows_usage_and_success_of_both() -> None:
    keeper, other = C(uses=40, rate=80.0, vector=ONE), C(uses=4, rate=None, vector=ONE)
    (decision,) = (await proposed(DUPLICATE, keeper, other)).decisions
    assert "40 uses, 80 % success against 4 uses, unknown success" in decision.reason
    assert decision.factors["keeps"] == {"usage_count": 40, "success_rate": 80.0, "idle_days": 30.0}
    assert decision.factors["goes"] == {"usage_count": 4, "success_rate": None, "idle_days": 30.0}
    assert decision.score == 1.0


async def test_E05_unknown_rates_never_count_as_zero_in_the_choice() -> None:
    plan = await proposed(DUPLICATE, C(uses=3, rate=None, vector=ONE), C(uses=3, rate=0.0, vector=ONE))
    assert merged(plan) == [(1, 0)]


async def test_E07_each_case_goes_at_most_once_and_only_into_one_that_stays() -> None:
    plan = await proposed(DUPLICATE, *(C(uses=number, vector=ONE) for number in range(6)))
    assert sorted(merged(plan)) == [(5, number) for number in range(5)]


async def test_E07_complete_link_a_chain_is_left_for_review() -> None:
    """The ends are like the middle one, but not like each other."""
    angle = np.radians(15)
    left, middle, right = ((np.cos(n * angle), np.sin(n * angle)) for n in (-1, 0, 1))
    plan = await proposed(DUPLICATE, C(uses=2, vector=left), C(uses=9, vector=middle), C(uses=1, vector=right))
    assert merged(plan) == [(1, 0)]
    (finding,) = plan.findings
    assert (finding.rule, finding.subject) == ("chain", node(2))
    assert plan.summary["review"] == 1


async def test_E10_a_much_used_case_may_be_a_keeper_but_does_not_go() -> None:
    plan = await proposed(DUPLICATE, C(uses=501, vector=ONE), C(uses=600, vector=ONE), C(uses=500, vector=ONE))
    assert merged(plan) == [(1, 2)]


async def test_E32_zero_vectors_and_other_lengths_are_like_nothing() -> None:
    zero, short = C(vector=(0.0,) * 5), C(vector=(1.0, 0.0))
    plan = await proposed(DUPLICATE, zero, zero, C(vector=ONE), short, C(vector=None))
    assert merged(plan) == []
    both = await proposed(DUPLICATE, C(vector=ONE), C(vector=ONE), short, short)
    assert sorted(merged(both)) == [(0, 1), (2, 3)]


async def test_P11_a_declined_pair_is_not_offered_until_one_of_them_changes() -> None:
    pair = [C(uses=2, vector=ONE), C(uses=1, vector=ONE)]
    (decision,) = (await proposed(DUPLICATE, *pair)).decisions
    a, b = decision.factors["pair"]
    declined = {(a, b): decision.factors["state"]}
    assert merged(await proposed(DUPLICATE, *pair, apart=declined)) == []
    changed = [pair[0], replace(pair[1], version=2)]
    assert merged(await proposed(DUPLICATE, *changed, apart=declined)) == [(0, 1)]
    assert merged(await proposed(DUPLICATE, *changed, apart={(a, b): None})) == []


async def test_C11_links_go_along_but_none_twice_and_none_to_itself() -> None:
    """0 is kept, 1 and 2 go into it; 7 is something else."""
    cases = [C(uses=9, vector=ONE), C(uses=2, vector=ONE), C(uses=1, vector=ONE)]
    edges = [edge(1, 1, 7), edge(2, 0, 7), edge(3, 2, 7, relation="extends"), edge(4, 1, 2), edge(5, 0, 1)]
    plan = await proposed(DUPLICATE, *cases, edges=edges)
    links: dict[int, list[Any]] = {}
    for decision in plan.decisions:
        for change in decision.changes:
            if change.table == "edges":
                links.setdefault(change.id.int >> 64, []).append(change.after)
    assert links[1] == [{"status": "merged", "merged_into": str(edge(2, 0, 7).id)}]
    assert links[3] == [{"source": str(node(0))}]
    assert links[4][-1] == {"status": "pruned"}
    assert links[5] == [{"status": "pruned"}]
    assert 2 not in links
    first, second = plan.decisions
    assert must_of(first)["edges"] == checksum_of([edge_id(number) for number in (1, 4, 5)])
    assert second.needs == (1,)


# -- unused cases


@pytest.mark.parametrize(("idle", "goes"), [(89.99, False), (90.0, False), (90.01, True)])
async def test_E08_more_than_90_days_without_a_use(idle: float, goes: bool) -> None:
    assert bool(gone(await proposed(UNUSED, C(idle=idle)))) is goes


@pytest.mark.parametrize(("uses", "goes"), [(0, True), (100, True), (101, False)])
async def test_E08_more_than_100_uses_are_an_exception(uses: int, goes: bool) -> None:
    plan = await proposed(UNUSED, C(uses=uses, idle=200))
    assert bool(gone(plan)) is goes
    if goes:
        must = must_of(plan.decisions[0])
        assert (must["case_idle_days_over"], must["case_uses_at_most"]) == (90.0, 100)


# -- the three in order


async def test_E12_the_steps_come_in_order_and_each_sees_the_ones_before() -> None:
    poor_keeper = C(uses=50, rate=10.0, vector=ONE)  # would be the keeper of the twin, but goes first
    twin = C(uses=20, rate=60.0, vector=ONE)
    third = C(uses=5, idle=100, vector=ONE)  # goes into the twin, and so is not archived as unused
    lonely = C(uses=5, idle=100)
    plan = await proposed(ALL, poor_keeper, twin, third, lonely)
    done = [(one.verb, one.subject.int >> 64, one.factors["archived_reason"]) for one in plan.decisions]
    assert done == [("archive", 0, "low_performance"), ("merge", 2, "duplicate"), ("archive", 3, "inactive")]
    assert merged(plan) == [(1, 2)]
    assert [plan.summary[name] for name in ("removed", "merged", "archived", "cases")] == [1, 1, 1, 4]


async def test_E12_what_a_merge_adds_up_to_protects_the_keeper() -> None:
    """60 + 50 uses are more than 100; and the latest access of both counts."""
    assert gone(await proposed(ALL, C(uses=60, idle=100, vector=ONE), C(uses=50, idle=100, vector=ONE))) == [1]
    plan = await proposed(ALL, C(uses=9, idle=100, vector=ONE), C(uses=5, idle=50, vector=ONE))
    assert gone(plan) == [1]


async def test_E13_every_threshold_is_an_option() -> None:
    case = C(uses=3, rate=40.0, idle=3, vector=ONE)
    assert gone(await proposed(ALL, case)) == []
    assert gone(await proposed(ALL, case, success_rate_below=50, min_usage_count=2, recent_days=2)) == [0]
    assert gone(await proposed(ALL, C(idle=11), inactive_days=10, keep_usage_count=0)) == [0]
    assert gone(await proposed(ALL, C(uses=1, idle=11), inactive_days=10, keep_usage_count=0)) == []
    pair = [C(uses=5, vector=ONE), C(uses=3, vector=EXACTLY)]
    assert merged(await proposed(ALL, *pair, similarity_threshold=0.94)) == [(0, 1)]
    assert gone(await proposed(POOR, C(uses=60, rate=1.0), protected_usage_count=50)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"success_rate_below": 101},
        {"success_rate_below": float("nan")},
        {"min_usage_count": -1},
        {"similarity_threshold": 1.0},
        {"similarity_threshold": 0.0},
        {"success_rates": "guessed"},
        {"inactive_days": -1},
        {"inactive_days": float("inf")},
        {"keep_usage_count": -1},
        {"keep_usage_count": 10**25},
        {"min_usage_count": 10**25},
        {"protected_usage_count": 10**25},
        {"recent_days": -0.1},
        {"protected_usage_count": -1},
        {"batch": 101},
        {"batch": 0},
    ],
)
def test_E13_thresholds_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        consolidate_cases.Options(**wrong)
    assert refused.value.field == next(iter(wrong))


def test_E04_the_plain_option_says_how_rates_are_combined() -> None:
    assert consolidate_cases.Options().success_rates == "weighted"
    assert consolidate_cases.Options(success_rates="plain").success_rates == "plain"


async def test_E21_decisions_are_applied_at_most_100_at_a_time() -> None:
    plan = await proposed(UNUSED, *(C(idle=200) for _ in range(250)))
    sizes = [sum(one.group == group for one in plan.decisions) for group in {one.group for one in plan.decisions}]
    assert sorted(sizes) == [50, 100, 100]


def test_E22_the_policies_of_the_bank_wait_in_production_and_removals_are_announced() -> None:
    names = ("consolidate_cases", "archive_poor_cases", "merge_duplicate_cases", "archive_unused_cases")
    assert {POLICIES[name].risk for name in names} == {Risk.HIGH}
    assert [POLICIES[name].announces for name in names] == ["removed", "removed", None, None]


def test_E29_E30_weekly_on_sunday_at_two_with_a_report() -> None:
    assert (ALL.cron, ALL.report) == ("0 2 * * sun", "Consolidation Report")
    assert all(policy.cron is None and policy.every_minutes is None for policy in (POOR, DUPLICATE, UNUSED))


def test_every_step_has_the_defaults_of_the_whole_run() -> None:
    whole = asdict(consolidate_cases.Options())
    for policy in (POOR, DUPLICATE, UNUSED):
        own = asdict(policy.options())
        assert own.items() <= whole.items()


def test_idle_days_are_exact() -> None:
    now: datetime = NOW
    cases = columns([C(idle=7.0), C(idle=90.0), C(idle=0.0)])
    assert cases.idle_days_at(now).tolist() == [7.0, 90.0, 0.0]
