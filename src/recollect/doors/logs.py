"""Logs, set up in one place for every door: to stderr, so that stdout carries answers and nothing else."""

import logging
import sys
from typing import Any, TextIO

import structlog


class Stderr:
    """Wherever stderr is at the moment a line is written: tests and servers put another in its place."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def configure(*, level: str, format: str) -> None:
    """From now on, `structlog` writes lines of this level and above: `console` for people, `json` for machines."""
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


def unless_configured() -> None:
    """Inside somebody's program: only what went wrong, and only if that program has not set up structlog itself."""
    if not structlog.is_configured():
        configure(level="warning", format="console")


def _renderer(format: str) -> structlog.typing.Processor:
    if format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
