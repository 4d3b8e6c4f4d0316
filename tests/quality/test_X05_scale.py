"""X05: the arithmetic of docs/scale.md, and the texts and vectors that it is measured with."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bench import scale_page
from bench.capacity import GB, SERVER, Costs, Growth, Load, costs, off_by, reckoned
from bench.recall import BASE, WORDS
from bench.scale import batches, sentences
from bench.servers import Parts

COSTS = Costs(
    sizes=(100_000, 1_000_000),
    bytes_each=3_000,
    index_bytes_each=1_200,
    recall_cpu_ms=(10, 14),
    small_space_bytes_each=3_200,
    small_space_recall_cpu_ms=5,
)


@pytest.mark.parametrize(("growth", "expected"), [(Growth.EVEN, 4.0), (Growth.LINEAR, 40.0), (Growth.LOGARITHMIC, 6.0)])
def test_X05_each_growth_is_reckoned_from_two_sizes(growth: Growth, expected: float) -> None:
    assert growth.reckon([(1_000, 2.0), (10_000, 4.0)], 100_000) == pytest.approx(expected)


def test_X05_a_reckoning_that_is_off_says_by_how_much() -> None:
    known = [(1_000, 2.0), (10_000, 4.0)]
    assert off_by(Growth.LINEAR, known, 100_000, 40.0) == 1.0
    assert off_by(Growth.LINEAR, known, 100_000, 80.0) == off_by(Growth.LINEAR, known, 100_000, 20.0) == 2.0
    assert off_by(Growth.LOGARITHMIC, [(10, 9.0), (100, 1.0)], 1_000, 5.0) == math.inf


def test_X05_a_space_too_large_for_one_memory_is_limited_by_it() -> None:
    """The index of a space must be in memory, and a space is never split."""
    large = reckoned(Load(spaces=1, memories_each=1_000_000_000), SERVER, COSTS)
    assert large.index_gb == pytest.approx(1_200_000_000_000 / GB)
    assert (large.machines_for_memory, large.first_limit) == (7, "memory")
    small = reckoned(Load(spaces=1_000_000, memories_each=1_000), SERVER, COSTS)
    assert (small.machines, small.first_limit) == (2, "disk")


def test_X05_more_memories_never_take_fewer_machines() -> None:
    loads = [Load(spaces=10**power, memories_each=100_000) for power in range(7)]
    machines = [reckoned(load, SERVER, COSTS).machines for load in loads]
    assert machines == sorted(machines)
    assert machines[0] == 1


def test_X05_unit_costs_are_those_of_the_largest_sizes_measured() -> None:
    assert costs(figures()).sizes == (100_000, 1_000_000)
    assert costs(figures()).bytes_each == 3_000
    assert costs(figures()).of_spaces(10_000_000).recall_cpu_ms == pytest.approx(18)


def test_X05_the_page_holds_what_was_measured() -> None:
    blocks = scale_page.written(figures())
    assert "| bytes a memory | 3,000 | 3,000 | 3,000 |" in blocks["costs"]
    assert "| recall p50, ms | 2 | **no** |" in blocks["check"]
    assert {found["name"] for found in scale_page.BLOCK.finditer(scale_page.PAGE.read_text())} == set(blocks)


def test_X02_what_two_servers_can_give_follows_from_what_each_part_takes() -> None:
    """A server has one core; where the parts share two, the database and whoever asks take theirs of them."""
    search = Parts(server=10, database=2, asker=1)
    assert [search.a_second(servers, 100) for servers in (1, 2, 3)] == [100, 200, 300]
    assert search.a_second(1, 2) == 100
    assert search.a_second(2, 2) == pytest.approx(2_000 / 13)
    assert search.a_second(2, 1) == search.a_second(1, 1) == pytest.approx(1_000 / 13)


def test_X05_a_space_of_any_size_can_be_made() -> None:
    base = np.random.default_rng(5).normal(size=(BASE, 8)).astype(np.float32)
    made = [memory for batch in batches(base, 7_001, "minilm") for memory in batch]
    assert len({memory.text for memory in made}) == len(made) == 7_001
    vector = np.frombuffer(made[-1].vectors["minilm"], dtype="<f2").astype(np.float64)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=0.01)
    again = [memory for batch in batches(base, 7_001, "minilm") for memory in batch]
    assert [memory.text for memory in again] == [memory.text for memory in made]


def test_X05_common_words_are_common() -> None:
    words = Counter(" ".join(sentences(np.random.default_rng(1), 2_000)).split())
    assert words[WORDS[0]] > 10 * words[WORDS[1_000]]
    assert len(words) > 3_000


def figures() -> dict[str, dict[str, Any]]:
    names = {
        "stored a second": 3_000,
        "vector index built, s": 600,
        "bytes a memory": 3_000,
        "of them the vector index": 1_200,
        "recall p50, ms": 20,
    }
    sized = {f"{size:,}: {name}": value for size in (10_000, 100_000, 1_000_000) for name, value in names.items()}
    recalls = {10_000: 6, 100_000: 10, 1_000_000: 14}
    sized |= {f"{size:,}: processor time of a recall, ms": value for size, value in recalls.items()}
    others = {"spaces: bytes a memory": 3_200, "spaces: processor time of a recall, ms": 5}
    reckoning = {"reckoned for 1,000,000 and measured apart: recall p50, ms": 2.0}
    said = {"command": "./run bench scale", "date": "2026-11-17", "commit": "abc", "how": "3 spaces", "holds": False}
    return {name: {"value": value, **said} for name, value in (sized | others | reckoning).items()}
