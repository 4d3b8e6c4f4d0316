"""Whatever is in the bank and whatever happens before a plan is applied: nothing protected goes, nothing is lost, undo
is identity, and the counts add up however often things are merged and taken apart again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import Recollect
from recollect.engine.engine import Engine
from recollect.model import Case, NewCase
from recollect.settings import Settings
from recollect.store.database import driver
from tests.case_support import NOW, ago, bank, direction, with_vector

SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
DIRECTIONS = [direction(1.0), direction(1.0, 0.3), direction(1.0, 0.6), direction(0.0, 1.0), direction(0.0)]


@dataclass(frozen=True)
class Made:
    uses: int
    rate: float | None
    idle: float
    protected: bool
    points: int | None


CASES = st.lists(
    st.builds(
        Made,
        uses=st.sampled_from([0, 3, 10, 11, 60, 100, 101, 499, 500, 501]),
        rate=st.sampled_from([None, 0.0, 12.5, 29.999, 30.0, 80.0]),
        idle=st.sampled_from([0.0, 6.999, 7.0, 7.001, 30.0, 89.99, 90.0, 90.01, 400.0]),
        protected=st.booleans(),
        points=st.sampled_from([None, 0, 0, 1, 2, 3, 4]),
    ),
    min_size=1,
    max_size=9,
)
SINCE = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(["use", "protect", "answer"])), max_size=3)


class Store:
    """One store for all examples, a space for each."""

    memory: ClassVar[Recollect]

    @classmethod
    @contextmanager
    def opened(cls, database_url: str) -> Iterator[None]:
        chosen = Settings.load(database_url=database_url, embedder="hashing:64", pool_size=4, brake_at_least=10_000)
        with Recollect(settings=chosen, worker=False) as cls.memory:
            yield


@pytest.fixture(autouse=True)
def store(database_url: str) -> Iterator[None]:
    with Store.opened(database_url):
        yield


def a_bank(made: list[Made]) -> tuple[Recollect, list[UUID]]:
    slug = f"e-{uuid4().hex[:12]}"
    Store.memory.add_space(slug)
    there = Store.memory.in_space(slug)
    there.core.now = lambda: NOW
    wanted = [
        NewCase(
            query=f"question {chr(ord('a') + number)}",
            response_text="the answer",
            usage_count=one.uses,
            success_rate=one.rate,
            last_accessed_at=ago(one.idle),
            created_at=ago(500 + number),
        )
        for number, one in enumerate(made)
    ]
    ids = list(there.cases.add_many(wanted, wait=False).ids)
    call(there, prepare, ids, made)
    return there, ids


async def prepare(engine: Engine, ids: list[UUID], made: list[Made]) -> None:
    for id_, one in zip(ids, made, strict=True):
        if one.points is not None:
            await with_vector(engine, id_, DIRECTIONS[one.points])
        if one.protected:
            await engine.cases.update(id_, protected=True)


def call(there: Recollect, work: Any, *arguments: Any) -> Any:
    """Work of a test that needs the engine itself."""
    return there._portal.call(partial(work, there._engine, *arguments))


async def happen(engine: Engine, ids: list[UUID], since: list[tuple[int, str]]) -> None:
    for place, what in since:
        case = ids[place % len(ids)]
        if what == "protect":
            await engine.cases.update(case, protected=True)
        elif what == "answer":
            await engine.cases.update(case, response_text=f"another {uuid4()}", wait=False)
        else:
            async with engine.core.transaction(engine.space.id) as db:
                raw = await driver(db)
                await raw.execute(
                    """INSERT INTO activity (space_id, node_id, uses, last_used_at) VALUES ($1, $2, 1, $3)
                       ON CONFLICT (space_id, node_id) DO UPDATE SET uses = activity.uses + 1, last_used_at = $3""",
                    *(engine.space.id, case, NOW),
                )


def is_safe(case: Case) -> bool:
    """By the words of the specification: E09, E10, and what a person protects."""
    return (
        bool(case.protected)
        or case.usage_count > 500
        or NOW - (case.last_accessed_at or case.created_at) <= timedelta(days=7)
    )


@SLOW
@given(made=CASES, since=SINCE)
def test_E09_E10_no_protected_case_is_ever_archived_whatever_happens_before_it_is_applied(
    made: list[Made], since: list[tuple[int, str]]
) -> None:
    there, ids = a_bank(made)
    dry = there.cases.consolidate(dry_run=True)
    call(there, happen, ids, since)
    safe = {id_ for id_ in ids if is_safe(there.cases.get(id_))}
    there.plans.apply(dry.plan_id)
    gone = {case.case_id for case in there.cases.list(status="archived").items}
    assert not gone & safe
    for id_ in ids:
        case = there.cases.get(id_)
        if case.merged_into is not None:
            assert there.cases.get(case.merged_into).merged_into is None


@SLOW
@given(made=CASES)
def test_E20_P12_run_and_undo_is_identity_and_the_dry_run_was_right(made: list[Made]) -> None:
    there, ids = a_bank(made)
    before = call(there, bank)
    total = sum(one.uses for one in made)
    dry = there.cases.consolidate(dry_run=True)
    there.plans.apply(dry.plan_id)
    assert {case.case_id for case in there.cases.list(status="archived").items} == {
        *dry.details.removed,
        *dry.details.archived,
        *(one.removed for one in dry.details.merged),
    }
    everything = [there.cases.get(id_) for id_ in ids]
    assert sum(case.usage_count for case in everything if case.merged_into is None) == total
    assert there.cases.consolidate(dry_run=True).merged_cases == 0
    there.plans.undo(dry.plan_id)
    assert call(there, bank) == before


@SLOW
@given(made=CASES, order=st.randoms(use_true_random=False))
def test_E16_taking_everything_back_one_by_one_gives_every_case_its_own_counts(made: list[Made], order: Any) -> None:
    there, ids = a_bank(made)
    before = call(there, bank)
    dry = there.cases.consolidate(dry_run=True)
    there.plans.apply(dry.plan_id)
    gone = [case.case_id for case in there.cases.list(status="archived").items]
    order.shuffle(gone)
    for case in gone:
        there.cases.restore(case)
    assert [there.cases.get(id_).usage_count for id_ in ids] == [one.uses for one in made]
    assert [there.cases.get(id_).success_rate for id_ in ids] == [one.rate for one in made]
    assert all(there.cases.get(case).last_accessed_at == NOW for case in gone)
    after = call(there, bank)
    for row in (*before["activity"], *after["activity"]):
        row.pop("last_used_at")  # a restoring is an access
    assert after == before
