"""Which cases go into which: against the slow and obvious way, and where numbers are awkward."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.cases.rules.duplicates import ROWS, Grouping, duplicates, unit_rows

ABOVE = 0.95


def obvious(
    vectors: NDArray[np.floating], may_go: list[bool], apart: set[tuple[int, int]], above: float = ABOVE
) -> list[tuple[int, list[int]]]:
    """Every pair by the definition of the cosine, in the order of preference."""
    rows = [[float(number) for number in row] for row in vectors.tolist()]

    def near(a: int, b: int) -> bool:
        squares = sum(x * x for x in rows[a]) * sum(x * x for x in rows[b])
        if squares == 0 or (min(a, b), max(a, b)) in apart:
            return False
        return sum(x * y for x, y in zip(rows[a], rows[b], strict=True)) / math.sqrt(squares) > above

    gone: set[int] = set()
    found = []
    for keeper in range(len(rows)):
        members: list[int] = []
        for other in range(keeper + 1, len(rows)) if keeper not in gone else ():
            free = may_go[other] and other not in gone
            if free and near(keeper, other) and all(near(other, member) for member in members):
                members.append(other)
        gone.update(members)
        if members:
            found.append((keeper, members))
    return found


def groups(found: Grouping) -> list[tuple[int, list[int]]]:
    return [(one.keeper, list(one.members)) for one in found.groups]


# Small whole numbers: cosines come in clumps, many of them at the threshold or near it.
BANKS = st.integers(0, 14).flatmap(
    lambda count: st.tuples(
        st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=count, max_size=count),
        st.lists(st.booleans(), min_size=count, max_size=count),
        st.sets(st.tuples(st.integers(0, 14), st.integers(0, 14)).filter(lambda pair: pair[0] < pair[1]), max_size=4),
        st.sampled_from([0.5, 0.8, 0.95]),
        st.sampled_from([1, 2, 3, ROWS]),
    )
)


@settings(max_examples=400, deadline=None)
@given(BANKS)
def test_E07_E21_the_same_groups_as_the_obvious_way_whatever_the_blocks(
    bank: tuple[list[list[int]], list[bool], set[tuple[int, int]], float, int],
) -> None:
    numbers, may_go, apart, above, rows = bank
    vectors = np.array(numbers, dtype=np.float16).reshape(len(numbers), 3)
    found = duplicates(vectors, np.array(may_go, dtype=np.bool_), above=above, apart=apart, rows=rows)
    assert groups(found) == obvious(vectors, may_go, apart, above)


def test_E21_duplicates_across_blocks_are_found() -> None:
    chance = np.random.default_rng(3)
    base = chance.normal(size=(350, 48))
    twins = base[chance.permutation(350)] + chance.normal(scale=0.02, size=(350, 48))
    vectors = np.concatenate([base, twins]).astype(np.float16)
    may_go = np.ones(700, dtype=np.bool_)
    found = duplicates(vectors, may_go, above=ABOVE)
    assert groups(found) == obvious(vectors, may_go.tolist(), set())
    assert len(found.groups) == 350


def test_E33_a_bank_of_the_size_that_the_document_names_is_compared_whole() -> None:
    """How long that takes is measured by `./run bench cases`."""
    chance = np.random.default_rng(33)
    base = chance.normal(size=(600, 1536))
    again = chance.permutation(600)[:400]
    vectors = np.concatenate([base, base[again] + chance.normal(scale=0.05, size=(400, 1536))]).astype(np.float16)
    found = duplicates(vectors, np.ones(1000, dtype=np.bool_), above=ABOVE)
    assert groups(found) == [(keeper, [600 + again.tolist().index(keeper)]) for keeper in sorted(again.tolist())]


def test_E03_the_threshold_itself_is_no_duplicate_however_it_is_computed() -> None:
    exactly = np.array([(1, 0, 0, 0, 0), (19, 6, 1, 1, 1)], dtype=np.float16)
    both = np.ones(2, dtype=np.bool_)
    assert groups(duplicates(exactly, both, above=0.95)) == []
    assert groups(duplicates(exactly, both, above=math.nextafter(0.95, 0))) == [(0, [1])]


def test_E03_similarities_are_those_of_the_stored_numbers() -> None:
    vectors = np.array([(1, 0), (3, 4), (3, 4.001953125)], dtype=np.float16)
    (group,) = duplicates(vectors, np.ones(3, dtype=np.bool_), above=0.9).groups
    assert (group.keeper, group.members) == (1, (2,))
    a, b = vectors[1].astype(float), vectors[2].astype(float)
    assert group.similarities[0] == pytest.approx(a @ b / math.sqrt((a @ a) * (b @ b)), abs=1e-15)


def test_E32_zero_and_unusable_vectors_never_raise_and_are_like_nothing() -> None:
    vectors = np.array([(0, 0), (np.nan, 1), (np.inf, 1), (1, 1), (1, 1)], dtype=np.float32)
    found = duplicates(vectors, np.ones(5, dtype=np.bool_), above=ABOVE)
    assert groups(found) == [(3, [4])]
    assert np.isfinite(unit_rows(vectors)).all()


def test_E32_nothing_to_compare() -> None:
    none = np.zeros((0, 4), dtype=np.float16)
    assert groups(duplicates(none, np.zeros(0, dtype=np.bool_), above=ABOVE)) == []
    alone = np.ones((1, 4), dtype=np.float16)
    assert groups(duplicates(alone, np.ones(1, dtype=np.bool_), above=ABOVE)) == []
    nobody = duplicates(np.ones((3, 4), dtype=np.float16), np.zeros(3, dtype=np.bool_), above=ABOVE)
    assert groups(nobody) == []


def test_a_large_group_of_the_same_is_one_group() -> None:
    vectors = np.ones((450, 8), dtype=np.float16)
    (group,) = duplicates(vectors, np.ones(450, dtype=np.bool_), above=ABOVE).groups
    assert (group.keeper, group.members) == (0, tuple(range(1, 450)))
