"""When something comes next that is done again and again: every so many minutes, or by cron on the clock of a zone."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from recollect.errors import InvalidInput
from recollect.schedules.rules import cron

MOST_MINUTES = 366 * 1440
MOST_JITTER_SECONDS = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """One of `every_minutes` and `cron`. `jitter_seconds` keeps apart what would otherwise begin at the same moment."""

    every_minutes: int | None = None
    cron: str | None = None
    time_zone: str = "UTC"
    jitter_seconds: int = 0


def checked(timing: Timing) -> Timing:
    if (timing.every_minutes is None) == (timing.cron is None):
        raise InvalidInput("A schedule has either minutes or a cron expression: give one of the two.", field="cron")
    if timing.cron is not None:
        cron.parse(timing.cron)
    elif not 1 <= (timing.every_minutes or 0) <= MOST_MINUTES:
        raise InvalidInput(
            f"A schedule comes every 1 to {MOST_MINUTES:,} minutes, not every {timing.every_minutes}.",
            field="every_minutes",
        )
    if not 0 <= timing.jitter_seconds <= MOST_JITTER_SECONDS:
        raise InvalidInput(
            f"Jitter is from 0 to {MOST_JITTER_SECONDS:,} seconds, not {timing.jitter_seconds}.",
            field="jitter_seconds",
        )
    return timing


def next_time(timing: Timing, *, zone: tzinfo, now: datetime, who: str, due: datetime | None = None) -> datetime:
    """The time after `now`. `due` is when it was due last, None at first; `who` is what the jitter is drawn from.

    Every so many minutes means a steady rhythm; only after a long wait does it begin anew from now, so that what was
    caught up does not come again the next moment.
    """
    apart = jitter(who, timing.jitter_seconds)
    if timing.cron is not None:
        return cron.next_after(cron.parse(timing.cron), zone, now - apart) + apart
    period = timedelta(minutes=timing.every_minutes or 0)
    if due is None:
        return now + period + apart
    in_rhythm = due + period
    return in_rhythm if in_rhythm - now >= period / 2 else now + period


def jitter(who: str, most_seconds: int) -> timedelta:
    """From 0 to `most_seconds`, always the same for the same one: apart from the others, and still regular."""
    drawn = int.from_bytes(hashlib.sha256(who.encode()).digest()[:8], "big")
    return timedelta(seconds=drawn % (most_seconds + 1))
