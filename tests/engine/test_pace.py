"""The faster of two ways is chosen by measurement (D53)."""

from recollect.engine.core import AGAIN_EVERY, LEAST_CARE, TRIES, Pace, care_for


def taken(pace: Pace, seconds: dict[str, float], times: int) -> list[str]:
    """Which way is taken so many times, where each takes so long."""
    ways: list[str] = []
    for _ in range(times):
        way = str(pace.way())
        pace.took(way, seconds[way])
        ways.append(way)
    return ways


def test_D53_both_ways_are_tried_and_the_faster_one_is_taken() -> None:
    ways = taken(Pace("all", "index"), {"all": 0.02, "index": 0.01}, 20)
    assert ways[: 2 * TRIES] == ["all"] * TRIES + ["index"] * TRIES
    assert set(ways[2 * TRIES :]) == {"index"}
    assert set(taken(Pace("all", "index"), {"all": 0.01, "index": 0.01}, 20)[2 * TRIES :]) == {"all"}


def test_D53_what_has_become_slow_is_left() -> None:
    pace = Pace("all", "index")
    taken(pace, {"all": 0.01, "index": 0.02}, 10)
    ways = taken(pace, {"all": 0.05, "index": 0.02}, 2 * AGAIN_EVERY)
    assert ways[-2] == "index"
    assert "all" in taken(pace, {"all": 0.01, "index": 0.02}, AGAIN_EVERY)  # looked at again now and then


def test_D53_the_index_is_searched_as_carefully_as_its_size_demands() -> None:
    assert [care_for(count, most=800) for count in (5_000, 20_000, 100_000)] == [308, 489, 800]
    assert care_for(1, most=800) == LEAST_CARE
    assert care_for(None, most=800) == 800
    assert care_for(100_000, most=100) == 100
