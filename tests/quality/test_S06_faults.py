"""A short form of `./run bench faults`: whatever runs is killed while everything runs, and nothing is lost (S06)."""

import asyncio
import random
from pathlib import Path

from bench.faults import House, suffered
from tests import programs


def test_S06_whatever_is_killed_nothing_acknowledged_is_lost_and_nothing_is_half_done(new_home: Path) -> None:
    figures = asyncio.run(suffered(House(new_home.parent, start=programs.Popen), 5, random.Random(7)))
    assert not [(one.name, one.value, one.how) for one in figures if not one.holds]
    told = {one.name: one.value for one in figures}
    assert told["kills"] == 5
    assert told["acknowledged memories"] >= 6
