"""Telling people: every notifier hears of it, and one that cannot be reached breaks nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.engine.core import Core
from recollect.errors import RecollectError
from recollect.logs import Logger
from recollect.ports import Notice, Notifier
from recollect.providers.notify import LogNotifier

log = Logger("recollect.notice")


@dataclass(frozen=True, kw_only=True, slots=True)
class Notified:
    """Whether somebody was told; `problem` says why not."""

    name: str
    problem: str | None = None


async def tell(core: Core, notice: Notice) -> Sequence[Notified]:
    """Send a notice to everybody; what could not be sent is logged, never raised."""
    try:
        notifiers = core.notifiers()
    except RecollectError as problem:
        log.warning("nobody can be told", why=problem.message)
        return [Notified(name="notify", problem=problem.message)]
    return [await _tell(notifier, notice) for notifier in notifiers]


async def _tell(notifier: Notifier, notice: Notice) -> Notified:
    try:
        await notifier.notify(notice)
    except (RecollectError, OSError) as problem:
        log.warning("somebody could not be told", who=notifier.name, title=notice.title, why=str(problem))
        return Notified(name=notifier.name, problem=str(problem))
    return Notified(name=notifier.name)


def is_anybody_told(core: Core) -> bool:
    """Whether notices reach somebody, and not only the log (E02)."""
    return any(not isinstance(notifier, LogNotifier) for notifier in core.notifiers())


def reached_anybody(notices: Sequence[Notified]) -> bool:
    """Whether somebody besides the log heard of a notice."""
    return any(notified.problem is None and notified.name != LogNotifier.name for notified in notices)
