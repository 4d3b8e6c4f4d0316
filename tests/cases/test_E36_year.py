"""A year of a case bank, week by week, with a clock that the test turns (whole: `./run bench year`)."""

import pytest

from recollect import AsyncRecollect
from recollect.settings import Settings
from tests.case_year import CaseYear, Clock
from tests.conftest import fresh_space


@pytest.mark.anyio
async def test_E36_a_year_of_weekly_runs_loses_no_case_that_does_well(settings: Settings) -> None:
    clock = Clock()
    async with AsyncRecollect(settings=await fresh_space(settings), clock=clock, worker=False) as memory:
        year = CaseYear(memory, clock, cases=30, weekly=1, uses=6)
        await year.pass_by(52)
        assert year.problems == []
        # What happened in it: a year in which nothing did would prove nothing.
        assert min(year.counts[what] for what in ("removed", "merged", "archived", "asked")) > 0
        await year.take_everything_back()
        assert year.problems == []
