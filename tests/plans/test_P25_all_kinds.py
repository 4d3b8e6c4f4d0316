"""P25: whatever kinds of plans meet in whatever order, what a plan promises holds after every step.

    TEST_TIMES=50 pytest tests/plans/test_P25_all_kinds.py       a night's worth: 6,000 sequences, of 50 seeds
    python -m tests.plans.finding                                how soon it finds what it is there to find

The machine is in all_kinds_machine.py, what must hold in all_kinds.py; docs/how-it-is-tested.md tells of both.
"""

import os
from collections.abc import Iterator

import pytest

from tests.plans.all_kinds_machine import opened, play, replay
from tests.plans.found import FOUND
from tests.plans.mendings import MENDINGS, taken_out

# Of each seed so many sequences, in parts that processes beside each other share.
TIMES = int(os.environ.get("TEST_TIMES", "1"))
SEQUENCES = 120
PARTS = 4


@pytest.fixture(scope="module")
def machine(database_url: str) -> Iterator[None]:
    with opened(database_url):
        yield


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("seed", range(1, 1 + TIMES))
@pytest.mark.parametrize("part", range(PARTS))
def test_P25_every_kind_of_plan_keeps_its_promises_beside_every_other(seed: int, part: int) -> None:
    play(seed, range(1 + part, 1 + SEQUENCES, PARTS))


@pytest.mark.usefixtures("machine")
def test_P18_the_plan_that_moved_an_edge_into_a_place_is_named_where_another_wants_it_back() -> None:
    play(3, [102])  # where it was not: only who had brought the edge back was looked for


@pytest.mark.usefixtures("machine")
def test_P19_a_strength_that_two_plans_set_is_given_back_whichever_goes_first() -> None:
    play(7, [98])  # where the second went back to what the first had made of it, though that was taken back


def test_P25_every_mending_has_steps_that_lead_to_its_fault() -> None:
    assert FOUND.keys() == MENDINGS.keys()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("name", FOUND)
def test_P25_what_a_mending_prevents_is_found_without_it(
    database_url: str, name: str, request: pytest.FixtureRequest
) -> None:
    if name == "P15":  # a trigger, which is taken out
        request.getfixturevalue("one_server")
    with taken_out(name, database_url), pytest.raises(AssertionError, match=FOUND[name].says):
        replay(FOUND[name].steps)
    replay(FOUND[name].steps)
