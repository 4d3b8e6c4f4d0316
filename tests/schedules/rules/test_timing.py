"""When something comes next: every so many minutes, by cron, across daylight saving."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.schedules.rules.cron import next_after, parse
from recollect.schedules.rules.timing import Timing, checked, jitter, next_time

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
SUNDAYS = "0 2 * * sun"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def comings(cron: str, zone: ZoneInfo, after: str, number: int) -> list[str]:
    """The next times, as the wall of the zone shows them."""
    moment, found = utc(after), []
    for _ in range(number):
        moment = next_after(parse(cron), zone, moment)
        found.append(moment.astimezone(zone).isoformat(timespec="minutes"))
    return found


def test_E29_sunday_at_two_in_the_configured_zone() -> None:
    assert comings(SUNDAYS, ZoneInfo("UTC"), "2026-11-15T02:00", 2) == [
        "2026-11-22T02:00+00:00",
        "2026-11-29T02:00+00:00",
    ]
    assert comings(SUNDAYS, NEW_YORK, "2026-06-01T00:00", 1) == ["2026-06-07T02:00-04:00"]


def test_E29_the_sunday_on_which_two_does_not_exist_is_not_left_out() -> None:
    assert comings(SUNDAYS, BERLIN, "2026-03-20T00:00", 3) == [
        "2026-03-22T02:00+01:00",
        "2026-03-29T03:00+02:00",
        "2026-04-05T02:00+02:00",
    ]


def test_E29_the_sunday_on_which_two_comes_twice_counts_once() -> None:
    assert comings(SUNDAYS, BERLIN, "2026-10-19T00:00", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-11-01T02:00+01:00",
        "2026-11-08T02:00+01:00",
    ]
    # Also when asked between the two.
    assert comings(SUNDAYS, BERLIN, "2026-10-25T00:30", 1) == ["2026-11-01T02:00+01:00"]


def test_every_hour_means_both_hours_of_the_night_in_which_one_comes_twice() -> None:
    assert comings("0 * * * *", BERLIN, "2026-10-24T23:30", 4) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
        "2026-10-25T04:00+01:00",
    ]
    assert comings("30 * * * *", BERLIN, "2026-03-29T00:00", 3) == [
        "2026-03-29T01:30+01:00",
        "2026-03-29T03:30+02:00",
        "2026-03-29T04:30+02:00",
    ]


def test_half_an_hour_of_daylight_saving_keeps_the_order() -> None:
    """On Lord Howe the clocks jump from 2:00 to 2:30: 2:10 comes at 2:40, behind 2:35."""
    assert comings("10,35 2 * * *", LORD_HOWE, "2026-10-03T00:00", 4) == [
        "2026-10-04T02:35+11:00",
        "2026-10-04T02:40+11:00",
        "2026-10-05T02:10+11:00",
        "2026-10-05T02:35+11:00",
    ]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/20 8-9 * * *", ["2026-11-15T08:00", "2026-11-15T08:20", "2026-11-15T08:40", "2026-11-15T09:00"]),
        ("0 0 1 * *", ["2026-12-01T00:00", "2027-01-01T00:00"]),
        ("0 0 29 feb *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 13 * fri", ["2026-11-20T00:00", "2026-11-27T00:00", "2026-12-04T00:00"]),
        ("5 4 * * 7", ["2026-11-15T04:05", "2026-11-22T04:05"]),
        ("5 4 * * 0", ["2026-11-15T04:05", "2026-11-22T04:05"]),
        ("0 9 * * sat-sun", ["2026-11-15T09:00", "2026-11-21T09:00"]),
        ("0 9 * * MON-FRI/2", ["2026-11-16T09:00", "2026-11-18T09:00", "2026-11-20T09:00", "2026-11-23T09:00"]),
        ("15 10/6 * * *", ["2026-11-15T10:15", "2026-11-15T16:15", "2026-11-15T22:15", "2026-11-16T10:15"]),
    ],
)
def test_cron_expressions(cron: str, expected: list[str]) -> None:
    found = comings(cron, ZoneInfo("UTC"), "2026-11-15T00:00", len(expected))
    assert found == [f"{time}+00:00" for time in expected]


@pytest.mark.parametrize(
    "wrong",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *",
     "5-1 * * * *", "a * * * *", "* * * mon *", "1,,2 * * * *", "@daily", "0 0 30 2 *", "- * * * *", "1- * * * *",
     "٣ * * * *", "0 2 * * sun\0"],
)  # fmt: skip
def test_what_is_no_cron_expression_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(wrong)
    assert refused.value.field == "cron"


@given(
    st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, ZoneInfo("UTC"), ZoneInfo("Asia/Kathmandu")]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - a time on a wall
    st.sampled_from(["0 2 * * *", "30 1,3 * * *", "*/15 * * * *", "45 23 * * mon"]),
)
def test_the_next_time_is_later_and_nothing_fits_in_between(zone: ZoneInfo, local: datetime, text: str) -> None:
    after, cron = local.replace(tzinfo=zone).astimezone(UTC), parse(text)
    found = next_after(cron, zone, after)
    assert found > after
    assert next_after(cron, zone, found - timedelta(minutes=1)) == found
    shown = found.astimezone(zone)
    is_jump = shown.utcoffset() != (found - timedelta(hours=2)).astimezone(zone).utcoffset()
    assert is_jump or (shown.hour in cron.hours and shown.minute in cron.minutes and cron.falls_on(shown.date()))


def interval(minutes: int, jitter_seconds: int = 0) -> Timing:
    return Timing(every_minutes=minutes, jitter_seconds=jitter_seconds)


def test_A25_minutes_keep_their_rhythm_and_begin_anew_only_after_a_long_wait() -> None:
    due, zone = utc("2026-11-15T02:00"), ZoneInfo("UTC")

    def after(late: timedelta) -> timedelta:
        return next_time(interval(1440), zone=zone, now=due + late, who="x", due=due) - due

    assert after(timedelta(seconds=40)) == timedelta(days=1)
    assert after(timedelta(hours=11)) == timedelta(days=1)
    assert after(timedelta(hours=23, minutes=59)) == timedelta(days=1, hours=23, minutes=59)
    assert after(timedelta(days=21)) == timedelta(days=22)


def test_A25_jitter_keeps_apart_and_is_always_the_same() -> None:
    now, zone = utc("2026-11-15T02:00"), ZoneInfo("UTC")
    drawn = {jitter(f"space {n}", 300) for n in range(200)}
    assert len(drawn) > 100
    assert max(drawn) <= timedelta(seconds=300)
    assert jitter("a", 300) == jitter("a", 300)
    first = next_time(interval(60, 300), zone=zone, now=now, who="a")
    assert first == now + timedelta(hours=1) + jitter("a", 300)
    by_cron = Timing(cron="0 * * * *", jitter_seconds=300)
    one = next_time(by_cron, zone=zone, now=now, who="a")
    two = next_time(by_cron, zone=zone, now=one, who="a", due=one)
    assert two - one == timedelta(hours=1)
    assert one - utc("2026-11-15T02:00") in (jitter("a", 300), jitter("a", 300) + timedelta(hours=1))


@pytest.mark.parametrize(
    ("timing", "field"),
    [
        (Timing(), "cron"),
        (Timing(every_minutes=5, cron=SUNDAYS), "cron"),
        (Timing(every_minutes=0), "every_minutes"),
        (Timing(every_minutes=-5), "every_minutes"),
        (Timing(every_minutes=10**9), "every_minutes"),
        (Timing(every_minutes=5, jitter_seconds=-1), "jitter_seconds"),
        (Timing(cron="nonsense"), "cron"),
    ],
)
def test_timings_that_make_no_sense_are_refused(timing: Timing, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(timing)
    assert refused.value.field == field
