"""Cron expressions, and when one comes next: on the clock of the wall, across daylight saving.

    minute hour day-of-month month day-of-week        0 2 * * sun        30 6,18 1-15 * mon-fri

Each field is *, a number, a name (mon, jan), a range, a list of those, or a range with a step (*/5, 8-18/2); Sunday is
0 or 7. Where both kinds of day are given, either suffices, as cron has always had it.

A time that the clocks jump over comes as many minutes later as they jump. A time that comes twice is taken once, the
first time; only where every hour is meant are both hours meant.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from recollect.errors import InvalidInput

EXAMPLE = 'five fields like "0 2 * * sun" (minute, hour, day of month, month, day of week)'
_YEAR = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = {name: number for number, name in enumerate(_YEAR, start=1)}
WEEKDAYS = {name: number for number, name in enumerate(_WEEK)}
PART = re.compile(r"(?:(\*)|([a-z]{3}|[0-9]{1,2})(?:-([a-z]{3}|[0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
A_DAY = timedelta(days=1)
# From one 29 February to the next are up to eight years: what does not come within nine never comes.
MOST_DAYS = 9 * 366

Field = frozenset[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cron:
    """The values of each field; weekdays from Sunday, 0."""

    minutes: Field
    hours: Field
    days: Field
    months: Field
    weekdays: Field
    is_either_day: bool

    def falls_on(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = in_month or in_week if self.is_either_day else in_month and in_week
        return fits and day.month in self.months

    def moments(self, day: date, zone: tzinfo) -> Iterator[datetime]:
        """The moments of a day on the wall, as the world counts them."""
        folds = (0, 1) if len(self.hours) == 24 else (0,)
        for hour in self.hours:
            for minute in self.minutes:
                for fold in folds:
                    yield datetime.combine(day, time(hour, minute, fold=fold), zone).astimezone(UTC)


def parse(text: str) -> Cron:
    """InvalidInput for whatever is no cron expression, or never comes."""
    fields = text.lower().split()
    if len(fields) != 5:
        raise InvalidInput(f"A cron expression has {EXAMPLE}, not {text[:60]!r}.", field="cron")
    minutes, hours, days, months, weekdays = fields
    cron = Cron(
        minutes=_values(minutes, 0, 59),
        hours=_values(hours, 0, 23),
        days=_values(days, 1, 31),
        months=_values(months, 1, 12, MONTHS),
        weekdays=frozenset(number % 7 for number in _values(weekdays, 0, 7, WEEKDAYS)),
        is_either_day=not (days.startswith("*") or weekdays.startswith("*")),
    )
    next_after(cron, UTC, datetime(2000, 1, 1, tzinfo=UTC))
    return cron


def next_after(cron: Cron, zone: tzinfo, after: datetime) -> datetime:
    """The first moment behind this one at which the wall shows such a time."""
    # A day earlier, for times that the clocks jump over at midnight.
    day = after.astimezone(zone).date() - A_DAY
    for _ in range(MOST_DAYS):
        if cron.falls_on(day) and (later := [moment for moment in cron.moments(day, zone) if moment > after]):
            return min(later)
        day += A_DAY
    raise InvalidInput("This cron expression names a day that never comes.", field="cron")


def _values(field: str, low: int, high: int, names: Mapping[str, int] | None = None) -> Field:
    values: set[int] = set()
    for part in field.split(","):
        values |= _part(part, low, high, names or {})
    return frozenset(values)


def _part(part: str, low: int, high: int, names: Mapping[str, int]) -> set[int]:
    match = PART.fullmatch(part)
    if match is None:
        raise InvalidInput(f"{part[:60]!r} is no part of a cron expression: it has {EXAMPLE}.", field="cron")
    every, first, last, step = match.groups()
    if every:
        begin, end = low, high
    else:
        begin = _number(first, names)
        end = _number(last, names) if last else high if step else begin
        if names is WEEKDAYS and end < begin and end == 0:
            end = 7  # sat-sun
    if not low <= begin <= end <= high or step == "0":
        raise InvalidInput(
            f"{part!r} does not fit in a cron expression: here it goes from {low} to {high}.", field="cron"
        )
    return set(range(begin, end + 1, int(step or 1)))


def _number(word: str, names: Mapping[str, int]) -> int:
    if word.isdecimal():
        return int(word)
    if word not in names:
        raise InvalidInput(f"{word!r} is no part of a cron expression: it has {EXAMPLE}.", field="cron")
    return names[word]
