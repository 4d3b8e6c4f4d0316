"""Logs, set up in one place for every door: to stderr, so that stdout carries answers and nothing else.

structlog is loaded with the first line: most programs write none, and it takes longer to load than a listing does.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from structlog.typing import Processor

# What is to be done once structlog is there.
_then: Callable[[], None] | None = None


class Logger:
    """The logger of that name, as structlog has it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        import structlog

        _set_up()
        return getattr(structlog.get_logger(self._name), method)


class Stderr:
    """Wherever stderr is at the moment a line is written: tests and servers put another in its place."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def configure(*, level: str, format: str) -> None:
    """From now on, lines of this level and above are written: `console` for people, `json` for machines."""
    global _then
    _then = partial(_configure, level=level, format=format)
    _set_up_if_loaded()


def unless_configured() -> None:
    """Inside somebody's program: only what went wrong, and only if that program has not set up structlog itself."""
    global _then
    _then = _then or _configure_unless_done
    _set_up_if_loaded()


def _set_up_if_loaded() -> None:
    if "structlog" in sys.modules:
        _set_up()


def _set_up() -> None:
    global _then
    step, _then = _then, None
    if step:
        step()


def _configure_unless_done() -> None:
    import structlog

    if not structlog.is_configured():
        _configure(level="warning", format="console")


def _configure(*, level: str, format: str) -> None:
    import structlog

    stderr: TextIO = Stderr()  # type: ignore[assignment]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _renderer(format),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=stderr),
    )


def _renderer(format: str) -> "Processor":
    import structlog

    if format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
